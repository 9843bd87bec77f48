//! Fonts, as far as text needs them: which bytes are one sign, what it stands for, and how wide it is. Shapes are not read.

use super::file::File;
use super::glyph;
use super::object::{Dict, Parser, Value};
use crate::base::error::Result;
use std::collections::HashMap;

/// Most entries of one table of characters.
const MAX_ENTRIES: usize = 100_000;

/// A sign on a page.
pub(super) struct Sign<'a> {
    /// What it stands for; empty where the file does not say.
    pub text: &'a str,
    /// Its width, in thousandths of the font's size.
    pub width: f64,
    /// Whether it is the one-byte code 32, which words are spaced by.
    pub space: bool,
}

/// How many bytes make a code.
enum Codes {
    One,
    Two,
    /// By the ranges of the file: bytes, lowest, highest.
    Ranges(Vec<(usize, u32, u32)>),
    /// A national encoding of one or two bytes.
    National(&'static encoding_rs::Encoding),
    Utf16,
}

/// A font.
pub(super) struct Font {
    codes: Codes,
    unicode: Table,
    /// What each code of a font of one byte stands for where no table says.
    simple: Vec<String>,
    widths: HashMap<u32, f64>,
    default_width: f64,
    /// Thousandths for each unit of a width; otherwise only in fonts that are drawn by the page.
    scale: f64,
}

/// What codes stand for, as the file says.
#[derive(Default)]
struct Table {
    single: HashMap<u32, String>,
    /// Lowest, highest, and what the lowest stands for; its last unit counts up.
    ranges: Vec<(u32, u32, Vec<u16>)>,
    codes: Vec<(usize, u32, u32)>,
}

impl Font {
    /// Reads a font.
    ///
    /// # Errors
    /// Those of [`File::get`].
    pub fn read(file: &File, dict: &Dict) -> Result<Font> {
        let unicode = match dict.get(b"ToUnicode") {
            Some(value) => file.stream(value)?.map(|(_, content)| Table::read(&content, file)).transpose()?,
            None => None,
        };
        let unicode = unicode.unwrap_or_default();
        if dict.is(b"Subtype", b"Type0") {
            Font::composite(file, dict, unicode)
        } else {
            Font::simple(file, dict, unicode)
        }
    }

    fn simple(file: &File, dict: &Dict, unicode: Table) -> Result<Font> {
        let name = file.at(dict, b"BaseFont")?.name().unwrap_or_default().to_vec();
        let encoding = file.at(dict, b"Encoding")?;
        let descriptor = file.map_at(dict, b"FontDescriptor")?;
        let standard: &[u8] = if dict.is(b"Subtype", b"TrueType") { b"WinAnsiEncoding" } else { b"StandardEncoding" };
        let base = match &encoding {
            Value::Name(name) => name.clone(),
            Value::Map(map) => file.at(map, b"BaseEncoding")?.name().unwrap_or(standard).to_vec(),
            _ => standard.to_vec(),
        };
        let mut simple: Vec<String> = (0..=255).map(|code| glyph::of_code(&base, code).unwrap_or_default()).collect();
        if let Value::Map(map) = &encoding
            && let Value::Array(differences) = file.at(map, b"Differences")?
        {
            let mut code = 0_usize;
            for item in &differences {
                match item {
                    Value::Name(name) => {
                        if let Some(slot) = simple.get_mut(code) {
                            *slot = glyph::of_name(name).unwrap_or_default();
                        }
                        code = code.saturating_add(1);
                    }
                    other => code = other.integer().and_then(|n| usize::try_from(n).ok()).unwrap_or(code),
                }
            }
        }
        let drawn = dict.is(b"Subtype", b"Type3");
        let scale = if drawn {
            let matrix = file.at(dict, b"FontMatrix")?;
            let across = matrix.array().and_then(<[Value]>::first).and_then(Value::number).unwrap_or(0.001);
            across.abs() * 1000.0
        } else {
            1.0
        };
        let first = file.at(dict, b"FirstChar")?.integer().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        let mut widths = HashMap::new();
        match file.at(dict, b"Widths")? {
            Value::Array(given) => {
                for (at, width) in given.iter().enumerate().take(256) {
                    if let Some(width) = file.get(width)?.number() {
                        widths.insert(first.saturating_add(at as u32), width);
                    }
                }
            }
            _ => widths.extend((0..=255_u8).map(|code| (u32::from(code), glyph::width(&name, code)))),
        }
        let default_width = file.at(&descriptor, b"MissingWidth")?.number().unwrap_or(0.0);
        Ok(Font { codes: Codes::One, unicode, simple, widths, default_width, scale })
    }

