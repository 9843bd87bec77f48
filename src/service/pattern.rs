//! Regular expressions in linear time, with bounds on what a pattern may cost. Offsets are in characters.
//! Keeps the last patterns compiled; knows no scripts.

mod engine;

use crate::base::error::{Error, Kind, Result};
use engine::Pattern;
use regex_automata::{PatternID, Span};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest pattern in bytes.
pub const MAX_PATTERN: usize = 16 << 10;
/// Most matches that one call returns.
pub const MAX_MATCHES: usize = 10_000;
/// Most bytes that a replacement may grow a text to: 64 MiB.
pub const MAX_REPLACED: usize = 64 << 20;
/// Compiled patterns kept, the least recently used leaves first.
const KEPT: usize = 64;

/// Asked with a number of bytes before they are made, and at every match; an error ends the work: a budget, a deadline.
pub type Room<'a> = dyn Fn(usize) -> Result<()> + 'a;

/// What a match costs beside its text.
const MATCH: usize = 64;

/// Where a pattern matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Characters before the match.
    pub start: usize,
    /// Characters up to its end.
    pub end: usize,
    /// What matched.
    pub text: String,
}

/// The groups of one match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captures {
    /// By number; 0 is the whole match, `None` a group that took no part.
    pub numbered: Vec<Option<String>>,
    /// Named groups in the pattern's order, those that took no part included.
    pub named: Vec<(String, Option<String>)>,
}

/// Whether `pattern` matches anywhere in `text`.
///
/// # Errors
/// `invalid_arguments` for a pattern that does not compile or is too large, `too_large` for a text that it is too costly for;
/// so in all functions here.
pub fn is_match(pattern: &str, text: &str) -> Result<bool> {
    compiled(pattern)?.is_match(text)
}

/// The first match.
///
/// # Errors
/// As [`is_match`].
pub fn find(pattern: &str, text: &str) -> Result<Option<Match>> {
    Ok(compiled(pattern)?.find_from(text, 0)?.map(|span| Offsets::new(text).of(span)))
}

/// Every match, in order, not overlapping.
///
/// # Errors
/// As [`is_match`]; `too_large` for more than [`MAX_MATCHES`]; those of `room`.
pub fn find_all(pattern: &str, text: &str, room: &Room) -> Result<Vec<Match>> {
    let mut offsets = Offsets::new(text);
    let mut found = Vec::new();
    compiled(pattern)?.for_each(text, |span| {
        within(found.len())?;
        room(span.len() + MATCH)?;
        found.push(offsets.of(span));
        Ok(())
    })?;
    Ok(found)
}

/// The groups of the first match.
///
/// # Errors
/// As [`is_match`].
pub fn captures(pattern: &str, text: &str) -> Result<Option<Captures>> {
    let pattern = compiled(pattern)?;
    let Some(span) = pattern.find_from(text, 0)? else { return Ok(None) };
    let groups = pattern.captures_of(text, span)?;
    let owned = |span: Option<Span>| span.map(|span| text[span.range()].to_owned());
    let names = groups.group_info().pattern_names(PatternID::ZERO);
    Ok(Some(Captures {
        numbered: groups.iter().map(owned).collect(),
        named: names.flatten().map(|name| (name.to_owned(), owned(groups.get_group_by_name(name)))).collect(),
    }))
}

/// `text` with every match replaced; `$1`, `${name}` stand for groups and `$$` for a dollar sign.
///
/// # Errors
/// As [`is_match`]; `too_large` where the result would pass [`MAX_REPLACED`]; those of `room`.
pub fn replace(pattern: &str, text: &str, replacement: &str, room: &Room) -> Result<String> {
    let pattern = compiled(pattern)?;
    let references = replacement.matches('$').count();
    let mut out = String::new();
    let mut done = 0;
    pattern.for_each(text, |span| {
        // No group is longer than the match, and each needs a dollar sign: known before a short text becomes a huge one.
        let most =
            (span.start - done).saturating_add(replacement.len()).saturating_add(span.len().saturating_mul(references));
        grow(&mut out, most, room)?;
        out.push_str(&text[done..span.start]);
        if references == 0 {
            out.push_str(replacement);
        } else {
            pattern.captures_of(text, span)?.interpolate_string_into(text, replacement, &mut out);
        }
        done = span.end;
        Ok(())
    })?;
    grow(&mut out, text.len() - done, room)?;
    out.push_str(&text[done..]);
    Ok(out)
}

