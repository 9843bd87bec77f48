//! How soon the program answers and how much memory it holds: by itself, and with many plugins.

use crate::client::Server;
use crate::measure::{self, rounds};
use crate::{mcp, plugins};
use std::process::Stdio;
use std::time::Instant;

/// Measures starts.
pub fn run() {
    let empty = plugins::root(0);
    let mut took: Vec<f64> = (0..rounds(40))
        .map(|_| {
            let start = Instant::now();
            let status =
                mcp::command(empty.path(), &["--version"]).stdout(Stdio::null()).status().expect("the program starts");
            assert!(status.success());
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    tell("--version", &mut took, 5.0);
    let mut resident = Vec::new();
    for (n, limit) in [(0, 20.0), (500, 75.0), (1000, f64::INFINITY)] {
        let root = plugins::root(n);
        let mut memory = Vec::new();
        let mut took: Vec<f64> = (0..rounds(15))
            .map(|_| {
                let start = Instant::now();
                let mut server = Server::on_pipes(&mut mcp::command(root.path(), &["mcp"]));
                server.request("tools/list", "{}");
                let took = start.elapsed().as_secs_f64() * 1e3;
                memory.push(server.resident());
                took
            })
            .collect();
        if limit.is_finite() {
            tell(&format!("first tools/list with the shipped scripts and {n} plugins"), &mut took, limit);
        }
        resident.push(measure::median(&mut memory));
    }
    measure::value("resident with the shipped scripts", resident[0] / 1024.0, "MiB", 20.0);
    measure::value("resident for each of 500 further plugins", (resident[1] - resident[0]) / 500.0, "KiB", 16.0);
    measure::value("resident for each of the next 500", (resident[2] - resident[1]) / 500.0, "KiB", 16.0);
}

/// The best, which says what the program needs, and the median, which says what the machine left of it.
fn tell(what: &str, took: &mut [f64], limit: f64) {
    let best = measure::quantile(took, 0.0);
    println!("{what}, wall: best {best:.2} ms, p50 {:.2} ms (limit {limit:.2} ms)", measure::median(took));
}
