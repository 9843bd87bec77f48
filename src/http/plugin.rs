//! `/api/plugin/<name>/..`: a request handed to a plugin's route, and its answer as HTTP. It decides nothing about who may call
//! and runs no script: the dispatcher does.

use super::access;
use super::caller::Caller;
use super::gate::text;
use super::limit;
use super::range::{Asked, Known, Sent, choose};
use super::reply::{failure, read_body};
use super::route::Shared;
use crate::base::error::{Error, Kind, Result};
use crate::service::files::Opened;
use crate::service::reply::{Content, Reply};
use crate::service::time;
use crate::tool::dispatch::CallHandle;
use crate::tool::route::{Answer, Method, Visit};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use std::fmt::Write as _;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

/// Where routes stand.
pub(super) const PATH: &str = "/api/plugin/{plugin}/{*path}";
/// Bytes that are read of a file at once.
const CHUNK: u64 = 256 << 10;
/// What an answer of a plugin may do in a browser: be looked at.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox";
/// Headers that no script sees: what lets a caller in is not the plugin's to read.
const UNSEEN: [header::HeaderName; 4] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::PROXY_AUTHORIZATION,
    header::HeaderName::from_static("x-csrf-token"),
];
/// What a browser says it will do with an answer.
const FETCH_DEST: header::HeaderName = header::HeaderName::from_static("sec-fetch-dest");