/// Makes place for `more` bytes behind `out`.
fn grow(out: &mut String, more: usize, room: &Room) -> Result<()> {
    if out.len().saturating_add(more) > MAX_REPLACED {
        return Err(Error::new(Kind::TooLarge, format!("the replaced text is larger than {MAX_REPLACED} bytes")));
    }
    if out.capacity() - out.len() >= more {
        return room(0);
    }
    let more = more.max(out.capacity());
    room(out.len() + more)?;
    out.reserve(more);
    Ok(())
}

/// The parts of `text` between matches.
///
/// # Errors
/// As [`is_match`]; `too_large` for more than [`MAX_MATCHES`] parts; those of `room`.
pub fn split(pattern: &str, text: &str, room: &Room) -> Result<Vec<String>> {
    let mut parts = Vec::new();
    let mut done = 0;
    let mut part = |range: std::ops::Range<usize>| -> Result<()> {
        within(parts.len())?;
        room(range.len() + MATCH)?;
        parts.push(text[range].to_owned());
        Ok(())
    };
    compiled(pattern)?.for_each(text, |span| {
        part(done..span.start)?;
        done = span.end;
        Ok(())
    })?;
    part(done..text.len())?;
    Ok(parts)
}

fn within(count: usize) -> Result<()> {
    if count < MAX_MATCHES {
        return Ok(());
    }
    Err(Error::new(Kind::TooLarge, format!("the pattern matches more than {MAX_MATCHES} times"))
        .hint("narrow the pattern, or give a shorter text"))
}

/// Byte offsets to character offsets, walking the text once for rising offsets.
struct Offsets<'t> {
    text: &'t str,
    bytes: usize,
    characters: usize,
}

impl<'t> Offsets<'t> {
    fn new(text: &'t str) -> Self {
        Offsets { text, bytes: 0, characters: 0 }
    }

    fn at(&mut self, byte: usize) -> usize {
        self.characters += self.text[self.bytes..byte].chars().count();
        self.bytes = byte;
        self.characters
    }

    fn of(&mut self, span: Span) -> Match {
        let start = self.at(span.start);
        Match { start, end: self.at(span.end), text: self.text[span.range()].to_owned() }
    }
}

/// Compiles a pattern, unless it is kept already, so that the next function here need not. Kept patterns serve everybody.
///
/// # Errors
/// `invalid_arguments` for one that does not compile or is too large.
pub fn prepare(pattern: &str) -> Result<()> {
    compiled(pattern).map(drop)
}

