//! Rows of pictures, each of one chat: put, read, captioned, pruned. What the bytes mean is not known here.

use super::chats::{self, valid_name};
use super::main::{MainDb, explain};
use crate::base::error::{Error, Kind, Result, excerpt};
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use std::collections::HashSet;

/// Most bytes of one picture: 20 MiB.
pub const MAX_BYTES: usize = 20 << 20;
/// Most bytes of all pictures of a chat: 1 GiB.
pub const MAX_CHAT_BYTES: i64 = 1 << 30;
/// Most pictures of a chat.
pub const MAX_CHAT_IMAGES: i64 = 10_000;

/// A picture to be kept.
#[derive(Debug, Clone, Copy)]
pub struct NewImage<'a> {
    /// The chat it belongs to; made where there is none.
    pub chat: &'a str,
    /// Whether that chat is private, for one that is made now.
    pub private: bool,
    /// Its name in that chat, such as `0123456789ab.png`.
    pub id: &'a str,
    /// Its bytes.
    pub data: &'a [u8],
    /// Its media type, such as `image/png`.
    pub media_type: &'a str,
    /// Whether a model may be shown it again.
    pub visible: bool,
    /// What it shows, in words.
    pub caption: Option<&'a str>,
    /// Milliseconds since 1970-01-01 UTC.
    pub now: i64,
}

/// What happens once a chat holds many pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// All of them stay, up to the limits of a chat.
    All,
    /// Only the newest so many stay.
    Newest(u32),
}

/// What is known of a picture without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRow {
    /// Its id.
    pub id: String,
    /// Its media type.
    pub media_type: String,
    /// When it was put, in milliseconds since 1970-01-01 UTC.
    pub created_at: i64,
    /// Whether a model may be shown it again.
    pub visible: bool,
    /// What it shows, in words.
    pub caption: Option<String>,
    /// Its bytes.
    pub size: u64,
}

impl MainDb {
    /// Keeps a picture.
    ///
    /// # Errors
    /// `conflict` where the id is taken, `too_large` over [`MAX_BYTES`], `quota` where the chat is full or the disk is,
    /// `invalid_arguments` for a bad name of the chat.
    pub fn put_image(&self, image: &NewImage, keep: Keep) -> Result<()> {
        valid_name(image.chat)?;
        if image.data.len() > MAX_BYTES {
            return Err(Error::new(
                Kind::TooLarge,
                format!("the picture has {} bytes; at most {MAX_BYTES} are kept", image.data.len()),
            )
            .hint("make it smaller first"));
        }
        self.write(|t| {
            chats::ensure(t, image.chat, image.private, image.now)?;
            insert(t, image)?;
            if let Keep::Newest(most) = keep {
                t.prepare(
                    "DELETE FROM tool_images WHERE id IN (SELECT id FROM tool_images WHERE chat_name = ?1 \
                     ORDER BY created_at DESC, rowid DESC LIMIT -1 OFFSET ?2)",
                )
                .and_then(|mut delete| delete.execute(params![image.chat, most]))
                .map_err(|e| explain(&e))?;
            }
            let (count, bytes): (i64, i64) = t
                .prepare("SELECT count(*), ifnull(sum(size), 0) FROM tool_images WHERE chat_name = ?1")
                .and_then(|mut sum| sum.query_row([image.chat], |row| Ok((row.get(0)?, row.get(1)?))))
                .map_err(|e| explain(&e))?;
            if count > MAX_CHAT_IMAGES || bytes > MAX_CHAT_BYTES {
                return Err(Error::new(Kind::Quota, "this chat keeps as many pictures as it may")
                    .hint("delete the chat, or go on in another one"));
            }
            Ok(())
        })
    }

    /// What is known of a picture of this chat; `None` where there is none. One of another chat is none.
    ///
    /// # Errors
    /// What the file system says.
    pub fn image(&self, chat: &str, id: &str) -> Result<Option<ImageRow>> {
        Ok(self.read(|c| row(c, chat, id))?.flatten())
    }

