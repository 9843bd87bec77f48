//! A person's sessions: made at sign-in, known by the digest of a secret that only the browser's cookie holds, ended by time, by
//! signing out or by a new password. It knows files and clocks; cookies and requests are the gate's.

use super::ledger::{Broken, Ledger, push_within};
use super::seal::{self, Seal};
use super::uses::Uses;
use crate::base::clock::Clock;
use crate::base::error::Result;
use crate::base::paths::Paths;
use serde::{Deserialize, Serialize};

const DAY_MS: i64 = 24 * 3_600_000;
/// A session that was not used for this long has ended.
pub(super) const IDLE_MS: i64 = 30 * DAY_MS;
/// A session has ended this long after it was made, however much it is used.
const LONGEST_MS: i64 = 180 * DAY_MS;
/// For this long after a sign-in by link a person may set a password without the old one: whoever can make links owns the host.
const FRESH_MS: i64 = 15 * 60 * 1000;
/// Most sessions; the one that was not used for longest goes first.
const MOST: usize = 100;

/// How a person signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum How {
    /// By a one-time link.
    Link,
    /// By the password.
    Password,
}

/// One session.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Session {
    /// What is kept of its secret; also what it is known by here.
    pub(super) seal: Seal,
    how: How,
    made_ms: i64,
    used_ms: i64,
}

impl Session {
    /// When it ends if it is not used again, in milliseconds since 1970.
    pub(super) fn expires_ms(&self) -> i64 {
        (self.used_ms + IDLE_MS).min(self.made_ms + LONGEST_MS)
    }

    /// Whether it began a moment ago and by a link.
    pub(super) fn is_fresh_by_link(&self, now: i64) -> bool {
        self.how == How::Link && (self.made_ms..self.made_ms + FRESH_MS).contains(&now)
    }

    /// A clock that was set back must not keep a session for longer.
    fn lives(&self, now: i64) -> bool {
        self.made_ms <= now + DAY_MS && self.used_ms <= now + DAY_MS && now < self.expires_ms()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct All {
    sessions: Vec<Session>,
}

/// The sessions of a root.
pub(super) struct Sessions {
    ledger: Ledger<All>,
    clock: Clock,
    uses: Uses<Seal>,
}

impl Sessions {
    pub(super) fn of(paths: &Paths, clock: Clock) -> Sessions {
        let ledger = Ledger::at(paths.webui().join("sessions.json"), Broken::StartsOver);
        Sessions { ledger, clock, uses: Uses::default() }
    }

    /// Begins a session; its secret is for the browser alone. It waits for the disk.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn begin(&self, how: How) -> Result<(String, Session)> {
        let secret = seal::fresh()?;
        let now = self.clock.unix_ms();
        let session = Session { seal: Seal::of(&secret), how, made_ms: now, used_ms: now };
        self.ledger.change(|all| {
            all.sessions.retain(|s| s.lives(now));
            all.sessions.sort_by_key(|s| s.used_ms);
            push_within(&mut all.sessions, session, MOST);
            Ok(())
        })?;
        Ok((secret, session))
    }

    /// The session of a secret, while it lasts.
    pub(super) fn find(&self, secret: &str) -> Option<Session> {
        let now = self.clock.unix_ms();
        let seal = Seal::of(secret);
        let mut session = *self.ledger.read().sessions.iter().find(|s| s.seal == seal)?;
        session.used_ms = session.used_ms.max(self.uses.last(&seal).unwrap_or(i64::MIN));
        session.lives(now).then_some(session)
    }

    /// Notes that a session is used now; tells whether that should be written, which happens once an hour.
    pub(super) fn note_use(&self, session: &Session) -> bool {
        self.uses.note(session.seal, Some(session.used_ms), self.clock.unix_ms())
    }

    /// Writes when a session was last used. It waits for the disk.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn write_use(&self, seal: Seal) -> Result<()> {
        let Some(used) = self.uses.last(&seal) else { return Ok(()) };
        self.ledger.change(|all| {
            if let Some(session) = all.sessions.iter_mut().find(|s| s.seal == seal) {
                session.used_ms = session.used_ms.max(used);
            }
            Ok(())
        })
    }

