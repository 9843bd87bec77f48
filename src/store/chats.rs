//! Rows of chats: made on first use, renamed, cleared and deleted with everything that belongs to them.
//! A chat has a name for people and a number for its rows; the number is never given again.

use super::inbox;
use super::main::{MainDb, explain};
use crate::base::error::{Error, Kind, Result, excerpt};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

/// Longest name of a chat, in characters.
pub const MAX_NAME: usize = 200;

/// A chat, without its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chat {
    /// What its rows hang on: stays the same whatever the chat is called, and is never given to another.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_at: i64,
    /// When something of it last changed, as `created_at`.
    pub updated_at: i64,
    /// Whether it is private.
    pub private: bool,
    /// Whether its rows are sealed with the vault's key.
    pub vaulted: bool,
    /// Its settings: a JSON object, as text.
    pub settings: String,
}

/// A chat as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatSummary {
    /// The chat.
    pub chat: Chat,
    /// How many messages it has.
    pub messages: u64,
    /// How many items wait in its inbox; one that runs counts no more.
    pub queued: u64,
}

/// Whether a chat may be called that.
///
/// # Errors
/// `invalid_arguments` saying what a name is made of.
pub fn valid_name(name: &str) -> Result<()> {
    let length = name.chars().count();
    if name.trim() == name && (1..=MAX_NAME).contains(&length) && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let shown = excerpt(name, 60);
    Err(Error::invalid(format!("`{shown}` is no name for a chat"))
        .hint(format!("use 1 to {MAX_NAME} characters without line breaks, and no space at either end")))
}

impl MainDb {
    /// Makes a chat where there is none, at the time `now`. One that is there stays as it is.
    ///
    /// # Errors
    /// `invalid_arguments` for a bad name; what the file system says.
    pub fn ensure_chat(&self, name: &str, private: bool, now: i64) -> Result<Chat> {
        valid_name(name)?;
        self.write(|t| {
            ensure(t, name, private, now)?;
            find(t, name)?.ok_or_else(|| absent(name))
        })
    }

    /// Makes a chat that is not there yet.
    ///
    /// # Errors
    /// `conflict` where there is one of that name, `invalid_arguments` for a bad name, what the file system says.
    pub fn create_chat(&self, name: &str, private: bool, now: i64) -> Result<Chat> {
        valid_name(name)?;
        self.write(|t| {
            if find(t, name)?.is_some() {
                return Err(taken(name));
            }
            ensure(t, name, private, now)?;
            find(t, name)?.ok_or_else(|| absent(name))
        })
    }

    /// A chat, or `None` where there is none of that name.
    ///
    /// # Errors
    /// What the file system says.
    pub fn chat(&self, name: &str) -> Result<Option<Chat>> {
        Ok(self.read(|c| find(c, name))?.flatten())
    }

    /// A chat by its number, or `None` where it has gone.
    ///
    /// # Errors
    /// What the file system says.
    pub fn chat_by_id(&self, id: i64) -> Result<Option<Chat>> {
        Ok(self.read(|c| find_id(c, id))?.flatten())
    }

    /// Every chat, the one that changed last first.
    ///
    /// # Errors
    /// What the file system says.
    pub fn chats(&self) -> Result<Vec<ChatSummary>> {
        let list = |c: &Connection| {
            c.prepare_cached(&format!(
                "SELECT {COLUMNS}, (SELECT count(*) FROM messages WHERE chat = chats.id), \
                 (SELECT count(*) FROM inbox WHERE chat = chats.id AND state = 'waiting') \
                 FROM chats ORDER BY updated_at DESC, id DESC"
            ))?
            .query_map([], |row| {
                Ok(ChatSummary { chat: chat(row)?, messages: unsigned(row, 7)?, queued: unsigned(row, 8)? })
            })?
            .collect::<rusqlite::Result<Vec<_>>>()
        };
        Ok(self.read(|c| list(c).map_err(|e| explain(&e)))?.unwrap_or_default())
    }

    /// Replaces the settings of a chat: a JSON object, as text.
    ///
    /// # Errors
    /// `not_found` where it has gone; what the file system says.
    pub fn set_chat_settings(&self, id: i64, settings: &str, now: i64) -> Result<()> {
        self.write_one(|c| {
            let changed = c
                .execute(
                    "UPDATE chats SET settings = ?2, updated_at = max(updated_at, ?3) WHERE id = ?1",
                    params![id, settings, now],
                )
                .map_err(|e| explain(&e))?;
            if changed == 0 { Err(gone()) } else { Ok(()) }
        })
    }

    /// Makes a chat private, or not. What the journal has of a chat that becomes private goes.
    ///
    /// # Errors
    /// `not_found` where it has gone; what the file system says.
    pub fn set_chat_private(&self, id: i64, private: bool, now: i64) -> Result<()> {
        self.write_one(|c| {
            let changed = c
                .execute(
                    "UPDATE chats SET private = ?2, updated_at = max(updated_at, ?3) WHERE id = ?1",
                    params![id, private, now],
                )
                .map_err(|e| explain(&e))?;
            if changed == 0 { Err(gone()) } else { Ok(()) }
        })
    }

