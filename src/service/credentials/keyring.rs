//! Keyrings: what holds values for a person's desktop, and may be locked, slow or not there. Here nobody waits for one for long.
//! It knows nothing of files, hosts or plugins.

#[cfg(all(feature = "keyring", any(windows, target_os = "macos")))]
#[path = "keyring/native.rs"]
mod platform;
#[cfg(all(feature = "keyring", any(target_os = "linux", target_os = "freebsd")))]
#[path = "keyring/secret_service.rs"]
mod platform;
#[cfg(not(all(feature = "keyring", any(windows, target_os = "macos", target_os = "linux", target_os = "freebsd"))))]
#[path = "keyring/none.rs"]
mod platform;

use crate::base::error::{Error, Kind};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use zeroize::Zeroizing;

/// A value on its way; it is wiped when it goes.
pub type Value = Zeroizing<String>;

/// How long a value is waited for: a call of a tool waits with it.
const READING: Duration = Duration::from_secs(2);
/// How long a keyring may take to ask a person for its password.
const PERSON: Duration = Duration::from_secs(60);
/// What a platform may need beyond its limit to say that the limit has passed.
const GRACE: Duration = Duration::from_millis(500);
/// Most questions under way. One that never ends keeps a thread, and there must not be many of those.
const MOST: usize = 4;

/// What one value is kept under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The credential's name, for people who look into their keyring.
    pub name: String,
    /// What finds it: a new one for every value, so that what is known of an id stays true.
    pub id: String,
}

/// Why a keyring does not serve. Nothing of a value is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is none, for this reason.
    Absent(&'static str),
    /// It is locked, and nobody unlocked it.
    Locked,
    /// It does not answer in time.
    Slow,
    /// The value has more bytes than it takes.
    TooLarge,
    /// Something else went wrong.
    Failed(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Absent(why) => write!(f, "there is no keyring: {why}"),
            Refusal::Locked => f.write_str("the keyring is locked"),
            Refusal::Slow => f.write_str("the keyring does not answer in time"),
            Refusal::TooLarge => f.write_str("the value is too large for the keyring"),
            Refusal::Failed(why) => write!(f, "the keyring failed: {why}"),
        }
    }
}

impl Refusal {
    /// What is told to somebody who wants a value, or to store one.
    #[must_use]
    pub fn error(&self) -> Error {
        let error = |kind| Error::new(kind, self.to_string()).with_retryable(matches!(self, Refusal::Slow));
        match self {
            Refusal::Absent(_) => error(Kind::Disabled).with_user_action("store the value where this host can read it").hint(
                "its owner starts the host in a desktop session, or stores the value again: lapidary credentials set NAME",
            ),
            Refusal::Locked => error(Kind::Disabled)
                .with_user_action("unlock the keyring")
                .hint("its owner types: lapidary credentials unlock"),
            Refusal::Slow => error(Kind::Timeout)
                .with_user_action("answer what the keyring may be asking on the screen")
                .hint("it may be asking for a password on the screen; answer it and try again"),
            Refusal::TooLarge => error(Kind::TooLarge).hint("with [credentials] store = \"file\" it goes to the file"),
            Refusal::Failed(_) => {
                error(Kind::UpstreamUnavailable).hint("the owner of this host types: lapidary doctor")
            }
        }
    }

    /// The same, for the credential `name`.
    #[must_use]
    pub fn error_of(&self, name: &str) -> Error {
        self.error().context(format_args!("the credential `{name}`"))
    }
}

/// What keeps values for this user, apart from files. Its answers may take a moment: nobody asks on a thread of the runtime.
pub trait Keyring: Send + Sync {
    /// The values of these items, in their order; `None` for what it does not hold. It never asks a person to unlock it.
    ///
    /// # Errors
    /// Where it cannot say.
    fn get(&self, items: &[Item]) -> Result<Vec<Option<Value>>, Refusal>;

    /// Keeps a value under an item that is new.
    ///
    /// # Errors
    /// Where it cannot; nothing is kept then.
    fn put(&self, item: &Item, value: &str) -> Result<(), Refusal>;

    /// Removes an item; one that is gone already counts as removed.
    ///
    /// # Errors
    /// Where it cannot.
    fn remove(&self, item: &Item) -> Result<(), Refusal>;

