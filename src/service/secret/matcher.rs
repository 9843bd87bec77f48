//! Finds values in texts however they are written there: character by character through the escapes of JSON, HTML and URLs, and
//! in base64 between other bytes. It knows nothing of credentials, and takes nothing out.

use super::SHORTEST;
use std::collections::HashMap;
use std::ops::Range;
use zeroize::Zeroizing;

/// How many escapes may lie over one another, as in JSON within JSON within HTML.
const LAYERS: usize = 3;
/// Characters of a value that have to be there; of a longer one what follows is taken as far as it goes. It keeps the time in
/// proportion to the text, whatever stands in both.
const REQUIRED: usize = 256;

/// What HTML calls the characters from U+00A0 to U+00FF.
const LATIN: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 \
    acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig \
    Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave \
    Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave \
    iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml";
/// And what it calls punctuation.
const PUNCTUATION: [(&str, char); 42] = [
    ("amp", '&'),
    ("AMP", '&'),
    ("lt", '<'),
    ("LT", '<'),
    ("gt", '>'),
    ("GT", '>'),
    ("quot", '"'),
    ("QUOT", '"'),
    ("apos", '\''),
    ("excl", '!'),
    ("num", '#'),
    ("dollar", '$'),
    ("percnt", '%'),
    ("lpar", '('),
    ("rpar", ')'),
    ("ast", '*'),
    ("midast", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("period", '.'),
    ("sol", '/'),
    ("colon", ':'),
    ("semi", ';'),
    ("equals", '='),
    ("quest", '?'),
    ("commat", '@'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("bsol", '\\'),
    ("rsqb", ']'),
    ("rbrack", ']'),
    ("Hat", '^'),
    ("lowbar", '_'),
    ("grave", '`'),
    ("lcub", '{'),
    ("lbrace", '{'),
    ("verbar", '|'),
    ("vert", '|'),
    ("rcub", '}'),
    ("rbrace", '}'),
    ("Tab", '\t'),
    ("NewLine", '\n'),
];

/// Values to look for.
#[derive(Default)]
pub(super) struct Matcher {
    patterns: Vec<Pattern>,
    /// By the character with which an occurrence may begin, before it is unescaped no more.
    starts: HashMap<char, Vec<usize>>,
    /// Bytes at which an occurrence may begin.
    plausible: Option<Box<[bool; 256]>>,
}

enum Pattern {
    /// The value itself.
    Text(Zeroizing<String>),
    /// The digits that stand for it in base64, as numbers, with some bytes before it. Of the first and the last a part of the
    /// bits is its neighbours'.
    Base64 { digits: Zeroizing<Vec<u8>>, first: u8, last: u8 },
}

impl Matcher {
    /// Also looks for `value`, unless it is too short.
    pub(super) fn add(&mut self, value: &str) {
        let known = |pattern: &Pattern| matches!(pattern, Pattern::Text(text) if text.as_str() == value);
        if value.len() < SHORTEST || self.patterns.iter().any(known) {
            return;
        }
        self.put(Pattern::Text(Zeroizing::new(value.to_owned())));
        for before in 0..3 {
            self.put(in_base64(value.as_bytes(), before));
        }
    }

    fn put(&mut self, pattern: Pattern) {
        let number = self.patterns.len();
        let mut start = |c: char| self.starts.entry(c).or_default().push(number);
        match &pattern {
            Pattern::Text(text) => {
                if let Some(c) = text.chars().next() {
                    start(c);
                    if c == ' ' {
                        start('+');
                    }
                }
            }
            Pattern::Base64 { digits, first, .. } => {
                let fits = |c: &char| digit(*c).is_some_and(|d| d & first == digits[0] & first);
                (0..128u8).map(char::from).filter(fits).for_each(start);
            }
        }
        let mut plausible = Box::new([false; 256]);
        for introducer in [b'\\', b'%', b'&'] {
            plausible[usize::from(introducer)] = true;
        }
        for c in self.starts.keys() {
            match u8::try_from(u32::from(*c)) {
                Ok(byte) if byte < 128 => plausible[usize::from(byte)] = true,
                _ => plausible[128..].fill(true),
            }
        }
        self.plausible = Some(plausible);
        self.patterns.push(pattern);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Where values stand in `text`, in order and apart from each other.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let Some(plausible) = &self.plausible else { return Vec::new() };
        let is_utf8 = std::str::from_utf8(text).is_ok();
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut scratch = Scratch { left: text.len().saturating_mul(4), ..Scratch::default() };
        for at in 0..text.len() {
            let byte = text[at];
            // Never within a character, so that what is left of a text is one.
            if !plausible[usize::from(byte)] || (is_utf8 && byte & 0xC0 == 0x80) {
                continue;
            }
            let Some(end) = self.longest(text, at, &mut scratch) else { continue };
            match found.last_mut() {
                Some(last) if at < last.end => last.end = last.end.max(end),
                _ => found.push(at..end),
            }
        }
        found
    }

    /// The end of the longest occurrence that begins at `at`.
    fn longest(&self, text: &[u8], at: usize, scratch: &mut Scratch) -> Option<usize> {
        let mut longest = None;
        for (c, next) in readings(text, at) {
            for number in self.starts.get(&c).into_iter().flatten() {
                let end = match &self.patterns[*number] {
                    Pattern::Text(value) => follow_text(text, next, value, scratch),
                    Pattern::Base64 { digits, last, .. } => follow_digits(text, next, digits, *last, scratch),
                };
                longest = longest.max(end);
            }
        }
        longest
    }
}

/// The places that a walk has come to, kept between walks.
#[derive(Default)]
struct Scratch {
    now: Vec<usize>,
    next: Vec<usize>,
    /// Steps that may still be made behind what is required: a value that begins everywhere in itself takes no longer.
    left: usize,
}

impl Scratch {
    fn begin(&mut self, at: usize) {
        self.now.clear();
        self.now.push(at);
    }

    /// One step from every place to those behind a character that `fits`; whether there is one.
    fn step(&mut self, text: &[u8], fits: impl Fn(char) -> bool, skipped: impl Fn(u8) -> bool) -> bool {
        self.next.clear();
        for &place in &self.now {
            let place = place + text[place..].iter().take(4).take_while(|byte| skipped(**byte)).count();
            for (c, next) in readings(text, place) {
                if fits(c) && !self.next.contains(&next) {
                    self.next.push(next);
                }
            }
        }
        if self.next.is_empty() {
            return false;
        }
        std::mem::swap(&mut self.now, &mut self.next);
        true
    }

    /// Whether a step behind so many may be made.
    fn may_go_on(&mut self, number: usize) -> bool {
        if number >= REQUIRED {
            self.left = self.left.saturating_sub(1);
        }
        self.left > 0
    }

    fn end(&self) -> Option<usize> {
        self.now.iter().copied().max()
    }
}

/// The end of `value`, whose first character stands before `at`.
fn follow_text(text: &[u8], at: usize, value: &str, scratch: &mut Scratch) -> Option<usize> {
    scratch.begin(at);
    for (number, wanted) in value.chars().enumerate().skip(1) {
        let fits = |c| c == wanted || (c == '+' && wanted == ' ');
        // Zeros stand between the characters of texts in UTF-16 and UTF-32.
        let is_between = |byte| byte == 0 && wanted != '\0';
        if !scratch.may_go_on(number) || !scratch.step(text, fits, is_between) {
            return scratch.end().filter(|_| number >= REQUIRED);
        }
    }
    scratch.end()
}

/// The end of the base64 whose first digit stands before `at`, padding included.
fn follow_digits(text: &[u8], at: usize, digits: &[u8], last: u8, scratch: &mut Scratch) -> Option<usize> {
    scratch.begin(at);
    for (number, wanted) in digits.iter().enumerate().skip(1) {
        let mask = if number + 1 == digits.len() { last } else { 63 };
        // Mail breaks long ones into lines.
        let is_break = |byte| matches!(byte, b'\r' | b'\n' | 0);
        let fits = |c| digit(c).is_some_and(|d| d & mask == wanted & mask);
        if !scratch.may_go_on(number) || !scratch.step(text, fits, is_break) {
            return scratch.end().filter(|_| number >= REQUIRED);
        }
    }
    while scratch.step(text, |c| c == '=', |_| false) {}
    scratch.end()
}

/// The digits for `value` behind `before` other bytes.
fn in_base64(value: &[u8], before: usize) -> Pattern {
    let bits = |mut number: usize| {
        let mut digit = 0u8;
        for _ in 0..6 {
            let byte = (number / 8).checked_sub(before).and_then(|at| value.get(at)).copied().unwrap_or_default();
            digit = digit << 1 | (byte >> (7 - number % 8) & 1);
            number += 1;
        }
        digit
    };
    let (begin, end) = (before * 8, (before + value.len()) * 8);
    let digits = Zeroizing::new((begin / 6..end.div_ceil(6)).map(|number| bits(number * 6)).collect::<Vec<_>>());
    let first = 63 >> (begin % 6);
    let last = if end.is_multiple_of(6) { 63 } else { 63 & !(63 >> (end % 6)) };
    Pattern::Base64 { digits, first, last }
}

/// What a digit of base64 stands for, in both alphabets.
fn digit(c: char) -> Option<u8> {
    let byte = u8::try_from(u32::from(c)).ok()?;
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

/// The character at `at` as it stands there, and as it reads where it is the begin of escapes; each with where it ends.
fn readings(text: &[u8], at: usize) -> impl Iterator<Item = (char, usize)> {
    let first = raw(text, at);
    let most = if first.is_some_and(|(c, _)| introduces(c)) { LAYERS } else { 0 };
    let mut before = first;
    first.into_iter().chain((1..=most).map_while(move |layer| {
        // A layer that changed nothing ends it: those over it would not either.
        let (c, _) = before?;
        if !introduces(c) {
            return None;
        }
        let read = read(text, at, layer);
        if read == before {
            return None;
        }
        before = read;
        read
    }))
}

fn introduces(c: char) -> bool {
    matches!(c, '\\' | '%' | '&')
}

/// The character at `at` with so many layers of escapes taken off.
fn read(text: &[u8], at: usize, layer: usize) -> Option<(char, usize)> {
    if layer == 0 {
        return raw(text, at);
    }
    let (c, next) = read(text, at, layer - 1)?;
    let escaped = match c {
        '\\' => backslash(text, next, layer - 1),
        '%' => percent(text, next, layer - 1),
        '&' => entity(text, next, layer - 1),
        _ => None,
    };
    escaped.or(Some((c, next)))
}

/// The character that stands there; a byte that begins none in UTF-8 is one of Latin-1.
fn raw(text: &[u8], at: usize) -> Option<(char, usize)> {
    let byte = *text.get(at)?;
    if byte < 128 {
        return Some((char::from(byte), at + 1));
    }
    let bytes = &text[at..text.len().min(at + 4)];
    Some(match whole(bytes) {
        Some((c, length)) => (c, at + length),
        None => (char::from(byte), at + 1),
    })
}

/// The character of UTF-8 with which `bytes` begin.
fn whole(bytes: &[u8]) -> Option<(char, usize)> {
    let length = match bytes.first()? {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return None,
    };
    let c = std::str::from_utf8(bytes.get(..length)?).ok()?.chars().next()?;
    Some((c, length))
}

/// So many hexadecimal digits, between `least` and `most`.
fn hex(text: &[u8], mut at: usize, layer: usize, least: usize, most: usize) -> Option<(u32, usize)> {
    let mut value = 0u32;
    for number in 0..most {
        match read(text, at, layer).and_then(|(c, next)| Some((c.to_digit(16)?, next))) {
            Some((digit, next)) => (value, at) = (value << 4 | digit, next),
            None if number < least => return None,
            None => break,
        }
    }
    Some((value, at))
}

/// What follows a backslash: as JSON, JavaScript, Python and shells escape.
fn backslash(text: &[u8], at: usize, layer: usize) -> Option<(char, usize)> {
    let (c, next) = read(text, at, layer)?;
    let (value, next) = match c {
        'u' => {
            if let Some((high, next)) = hex(text, next, layer, 4, 4) {
                if !(0xD800..0xDC00).contains(&high) {
                    return Some((char::from_u32(high)?, next));
                }
                let (slash, next) = read(text, next, layer)?;
                let (u, next) = read(text, next, layer)?;
                let (low, next) = hex(text, next, layer, 4, 4)?;
                if (slash, u) != ('\\', 'u') || !(0xDC00..0xE000).contains(&low) {
                    return None;
                }
                (0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), next)
            } else {
                let (open, next) = read(text, next, layer)?;
                let (value, next) = hex(text, next, layer, 1, 6)?;
                let (close, next) = read(text, next, layer)?;
                if (open, close) != ('{', '}') {
                    return None;
                }
                (value, next)
            }
        }
        'U' => hex(text, next, layer, 8, 8)?,
        'x' => hex(text, next, layer, 2, 2)?,
        'b' => (8, next),
        't' => (9, next),
        'n' => (10, next),
        'f' => (12, next),
        'r' => (13, next),
        '0' => (0, next),
        c if c.is_ascii_punctuation() || c == ' ' => (u32::from(c), next),
        _ => return None,
    };
    Some((char::from_u32(value)?, next))
}

/// What follows a percent sign: bytes of UTF-8, or one of Latin-1, or the four digits that some old programs write.
fn percent(text: &[u8], at: usize, layer: usize) -> Option<(char, usize)> {
    if let Some(('u' | 'U', next)) = read(text, at, layer) {
        let (value, next) = hex(text, next, layer, 4, 4)?;
        return Some((char::from_u32(value)?, next));
    }
    let byte =
        |at: usize| hex(text, at, layer, 2, 2).map(|(value, next)| (u8::try_from(value).unwrap_or_default(), next));
    let (first, after) = byte(at)?;
    if first < 128 {
        return Some((char::from(first), after));
    }
    let (mut bytes, mut next) = (vec![first], after);
    while bytes.len() < 4 {
        if let Some((c, _)) = whole(&bytes) {
            return Some((c, next));
        }
        let more = read(text, next, layer).filter(|(c, _)| *c == '%').and_then(|(_, digits)| byte(digits));
        let Some((more, behind)) = more.filter(|(more, _)| more & 0xC0 == 0x80) else { break };
        bytes.push(more);
        next = behind;
    }
    Some(whole(&bytes).map_or((char::from(first), after), |(c, _)| (c, next)))
}

/// What follows an ampersand: a number, or a name of HTML.
fn entity(text: &[u8], at: usize, layer: usize) -> Option<(char, usize)> {
    let (c, next) = read(text, at, layer)?;
    if c == '#' {
        let (value, next) = match read(text, next, layer)? {
            ('x' | 'X', next) => hex(text, next, layer, 1, 8)?,
            _ => decimal(text, next, layer)?,
        };
        let behind = read(text, next, layer).filter(|(c, _)| *c == ';').map_or(next, |(_, behind)| behind);
        return Some((char::from_u32(value)?, behind));
    }
    let (mut name, mut place) = (String::new(), at);
    loop {
        match read(text, place, layer)? {
            (';', next) => return named(&name).map(|c| (c, next)),
            (c, next) if c.is_ascii_alphanumeric() && name.len() < 8 => {
                name.push(c);
                place = next;
            }
            _ => return None,
        }
    }
}

fn decimal(text: &[u8], mut at: usize, layer: usize) -> Option<(u32, usize)> {
    let mut value = None;
    for _ in 0..8 {
        let Some((digit, next)) = read(text, at, layer).and_then(|(c, next)| Some((c.to_digit(10)?, next))) else {
            break;
        };
        value = Some(value.unwrap_or(0) * 10 + digit);
        at = next;
    }
    Some((value?, at))
}

fn named(name: &str) -> Option<char> {
    if let Some((_, c)) = PUNCTUATION.iter().find(|(known, _)| *known == name) {
        return Some(*c);
    }
    let at = LATIN.split_ascii_whitespace().position(|known| known == name)?;
    char::from_u32(0xA0 + u32::try_from(at).ok()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
