//! From the last byte of a save to the first answer of the new code; answers while files change all the time; a storm of saves.

use crate::measure::{self, rounds};
use crate::plugins;
use lapidary::app::{Host, Watching};
use lapidary::tool::dispatch::{Arguments, Call, Outcome, Who};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const STORM: usize = 1_500;

/// Measures saves.
pub fn run() {
    for n in [1, 100, 500] {
        save_to_live(n);
    }
    calls_during_reloads();
    storm();
}

fn watching(root: &Path) -> Host {
    plugins::host(root, |b| b.watching(Watching::On))
}

fn ask(host: &Host, tool: &str) -> Outcome {
    host.call_now(Call {
        tool: tool.into(),
        // The documented tool takes none, and says so of any that it is given.
        arguments: Arguments::Text(if tool == "twins" { "{}" } else { plugins::ARGUMENTS }.into()),
        who: Who::owner("bench"),
        sink: Arc::new(lapidary::script::ctx::NoSink),
        snapshot: None,
        handle: None,
    })
}

fn version(i: usize, version: usize) -> String {
    plugins::script(i).replace("Did the thing to ${t}", &format!("v{version}"))
}

/// Asks until the answer is the wanted one, letting go of the processor between.
fn until(host: &Host, tool: &str, wanted: &str) {
    let start = Instant::now();
    while ask(host, tool).text != wanted {
        assert!(start.elapsed() < Duration::from_secs(30), "{tool} never answered {wanted}");
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn save_to_live(n: usize) {
    let root = plugins::root(n);
    let host = watching(root.path());
    let file = plugins::tools(root.path()).join("t000.rhai");
    let mut took: Vec<f64> = (1..=rounds(60))
        .map(|round| {
            let text = version(0, round);
            std::fs::write(&file, text).expect("the file can be written");
            let start = Instant::now();
            until(&host, "tool_000", &format!("v{round}"));
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    let worst = measure::quantile(&mut took, 0.95);
    measure::value(&format!("save to live with {n} plugins, wall p50"), measure::median(&mut took), "ms", 10.0);
    println!("save to live with {n} plugins, wall p95 = {worst:.2} ms");
    host.stop();
}

/// A tool whose answer comes from the entry file and from a module, written one after the other: both halves must agree.
fn calls_during_reloads() {
    let root = plugins::root(100);
    let folder = root.path().join("user/plugins/twins");
    for sub in ["tools", "lib"] {
        std::fs::create_dir_all(folder.join(sub)).expect("a temporary folder is writable");
    }
    let save = |v: usize| {
        let write = |path: &str, text: String| {
            // As an editor saves: a new file moved over the old one.
            let half = folder.join("half~");
            std::fs::write(&half, text)
                .and_then(|()| std::fs::rename(&half, folder.join(path)))
                .expect("the file can be written");
        };
        write(
            "tools/ask.rhai",
            format!(
                "import \"lib/part\" as part;\nconst TOP = {v};\n\n/// Says its version four times, for measuring.\n\
                 fn twins() {{ `${{TOP}} ${{here()}} ${{part::A}} ${{part::a()}}` }}\n\nfn here() {{ {v} }}\n"
            ),
        );
    };
    std::fs::write(
        folder.join("plugin.json"),
        r#"{"name": "twins", "version": "1.0.0", "description": "Answers with its version, for measuring."}"#,
    )
    .expect("a temporary folder is writable");
    std::fs::write(folder.join("lib/part.rhai"), "export const A = 1;\nfn a() { A }\n")
        .expect("a temporary folder is writable");
    save(1);
    let host = watching(root.path());
    until(&host, "twins", "1 1 1 1");
    let done = AtomicBool::new(false);
    let (mut failed, mut mixed, mut versions, wanted) = (0, 0, std::collections::BTreeSet::new(), rounds(10_000));
    let saves = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut v = 1;
            while !done.load(Ordering::Acquire) {
                v += 1;
                save(v);
                std::thread::sleep(Duration::from_millis(2));
            }
            v
        });
        let mut calls = 0;
        // At least the wanted calls, and as long as it takes to see a good many versions.
        while calls < wanted || (measure::is_measuring() && versions.len() < 50) {
            calls += 1;
            let outcome = ask(&host, "twins");
            failed += usize::from(!outcome.ok);
            let words: Vec<&str> = outcome.text.split(' ').collect();
            let [top, here, "1", "1"] = words.as_slice() else {
                mixed += 1;
                continue;
            };
            mixed += usize::from(top != here);
            versions.insert((*top).to_owned());
        }
        println!(
            "calls during reloads: {calls} calls, {failed} failed, {mixed} mixed, {} versions answered",
            versions.len()
        );
        done.store(true, Ordering::Release);
        writer.join().expect("the writer ends")
    });
    until(&host, "twins", &format!("{saves} {saves} 1 1"));
    println!("calls during reloads: {saves} saves, the last one is live");
    assert_eq!((failed, mixed), (0, 0), "no call may fail or mix two versions");
    host.stop();
}

/// Every file of 1,500 is saved at once.
fn storm() {
    let n = if measure::is_measuring() { STORM } else { 20 };
    let root = plugins::root(n);
    let host = watching(root.path());
    let tools = plugins::tools(root.path());
    let start = Instant::now();
    for i in 0..n {
        std::fs::write(tools.join(format!("t{i:03}.rhai")), version(i, 2)).expect("the file can be written");
    }
    for i in 0..n {
        until(&host, &format!("tool_{i:03}"), "v2");
    }
    measure::value(&format!("{n} saves at once, wall until all are live"), start.elapsed().as_secs_f64(), "s", 5.0);
    host.stop();
}
