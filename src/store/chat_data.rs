//! Rows of values that plugins keep in chats: a key's one value is the row 0 of it, what is appended to the key counts from 1.
//! A plugin sees its own rows only. A sealed chat has none to read and takes none.

use super::chats::{absent, unsigned};
use super::main::{MainDb, explain};
use crate::base::error::{Error, Kind, Result, excerpt};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

/// Whose values: those of a plugin in a chat. A chat goes by its name, as plugins know it.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The plugin.
    pub plugin: &'a str,
    /// The name of the chat.
    pub chat: &'a str,
}

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// Rows.
    pub rows: u64,
    /// Bytes of their values and keys.
    pub bytes: u64,
}

/// Rows that a write takes the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced<'a> {
    /// None.
    Nothing,
    /// The one value of a key.
    Value(&'a str),
    /// What was appended to a key.
    Appended(&'a str),
}

/// What is known of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyMeta {
    /// Its rows: its one value and what was appended.
    pub rows: u64,
    /// When the newest of them was written, in milliseconds since 1970-01-01 UTC.
    pub updated_at: i64,
}

/// Is asked whether so many bytes may be read.
pub type Reserve<'a> = &'a dyn Fn(usize) -> Result<()>;

/// A chat that can be read and written, by its name.
const OPEN: &str = "(SELECT id FROM chats WHERE name = ?2 AND vaulted = 0)";

impl MainDb {
    /// Sets the one value of a key.
    ///
    /// # Errors
    /// `not_found` where there is no such chat, `chat_sealed` where it is sealed, what the file system says.
    pub fn put_value(&self, owner: Owner, key: &str, value: &str, now: i64) -> Result<()> {
        self.write_often(|c| insert(c, owner, key, Place::One, value, now).map(drop))
    }

    /// The one value of a key; `None` where there is none, or no such chat. `reserve` is asked for its size before it is read.
    ///
    /// # Errors
    /// What the file system or `reserve` says.
    pub fn value(&self, owner: Owner, key: &str, reserve: Reserve) -> Result<Option<String>> {
        Ok(self.rows(owner, key, "seq = 0", reserve)?.pop())
    }

    /// Appends a value to a key and gives its number: one more than the highest, from 1.
    ///
    /// # Errors
    /// As [`MainDb::put_value`].
    pub fn append_value(&self, owner: Owner, key: &str, value: &str, now: i64) -> Result<i64> {
        self.write_often(|c| insert(c, owner, key, Place::Next, value, now))
    }

    /// Appends values to a key, all or none, and gives their numbers.
    ///
    /// # Errors
    /// As [`MainDb::put_value`].
    pub fn append_values(&self, owner: Owner, key: &str, values: &[String], now: i64) -> Result<Vec<i64>> {
        self.write(|t| append(t, owner, key, values, now))
    }

    /// What was appended to a key, in its order; nothing where there is no such chat. `reserve` is asked for the size of each value
    /// before it is read.
    ///
    /// # Errors
    /// What the file system or `reserve` says.
    pub fn values(&self, owner: Owner, key: &str, reserve: Reserve) -> Result<Vec<String>> {
        self.rows(owner, key, "seq > 0 ORDER BY seq", reserve)
    }

    /// Puts other values in the place of all that were appended to a key, counted from 1, and gives their numbers.
    ///
    /// # Errors
    /// As [`MainDb::put_value`]; then everything is as it was.
    pub fn replace_values(&self, owner: Owner, key: &str, values: &[String], now: i64) -> Result<Vec<i64>> {
        self.write(|t| {
            let chat = to_write(t, owner.chat)?;
            t.prepare_cached("DELETE FROM plugin_chat_data WHERE chat = ?1 AND plugin = ?2 AND key = ?3 AND seq > 0")
                .and_then(|mut delete| delete.execute(params![chat, owner.plugin, key]))
                .map_err(|e| explain(&e))?;
            append(t, owner, key, values, now)
        })
    }

    /// Deletes a key, or without one everything that the plugin has in the chat, and gives how many rows there were.
    ///
    /// # Errors
    /// As [`MainDb::put_value`].
    pub fn delete_values(&self, owner: Owner, key: Option<&str>) -> Result<usize> {
        self.write(|t| {
            let chat = to_write(t, owner.chat)?;
            t.execute(
                "DELETE FROM plugin_chat_data WHERE chat = ?1 AND plugin = ?2 AND (?3 IS NULL OR key = ?3)",
                params![chat, owner.plugin, key],
            )
            .map_err(|e| explain(&e))
        })
    }