    /// Lets it ask a person for its password, where it is locked.
    ///
    /// # Errors
    /// `Locked` where the person says no; where it cannot ask.
    fn unlock(&self) -> Result<(), Refusal>;
}

/// The keyring of this user's desktop: macOS Keychain, Windows Credential Manager, or the Secret Service of the session.
/// Nothing of it is touched before it is asked something, and nothing stays connected after.
#[derive(Debug, Default)]
pub struct Desktop {
    under_way: Arc<AtomicUsize>,
}

impl Desktop {
    /// For this user; whether there is one turns out when it is asked.
    #[must_use]
    pub fn of_this_user() -> Desktop {
        Desktop::default()
    }

    /// Does `work` on a thread of its own and waits for it up to `limit`.
    fn within<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        /// Gives the place back, also where the work panics.
        struct Place(Arc<AtomicUsize>);
        impl Drop for Place {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::AcqRel);
            }
        }

        let before = self.under_way.fetch_add(1, Ordering::AcqRel);
        let place = Place(self.under_way.clone());
        if before >= MOST {
            return Err(Refusal::Slow);
        }
        let (tell, told) = mpsc::sync_channel(1);
        let run = move || {
            let _place = place;
            let _ = tell.send(work());
        };
        std::thread::Builder::new()
            .name("lapidary-keyring".into())
            .spawn(run)
            .map_err(|_| Refusal::Failed("no thread can be started".to_owned()))?;
        told.recv_timeout(limit + GRACE).unwrap_or_else(|e| match e {
            RecvTimeoutError::Timeout => Err(Refusal::Slow),
            RecvTimeoutError::Disconnected => Err(Refusal::Failed("its library panicked".to_owned())),
        })
    }
}

impl Keyring for Desktop {
    fn get(&self, items: &[Item]) -> Result<Vec<Option<Value>>, Refusal> {
        let items = items.to_vec();
        self.within(READING, move || platform::get(&items, READING))
    }

    fn put(&self, item: &Item, value: &str) -> Result<(), Refusal> {
        let (item, value) = (item.clone(), Zeroizing::new(value.to_owned()));
        self.within(platform::WRITING, move || platform::put(&item, &value, platform::WRITING))
    }

    fn remove(&self, item: &Item) -> Result<(), Refusal> {
        let item = item.clone();
        self.within(platform::WRITING, move || platform::remove(&item, platform::WRITING))
    }

    fn unlock(&self) -> Result<(), Refusal> {
        self.within(PERSON, || platform::unlock(PERSON))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyring_that_never_answers_holds_nobody_and_few_threads() {
        let desktop = Desktop::of_this_user();
        let (let_go, wait) = mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let hang = || {
            let wait = wait.clone();
            desktop.within(Duration::ZERO, move || {
                let _ = wait.lock().map(|wait| wait.recv());
                Ok(())
            })
        };
        for _ in 0..MOST + 3 {
            assert_eq!(hang(), Err(Refusal::Slow));
        }
        assert_eq!(desktop.under_way.load(Ordering::Acquire), MOST);
        drop(let_go);
        while desktop.under_way.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
        assert_eq!(desktop.within(PERSON, || Ok(1)), Ok(1));
        let broken: Result<(), Refusal> = desktop.within(PERSON, || panic!("of a test"));
        assert!(matches!(broken, Err(Refusal::Failed(_))), "{broken:?}");
        while desktop.under_way.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn every_refusal_says_what_to_do_next() {
        let rows = [
            (Refusal::Absent("there is no session bus"), "disabled", "credentials set"),
            (Refusal::Locked, "disabled", "lapidary credentials unlock"),
            (Refusal::Slow, "timeout", "try again"),
            (Refusal::TooLarge, "too_large", "\"file\""),
            (Refusal::Failed("x".to_owned()), "upstream_unavailable", "lapidary doctor"),
        ];
        for (refusal, code, hint) in rows {
            let e = refusal.error_of("weather");
            assert_eq!(e.code(), code);
            assert!(e.message().contains("`weather`") && e.hint_text().is_some_and(|h| h.contains(hint)), "{e}");
        }
    }
}
