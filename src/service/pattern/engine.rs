//! One compiled pattern, and searches whose time is bounded by more than good will: nothing can interrupt them.
//! A lazy automaton does the work and gives up where a text makes it build state after state; only then the slow machine
//! may try, as long as states times bytes stay within a bound.

use crate::base::error::{Error, Kind, Result};
use regex_automata::hybrid::{dfa, regex as lazy};
use regex_automata::meta;
use regex_automata::nfa::thompson;
use regex_automata::util::captures::Captures;
use regex_automata::util::prefilter::Prefilter;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind, Span};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Compiled program of one pattern, and each lazy automaton's cache: 1 MiB each.
const SIZE_LIMIT: usize = 1 << 20;
/// Most states times bytes that the slow machine may have before it: a second or two at worst, which is what a deadline may be
/// passed by.
const MAX_WORK: usize = 100_000_000;
/// Depth of nested groups.
const NEST_LIMIT: u32 = 100;

/// A compiled pattern.
pub struct Pattern {
    text: Box<str>,
    lazy: lazy::Regex,
    caches: Mutex<Vec<lazy::Cache>>,
    /// Built when it is first needed, since most patterns never do.
    slow: OnceLock<Result<meta::Regex>>,
    states: usize,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// `invalid_arguments` for one that is none or needs too much.
    pub fn compile(pattern: &str) -> Result<Pattern> {
        let hir = syntax::parse_with(pattern, &syntax::Config::new().nest_limit(NEST_LIMIT))
            .map_err(|e| not_a_pattern(&e.to_string()))?;
        let program = |config: thompson::Config| {
            let config = config.nfa_size_limit(Some(SIZE_LIMIT)).which_captures(thompson::WhichCaptures::None);
            thompson::NFA::compiler().configure(config).build_from_hir(&hir).map_err(|e| too_big(&e.to_string()))
        };
        let forward = program(thompson::Config::new())?;
        let reverse = program(thompson::Config::new().reverse(true))?;
        let states = forward.states().len();
        let prefilter = Prefilter::from_hir_prefix(MatchKind::LeftmostFirst, &hir);
        let config = dfa::Config::new()
            .specialize_start_states(prefilter.is_some())
            .prefilter(prefilter)
            .unicode_word_boundary(true)
            .cache_capacity(SIZE_LIMIT)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(3))
            // A new state costs about as much as the program has states, so large programs must earn theirs.
            .minimum_bytes_per_state(Some((states / 8).max(10)));
        let backward = config.clone().prefilter(None).specialize_start_states(false).match_kind(MatchKind::All);
        let automaton = |config: dfa::Config, program: thompson::NFA| {
            dfa::Builder::new().configure(config).build_from_nfa(program).map_err(|e| too_big(&e.to_string()))
        };
        let lazy = lazy::Builder::new().build_from_dfas(automaton(config, forward)?, automaton(backward, reverse)?);
        Ok(Pattern { text: pattern.into(), lazy, caches: Mutex::default(), slow: OnceLock::new(), states })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches anywhere.
    ///
    /// # Errors
    /// `too_large` for a text that the pattern is too costly for; so in all searches.
    pub fn is_match(&self, text: &str) -> Result<bool> {
        let input = Input::new(text).earliest(true);
        let quick = self.with_cache(|cache| self.lazy.forward().try_search_fwd(cache.forward_mut(), &input).ok());
        match quick {
            Some(found) => Ok(found.is_some()),
            None => Ok(self.affordable(text.len())?.is_match(input)),
        }
    }

    /// The first match that begins at byte `from` or later.
    ///
    /// # Errors
    /// As [`Pattern::is_match`].
    pub fn find_from(&self, text: &str, from: usize) -> Result<Option<Span>> {
        let input = Input::new(text).span(from..text.len());
        let quick = self.with_cache(|cache| self.lazy.try_search(cache, &input).ok());
        let found = match quick {
            Some(found) => found,
            None => self.affordable(text.len() - from)?.search(&input),
        };
        Ok(found.map(|m| m.span()))
    }

