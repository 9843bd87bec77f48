//! Files that a tool wrote into its text as base64: where they stand, and the text without them. No model reads such a run, and
//! it costs a whole context. It works on text alone; whether the rest is still a result is decided elsewhere.

use super::handles::Handles;
use crate::service::{digest, images};
use std::fmt::Write as _;
use std::ops::Range;

/// Most characters of base64 in one run that may stand in a text.
pub(super) const MOST: usize = 4096;
/// Most characters of one inside an address of the web, which servers take no longer.
const IN_ADDRESS: usize = 8192;
/// Shortest full line of base64 that is broken into lines: 64 and 76 are usual.
const LINE: usize = 60;
/// Characters of a run that are looked at.
const SAMPLE: usize = 8192;
/// How far before a run the address that it belongs to may begin.
const BEFORE: usize = 2048;

/// How files begin, beside pictures.
const BEGINNINGS: [&[u8]; 10] = [
    b"%PDF-",
    b"PK\x03\x04",
    b"\x1f\x8b\x08",
    b"RIFF",
    b"OggS",
    b"ID3",
    b"fLaC",
    b"\x7fELF",
    b"SQLite format 3",
    b"7z\xbc\xaf",
];

/// A text that had base64 in it.
pub(super) struct Stripped {
    /// The text, with a note and a handle in place of each run.
    pub(super) text: String,
    /// How many characters were left out.
    pub(super) left_out: usize,
    /// Characters of the text that are not base64.
    pub(super) readable: usize,
}

/// Puts runs of more than [`MOST`] characters behind handles. `None` where there are none.
pub(super) fn without(text: &str, handles: &Handles) -> Option<Stripped> {
    let runs = runs(text);
    if runs.is_empty() {
        return None;
    }
    let mut out = Stripped { text: String::new(), left_out: 0, readable: 0 };
    let mut copied = 0;
    for run in runs {
        out.text.push_str(&text[copied..run.start]);
        let handle = handles.keep(&text[run.clone()]);
        let _ = write!(
            out.text,
            "[{} characters of base64 left out: {handle}; pictures and files are returned as such, not as text]",
            run.len()
        );
        out.left_out += run.len();
        copied = run.end;
    }
    out.text.push_str(&text[copied..]);
    out.readable = text.len() - out.left_out;
    Some(out)
}

/// Where runs stand, in bytes. Both ends are at ASCII characters.
fn runs(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    if bytes.len() <= MOST {
        return out;
    }
    let mut at = 0;
    while at < bytes.len() {
        if !is_letter(bytes[at]) {
            at += 1;
            continue;
        }
        let run = at..run_end(bytes, at);
        at = run.end;
        if run.len() > MOST && is_encoded(bytes, &run) {
            out.push(run);
        }
    }
    out
}

/// A character of base64 in either alphabet, without what only ends it.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// Where a run ends that begins at `start`, over the breaks between lines of one length.
fn run_end(bytes: &[u8], start: usize) -> usize {
    let mut end = line_end(bytes, start);
    // The first line may be shorter where something stands before it.
    let begins_inside = start.checked_sub(1).is_some_and(|before| matches!(bytes[before], b',' | b'"' | b'\''));
    let (first, mut width) = (end - start, 0);
    loop {
        let next = end + break_length(&bytes[end..]);
        let next_end = line_end(bytes, next);
        let length = next_end - next;
        if next == end || length == 0 {
            return end;
        }
        if width == 0 {
            if length < LINE || first > length || (first < length && !begins_inside) {
                return end;
            }
            width = length;
        } else if length > width || (length < width && !length.is_multiple_of(4)) {
            return end;
        }
        end = next_end;
        if length < width {
            return end;
        }
    }
}

/// Where letters end, a `/` that JSON escaped among them; and what fills up the last four.
fn line_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        match bytes.get(at) {
            Some(byte) if is_letter(*byte) => at += 1,
            Some(b'\\') if bytes.get(at + 1) == Some(&b'/') => at += 2,
            _ => break,
        }
    }
    let fill = bytes[at..].iter().take(2).take_while(|b| **b == b'=').count();
    if at > start { at + fill } else { at }
}

/// Bytes of the end of a line, as it is or as JSON writes it.
fn break_length(rest: &[u8]) -> usize {
    let breaks: [&[u8]; 4] = [b"\r\n", b"\n", b"\\r\\n", b"\\n"];
    breaks.iter().find(|b| rest.starts_with(b)).map_or(0, |b| b.len())
}

