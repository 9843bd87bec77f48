//! The objects that a PDF file is written in, and their parser: numbers, names, texts, arrays, dictionaries, references.
//! It knows nothing of what objects mean; nesting and number of values are bounded, so hostile ones end in an error.

/// Deepest nesting of arrays and dictionaries.
const MAX_DEPTH: usize = 64;
/// Most bytes of one text; the rest of a longer one is passed over.
const MAX_TEXT: usize = 4 << 20;
/// Most values inside one object.
const MAX_VALUES: usize = 200_000;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
    Name(Vec<u8>),
    Array(Vec<Value>),
    Map(Dict),
    /// An object elsewhere, by number and generation.
    Ref(u32, u16),
    /// A bare word: an operator of a page, or a keyword.
    Word(Vec<u8>),
}

/// A dictionary; the last of equal keys counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Dict(pub Vec<(Vec<u8>, Value)>);

impl Dict {
    pub fn get(&self, key: &[u8]) -> Option<&Value> {
        self.0.iter().rev().find(|(k, _)| k == key).map(|(_, value)| value)
    }

    pub fn is(&self, key: &[u8], name: &[u8]) -> bool {
        self.get(key).and_then(Value::name) == Some(name)
    }
}

impl Value {
    pub fn name(&self) -> Option<&[u8]> {
        if let Value::Name(name) = self { Some(name) } else { None }
    }

    pub fn text(&self) -> Option<&[u8]> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(n) => Some(*n as f64),
            Value::Real(n) => Some(*n),
            _ => None,
        }
    }

    pub fn integer(&self) -> Option<i64> {
        match self {
            Value::Integer(n) => Some(*n),
            Value::Real(n) if n.abs() < 1e15 => Some(*n as i64),
            _ => None,
        }
    }

    pub fn array(&self) -> Option<&[Value]> {
        if let Value::Array(items) = self { Some(items) } else { None }
    }

    pub fn map(&self) -> Option<&Dict> {
        if let Value::Map(map) = self { Some(map) } else { None }
    }
}

/// Reads values one after the other.
pub(super) struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    values: usize,
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !is_delimiter(byte)
}

