//! Tests beside scripts: each `fn test_..()` and each `@example` in a world of its own, with a clock that tests turn and no
//! network beyond this machine. It knows plugins and the dispatcher; printing is the command line's.

mod asserts;
pub mod follow;
mod golden;
mod recipe;
mod recording;
mod script;
pub mod subject;
mod world;

pub use golden::Golden;
pub use recording::{Requests, schema as recording_schema};
pub use script::{load_module, load_script};

use crate::base::error::Result;
use crate::base::paths::Paths;
use crate::plugin::discover::{self, Embedded, Found};
use crate::script::diagnostic::Diagnostic;
use golden::Seen;
use recipe::{Beside, Recipe, TestFile};
use recording::{Book, Played};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use subject::Subject;
use world::{Bench, Stage, World};

/// The moment every test begins at: 2026-01-01T00:00:00Z, in milliseconds.
pub const BEGINNING: i64 = 1_767_225_600_000;

/// What to test.
pub struct Options {
    /// The root that plugins come from. Nothing in it is changed.
    pub root: Paths,
    /// Scripts, plugin folders, test scripts, folders of those, names of plugins; every plugin of the root where it is empty.
    pub paths: Vec<PathBuf>,
    /// Where requests go.
    pub requests: Requests,
    /// What becomes of golden schemas.
    pub golden: Golden,
    /// Once this is set, no further test begins.
    pub stop: Arc<AtomicBool>,
}

