//! Routes of plugins: which one a path means, and running its handler by the rules of a tool call. It knows no sockets.

use super::dispatch::{Call, CallHandle, Dispatcher, Outcome, Who, ended};
use super::journal::Called;
use super::registry::{Code, LiveTool};
use crate::base::error::{Error, Kind, Result};
use crate::base::json;
use crate::script::ctx::{Credentials, Ctx, NoSink};
use crate::script::{control, pool, value};
use crate::service::reply::Reply;
use rhai::{Array, Blob, Dynamic, Map};
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;

/// Most characters of a path behind the plugin's name.
const MAX_PATH: usize = 2000;
/// Most segments of a path.
const MAX_SEGMENTS: usize = 32;

/// A method that a route may have. `HEAD` is what the door makes of `GET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// Reads.
    Get,
    /// Sends.
    Post,
    /// Puts in place.
    Put,
    /// Takes away.
    Delete,
}

impl Method {
    /// The word of a request and of a manifest.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }

    /// Reads the word, in capitals.
    #[must_use]
    pub fn parse(word: &str) -> Option<Method> {
        [Method::Get, Method::Post, Method::Put, Method::Delete].into_iter().find(|m| m.as_str() == word)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Param(String),
}

/// The path of a route, such as `song/{id}`; a parameter stands for exactly one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<Segment>);

impl Pattern {
    /// Reads a path of a manifest; a `/` before it changes nothing.
    ///
    /// # Errors
    /// `invalid_arguments` for an empty path, a segment of other characters than letters, digits and `. _ - ~`, a parameter
    /// that is no identifier, stands twice or has the name of something else that a handler is given.
    pub fn parse(text: &str) -> Result<Pattern> {
        let bad = |what: String| Err(Error::invalid(what).hint("write it as `song/{id}`"));
        let mut segments = Vec::new();
        for part in text.strip_prefix('/').unwrap_or(text).split('/') {
            let shown = part.escape_debug();
            if let Some(name) = part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                let fits = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                if !fits {
                    return bad(format!("the parameter `{shown}` of a route is no identifier"));
                }
                if GIVEN.contains(&name) {
                    return bad(format!("`{name}` is what every handler is given, and no parameter of a path"));
                }
                if segments.iter().any(|s| matches!(s, Segment::Param(other) if other == name)) {
                    return bad(format!("the parameter `{name}` stands twice"));
                }
                segments.push(Segment::Param(name.to_owned()));
            } else if !part.is_empty()
                && !matches!(part, "." | "..")
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-~".contains(&b))
            {
                segments.push(Segment::Literal(part.to_owned()));
            } else {
                return bad(format!("`{shown}` is no part of a route's path"));
            }
        }
        if segments.len() > MAX_SEGMENTS {
            return bad(format!("a route's path has at most {MAX_SEGMENTS} parts"));
        }
        Ok(Pattern(segments))
    }

    /// The names of its parameters.
    pub fn params(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|s| match s {
            Segment::Param(name) => Some(name.as_str()),
            Segment::Literal(_) => None,
        })
    }

    /// Whether the two mean the very same paths.
    #[must_use]
    pub fn is_same_as(&self, other: &Pattern) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|pair| match pair {
                (Segment::Literal(a), Segment::Literal(b)) => a == b,
                (Segment::Param(_), Segment::Param(_)) => true,
                _ => false,
            })
    }

    fn fits(&self, path: &[String]) -> bool {
        self.0.len() == path.len()
            && self.0.iter().zip(path).all(|(s, part)| !matches!(s, Segment::Literal(text) if text != part))
    }

    /// What it is chosen by where several fit: the one that is written out further from the left.
    fn literals(&self) -> Vec<bool> {
        self.0.iter().map(|s| matches!(s, Segment::Literal(_))).collect()
    }

    fn param<'a>(&self, name: &str, path: &'a [String]) -> Option<&'a str> {
        let at = self.0.iter().position(|s| matches!(s, Segment::Param(own) if own == name))?;
        path.get(at).map(String::as_str)
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, segment) in self.0.iter().enumerate() {
            let slash = if i == 0 { "" } else { "/" };
            match segment {
                Segment::Literal(text) => write!(f, "{slash}{text}")?,
                Segment::Param(name) => write!(f, "{slash}{{{name}}}")?,
            }
        }
        Ok(())
    }
}

