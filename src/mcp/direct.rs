//! Tool calls over HTTP that need nothing of the SDK's session: no progress, no stream. They are answered in the response to the
//! request, which costs a third of the way through a session. Everything unusual about a request goes the long way.

use super::server::{Introduced, answer};
use crate::script::ctx::NoSink;
use crate::tool::dispatch::{Arguments, Call, CallHandle};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Response, StatusCode, header};
use rmcp::model::{
    CallToolRequest, ClientNotification, ClientRequest, JsonRpcMessage, JsonRpcRequest, NumberOrString,
    ProtocolVersion, ServerJsonRpcMessage, ServerResult,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// A session that the SDK hears nothing of is forgotten after an hour, so now and then a call goes the long way.
const LONG_WAY: Duration = Duration::from_secs(300);

/// The sessions whose clients have introduced themselves.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Known>>);

struct Known {
    session: Weak<Introduced>,
    /// When the SDK last heard of it.
    heard: Instant,
    running: HashMap<NumberOrString, Arc<CallHandle>>,
}

impl Sessions {
    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a session under the id that its client sends.
    pub(super) fn add(&self, headers: &HeaderMap, session: &Arc<Introduced>) {
        let Some(id) = only(headers, &SESSION) else { return };
        let mut known = self.known();
        known.retain(|_, k| k.session.strong_count() > 0);
        known.insert(
            id.to_owned(),
            Known { session: Arc::downgrade(session), heard: Instant::now(), running: HashMap::new() },
        );
    }

    /// The session is about to be heard of by the SDK.
    pub(super) fn heard(&self, headers: &HeaderMap) {
        let Some(id) = only(headers, &SESSION) else { return };
        if let Some(known) = self.known().get_mut(id) {
            known.heard = Instant::now();
        }
    }

    /// Stops the call that a `notifications/cancelled` names, if it is one of these.
    pub(super) fn cancel(&self, headers: &HeaderMap, message: &ClientNotification) -> Option<Response<Bytes>> {
        let ClientNotification::CancelledNotification(cancelled) = message else { return None };
        let of = cancelled.params.request_id.as_ref()?;
        let known = self.known();
        known.get(only(headers, &SESSION)?)?.running.get(of)?.cancel();
        Some(response(StatusCode::ACCEPTED, Bytes::new()))
    }
}

/// A call that can be answered at once.
pub(super) struct Direct {
    session: Arc<Introduced>,
    id: String,
    request: NumberOrString,
    call: CallToolRequest,
}

impl Direct {
    /// The call that a request is, where it may take the short way.
    pub(super) fn of(
        sessions: &Sessions,
        headers: &HeaderMap,
        message: JsonRpcRequest<ClientRequest>,
    ) -> Option<Direct> {
        let ClientRequest::CallToolRequest(call) = message.request else { return None };
        // What stands in `_meta` may ask for progress.
        if !call.extensions.is_empty() || !is_plain(headers) {
            return None;
        }
        let id = only(headers, &SESSION)?;
        let session = {
            let known = sessions.known();
            let known = known.get(id)?;
            if known.heard.elapsed() >= LONG_WAY {
                return None;
            }
            known.session.upgrade()?
        };
        Some(Direct { session, id: id.to_owned(), request: message.id, call })
    }

    /// The id of its session.
    pub(super) fn session(&self) -> &str {
        &self.id
    }

    /// Runs the call and answers it. A client that goes away has not taken its call back, so the script goes on.
    pub(super) async fn run(self) -> Response<Bytes> {
        let door = self.session.door.clone();
        let rendered = door.list.current();
        let mut who = self.session.who();
        who.allowed = Some(rendered.offered.clone());
        let handle = Arc::new(CallHandle::default());
        let _running = Listed::new(self.session.clone(), self.id, self.request.clone(), &handle);
        let params = self.call.params;
        let call = Call {
            tool: params.name.into_owned(),
            arguments: Arguments::Object(params.arguments.unwrap_or_default()),
            who,
            sink: Arc::new(NoSink),
            snapshot: None,
            handle: Some(handle.clone()),
        };
        let call = door.host.dispatcher().call_async(call);
        tokio::pin!(call);
        let outcome = tokio::select! {
            biased;
            outcome = &mut call => outcome,
            () = door.told_to_stop() => {
                handle.cancel();
                call.await
            }
        };
        let message: ServerJsonRpcMessage = match answer(outcome, &rendered) {
            Ok(mut result) => {
                // A word of the revision without sessions.
                result.result_type = None;
                JsonRpcMessage::response(ServerResult::CallToolResult(result), self.request)
            }
            Err(error) => JsonRpcMessage::error(error, Some(self.request)),
        };
        match serde_json::to_vec(&message) {
            Ok(bytes) => response(StatusCode::OK, bytes.into()),
            Err(e) => {
                tracing::error!(error = %e, "a result cannot be written as JSON");
                response(StatusCode::INTERNAL_SERVER_ERROR, Bytes::new())
            }
        }
    }
}

/// A running call, where its cancellation finds it.
struct Listed {
    session: Arc<Introduced>,
    id: String,
    request: NumberOrString,
}

impl Listed {
    fn new(session: Arc<Introduced>, id: String, request: NumberOrString, handle: &Arc<CallHandle>) -> Listed {
        if let Some(known) = session.door.sessions.known().get_mut(&id) {
            known.running.insert(request.clone(), handle.clone());
        }
        Listed { session, id, request }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(known) = self.session.door.sessions.known().get_mut(&self.id) {
            known.running.remove(&self.request);
        }
    }
}

/// Whether the headers are those of a client that speaks a revision with sessions and takes JSON, and say nothing more.
fn is_plain(headers: &HeaderMap) -> bool {
    let accepts = |what: &str| {
        only(headers, &header::ACCEPT)
            .is_some_and(|accept| accept.split(',').any(|one| one.trim().eq_ignore_ascii_case(what)))
    };
    let is_json = only(headers, &header::CONTENT_TYPE)
        .is_some_and(|kind| kind.split(';').next().unwrap_or(kind).trim().eq_ignore_ascii_case("application/json"));
    let version = !headers.contains_key(&VERSION)
        || only(headers, &VERSION).is_some_and(|version| {
            ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version && known.has_initialize())
        });
    // `Mcp-Method`, `Mcp-Name` and their kind repeat the body; whether they agree is the SDK's to check.
    let more = headers.keys().any(|name| name.as_str().starts_with("mcp-") && *name != SESSION && *name != VERSION);
    version && is_json && !more && accepts("application/json") && accepts("text/event-stream")
}

