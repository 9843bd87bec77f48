//! The real binary in a folder of its own, as a person or a program runs it.

use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A root and the program.
pub struct Shell {
    pub dir: tempfile::TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// The one JSON value on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Panics with everything unless the exit code is this one.
    #[track_caller]
    pub fn ends(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    #[track_caller]
    pub fn says(self, part: &str) -> Ran {
        assert!(self.out.contains(part), "no {part:?} in {self:#?}");
        self
    }

    #[track_caller]
    pub fn complains(self, part: &str) -> Ran {
        assert!(self.err.contains(part), "no {part:?} in {self:#?}");
        self
    }
}

/// The program, apart from what this machine's environment says.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lapidary"));
    command
        .env_remove("LAPIDARY_ROOT")
        .env_remove("LAPIDARY_LOG")
        .env_remove("LAPIDARY_TOKEN")
        .env("XDG_CONFIG_HOME", "/nowhere/to/be/found")
        // Nobody's own keyring is touched: a test that wants one brings it.
        .env("LAPIDARY_CREDENTIALS_STORE", "file")
        .env_remove("DBUS_SESSION_BUS_ADDRESS")
        .env_remove("RUST_BACKTRACE");
    command
}

impl Shell {
    pub fn new() -> Shell {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("user/tools")).unwrap();
        // An empty folder takes the place of the shipped plugins, so that a test sees its own only.
        std::fs::create_dir_all(dir.path().join("scripts")).unwrap();
        Shell { dir }
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    pub fn write(&self, relative: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let half = path.with_file_name(format!(".{}.tmp", path.file_name().unwrap().to_string_lossy()));
        std::fs::write(&half, content).unwrap();
        std::fs::rename(half, &path).unwrap();
        path
    }

    pub fn read(&self, relative: &str) -> String {
        std::fs::read_to_string(self.path(relative)).unwrap()
    }

    pub fn command<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        let mut command = program();
        command.env("XDG_CONFIG_HOME", self.dir.path().join("config"));
        command.arg("--root").arg(self.dir.path()).args(words).current_dir(self.dir.path());
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, words: &[S]) -> Ran {
        ran(self.command(words), b"")
    }

    pub fn run_with<S: AsRef<OsStr>>(&self, words: &[S], stdin: &[u8]) -> Ran {
        ran(self.command(words), stdin)
    }

    /// `call TOOL --args JSON --json`, as programs call.
    pub fn call(&self, tool: &str, arguments: &str) -> Ran {
        self.run(&["call", tool, "--args", arguments, "--json"])
    }

    /// Starts a run that lasts.
    pub fn start<S: AsRef<OsStr>>(&self, words: &[S]) -> Running {
        let mut child =
            self.command(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (lines, errors) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Running { child, lines, errors }
    }
}

pub fn ran(mut command: Command, stdin: &[u8]) -> Ran {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let bytes = stdin.to_vec();
    // A program that does not read its input must not hold the test.
    std::thread::spawn(move || to.write_all(&bytes));
    let done = child.wait_with_output().unwrap();
    Ran {
        code: done.status.code().unwrap_or(-1),
        out: String::from_utf8(done.stdout).unwrap(),
        err: String::from_utf8(done.stderr).unwrap(),
    }
}

/// A run that lasts.
pub struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    errors: mpsc::Receiver<String>,
}

/// The lines of a stream, as they come.
pub fn lines(from: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (tx, rx) = mpsc::channel();
    // Read to the end, for a full pipe would hold the program.
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = tx.send(line);
        }
    });
    rx
}

#[track_caller]
fn until(lines: &mpsc::Receiver<String>, part: &str) -> Vec<String> {
    let end = Instant::now() + PATIENCE;
    let mut seen = Vec::new();
    while let Ok(line) = lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
        let is_it = line.contains(part);
        seen.push(line);
        if is_it {
            return seen;
        }
    }
    panic!("no {part:?} in {seen:#?}");
}

impl Running {
    /// Reads lines until one holds `part`; gives all of them.
    #[track_caller]
    pub fn until(&self, part: &str) -> Vec<String> {
        until(&self.lines, part)
    }

    /// As [`Running::until`], of the lines meant for people beside the output.
    #[track_caller]
    pub fn complains(&self, part: &str) -> Vec<String> {
        until(&self.errors, part)
    }

    /// Sends a signal by name and gives the exit code.
    pub fn signal(self, name: &str) -> i32 {
        self.send(name);
        self.end()
    }

    /// What Ctrl+C sends.
    pub fn interrupt(&self) {
        self.send("INT");
    }

    fn send(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end and gives the exit code.
    pub fn end(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
