//! From a call that ended to its row: secrets out first, then cut to what may be kept. A row that cannot be made free of a known
//! secret is not made.

use super::entry::{Failure, LogLine, More, Piece, Step};
use super::heard::{Progress, Said};
use super::{Ended, Given, mask};
use crate::base::error::Error;
use crate::base::json;
use crate::service::attachments::{Files, one_line};
use crate::service::gallery::Gallery;
use crate::service::markers::Part;
use crate::service::picture::View;
use crate::service::secret::{HIDDEN, Redactor};
use crate::store::journal::{CallLine, CallRow};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::time::Instant;

/// Most characters of the line about how a call ended.
const SUMMARY: usize = 160;
/// Most characters of a name that came from outside.
const NAME: usize = 200;
/// Most warnings, and characters of one.
const WARNINGS: (usize, usize) = (50, 1000);
/// What is looked through for secrets behind what is kept: a value that begins in what is kept is found whole.
const BEYOND: usize = 64 << 10;

/// The row of a call. `None` where it would show a secret that cannot be taken out: in the name of its chat.
pub(super) fn row(ended: Ended, known: &Redactor, most: usize) -> Option<CallRow> {
    let mut more = More::default();
    let (arguments, hidden) = arguments(ended.arguments, ended.tool.schema(), &mut more);
    let mut own = Redactor::default();
    hidden.iter().for_each(|value| own.add(value));
    let redactors: Vec<&Redactor> =
        [ended.used.as_deref(), Some(known), Some(&own)].into_iter().flatten().filter(|r| !r.is_empty()).collect();
    let clean = Clean { redactors, most };

    if ended.chat.as_deref().is_some_and(|chat| clean.holds(chat)) {
        return None;
    }
    let arguments = clean.arguments(arguments, &mut more);
    let text = clean.long(ended.text, "text", &mut more.cut);
    let shown = ended.shown.map(|shown| clean.long(shown, "shown", &mut more.cut));
    more.structured = ended.structured.and_then(|value| {
        let value = clean.json(value);
        if json::encoded_len(&value) <= most {
            return Some(value);
        }
        more.cut.push("structured".to_owned());
        None
    });
    more.parts = pieces(ended.parts, &ended.picture_bytes, &clean, &mut more.cut);
    let code = ended.error.as_ref().map(|error| error.code().to_owned());
    // A failure is short already; it is what a person looks for.
    more.error = ended.error.map(|error| Failure::of(&clean.error(error)));
    more.diagnostic =
        ended.diagnostic.map(|value| clean.leaves(value)).filter(|value| json::encoded_len(value) <= most);
    let (warnings, characters) = WARNINGS;
    more.warnings = ended.warnings.into_iter().take(warnings).map(|w| one_line(&clean.short(w), characters)).collect();
    if let Some((said, began)) = ended.said {
        tell(said, began, &clean, &mut more);
    }

    let summary = match &more.error {
        Some(failure) => one_line(&failure.message, SUMMARY),
        None => summary(&text, &more),
    };
    let line = CallLine {
        id: ended.id,
        at: ended.at,
        tool: one_line(&clean.short(ended.tool.name().to_owned()), NAME),
        plugin: ended.plugin.to_string(),
        generation: ended.generation,
        door: ended.door.to_owned(),
        caller: one_line(&clean.short(ended.caller.to_string()), NAME),
        chat: ended.chat.map(|chat| chat.to_string()),
        ok: ended.ok,
        code,
        duration_us: u64::try_from(ended.duration.as_micros()).unwrap_or(u64::MAX),
        summary,
    };
    let (operations, memory) = (ended.operations, ended.memory);
    let more = (more != More::default()).then(|| compact(&more));
    Some(CallRow { line, operations, memory, arguments, text, shown, more })
}

/// What a call was given, as a value: an object, or a text where it was none. With the values of secrets among it, which are out.
fn arguments(given: Given, schema: &Value, more: &mut More) -> (Value, Vec<zeroize::Zeroizing<String>>) {
    let mut map = match given {
        Given::Object(map) => map,
        Given::Text(text) if text.trim().is_empty() => Map::new(),
        Given::Text(text) => match json::parse_untrusted(&text) {
            Ok(Value::Object(map)) => map,
            Ok(Value::Null) => Map::new(),
            Ok(_) | Err(_) if mask::may_hold(&text, schema) => {
                more.masked = true;
                return (HIDDEN.into(), vec![text.into()]);
            }
            Ok(_) | Err(_) => return (text.into(), Vec::new()),
        },
    };
    let hidden = mask::hide(&mut map, schema);
    more.masked = !hidden.is_empty();
    (Value::Object(map), hidden)
}

/// Takes secrets out and cuts.
struct Clean<'a> {
    redactors: Vec<&'a Redactor>,
    /// Most bytes of one text.
    most: usize,
}

