//! The journal of calls: what each was given, what came of it, what it said meanwhile. Whoever hands a call over never waits; one
//! thread takes secrets out, cuts what is too long and writes. What is a secret is decided in `mask`, and by whoever knows values.

mod entry;
mod heard;
mod kept;
mod mask;
mod writer;

pub use entry::{Entry, Failure, Filter, Limits, Listed, LogLine, Page, Piece, Step};
pub use heard::{Heard, Said};

use super::markers::Part;
use super::secret::Redactor;
use crate::base::clock::Clock;
use crate::base::error::{Error, Result, excerpt};
use crate::base::event::Bus;
use crate::store::journal::Wanted;
use crate::store::main::MainDb;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use writer::Writer;

/// Most calls of one page.
pub const MAX_PAGE: usize = 500;
/// How long who reads waits for what was handed over before.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same, where a call waits for who reads.
const SOON: Duration = Duration::from_secs(1);
/// The door of a tool that was called by another one.
const NESTED: &str = "tool";

/// What a call was given, as it came.
#[derive(Debug)]
pub enum Given {
    /// JSON text, or what was taken for it.
    Text(String),
    /// An object.
    Object(Map<String, Value>),
}

/// A call that ended, before anything is taken out of it. It is handed over as it is: what costs time is done elsewhere.
pub struct Ended {
    /// Its id.
    pub id: String,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub at: i64,
    /// The tool.
    pub tool: Tool,
    /// Its plugin; empty for an unknown tool.
    pub plugin: Arc<str>,
    /// The generation that ran; 0 where nothing ran.
    pub generation: u64,
    /// Through which door it came.
    pub door: &'static str,
    /// Who called.
    pub caller: Arc<str>,
    /// In which chat.
    pub chat: Option<Arc<str>>,
    /// What it was given.
    pub arguments: Given,
    /// Whether it succeeded.
    pub ok: bool,
    /// Its failure.
    pub error: Option<Error>,
    /// The model's copy of its result.
    pub text: String,
    /// The person's copy, where it is another.
    pub shown: Option<String>,
    /// What stands beside the text, without bytes.
    pub parts: Vec<Part>,
    /// Bytes of the pictures among the parts, in their order.
    pub picture_bytes: Vec<usize>,
    /// The structured result.
    pub structured: Option<Value>,
    /// What it said while it ran, and when it began by the clock of that.
    pub said: Option<(Said, std::time::Instant)>,
    /// Where the script failed.
    pub diagnostic: Option<Value>,
    /// What of the result was dropped, and why.
    pub warnings: Vec<String>,
    /// Wall clock.
    pub duration: Duration,
    /// Script operations.
    pub operations: u64,
    /// Highest memory, in bytes.
    pub memory: u64,
    /// The values of credentials that it was given or may have asked for.
    pub used: Option<Arc<Redactor>>,
}

/// What was called.
pub enum Tool {
    /// A tool that is there.
    Known(Arc<dyn Described>),
    /// A name that no tool has.
    Unknown(String),
}

impl Tool {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Tool::Known(tool) => tool.name(),
            Tool::Unknown(name) => name,
        }
    }

    /// The JSON Schema of what it takes; null for an unknown one.
    #[must_use]
    pub fn schema(&self) -> &Value {
        match self {
            Tool::Known(tool) => tool.schema(),
            Tool::Unknown(_) => &Value::Null,
        }
    }
}

/// A tool, as the journal asks for it: whoever hands a call over has it and makes no copy.
pub trait Described: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;
    /// The JSON Schema of an object.
    fn schema(&self) -> &Value;
}

/// Knows all secrets of this installation. Asked on the journal's own thread, once for each batch.
pub type Known = Box<dyn Fn() -> Redactor + Send + Sync>;

/// What a journal is made of.
pub struct Setup {
    /// Where the rows are.
    pub store: Arc<MainDb>,
    /// The clock that ages are measured by.
    pub clock: Clock,
    /// Hears of calls that could not be kept.
    pub bus: Bus,
    /// How much is kept.
    pub limits: Limits,
    /// The secrets that no row may hold.
    pub known: Known,
}

/// The journal. Nothing is opened and nothing started before there is something to do. Only [`Journal::record`] never waits; what
/// reads or deletes waits for the disk, and is nothing for a thread that serves others meanwhile.
pub struct Journal {
    store: Arc<MainDb>,
    clock: Clock,
    limits: Limits,
    writer: Writer,
}

