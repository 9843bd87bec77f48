//! The HTTP server, with the real program as a child and real sockets.

use super::mcp::{ECHO, PATIENCE, folder, greet, program, save};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

pub struct Server {
    child: Child,
    address: SocketAddr,
    token: String,
}

/// One answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// The JSON-RPC message of the body, plain or as the last event.
    #[track_caller]
    fn message(&self) -> Value {
        let last =
            self.body.lines().filter_map(|line| line.strip_prefix("data:")).rfind(|data| data.trim().starts_with('{'));
        serde_json::from_str(last.unwrap_or(&self.body).trim()).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let found =
            self.head.lines().find_map(|line| line.split_once(':').filter(|(key, _)| key.eq_ignore_ascii_case(name)));
        found.map(|(_, value)| value.trim())
    }
}

impl Server {
    pub fn start(root: &Path) -> Server {
        Server::with(root, |_| {})
    }

    fn with(root: &Path, set: impl FnOnce(&mut std::process::Command)) -> Server {
        let mut command = program(root);
        command
            .args(["serve", "--addr", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        set(&mut command);
        let mut child = command.spawn().unwrap();
        let mut greeting = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let address = loop {
            assert!(out.read_line(&mut greeting).unwrap() > 0, "the program ended: {greeting}");
            let after = greeting.split("http://").nth(1).and_then(|rest| rest.split(['/', ' ', '\n']).next());
            if let Some(address) = after.and_then(|address| address.parse().ok()) {
                break address;
            }
        };
        // The rest of the greeting must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        let token = std::fs::read_to_string(root.join("user/webui/token")).unwrap_or_default().trim().to_owned();
        Server { child, address, token }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends one request and reads the answer to its end.
    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(self.head(method, path, headers, body, "close").as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        Answer { status, head: head.to_owned(), body: if chunked { unchunk(body) } else { body.to_owned() } }
    }

    pub fn head(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str, connection: &str) -> String {
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nConnection: {connection}\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text + "\r\n" + body
    }

    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[("Authorization", &self.bearer())], "")
    }

    /// The number behind a name of the metrics page; 0 where it is not there.
    pub fn metric(&self, name: &str) -> f64 {
        let page = self.get("/metrics").body;
        let line = page.lines().find_map(|line| line.strip_prefix(name).and_then(|rest| rest.strip_prefix(' ')));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Asks the metrics page until `name` is `value`.
    #[track_caller]
    pub fn wait_for(&self, name: &str, value: f64) {
        let start = Instant::now();
        while self.metric(name) != value {
            assert!(start.elapsed() < PATIENCE, "{name} is {} and not {value}", self.metric(name));
        }
    }

    fn session(&self) -> Session<'_> {
        let mut session = Session { server: self, id: None, next: 0 };
        let client = json!({ "name": "tests", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let answer = session.post("initialize", hello);
        session.id = Some(answer.header("mcp-session-id").unwrap().to_owned());
        session.tell("notifications/initialized", json!({}));
        session
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unchunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        whole += &rest[..size];
        body = rest[size..].trim_start_matches("\r\n");
    }
    whole
}

struct Session<'a> {
    server: &'a Server,
    id: Option<String>,
    next: i64,
}

impl Session<'_> {
    fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("Authorization", self.server.bearer()),
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json, text/event-stream".to_owned()),
        ];
        if let Some(id) = &self.id {
            headers.push(("Mcp-Session-Id", id.clone()));
            headers.push(("MCP-Protocol-Version", "2025-06-18".to_owned()));
        }
        headers
    }

    fn send(&self, body: &str) -> Answer {
        let headers = self.headers();
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.server.request("POST", "/mcp", &headers, body)
    }

    fn post(&mut self, method: &str, params: Value) -> Answer {
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }).to_string())
    }

    fn tell(&self, method: &str, params: Value) {
        assert_eq!(self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()).status, 202);
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.post("tools/call", json!({ "name": tool, "arguments": arguments })).message()
    }

    /// Begins a request and leaves its answer unread.
    fn begin(&mut self, method: &str, path_method: &str, params: Value) -> (i64, BufReader<TcpStream>) {
        self.next += 1;
        let body = match path_method {
            "GET" => String::new(),
            _ => json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }).to_string(),
        };
        let headers = self.headers();
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut stream = self.server.connect();
        stream.write_all(self.server.head(path_method, "/mcp", &headers, &body, "keep-alive").as_bytes()).unwrap();
        (self.next, BufReader::new(stream))
    }
}