    fn composite(file: &File, dict: &Dict, unicode: Table) -> Result<Font> {
        let encoding = dict.get(b"Encoding").unwrap_or(&Value::Null);
        let codes = match file.get(encoding)? {
            Value::Name(name) => national(&name),
            Value::Map(_) => match file.stream(encoding)? {
                Some((_, content)) => match Table::read(&content, file)?.codes {
                    ranges if ranges.is_empty() => Codes::Two,
                    ranges => Codes::Ranges(ranges),
                },
                None => Codes::Two,
            },
            _ => Codes::Two,
        };
        let inner = match file.at(dict, b"DescendantFonts")?.array().and_then(<[Value]>::first) {
            Some(value) => file.get(value)?,
            None => Value::Null,
        };
        let inner = if let Value::Map(inner) = inner { inner } else { Dict::default() };
        let mut widths = HashMap::new();
        if let Value::Array(given) = file.at(&inner, b"W")? {
            composite_widths(file, &given, &mut widths)?;
        }
        let default_width = file.at(&inner, b"DW")?.number().unwrap_or(1000.0);
        Ok(Font { codes, unicode, simple: Vec::new(), widths, default_width, scale: 1.0 })
    }

    /// The signs of a text of the page, one after the other.
    pub fn signs(&self, bytes: &[u8], mut each: impl FnMut(Sign)) {
        let mut rest = bytes;
        let mut text = String::new();
        while !rest.is_empty() {
            let length = self.code_length(rest).clamp(1, rest.len().min(4));
            let (head, tail) = rest.split_at(length);
            rest = tail;
            let code = head.iter().fold(0_u32, |code, byte| code << 8 | u32::from(*byte));
            text.clear();
            if !self.unicode.find(code, &mut text) {
                match &self.codes {
                    Codes::One => text.push_str(self.simple.get(code as usize).map_or("", String::as_str)),
                    Codes::Utf16 => text.push_str(&encoding_rs::UTF_16BE.decode_without_bom_handling(head).0),
                    Codes::National(encoding) => text.push_str(&encoding.decode_without_bom_handling(head).0),
                    Codes::Two | Codes::Ranges(_) => {}
                }
            }
            let width = self.widths.get(&code).copied().unwrap_or(self.default_width) * self.scale;
            each(Sign { text: &text, width, space: length == 1 && code == 32 });
        }
    }

