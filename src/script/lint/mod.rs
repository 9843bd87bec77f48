//! What is wrong with a file and can be seen before it runs: one walk over each file that is loaded.
//! Knows the language and the engine's functions, not what a tool is.

mod calls;
mod closures;
mod description;
mod names;
mod natives;
mod near;
mod outline;

pub use description::check_description;
pub use names::{RESERVED_WORDS, is_reserved_word};
pub use near::nearest;

pub(super) use natives::prepare;
pub(super) use outline::{Import, Outline};

use super::diagnostic::{Diagnostic, Severity};
use super::program::Program;

/// The most findings of one kind and file that are told.
const MOST: usize = 50;

/// The findings of a loaded file and of the `lib/` files it imported, in the order of their lines: errors refuse the
/// file, warnings are worth a look.
#[must_use]
pub fn check(program: &Program) -> Vec<Diagnostic> {
    let mut out = program.findings.clone();
    out.extend(names::reserved_parameters(program));
    sort(&mut out);
    out
}

fn sort(findings: &mut [Diagnostic]) {
    findings.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
}

/// Keeps the first [`MOST`] of each severity and says how many more there are.
fn cap(findings: &mut Vec<Diagnostic>) {
    sort(findings);
    findings.dedup();
    for severity in [Severity::Error, Severity::Warning] {
        let of_kind = |d: &Diagnostic| d.severity == severity;
        let count = findings.iter().filter(|d| of_kind(d)).count();
        if count <= MOST {
            continue;
        }
        let mut seen = 0;
        findings.retain(|d| {
            seen += usize::from(of_kind(d));
            !of_kind(d) || seen <= MOST
        });
        if let Some(last) = findings.iter_mut().rev().find(|d| of_kind(d)) {
            last.message.push_str(&format!(" (and {} more like these)", count - MOST));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
