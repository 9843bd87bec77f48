//! The runtime as a plugin meets it: files in memory, a host module that probes, calls on threads with a call's stack.

mod budgets;
mod depth;
mod faults;
mod loading;

use super::alloc::CountingAllocator;
use super::control::{self, Budget, Control, Stop};
use super::ctx::{self, Ctx, NoSink, OrRaise, Phase, PluginCtx, Res, Sink};
use super::diagnostic::{self, Diagnostic, Fault};
use super::module::HostModule;
use super::program::{self, Invocation, Program};
use super::resolver::{Imports, Library, Source};
use super::{engine, lint, pool};
use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result};
use crate::base::event::Bus;
use crate::base::paths::Paths;
use crate::service::Services;
use arc_swap::ArcSwap;
use rhai::{Array, Dynamic, Engine, FuncRegistration, ImmutableString, Map, Module, NativeCallContext, Position};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

/// The budgets are only whole with it.
#[global_allocator]
static ALLOC: CountingAllocator = CountingAllocator;

/// Runs a test on a thread with the stack of a call.
pub(in crate::script) fn on_call_thread(test: impl FnOnce() + Send + 'static) {
    if let Err(panic) = pool::spawn("test", test).unwrap().join() {
        std::panic::resume_unwind(panic);
    }
}

#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<BTreeMap<String, String>>>);

impl Library for Shelf {
    fn read(&self, key: &str) -> Result<Source> {
        let text = self.0.lock().unwrap().get(key).cloned();
        let text = text.ok_or_else(|| Error::not_found(format!("no file {key}.rhai")))?;
        Ok(Source { name: format!("{key}.rhai").as_str().into(), text: text.as_str().into() })
    }
}

/// Log lines of a test.
#[derive(Default)]
pub(in crate::script) struct Heard(pub(super) Mutex<Vec<String>>);

impl Sink for Heard {
    fn log(&self, level: &str, text: &str) {
        self.0.lock().unwrap().push(format!("{level}: {text}"));
    }
}

/// One host with one plugin.
#[derive(Clone)]
pub(in crate::script) struct Rig {
    pub(in crate::script) engine: Arc<Engine>,
    reserved: Arc<BTreeSet<&'static str>>,
    shelf: Shelf,
    pub(in crate::script) counter: Arc<AtomicUsize>,
    pub(in crate::script) budget: Budget,
    pub(in crate::script) sink: Arc<dyn Sink>,
}

/// A file of that plugin, loaded.
pub(in crate::script) struct Loaded {
    pub(in crate::script) program: Arc<Program>,
    pub(in crate::script) imports: Arc<Imports>,
}

impl Rig {
    pub(in crate::script) fn new() -> Rig {
        let counter = Arc::new(AtomicUsize::new(0));
        let seen = counter.clone();
        let modules = [
            HostModule::new("probe", "What tests ask.", move || probe(&seen)),
            HostModule::new("text", "A few texts.", || {
                let mut m = Module::new();
                m.set_native_fn("join", |_: Array, _: ImmutableString| Ok(String::new()));
                m.set_native_fn("truncate", |text: ImmutableString, _: i64| Ok(text));
                m.set_native_fn("truncate", |text: ImmutableString| Ok(text));
                m.set_native_fn("lines", |_: ImmutableString| Ok(Array::new()));
                m
            }),
            HostModule::new("settings", "The plugin's settings.", || {
                let mut m = Module::new();
                FuncRegistration::new("get").set_into_module(
                    &mut m,
                    |call: NativeCallContext, key: &str| -> Res<Dynamic> {
                        Ok(ctx::any(&call)?.settings.get(key).cloned().unwrap_or(Dynamic::UNIT))
                    },
                );
                FuncRegistration::new("all").set_into_module(&mut m, |call: NativeCallContext| -> Res<Map> {
                    Ok((*ctx::any(&call)?.settings).clone())
                });
                m
            }),
        ];
        Rig {
            engine: Arc::new(engine::build(&modules)),
            reserved: Arc::new(modules.iter().map(HostModule::name).collect()),
            shelf: Shelf::default(),
            counter,
            budget: Budget::CALL,
            sink: Arc::new(NoSink),
        }
    }

