//! `progress::` of a running script as progress notifications: numbers that only grow, and never a wait for the client.

use crate::script::ctx::Sink;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc;

/// Notifications that may wait for the client; further ones are dropped, for the numbers go on growing.
const WAITING: usize = 64;

/// The sink of one call whose client asked for progress.
pub(super) struct Progress {
    token: ProgressToken,
    out: mpsc::Sender<ProgressNotificationParam>,
    scale: Mutex<Scale>,
}

impl Progress {
    /// A sink, and the end that its notifications come out of.
    pub(super) fn new(token: ProgressToken) -> (Progress, mpsc::Receiver<ProgressNotificationParam>) {
        let (out, receiver) = mpsc::channel(WAITING);
        (Progress { token, out, scale: Mutex::default() }, receiver)
    }

    fn send(&self, at: Option<Point>, message: Option<&str>) {
        let Some(at) = at else { return };
        let mut note = ProgressNotificationParam::new(self.token.clone(), at.progress);
        if let Some(total) = at.total {
            note = note.with_total(total);
        }
        if let Some(message) = message {
            note = note.with_message(message);
        }
        let _ = self.out.try_send(note);
    }
}

impl Sink for Progress {
    fn status(&self, text: &str) {
        // The lock is held while the note is queued, so that two threads of one call cannot swap their numbers.
        let mut scale = self.scale.lock().unwrap_or_else(PoisonError::into_inner);
        let at = scale.status();
        self.send(Some(at), Some(text));
    }

    fn step(&self, done: i64, total: i64) {
        let mut scale = self.scale.lock().unwrap_or_else(PoisonError::into_inner);
        let at = scale.step(done, total);
        self.send(at, None);
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    progress: f64,
    total: Option<f64>,
}

/// Turns steps and status lines into numbers that strictly grow: a step is its own number, the status lines after it lie
/// between it and the next.
#[derive(Debug, Default)]
struct Scale {
    last: Option<f64>,
    step: f64,
    lines: u32,
    total: Option<f64>,
}

impl Scale {
    fn status(&mut self) -> Point {
        let lines = f64::from(self.lines);
        self.lines = self.lines.saturating_add(1);
        let progress = self.step + lines / (lines + 1.0);
        self.last = Some(progress);
        // What a client reads must grow, and must not pass its total: after the last step there is no total any more.
        Point { progress, total: self.total.filter(|total| progress <= *total) }
    }

    /// `None` for a step that is not ahead of everything said before.
    fn step(&mut self, done: i64, total: i64) -> Option<Point> {
        #[expect(clippy::cast_precision_loss, reason = "the protocol counts in floats")]
        let (done, total) = (done as f64, (total > 0).then_some(total as f64));
        if self.last.is_some_and(|last| done <= last) {
            return None;
        }
        let total = total.filter(|total| done <= *total);
        *self = Scale { last: Some(done), step: done, lines: 1, total };
        Some(Point { progress: done, total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_exact_and_everything_grows() {
        let mut scale = Scale::default();
        let mut seen = vec![scale.status(), scale.status()];
        seen.extend(scale.step(0, 3));
        for done in 1..=3 {
            seen.extend(scale.step(done, 3));
            seen.extend((0..200).map(|_| scale.status()));
            seen.extend(scale.step(done, 3));
        }
        assert!(seen.windows(2).all(|pair| pair[0].progress < pair[1].progress));
        let whole: Vec<f64> = seen.iter().map(|p| p.progress).filter(|p| p.fract() == 0.0).collect();
        assert_eq!(whole, [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(seen[0].total, None);
        assert!(seen.iter().any(|p| p.progress == 3.0 && p.total == Some(3.0)));
    }

    #[test]
    fn nothing_is_ever_beyond_its_total() {
        let mut scale = Scale::default();
        let mut seen = vec![scale.status()];
        for (done, total) in [(1, 3), (3, 3), (5, 3), (6, 10), (10, 10)] {
            seen.extend(scale.step(done, total));
            seen.push(scale.status());
        }
        assert_eq!(seen.len(), 11);
        assert!(seen.windows(2).all(|pair| pair[0].progress < pair[1].progress), "{seen:?}");
        assert!(seen.iter().all(|p| p.total.is_none_or(|total| p.progress <= total)), "{seen:?}");
        assert_eq!(seen.iter().filter(|p| p.total.is_some()).count(), 6, "{seen:?}");
    }

    #[test]
    fn a_total_of_nothing_is_unknown() {
        assert_eq!(Scale::default().step(5, 0), Some(Point { progress: 5.0, total: None }));
    }
}
