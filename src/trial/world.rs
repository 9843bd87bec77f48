//! One test's world: a root of its own, a clock that stands still, a host without watcher and without network.
//! The host and its engine are the real ones; only the test script itself sees the assertions.

use super::BEGINNING;
use super::asserts;
use super::golden::Seen;
use super::recipe::{Recipe, TempRoot, TestFile};
use super::recording::{Deck, Played, Requests};
use super::script::Loaded;
use crate::app::{Host, Shipped, Watching};
use crate::base::clock::Clock;
use crate::base::error::{Error, Result, io};
use crate::base::event::Bus;
use crate::base::paths::Paths;
use crate::plugin::discover::{Embedded, Found, Location, Origin};
use crate::plugin::load::Generation;
use crate::plugin::read::Shelf;
use crate::plugin::set::Switch;
use crate::plugin::tune::{Change, Mode};
use crate::script::ctx::{Ctx, NestedCalls, PluginCtx, Sink};
use crate::script::diagnostic::Diagnostic;
use crate::script::program;
use crate::service::command::Commands;
use crate::service::credentials::{Placeholders, Source};
use crate::service::grants::{Grant, GrantStore};
use crate::service::permissions::{self, Declared, Permission, Reach};
use crate::tool::dispatch::{Arguments, Call, Dispatcher, Outcome, Who};
use arc_swap::ArcSwap;
use rhai::Engine;
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What the worlds of one run share: it holds nothing of any test.
#[derive(Default)]
pub struct Bench {
    engines: Option<Engines>,
}

#[derive(Clone)]
struct Engines {
    /// The host's, without assertions.
    host: Arc<Engine>,
    /// The same with assertions, for test scripts.
    test: Arc<Engine>,
    doors: asserts::Doors,
}

/// One test's world.
pub struct World {
    pub(super) host: Host,
    pub(super) engine: Arc<Engine>,
    pub(super) plugin: Arc<PluginCtx>,
    pub(super) generation: Option<Arc<Generation>>,
    pub(super) watcher: Arc<Watcher>,
    doors: asserts::Doors,
    deck: Arc<Deck>,
    placeholders: Placeholders,
    /// What a script that stands for itself declares.
    declared: OnceLock<Arc<Declared>>,
    /// What the owner granted in life, where that counts.
    owned: Option<GrantStore>,
    root: TempRoot,
}

/// Where a world's requests go.
pub struct Stage<'a> {
    /// What answers them, or listens.
    pub deck: Arc<Deck>,
    /// The root that the plugin comes from: its network, and what its owner granted, count where requests are sent.
    pub root: &'a Paths,
}

impl Stage<'_> {
    /// A world that asks for nothing.
    pub fn closed(root: &Paths) -> Stage<'_> {
        Stage { deck: Deck::empty(), root }
    }
}

/// Hears what the script and its tools say, and what went wrong in the last tool.
#[derive(Default)]
pub struct Watcher {
    log: Mutex<Vec<String>>,
    failed: Mutex<Option<Diagnostic>>,
}

/// An `@example` to run.
pub struct Example {
    /// The tool.
    pub tool: String,
    /// The file it stands in.
    pub file: String,
    /// Its arguments.
    pub arguments: Value,
    /// What the result must match.
    pub expect: String,
    /// Its line, or 0.
    pub line: usize,
    /// The text of the file.
    text: Arc<str>,
}

/// Most lines of a test's log that are kept.
const MAX_LOG: usize = 200;

impl Sink for Watcher {
    fn log(&self, level: &str, text: &str) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() < MAX_LOG {
            log.push(format!("{level}: {text}"));
        }
    }
}

