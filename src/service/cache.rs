//! `cache::` of plugins: values in memory with a time to live, parted by plugin and optional scope.
//! Nothing here is durable, and no lock is held while somebody computes a value.

use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result};
use crate::base::json;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

/// A plugin may keep this many values.
pub const MAX_ENTRIES: usize = 10_000;
/// The values of a plugin, as JSON with their keys, may have this many bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// One value may have this many bytes as JSON.
pub const MAX_VALUE_BYTES: usize = 8 << 20;
/// No value is kept longer than this.
pub const MAX_TTL_S: f64 = 10.0 * 365.0 * 24.0 * 3600.0;

/// How often a waiter asks whether it still wants to wait.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// Where a value is: the plugin, a scope's value or none, and the script's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// The plugin it belongs to.
    pub plugin: &'a str,
    /// Values under different scopes never meet.
    pub scope: Option<&'a str>,
    /// The script's own key.
    pub key: &'a str,
}

/// The caches of all plugins.
pub struct Cache {
    clock: Clock,
    inner: Mutex<Inner>,
}

type Key = (Option<Arc<str>>, Arc<str>);

#[derive(Default)]
struct Inner {
    shelves: HashMap<Arc<str>, Shelf>,
    /// Values being computed now. One that was invalidated is no longer here, so that its outcome is not kept.
    flights: HashMap<(Arc<str>, Key), Arc<Flight>>,
}

#[derive(Default)]
struct Shelf {
    entries: HashMap<Key, Entry>,
    /// Oldest first.
    order: BTreeMap<u64, Key>,
    /// Soonest to expire first.
    expiry: BTreeSet<(i64, u64)>,
    bytes: usize,
    next: u64,
}

struct Entry {
    value: Arc<Value>,
    expires_ms: i64,
    number: u64,
    bytes: usize,
}

struct Flight {
    pilot: ThreadId,
    landed: Mutex<Option<Option<Arc<Value>>>>,
    wake: Condvar,
}

impl Cache {
    /// An empty cache that asks `clock` what has expired.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Cache { clock, inner: Mutex::default() }
    }

    /// The value, unless there is none or its time is over.
    #[must_use]
    pub fn get(&self, place: Place<'_>) -> Option<Arc<Value>> {
        self.inner().value(place, self.clock.unix_ms())
    }

    /// Keeps a value for `ttl_s` seconds. Where the plugin's limits are passed, expired and then the oldest values go.
    ///
    /// # Errors
    /// `invalid_arguments` for a time that is not above 0, `too_large` over [`MAX_VALUE_BYTES`].
    pub fn put(&self, place: Place<'_>, value: Value, ttl_s: f64) -> Result<()> {
        let ttl_ms = milliseconds(ttl_s)?;
        let bytes = weight(place, &value)?;
        self.inner().keep(place, Arc::new(value), bytes, self.clock.unix_ms(), ttl_ms);
        Ok(())
    }

    /// The value, computed where there is none. One caller computes; others who ask meanwhile wait and get the same value.
    /// A failure is its caller's own: it is not kept, and the next waiter computes. `go_on` is asked about every 20 ms while
    /// waiting, and ends it with an error: the caller's deadline or cancellation. A value whose key is invalidated while it is
    /// computed goes to those who asked before, and is not kept.
    ///
    /// # Errors
    /// Those of `compute` and `go_on`; those of [`Cache::put`]; `conflict` where `compute` asks for the value it computes.
    pub fn get_or<E: From<Error>>(
        &self,
        place: Place<'_>,
        ttl_s: f64,
        go_on: &dyn Fn() -> Result<(), E>,
        compute: impl FnOnce() -> Result<Value, E>,
    ) -> Result<Arc<Value>, E> {
        let ttl_ms = milliseconds(ttl_s)?;
        loop {
            let flight = {
                let mut inner = self.inner();
                if let Some(value) = inner.value(place, self.clock.unix_ms()) {
                    return Ok(value);
                }
                let id = place.flight();
                match inner.flights.get(&id) {
                    Some(flight) => Arc::clone(flight),
                    None => {
                        let flight = Arc::new(Flight {
                            pilot: std::thread::current().id(),
                            landed: Mutex::default(),
                            wake: Condvar::new(),
                        });
                        inner.flights.insert(id, Arc::clone(&flight));
                        drop(inner);
                        return self.fly(place, ttl_ms, &flight, compute);
                    }
                }
            };
            if flight.pilot == std::thread::current().id() {
                return Err(Error::new(
                    Kind::Conflict,
                    format!("the value of `{}` is computed from itself", place.key),
                )
                .hint("do not call cache::get_or for a key inside the function that computes it")
                .into());
            }
            if let Some(value) = flight.wait(go_on)? {
                return Ok(value);
            }
        }
    }

    /// Drops a value. One that is not there is fine.
    pub fn invalidate(&self, place: Place<'_>) {
        let mut inner = self.inner();
        inner.flights.remove(&place.flight());
        if let Some(shelf) = inner.shelves.get_mut(place.plugin) {
            shelf.remove(&place.entry());
        }
    }

    /// Drops everything of a plugin, also what is being computed.
    pub fn drop_plugin(&self, plugin: &str) {
        let mut inner = self.inner();
        inner.shelves.remove(plugin);
        inner.flights.retain(|(owner, _), _| &**owner != plugin);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fly<E: From<Error>>(
        &self,
        place: Place<'_>,
        ttl_ms: i64,
        flight: &Arc<Flight>,
        compute: impl FnOnce() -> Result<Value, E>,
    ) -> Result<Arc<Value>, E> {
        /// Lands in any case, also when `compute` panics: nobody may wait for ever.
        struct Landing<'a>(&'a Cache, Place<'a>, &'a Arc<Flight>, Option<Arc<Value>>);
        impl Drop for Landing<'_> {
            fn drop(&mut self) {
                let mut inner = self.0.inner();
                let id = self.1.flight();
                if inner.flights.get(&id).is_some_and(|present| Arc::ptr_eq(present, self.2)) {
                    inner.flights.remove(&id);
                }
                drop(inner);
                *self.2.landed.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.3.take());
                self.2.wake.notify_all();
            }
        }
        let mut landing = Landing(self, place, flight, None);
        let value = compute()?;
        let bytes = weight(place, &value)?;
        let value = Arc::new(value);
        landing.3 = Some(Arc::clone(&value));
        let mut inner = self.inner();
        if inner.flights.get(&place.flight()).is_some_and(|present| Arc::ptr_eq(present, flight)) {
            inner.keep(place, Arc::clone(&value), bytes, self.clock.unix_ms(), ttl_ms);
        }
        drop(inner);
        Ok(value)
    }
}

