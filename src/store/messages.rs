//! Rows of messages, each of one chat: appended, paged from the newest back, replaced, deleted, searched.
//! A body is JSON text whose meaning is not known here.

use super::chats::{self, gone};
use super::main::{MainDb, explain};
use crate::base::error::{Error, Kind, Result};
use rusqlite::{Connection, Row, Transaction, params};
use serde::Serialize;

mod search;
pub use search::{Found, Hit, MAX_HITS};

/// Most bytes of one body: 32 MiB.
pub const MAX_BODY: usize = 32 << 20;

/// Whose message it is. It is written as its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person's, or what started a turn instead of one.
    User,
    /// The model's.
    Assistant,
    /// A tool's result.
    Tool,
}

impl Role {
    /// Its word: `user`, `assistant`, `tool`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }

    /// The role of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Role> {
        [Role::User, Role::Assistant, Role::Tool].into_iter().find(|role| role.word() == word)
    }
}

/// A message to be kept.
#[derive(Debug, Clone, Copy)]
pub struct NewMessage<'a> {
    /// Whose it is.
    pub role: Role,
    /// Milliseconds since 1970-01-01 UTC.
    pub at: i64,
    /// The turn that it belongs to.
    pub turn: &'a str,
    /// What it says: JSON text.
    pub body: &'a str,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Grows with every message, over all chats, and is never given again.
    pub id: i64,
    /// Whose it is.
    pub role: Role,
    /// Milliseconds since 1970-01-01 UTC.
    pub at: i64,
    /// The turn that it belongs to.
    pub turn: String,
    /// What it says: JSON text.
    pub body: String,
}

impl MainDb {
    /// Appends messages to a chat, all or none, and gives their ids.
    ///
    /// # Errors
    /// `not_found` where the chat has gone, `too_large` for a body over [`MAX_BODY`], what the file system says.
    pub fn append_messages(&self, chat: i64, messages: &[NewMessage]) -> Result<Vec<i64>> {
        check(messages)?;
        self.write(|t| append(t, chat, messages))
    }

    /// The newest `limit` messages of a chat, or of those with an id below `before`; oldest first.
    ///
    /// # Errors
    /// What the file system says.
    pub fn messages(&self, chat: i64, before: Option<i64>, limit: usize) -> Result<Vec<Message>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut page = self
            .list("WHERE chat = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3", (chat, before.unwrap_or(i64::MAX), limit))?;
        page.reverse();
        Ok(page)
    }

    /// The messages of a chat from an id on, oldest first.
    ///
    /// # Errors
    /// What the file system says.
    pub fn messages_from(&self, chat: i64, from: i64) -> Result<Vec<Message>> {
        self.list("WHERE chat = ?1 AND id >= ?2 ORDER BY id", (chat, from))
    }

    /// A message of this chat, or `None`. One of another chat is none.
    ///
    /// # Errors
    /// What the file system says.
    pub fn message(&self, chat: i64, id: i64) -> Result<Option<Message>> {
        Ok(self.list("WHERE chat = ?1 AND id = ?2", (chat, id))?.pop())
    }

    /// Replaces what a message says.
    ///
    /// # Errors
    /// `not_found` where this chat has no such message, `too_large` over [`MAX_BODY`], what the file system says.
    pub fn replace_message(&self, chat: i64, id: i64, body: &str) -> Result<()> {
        check_body(body)?;
        self.write_one(|c| if rewrite(c, chat, id, body)? { Ok(()) } else { Err(no_message()) })
    }

    /// Deletes messages of a chat and gives how many there were; ids that it does not have are passed over.
    ///
    /// # Errors
    /// What the file system says; then nothing is deleted.
    pub fn delete_messages(&self, chat: i64, ids: &[i64]) -> Result<usize> {
        self.write(|t| {
            let delete = || -> rusqlite::Result<usize> {
                let mut delete = t.prepare_cached("DELETE FROM messages WHERE chat = ?1 AND id = ?2")?;
                ids.iter().try_fold(0, |sum, id| Ok(sum + delete.execute([chat, *id])?))
            };
            delete().map_err(|e| explain(&e))
        })
    }

    /// Deletes the messages of a chat from an id on and gives how many there were.
    ///
    /// # Errors
    /// What the file system says; then nothing is deleted.
    pub fn delete_messages_from(&self, chat: i64, id: i64) -> Result<usize> {
        self.write_one(|c| {
            c.execute("DELETE FROM messages WHERE chat = ?1 AND id >= ?2", [chat, id]).map_err(|e| explain(&e))
        })
    }

    /// How many messages a chat has.
    ///
    /// # Errors
    /// What the file system says.
    pub fn count_messages(&self, chat: i64) -> Result<u64> {
        let count = |c: &Connection| {
            c.query_row("SELECT count(*) FROM messages WHERE chat = ?1", [chat], |row| chats::unsigned(row, 0))
                .map_err(|e| explain(&e))
        };
        Ok(self.read(count)?.unwrap_or(0))
    }

    fn list(&self, which: &str, values: impl rusqlite::Params) -> Result<Vec<Message>> {
        let list = |c: &Connection| {
            c.prepare_cached(&format!("SELECT id, role, at, turn, body FROM messages {which}"))?
                .query_map(values, message)?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        Ok(self.read(|c| list(c).map_err(|e| explain(&e)))?.unwrap_or_default())
    }
}

pub(super) fn check(messages: &[NewMessage]) -> Result<()> {
    messages.iter().try_for_each(|message| check_body(message.body))
}

fn check_body(body: &str) -> Result<()> {
    if body.len() <= MAX_BODY {
        return Ok(());
    }
    Err(Error::new(Kind::TooLarge, format!("a message of {} bytes; at most {MAX_BODY} are kept", body.len())))
}

/// Appends within a transaction. The one place that writes a new body.
pub(super) fn append(t: &Transaction, chat: i64, messages: &[NewMessage]) -> Result<Vec<i64>> {
    let Some(newest) = messages.iter().map(|message| message.at).max() else {
        return chats::find_id(t, chat)?.map(|_| Vec::new()).ok_or_else(gone);
    };
    chats::touch(t, chat, newest)?;
    let insert = || -> rusqlite::Result<Vec<i64>> {
        let mut insert =
            t.prepare_cached("INSERT INTO messages (chat, role, at, turn, body) VALUES (?1, ?2, ?3, ?4, ?5)")?;
        messages.iter().map(|m| insert.insert(params![chat, m.role.word(), m.at, m.turn, m.body])).collect()
    };
    insert().map_err(|e| explain(&e))
}

/// The one place that writes a body anew.
fn rewrite(connection: &Connection, chat: i64, id: i64, body: &str) -> Result<bool> {
    let changed = connection
        .execute("UPDATE messages SET body = ?3 WHERE chat = ?1 AND id = ?2", params![chat, id, body])
        .map_err(|e| explain(&e))?;
    Ok(changed > 0)
}

/// The one place that reads a body; the columns are `id, role, at, turn, body`.
fn message(row: &Row) -> rusqlite::Result<Message> {
    let role: String = row.get(1)?;
    Ok(Message {
        id: row.get(0)?,
        // The table holds no other words.
        role: Role::from_word(&role).unwrap_or(Role::User),
        at: row.get(2)?,
        turn: row.get(3)?,
        body: row.get(4)?,
    })
}

fn no_message() -> Error {
    Error::not_found("this chat has no such message")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
