//! The content of a page, run for its text alone: where each piece stands, how large it is, what it says. Nothing is drawn.

use super::file::File;
use super::font::Font;
use super::lines::{Lines, Piece};
use super::object::{Dict, Parser, Value, is_space};
use crate::base::error::{Kind, Result};
use std::collections::HashMap;
use std::rc::Rc;

/// Deepest nesting of forms, which are pages inside pages.
const MAX_DEPTH: usize = 8;
/// Most forms that one page may run.
const MAX_FORMS: usize = 1_000;
/// Most states that are saved at once.
const MAX_SAVED: usize = 256;
/// Most operands before an operator.
const MAX_OPERANDS: usize = 64;
/// Most fonts that are kept.
const MAX_FONTS: usize = 200;

/// `x' = a x + c y + e`, `y' = b x + d y + f`.
pub(super) type Matrix = [f64; 6];

const UNMOVED: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// `first`, then `second`.
fn times(first: &Matrix, second: &Matrix) -> Matrix {
    let [a, b, c, d, e, f] = *first;
    let [p, q, r, s, t, u] = *second;
    [a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s, e * p + f * r + t, e * q + f * s + u]
}

/// What the operators of a page change.
#[derive(Clone)]
struct State {
    space: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    between_signs: f64,
    between_words: f64,
    stretch: f64,
    leading: f64,
    rise: f64,
}

impl State {
    fn new(space: Matrix) -> State {
        State {
            space,
            font: None,
            size: 1.0,
            between_signs: 0.0,
            between_words: 0.0,
            stretch: 1.0,
            leading: 0.0,
            rise: 0.0,
        }
    }
}

/// A part of the page that says itself what it reads as.
struct Spoken {
    text: String,
    said: bool,
}

/// Runs pages of one file, one after the other.
pub(super) struct Runner<'f, 'a> {
    file: &'f File<'a>,
    fonts: HashMap<u32, Rc<Font>>,
    lines: Lines,
    state: State,
    text: Matrix,
    line: Matrix,
    spoken: Vec<Option<Spoken>>,
    forms: usize,
    /// Signs of which the file does not say what they stand for.
    pub unknown: usize,
}

impl<'f, 'a> Runner<'f, 'a> {
    pub fn new(file: &'f File<'a>) -> Self {
        Runner {
            file,
            fonts: HashMap::new(),
            lines: Lines::new(0),
            state: State::new(UNMOVED),
            text: UNMOVED,
            line: UNMOVED,
            spoken: Vec::new(),
            forms: 0,
            unknown: 0,
        }
    }

    /// The text of one page, at most `max` bytes of it, and whether that is all.
    ///
    /// # Errors
    /// Those of the file's `ask`.
    pub fn run(&mut self, page: &Dict, resources: &Dict, rotate: i64, max: usize) -> Result<(String, bool)> {
        let turned = match rotate.rem_euclid(360) {
            90 => [0.0, -1.0, 1.0, 0.0, 0.0, 0.0],
            180 => [-1.0, 0.0, 0.0, -1.0, 0.0, 0.0],
            270 => [0.0, 1.0, -1.0, 0.0, 0.0, 0.0],
            _ => UNMOVED,
        };
        self.state = State::new(turned);
        (self.text, self.line, self.forms) = (UNMOVED, UNMOVED, 0);
        self.lines = Lines::new(max);
        self.spoken.clear();
        let (content, mut whole) = self.content(page)?;
        whole &= self.operators(&content, resources, 0)?;
        let lines = std::mem::replace(&mut self.lines, Lines::new(0));
        whole &= !lines.is_full();
        Ok((lines.finish(), whole))
    }

    /// The streams of a page, one behind the other, and whether all could be read.
    fn content(&self, page: &Dict) -> Result<(Vec<u8>, bool)> {
        let Some(contents) = page.get(b"Contents") else { return Ok((Vec::new(), true)) };
        let parts = match self.file.get(contents)? {
            Value::Array(parts) => parts,
            _ => vec![contents.clone()],
        };
        let (mut content, mut whole) = (Vec::new(), true);
        for part in &parts {
            match self.file.stream(part) {
                Ok(Some((_, bytes))) if content.len() + bytes.len() <= super::filter::MAX_UNPACKED => {
                    (self.file.ask)(content.len() + bytes.len())?;
                    content.extend_from_slice(&bytes);
                    content.push(b'\n');
                }
                Ok(None) => {}
                Ok(Some(_)) => whole = false,
                Err(e) if e.kind() == Kind::TooLarge => whole = false,
                Err(e) => return Err(e),
            }
        }
        Ok((content, whole))
    }

