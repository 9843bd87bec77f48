//! Tests beside scripts: each `fn test_..()` and each `@example` in a world of its own, with a clock that tests turn and no
//! network beyond this machine. It knows plugins and the dispatcher; printing is the command line's.

mod asserts;
mod recipe;
mod script;
pub mod subject;
mod world;

pub use script::{load_module, load_script};

use crate::base::error::Result;
use crate::base::paths::Paths;
use crate::plugin::discover::{self, Embedded, Found};
use crate::script::diagnostic::Diagnostic;
use recipe::Recipe;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use subject::Subject;
use world::{Bench, World};

/// The moment every test begins at: 2026-01-01T00:00:00Z, in milliseconds.
pub const BEGINNING: i64 = 1_767_225_600_000;

/// What to test.
pub struct Options {
    /// The root that plugins come from. Nothing in it is changed.
    pub root: Paths,
    /// Scripts, plugin folders, test scripts, folders of those, names of plugins; every plugin of the root where it is empty.
    pub paths: Vec<PathBuf>,
}

impl Options {
    /// Every plugin of a root.
    #[must_use]
    pub fn new(root: Paths) -> Options {
        Options { root, paths: Vec::new() }
    }
}

/// One test that ran.
#[derive(Debug, Clone, Serialize)]
pub struct Tested {
    /// The plugin it tests; empty for a script that stands for itself.
    pub plugin: String,
    /// The file it stands in, as people see it.
    pub file: String,
    /// Its function, or `example <tool> <arguments>`.
    pub name: String,
    /// Whether it passed.
    pub ok: bool,
    /// Wall clock, in milliseconds.
    pub duration_ms: f64,
    /// Why it failed, and where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// What it and the tools it called logged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
}

impl Tested {
    /// As a test runner prints it: one line when it passed, with everything one needs when it failed.
    #[must_use]
    pub fn render(&self) -> String {
        if self.ok {
            return format!("  ok      {}\n", self.name);
        }
        let mut out = format!("  FAILED  {}\n", self.name);
        for diagnostic in &self.diagnostics {
            for line in diagnostic.render().trim_end().lines() {
                let _ = writeln!(out, "          {line}");
            }
        }
        for line in &self.log {
            let _ = writeln!(out, "          | {line}");
        }
        out
    }
}

/// How all tests ended.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// Every test, in the order they ran.
    pub tests: Vec<Tested>,
}

/// Runs the tests, and tells of each as it ends.
///
/// # Errors
/// For a path that stands for nothing. A test that fails is in the report.
pub fn run(options: &Options, told: &mut dyn FnMut(&Tested)) -> Result<Report> {
    let known = discover::discover(&options.root, &[], &Embedded).plugins;
    let mut subjects = Vec::new();
    if options.paths.is_empty() {
        subjects.extend(known.iter().cloned().map(Subject::Plugin));
    }
    for path in &options.paths {
        for subject in subject::of_path(&options.root, &known, path)? {
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
    }
    let mut runner =
        Runner { root: &options.root, known: &known, bench: Bench::default(), report: Report::default(), told };
    for subject in &subjects {
        match subject {
            Subject::Plugin(found) => runner.plugin(found),
            Subject::Script { path, owner } => runner.script(path, owner.as_ref()),
            Subject::Module { .. } => {}
        }
    }
    Ok(runner.report)
}

/// Runs one script's tests from its text, as a script that stands for itself.
pub fn run_text(name: &str, text: &str) -> Report {
    let root = Paths::at(std::env::temp_dir());
    let mut runner =
        Runner { root: &root, known: &[], bench: Bench::default(), report: Report::default(), told: &mut |_| {} };
    runner.tests_of(
        &Recipe::alone(),
        "",
        &recipe::TestFile { shown: name.to_owned(), bytes: text.as_bytes().to_vec() },
    );
    runner.report
}

struct Runner<'a> {
    root: &'a Paths,
    known: &'a [Found],
    bench: Bench,
    report: Report,
    told: &'a mut dyn FnMut(&Tested),
}

