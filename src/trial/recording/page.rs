//! The file of recordings: what may stand in it, what it means, where it is wrong. Texts are texts and JSON is JSON, so that a
//! person can read, compare and write it.

use super::super::recipe::Beside;
use super::compare::{Asked, Sent};
use crate::base::error::{Error, Kind, Result};
use crate::base::json;
use crate::net::tape::Heard;
use crate::plugin::manifest::locate::{Step, locate, shown, steps_to};
use crate::script::diagnostic::Diagnostic;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the format that is written and read.
pub const FORMAT: u32 = 1;

/// Recorded HTTP of the tests in one script. `lapidary test --record` writes it; it may be written by hand.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Recorded HTTP")]
#[serde(deny_unknown_fields)]
struct Page {
    /// The version of this format: 1.
    format: u32,
    /// In the order in which they answer.
    exchanges: Vec<Entry>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Exchange")]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The only test that it answers; every test of the script where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    test: Option<String>,
    /// Written by hand: `--record` answers with it too, and neither replaces nor drops it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    keep: bool,
    /// What is asked. A redirect that is followed is an exchange of its own.
    request: Question,
    /// What is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<Answer>,
    /// In the place of an answer: how the request fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Request")]
#[serde(deny_unknown_fields)]
struct Question {
    /// GET where it is left out.
    #[serde(default = "get")]
    method: String,
    /// The whole address. The order of its parameters does not matter; `***` stands for anything, such as a credential.
    url: String,
    /// Headers that the request must have; others do not matter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    /// A body of JSON, compared as JSON.
    #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
    json: Option<Value>,
    /// A body of text, also that of a form; of a form with files the boundary is the word `boundary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Lines>,
    /// A body of bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// The hash of a long body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// The body does not matter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    any_body: bool,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Response")]
#[serde(deny_unknown_fields)]
struct Answer {
    /// 200 where it is left out.
    #[serde(default = "ok")]
    status: u16,
    /// A header that comes several times has an array.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, OneOrMany>,
    /// A body of JSON; its content type is `application/json` unless a header says otherwise.
    #[serde(default, deserialize_with = "some", skip_serializing_if = "Option::is_none")]
    json: Option<Value>,
    /// A body of text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Lines>,
    /// A body of bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// The name of a file beside this one that holds the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Failure {
    /// A failure code of the script API, such as `timeout` or `upstream_unavailable`.
    code: String,
    /// What the script reads.
    message: String,
}

/// A text, or its lines.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a text, or an array of lines")]
enum Lines {
    One(String),
    Many(Vec<String>),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a text, or an array of texts")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

fn get() -> String {
    "GET".into()
}

fn ok() -> u16 {
    200
}

/// A `null` that stands there is a value.
fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The JSON Schema of the file.
#[must_use]
pub fn schema() -> Value {
    schemars::schema_for!(Page).to_value()
}

/// A recorded exchange.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// The only test that it answers.
    pub test: Option<String>,
    /// Whether it was written by hand.
    pub keep: bool,
    /// What is asked.
    pub request: Asked,
    /// What comes of it.
    pub outcome: Outcome,
}

/// What comes of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// An answer.
    Answer(Reply),
    /// A failure.
    Failure(Kind, String),
}

/// An answer as it is recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// Headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The file beside the recordings that holds the body, where one does.
    pub file: Option<String>,
}

impl Reply {
    /// As the client takes it.
    pub fn heard(&self) -> Heard {
        Heard { status: self.status, headers: self.headers.clone(), body: self.body.clone() }
    }
}