    fn operators(&mut self, content: &[u8], resources: &Dict, depth: usize) -> Result<bool> {
        let mut parser = Parser::new(content, 0);
        let mut operands: Vec<Value> = Vec::new();
        let mut saved: Vec<State> = Vec::new();
        let (mut count, mut whole) = (0_usize, true);
        while !self.lines.is_full() {
            count += 1;
            if count.is_multiple_of(64) {
                (self.file.ask)(0)?;
            }
            let before = parser.at();
            let Some(value) = parser.operand() else {
                // What cannot be read is passed over.
                parser.go_to(before.max(parser.at()) + 1);
                if parser.at() >= content.len() {
                    break;
                }
                continue;
            };
            let Value::Word(operator) = value else {
                if operands.len() < MAX_OPERANDS {
                    operands.push(value);
                }
                continue;
            };
            match operator.as_slice() {
                b"q" if saved.len() < MAX_SAVED => saved.push(self.state.clone()),
                b"Q" => {
                    if let Some(state) = saved.pop() {
                        self.state = state;
                    }
                }
                b"BI" => skip_picture(content, &mut parser),
                b"Do" => whole &= self.form(&operands, resources, depth)?,
                b"Tf" => self.font(&operands, resources)?,
                b"BDC" => self.begin_spoken(&operands, resources)?,
                b"BMC" => self.mark(None),
                b"EMC" => _ = self.spoken.pop(),
                other => self.operator(other, &operands),
            }
            operands.clear();
        }
        Ok(whole)
    }

    fn operator(&mut self, operator: &[u8], operands: &[Value]) {
        let number = |at: usize| operands.get(at).and_then(Value::number).unwrap_or(0.0);
        let six = || -> Matrix { std::array::from_fn(number) };
        match operator {
            b"cm" if operands.len() >= 6 => self.state.space = times(&six(), &self.state.space),
            b"BT" => (self.text, self.line) = (UNMOVED, UNMOVED),
            b"Tc" => self.state.between_signs = number(0),
            b"Tw" => self.state.between_words = number(0),
            b"Tz" => self.state.stretch = number(0) / 100.0,
            b"TL" => self.state.leading = number(0),
            b"Ts" => self.state.rise = number(0),
            b"Td" => self.next_line(number(0), number(1)),
            b"TD" => {
                self.state.leading = -number(1);
                self.next_line(number(0), number(1));
            }
            b"Tm" if operands.len() >= 6 => (self.text, self.line) = (six(), six()),
            b"T*" => self.next_line(0.0, -self.state.leading),
            b"Tj" => self.show(operands.first()),
            b"'" => {
                self.next_line(0.0, -self.state.leading);
                self.show(operands.first());
            }
            b"\"" => {
                (self.state.between_words, self.state.between_signs) = (number(0), number(1));
                self.next_line(0.0, -self.state.leading);
                self.show(operands.get(2));
            }
            b"TJ" => {
                for item in operands.first().and_then(Value::array).unwrap_or_default() {
                    match item.number() {
                        Some(back) => self.advance(-back / 1000.0 * self.state.size * self.state.stretch),
                        None => self.show(Some(item)),
                    }
                }
            }
            _ => {}
        }
    }

    fn next_line(&mut self, x: f64, y: f64) {
        self.line = times(&[1.0, 0.0, 0.0, 1.0, x, y], &self.line);
        self.text = self.line;
    }

    fn advance(&mut self, x: f64) {
        self.text = times(&[1.0, 0.0, 0.0, 1.0, x, 0.0], &self.text);
    }

    fn show(&mut self, text: Option<&Value>) {
        let (Some(bytes), Some(font)) = (text.and_then(Value::text), self.state.font.clone()) else { return };
        let state = &self.state;
        let (mut said, mut along, mut unknown) = (String::new(), 0.0, 0);
        font.signs(bytes, |sign| {
            let words = if sign.space { state.between_words } else { 0.0 };
            along += (sign.width / 1000.0 * state.size + state.between_signs + words) * state.stretch;
            said.push_str(sign.text);
            unknown += usize::from(sign.text.is_empty());
        });
        let risen = [1.0, 0.0, 0.0, 1.0, 0.0, state.rise];
        let (size, space) = (state.size, state.space);
        let all = times(&risen, &times(&self.text, &space));
        self.advance(along);
        let behind = times(&risen, &times(&self.text, &space));
        let across = all[0].hypot(all[1]);
        let direction = if across > 0.0 { (all[0] / across, all[1] / across) } else { (1.0, 0.0) };
        let (start, end) = ((all[4], all[5]), (behind[4], behind[5]));
        let size = all[2].hypot(all[3]) * size.abs();
        let spoken = self.spoken.iter_mut().rev().flatten().next();
        match spoken {
            Some(spoken) if spoken.said => said.clear(),
            Some(spoken) => {
                spoken.said = true;
                said = std::mem::take(&mut spoken.text);
            }
            None => self.unknown += unknown,
        }
        self.lines.add(Piece { text: &said, start, end, direction, size });
    }

