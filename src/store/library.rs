//! Rows of the library: pictures that were put away for later, each in one memory scope. One of another scope is none.

use super::chats::{self, gone};
use super::main::{MainDb, explain};
use crate::base::error::{Error, Kind, Result};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

/// Most bytes of one entry: 20 MiB.
pub const MAX_BYTES: usize = 20 << 20;
/// Most bytes of all entries of a scope: 1 GiB.
pub const MAX_SCOPE_BYTES: i64 = 1 << 30;
/// Most entries of a scope.
pub const MAX_ENTRIES: i64 = 10_000;

/// An entry to be kept.
#[derive(Debug, Clone, Copy)]
pub struct NewEntry<'a> {
    /// The memory scope.
    pub scope: &'a str,
    /// The chat that it was taken from. One of a private chat goes with that chat.
    pub chat: Option<i64>,
    /// What it is called.
    pub title: &'a str,
    /// Its tags: a JSON array of texts.
    pub tags: &'a str,
    /// Its media type, such as `image/png`.
    pub media_type: &'a str,
    /// Its bytes.
    pub data: &'a [u8],
    /// Milliseconds since 1970-01-01 UTC.
    pub now: i64,
}

/// What is known of an entry without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The N of `doc:N`: over all scopes, never given again.
    pub id: i64,
    /// The chat that it was taken from, where that is still there.
    pub chat: Option<i64>,
    /// What it is called.
    pub title: String,
    /// Its tags: a JSON array of texts.
    pub tags: String,
    /// Its media type.
    pub media_type: String,
    /// Its bytes.
    pub size: u64,
    /// When it was put, in milliseconds since 1970-01-01 UTC.
    pub created_at: i64,
}

impl MainDb {
    /// Keeps an entry and gives its id.
    ///
    /// # Errors
    /// `too_large` over [`MAX_BYTES`], `quota` where the scope is full or the disk is, `not_found` where its chat has gone.
    pub fn put_entry(&self, entry: &NewEntry) -> Result<i64> {
        if entry.data.len() > MAX_BYTES {
            return Err(Error::new(
                Kind::TooLarge,
                format!("the picture has {} bytes; at most {MAX_BYTES} are kept", entry.data.len()),
            )
            .hint("make it smaller first"));
        }
        self.write(|t| {
            if let Some(chat) = entry.chat
                && chats::find_id(t, chat)?.is_none()
            {
                return Err(gone());
            }
            let id = insert(t, entry)?;
            let (count, bytes): (i64, i64) = t
                .prepare_cached("SELECT count(*), ifnull(sum(size), 0) FROM library WHERE scope = ?1")
                .and_then(|mut sum| sum.query_row([entry.scope], |row| Ok((row.get(0)?, row.get(1)?))))
                .map_err(|e| explain(&e))?;
            if count > MAX_ENTRIES || bytes > MAX_SCOPE_BYTES {
                return Err(Error::new(Kind::Quota, "this library keeps as much as it may")
                    .hint("delete what is not needed any more"));
            }
            Ok(id)
        })
    }

    /// What is known of an entry of this scope; `None` where there is none.
    ///
    /// # Errors
    /// What the file system says.
    pub fn entry(&self, scope: &str, id: i64) -> Result<Option<Entry>> {
        Ok(self.read(|c| list(c, "WHERE scope = ?1 AND id = ?2", params![scope, id]))?.and_then(|mut all| all.pop()))
    }

    /// The bytes of an entry of this scope; `None` where there is none.
    ///
    /// # Errors
    /// What the file system says.
    pub fn entry_data(&self, scope: &str, id: i64) -> Result<Option<Vec<u8>>> {
        Ok(self.read(|c| data(c, scope, id))?.flatten())
    }

    /// The newest `limit` entries of a scope, or of those with an id below `before`; newest first.
    ///
    /// # Errors
    /// What the file system says.
    pub fn entries(&self, scope: &str, before: Option<i64>, limit: usize) -> Result<Vec<Entry>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let newest = "WHERE scope = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3";
        Ok(self.read(|c| list(c, newest, params![scope, before.unwrap_or(i64::MAX), limit]))?.unwrap_or_default())
    }

    /// Deletes an entry of this scope and says whether there was one.
    ///
    /// # Errors
    /// What the file system says.
    pub fn delete_entry(&self, scope: &str, id: i64) -> Result<bool> {
        self.write_one(|c| {
            let gone = c
                .execute("DELETE FROM library WHERE scope = ?1 AND id = ?2", params![scope, id])
                .map_err(|e| explain(&e))?;
            Ok(gone > 0)
        })
    }
}