    fn code_length(&self, bytes: &[u8]) -> usize {
        match &self.codes {
            Codes::One => 1,
            Codes::Two => 2,
            Codes::Utf16 => {
                if matches!(bytes[0], 0xd8..=0xdb) {
                    4
                } else {
                    2
                }
            }
            Codes::National(encoding) => {
                let single =
                    bytes[0] < 0x80 || (*encoding == encoding_rs::SHIFT_JIS && matches!(bytes[0], 0x80 | 0xa0..=0xdf));
                if single { 1 } else { 2 }
            }
            Codes::Ranges(ranges) => {
                let fits = |length: usize| {
                    let Some(head) = bytes.get(..length) else { return false };
                    ranges.iter().filter(|(n, ..)| *n == length).any(|(_, low, high)| {
                        head.iter().rev().enumerate().all(|(at, byte)| {
                            let part = |code: u32| (code >> (8 * at)) as u8;
                            (part(*low)..=part(*high)).contains(byte)
                        })
                    })
                };
                (1..=4).find(|length| fits(*length)).unwrap_or_else(|| ranges.iter().map(|r| r.0).min().unwrap_or(1))
            }
        }
    }
}

/// How the codes of a named encoding are made.
fn national(name: &[u8]) -> Codes {
    let name = String::from_utf8_lossy(name);
    let is = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    if name.contains("UCS2") || name.contains("UTF16") {
        Codes::Utf16
    } else if name.contains("RKSJ") {
        Codes::National(encoding_rs::SHIFT_JIS)
    } else if is(&["GB"]) {
        Codes::National(encoding_rs::GBK)
    } else if is(&["B5", "ETen", "HKscs"]) {
        Codes::National(encoding_rs::BIG5)
    } else if is(&["KSC"]) {
        Codes::National(encoding_rs::EUC_KR)
    } else if is(&["EUC-"]) {
        Codes::National(encoding_rs::EUC_JP)
    } else {
        Codes::Two
    }
}

/// `first [w w w]` and `first last w`, one after the other.
fn composite_widths(file: &File, given: &[Value], widths: &mut HashMap<u32, f64>) -> Result<()> {
    // Ranges may lie over each other, so what they hold is counted and not what comes of it.
    let (mut at, mut entries) = (0, 0_usize);
    while let Some(first) = given.get(at).filter(|_| entries < MAX_ENTRIES) {
        let first = file.get(first)?.integer().and_then(|n| u32::try_from(n).ok());
        let second = given.get(at + 1).map_or(Ok(Value::Null), |value| file.get(value))?;
        at += 2;
        let Some(first) = first else { continue };
        if let Value::Array(list) = &second {
            entries += list.len();
            for (step, width) in list.iter().enumerate() {
                if let Some(width) = width.number() {
                    widths.insert(first.saturating_add(step as u32), width);
                }
            }
        } else {
            let last = second.integer().and_then(|n| u32::try_from(n).ok());
            let width = given.get(at).map_or(Ok(Value::Null), |value| file.get(value))?.number();
            at += 1;
            if let (Some(last), Some(width)) = (last, width) {
                let last = last.min(first.saturating_add(0xffff));
                entries += last.saturating_sub(first) as usize;
                widths.extend((first..=last).map(|code| (code, width)));
            }
        }
    }
    Ok(())
}

impl Table {
    /// Reads a table of characters, as far as it is bounded.
    fn read(content: &[u8], file: &File) -> Result<Table> {
        let mut table = Table::default();
        let mut parser = Parser::new(content, 0);
        let mut entries = 0;
        while let Some(value) = parser.operand() {
            (file.ask)(0)?;
            let Value::Word(word) = value else { continue };
            let kind = match word.as_slice() {
                b"begincodespacerange" => 2,
                b"beginbfchar" => 0,
                b"beginbfrange" => 1,
                _ => continue,
            };
            while entries < MAX_ENTRIES {
                let Some(Value::Text(low)) = parser.operand() else { break };
                entries += 1;
                if kind == 0 {
                    match parser.operand() {
                        Some(Value::Text(text)) => _ = table.single.insert(code(&low), utf16(&text)),
                        Some(Value::Name(name)) => {
                            table.single.insert(code(&low), glyph::of_name(&name).unwrap_or_default());
                        }
                        _ => break,
                    }
                    continue;
                }
                let Some(Value::Text(high)) = parser.operand() else { break };
                if kind == 2 {
                    table.codes.push((low.len().clamp(1, 4), code(&low), code(&high)));
                    if table.codes.len() > 100 {
                        return Ok(table);
                    }
                    continue;
                }
                let low = code(&low);
                match parser.operand() {
                    Some(Value::Text(text)) if code(&high) >= low => {
                        table.ranges.push((low, code(&high), units(&text)))
                    }
                    Some(Value::Array(texts)) => {
                        entries += texts.len();
                        for (step, text) in texts.iter().enumerate() {
                            let text = text.text().map(utf16).unwrap_or_default();
                            table.single.insert(low.saturating_add(step as u32), text);
                        }
                    }
                    Some(_) => {}
                    None => break,
                }
            }
        }
        table.ranges.sort_by_key(|range| range.0);
        Ok(table)
    }

    /// Adds what a code stands for; `false` where the table says nothing of it.
    fn find(&self, code: u32, text: &mut String) -> bool {
        if let Some(found) = self.single.get(&code) {
            text.push_str(found);
            return true;
        }
        let behind = self.ranges.partition_point(|range| range.0 <= code);
        // The nearest ranges before it: they seldom overlap.
        let range = self.ranges[..behind].iter().rev().take(8).find(|range| code <= range.1);
        let Some((low, _, units)) = range else { return false };
        let mut units = units.clone();
        if let Some(last) = units.last_mut() {
            *last = last.wrapping_add((code - low) as u16);
        }
        text.extend(char::decode_utf16(units).flatten());
        true
    }
}

fn code(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |code, byte| code << 8 | u32::from(*byte))
}

fn units(bytes: &[u8]) -> Vec<u16> {
    // One byte alone is written by some for a sign of the first 256.
    if let [one] = bytes {
        return vec![u16::from(*one)];
    }
    bytes.chunks_exact(2).take(32).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect()
}

fn utf16(bytes: &[u8]) -> String {
    char::decode_utf16(units(bytes)).flatten().filter(|c| *c != '\0').collect()
}