    /// The keys that the plugin has in a chat, sorted; none where there is no such chat.
    ///
    /// # Errors
    /// What the file system says.
    pub fn value_keys(&self, owner: Owner) -> Result<Vec<String>> {
        let list = |c: &Connection| {
            c.prepare_cached(&format!(
                "SELECT DISTINCT key FROM plugin_chat_data WHERE chat = {OPEN} AND plugin = ?1 ORDER BY key"
            ))?
            .query_map([owner.plugin, owner.chat], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<String>>>()
        };
        Ok(self.read(|c| list(c).map_err(|e| explain(&e)))?.unwrap_or_default())
    }

    /// The one value of a key in every chat that has one and is not sealed: names of chats with values, by name. `reserve` is asked
    /// for the size of each value before it is read.
    ///
    /// # Errors
    /// What the file system or `reserve` says.
    pub fn value_in_chats(&self, plugin: &str, key: &str, reserve: Reserve) -> Result<Vec<(String, String)>> {
        let list = |c: &Connection| {
            let mut found = Vec::new();
            let mut statement = c
                .prepare_cached(
                    "SELECT value, size, chats.name FROM plugin_chat_data JOIN chats ON chats.id = chat \
                     WHERE plugin = ?1 AND key = ?2 AND seq = 0 AND vaulted = 0 ORDER BY chats.name",
                )
                .map_err(|e| explain(&e))?;
            let mut rows = statement.query([plugin, key]).map_err(|e| explain(&e))?;
            while let Some(row) = rows.next().map_err(|e| explain(&e))? {
                let value = value(row, reserve)?;
                found.push((row.get(2).map_err(|e| explain(&e))?, value));
            }
            Ok(found)
        };
        Ok(self.read(list)?.unwrap_or_default())
    }

    /// What is known of a key; `None` where the plugin has no such key in the chat, or there is no such chat.
    ///
    /// # Errors
    /// What the file system says.
    pub fn value_meta(&self, owner: Owner, key: &str) -> Result<Option<KeyMeta>> {
        let meta = |c: &Connection| {
            c.prepare_cached(&format!(
                "SELECT count(*), ifnull(max(updated_at), 0) FROM plugin_chat_data \
                 WHERE chat = {OPEN} AND plugin = ?1 AND key = ?3"
            ))?
            .query_row([owner.plugin, owner.chat, key], |row| {
                Ok(KeyMeta { rows: unsigned(row, 0)?, updated_at: row.get(1)? })
            })
        };
        let meta = self.read(|c| meta(c).map_err(|e| explain(&e)))?;
        Ok(meta.filter(|meta| meta.rows > 0))
    }

    /// How much a plugin has in a chat, without what a write takes the place of.
    ///
    /// # Errors
    /// What the file system says.
    pub fn values_held(&self, owner: Owner, without: Replaced) -> Result<Held> {
        let (key, low, high) = match without {
            Replaced::Nothing => (None, 0, 0),
            Replaced::Value(key) => (Some(key), 0, 0),
            Replaced::Appended(key) => (Some(key), 1, i64::MAX),
        };
        let held = |c: &Connection| {
            c.prepare_cached(&format!(
                "SELECT count(*), ifnull(sum(size), 0) FROM plugin_chat_data WHERE chat = {OPEN} AND plugin = ?1 \
                 AND (?3 IS NULL OR key <> ?3 OR seq NOT BETWEEN ?4 AND ?5)"
            ))?
            .query_row(params![owner.plugin, owner.chat, key, low, high], |row| {
                Ok(Held { rows: unsigned(row, 0)?, bytes: unsigned(row, 1)? })
            })
        };
        Ok(self.read(|c| held(c).map_err(|e| explain(&e)))?.unwrap_or_default())
    }

    /// Deletes everything that a plugin has in chats, also in sealed ones, and gives how many rows there were.
    ///
    /// # Errors
    /// What the file system says; then nothing is deleted.
    pub fn drop_values(&self, plugin: &str) -> Result<usize> {
        // Nothing is made only to delete from it.
        if self.read(|c| count(c, plugin))?.unwrap_or(0) == 0 {
            return Ok(0);
        }
        self.write_one(|c| {
            c.execute("DELETE FROM plugin_chat_data WHERE plugin = ?1", [plugin]).map_err(|e| explain(&e))
        })
    }

    /// Gives everything that `plugin` has in chats to `other`, a name under which nobody has anything, and says how many rows
    /// that are. The rows stay in their chats and go with them.
    ///
    /// # Errors
    /// `conflict` where `other` has rows; what the file system says. Then nothing is changed.
    pub fn hand_values(&self, plugin: &str, other: &str) -> Result<u64> {
        // Nothing is made only to change something in it.
        if self.read(|c| count(c, plugin))?.unwrap_or(0) == 0 {
            return Ok(0);
        }
        self.write(|t| {
            if count(t, other)? > 0 {
                return Err(Error::new(Kind::Conflict, format!("`{other}` keeps values in chats already")));
            }
            let rows = t
                .execute("UPDATE plugin_chat_data SET plugin = ?2 WHERE plugin = ?1", [plugin, other])
                .map_err(|e| explain(&e))?;
            Ok(rows as u64)
        })
    }

    /// The values of some rows of a key.
    fn rows(&self, owner: Owner, key: &str, which: &str, reserve: Reserve) -> Result<Vec<String>> {
        let list = |c: &Connection| {
            let mut found = Vec::new();
            let mut statement = c
                .prepare_cached(&format!(
                    "SELECT value, size FROM plugin_chat_data WHERE chat = {OPEN} AND plugin = ?1 AND key = ?3 AND {which}"
                ))
                .map_err(|e| explain(&e))?;
            let mut rows = statement.query([owner.plugin, owner.chat, key]).map_err(|e| explain(&e))?;
            while let Some(row) = rows.next().map_err(|e| explain(&e))? {
                found.push(value(row, reserve)?);
            }
            Ok(found)
        };
        Ok(self.read(list)?.unwrap_or_default())
    }
}

/// How many rows a plugin has.
fn count(connection: &Connection, plugin: &str) -> Result<u64> {
    connection
        .query_row("SELECT count(*) FROM plugin_chat_data WHERE plugin = ?1", [plugin], |row| unsigned(row, 0))
        .map_err(|e| explain(&e))
}

#[derive(Clone, Copy)]
enum Place {
    /// The one value of the key.
    One,
    /// After all that was appended.
    Next,
}

/// Writes one value within a transaction and gives its number.
fn insert(connection: &Connection, owner: Owner, key: &str, place: Place, value: &str, now: i64) -> Result<i64> {
    let (chat, last) = match place {
        Place::One => (to_write(connection, owner.chat)?, 0),
        Place::Next => to_append(connection, owner, key)?,
    };
    let run = || -> rusqlite::Result<i64> {
        let (size, value) = (size(key, value), written(value));
        match place {
            Place::One => {
                let mut put = connection.prepare_cached(PUT)?;
                put.execute(params![owner.plugin, chat, key, now, size, value])?;
                Ok(0)
            }
            Place::Next => {
                let mut insert = connection.prepare_cached(INSERT)?;
                insert.execute(params![owner.plugin, chat, key, now, size, value, last + 1])?;
                Ok(last + 1)
            }
        }
    };
    run().map_err(|e| explain(&e))
}

const INSERT: &str = "INSERT INTO plugin_chat_data (plugin, chat, key, updated_at, size, value, seq) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const PUT: &str = "INSERT INTO plugin_chat_data (plugin, chat, key, updated_at, size, value, seq) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0) \
                   ON CONFLICT DO UPDATE SET updated_at = excluded.updated_at, size = excluded.size, value = excluded.value";