impl<'a> Parser<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Parser { bytes, at: at.min(bytes.len()), values: 0 }
    }

    /// Where the next byte stands.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn go_to(&mut self, at: usize) {
        self.at = at.min(self.bytes.len());
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Whether `word` comes next; it is passed where it does.
    pub fn take(&mut self, word: &[u8]) -> bool {
        let there = self.bytes[self.at..].starts_with(word);
        if there {
            self.at += word.len();
        }
        there
    }

    pub fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            if byte == b'%' {
                while self.peek().is_some_and(|b| b != b'\n' && b != b'\r') {
                    self.at += 1;
                }
            } else if is_space(byte) {
                self.at += 1;
            } else {
                break;
            }
        }
    }

    /// The next value with references, as in the body of a file; `None` at the end and for what cannot be read.
    pub fn object(&mut self) -> Option<Value> {
        self.values = 0;
        self.value(0, true)
    }

    /// The next value without references, as in the content of a page.
    pub fn operand(&mut self) -> Option<Value> {
        self.values = 0;
        self.value(0, false)
    }

    fn value(&mut self, depth: usize, references: bool) -> Option<Value> {
        self.values += 1;
        if depth > MAX_DEPTH || self.values > MAX_VALUES {
            return None;
        }
        self.skip_space();
        match self.peek()? {
            b'/' => Some(Value::Name(self.name())),
            b'(' => Some(Value::Text(self.literal())),
            b'<' if self.bytes.get(self.at + 1) == Some(&b'<') => {
                self.at += 2;
                Some(Value::Map(self.dict(depth, references)?))
            }
            b'<' => Some(Value::Text(self.hex())),
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                loop {
                    self.skip_space();
                    match self.peek() {
                        None => return Some(Value::Array(items)),
                        Some(b']') => {
                            self.at += 1;
                            return Some(Value::Array(items));
                        }
                        Some(_) => items.push(self.value(depth + 1, references)?),
                    }
                }
            }
            b'+' | b'-' | b'.' | b'0'..=b'9' => Some(self.number(references)),
            b')' | b'>' | b']' | b'{' | b'}' => {
                let from = self.at;
                self.at += 1;
                Some(Value::Word(self.bytes[from..self.at].to_vec()))
            }
            _ => Some(match self.word() {
                b"true" => Value::Bool(true),
                b"false" => Value::Bool(false),
                b"null" => Value::Null,
                word => Value::Word(word.to_vec()),
            }),
        }
    }

    fn dict(&mut self, depth: usize, references: bool) -> Option<Dict> {
        let mut dict = Dict::default();
        loop {
            self.skip_space();
            match self.peek() {
                None => return Some(dict),
                Some(b'>') => {
                    self.at += 1;
                    self.take(b">");
                    return Some(dict);
                }
                Some(b'/') => {
                    let key = self.name();
                    let before = self.at;
                    match self.value(depth + 1, references)? {
                        // A key without a value, at the end of a dictionary that is written wrong.
                        Value::Word(word) if word == b">" => self.at = before,
                        Value::Word(word) if word == b"endobj" || word == b"stream" => {
                            self.at = before;
                            return Some(dict);
                        }
                        value => dict.0.push((key, value)),
                    }
                }
                // What is no key is passed.
                Some(_) => match self.value(depth + 1, references)? {
                    Value::Word(word) if word == b"endobj" || word == b"stream" => {
                        self.at -= word.len();
                        return Some(dict);
                    }
                    _ => {}
                },
            }
        }
    }

    fn word(&mut self) -> &'a [u8] {
        let from = self.at;
        while self.peek().is_some_and(is_regular) {
            self.at += 1;
        }
        &self.bytes[from..self.at]
    }

    fn name(&mut self) -> Vec<u8> {
        self.at += 1;
        let raw = self.word();
        let mut name = Vec::with_capacity(raw.len());
        let mut at = 0;
        while at < raw.len() {
            let code =
                (raw[at] == b'#').then(|| Some((digit(*raw.get(at + 1)?)?, digit(*raw.get(at + 2)?)?))).flatten();
            if let Some((high, low)) = code {
                name.push(high << 4 | low);
                at += 3;
            } else {
                name.push(raw[at]);
                at += 1;
            }
        }
        name
    }

    fn number(&mut self, references: bool) -> Value {
        let from = self.at;
        let word = self.word();
        let number = plain_number(word);
        if references
            && let Value::Integer(number @ 0..=0xffff_ffff) = number
            && word[0].is_ascii_digit()
        {
            let behind = self.at;
            if let Some(generation) = self.generation() {
                return Value::Ref(number as u32, generation);
            }
            self.at = behind;
        }
        if self.at == from {
            self.at += 1;
        }
        number
    }

    /// `G R` behind a number, which makes it a reference.
    fn generation(&mut self) -> Option<u16> {
        self.skip_space();
        if !self.peek()?.is_ascii_digit() {
            return None;
        }
        let generation = std::str::from_utf8(self.word()).ok()?.parse().ok()?;
        self.skip_space();
        (self.peek()? == b'R' && !self.bytes.get(self.at + 1).is_some_and(|b| is_regular(*b))).then(|| self.at += 1)?;
        Some(generation)
    }

    /// A text in parentheses.
    fn literal(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'(' => {
                    depth += 1;
                    if depth > 1 {
                        text.push(byte);
                    }
                }
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                    text.push(byte);
                }
                _ if text.len() >= MAX_TEXT => {}
                b'\\' => self.escape(&mut text),
                b'\r' => {
                    self.take(b"\n");
                    text.push(b'\n');
                }
                _ => text.push(byte),
            }
        }
        text
    }

    fn escape(&mut self, text: &mut Vec<u8>) {
        let Some(byte) = self.peek() else { return };
        self.at += 1;
        match byte {
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'b' => text.push(8),
            b'f' => text.push(0x0c),
            b'\r' => {
                self.take(b"\n");
            }
            b'\n' => {}
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(next @ b'0'..=b'7') = self.peek() else { break };
                    code = code * 8 + u32::from(next - b'0');
                    self.at += 1;
                }
                text.push((code & 0xff) as u8);
            }
            other => text.push(other),
        }
    }

    fn hex(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut text = Vec::new();
        let mut half = None;
        while let Some(byte) = self.peek() {
            self.at += 1;
            if byte == b'>' {
                break;
            }
            let Some(digit) = digit(byte) else { continue };
            match half.take() {
                None => half = Some(digit),
                Some(_) if text.len() >= MAX_TEXT => {}
                Some(high) => text.push(high << 4 | digit),
            }
        }
        text.extend(half.map(|high| high << 4));
        text
    }
}

