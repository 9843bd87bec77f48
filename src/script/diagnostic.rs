//! What went wrong in a script, where, with the line, a caret and the calls that led there.
//! One value for every door; `render` is the plain-text form.

use super::ctx::Ctx;
use super::{syntax, value};
use crate::base::error::{Error, Kind};
use rhai::{Dynamic, EvalAltResult, ImmutableString, Map, Position};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::sync::Arc;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file or tool does not load, or the call failed.
    Error,
    /// It works, and should be looked at.
    Warning,
}

/// One call on the way to the fault, innermost first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Frame {
    /// The function that was called.
    pub function: String,
    /// File of the call; empty where the host made it.
    pub file: String,
    /// Line of the call, from 1; 0 where the host made it.
    pub line: usize,
    /// Column of the call, from 1.
    pub column: usize,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Code word: a failure code, or `syntax`, `load`, `schema`, `manifest`, `lint`.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// File, relative to the root.
    pub file: String,
    /// Line from 1; 0 for the file as a whole.
    pub line: usize,
    /// Column from 1, in characters; 0 for the line as a whole.
    pub column: usize,
    /// The text of that line; of a long one the part around the column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
    /// Column of the snippet's first character: 1, but for a long line.
    pub snippet_column: usize,
    /// The calls that led there, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<Frame>,
}

impl Diagnostic {
    /// An error about a file as a whole.
    pub fn error(code: &str, file: impl Into<String>, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            code: code.to_owned(),
            message: message.into(),
            hint: None,
            file: file.into(),
            line: 0,
            column: 0,
            snippet: None,
            snippet_column: 1,
            stack: Vec::new(),
        }
    }

    /// A warning about a file as a whole.
    pub fn warning(code: &str, file: impl Into<String>, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, file, message) }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Puts it at a line and column of `text`.
    #[must_use]
    pub fn at(mut self, text: &str, line: usize, column: usize) -> Self {
        self.place(Some(text), line, column);
        self
    }

    fn place(&mut self, text: Option<&str>, line: usize, column: usize) {
        self.line = line;
        self.column = column;
        let shown = line.checked_sub(1).and_then(|n| text?.lines().nth(n)).map(|line| clip(line, column));
        (self.snippet, self.snippet_column) = shown.map_or((None, 1), |(text, from)| (Some(text), from));
    }

    /// An error of ours about a file.
    #[must_use]
    pub fn from_error(code: &str, file: impl Into<String>, error: &Error) -> Self {
        let mut d = Diagnostic::error(code, file, error.message());
        d.hint = error.hint_text().map(str::to_owned);
        d
    }

    /// `file:line:column` and the message, on one line.
    #[must_use]
    pub fn summary(&self) -> String {
        if self.line == 0 {
            format!("{}: {}", self.file, self.message)
        } else {
            format!("{}:{}:{}: {}", self.file, self.line, self.column, self.message)
        }
    }

    /// The plain-text form, with the line and a caret.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let _ = writeln!(out, "{word}: {}", self.message);
        if self.line == 0 {
            let _ = writeln!(out, "  --> {}", self.file);
        } else {
            let _ = writeln!(out, "  --> {}:{}:{}", self.file, self.line, self.column);
            if let Some(snippet) = &self.snippet {
                let number = self.line.to_string();
                let gutter = " ".repeat(number.len());
                // Tabs are one column to the parser and several on a screen.
                let shown = snippet.replace('\t', " ");
                let _ = writeln!(out, "{gutter} |\n{number} | {shown}");
                if let Some(indent) = self.column.checked_sub(self.snippet_column) {
                    let _ = writeln!(out, "{gutter} | {}^", " ".repeat(indent));
                }
            }
        }
        for frame in &self.stack {
            if frame.line > 0 {
                let _ =
                    writeln!(out, "  in {}() called at {}:{}:{}", frame.function, frame.file, frame.line, frame.column);
            }
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(out, "  help: {hint}");
        }
        out
    }
}

/// A line as it is shown, with the column of its first character.
fn clip(line: &str, column: usize) -> (String, usize) {
    const MOST: usize = 200;
    let length = line.chars().count();
    if length <= MOST {
        return (line.to_owned(), 1);
    }
    // A window with the column in it, cut ends marked.
    let from = column.saturating_sub(MOST / 2).min(length - MOST);
    let mut shown: Vec<char> = line.chars().skip(from).take(MOST).collect();
    if from > 0 {
        shown[0] = '…';
    }
    if from + MOST < length {
        shown[MOST - 1] = '…';
    }
    (shown.into_iter().collect(), from + 1)
}

/// What a failed evaluation means: the structured failure for a caller, and the diagnostic for the author.
pub struct Fault {
    /// For the model and programs.
    pub error: Error,
    /// For the author.
    pub diagnostic: Diagnostic,
}