impl Runner<'_> {
    fn end(&mut self, tested: Tested) {
        if tested.ok {
            self.report.passed += 1;
        } else {
            self.report.failed += 1;
        }
        (self.told)(&tested);
        self.report.tests.push(tested);
    }

    fn failed(&mut self, plugin: &str, file: &str, name: &str, diagnostics: Vec<Diagnostic>) {
        self.end(Tested {
            plugin: plugin.to_owned(),
            file: file.to_owned(),
            name: name.to_owned(),
            ok: false,
            duration_ms: 0.0,
            diagnostics,
            log: Vec::new(),
        });
    }

    fn plugin(&mut self, found: &Found) {
        let recipe = match Recipe::of(found, self.root, self.known) {
            Ok(recipe) => recipe,
            Err(e) => {
                return self.failed(&found.name, &found.place(), "its files", vec![unreadable(&found.place(), &e)]);
            }
        };
        if self.examples(&recipe, found) {
            for file in recipe.tests() {
                self.tests_of(&recipe, &found.name, &file);
            }
        }
    }

    fn script(&mut self, path: &std::path::Path, owner: Option<&Found>) {
        let shown = self.root.shown(path);
        let plugin = owner.map_or("", |f| f.name.as_str());
        let file = crate::base::file::read_capped(path, crate::script::program::MAX_SOURCE as u64);
        let recipe = owner.map_or_else(|| Ok(Recipe::alone()), |found| Recipe::of(found, self.root, self.known));
        match (file, recipe) {
            (Ok(bytes), Ok(recipe)) => self.tests_of(&recipe, plugin, &recipe::TestFile { shown, bytes }),
            (Err(e), _) | (_, Err(e)) => self.failed(plugin, &shown, "its file", vec![unreadable(&shown, &e)]),
        }
    }

    /// Every `fn test_..()` of a file, each in a world of its own.
    fn tests_of(&mut self, recipe: &Recipe, plugin: &str, file: &recipe::TestFile) {
        let names =
            World::make(&mut self.bench, recipe).and_then(|world| world.load(file).map(|loaded| loaded.tests()));
        let names = match names {
            Ok(names) => names,
            Err(diagnostics) => return self.failed(plugin, &file.shown, "loading it", diagnostics),
        };
        if names.is_empty() {
            let d = Diagnostic::error("load", file.shown.as_str(), "the file has no tests")
                .hint("a test is a function without parameters whose name begins with test_: fn test_it() { assert_eq(1 + 1, 2); }");
            return self.failed(plugin, &file.shown, "loading it", vec![d]);
        }
        for name in names {
            let start = Instant::now();
            let (diagnostics, log) = match World::make(&mut self.bench, recipe) {
                Ok(world) => {
                    let done = world.load(file).and_then(|loaded| loaded.run(&name));
                    (done.err().unwrap_or_default(), world.take_log())
                }
                Err(diagnostics) => (diagnostics, Vec::new()),
            };
            let ok = diagnostics.is_empty();
            self.end(Tested {
                plugin: plugin.to_owned(),
                file: file.shown.clone(),
                name,
                ok,
                duration_ms: ms(start.elapsed()),
                log: if ok { Vec::new() } else { log },
                diagnostics,
            });
        }
    }

    /// Every `@example` of a plugin's tools. A plugin that does not load is one failure, and nothing else of it can run.
    fn examples(&mut self, recipe: &Recipe, found: &Found) -> bool {
        let world = match World::make(&mut self.bench, recipe) {
            Ok(world) => world,
            Err(diagnostics) => {
                self.failed(&found.name, &found.place(), "loading it", diagnostics);
                return false;
            }
        };
        let mut seen = BTreeSet::new();
        let examples = world.examples();
        drop(world);
        for example in examples {
            let start = Instant::now();
            let shown = example.arguments.to_string();
            let name = format!("example {} {}", example.tool, world::clip(&shown, 80));
            // The same example twice is one test.
            if !seen.insert(name.clone()) {
                continue;
            }
            let (diagnostics, log) = match World::make(&mut self.bench, recipe) {
                Ok(world) => (world.run_example(&example).err().unwrap_or_default(), world.take_log()),
                Err(diagnostics) => (diagnostics, Vec::new()),
            };
            let ok = diagnostics.is_empty();
            self.end(Tested {
                plugin: found.name.clone(),
                file: example.file.clone(),
                name,
                ok,
                duration_ms: ms(start.elapsed()),
                log: if ok { Vec::new() } else { log },
                diagnostics,
            });
        }
        true
    }
}

fn ms(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e6).round() / 1e3
}

fn unreadable(place: &str, e: &crate::base::error::Error) -> Diagnostic {
    Diagnostic::from_error("load", place, e)
}
