//! The one place that runs a tool (promise 1): look-up, gate, arguments, script, result, journal, in that order.
//! Every door and every nested call comes through here; it has no rule of its own about who may do what.

mod finish;

use finish::Returned;
pub(super) use finish::ended;

use super::arguments;
use super::gate;
pub use super::gate::NESTING;
use super::journal::{CallRecord, Called, Journal};
use super::pictures;
use super::registry::{Code, Form, LiveTool, Snapshot, Unit};
use super::result::Handles;
pub use super::running::CallHandle;
use super::running::{Calls, Place, Running};
use super::spec::Spec;
pub use super::who::Who;
use crate::base::error::{Error, Kind, Result};
use crate::script::alloc;
use crate::script::control::{self, Budget, Control};
use crate::script::ctx::{Ctx, NestedCalls, NoSink, Phase, PluginCtx, Sink};
use crate::script::diagnostic::{self, Diagnostic};
use crate::script::pool::{self, Pool};
use crate::script::program::{self, Invocation};
use crate::script::resolver::Imports;
use crate::script::value;
use crate::service::Services;
use crate::service::markers::{Mint, Part};
use crate::service::scopes::ScopeValues;
use arc_swap::ArcSwap;
use rhai::{Dynamic, Engine, Map};
use serde_json::Value;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Panics of native code under one generation of a plugin before its tools are refused.
const PANICS: u32 = 3;
/// Most characters of a failure's message or hint. Less than what counts as raw base64, so that none of it gets through.
const FAILURE_CHARS: usize = 4000;

/// What a tool is given.
#[derive(Clone)]
pub enum Arguments {
    /// JSON text, as it came.
    Text(String),
    /// An object that was parsed already.
    Object(serde_json::Map<String, Value>),
}

/// One call.
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Arguments,
    /// Who calls.
    pub who: Who,
    /// Where progress and log lines go.
    pub sink: Arc<dyn Sink>,
    /// The snapshot to run against; the newest where there is none.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Filled with the call's control as soon as it runs, so that it can be cancelled.
    pub handle: Option<Arc<CallHandle>>,
}

impl Call {
    /// A call with a parsed object, no sink, the newest snapshot.
    pub fn new(tool: impl Into<String>, arguments: serde_json::Map<String, Value>, who: Who) -> Call {
        Call {
            tool: tool.into(),
            arguments: Arguments::Object(arguments),
            who,
            sink: Arc::new(NoSink),
            snapshot: None,
            handle: None,
        }
    }
}

/// How a call ended. The model's copy and the person's copy are made from this one value.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Id of the call.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// The plugin it belongs to; empty for an unknown tool.
    pub plugin: Arc<str>,
    /// The generation that ran it; 0 where nothing ran.
    pub generation: u64,
    /// Whether it succeeded.
    pub ok: bool,
    /// The result's text, or the failure as one reads it: the model's copy.
    pub text: String,
    /// The person's copy, where it is another: without the receipts of pictures.
    pub shown: Option<String>,
    /// What stands beside the text: pictures, galleries, files.
    pub parts: Vec<Part>,
    /// The failure.
    pub error: Option<Error>,
    /// The structured result, where an output schema is declared and met.
    pub structured: Option<Value>,
    /// Handle to the rest of a text that was cut.
    pub rest: Option<String>,
    /// For the author: where the script failed.
    pub diagnostic: Option<Diagnostic>,
    /// For the author: what of the result was dropped, and why.
    pub warnings: Vec<String>,
    /// Wall clock.
    pub duration: Duration,
    /// Script operations.
    pub operations: u64,
    /// Highest memory of script values, in bytes; 0 where it is not counted.
    pub memory: u64,
}

impl Outcome {
    /// The text as a person reads it.
    #[must_use]
    pub fn for_person(&self) -> &str {
        self.shown.as_deref().unwrap_or(&self.text)
    }
}

/// Settings of the dispatcher that come from `lapidary.toml`.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `PRIVATE_ALLOW_UNFLAGGED_TOOLS`: tools without a locality flag run in private chats.
    pub allow_unflagged_in_private: bool,
    /// What every script's `config` holds.
    pub config: Map,
}

