//! What a call says while it runs, collected for the journal. It costs nothing while nothing is said, and has limits.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// Most log lines of one call.
pub const MAX_LINES: usize = 200;
/// Most bytes of the log lines of one call.
pub const MAX_BYTES: usize = 64 << 10;
/// Most words of progress of one call; the newest takes the place of the last.
pub const MAX_STEPS: usize = 100;

/// Collects.
#[derive(Default)]
pub struct Heard(OnceLock<Arc<Mutex<Said>>>);

/// What was collected.
#[derive(Default)]
pub struct Said {
    /// Log lines: when, level, text.
    pub(super) logs: Vec<(Instant, Box<str>, String)>,
    /// Log lines that there was no room for.
    pub(super) left_out: u64,
    /// Progress.
    pub(super) steps: Vec<(Instant, Progress)>,
    bytes: usize,
}

/// One word of progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// A line of status.
    Status(String),
    /// So many steps of so many.
    Steps(i64, i64),
}

impl Heard {
    /// A log line. Values of credentials are out of it already.
    pub fn log(&self, level: &str, text: &str) {
        let mut said = self.said();
        if said.logs.len() >= MAX_LINES || said.bytes + text.len() > MAX_BYTES {
            said.left_out += 1;
            return;
        }
        said.bytes += text.len();
        said.logs.push((Instant::now(), level.into(), text.to_owned()));
    }

    /// A line of status.
    pub fn status(&self, text: &str) {
        self.progress(Progress::Status(text.to_owned()));
    }

    /// `done` of `total` steps.
    pub fn step(&self, done: i64, total: i64) {
        self.progress(Progress::Steps(done, total));
    }

    fn progress(&self, progress: Progress) {
        let mut said = self.said();
        // The last word counts: it says how far the call came.
        if said.steps.len() >= MAX_STEPS {
            said.steps.pop();
        }
        said.steps.push((Instant::now(), progress));
    }

    /// Another one that collects into the same.
    #[must_use]
    pub fn shared(&self) -> Heard {
        let said = self.0.get_or_init(Arc::default).clone();
        Heard(OnceLock::from(said))
    }

    /// What was collected so far, leaving nothing; `None` where nothing was said.
    #[must_use]
    pub fn take(&self) -> Option<Said> {
        let mut said = self.0.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        let is_empty = said.logs.is_empty() && said.steps.is_empty() && said.left_out == 0;
        (!is_empty).then(|| std::mem::take(&mut *said))
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.0.get_or_init(Arc::default).lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Said {
    /// Its bytes, about.
    pub(super) fn weight(&self) -> usize {
        self.bytes + self.steps.len() * 64 + self.logs.len() * 48
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn so_many_lines_and_bytes_are_heard_and_the_rest_is_counted() {
        let heard = Heard::default();
        assert!(heard.take().is_none());
        (0..MAX_LINES + 7).for_each(|n| heard.log("info", &n.to_string()));
        let said = heard.take().unwrap();
        assert_eq!((said.logs.len(), said.left_out), (MAX_LINES, 7));
        assert!(heard.take().is_none(), "it was taken");
        let long = "x".repeat(16_000);
        (0..6).for_each(|_| heard.log("warn", &long));
        let said = heard.take().unwrap();
        assert_eq!((said.logs.len(), said.left_out), (4, 2));
    }

    #[test]
    fn of_much_progress_the_begin_and_the_last_word_stay() {
        let heard = Heard::default();
        heard.status("reading");
        (1..=1000).for_each(|n| heard.step(n, 1000));
        let said = heard.take().unwrap();
        assert_eq!(said.steps.len(), MAX_STEPS);
        assert_eq!(said.steps[0].1, Progress::Status("reading".into()));
        assert_eq!(said.steps[MAX_STEPS - 1].1, Progress::Steps(1000, 1000));
    }

    #[test]
    fn what_is_said_inside_a_transaction_is_heard_with_the_rest() {
        let heard = Heard::default();
        let inside = heard.shared();
        heard.log("info", "before");
        inside.log("info", "inside");
        drop(inside);
        let said = heard.take().unwrap();
        assert_eq!(said.logs.iter().map(|l| l.2.as_str()).collect::<Vec<_>>(), ["before", "inside"]);
    }
}
