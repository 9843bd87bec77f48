//! Rows of files that were given to a chat. What the bytes mean is not known here.

use super::chats::{self, gone};
use super::main::{MainDb, explain};
use crate::base::error::{Error, Kind, Result};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

/// Most bytes of one file: 20 MiB.
pub const MAX_BYTES: usize = 20 << 20;
/// Most bytes of all files of a chat: 1 GiB.
pub const MAX_CHAT_BYTES: i64 = 1 << 30;
/// Most files of a chat.
pub const MAX_CHAT_FILES: i64 = 10_000;

/// A file to be kept.
#[derive(Debug, Clone, Copy)]
pub struct NewFile<'a> {
    /// Its id, which no other file of any chat has.
    pub id: &'a str,
    /// The chat.
    pub chat: i64,
    /// What it is called.
    pub name: &'a str,
    /// Its media type, such as `text/plain`.
    pub media_type: &'a str,
    /// Its bytes.
    pub data: &'a [u8],
    /// Milliseconds since 1970-01-01 UTC.
    pub now: i64,
}

/// What is known of a file without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRow {
    /// Its id.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its bytes.
    pub size: u64,
    /// When it was put, in milliseconds since 1970-01-01 UTC.
    pub created_at: i64,
}

impl MainDb {
    /// Keeps a file.
    ///
    /// # Errors
    /// `too_large` over [`MAX_BYTES`], `quota` where the chat is full or the disk is, `conflict` where the id is taken, `not_found`
    /// where the chat has gone.
    pub fn put_file(&self, file: &NewFile) -> Result<()> {
        if file.data.len() > MAX_BYTES {
            return Err(Error::new(
                Kind::TooLarge,
                format!("the file has {} bytes; at most {MAX_BYTES} are kept", file.data.len()),
            ));
        }
        self.write(|t| {
            if chats::find_id(t, file.chat)?.is_none() {
                return Err(gone());
            }
            insert(t, file)?;
            let (count, bytes): (i64, i64) = t
                .prepare_cached("SELECT count(*), ifnull(sum(size), 0) FROM files WHERE chat = ?1")
                .and_then(|mut sum| sum.query_row([file.chat], |row| Ok((row.get(0)?, row.get(1)?))))
                .map_err(|e| explain(&e))?;
            if count > MAX_CHAT_FILES || bytes > MAX_CHAT_BYTES {
                return Err(Error::new(Kind::Quota, "this chat keeps as many files as it may")
                    .hint("clear or delete the chat, or go on in another one"));
            }
            Ok(())
        })
    }

    /// What is known of a file of this chat; `None` where there is none. One of another chat is none.
    ///
    /// # Errors
    /// What the file system says.
    pub fn file(&self, chat: i64, id: &str) -> Result<Option<FileRow>> {
        Ok(self.read(|c| list(c, "WHERE chat = ?1 AND id = ?2", params![chat, id]))?.and_then(|mut all| all.pop()))
    }

    /// The bytes of a file of this chat; `None` where there is none.
    ///
    /// # Errors
    /// What the file system says.
    pub fn file_data(&self, chat: i64, id: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.read(|c| data(c, chat, id))?.flatten())
    }

    /// The files of a chat, oldest first.
    ///
    /// # Errors
    /// What the file system says.
    pub fn files(&self, chat: i64) -> Result<Vec<FileRow>> {
        Ok(self.read(|c| list(c, "WHERE chat = ?1 ORDER BY created_at, rowid", [chat]))?.unwrap_or_default())
    }

    /// Deletes a file of this chat and says whether there was one.
    ///
    /// # Errors
    /// What the file system says.
    pub fn delete_file(&self, chat: i64, id: &str) -> Result<bool> {
        self.write_one(|c| {
            let gone = c
                .execute("DELETE FROM files WHERE chat = ?1 AND id = ?2", params![chat, id])
                .map_err(|e| explain(&e))?;
            Ok(gone > 0)
        })
    }
}