impl Watcher {
    pub(super) fn take_failed(&self) -> Option<Diagnostic> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl World {
    /// A new world. The plugin holds every permission that it declares, and every credential has a stand-in: nothing in here
    /// can harm. Where requests are sent, hosts and credentials are those that its owner granted.
    ///
    /// # Errors
    /// The diagnostics of a plugin that does not load, or why there can be no world.
    pub fn make(bench: &mut Bench, recipe: &Recipe, stage: &Stage) -> Result<World, Vec<Diagnostic>> {
        let root = TempRoot::new().map_err(|e| impossible(&e))?;
        recipe.write(root.path()).map_err(|e| impossible(&e))?;
        let shipped = if recipe.plugin.is_some() { Shipped::LibraryOnly } else { Shipped::All };
        let mut builder = Host::builder()
            .root(root.path())
            .watching(Watching::Off)
            .shipped(shipped)
            .clock(Clock::manual(BEGINNING))
            .commands(Commands::Refused)
            .tape(stage.deck.clone())
            .brief();
        let placeholders;
        builder = match stage.deck.requests() {
            Requests::Replayed => {
                placeholders = Placeholders::for_all();
                builder.credentials(Source::none().behind(placeholders.clone())).offline()
            }
            Requests::Recorded => {
                placeholders = Placeholders::for_given();
                let source = Source::of_this_user().behind(placeholders.clone());
                builder.credentials(source).network_of(stage.root.clone())
            }
        };
        if let Some(engines) = &bench.engines {
            builder = builder.engine(engines.host.clone());
        }
        let host = builder.start().map_err(|e| impossible(&e))?;
        host.services().chat_state.make_on_use(super::script::CHAT);
        let engines = bench.engines.get_or_insert_with(|| {
            let (host, modules) = host.engine();
            let (test, doors) = asserts::engine(modules);
            Engines { host: host.clone(), test: Arc::new(test), doors }
        });
        let engines = engines.clone();
        let owned = match stage.deck.requests() {
            Requests::Replayed => None,
            Requests::Recorded => Some(GrantStore::new(stage.root.clone(), Clock::system(), Bus::default())),
        };
        let generation = recipe.plugin.as_deref().map(|name| live(&host, name, owned.as_ref())).transpose()?;
        let plugin = match &generation {
            Some(generation) => generation.plugin.clone(),
            None => Arc::new(PluginCtx {
                name: "script".into(),
                assets: None,
                grants: ArcSwap::default(),
                direct: Default::default(),
            }),
        };
        let world = World {
            host,
            engine: engines.test,
            plugin,
            generation,
            watcher: Arc::default(),
            doors: engines.doors,
            deck: stage.deck.clone(),
            placeholders,
            declared: OnceLock::new(),
            owned,
            root,
        };
        if let Some(generation) = &world.generation {
            world.know(&generation.declared).map_err(|e| impossible(&e))?;
        }
        Ok(world)
    }

    /// Loads a test script: its top level runs, as a tool file's does.
    ///
    /// # Errors
    /// Its diagnostics.
    pub fn load<'a>(&'a self, file: &TestFile) -> Result<Loaded<'a>, Vec<Diagnostic>> {
        let source = program::decode(&file.shown, file.bytes.clone())
            .map_err(|e| vec![Diagnostic::from_error("load", file.shown.as_str(), &e)])?;
        let shelf = self.shelf().map_err(|d| vec![d])?;
        Loaded::load(self, source, &shelf)
    }

    /// Where a test script's imports come from: its plugin, or the shared modules alone.
    fn shelf(&self) -> Result<Shelf, Diagnostic> {
        let name = self.generation.as_ref().map(|g| g.name().to_string());
        let found = name.and_then(|n| self.host.plugins().found(&n)).unwrap_or_else(|| Found {
            name: "script".into(),
            origin: Origin::Extra,
            location: Location::Folder(self.root.path().to_path_buf()),
            root: self.root.path().to_path_buf(),
        });
        Shelf::open(&found, Arc::new(Embedded))
    }

    /// What a script that stands for itself may do: everything that it declares.
    ///
    /// # Errors
    /// For permissions that cannot be read.
    pub(super) fn grant(&self, declared: &Declared) -> Result<()> {
        let grants = &self.host.services().grants;
        give(&self.host, &self.plugin.name, declared, self.owned.as_ref())?;
        self.plugin.grants.store(grants.effective(&self.plugin.name, declared));
        let _ = self.declared.set(Arc::new(declared.clone()));
        self.know(declared)
    }

    /// Binds stand-ins for credentials to the declared hosts, or tells the recorder what to hide.
    fn know(&self, declared: &Declared) -> Result<()> {
        if let Reach::Listed(hosts) = declared.hosts() {
            self.placeholders.bind(hosts.iter().cloned());
        }
        let names = match declared.secrets() {
            Reach::Listed(names) => names.iter().map(String::as_str).collect(),
            Reach::None | Reach::Any => Vec::new(),
        };
        self.deck.hide(self.host.services().credentials.redactor(names)?);
        Ok(())
    }

    /// What its requests came to.
    pub fn played(&self) -> Played {
        self.deck.finish()
    }

    /// Puts the assertions' doors to this world in force for the scripts of this context.
    pub(super) fn open_doors(&self, ctx: &Arc<Ctx>) -> asserts::Open {
        let host = self.host.clone();
        let name = self.generation.as_ref().map(|g| g.name().clone());
        let set_setting = {
            let (host, name) = (host.clone(), name.clone());
            Box::new(move |key: &str, value| set(&host, name.as_deref(), key, value))
        };
        let below = self.root.path().join("granted");
        let grant_folder = Box::new(move |folder: &str| grant_folder(&host, name.as_deref(), &below, folder));
        let (host, plugin) = (self.host.clone(), self.plugin.clone());
        let declared = self.generation.as_ref().map(|g| g.declared.clone()).or_else(|| self.declared.get().cloned());
        let revoke = Box::new(move |text: &str| {
            let store = &host.services().grants;
            for grant in Grant::parse(text)? {
                store.revoke(&plugin.name, &grant)?;
            }
            host.plugins().grants_changed();
            // A script that stands for itself is no plugin that hears of it.
            plugin.grants.store(store.effective(&plugin.name, &declared.clone().unwrap_or_default()));
            Ok(())
        });
        self.doors
            .open(ctx, asserts::Hands { set_setting, grant_folder, revoke, credentials: self.placeholders.clone() })
    }

    /// How test scripts reach tools.
    pub(super) fn tools(&self) -> Arc<dyn NestedCalls> {
        Arc::new(Owner { dispatcher: self.host.dispatcher().clone(), watcher: self.watcher.clone() })
    }

    /// What a model sees of its tools.
    pub fn seen(&self) -> Option<Seen> {
        self.generation.as_deref().map(Seen::of)
    }

    /// The `@example`s of its tools, in source order.
    pub fn examples(&self) -> Vec<Example> {
        let Some(generation) = &self.generation else { return Vec::new() };
        let mut out = Vec::new();
        for file in &generation.files {
            let source = &file.unit.program.source;
            for example in file.tools.iter().flat_map(|draft| draft.spec.examples.iter().map(move |e| (draft, e))) {
                out.push(Example {
                    tool: example.0.spec.name.clone(),
                    file: source.name.to_string(),
                    arguments: example.1.arguments.clone(),
                    expect: example.1.expect.clone(),
                    line: example.1.line,
                    text: source.text.clone(),
                });
            }
        }
        out
    }

    /// Runs an example: the call succeeds and its text matches.
    ///
    /// # Errors
    /// What went wrong, at the example's line.
    pub fn run_example(&self, example: &Example) -> Result<(), Vec<Diagnostic>> {
        let arguments = example.arguments.as_object().cloned().unwrap_or_default();
        let outcome = call(self.host.dispatcher(), &self.watcher, example.tool.as_str(), arguments, None);
        let here = |message: String| {
            Diagnostic::error("example", example.file.as_str(), message).at(&example.text, example.line, 1)
        };
        if !outcome.ok {
            let mut all = vec![here(format!("the example failed: {}", outcome.text))];
            all.extend(self.watcher.take_failed());
            return Err(all);
        }
        if example.expect.is_empty() {
            return Ok(());
        }
        match regex::Regex::new(&example.expect) {
            Ok(pattern) if pattern.is_match(&outcome.text) => Ok(()),
            Ok(_) => Err(vec![
                here(format!("the result does not match /{}/", example.expect))
                    .hint(format!("it was: {}", clip(&outcome.text, 200))),
            ]),
            Err(e) => Err(vec![here(format!(
                "/{}/ is not a pattern: {}",
                example.expect,
                e.to_string().lines().last().unwrap_or_default()
            ))]),
        }
    }

    /// What was logged, oldest first.
    pub fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut *self.watcher.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A text of at most `most` characters.
