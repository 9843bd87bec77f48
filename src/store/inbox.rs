//! Rows of what waits to be said in a chat: put, started, finished, taken back. What an item means and when it is its turn is
//! decided above; that a crash loses and doubles nothing is decided here.

use super::chats::{self, gone};
use super::main::{MainDb, explain, returned};
use super::messages::{self, NewMessage};
use crate::base::error::{Error, Kind, Result};
use rusqlite::{Connection, Row, Transaction, params};

/// Most bytes of one payload: 32 MiB.
pub const MAX_PAYLOAD: usize = 32 << 20;

/// Which of the two queues of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// People.
    Now,
    /// Everything else.
    Later,
}

impl Lane {
    /// Its word: `now`, `later`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Lane::Now => "now",
            Lane::Later => "later",
        }
    }
}

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemState {
    /// It waits.
    Waiting,
    /// Its turn has begun: its messages are in the chat.
    Running,
}

/// An item to be put.
#[derive(Debug, Clone, Copy)]
pub struct NewItem<'a> {
    /// Its name, which nothing else in any inbox has.
    pub ticket: &'a str,
    /// The chat.
    pub chat: i64,
    /// The lane.
    pub lane: Lane,
    /// Who put it, in a word or two.
    pub source: &'a str,
    /// The plugin that did.
    pub plugin: Option<&'a str>,
    /// What a reader is told about it; empty where a person typed it.
    pub header: &'a str,
    /// What is to be said: JSON text.
    pub payload: &'a str,
    /// Milliseconds since 1970-01-01 UTC.
    pub put_at: i64,
    /// When it has waited too long, as `put_at`.
    pub expires_at: Option<i64>,
    /// Whether the chat was private when it was put; `None` where that was not known.
    pub private_at_put: Option<bool>,
    /// What its plugin hears where it is dropped.
    pub on_drop: Option<&'a str>,
    /// Whether it outlives the process that put it.
    pub durable: bool,
}

/// An item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its name.
    pub ticket: String,
    /// The chat.
    pub chat: i64,
    /// Its place in the chat's queue: items of a chat are in the order of this number.
    pub seq: i64,
    /// The lane.
    pub lane: Lane,
    /// How far it is.
    pub state: ItemState,
    /// Who put it, in a word or two.
    pub source: String,
    /// The plugin that did.
    pub plugin: Option<String>,
    /// What a reader is told about it; empty where a person typed it.
    pub header: String,
    /// What is to be said: JSON text.
    pub payload: String,
    /// Milliseconds since 1970-01-01 UTC.
    pub put_at: i64,
    /// When it has waited too long, as `put_at`.
    pub expires_at: Option<i64>,
    /// Whether the chat was private when it was put; `None` where that was not known.
    pub private_at_put: Option<bool>,
    /// What its plugin hears where it is dropped.
    pub on_drop: Option<String>,
    /// Whether it outlives the process that put it.
    pub durable: bool,
    /// How often it was started, and how often that was counted by [`MainDb::count_attempt`].
    pub attempts: u32,
}

impl MainDb {
    /// Puts an item at the end of its chat's queue and gives its place.
    ///
    /// # Errors
    /// `not_found` where the chat has gone, `conflict` where the ticket is taken, `too_large` over [`MAX_PAYLOAD`], what the file
    /// system says.
    pub fn put_item(&self, item: &NewItem) -> Result<i64> {
        if item.payload.len() > MAX_PAYLOAD {
            return Err(Error::new(
                Kind::TooLarge,
                format!("what is to be said has {} bytes; at most {MAX_PAYLOAD} are kept", item.payload.len()),
            ));
        }
        self.write(|t| {
            if find(t, item.ticket)?.is_some() {
                return Err(Error::new(Kind::Conflict, format!("there is an item `{}` already", item.ticket)));
            }
            if chats::find_id(t, item.chat)?.is_none() {
                return Err(gone());
            }
            insert(t, item)
        })
    }

