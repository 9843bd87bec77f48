//! The client against real servers on the loopback interface.

#![allow(clippy::unwrap_used)]

use super::super::outlet::Names;
use super::super::request::{Body, MAX_URL};
use super::*;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A server that answers each connection once: `answer` turns the request's text into the answer's bytes.
struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut text = Vec::new();
                let mut buffer = [0_u8; 4096];
                while !complete(&text) {
                    match stream.read(&mut buffer).await {
                        Ok(n) if n > 0 => text.extend_from_slice(&buffer[..n]),
                        _ => break,
                    }
                }
                let text = String::from_utf8_lossy(&text).into_owned();
                let bytes = answer(&text);
                log.lock().unwrap().push(text);
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
            }
        });
        Server { port, seen }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn complete(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|l| {
        l.to_ascii_lowercase().strip_prefix("content-length:").map(|n| n.trim().parse::<usize>().unwrap())
    });
    body.len() >= length.unwrap_or(0)
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len())
            .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

fn path(request: &str) -> &str {
    request.split(' ').nth(1).unwrap_or_default()
}

/// A client whose names are a table, so that a test decides where a name leads.
fn client_with(names: &[(&str, &[&str])]) -> Client {
    let table: HashMap<String, Vec<IpAddr>> = names
        .iter()
        .map(|(name, ips)| ((*name).to_owned(), ips.iter().map(|ip| ip.parse().unwrap()).collect()))
        .collect();
    let names = Names::by(move |name| table.get(name).cloned().ok_or_else(|| io::Error::other("no such name")));
    Client::with(Settings { names, ..Settings::default() })
}

fn anything(_: &str) -> Result<()> {
    Ok(())
}

#[tokio::test]
async fn a_page_is_fetched_with_its_status_headers_and_text() {
    let server = Server::start(|_| {
        answer("200 OK", "Content-Type: text/html; charset=latin1\r\nX-Two: a\r\nX-Two: b\r\n", b"gr\xfcn")
    })
    .await;
    let got = Client::new().send(Request::new("get", server.url("/page?x=1")), &anything).await.unwrap();
    assert_eq!((got.status, got.ok, got.text().as_str()), (200, true, "grün"));
    assert_eq!(got.header("Content-Type"), Some("text/html; charset=latin1"));
    assert_eq!(got.headers.iter().filter(|(n, _)| n == "x-two").count(), 2);
    assert_eq!(got.url, server.url("/page?x=1"));
    assert!(!format!("{got:?}").contains("x=1"));
    assert!(server.seen()[0].contains("user-agent: lapidary/"));
}

#[tokio::test]
async fn a_status_of_refusal_or_failure_is_an_answer_and_not_an_error() {
    for status in ["401 Unauthorized", "403 Forbidden", "404 Not Found", "500 Oops", "503 Busy"] {
        let server = Server::start(move |_| answer(status, "", b"no")).await;
        let got = Client::new().send(Request::new("GET", server.url("/")), &anything).await.unwrap();
        assert_eq!((got.status.to_string().as_str(), got.ok), (&status[..3], false));
    }
}

