//! Which part of a file is sent, and whether it is sent at all: the rules of ranges and validators, over plain values.

/// What a request says about the file it wants.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asked<'a> {
    /// `Range`; only of a GET.
    pub(super) range: Option<&'a str>,
    /// `If-Range`.
    pub(super) if_range: Option<&'a str>,
    /// `If-None-Match`.
    pub(super) if_none_match: Option<&'a str>,
    /// `If-Modified-Since`.
    pub(super) if_modified_since: Option<&'a str>,
}

/// The file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    /// Its bytes.
    pub(super) size: u64,
    /// Its `ETag`, a strong one.
    pub(super) etag: &'a str,
    /// Its `Last-Modified`.
    pub(super) modified: Option<&'a str>,
}

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// All of it: 200.
    Whole,
    /// The bytes from the first to the last, both included: 206.
    Part(u64, u64),
    /// Nothing, the other side has it: 304.
    Unchanged,
    /// Nothing, it does not reach so far: 416.
    OutOfRange,
}

/// Decides. What cannot be read in a header is as if it were not there.
pub(super) fn choose(asked: &Asked, known: &Known) -> Sent {
    let unchanged = match asked.if_none_match {
        Some(tags) => names(tags, known.etag),
        // The date that was given out comes back as it was; another one says nothing certain.
        None => asked.if_modified_since.is_some() && asked.if_modified_since.map(str::trim) == known.modified,
    };
    if unchanged {
        return Sent::Unchanged;
    }
    let current = asked.if_range.map(str::trim).is_none_or(|tag| tag == known.etag);
    match asked.range.filter(|_| current) {
        Some(range) => part(range, known.size),
        None => Sent::Whole,
    }
}

/// Whether the tags of an `If-None-Match` name the version with this tag.
pub(super) fn names(tags: &str, etag: &str) -> bool {
    tags.split(',').map(str::trim).any(|tag| tag == "*" || strong(tag) == etag)
}

/// A tag without the mark that it is weak, which does not matter where nothing is put together of parts.
fn strong(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// One range of bytes; several at once are answered with everything.
fn part(range: &str, size: u64) -> Sent {
    let Some((unit, spec)) = range.trim().split_once('=') else { return Sent::Whole };
    let Some((first, last)) = spec.trim().split_once('-') else { return Sent::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Sent::Whole;
    }
    let (first, last) = (first.trim(), last.trim());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // A number too large for us lies behind every end.
    let number = |text: &str| text.parse().unwrap_or(u64::MAX);
    let end = size.saturating_sub(1);
    match (is_number(first), is_number(last)) {
        (true, true) if number(first) > number(last) => Sent::Whole,
        (true, _) if !last.is_empty() && !is_number(last) => Sent::Whole,
        (true, given) if number(first) < size => {
            Sent::Part(number(first), if given { number(last).min(end) } else { end })
        }
        (true, _) => Sent::OutOfRange,
        (false, true) if first.is_empty() && (number(last) == 0 || size == 0) => Sent::OutOfRange,
        (false, true) if first.is_empty() => Sent::Part(size.saturating_sub(number(last)), end),
        _ => Sent::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_bytes_within_the_file() {
        use Sent::{OutOfRange, Part, Whole};
        let rows = [
            ("bytes=0-0", 10, Part(0, 0)),
            ("bytes=0-", 10, Part(0, 9)),
            ("bytes=3-5", 10, Part(3, 5)),
            ("bytes=3-99", 10, Part(3, 9)),
            ("bytes=9-9", 10, Part(9, 9)),
            ("BYTES = 3 - 5", 10, Part(3, 5)),
            ("bytes=-4", 10, Part(6, 9)),
            ("bytes=-10", 10, Part(0, 9)),
            ("bytes=-99", 10, Part(0, 9)),
            ("bytes=2-99999999999999999999999", 10, Part(2, 9)),
            ("bytes=-99999999999999999999999", 10, Part(0, 9)),
            ("bytes=10-", 10, OutOfRange),
            ("bytes=10-20", 10, OutOfRange),
            ("bytes=99999999999999999999999-", 10, OutOfRange),
            ("bytes=-0", 10, OutOfRange),
            ("bytes=0-", 0, OutOfRange),
            ("bytes=-1", 0, OutOfRange),
            ("bytes=5-3", 10, Whole),
            ("bytes=0-1,4-5", 10, Whole),
            ("bytes=-", 10, Whole),
            ("bytes=", 10, Whole),
            ("bytes", 10, Whole),
            ("", 10, Whole),
            ("bytes=a-b", 10, Whole),
            ("bytes=1-b", 10, Whole),
            ("bytes=a-1", 10, Whole),
            ("bytes=+1-2", 10, Whole),
            ("bytes=--1", 10, Whole),
            ("items=0-1", 10, Whole),
        ];
        for (range, size, expected) in rows {
            assert_eq!(part(range, size), expected, "{range} of {size}");
        }
    }

    #[test]
    fn validators_decide_before_ranges_do() {
        use Sent::{Part, Unchanged, Whole};
        let known = Known { size: 10, etag: "\"a-1\"", modified: Some("Mon, 01 Jan 2024 00:00:00 GMT") };
        let (day, range) = (known.modified, Some("bytes=0-1"));
        let none = Asked::default();
        let rows = [
            (none, Whole),
            (Asked { if_none_match: Some("\"a-1\""), ..none }, Unchanged),
            (Asked { if_none_match: Some("W/\"a-1\""), ..none }, Unchanged),
            (Asked { if_none_match: Some("\"x\", \"a-1\""), range, ..none }, Unchanged),
            (Asked { if_none_match: Some("*"), ..none }, Unchanged),
            (Asked { if_none_match: Some("\"x\""), if_modified_since: day, ..none }, Whole),
            (Asked { if_modified_since: day, ..none }, Unchanged),
            (Asked { if_modified_since: Some("yesterday"), ..none }, Whole),
            (Asked { range, ..none }, Part(0, 1)),
            (Asked { range, if_range: Some("\"a-1\""), ..none }, Part(0, 1)),
            (Asked { range, if_range: Some("W/\"a-1\""), ..none }, Whole),
            (Asked { range, if_range: Some("\"old\""), ..none }, Whole),
            (Asked { range, if_range: day, ..none }, Whole),
        ];
        for (asked, expected) in rows {
            assert_eq!(choose(&asked, &known), expected, "{asked:?}");
        }
        let unknown = Known { modified: None, ..known };
        assert_eq!(choose(&none, &unknown), Whole);
    }
}