    /// Gives a chat another name; everything that belongs to it follows, and its number stays.
    ///
    /// # Errors
    /// `not_found`, `conflict` where the new name is taken, `invalid_arguments` for a bad one.
    pub fn rename_chat(&self, old: &str, new: &str, now: i64) -> Result<()> {
        valid_name(new)?;
        self.write(|t| {
            if find(t, old)?.is_none() {
                return Err(absent(old));
            }
            if old == new {
                return Ok(());
            }
            if find(t, new)?.is_some() {
                return Err(taken(new));
            }
            t.execute("UPDATE chats SET name = ?2, updated_at = ?3 WHERE name = ?1", params![old, new, now])
                .map_err(|e| explain(&e))?;
            Ok(())
        })
    }

    /// Deletes a chat with everything that belongs to it: messages, pictures, files, inbox, values of plugins, calls in the journal.
    /// Says whether there was one.
    ///
    /// # Errors
    /// What the file system says; then nothing is deleted.
    pub fn delete_chat(&self, name: &str) -> Result<bool> {
        // Nothing is made only to delete from it.
        if self.chat(name)?.is_none() {
            return Ok(false);
        }
        self.write(|t| {
            let gone = t.execute("DELETE FROM chats WHERE name = ?1", [name]).map_err(|e| explain(&e))?;
            Ok(gone > 0)
        })
    }

    /// Takes everything out of a chat that was said there: its messages, and the pictures and files that nothing in its inbox names.
    /// Its settings, its inbox and the values of plugins stay. Gives how many messages there were.
    ///
    /// # Errors
    /// `not_found` where it has gone; what the file system says; then nothing is deleted.
    pub fn clear_chat(&self, id: i64, now: i64) -> Result<usize> {
        self.write(|t| {
            touch(t, id, now)?;
            let messages = t.execute("DELETE FROM messages WHERE chat = ?1", [id]).map_err(|e| explain(&e))?;
            let waiting: Vec<String> = inbox::of_chat(t, id)?.into_iter().map(|item| item.payload).collect();
            let unnamed = |sql: &str| -> rusqlite::Result<Vec<String>> {
                let ids: Vec<String> =
                    t.prepare(sql)?.query_map([id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
                Ok(ids.into_iter().filter(|id| !waiting.iter().any(|payload| payload.contains(&**id))).collect())
            };
            let clear = || -> rusqlite::Result<()> {
                let images = unnamed(
                    "SELECT tool_images.id FROM tool_images JOIN chats ON chats.name = chat_name WHERE chats.id = ?1",
                )?;
                let mut delete = t.prepare("DELETE FROM tool_images WHERE id = ?1")?;
                images.iter().try_for_each(|id| delete.execute([id]).map(drop))?;
                let files = unnamed("SELECT id FROM files WHERE chat = ?1")?;
                let mut delete = t.prepare("DELETE FROM files WHERE id = ?1")?;
                files.iter().try_for_each(|id| delete.execute([id]).map(drop))
            };
            clear().map_err(|e| explain(&e))?;
            Ok(messages)
        })
    }
}

pub(super) fn ensure(t: &Transaction, name: &str, private: bool, now: i64) -> Result<()> {
    // One that is there takes no number.
    t.prepare_cached(
        "INSERT INTO chats (name, created_at, updated_at, private) SELECT ?1, ?2, ?2, ?3 \
         WHERE NOT EXISTS (SELECT 1 FROM chats WHERE name = ?1)",
    )
    .and_then(|mut insert| insert.execute(params![name, now, private]))
    .map_err(|e| explain(&e))?;
    Ok(())
}

/// Says that something of a chat changed.
pub(super) fn touch(t: &Transaction, id: i64, now: i64) -> Result<()> {
    let changed = t
        .prepare_cached("UPDATE chats SET updated_at = max(updated_at, ?2) WHERE id = ?1")
        .and_then(|mut update| update.execute(params![id, now]))
        .map_err(|e| explain(&e))?;
    if changed == 0 { Err(gone()) } else { Ok(()) }
}

const COLUMNS: &str = "id, name, created_at, updated_at, private, vaulted, settings";

/// The one place that reads the settings of a chat.
fn chat(row: &Row) -> rusqlite::Result<Chat> {
    Ok(Chat {
        id: row.get(0)?,
        name: row.get(1)?,
        created_at: row.get(2)?,
        updated_at: row.get(3)?,
        private: row.get(4)?,
        vaulted: row.get(5)?,
        settings: row.get(6)?,
    })
}

fn find(connection: &Connection, name: &str) -> Result<Option<Chat>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM chats WHERE name = ?1"))
        .and_then(|mut one| one.query_row([name], chat).optional())
        .map_err(|e| explain(&e))
}

pub(super) fn find_id(connection: &Connection, id: i64) -> Result<Option<Chat>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM chats WHERE id = ?1"))
        .and_then(|mut one| one.query_row([id], chat).optional())
        .map_err(|e| explain(&e))
}

/// A count is never negative.
pub(super) fn unsigned(row: &Row, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

pub(super) fn absent(name: &str) -> Error {
    let shown = excerpt(name, 60);
    Error::not_found(format!("there is no chat `{shown}`"))
}

/// What a write hears to a chat that was deleted in between.
pub(super) fn gone() -> Error {
    Error::not_found("this chat was deleted")
}

fn taken(name: &str) -> Error {
    Error::new(Kind::Conflict, format!("there is a chat `{}` already", excerpt(name, 60)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
