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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::error::Kind;
    use serde_json::json;

    #[test]
    fn good_texts_give_the_value_serde_json_gives() {
        let texts = [
            "null",
            "true",
            "false",
            "0",
            "1",
            "-1",
            "9223372036854775807",
            "-9223372036854775808",
            "1.5",
            "-0.25",
            "1e3",
            "1E-7",
            "2.5e+10",
            "123456789.123456789",
            "5e-324",
            "1.7976931348623157e308",
            r#""""#,
            r#""plain""#,
            r#""a\"b\\c\/d\b\f\n\r\t""#,
            r#""\u00e9\u4e2d""#,
            r#""\ud83d\ude00""#,
            r#""\u0000""#,
            "\"日本 é 😀\"",
            "\"e\u{301}\"",
            "\"\u{202e}rtl\"",
            "[]",
            "{}",
            " [ 1 , 2 ] ",
            "[[[]]]",
            r#"{"a":{"b":[1,{"c":null}]}}"#,
            "\t{\r\n\"k\" : \"v\"\n}\n",
            r#"{"":1}"#,
            r#"[true,false,null,"x",1.0]"#,
            r#"{"a":1,"a":2}"#,
        ];
        for text in texts {
            assert_eq!(parse(text).unwrap(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn bad_texts_say_what_and_where() {
        // text, byte offset, ends too early, a word of the message
        let rows: &[(&str, usize, bool, &str)] = &[
            ("", 0, true, "empty"),
            ("  \n", 3, true, "empty"),
            ("{", 1, true, "ends too early"),
            ("[", 1, true, "ends too early"),
            ("[1", 2, true, "ends too early"),
            ("[1,", 3, true, "ends too early"),
            (r#"{"a""#, 4, true, "ends too early"),
            (r#"{"a":"#, 5, true, "ends too early"),
            (r#"{"a":1"#, 6, true, "ends too early"),
            (r#"{"a":1,"#, 7, true, "ends too early"),
            (r#""abc"#, 4, true, "ends too early"),
            (r#""abc\"#, 5, true, "ends too early"),
            (r#""\u00"#, 5, true, "ends too early"),
            (r#""\ud83d"#, 7, true, "ends too early"),
            (r#""\ud83d\"#, 8, true, "ends too early"),
            ("tru", 3, true, "ends too early"),
            ("nul", 3, true, "ends too early"),
            ("-", 1, true, "ends too early"),
            ("1.", 2, true, "ends too early"),
            ("1e", 2, true, "ends too early"),
            ("True", 0, false, "expected a value"),
            ("trux", 0, false, "lower case"),
            ("None", 0, false, "expected a value"),
            ("NaN", 0, false, "expected a value"),
            ("Infinity", 0, false, "expected a value"),
            ("'a'", 0, false, "double quotes"),
            ("// x\n1", 0, false, "comments"),
            ("[1,]", 3, false, "comma before `]`"),
            (r#"{"a":1,}"#, 7, false, "comma before `}`"),
            ("{a:1}", 1, false, "key in double quotes"),
            (r#"{"a" 1}"#, 5, false, "`:`"),
            (r#"{"a":1 "b":2}"#, 7, false, "`,` or `}`"),
            ("[1 2]", 3, false, "`,` or `]`"),
            ("1 2", 2, false, "after the end"),
            ("{}x", 2, false, "after the end"),
            ("01", 0, false, "begin with 0"),
            ("-01", 1, false, "begin with 0"),
            ("+1", 0, false, "expected a value"),
            (".5", 0, false, "expected a value"),
            ("1.x", 2, false, "digit after the point"),
            ("1ex", 2, false, "exponent"),
            ("0x10", 1, false, "after the end"),
            ("9223372036854775808", 0, false, "outside 64 bits"),
            ("-9223372036854775809", 0, false, "outside 64 bits"),
            ("18446744073709551616", 0, false, "outside 64 bits"),
            ("[1, 99999999999999999999999]", 4, false, "outside 64 bits"),
            ("1e999", 0, false, "too large for a float"),
            (r#""\x""#, 2, false, "escape"),
            (r#""\u12g4""#, 5, false, "hexadecimal"),
            (r#""\ud800""#, 1, false, "surrogate"),
            (r#""\ud800x""#, 1, false, "surrogate"),
            (r#""\udc00""#, 1, false, "surrogate"),
            (r#""\ud800\u0041""#, 1, false, "surrogate"),
            ("\"a\nb\"", 2, false, "control character"),
            ("\"a\u{0}b\"", 2, false, "NUL"),
            ("\u{feff}{}", 0, false, "expected a value"),
        ];
        for (text, offset, truncated, word) in rows {
            let e = parse(text).unwrap_err();
            assert_eq!((e.offset, e.truncated), (*offset, *truncated), "{text:?}: {e}");
            assert!(e.message.contains(word), "{text:?}: {e}");
            assert!(e.excerpt.chars().count() <= 40, "{text:?}");
        }
    }

    #[test]
    fn a_cut_text_is_told_from_a_wrong_one_at_every_byte() {
        let whole = r#"{"name":"dice","sides":[4,6,-20.5e1],"on":true,"s":"a\u00e9\ud83d\ude00\n","n":null}"#;
        for end in 0..whole.len() {
            assert!(parse(&whole[..end]).unwrap_err().truncated, "{}", &whole[..end]);
        }
        assert!(parse(whole).is_ok());
    }

    #[test]
    fn positions_count_lines_characters_and_bytes() {
        let e = parse("{\n  \"é\": 1,\n  \"日\": oops\n}").unwrap_err();
        assert_eq!((e.line, e.column, e.offset), (3, 8, 22));
        assert_eq!(e.path, "日");
        assert_eq!(e.excerpt, "{   \"é\": 1,   \"日\": oops }");
    }

    #[test]
    fn the_path_leads_to_the_bad_integer() {
        let e = parse(r#"{"a":[{"b":1},{"b":[0,12345678901234567890]}]}"#).unwrap_err();
        assert_eq!(e.path, "a[1].b[1]");
        let error = Error::from(e);
        assert_eq!(error.kind(), Kind::InvalidArguments);
        assert!(error.message().contains("at `a[1].b[1]`: an integer outside 64 bits"), "{error}");
    }

    #[test]
    fn only_a_cut_text_is_worth_a_retry() {
        assert!(Error::from(parse("{").unwrap_err()).retryable());
        assert!(!Error::from(parse("{]").unwrap_err()).retryable());
    }

    #[test]
    fn depth_is_limited_without_using_up_the_stack() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        let e = parse(&nested(MAX_DEPTH + 1)).unwrap_err();
        assert!(e.message.contains("128 levels"), "{e}");
        assert!(!parse(&"[".repeat(1_000_000)).unwrap_err().truncated);
    }

    #[test]
    fn a_repeated_key_is_named_with_its_place_where_that_matters() {
        let text = r#"{"x":{"name":1,"other":2,"name":3}}"#;
        assert_eq!(parse(text).unwrap()["x"]["name"], 3);
        let e = parse_unique(text).unwrap_err();
        assert_eq!((e.offset, e.path.as_str()), (25, "x"));
        assert!(e.message.contains("\"name\""), "{e}");
        assert!(parse_unique(r#"{"a":{"k":1},"b":{"k":1}}"#).is_ok());
        assert_eq!(parse_untrusted(text).unwrap_err(), e);
        assert!(parse_untrusted("\u{feff}{}").is_err());
    }

    #[test]
    fn a_byte_order_mark_is_fine_in_files_only() {
        assert_eq!(parse_file_text(b"\xef\xbb\xbf{}").unwrap(), json!({}));
        assert_eq!(parse_unique("\u{feff}{}").unwrap(), json!({}));
        assert_eq!(parse_file_text(b"\xef\xbb\xbf{x").unwrap_err().offset, 4);
        assert!(parse_bytes(b"\xef\xbb\xbf{}").is_err());
    }

    #[test]
    fn bytes_that_are_not_utf8_are_located() {
        let e = parse_bytes(b"{\"a\":\"\xff\"}").unwrap_err();
        assert_eq!((e.offset, e.truncated), (6, false));
        assert!(parse_bytes(b"\"\xe6\x97").unwrap_err().truncated);
    }

    #[test]
    fn canonical_text_does_not_depend_on_the_order_of_keys() {
        let a = parse(r#"{"b":[1,{"z":1,"y":"é\n"}],"a":1.5}"#).unwrap();
        let b = parse(r#"{ "a":1.5, "b":[1,{"y":"é\n","z":1}] }"#).unwrap();
        assert_eq!(canonical(&a), r#"{"a":1.5,"b":[1,{"y":"é\n","z":1}]}"#);
        assert_eq!(canonical(&a), canonical(&b));
    }

    #[test]
    fn the_length_is_that_of_the_compact_text() {
        for value in [json!(null), json!({"a": [1, 2.5, "é\n"], "b": {}}), json!("")] {
            assert_eq!(encoded_len(&value), value.to_string().len());
        }
    }

    #[test]
    fn control_characters_never_reach_the_excerpt() {
        let e = parse("[\u{1b}[31m").unwrap_err();
        assert!(!e.to_string().contains('\u{1b}'));
    }

    #[test]
    fn of_other_programs_a_number_that_nothing_holds_is_the_text_of_its_digits() {
        for (text, want) in [
            ("9223372036854775807", json!(i64::MAX)),
            ("9223372036854775808", json!("9223372036854775808")),
            ("-9223372036854775809", json!("-9223372036854775809")),
            ("[1, {\"b\": 12345678901234567890}]", json!([1, {"b": "12345678901234567890"}])),
            ("1e400", json!("1e400")),
            ("-1.5E+999", json!("-1.5E+999")),
            ("1e300", json!(1e300)),
        ] {
            assert_eq!(parse_foreign(text).unwrap(), want, "{text}");
        }
        for wrong in ["01", "1.", "--1", "[1 2]", "12345678901234567890x"] {
            assert!(parse_foreign(wrong).is_err(), "{wrong}");
        }
    }
}
