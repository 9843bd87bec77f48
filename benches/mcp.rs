//! MCP calls and lists beside the SDK's own echo server, over standard input and output and over HTTP: CPU and median latency.

use crate::client::Server;
use crate::measure::{self, rounds};
use crate::{peer, plugins};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const CALL: &str = r#"{"name":"tool_000","arguments":{"text":"hello"}}"#;
/// Requests in one round.
const CALLS: usize = 400;
const LISTS: usize = 30;
const ROUNDS: usize = 15;

/// Measures the MCP door.
pub fn run() {
    let one = plugins::root(1);
    let many = plugins::root(500);
    for transport in ["stdio", "http"] {
        let call = |server: &mut Server| drop(server.request("tools/call", CALL));
        let list = |server: &mut Server| drop(server.request("tools/list", "{}"));
        {
            let (mut host, mut floor) =
                (host(transport, one.path()), open(transport, &mut peer::command(transport, 1)));
            for server in [&mut host, &mut floor] {
                let answer = String::from_utf8_lossy(&server.request("tools/call", CALL)).into_owned();
                assert!(answer.contains("Did the thing to hello"), "{answer}");
            }
            compare(&format!("{transport} call"), 1.5, CALLS, (&mut host, &mut floor), call);
        }
        let (mut host, mut floor) = (host(transport, many.path()), open(transport, &mut peer::command(transport, 500)));
        let count = |server: &mut Server| {
            let answer: serde_json::Value =
                serde_json::from_slice(&server.request("tools/list", "{}")).expect("an answer");
            answer["result"]["tools"].as_array().map_or(0, Vec::len)
        };
        let counts = (count(&mut host), count(&mut floor));
        assert!(counts.0 >= 500 && counts.1 == 500, "both list 500 tools: {counts:?}");
        compare(&format!("{transport} list of 500"), 1.0, LISTS, (&mut host, &mut floor), list);
    }
}

/// The program itself, over a root.
pub fn command(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lapidary"));
    command.arg("--root").arg(root).args(words);
    command
}

fn host(transport: &str, root: &Path) -> Server {
    let words: &[&str] = if transport == "http" { &["serve", "--addr", "127.0.0.1:0"] } else { &["mcp"] };
    open(transport, &mut command(root, words))
}

fn open(transport: &str, command: &mut Command) -> Server {
    if transport == "http" { Server::on_socket(command) } else { Server::on_pipes(command) }
}

/// Both servers in turns, and the medians of the rounds' ratios.
fn compare(name: &str, limit: f64, n: usize, servers: (&mut Server, &mut Server), work: impl Fn(&mut Server)) {
    let n = rounds(n);
    let one = |server: &mut Server| {
        let cpu = server.cpu();
        let mut waits: Vec<f64> = (0..n)
            .map(|_| {
                let start = Instant::now();
                work(server);
                start.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        ((server.cpu() - cpu).as_secs_f64() * 1e6 / n as f64, measure::median(&mut waits))
    };
    let (host, floor) = servers;
    one(host);
    one(floor);
    let mut both: [[Vec<f64>; 3]; 2] = Default::default();
    for _ in 0..rounds(ROUNDS) {
        let (f, h) = (one(floor), one(host));
        for (all, (f, h)) in both.iter_mut().zip([(f.0, h.0), (f.1, h.1)]) {
            all[0].push(f);
            all[1].push(h);
            all[2].push(h / f);
        }
    }
    for (what, [floors, hosts, ratios]) in ["CPU", "p50"].into_iter().zip(&mut both) {
        println!(
            "ratio {name}/sdk, {what} = {:.2} (limit {limit:.2}); host {:.1} µs, sdk {:.1} µs",
            measure::median(ratios),
            measure::median(hosts),
            measure::median(floors),
        );
    }
}
