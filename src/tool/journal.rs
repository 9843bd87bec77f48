//! The hook that every call ends in. Here: counters and an event without content; a store may join.

use super::dispatch::{Arguments, Outcome};
use crate::base::event::{Bus, Event};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// One call that ended.
pub struct CallRecord<'a> {
    /// How it ended.
    pub outcome: &'a Outcome,
    /// What it was given. Content: never for a log or an event.
    pub arguments: &'a Arguments,
    /// Who called.
    pub caller: &'a str,
    /// Through which door.
    pub door: &'static str,
    /// In which chat.
    pub chat: Option<&'a str>,
    /// Whether that chat is private.
    pub private: bool,
}

/// Told of every call, on the thread that ran it: quick, and without waiting.
pub trait Journal: Send + Sync {
    /// A call ended.
    fn record(&self, record: &CallRecord);
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
    fn record(&self, record: &CallRecord) {
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
        if self.bus.has_listeners() && !record.private {
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