/// The one place that writes a file's name and bytes.
fn insert(t: &Transaction, file: &NewFile) -> Result<()> {
    t.prepare_cached(
        "INSERT INTO files (id, chat, media_type, created_at, size, name, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .and_then(|mut insert| {
        let size = i64::try_from(file.data.len()).unwrap_or(i64::MAX);
        insert.execute(params![file.id, file.chat, file.media_type, file.now, size, file.name, file.data])
    })
    .map_err(|e| explain(&e))?;
    Ok(())
}

/// The one place that reads a file's bytes.
fn data(connection: &Connection, chat: i64, id: &str) -> Result<Option<Vec<u8>>> {
    connection
        .query_row("SELECT data FROM files WHERE chat = ?1 AND id = ?2", params![chat, id], |row| row.get(0))
        .optional()
        .map_err(|e| explain(&e))
}

/// The one place that reads a file's name.
fn list(connection: &Connection, which: &str, values: impl rusqlite::Params) -> Result<Vec<FileRow>> {
    let file = |row: &Row| {
        Ok(FileRow {
            id: row.get(0)?,
            name: row.get(1)?,
            media_type: row.get(2)?,
            size: chats::unsigned(row, 3)?,
            created_at: row.get(4)?,
        })
    };
    let list = || {
        connection
            .prepare_cached(&format!("SELECT id, name, media_type, size, created_at FROM files {which}"))?
            .query_map(values, file)?
            .collect::<rusqlite::Result<Vec<_>>>()
    };
    list().map_err(|e| explain(&e))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_back_in_its_own_chat_only() {
        let dir = tempfile::tempdir().unwrap();
        let db = MainDb::new(dir.path().join("user/lapidary.db"));
        let one = db.ensure_chat("one", false, 1).unwrap().id;
        let two = db.ensure_chat("two", false, 1).unwrap().id;
        let file = NewFile { id: "a", chat: one, name: "ž.txt", media_type: "text/plain", data: b"bytes", now: 7 };
        assert_eq!(db.put_file(&NewFile { chat: 99, ..file }).unwrap_err().kind(), Kind::NotFound);
        assert_eq!(db.file(one, "a").unwrap(), None);
        db.put_file(&file).unwrap();
        db.put_file(&NewFile { id: "b", data: b"", now: 6, ..file }).unwrap();
        assert_eq!(db.put_file(&NewFile { chat: two, ..file }).unwrap_err().kind(), Kind::Conflict);
        let row = db.file(one, "a").unwrap().unwrap();
        assert_eq!(
            (row.name.as_str(), row.media_type.as_str(), row.size, row.created_at),
            ("ž.txt", "text/plain", 5, 7)
        );
        assert_eq!(db.file_data(one, "a").unwrap().unwrap(), b"bytes");
        assert_eq!(db.files(one).unwrap().iter().map(|f| &*f.id).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!((db.file(two, "a").unwrap(), db.file_data(two, "a").unwrap()), (None, None));
        assert!(!db.delete_file(two, "a").unwrap() && db.delete_file(one, "a").unwrap());
        assert_eq!(db.file_data(one, "a").unwrap(), None);
        db.delete_chat("one").unwrap();
        assert_eq!(db.files(one).unwrap(), []);
    }

    #[test]
    fn a_file_beyond_the_limit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let db = MainDb::new(dir.path().join("user/lapidary.db"));
        let chat = db.ensure_chat("one", false, 1).unwrap().id;
        let data = vec![0; MAX_BYTES + 1];
        let file = NewFile { id: "a", chat, name: "a", media_type: "a/b", data: &data, now: 7 };
        assert_eq!(db.put_file(&file).unwrap_err().kind(), Kind::TooLarge);
        db.put_file(&NewFile { data: &data[1..], ..file }).unwrap();
        // What is told of a size counts, so a full chat needs no gigabyte.
        db.write_one(|c| {
            c.execute("UPDATE files SET size = ?1", [MAX_CHAT_BYTES]).map_err(|e| explain(&e))?;
            Ok(())
        })
        .unwrap();
        assert_eq!(db.put_file(&NewFile { id: "b", data: b"1", ..file }).unwrap_err().kind(), Kind::Quota);
        assert_eq!(db.files(chat).unwrap().len(), 1);
    }
}