impl Clean<'_> {
    fn holds(&self, text: &str) -> bool {
        self.redactors.iter().any(|redactor| matches!(redactor.text(text), Cow::Owned(_)))
    }

    fn short(&self, text: String) -> String {
        self.redactors.iter().fold(text, |text, redactor| match redactor.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => clean,
        })
    }

    fn long(&self, mut text: String, name: &str, cut: &mut Vec<String>) -> String {
        let whole = text.len();
        text.truncate(text.floor_char_boundary(self.most.saturating_add(BEYOND)));
        let mut text = self.short(text);
        if whole > self.most && text.len() > self.most {
            text.truncate(text.floor_char_boundary(self.most));
            let left = whole.saturating_sub(text.len());
            text.push_str(&format!("\n[{left} more bytes were not kept]"));
            cut.push(name.to_owned());
        }
        text
    }

    fn error(&self, error: Error) -> Error {
        self.redactors.iter().fold(error, |error, redactor| redactor.error(error))
    }

    fn json(&self, value: Value) -> Value {
        self.redactors.iter().fold(value, |value, redactor| redactor.json(value))
    }

    /// As [`Clean::json`], for what has keys of ours: they stay.
    fn leaves(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.short(text)),
            Value::Array(items) => items.into_iter().map(|item| self.leaves(item)).collect(),
            Value::Object(map) => map.into_iter().map(|(key, item)| (key, self.leaves(item))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    fn arguments(&self, value: Value, more: &mut More) -> String {
        let mut text = compact(&value);
        let mut value = value;
        if self.holds(&text) {
            more.masked = true;
            value = self.json(value);
            text = compact(&value);
            // What only several values together spell cannot be taken out of one of them.
            if self.holds(&text) {
                value = HIDDEN.into();
                text = compact(&value);
            }
        }
        if text.len() > self.most {
            more.cut.push("arguments".to_owned());
            let mut left = self.most;
            text = compact(&shortened(value, &mut left));
        }
        text
    }
}

/// A value whose texts and lists end where `left` bytes are used up; it stays a value.
fn shortened(value: Value, left: &mut usize) -> Value {
    match value {
        Value::String(mut text) => {
            let room = *left;
            if text.len() > room {
                text.truncate(text.floor_char_boundary(room));
                text.push('…');
            }
            *left = left.saturating_sub(text.len() + 3);
            Value::String(text)
        }
        Value::Array(items) => {
            let mut out = Vec::new();
            for item in items {
                if *left < 8 {
                    break;
                }
                out.push(shortened(item, left));
            }
            Value::Array(out)
        }
        Value::Object(map) => {
            let mut out = Map::new();
            for (key, item) in map {
                if *left < key.len() + 8 {
                    break;
                }
                *left -= key.len() + 4;
                out.insert(key, shortened(item, left));
            }
            Value::Object(out)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            *left = left.saturating_sub(8);
            value
        }
    }
}

fn pieces(parts: Vec<Part>, bytes: &[usize], clean: &Clean, cut: &mut Vec<String>) -> Vec<Piece> {
    let mut bytes = bytes.iter();
    let mut left = clean.most;
    let mut out = Vec::new();
    for part in parts {
        let piece = match part.map_texts(&mut |text| clean.short(text)) {
            Part::Image(image) => Piece::Image {
                id: image.id,
                media_type: image.media_type,
                width: image.width,
                height: image.height,
                display_only: image.display_only,
                caption: image.caption,
                unseen: match image.view {
                    View::Unseen(why) => Some(why),
                    View::Same | View::Copy { .. } => None,
                },
                bytes: bytes.next().copied().unwrap_or(0) as u64,
            },
            Part::Gallery(Gallery { title, items }) => Piece::Gallery { title, items },
            Part::Files(Files { title, items }) => Piece::Files { title, items },
        };
        let size = compact(&piece).len();
        if size > left {
            cut.push("parts".to_owned());
            break;
        }
        left -= size;
        out.push(piece);
    }
    out
}

fn tell(said: Said, began: Instant, clean: &Clean, more: &mut More) {
    let at = |when: Instant| u64::try_from(when.saturating_duration_since(began).as_millis()).unwrap_or(u64::MAX);
    let logs = said.logs.into_iter();
    more.logs = logs
        .map(|(when, level, text)| LogLine { at_ms: at(when), level: level.into(), text: clean.short(text) })
        .collect();
    more.logs_left_out = said.left_out;
    let steps = said.steps.into_iter();
    more.progress = steps
        .map(|(when, progress)| {
            let at_ms = at(when);
            match progress {
                Progress::Status(text) => Step { at_ms, status: Some(clean.short(text)), done: None, total: None },
                Progress::Steps(done, total) => Step { at_ms, status: None, done: Some(done), total: Some(total) },
            }
        })
        .collect();
}

fn summary(text: &str, more: &More) -> String {
    let begin = &text[..text.floor_char_boundary(SUMMARY * 8)];
    let line = one_line(begin, SUMMARY);
    if !line.is_empty() {
        return line;
    }
    match more.parts.len() {
        0 => String::new(),
        1 => "1 part".to_owned(),
        n => format!("{n} parts"),
    }
}

fn compact(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| format!("\"{HIDDEN}\""))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