/// Reads Rhai's error chain outside-in: each call's position lies in the file around it, the cause in the innermost.
#[must_use]
#[expect(clippy::boxed_local, reason = "the language hands its errors over in a box")]
pub fn explain(fault: Box<EvalAltResult>, entry: &str, ctx: &Ctx) -> Fault {
    let mut file = entry.to_owned();
    let mut stack = Vec::new();
    let mut fault = *fault;
    loop {
        match fault {
            EvalAltResult::ErrorInFunctionCall(function, source, inner, pos) => {
                stack.push(Frame {
                    function: plain_name(&function),
                    file: file.clone(),
                    line: pos.line().unwrap_or(0),
                    column: pos.position().unwrap_or(0),
                });
                if !source.is_empty() {
                    file = source;
                }
                fault = *inner;
            }
            EvalAltResult::ErrorInModule(path, inner, pos) => {
                stack.push(Frame {
                    function: format!("import {path}"),
                    file: file.clone(),
                    line: pos.line().unwrap_or(0),
                    column: pos.position().unwrap_or(0),
                });
                if !path.is_empty() {
                    file = path;
                }
                fault = *inner;
            }
            other => {
                fault = other;
                break;
            }
        }
    }
    stack.reverse();
    let position = fault.position();
    let text = ctx.imports.text_of(&file);
    let error = match &fault {
        EvalAltResult::ErrorParsing(kind, at) => {
            let line = at.line().and_then(|n| text.as_ref()?.lines().nth(n - 1));
            syntax::explain(kind, line, at.position().unwrap_or(0))
        }
        other => cause(other, ctx),
    };
    let code = if matches!(fault, EvalAltResult::ErrorParsing(..)) { "syntax" } else { error.code() };
    let mut diagnostic = Diagnostic::error(code, file.clone(), error.message());
    diagnostic.hint = error.hint_text().map(str::to_owned);
    place(&mut diagnostic, text.as_ref(), position, &stack, ctx);
    diagnostic.stack = stack;
    Fault { error, diagnostic }
}

fn place(diagnostic: &mut Diagnostic, text: Option<&Arc<str>>, position: Position, stack: &[Frame], ctx: &Ctx) {
    let (line, column) = (position.line().unwrap_or(0), position.position().unwrap_or(0));
    if line > 0 {
        diagnostic.place(text.map(|t| &**t), line, column);
    } else if let Some(frame) = stack.iter().find(|f| f.line > 0) {
        // No position of its own, such as a native without one: the nearest call is the best place.
        diagnostic.file.clone_from(&frame.file);
        diagnostic.place(ctx.imports.text_of(&frame.file).as_deref(), frame.line, frame.column);
    }
}

fn plain_name(function: &str) -> String {
    let name = function.split(" @ ").next().unwrap_or(function).trim_matches('\'');
    if name.starts_with("anon$") { "<closure>".to_owned() } else { name.to_owned() }
}

/// The innermost error as one of ours.
fn cause(fault: &EvalAltResult, ctx: &Ctx) -> Error {
    match fault {
        EvalAltResult::ErrorTerminated(..) => ctx.control.error(),
        EvalAltResult::ErrorRuntime(value, _) => thrown(value),
        EvalAltResult::ErrorStackOverflow(_) => {
            Error::new(Kind::Quota, format!("calls nest deeper than {}", super::engine::CALL_DEPTH))
                .hint("a function that calls itself needs an end, or a loop instead")
        }
        EvalAltResult::ErrorVariableNotFound(name, _) => {
            let error = Error::internal(format!("no variable `{name}` here"));
            if is_constant_below(name, ctx) {
                error.hint(format!("`const {name}` stands further down: move it above its first use"))
            } else {
                error.hint(
                    "check the spelling; only parameters, `let` of this function and top-level `const` are visible",
                )
            }
        }
        EvalAltResult::ErrorFunctionNotFound(signature, _) => function_not_found(signature),
        EvalAltResult::ErrorModuleNotFound(path, _) => Error::not_found(format!("no module `{path}`"))
            .hint("host modules are listed by `lapidary docs`; import \"std/..\" or \"lib/..\" for others"),
        EvalAltResult::ErrorAssignmentToConstant(name, _) => Error::internal(format!("`{name}` is a constant"))
            .hint("use `let` inside the function, or state:: for what must last"),
        EvalAltResult::ErrorDataRace(..) => {
            Error::internal("a closure uses the very value whose method it was given to, while the method works on it")
                .hint("inside the closure use its parameter, or a copy that was made before")
        }
        EvalAltResult::ErrorDataTooLarge(what, _) => Error::new(Kind::TooLarge, format!("{what} is too large")),
        other => Error::internal(bare_message(other)),
    }
}

/// The message without the position that Rhai appends: the diagnostic has it already.
fn bare_message(fault: &EvalAltResult) -> String {
    without_place(&fault.to_string())
}

fn without_place(text: &str) -> String {
    value::plain_types(&syntax::lowered(text.rsplit_once(" (line ").map_or(text, |(message, _)| message)))
}

fn is_constant_below(name: &str, ctx: &Ctx) -> bool {
    ctx.imports.sources().iter().any(|s| {
        s.text.lines().any(|l| {
            l.trim_start()
                .strip_prefix("const ")
                .and_then(|rest| rest.trim_start().strip_prefix(name))
                .is_some_and(|rest| rest.trim_start().starts_with('='))
        })
    })
}

fn thrown(value: &Dynamic) -> Error {
    if let Some(map) = value.read_lock::<Map>() {
        if let Ok(error) = value::error_from_map(&map) {
            return error;
        }
        // A language error that was caught and thrown on, or a map of the author's own.
        if let Some(message) = value::text(&map, "message") {
            let is_language = map.contains_key("error") && map.contains_key("position");
            return Error::internal(if is_language { without_place(&message) } else { message });
        }
        return Error::internal(value::to_json(value).map_or_else(|_| "a map was thrown".into(), |v| v.to_string()));
    }
    if let Some(text) = value.read_lock::<ImmutableString>() {
        return Error::internal(text.to_string());
    }
    if value.is_unit() {
        return Error::internal("the script threw nothing");
    }
    Error::internal(super::language::show(value))
}

fn function_not_found(signature: &str) -> Error {
    // `module::name (types)`: the types tell which overload was missed.
    let name = signature.split(" (").next().unwrap_or(signature).trim();
    let error = Error::internal(format!("no function {}", value::plain_types(signature)));
    if name.contains("::") {
        error.hint(format!("see `lapidary docs` for what `{name}` takes"))
    } else {
        error.hint("check the name, the number and the types of the arguments")
    }
}
