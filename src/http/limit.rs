//! How often and how much: buckets that fill with time, delays that grow with failures, sizes of bodies, places for connections.
//! Values and clocks only; who is asked about is the caller's affair.

use crate::base::error::{Error, Kind};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// So much at once, and one more with every so many milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rate {
    pub(super) burst: f64,
    pub(super) every_ms: f64,
}

impl Rate {
    /// So many a minute, as many at once as in `at_once`.
    pub(super) const fn a_minute(count: u32, at_once: u32) -> Rate {
        Rate { burst: at_once as f64, every_ms: 60_000.0 / count as f64 }
    }

    /// So many a second, and twice as many at once.
    pub(super) fn a_second(count: u32) -> Rate {
        Rate { burst: 2.0 * f64::from(count), every_ms: 1000.0 / f64::from(count) }
    }
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at_ms: i64,
}

impl Bucket {
    fn fill(&mut self, rate: Rate, now_ms: i64) {
        #[expect(clippy::cast_precision_loss, reason = "milliseconds between two requests")]
        let passed = (now_ms - self.at_ms).max(0) as f64;
        self.left = (self.left + passed / rate.every_ms).min(rate.burst);
        self.at_ms = now_ms;
    }
}

/// Most buckets that are kept. Whoever has more addresses than this has as many first tries anyway.
const MOST: usize = 4096;

/// A bucket for each of those who ask.
pub(super) struct Buckets<K> {
    rate: Rate,
    all: Mutex<HashMap<K, Bucket>>,
}

impl<K: Hash + Eq> Buckets<K> {
    pub(super) fn new(rate: Rate) -> Buckets<K> {
        Buckets { rate, all: Mutex::default() }
    }

    /// Takes one out of the bucket of `key`.
    ///
    /// # Errors
    /// How long to wait for it, in milliseconds, where there is none.
    pub(super) fn take(&self, key: K, now_ms: i64) -> Result<(), u64> {
        let rate = self.rate;
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST && !all.contains_key(&key) {
            all.retain(|_, bucket| {
                bucket.fill(rate, now_ms);
                bucket.left < rate.burst
            });
            if all.len() >= MOST {
                all.clear();
            }
        }
        let bucket = all.entry(key).or_insert(Bucket { left: rate.burst, at_ms: now_ms });
        bucket.fill(rate, now_ms);
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of one step, not negative")]
        let wait = ((1.0 - bucket.left) * rate.every_ms - 1e-6).ceil() as u64;
        Err(wait.max(1))
    }
}

/// How often a server answers.
pub(super) struct Limits {
    /// Callers who are known, wherever they are, where the owner says how often.
    pub(super) callers: Option<Buckets<Arc<str>>>,
    /// Callers who are known and not on this machine, where the owner does not say.
    pub(super) afar: Buckets<Arc<str>>,
    /// Who shows something that opens nothing.
    pub(super) tries: Buckets<IpAddr>,
    /// Who is not on this machine and shows nothing.
    pub(super) strangers: Buckets<IpAddr>,
    /// What reads from a plugin's routes, by caller and plugin.
    pub(super) reads: Buckets<(Arc<str>, String)>,
    /// What writes there.
    pub(super) writes: Buckets<(Arc<str>, String)>,
}

impl Limits {
    /// The limits of a server whose owner wants `callers` for each caller.
    pub(super) fn new(callers: Option<Rate>) -> Limits {
        Limits {
            callers: callers.map(Buckets::new),
            afar: Buckets::new(Rate::a_second(100)),
            tries: Buckets::new(Rate::a_minute(30, 30)),
            strangers: Buckets::new(Rate::a_second(50)),
            reads: Buckets::new(Rate::a_minute(600, 120)),
            writes: Buckets::new(Rate::a_minute(300, 60)),
        }
    }
}

/// Failures that cost nothing yet.
const FREE: u32 = 3;
/// Longest delay.
const LONGEST_MS: i64 = 15 * 60 * 1000;
/// Failures are forgotten after this long without another.
const FORGOTTEN_MS: i64 = 24 * 3600 * 1000;

