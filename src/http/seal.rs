//! Secrets of 256 random bits, and what is kept of them: a digest that tells nothing of the secret. It knows neither files nor
//! requests.

use crate::base::error::{Error, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// A new secret: 256 random bits in 43 letters, digits, `-` and `_`.
///
/// # Errors
/// `internal` where the system has no random numbers.
pub(super) fn fresh() -> Result<String> {
    let mut bytes = [0; 32];
    fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// A short name that nobody can guess to be taken: 48 random bits in hex. It is no secret.
///
/// # Errors
/// As [`fresh`].
pub(super) fn name() -> Result<String> {
    let mut bytes = [0; 6];
    fill(&mut bytes)?;
    Ok(hex(&bytes))
}

/// Random bytes.
///
/// # Errors
/// As [`fresh`].
pub(super) fn fill(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|e| Error::internal(format!("the system has no random numbers: {e}")))
}

/// The SHA-256 digest of a secret. What has 256 random bits cannot be guessed, so a fast digest is as good as a slow one here;
/// passwords, which can be guessed, are another file's.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Seal([u8; 32]);

impl Seal {
    pub(super) fn of(secret: &str) -> Seal {
        Seal(Sha256::digest(secret.as_bytes()).into())
    }

    /// Whether this is the seal of `secret`. It takes the same time for every guess.
    pub(super) fn is_of(&self, secret: &str) -> bool {
        let other = Seal::of(secret);
        self.0.iter().zip(other.0).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
    }
}

/// Nothing of it is of use to a reader of a log.
impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(..)")
    }
}

impl Serialize for Seal {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Seal {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Seal, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.as_bytes();
        let wrong = || serde::de::Error::custom("not 64 hexadecimal digits");
        if digits.len() != 64 {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
            *byte = digit(pair[0]).zip(digit(pair[1])).map(|(high, low)| high << 4 | low).ok_or_else(wrong)?;
        }
        Ok(Seal(bytes))
    }
}

/// What a page sends with every write, so that no page of somebody else's can make it send one. It follows from the secret of the
/// session, which no page can read, and tells nothing of it.
pub(super) fn csrf(session: &str) -> String {
    URL_SAFE_NO_PAD.encode(mac(session).finalize().into_bytes())
}

/// Whether a page sent what belongs to its session. It takes the same time for every guess of the right length.
pub(super) fn is_csrf(session: &str, given: &str) -> bool {
    URL_SAFE_NO_PAD.decode(given).is_ok_and(|given| mac(session).verify_slice(&given).is_ok())
}

fn mac(session: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(session.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(b"lapidary page");
    mac
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|b| [b >> 4, b & 15]).filter_map(|d| char::from_digit(u32::from(d), 16)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_256_bits_and_is_never_the_same() {
        let (a, b) = (fresh().unwrap(), fresh().unwrap());
        assert_ne!(a, b);
        assert_eq!(URL_SAFE_NO_PAD.decode(&a).unwrap().len(), 32);
        assert_eq!((name().unwrap().len(), a.len()), (12, 43));
    }

    #[test]
    fn a_seal_tells_its_secret_from_others_and_shows_nothing() {
        let seal = Seal::of("s3cret");
        for (secret, is_it) in [("s3cret", true), ("s3cre", false), ("s3cret ", false), ("S3cret", false), ("", false)]
        {
            assert_eq!(seal.is_of(secret), is_it, "{secret}");
        }
        assert_eq!(format!("{seal:?}"), "Seal(..)");
        let text = serde_json::to_string(&seal).unwrap();
        assert_eq!(text, "\"1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0\"");
        assert_eq!(serde_json::from_str::<Seal>(&text).unwrap(), seal);
        for bad in ["\"\"", "\"1ec1\"", &text.replace('e', "g"), &text.replace("a0\"", "é\""), "1"] {
            assert!(serde_json::from_str::<Seal>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_a_page_sends_belongs_to_one_session() {
        let (one, other) = (fresh().unwrap(), fresh().unwrap());
        let token = csrf(&one);
        assert!(is_csrf(&one, &token) && !is_csrf(&other, &token) && !token.contains(&one));
        for bad in ["", "x", &token[1..], &format!("{token}A"), &one, "!"] {
            assert!(!is_csrf(&one, bad), "{bad}");
        }
    }
}
