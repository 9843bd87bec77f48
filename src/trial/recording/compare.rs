//! Whether a request is the one that was recorded, and what differs where it is not: pure rules over values.
//! `***` in a recording stands for anything, because it is what became of a credential's value.

use crate::base::json;
use crate::net::tape::Hop;
use crate::service::secret::HIDDEN;
use serde_json::Value;
use std::collections::BTreeMap;
use url::Url;
use url::form_urlencoded::parse as pairs;

/// Bodies beyond this are recorded by their hash.
const LONG: usize = 16 << 10;
/// Headers of a request that change what comes back, and are recorded.
const TELLING: [&str; 4] = ["accept", "range", "if-none-match", "if-modified-since"];
/// Most characters of a value in a difference.
const SHOWN: usize = 80;

/// A request as it is recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// In capitals.
    pub method: String,
    /// The whole address, as a parser writes it.
    pub url: String,
    /// What the request must have; names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub sent: Sent,
}

/// A body as it is recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum Sent {
    /// There is none.
    Nothing,
    /// It does not matter.
    Any,
    /// JSON, which is equal where its values are.
    Json(Value),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// SHA-256, in hex.
    Hash(String),
}

/// A request as it is compared.
pub struct Question {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    content_type: String,
}

impl Question {
    /// Of a hop: a form with files loses its boundary, which is another one each time, and an address its fragment.
    pub fn of(hop: Hop) -> Question {
        let value = |name: &str| hop.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        let content_type = value("content-type").unwrap_or_default();
        let mut body = hop.body.unwrap_or_default();
        if let Some(boundary) = content_type.strip_prefix("multipart/form-data; boundary=") {
            body = replaced(&body, boundary.as_bytes(), b"boundary");
        }
        let url = hop.url.split('#').next().unwrap_or_default().to_owned();
        Question { method: hop.method, url, headers: hop.headers, body, content_type }
    }

    /// As it is recorded.
    pub fn asked(&self) -> Asked {
        let telling = self.headers.iter().filter(|(name, value)| {
            // A browser's own is in every request of that profile.
            TELLING.contains(&name.as_str()) && !(name == "accept" && value.starts_with("text/html,application/xhtml"))
        });
        Asked {
            method: self.method.clone(),
            url: self.url.clone(),
            headers: telling.cloned().collect(),
            sent: self.sent(),
        }
    }

    fn sent(&self) -> Sent {
        if self.body.is_empty() {
            return Sent::Nothing;
        }
        if self.body.len() > LONG {
            return Sent::Hash(self.hash());
        }
        if let Some(value) = self.json() {
            return Sent::Json(value);
        }
        match std::str::from_utf8(&self.body) {
            Ok(text) if !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) => {
                Sent::Text(text.to_owned())
            }
            _ => Sent::Bytes(self.body.clone()),
        }
    }

    fn json(&self) -> Option<Value> {
        if self.content_type.contains("json") { json::parse_bytes(&self.body).ok() } else { None }
    }

    /// Of JSON, that of its canonical text.
    fn hash(&self) -> String {
        use sha2::Digest;
        let canonical = self.json().map(|value| json::canonical(&value).into_bytes());
        let digest = sha2::Sha256::digest(canonical.as_ref().unwrap_or(&self.body));
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// `GET https://..`.
    pub fn shown(&self) -> String {
        format!("{} {}", self.method, clip(&self.url, 300))
    }
}

impl Asked {
    /// `GET https://..`.
    pub fn shown(&self) -> String {
        format!("{} {}", self.method, clip(&self.url, 300))
    }

    /// Whether the request is this one.
    pub fn fits(&self, question: &Question) -> bool {
        self.differences(question).is_empty()
    }

    /// What differs, in words; nothing where the request is this one. The most telling comes first.
    pub fn differences(&self, question: &Question) -> Vec<String> {
        let mut out = Vec::new();
        if self.method != question.method {
            out.push(format!("the method is {} there", self.method));
        }
        addresses(&self.url, &question.url, &mut out);
        for (name, value) in &self.headers {
            let given = question.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
            if !given.is_some_and(|given| alike(value, given)) {
                out.push(format!("the header `{name}` is `{}` there", clip(value, SHOWN)));
            }
        }
        if !self.sent.fits(question) {
            out.push(self.sent.difference(question));
        }
        out
    }

    /// How close a request comes that is not this one: higher is closer, 0 is another thing altogether.
    pub fn closeness(&self, question: &Question) -> usize {
        let (Ok(there), Ok(here)) = (Url::parse(&self.url), Url::parse(&question.url)) else { return 0 };
        if there.host_str() != here.host_str() {
            return usize::from(there.path() == here.path() && there.path() != "/");
        }
        2 + 8 * usize::from(alike(there.path(), here.path()))
            + 4 * usize::from(self.method == question.method)
            + 2 * usize::from(self.sent.fits(question))
            + usize::from(there.query() == here.query())
    }
}

impl Sent {
    fn fits(&self, question: &Question) -> bool {
        match self {
            Sent::Any => true,
            Sent::Nothing => question.body.is_empty(),
            // What was said to be JSON by hand is, whatever its header says.
            Sent::Json(value) => json::parse_bytes(&question.body).is_ok_and(|given| alike_json(value, &given)),
            Sent::Text(text) => std::str::from_utf8(&question.body).is_ok_and(|given| alike(text, given)),
            Sent::Bytes(bytes) => *bytes == question.body,
            Sent::Hash(hash) => *hash == question.hash(),
        }
    }

