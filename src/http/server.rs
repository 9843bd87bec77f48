//! The server: an address, connections with limits, and an end that waits for what is under way. Routes are another file's affair.

use super::api::Api;
use super::forward::Connection;
use super::keys::Keys;
use super::limit::{Limits, Places};
use super::links::{self, Link, Listening};
use super::password::Password;
use super::patience::Patient;
use super::proxy::Pictures;
use super::route::{self, Endpoint, Shared};
use super::settings::{self, Settings};
use super::tls;
use super::token::{self, Owned, Source};
use super::tokens::Tokens;
use crate::app::Host;
use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result, io};
use crate::base::paths::Paths;
use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// Most connections at once; further ones wait to be accepted.
const CONNECTIONS: u32 = 256;
/// Most connections at once from one address beyond this machine that is no proxy of the owner's; further ones are closed.
const FROM_ONE: u32 = 64;
/// How long the beginning of TLS may take.
const TLS_TIME: Duration = Duration::from_secs(10);
/// How long the head of a request may take, and how long a connection may wait for the next one.
const HEAD_TIME: Duration = Duration::from_secs(60);
/// How long whoever is sent something may take nothing of it.
const STALLED: Duration = Duration::from_secs(30);
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
    /// Who reads what the server says when it is open.
    pub reader: Reader,
}

/// Who reads what a server says when it is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reader {
    /// A person at a terminal: everything, with the token that the host keeps.
    Terminal,
    /// A program that started it: with the link, which works once and for minutes.
    Program,
    /// A log, which others may read later: no secret at all.
    #[default]
    Log,
}

/// A server that has its address and takes no connection yet.
pub struct Server<E> {
    listener: TcpListener,
    address: SocketAddr,
    /// Where people find it.
    url: String,
    /// Whether what is sent can be read on its way.
    is_bare: bool,
    tls: Option<TlsAcceptor>,
    /// The proxies whose word counts.
    trusted: Vec<IpNet>,
    router: Router,
    keys: Arc<Keys>,
    closing: watch::Sender<bool>,
    mcp: E,
    api: Arc<Api>,
    host: Host,
    /// A root that cannot be written has none.
    _listening: Option<Listening>,
}

impl<E: Endpoint> Server<E> {
    /// Takes the address, and finds or makes the owner's token.
    ///
    /// # Errors
    /// `invalid_arguments` for an address or a setting that cannot be used, `permission_denied` for an address beyond this
    /// machine where the owner set no password and no token, `conflict` for an address that is taken, and what the file system
    /// says.
    #[expect(clippy::disallowed_methods, reason = "the token may be given by the environment")]
    pub async fn open(host: &Host, mcp: E, options: &Options) -> Result<Server<E>> {
        let (paths, clock) = (host.paths(), host.services().clock.clone());
        let environment = std::env::var("LAPIDARY_TOKEN").ok();
        let settings = Settings::read(host.config(), &paths.user(), options.addr.as_deref(), environment.as_deref())?;
        let is_here = settings.address.ip().is_loopback();
        if !is_here && settings.token.is_none() && !has_keys(paths, &clock) {
            let error =
                format!("{} can be reached from other machines, and no password or token is set", settings.address);
            return Err(Error::denied(error).hint(
                "lapidary password set, or lapidary tokens add NAME, or set LAPIDARY_TOKEN, or `token` under [server] in \
                 user/lapidary.toml; or listen on 127.0.0.1",
            ));
        }
        let owned = match &settings.token {
            Some((token, source)) => Owned::given(token, *source),
            None => Owned::kept(&paths.webui().join("token"))?,
        };
        let keys = Arc::new(Keys::of(paths, clock, owned));
        let tls = settings.tls.map(|(certificate, key)| tls::acceptor(certificate, key)).transpose();
        let tls = tls.map_err(|e| e.context("[server] of user/lapidary.toml"))?;
        let listener = TcpListener::bind(settings.address).await.map_err(|e| cannot_listen(settings.address, &e))?;
        let address = listener.local_addr().map_err(|e| io("cannot tell the address", &e))?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let public = settings.url.as_ref();
        let url = public.map_or_else(
            || format!("{scheme}://{}", links::reachable(address)),
            |url| url.origin().ascii_serialization(),
        );
        let secure_name = public.filter(|url| url.scheme() == "https").map(settings::authority);
        let closing = watch::Sender::new(false);
        let shared = Shared {
            host: host.clone(),
            keys: keys.clone(),
            names: settings.names,
            secure_name: secure_name.clone(),
            limits: Limits::new(settings.rate),
            closing: closing.subscribe(),
            started: Instant::now(),
            pictures: Pictures::new(),
            api: Api::new(host, keys.clone()),
            trusted: settings.trusted.clone(),
        };
        let api = shared.api.clone();
        let is_bare = !is_here && tls.is_none() && secure_name.is_none() && shared.trusted.is_empty();
        let router = route::router(Arc::new(shared), mcp.clone());
        // Only a root that cannot be written has none, and then links cannot be made from outside.
        let listening = Listening::at(paths, address, &url).ok();
        let host = host.clone();
        Ok(Server {
            listener,
            address,
            url,
            is_bare,
            tls,
            trusted: settings.trusted,
            router,
            keys,
            closing,
            mcp,
            api,
            host,
            _listening: listening,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where people find it: `http://127.0.0.1:8470`, or what `[server] url` says.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A link that signs whoever opens it in, once, within 15 minutes. It waits for the disk.
    ///
    /// # Errors
    /// What the file system says.
    pub fn link(&self) -> Result<Link> {
        Link::make(&self.keys.codes, &self.url, &self.keys.clock)
    }

    /// What whoever started the server is told: the address, and what to do next.
    #[must_use]
    pub fn greeting(&self, link: Option<&Link>, reader: Reader) -> String {
        let url = &self.url;
        let tools = match self.host.dispatcher().snapshot().len() {
            1 => "1 tool".to_owned(),
            count => format!("{count} tools"),
        };
        let kept = || token::read(&self.host.paths().webui().join("token")).ok();
        let token = match (self.keys.owned.source(), reader) {
            (Source::Environment, _) => "$LAPIDARY_TOKEN".to_owned(),
            (Source::Config, _) => "<the token of user/lapidary.toml>".to_owned(),
            (Source::Kept, Reader::Terminal) => kept().unwrap_or_default(),
            (Source::Kept, Reader::Program | Reader::Log) => "<the token of user/webui/token>".to_owned(),
        };
        let page = link.filter(|_| reader != Reader::Log);
        let page = page.map_or_else(|| "lapidary sign-in prints the link".to_owned(), |link| link.url.clone());
        let bare = if self.is_bare {
            "\nnote: without TLS, whoever is on the way can read everything, keys included: see docs/guide/server.md\n"
        } else {
            ""
        };
        format!(
            "lapidary serves {tools} at {url}/mcp\n\n\
             open the page:      {page}\n\
             connect a client:   claude mcp add --transport http lapidary {url}/mcp --header \"Authorization: Bearer {token}\"\n\
             or in its config:   {{\"mcpServers\": {{\"lapidary\": {{\"type\": \"http\", \"url\": \"{url}/mcp\", \"headers\": {{\"Authorization\": \"Bearer {token}\"}}}}}}}}\n\
             write a tool:       lapidary new my_tool\n\
             stop:               Ctrl-C\n{bare}"
        )
    }

    /// Serves until `stop` resolves. Then nothing new is taken, calls in flight finish for at most 10 seconds, and the host ends.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let places = Arc::new(Semaphore::new(CONNECTIONS as usize));
        let by_address = Places::default();
        let app = TowerToHyperService::new(self.router);
        tokio::pin!(stop);
        loop {
            let place = tokio::select! {
                place = places.clone().acquire_owned() => place,
                () = &mut stop => break,
            };
            let (stream, peer) = tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(e) => {
                        tracing::warn!(error = %e, "a connection could not be accepted");
                        tokio::time::sleep(EXHAUSTED).await;
                        continue;
                    }
                },
                () = &mut stop => break,
            };
            let peer = peer.ip().to_canonical();
            let Some(of_address) = by_address.take(peer, most(peer, &self.trusted)) else { continue };
            let connection = accept(stream, self.tls.clone(), app.clone(), self.closing.subscribe());
            tokio::spawn(async move {
                connection.await;
                drop((of_address, place));
            });
        }
        drop(self.listener);
        self.closing.send_replace(true);
        // Both have calls in flight, and the same time for them.
        tokio::join!(self.mcp.close(), self.api.close());
        let _ = tokio::time::timeout(CLOSING, places.acquire_many(CONNECTIONS)).await;
        let host = self.host;
        // Plugins may take a moment to end, and a runtime thread must not wait for them.
        let _ = tokio::task::spawn_blocking(move || host.stop()).await;
    }
}