/// The value of a header that stands once and is text.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() { None } else { Some(value) }
}

/// The answer to what is no message.
pub(super) fn refused(reply: Vec<u8>) -> Response<Bytes> {
    response(StatusCode::BAD_REQUEST, reply.into())
}

fn response(status: StatusCode, body: Bytes) -> Response<Bytes> {
    let is_empty = body.is_empty();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if !is_empty {
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    }
    response
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_request_goes_the_short_way() {
        let both = ("accept", "application/json, text/event-stream");
        let json = ("content-type", "application/json; charset=utf-8");
        let rows: [(&[(&str, &str)], bool); 11] = [
            (&[both, json], true),
            (&[("accept", "text/event-stream,Application/JSON"), json], true),
            (&[both, json, ("mcp-session-id", "x"), ("mcp-protocol-version", "2025-11-25")], true),
            (&[both, json, ("mcp-protocol-version", "2026-07-28")], false),
            (&[both, json, ("mcp-protocol-version", "1999-01-01")], false),
            (&[both, json, ("mcp-method", "tools/call")], false),
            (&[both, json, ("mcp-param-x", "1")], false),
            (&[("accept", "application/json"), json], false),
            (&[("accept", "application/json;q=0, text/event-stream"), json], false),
            (&[both, ("content-type", "text/plain")], false),
            (&[both], false),
        ];
        for (headers, plain) in rows {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
            }
            assert_eq!(is_plain(&map), plain, "{headers:?}");
        }
    }
}
