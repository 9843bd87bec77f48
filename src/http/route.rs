//! The routes: which are open to everybody, and which want somebody who is known. What a request passes on its way is the gate's.

use super::access::Names;
use super::api::{self, Api};
use super::gate;
use super::keys::Keys;
use super::limit::Limits;
use super::metrics;
use super::page;
use super::plugin;
use super::proxy::{self, Pictures};
use super::reply::{failure, read_body};
use crate::app::Host;
use crate::base::error::Error;
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use ipnet::IpNet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;

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
    /// All that lets somebody in.
    pub(super) keys: Arc<Keys>,
    pub(super) names: Names,
    /// The name of people's own address, where that is reached over TLS.
    pub(super) secure_name: Option<String>,
    /// The proxies whose word counts.
    pub(super) trusted: Vec<IpNet>,
    pub(super) limits: Limits,
    /// Whether the server takes nothing more.
    pub(super) closing: watch::Receiver<bool>,
    pub(super) started: Instant,
    pub(super) pictures: Pictures,
    pub(super) api: Arc<Api>,
}

/// All routes.
pub(super) fn router<E: Endpoint>(shared: Arc<Shared>, mcp: E) -> Router {
    let mcp = any(move |request: Request| {
        let mcp = mcp.clone();
        async move {
            let (parts, body) = request.into_parts();
            match read_body(body).await {
                Ok(body) => mcp.handle(http::Request::from_parts(parts, body)).await.map(Body::new),
                Err(refused) => refused.into_response(),
            }
        }
    });
    // Everything here wants somebody who is known, and finds out who by `Extension<Caller>`. Further routers are merged here.
    let closed = Router::new()
        .route("/mcp", mcp.layer(middleware::from_fn(gate::program)))
        .route("/metrics", get(numbers))
        .route(crate::service::proxy::PATH, get(picture))
        .route(plugin::PATH, any(plugin::serve))
        .merge(api::router(&shared.api))
        .fallback(nothing_here)
        .layer(middleware::from_fn_with_state(shared.clone(), gate::holder))
        // The gate has limits of its own.
        .layer(DefaultBodyLimit::disable());
    // Everything here answers whoever asks.
    let open = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/", get(page::shell))
        .route("/page/{name}", get(page::part))
        .merge(api::open_router(&shared.api));
    open.fallback_service(closed.with_state(shared.clone()))
        .layer(middleware::from_fn_with_state(shared.clone(), gate::visitor))
        .with_state(shared)
}

/// Whether calls are taken: a server has its address only once the plugins of its host are loaded, and gives it up at its end.
async fn ready(State(shared): State<Arc<Shared>>) -> (StatusCode, &'static str) {
    if *shared.closing.borrow() { (StatusCode::SERVICE_UNAVAILABLE, "stopping\n") } else { (StatusCode::OK, "ready\n") }
}

async fn numbers(State(shared): State<Arc<Shared>>) -> Response {
    // It looks at every plugin, which a swap may hold for a moment.
    let page = tokio::task::spawn_blocking(move || metrics::page(&shared.host, shared.started.elapsed()));
    match page.await {
        Ok(page) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page).into_response(),
        Err(_) => failure(&Error::internal("the host failed while counting").hint("see the host's log")),
    }
}

async fn picture(State(shared): State<Arc<Shared>>, uri: Uri) -> Response {
    match shared.pictures.get(&shared.host, uri.query().unwrap_or_default()).await {
        Ok(picture) => {
            let kept = format!("private, max-age={}", proxy::FRESH_S);
            let headers = [
                (header::CONTENT_TYPE, HeaderValue::from_static(picture.media_type)),
                (header::CACHE_CONTROL, HeaderValue::try_from(kept).unwrap_or(HeaderValue::from_static("no-store"))),
            ];
            (headers, picture.data).into_response()
        }
        Err(e) => failure(&e),
    }
}

async fn nothing_here() -> Response {
    failure(&Error::not_found("nothing is at this address").hint("MCP is at /mcp, the API at /api"))
}