/// Serves a connection, over TLS where the server has a certificate.
async fn accept(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    app: TowerToHyperService<Router>,
    mut closing: watch::Receiver<bool>,
) {
    // Without this an answer of two packets waits 40 ms for the client to acknowledge the first.
    let _ = stream.set_nodelay(true);
    let (Ok(local), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else { return };
    let connection = Connection { local: local.ip(), peer: peer.ip(), is_tls: tls.is_some() };
    // Below TLS, so that it counts what is really taken, from the first byte on.
    let stream = Patient::new(stream, STALLED);
    let Some(tls) = tls else { return serve(stream, connection, app, closing).await };
    let begun = tokio::select! {
        begun = tokio::time::timeout(TLS_TIME, tls.accept(stream)) => begun,
        () = told(&mut closing) => return,
    };
    // What goes wrong at the beginning of TLS is the client's to see.
    if let Ok(Ok(stream)) = begun {
        serve(stream, connection, app, closing).await;
    }
}

/// Serves one connection until it ends, or until the request under way is answered once the server closes.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    connection: Connection,
    app: TowerToHyperService<Router>,
    mut closing: watch::Receiver<bool>,
) {
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(connection);
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

/// Most connections at once from `peer`. A proxy brings everybody's.
fn most(peer: IpAddr, trusted: &[IpNet]) -> u32 {
    let brings_others = peer.is_loopback() || trusted.iter().any(|net| net.contains(&peer));
    if brings_others { CONNECTIONS } else { FROM_ONE }
}

async fn told(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

/// Whether the owner set something that lets in: then it is meant that others can reach the server.
fn has_keys(paths: &Paths, clock: &Clock) -> bool {
    Password::of(paths, clock.clone()).is_set() || !Tokens::of(paths, clock.clone()).list().is_empty()
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_some_connections_and_a_proxy_has_everybodys() {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "fd00::1/128"].iter().map(|net| net.parse().unwrap()).collect();
        for (peer, expected) in [
            ("127.0.0.1", CONNECTIONS),
            ("::1", CONNECTIONS),
            ("10.1.2.3", CONNECTIONS),
            ("fd00::1", CONNECTIONS),
            ("fd00::2", FROM_ONE),
            ("192.168.1.5", FROM_ONE),
            ("203.0.113.9", FROM_ONE),
        ] {
            assert_eq!(most(peer.parse().unwrap(), &trusted), expected, "{peer}");
        }
    }
}