    /// The groups of the match at `span`, which a search has found.
    ///
    /// # Errors
    /// As [`Pattern::is_match`].
    pub fn captures_of(&self, text: &str, span: Span) -> Result<Captures> {
        let slow = self.affordable(span.len())?;
        let mut captures = slow.create_captures();
        slow.search_captures(&Input::new(text).span(span).anchored(Anchored::Yes), &mut captures);
        Ok(captures)
    }

    /// Calls `each` with every match in order, not overlapping, until it fails.
    ///
    /// # Errors
    /// As [`Pattern::is_match`]; those of `each`.
    pub fn for_each(&self, text: &str, mut each: impl FnMut(Span) -> Result<()>) -> Result<()> {
        let (mut from, mut last_end) = (0, None);
        while let Some(span) = if from <= text.len() { self.find_from(text, from)? } else { None } {
            if span.is_empty() && Some(span.end) == last_end {
                // Nothing is found twice at one place: an empty match right behind another one does not count.
                from = span.end + text[span.end..].chars().next().map_or(1, char::len_utf8);
                continue;
            }
            each(span)?;
            last_end = Some(span.end);
            from = span.end;
        }
        Ok(())
    }

    /// Runs a quick search; a cache that it gave up on is not used again.
    fn with_cache<T>(&self, search: impl FnOnce(&mut lazy::Cache) -> Option<T>) -> Option<T> {
        let kept = self.caches.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut cache = kept.unwrap_or_else(|| self.lazy.create_cache());
        let found = search(&mut cache)?;
        self.caches.lock().unwrap_or_else(PoisonError::into_inner).push(cache);
        Some(found)
    }

    /// The slow machine, for `bytes` of text.
    fn affordable(&self, bytes: usize) -> Result<&meta::Regex> {
        if self.states.saturating_mul(bytes) > MAX_WORK {
            let most = MAX_WORK / self.states.max(1);
            return Err(Error::new(
                Kind::TooLarge,
                format!("the pattern is too costly for {bytes} bytes of such text; {most} would do"),
            )
            .hint("use smaller counts in {..}, or search line by line"));
        }
        let built = self.slow.get_or_init(|| {
            let config = meta::Config::new().nfa_size_limit(Some(SIZE_LIMIT)).hybrid(false).dfa(false);
            let syntax = syntax::Config::new().nest_limit(NEST_LIMIT);
            meta::Builder::new().configure(config).syntax(syntax).build(&self.text).map_err(|e| too_big(&e.to_string()))
        });
        built.as_ref().map_err(Clone::clone)
    }
}

fn too_big(why: &str) -> Error {
    let error = if why.contains("size limit") || why.contains("capacity") {
        Error::invalid(format!("the pattern needs more than {SIZE_LIMIT} bytes when compiled"))
    } else {
        Error::invalid(format!("the pattern cannot be compiled: {why}"))
    };
    error.hint("use smaller counts in {..}, or (?-u) where Unicode classes are not needed")
}

