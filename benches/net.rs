//! What `net::` adds to a GET of a small page on this machine: the same page through the bare client and through a script.
//! CPU of the whole process, the page's server included on both sides, in turns; the difference is what is promised.

use crate::measure::{self, bare, median, process_cpu, quantile, rounds};
use crate::plugins;
use lapidary::app::Host;
use lapidary::script::ctx::NoSink;
use lapidary::tool::dispatch::{Arguments, Call, Who};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Requests of one measure.
const REQUESTS: usize = 200;
/// Most that one request may cost beyond the bare client, in µs.
const LIMIT: f64 = 50.0;

const SCRIPT: &str = r#"
const PERMISSIONS = [#{EXTERNAL_HTTP: ["127.0.0.1"]}];
/// Fetch a page again and again, for measuring.
/// @param {string} url - The page.
/// @param {integer} times - How often.
fn fetch_page(url, times) {
    let bytes = 0;
    for i in 0..times { bytes += net::get(url).bytes.len; }
    bytes
}
"#;

/// Measures a request.
pub fn run() {
    let url = format!("http://127.0.0.1:{}/page", server());
    let root = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::create_dir_all(plugins::tools(root.path())).expect("a temporary folder is writable");
    std::fs::write(plugins::tools(root.path()).join("page.rhai"), SCRIPT).expect("a temporary folder is writable");
    let host = plugins::host(root.path(), |b| b);
    let inner = host.clone();
    measure::on_a_call_thread(move || added(&inner, &url));
    host.stop();
}

fn added(host: &Host, url: &str) {
    let floor = Floor::new();
    let n = if measure::is_measuring() { REQUESTS } else { 1 };
    assert_eq!(floor.fetch(url, n), fetched(host, url, n), "both sides must do the same work");
    let mut differences = Vec::new();
    let (mut floors, mut hosts) = (Vec::new(), Vec::new());
    for round in 0..rounds(31) {
        let (mut f, mut h) = (0.0, 0.0);
        for side in [round % 2, 1 - round % 2] {
            if side == 0 {
                f = each(n, || bare(|| _ = black_box(floor.fetch(url, n))));
            } else {
                h = each(n, || _ = black_box(fetched(host, url, n)));
            }
        }
        differences.push(h - f);
        floors.push(f);
        hosts.push(h);
    }
    println!(
        "net/get: host {:.1} µs, floor {:.1} µs; 10 % to 90 % of the differences of {} rounds: {:.1} to {:.1} µs",
        median(&mut hosts),
        median(&mut floors),
        differences.len(),
        quantile(&mut differences, 0.1),
        quantile(&mut differences, 0.9),
    );
    measure::value("net/added", median(&mut differences), "µs", LIMIT);
}

/// CPU time of the process for one of `n`, in µs.
fn each(n: usize, work: impl FnOnce()) -> f64 {
    let start = process_cpu();
    work();
    (process_cpu() - start).as_secs_f64() * 1e6 / n as f64
}

fn fetched(host: &Host, url: &str, times: usize) -> usize {
    let outcome = host.call_now(Call {
        tool: "fetch_page".into(),
        arguments: Arguments::Text(format!(r#"{{"url":"{url}","times":{times}}}"#)),
        who: Who::owner("bench"),
        sink: Arc::new(NoSink),
        snapshot: None,
        handle: None,
    });
    assert!(outcome.ok, "{}", outcome.text);
    outcome.text.parse().expect("the script counts bytes")
}

/// The client that the host stands on, with the settings of its own pool, on a runtime like the host's.
struct Floor {
    client: reqwest::Client,
    runtime: tokio::runtime::Runtime,
}

impl Floor {
    fn new() -> Floor {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(30))
            .build()
            .expect("a client is built");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime starts");
        Floor { client, runtime }
    }

    fn fetch(&self, url: &str, times: usize) -> usize {
        let one = || async { self.client.get(url).send().await?.bytes().await };
        (0..times).map(|_| self.runtime.block_on(one()).expect("the page comes").len()).sum()
    }
}

/// A server of one small page that keeps its connections.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it has an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

fn serve(stream: TcpStream) {
    let body = "x".repeat(1_000);
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let _ = stream.set_nodelay(true);
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        match stream.read_line(&mut line) {
            Ok(2) => {
                if stream.get_mut().write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
            Ok(n) if n > 0 => {}
            _ => return,
        }
    }
}
