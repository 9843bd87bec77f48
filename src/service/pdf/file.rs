//! Where the objects of a PDF file stand, and one of them at a time. The file is read from front to back and its own table of
//! places is not believed, so one that is broken or lies is read as any other. What objects mean is not known here.

use super::Ask;
use super::filter;
use super::lock::Lock;
use super::object::{Dict, Parser, Value, is_space};
use crate::base::error::{Error, Kind, Result};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Most objects of a file.
const MAX_OBJECTS: usize = 500_000;
/// Most references from one to the next.
const MAX_HOPS: usize = 16;
/// Bytes of unpacked object streams that are kept.
const KEPT: usize = 16 << 20;

/// Where an object stands.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Behind the word `obj`, with the generation it has there.
    Body(usize, u16),
    /// In the object stream of that number, from there on.
    Packed(u32, usize),
}

/// An object stream that was unpacked.
type Unpacked = Rc<Vec<u8>>;

/// A file whose objects are found.
pub(super) struct File<'a> {
    bytes: &'a [u8],
    places: HashMap<u32, Place>,
    /// Which object is the catalog, as the newest trailer says, or as the object itself does.
    root: Option<Value>,
    info: Option<Value>,
    lock: Option<Lock>,
    kept: RefCell<(usize, HashMap<u32, Unpacked>)>,
    pub ask: Ask<'a>,
}

/// A stream: its dictionary, and where its bytes are.
pub(super) struct Stream<'a> {
    pub dict: Dict,
    raw: &'a [u8],
    /// Number and generation, which unlock it; none for one that is not locked.
    id: Option<(u32, u16)>,
}

/// What the first reading of a file notes down.
#[derive(Default)]
struct Survey {
    places: HashMap<u32, Place>,
    /// Object streams in the order of the file: number, and where they stand.
    packed: Vec<(u32, usize)>,
    trailers: Vec<Dict>,
    catalogs: Vec<u32>,
}

