//! The composition root: paths, services, engine, plugins, dispatcher, watcher. The only room that knows every other.

mod journal;
mod models;

#[cfg(feature = "cli")]
pub(crate) use journal::arguments_of;
pub use journal::{Again, Change, Replay};

use crate::base::clock::Clock;
use crate::base::error::{Error, Result};
use crate::base::event::{Bus, Event};
use crate::base::paths::Paths;
use crate::config::{self, Config};
use crate::net::tape::Tape;
use crate::net::{Client, Names, Range};
use crate::plugin::discover::{self, Stock};
use crate::plugin::load::{Loader, guarded};
use crate::plugin::preview::{Look, Preview};
use crate::plugin::set::{Live, Plugins};
use crate::plugin::source::{History, Record};
use crate::plugin::watch::Watch;
use crate::script::control::{Budget, Control};
use crate::script::ctx::{Ctx, NoSink, Phase};
use crate::script::module::HostModule;
use crate::script::pool::Pool;
use crate::script::{engine, program};
use crate::service::command::Commands;
use crate::service::journal::Journal as CallJournal;
use crate::service::{Services, credentials};
use crate::tool::dispatch::{Call, Dispatcher, Options, Outcome, Who};
use crate::tool::journal::{CallRecord, Counted, Counters, Journal, Kept};
use crate::tool::registry::{Gone, LiveTool, NativeTool, Snapshot};
use crate::tool::spec::Spec;
use crate::tool::toolset;
use arc_swap::ArcSwap;
use rhai::{Engine, Map};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{broadcast, watch};

/// Most call threads at once. They cost nothing while idle; a call that waits for the network holds one.
const CALL_THREADS: usize = 64;

/// A running host. Cheap to clone; the last clone that goes ends it.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    services: Arc<Services>,
    models: Arc<crate::model::Models>,
    chats: Arc<crate::chat::Chats>,
    engine: Arc<Engine>,
    modules: Arc<[HostModule]>,
    plugins: Arc<Plugins>,
    dispatcher: Arc<Dispatcher>,
    counters: Arc<Counters>,
    journal: Arc<CallJournal>,
    history: Arc<History>,
    config: Config,
    shutdowns: Arc<Shutdowns>,
    // Dropped in this order: the watcher first, the runtime last.
    watch: Mutex<Option<Watch>>,
    /// Ends when the plugins let go of it, with everything written.
    history_writer: Mutex<Option<JoinHandle<()>>>,
    _runtime: OwnRuntime,
}

/// A runtime of the host's own that never blocks whoever drops it.
struct OwnRuntime(Option<tokio::runtime::Runtime>);

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Whether the host follows changes on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watching {
    /// Saved files go live by themselves.
    On,
    /// Only what is asked for is loaded again.
    Off,
}

/// Whether the scripts in the binary are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shipped {
    /// The shipped plugins and the standard library.
    All,
    /// The standard library only.
    LibraryOnly,
}

/// Sets a host up. Every setting has a default that works.
pub struct HostBuilder {
    root: Option<PathBuf>,
    extra: Vec<PathBuf>,
    modules: Vec<HostModule>,
    tools: Vec<(Spec, Arc<dyn NativeTool>)>,
    watching: Watching,
    shipped: Shipped,
    history: bool,
    journal: bool,
    brief: bool,
    offline: bool,
    names: Option<Names>,
    network_of: Option<Paths>,
    tape: Option<Arc<dyn Tape>>,
    credentials: credentials::Source,
    commands: Commands,
    clock: Clock,
    bus: Bus,
    engine: Option<Arc<Engine>>,
    config: Map,
}

impl Default for HostBuilder {
    fn default() -> Self {
        HostBuilder {
            root: None,
            extra: Vec::new(),
            modules: Vec::new(),
            tools: Vec::new(),
            watching: Watching::On,
            shipped: Shipped::All,
            history: false,
            journal: false,
            brief: false,
            offline: false,
            names: None,
            network_of: None,
            tape: None,
            credentials: credentials::Source::of_this_user(),
            commands: Commands::Run,
            clock: Clock::system(),
            bus: Bus::default(),
            engine: None,
            config: Map::new(),
        }
    }
}