    /// The bytes of a picture of this chat; `None` where there is none.
    ///
    /// # Errors
    /// What the file system says.
    pub fn image_data(&self, chat: &str, id: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.read(|c| data(c, chat, id))?.flatten())
    }

    /// The bytes of a picture of any chat that is not private; `None` where there is none. For the owner, who is shown results.
    ///
    /// # Errors
    /// What the file system says.
    pub fn open_image(&self, id: &str) -> Result<Option<Vec<u8>>> {
        Ok(self
            .read(|c| {
                let chat: Option<String> = c
                    .query_row(
                        "SELECT chat_name FROM tool_images JOIN chats ON chats.name = chat_name \
                         WHERE tool_images.id = ?1 AND chats.private = 0",
                        [id],
                        |row| row.get(0),
                    )
                    .optional()
                    .map_err(|e| explain(&e))?;
                chat.map_or(Ok(None), |chat| data(c, &chat, id))
            })?
            .flatten())
    }

    /// Says what a picture shows; `None` takes the words away.
    ///
    /// # Errors
    /// `not_found` for a picture that this chat does not have.
    pub fn set_caption(&self, chat: &str, id: &str, caption: Option<&str>) -> Result<()> {
        let missing = || Error::not_found(format!("this chat has no picture `{}`", shown(id)));
        // Nothing is made only to change something in it.
        if self.image(chat, id)?.is_none() {
            return Err(missing());
        }
        self.write(|t| {
            let changed = t
                .execute(
                    "UPDATE tool_images SET caption = ?3 WHERE chat_name = ?1 AND id = ?2",
                    params![chat, id, caption],
                )
                .map_err(|e| explain(&e))?;
            if changed == 0 { Err(missing()) } else { Ok(()) }
        })
    }

    /// Deletes the pictures of a chat that were put before `before` (milliseconds since 1970-01-01 UTC) and whose ids are not
    /// among `referenced`; gives how many. The moment gives a call that runs now the time to name what it keeps.
    ///
    /// # Errors
    /// What the file system says; then nothing is deleted.
    pub fn prune_images(&self, chat: &str, referenced: &HashSet<String>, before: i64) -> Result<usize> {
        if self.chat(chat)?.is_none() {
            return Ok(0);
        }
        self.write(|t| {
            let orphans = |t: &Transaction| {
                t.prepare("SELECT id FROM tool_images WHERE chat_name = ?1 AND created_at < ?2")?
                    .query_map(params![chat, before], |row| row.get::<_, String>(0))?
                    .filter(|id| id.as_ref().map_or(true, |id| !referenced.contains(id)))
                    .collect::<rusqlite::Result<Vec<String>>>()
            };
            let orphans = orphans(t).map_err(|e| explain(&e))?;
            for id in &orphans {
                t.prepare("DELETE FROM tool_images WHERE chat_name = ?1 AND id = ?2")
                    .and_then(|mut delete| delete.execute(params![chat, id]))
                    .map_err(|e| explain(&e))?;
            }
            Ok(orphans.len())
        })
    }
}

/// The one place that writes the bytes of a picture.
fn insert(t: &Transaction, image: &NewImage) -> Result<()> {
    t.prepare(
        "INSERT INTO tool_images (id, chat_name, media_type, created_at, visible, caption, size, data) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            image.id,
            image.chat,
            image.media_type,
            image.now,
            image.visible,
            image.caption,
            i64::try_from(image.data.len()).unwrap_or(i64::MAX),
            image.data
        ])
    })
    .map_err(|e| explain(&e))?;
    Ok(())
}

/// The one place that reads the bytes of a picture.
fn data(connection: &Connection, chat: &str, id: &str) -> Result<Option<Vec<u8>>> {
    connection
        .query_row("SELECT data FROM tool_images WHERE id = ?2 AND chat_name = ?1", [chat, id], |row| row.get(0))
        .optional()
        .map_err(|e| explain(&e))
}

fn row(connection: &Connection, chat: &str, id: &str) -> Result<Option<ImageRow>> {
    connection
        .query_row(
            "SELECT id, media_type, created_at, visible, caption, size FROM tool_images WHERE id = ?2 AND chat_name = ?1",
            [chat, id],
            |row| {
                Ok(ImageRow {
                    id: row.get(0)?,
                    media_type: row.get(1)?,
                    created_at: row.get(2)?,
                    visible: row.get(3)?,
                    caption: row.get(4)?,
                    size: row.get::<_, i64>(5)?.unsigned_abs(),
                })
            },
        )
        .optional()
        .map_err(|e| explain(&e))
}

fn shown(id: &str) -> String {
    excerpt(id, 60)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