impl<'a> File<'a> {
    /// Finds the objects of a file.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no PDF, is broken beyond reading, or is locked with a password; `too_large` for too many
    /// objects; those of `ask`.
    pub fn open(bytes: &'a [u8], ask: Ask<'a>) -> Result<File<'a>> {
        if !bytes[..bytes.len().min(1024)].windows(5).any(|w| w == b"%PDF-") {
            return Err(Error::invalid("the bytes are no PDF"));
        }
        let Survey { places, packed, trailers, catalogs } = survey(bytes, ask)?;
        let newest = |key: &[u8]| trailers.iter().rev().find_map(|trailer| trailer.get(key)).cloned();
        let mut file = File {
            bytes,
            places,
            root: newest(b"Root").or_else(|| catalogs.last().map(|number| Value::Ref(*number, 0))),
            info: newest(b"Info"),
            lock: None,
            kept: RefCell::default(),
            ask,
        };
        if let Some(encrypt) = newest(b"Encrypt").filter(|encrypt| *encrypt != Value::Null) {
            let encrypt = file.get(&encrypt)?;
            let id = newest(b"ID").map(|id| file.get(&id)).transpose()?;
            let first = id.as_ref().and_then(Value::array).and_then(<[Value]>::first).and_then(Value::text);
            let dict = encrypt.map().ok_or_else(|| broken("says that it is locked, and not how"))?;
            let resolved = file.deep(dict)?;
            file.lock = Some(Lock::open(&resolved, first.unwrap_or_default())?);
        }
        file.unpack_index(&packed)?;
        Ok(file)
    }

    /// A dictionary whose values, and those of dictionaries in it, are no references.
    fn deep(&self, dict: &Dict) -> Result<Dict> {
        let mut out = Dict::default();
        for (key, value) in &dict.0 {
            let value = match self.get(value)? {
                Value::Map(inner) => {
                    let mut flat = Dict::default();
                    for (key, value) in inner.0 {
                        let value = match self.get(&value)? {
                            Value::Map(last) => {
                                let last = last.0.iter().map(|(k, v)| Ok((k.clone(), self.get(v)?)));
                                Value::Map(Dict(last.collect::<Result<_>>()?))
                            }
                            other => other,
                        };
                        flat.0.push((key, value));
                    }
                    Value::Map(flat)
                }
                other => other,
            };
            out.0.push((key.clone(), value));
        }
        Ok(out)
    }

    /// Notes down what stands in object streams; what comes later in the file counts.
    fn unpack_index(&mut self, packed: &[(u32, usize)]) -> Result<()> {
        for &(number, at) in packed {
            (self.ask)(0)?;
            let Some((stream, _)) = self.stream_at(at, Some((number, 0)))? else { continue };
            let count = stream.dict.get(b"N").and_then(Value::integer).and_then(|n| usize::try_from(n).ok());
            let first = stream.dict.get(b"First").and_then(Value::integer).and_then(|n| usize::try_from(n).ok());
            let (Some(count), Some(first)) = (count, first) else { continue };
            let Some(content) = self.content(&stream)? else { continue };
            let content = Rc::new(content);
            let mut parser = Parser::new(&content, 0);
            for _ in 0..count.min(MAX_OBJECTS) {
                let pair = (parser.operand().and_then(|v| v.integer()), parser.operand().and_then(|v| v.integer()));
                let (Some(inner), Some(offset)) = pair else { break };
                let (Ok(inner), Ok(offset)) = (u32::try_from(inner), usize::try_from(offset)) else { continue };
                let newer = match self.places.get(&inner) {
                    None => true,
                    Some(Place::Body(other, _)) => *other < at,
                    Some(Place::Packed(..)) => true,
                };
                if newer {
                    self.places.insert(inner, Place::Packed(number, first.saturating_add(offset)));
                }
                if self.places.len() > MAX_OBJECTS {
                    return Err(too_many());
                }
            }
            self.keep(number, &content);
        }
        Ok(())
    }

    fn keep(&self, number: u32, content: &Unpacked) {
        let mut kept = self.kept.borrow_mut();
        if kept.0 + content.len() > KEPT {
            *kept = Default::default();
        }
        kept.0 += content.len();
        kept.1.insert(number, content.clone());
    }

    /// The catalog.
    ///
    /// # Errors
    /// `invalid_arguments` where there is none; those of [`File::get`].
    pub fn catalog(&self) -> Result<Dict> {
        let root = self.root.as_ref().map(|root| self.get(root)).transpose()?;
        match root {
            Some(Value::Map(catalog)) => Ok(catalog),
            _ => Err(broken("has no list of pages")),
        }
    }

    /// What the file says of itself: title, author.
    ///
    /// # Errors
    /// Those of [`File::get`].
    pub fn info(&self) -> Result<Dict> {
        match self.info.as_ref().map(|info| self.get(info)).transpose()? {
            Some(Value::Map(info)) => Ok(info),
            _ => Ok(Dict::default()),
        }
    }

    /// A value, looked up where it is a reference; `Null` for what is nowhere. A stream gives its dictionary.
    ///
    /// # Errors
    /// `too_large` for an object stream that is; those of `ask`.
    pub fn get(&self, value: &Value) -> Result<Value> {
        let mut value = value.clone();
        for _ in 0..MAX_HOPS {
            let Value::Ref(number, _) = value else { return Ok(value) };
            (self.ask)(0)?;
            value = self.object(number)?;
        }
        Ok(Value::Null)
    }

    /// What stands under a key, looked up.
    ///
    /// # Errors
    /// As [`File::get`].
    pub fn at(&self, dict: &Dict, key: &[u8]) -> Result<Value> {
        dict.get(key).map_or(Ok(Value::Null), |value| self.get(value))
    }

    /// The dictionary under a key, empty where there is none.
    ///
    /// # Errors
    /// As [`File::get`].
    pub fn map_at(&self, dict: &Dict, key: &[u8]) -> Result<Dict> {
        Ok(if let Value::Map(map) = self.at(dict, key)? { map } else { Dict::default() })
    }

    /// The unpacked content of the stream that `value` refers to; `None` for what is no stream or holds a picture.
    ///
    /// # Errors
    /// As [`File::get`].
    pub fn stream(&self, value: &Value) -> Result<Option<(Dict, Vec<u8>)>> {
        let mut value = value.clone();
        for _ in 0..MAX_HOPS {
            let Value::Ref(number, _) = value else { return Ok(None) };
            let Some(Place::Body(at, generation)) = self.places.get(&number).copied() else { return Ok(None) };
            match self.stream_at(at, Some((number, generation)))? {
                Some((stream, _)) => return Ok(self.content(&stream)?.map(|content| (stream.dict, content))),
                None => value = Parser::new(self.bytes, at).object().unwrap_or(Value::Null),
            }
        }
        Ok(None)
    }

    fn object(&self, number: u32) -> Result<Value> {
        match self.places.get(&number).copied() {
            None => Ok(Value::Null),
            Some(Place::Body(at, generation)) => {
                let mut value = Parser::new(self.bytes, at).object().unwrap_or(Value::Null);
                if let Some(lock) = &self.lock {
                    lock.texts(&mut value, (number, generation));
                }
                Ok(value)
            }
            Some(Place::Packed(container, offset)) => {
                let kept = self.kept.borrow().1.get(&container).cloned();
                let content = match kept {
                    Some(content) => content,
                    None => {
                        let content = Rc::new(self.container(container)?);
                        self.keep(container, &content);
                        content
                    }
                };
                Ok(Parser::new(&content, offset).object().unwrap_or(Value::Null))
            }
        }
    }

    fn container(&self, number: u32) -> Result<Vec<u8>> {
        // Only a body: an object stream inside another would have no end.
        let Some(Place::Body(at, generation)) = self.places.get(&number).copied() else { return Ok(Vec::new()) };
        let Some((stream, _)) = self.stream_at(at, Some((number, generation)))? else { return Ok(Vec::new()) };
        Ok(self.content(&stream)?.unwrap_or_default())
    }

    /// The stream that stands at a place of the file, and where it ends.
    fn stream_at(&self, at: usize, id: Option<(u32, u16)>) -> Result<Option<(Stream<'a>, usize)>> {
        let mut parser = Parser::new(self.bytes, at);
        let Some(Value::Map(dict)) = parser.object() else { return Ok(None) };
        let Some(start) = stream_start(self.bytes, &mut parser) else { return Ok(None) };
        let length = match dict.get(b"Length") {
            // Only a plain object: a length in a stream would have no end.
            Some(Value::Ref(number, _)) => match self.places.get(number) {
                Some(Place::Body(at, _)) => Parser::new(self.bytes, *at).object(),
                _ => None,
            },
            given => given.cloned(),
        };
        let end = stream_end(self.bytes, start, length.and_then(|length| length.integer()));
        let locked = self.lock.is_some() && !dict.is(b"Type", b"XRef");
        Ok(Some((Stream { dict, raw: &self.bytes[start..end], id: id.filter(|_| locked) }, end)))
    }

    fn content(&self, stream: &Stream) -> Result<Option<Vec<u8>>> {
        let names = match self.first_at(&stream.dict, &[b"Filter", b"F"])? {
            Value::Name(name) => vec![name],
            Value::Array(items) => {
                let mut names = Vec::new();
                for item in &items {
                    let Value::Name(name) = self.get(item)? else { return Ok(None) };
                    names.push(name);
                }
                names
            }
            _ => Vec::new(),
        };
        let parameters = match self.first_at(&stream.dict, &[b"DecodeParms", b"DP"])? {
            Value::Array(items) => items,
            one => vec![one],
        };
        let mut filters = Vec::new();
        for (at, name) in names.into_iter().enumerate() {
            let given = parameters.get(at).map(|value| self.get(value)).transpose()?;
            let mut dict = if let Some(Value::Map(dict)) = given { dict } else { Dict::default() };
            for (_, value) in &mut dict.0 {
                *value = self.get(value)?;
            }
            filters.push((name, dict));
        }
        (self.ask)(stream.raw.len())?;
        let raw = match (&self.lock, stream.id) {
            (Some(lock), Some(id)) if !filters.iter().any(|(name, _)| name == b"Crypt") => lock.bytes(stream.raw, id),
            _ => stream.raw.to_vec(),
        };
        filter::unpack(raw, &filters, self.ask)
    }

    fn first_at(&self, dict: &Dict, keys: &[&[u8]]) -> Result<Value> {
        let found = keys.iter().find_map(|key| dict.get(key));
        found.map_or(Ok(Value::Null), |value| self.get(value))
    }
}