impl HostBuilder {
    /// The root folder; without it, the rules of the command line find one.
    #[must_use]
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Also loads the `.rhai` files and plugin folders of this folder.
    #[must_use]
    pub fn plugins_from(mut self, folder: impl Into<PathBuf>) -> Self {
        self.extra.push(folder.into());
        self
    }

    /// Adds a host module that every script can call.
    #[must_use]
    pub fn module(mut self, module: HostModule) -> Self {
        self.modules.push(module);
        self
    }

    /// Adds a tool written in Rust.
    #[must_use]
    pub fn tool(mut self, spec: Spec, tool: impl NativeTool + 'static) -> Self {
        self.tools.push((spec, Arc::new(tool)));
        self
    }

    /// Whether the host follows changes on disk; it does unless told otherwise.
    #[must_use]
    pub fn watching(mut self, watching: Watching) -> Self {
        self.watching = watching;
        self
    }

    /// Which of the binary's scripts are there; all unless told otherwise.
    #[must_use]
    pub fn shipped(mut self, shipped: Shipped) -> Self {
        self.shipped = shipped;
        self
    }

    /// Keeps every good version under `user/history`, for `rollback`. Long-running hosts want this.
    #[must_use]
    pub fn keep_history(mut self) -> Self {
        self.history = true;
        self
    }

    /// Keeps every call in the journal, `user/lapidary.db`: what it was given, what came of it, what it said; secrets are taken out,
    /// and nothing of private chats is kept. `[journal] keep = false` in `user/lapidary.toml` says no to it. The doors of the
    /// command line ask for this; a program that embeds the host decides itself, because it may hold what is not its owner's.
    #[must_use]
    pub fn keep_journal(mut self) -> Self {
        self.journal = true;
        self
    }

    /// For a host that lives for one command beside others on the same root: at its end only plugins that were called run
    /// their `shutdown`. The others have nothing to put away, and may be at work in another process.
    #[must_use]
    pub fn brief(mut self) -> Self {
        self.brief = true;
        self
    }

    /// Lets no request leave this machine: for tests.
    #[must_use]
    pub fn offline(mut self) -> Self {
        self.offline = true;
        self
    }

    /// How names become addresses, instead of the system's resolver: for tests, and for who has names of their own.
    #[must_use]
    pub fn names(mut self, names: Names) -> Self {
        self.names = Some(names);
        self
    }

    /// The network settings of another root in the place of its own.
    #[must_use]
    pub(crate) fn network_of(mut self, root: Paths) -> Self {
        self.network_of = Some(root);
        self
    }

    /// What stands in for the network, or listens to it.
    #[must_use]
    pub fn tape(mut self, tape: Arc<dyn Tape>) -> Self {
        self.tape = Some(tape);
        self
    }

    /// Where the credentials of plugins come from; this user's keyring and file, and the environment, unless told otherwise.
    #[must_use]
    pub fn credentials(mut self, source: credentials::Source) -> Self {
        self.credentials = source;
        self
    }

    /// Whether `command::` starts programs for plugins that may run them; it does unless told otherwise.
    #[must_use]
    pub fn commands(mut self, commands: Commands) -> Self {
        self.commands = commands;
        self
    }

    /// The bus that tells what happens. Who brings one hears also what happens while the host starts.
    #[must_use]
    pub fn bus(mut self, bus: Bus) -> Self {
        self.bus = bus;
        self
    }

    /// The engine of another host with the same modules: it holds nothing of any host, and takes time to build.
    #[must_use]
    pub(crate) fn engine(mut self, engine: Arc<Engine>) -> Self {
        self.engine = Some(engine);
        self
    }

    /// The clock that scripts and caches see.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Adds a key to every script's `config`.
    #[must_use]
    pub fn config(mut self, key: &str, value: impl Into<rhai::Dynamic>) -> Self {
        self.config.insert(key.into(), value.into());
        self
    }

