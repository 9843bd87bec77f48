//! Files that are locked against copying or printing, but open with no password: their texts and streams in the clear.
//! The formulas are the format's own; a file that wants a password is refused.

use super::object::{Dict, Value};
use crate::base::error::{Error, Result};
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use md5::{Digest, Md5};
use sha2::{Sha256, Sha384, Sha512};

/// What fills a password up to 32 bytes.
const PAD: [u8; 32] = [
    0x28, 0xbf, 0x4e, 0x5e, 0x4e, 0x75, 0x8a, 0x41, 0x64, 0x00, 0x4e, 0x56, 0xff, 0xfa, 0x01, 0x08, 0x2e, 0x2e, 0x00,
    0xb6, 0xd0, 0x68, 0x3e, 0x80, 0x2f, 0x0c, 0xa9, 0xfe, 0x64, 0x53, 0x69, 0x7a,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cipher {
    Nothing,
    Rc4,
    /// The key of each object is made of its number.
    Aes128,
    Aes256,
}

/// The key of a file, and what it is for.
pub(super) struct Lock {
    key: Vec<u8>,
    streams: Cipher,
    texts: Cipher,
}

impl Lock {
    /// Reads how a file is locked, and tries the empty password.
    ///
    /// # Errors
    /// `invalid_arguments` for a file that wants a password, or is locked in a way that is not known.
    pub fn open(dict: &Dict, id: &[u8]) -> Result<Lock> {
        let number = |key: &[u8]| dict.get(key).and_then(Value::integer);
        let text = |key: &[u8]| dict.get(key).and_then(Value::text).unwrap_or_default();
        let (version, revision) = (number(b"V").unwrap_or(0), number(b"R").unwrap_or(0));
        if !dict.is(b"Filter", b"Standard") || !matches!(version, 1 | 2 | 4 | 5) {
            return Err(Error::invalid("the PDF is locked in a way that cannot be read"));
        }
        let (streams, texts) = match version {
            1 | 2 => (Cipher::Rc4, Cipher::Rc4),
            _ => (method(dict, b"StmF")?, method(dict, b"StrF")?),
        };
        let key = if version == 5 {
            newer_key(revision, text(b"U"), text(b"UE"))
        } else {
            let bits = if version == 1 { 40 } else { number(b"Length").unwrap_or(if version == 4 { 128 } else { 40 }) };
            // Some writers count bytes.
            let length = usize::try_from(if bits < 40 { bits } else { bits / 8 }).unwrap_or(16).clamp(5, 16);
            older_key(dict, id, revision, length)
        };
        let locked = || Error::invalid("the PDF is locked with a password").hint("ask the user for an unlocked copy");
        Ok(Lock { key: key.ok_or_else(locked)?, streams, texts })
    }

    /// The bytes of a stream in the clear.
    pub fn bytes(&self, bytes: &[u8], id: (u32, u16)) -> Vec<u8> {
        self.clear(self.streams, bytes, id)
    }

    /// Clears all texts inside a value.
    pub fn texts(&self, value: &mut Value, id: (u32, u16)) {
        match value {
            Value::Text(text) => *text = self.clear(self.texts, text, id),
            Value::Array(items) => items.iter_mut().for_each(|item| self.texts(item, id)),
            Value::Map(map) => map.0.iter_mut().for_each(|(_, value)| self.texts(value, id)),
            _ => {}
        }
    }

    fn clear(&self, cipher: Cipher, bytes: &[u8], (number, generation): (u32, u16)) -> Vec<u8> {
        let object_key = |salt: &[u8]| {
            let mut hash = Md5::new();
            hash.update(&self.key);
            hash.update(&number.to_le_bytes()[..3]);
            hash.update(generation.to_le_bytes());
            hash.update(salt);
            hash.finalize()[..(self.key.len() + 5).min(16)].to_vec()
        };
        match cipher {
            Cipher::Nothing => bytes.to_vec(),
            Cipher::Rc4 => rc4(&object_key(b""), bytes),
            Cipher::Aes128 => without_padding(aes128_clear(&object_key(b"sAlT"), bytes)),
            Cipher::Aes256 => {
                let Some((iv, rest)) = bytes.split_first_chunk::<16>() else { return Vec::new() };
                without_padding(aes256_clear(&self.key, *iv, rest))
            }
        }
    }
}

fn method(dict: &Dict, key: &[u8]) -> Result<Cipher> {
    let name = match dict.get(key).and_then(Value::name) {
        None | Some(b"Identity") => return Ok(Cipher::Nothing),
        Some(name) => name,
    };
    let filter = dict.get(b"CF").and_then(Value::map).and_then(|all| all.get(name)).and_then(Value::map);
    match filter.and_then(|filter| filter.get(b"CFM")).and_then(Value::name) {
        None | Some(b"None") => Ok(Cipher::Nothing),
        Some(b"V2") => Ok(Cipher::Rc4),
        Some(b"AESV2") => Ok(Cipher::Aes128),
        Some(b"AESV3") => Ok(Cipher::Aes256),
        Some(_) => Err(Error::invalid("the PDF is locked in a way that cannot be read")),
    }
}

/// The key of a file of revision 2 to 4 with no password; `None` where it has one.
fn older_key(dict: &Dict, id: &[u8], revision: i64, length: usize) -> Option<Vec<u8>> {
    let text = |key: &[u8]| dict.get(key).and_then(Value::text);
    let (owner, user) = (text(b"O")?, text(b"U")?);
    // Written as a number with or without a sign.
    let rights = dict.get(b"P").and_then(Value::integer)? as u32;
    let mut hash = Md5::new();
    hash.update(PAD);
    hash.update(owner.get(..32)?);
    hash.update(rights.to_le_bytes());
    hash.update(id);
    if revision >= 4 && dict.get(b"EncryptMetadata") == Some(&Value::Bool(false)) {
        hash.update([0xff; 4]);
    }
    let mut key = hash.finalize()[..length].to_vec();
    if revision < 3 {
        return (rc4(&key, &PAD) == user.get(..32)?).then_some(key);
    }
    for _ in 0..50 {
        key = Md5::digest(&key)[..length].to_vec();
    }
    let mut hash = Md5::new();
    hash.update(PAD);
    hash.update(id);
    let mut proof = hash.finalize().to_vec();
    for round in 0..20_u8 {
        let turned: Vec<u8> = key.iter().map(|byte| byte ^ round).collect();
        proof = rc4(&turned, &proof);
    }
    (proof == user.get(..16)?).then_some(key)
}

/// The key of a file of revision 5 or 6 with no password; `None` where it has one.
fn newer_key(revision: i64, user: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let hash = |salt: &[u8]| if revision >= 6 { slow_hash(salt) } else { Sha256::digest(salt).to_vec() };
    if hash(user.get(32..40)?) != user.get(..32)? {
        return None;
    }
    Some(aes256_clear(&hash(user.get(40..48)?), [0; 16], sealed.get(..32)?))
}

/// The hash of the empty password that takes its time, of revision 6.
fn slow_hash(salt: &[u8]) -> Vec<u8> {
    let mut key = Sha256::digest(salt).to_vec();
    for round in 1_usize.. {
        let all = key.repeat(64);
        let mixed = aes128_locked(&key[..16], &key[16..32], &all);
        let choice: u32 = mixed[..16].iter().map(|byte| u32::from(*byte)).sum();
        key = match choice % 3 {
            0 => Sha256::digest(&mixed).to_vec(),
            1 => Sha384::digest(&mixed).to_vec(),
            _ => Sha512::digest(&mixed).to_vec(),
        };
        let last = usize::from(mixed.last().copied().unwrap_or_default());
        // At the latest after 287 rounds: the last byte is at most 255.
        if round >= 64 && last + 32 <= round {
            break;
        }
    }
    key.truncate(32);
    key
}

fn rc4(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut state: [u8; 256] = std::array::from_fn(|at| at as u8);
    let mut j = 0_u8;
    for i in 0..256 {
        j = j.wrapping_add(state[i]).wrapping_add(key[i % key.len()]);
        state.swap(i, usize::from(j));
    }
    let (mut i, mut j) = (0_u8, 0_u8);
    bytes
        .iter()
        .map(|byte| {
            i = i.wrapping_add(1);
            j = j.wrapping_add(state[usize::from(i)]);
            state.swap(usize::from(i), usize::from(j));
            byte ^ state[usize::from(state[usize::from(i)].wrapping_add(state[usize::from(j)]))]
        })
        .collect()
}

/// Bytes that begin with what the chain of blocks begins with.
fn aes128_clear(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let (Ok(cipher), Some((iv, rest))) = (aes::Aes128::new_from_slice(key), bytes.split_first_chunk::<16>()) else {
        return Vec::new();
    };
    chained(*iv, rest, |block| cipher.decrypt_block(block.into()))
}

fn aes256_clear(key: &[u8], iv: [u8; 16], bytes: &[u8]) -> Vec<u8> {
    let Ok(cipher) = aes::Aes256::new_from_slice(key) else { return Vec::new() };
    chained(iv, bytes, |block| cipher.decrypt_block(block.into()))
}

fn chained(mut before: [u8; 16], bytes: &[u8], clear: impl Fn(&mut [u8; 16])) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for locked in bytes.as_chunks::<16>().0 {
        let mut block = *locked;
        clear(&mut block);
        out.extend(block.iter().zip(before).map(|(a, b)| a ^ b));
        before = *locked;
    }
    out
}

