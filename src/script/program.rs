//! One compiled and once-evaluated file: the part that needs Rhai's volatile `internals`, kept in one place.
//! It knows functions, constants and comments, not what they mean.

use super::alloc;
use super::control::{self, Budget, Control, Stop};
use super::ctx::{self, Ctx};
use super::diagnostic::Diagnostic;
use super::engine::CONSTANTS;
use super::lint::{Import, Outline};
use super::resolver::{self, Source};
use super::value;
use crate::base::error::{Error, Kind, Result};
use rhai::{
    AST, ASTFlags, Dynamic, Engine, EvalAltResult, Expr, FnAccess, GlobalRuntimeState, ImmutableString, Module,
    NativeCallContext, Position, Scope, Shared, Stmt,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The largest source file, in bytes: compiling cannot be interrupted, so size is checked first.
pub const MAX_SOURCE: usize = 1 << 20;

/// What making a program ready again may use. It was loaded before, so the time is for a machine that is much slower now.
const WAKING: Budget = Budget { deadline: Duration::from_secs(60), ..Budget::LOAD };

/// A function of a file.
#[derive(Debug, Clone)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters in order.
    pub params: Vec<String>,
    /// Declared `private`.
    pub private: bool,
    /// Its doc comment blocks as written, `///` and `/** */` kept.
    pub comments: Vec<String>,
    /// Line of its body's start, from 1.
    pub line: usize,
    /// Column there, from 1.
    pub column: usize,
}

impl Function {
    fn position(&self) -> Option<Position> {
        let line = u16::try_from(self.line).ok().filter(|line| *line > 0)?;
        Some(Position::new(line, u16::try_from(self.column).unwrap_or(0)))
    }
}

/// A loaded file.
pub struct Program {
    /// Display name and text.
    pub source: Source,
    /// The display name as the engine wants it.
    label: ImmutableString,
    /// The evaluated module, with imports and constants in each function's environment; empty while the program rests.
    module: OnceLock<Shared<Module>>,
    /// Whether evaluating it again gives the same: its top level is constants written out and imports, and asks nobody.
    is_repeatable: bool,
    /// Held by the call that makes the module ready again.
    waking: Mutex<()>,
    /// Top-level constants.
    pub constants: BTreeMap<String, Dynamic>,
    /// Functions in source order.
    pub functions: Vec<Function>,
    /// The `//!` comments, markers removed.
    pub doc: String,
    /// What the walk over the file and over the `lib/` files it imports found; [`super::lint::check`] tells it.
    pub(super) findings: Vec<Diagnostic>,
}

impl Program {
    /// A program without anything: what stays behind when the real one is taken away.
    #[must_use]
    pub fn empty(source: Source) -> Program {
        Program {
            label: (&*source.name).into(),
            source,
            module: OnceLock::from(Shared::new(Module::new())),
            is_repeatable: false,
            waking: Mutex::default(),
            constants: BTreeMap::new(),
            functions: Vec::new(),
            doc: String::new(),
            findings: Vec::new(),
        }
    }

    /// The function `name`; the first where there are several of different arity.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|f| f.name == name)
    }

    /// Lets go of the compiled code, which is most of what a program holds, until it is called. A program whose top level
    /// asks for anything stays as it is, because it runs once.
    pub fn rest(&mut self) {
        if self.is_repeatable {
            self.module.take();
        }
    }

    /// The evaluated module. A program that rests is made ready again from the text that was checked when it was loaded, once,
    /// also where several calls come first. It serves every later call, so none of them pays for it: neither time nor memory.
    fn module(&self, engine: &Engine, ctx: &Arc<Ctx>) -> Result<Shared<Module>, Box<EvalAltResult>> {
        if let Some(module) = self.module.get() {
            return Ok(module.clone());
        }
        let start = Instant::now();
        // Held while constants that are written out are evaluated, which asks nobody and so waits for nobody.
        let waking = self.waking.lock().unwrap_or_else(PoisonError::into_inner);
        let module = match self.module.get() {
            Some(module) => Ok(module.clone()),
            None => alloc::uncharged(|| {
                let _running = control::enter(Control::start(WAKING));
                let ast = compile(engine, &self.source)?;
                let module = run_top_level(engine, ctx, &ast, &self.source)?;
                ctx.imports.take_constants();
                Ok(self.module.get_or_init(|| module.into()).clone())
            }),
        };
        drop(waking);
        ctx.control.give_back(start.elapsed());
        module
    }
}

