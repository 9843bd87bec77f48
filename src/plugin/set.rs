//! The plugins of a running host: what is live, what the disk holds, and the swap between them.
//! Builds run on call threads without a lock; a lock is held only to compare and to swap (promises 3 and 7).

use super::discover::{self, Found, Notice};
use super::load::{Generation, Loader};
use super::read::{self, Unsaved};
use super::source::{History, Mark};
use super::status::{Disk, Status};
use super::swap::{Built, lost};
use super::switches::Switches;
use crate::base::error::{Error, Kind, Result};
use crate::base::event::{Bus, Event};
use crate::script::diagnostic::Diagnostic;
use crate::script::pool::Pool;
use crate::tool::gate::Absence;
use crate::tool::registry::{Code, LiveTool, NativeTool, Snapshot};
use crate::tool::spec::Spec;
use arc_swap::ArcSwap;
use rhai::Map;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Rank of tools that the embedding program brings: before every plugin.
const NATIVE_RANK: u32 = 0;
/// The file of saved toolsets is looked at up to this size.
const MAX_TOOLSETS: u64 = 4 << 20;

/// One known plugin.
pub(super) struct Entry {
    pub(super) found: Found,
    pub(super) rank: u32,
    pub(super) enabled: bool,
    pub(super) live: Option<Arc<Generation>>,
    /// Effective settings that calls see.
    pub(super) settings: Arc<Map>,
    /// Schemas that a settings save refreshed, over those of the generation.
    pub(super) refreshed: HashMap<String, Arc<Spec>>,
    pub(super) disk: Disk,
    /// Notes about its settings or schemas that do not stop it.
    pub(super) notes: Vec<Diagnostic>,
    /// The highest generation number given out.
    pub(super) number: u64,
    pub(super) building: bool,
    pub(super) again: bool,
    /// The next build goes live even where the files are the same: somebody asked for a reload.
    pub(super) force: bool,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) entries: BTreeMap<Arc<str>, Entry>,
    notices: Vec<Notice>,
    native: Vec<Arc<LiveTool>>,
    /// The file of saved toolsets as it was last told of.
    toolsets: Option<Option<Vec<u8>>>,
}

/// The plugins of one host.
pub struct Plugins {
    pub(super) loader: Loader,
    pub(super) snapshot: Arc<ArcSwap<Snapshot>>,
    pub(super) bus: Bus,
    pool: Pool,
    extra: Vec<PathBuf>,
    state: Mutex<State>,
    settled: Condvar,
    /// Generation numbers and hashes of earlier runs.
    pub(super) remembered: Mutex<BTreeMap<String, Mark>>,
    pub(super) on_live: Mutex<Option<OnLive>>,
    /// Where last good versions are, once that is said.
    pub(super) past: OnceLock<History>,
    revision: watch::Sender<u64>,
    held: Mutex<Held>,
}

/// Changes that belong together and are told as one.
#[derive(Default)]
struct Held {
    /// How many pieces of work hold the news back now.
    by: usize,
    /// The newest revision that nobody was told of.
    revision: Option<u64>,
}

/// Told of every generation that went live, after the swap: the history listens.
pub type OnLive = Arc<dyn Fn(Live) + Send + Sync>;

/// A generation that went live, with the files it was built from.
pub struct Live {
    /// The plugin.
    pub plugin: Arc<str>,
    /// Whether the program itself carries it.
    pub is_shipped: bool,
    /// Its number.
    pub generation: u64,
    /// Its hash.
    pub hash: Arc<str>,
    /// Its files by path.
    pub sources: Vec<(String, Arc<[u8]>)>,
}

