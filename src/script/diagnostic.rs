//! What went wrong in a script, where, with the line, a caret and the calls that led there.
//! One value for every door; `render` is the plain-text form.

use super::ctx::Ctx;
use super::value;
use crate::base::error::{Error, Kind};
use rhai::{Dynamic, EvalAltResult, ImmutableString, Map, ParseErrorType, Position};
use serde::Serialize;
use std::fmt::Write;
use std::sync::Arc;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file or tool does not load, or the call failed.
    Error,
    /// It works, and should be looked at.
    Warning,
}

/// One call on the way to the fault, innermost first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// The text of that line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
    /// The calls that led there, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
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
        self.line = line;
        self.column = column;
        self.snippet = line.checked_sub(1).and_then(|n| text.lines().nth(n)).map(clip);
        self
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
                if self.column > 0 {
                    let _ = writeln!(out, "{gutter} | {}^", " ".repeat(self.column - 1));
                }
            }
        }
        for frame in &self.stack {
            if frame.line > 0 {
                let _ = writeln!(out, "  in {}() called at {}:{}:{}", frame.function, frame.file, frame.line, frame.column);
            }
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(out, "  help: {hint}");
        }
        out
    }
}

fn clip(line: &str) -> String {
    const MOST: usize = 200;
    if line.chars().count() <= MOST { line.to_owned() } else { line.chars().take(MOST).chain(['…']).collect() }
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
    let error = cause(&fault, ctx);
    let code = if matches!(fault, EvalAltResult::ErrorParsing(..)) { "syntax" } else { error.code() };
    let mut diagnostic = Diagnostic::error(code, file.clone(), error.message());
    diagnostic.hint = error.hint_text().map(str::to_owned);
    let text = ctx.imports.text_of(&file);
    place(&mut diagnostic, text.as_ref(), position, &stack, ctx);
    diagnostic.stack = stack;
    Fault { error, diagnostic }
}

fn place(diagnostic: &mut Diagnostic, text: Option<&Arc<str>>, position: Position, stack: &[Frame], ctx: &Ctx) {
    let (line, column) = (position.line().unwrap_or(0), position.position().unwrap_or(0));
    if line > 0 {
        diagnostic.line = line;
        diagnostic.column = column;
        diagnostic.snippet = text.and_then(|t| t.lines().nth(line - 1)).map(clip);
    } else if let Some(frame) = stack.iter().find(|f| f.line > 0) {
        // No position of its own, such as a native without one: the nearest call is the best place.
        diagnostic.file.clone_from(&frame.file);
        diagnostic.line = frame.line;
        diagnostic.column = frame.column;
        diagnostic.snippet =
            ctx.imports.text_of(&frame.file).and_then(|t| t.lines().nth(frame.line - 1).map(clip));
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
        EvalAltResult::ErrorStackOverflow(_) => Error::new(
            Kind::Quota,
            format!("calls nest deeper than {}", super::engine::CALL_DEPTH),
        )
        .hint("a function that calls itself needs an end, or a loop instead"),
        EvalAltResult::ErrorParsing(kind, _) => syntax(kind),
        EvalAltResult::ErrorVariableNotFound(name, _) => {
            let error = Error::internal(format!("no variable `{name}` here"));
            if is_constant_below(name, ctx) {
                error.hint(format!("`const {name}` stands further down: move it above its first use"))
            } else {
                error.hint("check the spelling; only parameters, `let` of this function and top-level `const` are visible")
            }
        }
        EvalAltResult::ErrorFunctionNotFound(signature, _) => function_not_found(signature),
        EvalAltResult::ErrorModuleNotFound(path, _) => Error::not_found(format!("no module `{path}`"))
            .hint("host modules are listed by `lapidary docs`; import \"std/..\" or \"lib/..\" for others"),
        EvalAltResult::ErrorAssignmentToConstant(name, _) => Error::internal(format!("`{name}` is a constant"))
            .hint("use `let` inside the function, or state:: for what must last"),
        EvalAltResult::ErrorDataTooLarge(what, _) => Error::new(Kind::TooLarge, format!("{what} is too large")),
        other => Error::internal(bare_message(other)),
    }
}

/// The message without the position that Rhai appends: the diagnostic has it already.
fn bare_message(fault: &EvalAltResult) -> String {
    let text = fault.to_string();
    let text = text.split(" (line ").next().unwrap_or(&text).trim_end_matches('.');
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_lowercase().chain(chars).collect())
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
            return Error::internal(message);
        }
        return Error::internal(value::to_json(value).map_or_else(|_| "a map was thrown".into(), |v| v.to_string()));
    }
    if let Some(text) = value.read_lock::<ImmutableString>() {
        return Error::internal(text.to_string());
    }
    Error::internal(value.to_string())
}

fn function_not_found(signature: &str) -> Error {
    // `module::name (types)`: the types tell which overload was missed.
    let name = signature.split(" (").next().unwrap_or(signature).trim();
    let error = Error::internal(format!("no function {signature}"));
    if name.contains("::") {
        error.hint(format!("see `lapidary docs` for what `{name}` takes"))
    } else {
        error.hint("check the name, the number and the types of the arguments")
    }
}

fn syntax(kind: &ParseErrorType) -> Error {
    let message = {
        let text = kind.to_string();
        let mut chars = text.trim_end_matches('.').chars();
        chars.next().map_or_else(String::new, |c| c.to_lowercase().chain(chars).collect::<String>())
    };
    let error = Error::invalid(message);
    match kind {
        ParseErrorType::Reserved(word) => {
            error.hint(format!("`{word}` is a reserved word of Rhai; use another name (in a parameter of a tool: `{word}_`)"))
        }
        ParseErrorType::WrongDocComment => {
            error.hint("`///` stands directly before a function only; write `//` here")
        }
        ParseErrorType::ExprTooDeep => error.hint("give the inner part a name with `let` or a function of its own"),
        _ => error,
    }
}
