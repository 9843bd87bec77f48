//! The routes, and what every request passes before it reaches one: `Host`, `Origin`, the token; security headers on the way back.

use super::access::{Key, Names};
use super::metrics;
use super::plugin;
use super::proxy::{self, Pictures};
use crate::app::Host;
use crate::base::error::{Error, Kind};
use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Largest body of a request.
const BODY: usize = 16 << 20;
/// Keeps a page of another origin from showing what this host serves.
pub(super) const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(60);

/// The address that a connection came in on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Local(pub(super) IpAddr);

/// What serves a route for another room.
pub trait Endpoint: Clone + Send + Sync + 'static {
    /// Answers one request whose body has arrived.
    fn handle(
        &self,
        request: http::Request<Bytes>,
    ) -> impl Future<Output = http::Response<BoxBody<Bytes, Infallible>>> + Send;

    /// Takes nothing more and resolves when what was under way has ended.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// What the routes share.
pub(super) struct Shared {
    pub(super) host: Host,
    pub(super) key: Key,
    pub(super) names: Names,
    pub(super) started: Instant,
    pub(super) pictures: Pictures,
}

/// All routes.
pub(super) fn router<E: Endpoint>(shared: Arc<Shared>, mcp: E) -> Router {
    let mcp = any(move |request: Request| {
        let mcp = mcp.clone();
        async move {
            let (parts, body) = request.into_parts();
            match read_body(body).await {
                Ok(body) => mcp.handle(http::Request::from_parts(parts, body)).await.map(Body::new),
                Err(refused) => refused,
            }
        }
    });
    let closed = Router::new()
        .route("/mcp", mcp)
        .route("/metrics", get(numbers))
        .route(crate::service::proxy::PATH, get(picture))
        .route(plugin::PATH, any(plugin::serve))
        .fallback(nothing_here)
        .layer(middleware::from_fn_with_state(shared.clone(), holder));
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .fallback_service(closed.with_state(shared.clone()))
        .layer(middleware::from_fn_with_state(shared, visitor))
}

/// The whole body of a request, or the answer to one that is too large or too slow.
pub(super) async fn read_body(body: Body) -> Result<Bytes, Response> {
    // One that says beforehand that it is too large is not waited for.
    if HttpBody::size_hint(&body).lower() > BODY as u64 {
        return Err(failure(&too_large()));
    }
    match tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, BODY)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(failure(&too_large())),
        Err(_) => Err(failure(&Error::new(Kind::Timeout, "the body did not arrive in time"))),
    }
}

fn too_large() -> Error {
    Error::new(Kind::TooLarge, format!("the body is larger than {} MiB or broke off", BODY >> 20))
}

async fn numbers(State(shared): State<Arc<Shared>>) -> Response {
    let page = metrics::page(&shared.host, shared.started.elapsed());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page).into_response()
}

async fn picture(State(shared): State<Arc<Shared>>, uri: Uri) -> Response {
    match shared.pictures.get(&shared.host, uri.query().unwrap_or_default()).await {
        Ok(picture) => {
            let kept = format!("private, max-age={}", proxy::FRESH_S);
            let headers = [
                (header::CONTENT_TYPE, HeaderValue::from_static(picture.media_type)),
                (header::CACHE_CONTROL, HeaderValue::try_from(kept).unwrap_or(HeaderValue::from_static("no-store"))),
                (CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("same-origin")),
            ];
            (headers, picture.data).into_response()
        }
        Err(e) => failure(&e),
    }
}

async fn nothing_here() -> Response {
    failure(&Error::not_found("nothing is at this address").hint("MCP is at /mcp"))
}

/// Lets in only who speaks to this server by its name, and from none but its own pages.
async fn visitor(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
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

/// Lets in only who shows the token.
async fn holder(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    if shared.key.opens(text(request.headers(), header::AUTHORIZATION)) {
        return next.run(request).await;
    }
    let error = Error::denied("this address needs the token")
        .hint("send it as `Authorization: Bearer ..`; it is in user/webui/token");
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer realm=\"lapidary\"")], body(&error)).into_response()
}

pub(super) fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    // Of two, one proxy would look at the first and another at the last.
    if values.next().is_some() { None } else { Some(value) }
}

pub(super) fn failure(error: &Error) -> Response {
    (status(error.kind()), body(error)).into_response()
}

fn body(error: &Error) -> impl IntoResponse {
    axum::Json(serde_json::json!({
        "ok": false,
        "error": { "code": error.code(), "message": error.message(), "hint": error.hint_text() },
    }))
}

/// The status that belongs to a failure.
fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::InvalidArguments | Kind::BadImage => StatusCode::BAD_REQUEST,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::Conflict | Kind::InboxRefused | Kind::ChatBusy | Kind::OutcomeUnknown => StatusCode::CONFLICT,
        Kind::PermissionDenied | Kind::Disabled | Kind::ChatSealed | Kind::ApprovalDeclined => StatusCode::FORBIDDEN,
        Kind::ApprovalExpired => StatusCode::GONE,
        Kind::UpstreamAuth | Kind::UpstreamUnavailable => StatusCode::BAD_GATEWAY,
        Kind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Kind::Timeout => StatusCode::REQUEST_TIMEOUT,
        Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::Cancelled | Kind::Quota | Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
