//! The watcher: from file events to settled changes, one look at each path, however the editor saves.
//! Closed writes and renames count at once where the system tells them; removals wait a moment, for most are half a save.

use super::change::{self, Change};
use super::set::Plugins;
use crate::base::error::{Error, Result};
use crate::base::paths::Paths;
use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How long a path may be missing before it counts as deleted: editors delete and create, or move away and back.
const REMOVAL: Duration = Duration::from_millis(150);
/// A new folder is looked at once more after this: what was put into it before the system watched it told nobody.
const FOLDER: Duration = Duration::from_millis(400);
/// Where closed writes are not told, a path settles after this much quiet.
const QUIET: Duration = Duration::from_millis(50);

/// Who hears of settled changes, and where they are looked for.
pub trait Follow: Send {
    /// The folders to watch: those that are there now.
    fn folders(&self) -> Folders;

    /// Tells whether a path is of interest at all. It is asked on the system's own thread, so that what is written beside plugins,
    /// a database above all, wakes nobody.
    fn filter(&self) -> Box<dyn Fn(&Path) -> bool + Send>;

    /// Whether folders may have come with these paths; then they are watched before anybody looks into them.
    fn brings_folders(&self, paths: &BTreeSet<PathBuf>) -> bool;

    /// Hears of paths that have settled.
    fn settled(&mut self, paths: &BTreeSet<PathBuf>);

    /// Events were lost: anything may have changed.
    fn lost(&mut self);
}

/// What is watched.
#[derive(Default)]
pub struct Folders {
    /// With everything in them.
    pub deep: Vec<PathBuf>,
    /// Themselves alone.
    pub shallow: Vec<PathBuf>,
}

/// Watches until it is dropped.
pub struct Watch {
    stop: mpsc::Sender<Signal>,
}

enum Signal {
    Path(PathBuf, Weight),
    Overflow,
    Stop,
}

/// How soon an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// The file is complete.
    Now,
    /// It may be half of something.
    Soon,
    /// It is missing.
    Gone,
}

impl Watch {
    /// Starts to watch the folders of `paths` and `extra` for `plugins`.
    ///
    /// # Errors
    /// `internal` when the system refuses, such as too many watches.
    pub fn start(plugins: Arc<Plugins>, paths: &Paths, extra: &[PathBuf]) -> Result<Watch> {
        Watch::with(Live { plugins, paths: paths.clone(), extra: extra.to_vec() })
    }

    /// Starts to watch for somebody.
    ///
    /// # Errors
    /// As [`Watch::start`].
    pub fn with(follower: impl Follow + 'static) -> Result<Watch> {
        let (tx, rx) = mpsc::channel();
        let (events, counts) = (tx.clone(), follower.filter());
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| match event {
            Ok(event) if event.need_rescan() => {
                let _ = events.send(Signal::Overflow);
            }
            Ok(event) => {
                if let Some(weight) = weigh(&event.kind) {
                    for path in event.paths.into_iter().filter(|path| counts(path)) {
                        let _ = events.send(Signal::Path(path, weight));
                    }
                }
            }
            Err(_) => {
                let _ = events.send(Signal::Overflow);
            }
        })
        .map_err(|e| refused(&e))?;
        let mut worker = Worker { watcher, follower: Box::new(follower) };
        worker.watch_folders()?;
        std::thread::Builder::new()
            .name("lapidary-watch".into())
            .spawn(move || worker.run(&rx))
            .map_err(|e| Error::internal(format!("cannot start the watcher: {e}")))?;
        Ok(Watch { stop: tx })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.stop.send(Signal::Stop);
    }
}

fn refused(e: &notify::Error) -> Error {
    Error::internal(format!("the system refuses to watch files: {e}"))
        .hint("on Linux, raise fs.inotify.max_user_watches; without a watcher use `lapidary reload`")
}

/// What an event means for a path; `None` for what changes nothing, such as our own reads.
fn weigh(kind: &EventKind) -> Option<Weight> {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(Weight::Now),
        EventKind::Access(_) => None,
        // A new name over an old file, or a folder moved in: complete.
        EventKind::Modify(ModifyKind::Name(_)) => Some(Weight::Now),
        EventKind::Modify(ModifyKind::Metadata(_)) => None,
        EventKind::Create(_) | EventKind::Modify(_) => Some(Weight::Soon),
        EventKind::Remove(_) => Some(Weight::Gone),
        EventKind::Any | EventKind::Other => Some(Weight::Soon),
    }
}

struct Worker {
    watcher: RecommendedWatcher,
    follower: Box<dyn Follow>,
}

impl Worker {
    fn watch_folders(&mut self) -> Result<()> {
        let Folders { deep, shallow } = self.follower.folders();
        let modes = [(shallow, RecursiveMode::NonRecursive), (deep, RecursiveMode::Recursive)];
        for (folders, mode) in modes {
            for folder in folders {
                self.watcher.watch(&folder, mode).map_err(|e| refused(&e))?;
            }
        }
        Ok(())
    }

