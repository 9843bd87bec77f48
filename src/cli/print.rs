//! The one renderer of the command line: lines, tables, JSON, errors. It knows no command.

use crate::base::error::Error;
use crate::script::diagnostic::{Diagnostic, Severity};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};

/// Writes a line to stdout, for people. A reader that went away ends the program quietly, as `head` expects.
pub fn line(text: impl Display) {
    write(&visible(&text.to_string()));
}

fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(e) = writeln!(out, "{text}").and_then(|()| out.flush())
        && e.kind() == ErrorKind::BrokenPipe
    {
        std::process::exit(0);
    }
}

/// The beginning of a line on stderr, which a person goes on.
pub fn prompt(text: impl Display) {
    eprint!("{text}");
}

/// Writes a line to stderr.
pub fn note(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{}", visible(&text.to_string()));
}

/// Writes one JSON value to stdout.
pub fn json(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => write(&text),
        Err(e) => note(format_args!("error: cannot write JSON: {e}")),
    }
}

/// Names, descriptions and source lines come from strangers: what a terminal would obey is shown as a picture of itself.
fn visible(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let picture = |c: char| match u32::from(c) {
        code @ 0..=0x1f => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    };
    Cow::Owned(text.replace("\r\n", "\n").chars().map(|c| if is_obeyed(c) { picture(c) } else { c }).collect())
}

/// Whether a person reads stderr.
#[must_use]
pub fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// An error as people read it, on stderr.
pub fn failure(error: &Error) {
    note(format_args!("error: {}", error.message()));
    if let Some(hint) = error.hint_text().or(error.user_action()) {
        note(format_args!("  help: {hint}"));
    }
    if error.hint_text().is_some() {
        ways_out(error);
    } else {
        fallbacks(error);
    }
}

/// What else can be done about a failure: by a person, or with another tool.
pub fn ways_out(error: &Error) {
    if let Some(action) = error.user_action() {
        note(format_args!("  to do: {action}"));
    }
    fallbacks(error);
}

fn fallbacks(error: &Error) {
    for fallback in error.fallbacks() {
        let when = if fallback.when.is_empty() { String::new() } else { format!(" ({})", fallback.when) };
        note(format_args!("  instead: {}{when}", fallback.tool));
    }
}

/// An error as programs read it.
#[must_use]
pub fn error_json(error: &Error) -> Value {
    let mut value = json!({ "code": error.code(), "message": error.message(), "retryable": error.retryable() });
    if let Some(hint) = error.hint_text() {
        value["hint"] = hint.into();
    }
    if let Some(action) = error.user_action() {
        value["user_action"] = action.into();
    }
    if let Some(ms) = error.retry_after_ms() {
        value["retry_after_ms"] = ms.into();
    }
    value
}

/// What `--json` prints when a command could not do its work.
#[must_use]
pub fn failure_json(error: &Error) -> Value {
    json!({ "ok": false, "text": error.message(), "error": error_json(error) })
}

/// Diagnostics with their lines and carets, on stdout; errors first.
pub fn diagnostics<'a>(all: impl IntoIterator<Item = &'a Diagnostic>) {
    let (errors, warnings): (Vec<_>, Vec<_>) = all.into_iter().partition(|d| d.severity == Severity::Error);
    for diagnostic in errors.into_iter().chain(warnings) {
        line(diagnostic.render());
    }
}

/// `1 tool`, `2 tools`.
#[must_use]
pub fn count(n: usize, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        _ => format!("{n} {one}s"),
    }
}

/// A number with commas.
#[must_use]
pub fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// One line, at most `most` characters.
#[must_use]
pub fn clip(text: &str, most: usize) -> String {
    let one = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if one.chars().count() <= most {
        return one;
    }
    one.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// The first paragraph of a text, on one line.
#[must_use]
pub fn first_paragraph(text: &str) -> String {
    let lines = text.lines().skip_while(|l| l.trim().is_empty()).take_while(|l| !l.trim().is_empty());
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Columns that line up. The first row is the heading; a column of numbers is set right.
#[derive(Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<usize>,
}

impl Table {
    /// A table with these headings.
    #[must_use]
    pub fn new(heads: &[&str]) -> Table {
        Table { rows: vec![heads.iter().map(|h| (*h).to_owned()).collect()], right: Vec::new() }
    }

    /// A table without headings.
    #[must_use]
    pub fn plain() -> Table {
        Table::default()
    }

    /// Sets a column right.
    #[must_use]
    pub fn right(mut self, column: usize) -> Table {
        self.right.push(column);
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The lines, indented by `indent` spaces.
    #[must_use]
    pub fn render(&self, indent: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|c| self.rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0))
            .collect();
        let mut lines = Vec::new();
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            for (c, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[c].saturating_sub(cell.chars().count()));
                let gap = if c == 0 { "" } else { "  " };
                line.push_str(gap);
                if self.right.contains(&c) {
                    line.push_str(&pad);
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    line.push_str(&pad);
                }
            }
            lines.push(line.trim_end().to_owned());
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up_and_has_no_space_at_the_end() {
        let mut table = Table::new(&["NAME", "N"]).right(1);
        table.row(["a".into(), "1".into()]);
        table.row(["längst".into(), "100".into()]);
        assert_eq!(table.render(2), "  NAME      N\n  a         1\n  längst  100");
    }

    #[test]
    fn a_terminal_is_never_told_what_to_do() {
        let rows = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("a\r\nb", "a\nb"),
            ("\u{1b}[31mred\u{7}", "␛[31mred␇"),
            ("a\rb\u{7f}\u{9b}", "a␍b␡\u{fffd}"),
            ("čeština 日本", "čeština 日本"),
        ];
        for (text, shown) in rows {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn numbers_are_grouped_by_three() {
        let rows = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        for (n, text) in rows {
            assert_eq!(grouped(n), text);
        }
    }

    #[test]
    fn a_long_text_is_cut_to_one_line() {
        assert_eq!(clip("a\n  b  c", 10), "a b c");
        assert_eq!(clip("abcdef", 4), "abc…");
    }
}