/// Cancels the handler's call when nobody waits for its answer any more.
struct Waiting(Arc<CallHandle>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

pub(super) async fn serve(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let Some((plugin, path)) = parts.uri.path().strip_prefix("/api/plugin/").and_then(|rest| rest.split_once('/'))
    else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let (plugin, path) = (plugin.to_owned(), path.to_owned());
    if let Err(refused) = admit(&shared, &caller, &plugin, &path, &parts) {
        return failure(&refused);
    }
    let data = match read_body(body).await {
        Ok(data) => data,
        Err(refused) => return refused.into_response(),
    };
    let query = parts.uri.query().unwrap_or_default();
    let waiting = Waiting(Arc::default());
    let visit = Visit {
        plugin: plugin.clone(),
        path,
        method: parts.method.as_str().to_owned(),
        query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        headers: visible(&parts.headers),
        data: data.into(),
        who: caller.who(),
        handle: Some(waiting.0.clone()),
    };
    let answer = shared.host.dispatcher().visit(visit).await;
    drop(waiting);
    let mut response = match answer {
        Answer::Reply(reply) if !leads_well(&reply, &plugin, &parts.method) => failure(
            &Error::new(Kind::Internal, "a route answered a write with a redirect that repeats it elsewhere")
                .hint("use status 303, or lead to a route of the same plugin"),
        ),
        Answer::Reply(reply) => respond(*reply, &parts.headers, parts.method.as_str()),
        Answer::Failed(e) => failure(&e),
        Answer::OtherMethods(methods) => other_methods(&methods),
    };
    let headers = response.headers_mut();
    // Browsers that do not say what a file is for take a page's scripts and styles by their kind.
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if caller.session().is_some() && kind.is_some_and(access::acts_in_a_page) {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    super::headers::of_document(headers);
    response
}

/// Whether this may be asked of a plugin's route now: a person's browser must not run what it gives, and nobody asks without end.
fn admit(shared: &Shared, caller: &Caller, plugin: &str, path: &str, parts: &Parts) -> Result<()> {
    let destination = parts.headers.contains_key(FETCH_DEST).then(|| text(&parts.headers, FETCH_DEST).unwrap_or(""));
    if caller.session().is_some() && !access::is_harmless(destination) {
        return Err(Error::denied("what a plugin gives is not run, and not put into pages")
            .hint("open its address itself, or ask for it as a program does, with a token"));
    }
    let (now, who) = (shared.keys.clock.unix_ms(), (caller.name.clone(), plugin.to_owned()));
    let taken = if !access::only_reads(&parts.method) {
        shared.limits.writes.take(who, now)
    } else if shared.host.dispatcher().is_media(plugin, path) {
        Ok(())
    } else {
        shared.limits.reads.take(who, now)
    };
    taken.map_err(|ms| limit::later("too many requests to this plugin", ms))
}

fn leads_well(reply: &Reply, plugin: &str, method: &http::Method) -> bool {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply.location.as_deref().is_none_or(|location| access::may_lead(plugin, method, status, location))
}

fn visible(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .filter(|(name, _)| !UNSEEN.contains(name))
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect()
}

fn other_methods(methods: &[Method]) -> Response {
    let mut words: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
    if methods.contains(&Method::Get) {
        words.push("HEAD");
    }
    let mut response = StatusCode::METHOD_NOT_ALLOWED.into_response();
    set(response.headers_mut(), header::ALLOW, &words.join(", "));
    response
}

/// Sets a header; what cannot stand in one is left out, never cut to fit.
fn set(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

fn respond(reply: Reply, asked: &HeaderMap, method: &str) -> Response {
    let is_head = method == "HEAD";
    let mut response = match reply.content {
        Content::File(file) => of_file(&file, asked, method),
        Content::Bytes(bytes) => {
            let length = bytes.len();
            let body = if is_head { Body::empty() } else { Body::from(Arc::unwrap_or_clone(bytes)) };
            let mut response = Response::new(body);
            if is_head && reply.media_type.is_some() {
                set(response.headers_mut(), header::CONTENT_LENGTH, &length.to_string());
            }
            *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            response
        }
    };
    let has_content =
        response.status() != StatusCode::NOT_MODIFIED && response.status() != StatusCode::RANGE_NOT_SATISFIABLE;
    let headers = response.headers_mut();
    if let Some(kind) = reply.media_type.filter(|_| has_content) {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    if let Some(location) = &reply.location {
        set(headers, header::LOCATION, location);
    }
    if let Some(name) = &reply.save_as {
        set(headers, header::CONTENT_DISPOSITION, &disposition(name));
    }
    response
}

/// A file, or the part of it that was asked for.
fn of_file(file: &Arc<Opened>, asked: &HeaderMap, method: &str) -> Response {
    let etag = format!("\"{:x}-{:x}\"", file.modified_ns, file.size);
    let modified = time::http_date(file.modified_ns);
    let asked = Asked {
        range: text(asked, header::RANGE).filter(|_| method == "GET"),
        if_range: text(asked, header::IF_RANGE),
        if_none_match: text(asked, header::IF_NONE_MATCH).filter(|_| matches!(method, "GET" | "HEAD")),
        if_modified_since: text(asked, header::IF_MODIFIED_SINCE).filter(|_| matches!(method, "GET" | "HEAD")),
    };
    let known = Known { size: file.size, etag: &etag, modified: modified.as_deref() };
    let (status, part) = match choose(&asked, &known) {
        Sent::Whole => (StatusCode::OK, Some((0, file.size))),
        Sent::Part(first, last) => (StatusCode::PARTIAL_CONTENT, Some((first, last + 1 - first))),
        Sent::Unchanged => (StatusCode::NOT_MODIFIED, None),
        Sent::OutOfRange => (StatusCode::RANGE_NOT_SATISFIABLE, None),
    };
    let body =
        part.filter(|_| method != "HEAD").map_or_else(Body::empty, |(from, length)| stream(file.clone(), from, length));
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if let Some((from, length)) = part {
        set(headers, header::CONTENT_LENGTH, &length.to_string());
        if status == StatusCode::PARTIAL_CONTENT {
            set(headers, header::CONTENT_RANGE, &format!("bytes {from}-{}/{}", from + length - 1, file.size));
        }
    }
    if status == StatusCode::RANGE_NOT_SATISFIABLE {
        set(headers, header::CONTENT_RANGE, &format!("bytes */{}", file.size));
    }
    set(headers, header::ETAG, &etag);
    if let Some(modified) = &modified {
        set(headers, header::LAST_MODIFIED, modified);
    }
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // It may be kept, and is asked for again before it is used.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}

/// The bytes of a file from a place on, read as they are wanted.
fn stream(file: Arc<Opened>, from: u64, length: u64) -> Body {
    let chunks = futures_util::stream::try_unfold((from, length), move |(at, left)| {
        let file = file.clone();
        async move {
            if left == 0 {
                return Ok(None);
            }
            let read = tokio::task::spawn_blocking(move || chunk(&file, at, left.min(CHUNK)));
            let bytes = read.await.map_err(std::io::Error::other)??;
            let count = bytes.len() as u64;
            Ok::<_, std::io::Error>(Some((bytes, (at + count, left - count))))
        }
    });
    Body::from_stream(chunks)
}

/// Exactly so many bytes. A file that has become shorter ends the answer early, which the other side sees.
fn chunk(file: &Opened, at: u64, count: u64) -> std::io::Result<Bytes> {
    let mut handle = &file.file;
    handle.seek(SeekFrom::Start(at))?;
    let mut bytes = vec![0; usize::try_from(count).map_err(std::io::Error::other)?];
    handle.read_exact(&mut bytes)?;
    Ok(bytes.into())
}

/// A name to save under: in plain characters for old clients, and whole.
pub(super) fn disposition(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || " ._-()".contains(c) { c } else { '_' }).collect();
    let mut whole = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            whole.push(char::from(byte));
        } else {
            let _ = write!(whole, "%{byte:02X}");
        }
    }
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{whole}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_to_save_under_is_one_value_of_one_header() {
        let rows = [
            ("song.mp3", "attachment; filename=\"song.mp3\"; filename*=UTF-8''song.mp3"),
            ("a b.mp3", "attachment; filename=\"a b.mp3\"; filename*=UTF-8''a%20b.mp3"),
            ("ž.mp3", "attachment; filename=\"_.mp3\"; filename*=UTF-8''%C5%BE.mp3"),
            ("a\"; x=\"b\r\nc", "attachment; filename=\"a__ x__b__c\"; filename*=UTF-8''a%22%3B%20x%3D%22b%0D%0Ac"),
        ];
        for (name, expected) in rows {
            assert_eq!(disposition(name), expected);
        }
    }
}