impl Plugins {
    /// An empty set; [`Plugins::start`] fills it.
    #[must_use]
    pub fn new(
        loader: Loader,
        snapshot: Arc<ArcSwap<Snapshot>>,
        pool: Pool,
        extra: Vec<PathBuf>,
        remembered: BTreeMap<String, Mark>,
    ) -> Arc<Self> {
        Arc::new(Plugins {
            bus: loader.services.bus.clone(),
            loader,
            snapshot,
            pool,
            extra,
            state: Mutex::default(),
            settled: Condvar::new(),
            remembered: Mutex::new(remembered),
            on_live: Mutex::default(),
            past: OnceLock::new(),
            revision: watch::Sender::new(0),
            held: Mutex::default(),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Listens to generations that go live.
    pub fn on_live(&self, listener: OnLive) {
        *self.on_live.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// Adds tools of the embedding program. They come before every plugin's.
    ///
    /// # Errors
    /// `conflict` when a name is taken.
    pub fn add_native(&self, tools: Vec<(Spec, Arc<dyn NativeTool>)>) -> Result<()> {
        let name: Arc<str> = "native".into();
        let plugin = Arc::new(crate::script::ctx::PluginCtx {
            name: name.clone(),
            assets: None,
            grants: Default::default(),
            direct: Default::default(),
        });
        let mut state = self.state();
        state.native.extend(tools.into_iter().map(|(spec, code)| {
            Arc::new(LiveTool {
                name: spec.name.as_str().into(),
                function: spec.name.as_str().into(),
                category: spec.category.clone().unwrap_or_else(|| "system".to_owned()).into(),
                spec: Arc::new(spec),
                code: Code::Native(code, plugin.clone()),
                plan: [].into(),
                emoji: "".into(),
                gated_by: None,
                settings: Arc::default(),
                pace: Default::default(),
            })
        }));
        let mut next = Snapshot::clone(&self.snapshot.load());
        next.put(NATIVE_RANK, &name, state.native.clone())?;
        self.publish(next, true);
        Ok(())
    }

    /// Finds and loads everything. Builds run in parallel; they are taken in order, so that collisions are decided alike
    /// at every start.
    pub fn start(self: &Arc<Self>) {
        let (names, _) = self.rescan_names();
        let built = self.build_all(&names);
        let mut order: Vec<_> = built.into_iter().collect();
        {
            let state = self.state();
            order.sort_by_cached_key(|(name, ..)| state.entries.get(name).map_or(u32::MAX, |e| e.rank));
        }
        self.commit_many(order, &[]);
        self.revive(&names);
    }

    /// What discovery had to say.
    #[must_use]
    pub fn notices(&self) -> Vec<Notice> {
        self.state().notices.clone()
    }

    /// Looks for new and vanished plugins; returns those that need a build, and those that are gone and still answer.
    fn rescan_names(self: &Arc<Self>) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
        let live: std::collections::HashSet<Arc<str>> = {
            let state = self.state();
            state.entries.iter().filter(|(_, e)| e.live.is_some()).map(|(name, _)| name.clone()).collect()
        };
        let (paths, stock) = (&self.loader.services.paths, &*self.loader.stock);
        let found = discover::discover_beside(paths, &self.extra, stock, &|name| live.contains(name));
        let services = &self.loader.services;
        // A switches file that cannot be read is reported and set aside; then the defaults count.
        let switches = Switches::load(&services.paths, &services.clock, &self.bus).unwrap_or_default();
        // Manifests are read before the lock is taken.
        let is_on = |plugin: &Found| switches.is_enabled(&plugin.name, read::default_enabled(plugin, stock));
        let enabled: Vec<bool> = found.plugins.iter().map(is_on).collect();
        let mut need = Vec::new();
        let mut state = self.state();
        state.notices = found.notices;
        let mut gone: Vec<Arc<str>> = state.entries.keys().cloned().collect();
        for (index, (plugin, enabled)) in found.plugins.into_iter().zip(enabled).enumerate() {
            let name: Arc<str> = plugin.name.as_str().into();
            let rank = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
            gone.retain(|g| *g != name);
            match state.entries.get_mut(&name) {
                Some(entry) => {
                    let moved = entry.found.location != plugin.location;
                    let switched = entry.enabled != enabled;
                    entry.found = plugin;
                    entry.enabled = enabled;
                    // A rank only orders the start; a live plugin keeps its own.
                    if entry.live.is_none() {
                        entry.rank = rank;
                    }
                    if moved || switched || (enabled && entry.live.is_none() && entry.disk == Disk::Unread) {
                        need.push(name);
                    }
                }
                None => {
                    let number = self
                        .remembered
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .get(&*name)
                        .map_or(0, |mark| mark.last.max(mark.generation));
                    state.entries.insert(
                        name.clone(),
                        Entry {
                            found: plugin,
                            rank,
                            enabled,
                            live: None,
                            settings: Arc::default(),
                            refreshed: HashMap::new(),
                            disk: Disk::Unread,
                            notes: Vec::new(),
                            number,
                            building: false,
                            again: false,
                            force: false,
                        },
                    );
                    need.push(name);
                }
            }
        }
        for name in &gone {
            state.entries.remove(name);
        }
        (need, gone)
    }

    /// Looks for new and vanished plugins and loads what changed.
    pub fn rescan(self: &Arc<Self>) {
        self.together(|| {
            let (names, gone) = self.rescan_names();
            let freed = self.refresh_for(&names, &gone);
            if freed || !gone.is_empty() {
                self.retry_refused(&names);
            }
        });
    }

    /// Takes vanished or disabled plugins' tools out, in one swap.
    fn withdraw(&self, names: &[Arc<str>]) {
        if names.is_empty() {
            return;
        }
        let state = self.state();
        let mut next = Snapshot::clone(&self.snapshot.load());
        let mut changed = false;
        for name in names {
            changed |= !next.of_plugin(name).is_empty();
            next.remove(name);
            match state.entries.get(name) {
                Some(entry) if !entry.enabled => next.absent.insert(name.clone(), Absence::Off),
                _ => next.absent.remove(name),
            };
        }
        self.publish(next, changed);
        drop(state);
        for name in names {
            self.register_scopes(name, None);
            self.bus.publish(Event::PluginGone { plugin: name.to_string() });
        }
    }

    /// Builds and, where they are good, swaps these plugins; waits for it. A build already under way is done once more
    /// after it ends, so that the newest files count.
    pub fn refresh(self: &Arc<Self>, names: &[Arc<str>]) {
        if self.refresh_only(names) {
            self.retry_refused(names);
        }
    }

    /// As [`Plugins::refresh`]; tells whether a tool's name came free on the way.
    fn refresh_only(self: &Arc<Self>, names: &[Arc<str>]) -> bool {
        self.refresh_for(names, &[])
    }

    /// As [`Plugins::refresh_only`]. What is `gone` goes in the same swap as these come, for it may be the same under a new name:
    /// no call must find neither.
    fn refresh_for(self: &Arc<Self>, names: &[Arc<str>], gone: &[Arc<str>]) -> bool {
        let mut gone = gone;
        let mut freed = false;
        let mut mine = Vec::new();
        let mut off = Vec::new();
        {
            let mut state = self.state();
            for name in names {
                let Some(entry) = state.entries.get_mut(name) else { continue };
                if !entry.enabled {
                    if entry.live.take().is_some() || entry.disk != Disk::Off {
                        off.push(name.clone());
                    }
                    entry.disk = Disk::Off;
                } else if entry.building {
                    entry.again = true;
                } else {
                    entry.building = true;
                    mine.push(name.clone());
                }
            }
        }
        self.withdraw(&off);
        if mine.is_empty() {
            self.withdraw(std::mem::take(&mut gone));
        }
        while !mine.is_empty() {
            if let [only] = mine.as_slice() {
                let built = self.build(only);
                freed |= self.commit_many(vec![(only.clone(), built)], std::mem::take(&mut gone));
            } else if !gone.is_empty() {
                let built = self.build_stream(&mine, Plugins::build_here, TOGETHER).collect();
                freed |= self.commit_many(built, std::mem::take(&mut gone));
            } else {
                // As they come: one that hangs must not hold up the others.
                for done in self.build_stream(&mine, Plugins::build_here, 1) {
                    freed |= self.commit_many(vec![done], &[]);
                }
            }
            let mut state = self.state();
            mine.retain(|name| {
                let Some(entry) = state.entries.get_mut(name) else { return false };
                entry.building = std::mem::take(&mut entry.again);
                entry.building
            });
            drop(state);
            self.settled.notify_all();
        }
        self.revive(names);
        let mut state = self.state();
        while names.iter().any(|n| state.entries.get(n).is_some_and(|e| e.building)) {
            state = self.settled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        freed || !off.is_empty()
    }

    /// A plugin refused for a name may come in when the name is free again. Those just looked at have had their try.
    fn retry_refused(self: &Arc<Self>, tried: &[Arc<str>]) {
        let refused: Vec<Arc<str>> = {
            let state = self.state();
            let refused =
                state.entries.iter().filter(|(n, e)| matches!(e.disk, Disk::Refused { .. }) && !tried.contains(n));
            refused.map(|(n, _)| n.clone()).collect()
        };
        if !refused.is_empty() {
            self.refresh_only(&refused);
        }
    }

    fn build(self: &Arc<Self>, name: &Arc<str>) -> Built {
        let (me, name) = (self.clone(), name.clone());
        self.pool.run(move || me.build_here(&name)).unwrap_or_else(|| Err(vec![lost()]))
    }

    fn build_here(&self, name: &Arc<str>) -> Built {
        let (found, number, is_new) = {
            let state = self.state();
            let Some(entry) = state.entries.get(name) else { return Err(Vec::new()) };
            (entry.found.clone(), entry.number + 1, entry.live.is_none())
        };
        let generation = self.loader.build(&found, number)?;
        let more = if is_new { self.waits_for(&generation, &found) } else { Vec::new() };
        if more.is_empty() { Ok(generation) } else { Err(more) }
    }

    /// Builds these on the call threads; each hands in `together` of them at a time.
    fn build_stream(self: &Arc<Self>, names: &[Arc<str>], build: BuildOne, together: usize) -> Builds {
        let queue = Arc::new(Mutex::new(names.iter().rev().cloned().collect::<Vec<_>>()));
        let (tx, rx) = mpsc::channel();
        let builds = Builds {
            plugins: self.clone(),
            build,
            together,
            queue,
            left: names.len(),
            done: Vec::new().into_iter(),
            tx,
            rx,
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores.min(names.len())).for_each(|_| builds.add_thread());
        builds
    }

    fn build_all(self: &Arc<Self>, names: &[Arc<str>]) -> Vec<(Arc<str>, Built)> {
        let (on, off): (Vec<_>, Vec<_>) = {
            let mut state = self.state();
            names.iter().cloned().partition(|n| {
                state.entries.get_mut(n).is_some_and(|e| {
                    if !e.enabled {
                        e.disk = Disk::Off;
                    }
                    e.enabled
                })
            })
        };
        self.withdraw(&off);
        let build = |me: &Plugins, name: &Arc<str>| {
            let mut built = me.build_here(name);
            if let Ok(generation) = &mut built {
                generation.rest();
            }
            built
        };
        self.build_stream(&on, build, TOGETHER).collect()
    }

    pub(super) fn stored(&self, name: &str) -> serde_json::Map<String, serde_json::Value> {
        self.loader.services.settings.stored(name).unwrap_or_default()
    }

    /// Swaps the snapshot in; with a new revision and one event where a reader of the tools would see a difference.
    pub(super) fn publish(&self, mut next: Snapshot, changed: bool) {
        if changed {
            next.revision += 1;
        }
        let revision = next.revision;
        self.snapshot.store(Arc::new(next));
        if changed {
            let mut held = self.held();
            if held.by > 0 {
                held.revision = Some(revision);
                return;
            }
            drop(held);
            self.tell(revision);
        }
    }

    fn tell(&self, revision: u64) {
        self.revision.send_replace(revision);
        self.bus.publish(Event::ToolsChanged { revision });
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does several things whose changes are told as one, such as a tool that goes with one file and comes with another. Calls see
    /// each change at once; only the news waits.
    pub(super) fn together<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Holding<'a>(&'a Plugins);
        impl Drop for Holding<'_> {
            fn drop(&mut self) {
                let mut held = self.0.held();
                held.by -= 1;
                let news = if held.by == 0 { held.revision.take() } else { None };
                drop(held);
                if let Some(revision) = news {
                    self.0.tell(revision);
                }
            }
        }
        self.held().by += 1;
        let _holding = Holding(self);
        work()
    }

    /// The newest revision of what a reader of the tools sees. A listener that is late sees only the last one.
    #[must_use]
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Loads a plugin's files again now: its top level runs again, also where nothing changed.
    ///
    /// # Errors
    /// `not_found` for a plugin that nobody knows, `disabled` for one that is switched off, and what is wrong with it.
    pub fn reload(self: &Arc<Self>, name: &str) -> Result<Status> {
        self.rescan();
        let status = self.status(name).ok_or_else(|| self.unknown(name))?;
        if !status.enabled {
            return Err(Error::new(Kind::Disabled, format!("the plugin `{name}` is off"))
                .hint(format!("lapidary enable {name}")));
        }
        self.force(name);
        self.refresh(&[name.into()]);
        self.status(name).ok_or_else(|| self.unknown(name))
    }

    fn force(&self, name: &str) {
        if let Some(entry) = self.state().entries.get_mut(name) {
            entry.force = true;
        }
    }

    /// Builds a plugin without taking it in, and looks whether its tools' names are free: would it load? Nothing changes, and
    /// its `shutdown` never runs.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(self: &Arc<Self>, found: &Found) -> Result<Generation, Vec<Diagnostic>> {
        self.check_with(found, None)
    }

    /// As [`Plugins::check`], with a text in the place of one of its files.
    pub(super) fn check_with(
        self: &Arc<Self>,
        found: &Found,
        unsaved: Option<Unsaved>,
    ) -> Result<Generation, Vec<Diagnostic>> {
        let loader = Loader { retired: Arc::new(|_| {}), unsaved: unsaved.map(Arc::new), ..self.loader.clone() };
        let plugin = found.clone();
        let generation = self.pool.run(move || loader.build(&plugin, 1)).unwrap_or_else(|| Err(vec![lost()]))?;
        let tools = super::swap::live_tools(&generation, &Arc::default(), &HashMap::new());
        Snapshot::clone(&self.snapshot.load())
            .put(u32::MAX, generation.name(), tools)
            .map_err(|e| vec![Diagnostic::from_error("conflict", found.place(), &e)])?;
        Ok(generation)
    }

    /// Loads a plugin's files again soon, on a call thread: for a script that asks for its own reload.
    pub fn refresh_later(self: &Arc<Self>, name: &str) {
        let (me, name): (_, Arc<str>) = (self.clone(), name.into());
        self.force(&name);
        self.pool.submit(move || me.refresh(&[name]));
    }

    /// Switches a plugin on or off, for this and later starts.
    ///
    /// # Errors
    /// `not_found` for a plugin that nobody knows; what writing the switch says.
    pub fn switch(self: &Arc<Self>, name: &str, on: Switch) -> Result<Status> {
        if self.status(name).is_none() {
            return Err(self.unknown(name));
        }
        let services = &self.loader.services;
        match on {
            Switch::On => Switches::enable(&services.paths, &services.clock, &self.bus, name)?,
            Switch::Off => Switches::disable(&services.paths, &services.clock, &self.bus, name)?,
        };
        self.rescan();
        self.refresh(&[name.into()]);
        self.status(name).ok_or_else(|| self.unknown(name))
    }

    /// The error for a plugin name that nobody knows.
    #[must_use]
    pub fn unknown(&self, name: &str) -> Error {
        let state = self.state();
        let close = crate::tool::names::did_you_mean(name, state.entries.keys().map(|k| &**k), 3);
        let e = Error::not_found(format!("no plugin `{name}`"));
        if close.is_empty() {
            e.hint("lapidary info lists them")
        } else {
            e.hint(format!("did you mean {}", close.join(", ")))
        }
    }

    /// Saved toolsets may have changed: who reads the tools through one sees others now. The same file again is no news.
    pub fn toolsets_changed(&self) {
        let file = self.loader.services.paths.toolsets_file();
        let content = crate::base::file::read_capped(&file, MAX_TOOLSETS).ok();
        let mut state = self.state();
        if state.toolsets.as_ref() != Some(&content) {
            state.toolsets = Some(content);
            self.publish(Snapshot::clone(&self.snapshot.load()), true);
        }
    }

    /// Hands new grants to every live plugin: they count from the next host call on.
    pub fn grants_changed(self: &Arc<Self>) {
        let (live, waiting): (Vec<Arc<Generation>>, Vec<Arc<str>>) = {
            let state = self.state();
            let waiting = state.entries.iter().filter(|(_, e)| e.disk.is_stopped());
            (state.entries.values().filter_map(|e| e.live.clone()).collect(), waiting.map(|(n, _)| n.clone()).collect())
        };
        for generation in live {
            generation
                .plugin
                .grants
                .store(self.loader.services.grants.effective(generation.name(), &generation.declared));
        }
        // A version may have waited for this.
        self.refresh(&waiting);
    }

    /// Every plugin's name, with where it is and what it imports: what the watcher maps changes by.
    #[must_use]
    pub fn dependants_of(&self, key: &str) -> Vec<Arc<str>> {
        let state = self.state();
        state
            .entries
            .iter()
            .filter(|(_, e)| e.live.as_ref().is_none_or(|g| g.imports.contains(key)) || e.disk.is_bad())
            .map(|(n, _)| n.clone())
            .collect()
    }

    /// The live generation of a plugin.
    #[must_use]
    pub fn live(&self, name: &str) -> Option<Arc<Generation>> {
        self.state().entries.get(name).and_then(|e| e.live.clone())
    }

    /// What discovery found of a plugin.
    #[must_use]
    pub fn found(&self, name: &str) -> Option<Found> {
        self.state().entries.get(name).map(|e| e.found.clone())
    }

    /// Names of all known plugins.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        self.state().entries.keys().cloned().collect()
    }

