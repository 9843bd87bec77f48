//! What a resource of a session holds: the rest of a long result, or what a route of a plugin answers. It reads; which route
//! answers and who may ask is the dispatcher's.

use super::door::Door;
use crate::base::error::{Error, Kind};
use crate::service::files::Opened;
use crate::service::reply::{Content, Reply};
use crate::tool::dispatch::{CallHandle, Who};
use crate::tool::route::{Answer, Visit};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ErrorData, ResourceContents};
use std::fmt::Write as _;
use std::io::Read as _;
use std::sync::Arc;

/// What stands before a path of this host.
pub(super) const SCHEME: &str = "lapidary:";
/// Where routes of plugins begin.
const ROUTES: &str = "/api/plugin/";
/// Most characters of a long result that are read at once.
const PIECE: usize = 190_000;
/// Largest answer of a route: the other side holds all of it at once, and a third more.
const MOST: u64 = 16 << 20;

/// The rest of a long result, under the handle that its text names; `?from=N` begins at the character N.
pub(super) fn rest(door: &Door, uri: &str) -> Result<ResourceContents, ErrorData> {
    let (handle, from) = uri.split_once("?from=").unwrap_or((uri, "0"));
    let from = from
        .parse()
        .map_err(|_| ErrorData::invalid_params("`from` must be the number of a character, from 0 on", None))?;
    let part = door
        .host
        .dispatcher()
        .handles()
        .read(handle, from, PIECE)
        .map_err(|e| ErrorData::resource_not_found(e.to_string(), None))?;
    let mut text = part.text;
    if let Some(next) = part.next {
        let _ = write!(text, "\n\n[Of {} characters; the next begin at {handle}?from={next}]", part.total);
    }
    Ok(ResourceContents::text(text, uri))
}

/// Whether a resource is a route's answer; the path behind the scheme.
pub(super) fn route(uri: &str) -> Option<&str> {
    uri.strip_prefix(SCHEME).filter(|path| path.starts_with(ROUTES))
}

/// What the route at `path` answers to a request that reads. Routes are read of the plugins whose tools this door offers, and
/// of no other.
pub(super) async fn answer(
    door: &Door,
    uri: &str,
    path: &str,
    who: Who,
    handle: Arc<CallHandle>,
) -> Result<ResourceContents, ErrorData> {
    let failed = |e: &Error| {
        let told = format!("`{uri}`: {e}");
        match e.kind() {
            Kind::NotFound => ErrorData::resource_not_found(told, None),
            Kind::Internal => ErrorData::internal_error(told, None),
            _ => ErrorData::invalid_params(told, None),
        }
    };
    let nothing = || failed(&Error::not_found("nothing is at this address"));
    let path = path.split('#').next().unwrap_or(path);
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let Some((plugin, path)) = path.strip_prefix(ROUTES).and_then(|rest| rest.split_once('/')) else {
        return Err(nothing());
    };
    let snapshot = door.host.dispatcher().snapshot();
    let offered = door.list.current().offered.clone();
    if !offered.iter().filter_map(|name| snapshot.get(name)).any(|tool| *tool.plugin().name == *plugin) {
        return Err(nothing());
    }
    let visit = Visit {
        plugin: plugin.to_owned(),
        path: path.to_owned(),
        method: "GET".to_owned(),
        query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        headers: Vec::new(),
        data: Vec::new(),
        who,
        handle: Some(handle),
    };
    match door.host.dispatcher().visit(visit).await {
        Answer::Reply(reply) => contents(uri, *reply).await.map_err(|e| failed(&e)),
        Answer::Failed(e) => Err(failed(&e)),
        Answer::OtherMethods(_) => Err(failed(&Error::not_found("this address is not for reading"))),
    }
}

async fn contents(uri: &str, reply: Reply) -> Result<ResourceContents, Error> {
    if !(200..300).contains(&reply.status) {
        let kind = if matches!(reply.status, 404 | 410) { Kind::NotFound } else { Kind::UpstreamUnavailable };
        return Err(Error::new(kind, format!("the plugin answers {}", reply.status)));
    }
    let bytes = match reply.content {
        Content::Bytes(bytes) => {
            fits(bytes.len() as u64)?;
            Arc::unwrap_or_clone(bytes)
        }
        Content::File(file) => {
            fits(file.size)?;
            tokio::task::spawn_blocking(move || whole(&file))
                .await
                .map_err(|_| Error::internal("reading the file failed"))?
                .map_err(|e| crate::base::error::io("cannot read the file", &e))?
        }
    };
    let kind = reply.media_type.unwrap_or("application/octet-stream");
    let made = match String::from_utf8(bytes) {
        Ok(text) if is_text(kind) => ResourceContents::text(text, uri),
        Ok(text) => ResourceContents::blob(STANDARD.encode(text), uri),
        Err(other) => ResourceContents::blob(STANDARD.encode(other.as_bytes()), uri),
    };
    Ok(made.with_mime_type(kind))
}

fn fits(bytes: u64) -> Result<(), Error> {
    if bytes > MOST {
        return Err(Error::new(
            Kind::TooLarge,
            format!("it has {bytes} bytes, and at most {MOST} are sent as a resource"),
        )
        .hint("fetch it over HTTP from the address of this host"));
    }
    Ok(())
}

fn whole(file: &Opened) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // What was appended since it was opened is not asked for.
    (&file.file).take(file.size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_text(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or(kind).trim();
    kind.starts_with("text/")
        || matches!(kind, "application/json" | "application/xml" | "application/javascript" | "image/svg+xml")
}
