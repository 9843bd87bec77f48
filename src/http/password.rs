//! The password of whoever owns the host, if there is one: kept as a hash that is slow to guess, checked one at a time and away
//! from the threads that serve. Who may set it, and how often it may be tried, is decided elsewhere.

use super::ledger::{Broken, Ledger};
use super::seal;
use super::session::Sessions;
use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result};
use crate::base::paths::Paths;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

/// What a guess costs: Argon2id as RFC 9106 recommends where 2 GiB are too much (64 MiB, 3 passes, 4 lanes), some tenths of a
/// second of one core.
const MEMORY_KIB: u32 = 64 << 10;
const PASSES: u32 = 3;
const LANES: u32 = 4;
/// A hash that somebody put there and that would cost more than this many times as much is not checked.
const MOST_COSTLY: u32 = 8;
/// Shortest password, in characters.
const SHORTEST: usize = 10;
/// Longest password, in bytes.
const LONGEST: usize = 1024;
/// Most checks that wait for the one under way.
const WAITING: usize = 4;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Kept {
    /// In the PHC format, with its salt and what it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

/// The password of a root.
pub struct Password {
    ledger: Ledger<Kept>,
    sessions: Arc<Sessions>,
    turn: Semaphore,
    waiting: AtomicUsize,
}

impl Password {
    /// The password of the root at `paths`, whether a host runs there or not.
    #[must_use]
    pub fn of(paths: &Paths, clock: Clock) -> Password {
        Password::with(paths, Arc::new(Sessions::of(paths, clock)))
    }

    pub(super) fn with(paths: &Paths, sessions: Arc<Sessions>) -> Password {
        let ledger = Ledger::at(paths.webui().join("password.json"), Broken::Stays);
        Password { ledger, sessions, turn: Semaphore::new(1), waiting: AtomicUsize::new(0) }
    }

    /// Whether there is one.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.ledger.read().hash.is_some()
    }

    /// Sets it, and signs everybody out. It takes some tenths of a second, and waits for the disk.
    ///
    /// # Errors
    /// `invalid_arguments` for fewer than 10 characters or more than 1,024 bytes, and what the file system says.
    pub fn set(&self, new: &str) -> Result<()> {
        self.replace(Some(new), None)
    }

    /// Takes it away, and signs everybody out; tells whether there was one. Links sign people in. It waits for the disk.
    ///
    /// # Errors
    /// What the file system says.
    pub fn remove(&self) -> Result<bool> {
        let was_set = self.is_set();
        self.replace(None, None)?;
        Ok(was_set)
    }

    /// As [`Password::set`] and [`Password::remove`], and one session goes on.
    pub(super) fn replace(&self, new: Option<&str>, keep: Option<seal::Seal>) -> Result<()> {
        let hash = new.map(hash).transpose()?;
        self.ledger.change(|kept| {
            kept.hash = hash;
            Ok(())
        })?;
        self.sessions.end_others(keep)
    }

    /// Whether `given` is the password. One check runs at a time, on a thread that may be kept busy; `ready` is asked when it is
    /// this one's turn, and its error is the answer.
    ///
    /// # Errors
    /// `rate_limited` where too many wait already, and those of `ready`.
    pub(super) async fn check(&self, given: Zeroizing<String>, ready: impl FnOnce() -> Result<()>) -> Result<bool> {
        let _waiting = Waiting::enter(&self.waiting)?;
        let _turn = self.turn.acquire().await.map_err(|_| Error::internal("no password is checked any more"))?;
        ready()?;
        let Some(hash) = self.ledger.read().hash.clone() else { return Ok(false) };
        tokio::task::spawn_blocking(move || matches(&hash, &given))
            .await
            .map_err(|_| Error::internal("checking the password failed"))?
    }
}

/// One of those who wait.
struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn enter(count: &AtomicUsize) -> Result<Waiting<'_>> {
        let waiting = Waiting(count);
        if count.fetch_add(1, Ordering::AcqRel) > WAITING {
            return Err(Error::new(Kind::RateLimited, "too many passwords are being checked")
                .with_retry_after_ms(5000)
                .hint("try again in 5 seconds, or sign in by a link: lapidary sign-in"));
        }
        Ok(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn hash(new: &str) -> Result<String> {
    if new.chars().count() < SHORTEST || new.len() > LONGEST {
        return Err(Error::invalid(format!(
            "a password has at least {SHORTEST} characters, and at most {LONGEST} bytes"
        ))
        .hint("a few words that nobody says together are good"));
    }
    let mut salt = [0; 16];
    seal::fill(&mut salt)?;
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None);
    let hashed = params
        .map_err(|e| e.to_string())
        .and_then(|params| {
            let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
            argon2.hash_password_with_salt(new.as_bytes(), &salt).map_err(|e| e.to_string())
        })
        .map_err(|e| Error::internal(format!("the password cannot be hashed: {e}")))?;
    Ok(hashed.to_string())
}