/// What every handler may take, by these names, beside the parameters of its path.
pub const GIVEN: [&str; 5] = ["query", "body", "settings", "credentials", "request"];

/// One route that answers.
pub struct LiveRoute {
    /// Its method.
    pub method: Method,
    /// Its path.
    pub pattern: Arc<Pattern>,
    /// Whether it gives out media, which players ask for in many pieces.
    pub media: bool,
    /// The names of its handler's parameters, in order.
    pub takes: Arc<[String]>,
    /// Its handler, with whose it is and what it needs.
    pub tool: Arc<LiveTool>,
}

/// The parts of a path as a request has it, decoded; `None` for one that could mean anything but names one below another.
#[must_use]
pub fn segments(path: &str) -> Option<Vec<String>> {
    if path.len() > MAX_PATH {
        return None;
    }
    let parts: Vec<String> = path.split('/').take(MAX_SEGMENTS + 1).map(decoded).collect::<Option<_>>()?;
    (parts.len() <= MAX_SEGMENTS).then_some(parts)
}

fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    let text = String::from_utf8(bytes).ok()?;
    let plain = !text.is_empty()
        && !matches!(text.as_str(), "." | "..")
        && !text.chars().any(|c| c.is_control() || matches!(c, '/' | '\\'));
    plain.then_some(text)
}

/// One request for a route.
pub struct Visit {
    /// The plugin's name, as it stands in the address.
    pub plugin: String,
    /// The path behind it, not decoded.
    pub path: String,
    /// The method's word.
    pub method: String,
    /// The query, decoded.
    pub query: Vec<(String, String)>,
    /// Headers that a script may see, names in lower case.
    pub headers: Vec<(String, String)>,
    /// What was sent.
    pub data: Vec<u8>,
    /// Who asks.
    pub who: Who,
    /// Filled with the control of the handler's call.
    pub handle: Option<Arc<CallHandle>>,
}

/// What comes of a visit.
pub enum Answer {
    /// The handler's answer.
    Reply(Box<Reply>),
    /// There is no such route, it was refused, or its handler failed.
    Failed(Error),
    /// The path has other methods.
    OtherMethods(Vec<Method>),
}

impl Dispatcher {
    /// Runs the handler of a route on a call thread.
    pub async fn visit(self: &Arc<Self>, visit: Visit) -> Answer {
        let me = self.clone();
        let done = if pool::is_call_thread() { None } else { self.pool().run_async(move || me.serve(visit)).await };
        done.unwrap_or_else(|| Answer::Failed(Error::internal("the host failed while running this route")))
    }

    /// Whether a path of a plugin, not decoded, is answered with media when it is read.
    #[must_use]
    pub fn is_media(&self, plugin: &str, path: &str) -> bool {
        let snapshot = self.snapshot();
        let routes = snapshot.routes_of(plugin);
        routes.iter().any(|r| r.media)
            && segments(path)
                .is_some_and(|path| chosen(&fitting(routes, &path), Some(Method::Get)).is_some_and(|r| r.media))
    }

    fn serve(self: &Arc<Self>, visit: Visit) -> Answer {
        let nothing = || Answer::Failed(Error::not_found("nothing is at this address"));
        let Some(path) = segments(&visit.path) else { return nothing() };
        let snapshot = self.snapshot();
        let fitting = fitting(snapshot.routes_of(&visit.plugin), &path);
        let method = Method::parse(if visit.method == "HEAD" { "GET" } else { &visit.method });
        match chosen(&fitting, method) {
            Some(route) => self.answer(route, visit, &path),
            None if fitting.is_empty() => nothing(),
            None => {
                let mut methods: Vec<Method> = fitting.iter().map(|r| r.method).collect();
                methods.sort_unstable();
                methods.dedup();
                Answer::OtherMethods(methods)
            }
        }
    }

