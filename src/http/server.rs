//! The server: an address, connections with limits, and an end that waits for what is under way. Routes are another file's affair.

use super::access::{Key, Names};
use super::api::Api;
use super::gate::Local;
use super::proxy::Pictures;
use super::route::{self, Endpoint, Shared};
use super::token::{self, Source};
use crate::app::Host;
use crate::base::error::{Error, Kind, Result, io};
use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// Where a server listens unless told otherwise.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8470);
/// Most connections at once; further ones wait to be accepted.
const CONNECTIONS: u32 = 256;
/// How long the head of a request may take, and how long a connection may wait for the next one.
const HEAD_TIME: Duration = Duration::from_secs(60);
/// Largest head of a request.
const HEAD: usize = 64 << 10;
/// How long connections have to close after everything under way has ended.
const CLOSING: Duration = Duration::from_secs(2);
/// How long to wait when the system gives out no more connections.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// How a server is opened.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `address:port`; `[server] addr` of `lapidary.toml` where it is not given, else `127.0.0.1:8470`. Port 0 takes a free one.
    pub addr: Option<String>,
}

/// A server that has its address and takes no connection yet.
pub struct Server<E> {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    mcp: E,
    api: Arc<Api>,
    token: String,
    source: Source,
    host: Host,
}

impl<E: Endpoint> Server<E> {
    /// Takes the address, and finds or makes the token.
    ///
    /// # Errors
    /// `invalid_arguments` for an address or a setting that cannot be used, `permission_denied` for an address beyond this
    /// machine without a token of the owner's, `conflict` for an address that is taken, and what the file system says.
    #[expect(clippy::disallowed_methods, reason = "the token may be given by the environment")]
    pub async fn open(host: &Host, mcp: E, options: &Options) -> Result<Server<E>> {
        let settings = Settings::read(host, options, std::env::var("LAPIDARY_TOKEN").ok().as_deref())?;
        let (token, source) = match settings.token {
            Some(given) => given,
            None if settings.address.ip().is_loopback() => {
                (token::kept(&host.paths().user().join("webui").join("token"))?, Source::Kept)
            }
            None => {
                return Err(Error::denied(format!(
                    "{} can be reached from other machines, and no token is set",
                    settings.address
                ))
                .hint("set LAPIDARY_TOKEN, or `token` under [server] in user/lapidary.toml, or listen on 127.0.0.1"));
            }
        };
        let listener = TcpListener::bind(settings.address).await.map_err(|e| cannot_listen(settings.address, &e))?;
        let address = listener.local_addr().map_err(|e| io("cannot tell the address", &e))?;
        let shared = Shared {
            host: host.clone(),
            key: Key::new(&token),
            names: settings.names,
            started: Instant::now(),
            pictures: Pictures::new(),
            api: Api::new(host),
        };
        let api = shared.api.clone();
        let router = route::router(Arc::new(shared), mcp.clone());
        Ok(Server { listener, address, router, mcp, api, token, source, host: host.clone() })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a person at the terminal is told: the address, and what to do next. It shows the token that the host keeps, so it
    /// is for a terminal and never for a log.
    #[must_use]
    pub fn greeting(&self) -> String {
        let url = format!("http://{}", self.address);
        let tools = match self.host.dispatcher().snapshot().len() {
            1 => "1 tool".to_owned(),
            count => format!("{count} tools"),
        };
        let token = match self.source {
            Source::Kept => self.token.as_str(),
            Source::Environment => "$LAPIDARY_TOKEN",
            Source::Config => "<the token of user/lapidary.toml>",
        };
        format!(
            "lapidary serves {tools} at {url}/mcp\n\n\
             connect a client:   claude mcp add --transport http lapidary {url}/mcp --header \"Authorization: Bearer {token}\"\n\
             or in its config:   {{\"mcpServers\": {{\"lapidary\": {{\"type\": \"http\", \"url\": \"{url}/mcp\", \"headers\": {{\"Authorization\": \"Bearer {token}\"}}}}}}}}\n\
             write a tool:       lapidary new my_tool\n\
             stop:               Ctrl-C\n"
        )
    }

    /// Serves until `stop` resolves. Then nothing new is taken, calls in flight finish for at most 10 seconds, and the host ends.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let places = Arc::new(Semaphore::new(CONNECTIONS as usize));
        let closing = watch::Sender::new(false);
        let app = TowerToHyperService::new(self.router);
        tokio::pin!(stop);
        loop {
            let place = tokio::select! {
                place = places.clone().acquire_owned() => place,
                () = &mut stop => break,
            };
            let stream = tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(e) => {
                        tracing::warn!(error = %e, "a connection could not be accepted");
                        tokio::time::sleep(EXHAUSTED).await;
                        continue;
                    }
                },
                () = &mut stop => break,
            };
            let connection = serve(stream, app.clone(), closing.subscribe());
            tokio::spawn(async move {
                connection.await;
                drop(place);
            });
        }
        drop(self.listener);
        closing.send_replace(true);
        // Both have calls in flight, and the same time for them.
        tokio::join!(self.mcp.close(), self.api.close());
        let _ = tokio::time::timeout(CLOSING, places.acquire_many(CONNECTIONS)).await;
        let host = self.host;
        // Plugins may take a moment to end, and a runtime thread must not wait for them.
        let _ = tokio::task::spawn_blocking(move || host.stop()).await;
    }
}