    /// The items of a chat, in their order, with those that run.
    ///
    /// # Errors
    /// What the file system says.
    pub fn items(&self, chat: i64) -> Result<Vec<Item>> {
        Ok(self.read(|c| of_chat(c, chat))?.unwrap_or_default())
    }

    /// The items of every chat, chat by chat, each in their order.
    ///
    /// # Errors
    /// What the file system says.
    pub fn all_items(&self) -> Result<Vec<Item>> {
        Ok(self.read(|c| list(c, "ORDER BY chat, seq", []))?.unwrap_or_default())
    }

    /// An item, or `None`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn item(&self, ticket: &str) -> Result<Option<Item>> {
        Ok(self.read(|c| find(c, ticket))?.flatten())
    }

    /// Begins the turn of items that wait: writes the messages they become into their chat, marks them as running and counts the
    /// attempt, all at once. Gives the ids of the messages.
    ///
    /// # Errors
    /// `not_found` where one of them is not there any more, `conflict` where one runs already or is of another chat,
    /// `invalid_arguments` without items; what the file system says. Then nothing is changed.
    pub fn start_items(&self, tickets: &[&str], new: &[NewMessage]) -> Result<Vec<i64>> {
        messages::check(new)?;
        self.write(|t| {
            let mut chat = None;
            for ticket in tickets {
                let item = find(t, ticket)?.ok_or_else(|| no_item(ticket))?;
                if item.state == ItemState::Running {
                    return Err(Error::new(Kind::Conflict, format!("the item `{ticket}` runs already")));
                }
                if *chat.get_or_insert(item.chat) != item.chat {
                    return Err(Error::new(Kind::Conflict, format!("the item `{ticket}` is of another chat")));
                }
            }
            let chat = chat.ok_or_else(|| Error::invalid("a turn needs an item"))?;
            let ids = messages::append(t, chat, new)?;
            each(t, "UPDATE inbox SET state = 'running', attempts = attempts + 1 WHERE ticket = ?1", tickets)?;
            Ok(ids)
        })
    }

    /// Takes items away whose turn has ended, and appends the last messages of that turn to `chat` in the same transaction.
    /// Gives the ids of the messages. Items that are not there are passed over.
    ///
    /// # Errors
    /// `not_found` where the chat has gone; what the file system says. Then nothing is changed.
    pub fn finish_items_with(&self, tickets: &[&str], chat: i64, last: &[NewMessage]) -> Result<Vec<i64>> {
        messages::check(last)?;
        self.write(|t| {
            let ids = messages::append(t, chat, last)?;
            each(t, "DELETE FROM inbox WHERE ticket = ?1", tickets)?;
            Ok(ids)
        })
    }

    /// Takes items away whose turn has ended and gives how many there were.
    ///
    /// # Errors
    /// What the file system says; then nothing is changed.
    pub fn finish_items(&self, tickets: &[&str]) -> Result<usize> {
        self.write(|t| each(t, "DELETE FROM inbox WHERE ticket = ?1", tickets))
    }

    /// Lets items that run wait again, at the place they had, and gives how many did. The messages they became stay.
    ///
    /// # Errors
    /// What the file system says; then nothing is changed.
    pub fn return_items(&self, tickets: &[&str]) -> Result<usize> {
        self.write(|t| each(t, "UPDATE inbox SET state = 'waiting' WHERE ticket = ?1 AND state = 'running'", tickets))
    }

    /// Takes an item out and gives it; `None` where there is none.
    ///
    /// # Errors
    /// What the file system says; then it is still there.
    pub fn remove_item(&self, ticket: &str) -> Result<Option<Item>> {
        self.write(|t| {
            let item = find(t, ticket)?;
            if item.is_some() {
                each(t, "DELETE FROM inbox WHERE ticket = ?1", &[ticket])?;
            }
            Ok(item)
        })
    }

    /// Counts one more attempt for an item that could not be started, and gives how many there were.
    ///
    /// # Errors
    /// `not_found` where it is not there any more; what the file system says.
    pub fn count_attempt(&self, ticket: &str) -> Result<u32> {
        self.write_one(|c| {
            c.prepare_cached("UPDATE inbox SET attempts = attempts + 1 WHERE ticket = ?1 RETURNING attempts")
                .and_then(|mut update| returned(&mut update, [ticket]))
                .map_err(|e| explain(&e))?
                .ok_or_else(|| no_item(ticket))
        })
    }

    /// How many items of a plugin wait in a chat.
    ///
    /// # Errors
    /// What the file system says.
    pub fn waiting_of(&self, chat: i64, plugin: &str) -> Result<u64> {
        let count = |c: &Connection| {
            c.prepare_cached("SELECT count(*) FROM inbox WHERE chat = ?1 AND plugin = ?2 AND state = 'waiting'")
                .and_then(|mut count| count.query_row(params![chat, plugin], |row| chats::unsigned(row, 0)))
                .map_err(|e| explain(&e))
        };
        Ok(self.read(count)?.unwrap_or(0))
    }
}

