//! Strict JSON: integers are 64-bit exact or an error, and every error says where. Knows nothing of schemas or scripts.

use super::error::Error;
use serde_json::{Map, Number, Value};
use std::fmt;

/// Values may be nested this deep.
pub const MAX_DEPTH: usize = 128;

/// Characters of the text that an error shows.
const EXCERPT: usize = 40;

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// What is wrong, lower case, without the position.
    pub message: String,
    /// Byte offset in the text.
    pub offset: usize,
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
    /// At most 40 characters around the place; control characters are shown as spaces.
    pub excerpt: String,
    /// Where in the value: `a[2].b`; empty at the top.
    pub path: String,
    /// The text is fine as far as it goes, and ends too early.
    pub truncated: bool,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "at `{}`: ", self.path)?;
        }
        write!(f, "{}, line {} column {} (byte {})", self.message, self.line, self.column, self.offset)?;
        if !self.excerpt.is_empty() {
            write!(f, ", near `{}`", self.excerpt)?;
        }
        Ok(())
    }
}

impl std::error::Error for ParseError {}

impl ParseError {
    /// The place without any of the text, for logs and events: `line 3 column 7 (byte 41)`.
    #[must_use]
    pub fn position(&self) -> String {
        format!("line {} column {} (byte {})", self.line, self.column, self.offset)
    }
}

impl From<ParseError> for Error {
    fn from(e: ParseError) -> Self {
        let error = Error::invalid(format!("not valid JSON: {e}"));
        if e.truncated {
            error.with_retryable(true).hint("the text ends too early; send it again whole")
        } else {
            error
        }
    }
}

/// Reads one JSON value.
///
/// # Errors
/// Anything that RFC 8259 does not allow, an integer outside 64 bits, a number too large for a float,
/// an escaped lone surrogate, or more than [`MAX_DEPTH`] levels.
pub fn parse(text: &str) -> Result<Value, ParseError> {
    Parser::new(text, Keys::LastWins).document()
}

/// As [`parse`], for what other programs send: a number that neither 64 bits nor a float can hold becomes the text of its
/// digits, as it stands there. Nothing is rounded, and one such number does not cost the rest of the document.
///
/// # Errors
/// As [`parse`], numbers apart.
pub fn parse_foreign(text: &str) -> Result<Value, ParseError> {
    let mut parser = Parser::new(text, Keys::LastWins);
    parser.too_wide = TooWide::Text;
    parser.document()
}

/// As [`parse`], for bytes that should be UTF-8.
///
/// # Errors
/// As [`parse`], and for bytes that are not UTF-8.
pub fn parse_bytes(bytes: &[u8]) -> Result<Value, ParseError> {
    parse(utf8(bytes)?)
}

/// As [`parse_bytes`], for a file that a person may have saved with a byte order mark.
/// Offsets count from the start of the file.
///
/// # Errors
/// As [`parse_bytes`].
pub fn parse_file_text(bytes: &[u8]) -> Result<Value, ParseError> {
    let text = utf8(bytes)?;
    Parser::after_bom(text, Keys::LastWins).document()
}

/// A file that holds one object. An empty file is an empty object: that is what is left for a moment by an editor that saves
/// in place, or for good by a machine that stopped before anything was written.
///
/// # Errors
/// What is wrong, and where, without a word of the content.
pub fn parse_object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    match parse_file_text(bytes) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Array(_)) => Err("it is not a JSON object but a list".into()),
        Ok(_) => Err("it is not a JSON object but a single value".into()),
        // The messages of this reader quote nothing, unlike the excerpt and the path.
        Err(e) => Err(format!("it is not valid JSON at {}: {}", e.position(), e.message)),
    }
}

/// As [`parse`] with a byte order mark tolerated, but an object that has a key twice is an error. For manifests.
///
/// # Errors
/// As [`parse`], and for a repeated key.
pub fn parse_unique(text: &str) -> Result<Value, ParseError> {
    Parser::after_bom(text, Keys::Unique).document()
}