/// Serves one connection until it ends, or until the request under way is answered once the server closes.
async fn serve(stream: TcpStream, app: TowerToHyperService<Router>, mut closing: watch::Receiver<bool>) {
    // Without this an answer of two packets waits 40 ms for the client to acknowledge the first.
    let _ = stream.set_nodelay(true);
    let Ok(local) = stream.local_addr() else { return };
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(Local(local.ip()));
        app.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // What goes wrong on a connection is the client's to see.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = told(&mut closing) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

async fn told(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

fn cannot_listen(address: SocketAddr, e: &std::io::Error) -> Error {
    match e.kind() {
        std::io::ErrorKind::AddrInUse => Error::new(Kind::Conflict, format!("{address} is taken by another program"))
            .hint("perhaps lapidary runs already; choose another with --addr 127.0.0.1:0"),
        std::io::ErrorKind::PermissionDenied => Error::denied(format!("{address} may not be used by this account"))
            .hint("choose a port from 1024 on, such as --addr 127.0.0.1:8470"),
        std::io::ErrorKind::AddrNotAvailable => Error::invalid(format!("{address} is no address of this machine"))
            .hint("choose 127.0.0.1, or an address that it has"),
        _ => io(format_args!("cannot listen on {address}"), e),
    }
}

/// What `[server]`, the command line and the environment say.
struct Settings {
    address: SocketAddr,
    token: Option<(String, Source)>,
    names: Names,
}

impl Settings {
    fn read(host: &Host, options: &Options, environment: Option<&str>) -> Result<Settings> {
        let empty = toml::Table::new();
        let server = match host.config().get("server") {
            None => &empty,
            Some(toml::Value::Table(table)) => table,
            Some(_) => return Err(wrong("[server]", "a table")),
        };
        let text = |key: &str| match server.get(key) {
            None => Ok(None),
            Some(toml::Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(wrong(key, "a text")),
        };
        let list = |key: &str| match server.get(key) {
            None => Ok(Vec::new()),
            Some(toml::Value::Array(list)) => list
                .iter()
                .map(|entry| entry.as_str().map(str::to_owned).ok_or_else(|| wrong(key, "a list of texts")))
                .collect(),
            Some(_) => Err(wrong(key, "a list of texts")),
        };
        let address = options.addr.as_deref().map_or_else(|| text("addr"), |addr| Ok(Some(addr)))?;
        let token = match (environment.filter(|token| !token.trim().is_empty()), text("token")?) {
            (Some(token), _) => Some((token::given(token, "LAPIDARY_TOKEN")?, Source::Environment)),
            (None, Some(token)) => Some((token::given(token, "[server] of user/lapidary.toml")?, Source::Config)),
            (None, None) => None,
        };
        Ok(Settings {
            address: address.map_or(Ok(ADDRESS), parse)?,
            token,
            names: Names { hosts: list("hosts")?, origins: list("origins")? },
        })
    }
}

fn wrong(key: &str, expected: &str) -> Error {
    Error::invalid(format!("`{key}` under [server] in user/lapidary.toml must be {expected}"))
}

/// `address:port`, with `localhost` for this machine.
fn parse(text: &str) -> Result<SocketAddr> {
    let text = text.trim();
    let plain = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    plain.parse().map_err(|_| {
        let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
        Error::invalid(format!("`{shown}` is no address to listen on")).hint("write it as 127.0.0.1:8470 or [::1]:8470")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_number_and_a_port() {
        for (text, expected) in [
            ("127.0.0.1:8470", "127.0.0.1:8470"),
            ("localhost:0", "127.0.0.1:0"),
            ("[::1]:1", "[::1]:1"),
            (" 0.0.0.0:80 ", "0.0.0.0:80"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), expected);
        }
        for text in
            ["", "8470", ":8470", "localhost", "example.com:80", "127.0.0.1", "127.0.0.1:x", "http://127.0.0.1:1"]
        {
            assert_eq!(parse(text).unwrap_err().kind(), Kind::InvalidArguments, "{text}");
        }
    }
}
