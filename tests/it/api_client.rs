//! The server in this process over the host of a world, and a client of sockets that knows how to wait for events.

use super::world::World;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use lapidary::http::{Endpoint, Options, Server};
use serde_json::Value;
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

const PATIENCE: Duration = Duration::from_secs(20);

/// What stands at `/mcp` here: nothing.
#[derive(Clone)]
struct NoMcp;

impl Endpoint for NoMcp {
    async fn handle(&self, _: http::Request<Bytes>) -> http::Response<BoxBody<Bytes, Infallible>> {
        http::Response::new(http_body_util::Empty::new().boxed())
    }

    async fn close(&self) {}
}

/// A world that is served. The server ends with it.
pub struct Served {
    pub world: World,
    pub address: SocketAddr,
    pub token: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// One answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found =
            self.head.lines().find_map(|line| line.split_once(':').filter(|(key, _)| key.eq_ignore_ascii_case(name)));
        found.map(|(_, value)| value.trim())
    }

    /// The body of a success.
    #[track_caller]
    pub fn good(&self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// The code and the message with its hint of a failure of this status.
    #[track_caller]
    pub fn refused(&self, status: u16) -> (String, String) {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        let body = self.json();
        assert_eq!(body["ok"], false, "{body}");
        let error = &body["error"];
        let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        (text("code"), format!("{} ({})", text("message"), text("hint")))
    }
}

impl Served {
    pub fn new() -> Served {
        Served::of(World::new())
    }

    pub fn of(world: World) -> Served {
        let host = world.host.clone();
        let (opened, address) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let options = Options { addr: Some("127.0.0.1:0".into()), ..Options::default() };
                let server = Server::open(&host, NoMcp, &options).await.unwrap();
                opened.send(server.address()).unwrap();
                server.run(async { drop(stopped.await) }).await;
            });
        });
        let address = address.recv().unwrap();
        let token = std::fs::read_to_string(world.path("user/webui/token")).unwrap().trim().to_owned();
        Served { world, address, token, stop: Some(stop), thread: Some(thread) }
    }

    /// Ends the server as a signal does, and waits for it.
    pub fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// Tells the server to end, and does not wait.
    pub fn begin_to_stop(&mut self) {
        drop(self.stop.take());
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request and leaves its answer unread.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        if !headers.iter().any(|(name, _)| matches!(*name, "Authorization" | "Cookie")) {
            head += &format!("Authorization: Bearer {}\r\n", self.token);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all((head + "\r\n").as_bytes()).unwrap();
        // A server that refuses a large body need not read it.
        let _ = stream.write_all(body);
        stream
    }

    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = BufReader::new(self.send(method, path, headers, body));
        let head = head_of(&mut stream);
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut body = Vec::new();
        if is_chunked(&head) {
            Unchunked::new(stream).read_to_end(&mut body).unwrap();
        } else {
            stream.read_to_end(&mut body).unwrap();
        }
        let answer = Answer { status, head, body };
        super::api_document::as_promised(self, method, path, &answer);
        answer
    }

    /// As [`Served::request`], for what is no part of the API's promise or looks at it.
    pub fn plain(&self, path: &str) -> Vec<u8> {
        let mut stream = BufReader::new(self.send("GET", path, &[], b""));
        head_of(&mut stream);
        let mut body = Vec::new();
        stream.read_to_end(&mut body).unwrap();
        body
    }

    pub fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], b"")
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.request("DELETE", path, &[], b"")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.request("POST", path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
    }

    pub fn put(&self, path: &str, body: &Value) -> Answer {
        self.request("PUT", path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
    }

    /// Opens a stream of events.
    #[track_caller]
    pub fn follow(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Events {
        let headers: Vec<_> = headers.iter().copied().chain([("Accept", "text/event-stream")]).collect();
        let mut stream = BufReader::new(self.send(method, path, &headers, body));
        let head = head_of(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"), "{head}");
        Events(BufReader::new(Unchunked::new(stream)))
    }

    pub fn events(&self) -> Events {
        self.follow("GET", "/api/events", &[], b"")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn head_of(stream: &mut impl BufRead) -> String {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the answer broke off: {head}");
        if line == "\r\n" {
            return head;
        }
        head += &line;
    }
}

fn is_chunked(head: &str) -> bool {
    head.to_ascii_lowercase().contains("transfer-encoding: chunked")
}

/// The bytes behind chunks, as they come.
struct Unchunked<R> {
    inner: R,
    left: usize,
    over: bool,
}

impl<R: BufRead> Unchunked<R> {
    fn new(inner: R) -> Unchunked<R> {
        Unchunked { inner, left: 0, over: false }
    }
}

impl<R: BufRead> Read for Unchunked<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while self.left == 0 && !self.over {
            let mut line = String::new();
            if self.inner.read_line(&mut line)? == 0 {
                self.over = true;
            } else if !line.trim().is_empty() {
                self.left = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
                self.over = self.left == 0;
            }
        }
        let most = out.len().min(self.left);
        let read = self.inner.read(&mut out[..most])?;
        self.left -= read;
        Ok(read)
    }
}

/// One event of a stream.
#[derive(Debug, Clone)]
pub struct Told {
    pub id: Option<String>,
    pub name: String,
    pub data: Value,
}

/// A stream of events.
pub struct Events(BufReader<Unchunked<BufReader<TcpStream>>>);

impl Events {
    /// The next event; nothing at the end of the stream.
    pub fn next(&mut self) -> Option<Told> {
        let (mut id, mut name, mut data) = (None, String::new(), None);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("event", value)) => value.clone_into(&mut name),
                Some(("data", value)) => data = serde_json::from_str(value).ok(),
                _ => {}
            }
            if line.trim_end().is_empty()
                && let Some(data) = data.take()
            {
                return Some(Told { id, name, data });
            }
        }
    }

    /// The next event of this name; others are passed over.
    #[track_caller]
    pub fn until(&mut self, name: &str) -> Told {
        loop {
            let told = self.next().unwrap_or_else(|| panic!("the stream ended before `{name}`"));
            if told.name == name {
                return told;
            }
        }
    }
}