impl Flight {
    /// The value, or `None` where the computation failed.
    fn wait<E>(&self, go_on: &dyn Fn() -> Result<(), E>) -> Result<Option<Arc<Value>>, E> {
        let mut landed = self.landed.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(outcome) = &*landed {
                return Ok(outcome.clone());
            }
            landed = self.wake.wait_timeout(landed, ASK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
            if landed.is_none() {
                go_on()?;
            }
        }
    }
}

impl Inner {
    fn value(&mut self, place: Place<'_>, now: i64) -> Option<Arc<Value>> {
        let shelf = self.shelves.get_mut(place.plugin)?;
        let key = place.entry();
        let entry = shelf.entries.get(&key)?;
        if entry.expires_ms <= now {
            shelf.remove(&key);
            return None;
        }
        Some(Arc::clone(&entry.value))
    }

    fn keep(&mut self, place: Place<'_>, value: Arc<Value>, bytes: usize, now: i64, ttl_ms: i64) {
        let shelf = self.shelves.entry(place.plugin.into()).or_default();
        let key = place.entry();
        shelf.remove(&key);
        let (number, expires_ms) = (shelf.next, now.saturating_add(ttl_ms));
        shelf.next += 1;
        shelf.bytes += bytes;
        shelf.order.insert(number, key.clone());
        shelf.expiry.insert((expires_ms, number));
        shelf.entries.insert(key, Entry { value, expires_ms, number, bytes });
        while shelf.entries.len() > MAX_ENTRIES || shelf.bytes > MAX_BYTES {
            let expired = shelf.expiry.first().filter(|(at, _)| *at <= now).map(|(_, number)| *number);
            let Some(number) = expired.or_else(|| shelf.order.keys().next().copied()) else { break };
            let Some(key) = shelf.order.get(&number).cloned() else { break };
            shelf.remove(&key);
        }
    }
}

impl Shelf {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.number);
            self.expiry.remove(&(entry.expires_ms, entry.number));
            self.bytes -= entry.bytes;
        }
    }
}

impl Place<'_> {
    fn entry(&self) -> Key {
        (self.scope.map(Into::into), self.key.into())
    }

    fn flight(&self) -> (Arc<str>, Key) {
        (self.plugin.into(), self.entry())
    }
}

fn weight(place: Place<'_>, value: &Value) -> Result<usize> {
    let bytes = json::encoded_len(value);
    if bytes > MAX_VALUE_BYTES {
        return Err(Error::new(
            Kind::TooLarge,
            format!("the value of `{}` has {bytes} bytes as JSON; at most {MAX_VALUE_BYTES} are cached", place.key),
        ));
    }
    Ok(bytes + place.key.len() + place.scope.map_or(0, str::len))
}