/// What is wrong, and under which steps.
type Wrong = (Vec<(&'static str, Option<usize>)>, String);

/// Reads a file of recordings.
///
/// # Errors
/// A diagnostic at the line where it is wrong.
pub fn read(bytes: &[u8], beside: &Beside) -> Result<Vec<Exchange>, Diagnostic> {
    let file = beside.shown.as_str();
    let fault = |message: String| Diagnostic::error("recording", file, message);
    let text = String::from_utf8_lossy(bytes);
    let top =
        json::parse_file_text(bytes).map_err(|e| fault(format!("not valid JSON: {e}")).at(&text, e.line, e.column))?;
    let placed = |steps: &[Step], message: String| {
        let (line, column) = locate(&text, steps);
        let path = shown(steps);
        let message = if path.is_empty() { message } else { format!("`{path}`: {message}") };
        fault(message).at(&text, line, column)
    };
    if let Some(other) = top.get("format").and_then(Value::as_u64).filter(|n| *n != u64::from(FORMAT)) {
        let message = format!("it is of format {other}, and this program reads format {FORMAT}");
        return Err(placed(&[Step::Key("format")], message).hint("record it again: lapidary test --record"));
    }
    let page: Page = serde_path_to_error::deserialize(top).map_err(|e| {
        let steps = steps_to(e.path());
        placed(&steps, json::plain_words(&e.inner().to_string()))
    })?;
    let mut out = Vec::with_capacity(page.exchanges.len());
    for (index, entry) in page.exchanges.into_iter().enumerate() {
        out.push(entry.exchange(beside).map_err(|(inner, message)| {
            let mut steps = vec![Step::Key("exchanges"), Step::Index(index)];
            for (key, at) in inner {
                steps.push(Step::Key(key));
                steps.extend(at.map(Step::Index));
            }
            placed(&steps, message)
        })?);
    }
    Ok(out)
}

/// The bytes of a file of recordings.
///
/// # Errors
/// `internal` for what JSON cannot hold.
pub fn write(exchanges: Vec<Exchange>) -> Result<Vec<u8>> {
    let page = Page { format: FORMAT, exchanges: exchanges.into_iter().map(Entry::of).collect() };
    let mut bytes = serde_json::to_vec_pretty(&page)
        .map_err(|e| Error::internal(format!("the recordings cannot be written: {e}")))?;
    bytes.push(b'\n');
    Ok(bytes)
}

impl Entry {
    fn exchange(self, beside: &Beside) -> Result<Exchange, Wrong> {
        let request = self.request.asked().map_err(|(key, message)| (vec![("request", None), (key, None)], message))?;
        let outcome = match (self.response, self.failure) {
            (Some(answer), None) => Outcome::Answer(
                answer.reply(beside).map_err(|(key, message)| (vec![("response", None), (key, None)], message))?,
            ),
            (None, Some(failure)) => match Kind::from_code(&failure.code) {
                Some(kind) => Outcome::Failure(kind, failure.message),
                None => {
                    let known: Vec<&str> = Kind::ALL.iter().map(|k| k.code()).collect();
                    let message = format!("`{}` is no failure code; one of {}", failure.code, known.join(" "));
                    return Err((vec![("failure", None), ("code", None)], message));
                }
            },
            (None, None) => return Err((Vec::new(), "it has neither `response` nor `failure`".into())),
            (Some(_), Some(_)) => {
                return Err((Vec::new(), "it has `response` and `failure`, and only one can be".into()));
            }
        };
        Ok(Exchange { test: self.test, keep: self.keep, request, outcome })
    }

    fn of(exchange: Exchange) -> Entry {
        let (response, failure) = match exchange.outcome {
            Outcome::Answer(reply) => (Some(Answer::of(reply)), None),
            Outcome::Failure(kind, message) => (None, Some(Failure { code: kind.code().into(), message })),
        };
        Entry { test: exchange.test, keep: exchange.keep, request: Question::of(exchange.request), response, failure }
    }
}

/// What is wrong, and with which key.
type WrongKey = (&'static str, String);

fn only_one(given: &[(&'static str, bool)]) -> Result<(), WrongKey> {
    let there: Vec<&str> = given.iter().filter(|(_, is)| *is).map(|(key, _)| *key).collect();
    match given.iter().filter(|(_, is)| *is).nth(1) {
        Some((key, _)) => Err((key, format!("there is one body, and here are {}", there.join(" and ")))),
        None => Ok(()),
    }
}

fn decoded(text: &str) -> Result<Vec<u8>, WrongKey> {
    let packed: String = text.split_whitespace().collect();
    STANDARD.decode(packed).map_err(|e| ("base64", format!("it cannot be read: {e}")))
}

impl Question {
    fn asked(self) -> Result<Asked, WrongKey> {
        only_one(&[
            ("json", self.json.is_some()),
            ("text", self.text.is_some()),
            ("base64", self.base64.is_some()),
            ("sha256", self.sha256.is_some()),
            ("any_body", self.any_body),
        ])?;
        let url = url::Url::parse(&self.url).map_err(|e| ("url", format!("`{}` is no address: {e}", self.url)))?;
        let sent = match (self.json, self.text, self.base64, self.sha256) {
            (Some(json), ..) => Sent::Json(json),
            (_, Some(text), ..) => Sent::Text(text.whole()),
            (_, _, Some(base64), _) => Sent::Bytes(decoded(&base64)?),
            (.., Some(hash)) => Sent::Hash(hash.to_ascii_lowercase()),
            _ if self.any_body => Sent::Any,
            _ => Sent::Nothing,
        };
        let headers = self.headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        Ok(Asked { method: self.method.to_ascii_uppercase(), url: url.into(), headers, sent })
    }

    fn of(asked: Asked) -> Question {
        let mut question = Question {
            method: asked.method,
            url: asked.url,
            headers: asked.headers,
            json: None,
            text: None,
            base64: None,
            sha256: None,
            any_body: false,
        };
        match asked.sent {
            Sent::Nothing => {}
            Sent::Any => question.any_body = true,
            Sent::Json(value) => question.json = Some(value),
            Sent::Text(text) => question.text = Some(Lines::of(text)),
            Sent::Bytes(bytes) => question.base64 = Some(STANDARD.encode(bytes)),
            Sent::Hash(hash) => question.sha256 = Some(hash),
        }
        question
    }
}

impl Lines {
    fn whole(self) -> String {
        match self {
            Lines::One(text) => text,
            Lines::Many(lines) => lines.join("\n"),
        }
    }

    fn of(text: String) -> Lines {
        if text.contains('\n') { Lines::Many(text.split('\n').map(str::to_owned).collect()) } else { Lines::One(text) }
    }
}

impl Answer {
    fn reply(self, beside: &Beside) -> Result<Reply, WrongKey> {
        only_one(&[
            ("json", self.json.is_some()),
            ("text", self.text.is_some()),
            ("base64", self.base64.is_some()),
            ("file", self.file.is_some()),
        ])?;
        if !(100..=599).contains(&self.status) {
            return Err(("status", format!("{} is no status", self.status)));
        }
        let mut headers = Vec::new();
        for (name, values) in self.headers {
            let name = name.to_ascii_lowercase();
            match values {
                OneOrMany::One(value) => headers.push((name, value)),
                OneOrMany::Many(values) => headers.extend(values.into_iter().map(|value| (name.clone(), value))),
            }
        }
        if self.json.is_some() && !headers.iter().any(|(name, _)| name == "content-type") {
            headers.push(("content-type".into(), "application/json".into()));
        }
        let body = match (self.json, self.text, self.base64, &self.file) {
            (Some(json), ..) => json.to_string().into_bytes(),
            (_, Some(text), ..) => text.whole().into_bytes(),
            (_, _, Some(base64), _) => decoded(&base64)?,
            (.., Some(file)) => match beside.read(&beside.sibling(file), super::MAX_FILE) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Err(("file", format!("there is no `{file}` beside it"))),
                Err(e) => return Err(("file", e.message().to_owned())),
            },
            _ => Vec::new(),
        };
        Ok(Reply { status: self.status, headers, body, file: self.file })
    }

    fn of(reply: Reply) -> Answer {
        let mut headers: BTreeMap<String, OneOrMany> = BTreeMap::new();
        for (name, value) in reply.headers {
            let both = match headers.remove(&name) {
                None => OneOrMany::One(value),
                Some(OneOrMany::One(first)) => OneOrMany::Many(vec![first, value]),
                Some(OneOrMany::Many(mut all)) => {
                    all.push(value);
                    OneOrMany::Many(all)
                }
            };
            headers.insert(name, both);
        }
        let mut answer =
            Answer { status: reply.status, headers, json: None, text: None, base64: None, file: reply.file };
        let is_json = matches!(answer.headers.get("content-type"), Some(OneOrMany::One(t)) if t.contains("json"));
        if answer.file.is_some() || reply.body.is_empty() {
            return answer;
        }
        match String::from_utf8(reply.body) {
            Ok(text) => match if is_json { lossless(&text) } else { None } {
                Some(value) => answer.json = Some(value),
                None if readable(&text) => answer.text = Some(Lines::of(text)),
                None => answer.base64 = Some(STANDARD.encode(text)),
            },
            Err(e) => answer.base64 = Some(STANDARD.encode(e.into_bytes())),
        }
        answer
    }
}

/// The value of a text of JSON, where nothing but white space would change if it were written again.
fn lossless(text: &str) -> Option<Value> {
    let value = json::parse(text).ok()?;
    let mut packed = String::with_capacity(text.len());
    let (mut in_text, mut escaped) = (false, false);
    for c in text.chars() {
        match c {
            '"' if !escaped => in_text = !in_text,
            ' ' | '\t' | '\n' | '\r' if !in_text => continue,
            _ => {}
        }
        escaped = in_text && c == '\\' && !escaped;
        packed.push(c);
    }
    let again = value.to_string();
    (packed == again).then_some(value)
}

/// Whether a text may stand in a file that people read.
fn readable(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
