//! How long the calls of a tool take of late: whether the next one is worth another thread. A guess, never a promise.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A call of a tool that has taken less on average is quick: handing it to another thread would cost as much as running it.
const QUICK: u64 = Duration::from_micros(300).as_nanos() as u64;
/// The part of the newest call in the average. One that took a second is remembered for some sixty quick ones.
const WEIGHT: u64 = 8;

/// The average of the calls, the newer ones counting more.
#[derive(Debug, Default)]
pub struct Pace(AtomicU64);

impl Pace {
    /// A call took so long.
    pub fn note(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
        let before = self.0.load(Ordering::Relaxed);
        // Of two at once one may be lost: it is an average.
        let now = if before == 0 { took } else { before - before / WEIGHT + took / WEIGHT };
        self.0.store(now.max(1), Ordering::Relaxed);
    }

    /// Whether its calls have been quick. One that was never called has not.
    #[must_use]
    pub fn is_quick(&self) -> bool {
        (1..QUICK).contains(&self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_quick_once_it_was_and_for_long_not_after_it_was_slow() {
        let pace = Pace::default();
        assert!(!pace.is_quick());
        pace.note(Duration::from_micros(20));
        assert!(pace.is_quick());
        pace.note(Duration::from_secs(1));
        assert!(!pace.is_quick());
        let quick = (0..).take_while(|_| {
            pace.note(Duration::from_micros(20));
            !pace.is_quick()
        });
        assert!((40..90).contains(&quick.count()));
    }

    #[test]
    fn a_tool_that_is_never_quick_stays_so() {
        let pace = Pace::default();
        (0..100).for_each(|_| pace.note(Duration::from_millis(1)));
        assert!(!pace.is_quick());
        pace.note(Duration::MAX);
        assert!(!pace.is_quick());
    }
}
