//! The words Rhai keeps for itself, and tool parameters that bear one.

use super::super::diagnostic::Diagnostic;
use super::super::program::Program;
use rhai::{Array, Dynamic, ImmutableString, Map};

/// Words that cannot name a variable, a parameter, a property or a module's function.
pub const RESERVED_WORDS: [&str; 61] = [
    "as",
    "async",
    "await",
    "break",
    "call",
    "case",
    "catch",
    "const",
    "continue",
    "curry",
    "debug",
    "default",
    "do",
    "else",
    "eval",
    "export",
    "false",
    "Fn",
    "fn",
    "for",
    "go",
    "goto",
    "if",
    "import",
    "in",
    "is",
    "is_def_fn",
    "is_def_var",
    "is_shared",
    "let",
    "loop",
    "match",
    "module",
    "new",
    "nil",
    "null",
    "package",
    "print",
    "private",
    "protected",
    "public",
    "return",
    "shared",
    "spawn",
    "static",
    "super",
    "switch",
    "sync",
    "this",
    "thread",
    "throw",
    "true",
    "try",
    "type_of",
    "until",
    "use",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// Whether Rhai keeps `word` for itself.
#[must_use]
pub fn is_reserved_word(word: &str) -> bool {
    RESERVED_WORDS.contains(&word)
}

fn map<T>(value: &Dynamic, look: impl FnOnce(&Map) -> Option<T>) -> Option<T> {
    value.read_lock::<Map>().and_then(|m| look(&m))
}

/// Parameters in `TOOLS` that a script cannot read as `arguments.name`.
pub(super) fn reserved_parameters(program: &Program) -> Vec<Diagnostic> {
    let Some(tools) = program.constants.get("TOOLS").and_then(|v| v.read_lock::<Array>()) else { return Vec::new() };
    let text = &program.source.text;
    let mut out = Vec::new();
    for tool in tools.iter() {
        let Some((name, words)) = map(tool, |t| {
            map(t.get("function")?, |f| {
                let name = f.get("name")?.read_lock::<ImmutableString>()?.to_string();
                let words = map(f.get("parameters")?, |p| {
                    map(p.get("properties")?, |p| {
                        Some(p.keys().filter(|k| is_reserved_word(k)).map(ToString::to_string).collect::<Vec<_>>())
                    })
                })?;
                Some((name, words))
            })
        }) else {
            continue;
        };
        for word in words {
            let quoted = format!("\"{word}\"");
            let place = text.lines().enumerate().find_map(|(n, l)| Some((n + 1, l.find(&quoted)?, l)));
            let (line, column) = place.map_or((0, 0), |(n, at, l)| (n, 1 + l[..at].chars().count()));
            out.push(
                Diagnostic::warning(
                    "lint",
                    &*program.source.name,
                    format!("`{name}`: the parameter `{word}` bears a reserved word of Rhai"),
                )
                .at(text, line, column)
                .hint(format!("read it as arguments[\"{word}\"], or choose another name")),
            );
        }
    }
    out
}
