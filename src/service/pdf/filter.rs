//! What packs the streams of a PDF file, undone with a bound on what comes out. Pictures stay packed: they hold no text.

use super::Ask;
use super::object::{Dict, Value};
use crate::base::error::{Error, Kind, Result};
use std::io::Read;

/// Most bytes that one stream may unpack to.
pub(super) const MAX_UNPACKED: usize = 16 << 20;
/// Most filters one after the other.
const MAX_FILTERS: usize = 4;

/// The content of a stream by its filters' names and parameters; `None` where a filter is of pictures, or unknown.
///
/// # Errors
/// `too_large` past [`MAX_UNPACKED`]; those of `ask`.
pub(super) fn unpack(raw: Vec<u8>, filters: &[(Vec<u8>, Dict)], ask: Ask) -> Result<Option<Vec<u8>>> {
    if filters.len() > MAX_FILTERS {
        return Ok(None);
    }
    let mut bytes = raw;
    for (name, parameters) in filters {
        bytes = match name.as_slice() {
            b"FlateDecode" | b"Fl" => predicted(inflate(&bytes, ask)?, parameters, ask)?,
            b"LZWDecode" | b"LZW" => {
                let early = parameters.get(b"EarlyChange").and_then(Value::integer) != Some(0);
                predicted(lzw(&bytes, early, ask)?, parameters, ask)?
            }
            b"ASCII85Decode" | b"A85" => ascii85(&bytes, ask)?,
            b"ASCIIHexDecode" | b"AHx" => {
                ask(bytes.len() * 2)?;
                ascii_hex(&bytes)
            }
            b"RunLengthDecode" | b"RL" => run_length(&bytes, ask)?,
            // Access to the file is unlocked before this.
            b"Crypt" => bytes,
            _ => return Ok(None),
        };
    }
    if bytes.len() > MAX_UNPACKED {
        return Err(too_large());
    }
    Ok(Some(bytes))
}

fn too_large() -> Error {
    Error::new(
        Kind::TooLarge,
        format!("a part of the PDF is larger than {} MiB once it is unpacked", MAX_UNPACKED >> 20),
    )
}

/// Makes room for what comes, before it comes.
fn grow(out: &mut Vec<u8>, more: usize, ask: Ask) -> Result<()> {
    let want = out.len() + more;
    if want > MAX_UNPACKED {
        return Err(too_large());
    }
    if want > out.capacity() {
        let size = want.max(out.capacity() * 2).min(MAX_UNPACKED);
        ask(size)?;
        out.reserve_exact(size - out.len());
    }
    Ok(())
}

fn inflate(bytes: &[u8], ask: Ask) -> Result<Vec<u8>> {
    let out = drained(flate2::read::ZlibDecoder::new(bytes), ask)?;
    // Some writers leave the head out, or write a wrong one.
    if out.is_empty() && bytes.len() > 2 {
        let bare = drained(flate2::read::DeflateDecoder::new(&bytes[2..]), ask)?;
        return if bare.is_empty() { drained(flate2::read::DeflateDecoder::new(bytes), ask) } else { Ok(bare) };
    }
    Ok(out)
}

/// All that can be read; what is broken behind it is left.
fn drained(mut from: impl Read, ask: Ask) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut chunk = [0_u8; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut chunk) {
        ask(0)?;
        grow(&mut out, n, ask)?;
        out.extend_from_slice(&chunk[..n]);
    }
    Ok(out)
}

fn lzw(bytes: &[u8], early: bool, ask: Ask) -> Result<Vec<u8>> {
    use weezl::{BitOrder, LzwStatus, decode::Decoder};
    let mut decoder =
        if early { Decoder::with_tiff_size_switch(BitOrder::Msb, 8) } else { Decoder::new(BitOrder::Msb, 8) };
    let (mut out, mut rest) = (Vec::new(), bytes);
    let mut chunk = [0_u8; 16 << 10];
    loop {
        ask(0)?;
        let done = decoder.decode_bytes(rest, &mut chunk);
        rest = &rest[done.consumed_in..];
        grow(&mut out, done.consumed_out, ask)?;
        out.extend_from_slice(&chunk[..done.consumed_out]);
        match done.status {
            Ok(LzwStatus::Ok) if done.consumed_in + done.consumed_out > 0 => {}
            _ => return Ok(out),
        }
    }
}