    /// Builds and starts the host.
    ///
    /// # Errors
    /// When there is no usable root, or a native tool's name is taken.
    pub async fn build(self) -> Result<Host> {
        // Loading is work for call threads; the caller's runtime thread only waits for it elsewhere.
        let (tx, rx) = tokio::sync::oneshot::channel();
        std::thread::Builder::new()
            .name("lapidary-start".into())
            .spawn(move || tx.send(self.start()))
            .map_err(|e| Error::internal(format!("cannot start a thread: {e}")))?;
        rx.await.map_err(|_| Error::internal("the host failed while starting"))?
    }

    /// As [`HostBuilder::build`], for callers without a runtime.
    ///
    /// # Errors
    /// As [`HostBuilder::build`].
    pub fn start(self) -> Result<Host> {
        let paths = match self.root.clone() {
            Some(root) => Paths::find(Some(root))?,
            None => Paths::find(None)?,
        };
        paths.ensure()?;
        let (config, broken_config) = config::read(&paths);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("lapidary-io")
            .enable_all()
            .build()
            .map_err(|e| Error::internal(format!("cannot start the runtime: {e}")))?;
        let bus = self.bus;
        let mut services = Services::new(paths.clone(), self.clock, bus.clone(), runtime.handle().clone());
        let (mut network, broken_network) = match &self.network_of {
            None => config::network(&config, &paths, broken_config.as_ref()),
            Some(other) => {
                let (config, broken) = config::read(other);
                config::network(&config, other, broken.as_ref())
            }
        };
        network.tape = self.tape;
        if self.offline {
            network.range = Range::ThisMachine;
        }
        if let Some(names) = self.names {
            network.names = names;
        }
        services.net = Client::with(network);
        services.commands = self.commands;
        let keep = match &self.network_of {
            None => config::keep_credentials(&config),
            Some(other) => config::keep_credentials(&config::read(other).0),
        };
        services.credentials =
            credentials::Store::new(self.credentials.or_keep(keep.as_ref().copied().unwrap_or_default()));
        let services = Arc::new(services);
        let (models, broken_models) = models::open(&config, &services);
        let models = Arc::new(models);
        let modules: Arc<[HostModule]> = crate::host::all().into_iter().chain(self.modules).collect();
        let engine = self.engine.unwrap_or_else(|| Arc::new(engine::build(&modules)));
        let pool = Pool::new(CALL_THREADS);
        let stock: Arc<dyn Stock> = match self.shipped {
            Shipped::All => Arc::new(discover::Embedded),
            Shipped::LibraryOnly => Arc::new(crate::plugin::stock::LibraryOnly),
        };
        let _ = services.carried.set(Arc::new(Carried(stock.clone())));
        let snapshot = Arc::new(ArcSwap::from_pointee(Snapshot::default()));
        let counters = Arc::new(Counters::new(bus.clone()));
        let (keeping, broken_journal) = config::journal(&config, &paths, broken_config.as_ref());
        let known = Arc::new(journal::KnownSecrets::new(&services));
        let kept = journal::open(&services, keeping.limits, &known);
        let hook: Arc<dyn Journal> = match self.journal && keeping.keep {
            true => Arc::new(Kept::new(counters.clone(), kept.clone())),
            false => counters.clone(),
        };
        let called = self.brief.then(|| Arc::new(Called { next: hook.clone(), plugins: Mutex::default() }));
        let hook: Arc<dyn Journal> = called.clone().map_or(hook, |called| called);
        let options = Options {
            allow_unflagged_in_private: config::flag(&config, "privacy", "allow_unflagged_tools"),
            config: config::for_scripts(&config, &paths, self.config),
        };
        let dispatcher =
            Dispatcher::new(engine.clone(), services.clone(), pool.clone(), snapshot.clone(), hook, options);
        let shutdowns = Arc::new(Shutdowns::default());
        let retired = {
            let (engine, services, pool, shutdowns) =
                (engine.clone(), services.clone(), pool.clone(), shutdowns.clone());
            Arc::new(move |gone: Gone| {
                if called.as_ref().is_some_and(|called| !called.has(&gone.plugin.name)) {
                    return;
                }
                let (engine, services) = (engine.clone(), services.clone());
                shutdowns.run(&pool, move || shut_down(&engine, &services, &gone));
            })
        };
        let history = Arc::new(History::new(paths.clone(), services.clock.clone(), bus.clone()));
        let loader = Loader {
            engine: engine.clone(),
            services: services.clone(),
            stock,
            reserved: Arc::new(modules.iter().map(HostModule::name).collect::<BTreeSet<_>>()),
            retired,
            unsaved: None,
        };
        // Numbers only: a history that cannot be read starts them over and says so.
        let remembered = history.numbers().unwrap_or_default();
        let plugins = Plugins::new(loader, snapshot, pool, self.extra.clone(), remembered);
        known.look_at(&plugins);
        let port = Arc::new(crate::tool::port::ToolsPort::new(&dispatcher, {
            let plugins = Arc::downgrade(&plugins);
            move |name: &str| {
                if let Some(plugins) = plugins.upgrade() {
                    plugins.refresh_later(name);
                }
            }
        }));
        let _ = services.tools.set(port);
        if !self.tools.is_empty() {
            plugins.add_native(self.tools)?;
        }
        let mut writer = None;
        if self.history {
            crate::plugin::removal::sweep(&services);
            writer = Some(keep_history(&plugins, history.clone(), &bus)?);
        }
        plugins.keep_past(&history);
        plugins.start();
        let host = Host(Arc::new(Inner {
            chats: crate::chat::Chats::new(&services, &dispatcher, &models),
            services,
            models,
            engine,
            modules,
            plugins: plugins.clone(),
            dispatcher,
            counters,
            journal: kept,
            history,
            config,
            shutdowns,
            watch: Mutex::new(None),
            history_writer: Mutex::new(writer),
            _runtime: OwnRuntime(Some(runtime)),
        }));
        if let Some(e) = broken_config {
            tracing::warn!("user/lapidary.toml is not used");
            bus.publish(Event::Notice { subject: "user/lapidary.toml".into(), message: e.to_string() });
        }
        for e in broken_network.into_iter().chain(broken_journal).chain(broken_models) {
            tracing::warn!("a setting in user/lapidary.toml is not used");
            bus.publish(Event::Notice { subject: "user/lapidary.toml".into(), message: e.to_string() });
        }
        if let Err(e) = keep {
            tracing::warn!("the setting that says where credentials are kept is not used");
            bus.publish(Event::Notice { subject: "credentials".into(), message: e.to_string() });
        }
        if self.watching == Watching::On {
            let watch = Watch::start(plugins, &paths, &self.extra)?;
            *host.0.watch.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
        }
        Ok(host)
    }
}

