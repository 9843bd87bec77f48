//! Digests, base64, random bytes and UUIDs: bytes in, text out. Keeps nothing and knows no scripts.

use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result};
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::{DecodeError, Engine as _};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Digest as _;
use std::fmt::Write as _;

/// Most random bytes of one call: 1 MiB.
pub const MAX_RANDOM: usize = 1 << 20;

/// The SHA-256 of `bytes` in lower-case hex, 64 characters.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(&sha2::Sha256::digest(bytes))
}

/// The SHA-1 of `bytes` in lower-case hex, 40 characters. Broken for signatures; here for APIs that want it.
#[must_use]
pub fn sha1(bytes: &[u8]) -> String {
    hex(&sha1::Sha1::digest(bytes))
}

/// The MD5 of `bytes` in lower-case hex, 32 characters. Broken for signatures; here for APIs that want it.
#[must_use]
pub fn md5(bytes: &[u8]) -> String {
    hex(&md5::Md5::digest(bytes))
}

/// The HMAC-SHA-256 of `bytes` under `key` in lower-case hex, 64 characters.
#[must_use]
pub fn hmac_sha256(key: &[u8], bytes: &[u8]) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key).expect("hmac takes a key of any length");
    mac.update(bytes);
    hex(&mac.finalize().into_bytes())
}

/// Bytes as lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Standard base64 with padding.
#[must_use]
pub fn encode_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Reads base64 of either alphabet, with or without padding; white space is skipped.
///
/// # Errors
/// `invalid_arguments` naming the place, in bytes of the text without white space.
pub fn decode_base64(text: &str) -> Result<Vec<u8>> {
    const TOLERANT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let plain: Vec<u8> = text
        .bytes()
        .filter(|b| !b.is_ascii_whitespace())
        .map(|b| match b {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        })
        .collect();
    TOLERANT.decode(plain).map_err(|e| {
        let why = match e {
            DecodeError::InvalidByte(at, _) => format!("a character that is not base64 at offset {at}"),
            DecodeError::InvalidLength(n) => format!("{n} characters cannot be a whole number of bytes"),
            DecodeError::InvalidLastSymbol { .. } => "the last character holds bits that belong to no byte".to_owned(),
            DecodeError::InvalidPadding => "the padding is wrong".to_owned(),
        };
        Error::invalid(format!("not base64: {why}"))
    })
}

/// `count` bytes of the operating system's randomness.
///
/// # Errors
/// `too_large` above [`MAX_RANDOM`]; `internal` where the system has no randomness to give.
pub fn random_bytes(count: usize) -> Result<Vec<u8>> {
    if count > MAX_RANDOM {
        return Err(Error::new(Kind::TooLarge, format!("{count} random bytes are more than {MAX_RANDOM} at once")));
    }
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes).map_err(|e| Error::internal(format!("the system gives no randomness: {e}")))?;
    Ok(bytes)
}

/// A random UUID, such as `f47ac10b-58cc-4372-a567-0e02b2c3d479`.
#[must_use]
pub fn uuid_v4() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// A UUID that sorts by the clock's millisecond, then at random.
#[must_use]
pub fn uuid_v7(clock: &Clock) -> String {
    let ms = u64::try_from(clock.unix_ms()).unwrap_or(0);
    let time =
        uuid::Timestamp::from_unix(uuid::NoContext, ms / 1000, u32::try_from(ms % 1000).unwrap_or(0) * 1_000_000);
    uuid::Uuid::new_v7(time).to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_the_published_ones() {
        type Digest = fn(&[u8]) -> String;
        let table: [(Digest, &str, &str); 8] = [
            (sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (sha1, "", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            (sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (md5, "", "d41d8cd98f00b204e9800998ecf8427e"),
            (md5, "abc", "900150983cd24fb0d6963f7d28e17f72"),
            (
                |b| hmac_sha256(b"Jefe", b),
                "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (|b| hmac_sha256(b"", b), "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
        ];
        for (digest, input, want) in table {
            assert_eq!(digest(input.as_bytes()), want, "{input:?}");
        }
        let long_key = vec![0xaa; 131];
        assert_eq!(
            hmac_sha256(&long_key, b"Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn base64_is_read_in_both_alphabets_with_or_without_padding_and_with_white_space() {
        let table: &[(&str, Option<&[u8]>)] = &[
            ("", Some(b"")),
            ("Zg==", Some(b"f")),
            ("Zg=", Some(b"f")),
            ("Zg", Some(b"f")),
            ("Zm9vYg==", Some(b"foob")),
            ("Zm9v\nYg==\n", Some(b"foob")),
            (" Zm 9v ", Some(b"foo")),
            ("+/8=", Some(&[0xfb, 0xff])),
            ("-_8", Some(&[0xfb, 0xff])),
            ("Z", None),
            ("Zg===", None),
            ("=Zg", None),
            ("Zm9v*", None),
            ("Zm9vü", None),
            ("Zh==", None),
        ];
        for (text, want) in table {
            let got = decode_base64(text);
            assert_eq!(got.as_deref().ok(), *want, "{text:?}");
            if let Err(error) = got {
                assert_eq!(error.code(), "invalid_arguments");
            }
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode_base64(&encode_base64(&all)).unwrap(), all);
    }

    #[test]
    fn random_bytes_come_in_the_asked_number_and_differ() {
        assert_eq!(random_bytes(0).unwrap(), Vec::<u8>::new());
        let (a, b) = (random_bytes(32).unwrap(), random_bytes(32).unwrap());
        assert_eq!((a.len(), b.len()), (32, 32));
        assert_ne!(a, b);
        assert_eq!(random_bytes(MAX_RANDOM + 1).unwrap_err().code(), "too_large");
    }

    #[test]
    fn uuids_bear_their_version_and_the_seventh_sorts_by_the_clock() {
        let clock = Clock::manual(1_700_000_000_123);
        let early = uuid_v7(&clock);
        clock.advance(1);
        let late = uuid_v7(&clock);
        assert!(early < late, "{early} {late}");
        assert!(early.starts_with("018bcfe5-687b-7"), "{early}");
        assert_eq!(uuid_v4().as_bytes()[14], b'4');
        assert_ne!(uuid_v4(), uuid_v4());
    }
}
