//! A blocking MCP client over the pipes or the socket of a server that it starts and stops, and what the server used meanwhile.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// What every request to a host shows.
pub const TOKEN: &str = "a-token-for-measuring-only";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A server that was started for measuring. It ends with this value.
pub struct Server {
    child: Child,
    wire: Wire,
    next: u64,
}

enum Wire {
    Pipes { input: Option<ChildStdin>, output: BufReader<ChildStdout> },
    Socket { stream: BufReader<TcpStream>, session: Option<String>, _output: Option<BufReader<ChildStdout>> },
}

impl Server {
    /// Starts a server on its pipes and introduces the client. The time runs from before the start.
    pub fn on_pipes(command: &mut Command) -> Server {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let input = child.stdin.take();
        let output = BufReader::with_capacity(1 << 16, child.stdout.take().expect("it has an output"));
        Server { child, wire: Wire::Pipes { input, output }, next: 10 }.introduced()
    }

    /// Starts a server that prints a line with `127.0.0.1:PORT` in it, connects and introduces the client.
    pub fn on_socket(command: &mut Command) -> Server {
        let (child, port, output) = listening(command);
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_nodelay(true).expect("a socket takes options");
        let stream = BufReader::with_capacity(1 << 16, stream);
        Server { child, wire: Wire::Socket { stream, session: None, _output: Some(output) }, next: 10 }.introduced()
    }

    fn introduced(mut self) -> Server {
        let mut answer = Vec::new();
        self.exchange(INITIALIZE, Some(1), &mut answer);
        self.exchange(INITIALIZED, None, &mut answer);
        self
    }

    /// One request; returns the whole answer as bytes.
    pub fn request(&mut self, method: &str, params: &str) -> Vec<u8> {
        self.next += 1;
        let message = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}"#, self.next);
        let mut answer = Vec::with_capacity(1024);
        self.exchange(&message, Some(self.next), &mut answer);
        answer
    }

    fn exchange(&mut self, message: &str, id: Option<u64>, answer: &mut Vec<u8>) {
        match &mut self.wire {
            Wire::Pipes { input, output } => {
                let input = input.as_mut().expect("the input is open");
                input.write_all(format!("{message}\n").as_bytes()).expect("the server reads");
                let Some(id) = id else { return };
                loop {
                    answer.clear();
                    assert!(output.read_until(b'\n', answer).expect("the server answers") > 0, "the server ended");
                    if is_answer(answer, id) {
                        return;
                    }
                }
            }
            Wire::Socket { stream, session, .. } => {
                let mut head = format!(
                    "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
                     Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\nContent-Length: {}\r\n",
                    message.len()
                );
                if let Some(session) = session {
                    head += &format!("Mcp-Session-Id: {session}\r\n");
                }
                stream.get_mut().write_all(format!("{head}\r\n{message}").as_bytes()).expect("the server reads");
                let body = reply(stream, session);
                if let Some(id) = id {
                    answer.clear();
                    answer.extend_from_slice(event(&body, id));
                }
            }
        }
    }

    /// CPU time of all its threads so far.
    pub fn cpu(&self) -> Duration {
        cpu_of(&self.child)
    }

    /// Memory in RAM, in KiB.
    pub fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the server runs");
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).expect("Linux tells it");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

/// Starts a server that prints a line with `127.0.0.1:PORT` in it; gives its port, and its output to be kept open. Whoever starts
/// it ends it.
#[expect(clippy::zombie_processes, reason = "it is handed on, and waited for there")]
pub fn listening(command: &mut Command) -> (Child, u16, BufReader<ChildStdout>) {
    let command =
        command.env("LAPIDARY_TOKEN", TOKEN).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the server starts");
    let mut output = BufReader::new(child.stdout.take().expect("it has an output"));
    let mut line = String::new();
    loop {
        line.clear();
        assert!(output.read_line(&mut line).expect("the output is readable") > 0, "the server names no address");
        let after = line
            .split("127.0.0.1:")
            .nth(1)
            .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        if let Some(port) = after.and_then(|digits| digits.parse::<u16>().ok()) {
            return (child, port, output);
        }
    }
}

/// CPU time of all threads of a child so far.
pub fn cpu_of(child: &Child) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("the server runs");
    let spent = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(tasks.flatten().filter_map(spent).sum())
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Wire::Pipes { input, .. } = &mut self.wire {
            input.take();
        }
        let start = Instant::now();
        while matches!(self.wire, Wire::Pipes { .. }) && start.elapsed() < Duration::from_secs(5) {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a message answers the request `id`: parsed where it is short, else looked for at both ends.
fn is_answer(message: &[u8], id: u64) -> bool {
    if message.len() < 4096 {
        return serde_json::from_slice::<Value>(message).is_ok_and(|v| v["id"] == id && v.get("method").is_none());
    }
    let wanted = format!("\"id\":{id}");
    let has = |part: &[u8]| part.windows(wanted.len()).any(|w| w == wanted.as_bytes());
    has(&message[..200]) || has(&message[message.len() - 200..])
}

/// Reads one HTTP response and returns its body.
fn reply(stream: &mut BufReader<TcpStream>, session: &mut Option<String>) -> Vec<u8> {
    let mut line = String::new();
    stream.read_line(&mut line).expect("the server answers");
    let status: u16 = line.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    let (mut length, mut chunked) = (0, false);
    loop {
        line.clear();
        stream.read_line(&mut line).expect("the server answers");
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().expect("a number"),
            "transfer-encoding" => chunked = value.contains("chunked"),
            "mcp-session-id" => *session = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let mut body = Vec::new();
    loop {
        let n = if chunked {
            line.clear();
            stream.read_line(&mut line).expect("the server answers");
            usize::from_str_radix(line.trim(), 16).expect("a length")
        } else {
            length
        };
        let start = body.len();
        body.resize(start + n, 0);
        stream.read_exact(&mut body[start..]).expect("the server answers");
        if chunked {
            stream.read_line(&mut line).expect("the server answers");
        }
        if n == 0 || !chunked {
            break;
        }
    }
    assert!((200..300).contains(&status), "the server answers {status}: {}", String::from_utf8_lossy(&body));
    body
}

/// The answer in a body that is JSON, or an event stream that holds it.
fn event(body: &[u8], id: u64) -> &[u8] {
    if body.first() == Some(&b'{') {
        return body;
    }
    body.split(|b| *b == b'\n')
        .filter_map(|line| line.strip_prefix(b"data:"))
        .map(<[u8]>::trim_ascii)
        .find(|data| !data.is_empty() && is_answer(data, id))
        .expect("the answer is in the stream")
}
