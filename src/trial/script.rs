//! A test script: loaded like a tool file, its functions run one by one on a call thread.

use super::recipe::{Recipe, TestFile};
use super::world::{Bench, Stage, World};
use crate::app::Host;
use crate::plugin::discover::Found;
use crate::plugin::load::guarded;
use crate::plugin::read::Shelf;
use crate::script::control::{Budget, Control};
use crate::script::ctx::{Ctx, Phase};
use crate::script::diagnostic::{self, Diagnostic};
use crate::script::program::{self, Program};
use crate::script::resolver::{Imports, Source};
use crate::script::value;
use crate::service::permissions::Declared;
use rhai::Map;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The chat that a test's calls belong to.
pub(super) const CHAT: &str = "test";
/// What a test's function is called.
const PREFIX: &str = "test_";

/// A loaded test script in its world.
pub struct Loaded<'a> {
    world: &'a World,
    program: Arc<Program>,
    imports: Arc<Imports>,
}

impl<'a> Loaded<'a> {
    pub(super) fn load(world: &'a World, source: Source, shelf: &Shelf) -> Result<Loaded<'a>, Vec<Diagnostic>> {
        let (_, modules) = world.host.engine();
        let reserved: BTreeSet<&'static str> = modules.iter().map(crate::script::module::HostModule::name).collect();
        let imports = Imports::new(shelf.library(), Arc::new(reserved));
        let ctx = context(world, "", Phase::Load, &imports, Budget::LOAD);
        let engine = world.engine.clone();
        let program = on_call_thread(world, "", move || {
            let done = guarded(&ctx, || program::load(&engine, &ctx, &source));
            match done {
                Ok(Ok(program)) => Ok(program),
                Ok(Err(fault)) => Err(vec![diagnostic::explain(fault, &source.name, &ctx).diagnostic]),
                Err(panic) => {
                    Err(vec![Diagnostic::error("internal", &*source.name, format!("loading panicked: {panic}"))])
                }
            }
        })?;
        let loaded = Loaded { world, program: Arc::new(program), imports };
        if world.generation.is_none() {
            loaded.take_permissions()?;
        }
        loaded.check()?;
        Ok(loaded)
    }

    /// A script that stands for itself declares what it needs as a tool file does.
    fn take_permissions(&self) -> Result<(), Vec<Diagnostic>> {
        let Some(declared) = self.program.constants.get("PERMISSIONS") else { return Ok(()) };
        value::to_json(declared)
            .and_then(|value| Declared::parse(&value))
            .and_then(|declared| self.world.grant(&declared))
            .map_err(|e| vec![Diagnostic::from_error("load", &*self.program.source.name, &e)])
    }

    fn check(&self) -> Result<(), Vec<Diagnostic>> {
        let wrong: Vec<Diagnostic> = self
            .program
            .functions
            .iter()
            .filter(|f| f.name.starts_with(PREFIX) && (f.private || !f.params.is_empty()))
            .map(|f| {
                let why =
                    if f.private { "is private, so nothing can call it" } else { "has parameters; a test has none" };
                Diagnostic::error("load", &*self.program.source.name, format!("`{}` {why}", f.name)).at(
                    &self.program.source.text,
                    f.line,
                    f.column,
                )
            })
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Names of its tests, in source order.
    pub fn tests(&self) -> Vec<String> {
        self.program.functions.iter().filter(|f| f.name.starts_with(PREFIX)).map(|f| f.name.clone()).collect()
    }

    /// Runs one test.
    ///
    /// # Errors
    /// What went wrong; behind it, where the last tool that was called failed.
    pub fn run(&self, test: &str) -> Result<(), Vec<Diagnostic>> {
        let ctx = context(self.world, test, Phase::Call, &self.imports, Budget::CALL);
        let _doors = self.world.open_doors(&ctx);
        let (engine, program, function) = (self.world.engine.clone(), self.program.clone(), test.to_owned());
        let done = on_call_thread(self.world, test, move || {
            let called = guarded(&ctx, || {
                let call = program::Invocation { function: &function, this: None, arguments: &mut [], level: 0 };
                program::invoke(&engine, &program, &ctx, call).map(|_| ())
            });
            match called {
                Ok(Ok(())) => Ok(()),
                Ok(Err(fault)) => Err(vec![diagnostic::explain(fault, &program.source.name, &ctx).diagnostic]),
                Err(panic) => {
                    Err(vec![Diagnostic::error("internal", &*program.source.name, format!("a panic: {panic}"))])
                }
            }
        });
        let inner = self.world.watcher.take_failed();
        done.map_err(|mut all| {
            // The tool's own place helps only where its failure is the test's.
            all.extend(inner.filter(|d| all.iter().any(|a| a.message.contains(&d.message) || a.message == d.message)));
            all
        })
    }
}

fn on_call_thread<T: Send + 'static>(
    world: &World,
    what: &str,
    work: impl FnOnce() -> Result<T, Vec<Diagnostic>> + Send + 'static,
) -> Result<T, Vec<Diagnostic>> {
    let pool = world.host.dispatcher().pool();
    pool.run(work).unwrap_or_else(|| Err(vec![Diagnostic::error("internal", what, "the test failed inside the host")]))
}

fn context(world: &World, tool: &str, phase: Phase, imports: &Arc<Imports>, budget: Budget) -> Arc<Ctx> {
    let name = world.generation.as_ref().map(|g| g.name().to_string());
    let view = name.and_then(|name| world.host.plugins().settings_view(&name).ok());
    let settings: Map = view.and_then(|view| value::from_object(&view.values).ok()).unwrap_or_default();
    Arc::new(Ctx {
        phase,
        plugin: world.plugin.clone(),
        generation: world.generation.as_ref().map_or(1, |g| g.number),
        tool: tool.into(),
        imports: imports.clone(),
        settings: Arc::new(settings),
        chat: Some(CHAT.into()),
        private: false,
        scopes: Arc::default(),
        caller: "owner".into(),
        depth: 0,
        control: Control::start(budget),
        sink: world.watcher.clone(),
        heard: Default::default(),
        nested: (phase == Phase::Call).then(|| world.tools()),
        mint: Default::default(),
        used: Default::default(),
        services: world.host.services().clone(),
    })
}

/// Whether a test script would load: for checks. Gives the names of its tests.
///
/// # Errors
/// Its diagnostics, or its plugin's.
pub fn load_script(host: &Host, path: &Path, owner: Option<&Found>) -> Result<Vec<String>, Vec<Diagnostic>> {
    let shown = host.paths().shown(path);
    let refuse = |e: &crate::base::error::Error| vec![Diagnostic::from_error("load", shown.as_str(), e)];
    let file = TestFile::read(path, owner, host.paths()).map_err(|e| refuse(&e))?;
    let known: Vec<Found> = host.plugins().names().iter().filter_map(|n| host.plugins().found(n)).collect();
    let recipe = owner
        .map_or_else(|| Ok(Recipe::alone()), |found| Recipe::of(found, host.paths(), &known))
        .map_err(|e| refuse(&e))?;
    let world = World::make(&mut Bench::default(), &recipe, &Stage::closed(host.paths()))?;
    let loaded = world.load(&file)?;
    Ok(loaded.tests())
}

/// Whether a shared module would load.
///
/// # Errors
/// Its diagnostics.
pub fn load_module(host: &Host, name: &str) -> Result<(), Vec<Diagnostic>> {
    let importer = format!("import \"std/{name}\" as it;\n");
    let recipe = Recipe::modules(host.paths())
        .map_err(|e| vec![Diagnostic::from_error("load", format!("stdlib/{name}.rhai"), &e)])?;
    let world = World::make(&mut Bench::default(), &recipe, &Stage::closed(host.paths()))?;
    world.load(&TestFile::of_text(&format!("stdlib/{name}.rhai"), importer.into_bytes())).map(|_| ())
}