impl Options {
    /// Every plugin of a root.
    #[must_use]
    pub fn new(root: Paths) -> Options {
        Options {
            root,
            paths: Vec::new(),
            requests: Requests::default(),
            golden: Golden::default(),
            stop: Arc::default(),
        }
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
    /// What else there is to know: files that were written, recordings that went.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Runs the tests, and tells of each as it ends.
///
/// # Errors
/// For a path that stands for nothing. A test that fails is in the report.
pub fn run(options: &Options, told: &mut dyn FnMut(&Tested)) -> Result<Report> {
    let known = discover::discover(&options.root, &[], &Embedded).plugins;
    let subjects = chosen(options, &known)?;
    Ok(run_these(options, &known, &subjects, told))
}

/// What the options stand for, of the plugins that there are.
fn chosen(options: &Options, known: &[Found]) -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    if options.paths.is_empty() {
        subjects.extend(known.iter().cloned().map(Subject::Plugin));
    }
    for path in &options.paths {
        for subject in subject::of_path(&options.root, known, path)? {
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
    }
    Ok(subjects)
}

fn run_these(options: &Options, known: &[Found], subjects: &[Subject], told: &mut dyn FnMut(&Tested)) -> Report {
    let mut runner = Runner {
        root: &options.root,
        known,
        requests: options.requests,
        golden: options.golden,
        stop: &options.stop,
        bench: Bench::default(),
        report: Report::default(),
        told,
    };
    for subject in subjects {
        match subject {
            Subject::Plugin(found) => runner.plugin(found),
            Subject::Script { path, owner } => runner.script(path, owner.as_ref()),
            Subject::Module { .. } => {}
        }
    }
    runner.report
}

/// Runs one script's tests from its text, as a script that stands for itself.
pub fn run_text(name: &str, text: &str) -> Report {
    let root = Paths::at(std::env::temp_dir());
    let mut runner = Runner {
        root: &root,
        known: &[],
        requests: Requests::Replayed,
        golden: Golden::Compared,
        stop: &AtomicBool::new(false),
        bench: Bench::default(),
        report: Report::default(),
        told: &mut |_| {},
    };
    runner.tests_of(&Recipe::alone(), "", &TestFile::of_text(name, text.as_bytes().to_vec()));
    runner.report
}

struct Runner<'a> {
    root: &'a Paths,
    known: &'a [Found],
    requests: Requests,
    golden: Golden,
    stop: &'a AtomicBool,
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

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// What a model sees of a plugin is what its golden file says, where it has one.
    fn schemas(&mut self, schemas: &Seen, found: &Found) {
        let start = Instant::now();
        let beside = Beside::golden(found, self.root);
        let compared = match self.golden {
            Golden::Compared => schemas.compare(&beside),
            Golden::Updated => match schemas.update(&beside) {
                Ok(note) => {
                    self.report.notes.extend(note);
                    return;
                }
                Err(e) => Err(vec![unreadable(&beside.shown, &e)]),
            },
        };
        let diagnostics = match compared {
            Ok(None) => return,
            Ok(Some(())) => Vec::new(),
            Err(diagnostics) => diagnostics,
        };
        let test = Test { plugin: &found.name, file: &beside.shown, name: "golden schemas".into(), start };
        self.told_of(test, diagnostics, Vec::new());
    }

    fn plugin(&mut self, found: &Found) {
        if self.stopped() {
            return;
        }
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
        let file = TestFile::read(path, owner, self.root);
        let recipe = owner.map_or_else(|| Ok(Recipe::alone()), |found| Recipe::of(found, self.root, self.known));
        match (file, recipe) {
            (Ok(file), Ok(recipe)) => self.tests_of(&recipe, plugin, &file),
            (Err(e), _) | (_, Err(e)) => self.failed(plugin, &shown, "its file", vec![unreadable(&shown, &e)]),
        }
    }

    /// Every `fn test_..()` of a file, each in a world of its own.
    fn tests_of(&mut self, recipe: &Recipe, plugin: &str, file: &TestFile) {
        let names = World::make(&mut self.bench, recipe, &Stage::closed(self.root))
            .and_then(|world| world.load(file).map(|loaded| loaded.tests()));
        let names = match names {
            Ok(names) => names,
            Err(diagnostics) => return self.failed(plugin, &file.shown, "loading it", diagnostics),
        };
        if names.is_empty() {
            let d = Diagnostic::error("load", file.shown.as_str(), "the file has no tests")
                .hint("a test is a function without parameters whose name begins with test_: fn test_it() { assert_eq(1 + 1, 2); }");
            return self.failed(plugin, &file.shown, "loading it", vec![d]);
        }
        let Some(mut book) = self.book(plugin, &file.shown, &file.recorded) else { return };
        for name in names {
            if self.stopped() {
                return;
            }
            let start = Instant::now();
            let stage = Stage { deck: book.deck(&name, plugin), root: self.root };
            let ended = self.in_world(recipe, &stage, |world| world.load(file).and_then(|loaded| loaded.run(&name)));
            self.one(&mut book, Test { plugin, file: &file.shown, name, start }, ended);
        }
        self.close(plugin, &file.shown, book);
    }

    /// The recordings of some tests; without, none of them can run.
    fn book(&mut self, plugin: &str, file: &str, beside: &Beside) -> Option<Book> {
        match Book::open(beside.clone(), self.requests) {
            Ok(book) => Some(book),
            Err(diagnostic) => {
                self.failed(plugin, file, "its recordings", vec![diagnostic]);
                None
            }
        }
    }

    fn close(&mut self, plugin: &str, file: &str, book: Book) {
        match book.close() {
            Ok(notes) => self.report.notes.extend(notes),
            Err(e) => self.failed(plugin, file, "writing its recordings", vec![unreadable(file, &e)]),
        }
    }

    fn in_world(
        &mut self,
        recipe: &Recipe,
        stage: &Stage,
        work: impl FnOnce(&World) -> Result<(), Vec<Diagnostic>>,
    ) -> Ended {
        match World::make(&mut self.bench, recipe, stage) {
            Ok(world) => {
                let diagnostics = work(&world).err().unwrap_or_default();
                Ended { diagnostics, log: world.take_log(), played: Some(world.played()) }
            }
            Err(diagnostics) => Ended { diagnostics, log: Vec::new(), played: None },
        }
    }

    /// A test has ended: its requests count too.
    fn one(&mut self, book: &mut Book, test: Test, ended: Ended) {
        let Ended { mut diagnostics, log, played } = ended;
        let Some(mut played) = played else {
            book.take(&test.name, Played::default(), false);
            return self.told_of(test, diagnostics, log);
        };
        for missing in std::mem::take(&mut played.missing) {
            // Where the script passed the failure on, its place is known: there the advice belongs.
            let Some(first) = diagnostics.iter().position(|d| d.message.contains(&missing.message)) else {
                diagnostics.push(missing);
                continue;
            };
            // What came up through a tool is told of the test and of the tool: once is enough, with both places.
            let mut asked = None;
            for at in (first + 1..diagnostics.len()).rev() {
                if diagnostics[at].message == missing.message {
                    asked = Some(diagnostics.remove(at)).filter(|d| d.line > 0);
                }
            }
            let advice = missing.hint.unwrap_or_default();
            diagnostics[first].hint = Some(match asked {
                Some(d) => format!("it is asked at {}:{}:{}; {advice}", d.file, d.line, d.column),
                None => advice,
            });
        }
        book.take(&test.name, played, diagnostics.is_empty());
        self.told_of(test, diagnostics, log);
    }

    fn told_of(&mut self, test: Test, diagnostics: Vec<Diagnostic>, log: Vec<String>) {
        let ok = diagnostics.is_empty();
        self.end(Tested {
            plugin: test.plugin.to_owned(),
            file: test.file.to_owned(),
            name: test.name,
            ok,
            duration_ms: ms(test.start.elapsed()),
            log: if ok { Vec::new() } else { log },
            diagnostics,
        });
    }

    /// Every `@example` of a plugin's tools, and its golden schemas. A plugin that does not load is one failure, and nothing else of it can run.
    fn examples(&mut self, recipe: &Recipe, found: &Found) -> bool {
        let world = match World::make(&mut self.bench, recipe, &Stage::closed(self.root)) {
            Ok(world) => world,
            Err(diagnostics) => {
                self.failed(&found.name, &found.place(), "loading it", diagnostics);
                return false;
            }
        };
        let mut seen = BTreeSet::new();
        let (examples, schemas) = (world.examples(), world.seen());
        drop(world);
        if let Some(schemas) = schemas {
            self.schemas(&schemas, found);
        }
        let Some(mut book) = self.book(&found.name, &found.place(), &Beside::examples(found, self.root)) else {
            return true;
        };
        for example in examples {
            if self.stopped() {
                return true;
            }
            let start = Instant::now();
            let shown = example.arguments.to_string();
            let name = format!("example {} {}", example.tool, world::clip(&shown, 80));
            // The same example twice is one test.
            if !seen.insert(name.clone()) {
                continue;
            }
            let stage = Stage { deck: book.deck(&name, &found.name), root: self.root };
            let ended = self.in_world(recipe, &stage, |world| world.run_example(&example));
            self.one(&mut book, Test { plugin: &found.name, file: &example.file, name, start }, ended);
        }
        self.close(&found.name, &found.place(), book);
        true
    }
}

/// A test that is running.
struct Test<'a> {
    plugin: &'a str,
    file: &'a str,
    name: String,
    start: Instant,
}

/// How a test ended.
struct Ended {
    diagnostics: Vec<Diagnostic>,
    log: Vec<String>,
    /// `None` where there was no world.
    played: Option<Played>,
}

fn ms(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e6).round() / 1e3
}

fn unreadable(place: &str, e: &crate::base::error::Error) -> Diagnostic {
    Diagnostic::from_error("load", place, e)
}