/// As [`parse`], but an object that has a key twice is an error. For what strangers send: of two values under one key, who checks
/// and who acts may each take another.
///
/// # Errors
/// As [`parse_unique`].
pub fn parse_untrusted(text: &str) -> Result<Value, ParseError> {
    Parser::new(text, Keys::Unique).document()
}

/// As [`parse_untrusted`], for bytes that should be UTF-8.
///
/// # Errors
/// As [`parse_untrusted`], and for bytes that are not UTF-8.
pub fn parse_untrusted_bytes(bytes: &[u8]) -> Result<Value, ParseError> {
    parse_untrusted(utf8(bytes)?)
}

fn utf8(bytes: &[u8]) -> Result<&str, ParseError> {
    std::str::from_utf8(bytes).map_err(|e| {
        let good = String::from_utf8_lossy(&bytes[..e.valid_up_to()]).into_owned();
        let fault = Fault {
            message: "not UTF-8 text".into(),
            offset: e.valid_up_to(),
            truncated: e.error_len().is_none(),
            path: Vec::new(),
        };
        fault.locate(&good)
    })
}

/// The same text for the same value: keys sorted at every level, no white space.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

/// How many bytes the compact text of a value has, without making it.
#[must_use]
pub fn encoded_len(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (i, (key, item)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(item, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Keys {
    LastWins,
    Unique,
}

/// What becomes of a number that no type of ours can hold.
#[derive(Clone, Copy, PartialEq)]
enum TooWide {
    Refused,
    Text,
}

/// An error before its line, column and excerpt are worked out; the path grows while the parser unwinds.
struct Fault {
    message: String,
    offset: usize,
    truncated: bool,
    path: Vec<Step>,
}

enum Step {
    Key(String),
    Index(usize),
}

impl Fault {
    fn locate(self, text: &str) -> ParseError {
        let at = floor_boundary(text, self.offset);
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let start = before.char_indices().rev().take(EXCERPT / 2).last().map_or(at, |(i, _)| i);
        let end = text[at..].char_indices().nth(EXCERPT / 2).map_or(text.len(), |(i, _)| at + i);
        let mut path = String::new();
        for step in self.path.iter().rev() {
            match step {
                Step::Key(key) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.extend(key.chars().take(EXCERPT));
                }
                Step::Index(i) => path.push_str(&format!("[{i}]")),
            }
        }
        ParseError {
            message: self.message,
            offset: self.offset,
            line: before.matches('\n').count() + 1,
            column: text[line_start..at].chars().count() + 1,
            excerpt: text[start..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
            path,
            truncated: self.truncated,
        }
    }
}

fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

type Parsed<T> = Result<T, Box<Fault>>;

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    depth: usize,
    keys: Keys,
    too_wide: TooWide,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, keys: Keys) -> Self {
        Parser { text, bytes: text.as_bytes(), pos: 0, depth: 0, keys, too_wide: TooWide::Refused }
    }

    fn after_bom(text: &'a str, keys: Keys) -> Self {
        let mut parser = Parser::new(text, keys);
        if text.starts_with('\u{feff}') {
            parser.pos = '\u{feff}'.len_utf8();
        }
        parser
    }

    fn document(mut self) -> Result<Value, ParseError> {
        let parsed = self.value().and_then(|value| {
            self.space();
            if self.pos < self.bytes.len() { Err(self.fault("text after the end of the value")) } else { Ok(value) }
        });
        parsed.map_err(|fault| fault.locate(self.text))
    }

    fn fault_at(&self, offset: usize, message: impl Into<String>) -> Box<Fault> {
        Box::new(Fault { message: message.into(), offset, truncated: false, path: Vec::new() })
    }

    /// An error at the present place: "ends too early" where the text is used up.
    fn fault(&self, message: impl Into<String>) -> Box<Fault> {
        let mut fault = self.fault_at(self.pos, message);
        if self.pos >= self.bytes.len() {
            fault.message =
                if self.text.trim().is_empty() { "the text is empty" } else { "the text ends too early" }.into();
            fault.truncated = true;
        }
        fault
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.pos += 1;
        }
    }

    fn value(&mut self) -> Parsed<Value> {
        self.space();
        match self.peek() {
            Some(b'"') => self.string().map(Value::String),
            Some(b'{') => self.nested(Parser::object),
            Some(b'[') => self.nested(Parser::array),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'\'') => Err(self.fault("strings stand in double quotes")),
            Some(b'/' | b'#') => Err(self.fault("JSON has no comments")),
            _ => Err(self.fault("expected a value")),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Parsed<Value> {
        let rest = &self.bytes[self.pos..];
        if rest.starts_with(word.as_bytes()) {
            self.pos += word.len();
            return Ok(value);
        }
        if word.as_bytes().starts_with(rest) {
            self.pos = self.bytes.len();
        }
        Err(self.fault("expected a value (true, false and null are written in lower case)"))
    }

    fn nested(&mut self, read: fn(&mut Self) -> Parsed<Value>) -> Parsed<Value> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault(format!("more than {MAX_DEPTH} levels of nesting")));
        }
        self.depth += 1;
        self.pos += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn array(&mut self) -> Parsed<Value> {
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.pos += 1;
            return Ok(Value::Array(items));
        }
        loop {
            self.space();
            if self.peek() == Some(b']') {
                return Err(self.fault("a comma before `]`"));
            }
            match self.value() {
                Ok(item) => items.push(item),
                Err(mut fault) => {
                    fault.path.push(Step::Index(items.len()));
                    return Err(fault);
                }
            }
            self.space();
            match self.peek() {
                Some(b',') => self.pos += 1,
                Some(b']') => {
                    self.pos += 1;
                    return Ok(Value::Array(items));
                }
                _ => return Err(self.fault("expected `,` or `]`")),
            }
        }
    }

    fn object(&mut self) -> Parsed<Value> {
        let mut map = Map::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.pos += 1;
            return Ok(Value::Object(map));
        }
        loop {
            self.space();
            let key_at = self.pos;
            match self.peek() {
                Some(b'"') => {}
                Some(b'}') => return Err(self.fault("a comma before `}`")),
                _ => return Err(self.fault("expected a key in double quotes")),
            }
            let key = self.string()?;
            if self.keys == Keys::Unique && map.contains_key(&key) {
                let shown: String = key.chars().take(EXCERPT).collect();
                return Err(self.fault_at(key_at, format!("the key {shown:?} stands twice in one object")));
            }
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.fault("expected `:` after the key"));
            }
            self.pos += 1;
            match self.value() {
                Ok(item) => {
                    map.insert(key, item);
                }
                Err(mut fault) => {
                    fault.path.push(Step::Key(key));
                    return Err(fault);
                }
            }
            self.space();
            match self.peek() {
                Some(b',') => self.pos += 1,
                Some(b'}') => {
                    self.pos += 1;
                    return Ok(Value::Object(map));
                }
                _ => return Err(self.fault("expected `,` or `}`")),
            }
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.pos;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.pos += 1;
        }
        self.pos - start
    }

    fn number(&mut self) -> Parsed<Value> {
        let start = self.pos;
        if self.peek() == Some(b'-') {
            self.pos += 1;
        }
        let first = self.pos;
        match self.digits() {
            0 => return Err(self.fault("expected a digit")),
            n if n > 1 && self.bytes[first] == b'0' => {
                return Err(self.fault_at(first, "a number does not begin with 0"));
            }
            _ => {}
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.pos += 1;
            if self.digits() == 0 {
                return Err(self.fault("expected a digit after the point"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            whole = false;
            self.pos += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.pos += 1;
            }
            if self.digits() == 0 {
                return Err(self.fault("expected a digit in the exponent"));
            }
        }
        let literal = &self.text[start..self.pos];
        let held = if whole {
            literal.parse::<i64>().ok().map(Number::from)
        } else {
            literal.parse::<f64>().ok().and_then(Number::from_f64)
        };
        match (held, self.too_wide) {
            (Some(number), _) => Ok(Value::Number(number)),
            (None, TooWide::Text) => Ok(Value::String(literal.to_owned())),
            (None, TooWide::Refused) if whole => {
                Err(self.fault_at(start, "an integer outside 64 bits; send it as text, or with a decimal point"))
            }
            (None, TooWide::Refused) => Err(self.fault_at(start, "a number too large for a float")),
        }
    }

    fn string(&mut self) -> Parsed<String> {
        self.pos += 1;
        let mut out = String::new();
        loop {
            let start = self.pos;
            while self.peek().is_some_and(|b| b != b'"' && b != b'\\' && b >= 0x20) {
                self.pos += 1;
            }
            // Both ends stand at ASCII bytes or at the end, so the slice is on character boundaries.
            out.push_str(&self.text[start..self.pos]);
            match self.peek() {
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(0) => return Err(self.fault("a NUL in a string; write it as \\u0000")),
                _ => return Err(self.fault("a control character in a string; write it as an escape")),
            }
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let start = self.pos;
        self.pos += 1;
        let letter = self.peek();
        let plain = match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.pos += 1;
                return self.unicode(start);
            }
            _ => return Err(self.fault("an escape that JSON does not have")),
        };
        self.pos += 1;
        Ok(plain)
    }

    fn unicode(&mut self, start: usize) -> Parsed<char> {
        let first = self.hex()?;
        let lone = |parser: &Self| {
            parser.fault_at(
                start,
                format!("the escape \\u{first:04x} is half of a surrogate pair and stands for no character"),
            )
        };
        let code = match first {
            0xD800..=0xDBFF => {
                let rest = &self.bytes[self.pos..];
                if rest.len() < 2 && b"\\u".starts_with(rest) {
                    self.pos = self.bytes.len();
                    return Err(self.fault("expected the second half of a surrogate pair"));
                }
                if !rest.starts_with(b"\\u") {
                    return Err(lone(self));
                }
                self.pos += 2;
                match self.hex()? {
                    second @ 0xDC00..=0xDFFF => 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00),
                    _ => return Err(lone(self)),
                }
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| lone(self))
    }

    fn hex(&mut self) -> Parsed<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|b| char::from(b).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.fault("expected four hexadecimal digits after \\u"))?;
            self.pos += 1;
        }
        Ok(code)
    }
}

