//! One-time links: made by one process, spent by another, each once and within minutes. Only what is kept of the codes is on
//! disk, never a code.

use super::ledger::{Broken, Ledger, push_within};
use super::seal::{self, Seal};
use crate::base::clock::Clock;
use crate::base::error::Result;
use crate::base::paths::Paths;
use serde::{Deserialize, Serialize};

/// How long a code can be spent, in milliseconds: 15 minutes.
pub(super) const LIFETIME_MS: i64 = 15 * 60 * 1000;
/// Most codes that wait to be spent; the oldest goes first.
const MOST: usize = 16;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Waiting {
    codes: Vec<Code>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Code {
    seal: Seal,
    expires_ms: i64,
}

/// The codes of a root.
pub(super) struct Codes {
    ledger: Ledger<Waiting>,
    clock: Clock,
}

impl Codes {
    pub(super) fn of(paths: &Paths, clock: Clock) -> Codes {
        Codes { ledger: Ledger::at(paths.webui().join("sign-in.json"), Broken::StartsOver), clock }
    }

    /// A new code of 256 bits. It waits for the disk.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn make(&self) -> Result<String> {
        let code = seal::fresh()?;
        let now = self.clock.unix_ms();
        self.ledger.change(|waiting| {
            waiting.codes.retain(|code| lives(code, now));
            let new = Code { seal: Seal::of(&code), expires_ms: now + LIFETIME_MS };
            push_within(&mut waiting.codes, new, MOST);
            Ok(())
        })?;
        Ok(code)
    }

    /// Takes a code away; tells whether it was there and could be spent. It waits for the disk.
    ///
    /// # Errors
    /// What the file system says; then nobody is signed in.
    pub(super) fn spend(&self, code: &str) -> Result<bool> {
        let now = self.clock.unix_ms();
        let seal = Seal::of(code);
        // Most guesses need no lock.
        if !self.ledger.read().codes.iter().any(|code| code.seal == seal) {
            return Ok(false);
        }
        self.ledger.change(|waiting| {
            let found = waiting.codes.iter().position(|code| code.seal == seal);
            Ok(found.map(|at| waiting.codes.remove(at)).is_some_and(|code| lives(&code, now)))
        })
    }
}

/// A clock that was set back must not keep a code for longer.
fn lives(code: &Code, now: i64) -> bool {
    (now + 1..=now + LIFETIME_MS).contains(&code.expires_ms)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn codes() -> (tempfile::TempDir, Clock, Codes) {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::manual(1_800_000_000_000);
        let codes = Codes::of(&Paths::at(dir.path()), clock.clone());
        (dir, clock, codes)
    }

    #[test]
    fn a_code_is_spent_once_whoever_made_it() {
        let (dir, clock, codes) = codes();
        let other = Codes::of(&Paths::at(dir.path()), clock);
        let code = codes.make().unwrap();
        assert!(!other.spend("nonsense").unwrap() && !other.spend("").unwrap());
        assert!(other.spend(&code).unwrap());
        assert!(!other.spend(&code).unwrap() && !codes.spend(&code).unwrap());
        let text = std::fs::read_to_string(dir.path().join("user/webui/sign-in.json")).unwrap();
        assert!(!text.contains(&code));
    }

    #[test]
    fn a_code_can_be_spent_for_fifteen_minutes() {
        let (_dir, clock, codes) = codes();
        let [a, b, c] = [0; 3].map(|_| codes.make().unwrap());
        clock.advance(LIFETIME_MS - 1);
        assert!(codes.spend(&a).unwrap());
        clock.advance(1);
        assert!(!codes.spend(&b).unwrap());
        clock.advance(-2 * LIFETIME_MS);
        assert!(!codes.spend(&c).unwrap(), "the clock was set back");
    }

    #[test]
    fn of_many_codes_the_oldest_goes() {
        let (_dir, _clock, codes) = codes();
        let all: Vec<String> = (0..=MOST).map(|_| codes.make().unwrap()).collect();
        assert!(!codes.spend(&all[0]).unwrap() && codes.spend(&all[1]).unwrap() && codes.spend(&all[MOST]).unwrap());
    }

    #[test]
    fn of_many_who_spend_a_code_at_once_one_gets_in() {
        let (dir, clock, codes) = codes();
        let code = codes.make().unwrap();
        let got_in = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| Codes::of(&Paths::at(dir.path()), clock.clone()).spend(&code).unwrap()))
                .collect();
            tries.into_iter().map(|t| t.join().unwrap()).filter(|got_in| *got_in).count()
        });
        assert_eq!(got_in, 1);
    }
}
