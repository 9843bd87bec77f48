//! `chat_state::` of plugins: values that belong to one chat and go with it, as rows of the host's own database.
//! How they are stored is the store's; what may be stored, and how much, is decided here.

use super::images::is_passing;
use super::state::{MAX_VALUE_BYTES, MAX_VALUE_DEPTH, check_key, check_readable};
use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result};
use crate::base::json;
use crate::store::chat_data::{Held, Owner, Replaced};
use crate::store::main::MainDb;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

pub use crate::store::chat_data::{KeyMeta, Reserve};

/// All values of a plugin in a chat may have this many bytes as JSON, with their keys.
pub const MAX_BYTES: u64 = 64 << 20;
/// A plugin may have this many values in a chat.
pub const MAX_ROWS: u64 = 100_000;
/// So many chats of plugins are remembered with the room they have left.
const MAX_REMEMBERED: usize = 1024;

/// A chat, as a call of a plugin names it.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The plugin, whose values alone are seen.
    pub plugin: &'a str,
    /// The chat.
    pub chat: &'a str,
    /// The chat that the call belongs to.
    pub home: Option<&'a str>,
    /// Whether that one is private.
    pub private: bool,
}

impl<'a> Named<'a> {
    fn owner(&self) -> Owner<'a> {
        Owner { plugin: self.plugin, chat: self.chat }
    }
}

/// The values that all plugins keep in chats.
pub struct ChatStates {
    store: Arc<MainDb>,
    clock: Clock,
    made: Mutex<HashSet<String>>,
    /// What a plugin may write to a chat before it is counted again.
    left: Mutex<HashMap<(String, String), Held>>,
}

impl ChatStates {
    /// The values in this database. Reads nothing yet.
    #[must_use]
    pub fn new(store: Arc<MainDb>, clock: Clock) -> Self {
        ChatStates { store, clock, made: Mutex::default(), left: Mutex::default() }
    }