/// Text as the parser wants it: UTF-8, no BOM, not too long.
///
/// # Errors
/// `too_large` past [`MAX_SOURCE`], `invalid_arguments` for bytes that are not UTF-8 (with the line).
pub fn decode(name: &str, bytes: Vec<u8>) -> Result<Source> {
    if bytes.len() > MAX_SOURCE {
        return Err(Error::new(
            Kind::TooLarge,
            format!("{name} has {} bytes; a script has at most {MAX_SOURCE}", bytes.len()),
        )
        .hint("split it, and move data into files:: or db::"));
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let line = 1 + e.as_bytes()[..at].iter().filter(|b| **b == b'\n').count();
        Error::invalid(format!("{name}:{line} is not UTF-8")).hint("save the file as UTF-8")
    })?;
    let text: Arc<str> = text.strip_prefix('\u{feff}').unwrap_or(&text).into();
    Ok(Source { name: name.into(), text })
}

/// A parse error, or the stop that cut the parser short.
fn parsing(e: rhai::ParseError) -> Box<EvalAltResult> {
    match control::check() {
        Err(stop) => ctx::raise_at(&stop, e.1),
        Ok(()) => EvalAltResult::ErrorParsing(*e.0, e.1).into(),
    }
}

/// Compiles a file with one more statement at its end, which sees every top-level constant: they are private to the file
/// otherwise.
pub(super) fn compile(engine: &Engine, source: &Source) -> Result<AST, Box<EvalAltResult>> {
    let together = |tail: &str| {
        let ast = engine.compile_scripts_with_scope(&Scope::new(), [&*source.text, tail]).ok()?;
        let Some(Stmt::Expr(last)) = ast.statements().last() else { return None };
        matches!(&**last, Expr::FnCall(call, _) if call.name == CONSTANTS).then_some(ast)
    };
    let mut ast = match together(&format!("\n;{CONSTANTS}();")) {
        Some(ast) if ast.has_functions() => ast,
        found => {
            // The language keeps constants only where there is a function to read them.
            let tail = format!("\n;{CONSTANTS}();private fn {CONSTANTS}(a) {{}}");
            match found.and_then(|_| together(&tail)) {
                Some(ast) => ast,
                None => {
                    // An error is told as if nothing had been added; and a comment that is never closed swallowed the tail.
                    let mut ast = engine.compile(&*source.text).map_err(parsing)?;
                    ast.combine(engine.compile(&tail).map_err(parsing)?);
                    ast
                }
            }
        }
    };
    ast.set_source(&*source.name);
    Ok(ast)
}

/// Runs a compiled top level once, in the load phase, with every import it can reach resolved.
pub(super) fn evaluate(
    engine: &Engine,
    ctx: &Arc<Ctx>,
    ast: &AST,
    source: &Source,
) -> Result<(Module, Vec<Diagnostic>), Box<EvalAltResult>> {
    let mut outline = Outline::of(engine, ctx, ast, source);
    if let Some((error, position)) = outline.refused.take() {
        return Err(ctx::raise_at(&error, position));
    }
    // Imports written inside functions: resolved now, so that a call never reads the disk.
    for Import { path, position, .. } in &outline.imports {
        let key = resolver::confine(path).map_err(|e| ctx::raise_at(&e, *position))?;
        resolver::load(engine, ctx, &source.name, &key, *position)?;
    }
    let module = run_top_level(engine, ctx, ast, source)?;
    if let Some((name, _)) = module.iter_var().find(|(_, v)| value::depth_exceeds(v, value::MAX_DEPTH)) {
        return Err(ctx::raise_at(&value::too_deep(&format!("`{name}`")), Position::NONE));
    }
    Ok((module, outline.finish(ctx, source)))
}

fn run_top_level(engine: &Engine, ctx: &Arc<Ctx>, ast: &AST, source: &Source) -> Result<Module, Box<EvalAltResult>> {
    let mut global = engine.new_global_runtime_state();
    global.tag = ctx::tag(ctx.clone());
    global.source = Some((&*source.name).into());
    Module::eval_ast_as_new_raw(engine, &mut Scope::new(), &mut global, ast)
}

/// Whether a top level consists of constants written out and of imports, beside what [`compile`] adds.
fn is_repeatable(ast: &AST) -> bool {
    ast.statements().iter().all(|statement| match statement {
        Stmt::Noop(..) => true,
        Stmt::Var(var, flags, ..) => flags.intersects(ASTFlags::CONSTANT) && var.1.is_constant(),
        Stmt::Import(import, ..) => import.0.is_constant(),
        Stmt::Expr(expr) => matches!(&**expr, Expr::FnCall(call, _) if call.name == CONSTANTS),
        _ => false,
    })
}

/// What the parser has against a script, which is not run.
#[must_use]
pub fn check_syntax(engine: &Engine, ctx: &Ctx, source: &Source) -> Option<Diagnostic> {
    let fault = compile(engine, source).err()?;
    Some(super::diagnostic::explain(fault, &source.name, ctx).diagnostic)
}