/// Runs tools.
pub struct Dispatcher {
    engine: Arc<Engine>,
    services: Arc<Services>,
    pool: Pool,
    snapshot: Arc<ArcSwap<Snapshot>>,
    options: Options,
    journal: Arc<dyn Journal>,
    handles: Handles,
    panics: Mutex<HashMap<(Arc<str>, u64), u32>>,
    running: Calls,
    next: AtomicU64,
    /// Calls of async callers that have not ended.
    under_way: AtomicUsize,
    /// The task of the last call of [`Dispatcher::call_here`], and how many in a row were its.
    turns: Mutex<(Option<tokio::task::Id>, u32)>,
    prefix: String,
}

/// How many calls in a row of one task say that it is the only one that calls.
const ALONE: u32 = 3;

/// Counts a call until it has ended.
struct UnderWay<'a>(&'a AtomicUsize);

impl UnderWay<'_> {
    fn begin(under_way: &AtomicUsize) -> UnderWay<'_> {
        under_way.fetch_add(1, Ordering::AcqRel);
        UnderWay(under_way)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Dispatcher {
    /// A dispatcher over whatever `snapshot` holds at each call.
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        services: Arc<Services>,
        pool: Pool,
        snapshot: Arc<ArcSwap<Snapshot>>,
        journal: Arc<dyn Journal>,
        mut options: Options,
    ) -> Arc<Self> {
        // Ids stay unique across restarts and processes without asking anybody.
        let prefix = format!("c_{:x}{:04x}_", services.clock.unix_ms() & 0xff_ffff_ffff, fastrand::u16(..));
        // What most calls see; a chat and its privacy are put in where there is one.
        for (key, value) in [("room", Dynamic::UNIT), ("chat", Dynamic::UNIT), ("private", false.into())] {
            options.config.insert(key.into(), value);
        }
        options.config.entry("model".into()).or_insert(Dynamic::UNIT);
        Arc::new(Dispatcher {
            engine,
            services,
            pool,
            snapshot,
            options,
            journal,
            handles: Handles::default(),
            panics: Mutex::default(),
            running: Calls::default(),
            next: AtomicU64::new(1),
            under_way: AtomicUsize::new(0),
            turns: Mutex::default(),
            prefix,
        })
    }

    /// The newest snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// The call threads.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The services.
    #[must_use]
    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// Results that were cut, by handle.
    #[must_use]
    pub fn handles(&self) -> &Handles {
        &self.handles
    }

    /// Calls that run now, or wait for a thread, in the order in which they came: all that somebody holds a [`CallHandle`] of.
    #[must_use]
    pub fn running(&self) -> Vec<Running> {
        self.running.list()
    }

    /// Cancels the running call of this id; tells whether there is one.
    pub fn cancel(&self, id: &str) -> bool {
        self.running.cancel(id)
    }

    /// Runs a call on a call thread and waits for it; a call thread runs it itself.
    pub fn call(self: &Arc<Self>, call: Call) -> Outcome {
        if pool::is_call_thread() {
            return self.entered(call);
        }
        let (me, tool) = (self.clone(), call.tool.clone());
        self.pool.run(move || me.entered(call)).unwrap_or_else(|| self.lost(tool))
    }

    /// As [`Dispatcher::call`], for async callers: one hand-over, no runtime thread blocked.
    pub async fn call_async(self: &Arc<Self>, call: Call) -> Outcome {
        let (me, tool) = (self.clone(), call.tool.clone());
        let id = self.id_of(&call);
        let entered = match self.enter(&call, &id) {
            Ok(entered) => entered,
            Err(e) => return self.refused(call, e),
        };
        let under_way = UnderWay::begin(&self.under_way);
        let outcome = self.pool.run_async(move || me.run(call, id, None)).await.unwrap_or_else(|| self.lost(tool));
        drop((entered, under_way));
        outcome
    }

    /// As [`Dispatcher::call_async`], for callers that hear nothing of a call before it has ended: one that has been quick of late
    /// runs right here, where the thread was lent for that and nobody else calls. Should it not be quick, the runtime goes on with
    /// another thread. Where several tasks call in turns, the call threads work beside the runtime, and handing over pays.
    pub async fn call_here(self: &Arc<Self>, call: Call) -> Outcome {
        let quick = |snapshot: &Snapshot| snapshot.get(&call.tool).is_some_and(|tool| tool.pace.is_quick());
        let is_quick = pool::is_lent()
            && self.is_alone()
            && self.under_way.load(Ordering::Acquire) == 0
            && call.snapshot.as_deref().map_or_else(|| quick(&self.snapshot.load()), quick);
        if !is_quick {
            return self.call_async(call).await;
        }
        let _under_way = UnderWay::begin(&self.under_way);
        let tool = call.tool.clone();
        tokio::task::block_in_place(|| pool::borrowed(|| self.entered(call))).unwrap_or_else(|| self.lost(tool))
    }

    /// Whether the task that calls now was the only one of late.
    fn is_alone(&self) -> bool {
        let task = tokio::task::try_id();
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.1 = if turns.0 == task { turns.1.saturating_add(1) } else { 0 };
        turns.0 = task;
        task.is_some() && turns.1 >= ALONE
    }

    fn entered(self: &Arc<Self>, call: Call) -> Outcome {
        let id = self.id_of(&call);
        let _entered = match self.enter(&call, &id) {
            Ok(entered) => entered,
            Err(e) => return self.refused(call, e),
        };
        self.run(call, id, None)
    }

    fn id_of(&self, call: &Call) -> String {
        call.handle.as_ref().and_then(|handle| handle.id().map(str::to_owned)).unwrap_or_else(|| self.new_id())
    }

    fn enter(&self, call: &Call, id: &str) -> Result<Option<Place<'_>>> {
        let Some(handle) = &call.handle else { return Ok(None) };
        let running = Running {
            call: id.to_owned(),
            tool: call.tool.clone(),
            door: call.who.door,
            caller: call.who.caller.clone(),
            started_ms: self.services.clock.unix_ms(),
            progress: None,
        };
        self.running.enter(running, handle.clone()).map(Some)
    }

    /// The outcome of a call whose id another one has.
    fn refused(&self, call: Call, e: Error) -> Outcome {
        let mut outcome = ended("".into(), 0, Err(e));
        self.told(call, Called::Tool, &mut outcome, Instant::now());
        outcome
    }

    /// The outcome of a call whose thread died: only a fault of the host does that.
    fn lost(&self, tool: String) -> Outcome {
        let error = Error::internal("the host failed while running this call").hint("see the host's log");
        Outcome { call: self.new_id(), tool, ..ended("".into(), 0, Err(error)) }
    }

    /// An id that no call has had or will have.
    #[must_use]
    pub fn new_id(&self) -> String {
        // By hand: formatting would cost as much as finding the tool.
        const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut id = String::with_capacity(self.prefix.len() + 16);
        id.push_str(&self.prefix);
        for at in (0..(u64::BITS - number.leading_zeros()).div_ceil(4).max(1)).rev() {
            id.push(DIGITS[(number >> (at * 4)) as usize & 0xf]);
        }
        id
    }

    fn run(self: &Arc<Self>, mut call: Call, id: String, parent: Option<(&Arc<Ctx>, usize)>) -> Outcome {
        let start = Instant::now();
        let snapshot = call.snapshot.take().unwrap_or_else(|| self.snapshot.load_full());
        let mut aside = Aside { is_nested: parent.is_some(), ..Aside::default() };
        let mut outcome = self.attempt(&call, parent, &snapshot, &mut aside);
        outcome.duration = start.elapsed();
        if let Some(tool) = snapshot.get(&call.tool) {
            tool.pace.note(outcome.duration);
        }
        outcome.call = id;
        outcome.tool = std::mem::take(&mut call.tool);
        self.tell(call, Called::Tool, &mut outcome, start, aside);
        outcome
    }

    /// Tells of a call that has no id yet.
    pub(super) fn told(&self, mut call: Call, what: Called, outcome: &mut Outcome, start: Instant) {
        outcome.call = self.new_id();
        outcome.tool = std::mem::take(&mut call.tool);
        outcome.duration = start.elapsed();
        self.tell(call, what, outcome, start, Aside::default());
    }

    fn tell(&self, call: Call, what: Called, outcome: &mut Outcome, start: Instant, aside: Aside) {
        // Ids, counts and status: never arguments or results (promise 5).
        tracing::debug!(
            call = %outcome.call,
            tool = %outcome.tool,
            plugin = %outcome.plugin,
            generation = outcome.generation,
            door = call.who.door,
            ok = outcome.ok,
            code = outcome.error.as_ref().map(|e| e.code()),
            micros = u64::try_from(outcome.duration.as_micros()).unwrap_or(u64::MAX),
            operations = outcome.operations,
            "call"
        );
        let Aside { spec, ctx, is_nested } = aside;
        // What the journal takes outlasts the call. Arguments of a nested call are counted in the budget of the outer one, which
        // gets back only what is freed on this thread.
        alloc::uncharged(|| {
            let (arguments, counted) = match is_nested && self.journal.keeps() {
                true => (call.arguments.clone(), Some(call.arguments)),
                false => (call.arguments, None),
            };
            self.journal.record(CallRecord { outcome, arguments, who: &call.who, what, start, spec, ctx });
            counted
        });
    }

    fn attempt(
        self: &Arc<Self>,
        call: &Call,
        parent: Option<(&Arc<Ctx>, usize)>,
        snapshot: &Snapshot,
        aside: &mut Aside,
    ) -> Outcome {
        let refuse = |plugin: Arc<str>, generation: u64, e: Error| ended(plugin, generation, Err(e));
        let Some(tool) = snapshot.get(&call.tool) else {
            let offered = |name: &&str| call.who.allowed.as_ref().is_none_or(|allowed| allowed.contains(*name));
            let absent = snapshot.absent.iter().map(|(plugin, why)| (&**plugin, why));
            return refuse(
                "".into(),
                0,
                gate::unknown(&call.tool, snapshot.names().filter(offered), absent, call.who.reader()),
            );
        };
        let plugin = tool.plugin();
        aside.spec = Some(tool.spec.clone());
        let depth = parent.map_or(0, |(ctx, _)| ctx.depth + 1);
        let scopes = self.scopes_of(&call.who);
        if let Err(e) = self.admit(call, tool, depth, &scopes) {
            return refuse(plugin.name.clone(), 0, e);
        }
        let arguments = match &call.arguments {
            Arguments::Text(text) => arguments::parse(text),
            Arguments::Object(map) => Ok(map.clone()),
        };
        let arguments = match arguments.and_then(|map| arguments::prepare(&tool.spec, map)) {
            Ok(map) => map,
            Err(e) => return refuse(plugin.name.clone(), tool.generation(), e),
        };
        match &tool.code {
            Code::Script(unit) => self.run_script(call, parent, tool, unit, scopes, arguments, aside),
            Code::Native(native, plugin) => {
                let ctx = self.context(call, parent, tool, plugin, Budget::CALL, Imports::none(), scopes);
                aside.ctx = Some(ctx.clone());
                let _running = control::enter(ctx.control.clone());
                let done = catch_unwind(AssertUnwindSafe(|| native.call(&ctx, &arguments)))
                    .unwrap_or_else(|_| Err(self.panicked(plugin, 0)));
                let done = done.and_then(|value| {
                    let (value, given) = pictures::take_json(value);
                    Returned::of(&ctx, value, given)
                });
                self.finish(&ctx, parent, tool, done, usize::MAX)
            }
        }
    }

    /// Asks the gate.
    pub(super) fn admit(&self, call: &Call, tool: &LiveTool, depth: u8, scopes: &ScopeValues) -> Result<()> {
        let plugin = tool.plugin();
        let grants = plugin.grants.load();
        gate::decide(&gate::Request {
            tool: &tool.spec,
            plugin: &plugin.name,
            category: &tool.category,
            panicked: self.is_quarantined(plugin, tool.generation()),
            gated_off: if tool.is_gated_off() { tool.gated_by.as_deref() } else { None },
            allowed: call.who.allowed.as_deref(),
            private: call.who.private,
            allow_unflagged: self.options.allow_unflagged_in_private,
            scopes,
            grants: &grants,
            held: gate::Held::Everything,
            depth,
            reader: call.who.reader(),
        })
    }

    pub(super) fn scopes_of(&self, who: &Who) -> Arc<ScopeValues> {
        let scopes = who.scopes.clone().unwrap_or_else(|| self.services.scopes.defaults());
        if who.private == scopes.is_private() {
            return scopes;
        }
        Arc::new(ScopeValues::clone(&scopes).with("private", Some(if who.private { "true" } else { "false" })))
    }

    #[allow(clippy::too_many_arguments)] // one call's facts, all of them needed once
    pub(super) fn context(
        self: &Arc<Self>,
        call: &Call,
        parent: Option<(&Arc<Ctx>, usize)>,
        tool: &LiveTool,
        plugin: &Arc<PluginCtx>,
        mut budget: Budget,
        imports: Arc<Imports>,
        scopes: Arc<ScopeValues>,
    ) -> Arc<Ctx> {
        if let Some(seconds) = tool.spec.timeout_s {
            budget.deadline = Duration::from_secs(seconds);
        }
        let control = match parent {
            Some((ctx, _)) => Control::nested(budget, &ctx.control),
            None => Control::start(budget),
        };
        if let Some(handle) = &call.handle {
            handle.attach(&control);
        }
        Arc::new(Ctx {
            phase: Phase::Call,
            plugin: plugin.clone(),
            generation: tool.generation(),
            tool: tool.name.clone(),
            imports,
            settings: tool.settings.clone(),
            chat: call.who.chat.clone(),
            private: call.who.private,
            scopes,
            caller: call.who.caller.clone(),
            depth: parent.map_or(0, |(ctx, _)| ctx.depth + 1),
            control,
            sink: call.sink.clone(),
            heard: Default::default(),
            nested: Some(self.clone()),
            mint: Mint::default(),
            used: Default::default(),
            services: self.services.clone(),
        })
    }

    #[allow(clippy::too_many_arguments)] // one call's facts, all of them needed once
    fn run_script(
        self: &Arc<Self>,
        call: &Call,
        parent: Option<(&Arc<Ctx>, usize)>,
        tool: &Arc<LiveTool>,
        unit: &Arc<Unit>,
        scopes: Arc<ScopeValues>,
        arguments: serde_json::Map<String, Value>,
        aside: &mut Aside,
    ) -> Outcome {
        let ctx = self.context(call, parent, tool, &unit.plugin, unit.budget, unit.imports.clone(), scopes);
        aside.ctx = Some(ctx.clone());
        let level = parent.map_or(0, |(_, level)| level);
        let given = || self.positional(tool, unit, call, &ctx, arguments);
        let Ran { done, diagnostic, is_stopped, operations, memory } =
            self.evaluate(&ctx, unit, &tool.function, level, given, |value| {
                let (value, given) = pictures::take(value);
                let value = value::to_json(&value).map_err(|e| e.context("the result"))?;
                Returned::of(&ctx, value, given)
            });
        let mut outcome = self.finish(&ctx, parent, tool, done, unit.result_chars);
        if let (Some(error), Some(at)) = (&outcome.error, &diagnostic)
            && (error.kind() == Kind::Internal || is_stopped || ctx.control.stopped() != control::Stop::No)
        {
            // The model reads which tool and what; the place is for whoever mends it.
            let line = if at.line > 0 { format!(":{}", at.line) } else { String::new() };
            outcome.text = format!("{} [{}{line}]", outcome.text, at.file);
        }
        outcome.diagnostic = diagnostic;
        outcome.operations = operations;
        outcome.memory = memory;
        outcome
    }

    /// Runs one function of a script within its budgets, panics contained, and makes something of what it returned.
    pub(super) fn evaluate<T>(
        &self,
        ctx: &Arc<Ctx>,
        unit: &Unit,
        function: &str,
        level: usize,
        given: impl FnOnce() -> Result<Vec<Dynamic>>,
        make: impl FnOnce(Dynamic) -> Result<T>,
    ) -> Ran<T> {
        let running = control::enter(ctx.control.clone());
        let called = catch_unwind(AssertUnwindSafe(|| -> Result<Result<Dynamic, Box<rhai::EvalAltResult>>> {
            let mut positional = given()?;
            let call = Invocation { function, this: None, arguments: &mut positional, level };
            Ok(program::invoke(&self.engine, &unit.program, ctx, call))
        }));
        let mut diagnostic = None;
        let mut is_stopped = false;
        let done = match called {
            Ok(Ok(Ok(value))) => make(value),
            Ok(Ok(Err(fault))) => {
                is_stopped = matches!(
                    fault.unwrap_inner(),
                    rhai::EvalAltResult::ErrorTerminated(..) | rhai::EvalAltResult::ErrorStackOverflow(..)
                );
                let mut fault = diagnostic::explain(fault, &unit.program.source.name, ctx);
                let source = &unit.program.source;
                if fault.diagnostic.line == 0
                    && fault.diagnostic.file == *source.name
                    && let Some(called) = unit.program.functions.iter().find(|f| f.name == function)
                {
                    // A failure without a place of its own is shown at the function that was called.
                    fault.diagnostic = fault.diagnostic.at(&source.text, called.line, called.column);
                }
                // Before it is cut: half of a credential's value would not be found.
                if let Some(redactor) = ctx.redactor() {
                    fault.diagnostic.message = redactor.text(&fault.diagnostic.message).into_owned();
                    fault.diagnostic.hint = fault.diagnostic.hint.map(|hint| redactor.text(&hint).into_owned());
                }
                if fault.diagnostic.message.len() > FAILURE_CHARS {
                    fault.diagnostic.message =
                        fault.diagnostic.message.chars().take(FAILURE_CHARS / 4).chain(['…']).collect();
                }
                diagnostic = Some(fault.diagnostic);
                Err(fault.error)
            }
            Ok(Err(e)) => Err(e),
            Err(_) => Err(self.panicked(&unit.plugin, unit.generation)),
        };
        // A value that was converted after the flag went up still counts as stopped.
        let done = match ctx.control.stopped() {
            control::Stop::No => done,
            _ => Err(ctx.control.error()),
        };
        Ran { done, diagnostic, is_stopped, operations: running.operations(), memory: running.peak_bytes() }
    }

    fn positional(
        &self,
        tool: &LiveTool,
        unit: &Unit,
        call: &Call,
        ctx: &Ctx,
        mut arguments: serde_json::Map<String, Value>,
    ) -> Result<Vec<Dynamic>> {
        match unit.form {
            Form::Functions => tool
                .plan
                .iter()
                .map(|param| arguments.remove(&param.schema_name).map_or(Ok(Dynamic::UNIT), |v| value::from_json(&v)))
                .collect(),
            Form::Execute(takes) => {
                let mut out = Vec::with_capacity(usize::from(takes.count));
                out.push((&*tool.name).into());
                out.push(Dynamic::from_map(value::from_object(&arguments)?));
                out.push(Dynamic::from_map(if takes.config { self.config(call) } else { Map::new() }));
                if takes.count >= 4 {
                    out.push(Dynamic::from_map(if takes.settings { (*ctx.settings).clone() } else { Map::new() }));
                }
                if takes.count >= 5 {
                    out.push(Dynamic::from(crate::script::ctx::Credentials));
                }
                Ok(out)
            }
        }
    }

    /// A copy for this call: what one script writes into it, no other sees.
    fn config(&self, call: &Call) -> Map {
        let mut config = self.options.config.clone();
        if let Some(chat) = &call.who.chat {
            let chat: Dynamic = (&**chat).into();
            config.insert("room".into(), chat.clone());
            config.insert("chat".into(), chat);
        }
        if call.who.private {
            config.insert("private".into(), true.into());
        }
        config
    }

    fn is_quarantined(&self, plugin: &PluginCtx, generation: u64) -> bool {
        let panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
        !panics.is_empty() && panics.get(&(plugin.name.clone(), generation)).is_some_and(|n| *n >= PANICS)
    }

    fn panicked(&self, plugin: &PluginCtx, generation: u64) -> Error {
        let mut panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
        let count = panics.entry((plugin.name.clone(), generation)).or_insert(0);
        *count += 1;
        Error::internal(format!("a host function panicked while `{}` called it ({count} of {PANICS})", plugin.name))
            .hint("this is a fault of the host; after 3 the plugin is quarantined until it is saved again")
    }
}

