//! The hook that every call ends in: counters and an event without content, and the journal, which holds content and is kept by a
//! thread of its own. A call that is private goes no further than the counters.

use super::dispatch::{Arguments, Outcome};
use super::spec::Spec;
use super::who::Who;
use crate::base::event::{Bus, Event};
use crate::script::ctx::Ctx;
use crate::service::journal::{self, Described, Ended, Given, Tool};
use crate::service::markers::Part;
use crate::service::picture::View;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// One call that ended.
pub struct CallRecord<'a> {
    /// How it ended.
    pub outcome: &'a Outcome,
    /// What it was given. Content: never for a log or an event.
    pub arguments: Arguments,
    /// Who called, and from where.
    pub who: &'a Who,
    /// What was called.
    pub what: Called,
    /// When it began.
    pub start: Instant,
    /// The tool, where there is one of that name.
    pub spec: Option<Arc<Spec>>,
    /// The context that it ran in, where it ran.
    pub ctx: Option<Arc<Ctx>>,
}

/// What a call called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Called {
    /// A tool, or a name that no tool has.
    Tool,
    /// The handler of a route, for a request that was not made by a model.
    Route,
}

/// Told of every call, on the thread that ran it: quick, and without waiting.
pub trait Journal: Send + Sync {
    /// A call ended.
    fn record(&self, record: CallRecord);

    /// Whether it keeps what it is given, and not only counts it.
    fn keeps(&self) -> bool {
        false
    }
}

/// The counters, and the journal that keeps what came of a call.
pub struct Kept {
    counters: Arc<Counters>,
    journal: Arc<journal::Journal>,
}

impl Kept {
    /// Counts with `counters` and keeps in `journal`.
    #[must_use]
    pub fn new(counters: Arc<Counters>, journal: Arc<journal::Journal>) -> Kept {
        Kept { counters, journal }
    }
}

impl Journal for Kept {
    fn keeps(&self) -> bool {
        true
    }

    fn record(&self, record: CallRecord) {
        self.counters.count(&record);
        // Of a private chat nothing is kept that could be read without its key. A route answers a page, not a model: every picture
        // that a page shows would be a call.
        if record.who.private || record.what == Called::Route {
            return;
        }
        self.journal.record(ended(record, &self.journal));
    }
}

/// The record as it is handed over: without the bytes of pictures, and without what is too long to be kept anyway.
fn ended(record: CallRecord, journal: &journal::Journal) -> Box<Ended> {
    let CallRecord { outcome, arguments, who, start, spec, ctx, .. } = record;
    let clock = journal.clock();
    let took = if clock.is_manual() { 0 } else { i64::try_from(outcome.duration.as_millis()).unwrap_or(0) };
    let picture_bytes = |part: &Part| match part {
        Part::Image(image) => Some(image.data.len()),
        Part::Gallery(_) | Part::Files(_) => None,
    };
    let without_bytes = |part: &Part| match part {
        Part::Image(image) => {
            let mut bare = image.without_data();
            if let View::Unseen(why) = &image.view {
                bare.view = View::Unseen(why.clone());
            }
            Part::Image(bare)
        }
        Part::Gallery(_) | Part::Files(_) => part.clone(),
    };
    // Boxed: it is moved into the queue under a lock.
    Box::new(Ended {
        id: outcome.call.clone(),
        at: clock.unix_ms() - took,
        tool: match spec {
            Some(spec) => Tool::Known(spec),
            None => Tool::Unknown(outcome.tool.clone()),
        },
        plugin: outcome.plugin.clone(),
        generation: outcome.generation,
        door: who.door,
        caller: who.caller.clone(),
        chat: who.chat.clone(),
        arguments: match arguments {
            Arguments::Text(text) => Given::Text(text),
            Arguments::Object(map) => Given::Object(map),
        },
        ok: outcome.ok,
        error: outcome.error.clone(),
        text: outcome.text.clone(),
        shown: outcome.shown.clone(),
        parts: outcome.parts.iter().map(without_bytes).collect(),
        picture_bytes: outcome.parts.iter().filter_map(picture_bytes).collect(),
        structured: outcome.structured.clone(),
        said: ctx.as_ref().and_then(|ctx| ctx.heard.take()).map(|said| (said, start)),
        diagnostic: outcome.diagnostic.as_ref().and_then(|d| serde_json::to_value(d).ok()),
        warnings: outcome.warnings.clone(),
        duration: outcome.duration,
        operations: outcome.operations,
        memory: outcome.memory,
        used: ctx.as_ref().and_then(|ctx| ctx.redactor()),
    })
}

impl Described for Spec {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &serde_json::Value {
        &self.parameters
    }
}

/// Counts calls and tells the bus.
pub struct Counters {
    bus: Bus,
    calls: AtomicU64,
    failures: AtomicU64,
    micros: AtomicU64,
    by_code: Mutex<BTreeMap<&'static str, u64>>,
}

/// What [`Counters`] has counted since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// Calls.
    pub calls: u64,
    /// Calls that failed.
    pub failures: u64,
    /// Wall clock of all calls, in microseconds.
    pub micros: u64,
    /// Failures by code.
    pub by_code: BTreeMap<&'static str, u64>,
}

impl Counters {
    /// Counters at zero that tell this bus.
    #[must_use]
    pub fn new(bus: Bus) -> Self {
        Counters {
            bus,
            calls: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            micros: AtomicU64::new(0),
            by_code: Mutex::default(),
        }
    }

    /// The present counts.
    #[must_use]
    pub fn counted(&self) -> Counted {
        Counted {
            calls: self.calls.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            micros: self.micros.load(Ordering::Relaxed),
            by_code: self.by_code.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

impl Journal for Counters {
    fn record(&self, record: CallRecord) {
        self.count(&record);
    }
}

impl Counters {
    /// Counts a call and tells the bus.
    pub fn count(&self, record: &CallRecord) {
        let outcome = record.outcome;
        let micros = u64::try_from(outcome.duration.as_micros()).unwrap_or(u64::MAX);
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        let code = outcome.error.as_ref().map(|e| e.code());
        if let Some(code) = code {
            self.failures.fetch_add(1, Ordering::Relaxed);
            *self.by_code.lock().unwrap_or_else(PoisonError::into_inner).entry(code).or_insert(0) += 1;
        }
        // Nothing of a private chat leaves its call, not even that it happened.
        if self.bus.has_listeners() && !record.who.private {
            self.bus.publish(Event::CallEnded {
                call: outcome.call.clone(),
                tool: outcome.tool.clone(),
                generation: outcome.generation,
                ok: outcome.ok,
                code,
                duration_us: micros,
            });
        }
    }
}
