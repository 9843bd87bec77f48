//! A program run for a plugin: no shell, a clean environment, a group of processes of its own that ends with the call, and
//! no more output than was asked for. Who may run one is decided elsewhere.

use crate::base::error::{Error, Kind, Result, excerpt, io};
use crate::base::paths;
use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Bytes of each of both outputs that are taken unless told otherwise.
pub const DEFAULT_MAX_BYTES: usize = 1 << 20;
/// Most arguments of a program.
pub const MAX_ARGUMENTS: usize = 1_000;
/// Most bytes of all arguments.
pub const MAX_ARGUMENT_BYTES: usize = 128 << 10;
/// How long output is waited for that a process holds which left the group.
const GRACE: Duration = Duration::from_secs(1);

/// What a program keeps of this process's environment, beside `PATH`.
const KEPT: &[&str] = if cfg!(windows) {
    &[
        "SystemRoot",
        "SystemDrive",
        "windir",
        "ComSpec",
        "PATHEXT",
        "TEMP",
        "TMP",
        "USERNAME",
        "USERPROFILE",
        "APPDATA",
        "LOCALAPPDATA",
        "ProgramData",
        "ProgramFiles",
    ]
} else {
    &["HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LC_ALL", "LC_CTYPE"]
};

/// Whether programs are started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Commands {
    /// Where a plugin may.
    #[default]
    Run,
    /// Not at all: in tests of scripts, which get every permission that they declare.
    Refused,
}

/// What is to be run.
pub struct Order {
    /// A name that is looked for in `PATH`, or an absolute path.
    pub program: String,
    /// Its arguments, each as it is.
    pub arguments: Vec<String>,
    /// What it reads; nothing unless given.
    pub stdin: Vec<u8>,
    /// Variables beside the few of every program.
    pub variables: Vec<(String, String)>,
    /// Those that say how the network is reached.
    pub network: Vec<(&'static str, String)>,
    /// Where it works. It is made where it is not there.
    pub folder: PathBuf,
    /// The root, which it is told of.
    pub root: PathBuf,
    /// How long it may take; without one, until the future is dropped.
    pub timeout: Option<Duration>,
    /// Most bytes of each of its outputs.
    pub max_bytes: usize,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Its exit code; of one that a signal ended, the signal's number below zero.
    pub code: i64,
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error.
    pub stderr: Vec<u8>,
}

/// Runs a program to its end. Dropping the future ends it, with everything that it started and that stayed in its group; so
/// does its end for what it left running.
///
/// # Errors
/// `invalid_arguments` for a name, an argument or a variable that no program can have, `not_found`, `permission_denied` for
/// what the system does not run, `timeout`, `too_large` for more output than `max_bytes`.
pub async fn run(order: Order) -> Result<Done> {
    check(&order)?;
    std::fs::create_dir_all(&order.folder).map_err(|e| io("cannot make the plugin's data folder", &e))?;
    let (program, timeout, max_bytes) = (order.program.clone(), order.timeout, order.max_bytes);
    let running = start(order)?;
    let done = running.done(max_bytes);
    match timeout {
        None => done.await,
        Some(span) => tokio::time::timeout(span, done).await.unwrap_or_else(|_| {
            Err(Error::new(Kind::Timeout, format!("`{}` took longer than {} s", shown(&program), span.as_secs_f64()))
                .hint("raise `timeout`, or let it do less"))
        }),
    }
}

fn check(order: &Order) -> Result<()> {
    let program = &order.program;
    let refuse = |why: &str, hint: &str| Err(Error::invalid(format!("`{}` {why}", shown(program))).hint(hint));
    if program.is_empty() || program.contains('\0') {
        return refuse("is no name of a program", "give a name, as in \"git\"");
    }
    if program.contains(std::path::is_separator) && !Path::new(program).is_absolute() {
        return refuse("is a relative path", "give a name that is in PATH, or an absolute path");
    }
    if program.contains(char::is_whitespace) && !Path::new(program).is_absolute() {
        return refuse("holds a space", "there is no shell: give the arguments as an array, one text each");
    }
    if order.arguments.len() > MAX_ARGUMENTS
        || order.arguments.iter().map(String::len).sum::<usize>() > MAX_ARGUMENT_BYTES
    {
        return Err(Error::new(
            Kind::TooLarge,
            format!("a program takes at most {MAX_ARGUMENTS} arguments and {MAX_ARGUMENT_BYTES} bytes of them"),
        )
        .hint("give more by `stdin`"));
    }
    if order.arguments.iter().any(|argument| argument.contains('\0')) {
        return Err(Error::invalid("an argument holds a zero character, which ends a text for programs"));
    }
    for (name, value) in &order.variables {
        let is_ours =
            crate::net::belt::is_of_belt(name) || name.eq_ignore_ascii_case("PATH") || name.starts_with("LAPIDARY_");
        if is_ours || name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(Error::invalid(format!("the variable `{}` cannot be set for a program", shown(name)))
                .hint("PATH, LAPIDARY_.. and the variables of proxies are the host's"));
        }
    }
    Ok(())
}

fn shown(text: &str) -> String {
    excerpt(text, 80)
}

#[expect(clippy::disallowed_methods, reason = "this is the room that starts programs")]
fn start(order: Order) -> Result<Running> {
    let mut command = Command::new(&order.program);
    command
        .args(&order.arguments)
        .current_dir(&order.folder)
        .env_clear()
        .envs(environment(&order.root))
        .envs(order.variables)
        .envs(order.network)
        .stdin(if order.stdin.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|e| cannot_start(&order.program, &e))?;
    // From here on, whatever fails ends it.
    let group = Group(Arc::new(Members { id: child.id(), gone: Mutex::new(false) }));
    if let Some(mut to) = child.stdin.take() {
        let bytes = order.stdin;
        // A program need not read all of it.
        thread(move || drop(to.write_all(&bytes)))?;
    }
    let stdout = Output::of(child.stdout.take(), order.max_bytes, &group.0)?;
    let stderr = Output::of(child.stderr.take(), order.max_bytes, &group.0)?;
    let (tell, ended) = oneshot::channel();
    let members = group.0.clone();
    thread(move || drop(tell.send(members.wait(child))))?;
    Ok(Running { ended, stdout, stderr, _group: group })
}

