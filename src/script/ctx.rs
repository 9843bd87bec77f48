//! Who is calling: one `Ctx` travels in the Rhai tag of every evaluation, through callbacks and imported modules.
//! Natives read it here and nowhere else; there are no globals and no thread-locals for identity.

use super::alloc;
use super::control::Control;
use super::resolver::Imports;
use crate::base::error::{Error, Kind};
use crate::service::Services;
use crate::service::fetch::DirectHosts;
use crate::service::journal::Heard;
use crate::service::markers::Mint;
use crate::service::permissions::Grants;
use crate::service::scopes::ScopeValues;
use crate::service::secret::{Redactor, Used};
use arc_swap::ArcSwap;
use rhai::{Dynamic, EvalAltResult, Map, NativeCallContext, Position};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

/// The result of a native function.
pub type Res<T> = Result<T, Box<EvalAltResult>>;

/// What the script may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The top level or `get_tools`: only reading works.
    Load,
    /// A tool call.
    Call,
    /// `shutdown()`: everything but calling tools.
    Shutdown,
    /// A function given to `db::transaction`, which holds a database: only computing and that transaction.
    Transaction,
}

/// The plugin as its scripts need it: the same for every call of one generation.
pub struct PluginCtx {
    /// The plugin's name: the key of its state, settings, files, caches and grants.
    pub name: Arc<str>,
    /// The folder beside whose files `files::asset` reads; the tool file's own folder for a single-file plugin.
    pub assets: Option<PathBuf>,
    /// What the owner granted; a revoked grant counts from the next host call on.
    pub grants: ArcSwap<Grants>,
    /// What it registered as local; gone with the generation.
    pub direct: DirectHosts,
}

/// Receives what a running call says: progress, log lines, and effects that tests record.
pub trait Sink: Send + Sync {
    /// One line of status, in the tool's own words.
    fn status(&self, _text: &str) {}
    /// `done` of `total` steps.
    fn step(&self, _done: i64, _total: i64) {}
    /// A log line of the plugin: `trace`, `info`, `warn` or `error`.
    fn log(&self, _level: &str, _text: &str) {}
}

/// A sink that drops everything.
pub struct NoSink;
impl Sink for NoSink {}

/// Runs a tool from inside another one, on the same thread: budgets, depth and deadline go on counting.
pub trait NestedCalls: Send + Sync {
    /// Calls `tool`; `level` is the call depth that the script has used already.
    ///
    /// # Errors
    /// The failure of the nested call, as its caller may catch it.
    fn run_nested(
        self: Arc<Self>,
        parent: &Arc<Ctx>,
        level: usize,
        tool: &str,
        arguments: serde_json::Map<String, serde_json::Value>,
    ) -> Result<serde_json::Value, Error>;
}

/// What `execute` gets as its fifth parameter. Its methods are the `credentials` module's.
#[derive(Debug, Clone, Copy)]
pub struct Credentials;

/// The context of one evaluation.
pub struct Ctx {
    /// What the script may do now.
    pub phase: Phase,
    /// The plugin it belongs to.
    pub plugin: Arc<PluginCtx>,
    /// Which generation of it runs.
    pub generation: u64,
    /// Name of the tool that runs; empty while loading.
    pub tool: Arc<str>,
    /// What this generation imported, or is importing.
    pub imports: Arc<Imports>,
    /// The plugin's effective settings, as of the start of this call.
    pub settings: Arc<Map>,
    /// The chat the call belongs to; `None` for a chatless one.
    pub chat: Option<Arc<str>>,
    /// The chat is private.
    pub private: bool,
    /// Values of the scopes in this chat.
    pub scopes: Arc<ScopeValues>,
    /// Who asked: `owner`, an MCP client's name, an agent's id.
    pub caller: Arc<str>,
    /// How many tool calls are around this one.
    pub depth: u8,
    /// Deadline, cancel and budgets.
    pub control: Arc<Control>,
    /// Where progress and logs go while the call runs.
    pub sink: Arc<dyn Sink>,
    /// The same, collected for the journal.
    pub heard: Heard,
    /// Runs other tools; `None` where that is not allowed: while loading and in `shutdown`.
    pub nested: Option<Arc<dyn NestedCalls>>,
    /// What it made to stand beside its text.
    pub mint: Mint,
    /// The credentials that it was given or may ask for: their values are taken out of everything that leaves the call.
    pub used: Used,
    /// The host's services.
    pub services: Arc<Services>,
}