fn compiled(pattern: &str) -> Result<Arc<Pattern>> {
    static CACHE: Mutex<VecDeque<Arc<Pattern>>> = Mutex::new(VecDeque::new());
    if pattern.len() > MAX_PATTERN {
        return Err(Error::invalid(format!("the pattern is longer than {MAX_PATTERN} bytes")));
    }
    {
        let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = cache.iter().position(|known| known.as_str() == pattern) {
            // To the back: the front leaves first.
            let known = cache.remove(at).expect("the place was just found");
            cache.push_back(known.clone());
            return Ok(known);
        }
    }
    // Compiled outside the lock: a large pattern takes milliseconds, and others need not wait for it.
    let new = Arc::new(Pattern::compile(pattern)?);
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if cache.len() >= KEPT {
        cache.pop_front();
    }
    cache.push_back(new.clone());
    Ok(new)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn free(_: usize) -> Result<()> {
        Ok(())
    }

    fn m(start: usize, end: usize, text: &str) -> Match {
        Match { start, end, text: text.to_owned() }
    }

    #[test]
    fn matches_are_found_with_character_offsets() {
        let table: &[(&str, &str, &[Match])] = &[
            ("a", "", &[]),
            ("", "", &[m(0, 0, "")]),
            ("", "ab", &[m(0, 0, ""), m(1, 1, ""), m(2, 2, "")]),
            ("a+", "aa b aaa", &[m(0, 2, "aa"), m(5, 8, "aaa")]),
            ("ü", "grün grün", &[m(2, 3, "ü"), m(7, 8, "ü")]),
            (r"\d+", "日本 12 語 3", &[m(3, 5, "12"), m(8, 9, "3")]),
            ("(?i)A", "aA", &[m(0, 1, "a"), m(1, 2, "A")]),
            (r"\p{Greek}", "aβγ", &[m(1, 2, "β"), m(2, 3, "γ")]),
            ("^b", "a\nb", &[]),
            ("(?m)^b", "a\nb", &[m(2, 3, "b")]),
        ];
        for (pattern, text, want) in table {
            assert_eq!(find_all(pattern, text, &free).unwrap(), *want, "{pattern:?} in {text:?}");
            assert_eq!(find(pattern, text).unwrap().as_ref(), want.first(), "{pattern:?} in {text:?}");
            assert_eq!(is_match(pattern, text).unwrap(), !want.is_empty(), "{pattern:?} in {text:?}");
        }
    }

    #[test]
    fn groups_come_by_number_and_by_name_with_holes() {
        let got = captures(r"(?<year>\d{4})-(\d\d)(?<rest>x)?", "on 2026-11").unwrap().unwrap();
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(got.numbered, [some("2026-11"), some("2026"), some("11"), None]);
        assert_eq!(got.named, [("year".to_owned(), some("2026")), ("rest".to_owned(), None)]);
        assert_eq!(captures("x", "y").unwrap(), None);
    }

    #[test]
    fn replacing_and_splitting_follow_the_groups() {
        for (pattern, text, replacement, want) in [
            (r"(\w+) (\w+)", "hello world", "$2 $1", "world hello"),
            (r"(?<a>\d)", "a1b2", "<${a}>", "a<1>b<2>"),
            ("x", "axb", "$$", "a$b"),
            ("x", "axb", "$9", "ab"),
            ("", "ab", "-", "-a-b-"),
            ("z", "ab", "-", "ab"),
        ] {
            assert_eq!(replace(pattern, text, replacement, &free).unwrap(), want, "{pattern:?}");
        }
        for (pattern, text, want) in [
            (r"\s*,\s*", "a , b,c", vec!["a", "b", "c"]),
            (",", "", vec![""]),
            (",", ",a,", vec!["", "a", ""]),
            ("x", "abc", vec!["abc"]),
        ] {
            assert_eq!(split(pattern, text, &free).unwrap(), want, "{pattern:?}");
        }
    }

    #[test]
    fn a_bad_or_costly_pattern_is_refused_with_a_hint() {
        let long = "a".repeat(MAX_PATTERN + 1);
        let nested = format!("{}a{}", "(".repeat(500), ")".repeat(500));
        for pattern in [
            "(",
            "[z-a]",
            "a{2,1}",
            "*",
            r"\",
            "(?<n>a)(?<n>b)",
            r"(a)\1",
            "(?=a)",
            r"\w{1000}{1000}",
            "(?:a{100}){100}{100}",
            &long,
            &nested,
        ] {
            let error = is_match(pattern, "a").unwrap_err();
            assert_eq!(error.code(), "invalid_arguments", "{pattern:.40}");
            assert!(!error.message().contains('\n'), "{error}");
        }
        assert!(is_match("(?=a)", "a").unwrap_err().hint_text().unwrap().contains("look-around"));
    }

    #[test]
    fn a_pattern_that_backtracking_engines_choke_on_is_answered() {
        let text = format!("{}b", "a".repeat(100_000));
        assert!(!is_match("^(a+)+$", &text).unwrap());
        assert!(!is_match("(x+x+)+y", &"x".repeat(100_000)).unwrap());
    }

    #[test]
    fn too_many_matches_and_a_result_that_explodes_are_too_large() {
        let text = "a".repeat(MAX_MATCHES + 1);
        assert_eq!(find_all("a", &text, &free).unwrap_err().code(), "too_large");
        assert_eq!(split("a", &text, &free).unwrap_err().code(), "too_large");
        assert_eq!(find_all("a", &text[1..], &free).unwrap().len(), MAX_MATCHES);
        let big = "x".repeat(1 << 20);
        assert_eq!(replace("a", &text, &big, &free).unwrap_err().code(), "too_large");
        // One match whose groups alone would make a terabyte.
        assert_eq!(replace("x+", &big, &"$0".repeat(1 << 20), &free).unwrap_err().code(), "too_large");
    }

    #[test]
    fn whoever_asks_can_end_the_work_between_matches() {
        let asked = std::cell::Cell::new(0);
        let thrice = |_: usize| {
            asked.set(asked.get() + 1);
            if asked.get() > 3 { Err(Error::new(Kind::Cancelled, "enough")) } else { Ok(()) }
        };
        for work in [
            find_all("a", "aaaaaaaaaa", &thrice).map(drop),
            split("a", "aaaaaaaaaa", &thrice).map(drop),
            replace("a", "aaaaaaaaaa", "bb", &thrice).map(drop),
        ] {
            assert_eq!(work.unwrap_err().kind(), Kind::Cancelled);
            asked.set(0);
        }
    }

    #[test]
    fn patterns_beyond_what_is_kept_still_work() {
        for round in 0..3 {
            for n in 0..KEPT * 2 {
                assert!(is_match(&format!("^{n}$"), &n.to_string()).unwrap(), "round {round}");
            }
        }
    }
}