/// Appends values within a transaction.
fn append(t: &Transaction, owner: Owner, key: &str, values: &[String], now: i64) -> Result<Vec<i64>> {
    let (chat, last) = to_append(t, owner, key)?;
    let append = || -> rusqlite::Result<Vec<i64>> {
        let mut insert = t.prepare_cached(INSERT)?;
        (last + 1..)
            .zip(values)
            .map(|(seq, value)| {
                let (size, value) = (size(key, value), written(value));
                insert.execute(params![owner.plugin, chat, key, now, size, value, seq])?;
                Ok(seq)
            })
            .collect()
    };
    append().map_err(|e| explain(&e))
}

/// The chat of a write, by its name.
fn to_write(connection: &Connection, name: &str) -> Result<i64> {
    let found = connection
        .prepare_cached("SELECT id, vaulted FROM chats WHERE name = ?1")
        .and_then(|mut one| one.query_row([name], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .map_err(|e| explain(&e))?;
    open(name, found)
}

/// The chat of a write by its name, and the highest number under a key there.
fn to_append(connection: &Connection, owner: Owner, key: &str) -> Result<(i64, i64)> {
    let sql = "SELECT id, vaulted, (SELECT ifnull(max(seq), 0) FROM plugin_chat_data \
               WHERE chat = chats.id AND plugin = ?2 AND key = ?3) FROM chats WHERE name = ?1";
    let found = connection
        .prepare_cached(sql)
        .and_then(|mut one| {
            let row = |row: &Row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?));
            one.query_row([owner.chat, owner.plugin, key], row).optional()
        })
        .map_err(|e| explain(&e))?;
    let (chat, last) = found.unzip();
    Ok((open(owner.chat, chat)?, last.unwrap_or(0)))
}

/// A chat that was found, with whether it is sealed, as one that can be written.
fn open(name: &str, found: Option<(i64, bool)>) -> Result<i64> {
    match found {
        Some((id, false)) => Ok(id),
        Some((_, true)) => Err(Error::new(Kind::ChatSealed, format!("the chat `{}` is sealed", excerpt(name, 60)))),
        None => Err(absent(name)),
    }
}

/// What a row counts for.
fn size(key: &str, value: &str) -> i64 {
    i64::try_from(key.len() + value.len()).unwrap_or(i64::MAX)
}

/// The one form in which a value is written.
fn written(value: &str) -> &str {
    value
}

/// The one place that reads a value; the columns begin with `value, size`.
fn value(row: &Row, reserve: Reserve) -> Result<String> {
    let size = unsigned(row, 1).map_err(|e| explain(&e))?;
    reserve(usize::try_from(size).unwrap_or(usize::MAX))?;
    row.get(0).map_err(|e| explain(&e))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