/// Whether a run of letters is an encoded file.
fn is_encoded(bytes: &[u8], run: &Range<usize>) -> bool {
    let before = &bytes[run.start.saturating_sub(BEFORE)..run.start];
    if before.to_ascii_lowercase().ends_with(b";base64,") {
        return true;
    }
    if run.len() <= IN_ADDRESS && is_in_address(before) {
        return false;
    }
    let sample = letters(&bytes[run.start..run.end.min(run.start + SAMPLE)]);
    begins_a_file(&sample) || is_mixed(&sample)
}

/// The letters of a run without breaks of lines and escapes.
fn letters(run: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(run.len());
    let mut at = 0;
    while at < run.len() {
        let skip = break_length(&run[at..]);
        if skip == 0 && is_letter(run[at]) {
            out.push(run[at]);
        }
        at += skip.max(1);
    }
    out
}

/// Whether what stands before a run is the beginning of an address.
fn is_in_address(before: &[u8]) -> bool {
    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'<' | b'>' | b'`');
    let word = before.rsplit(ends).next().unwrap_or_default();
    word.windows(3).any(|three| three == b"://")
}

fn begins_a_file(letters: &[u8]) -> bool {
    let head: String = letters
        .iter()
        .take(512)
        .map(|b| match b {
            b'-' => '+',
            b'_' => '/',
            b => char::from(*b),
        })
        .collect();
    let Ok(head) = digest::decode_base64(&head[..head.len() / 4 * 4]) else { return false };
    images::media_type(&head).is_ok() || BEGINNINGS.iter().any(|beginning| head.starts_with(beginning))
}