/// Why a file cannot be read.
pub(super) fn broken(what: &str) -> Error {
    Error::invalid(format!("the PDF {what}"))
}

fn too_many() -> Error {
    Error::new(Kind::TooLarge, format!("the PDF has more than {MAX_OBJECTS} objects"))
}

/// The place behind the word `stream`, where it comes next.
fn stream_start(bytes: &[u8], parser: &mut Parser) -> Option<usize> {
    parser.skip_space();
    if !parser.take(b"stream") {
        return None;
    }
    let at = parser.at();
    Some(match bytes.get(at..) {
        Some([b'\r', b'\n', ..]) => at + 2,
        Some([b'\n' | b'\r', ..]) => at + 1,
        _ => at,
    })
}

/// Where a stream ends: where its length says, if that is so, and else before `endstream`.
fn stream_end(bytes: &[u8], start: usize, length: Option<i64>) -> usize {
    let said = length.and_then(|n| usize::try_from(n).ok()).and_then(|n| start.checked_add(n));
    if let Some(end) = said.filter(|end| *end <= bytes.len()) {
        let behind = &bytes[end..];
        let word = behind.iter().take(4).take_while(|byte| is_space(**byte)).count();
        if behind[word..].starts_with(b"endstream") || behind[word..].starts_with(b"endobj") {
            return end;
        }
    }
    let end = find(bytes, b"endstream", start).unwrap_or(bytes.len());
    // The end of the line before the word is not of the stream.
    let line = bytes[start..end].ends_with(b"\r\n");
    if line {
        end - 2
    } else if bytes[start..end].ends_with(b"\n") || bytes[start..end].ends_with(b"\r") {
        end - 1
    } else {
        end
    }
}