pub(super) fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.to_owned() } else { text.chars().take(most).chain(['…']).collect() }
}

fn impossible(e: &Error) -> Vec<Diagnostic> {
    vec![Diagnostic::from_error("internal", "", e)]
}

/// The plugin under test, switched on and holding what it declares.
fn live(host: &Host, name: &str, owned: Option<&GrantStore>) -> Result<Arc<Generation>, Vec<Diagnostic>> {
    let plugins = host.plugins();
    let mut status = plugins.status(name);
    if status.as_ref().is_some_and(|s| !s.enabled) {
        status = Some(plugins.switch(name, Switch::On).map_err(|e| impossible(&e))?);
    }
    let bad = status.map(|s| s.diagnostics).unwrap_or_default();
    let Some(generation) = plugins.live(name) else {
        if bad.is_empty() {
            return Err(impossible(&Error::internal(format!("`{name}` is not there"))));
        }
        return Err(bad);
    };
    give(host, name, &generation.declared, owned).map_err(|e| impossible(&e))?;
    plugins.grants_changed();
    Ok(generation)
}

/// Grants everything that is declared and missing; of hosts and credentials what the owner granted in life, where that counts.
fn give(host: &Host, name: &str, declared: &Declared, owned: Option<&GrantStore>) -> Result<()> {
    let store = &host.services().grants;
    let reaches_out = |p: Permission| matches!(p, Permission::ExternalHttp | Permission::UseSecrets);
    if let Some(owned) = owned {
        let record = owned.record(name)?;
        for permission in Permission::ALL.iter().copied().filter(|p| reaches_out(*p)) {
            if record.granted.contains(permission.as_str()) {
                store.grant(name, &Grant::Permission(permission))?;
            }
            if record.denied.contains(permission.as_str()) {
                store.revoke(name, &Grant::Permission(permission))?;
            }
        }
        let hosts = record.hosts.into_iter().map(Grant::Host);
        for grant in hosts.chain(record.secrets.into_iter().map(Grant::Secret)) {
            store.grant(name, &grant)?;
        }
    }
    // A list beside any host is held at once, and what is beside it is not missed.
    if owned.is_none() && *declared.hosts() == Reach::Any {
        store.grant(name, &Grant::Permission(Permission::ExternalHttp))?;
    }
    for missing in permissions::missing(declared, &store.effective(name, declared)) {
        if owned.is_some() && reaches_out(missing.permission) {
            continue;
        }
        for grant in Grant::parse(&missing.argument())? {
            store.grant(name, &grant)?;
        }
    }
    Ok(())
}