/// Compiles and evaluates an entry file in the load phase of `ctx`.
///
/// # Errors
/// Rhai's error, to be rendered by `diagnostic`.
pub fn load(engine: &Engine, ctx: &Arc<Ctx>, source: &Source) -> Result<Program, Box<EvalAltResult>> {
    ctx.imports.keep_source(source.clone());
    let ast = compile(engine, source)?;
    let (module, mut findings) = evaluate(engine, ctx, &ast, source)?;
    findings.extend(ctx.imports.findings());
    Ok(Program {
        label: (&*source.name).into(),
        source: source.clone(),
        module: OnceLock::from(Shared::new(module)),
        is_repeatable: is_repeatable(&ast),
        waking: Mutex::default(),
        constants: ctx.imports.take_constants(),
        functions: functions(&ast),
        doc: module_doc(ast.doc()),
        findings,
    })
}

fn module_doc(doc: &str) -> String {
    let lines: Vec<&str> = doc
        .lines()
        .map(|l| l.trim_start().trim_start_matches("//!").trim_start_matches("/*!").trim_end_matches("*/").trim())
        .collect();
    lines.join("\n").trim().to_owned()
}

/// The functions of a file in source order.
#[must_use]
pub fn functions(ast: &AST) -> Vec<Function> {
    // Looked up by name: the engine's own search is linear, and a file may have thousands.
    let bodies: HashMap<(&str, usize), Position> =
        ast.iter_fn_def().map(|def| ((&*def.name, def.params.len()), def.body.start_position())).collect();
    let mut out: Vec<Function> = ast
        .iter_functions()
        .filter(|f| !f.name.starts_with("anon$") && f.name != CONSTANTS)
        .map(|f| {
            let at = bodies.get(&(f.name, f.params.len())).copied().unwrap_or(Position::NONE);
            Function {
                name: f.name.to_owned(),
                params: f.params.iter().map(|p| (*p).to_owned()).collect(),
                private: f.access == FnAccess::Private,
                comments: f.comments.iter().map(|c| (*c).to_owned()).collect(),
                line: at.line().unwrap_or(0),
                column: at.position().unwrap_or(0),
            }
        })
        .collect();
    out.sort_by_key(|f| (f.line, f.column));
    out
}

/// How a function is called.
pub struct Invocation<'a> {
    /// The function's name.
    pub function: &'a str,
    /// What `this` is inside, if anything.
    pub this: Option<&'a mut Dynamic>,
    /// Positional arguments; consumed.
    pub arguments: &'a mut [Dynamic],
    /// Call levels already used by the calls around it.
    pub level: usize,
}

/// Calls a function of a loaded file in the context `ctx`, on this thread.
///
/// # Errors
/// Rhai's error, to be rendered by `diagnostic`.
pub fn invoke(
    engine: &Engine,
    program: &Program,
    ctx: &Arc<Ctx>,
    call: Invocation,
) -> Result<Dynamic, Box<EvalAltResult>> {
    let mut global: GlobalRuntimeState = engine.new_global_runtime_state();
    global.lib.push(program.module(engine, ctx)?);
    global.tag = ctx::tag(ctx.clone());
    global.source = Some(program.label.clone());
    global.level = call.level;
    let native = NativeCallContext::new_with_all_fields(engine, call.function, None, &global, Position::NONE);
    let result = match call.this {
        Some(this) => {
            let mut all: Vec<&mut Dynamic> = Vec::with_capacity(call.arguments.len() + 1);
            all.push(this);
            all.extend(call.arguments.iter_mut());
            native.call_fn_raw(call.function, true, true, &mut all)
        }
        None => {
            let mut all: Vec<&mut Dynamic> = call.arguments.iter_mut().collect();
            native.call_fn_raw(call.function, false, false, &mut all)
        }
    };
    match result {
        // `exit(value)` ends the call with that value.
        Err(e) if matches!(*e, EvalAltResult::Exit(..)) => match *e {
            EvalAltResult::Exit(value, _) => Ok(value),
            _ => Ok(Dynamic::UNIT),
        },
        // A native that was stopped as the last thing of the call has cut its result off.
        Ok(_) if matches!(ctx.control.stopped(), Stop::Memory | Stop::Operations) => {
            Err(ctx::raise_at(&ctx.control.error(), Position::NONE))
        }
        // A stop passes through the calls around it and loses its place there, so the function that was called has to do.
        Err(e) if matches!(&*e, EvalAltResult::ErrorTerminated(_, at) if at.is_none()) => {
            let place = program.functions.iter().find(|f| f.name == call.function).and_then(Function::position);
            Err(match (*e, place) {
                (EvalAltResult::ErrorTerminated(why, _), Some(at)) => EvalAltResult::ErrorTerminated(why, at).into(),
                (e, _) => e.into(),
            })
        }
        other => other,
    }
}