/// How long nothing more may be tried after so many failures, in milliseconds: 2 s after the fourth, then twice as long each time.
fn delay_ms(failures: u32) -> i64 {
    match failures.checked_sub(FREE + 1) {
        None => 0,
        Some(doublings) => (2000_i64 << doublings.min(10)).min(LONGEST_MS),
    }
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last_ms: i64,
}

/// Who failed how often, so that the next try has to wait.
pub(super) struct Attempts<K>(Mutex<HashMap<K, Failures>>);

impl<K: Hash + Eq> Attempts<K> {
    pub(super) fn new() -> Attempts<K> {
        Attempts(Mutex::default())
    }

    /// Whether `key` may try now.
    ///
    /// # Errors
    /// How long to wait, in milliseconds.
    pub(super) fn may(&self, key: &K, now_ms: i64) -> Result<(), u64> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(failures) = all.get(key) else { return Ok(()) };
        // A clock that was set back must not make the wait longer than it was.
        let delay = delay_ms(failures.count);
        let wait = (failures.last_ms + delay - now_ms).min(delay);
        u64::try_from(wait).ok().filter(|wait| *wait > 0).map_or(Ok(()), Err)
    }

    /// Notes a failure.
    pub(super) fn failed(&self, key: K, now_ms: i64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST && !all.contains_key(&key) {
            all.retain(|_, f| now_ms - f.last_ms < FORGOTTEN_MS);
            if all.len() >= MOST {
                all.clear();
            }
        }
        let failures = all.entry(key).or_insert(Failures { count: 0, last_ms: now_ms });
        if now_ms - failures.last_ms >= FORGOTTEN_MS {
            failures.count = 0;
        }
        failures.count = failures.count.saturating_add(1);
        failures.last_ms = now_ms;
    }

    /// Forgets the failures of `key`, who did it right.
    pub(super) fn succeeded(&self, key: &K) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// What somebody is told who has to wait.
pub(super) fn later(what: &str, ms: u64) -> Error {
    let seconds = ms.div_ceil(1000);
    let wait = if seconds == 1 { "a second".to_owned() } else { format!("{seconds} seconds") };
    Error::new(Kind::RateLimited, what).with_retry_after_ms(ms).hint(format!("try again in {wait}"))
}

/// Whom an address stands for: of the new kind, everybody with the same first half is one neighbour.
pub(super) fn neighbour(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) & !u128::from(u64::MAX)).into()),
        ip @ IpAddr::V4(_) => ip,
    }
}

/// Largest body of any request, in bytes.
pub(super) const LARGEST: usize = 50 << 20;

/// Largest body of a request to a path, in bytes.
pub(super) fn body(path: &str) -> usize {
    match path {
        "/api/session" | "/api/password" | "/api/tokens" => 8 << 10,
        "/api/install" => LARGEST,
        _ => 16 << 20,
    }
}

/// Places for connections, so many for each address.
#[derive(Clone, Default)]
pub(super) struct Places(Arc<Mutex<HashMap<IpAddr, u32>>>);

/// A place that is taken until this is dropped.
pub(super) struct Place {
    places: Places,
    address: IpAddr,
}