    fn run(mut self, rx: &mpsc::Receiver<Signal>) {
        let mut waiting: HashMap<PathBuf, Instant> = HashMap::new();
        let mut folders: HashMap<PathBuf, Instant> = HashMap::new();
        loop {
            let now = Instant::now();
            let next = waiting.values().chain(folders.values()).min().map(|due| due.saturating_duration_since(now));
            let first = match next {
                Some(wait) => rx.recv_timeout(wait).ok(),
                None => match rx.recv() {
                    Ok(signal) => Some(signal),
                    Err(_) => return,
                },
            };
            let mut ready = BTreeSet::new();
            let mut overflow = false;
            // Whatever has piled up meanwhile is one batch.
            for signal in first.into_iter().chain(std::iter::from_fn(|| rx.try_recv().ok())) {
                match signal {
                    Signal::Stop => return,
                    Signal::Overflow => overflow = true,
                    Signal::Path(path, weight) => {
                        if weight != Weight::Gone && path.is_dir() {
                            folders.insert(path.clone(), Instant::now() + FOLDER);
                        }
                        match weight {
                            Weight::Now if path.exists() => {
                                waiting.remove(&path);
                                ready.insert(path);
                            }
                            Weight::Soon if cfg!(target_os = "linux") && path.is_file() => {
                                // The close tells it better; this is for files that are never closed, on odd file systems.
                                waiting.entry(path).or_insert_with(|| Instant::now() + Duration::from_secs(2));
                            }
                            Weight::Soon => {
                                waiting.insert(path, Instant::now() + QUIET);
                            }
                            Weight::Now | Weight::Gone => {
                                waiting.insert(path, Instant::now() + REMOVAL);
                            }
                        }
                    }
                }
            }
            let now = Instant::now();
            for due_at in [&mut waiting, &mut folders] {
                due_at.retain(|path, due| {
                    if *due <= now {
                        ready.insert(path.clone());
                        false
                    } else {
                        true
                    }
                });
            }
            if overflow {
                self.follower.lost();
            } else if !ready.is_empty() {
                if self.follower.brings_folders(&ready) {
                    // What cannot be watched is reached by `reload`.
                    let _ = self.watch_folders();
                }
                self.follower.settled(&ready);
            }
        }
    }
}

/// Keeps the plugins of a host as they are on disk.
struct Live {
    plugins: Arc<Plugins>,
    paths: Paths,
    extra: Vec<PathBuf>,
}

impl Follow for Live {
    /// Every folder that plugins come from. The folders above are watched too, one level deep, so that one that is made
    /// later, or made anew, is noticed.
    fn folders(&self) -> Folders {
        let p = &self.paths;
        let homes =
            [p.tools(), p.plugins(), p.user().join("webui"), p.user().join("toolsets"), p.scripts(), p.stdlib()];
        let mut shallow = vec![p.root().to_path_buf(), p.user()];
        // One script that was named: its folder, for a save may put another file in its place.
        let named = self.extra.iter().filter(|f| f.is_file()).filter_map(|f| f.parent());
        shallow.extend(named.filter(|f| !homes.iter().any(|home| home == f)).map(Path::to_path_buf));
        let deep = homes.iter().chain(&self.extra).filter(|f| f.is_dir()).cloned().collect();
        Folders { deep, shallow }
    }

    fn filter(&self) -> Box<dyn Fn(&Path) -> bool + Send> {
        let (paths, extra) = (self.paths.clone(), self.extra.clone());
        Box::new(move |path| !change::affected(&paths, &extra, path).is_empty())
    }

    fn lost(&mut self) {
        self.plugins.rescan();
        let names = self.plugins.names();
        self.plugins.refresh(&names);
        self.plugins.toolsets_changed();
    }

    fn brings_folders(&self, paths: &BTreeSet<PathBuf>) -> bool {
        paths.iter().any(|path| self.change(path).iter().any(|change| self.is_new(change, path)))
    }

    fn settled(&mut self, paths: &BTreeSet<PathBuf>) {
        self.apply(paths);
    }
}

impl Live {
    fn change(&self, path: &Path) -> Vec<Change> {
        change::affected(&self.paths, &self.extra, path)
    }

    /// Whether a change is one of which plugins there are.
    fn is_new(&self, change: &Change, path: &Path) -> bool {
        match change {
            // What lies elsewhere under the same name may be about to take its place.
            Change::Plugin(name) => !self.plugins.found(name).is_some_and(|f| f.exists() && f.holds(path)),
            Change::Switches | Change::Rescan => true,
            Change::Std(_) | Change::Settings(_) | Change::Grants | Change::Toolsets => false,
        }
    }

    fn apply(&self, paths: &BTreeSet<PathBuf>) {
        // The same change may come from several paths, and which they are counts below.
        let changes: BTreeSet<(Change, &PathBuf)> =
            paths.iter().flat_map(|p| self.change(p).into_iter().map(move |change| (change, p))).collect();
        let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
        let rescan = changes.iter().any(|(change, path)| self.is_new(change, path));
        for (change, _) in changes {
            match change {
                Change::Plugin(name) => {
                    names.insert(name.as_str().into());
                }
                Change::Std(module) => names.extend(self.plugins.dependants_of(&format!("std/{module}"))),
                Change::Settings(name) => self.plugins.settings_changed_on_disk(&name),
                Change::Switches | Change::Rescan => {}
                Change::Grants => self.plugins.grants_changed(),
                Change::Toolsets => self.plugins.toolsets_changed(),
            }
        }
        let names: Vec<Arc<str>> = names.into_iter().collect();
        if rescan {
            self.plugins.together(|| {
                self.plugins.rescan();
                self.plugins.refresh(&names);
            });
        } else if !names.is_empty() {
            self.plugins.refresh(&names);
        }
    }
}