fn milliseconds(ttl_s: f64) -> Result<i64> {
    if ttl_s.is_nan() || ttl_s <= 0.0 {
        return Err(
            Error::invalid(format!("a value cannot be kept for {ttl_s} s")).hint("give a number of seconds above 0")
        );
    }
    // At most 3e11, which an i64 holds.
    Ok((ttl_s.min(MAX_TTL_S) * 1000.0).ceil() as i64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    fn at<'a>(plugin: &'a str, key: &'a str) -> Place<'a> {
        Place { plugin, scope: None, key }
    }

    fn cache() -> (Cache, Clock) {
        let clock = Clock::manual(1_000_000);
        (Cache::new(clock.clone()), clock)
    }

    fn patient() -> Result<()> {
        Ok(())
    }

    fn get_or(cache: &Cache, place: Place<'_>, compute: impl FnOnce() -> Result<Value>) -> Result<Arc<Value>> {
        cache.get_or(place, 60.0, &patient, compute)
    }

    #[test]
    fn a_value_lives_as_long_as_it_was_told() {
        let (cache, clock) = cache();
        cache.put(at("p", "k"), json!([1]), 2.5).unwrap();
        assert_eq!(cache.get(at("p", "k")).as_deref(), Some(&json!([1])));
        clock.advance(2499);
        assert!(cache.get(at("p", "k")).is_some());
        clock.advance(1);
        assert!(cache.get(at("p", "k")).is_none());
        cache.put(at("p", "k"), json!(2), 1.0).unwrap();
        cache.put(at("p", "k"), json!(3), 100.0).unwrap();
        clock.advance(50_000);
        assert_eq!(cache.get(at("p", "k")).as_deref(), Some(&json!(3)));
    }

    #[test]
    fn plugins_and_scopes_never_see_each_others_values() {
        let (cache, _) = cache();
        let scoped = |scope| Place { plugin: "p", scope, key: "k" };
        cache.put(scoped(None), json!("none"), 9.0).unwrap();
        cache.put(scoped(Some("a")), json!("a"), 9.0).unwrap();
        assert_eq!(cache.get(scoped(None)).as_deref(), Some(&json!("none")));
        assert_eq!(cache.get(scoped(Some("a"))).as_deref(), Some(&json!("a")));
        assert!(cache.get(scoped(Some("b"))).is_none() && cache.get(at("q", "k")).is_none());
        cache.invalidate(scoped(Some("a")));
        assert!(cache.get(scoped(Some("a"))).is_none() && cache.get(scoped(None)).is_some());
        cache.drop_plugin("p");
        assert!(cache.get(scoped(None)).is_none());
    }

    #[test]
    fn bad_times_and_big_values_are_refused() {
        let (cache, clock) = cache();
        for ttl in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(cache.put(at("p", "k"), json!(1), ttl).unwrap_err().kind(), Kind::InvalidArguments, "{ttl}");
        }
        for ttl in [f64::INFINITY, f64::MAX, 0.0001] {
            cache.put(at("p", "k"), json!(1), ttl).unwrap();
            assert!(cache.get(at("p", "k")).is_some(), "{ttl}");
        }
        clock.advance(1);
        assert!(cache.get(at("p", "k")).is_none());
        let big = json!("x".repeat(MAX_VALUE_BYTES));
        assert_eq!(cache.put(at("p", "k"), big.clone(), 1.0).unwrap_err().kind(), Kind::TooLarge);
        assert_eq!(get_or(&cache, at("p", "k"), || Ok(big)).unwrap_err().kind(), Kind::TooLarge);
        assert_eq!(*get_or(&cache, at("p", "k"), || Ok(json!(1))).unwrap(), json!(1));
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let (cache, clock) = cache();
        let keys: Vec<String> = (0..MAX_ENTRIES + 5).map(|n| n.to_string()).collect();
        for key in &keys {
            cache.put(at("p", key), json!(0), 9.0).unwrap();
        }
        let held = |key: &str| cache.get(at("p", key)).is_some();
        assert!(!held("4") && held("5") && held(keys.last().unwrap()));
        cache.put(at("p", "short"), json!(0), 1.0).unwrap();
        assert!(!held("5"));
        clock.advance(1000);
        cache.put(at("p", "more"), json!(0), 9.0).unwrap();
        assert!(held("6"), "the expired one went first");
        assert!(cache.get(at("q", "4")).is_none());
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_bytes() {
        let (cache, _) = cache();
        let chunk = "x".repeat(7 << 20);
        let keys: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        for key in &keys {
            cache.put(at("p", key), json!(chunk), 9.0).unwrap();
        }
        let held: Vec<_> = keys.iter().filter(|key| cache.get(at("p", key)).is_some()).collect();
        assert_eq!(held, ["1", "2", "3", "4", "5", "6", "7", "8", "9"]);
        assert!(cache.inner().shelves["p"].bytes <= MAX_BYTES);
        for key in &keys {
            cache.invalidate(at("p", key));
        }
        let inner = cache.inner();
        let shelf = &inner.shelves["p"];
        assert_eq!((shelf.bytes, shelf.order.len(), shelf.expiry.len()), (0, 0, 0));
    }

    #[test]
    fn one_computes_and_the_others_wait_for_it() {
        let (cache, _) = cache();
        let runs = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    let value = get_or(&cache, at("p", "k"), || {
                        runs.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        Ok(json!("made"))
                    });
                    assert_eq!(*value.unwrap(), json!("made"));
                });
            }
        });
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn no_lock_is_held_while_a_value_is_computed() {
        let (cache, _) = cache();
        let value = get_or(&cache, at("p", "outer"), || {
            cache.put(at("p", "other"), json!(1), 9.0)?;
            let inner = get_or(&cache, at("p", "inner"), || Ok(json!(2)))?;
            Ok(json!([*cache.get(at("p", "other")).unwrap(), *inner]))
        });
        assert_eq!(*value.unwrap(), json!([1, 2]));
    }

    #[test]
    fn a_failure_is_not_kept_and_the_next_one_computes() {
        let (cache, _) = cache();
        assert_eq!(get_or(&cache, at("p", "k"), || Err(Error::invalid("no"))).unwrap_err().message(), "no");
        let (started, waits) = mpsc::channel();
        let (release, go) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let cache = &cache;
            let first = scope.spawn(move || {
                get_or(cache, at("p", "k"), || {
                    started.send(()).unwrap();
                    go.recv().unwrap();
                    Err(Error::internal("upstream is away"))
                })
            });
            waits.recv().unwrap();
            let second = scope.spawn(|| {
                let asked = AtomicUsize::new(0);
                let go_on = || {
                    if asked.fetch_add(1, Ordering::SeqCst) == 0 {
                        release.send(()).unwrap();
                    }
                    Ok::<_, Error>(())
                };
                cache.get_or(at("p", "k"), 9.0, &go_on, || Ok(json!("second")))
            });
            assert_eq!(first.join().unwrap().unwrap_err().message(), "upstream is away");
            assert_eq!(*second.join().unwrap().unwrap(), json!("second"));
        });
    }

    #[test]
    fn a_panic_does_not_leave_waiters_behind() {
        let (cache, _) = cache();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            get_or(&cache, at("p", "k"), || -> Result<Value> { std::panic::resume_unwind(Box::new("gone")) })
        }));
        assert!(panicked.is_err());
        assert_eq!(*get_or(&cache, at("p", "k"), || Ok(json!(1))).unwrap(), json!(1));
    }

    #[test]
    fn a_waiter_can_give_up() {
        let (cache, _) = cache();
        let (started, waits) = mpsc::channel();
        let (release, go) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let cache = &cache;
            let first = scope.spawn(move || {
                get_or(cache, at("p", "k"), || {
                    started.send(()).unwrap();
                    go.recv().unwrap();
                    Ok(json!("late"))
                })
            });
            waits.recv().unwrap();
            let stop = || Err(Error::new(Kind::Cancelled, "stopped"));
            let e = cache.get_or(at("p", "k"), 9.0, &stop, || Ok(json!("never"))).unwrap_err();
            assert_eq!(e.kind(), Kind::Cancelled);
            release.send(()).unwrap();
            assert_eq!(*first.join().unwrap().unwrap(), json!("late"));
        });
        assert_eq!(cache.get(at("p", "k")).as_deref(), Some(&json!("late")));
    }

    #[test]
    fn a_value_that_is_computed_from_itself_is_an_error() {
        let (cache, _) = cache();
        let e =
            get_or(&cache, at("p", "k"), || get_or(&cache, at("p", "k"), || Ok(json!(1))).map(|v| v.as_ref().clone()));
        assert_eq!(e.unwrap_err().kind(), Kind::Conflict);
    }

    #[test]
    fn what_is_invalidated_while_it_is_computed_is_not_kept() {
        let (cache, _) = cache();
        for stale in [|cache: &Cache| cache.invalidate(at("p", "k")), |cache: &Cache| cache.drop_plugin("p")] {
            let value = get_or(&cache, at("p", "k"), || {
                stale(&cache);
                Ok(json!("old"))
            });
            assert_eq!(*value.unwrap(), json!("old"));
            assert!(cache.get(at("p", "k")).is_none());
            assert!(cache.inner().flights.is_empty());
        }
    }
}