    /// Ends a session. It waits for the disk.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn end(&self, seal: Seal) -> Result<()> {
        self.ledger.change(|all| {
            all.sessions.retain(|s| s.seal != seal);
            Ok(())
        })
    }

    /// Ends all sessions but one. It waits for the disk.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn end_others(&self, keep: Option<Seal>) -> Result<()> {
        self.ledger.change(|all| {
            all.sessions.retain(|s| Some(s.seal) == keep);
            Ok(())
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn sessions() -> (tempfile::TempDir, Clock, Sessions) {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::manual(1_800_000_000_000);
        let sessions = Sessions::of(&Paths::at(dir.path()), clock.clone());
        (dir, clock, sessions)
    }

    #[test]
    fn a_session_survives_a_restart_and_its_secret_is_not_on_disk() {
        let (dir, clock, sessions) = sessions();
        let (secret, session) = sessions.begin(How::Link).unwrap();
        let restarted = Sessions::of(&Paths::at(dir.path()), clock);
        assert_eq!(restarted.find(&secret), Some(session));
        assert_eq!(restarted.find("another"), None);
        let text = std::fs::read_to_string(dir.path().join("user/webui/sessions.json")).unwrap();
        assert!(!text.contains(&secret));
    }

    #[test]
    fn a_session_lasts_while_it_is_used_and_not_for_ever() {
        let (dir, clock, sessions) = sessions();
        let (used, _) = sessions.begin(How::Link).unwrap();
        let (idle, _) = sessions.begin(How::Password).unwrap();
        let mut days = 0;
        while let Some(session) = sessions.find(&used) {
            if sessions.note_use(&session) {
                sessions.write_use(session.seal).unwrap();
            }
            assert_eq!(sessions.find(&idle).is_some(), days < 30, "day {days}");
            clock.advance(DAY_MS);
            days += 1;
        }
        assert_eq!(days, 180);
        assert_eq!(Sessions::of(&Paths::at(dir.path()), clock).find(&used), None);
    }

    #[test]
    fn a_use_is_written_once_an_hour_however_many_there_are() {
        let (_dir, clock, sessions) = sessions();
        let (secret, _) = sessions.begin(How::Link).unwrap();
        let writes = |minutes: i64| {
            let all = (0..minutes).map(|_| {
                clock.advance(60_000);
                let session = sessions.find(&secret).unwrap();
                let first = sessions.note_use(&session);
                assert!(!sessions.note_use(&session));
                usize::from(first)
            });
            all.sum::<usize>()
        };
        assert_eq!(writes(180), 3);
    }

    #[test]
    fn a_session_that_is_ended_is_over_in_every_process() {
        let (dir, clock, sessions) = sessions();
        let other = Sessions::of(&Paths::at(dir.path()), clock);
        let all: Vec<(String, Session)> = (0..3).map(|_| sessions.begin(How::Link).unwrap()).collect();
        let there = || all.iter().map(|(secret, _)| other.find(secret).is_some()).collect::<Vec<_>>();
        assert_eq!(there(), [true, true, true]);
        sessions.end(all[0].1.seal).unwrap();
        assert_eq!(there(), [false, true, true]);
        sessions.end_others(Some(all[2].1.seal)).unwrap();
        assert_eq!(there(), [false, false, true]);
        sessions.end_others(None).unwrap();
        assert_eq!(there(), [false, false, false]);
    }

    #[test]
    fn of_too_many_sessions_the_one_unused_for_longest_goes() {
        let (_dir, clock, sessions) = sessions();
        let all: Vec<String> = (0..=MOST)
            .map(|_| {
                clock.advance(1);
                sessions.begin(How::Link).unwrap().0
            })
            .collect();
        assert!(sessions.find(&all[0]).is_none() && sessions.find(&all[1]).is_some());
    }

    #[test]
    fn only_a_link_of_a_moment_ago_stands_for_the_old_password() {
        let (_dir, clock, sessions) = sessions();
        let (_, by_link) = sessions.begin(How::Link).unwrap();
        let (_, by_password) = sessions.begin(How::Password).unwrap();
        let fresh = || [&by_link, &by_password].map(|s| s.is_fresh_by_link(clock.unix_ms()));
        assert_eq!(fresh(), [true, false]);
        clock.advance(FRESH_MS);
        assert_eq!(fresh(), [false, false]);
        clock.advance(-2 * FRESH_MS);
        assert_eq!(fresh(), [false, false], "the clock was set back");
    }
}