fn ascii85(bytes: &[u8], ask: Ask) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut group: Vec<u32> = Vec::with_capacity(5);
    for &byte in bytes {
        match byte {
            b'z' if group.is_empty() => {
                grow(&mut out, 4, ask)?;
                out.extend([0; 4]);
            }
            b'!'..=b'u' => {
                group.push(u32::from(byte - b'!'));
                if group.len() == 5 {
                    grow(&mut out, 4, ask)?;
                    out.extend(word85(&group));
                    group.clear();
                }
            }
            b'~' => break,
            _ => {}
        }
    }
    if group.len() > 1 {
        let kept = group.len() - 1;
        group.resize(5, 84);
        out.extend(&word85(&group)[..kept]);
    }
    Ok(out)
}

fn word85(group: &[u32]) -> [u8; 4] {
    group.iter().fold(0_u32, |word, digit| word.wrapping_mul(85).wrapping_add(*digit)).to_be_bytes()
}

fn ascii_hex(bytes: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = bytes
        .iter()
        .take_while(|byte| **byte != b'>')
        .filter_map(|byte| char::from(*byte).to_digit(16))
        .filter_map(|digit| u8::try_from(digit).ok())
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect()
}

fn run_length(bytes: &[u8], ask: Ask) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&length) = bytes.get(at) {
        at += 1;
        match length {
            128 => break,
            0..=127 => {
                let run = &bytes[at..bytes.len().min(at + usize::from(length) + 1)];
                grow(&mut out, run.len(), ask)?;
                out.extend_from_slice(run);
                at += run.len();
            }
            _ => {
                let Some(&byte) = bytes.get(at) else { break };
                let count = 257 - usize::from(length);
                grow(&mut out, count, ask)?;
                out.resize(out.len() + count, byte);
                at += 1;
            }
        }
    }
    Ok(out)
}

/// Undoes the differences between rows that make tables pack well.
fn predicted(mut bytes: Vec<u8>, parameters: &Dict, ask: Ask) -> Result<Vec<u8>> {
    let number = |key: &[u8], default: usize| {
        let given = parameters.get(key).and_then(Value::integer);
        given.and_then(|n| usize::try_from(n).ok()).filter(|n| (1..=1 << 20).contains(n)).unwrap_or(default)
    };
    let (columns, colours, bits) =
        (number(b"Columns", 1), number(b"Colors", 1).min(32), number(b"BitsPerComponent", 8).min(16));
    let row = (columns * colours * bits).div_ceil(8);
    let pixel = (colours * bits).div_ceil(8);
    Ok(match number(b"Predictor", 1) {
        2 if bits == 8 => {
            for row in bytes.chunks_mut(row) {
                for at in pixel..row.len() {
                    row[at] = row[at].wrapping_add(row[at - pixel]);
                }
            }
            bytes
        }
        10..=15 => {
            ask(bytes.len())?;
            png_rows(&bytes, row, pixel)
        }
        _ => bytes,
    })
}

fn png_rows(bytes: &[u8], length: usize, pixel: usize) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    for packed in bytes.chunks(length + 1) {
        let kind = packed[0];
        let start = out.len();
        for (at, &byte) in packed[1..].iter().enumerate() {
            let left = if at >= pixel { out[start + at - pixel] } else { 0 };
            let up = if start >= length { out[start - length + at] } else { 0 };
            let corner = if at >= pixel && start >= length { out[start - length + at - pixel] } else { 0 };
            let guess = match kind {
                1 => left,
                2 => up,
                3 => ((u16::from(left) + u16::from(up)) / 2) as u8,
                4 => paeth(left, up, corner),
                _ => 0,
            };
            out.push(byte.wrapping_add(guess));
        }
    }
    out
}

fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let estimate = i16::from(left) + i16::from(up) - i16::from(corner);
    let off = |value: u8| (estimate - i16::from(value)).abs();
    if off(left) <= off(up) && off(left) <= off(corner) {
        left
    } else if off(up) <= off(corner) {
        up
    } else {
        corner
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Write;

    fn on(_: usize) -> Result<()> {
        Ok(())
    }

    fn undo(name: &str, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
        unpack(bytes.to_vec(), &[(name.as_bytes().to_vec(), Dict::default())], &on)
    }

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn each_filter_is_undone() {
        let rows: [(&str, &[u8], &[u8]); 7] = [
            ("ASCIIHexDecode", b"48 65 6c6C 6f>x", b"Hello"),
            ("ASCII85Decode", b"87cURD]i,\"Ebo80~>", b"Hello World!"),
            ("A85", b"87cURDZ~>", b"Hello"),
            ("RunLengthDecode", &[2, b'a', b'b', b'c', 254, b'x', 128, 9], b"abcxxx"),
            ("LZWDecode", &[0x80, 0x0b, 0x60, 0x50, 0x22, 0x0c, 0x0c, 0x85, 0x01], b"-----A---B"),
            ("FlateDecode", &deflated(b"Hello"), b"Hello"),
            ("FlateDecode", &deflated(b"Hello")[2..], b"Hello"),
        ];
        for (name, packed, plain) in rows {
            assert_eq!(undo(name, packed).unwrap().unwrap(), plain, "{name}");
        }
        assert_eq!(undo("DCTDecode", b"x").unwrap(), None);
        let cut = deflated(&b"Hello ".repeat(1_000));
        assert!(undo("FlateDecode", &cut[..cut.len() - 6]).unwrap().unwrap().starts_with(b"Hello Hello"));
    }

    #[test]
    fn rows_with_a_predictor_are_put_together_again() {
        let parameters = |predictor: i64| {
            Dict(vec![(b"Predictor".to_vec(), Value::Integer(predictor)), (b"Columns".to_vec(), Value::Integer(3))])
        };
        let undone = |bytes: &[u8], predictor| predicted(bytes.to_vec(), &parameters(predictor), &on).unwrap();
        assert_eq!(undone(&[0, 1, 2, 3, 2, 1, 1, 1, 1, 5, 1, 1], 12), [1, 2, 3, 2, 3, 4, 5, 6, 7]);
        assert_eq!(undone(&[3, 2, 2, 2, 4, 1, 1, 1], 15), [2, 3, 3, 3, 4, 5]);
        assert_eq!(undone(&[1, 1, 1, 2, 1, 1], 2), [1, 2, 3, 2, 3, 4]);
        assert_eq!(undone(&[7, 7], 1), [7, 7]);
    }

    #[test]
    fn what_unpacks_without_end_is_refused_before_it_fills_the_memory() {
        let bomb = deflated(&vec![0; MAX_UNPACKED + 1]);
        assert!(bomb.len() < 1 << 20);
        assert_eq!(undo("FlateDecode", &bomb).unwrap_err().kind(), Kind::TooLarge);
        let twice = [(b"FlateDecode".to_vec(), Dict::default()), (b"FlateDecode".to_vec(), Dict::default())];
        assert_eq!(unpack(deflated(&bomb), &twice, &on).unwrap_err().kind(), Kind::TooLarge);
        assert_eq!(undo("ASCII85Decode", &vec![b'z'; MAX_UNPACKED]).unwrap_err().kind(), Kind::TooLarge);
        assert_eq!(undo("RunLengthDecode", &[129, 0].repeat(1 << 20)).unwrap_err().kind(), Kind::TooLarge);
        let stop = |_: usize| Err(Error::new(Kind::Cancelled, "enough"));
        let filters = [(b"FlateDecode".to_vec(), Dict::default())];
        assert_eq!(unpack(deflated(b"x"), &filters, &stop).unwrap_err().kind(), Kind::Cancelled);
    }
}