/// Reads lines until one holds `part`.
#[track_caller]
fn line_with(stream: &mut BufReader<TcpStream>, part: &str) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended before {part}");
        if line.contains(part) {
            return line;
        }
    }
}

#[test]
fn health_is_open_and_everything_else_wants_the_token() {
    let dir = folder(&[("echo", ECHO)]);
    let server = Server::start(dir.path());
    let health = server.request("GET", "/healthz", &[], "");
    assert_eq!((health.status, health.body.trim()), (200, "ok"));
    assert!(server.token.len() >= 40, "{} characters", server.token.len());
    for path in ["/mcp", "/metrics", "/nothing", "/api/tools"] {
        for headers in [vec![], vec![("Authorization", "Bearer wrong")], vec![("Authorization", server.token.as_str())]]
        {
            let answer = server.request("GET", path, &headers, "");
            assert_eq!(answer.status, 401, "{path} {headers:?}");
            assert!(answer.header("www-authenticate").is_some_and(|scheme| scheme.starts_with("Bearer")));
            assert!(!answer.body.contains(&server.token));
        }
    }
    assert_eq!(server.get("/nothing").status, 404);
    for name in
        ["x-content-type-options", "content-security-policy", "referrer-policy", "x-frame-options", "cache-control"]
    {
        assert!(health.header(name).is_some() && server.get("/metrics").header(name).is_some(), "{name}");
    }
}