    fn answer(self: &Arc<Self>, route: &LiveRoute, visit: Visit, path: &[String]) -> Answer {
        let start = Instant::now();
        let tool = &route.tool;
        let body = body_of(&visit);
        let query: serde_json::Map<String, Value> =
            visit.query.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        let params =
            route.pattern.params().filter_map(|name| Some((name.to_owned(), route.pattern.param(name, path)?.into())));
        let mut given: serde_json::Map<String, Value> = params.collect();
        given.insert("query".into(), Value::Object(query));
        given.insert("body".into(), Value::Object(body));
        let mut call = Call::new(&*tool.name, given.clone(), visit.who.clone());
        call.sink = Arc::new(NoSink);
        call.handle = visit.handle.clone();
        let scopes = self.scopes_of(&call.who);
        let refused = |e: Error| (ended(tool.plugin().name.clone(), 0, Err(e.clone())), Err(e));
        let (mut outcome, reply) = match (self.admit(&call, tool, 0, &scopes), &tool.code) {
            (Err(e), _) => refused(e),
            (Ok(()), Code::Native(..)) => refused(Error::internal("a route is a function of a script")),
            (Ok(()), Code::Script(unit)) => {
                let ctx = self.context(&call, None, tool, &unit.plugin, unit.budget, unit.imports.clone(), scopes);
                let ran =
                    self.evaluate(&ctx, unit, &tool.function, 0, || arguments(route, &visit, &given, &ctx), reply_of);
                let done = match ctx.redactor() {
                    Some(redactor) => ran.done.map(|reply| reply.without(&redactor)).map_err(|e| redactor.error(e)),
                    None => ran.done,
                };
                let done = done.map_err(|e| self.tame(e));
                let told = done.as_ref().map(|_| String::new()).map_err(Clone::clone);
                let outcome = Outcome {
                    diagnostic: ran.diagnostic,
                    operations: ran.operations,
                    memory: ran.memory,
                    ..ended(unit.plugin.name.clone(), unit.generation, told)
                };
                (outcome, done)
            }
        };
        self.told(call, Called::Route, &mut outcome, start);
        match reply {
            Ok(reply) => Answer::Reply(Box::new(reply)),
            Err(e) => Answer::Failed(e),
        }
    }
}

/// The routes whose path this is.
fn fitting<'a>(routes: &'a [Arc<LiveRoute>], path: &[String]) -> Vec<&'a LiveRoute> {
    routes.iter().map(|r| &**r).filter(|r| r.pattern.fits(path)).collect()
}

/// The one of them that answers a method.
fn chosen<'a>(fitting: &[&'a LiveRoute], method: Option<Method>) -> Option<&'a LiveRoute> {
    fitting.iter().copied().filter(|r| Some(r.method) == method).max_by_key(|r| r.pattern.literals())
}