#[tokio::test]
async fn params_headers_and_bodies_arrive_as_given() {
    let cases: Vec<(Body, &str, &str)> = vec![
        (Body::Empty, "", ""),
        (Body::Json(serde_json::json!({"a": [1, "ü"]})), "application/json", "{\"a\":[1,\"ü\"]}"),
        (Body::Form(vec![("k y".into(), "v&=".into())]), "application/x-www-form-urlencoded", "k+y=v%26%3D"),
        (Body::Text("hello".into()), "text/plain; charset=utf-8", "hello"),
        (Body::Bytes(b"raw".to_vec()), "application/octet-stream", "raw"),
    ];
    for (body, content_type, sent) in cases {
        let server = Server::start(|_| answer("200 OK", "", b"")).await;
        let mut request = Request::new("post", server.url("/p?a=1"));
        request.params = vec![("b".into(), "2 3&".into())];
        request.headers = vec![("X-Mine".into(), "yes".into())];
        request.body = body;
        Client::new().send(request, &anything).await.unwrap();
        let seen = &server.seen()[0];
        assert!(seen.starts_with("POST /p?a=1&b=2+3%26 HTTP/1.1\r\n"), "{seen}");
        assert!(seen.contains("x-mine: yes\r\n"), "{seen}");
        assert_eq!(seen.contains("content-type:"), !content_type.is_empty());
        assert!(content_type.is_empty() || seen.contains(&format!("content-type: {content_type}\r\n")), "{seen}");
        assert!(seen.ends_with(&format!("\r\n\r\n{sent}")), "{seen}");
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_sent_is_invalid_and_its_url_is_not_repeated() {
    let long = format!("https://a.example/{}", "x".repeat(MAX_URL));
    for url in [
        "",
        "example.com/secret",
        "/secret",
        "ftp://example.com/secret",
        "file:///secret",
        "data:text/plain,secret",
        "https://user:secret@example.com/",
        "https://user@example.com/secret",
        "https:///",
        "http://1.2.3.4.5.6/secret",
        "http://089/secret",
        "http://[::zz]/secret",
        "http://exa mple.com/secret",
        "http://a.example:99999/secret",
        &long,
    ] {
        let error = Client::new().send(Request::new("GET", url), &anything).await.unwrap_err();
        assert_eq!(error.code(), "invalid_arguments", "{url}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn methods_and_headers_that_belong_to_the_connection_are_refused() {
    for method in ["", "CONNECT", "trace", "GE T", "GET\r\n", "ä"] {
        let sent = Client::new().send(Request::new(method, "http://127.0.0.1:1/"), &anything).await;
        let code = sent.unwrap_err().code();
        // A line break around the word is only space.
        assert_eq!(
            code,
            if method.trim() == "GET" { "upstream_unavailable" } else { "invalid_arguments" },
            "{method:?}"
        );
    }
    for (name, value) in [
        ("Host", "other.example"),
        ("content-length", "3"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "close"),
        ("a b", "x"),
        ("", "x"),
        ("x-mine", "a\r\nx-injected: 1"),
        ("x-mine", "a\0"),
    ] {
        let mut request = Request::new("GET", "http://127.0.0.1:1/");
        request.headers = vec![(name.into(), value.into())];
        let error = Client::new().send(request, &anything).await.unwrap_err();
        assert_eq!(error.code(), "invalid_arguments", "{name:?}: {value:?}");
    }
}

#[tokio::test]
async fn nothing_is_sent_without_permission_for_the_host() {
    let server = Server::start(|_| answer("200 OK", "", b"")).await;
    let asked = Mutex::new(Vec::new());
    let permit = |host: &str| {
        asked.lock().unwrap().push(host.to_owned());
        Err(Error::denied(format!("no grant for {host}")))
    };
    let error = Client::new().send(Request::new("GET", server.url("/")), &permit).await.unwrap_err();
    assert_eq!(error.code(), "permission_denied");
    assert_eq!(*asked.lock().unwrap(), ["127.0.0.1"]);
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn permission_is_asked_for_the_host_that_is_connected_to_however_it_is_written() {
    for (written, asked) in [
        ("http://127.1:1/", "127.0.0.1"),
        ("http://0x7f000001:1/", "127.0.0.1"),
        ("http://2130706433:1/", "127.0.0.1"),
        ("http://０１７７.0.0.1:1/", "127.0.0.1"),
        ("http://LOCALHOST.:1/", "localhost"),
        ("http://[0:0::1]:1/", "::1"),
        ("http://a%2eexample:1/", "a.example"),
        ("http://a。example:1/", "a.example"),
    ] {
        let hosts = Mutex::new(Vec::new());
        let permit = |host: &str| {
            hosts.lock().unwrap().push(host.to_owned());
            Err(Error::denied("seen"))
        };
        Client::new().send(Request::new("GET", written), &permit).await.unwrap_err();
        assert_eq!(*hosts.lock().unwrap(), [asked], "{written}");
    }
}

#[tokio::test]
async fn a_wan_name_that_leads_into_the_lan_is_refused_and_a_lan_name_is_served() {
    let server = Server::start(|_| answer("200 OK", "", b"in")).await;
    let client = client_with(&[
        ("rebind.example.com", &["127.0.0.1"]),
        ("mapped.example.com", &["::ffff:127.0.0.1", "10.0.0.1"]),
        ("meta.example.com", &["169.254.169.254"]),
        ("meta.local", &["169.254.169.254", "fd00:ec2::254"]),
        ("nas.local", &["127.0.0.1"]),
        ("nas", &["169.254.169.254", "127.0.0.1"]),
    ]);
    for (host, want) in [
        ("rebind.example.com", "permission_denied"),
        ("mapped.example.com", "permission_denied"),
        ("meta.example.com", "permission_denied"),
        ("meta.local", "permission_denied"),
        ("gone.local", "upstream_unavailable"),
        ("nas.local", "ok"),
        ("nas", "ok"),
    ] {
        let sent = client.send(Request::new("GET", format!("http://{host}:{}/", server.port)), &anything).await;
        assert_eq!(sent.as_ref().map_or_else(|e| e.code(), |_| "ok"), want, "{host}: {sent:?}");
    }
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn an_address_is_checked_without_a_name_to_resolve() {
    for url in [
        "http://169.254.169.254/latest/meta-data",
        "http://[fd00:ec2::254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://224.0.0.1/",
    ] {
        let error = Client::new().send(Request::new("GET", url), &anything).await.unwrap_err();
        assert_eq!(error.code(), "permission_denied", "{url}");
    }
}

#[tokio::test]
async fn a_lan_host_is_not_followed_unless_asked_and_every_hop_is_permitted() {
    let server = Server::start(|request| match path(request) {
        "/start" => answer("302 Found", "location: /next\r\n", b"moved"),
        "/next" => answer("307 Temporary", "location: /end\r\n", b""),
        _ => answer("200 OK", "", b"end"),
    })
    .await;
    let client = Client::new();
    let got = client.send(Request::new("GET", server.url("/start")), &anything).await.unwrap();
    assert_eq!((got.status, got.header("location")), (302, Some("/next")));

    let asked = Mutex::new(0);
    let permit = |_: &str| {
        *asked.lock().unwrap() += 1;
        Ok(())
    };
    let mut request = Request::new("GET", server.url("/start"));
    request.allow_redirects = Some(true);
    let got = client.send(request, &permit).await.unwrap();
    assert_eq!((got.status, got.text().as_str(), got.url), (200, "end", server.url("/end")));
    assert_eq!(*asked.lock().unwrap(), 3);
}

#[tokio::test]
async fn a_hop_to_a_host_without_permission_stops_there() {
    let server = Server::start(|request| {
        let host = request.lines().find_map(|l| l.strip_prefix("host: ")).unwrap_or_default().to_owned();
        match path(request) {
            "/start" => answer("302 Found", &format!("location: http://{}/x\r\n", host.replace("one", "two")), b""),
            _ => answer("200 OK", "", b""),
        }
    })
    .await;
    let client = client_with(&[("one.local", &["127.0.0.1"]), ("two.local", &["127.0.0.1"])]);
    let permit =
        |host: &str| if host == "one.local" { Ok(()) } else { Err(Error::denied(format!("no grant for {host}"))) };
    let mut request = Request::new("GET", format!("http://one.local:{}/start", server.port));
    request.allow_redirects = Some(true);
    let error = client.send(request, &permit).await.unwrap_err();
    assert_eq!((error.code(), error.message()), ("permission_denied", "no grant for two.local"));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn credentials_stay_with_their_origin_and_a_post_that_moved_becomes_a_get() {
    let second = Server::start(|_| answer("200 OK", "", b"end")).await;
    let target = second.url("/landed");
    let first = Server::start(move |_| answer("302 Found", &format!("location: {target}\r\n"), b"")).await;
    let mut request = Request::new("POST", first.url("/"));
    request.allow_redirects = Some(true);
    request.body = Body::Text("payload".into());
    request.headers = vec![
        ("Authorization".into(), "Bearer s3cret".into()),
        ("Cookie".into(), "s3cret".into()),
        ("X-Api-Key".into(), "s3cret".into()),
        ("Accept".into(), "text/html".into()),
    ];
    Client::new().send(request, &anything).await.unwrap();
    assert_eq!(first.seen()[0].matches("s3cret").count(), 3);
    let seen = &second.seen()[0];
    assert!(seen.starts_with("GET /landed "), "{seen}");
    assert!(seen.contains("accept: text/html"), "{seen}");
    assert!(!seen.contains("s3cret") && !seen.contains("payload") && !seen.contains("content-type"), "{seen}");
}

#[tokio::test]
async fn a_circle_of_redirects_ends_after_five_hops() {
    let server = Server::start(|_| answer("302 Found", "location: /again\r\n", b"")).await;
    let mut request = Request::new("GET", server.url("/"));
    request.allow_redirects = Some(true);
    let error = Client::new().send(request, &anything).await.unwrap_err();
    assert_eq!((error.code(), error.retryable()), ("upstream_unavailable", false));
    assert_eq!(server.seen().len(), 6);
}

#[tokio::test]
async fn an_answer_that_is_packed_twice_or_otherwise_fails_and_one_that_only_says_so_does_not() {
    let server = Server::start(|request| {
        let packing = path(request)[1..].replace('+', ", ");
        let body: &[u8] = if packing == "empty" { b"" } else { b"\x1f\x8bsome bytes" };
        answer("200 OK", &format!("content-encoding: {}\r\n", packing.replace("empty", "zstd")), body)
    })
    .await;
    for (packing, want) in [
        ("gzip+gzip", Some("packed as gzip, gzip")),
        ("GZIP+br", Some("packed as gzip, br")),
        ("zstd", Some("packed as zstd")),
        ("deflate", Some("packed as deflate")),
        ("x-gzip", Some("packed as x-gzip")),
        ("identity", None),
        ("utf-8", None),
        ("empty", None),
    ] {
        let got = Client::new().send(Request::new("GET", server.url(&format!("/{packing}"))), &anything).await;
        match (got, want) {
            (Ok(_), None) => {}
            (Err(e), Some(words)) => {
                assert_eq!((e.code(), e.retryable()), ("upstream_unavailable", false), "{packing}");
                assert!(e.message().contains(words), "{packing}: {e}");
            }
            (got, _) => panic!("{packing}: {got:?}"),
        }
    }
}

#[tokio::test]
async fn an_answer_over_the_limit_is_too_large_declared_streamed_or_packed() {
    // 64 KiB of zeros, gzipped to 90 bytes.
    let packed = gzip_of_zeros();
    let server = Server::start(move |request| match path(request) {
        "/declared" => answer("200 OK", "", &[b'x'; 2000]),
        "/streamed" => {
            let mut bytes = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
            bytes.extend_from_slice(&[b'x'; 2000]);
            bytes
        }
        _ => answer("200 OK", "content-encoding: gzip\r\n", &packed),
    })
    .await;
    for path in ["/declared", "/streamed", "/packed"] {
        let mut request = Request::new("GET", server.url(path));
        request.max_bytes = 1000;
        let error = Client::new().send(request, &anything).await.unwrap_err();
        assert_eq!(error.code(), "too_large", "{path}");
    }
    let got = Client::new().send(Request::new("GET", server.url("/packed")), &anything).await.unwrap();
    assert_eq!(got.body.len(), 65536);
    let mut request = Request::new("GET", server.url("/declared"));
    request.max_bytes = 2000;
    assert_eq!(Client::new().send(request, &anything).await.unwrap().body.len(), 2000);
}

/// A gzip member made by hand: one zero, then copies of it at distance one, with fixed Huffman codes.
fn gzip_of_zeros() -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let value = |bits: &mut Vec<bool>, value: u32, n: u32| (0..n).for_each(|i| bits.push(value >> i & 1 == 1));
    let code = |bits: &mut Vec<bool>, code: u32, n: u32| (0..n).rev().for_each(|i| bits.push(code >> i & 1 == 1));
    value(&mut bits, 1, 1);
    value(&mut bits, 1, 2);
    // Literals 0..=143 are eight bits from 0x30.
    code(&mut bits, 0x30, 8);
    // 65535 = 254 * 258 + 3: length 258 is symbol 285, length 3 is symbol 257, distance 1 is code 0.
    for _ in 0..254 {
        code(&mut bits, 0b1100_0101, 8);
        code(&mut bits, 0, 5);
    }
    code(&mut bits, 1, 7);
    code(&mut bits, 0, 5);
    code(&mut bits, 0, 7);
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    bytes.extend(bits.chunks(8).map(|c| c.iter().enumerate().fold(0_u8, |b, (i, on)| b | (u8::from(*on) << i))));
    let crc = (0..65536)
        .fold(u32::MAX, |crc: u32, _| (0..8).fold(crc, |c, _| if c & 1 == 1 { c >> 1 ^ 0xEDB8_8320 } else { c >> 1 }));
    bytes.extend((!crc).to_le_bytes());
    bytes.extend(65536_u32.to_le_bytes());
    bytes
}

#[tokio::test]
async fn a_silent_server_is_a_timeout_and_a_closed_port_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut request = Request::new("GET", format!("http://127.0.0.1:{port}/secret?key=secret"));
    request.timeout = Duration::from_millis(50);
    let error = Client::new().send(request, &anything).await.unwrap_err();
    assert_eq!((error.code(), error.retryable()), ("timeout", true));
    assert!(!error.to_string().contains("secret"), "{error}");
    drop(listener);

    let url = format!("http://127.0.0.1:{port}/secret?key=secret");
    let error = Client::new().send(Request::new("GET", url), &anything).await.unwrap_err();
    assert_eq!(error.code(), "upstream_unavailable");
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn nonsense_and_broken_answers_are_unavailable_and_name_no_path() {
    for bytes in [
        b"nonsense".to_vec(),
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort".to_vec(),
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc".to_vec(),
        Vec::new(),
    ] {
        let server = Server::start(move |_| bytes.clone()).await;
        let error =
            Client::new().send(Request::new("GET", server.url("/secret?key=secret")), &anything).await.unwrap_err();
        assert_eq!(error.code(), "upstream_unavailable", "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn tls_starts_without_any_preparation_and_a_plain_server_is_no_tls_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        // The greeting of TLS is read, so that the answer above is not lost to a reset.
        let _ = stream.read(&mut [0_u8; 4096]).await;
    });
    let error = Client::new().send(Request::new("GET", url), &anything).await.unwrap_err();
    assert_eq!(error.code(), "upstream_unavailable", "{error}");
}

#[test]
fn nothing_is_built_before_the_first_request() {
    let client = Client::new();
    assert!(client.0.pools.iter().flatten().all(|pool| pool.get().is_none()));
}
