//! When sessions and tokens were last used: known to this process at once, written to their file once an hour. It knows no file.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How exactly the file knows the last use, in milliseconds: what is in use is written this often.
pub(super) const TOUCH_MS: i64 = 3_600_000;
/// A use that nothing followed for this long is in the file, or of no use any more: 30 days.
const KEPT_MS: i64 = 30 * 24 * TOUCH_MS;

/// The uses that this process saw, in milliseconds since 1970, by what was used.
pub(super) struct Uses<K>(Mutex<HashMap<K, i64>>);

impl<K> Default for Uses<K> {
    fn default() -> Self {
        Uses(Mutex::default())
    }
}

impl<K: Hash + Eq> Uses<K> {
    /// When `key` was last used, as far as this process saw.
    pub(super) fn last(&self, key: &K) -> Option<i64> {
        self.lock().get(key).copied()
    }

    /// Notes that `key`, whose file says `written`, is used now; tells whether that should be written.
    pub(super) fn note(&self, key: K, written: Option<i64>, now: i64) -> bool {
        let is_recent = |at: i64| now - at < TOUCH_MS;
        if written.is_some_and(is_recent) {
            return false;
        }
        let mut uses = self.lock();
        // Of many requests at once one writes.
        if uses.get(&key).copied().is_some_and(is_recent) {
            return false;
        }
        uses.retain(|_, at| now - *at < KEPT_MS);
        uses.insert(key, now);
        true
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_written_once_an_hour_whatever_the_file_says_meanwhile() {
        let uses = Uses::default();
        // What is used, what its file says, when; whether that is written.
        let rows = [
            ("a", None, 0, true),
            ("a", None, 1, false),
            ("a", None, TOUCH_MS - 1, false),
            ("a", None, TOUCH_MS, true),
            ("b", Some(TOUCH_MS), TOUCH_MS + 1, false),
            ("b", Some(TOUCH_MS), 2 * TOUCH_MS, true),
            ("a", Some(TOUCH_MS), 2 * TOUCH_MS, true),
            // The clock was set back: the file knows a later use already.
            ("a", Some(TOUCH_MS), 0, false),
        ];
        for (n, (key, written, now, expected)) in rows.into_iter().enumerate() {
            assert_eq!(uses.note(key, written, now), expected, "row {n}");
        }
        assert_eq!((uses.last(&"a"), uses.last(&"b"), uses.last(&"c")), (Some(2 * TOUCH_MS), Some(2 * TOUCH_MS), None));
        assert!(uses.note("c", None, KEPT_MS + 3 * TOUCH_MS));
        assert_eq!(uses.last(&"a"), None, "old ones do not pile up");
    }
}
