//! MCP over streamable HTTP: one request in, one response or event stream out. Sockets, tokens and addresses are not its affair.

use super::direct::{self, Direct};
use super::door::{Door, Options};
use super::server::Session;
use super::wire::{self, Read};
use crate::app::Host;
use crate::base::in_flight::GRACE;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Largest body that the SDK is given. The server's own limit comes first; arguments packed as text grow by a few bytes each.
const BODY: usize = 64 << 20;
/// How long a session may say nothing before it is forgotten. A client that comes back later starts a new one.
const IDLE: Duration = Duration::from_secs(3600);

/// The MCP endpoint of a server.
#[derive(Clone)]
pub struct Web {
    door: Arc<Door>,
    manager: Arc<LocalSessionManager>,
    service: StreamableHttpService<Session, LocalSessionManager>,
}

impl Web {
    /// An endpoint. `Host` and `Origin` are the server's to check, before a request comes here.
    #[must_use]
    pub fn new(host: &Host, options: &Options) -> Web {
        let door = Door::new(host, options);
        let sessions = {
            let door = door.clone();
            move || Ok(Session::new(door.clone()))
        };
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_json_response(true)
            .with_max_request_body_bytes(BODY);
        let manager = Arc::new(manager);
        Web { door, service: StreamableHttpService::new(sessions, manager.clone(), config), manager }
    }

    /// Answers one request.
    pub async fn handle(&self, request: Request<Bytes>) -> Response<BoxBody<Bytes, Infallible>> {
        let request = request.map(|body| wire::prepare(&body).map_or(body, Bytes::from));
        let door = self.door.clone();
        // A request is under way until its answer has gone out whole; a stream that a client only listens to is not.
        let running = (request.method() == http::Method::POST).then(|| door.enter());
        if let Some(call) = Direct::of(&door.sessions, &request)
            && self.manager.sessions.read().await.contains_key(call.session())
        {
            return call.run().await.map(|body| Full::new(body).boxed());
        }
        if let Some(accepted) = door.sessions.cancel(&request) {
            return accepted.map(|body| Full::new(body).boxed());
        }
        if request.method() == http::Method::POST
            && let Read::Refused(reply) = wire::read(request.body())
        {
            return direct::refused(reply).map(|body| Full::new(body).boxed());
        }
        door.sessions.heard(request.headers());
        self.service.handle(request.map(Full::new)).await.map(|body| {
            body.map_frame(move |frame| {
                let _held = &running;
                frame.map_data(|data| wire::splice(&data, &door.list.last().json).map_or(data, Bytes::from))
            })
            .boxed()
        })
    }

    /// Takes nothing more, lets the calls in flight finish for at most 10 seconds, then ends every session.
    pub async fn close(&self) {
        self.door.close();
        self.door.drain(Instant::now() + GRACE).await;
        self.service.config.cancellation_token.cancel();
    }
}
