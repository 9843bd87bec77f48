//! `check`: would it load? Compiles, validates and lints in isolation; nothing goes live.

use super::context::{Context, Done, Verdict};
use super::print;
use crate::app::Host;
use crate::plugin::discover::Found;
use crate::script::diagnostic::{Diagnostic, Severity};
use crate::trial;
use crate::trial::subject::{self, Subject};
use clap::Args;
use std::path::PathBuf;

/// Compile and check scripts without running them live; 0 means they would load
#[derive(Args)]
pub struct Check {
    /// Scripts, plugin folders, or names of plugins [default: every plugin of this root]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// What a look at one thing found.
struct Looked {
    what: String,
    /// In words, where it would load.
    good: String,
    diagnostics: Vec<Diagnostic>,
}

impl Check {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let host = cx.host()?;
        let plugins = host.plugins();
        let known: Vec<Found> = plugins.names().iter().filter_map(|n| plugins.found(n)).collect();
        let mut subjects = Vec::new();
        if self.paths.is_empty() {
            subjects.extend(known.iter().cloned().map(Subject::Plugin));
        }
        for path in &self.paths {
            for subject in subject::of_path(host.paths(), &known, path)? {
                if !subjects.contains(&subject) {
                    subjects.push(subject);
                }
            }
        }
        let mut looked: Vec<Looked> = subjects.iter().map(|s| look(&host, s)).collect();
        for notice in plugins.notices() {
            let Some(what) = notice.refused else { continue };
            let refused = Diagnostic::error("conflict", what.clone(), notice.message);
            match looked.iter_mut().find(|one| one.what == what) {
                Some(one) => one.diagnostics = vec![refused],
                None if self.paths.is_empty() => {
                    looked.push(Looked { what, good: String::new(), diagnostics: vec![refused] });
                }
                None => {}
            }
        }
        let errors: usize = looked.iter().map(Looked::errors).sum();
        if cx.json {
            let all: Vec<&Diagnostic> = looked.iter().flat_map(|l| &l.diagnostics).collect();
            print::json(&all);
            return Ok(Verdict::of(errors == 0));
        }
        for one in &looked {
            if one.errors() == 0 {
                print::line(format_args!("ok      {}: {}", one.what, one.good));
            } else {
                print::line(format_args!("FAILED  {}", one.what));
            }
            if !one.diagnostics.is_empty() {
                print::line("");
                print::diagnostics(&one.diagnostics);
            }
        }
        let warnings: usize = looked.iter().map(|l| l.diagnostics.len()).sum::<usize>() - errors;
        if looked.is_empty() {
            print::line("No plugins. Write one: lapidary new greet");
        } else if looked.len() > 1 || errors + warnings > 0 {
            let failed = looked.iter().filter(|l| l.errors() > 0).count();
            let mut text = format!("{} checked, {failed} failed", looked.len());
            if warnings > 0 {
                text.push_str(&format!(", {}", print::count(warnings, "warning")));
            }
            print::line(text);
        }
        Ok(Verdict::of(errors == 0))
    }
}

impl Looked {
    fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|d| d.severity == Severity::Error).count()
    }
}

fn look(host: &Host, subject: &Subject) -> Looked {
    match subject {
        Subject::Plugin(found) => plugin(host, found),
        Subject::Script { path, owner } => {
            let what = host.paths().shown(path);
            let done = trial::load_script(host, path, owner.as_ref());
            Looked {
                what,
                good: done.as_ref().map(|tests| print::count(tests.len(), "test")).unwrap_or_default(),
                diagnostics: done.err().unwrap_or_default(),
            }
        }
        Subject::Module { name } => Looked {
            what: format!("stdlib/{name}.rhai"),
            good: "a module that scripts import".to_owned(),
            diagnostics: trial::load_module(host, name).err().unwrap_or_default(),
        },
    }
}

fn plugin(host: &Host, found: &Found) -> Looked {
    let what = found.place();
    match host.plugins().check(found) {
        Ok(generation) => {
            let tools: Vec<String> = generation.tools().map(|spec| spec.name.clone()).collect();
            let good = if tools.is_empty() {
                "no tools".to_owned()
            } else {
                format!("{}: {}", print::count(tools.len(), "tool"), print::clip(&tools.join(", "), 80))
            };
            // Nothing is wrong with a version that waits, and still it is not the one that answers.
            let waits = host.plugins().status(&found.name).filter(|s| s.waiting);
            let good = match &waits {
                Some(status) => {
                    format!("{good}; waits for a yes, and version {} answers", status.live.unwrap_or_default())
                }
                None => good,
            };
            let diagnostics = generation
                .broken
                .values()
                .flatten()
                .chain(generation.quarantined.iter().map(|q| &q.diagnostic))
                .chain(&generation.warnings)
                .cloned()
                .chain(waits.into_iter().flat_map(|s| s.diagnostics))
                .collect();
            Looked { what, good, diagnostics }
        }
        Err(diagnostics) => Looked { what, good: String::new(), diagnostics },
    }
}
