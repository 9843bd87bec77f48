//! The calls that run now and that somebody holds a handle of: their ids, so that anybody may ask for them or take one back.
//! It knows no script and decides nothing about who may.

use crate::base::error::{Error, Kind, Result, excerpt};
use crate::script::control::Control;
use crate::script::ctx::Sink;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shortest and longest id that a caller may choose.
const LENGTH: std::ops::RangeInclusive<usize> = 8..=64;

/// Checks an id that a caller chose for a call.
///
/// # Errors
/// `invalid_arguments` saying what an id is made of.
pub fn valid_id(id: &str) -> Result<()> {
    if LENGTH.contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        return Ok(());
    }
    let shown = excerpt(id, 80);
    Err(Error::invalid(format!("`{shown}` is no id of a call"))
        .hint("use 8 to 64 letters, digits, `_` and `-`, or leave it out"))
}

/// Lets another thread cancel a call, also before it has started. A call that has one is listed while it runs.
#[derive(Default)]
pub struct CallHandle {
    id: Option<String>,
    state: Mutex<HandleState>,
    progress: Mutex<Progress>,
}

/// How far a call is, in its own words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Progress {
    /// The newest line of status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Steps that are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<i64>,
    /// Steps in all; nothing where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
}

impl Progress {
    /// Takes in a line of status.
    pub fn status(&mut self, text: &str) {
        self.text = Some(text.to_owned());
    }

    /// Takes in that so many steps are done; a total of nothing is not known.
    pub fn step(&mut self, done: i64, total: i64) {
        (self.done, self.total) = (Some(done), (total > 0).then_some(total));
    }
}

#[derive(Default)]
struct HandleState {
    control: Option<Arc<Control>>,
    cancelled: bool,
}

impl CallHandle {
    /// A handle for a call whose id the caller chose.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no id.
    pub fn named(id: String) -> Result<CallHandle> {
        valid_id(&id)?;
        Ok(CallHandle { id: Some(id), ..CallHandle::default() })
    }

    /// Cancels the call, now or as soon as it starts.
    pub fn cancel(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.cancelled = true;
        if let Some(control) = &state.control {
            control.cancel();
        }
    }

    /// How far the call is, as far as this handle was its sink or was told by it.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.said().clone()
    }

    fn said(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id that the caller chose.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub(super) fn attach(&self, control: &Arc<Control>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.cancelled {
            control.cancel();
        }
        state.control = Some(control.clone());
    }
}

impl Sink for CallHandle {
    fn status(&self, text: &str) {
        self.said().status(text);
    }

    fn step(&self, done: i64, total: i64) {
        self.said().step(done, total);
    }
}

/// A call that runs now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Its id.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// Through which door it came.
    pub door: &'static str,
    /// Who called.
    pub caller: Arc<str>,
    /// When it was taken in, in milliseconds since 1970-01-01 UTC.
    pub started_ms: i64,
    /// How far it is, where it says so.
    pub progress: Option<Progress>,
}

/// All that run, in the order in which they came.
#[derive(Default)]
pub(super) struct Calls(Mutex<Vec<(Running, Arc<CallHandle>)>>);

/// Holds a call's place until it has ended.
pub(super) struct Place<'a> {
    calls: &'a Calls,
    handle: Arc<CallHandle>,
}

impl Calls {
    fn all(&self) -> MutexGuard<'_, Vec<(Running, Arc<CallHandle>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a call in.
    ///
    /// # Errors
    /// `conflict` where a call of that id runs.
    pub(super) fn enter(&self, running: Running, handle: Arc<CallHandle>) -> Result<Place<'_>> {
        let mut all = self.all();
        if all.iter().any(|(other, _)| other.call == running.call) {
            return Err(Error::new(Kind::Conflict, format!("a call `{}` runs already", running.call))
                .hint("choose another id, or leave it out"));
        }
        all.push((running, handle.clone()));
        drop(all);
        Ok(Place { calls: self, handle })
    }

    pub(super) fn list(&self) -> Vec<Running> {
        let told = |handle: &CallHandle| Some(handle.progress()).filter(|progress| *progress != Progress::default());
        self.all().iter().map(|(running, handle)| Running { progress: told(handle), ..running.clone() }).collect()
    }

    pub(super) fn cancel(&self, id: &str) -> bool {
        let found = self.all().iter().find(|(running, _)| running.call == id).map(|(_, handle)| handle.clone());
        found.inspect(|handle| handle.cancel()).is_some()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut all = self.calls.all();
        if let Some(at) = all.iter().position(|(_, handle)| Arc::ptr_eq(handle, &self.handle)) {
            all.remove(at);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn running(call: &str) -> Running {
        Running {
            call: call.to_owned(),
            tool: "t".to_owned(),
            door: "test",
            caller: "me".into(),
            started_ms: 1,
            progress: None,
        }
    }

    #[test]
    fn an_id_runs_once_and_is_free_again_at_the_end() {
        let calls = Calls::default();
        let first = calls.enter(running("one_call"), Arc::default()).unwrap();
        let second = calls.enter(running("two_call"), Arc::default()).unwrap();
        assert_eq!(calls.enter(running("one_call"), Arc::default()).err().map(|e| e.kind()), Some(Kind::Conflict));
        assert_eq!(calls.list(), [running("one_call"), running("two_call")]);
        first.handle.step(3, 12);
        first.handle.status("page 3");
        let progress = Progress { text: Some("page 3".to_owned()), done: Some(3), total: Some(12) };
        assert_eq!((calls.list()[0].progress.clone(), calls.list()[1].progress.clone()), (Some(progress), None));
        assert!(calls.cancel("two_call") && !calls.cancel("three_call"));
        drop(first);
        assert_eq!(calls.list(), [running("two_call")]);
        drop(second);
        assert!(calls.list().is_empty() && !calls.cancel("two_call"));
        assert!(calls.enter(running("one_call"), Arc::default()).is_ok());
    }

    #[test]
    fn an_id_is_short_plain_and_no_path() {
        for good in ["abcdefgh", "0123-4567_x", &"a".repeat(64)] {
            assert!(valid_id(good).is_ok(), "{good}");
        }
        for bad in ["", "short", "a b c d e f", "../../etc", "idéidéidé", "a.b.c.d.e", &"a".repeat(65)] {
            assert_eq!(valid_id(bad).unwrap_err().kind(), Kind::InvalidArguments, "{bad}");
        }
    }
}
