//! Looks for words in what was said, newest first, in chats that are not private. Texts are compared without regard to case, in
//! every script; a word is text, and no character of it means anything else.

use super::{Message, Role, message};
use crate::base::error::Result;
use crate::store::main::{MainDb, explain};
use rusqlite::Connection;
use serde_json::Value;

/// Most hits of one search.
pub const MAX_HITS: usize = 200;
/// So many bytes of messages are looked at before a search says how far it came.
const MAX_READ: usize = 128 << 20;

/// A message that has the words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The name of its chat.
    pub chat: String,
    /// The id of the message.
    pub message: i64,
    /// Whose it is.
    pub role: Role,
    /// Milliseconds since 1970-01-01 UTC.
    pub at: i64,
    /// What it says: JSON text.
    pub body: String,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// The messages, newest first.
    pub hits: Vec<Hit>,
    /// The `before` with which the search goes on; `None` where everything was looked at.
    pub next: Option<i64>,
}

impl MainDb {
    /// Messages in whose texts every word of `words` stands (words are what spaces separate), below the id `before`.
    /// At most `limit` and never more than [`MAX_HITS`]; a search that read much ends earlier and says where to go on.
    /// No words, no hits.
    ///
    /// # Errors
    /// What the file system says.
    pub fn search_messages(&self, words: &str, limit: usize, before: Option<i64>) -> Result<Found> {
        let wanted: Vec<Word> = words.split_whitespace().map(Word::of).collect();
        let limit = limit.min(MAX_HITS);
        if wanted.is_empty() || limit == 0 {
            return Ok(Found::default());
        }
        let before = before.unwrap_or(i64::MAX);
        let search = |c: &Connection| look(c, &wanted, limit, before).map_err(|e| explain(&e));
        Ok(self.read(search)?.unwrap_or_default())
    }
}

fn look(connection: &Connection, wanted: &[Word], limit: usize, before: i64) -> rusqlite::Result<Found> {
    let mut statement = connection.prepare_cached(
        "SELECT messages.id, role, at, turn, body, chats.name FROM messages JOIN chats ON chats.id = messages.chat \
         WHERE messages.id < ?1 AND chats.private = 0 AND chats.vaulted = 0 ORDER BY messages.id DESC",
    )?;
    let mut rows = statement.query([before])?;
    let (mut found, mut read) = (Found::default(), 0);
    while let Some(row) = rows.next()? {
        let Message { id, role, at, body, .. } = message(row)?;
        read += body.len();
        if has_all(&body, wanted) {
            found.hits.push(Hit { chat: row.get(5)?, message: id, role, at, body });
        }
        if found.hits.len() == limit || read > MAX_READ {
            found.next = Some(id);
            break;
        }
    }
    Ok(found)
}

/// A word without regard to case.
struct Word {
    plain: String,
    /// As it stands in JSON.
    escaped: String,
}

impl Word {
    fn of(word: &str) -> Word {
        let plain = folded(word);
        let escaped = Value::from(&*plain).to_string();
        Word { escaped: escaped.get(1..escaped.len() - 1).unwrap_or_default().to_owned(), plain }
    }
}

/// Whether every word stands in one of the texts of a body.
fn has_all(body: &str, wanted: &[Word]) -> bool {
    // Most bodies do not even have the letters; one with a letter as `\u..` has to be read to know.
    if !body.contains("\\u") {
        let body = folded(body);
        if !wanted.iter().all(|word| body.contains(&*word.escaped) || body.contains(&*word.plain)) {
            return false;
        }
    }
    let mut texts = String::new();
    match serde_json::from_str(body) {
        Ok(value) => collect(&value, &mut texts),
        Err(_) => texts.push_str(body),
    }
    let texts = folded(&texts);
    wanted.iter().all(|word| texts.contains(&*word.plain))
}

/// Every text of a value, with something between them that no word has. Names of fields are nobody's words.
fn collect(value: &Value, texts: &mut String) {
    match value {
        Value::String(text) => {
            texts.push_str(text);
            texts.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(map) => map.values().for_each(|item| collect(item, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Without regard to case: one letter after the other, so that the end of a word changes nothing.
fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            folded.push(c.to_ascii_lowercase());
        } else {
            folded.extend(c.to_uppercase().flat_map(char::to_lowercase));
        }
    }
    folded
}