fn aes128_locked(key: &[u8], iv: &[u8], bytes: &[u8]) -> Vec<u8> {
    let Ok(cipher) = aes::Aes128::new_from_slice(key) else { return Vec::new() };
    let mut before = [0; 16];
    before.copy_from_slice(&iv[..16]);
    let mut out = Vec::with_capacity(bytes.len());
    for block in bytes.as_chunks::<16>().0 {
        let mut block = *block;
        block.iter_mut().zip(before).for_each(|(a, b)| *a ^= b);
        cipher.encrypt_block((&mut block).into());
        out.extend_from_slice(&block);
        before = block;
    }
    out
}

fn without_padding(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(&count) = bytes.last()
        && (1..=16).contains(&count)
    {
        bytes.truncate(bytes.len().saturating_sub(usize::from(count)));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_cipher_is_the_known_one() {
        assert_eq!(rc4(b"Key", b"Plaintext"), [0xbb, 0xf3, 0x16, 0xe8, 0xd9, 0x40, 0xaf, 0x0a, 0xd3]);
        assert_eq!(rc4(b"Wiki", b"pedia"), [0x10, 0x21, 0xbf, 0x04, 0x20]);
    }

    #[test]
    fn padding_goes_and_short_bytes_are_nothing() {
        assert_eq!(without_padding(vec![1, 2, 3, 2]), [1, 2]);
        assert_eq!(without_padding(vec![1, 2, 77]), [1, 2, 77]);
        assert_eq!(without_padding(vec![9]), [] as [u8; 0]);
        assert_eq!(aes128_clear(&[0; 16], b"short"), [] as [u8; 0]);
        assert_eq!(aes256_clear(&[0; 32], [0; 16], b"short"), [] as [u8; 0]);
    }
}