    pub(in crate::script) fn with(self, key: &str, text: &str) -> Rig {
        self.shelf.0.lock().unwrap().insert(key.to_owned(), text.to_owned());
        self
    }

    pub(in crate::script) fn remove(&self, key: &str) {
        self.shelf.0.lock().unwrap().remove(key);
    }

    pub(in crate::script) fn budget(mut self, budget: Budget) -> Rig {
        self.budget = budget;
        self
    }

    pub(in crate::script) fn ctx(
        &self,
        phase: Phase,
        imports: Arc<Imports>,
        control: Arc<Control>,
        caller: &str,
    ) -> Arc<Ctx> {
        let mut settings = Map::new();
        settings.insert("sides".into(), 6_i64.into());
        Arc::new(Ctx {
            phase,
            plugin: Arc::new(PluginCtx {
                name: "probe".into(),
                assets: None,
                grants: ArcSwap::default(),
                direct: Default::default(),
            }),
            generation: 1,
            tool: "".into(),
            imports,
            settings: Arc::new(settings),
            chat: None,
            private: false,
            scopes: Arc::default(),
            caller: caller.into(),
            depth: 0,
            control,
            sink: self.sink.clone(),
            heard: Default::default(),
            nested: None,
            mint: Default::default(),
            used: Default::default(),
            services: services(),
        })
    }

    /// Loads an entry file as the plugin layer does.
    pub(in crate::script) fn load(&self, text: &str) -> std::result::Result<Loaded, Fault> {
        self.load_source(&Source { name: "tools/t.rhai".into(), text: text.into() }, Budget::LOAD)
    }

    pub(in crate::script) fn load_source(&self, source: &Source, budget: Budget) -> std::result::Result<Loaded, Fault> {
        let imports = Imports::new(Box::new(self.shelf.clone()), self.reserved.clone());
        let ctx = self.ctx(Phase::Load, imports.clone(), Control::start(budget), "host");
        let _running = control::enter(ctx.control.clone());
        match program::load(&self.engine, &ctx, source) {
            Ok(program) => Ok(Loaded { program: Arc::new(program), imports }),
            Err(fault) => Err(diagnostic::explain(fault, &source.name, &ctx)),
        }
    }

    /// What `lint::check` finds in a file that loads.
    pub(in crate::script) fn findings(&self, text: &str) -> Vec<Diagnostic> {
        lint::check(&self.load(text).unwrap_or_else(|f| panic!("{}", f.diagnostic.render())).program)
    }

    /// Calls a function of a loaded file as the tool layer does.
    pub(in crate::script) fn call(
        &self,
        loaded: &Loaded,
        function: &str,
        arguments: Vec<Dynamic>,
    ) -> std::result::Result<Dynamic, Fault> {
        self.call_with(loaded, function, arguments, &Control::start(self.budget), "owner")
    }

    pub(in crate::script) fn call_with(
        &self,
        loaded: &Loaded,
        function: &str,
        mut arguments: Vec<Dynamic>,
        control: &Arc<Control>,
        caller: &str,
    ) -> std::result::Result<Dynamic, Fault> {
        let ctx = self.ctx(Phase::Call, loaded.imports.clone(), control.clone(), caller);
        let _running = control::enter(control.clone());
        let call = Invocation { function, this: None, arguments: &mut arguments, level: 0 };
        match catch_unwind(AssertUnwindSafe(|| program::invoke(&self.engine, &loaded.program, &ctx, call))) {
            Ok(result) => result.map_err(|fault| diagnostic::explain(fault, &loaded.program.source.name, &ctx)),
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().copied().unwrap_or("panic").to_owned();
                let error = Error::internal(text);
                Err(Fault { diagnostic: Diagnostic::from_error("internal", "", &error), error })
            }
        }
    }

    /// Loads a file and calls its `f()`.
    pub(in crate::script) fn run(&self, text: &str) -> std::result::Result<Dynamic, Fault> {
        self.call(&self.load(text)?, "f", vec![])
    }

    /// As [`Rig::run`], as text; a failure as `code: message`.
    pub(in crate::script) fn say(&self, text: &str) -> String {
        match self.run(text) {
            Ok(value) => value.to_string(),
            Err(fault) => format!("{}: {}", fault.error.code(), fault.error.message()),
        }
    }
}