/// What does not fit a shape, in the words of JSON: what serde says names types of this program.
#[must_use]
pub fn plain_words(message: &str) -> String {
    let mut text = message.to_owned();
    for kind in
        ["internally tagged enum ", "adjacently tagged enum ", "tuple struct ", "unit struct ", "struct ", "enum "]
    {
        let from = format!("expected {kind}");
        while let Some(at) = text.find(&from) {
            let rest = &text[at + from.len()..];
            let mut behind = rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
            if let Some(count) = behind.strip_prefix(" with ") {
                let count = count.trim_start_matches(|c: char| c.is_ascii_digit());
                behind = count.strip_prefix(" elements").or_else(|| count.strip_prefix(" element")).unwrap_or(behind);
            }
            let wanted = if kind.contains("tuple") { "expected a list" } else { "expected an object" };
            text = format!("{}{wanted}{behind}", &text[..at]);
        }
    }
    [
        ("invalid type: ", ""),
        ("invalid value: ", ""),
        ("invalid length 0", "an empty list"),
        ("expected i64", "expected a whole number"),
        ("expected u64", "expected a whole number, not below 0"),
        ("expected u32", "expected a whole number, not below 0"),
        ("expected u16", "expected a whole number, not below 0"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected an object"),
        ("expected a boolean", "expected true or false"),
        ("map, ", "an object, "),
        ("sequence, ", "a list, "),
    ]
    .into_iter()
    .fold(text, |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