#[test]
fn other_names_and_other_peoples_pages_are_turned_away() {
    let dir = folder(&[]);
    save(dir.path(), "user/lapidary.toml", "[server]\nhosts = [\"box.lan\"]\norigins = [\"https://app.example\"]\n");
    let server = Server::start(dir.path());
    let (own, bearer) = (format!("http://{}", server.address), server.bearer());
    let status = |headers: &[(&str, &str)]| {
        let headers: Vec<_> = headers.iter().copied().chain([("Authorization", bearer.as_str())]).collect();
        [server.request("GET", "/metrics", &headers, "").status, server.request("GET", "/healthz", &headers, "").status]
    };
    for host in ["localhost", "localhost:1", "[::1]:8470", "box.lan"] {
        assert_eq!(status(&[("Host", host)]), [200, 200], "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
        assert_eq!(status(&[("Host", host)]), [421, 421], "{host}");
    }
    for origin in [own.as_str(), "https://app.example"] {
        assert_eq!(status(&[("Origin", origin)]), [200, 200], "{origin}");
    }
    for origin in ["https://evil.example", "http://localhost:1", "null"] {
        assert_eq!(status(&[("Origin", origin)]), [403, 403], "{origin}");
    }
    assert_eq!(status(&[("Origin", own.as_str()), ("Origin", "https://evil.example")]), [403, 403], "two origins");
}

#[test]
fn tools_are_listed_called_and_counted() {
    let dir = folder(&[("echo", ECHO)]);
    let server = Server::start(dir.path());
    let mut session = server.session();
    let list = session.post("tools/list", json!({})).message();
    assert!(list["result"]["tools"].as_array().unwrap().iter().any(|t| t["name"] == "echo"), "{list}");
    assert_eq!(session.call("echo", json!({ "text": "hello" }))["result"]["content"][0]["text"], "hello");
    assert_eq!(session.call("echo", json!({ "text": 5 }))["result"]["isError"], true);
    assert_eq!(session.call("ecko", json!({}))["error"]["code"], -32602);
    let wide = r#"{"jsonrpc":"2.0","id":"w","method":"tools/call","params":{"name":"echo","arguments":{"text":"x","count":99999999999999999999}}}"#;
    let refused = session.send(wide).message();
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(refused["result"]["content"][0]["text"].as_str().unwrap().contains("99999999999999999999"), "{refused}");

    assert_eq!(server.metric("lapidary_calls_total"), 4.0);
    assert_eq!(server.metric("lapidary_call_failures_total{code=\"invalid_arguments\"}"), 2.0);
    assert_eq!(server.metric("lapidary_call_failures_total{code=\"not_found\"}"), 1.0);
    assert!(server.metric("lapidary_tools") >= 4.0);
    let page = server.get("/metrics");
    assert!(page.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    for line in page.body.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("lapidary_") && value.parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn the_revision_without_sessions_is_answered_plainly() {
    let dir = folder(&[("echo", ECHO)]);
    let server = Server::start(dir.path());
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "tests", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let bearer = server.bearer();
    let post = |method: &str, name: Option<&str>, mut params: Value| {
        params["_meta"] = meta.clone();
        let mut headers = vec![
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        server.request("POST", "/mcp", &headers, &body)
    };
    let list = post("tools/list", None, json!({})).message();
    assert!(
        list["result"]["tools"].as_array().is_some_and(|tools| tools.iter().any(|t| t["name"] == "echo")),
        "{list}"
    );
    assert_eq!(list["result"]["resultType"], "complete");
    let said = post("tools/call", Some("echo"), json!({ "name": "echo", "arguments": { "text": "plain" } }));
    assert_eq!(said.header("content-type"), Some("application/json"));
    assert_eq!(said.message()["result"]["content"][0]["text"], "plain");
}

#[test]
fn a_change_reaches_whoever_listens_and_a_broken_edit_nobody() {
    let dir = folder(&[("greet", &greet("Greet somebody. For tests.", "one"))]);
    let server = Server::start(dir.path());
    let mut session = server.session();
    let (_, mut events) = session.begin("", "GET", json!({}));
    line_with(&mut events, "200 OK");
    save(dir.path(), "user/tools/greet.rhai", "fn greet( { oops");
    server.wait_for("lapidary_plugins{state=\"failed\"}", 1.0);
    assert_eq!(session.call("greet", json!({}))["result"]["content"][0]["text"], "one");
    save(dir.path(), "user/tools/greet.rhai", &greet("Greet warmly. For tests.", "two"));
    let first = line_with(&mut events, "list_changed");
    assert_eq!(session.call("greet", json!({}))["result"]["content"][0]["text"], "two");
    std::fs::remove_file(dir.path().join("user/tools/greet.rhai")).unwrap();
    let mut second = String::new();
    while !second.starts_with("data: {") {
        second.clear();
        events.read_line(&mut second).unwrap();
    }
    assert_eq!(first, second, "two changes, two notices, and nothing between them");
    assert_eq!(session.call("greet", json!({}))["error"]["code"], -32602);
}

#[test]
fn a_cancelled_call_stops_its_script() {
    let dir = folder(&[("echo", ECHO)]);
    let server = Server::start(dir.path());
    let mut session = server.session();
    // One that wants to hear of progress is answered by a stream; one that does not, by its result alone.
    for (cancelled, params) in [
        (1.0, json!({ "name": "forever", "arguments": {}, "_meta": { "progressToken": 1 } })),
        (2.0, json!({ "name": "forever", "arguments": {} })),
    ] {
        let (id, _stream) = session.begin("tools/call", "POST", params);
        let start = Instant::now();
        // A notice that overtakes its call finds nothing to stop.
        while server.metric("lapidary_call_failures_total{code=\"cancelled\"}") < cancelled {
            assert!(start.elapsed() < PATIENCE, "the script goes on");
            session.tell("notifications/cancelled", json!({ "requestId": id, "reason": "enough" }));
        }
    }
}

#[test]
fn what_is_no_message_is_answered_as_one() {
    let dir = folder(&[("echo", ECHO)]);
    let server = Server::start(dir.path());
    let session = server.session();
    for (body, code, part) in [
        ("{oops", -32700, "not JSON"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"#, -32700, "not JSON"),
        ("[]", -32600, "batches"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, "JSON-RPC"),
    ] {
        let answer = session.send(body);
        assert_eq!((answer.status, answer.header("content-type")), (400, Some("application/json")), "{answer:?}");
        let message = answer.message();
        assert_eq!(message["error"]["code"], code, "{message}");
        assert!(message["error"]["message"].as_str().unwrap().contains(part), "{message}");
    }
}

#[test]
fn a_call_without_progress_is_answered_as_json_and_by_the_same_rules() {
    let dir = folder(&[("echo", ECHO)]);
    let server = Server::start(dir.path());
    let mut session = server.session();
    let plain = session.post("tools/call", json!({ "name": "echo", "arguments": { "text": "a" } }));
    assert_eq!(plain.header("content-type"), Some("application/json"), "{plain:?}");
    let arguments = json!({ "text": "a" });
    let mut stream =
        session.post("tools/call", json!({ "name": "echo", "arguments": arguments, "_meta": { "progressToken": 7 } }));
    assert_eq!(stream.header("content-type"), Some("text/event-stream"), "{stream:?}");
    assert_eq!(plain.message()["result"], stream.message()["result"]);
    for params in [
        json!({ "name": "nothing_of_that_name", "arguments": {} }),
        json!({ "name": "echo", "arguments": {} }),
        json!({ "name": "echo", "arguments": { "text": "a", "count": 1.5 } }),
    ] {
        let plain = session.post("tools/call", params.clone()).message();
        let mut long = params;
        long["_meta"] = json!({ "progressToken": 8 });
        stream = session.post("tools/call", long);
        let long = stream.message();
        assert_eq!((&plain["result"], &plain["error"]), (&long["result"], &long["error"]));
    }
    let headers = session.headers();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(server.request("DELETE", "/mcp", &headers, "").status / 100, 2);
    let gone = session.post("tools/call", json!({ "name": "echo", "arguments": { "text": "a" } }));
    assert_eq!(gone.status, 404, "{gone:?}");
}

#[test]
fn what_is_too_big_is_refused() {
    let dir = folder(&[("echo", ECHO)]);
    let server = Server::start(dir.path());
    let mut stream = server.connect();
    let bearer = server.bearer();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\nContent-Length: 17000000\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    assert!(line.contains("413"), "{line}");
    let mut stream = server.connect();
    let _ = stream.write_all(
        format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nX: {}\r\n\r\n", server.address, "x".repeat(200_000)).as_bytes(),
    );
    let mut line = String::new();
    let _ = BufReader::new(&stream).read_line(&mut line);
    assert!(line.is_empty() || line.contains("431"), "{line}");
}

#[test]
fn a_token_of_the_owners_counts_and_is_needed_beyond_this_machine() {
    let dir = folder(&[]);
    let refused = program(dir.path()).args(["serve", "--addr", "0.0.0.0:0"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("LAPIDARY_TOKEN") && said.contains("other machines"), "{said}");
    let own = "a-token-of-my-own-42";
    let server = Server::with(dir.path(), |command| {
        command.env("LAPIDARY_TOKEN", own);
    });
    let status =
        |token: &str| server.request("GET", "/metrics", &[("Authorization", &format!("Bearer {token}"))], "").status;
    assert_eq!([status(own), status("a-token-of-my-own-43")], [200, 401]);
    assert!(!dir.path().join("user/webui/token").exists(), "none is made where one is given");
}

#[test]
fn an_address_that_is_taken_is_said_so() {
    let dir = folder(&[]);
    let server = Server::start(dir.path());
    let second = program(dir.path())
        .args(["serve", "--addr", &server.address.to_string()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(3));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("taken") && said.contains("--addr"), "{said}");
    assert_eq!(server.request("GET", "/healthz", &[], "").status, 200);
}

#[test]
fn two_hosts_serve_one_root() {
    let dir = folder(&[("greet", &greet("Greet somebody. For tests.", "one"))]);
    let servers = [Server::start(dir.path()), Server::start(dir.path())];
    assert_eq!(servers[0].token, servers[1].token);
    save(dir.path(), "user/tools/greet.rhai", &greet("Greet warmly. For tests.", "two"));
    for server in &servers {
        server.wait_for("lapidary_tools_revision", 2.0);
        assert_eq!(server.session().call("greet", json!({}))["result"]["content"][0]["text"], "two");
    }
}

#[cfg(unix)]
#[test]
fn a_termination_signal_lets_calls_finish() {
    let dir = folder(&[("echo", ECHO)]);
    let mut server = Server::start(dir.path());
    let mut session = server.session();
    let (_, mut listener) = session.begin("", "GET", json!({}));
    line_with(&mut listener, "200 OK");
    let (_, mut stream) =
        session.begin("tools/call", "POST", json!({ "name": "work", "arguments": { "turns": 600000 } }));
    line_with(&mut stream, "200 OK");
    let killed = std::process::Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    line_with(&mut stream, "worked 600000");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}
