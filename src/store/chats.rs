//! Rows of chats: made on first use, renamed and deleted with everything that belongs to them.

use super::main::{MainDb, explain};
use crate::base::error::{Error, Kind, Result, excerpt};
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

/// Longest name of a chat, in characters.
pub const MAX_NAME: usize = 200;

/// A chat, without its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chat {
    /// Its name: the key of everything that belongs to it.
    pub name: String,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_at: i64,
    /// When something of it last changed, as `created_at`.
    pub updated_at: i64,
    /// Whether it is private.
    pub private: bool,
    /// Its settings: a JSON object, as text.
    pub settings: String,
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
    pub fn ensure_chat(&self, name: &str, private: bool, now: i64) -> Result<()> {
        valid_name(name)?;
        self.write(|t| ensure(t, name, private, now))
    }

    /// A chat, or `None` where there is none of that name.
    ///
    /// # Errors
    /// What the file system says.
    pub fn chat(&self, name: &str) -> Result<Option<Chat>> {
        Ok(self.read(|c| find(c, name))?.flatten())
    }

    /// Gives a chat another name; everything that belongs to it follows.
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
                return Err(Error::new(Kind::Conflict, format!("there is a chat `{new}` already")));
            }
            t.execute("UPDATE chats SET name = ?2, updated_at = ?3 WHERE name = ?1", params![old, new, now])
                .map_err(|e| explain(&e))?;
            Ok(())
        })
    }

    /// Deletes a chat with everything that belongs to it; says whether there was one.
    ///
    /// # Errors
    /// What the file system says.
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
}

pub(super) fn ensure(t: &Transaction, name: &str, private: bool, now: i64) -> Result<()> {
    t.prepare(
        "INSERT INTO chats (name, created_at, updated_at, private) VALUES (?1, ?2, ?2, ?3) ON CONFLICT DO NOTHING",
    )
    .and_then(|mut insert| insert.execute(params![name, now, private]))
    .map_err(|e| explain(&e))?;
    Ok(())
}

fn find(connection: &Connection, name: &str) -> Result<Option<Chat>> {
    connection
        .query_row("SELECT name, created_at, updated_at, private, settings FROM chats WHERE name = ?1", [name], |row| {
            Ok(Chat {
                name: row.get(0)?,
                created_at: row.get(1)?,
                updated_at: row.get(2)?,
                private: row.get(3)?,
                settings: row.get(4)?,
            })
        })
        .optional()
        .map_err(|e| explain(&e))
}

fn absent(name: &str) -> Error {
    let shown = excerpt(name, 60);
    Error::not_found(format!("there is no chat `{shown}`"))
}
