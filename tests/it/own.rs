//! A server inside the tests, with a clock that they turn, and a browser that keeps cookies and proves that it is one's own page.

use super::mcp::PATIENCE;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use lapidary::base::clock::Clock;
use lapidary::base::error::Result;
use lapidary::http::{Endpoint, Options};
use lapidary::{Host, Shipped, Watching};
use serde_json::Value;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// A moment at which a manual clock begins.
pub const MORNING: i64 = 1_800_000_000_000;

/// Answers `/mcp` with its path, so that a test sees who was let in.
#[derive(Clone)]
struct Mirror;

impl Endpoint for Mirror {
    async fn handle(&self, request: http::Request<Bytes>) -> http::Response<BoxBody<Bytes, Infallible>> {
        http::Response::new(Full::new(Bytes::from(request.uri().path().to_owned())).boxed())
    }

    async fn close(&self) {}
}

/// A server of this process.
pub struct Own {
    pub address: SocketAddr,
    pub url: String,
    pub link: String,
    pub clock: Clock,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Own {
    pub fn start(root: &Path) -> Own {
        Own::at(root, "127.0.0.1:0", Clock::manual(MORNING)).unwrap()
    }

    pub fn at(root: &Path, addr: &str, clock: Clock) -> Result<Own> {
        let host = Host::builder()
            .root(root)
            .clock(clock.clone())
            .watching(Watching::Off)
            .shipped(Shipped::LibraryOnly)
            .start()?;
        let options = Options { addr: Some(addr.to_owned()), ..Options::default() };
        let (ready, opened) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                match lapidary::http::Server::open(&host, Mirror, &options).await {
                    Err(e) => ready.send(Err(e)).unwrap(),
                    Ok(server) => {
                        let link = server.link().unwrap().url;
                        ready.send(Ok((server.address(), server.url().to_owned(), link))).unwrap();
                        server.run(async { drop(stopped.await) }).await;
                    }
                }
            });
        });
        let (address, url, link) = opened.recv().unwrap()?;
        Ok(Own { address, url, link, clock, stop: Some(stop), thread: Some(thread) })
    }

    /// The code of the link that was printed.
    pub fn code(&self) -> &str {
        code(&self.link)
    }

    pub fn browser(&self) -> Browser {
        Browser::at(self.address)
    }

    /// A browser that signed in by the link that was printed.
    #[track_caller]
    pub fn person(&self) -> Browser {
        let mut browser = self.browser();
        let reply = browser.sign_in("code", self.code());
        assert_eq!(reply.status, 200, "{reply:?}");
        browser
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()));
    }
}

/// The code of a link.
#[track_caller]
pub fn code(link: &str) -> &str {
    link.split_once("/#sign-in=").unwrap().1
}

/// One answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn of(bytes: &[u8]) -> Reply {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        Reply { status: head.split(' ').nth(1).unwrap().parse().unwrap(), head, body: bytes[end + 4..].to_vec() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found =
            self.head.lines().find_map(|line| line.split_once(':').filter(|(key, _)| key.eq_ignore_ascii_case(name)));
        found.map(|(_, value)| value.trim())
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn retry_after(&self) -> u64 {
        self.header("retry-after").map_or(0, |seconds| seconds.parse().unwrap())
    }
}

/// A browser with one page open.
#[derive(Clone)]
pub struct Browser {
    pub address: SocketAddr,
    /// `name=value`.
    pub cookie: Option<String>,
    pub csrf: Option<String>,
}

impl Browser {
    pub fn at(address: SocketAddr) -> Browser {
        Browser { address, cookie: None, csrf: None }
    }

    /// The request as it is sent; `headers` come after the browser's own, and one named like them takes their place.
    pub fn head(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let (host, origin) = (self.address.to_string(), format!("http://{}", self.address));
        let mut own = vec![("Host", host.as_str()), ("Connection", "close"), ("Sec-Fetch-Site", "same-origin")];
        if !matches!(method, "GET" | "HEAD") {
            own.push(("Origin", &origin));
            own.extend(self.csrf.as_deref().map(|csrf| ("X-CSRF-Token", csrf)));
        }
        own.extend(self.cookie.as_deref().map(|cookie| ("Cookie", cookie)));
        own.retain(|(name, _)| !headers.iter().any(|(other, _)| other == name));
        own.extend(headers.iter().filter(|(_, value)| *value != "-"));
        let mut text = format!("{method} {path} HTTP/1.1\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in own {
            text += &format!("{name}: {value}\r\n");
        }
        text + "\r\n" + body
    }

    /// Sends a request. A header whose value is `-` is left out.
    #[track_caller]
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(self.head(method, path, headers, body).as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        Reply::of(&bytes)
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], "")
    }

    #[track_caller]
    pub fn write(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.send(method, path, &[("Content-Type", "application/json")], &body.to_string())
    }

    /// Signs in by `code` or `password`, and keeps what a browser would.
    #[track_caller]
    pub fn sign_in(&mut self, how: &str, secret: &str) -> Reply {
        let reply = self.write("POST", "/api/session", &serde_json::json!({ how: secret }));
        if reply.status == 200 {
            self.keep(&reply);
            self.csrf = Some(reply.json()["csrf"].as_str().unwrap().to_owned());
        }
        reply
    }

    /// Keeps the cookie of an answer.
    pub fn keep(&mut self, reply: &Reply) {
        let cookie = reply.header("set-cookie").map(|line| line.split(';').next().unwrap_or_default().to_owned());
        self.cookie = cookie.or(self.cookie.take());
    }
}
