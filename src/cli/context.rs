//! What every command shares: where the root is, how the host is opened, how a command may end.

use super::resident;
use crate::app::{Host, HostBuilder, Watching};
use crate::base::error::{Error, Kind};
use crate::base::file::{self, Held};
use crate::base::paths::Paths;
use crate::plugin::status::Status;
use std::path::PathBuf;

/// The options that stand before and after every command.
pub struct Context {
    /// `--root`.
    pub root: Option<PathBuf>,
    /// `--json`.
    pub json: bool,
}

/// How a command ended that could do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Exit code 0.
    Good,
    /// Exit code 1: the thing asked about failed, and the command has said so.
    Bad,
}

impl Verdict {
    /// Good when it held.
    #[must_use]
    pub fn of(held: bool) -> Verdict {
        if held { Verdict::Good } else { Verdict::Bad }
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Stop {
    /// Exit code 1.
    Failed(Error),
    /// Exit code 2: the words make no sense.
    Usage(Error),
    /// Exit code 3: no host.
    NoHost(Error),
}

/// What a command gives back.
pub type Done = Result<Verdict, Stop>;

impl Stop {
    /// Wrong usage, with what to do instead.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Stop {
        Stop::Usage(Error::invalid(message).hint(hint))
    }

    /// An option that later versions have.
    pub fn not_yet(option: &str) -> Stop {
        Stop::Usage(
            Error::new(Kind::Disabled, format!("{option} is not built yet"))
                .hint("leave it out; see --help for what there is"),
        )
    }

    /// The error alone.
    #[must_use]
    pub fn into_error(self) -> Error {
        match self {
            Stop::Failed(e) | Stop::Usage(e) | Stop::NoHost(e) => e,
        }
    }

    /// The error and the exit code.
    #[must_use]
    pub fn parts(&self) -> (&Error, u8) {
        match self {
            Stop::Failed(e) => (e, 1),
            Stop::Usage(e) => (e, 2),
            Stop::NoHost(e) => (e, 3),
        }
    }
}

impl From<Error> for Stop {
    fn from(e: Error) -> Self {
        Stop::Failed(e)
    }
}

impl Context {
    /// Where everything lives.
    ///
    /// # Errors
    /// [`Stop::NoHost`] when there is no root to be found.
    pub fn paths(&self) -> Result<Paths, Stop> {
        Paths::find(self.root.clone()).map_err(Stop::NoHost)
    }

    /// As [`Context::paths`], for a command that makes no workshop: a root that was named has to be one.
    ///
    /// # Errors
    /// [`Stop::NoHost`] when there is no root to be found, or the named one is no workshop.
    pub fn workshop(&self) -> Result<Paths, Stop> {
        Paths::find_existing(self.root.clone()).map_err(Stop::NoHost)
    }

    /// A builder for this root.
    #[must_use]
    pub fn builder(&self) -> HostBuilder {
        match &self.root {
            Some(root) => Host::builder().root(root),
            None => Host::builder(),
        }
    }

    /// A host for one command: it follows no files, keeps no history, and ends only the plugins that it called.
    ///
    /// # Errors
    /// [`Stop::NoHost`].
    pub fn host(&self) -> Result<Host, Stop> {
        self.workshop()?;
        self.builder().watching(Watching::Off).brief().start().map_err(Stop::NoHost)
    }

    /// As [`Context::host`], and what loads is kept: the last good version answers where the next edit breaks a tool.
    ///
    /// # Errors
    /// [`Stop::NoHost`].
    pub fn calling_host(&self) -> Result<Host, Stop> {
        self.workshop()?;
        self.builder().watching(Watching::Off).brief().keep_history().keep_journal().start().map_err(Stop::NoHost)
    }

    /// A host that stays: it follows files, keeps the history, and can be seen by other commands.
    ///
    /// # Errors
    /// [`Stop::NoHost`].
    pub fn lasting_host(&self) -> Result<Lasting, Stop> {
        Lasting::start(self.builder())
    }
}

/// A host that stays, with its mark.
pub struct Lasting {
    /// The host.
    pub host: Host,
    /// A root that cannot be written has none.
    _mark: Option<Held>,
}

impl Lasting {
    /// Starts the host that `builder` describes, as one that stays.
    ///
    /// # Errors
    /// [`Stop::NoHost`].
    pub fn start(builder: HostBuilder) -> Result<Lasting, Stop> {
        let host = builder.watching(Watching::On).keep_history().keep_journal().start().map_err(Stop::NoHost)?;
        let mark = file::hold(&host.paths().host_mark()).ok();
        resident::let_go_of_start();
        Ok(Lasting { host, _mark: mark })
    }
}

/// The status of a plugin, or the error with names that are close.
///
/// # Errors
/// `not_found`.
pub fn known(host: &Host, plugin: &str) -> Result<Status, Error> {
    host.plugins().status(plugin).ok_or_else(|| host.plugins().unknown(plugin))
}