/// Services of a root that does not exist: nothing here touches the disk.
fn services() -> Arc<Services> {
    static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| tokio::runtime::Runtime::new().unwrap());
    Arc::new(Services::new(Paths::at("/nonexistent"), Clock::system(), Bus::new(1), RUNTIME.handle().clone()))
}

/// The probing module: what a native sees and does.
fn probe(counter: &Arc<AtomicUsize>) -> Module {
    let mut m = Module::new();
    let seen = counter.clone();
    FuncRegistration::new("count").set_into_module(&mut m, move || seen.fetch_add(1, Ordering::Relaxed) as i64 + 1);
    FuncRegistration::new("who").set_into_module(&mut m, |call: NativeCallContext| -> Res<String> {
        let ctx = ctx::any(&call)?;
        Ok(format!("{:?} {}", ctx.phase, ctx.caller))
    });
    FuncRegistration::new("acts")
        .set_into_module(&mut m, |call: NativeCallContext| -> Res<bool> { ctx::live(&call).map(|_| true) });
    FuncRegistration::new("fails").set_into_module(&mut m, |call: NativeCallContext, what: &str| -> Res<bool> {
        Err(Error::not_found(format!("no {what}"))).hint_or_raise(&call)
    });
    FuncRegistration::new("panics").set_into_module(&mut m, || -> bool { panic!("a native broke") });
    FuncRegistration::new("each").set_into_module(
        &mut m,
        |call: NativeCallContext, f: rhai::FnPtr, value: Dynamic| -> Res<Dynamic> {
            f.call_within_context(&call, (value,))
        },
    );
    // A tool that calls a tool: its own budget inside the outer one, the depth of calls counted on.
    FuncRegistration::new("nest").set_into_module(
        &mut m,
        |call: NativeCallContext, name: &str, operations: i64| -> Res<Dynamic> {
            let outer = ctx::any(&call)?;
            let budget = Budget { operations: operations as u64, ..Budget::CALL };
            let control = Control::nested(budget, &outer.control);
            let _running = control::enter(control.clone());
            let mut global = call.engine().new_global_runtime_state();
            global.lib = call.global_runtime_state().lib.clone();
            global.tag = ctx::tag(outer.clone());
            global.level = call.call_level();
            NativeCallContext::new_with_all_fields(call.engine(), name, None, &global, Position::NONE)
                .call_fn_raw(name, false, false, &mut [])
                .map_err(|fault| {
                    let only_inner = control.stopped() != Stop::No && outer.control.stopped() == Stop::No;
                    if only_inner { ctx::raise(&call, &control.error()) } else { fault }
                })
        },
    );
    m
}

trait HintOrRaise<T> {
    fn hint_or_raise(self, call: &NativeCallContext) -> Res<T>;
}

impl<T> HintOrRaise<T> for Result<T> {
    fn hint_or_raise(self, call: &NativeCallContext) -> Res<T> {
        self.map_err(|e| e.hint("look elsewhere")).or_raise(call)
    }
}

#[test]
fn the_counting_allocator_is_probed() {
    assert!(super::alloc::is_installed());
    assert_eq!(Kind::Quota.code(), "quota");
}