impl Journal {
    /// A journal.
    #[must_use]
    pub fn new(setup: Setup) -> Journal {
        let (store, clock, limits) = (setup.store.clone(), setup.clock.clone(), setup.limits);
        Journal { store, clock, limits, writer: Writer::new(setup) }
    }

    /// Keeps a call. It returns at once: where too much waits already, or the journal is closed, the call is counted and not kept.
    pub fn record(&self, ended: Box<Ended>) {
        self.writer.push(ended);
    }

    /// The clock that its times come from.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How much it keeps.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Calls, newest first; those that this process has ended are among them.
    ///
    /// # Errors
    /// What the file system says.
    pub fn list(&self, filter: &Filter) -> Result<Page> {
        self.writer.flush(PATIENCE);
        self.forget_old()?;
        let limit = filter.limit.clamp(1, MAX_PAGE);
        let wanted = Wanted {
            tool: filter.tool.as_deref(),
            plugin: filter.plugin.as_deref(),
            door: filter.door.as_deref(),
            but_door: None,
            failed: filter.failed,
            before: filter.before.as_deref(),
            since: self.since(),
            limit: limit + 1,
        };
        let mut lines = self.store.calls(&wanted)?;
        let has_more = lines.len() > limit;
        lines.truncate(limit);
        let next = lines.last().filter(|_| has_more).map(|line| line.id.clone());
        let dropped = self.store.dropped_calls()? + self.writer.lost();
        Ok(Page { calls: lines.into_iter().map(Listed::of).collect(), next, dropped })
    }

    /// Whether a call of this id is kept. It waits for the disk, but not long: a call waits for the answer.
    ///
    /// # Errors
    /// What the file system says.
    pub fn holds(&self, id: &str) -> Result<bool> {
        self.writer.flush(SOON);
        Ok(self.store.call(id)?.is_some())
    }

    /// Everything that is known of a call.
    ///
    /// # Errors
    /// `not_found` for an id that is not there any more, or never was.
    pub fn get(&self, id: &str) -> Result<Entry> {
        self.writer.flush(PATIENCE);
        let row = self.store.call(id)?.filter(|row| row.line.at >= self.since());
        row.map(Entry::of).ok_or_else(|| {
            let shown = excerpt(id, 80);
            Error::not_found(format!("the journal has no call `{shown}`"))
                .hint("lapidary journal lists the calls that are kept")
        })
    }

    /// The call that a word means: its id, the name of a tool for its newest one, `last` for the newest of all. Calls that tools
    /// made are found by their ids only.
    ///
    /// # Errors
    /// `not_found` where there is none.
    pub fn find(&self, word: &str) -> Result<Entry> {
        match self.get(word) {
            Err(e) if e.kind() == crate::base::error::Kind::NotFound => {}
            found => return found,
        }
        let tool = Some(word).filter(|word| *word != "last");
        match self.newest(tool)? {
            Some(entry) => Ok(entry),
            None if tool.is_none() => {
                Err(Error::not_found("the journal is empty").hint("call a tool first: lapidary call TOOL"))
            }
            None => self.get(word),
        }
    }

    /// The newest call, or that of a tool, leaving out what tools called; `None` where there is none.
    ///
    /// # Errors
    /// What the file system says.
    pub fn newest(&self, tool: Option<&str>) -> Result<Option<Entry>> {
        self.writer.flush(PATIENCE);
        let wanted = Wanted { tool, but_door: Some(NESTED), since: self.since(), limit: 1, ..Wanted::default() };
        match self.store.calls(&wanted)?.first() {
            Some(line) => self.get(&line.id).map(Some),
            None => Ok(None),
        }
    }

    /// Deletes everything and gives how many calls there were. What other processes hand over at this moment may stay.
    ///
    /// # Errors
    /// What the file system says.
    pub fn clear(&self) -> Result<u64> {
        self.writer.flush(PATIENCE);
        let gone = self.store.clear_calls()?;
        self.writer.forget_lost();
        Ok(gone)
    }

    /// Waits until what was handed over is written, at most `most`; whether it is.
    pub fn flush(&self, most: Duration) -> bool {
        self.writer.flush(most)
    }

    /// Writes what was handed over and ends. What comes later is not kept.
    pub fn close(&self) {
        self.writer.close();
    }

    /// A journal that nothing is written to still forgets what is too old.
    fn forget_old(&self) -> Result<()> {
        let room = self.limits.room(&self.clock);
        if self.store.has_calls_before(room.since)? {
            self.store.add_calls(&[], 0, &room)?;
        }
        Ok(())
    }

    fn since(&self) -> i64 {
        self.limits.room(&self.clock).since
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.writer.close();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