/// A number as it is written, signs and points in odd places included; what is none is 0.
fn plain_number(word: &[u8]) -> Value {
    let text = std::str::from_utf8(word).unwrap_or_default();
    if let Ok(integer) = text.parse::<i64>() {
        return Value::Integer(integer);
    }
    let real: Option<f64> = text.parse().ok().filter(|n: &f64| n.is_finite());
    // `--5`, `1.2.3`, `5-3`: the beginning counts.
    let lenient = || {
        let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
        let body = text.trim_start_matches(['-', '+']);
        let mut points = 0;
        let end = body
            .find(|c: char| {
                points += usize::from(c == '.');
                !(c.is_ascii_digit() || (c == '.' && points == 1))
            })
            .unwrap_or(body.len());
        sign * body[..end].parse::<f64>().unwrap_or(0.0)
    };
    Value::Real(real.unwrap_or_else(lenient))
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Value> {
        Parser::new(text.as_bytes(), 0).object()
    }

    fn text(bytes: &[u8]) -> Value {
        Value::Text(bytes.to_vec())
    }

    #[test]
    fn values_are_read_as_they_are_written() {
        let rows = [
            ("12", Value::Integer(12)),
            ("-.5", Value::Real(-0.5)),
            ("+3.", Value::Real(3.0)),
            ("--7", Value::Real(-7.0)),
            ("1.2.3", Value::Real(1.2)),
            ("99999999999999999999", Value::Real(1e20)),
            ("12 0 R", Value::Ref(12, 0)),
            ("12 0 Rx", Value::Integer(12)),
            ("12 0", Value::Integer(12)),
            ("/A#20b#zz", Value::Name(b"A b#zz".to_vec())),
            ("(a(b)\\)\\n\\101\\7\\\nc)", text(b"a(b))\nA\x07c")),
            ("(a\r\nb", text(b"a\nb")),
            ("<48 656C6c6>", text(b"Hell`")),
            ("true", Value::Bool(true)),
            ("% c\n null", Value::Null),
            ("BT", Value::Word(b"BT".to_vec())),
            (
                "[1 [2] /x",
                Value::Array(vec![
                    Value::Integer(1),
                    Value::Array(vec![Value::Integer(2)]),
                    Value::Name(b"x".to_vec()),
                ]),
            ),
        ];
        for (written, value) in rows {
            assert_eq!(read(written), Some(value), "{written}");
        }
        assert_eq!(read(""), None);
        let dict = read("<< /A 1 /B << /C 2 0 R >> junk /A 3 /D >>").unwrap();
        let dict = dict.map().unwrap();
        assert_eq!(dict.get(b"A"), Some(&Value::Integer(3)));
        assert_eq!(dict.get(b"B").unwrap().map().unwrap().get(b"C"), Some(&Value::Ref(2, 0)));
        assert_eq!(dict.get(b"D"), None);
    }

    #[test]
    fn what_nests_or_repeats_without_end_is_refused() {
        assert_eq!(read(&"[".repeat(100_000)), None);
        assert_eq!(read(&"<</A".repeat(100_000)), None);
        assert_eq!(read(&format!("[{}]", "1 ".repeat(MAX_VALUES + 1))), None);
        assert!(read(&format!("{}x{}", "(".repeat(100_000), ")".repeat(100_000))).is_some());
    }
}
