//! `POST /api/call` of a trivial tool beside a bare axum handler that reads the same body: requests a second, CPU, the slowest of
//! a hundred. The bench program runs itself with `axum one` or `axum all` for the floor.

use crate::client::{TOKEN, cpu_of, listening};
use crate::measure::{self, rounds};
use crate::{bare, mcp, plugins};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::process::{Child, ChildStdout, Command};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const BODY: &str = r#"{"tool":"tool_000","arguments":{"text":"hello"}}"#;
const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// Requests of one round.
const REQUESTS: usize = 4_000;
const ROUNDS: usize = 9;

/// Measures the HTTP API.
pub fn run() {
    let root = plugins::root(1);
    for floor in ["one", "all"] {
        let host = Server::start(&mut mcp::command(root.path(), &["serve", "--addr", "127.0.0.1:0"]));
        let bare = Server::start(&mut command(floor));
        for server in [&host, &bare] {
            let answer = server.load(1, 1).1;
            assert!(answer.contains("Did the thing to hello"), "{answer}");
        }
        CONNECTIONS.into_iter().for_each(|connections| compare(floor, connections, &host, &bare));
    }
}

/// What one round came to.
#[derive(Clone, Copy)]
struct Round {
    per_second: f64,
    cpu_us: f64,
    p99_us: f64,
}

fn compare(floor: &str, connections: usize, host: &Server, bare: &Server) {
    let requests = rounds(REQUESTS);
    let one = |server: &Server| {
        let cpu = server.cpu();
        let start = Instant::now();
        let (mut waits, _) = server.load(connections, requests);
        let wall = start.elapsed().as_secs_f64();
        let made = waits.len() as f64;
        Round {
            per_second: made / wall,
            cpu_us: (server.cpu() - cpu).as_secs_f64() * 1e6 / made,
            p99_us: measure::quantile(&mut waits, 0.99),
        }
    };
    one(host);
    one(bare);
    let mut pairs: Vec<(Round, Round)> = Vec::new();
    for round in 0..rounds(ROUNDS) {
        // Whoever comes second finds the machine warm.
        pairs.push(if round % 2 == 0 {
            let b = one(bare);
            (b, one(host))
        } else {
            let h = one(host);
            (one(bare), h)
        });
    }
    for (what, limit, unit) in
        [("requests a second", "at least 0.40", "/s"), ("CPU", "at most 3.00", "µs"), ("p99", "at most 3.00", "µs")]
    {
        let value = |round: &Round| match what {
            "CPU" => round.cpu_us,
            "p99" => round.p99_us,
            _ => round.per_second,
        };
        let mut floors: Vec<f64> = pairs.iter().map(|(bare, _)| value(bare)).collect();
        let mut hosts: Vec<f64> = pairs.iter().map(|(_, host)| value(host)).collect();
        let mut ratios: Vec<f64> = hosts.iter().zip(&floors).map(|(h, f)| h / f).collect();
        println!(
            "ratio api/axum on {floor}, {connections} connections, {what} = {:.2} ({limit}); host {:.1} {unit}, axum {:.1} {unit}",
            measure::median(&mut ratios),
            measure::median(&mut hosts),
            measure::median(&mut floors),
        );
    }
}

/// A server that was started for measuring. It ends with this value.
struct Server {
    child: Child,
    port: u16,
    _output: std::io::BufReader<ChildStdout>,
}

impl Server {
    fn start(command: &mut Command) -> Server {
        let (child, port, output) = listening(command);
        Server { child, port, _output: output }
    }

    fn cpu(&self) -> Duration {
        cpu_of(&self.child)
    }

    /// Makes so many requests over so many connections, each waiting for its answer before the next; gives how long each took,
    /// in microseconds, and one answer.
    fn load(&self, connections: usize, requests: usize) -> (Vec<f64>, String) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let each = requests.div_ceil(connections);
        let request = format!(
            "POST /api/call HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{BODY}",
            BODY.len()
        );
        let port = self.port;
        runtime.block_on(async {
            let users: Vec<_> = (0..connections).map(|_| tokio::spawn(user(port, request.clone(), each))).collect();
            let (mut waits, mut answer) = (Vec::with_capacity(requests), String::new());
            for user in users {
                let (mine, last) = user.await.expect("every request is answered");
                waits.extend(mine);
                answer = last;
            }
            (waits, answer)
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn user(port: u16, request: String, requests: usize) -> (Vec<f64>, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the server listens");
    stream.set_nodelay(true).expect("a socket takes options");
    let mut waits = Vec::with_capacity(requests);
    let mut answer = vec![0; 1 << 16];
    let mut length = 0;
    for _ in 0..requests {
        let start = Instant::now();
        stream.write_all(request.as_bytes()).await.expect("the server reads");
        length = 0;
        loop {
            let read = stream.read(&mut answer[length..]).await.expect("the server answers");
            assert!(read > 0, "the server hung up");
            length += read;
            if is_whole(&answer[..length]) {
                break;
            }
        }
        waits.push(start.elapsed().as_secs_f64() * 1e6);
    }
    (waits, String::from_utf8_lossy(&answer[..length]).into_owned())
}

/// Whether all of an answer is there, by the length that its head says.
fn is_whole(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let text = std::str::from_utf8(&answer[..head]).expect("a head is text");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    answer.len() >= head + 4 + length.expect("every answer says how long it is")
}

/// A command that runs the floor.
fn command(threads: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(["axum", threads]);
    command
}

/// Runs the floor, where the command line asks for it; tells whether it did.
pub fn is_asked() -> bool {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ["axum", threads] = words.iter().map(String::as_str).collect::<Vec<_>>()[..] else { return false };
    crate::measure::bare_for_good();
    let mut runtime = match threads {
        "one" => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    runtime.enable_all().build().expect("a runtime starts").block_on(bare::serve(router()));
    true
}

#[derive(Deserialize)]
struct Asked {
    tool: String,
    arguments: Map<String, Value>,
}

async fn answer(axum::Json(asked): axum::Json<Asked>) -> axum::Json<Value> {
    let text = asked.arguments.get("text").and_then(Value::as_str).unwrap_or_default();
    axum::Json(json!({ "ok": true, "tool": asked.tool, "text": format!("Did the thing to {text}") }))
}

fn router() -> axum::Router {
    axum::Router::new().route("/api/call", axum::routing::post(answer))
}
