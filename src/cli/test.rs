//! `test`: runs the tests beside plugins and prints them as a test runner does; with `--watch` again at each save.

use super::context::{Context, Done, Stop, Verdict};
use super::print;
use crate::base::error::Error;
use crate::base::paths::Paths;
use crate::trial::follow::{self, Saved};
use crate::trial::subject::Subject;
use crate::trial::{self, Golden, Options, Report, Requests, Tested};
use clap::Args;
use std::collections::BTreeSet;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

/// Run the tests beside plugins: `fn test_..()` in tests/*.rhai, every @example, and golden schemas where there are some
#[derive(Args)]
#[command(after_help = "\
Tests send nothing: requests are answered from tests/recorded/, which --record writes.
A recording uses the network, your credentials, and what you granted to the plugin.")]
pub struct Test {
    /// Scripts, plugin folders, test scripts, folders of those, or names of plugins [default: every plugin of this root]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Send the requests of the tests to the network, and write what comes back into tests/recorded/
    #[arg(long)]
    record: bool,
    /// Write what a model sees of each plugin's tools into tests/golden/, where it is compared from then on
    #[arg(long)]
    update: bool,
    /// Run again what a save concerns, until Ctrl+C; the exit code is that of the last results
    #[arg(long, conflicts_with_all = ["record", "update"])]
    watch: bool,
}

impl Test {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let mut options = Options::new(cx.workshop()?);
        options.paths.clone_from(&self.paths);
        if self.record {
            options.requests = Requests::Recorded;
        }
        if self.update {
            options.golden = Golden::Updated;
        }
        if self.watch {
            if cx.json {
                return Err(Stop::usage("`test --watch` is for people and has no --json", "leave one of them out"));
            }
            return watch(&options);
        }
        if cx.json {
            let report = trial::run(&options, &mut |_| {})?;
            print::json(&report);
            return Ok(Verdict::of(report.failed == 0));
        }
        let mut pages = Pages::default();
        let report = trial::run(&options, &mut |test| pages.tell(test))?;
        last_lines(&report, self.paths.is_empty());
        Ok(Verdict::of(report.failed == 0))
    }
}

/// Tests under the names of their files.
#[derive(Default)]
struct Pages {
    heading: String,
}

impl Pages {
    fn tell(&mut self, test: &Tested) {
        if self.heading != test.file {
            if !self.heading.is_empty() {
                print::line("");
            }
            self.heading.clone_from(&test.file);
            print::line(&self.heading);
        }
        print::line(test.render().trim_end());
    }
}

fn last_lines(report: &Report, everything: bool) {
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

enum Heard {
    Saved(Saved),
    End,
}

fn watch(options: &Options) -> Done {
    let (tx, heard) = mpsc::channel();
    let saves = tx.clone();
    // Whoever saves during the first run is heard after it.
    let _watch = follow::watch(options, move |saved| drop(saves.send(Heard::Saved(saved))))?;
    let stop = options.stop.clone();
    on_interrupt(move || {
        stop.store(true, Ordering::Relaxed);
        let _ = tx.send(Heard::End);
    })?;
    let mut failing = Failing::default();
    let mut pages = Pages::default();
    let report = trial::run(options, &mut |test| pages.tell(test))?;
    failing.take(&report, &[]);
    last_lines(&report, options.paths.is_empty());
    print::line("watching; save a file and what it concerns runs again, Ctrl+C ends");
    while let Ok(first) = heard.recv() {
        // What was saved meanwhile is one run.
        let mut saved = None;
        for heard in std::iter::once(first).chain(std::iter::from_fn(|| heard.try_recv().ok())) {
            match heard {
                Heard::End => return Ok(Verdict::of(failing.is_empty())),
                Heard::Saved(more) => saved = Some(joined(saved, more)),
            }
        }
        if let Some(saved) = saved {
            again(options, &saved, &mut failing);
        }
    }
    Ok(Verdict::of(failing.is_empty()))
}

fn joined(before: Option<Saved>, more: Saved) -> Saved {
    match (before, more) {
        (Some(Saved::Anything), _) | (_, Saved::Anything) => Saved::Anything,
        (None, files) => files,
        (Some(Saved::Files(mut before)), Saved::Files(more)) => {
            before.extend(more);
            Saved::Files(before)
        }
    }
}

fn again(options: &Options, saved: &Saved, failing: &mut Failing) {
    let mut pages = Pages::default();
    let mut ran = Vec::new();
    let begin = &mut |subjects: &[Subject]| {
        ran = subjects.to_vec();
        if !subjects.is_empty() {
            print::line("");
            print::line(changed(&options.root, saved));
        }
    };
    match follow::run_saved(options, saved, begin, &mut |test| pages.tell(test)) {
        Ok(report) => {
            failing.take(&report, &ran);
            if !ran.is_empty() {
                print::line("");
                print::line(format_args!(
                    "{} passed, {} failed{}",
                    report.passed,
                    report.failed,
                    failing.others(&report)
                ));
            }
        }
        Err(e) => print::failure(&e),
    }
}

/// `changed: user/tools/tea.rhai`, in one line.
fn changed(root: &Paths, saved: &Saved) -> String {
    let Saved::Files(files) = saved else { return "changed: anything".into() };
    let shown: Vec<String> = files.iter().take(3).map(|file| root.shown(file)).collect();
    let more = match files.len().saturating_sub(shown.len()) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("changed: {}{more}", shown.join(", "))
}

/// The tests whose last result was a failure: plugin, file and name.
#[derive(Default)]
struct Failing(BTreeSet<(String, String, String)>);

impl Failing {
    fn take(&mut self, report: &Report, ran: &[Subject]) {
        for subject in ran {
            match subject {
                Subject::Plugin(found) => self.0.retain(|(plugin, ..)| *plugin != found.name),
                Subject::Script { .. } | Subject::Module { .. } => {}
            }
        }
        for test in &report.tests {
            let key = (test.plugin.clone(), test.file.clone(), test.name.clone());
            if test.ok {
                self.0.remove(&key)
            } else {
                self.0.insert(key)
            };
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What fails still, and was not part of this run.
    fn others(&self, report: &Report) -> String {
        match self.0.len().saturating_sub(report.failed) {
            0 => String::new(),
            n => format!("; {n} of what did not run failed before"),
        }
    }
}

/// Does something at Ctrl+C, every time, in the place of ending the process.
fn on_interrupt(act: impl Fn() + Send + 'static) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::internal(format!("cannot start the runtime: {e}")))?;
    let (ready, is_ready) = mpsc::channel();
    std::thread::Builder::new()
        .name("lapidary-interrupt".into())
        .spawn(move || {
            let mut listens = Some(ready);
            runtime.block_on(async {
                loop {
                    let mut interrupt = Box::pin(tokio::signal::ctrl_c());
                    let heard = std::future::poll_fn(|cx| {
                        let heard = interrupt.as_mut().poll(cx);
                        // It listens from the first look on.
                        if let Some(ready) = listens.take() {
                            let _ = ready.send(());
                        }
                        heard
                    });
                    if heard.await.is_err() {
                        return;
                    }
                    act();
                }
            });
        })
        .map_err(|e| Error::internal(format!("cannot start a thread: {e}")))?;
    let _ = is_ready.recv();
    Ok(())
}