    fn difference(&self, question: &Question) -> String {
        let there = match self {
            Sent::Any | Sent::Nothing => "no body".to_owned(),
            Sent::Json(value) => {
                if let Ok(given) = json::parse_bytes(&question.body)
                    && let Some(place) = first_difference(value, &given, String::new())
                {
                    return place;
                }
                format!("`{}`", clip(&value.to_string(), SHOWN))
            }
            Sent::Text(text) => format!("`{}`", clip(text, SHOWN)),
            Sent::Bytes(bytes) => format!("{} bytes", bytes.len()),
            Sent::Hash(_) => "another one".to_owned(),
        };
        let here = match std::str::from_utf8(&question.body) {
            Ok("") => "there is none here".to_owned(),
            Ok(text) => format!("`{}` here", clip(text, SHOWN)),
            Err(_) => format!("{} bytes here", question.body.len()),
        };
        format!("the body is {there} there, {here}")
    }
}

fn addresses(there: &str, here: &str, out: &mut Vec<String>) {
    let split = |url: &str| {
        let (base, query) =
            url.split('#').next().unwrap_or_default().split_once('?').map_or((url, ""), |(b, q)| (b, q));
        let mut list: Vec<(String, String)> = pairs(query.as_bytes()).into_owned().collect();
        list.sort();
        (base.split('#').next().unwrap_or_default().to_owned(), list)
    };
    let ((base_there, there), (base_here, mut here)) = (split(there), split(here));
    if !alike(&base_there, &base_here) {
        out.push(format!("the address is {} there", clip(&base_there, SHOWN)));
        return;
    }
    let mut left = Vec::new();
    // Exact ones first, so that a `***` takes no other's value.
    for pair in there {
        match here.iter().position(|given| *given == pair) {
            Some(at) => drop(here.remove(at)),
            None => left.push(pair),
        }
    }
    for (name, value) in left {
        match here.iter().position(|(n, given)| *n == name && alike(&value, given)) {
            Some(at) => drop(here.remove(at)),
            None => match here.iter().position(|(n, _)| *n == name) {
                Some(at) => {
                    let (_, given) = here.remove(at);
                    let (value, given) = (clip(&value, SHOWN), clip(&given, SHOWN));
                    out.push(format!("the parameter `{name}` is `{value}` there, `{given}` here"));
                }
                None => out.push(format!("the parameter `{name}` (`{}`) is only there", clip(&value, SHOWN))),
            },
        }
    }
    out.extend(here.into_iter().map(|(name, _)| format!("the parameter `{name}` is only here")));
}

/// Whether `given` is `recorded`, where `***` is anything.
fn alike(recorded: &str, given: &str) -> bool {
    let Some((first, rest)) = recorded.split_once(HIDDEN) else { return recorded == given };
    let Some(mut left) = given.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once(HIDDEN).unwrap_or(("", rest));
    for part in middle.split(HIDDEN) {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

fn alike_json(recorded: &Value, given: &Value) -> bool {
    match (recorded, given) {
        (Value::String(recorded), Value::String(given)) => alike(recorded, given),
        (Value::Array(recorded), Value::Array(given)) => {
            recorded.len() == given.len() && recorded.iter().zip(given).all(|(r, g)| alike_json(r, g))
        }
        (Value::Object(recorded), Value::Object(given)) => {
            recorded.len() == given.len()
                && recorded.iter().all(|(key, r)| given.get(key).is_some_and(|g| alike_json(r, g)))
        }
        (Value::Number(recorded), Value::Number(given)) => {
            recorded == given || recorded.as_f64().is_some_and(|n| Some(n) == given.as_f64() && n.abs() < 9e15)
        }
        (recorded, given) => recorded == given,
    }
}

fn first_difference(there: &Value, here: &Value, path: String) -> Option<String> {
    if alike_json(there, here) {
        return None;
    }
    let shown = |path: &str| if path.is_empty() { "the body".to_owned() } else { format!("`{path}` of the body") };
    let inside = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (there, here) {
        (Value::Object(there), Value::Object(here)) => {
            let missing = there.iter().find_map(|(key, value)| match here.get(key) {
                None => Some(format!("{} is only there", shown(&inside(key)))),
                Some(given) => first_difference(value, given, inside(key)),
            });
            let more = || here.keys().find(|key| !there.contains_key(*key));
            missing.or_else(|| more().map(|key| format!("{} is only here", shown(&inside(key)))))
        }
        (Value::Array(there), Value::Array(here)) if there.len() == here.len() => {
            there.iter().zip(here).enumerate().find_map(|(i, (t, h))| first_difference(t, h, format!("{path}[{i}]")))
        }
        _ => {
            let (there, here) = (clip(&there.to_string(), SHOWN), clip(&here.to_string(), SHOWN));
            Some(format!("{} is `{there}` there, `{here}` here", shown(&path)))
        }
    }
}

fn clip(text: &str, most: usize) -> String {
    super::super::world::clip(&text.replace(['\n', '\r'], " "), most)
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while !from.is_empty()
        && let Some(at) = rest.windows(from.len()).position(|window| window == from)
    {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