/// The JSON object that was sent; empty where it was something else.
fn body_of(visit: &Visit) -> serde_json::Map<String, Value> {
    let kind = visit.headers.iter().find(|(name, _)| name == "content-type").map_or("", |(_, value)| value.as_str());
    if visit.data.is_empty() || matches!(visit.method.as_str(), "GET" | "HEAD") || kind.starts_with("multipart/") {
        return serde_json::Map::new();
    }
    let parsed = std::str::from_utf8(&visit.data).ok().and_then(|text| json::parse_untrusted(text).ok());
    match parsed {
        Some(Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    }
}

/// What the handler takes, by the names of its parameters.
fn arguments(
    route: &LiveRoute,
    visit: &Visit,
    given: &serde_json::Map<String, Value>,
    ctx: &Ctx,
) -> Result<Vec<Dynamic>> {
    let one = |name: &String| -> Result<Dynamic> {
        Ok(match name.as_str() {
            "settings" => Dynamic::from_map((*ctx.settings).clone()),
            "credentials" => Dynamic::from(Credentials),
            "request" => request(visit)?,
            other => given.get(other).map_or(Ok(Dynamic::UNIT), value::from_json)?,
        })
    };
    route.takes.iter().map(one).collect()
}

fn request(visit: &Visit) -> Result<Dynamic> {
    control::reserve(visit.data.len())?;
    let headers: Map =
        visit.headers.iter().map(|(name, value)| (name.as_str().into(), Dynamic::from(value.clone()))).collect();
    let mut map = Map::new();
    map.insert("method".into(), visit.method.clone().into());
    map.insert("path".into(), visit.path.clone().into());
    map.insert("headers".into(), Dynamic::from_map(headers));
    map.insert("data".into(), Dynamic::from_blob(Blob::from(visit.data.clone())));
    Ok(Dynamic::from_map(map))
}

/// What a handler returned, as an answer.
fn reply_of(value: Dynamic) -> Result<Reply> {
    let value = match value.try_cast_result::<Reply>() {
        Ok(reply) => return Ok(reply),
        Err(other) => other,
    };
    if value.is_unit() {
        return Ok(Reply::nothing());
    }
    if value.is_string() {
        let text = value.into_string().unwrap_or_default();
        return Reply::of(text.into_bytes(), "text/plain; charset=utf-8", 200);
    }
    if value.is_blob() {
        return Err(Error::new(Kind::Internal, "a route returned a blob, which says nothing of its kind")
            .hint("write it with files::write_blob and return routes::file(path)"));
    }
    let pair = value.read_lock::<Array>().and_then(|pair| match pair.as_slice() {
        [first, second] if first.is_map() => Some((first.clone(), second.as_int().ok()?)),
        _ => None,
    });
    let (value, status) = pair.unwrap_or((value, 200));
    let json = value::to_json(&value).map_err(|e| e.context("the answer"))?;
    Reply::of(json.to_string().into_bytes(), "application/json", status)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_words_and_parameters() {
        for (text, shown) in [("a", "a"), ("/a/{id}", "a/{id}"), ("{x}/b.c/{y}", "{x}/b.c/{y}"), ("A-b_c~1", "A-b_c~1")]
        {
            assert_eq!(Pattern::parse(text).unwrap().to_string(), shown);
        }
        let long = vec!["a"; MAX_SEGMENTS + 1].join("/");
        for bad in [
            "", "/", "//a", "a/", "a//b", "../a", "a/.", "{", "{}", "{a-b}", "a{b}", "{1}", "{a}/{a}", "{body}", "a b",
            "é", "a%20", "a?b", &long,
        ] {
            assert_eq!(Pattern::parse(bad).unwrap_err().kind(), Kind::InvalidArguments, "{bad:?}");
        }
        let same = |a: &str, b: &str| Pattern::parse(a).unwrap().is_same_as(&Pattern::parse(b).unwrap());
        assert!(same("a/{x}", "/a/{y}") && !same("a/{x}", "a/x") && !same("a", "a/b"));
    }

    #[test]
    fn a_path_is_decoded_by_segment_and_never_leaves_itself() {
        let rows: [(&str, Option<&[&str]>); 22] = [
            ("a", Some(&["a"])),
            ("a/b", Some(&["a", "b"])),
            ("a%20b/c+d", Some(&["a b", "c+d"])),
            ("%C5%BE", Some(&["ž"])),
            ("...", Some(&["..."])),
            ("%2e%2e%2e", Some(&["..."])),
            ("", None),
            ("a/", None),
            ("/a", None),
            ("a//b", None),
            ("..", None),
            ("a/../b", None),
            ("%2e%2e/b", None),
            ("%2E/b", None),
            ("a%2fb", None),
            ("a%5cb", None),
            ("a\\b", None),
            ("a%00", None),
            ("a%0d%0ab", None),
            ("a%", None),
            ("a%zz", None),
            ("%ff", None),
        ];
        for (path, expected) in rows {
            let parts = segments(path);
            assert_eq!(
                parts.as_deref().map(|p| p.iter().map(String::as_str).collect::<Vec<_>>()).as_deref(),
                expected,
                "{path}"
            );
        }
        assert!(segments(&"a/".repeat(MAX_SEGMENTS)).is_none() && segments(&"a".repeat(MAX_PATH + 1)).is_none());
    }

    #[test]
    fn what_is_written_out_comes_before_a_parameter() {
        let path = segments("a/b").unwrap();
        let fits = |text: &str| Pattern::parse(text).unwrap().fits(&path);
        assert!(fits("a/b") && fits("a/{x}") && fits("{x}/b") && !fits("a") && !fits("a/c") && !fits("a/b/c"));
        let mut all: Vec<Pattern> = ["{x}/{y}", "a/{x}", "a/b", "{x}/b"].map(|t| Pattern::parse(t).unwrap()).into();
        all.sort_by_key(Pattern::literals);
        assert_eq!(all.iter().rev().map(Pattern::to_string).collect::<Vec<_>>(), ["a/b", "a/{x}", "{x}/b", "{x}/{y}"]);
        assert_eq!(all[2].param("x", &path), Some("b"));
    }
}