impl Ctx {
    /// A log line of the plugin, without the values of credentials.
    pub fn log(&self, level: &str, text: &str) {
        let text = self.redact(text);
        // What is collected outlasts the call.
        alloc::uncharged(|| self.heard.log(level, &text));
        tracing::debug!(plugin = %self.plugin.name, tool = %self.tool, level, bytes = text.len(), "a line of a plugin");
        self.sink.log(level, &text);
    }

    /// One line of status, without the values of credentials.
    pub fn status(&self, text: &str) {
        let text = self.redact(text);
        alloc::uncharged(|| self.heard.status(&text));
        self.sink.status(&text);
    }

    /// `done` of `total` steps.
    pub fn step(&self, done: i64, total: i64) {
        alloc::uncharged(|| self.heard.step(done, total));
        self.sink.step(done, total);
    }

    /// What takes the values of credentials out of texts: of those that the call was given, and of all that the plugin may ask
    /// for, because a server may tell again what it was told before. `None` where there are none.
    #[must_use]
    pub fn redactor(&self) -> Option<Arc<Redactor>> {
        let grants = self.plugin.grants.load();
        if !grants.secrets().is_none() {
            self.used.permit(|used| self.services.credentials.add_permitted(&grants, used));
        }
        self.used.redactor()
    }

    /// `text` without the values of credentials.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redactor() {
            Some(redactor) => redactor.text(text),
            None => Cow::Borrowed(text),
        }
    }

    /// The same call while it holds a database: under `control`, whose deadline is the transaction's, and without tools.
    #[must_use]
    pub fn in_transaction(&self, control: Arc<Control>) -> Arc<Ctx> {
        Arc::new(Ctx {
            phase: Phase::Transaction,
            plugin: self.plugin.clone(),
            generation: self.generation,
            tool: self.tool.clone(),
            imports: self.imports.clone(),
            settings: self.settings.clone(),
            chat: self.chat.clone(),
            private: self.private,
            scopes: self.scopes.clone(),
            caller: self.caller.clone(),
            depth: self.depth,
            control,
            sink: self.sink.clone(),
            heard: self.heard.shared(),
            nested: None,
            mint: Mint::default(),
            used: self.used.clone(),
            services: self.services.clone(),
        })
    }
}

/// The context of the running script, whatever its phase.
///
/// # Errors
/// `internal` for an evaluation without a context.
pub fn any(call: &NativeCallContext) -> Res<Arc<Ctx>> {
    call.tag()
        .and_then(|tag| tag.read_lock::<Arc<Ctx>>().map(|ctx| Arc::clone(&ctx)))
        .ok_or_else(|| raise(call, &Error::internal("this function needs a running plugin")))
}

/// The context, but only while the script may act: neither while loading nor inside a transaction.
///
/// # Errors
/// `disabled` with "not available while loading" in the load phase, or "inside a transaction".
pub fn live(call: &NativeCallContext) -> Res<Arc<Ctx>> {
    let ctx = any(call)?;
    let (when, hint) = match ctx.phase {
        Phase::Call | Phase::Shutdown => return Ok(ctx),
        Phase::Load => ("while loading", "call it inside a tool function; the top level and get_tools() can only read"),
        Phase::Transaction => {
            ("inside a transaction", "do it before or after; inside, use the transaction and compute")
        }
    };
    let error = Error::new(Kind::Disabled, format!("`{}` is not available {when}", call.fn_name())).hint(hint);
    Err(raise(call, &error))
}

/// Throws one of our errors at the place of the call, as the map that `catch (e)` sees.
#[must_use]
pub fn raise(call: &NativeCallContext, error: &Error) -> Box<EvalAltResult> {
    raise_at(error, call.call_position())
}

/// As [`raise`], at a position.
#[must_use]
pub fn raise_at(error: &Error, position: Position) -> Box<EvalAltResult> {
    EvalAltResult::ErrorRuntime(super::value::error_to_dynamic(error), position).into()
}

/// Turns our result into a native's result.
pub trait OrRaise<T> {
    /// Throws our error at the place of the call.
    ///
    /// # Errors
    /// The error, as the script sees it.
    fn or_raise(self, call: &NativeCallContext) -> Res<T>;
}

impl<T> OrRaise<T> for Result<T, Error> {
    fn or_raise(self, call: &NativeCallContext) -> Res<T> {
        self.map_err(|e| raise(call, &e))
    }
}

/// A tag that carries `ctx`.
pub fn tag(ctx: Arc<Ctx>) -> Dynamic {
    Dynamic::from(ctx)
}