/// An empty folder of the world, granted under a name.
fn grant_folder(host: &Host, plugin: Option<&str>, below: &Path, name: &str) -> Result<()> {
    let plugin = plugin.ok_or_else(|| alone("is granted no folder"))?;
    let at = below.join(name);
    for grant in Grant::parse(&format!("folder:{name}={}", at.display()))? {
        std::fs::create_dir_all(&at).map_err(|e| io("cannot make the folder", &e))?;
        host.services().grants.grant(plugin, &grant)?;
    }
    host.plugins().grants_changed();
    Ok(())
}

fn alone(what: &str) -> Error {
    Error::not_found(format!("a script without a plugin {what}"))
        .hint("put the test into the tests/ folder of a plugin")
}

/// A setting, through the same transaction as every door.
fn set(host: &Host, plugin: Option<&str>, key: &str, value: Value) -> Result<()> {
    let plugin = plugin.ok_or_else(|| alone("has no settings"))?;
    let mut patch = Map::new();
    patch.insert(key.to_owned(), value);
    host.plugins().tune(plugin, &Change::Patch(patch), Mode::Commit, None).map(|_| ())
}

/// Calls from a test are the owner's own: each with budgets of its own, as from any door.
struct Owner {
    dispatcher: Arc<Dispatcher>,
    watcher: Arc<Watcher>,
}

impl NestedCalls for Owner {
    fn run_nested(
        self: Arc<Self>,
        parent: &Arc<Ctx>,
        _level: usize,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value> {
        let outcome = call(&self.dispatcher, &self.watcher, tool, arguments, parent.chat.as_deref());
        match outcome.error {
            Some(error) => Err(error),
            None => Ok(outcome.structured.unwrap_or(Value::String(outcome.text))),
        }
    }
}

fn call(
    dispatcher: &Arc<Dispatcher>,
    watcher: &Arc<Watcher>,
    tool: &str,
    arguments: Map<String, Value>,
    chat: Option<&str>,
) -> Outcome {
    let mut who = Who::owner("test");
    who.chat = chat.map(Into::into);
    let outcome = dispatcher.call(Call {
        arguments: Arguments::Object(arguments),
        sink: watcher.clone(),
        ..Call::new(tool, Map::new(), who)
    });
    *watcher.failed.lock().unwrap_or_else(PoisonError::into_inner) = outcome.diagnostic.clone();
    outcome
}