/// The items of a chat, in their order.
pub(super) fn of_chat(connection: &Connection, chat: i64) -> Result<Vec<Item>> {
    list(connection, "WHERE chat = ?1 ORDER BY seq", [chat])
}

/// The one place that writes what an item says.
fn insert(t: &Transaction, new: &NewItem) -> Result<i64> {
    t.prepare_cached(
        "INSERT INTO inbox (ticket, chat, seq, lane, source, plugin, put_at, expires_at, private_at_put, on_drop, durable, \
         header, payload) VALUES (?1, ?2, (SELECT ifnull(max(seq), 0) + 1 FROM inbox WHERE chat = ?2), \
         ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) RETURNING seq",
    )
    .and_then(|mut insert| {
        returned(
            &mut insert,
            params![
                new.ticket,
                new.chat,
                new.lane.word(),
                new.source,
                new.plugin,
                new.put_at,
                new.expires_at,
                new.private_at_put,
                new.on_drop,
                new.durable,
                new.header,
                new.payload
            ],
        )
    })
    .map_err(|e| explain(&e))?
    .ok_or_else(|| Error::internal("an item was put and has no place"))
}

/// The one place that reads what an item says.
fn item(row: &Row) -> rusqlite::Result<Item> {
    let lane: String = row.get("lane")?;
    let state: String = row.get("state")?;
    Ok(Item {
        ticket: row.get("ticket")?,
        chat: row.get("chat")?,
        seq: row.get("seq")?,
        lane: if lane == Lane::Now.word() { Lane::Now } else { Lane::Later },
        state: if state == "running" { ItemState::Running } else { ItemState::Waiting },
        source: row.get("source")?,
        plugin: row.get("plugin")?,
        header: row.get("header")?,
        payload: row.get("payload")?,
        put_at: row.get("put_at")?,
        expires_at: row.get("expires_at")?,
        private_at_put: row.get("private_at_put")?,
        on_drop: row.get("on_drop")?,
        durable: row.get("durable")?,
        attempts: row.get("attempts")?,
    })
}

fn list(connection: &Connection, which: &str, values: impl rusqlite::Params) -> Result<Vec<Item>> {
    let list = || {
        connection
            .prepare_cached(&format!("SELECT * FROM inbox {which}"))?
            .query_map(values, item)?
            .collect::<rusqlite::Result<Vec<_>>>()
    };
    list().map_err(|e| explain(&e))
}

fn find(connection: &Connection, ticket: &str) -> Result<Option<Item>> {
    Ok(list(connection, "WHERE ticket = ?1", [ticket])?.pop())
}

/// Runs a statement for each of the tickets and gives how many rows it changed.
fn each(t: &Transaction, sql: &str, tickets: &[&str]) -> Result<usize> {
    let run = || -> rusqlite::Result<usize> {
        let mut statement = t.prepare_cached(sql)?;
        tickets.iter().try_fold(0, |sum, ticket| Ok(sum + statement.execute([ticket])?))
    };
    run().map_err(|e| explain(&e))
}

fn no_item(ticket: &str) -> Error {
    Error::not_found(format!("nothing with the ticket `{ticket}` waits"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