/// The one place that writes an entry's words and bytes.
fn insert(t: &Transaction, entry: &NewEntry) -> Result<i64> {
    t.prepare_cached(
        "INSERT INTO library (scope, chat, media_type, created_at, size, title, tags, data) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )
    .and_then(|mut insert| {
        let size = i64::try_from(entry.data.len()).unwrap_or(i64::MAX);
        insert.insert(params![
            entry.scope,
            entry.chat,
            entry.media_type,
            entry.now,
            size,
            entry.title,
            entry.tags,
            entry.data
        ])
    })
    .map_err(|e| explain(&e))
}

/// The one place that reads an entry's bytes.
fn data(connection: &Connection, scope: &str, id: i64) -> Result<Option<Vec<u8>>> {
    connection
        .query_row("SELECT data FROM library WHERE scope = ?1 AND id = ?2", params![scope, id], |row| row.get(0))
        .optional()
        .map_err(|e| explain(&e))
}

/// The one place that reads an entry's words.
fn list(connection: &Connection, which: &str, values: impl rusqlite::Params) -> Result<Vec<Entry>> {
    let entry = |row: &Row| {
        Ok(Entry {
            id: row.get(0)?,
            chat: row.get(1)?,
            title: row.get(2)?,
            tags: row.get(3)?,
            media_type: row.get(4)?,
            size: chats::unsigned(row, 5)?,
            created_at: row.get(6)?,
        })
    };
    let list = || {
        connection
            .prepare_cached(&format!(
                "SELECT id, chat, title, tags, media_type, size, created_at FROM library {which}"
            ))?
            .query_map(values, entry)?
            .collect::<rusqlite::Result<Vec<_>>>()
    };
    list().map_err(|e| explain(&e))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_back_in_its_own_scope_only() {
        let dir = tempfile::tempdir().unwrap();
        let db = MainDb::new(dir.path().join("user/lapidary.db"));
        let entry = NewEntry {
            scope: "work",
            chat: None,
            title: "a cat",
            tags: r#"["cat"]"#,
            media_type: "image/png",
            data: b"bytes",
            now: 7,
        };
        assert_eq!(db.entry("work", 1).unwrap(), None);
        let first = db.put_entry(&entry).unwrap();
        let second = db.put_entry(&NewEntry { title: "two cats", ..entry }).unwrap();
        let other = db.put_entry(&NewEntry { scope: "home", ..entry }).unwrap();
        let row = db.entry("work", first).unwrap().unwrap();
        assert_eq!((row.title.as_str(), row.tags.as_str(), row.size, row.chat), ("a cat", r#"["cat"]"#, 5, None));
        assert_eq!(db.entry_data("work", first).unwrap().unwrap(), b"bytes");
        assert_eq!((db.entry("home", first).unwrap(), db.entry_data("home", first).unwrap()), (None, None));
        let ids = |before, limit| -> Vec<i64> {
            db.entries("work", before, limit).unwrap().iter().map(|entry| entry.id).collect()
        };
        assert_eq!(
            (ids(None, 9), ids(None, 1), ids(Some(second), 9)),
            (vec![second, first], vec![second], vec![first])
        );
        assert!(!db.delete_entry("work", other).unwrap() && db.delete_entry("home", other).unwrap());
        let after = db.put_entry(&entry).unwrap();
        assert!(after > other, "a number is never given again");
        assert_eq!(db.put_entry(&NewEntry { chat: Some(5), ..entry }).unwrap_err().kind(), Kind::NotFound);
        let big = vec![0; MAX_BYTES + 1];
        assert_eq!(db.put_entry(&NewEntry { data: &big, ..entry }).unwrap_err().kind(), Kind::TooLarge);
    }

    #[test]
    fn an_entry_outlives_its_chat_unless_that_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let db = MainDb::new(dir.path().join("user/lapidary.db"));
        let put = |chat| {
            let (title, tags, media_type, data, now) = ("t", "[]", "image/png", &b"1"[..], 1);
            db.put_entry(&NewEntry { scope: "s", chat: Some(chat), title, tags, media_type, data, now }).unwrap()
        };
        let open = put(db.ensure_chat("open", false, 1).unwrap().id);
        let closed = put(db.ensure_chat("closed", true, 1).unwrap().id);
        assert!(db.delete_chat("open").unwrap() && db.delete_chat("closed").unwrap());
        assert_eq!(db.entry("s", open).unwrap().unwrap().chat, None);
        assert_eq!(db.entry("s", closed).unwrap(), None);
    }
}