impl Host {
    /// A builder with the defaults.
    #[must_use]
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }

    /// The tools that `who` may see now, in order. Hidden ones are left out.
    #[must_use]
    pub fn tools(&self, who: &Who) -> Vec<Tool> {
        let snapshot = self.0.dispatcher.snapshot();
        snapshot
            .iter()
            .filter(|t| match &who.allowed {
                Some(names) => names.contains(&t.spec.name) && !t.is_gated_off(),
                None => t.is_offered(),
            })
            .map(|t| Tool::of(t))
            .collect()
    }

    /// The names that toolset words stand for now: `all`, a module, a saved toolset, a category, a plugin; one word, or
    /// several names.
    ///
    /// # Errors
    /// `not_found` for a single word that stands for nothing.
    pub fn select(&self, words: &[String]) -> Result<BTreeSet<String>> {
        let saved = crate::tool::saved::load(self.paths())?;
        let snapshot = self.0.dispatcher.snapshot();
        let owners = self.0.services.scopes.owners();
        let catalog = crate::tool::port::catalog(&snapshot, &owners);
        let selection = toolset::select(&catalog, &saved, words);
        match selection.dangling {
            Some(word) => Err(Error::not_found(format!("`{word}` is no toolset, category, plugin or module"))
                .hint(format!("there are: {}", toolset::available(&catalog, &saved).join(" ")))),
            None => Ok(selection.visible(&catalog).into_iter().map(str::to_owned).collect()),
        }
    }

    /// What a model reads of a tool, or of every tool of a plugin: the exact definition in a dialect, what it costs, and what a
    /// change of settings would make of it. Nothing is saved and nothing live changes; it may take as long as `get_tools()`.
    ///
    /// # Errors
    /// `not_found` for a name that is neither; what a save of the change would be refused with, such as `invalid_arguments`.
    pub fn preview(&self, subject: &str, look: &Look) -> Result<Preview> {
        self.0.plugins.preview(subject, look)
    }

    /// Calls a tool through the whole dispatcher.
    ///
    /// # Errors
    /// `invalid_arguments` when the arguments are no object. A tool that fails is an [`Outcome`] that is not `ok`.
    pub async fn call(&self, who: &Who, tool: &str, arguments: Value) -> Result<Outcome> {
        let arguments = match arguments {
            Value::Object(map) => map,
            Value::Null => serde_json::Map::new(),
            other => {
                return Err(
                    Error::invalid(format!("arguments must be an object, not {other}")).hint("pass json!({..})")
                );
            }
        };
        Ok(self.0.dispatcher.call_async(Call::new(tool, arguments, who.clone())).await)
    }

    /// Calls a tool and waits, for callers without a runtime.
    pub fn call_now(&self, call: Call) -> Outcome {
        self.0.dispatcher.call(call)
    }

    /// What happens from now on: reloads, calls, settings. A slow listener loses the oldest and is told so.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.services.bus.subscribe()
    }

    /// What happens from now on beside calls: for who would otherwise be woken by each of them.
    #[must_use]
    pub fn news(&self) -> broadcast::Receiver<Event> {
        self.0.services.bus.news()
    }

    /// The newest revision of what a reader of the tools sees: a new value for every effective change, several at once as one.
    #[must_use]
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.0.plugins.revisions()
    }

    /// The plugins: status, reload, settings.
    #[must_use]
    pub fn plugins(&self) -> &Arc<Plugins> {
        &self.0.plugins
    }

    /// The dispatcher.
    #[must_use]
    pub fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.0.dispatcher
    }

    /// The services.
    #[must_use]
    pub fn services(&self) -> &Arc<Services> {
        &self.0.services
    }

    /// Where everything lives.
    #[must_use]
    pub fn paths(&self) -> &Paths {
        &self.0.services.paths
    }

    /// Earlier versions of the plugins.
    #[must_use]
    pub fn history(&self) -> &Arc<History> {
        &self.0.history
    }

    /// The engine and its host modules, for documentation and checks.
    #[must_use]
    pub fn engine(&self) -> (&Arc<Engine>, &[HostModule]) {
        (&self.0.engine, &self.0.modules)
    }

    /// `user/lapidary.toml`.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Calls counted since the start.
    #[must_use]
    pub fn counted(&self) -> Counted {
        self.0.counters.counted()
    }

    /// Ends the host: no more reloads, every plugin's `shutdown` runs, at most 2 s each.
    pub fn stop(&self) {
        self.0.services.bus.publish(Event::Stopping);
        drop(self.0.watch.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.0.end(Duration::from_secs(5));
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end(Duration::from_secs(3));
    }
}

