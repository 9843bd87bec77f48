//! What this process has read from the keyring. Values stay here to be taken out of texts for as long as their credential is
//! stored; to be given to a plugin, one must have been read a moment ago. It knows nothing of names or hosts.

use super::keyring::{Item, Keyring, Refusal, Value};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// For so long a value is given without asking the keyring again: what was locked or removed there counts after it.
pub(super) const RECENT: Duration = Duration::from_secs(60);
/// For so long a keyring that did not answer is not asked again: every call would wait for it.
const REST: Duration = Duration::from_secs(30);

/// How old what is known may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// To give it to somebody.
    Recent,
    /// To take it out of texts.
    Any,
}

/// Values by the id of their item.
#[derive(Default)]
pub(super) struct Known {
    values: HashMap<String, Read>,
    slow: Option<Instant>,
}

struct Read {
    value: Option<Value>,
    at: Instant,
}

impl Known {
    /// The value of each item, in their order, as of `now`. What is known well enough is not asked for.
    ///
    /// # Errors
    /// What the keyring says; what was known stays known.
    pub(super) fn get(
        &mut self,
        keyring: &dyn Keyring,
        items: &[Item],
        age: Age,
        now: Instant,
    ) -> Result<Vec<Option<Value>>, Refusal> {
        let stale = |item: &&Item| match self.values.get(&item.id) {
            Some(read) if age == Age::Any && read.value.is_some() => false,
            Some(read) => now.duration_since(read.at) >= RECENT,
            None => true,
        };
        let asked: Vec<Item> = items.iter().filter(stale).cloned().collect();
        let mut gone = HashSet::new();
        if !asked.is_empty() {
            for (item, value) in asked.iter().zip(self.ask(keyring, &asked, now)?) {
                match self.values.get_mut(&item.id) {
                    // It was given before, and may still come back in a text.
                    Some(read) if value.is_none() && read.value.is_some() => {
                        gone.insert(item.id.as_str());
                    }
                    _ => {
                        self.values.insert(item.id.clone(), Read { value, at: now });
                    }
                }
            }
        }
        let known = |item: &Item| {
            let read = self.values.get(&item.id).filter(|_| !gone.contains(item.id.as_str()));
            read.and_then(|read| read.value.clone())
        };
        Ok(items.iter().map(known).collect())
    }

    /// The value of an item that was read before, however long ago.
    pub(super) fn remembered(&self, item: &Item) -> Option<Value> {
        self.values.get(&item.id).and_then(|read| read.value.clone())
    }

    fn ask(&mut self, keyring: &dyn Keyring, items: &[Item], now: Instant) -> Result<Vec<Option<Value>>, Refusal> {
        if self.slow.is_some_and(|since| now.duration_since(since) < REST) {
            return Err(Refusal::Slow);
        }
        let answer = keyring.get(items);
        self.slow = matches!(answer, Err(Refusal::Slow)).then_some(now);
        answer
    }

    /// Forgets, and wipes, what no credential is kept under any more.
    pub(super) fn keep<'a>(&mut self, ids: impl Iterator<Item = &'a str>) {
        if !self.values.is_empty() {
            let ids: HashSet<&str> = ids.collect();
            self.values.retain(|id, _| ids.contains(id.as_str()));
        }
    }
}