fn thread(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let spawned = std::thread::Builder::new().name("lapidary-program".into()).stack_size(256 << 10).spawn(work);
    spawned.map(drop).map_err(|e| Error::internal(format!("cannot start a thread: {e}")))
}

fn cannot_start(program: &str, e: &std::io::Error) -> Error {
    let name = shown(program);
    match e.kind() {
        ErrorKind::NotFound => Error::not_found(format!("there is no program `{name}`"))
            .with_user_action(format!("install `{name}` on the machine of this host"))
            .hint("a name is looked for in the PATH of the host; there is no shell, so its own words are no programs"),
        ErrorKind::PermissionDenied => Error::denied(format!("the system does not run `{name}`"))
            .hint("the file must be executable for the user of this host"),
        _ => io(format_args!("cannot run `{name}`"), e),
    }
}

/// The variables of every program, those of the network aside.
fn environment(root: &Path) -> Vec<(OsString, OsString)> {
    let mut all: Vec<(OsString, OsString)> =
        KEPT.iter().filter_map(|name| Some(((*name).into(), paths::environment(name)?.into()))).collect();
    // The folder that it works in holds what scripts write: `.` in PATH would make programs of that.
    let path = paths::environment("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::env::split_paths(&path).filter(|folder| folder.is_absolute()));
    all.push(("PATH".into(), path.unwrap_or_default()));
    all.push(("LANG".into(), paths::environment("LANG").unwrap_or_else(|| "C.UTF-8".to_owned()).into()));
    all.push(("LAPIDARY_ROOT".into(), root.into()));
    all
}

/// A program under way, which ends when this goes.
struct Running {
    ended: oneshot::Receiver<std::io::Result<ExitStatus>>,
    stdout: Output,
    stderr: Output,
    _group: Group,
}

impl Running {
    async fn done(mut self, max_bytes: usize) -> Result<Done> {
        let lost = || Error::internal("a thread that waits for a program failed");
        let status = (&mut self.ended).await.map_err(|_| lost())?.map_err(|e| io("cannot wait for the program", &e))?;
        // What stayed in the group is gone, and its ends of the pipes with it.
        let both = async { (self.stdout.complete().await, self.stderr.complete().await) };
        let _ = tokio::time::timeout(GRACE, both).await;
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        if stdout.len() > max_bytes || stderr.len() > max_bytes {
            return Err(Error::new(Kind::TooLarge, format!("the program wrote more than {max_bytes} bytes"))
                .hint("raise `max_bytes`, or make it write less"));
        }
        Ok(Done { code: code(status), stdout, stderr })
    }
}

fn code(status: ExitStatus) -> i64 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return -i64::from(signal);
    }
    status.code().map_or(-1, i64::from)
}

/// What a program writes, as far as it was read.
struct Output {
    read: Arc<Mutex<Vec<u8>>>,
    complete: oneshot::Receiver<()>,
}

impl Output {
    /// Reads on a thread of its own; what is more than `max_bytes` ends the program.
    fn of(from: Option<impl Read + Send + 'static>, max_bytes: usize, members: &Arc<Members>) -> Result<Output> {
        let read = Arc::new(Mutex::new(Vec::new()));
        let (tell, complete) = oneshot::channel();
        let (out, members) = (read.clone(), members.clone());
        thread(move || {
            let mut piece = vec![0; 64 << 10];
            let mut from = from;
            while let Some(pipe) = &mut from {
                match pipe.read(&mut piece) {
                    Ok(0) => break,
                    Ok(n) => {
                        let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
                        out.extend_from_slice(&piece[..n]);
                        if out.len() > max_bytes {
                            members.kill();
                            break;
                        }
                    }
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            let _ = tell.send(());
        })?;
        Ok(Output { read, complete })
    }

    async fn complete(&mut self) {
        let _ = (&mut self.complete).await;
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.read.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Ends the program when it goes.
struct Group(Arc<Members>);

impl Drop for Group {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// A program and what it started.
struct Members {
    /// Of the program, and of its group.
    id: u32,
    /// Whether the program was waited for; then its number may be another's.
    gone: Mutex<bool>,
}

impl Members {
    fn kill(&self) {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        if !*gone {
            self.kill_all();
        }
    }

    /// Waits for the program, then ends what it left running, while its number is still its own.
    fn wait(&self, mut child: Child) -> std::io::Result<ExitStatus> {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
            let id = WaitId::Pid(Pid::from_child(&child));
            while let Err(rustix::io::Errno::INTR) = waitid(id.clone(), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            }
            let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
            self.kill_all();
            let status = child.wait();
            *gone = true;
            status
        }
        #[cfg(not(unix))]
        {
            let status = child.wait();
            *self.gone.lock().unwrap_or_else(PoisonError::into_inner) = true;
            status
        }
    }

    #[cfg(unix)]
    fn kill_all(&self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        // One that has ended already is no matter.
        if let Some(id) = i32::try_from(self.id).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }

    #[cfg(not(unix))]
    #[expect(clippy::disallowed_methods, reason = "this is the room that starts programs")]
    fn kill_all(&self) {
        let id = self.id.to_string();
        let _ = Command::new("taskkill")
            .args(["/T", "/F", "/PID", &id])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

#[cfg(all(test, unix))]
mod tests;