impl Inner {
    /// Runs every `shutdown` and writes what the history still wants, within a while.
    fn end(&self, most: Duration) {
        self.chats.close();
        self.plugins.stop();
        self.shutdowns.wait(most);
        if let Some(writer) = self.history_writer.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = writer.join();
        }
        self.journal.close();
    }
}

/// A tool as a caller sees it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Tool {
    /// Its name, unique in the host.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
    /// Its plugin.
    pub plugin: String,
    /// Its category.
    pub category: String,
    /// Its file's emoji, or empty.
    pub emoji: String,
    /// The word that stands for the tools of its file in a toolset.
    pub module: String,
    /// The generation that a call would run; 0 for a tool of the program itself.
    pub generation: u64,
}

impl Tool {
    pub(crate) fn of(tool: &LiveTool) -> Tool {
        Tool {
            name: tool.spec.name.clone(),
            description: tool.spec.description.clone(),
            parameters: tool.spec.parameters.clone(),
            plugin: tool.plugin().name.to_string(),
            category: tool.category.to_string(),
            emoji: tool.emoji.to_string(),
            module: tool.module().to_owned(),
            generation: tool.generation(),
        }
    }
}

/// Writes every generation that goes live into the history, on a thread of its own: a save is live before it is kept.
fn keep_history(plugins: &Arc<Plugins>, history: Arc<History>, bus: &Bus) -> Result<JoinHandle<()>> {
    let (tx, rx) = mpsc::channel::<Live>();
    let tx = Mutex::new(tx);
    let bus = bus.clone();
    plugins.on_live(Arc::new(move |live: Live| {
        // What the program carries needs no keeping.
        if !live.is_shipped {
            let _ = tx.lock().unwrap_or_else(PoisonError::into_inner).send(live);
        }
    }));
    std::thread::Builder::new()
        .name("lapidary-history".into())
        .spawn(move || {
            while let Ok(first) = rx.recv() {
                let batch: Vec<Live> =
                    std::iter::once(first).chain(std::iter::from_fn(|| rx.try_recv().ok())).collect();
                let records: Vec<Record<Arc<[u8]>>> = batch
                    .iter()
                    .map(|l| Record { plugin: &l.plugin, generation: l.generation, hash: &l.hash, files: &l.sources })
                    .collect();
                if let Err(e) = history.record_all(&records) {
                    bus.publish(Event::Notice { subject: "user/history".into(), message: format!("not kept: {e}") });
                }
            }
        })
        .map_err(|e| Error::internal(format!("cannot start a thread: {e}")))
}

