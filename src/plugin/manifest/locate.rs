//! Where in a JSON text a value stands, for errors about its meaning. The text has been parsed before.

use serde_path_to_error::Segment;

/// One step down into a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// Into an object.
    Key(&'a str),
    /// Into an array.
    Index(usize),
}

/// Line and column, from 1, of what the steps lead to: for a key its own name, for an entry its value. Where a step leads
/// nowhere, the place of the last one that was found.
pub fn locate(text: &str, steps: &[Step]) -> (usize, usize) {
    let mut walker = Walker { text: text.as_bytes(), pos: 0 };
    let at = walker.find(steps);
    let before = &text[..at.min(text.len())];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The steps to where a value did not fit.
pub fn steps_to(path: &serde_path_to_error::Path) -> Vec<Step<'_>> {
    path.iter()
        .filter_map(|segment| match segment {
            Segment::Map { key } => Some(Step::Key(key)),
            Segment::Seq { index } => Some(Step::Index(*index)),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect()
}

/// The path as people write it: `capabilities.settings[2].type`.
pub fn shown(steps: &[Step]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Key(key) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.extend(key.chars().take(60).flat_map(char::escape_debug));
            }
            Step::Index(i) => path.push_str(&format!("[{i}]")),
        }
    }
    path
}

struct Walker<'a> {
    text: &'a [u8],
    pos: usize,
}

impl<'a> Walker<'a> {
    fn find(&mut self, steps: &[Step]) -> usize {
        self.space();
        let mut at = self.pos;
        for step in steps {
            let found = match step {
                Step::Key(key) => self.enter_key(key),
                Step::Index(index) => self.enter_index(*index),
            };
            match found {
                Some(place) => at = place,
                None => break,
            }
        }
        at
    }

    /// Stands at a key's value afterwards; gives the place of the key.
    fn enter_key(&mut self, key: &str) -> Option<usize> {
        self.open(b'{')?;
        loop {
            self.space();
            let place = self.pos;
            let name = self.string()?;
            self.space();
            self.pos += 1;
            self.space();
            if serde_json::from_slice::<String>(name).is_ok_and(|name| name == key) {
                return Some(place);
            }
            self.skip();
            self.comma()?;
        }
    }

    /// Stands at the value afterwards; gives its place.
    fn enter_index(&mut self, index: usize) -> Option<usize> {
        self.open(b'[')?;
        self.space();
        for _ in 0..index {
            self.skip();
            self.comma()?;
            self.space();
        }
        (self.peek()? != b']').then_some(self.pos)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.pos).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.pos += 1;
        }
    }

    fn open(&mut self, bracket: u8) -> Option<()> {
        self.space();
        (self.peek()? == bracket).then(|| self.pos += 1)
    }

    fn comma(&mut self) -> Option<()> {
        self.space();
        (self.peek()? == b',').then(|| self.pos += 1)
    }

    /// The string at this place, quotes included.
    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.pos;
        if self.peek()? != b'"' {
            return None;
        }
        self.pos += 1;
        loop {
            match self.peek()? {
                b'\\' => self.pos += 2,
                b'"' => break,
                _ => self.pos += 1,
            }
        }
        self.pos += 1;
        let text = self.text;
        text.get(start..self.pos)
    }

    /// Goes past one value. Depth is counted, not recursed.
    fn skip(&mut self) {
        let mut depth = 0_usize;
        loop {
            self.space();
            match self.peek() {
                None => return,
                Some(b'"') => {
                    if self.string().is_none() {
                        return;
                    }
                }
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.pos += 1;
                    continue;
                }
                Some(b'}' | b']') => {
                    depth = depth.saturating_sub(1);
                    self.pos += 1;
                }
                Some(b',' | b':') if depth > 0 => {
                    self.pos += 1;
                    continue;
                }
                Some(_) => {
                    let start = self.pos;
                    while self.peek().is_some_and(|b| !b.is_ascii_whitespace() && !b",:]}".contains(&b)) {
                        self.pos += 1;
                    }
                    if self.pos == start {
                        return;
                    }
                }
            }
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_leads_to_its_line_and_column() {
        use Step::{Index as I, Key as K};
        let text = "{\n  \"a\": 1,\n  \"b\\u0063\": [ true, [2, {\"x\":\"],}\\\"\"}], {\"y\" : null} ],\n  \"日\": {}, \"z\": -1.5e3\n}\n";
        let rows: [(&[Step], (usize, usize)); 15] = [
            (&[], (1, 1)),
            (&[K("a")], (2, 3)),
            (&[K("bc")], (3, 3)),
            (&[K("bc"), I(0)], (3, 16)),
            (&[K("bc"), I(1)], (3, 22)),
            (&[K("bc"), I(1), I(0)], (3, 23)),
            (&[K("bc"), I(1), I(1), K("x")], (3, 27)),
            (&[K("bc"), I(2)], (3, 42)),
            (&[K("bc"), I(2), K("y")], (3, 43)),
            (&[K("bc"), I(3)], (3, 3)),
            (&[K("日")], (4, 3)),
            (&[K("z")], (4, 12)),
            (&[K("none")], (1, 1)),
            (&[K("a"), K("deeper")], (2, 3)),
            (&[I(0)], (1, 1)),
        ];
        for (steps, place) in rows {
            assert_eq!(locate(text, steps), place, "{}", shown(steps));
        }
    }

    #[test]
    fn broken_text_ends_the_walk_without_a_panic() {
        let text = "{\"a\": [1, {\"b\": \"x";
        for end in 0..=text.len() {
            locate(&text[..end], &[Step::Key("a"), Step::Index(1), Step::Key("b"), Step::Key("c")]);
            locate(&text[..end], &[Step::Key("zz")]);
        }
        locate("}", &[Step::Key("a")]);
        locate("[,,]", &[Step::Index(2)]);
    }

    #[test]
    fn a_path_is_shown_as_people_write_it() {
        assert_eq!(shown(&[Step::Key("a"), Step::Index(2), Step::Key("b c")]), "a[2].b c");
        assert_eq!(shown(&[]), "");
    }
}