/// Where `word` stands next, from `from` on.
pub(super) fn find(bytes: &[u8], word: &[u8], from: usize) -> Option<usize> {
    let (first, mut at) = (*word.first()?, from);
    while let Some(step) = bytes.get(at..)?.iter().position(|byte| *byte == first) {
        at += step;
        if bytes[at..].starts_with(word) {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Reads the file once, from front to back, for what it holds.
fn survey(bytes: &[u8], ask: Ask) -> Result<Survey> {
    let mut survey = Survey::default();
    let mut at = 0;
    // Bytes that were read in vain for the ends of streams: a hostile file may ask for the same ones again and again.
    while let Some(next) = next_mark(bytes, at) {
        ask(0)?;
        match next {
            Mark::Trailer(from) => {
                let mut parser = Parser::new(bytes, from);
                if let Some(Value::Map(trailer)) = parser.object() {
                    survey.trailers.push(trailer);
                }
                at = parser.at().max(from);
            }
            Mark::Object(number, generation, from) => {
                at = noted(&mut survey, bytes, number, generation, from).max(from);
                if survey.places.len() > MAX_OBJECTS || survey.trailers.len() > MAX_OBJECTS {
                    return Err(too_many());
                }
            }
        }
    }
    Ok(survey)
}

/// Notes one object down; returns where reading goes on.
fn noted(survey: &mut Survey, bytes: &[u8], number: u32, generation: u16, from: usize) -> usize {
    let mut parser = Parser::new(bytes, from);
    let value = parser.object();
    survey.places.insert(number, Place::Body(from, generation));
    let Some(Value::Map(dict)) = value else {
        // What cannot be read may hide others.
        return if value.is_some() { parser.at() } else { from };
    };
    if dict.is(b"Type", b"Catalog") {
        survey.catalogs.push(number);
    }
    let Some(start) = stream_start(bytes, &mut parser) else { return parser.at() };
    if dict.is(b"Type", b"ObjStm") {
        survey.packed.push((number, from));
    }
    // The length of a reference may stand further behind; the word is looked for then.
    let end = stream_end(bytes, start, dict.get(b"Length").and_then(Value::integer));
    if dict.is(b"Type", b"XRef") {
        survey.trailers.push(dict);
    }
    end
}

enum Mark {
    /// Number and generation of an object, and the place behind its `obj`.
    Object(u32, u16, usize),
    /// The place behind the word `trailer`.
    Trailer(usize),
}

/// The next `N G obj` or `trailer`.
fn next_mark(bytes: &[u8], from: usize) -> Option<Mark> {
    let mut at = from;
    loop {
        let step = bytes.get(at..)?.iter().position(|byte| matches!(byte, b'o' | b't'))?;
        at += step;
        if bytes[at..].starts_with(b"obj")
            && let Some((number, generation)) = numbers_before(bytes, at)
        {
            return Some(Mark::Object(number, generation, at + 3));
        }
        if bytes[at..].starts_with(b"trailer") {
            return Some(Mark::Trailer(at + 7));
        }
        at += 1;
    }
}

/// The two numbers that stand before a place.
fn numbers_before(bytes: &[u8], at: usize) -> Option<(u32, u16)> {
    fn number(bytes: &[u8], end: usize) -> Option<(u64, usize)> {
        let spaces = bytes[..end].iter().rev().take(8).take_while(|byte| is_space(**byte)).count();
        let end = end - spaces;
        let digits = bytes[..end].iter().rev().take(10).take_while(|byte| byte.is_ascii_digit()).count();
        let text = std::str::from_utf8(&bytes[end - digits..end]).ok()?;
        Some((text.parse().ok()?, end - digits))
    }
    let (generation, before) = number(bytes, at)?;
    if !bytes[..before].last().is_some_and(|byte| is_space(*byte)) {
        return None;
    }
    let (number, _) = number(bytes, before)?;
    Some((u32::try_from(number).ok()?, u16::try_from(generation).ok()?))
}
