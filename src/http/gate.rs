//! What every request passes before it reaches a route: `Host`, `Origin`, and for closed routes whoever calls; security headers
//! on the way back. The rules themselves are in `access`.

use super::caller::{By, Caller};
use super::reply::body;
use super::route::Shared;
use crate::base::error::Error;
use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;
use std::sync::Arc;

/// The address that a connection came in on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Local(pub(super) IpAddr);

/// Lets in only who speaks to this server by its name, and from none but its own pages.
pub(super) async fn visitor(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let local = request.extensions().get::<Local>().map_or(IpAddr::from([127, 0, 0, 1]), |local| local.0);
    let headers = request.headers();
    let host = text(headers, header::HOST);
    let refused = if !host.is_some_and(|host| shared.names.knows_host(host, local)) {
        Some(StatusCode::MISDIRECTED_REQUEST)
    } else if headers.contains_key(header::ORIGIN)
        && !text(headers, header::ORIGIN)
            .is_some_and(|origin| shared.names.knows_origin(origin, host.unwrap_or_default()))
    {
        Some(StatusCode::FORBIDDEN)
    } else {
        None
    };
    let mut response = match refused {
        None => next.run(request).await,
        Some(status) => {
            let error = Error::denied("this server does not answer to that name or to pages of that origin")
                .hint("name it under `hosts` or `origins` of [server] in user/lapidary.toml");
            (status, body(&error)).into_response()
        }
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let closed = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(closed);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Lets in only who is known, and says to the route who it is.
pub(super) async fn holder(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    if shared.key.opens(text(request.headers(), header::AUTHORIZATION)) {
        request.extensions_mut().insert(Caller { name: "owner".into(), by: By::Token });
        return next.run(request).await;
    }
    let error = Error::denied("this address needs the token")
        .hint("send it as `Authorization: Bearer ..`; it is in user/webui/token");
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer realm=\"lapidary\"")], body(&error)).into_response()
}

/// Lets in programs only: what speaks MCP has a token, and a person's session is for the page.
pub(super) async fn program(Extension(caller): Extension<Caller>, request: Request, next: Next) -> Response {
    match caller.by {
        By::Token => next.run(request).await,
    }
}

/// The value of a header that stands once.
pub(super) fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    // Of two, one proxy would look at the first and another at the last.
    if values.next().is_some() { None } else { Some(value) }
}