    /// Lets go of every generation, so that each runs its `shutdown`, and of the listener.
    pub fn stop(&self) {
        *self.on_live.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let held: Vec<_> = {
            let mut state = self.state();
            self.snapshot.store(Arc::default());
            state.entries.values_mut().filter_map(|e| e.live.take()).collect()
        };
        drop(held);
    }
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Its tools can be called.
    On,
    /// They cannot.
    Off,
}

/// How one of many plugins is built.
type BuildOne = fn(&Plugins, &Arc<str>) -> Built;

/// How long no build may end before another thread joins in: one that hangs must not hold up the others.
const SLOW: Duration = Duration::from_millis(20);

/// Builds of many plugins as they come. One thread a core, for each brings a stack and a heap of its own.
/// How many builds a thread hands in at once where nobody looks at one before all are there: waking who waits for them costs more
/// than a third of building a small plugin.
const TOGETHER: usize = 32;

struct Builds {
    plugins: Arc<Plugins>,
    build: BuildOne,
    together: usize,
    queue: Arc<Mutex<Vec<Arc<str>>>>,
    left: usize,
    done: std::vec::IntoIter<(Arc<str>, Built)>,
    tx: mpsc::Sender<Vec<(Arc<str>, Built)>>,
    rx: mpsc::Receiver<Vec<(Arc<str>, Built)>>,
}

