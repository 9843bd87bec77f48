//! `test`: runs the tests beside plugins and prints them as a test runner does.

use super::context::{Context, Done, Stop, Verdict};
use super::print;
use crate::trial::{self, Options, Report, Requests};
use clap::Args;
use std::path::PathBuf;

/// Run the tests beside plugins: `fn test_..()` in tests/*.rhai, and every @example
#[derive(Args)]
pub struct Test {
    /// Scripts, plugin folders, test scripts, folders of those, or names of plugins [default: every plugin of this root]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Send the requests of the tests to the network, and record what comes back in tests/recorded/
    #[arg(long)]
    record: bool,
    #[arg(long, hide = true)]
    watch: bool,
    #[arg(long, hide = true)]
    update: bool,
}

impl Test {
    pub(super) fn run(&self, cx: &Context) -> Done {
        if self.watch {
            return Err(Stop::not_yet("`--watch`"));
        }
        if self.update {
            return Err(Stop::not_yet("`--update`"));
        }
        let mut options = Options::new(cx.workshop()?);
        options.paths.clone_from(&self.paths);
        if self.record {
            options.requests = Requests::Recorded;
        }
        if cx.json {
            let report = trial::run(&options, &mut |_| {})?;
            print::json(&report);
            return Ok(Verdict::of(report.failed == 0));
        }
        let mut heading = String::new();
        let report = trial::run(&options, &mut |test| {
            if heading != test.file {
                if !heading.is_empty() {
                    print::line("");
                }
                heading.clone_from(&test.file);
                print::line(&heading);
            }
            print::line(test.render().trim_end());
        })?;
        last_line(&report, self.paths.is_empty());
        Ok(Verdict::of(report.failed == 0))
    }
}

fn last_line(report: &Report, everything: bool) {
    if report.tests.is_empty() {
        let where_to = if everything { "" } else { " there" };
        print::line(format_args!(
            "No tests{where_to}. Write `fn test_it() {{ assert_eq(1 + 1, 2); }}` into tests/<name>.rhai beside the tool."
        ));
    } else {
        print::line("");
    }
    report.notes.iter().for_each(print::line);
    print::line(format_args!("{} passed, {} failed", report.passed, report.failed));
}