/// Whether letters are mixed as those of encoded bytes are: both cases and digits, changing all the time, in one alphabet. Not
/// so in hex, a genome, a line of dashes, a path, or words that are written together.
fn is_mixed(letters: &[u8]) -> bool {
    let mut seen = [false; 256];
    for byte in letters {
        seen[usize::from(*byte)] = true;
    }
    let has = |range: std::ops::RangeInclusive<u8>| range.filter(|b| seen[usize::from(*b)]).count();
    let (lower, upper, digits) = (has(b'a'..=b'z'), has(b'A'..=b'Z'), has(b'0'..=b'9'));
    let both =
        (seen[usize::from(b'+')] || seen[usize::from(b'/')]) && (seen[usize::from(b'-')] || seen[usize::from(b'_')]);
    let signs = letters.iter().filter(|b| !b.is_ascii_alphanumeric()).count();
    let class = |b: u8| (b.is_ascii_lowercase(), b.is_ascii_uppercase(), b.is_ascii_digit());
    // Zeros are many in some files, and all the same letter.
    let pairs = || letters.windows(2).filter(|pair| pair[0] != pair[1]);
    let changes = pairs().filter(|pair| class(pair[0]) != class(pair[1])).count();
    lower >= 10 && upper >= 10 && digits >= 3 && !both && signs * 8 <= letters.len() && changes * 2 >= pairs().count()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::service::digest::encode_base64;

    /// Bytes without an order.
    fn noise(count: usize) -> Vec<u8> {
        let mut state = 7_u32;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..count).map(next).collect()
    }

    fn wrapped(text: &str, width: usize, by: &str) -> String {
        text.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect::<Vec<_>>().join(by)
    }

    /// A bitmap of one colour: few different letters.
    fn bitmap() -> Vec<u8> {
        let mut out = b"BM".to_vec();
        out.extend([0; 12]);
        out.extend(40_u32.to_le_bytes());
        out.resize(54, 0);
        out.resize(12_000, 0xff);
        out
    }

    #[test]
    fn encoded_files_are_found_however_they_are_written() {
        let blob = encode_base64(&noise(6_000));
        let prose = "It was a bright cold day in April, and the clocks were striking thirteen. ".repeat(100);
        let mut sparse = noise(3_000);
        sparse.resize(12_000, 0);
        let rows = [
            ("bare", blob.clone()),
            ("in words", format!("The file: {blob} and that is it.")),
            ("data", format!("![x](data:image/png;base64,{blob})")),
            ("data of few letters", format!("data:image/x;base64,{}", encode_base64(&[0xff; 6_000]))),
            ("bitmap", encode_base64(&bitmap())),
            ("silence", encode_base64(&[b"RIFF".to_vec(), vec![0; 9_000]].concat())),
            ("sparse", encode_base64(&sparse)),
            ("url alphabet", blob.replace('+', "-").replace('/', "_")),
            ("of a text", encode_base64(prose.as_bytes())),
            ("in lines of 76", wrapped(&blob, 76, "\n")),
            ("in lines of 64", wrapped(&blob, 64, "\r\n")),
            ("in lines in JSON", format!("{{\"data\":\"{}\"}}", wrapped(&blob, 76, "\\n"))),
            ("in lines behind its type", format!("data:image/png;base64,{}", wrapped(&blob, 76, "\n"))),
            ("slashes escaped", format!("\"{}\"", blob.replace('/', "\\/"))),
            ("very long in an address", format!("https://example.org/{}", encode_base64(&noise(9_000)))),
        ];
        for (name, text) in rows {
            let made = without(&text, &Handles::default()).unwrap_or_else(|| panic!("{name}"));
            assert!(made.text.len() < 400 && made.left_out > MOST, "{name}: {}", made.text.len());
            assert_eq!(made.left_out + made.readable, text.len(), "{name}");
        }
    }

    #[test]
    fn what_is_only_long_is_left_alone() {
        let rows = [
            ("just within", encode_base64(&noise(3_072))),
            ("one letter", "x".repeat(10_000)),
            ("capitals", "A".repeat(10_000)),
            ("a genome", "ACGT".repeat(5_000)),
            ("a protein", "MKVLAAGIVGLLLAQWERTYIPSDFGHKCNM".repeat(300)),
            ("hex", "0123456789abcdef".repeat(1_000)),
            ("capital hex", "0123456789ABCDEF".repeat(1_000)),
            ("digests in lines", format!("{}\n", "9f86d081884c7d659a2feaa0c55ad015".repeat(2)).repeat(200)),
            ("digests of packages", format!("sha512-{}\n", encode_base64(&noise(64))).repeat(100)),
            ("many short ones", format!("{} ", encode_base64(&noise(300))).repeat(40)),
            ("base32", "MZXW6YTBOI2345672ABCDEFGHIJKLMNOP".repeat(300)),
            ("digits", "31415926535897932384626433832795".repeat(300)),
            ("dashes", "-".repeat(10_000)),
            ("underscores", "_=_".repeat(3_000)),
            ("words", "many words in a row, ".repeat(1_000)),
            ("words together", "getElementByIdAndThenSomethingElse2Be".repeat(300)),
            ("snake case", "the_quick_brown_fox_7_Jumps_over_THE_LAZY_DOG_".repeat(300)),
            ("a path", "/usr/Local/share/Docs/v12/Reference/ABC/XyzQrst/index".repeat(300)),
            ("an address", format!("https://example.org/a/{}?next=1", encode_base64(&noise(4_000)))),
            ("code", "function a(b){return b.c(1).d(\"E\")+F[7]};".repeat(300)),
            ("a map of sources", "AAAA,SAAS,CAAC,IAAI;".repeat(1_000)),
            ("identifiers", "3f2504e0-4f89-41d3-9a0c-0305e82c3301-".repeat(300)),
            ("columns", "10\t20\t30\n".repeat(2_000)),
            ("another script", "日本語".repeat(5_000)),
        ];
        for (name, text) in rows {
            assert!(without(&text, &Handles::default()).is_none(), "{name}");
        }
    }

    #[test]
    fn what_stands_around_a_file_stays_and_the_file_is_behind_its_handle() {
        let handles = Handles::default();
        let (one, two) = (encode_base64(&noise(6_000)), encode_base64(&bitmap()));
        let made = without(&format!("é {one} ü {two} ñ"), &handles).unwrap();
        assert!(made.text.starts_with("é [8000 characters of base64 left out: result:") && made.text.ends_with("] ñ"));
        for (at, blob) in [(1, &one), (2, &two)] {
            let handle = made.text.split("left out: ").nth(at).unwrap().split(';').next().unwrap();
            assert_eq!(&handles.read(handle, 0, 1_000_000).unwrap().text, blob);
        }
        // The word on the line before lines of base64 is no part of it.
        let made = without(&format!("Picture\n{}\n\nDone", wrapped(&one, 76, "\n")), &handles).unwrap();
        assert!(made.text.starts_with("Picture\n[") && made.text.ends_with("]\n\nDone"), "{}", made.text);
    }
}
