//! Tokens of programs: named, shown once, kept as digests, revoked one by one. The owner's own token is another file's.
//!
//! A token has 256 random bits, so nobody finds it by guessing, however fast the digest is; a slow one would only slow down calls.

use super::ledger::{Broken, Ledger};
use super::seal::{self, Seal};
use super::uses::Uses;
use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result};
use crate::base::paths::Paths;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What every token begins with, so that a person and a scanner of files can tell what it is.
const PREFIX: &str = "lap_";
/// Most tokens of a root.
const MOST: usize = 100;
/// Longest name, in characters.
const LONGEST: usize = 64;

/// A token as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// What it is revoked by: 12 hexadecimal digits.
    pub id: String,
    /// What its owner calls it.
    pub name: Arc<str>,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: i64,
    /// When it was last used, to the hour; `None` where it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_ms: Option<i64>,
    seal: Seal,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct All {
    tokens: Vec<Token>,
}

/// The tokens of a root.
pub struct Tokens {
    ledger: Ledger<All>,
    clock: Clock,
    /// By the id.
    uses: Uses<String>,
}

impl Tokens {
    /// The tokens of the root at `paths`, whether a host runs there or not.
    #[must_use]
    pub fn of(paths: &Paths, clock: Clock) -> Tokens {
        let ledger = Ledger::at(paths.webui().join("tokens.json"), Broken::Stays);
        Tokens { ledger, clock, uses: Uses::default() }
    }

    /// All tokens, in the order in which they were made.
    #[must_use]
    pub fn list(&self) -> Vec<Token> {
        let mut all = self.ledger.read().tokens.clone();
        for token in &mut all {
            token.used_ms = token.used_ms.max(self.uses.last(&token.id));
        }
        all
    }

    /// Makes a token, and gives it with what is kept of it. It is not to be had again. It waits for the disk.
    ///
    /// # Errors
    /// `invalid_arguments` for a name that is empty, longer than 64 characters, not on one line, or `owner`; `conflict` for one
    /// that is taken; `quota` for more than 100 tokens; what the file system says.
    pub fn add(&self, name: &str) -> Result<(String, Token)> {
        let name = name.trim();
        let fits = !name.is_empty() && name.chars().count() <= LONGEST && !name.chars().any(char::is_control);
        if !fits {
            return Err(Error::invalid(format!("a token's name is 1 to {LONGEST} characters on one line"))
                .hint("name it after the program that will use it"));
        }
        if name.eq_ignore_ascii_case("owner") {
            return Err(Error::invalid("`owner` is the name of whoever owns this host").hint("choose another name"));
        }
        let secret = format!("{PREFIX}{}", seal::fresh()?);
        let token = Token {
            id: seal::name()?,
            name: name.into(),
            made_ms: self.clock.unix_ms(),
            used_ms: None,
            seal: Seal::of(&secret),
        };
        self.ledger.change(|all| {
            if all.tokens.iter().any(|t| *t.name == *token.name) {
                return Err(Error::new(Kind::Conflict, format!("there is a token `{name}` already"))
                    .hint("choose another name, or revoke the old one first"));
            }
            if all.tokens.len() >= MOST {
                return Err(Error::new(Kind::Quota, format!("there are {MOST} tokens already"))
                    .hint("revoke those that nothing uses"));
            }
            all.tokens.push(token.clone());
            Ok(())
        })?;
        Ok((secret, token))
    }

    /// Takes a token away, by its id or its name; whoever shows it is turned away at once, by every host of the root. It waits for
    /// the disk.
    ///
    /// # Errors
    /// `not_found`, and what the file system says.
    pub fn revoke(&self, id: &str) -> Result<Token> {
        self.ledger.change(|all| {
            let found =
                all.tokens.iter().position(|t| t.id == id).or_else(|| all.tokens.iter().position(|t| *t.name == *id));
            found.map(|at| all.tokens.remove(at)).ok_or_else(|| {
                // What is given could be the token itself, and is not repeated.
                Error::not_found("there is no token of that id or name").hint("lapidary tokens list")
            })
        })
    }