/// The last line of the parser's text says what, the lines before it draw the pattern.
fn not_a_pattern(text: &str) -> Error {
    let what = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
    let error = Error::invalid(format!("the pattern does not compile: {what}"));
    if what.contains("look-around") || what.contains("backreferences") {
        error.hint("this engine runs in linear time, without look-around and back-references")
    } else {
        error.hint("in a script, write patterns between backticks, where a backslash is itself")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_what_the_regular_engine_finds() {
        let patterns = [
            "",
            "a",
            "a*",
            "a+?",
            "(a|ab)(c|bcd)(d*)",
            r"\b\w+\b",
            r"\B",
            "^",
            "$",
            "(?m)^.*$",
            "(?i)ÄB",
            ".",
            "(?s).+",
            r"\d{2,3}",
            "[^a-z]+",
            r"\p{Greek}+",
            "x*y*",
            "(?:ab)+|b",
            "ž|žž",
            r"(\w)(\w)?",
            "a.*b|a",
            r"\s+",
            "日本?",
        ];
        let texts = [
            "",
            "a",
            "aaa",
            "abcd",
            "žluť kůň",
            "a\nb\n\nc",
            "äb ÄB",
            "aβγ 12 345 日本日",
            "xxyyxy",
            "  ab  ",
            "žžž",
            "a1b22c333",
        ];
        for pattern in patterns {
            let ours = Pattern::compile(pattern).unwrap();
            let theirs = regex::Regex::new(pattern).unwrap();
            for text in texts {
                let mut found = Vec::new();
                ours.for_each(text, |span| {
                    found.push(span.range());
                    Ok(())
                })
                .unwrap();
                let expected: Vec<_> = theirs.find_iter(text).map(|m| m.range()).collect();
                assert_eq!(found, expected, "{pattern:?} in {text:?}");
                assert_eq!(ours.is_match(text).unwrap(), theirs.is_match(text), "{pattern:?} in {text:?}");
                for groups in theirs.captures_iter(text) {
                    let whole = groups.get(0).unwrap().range();
                    let caught = ours.captures_of(text, whole.into()).unwrap();
                    for at in 0..groups.len() {
                        let got = caught.get_group(at).map(|s| s.range());
                        assert_eq!(got, groups.get(at).map(|m| m.range()), "group {at} of {pattern:?} in {text:?}");
                    }
                }
            }
        }
    }

    /// A text of zeros and ones without an order.
    fn noise(length: usize) -> String {
        let mut random = fastrand::Rng::with_seed(1);
        (0..length).map(|_| if random.bool() { '1' } else { '0' }).collect()
    }

    #[test]
    fn a_pattern_that_would_take_hours_is_refused_for_that_text_only() {
        let pattern = Pattern::compile("1[01]{3000}[^01]").unwrap();
        assert_eq!(pattern.is_match(&noise(400_000)).unwrap_err().kind(), Kind::TooLarge);
        assert_eq!(pattern.find_from(&noise(400_000), 0).unwrap_err().kind(), Kind::TooLarge);
        assert!(!pattern.is_match(&noise(3000)).unwrap());
        assert!(!pattern.is_match(&"x".repeat(400_000)).unwrap());
        let mut text = "1".repeat(3001);
        text.push('x');
        assert_eq!(pattern.find_from(&text, 0).unwrap().map(|s| s.range()), Some(0..3002));
    }

    #[test]
    fn groups_of_a_match_that_is_megabytes_long_are_refused_and_the_match_is_not() {
        let pattern = Pattern::compile("(x+)(x+)(x+)$").unwrap();
        let text = "x".repeat(20_000_000);
        let span = pattern.find_from(&text, 0).unwrap().unwrap();
        assert_eq!(pattern.captures_of(&text, span).unwrap_err().kind(), Kind::TooLarge);
        let span = pattern.find_from(&text[..1000], 0).unwrap().unwrap();
        assert_eq!(pattern.captures_of(&text[..1000], span).unwrap().get_group(1).unwrap().range(), 0..998);
    }

    #[test]
    fn usual_patterns_read_long_texts() {
        let text = "The quick brown žluťoučký kůň jumps over 13 lazy dogs; mail@example.org. ".repeat(1_000);
        for (pattern, count) in
            [(r"[\w.]+@[\w.]+\.\w+", 1_000), (r"\b\d+\b", 1_000), ("(?i)KŮŇ", 1_000), ("nothing", 0)]
        {
            let mut found = 0;
            Pattern::compile(pattern)
                .unwrap()
                .for_each(&text, |_| {
                    found += 1;
                    Ok(())
                })
                .unwrap();
            assert_eq!(found, count, "{pattern}");
        }
    }
}