    fn font(&mut self, operands: &[Value], resources: &Dict) -> Result<()> {
        let [Value::Name(name), size, ..] = operands else { return Ok(()) };
        self.state.size = size.number().unwrap_or(1.0);
        let fonts = self.file.map_at(resources, b"Font")?;
        let Some(value) = fonts.get(name) else {
            self.state.font = None;
            return Ok(());
        };
        let number = if let Value::Ref(number, _) = value { Some(*number) } else { None };
        if let Some(font) = number.and_then(|number| self.fonts.get(&number)) {
            self.state.font = Some(font.clone());
            return Ok(());
        }
        let Value::Map(dict) = self.file.get(value)? else {
            self.state.font = None;
            return Ok(());
        };
        let font = match Font::read(self.file, &dict) {
            Ok(font) => Some(Rc::new(font)),
            Err(e) if e.kind() == Kind::TooLarge => None,
            Err(e) => return Err(e),
        };
        if let (Some(number), Some(font)) = (number, &font) {
            if self.fonts.len() >= MAX_FONTS {
                self.fonts.clear();
            }
            self.fonts.insert(number, font.clone());
        }
        self.state.font = font;
        Ok(())
    }

    fn form(&mut self, operands: &[Value], resources: &Dict, depth: usize) -> Result<bool> {
        let Some(name) = operands.first().and_then(Value::name) else { return Ok(true) };
        let all = self.file.map_at(resources, b"XObject")?;
        let Some(value) = all.get(name) else { return Ok(true) };
        let Value::Map(dict) = self.file.get(value)? else { return Ok(true) };
        if !dict.is(b"Subtype", b"Form") {
            return Ok(true);
        }
        self.forms += 1;
        if depth >= MAX_DEPTH || self.forms > MAX_FORMS {
            return Ok(false);
        }
        let content = match self.file.stream(value) {
            Ok(Some((_, content))) => content,
            Ok(None) => return Ok(true),
            Err(e) if e.kind() == Kind::TooLarge => return Ok(false),
            Err(e) => return Err(e),
        };
        let own = match self.file.at(&dict, b"Resources")? {
            Value::Map(own) => own,
            _ => resources.clone(),
        };
        let kept = (self.state.clone(), self.text, self.line, self.spoken.len());
        if let Value::Array(matrix) = self.file.at(&dict, b"Matrix")?
            && matrix.len() >= 6
        {
            let matrix: Matrix = std::array::from_fn(|at| matrix[at].number().unwrap_or(0.0));
            self.state.space = times(&matrix, &self.state.space);
        }
        let whole = self.operators(&content, &own, depth + 1)?;
        (self.state, self.text, self.line) = (kept.0, kept.1, kept.2);
        self.spoken.truncate(kept.3);
        Ok(whole)
    }

    fn begin_spoken(&mut self, operands: &[Value], resources: &Dict) -> Result<()> {
        let properties = match operands.get(1) {
            Some(Value::Map(map)) => map.clone(),
            Some(Value::Name(name)) => {
                let all = self.file.map_at(resources, b"Properties")?;
                self.file.map_at(&all, name)?
            }
            _ => Dict::default(),
        };
        let text = match properties.get(b"ActualText") {
            Some(value) => self.file.get(value)?.text().map(super::text_of),
            None => None,
        };
        self.mark(text.map(|text| Spoken { text, said: false }));
        Ok(())
    }

    fn mark(&mut self, spoken: Option<Spoken>) {
        if self.spoken.len() < 10_000 {
            self.spoken.push(spoken);
        }
    }
}

/// Passes a picture that stands in the content itself: its end is a word that its bytes may hold too.
fn skip_picture(content: &[u8], parser: &mut Parser) {
    while let Some(value) = parser.operand() {
        if value == Value::Word(b"ID".to_vec()) {
            break;
        }
    }
    let mut at = parser.at();
    while let Some(found) = super::file::find(content, b"EI", at) {
        let behind = &content[found + 2..];
        let alone =
            content[..found].last().is_some_and(|b| is_space(*b)) && behind.first().is_none_or(|b| is_space(*b));
        if alone && behind.iter().take(16).all(|b| is_space(*b) || (0x20..0x7f).contains(b)) {
            parser.go_to(found + 2);
            return;
        }
        at = found + 2;
    }
    parser.go_to(content.len());
}