    /// The token that `secret` is.
    pub(super) fn find(&self, secret: &str) -> Option<Token> {
        if !secret.starts_with(PREFIX) {
            return None;
        }
        let seal = Seal::of(secret);
        self.ledger.read().tokens.iter().find(|t| t.seal == seal).cloned()
    }

    /// Whether a token of this id is there.
    pub(super) fn has(&self, id: &str) -> bool {
        self.ledger.read().tokens.iter().any(|t| t.id == id)
    }

    /// Notes that a token is used now; tells whether that should be written, which happens once an hour.
    pub(super) fn note_use(&self, token: &Token) -> bool {
        self.uses.note(token.id.clone(), token.used_ms, self.clock.unix_ms())
    }

    /// Writes when a token was last used. It waits for the disk.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn write_use(&self, id: &str) -> Result<()> {
        let used = self.uses.last(&id.to_owned());
        self.ledger.change(|all| {
            if let Some(token) = all.tokens.iter_mut().find(|t| t.id == id) {
                token.used_ms = token.used_ms.max(used);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::uses::TOUCH_MS;
    use super::*;

    fn tokens() -> (tempfile::TempDir, Clock, Tokens) {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::manual(1_800_000_000_000);
        let tokens = Tokens::of(&Paths::at(dir.path()), clock.clone());
        (dir, clock, tokens)
    }

    #[test]
    fn a_token_is_shown_once_and_known_until_it_is_revoked_anywhere() {
        let (dir, clock, tokens) = tokens();
        let other = Tokens::of(&Paths::at(dir.path()), clock);
        let (secret, token) = other.add(" editor ").unwrap();
        assert_eq!((&*token.name, token.id.len()), ("editor", 12));
        assert_eq!(tokens.find(&secret), Some(token.clone()));
        for bad in ["", "lap_", &secret[4..], &format!("{secret}x"), &token.id, "editor"] {
            assert_eq!(tokens.find(bad), None, "{bad}");
        }
        let text = std::fs::read_to_string(dir.path().join("user/webui/tokens.json")).unwrap();
        assert!(!text.contains(&secret[4..]) && text.contains("editor"));
        assert_eq!(other.revoke("unknown").unwrap_err().kind(), Kind::NotFound);
        other.revoke(&token.id).unwrap();
        assert_eq!(tokens.find(&secret), None);
        let (_, token) = other.add("editor").unwrap();
        assert_eq!(tokens.revoke("editor").unwrap(), token);
        assert!(other.list().is_empty());
    }

    #[test]
    fn names_are_told_apart_and_fit_on_a_line() {
        let (_dir, _clock, tokens) = tokens();
        let kind = |name: &str| tokens.add(name).map_err(|e| e.kind()).err();
        let long = "é".repeat(LONGEST);
        let rows = [
            ("a", None),
            ("a", Some(Kind::Conflict)),
            (" a", Some(Kind::Conflict)),
            ("A", None),
            ("my laptop's editor", None),
            (&long, None),
            (&format!("{long}x"), Some(Kind::InvalidArguments)),
            ("", Some(Kind::InvalidArguments)),
            ("  ", Some(Kind::InvalidArguments)),
            ("a\nb", Some(Kind::InvalidArguments)),
            ("owner", Some(Kind::InvalidArguments)),
            ("Owner", Some(Kind::InvalidArguments)),
        ];
        for (name, expected) in rows {
            assert_eq!(kind(name), expected, "{name:?}");
        }
        for n in tokens.list().len()..MOST {
            tokens.add(&format!("n{n}")).unwrap();
        }
        assert_eq!(kind("one more"), Some(Kind::Quota));
    }

    #[test]
    fn the_last_use_is_known_to_the_hour_and_written_once_in_it() {
        let (dir, clock, tokens) = tokens();
        let (secret, token) = tokens.add("a").unwrap();
        let mut writes = 0;
        for _ in 0..180 {
            clock.advance(60_000);
            if tokens.note_use(&tokens.find(&secret).unwrap()) {
                writes += 1;
                tokens.write_use(&token.id).unwrap();
            }
        }
        assert_eq!(writes, 3);
        let other = Tokens::of(&Paths::at(dir.path()), clock.clone());
        assert!(other.list()[0].used_ms.is_some_and(|used| clock.unix_ms() - used <= TOUCH_MS));
    }
}