impl NestedCalls for Dispatcher {
    fn run_nested(
        self: Arc<Self>,
        parent: &Arc<Ctx>,
        level: usize,
        tool: &str,
        arguments: serde_json::Map<String, Value>,
    ) -> Result<Value> {
        let who = Who {
            caller: parent.tool.clone(),
            door: "tool",
            chat: parent.chat.clone(),
            private: parent.private,
            scopes: Some(parent.scopes.clone()),
            allowed: None,
        };
        let mut call = Call::new(tool, arguments, who);
        call.sink = parent.sink.clone();
        let outcome = self.run(call, self.new_id(), Some((parent, level)));
        match outcome.error {
            Some(error) => Err(error),
            None => Ok(outcome.structured.unwrap_or(Value::String(outcome.text))),
        }
    }
}

/// What a call leaves for the journal beside its outcome.
#[derive(Default)]
struct Aside {
    spec: Option<Arc<Spec>>,
    ctx: Option<Arc<Ctx>>,
    is_nested: bool,
}

/// What came of running a function.
pub(super) struct Ran<T> {
    pub(super) done: Result<T>,
    pub(super) diagnostic: Option<Diagnostic>,
    /// Whether the script was ended from outside.
    is_stopped: bool,
    pub(super) operations: u64,
    pub(super) memory: u64,
}
