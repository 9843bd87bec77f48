//! MCP over streamable HTTP: one request in, one response or event stream out. Sockets, tokens and addresses are not its affair.

use super::direct::{self, Direct};
use super::door::{Door, Options};
use super::server::Session;
use super::wire::{self, Opened, Read};
use crate::app::Host;
use crate::base::in_flight::{GRACE, InFlight};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::model::JsonRpcMessage;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::borrow::Cow;
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
        let door = self.door.clone();
        // What is not posted has no message.
        if request.method() != Method::POST {
            return self.long_way(request, None).await;
        }
        // A request is under way until its answer has gone out whole; a stream that a client only listens to is not.
        let running = door.enter();
        let Opened { text, read, is_frequent } = wire::open(request.body());
        let text = match text {
            Cow::Borrowed(text) => request.body().slice_ref(text),
            Cow::Owned(text) => text.into(),
        };
        match read {
            Read::Refused(reply) => return whole(direct::refused(reply)),
            Read::Nothing => {}
            Read::Message(message) => match *message {
                JsonRpcMessage::Request(message) if is_frequent => {
                    if let Some(call) = Direct::of(&door.sessions, request.headers(), message)
                        && self.manager.sessions.read().await.contains_key(call.session())
                    {
                        return whole(call.run().await);
                    }
                }
                JsonRpcMessage::Notification(message) => {
                    if let Some(accepted) = door.sessions.cancel(request.headers(), &message.notification) {
                        return whole(accepted);
                    }
                }
                _ => {}
            },
        }
        self.long_way(request.map(|_| text), Some(running)).await
    }

    /// Through the SDK, with the session that it holds.
    async fn long_way(
        &self,
        request: Request<Bytes>,
        running: Option<InFlight>,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        let door = self.door.clone();
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

/// An answer whose body is there.
fn whole(response: Response<Bytes>) -> Response<BoxBody<Bytes, Infallible>> {
    response.map(|body| Full::new(body).boxed())
}