impl Builds {
    fn add_thread(&self) {
        let (me, queue, tx, build) = (self.plugins.clone(), self.queue.clone(), self.tx.clone(), self.build);
        let together = self.together;
        self.plugins.pool.submit(move || {
            let mut done = Vec::new();
            let mut since = Instant::now();
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let Some(name) = next else { break };
                let built = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| build(&me, &name)))
                    .unwrap_or_else(|_| Err(vec![lost()]));
                done.push((name, built));
                // Who waits is not to take slow work for work that hangs.
                if done.len() >= together || since.elapsed() > SLOW / 4 {
                    let _ = tx.send(std::mem::take(&mut done));
                    since = Instant::now();
                }
            }
            let _ = tx.send(done);
        });
    }
}

impl Iterator for Builds {
    type Item = (Arc<str>, Built);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(built) = self.done.next() {
                self.left -= 1;
                return Some(built);
            }
            if self.left == 0 {
                return None;
            }
            match self.rx.recv_timeout(SLOW) {
                Ok(built) => self.done = built.into_iter(),
                // No thread has it any more: there was none to be had.
                Err(_) if Arc::strong_count(&self.queue) == 1 => match self.rx.try_recv() {
                    Ok(built) => self.done = built.into_iter(),
                    Err(_) => return None,
                },
                Err(_) if self.queue.lock().unwrap_or_else(PoisonError::into_inner).is_empty() => {}
                Err(_) => self.add_thread(),
            }
        }
    }
}
