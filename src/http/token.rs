//! The token that programs show: given by the owner, or made once and kept in a file that only the owner can read.

use crate::base::error::{Error, Kind, Result, io};
use crate::base::file;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::path::Path;

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

/// The token in the file, made on first use.
pub(super) fn kept(path: &Path) -> Result<String> {
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
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|e| Error::internal(format!("no random numbers to make a token of: {e}")))?;
        let token = URL_SAFE_NO_PAD.encode(bytes);
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
        assert_eq!(URL_SAFE_NO_PAD.decode(&first).unwrap().len(), 32);
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
    fn a_token_that_can_be_guessed_or_sent_wrong_is_refused() {
        assert_eq!(given(" 0123456789abcdef\n", "x").unwrap(), "0123456789abcdef");
        for bad in ["", "short", "0123456789 abcdef", "0123456789abcdé"] {
            let e = given(bad, "LAPIDARY_TOKEN").unwrap_err();
            assert!(e.message().contains("LAPIDARY_TOKEN") && (bad.is_empty() || !e.to_string().contains(bad)), "{e}");
        }
    }
}
