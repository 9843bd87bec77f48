//! One call through the whole path, beside a bare Rhai call with the same JSON around it, 500 plugins loaded.
//! Once as it is for an embedder, and once with the journal on, as every door has it.
//! Then the hand-over from another thread, beside a bare channel round trip around the same work.

use crate::measure::{self, Pair, bare, process_cpu, ratio, rounds, timed};
use crate::plugins;
use lapidary::app::Host;
use lapidary::script::ctx::NoSink;
use lapidary::script::pool;
use lapidary::tool::dispatch::{Arguments, Call, Who};
use rhai::{AST, Dynamic, Engine};
use std::hint::black_box;
use std::sync::{Arc, mpsc};

const CALLS: usize = 5_000;
const HANDED: usize = 2_000;

/// Measures a call.
pub fn run() {
    let root = plugins::root(500);
    let host = plugins::host(root.path(), |b| b);
    let inner = host.clone();
    measure::on_a_call_thread(move || on_the_thread(&inner, &Floor::new()));
    handed_over(&host);
    host.stop();
    let host = plugins::host(root.path(), lapidary::HostBuilder::keep_journal);
    let inner = host.clone();
    measure::on_a_call_thread(move || with_the_journal(&inner, &Floor::new()));
    host.stop();
}

/// The same with every call kept: what it costs the call, and what it costs the thread that writes.
fn with_the_journal(host: &Host, floor: &Floor) {
    let who = Who::owner("bench").in_chat("bench");
    let n = rounds(CALLS);
    let (mut calls, mut writing) = (0, std::time::Duration::ZERO);
    ratio(
        &Pair { name: "dispatch/bare, every call kept", limit: 2.0, rounds: 31, of: n },
        || bare(|| timed(|| (0..n).for_each(|_| drop(black_box(floor.call()))))),
        || {
            let start = process_cpu();
            let own = timed(|| (0..n).for_each(|_| drop(black_box(call(host, &who)))));
            let waiting = timed(|| assert!(host.journal().flush(std::time::Duration::from_secs(60))));
            calls += n;
            writing += (process_cpu() - start).saturating_sub(own + waiting);
            own
        },
    );
    let each = writing.as_secs_f64() * 1e6 / calls.max(1) as f64;
    measure::value("a kept call, on the thread that writes", each, "µs", 15.0);
    let page = host.journal().list(&lapidary::service::journal::Filter::default()).expect("the journal can be read");
    assert_eq!(page.dropped, 0, "the journal keeps up");
    assert!(!page.calls.is_empty());
}

struct Floor {
    engine: Engine,
    ast: AST,
    config: Dynamic,
}

impl Floor {
    fn new() -> Floor {
        let engine = plugins::bare_engine();
        let ast = engine.compile(plugins::script(7)).expect("the script compiles");
        Floor { engine, ast, config: plugins::no_config() }
    }

    fn call(&self) -> String {
        plugins::bare_call(&self.engine, &self.ast, "tool_007", &self.config)
    }
}

fn call(host: &Host, who: &Who) -> String {
    let call = Call {
        tool: "tool_007".into(),
        arguments: Arguments::Text(plugins::ARGUMENTS.into()),
        who: who.clone(),
        sink: Arc::new(NoSink),
        snapshot: None,
        handle: None,
    };
    let outcome = host.call_now(call);
    plugins::answer(&outcome.text, outcome.ok)
}

fn on_the_thread(host: &Host, floor: &Floor) {
    let who = Who::owner("bench");
    let (one, other) = (call(host, &who), floor.call());
    assert_eq!(one, other, "both sides must do the same work");
    let n = rounds(CALLS);
    ratio(
        &Pair { name: "dispatch/bare", limit: 2.0, rounds: 31, of: n },
        || bare(|| timed(|| (0..n).for_each(|_| drop(black_box(floor.call()))))),
        || timed(|| (0..n).for_each(|_| drop(black_box(call(host, &who))))),
    );
    let mut c = measure::criterion();
    let mut group = c.benchmark_group("dispatch");
    group.bench_function("bare", |b| b.iter(|| bare(|| floor.call())));
    group.bench_function("host", |b| b.iter(|| call(host, &who)));
    group.finish();
    c.final_summary();
}

/// The same call from a thread that is no call thread; the floor hands the same call to a thread that waits for it.
fn handed_over(host: &Host) {
    let who = Who::owner("bench");
    let n = rounds(HANDED);
    type Job = (Call, mpsc::SyncSender<lapidary::tool::dispatch::Outcome>);
    let (jobs, work) = mpsc::channel::<Job>();
    let inner = host.clone();
    let worker = pool::spawn("bench-worker", move || {
        while let Ok((call, answer)) = work.recv() {
            let _ = answer.send(inner.call_now(call));
        }
    })
    .expect("a thread starts");
    let make = || Call {
        tool: "tool_007".into(),
        arguments: Arguments::Text(plugins::ARGUMENTS.into()),
        who: who.clone(),
        sink: Arc::new(NoSink),
        snapshot: None,
        handle: None,
    };
    let both = |work: &dyn Fn()| {
        let start = process_cpu();
        (0..n).for_each(|_| work());
        process_cpu() - start
    };
    ratio(
        &Pair { name: "handed_over/channel", limit: 1.3, rounds: 31, of: n },
        || {
            both(&|| {
                let (tx, rx) = mpsc::sync_channel(1);
                jobs.send((make(), tx)).expect("the worker listens");
                let outcome = rx.recv().expect("the worker answers");
                black_box(plugins::answer(&outcome.text, outcome.ok));
            })
        },
        || both(&|| drop(black_box(call(host, &who)))),
    );
    drop(jobs);
    worker.join().expect("the worker ends");
}