    /// Lets a call that belongs to this chat make it by writing to it, as calls do in the chats of the doors.
    pub fn make_on_use(&self, chat: &str) {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).insert(chat.to_owned());
    }

    /// Sets the one value of a key.
    ///
    /// # Errors
    /// `not_found` where there is no such chat, `chat_sealed` where it is sealed; `too_large` for a value over
    /// [`MAX_VALUE_BYTES`], `quota` over [`MAX_BYTES`] or [`MAX_ROWS`], `invalid_arguments` for a value that could not be read
    /// back; what the file system says. Nothing is changed then.
    pub fn put(&self, named: Named, key: &str, value: &Value) -> Result<()> {
        let text = text_of(key, value)?;
        self.reserve(named.owner(), key, std::slice::from_ref(&text), Replaced::Value(key))?;
        let now = self.clock.unix_ms();
        self.written(named, || self.store.put_value(named.owner(), key, &text, now))
    }

    /// The one value of a key; `None` where there is none, no such chat, or a sealed one. `reserve` is asked for its size before it
    /// is read.
    ///
    /// # Errors
    /// What the file system or `reserve` says.
    pub fn get(&self, named: Named, key: &str, reserve: Reserve) -> Result<Option<Value>> {
        self.store.value(named.owner(), key, reserve)?.as_deref().map(value_of).transpose()
    }

    /// Appends a value to a key and gives its number: one more than the highest, from 1.
    ///
    /// # Errors
    /// As [`ChatStates::put`].
    pub fn append(&self, named: Named, key: &str, value: &Value) -> Result<i64> {
        let text = text_of(key, value)?;
        self.reserve(named.owner(), key, std::slice::from_ref(&text), Replaced::Nothing)?;
        let now = self.clock.unix_ms();
        self.written(named, || self.store.append_value(named.owner(), key, &text, now))
    }

    /// Appends values to a key, all or none, and gives their numbers.
    ///
    /// # Errors
    /// As [`ChatStates::put`]; which value it is is said.
    pub fn append_many(&self, named: Named, key: &str, values: &[Value]) -> Result<Vec<i64>> {
        let texts = texts_of(key, values)?;
        self.reserve(named.owner(), key, &texts, Replaced::Nothing)?;
        let now = self.clock.unix_ms();
        self.written(named, || self.store.append_values(named.owner(), key, &texts, now))
    }

    /// What was appended to a key, in its order. `reserve` is asked for the size of each value before it is read.
    ///
    /// # Errors
    /// As [`ChatStates::get`].
    pub fn read_all(&self, named: Named, key: &str, reserve: Reserve) -> Result<Vec<Value>> {
        self.store.values(named.owner(), key, reserve)?.iter().map(|text| value_of(text)).collect()
    }

    /// Puts other values in the place of all that were appended to a key, counted from 1, and gives their numbers.
    ///
    /// # Errors
    /// As [`ChatStates::append_many`]; then everything is as it was.
    pub fn replace(&self, named: Named, key: &str, values: &[Value]) -> Result<Vec<i64>> {
        let texts = texts_of(key, values)?;
        self.reserve(named.owner(), key, &texts, Replaced::Appended(key))?;
        let now = self.clock.unix_ms();
        self.written(named, || self.store.replace_values(named.owner(), key, &texts, now))
    }

    /// Deletes a key, or without one everything of the plugin in the chat. What is not there is fine.
    ///
    /// # Errors
    /// `not_found` where there is no such chat, `chat_sealed` where it is sealed; what the file system says.
    pub fn delete(&self, named: Named, key: Option<&str>) -> Result<()> {
        self.written(named, || self.store.delete_values(named.owner(), key).map(drop))
    }

    /// The keys of the plugin in the chat, sorted.
    ///
    /// # Errors
    /// What the file system says.
    pub fn keys(&self, named: Named) -> Result<Vec<String>> {
        self.store.value_keys(named.owner())
    }

    /// The one value of a key in every chat that has one and is not sealed, by the chat's name. `reserve` is asked for the size of
    /// each value before it is read.
    ///
    /// # Errors
    /// As [`ChatStates::get`].
    pub fn get_all_chats(&self, plugin: &str, key: &str, reserve: Reserve) -> Result<Map<String, Value>> {
        let found = self.store.value_in_chats(plugin, key, reserve)?;
        found.into_iter().map(|(chat, text)| Ok((chat, value_of(&text)?))).collect()
    }

    /// What is known of a key; `None` where there is nothing, no such chat, or a sealed one.
    ///
    /// # Errors
    /// What the file system says.
    pub fn meta(&self, named: Named, key: &str) -> Result<Option<KeyMeta>> {
        self.store.value_meta(named.owner(), key)
    }

    /// Writes; where the chat is not there and this call may make it, it is made first.
    fn written<T>(&self, named: Named, write: impl Fn() -> Result<T>) -> Result<T> {
        match write() {
            Err(e) if e.kind() == Kind::NotFound && self.makes(named) => {
                self.store.ensure_chat(named.chat, named.private, self.clock.unix_ms())?;
                write()
            }
            Err(e) if e.kind() == Kind::NotFound => Err(e.hint("scopes::chat() names the chat of this call")),
            done => done,
        }
    }

    fn makes(&self, named: Named) -> bool {
        let is_made = || self.made.lock().unwrap_or_else(PoisonError::into_inner).contains(named.chat);
        named.home == Some(named.chat) && (is_passing(named.chat) || is_made())
    }

    /// Sees to it that the values fit. Counting costs as much as there is, so each count is good for half of the room that it found:
    /// three processes that write to one chat at once may pass the limit by half of it.
    fn reserve(&self, owner: Owner, key: &str, texts: &[String], replaced: Replaced) -> Result<()> {
        let rows = texts.len() as u64;
        let bytes = texts.iter().map(|text| (key.len() + text.len()) as u64).sum::<u64>();
        let whose = (owner.plugin.to_owned(), owner.chat.to_owned());
        if let Some(left) = self.left.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&whose)
            && left.rows >= rows
            && left.bytes >= bytes
        {
            *left = Held { rows: left.rows - rows, bytes: left.bytes - bytes };
            return Ok(());
        }
        let held = self.store.values_held(owner, replaced)?;
        let after = Held { rows: held.rows.saturating_add(rows), bytes: held.bytes.saturating_add(bytes) };
        let too_much = |what: String| {
            Err(Error::new(Kind::Quota, format!("`{}` would keep {what} in this chat", owner.plugin))
                .hint("delete keys that are not needed, or use a database (db::)"))
        };
        if after.rows > MAX_ROWS {
            return too_much(format!("{} values; at most {MAX_ROWS} are kept", after.rows));
        }
        if after.bytes > MAX_BYTES {
            return too_much(format!("{} bytes; at most {MAX_BYTES} are kept", after.bytes));
        }
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.len() >= MAX_REMEMBERED {
            left.clear();
        }
        left.insert(
            whose,
            Held { rows: half(MAX_ROWS - after.rows, 256), bytes: half(MAX_BYTES - after.bytes, 256 << 10) },
        );
        Ok(())
    }
}

/// Half of it, or `least` where that is more and there is as much.
fn half(room: u64, least: u64) -> u64 {
    (room / 2).max(least.min(room))
}

fn texts_of(key: &str, values: &[Value]) -> Result<Vec<String>> {
    if values.len() as u64 > MAX_ROWS {
        return Err(Error::new(Kind::Quota, format!("{} values; at most {MAX_ROWS} are kept", values.len())));
    }
    values
        .iter()
        .enumerate()
        .map(|(at, value)| text_of(key, value).map_err(|e| e.context(format!("the value [{at}]"))))
        .collect()
}

/// A value as it is stored. What the strict reader would refuse must not be written.
fn text_of(key: &str, value: &Value) -> Result<String> {
    check_key(key)?;
    check_readable(value, MAX_VALUE_DEPTH)?;
    let text = serde_json::to_string(value).map_err(|e| Error::internal(format!("a value of `{key}`: {e}")))?;
    if text.len() > MAX_VALUE_BYTES {
        return Err(Error::new(
            Kind::TooLarge,
            format!("the value of `{key}` has {} bytes as JSON; at most {MAX_VALUE_BYTES} are stored", text.len()),
        )
        .hint("split it over several keys, or keep it in a file (files::) or database (db::)"));
    }
    Ok(text)
}

fn value_of(text: &str) -> Result<Value> {
    json::parse(text).map_err(|e| Error::internal(format!("a value in a chat cannot be read: {e}")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