impl Places {
    /// A place for a connection from `address`, where there are `most` for it.
    pub(super) fn take(&self, address: IpAddr, most: u32) -> Option<Place> {
        let address = neighbour(address);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = all.entry(address).or_default();
        if *taken >= most {
            return None;
        }
        *taken += 1;
        Some(Place { places: self.clone(), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = all.get_mut(&self.address) {
            *taken -= 1;
            if *taken == 0 {
                all.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_at_once_and_then_its_rate() {
        let buckets = Buckets::new(Rate::a_minute(60, 3));
        // Milliseconds, and what comes of asking then.
        let rows = [
            (0, Ok(())),
            (0, Ok(())),
            (0, Ok(())),
            (0, Err(1000)),
            (400, Err(600)),
            (999, Err(1)),
            (1000, Ok(())),
            (1000, Err(1000)),
            (100_000, Ok(())),
            (100_000, Ok(())),
            (100_000, Ok(())),
            (100_000, Err(1000)),
            // The clock was set back: nothing is lost for longer than a step.
            (50_000, Err(1000)),
            (51_000, Ok(())),
        ];
        for (n, (now, expected)) in rows.into_iter().enumerate() {
            assert_eq!(buckets.take("a", now), expected, "row {n}");
        }
        assert_eq!(buckets.take("b", 51_000), Ok(()), "each has a bucket of its own");
        let fast = Buckets::new(Rate::a_second(100));
        assert_eq!((0..300).filter(|_| fast.take((), 0).is_ok()).count(), 200);
    }

    #[test]
    fn there_are_never_more_buckets_than_that() {
        let buckets = Buckets::new(Rate::a_minute(60, 3));
        for key in 0..3 * MOST {
            buckets.take(key, i64::try_from(key).unwrap()).unwrap();
            assert!(buckets.all.lock().unwrap().len() <= MOST);
        }
        let attempts = Attempts::new();
        for key in 0..3 * MOST {
            attempts.failed(key, 0);
            assert!(attempts.0.lock().unwrap().len() <= MOST);
        }
    }

    #[test]
    fn every_failure_makes_the_next_try_wait_longer() {
        let rows = [(0, 0), (1, 0), (3, 0), (4, 2), (5, 4), (6, 8), (10, 128), (12, 512), (13, 900), (50, 900)];
        for (failures, seconds) in rows {
            assert_eq!(delay_ms(failures), seconds * 1000, "{failures}");
        }
        assert_eq!(delay_ms(u32::MAX), LONGEST_MS);
    }

    #[test]
    fn who_failed_waits_and_who_did_it_right_does_not() {
        let attempts = Attempts::new();
        for _ in 0..4 {
            attempts.may(&"a", 0).unwrap();
            attempts.failed("a", 0);
        }
        assert_eq!(attempts.may(&"a", 0), Err(2000));
        assert_eq!(attempts.may(&"a", 1999), Err(1));
        assert_eq!(attempts.may(&"b", 0), Ok(()));
        assert_eq!(attempts.may(&"a", 2000), Ok(()));
        assert_eq!(attempts.may(&"a", -1_000_000), Err(2000), "the clock was set back");
        attempts.failed("a", 2000);
        assert_eq!(attempts.may(&"a", 2000), Err(4000));
        attempts.succeeded(&"a");
        assert_eq!(attempts.may(&"a", 2000), Ok(()));
        for _ in 0..10 {
            attempts.failed("a", 2000);
        }
        attempts.failed("a", 2000 + FORGOTTEN_MS);
        assert_eq!(attempts.may(&"a", 2000 + FORGOTTEN_MS), Ok(()), "a day without a failure");
    }

    #[test]
    fn neighbours_of_the_new_kind_are_one() {
        let rows = [
            ("127.0.0.1", "127.0.0.1"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2::", "2001:db8:1:2::"),
            ("::1", "::"),
        ];
        for (address, expected) in rows {
            assert_eq!(neighbour(address.parse().unwrap()).to_string(), expected);
        }
    }

    #[test]
    fn an_address_has_so_many_places_until_they_are_free_again() {
        let places = Places::default();
        let ip = |n: u8| IpAddr::from([10, 0, 0, n]);
        let held: Vec<_> = (0..3).map(|_| places.take(ip(1), 3)).collect();
        assert!(held.iter().all(Option::is_some) && places.take(ip(1), 3).is_none() && places.take(ip(2), 3).is_some());
        drop(held);
        assert!(places.0.lock().unwrap().is_empty() && places.take(ip(1), 3).is_some());
    }

    #[test]
    fn a_body_may_be_as_large_as_its_path_needs() {
        let rows = [
            ("/api/session", 8 << 10),
            ("/api/tokens", 8 << 10),
            ("/api/install", 50 << 20),
            ("/api/call", 16 << 20),
            ("/mcp", 16 << 20),
            ("/api/session/", 16 << 20),
        ];
        for (path, bytes) in rows {
            assert_eq!(body(path), bytes, "{path}");
        }
    }
}
