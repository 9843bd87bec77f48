//! A host over a fresh folder, for the tests that need a whole one.

use lapidary::app::{Host, HostBuilder, Shipped, Watching};
use lapidary::paths::Paths;
use lapidary::service::credentials::Source;
use lapidary::tool::dispatch::{Call, Outcome, Who};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A host and its folder; both go when it goes.
pub struct World {
    pub host: Host,
    pub dir: tempfile::TempDir,
}

impl World {
    /// Without shipped plugins, without a watcher: nothing happens by itself.
    pub fn new() -> World {
        World::with(|b| b.watching(Watching::Off))
    }

    /// With a watcher.
    pub fn watching() -> World {
        World::with(|b| b)
    }

    /// As `set` says; without shipped plugins unless it says otherwise.
    pub fn with(set: impl FnOnce(HostBuilder) -> HostBuilder) -> World {
        World::prepared(|_| {}, set)
    }

    /// With files that are there before the host starts.
    pub fn prepared(files: impl FnOnce(&Path), set: impl FnOnce(HostBuilder) -> HostBuilder) -> World {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("user/tools")).unwrap();
        files(dir.path());
        let host = set(Host::builder().root(dir.path()).credentials(Source::none()).shipped(Shipped::LibraryOnly))
            .start()
            .unwrap();
        World { host, dir }
    }

    /// The shipped plugins, with what an owner granted and set before, and these credentials.
    pub fn shipped(grants: &Value, settings: &[(&str, Value)], credentials: Source) -> World {
        World::prepared(
            |root| {
                let paths = Paths::at(root);
                paths.ensure().unwrap();
                std::fs::write(paths.grants_file(), grants.to_string()).unwrap();
                for (plugin, values) in settings {
                    let file = root.join(format!("user/webui/plugins/{plugin}.json"));
                    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                    std::fs::write(file, values.to_string()).unwrap();
                }
            },
            |b| b.watching(Watching::Off).shipped(Shipped::All).credentials(credentials),
        )
    }

    /// The same root after a restart, with nothing that happens by itself.
    pub fn again(self) -> World {
        self.host.stop();
        let host = Host::builder().root(self.dir.path()).credentials(Source::none()).shipped(Shipped::LibraryOnly);
        World { host: host.watching(Watching::Off).start().unwrap(), dir: self.dir }
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    /// Writes a file as an editor does: a new one moved over the old.
    pub fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let half = path.with_extension("tmp~");
        std::fs::write(&half, text).unwrap();
        std::fs::rename(&half, &path).unwrap();
    }

    /// Writes a single-file plugin and loads it.
    pub fn tool(&self, name: &str, text: &str) {
        self.write(&format!("user/tools/{name}.rhai"), text);
        self.host.plugins().rescan();
        self.host.plugins().refresh(&[name.into()]);
    }

    pub fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let Value::Object(map) = arguments else { panic!("arguments are an object") };
        self.host.call_now(Call::new(tool, map, Who::owner("test")))
    }

    /// The text of a call that must succeed.
    #[track_caller]
    pub fn text(&self, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments);
        assert!(outcome.ok, "{tool} failed: {}", outcome.text);
        outcome.text
    }

    /// The code and text of a call that must fail.
    #[track_caller]
    pub fn fails(&self, tool: &str, arguments: Value) -> (&'static str, String) {
        let outcome = self.call(tool, arguments);
        assert!(!outcome.ok, "{tool} succeeded: {}", outcome.text);
        (outcome.error.map_or("", |e| e.code()), outcome.text)
    }

    pub fn status(&self, plugin: &str) -> String {
        self.host.plugins().status(plugin).map(|s| s.status).unwrap_or_default()
    }

    /// The description that a model reads.
    pub fn description(&self, tool: &str) -> String {
        let snapshot = self.host.dispatcher().snapshot();
        snapshot.get(tool).map(|t| t.spec.description.clone()).unwrap_or_default()
    }
}

/// Looks again and again until `what` holds; gives up, loudly, after a generous while.
#[track_caller]
pub fn until(why: &str, mut what: impl FnMut() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(20), "never happened: {why}");
        std::thread::yield_now();
    }
}

/// Somebody who calls a tool without arguments again and again.
pub struct Caller {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
}

impl Caller {
    pub fn of(host: &Host, tool: &'static str) -> Caller {
        let stop = Arc::new(AtomicBool::new(false));
        let (host, told) = (host.clone(), stop.clone());
        let call = move || {
            let mut failed = 0;
            while !told.load(Ordering::Relaxed) {
                let outcome = host.call_now(Call::new(tool, serde_json::Map::new(), Who::owner("test")));
                failed += usize::from(!outcome.ok);
            }
            failed
        };
        Caller { stop, thread: std::thread::spawn(call) }
    }

    /// Ends the calls; gives how many of them failed.
    pub fn failed(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
