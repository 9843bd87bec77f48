//! The clock of the host. Everything that asks for the time asks here, so that tests can turn the hands.

#![expect(clippy::disallowed_methods, reason = "this is the room that reads the clock")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Wall clock in milliseconds and a monotonic reading; real or set by hand.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<AtomicI64>>);

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Clock(None)
    }

    /// A clock that stands at `unix_ms` until [`Clock::advance`] moves it.
    #[must_use]
    pub fn manual(unix_ms: i64) -> Self {
        Clock(Some(Arc::new(AtomicI64::new(unix_ms))))
    }

    /// Milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn unix_ms(&self) -> i64 {
        match &self.0 {
            Some(hand) => hand.load(Ordering::SeqCst),
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX)),
        }
    }

    /// Moves a manual clock; does nothing to the machine's.
    pub fn advance(&self, ms: i64) {
        if let Some(hand) = &self.0 {
            hand.fetch_add(ms, Ordering::SeqCst);
        }
    }

    /// Whether the hands are turned by a test: waits then return at once and move the clock.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        self.0.is_some()
    }

    /// A monotonic reading for durations; always the machine's.
    #[must_use]
    pub fn instant(&self) -> Instant {
        Instant::now()
    }
}
