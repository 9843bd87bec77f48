//! What becomes of a reader that asked for a stream and takes nothing of it.

use super::*;
use crate::app::{Shipped, Watching};
use crate::base::event::Event;
use crate::http::caller::{By, Caller};
use crate::http::forward::Connection;
use crate::http::patience::Patient;
use crate::http::server::serve;
use crate::http::token::{Owned, Source};
use axum::Extension;
use hyper_util::service::TowerToHyperService;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::task::JoinHandle;

/// More than any step here takes.
const LONG: Duration = Duration::from_secs(60);

const TALK: &str = r#"
/// Talk without end. For tests.
fn talk() {
    let line = "";
    line.pad(500, "x");
    for n in 0..250 { log::info(line); }
    loop { }
}
"#;

struct Bench {
    _dir: tempfile::TempDir,
    api: Arc<Api>,
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("user/tools")).unwrap();
        std::fs::write(dir.path().join("user/tools/talk.rhai"), TALK).unwrap();
        let builder = Host::builder().root(dir.path()).watching(Watching::Off).shipped(Shipped::LibraryOnly).offline();
        let host = builder.start().unwrap();
        let clock = host.services().clock.clone();
        let owned = Owned::given("the-token-of-the-owner", Source::Config);
        let keys = Arc::new(Keys::of(host.paths(), clock, owned));
        Bench { api: Api::new(&host, keys), _dir: dir }
    }

    /// A connection to the API that holds little on the way, and has as little patience; its request is sent, and its answer begun.
    async fn ask(&self, request: &str) -> (DuplexStream, JoinHandle<()>) {
        let caller = Caller { name: "owner".into(), by: By::Owner };
        let app: Router = router(&self.api).layer(Extension(caller));
        let (mut ours, theirs) = duplex(4096);
        let closing = watch::Sender::new(false);
        let stream = Patient::new(theirs, Duration::from_millis(20));
        let served = {
            let closed = closing.subscribe();
            tokio::spawn(async move {
                let _open = closing;
                serve(stream, Connection::HERE, TowerToHyperService::new(app), closed).await;
            })
        };
        ours.write_all(request.as_bytes()).await.unwrap();
        let mut head = [0; 12];
        ours.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
        (ours, served)
    }
}

fn on_a_runtime<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

#[test]
fn a_reader_of_events_that_takes_nothing_is_cut_off_and_its_place_is_free() {
    let bench = Bench::new();
    let readers = || bench.api.events.readers.load(Ordering::Acquire);
    on_a_runtime(async {
        let (held, served) = bench.ask("GET /api/events HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert_eq!(readers(), 1);
        for n in 0..400 {
            let (subject, message) = (n.to_string(), "x".repeat(2000));
            bench.api.host.services().bus.publish(Event::Notice { subject, message });
        }
        tokio::time::timeout(LONG, served).await.expect("it is cut off").unwrap();
        assert_eq!(readers(), 0);
        drop(held);
    });
}

#[test]
fn a_reader_of_a_call_that_takes_nothing_is_cut_off_and_the_call_with_it() {
    let bench = Bench::new();
    let body = r#"{"tool": "talk"}"#;
    let request = format!(
        "POST /api/call HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    on_a_runtime(async {
        let (held, served) = bench.ask(&request).await;
        tokio::time::timeout(LONG, served).await.expect("it is cut off").unwrap();
        let ended = async {
            while !bench.api.host.dispatcher().running().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, ended).await.expect("nobody waits for the call any more");
        drop(held);
    });
}