/// Runs `shutdown()` of a file that nothing can call any more.
fn shut_down(engine: &Engine, services: &Arc<Services>, gone: &Gone) {
    let ctx = Arc::new(Ctx {
        phase: Phase::Shutdown,
        plugin: gone.plugin.clone(),
        generation: gone.generation,
        tool: "shutdown".into(),
        imports: gone.imports.clone(),
        settings: Arc::default(),
        chat: None,
        private: false,
        scopes: Arc::default(),
        caller: "host".into(),
        depth: 0,
        control: Control::start(Budget::SHUTDOWN),
        sink: Arc::new(NoSink),
        heard: Default::default(),
        nested: None,
        mint: Default::default(),
        used: Default::default(),
        services: services.clone(),
    });
    let result = guarded(&ctx, || {
        let call = program::Invocation { function: "shutdown", this: None, arguments: &mut [], level: 0 };
        program::invoke(engine, &gone.program, &ctx, call).map(|_| ())
    });
    let failed = match result {
        Ok(Ok(())) => None,
        Ok(Err(fault)) => {
            Some(crate::script::diagnostic::explain(fault, &gone.program.source.name, &ctx).diagnostic.summary())
        }
        Err(_) => Some("a panic".to_owned()),
    };
    if let Some(what) = failed {
        services.bus.publish(Event::Notice {
            subject: gone.plugin.name.to_string(),
            message: format!("shutdown() of generation {} failed: {what}", gone.generation),
        });
    }
}

/// The shipped plugins' files, as the services below see them.
struct Carried(Arc<dyn Stock>);

impl crate::service::ports::Carried for Carried {
    fn file(&self, plugin: &str, path: &str) -> Option<&'static [u8]> {
        self.0.read(plugin, path)
    }
}

/// Remembers which plugins were called.
struct Called {
    next: Arc<dyn Journal>,
    plugins: Mutex<BTreeSet<Arc<str>>>,
}

impl Called {
    fn has(&self, plugin: &str) -> bool {
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner).contains(plugin)
    }
}

impl Journal for Called {
    fn keeps(&self) -> bool {
        self.next.keeps()
    }

    fn record(&self, record: CallRecord) {
        if record.outcome.generation > 0 {
            self.plugins.lock().unwrap_or_else(PoisonError::into_inner).insert(record.outcome.plugin.clone());
        }
        self.next.record(record);
    }
}

/// Shutdowns under way, so that the host can wait for them.
#[derive(Default)]
struct Shutdowns {
    running: Mutex<usize>,
    done: std::sync::Condvar,
}

impl Shutdowns {
    fn run(self: &Arc<Self>, pool: &Pool, work: impl FnOnce() + Send + 'static) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        let me = self.clone();
        pool.submit(move || {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            *me.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
            me.done.notify_all();
        });
    }

    fn wait(&self, most: Duration) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.done.wait_timeout_while(running, most, |n| *n > 0);
    }
}
