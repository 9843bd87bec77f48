//! The owner's own token: given by the owner, or made once and kept in a file that only the owner can read.

use super::seal::{self, Seal};
use crate::base::error::{Error, Kind, Result, io};
use crate::base::file::{self, Stamp};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Shortest token that is taken: a guessable one is as good as none.
const SHORTEST: usize = 16;
/// Longest token that is read.
const LONGEST: u64 = 4096;

/// Where the token came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The owner set it in the environment.
    Environment,
    /// The owner set it in `lapidary.toml`.
    Config,
    /// The host made it, now or earlier.
    Kept,
}

/// Checks a token that the owner set in `place`.
pub(super) fn given(token: &str, place: &str) -> Result<String> {
    let token = token.trim();
    if token.len() < SHORTEST || !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(Error::invalid(format!("the token in {place} is not usable"))
            .hint(format!("a token is at least {SHORTEST} letters, digits and signs without a space")));
    }
    Ok(token.to_owned())
}

/// The owner's token, as what it is compared by.
pub(super) struct Owned {
    source: Source,
    kind: Of,
}

enum Of {
    Given(Seal),
    /// The file decides, as it is now: taking it away shuts out whoever knows what it held.
    File(PathBuf, Mutex<Option<(Stamp, Seal)>>),
}

impl Owned {
    /// The token that the owner gave.
    pub(super) fn given(token: &str, source: Source) -> Owned {
        Owned { source, kind: Of::Given(Seal::of(token)) }
    }

    /// The token in a file, which is made where it is missing.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn kept(path: &Path) -> Result<Owned> {
        kept(path)?;
        Ok(Owned { source: Source::Kept, kind: Of::File(path.to_owned(), Mutex::new(None)) })
    }

    /// Where it came from.
    pub(super) fn source(&self) -> Source {
        self.source
    }

    /// Whether `token` is the owner's. It takes the same time for every guess.
    pub(super) fn opens(&self, token: &str) -> bool {
        match &self.kind {
            Of::Given(seal) => seal.is_of(token),
            Of::File(path, last) => current(path, last).is_some_and(|seal| seal.is_of(token)),
        }
    }
}

fn current(path: &Path, last: &Mutex<Option<(Stamp, Seal)>>) -> Option<Seal> {
    let stamp = Stamp::of(path).ok().flatten()?;
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, seal)) = last.filter(|(before, _)| *before == stamp) {
        return Some(seal);
    }
    let seal = read(path).ok().map(|token| Seal::of(&token));
    // A file of this moment may be written again under the same date.
    *last = seal.filter(|_| stamp.settled()).map(|seal| (stamp, seal));
    seal
}

/// The token that stands in the file.
pub(super) fn read(path: &Path) -> Result<String> {
    given(&file::read_text_capped(path, LONGEST)?, "the file")
}

/// The token in the file, made on first use.
fn kept(path: &Path) -> Result<String> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|e| io(format_args!("cannot make the folder `{}`", folder.display()), &e))?;
    }
    file::with_lock(path, || {
        match file::read_text_capped(path, LONGEST) {
            // What a person put there counts too; half of a file that a crash left does not.
            Ok(text) if given(&text, "the file").is_ok() => {
                file::close_to_others(path)?;
                return Ok(text.trim().to_owned());
            }
            Ok(_) => {}
            Err(e) if e.kind() == Kind::NotFound => {}
            Err(e) => return Err(e),
        }
        let token = seal::fresh()?;
        file::write_private(path, format!("{token}\n").as_bytes())?;
        Ok(token)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_kept_from_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("webui/token");
        let first = kept(&path).unwrap();
        assert_eq!(first.len(), 43);
        assert_eq!(kept(&path).unwrap(), first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(), 0o600);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
            kept(&path).unwrap();
            assert_eq!(mode(), 0o600);
        }
        std::fs::write(&path, "half").unwrap();
        assert_ne!(kept(&path).unwrap(), first);
    }

    #[test]
    fn the_file_decides_which_token_opens() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let owned = Owned::kept(&path).unwrap();
        let first = read(&path).unwrap();
        for _ in 0..2 {
            assert!(owned.opens(&first) && !owned.opens("") && !owned.opens(&first[1..]));
        }
        std::fs::write(&path, "a-token-of-my-own").unwrap();
        assert!(!owned.opens(&first) && owned.opens("a-token-of-my-own"));
        std::fs::write(&path, "short").unwrap();
        assert!(!owned.opens("a-token-of-my-own") && !owned.opens("short"));
        std::fs::remove_file(&path).unwrap();
        assert!(!owned.opens(&first) && !owned.opens(""));
        let given = Owned::given("a-token-of-my-own", Source::Config);
        assert!(given.opens("a-token-of-my-own") && !given.opens("another") && given.source() == Source::Config);
    }

    #[test]
    fn a_token_that_can_be_guessed_or_sent_wrong_is_refused() {
        assert_eq!(given(" 0123456789abcdef\n", "x").unwrap(), "0123456789abcdef");
        for bad in ["", "short", "0123456789 abcdef", "0123456789abcdé"] {
            let e = given(bad, "LAPIDARY_TOKEN").unwrap_err();
            assert!(e.message().contains("LAPIDARY_TOKEN") && (bad.is_empty() || !e.to_string().contains(bad)), "{e}");
        }
    }
}