fn matches(hash: &str, given: &str) -> Result<bool> {
    let broken =
        || Error::internal("user/webui/password.json holds no hash that can be checked").hint("lapidary password set");
    let hash = PasswordHash::new(hash).map_err(|_| broken())?;
    let params = Params::try_from(&hash).map_err(|_| broken())?;
    if hash.hash.is_none() || params.m_cost() > MOST_COSTLY * MEMORY_KIB || params.t_cost() > MOST_COSTLY * PASSES {
        return Err(broken());
    }
    if given.len() > LONGEST {
        return Ok(false);
    }
    match Argon2::default().verify_password(given.as_bytes(), &hash) {
        Ok(()) => Ok(true),
        Err(argon2::password_hash::Error::PasswordInvalid) => Ok(false),
        Err(_) => Err(broken()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::session::How;
    use super::*;

    fn password() -> (tempfile::TempDir, Password) {
        let dir = tempfile::tempdir().unwrap();
        let password = Password::of(&Paths::at(dir.path()), Clock::system());
        (dir, password)
    }

    fn check(password: &Password, given: &str) -> Result<bool> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(password.check(Zeroizing::new(given.to_owned()), || Ok(())))
    }

    #[test]
    fn a_password_is_kept_as_a_slow_hash_and_told_from_others() {
        let (dir, password) = password();
        assert!(!password.is_set() && !check(&password, "").unwrap());
        password.set("correct horse").unwrap();
        for (given, is_it) in [("correct horse", true), ("correct horsf", false), ("", false), ("Correct horse", false)]
        {
            assert_eq!(check(&password, given).unwrap(), is_it, "{given}");
        }
        let text = std::fs::read_to_string(dir.path().join("user/webui/password.json")).unwrap();
        assert!(text.contains("$argon2id$v=19$m=65536,t=3,p=4$") && !text.contains("correct"), "{text}");
        password.set("ten chars!").unwrap();
        assert!(!check(&password, "correct horse").unwrap());
        assert!(password.remove().unwrap() && !password.remove().unwrap());
        assert!(!check(&password, "ten chars!").unwrap() && !check(&password, "").unwrap());
    }

    #[test]
    fn a_password_that_is_too_short_or_too_long_is_refused_and_not_repeated() {
        let (_dir, password) = password();
        for bad in ["", "short", "ninechars", &"x".repeat(LONGEST + 1)] {
            let e = password.set(bad).unwrap_err();
            assert!(e.kind() == Kind::InvalidArguments && (bad.is_empty() || !e.to_string().contains(bad)), "{e}");
        }
        assert!(!password.is_set());
    }

    #[test]
    fn a_new_password_ends_every_session_but_one() {
        let (_dir, password) = password();
        let all = [0; 3].map(|_| password.sessions.begin(How::Link).unwrap());
        let there = || all.each_ref().map(|(secret, _)| password.sessions.find(secret).is_some());
        password.replace(Some("correct horse"), Some(all[1].1.seal)).unwrap();
        assert_eq!(there(), [false, true, false]);
        password.remove().unwrap();
        assert_eq!(there(), [false; 3]);
    }

    #[test]
    fn a_hash_that_would_cost_too_much_or_is_none_is_not_checked() {
        let (dir, password) = password();
        std::fs::create_dir_all(dir.path().join("user/webui")).unwrap();
        for hash in [
            "nonsense",
            "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ",
            "$argon2id$v=19$m=4000000,t=3,p=4$c2FsdHNhbHRzYWx0$c2FsdHNhbHRzYWx0c2FsdHNhbHQ",
            "$argon2id$v=19$m=65536,t=4000,p=4$c2FsdHNhbHRzYWx0$c2FsdHNhbHRzYWx0c2FsdHNhbHQ",
            "$scrypt$ln=17,r=8,p=1$c2FsdHNhbHRzYWx0$c2FsdHNhbHRzYWx0c2FsdHNhbHQ",
        ] {
            let text = serde_json::json!({ "hash": hash }).to_string();
            std::fs::write(dir.path().join("user/webui/password.json"), text).unwrap();
            let e = check(&password, "correct horse").unwrap_err();
            assert!(e.kind() == Kind::Internal && !e.to_string().contains("c2FsdHNh"), "{e}");
        }
    }

    #[test]
    fn only_a_few_wait_for_their_turn() {
        let (_dir, password) = password();
        let held: Vec<_> = (0..=WAITING).map(|_| Waiting::enter(&password.waiting).unwrap()).collect();
        let e = check(&password, "correct horse").unwrap_err();
        assert!(e.kind() == Kind::RateLimited && e.retry_after_ms().is_some());
        drop(held);
        assert!(!check(&password, "correct horse").unwrap());
    }
}
