//! What every request passes before it reaches a route: `Host`, `Origin`, who asks and how often; for closed routes whether that is
//! somebody who may. Security headers on the way back. The rules themselves are in `access`, `keys` and `limit`.

use super::access::{self, Lacks};
use super::caller::{By, Caller};
use super::forward::{self, Client, Connection};
use super::headers;
use super::keys::{Keys, Known};
use super::limit;
use super::reply::{Refusal, read_within};
use super::route::Shared;
use crate::base::error::{self, Error};
use axum::Extension;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use std::sync::Arc;

/// What a page shows with every write, to prove that it is this host's own.
const PROOF: HeaderName = HeaderName::from_static("x-csrf-token");
/// The content type of streams.
const EVENTS: &[u8] = b"text/event-stream";
/// What a browser says about who made it send a request.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Lets in only who speaks to this server by its name, from none but its own pages, and not too often. Says to what follows who it
/// is: `Extension<Client>` always, `Extension<Caller>` for somebody who is known.
pub(super) async fn visitor(
    State(shared): State<Arc<Shared>>,
    connection: Option<Extension<Connection>>,
    mut request: Request,
    next: Next,
) -> Response {
    let connection = connection.map_or(Connection::HERE, |connection| connection.0);
    let mut response = match admit(&shared, &connection, &mut request) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    headers::secure(response.headers_mut());
    response
}

fn admit(shared: &Arc<Shared>, connection: &Connection, request: &mut Request) -> Result<(), Refusal> {
    let headers = request.headers();
    let mut client = forward::client(connection, headers, &shared.trusted);
    let host = text(headers, header::HOST);
    let Some(host) = host.filter(|host| shared.names.knows_host(host, connection.local)) else {
        return Err(stranger(StatusCode::MISDIRECTED_REQUEST));
    };
    // Who knows the server by its public name comes over what that name says, whatever is in between.
    client.is_https |= shared.secure_name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(host));
    let schemes = if client.is_https { access::SECURE } else { access::ANY };
    let knows = |origin: &str| shared.names.knows_origin(origin, host, schemes);
    if headers.contains_key(header::ORIGIN) && !text(headers, header::ORIGIN).is_some_and(knows) {
        return Err(stranger(StatusCode::FORBIDDEN));
    }
    let known = shared.keys.who(headers, &client);
    limits(shared, &known, &client).map_err(|ms| limit::later("too many requests", ms))?;
    let extensions = request.extensions_mut();
    extensions.insert(client);
    if let Known::Caller(caller) = known {
        note_use(shared, &caller);
        extensions.insert(caller);
    }
    Ok(())
}

fn stranger(status: StatusCode) -> Refusal {
    let error = Error::denied("this server does not answer to that name or to pages of that origin")
        .hint("name it under `hosts` or `origins` of [server] in user/lapidary.toml");
    Refusal::from(error).status(status)
}

/// Whether somebody asks too often, and how long to wait then.
fn limits(shared: &Shared, known: &Known, client: &Client) -> Result<(), u64> {
    let (now, limits) = (shared.keys.clock.unix_ms(), &shared.limits);
    let address = limit::neighbour(client.address);
    match known {
        Known::Caller(caller) => match &limits.callers {
            Some(all) => all.take(caller.name.clone(), now),
            None if client.is_here => Ok(()),
            None => limits.afar.take(caller.name.clone(), now),
        },
        Known::Tried => limits.tries.take(address, now),
        Known::Nobody if client.is_here => Ok(()),
        Known::Nobody => limits.strangers.take(address, now),
    }
}

/// Writes down, once an hour and beside the request, when somebody was last here.
fn note_use(shared: &Arc<Shared>, caller: &Caller) {
    let keys = shared.keys.clone();
    match &caller.by {
        By::Owner => {}
        By::Token(token) => {
            if keys.tokens.note_use(token) {
                let id = token.id.clone();
                tokio::task::spawn_blocking(move || written(keys.tokens.write_use(&id)));
            }
        }
        By::Session(live) => {
            if keys.sessions.note_use(&live.session) {
                let seal = live.session.seal;
                tokio::task::spawn_blocking(move || written(keys.sessions.write_use(seal)));
            }
        }
    }
}

/// Nobody waits for it, and it is tried again in an hour.
fn written(done: error::Result<()>) {
    if let Err(e) = done {
        tracing::warn!(code = e.code(), "a last use was not written down");
    }
}

/// Lets in only who is known, and a person only from the host's own pages. The body has arrived whole when a route gets it.
pub(super) async fn holder(
    State(shared): State<Arc<Shared>>,
    caller: Option<Extension<Caller>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(Extension(caller)) = caller else { return unknown() };
    if let Err(refused) = may_use(&caller, request.method(), request.headers()) {
        return refused.into_response();
    }
    if !request.body().is_end_stream() {
        let (parts, sent) = request.into_parts();
        request = match read_within(sent, limit::body(parts.uri.path())).await {
            Ok(sent) => Request::from_parts(parts, Body::from(sent)),
            Err(refused) => return refused.into_response(),
        };
    }
    let response = next.run(request).await;
    if response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(EVENTS)) {
        return response.map(|body| while_known(shared.keys.clone(), caller, body));
    }
    response
}

/// A stream that ends with the first event after its caller is not let in any more: a token that was revoked, a session that ended.
fn while_known(keys: Arc<Keys>, caller: Caller, body: Body) -> Body {
    let events = body.into_data_stream().take_while(move |_| std::future::ready(keys.still_know(&caller)));
    Body::from_stream(events)
}

/// Whether a caller may make this request, or what it is told instead.
pub(super) fn may_use(caller: &Caller, method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(live) = caller.session() else { return Ok(()) };
    let proof = || text(headers, PROOF).is_some_and(|given| live.is_csrf(given));
    match access::session(method, fetch_site(headers), proof) {
        Ok(()) => Ok(()),
        Err(Lacks::OwnPage) => Err(Error::denied("a page of another site may not use this session")
            .hint("open the address itself, or send a token")
            .into()),
        Err(Lacks::Proof) => {
            let error = Error::denied("a write of a page needs the session's token")
                .hint("send what GET /api/session gives as `csrf` in the header X-CSRF-Token");
            // A page can tell it by this, and ask for the token again: another tab may have signed in anew.
            Err(Refusal::from(error).with("needs", "csrf".into()))
        }
    }
}

/// What the browser says about who made it send a request; what cannot be read is another site.
pub(super) fn fetch_site(headers: &HeaderMap) -> Option<&str> {
    headers.contains_key(FETCH_SITE).then(|| text(headers, FETCH_SITE).unwrap_or("unreadable"))
}

fn unknown() -> Response {
    let error = Error::denied("this address wants to know who asks").hint(
        "send `Authorization: Bearer ..` with the token of user/webui/token or of `lapidary tokens add`; \
         a person signs in with the link of `lapidary sign-in`",
    );
    let refused = Refusal::from(error).status(StatusCode::UNAUTHORIZED);
    ([(header::WWW_AUTHENTICATE, "Bearer realm=\"lapidary\"")], refused).into_response()
}

/// Lets in programs only: what speaks MCP has a token, and a person's session is for the page.
pub(super) async fn program(Extension(caller): Extension<Caller>, request: Request, next: Next) -> Response {
    match caller.by {
        By::Owner | By::Token(_) => next.run(request).await,
        By::Session(_) => unknown(),
    }
}

/// The value of a header that stands once.
pub(super) fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    // Of two, one proxy would look at the first and another at the last.
    if values.next().is_some() { None } else { Some(value) }
}
