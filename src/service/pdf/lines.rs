//! Pieces of text by their places, put together into words, lines and paragraphs, in the order in which they were drawn.
//! It knows where pieces stand, nothing of what drew them.

/// A gap beyond this part of the size is a space between words.
const WORD: f64 = 0.16;
/// A gap beyond this part of the size is one between columns of a table.
const COLUMN: f64 = 1.2;
/// Pieces that stand higher or lower than this part of the size are on another line.
const LINE: f64 = 0.6;
/// Lines further apart than this part of the size are not of one paragraph.
const PARAGRAPH: f64 = 1.85;

/// A piece of text on a page.
pub(super) struct Piece<'t> {
    pub text: &'t str,
    /// Where it begins and ends; y grows upwards.
    pub start: (f64, f64),
    pub end: (f64, f64),
    /// The way it is written, of length one.
    pub direction: (f64, f64),
    pub size: f64,
}

/// What the last piece left behind.
struct Last {
    text: String,
    start: (f64, f64),
    end: (f64, f64),
    direction: (f64, f64),
    size: f64,
}

/// The text of a page as far as it was put together.
pub(super) struct Lines {
    out: String,
    last: Option<Last>,
    max: usize,
}

impl Lines {
    /// Of at most `max` bytes, more or less.
    pub fn new(max: usize) -> Lines {
        Lines { out: String::new(), last: None, max }
    }

    /// Whether nothing more is taken.
    pub fn is_full(&self) -> bool {
        self.out.len() >= self.max
    }

    /// Adds a piece behind the others.
    pub fn add(&mut self, piece: Piece) {
        let finite = [piece.start.0, piece.start.1, piece.end.0, piece.end.1, piece.size].iter().all(|n| n.is_finite());
        if piece.text.is_empty() || !finite || self.is_full() {
            return;
        }
        if let Some(last) = &self.last {
            let size = piece.size.max(last.size).max(0.01);
            // Bold letters and shadows are made by drawing the same twice.
            let near = (piece.start.0 - last.start.0).abs() + (piece.start.1 - last.start.1).abs() < 0.3 * size;
            if near && last.text == piece.text && !piece.text.trim().is_empty() {
                return;
            }
            match between(last, &piece, size) {
                Between::Nothing => {}
                Between::Space => self.space(1),
                Between::Column => self.space(3),
                Between::Line => self.newline(1),
                Between::Paragraph => self.newline(2),
            }
        }
        for c in piece.text.chars() {
            match c {
                '\u{fb00}' => self.out.push_str("ff"),
                '\u{fb01}' => self.out.push_str("fi"),
                '\u{fb02}' => self.out.push_str("fl"),
                '\u{fb03}' => self.out.push_str("ffi"),
                '\u{fb04}' => self.out.push_str("ffl"),
                '\u{fb05}' | '\u{fb06}' => self.out.push_str("st"),
                // Spaces before a line are how code is indented.
                ' ' if self.out.ends_with(['\n', ' ']) && self.indenting() => self.out.push(' '),
                c if c.is_whitespace() => self.space(1),
                '\u{ad}' => self.out.push('-'),
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{feff}' | '\u{200b}') => {}
                c => self.out.push(c),
            }
        }
        self.last = Some(Last {
            text: piece.text.to_owned(),
            start: piece.start,
            end: piece.end,
            direction: piece.direction,
            size: piece.size,
        });
    }

    /// Whether nothing but a few spaces stands in the line so far.
    fn indenting(&self) -> bool {
        let mut end = self.out.bytes().rev().take(40).skip_while(|byte| *byte == b' ');
        end.next() == Some(b'\n')
    }

    fn space(&mut self, count: usize) {
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            let there = self.out.len() - self.out.trim_end_matches(' ').len();
            self.out.extend(std::iter::repeat_n(' ', count.saturating_sub(there)));
        }
    }

    fn newline(&mut self, count: usize) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
        if !self.out.is_empty() {
            let there = self.out.len() - self.out.trim_end_matches('\n').len();
            self.out.extend(std::iter::repeat_n('\n', count.saturating_sub(there)));
        }
    }

    /// The whole text.
    pub fn finish(mut self) -> String {
        self.out.truncate(self.out.trim_end().len());
        without_leaders(&self.out)
    }
}

/// Rows of dots that lead from a heading to its page are one sign.
fn without_leaders(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut run = rest;
        let mut count = 0;
        if matches!(c, '.' | ':' | '·' | '_' | '…') {
            while let Some(behind) = run.strip_prefix(c) {
                run = behind.strip_prefix(' ').unwrap_or(behind);
                count += 1;
            }
        }
        if count >= 5 {
            if !out.ends_with([' ', '\n']) && !out.is_empty() {
                out.push(' ');
            }
            out.push('…');
            if !run.is_empty() && !run.starts_with('\n') {
                out.push(' ');
            }
            rest = run;
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

#[derive(Debug, PartialEq)]
enum Between {
    Nothing,
    Space,
    Column,
    Line,
    Paragraph,
}

/// What stands between the last piece and the next, by their places.
fn between(last: &Last, piece: &Piece, size: f64) -> Between {
    let (x, y) = piece.direction;
    if x * last.direction.0 + y * last.direction.1 < 0.95 {
        return Between::Paragraph;
    }
    let (dx, dy) = (piece.start.0 - last.end.0, piece.start.1 - last.end.1);
    let (along, down) = (dx * x + dy * y, dx * y - dy * x);
    if down.abs() > LINE * size {
        return if down < 0.0 || down > PARAGRAPH * size { Between::Paragraph } else { Between::Line };
    }
    // Of two sizes in one line the smaller says how wide a space is.
    let small = piece.size.min(last.size).max(0.01);
    if along < -size {
        Between::Line
    } else if along > COLUMN * size {
        Between::Column
    } else if along > WORD * small {
        Between::Space
    } else {
        Between::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text and where it begins.
    type Put = (&'static str, f64, f64);

    fn put(pieces: &[Put]) -> String {
        let mut lines = Lines::new(10_000);
        for (text, x, y) in pieces {
            let end = (x + 5.0 * text.chars().count() as f64, *y);
            lines.add(Piece { text, start: (*x, *y), end, direction: (1.0, 0.0), size: 10.0 });
        }
        lines.finish()
    }

    #[test]
    fn places_make_words_lines_and_paragraphs() {
        let rows: [(&[Put], &str); 14] = [
            (&[("Hel", 0.0, 0.0), ("lo", 15.2, 0.0)], "Hello"),
            (&[("one", 0.0, 0.0), ("two", 18.0, 0.0)], "one two"),
            (&[("one ", 0.0, 0.0), ("two", 23.0, 0.0)], "one two"),
            (&[("one", 0.0, 0.0), ("two", 100.0, 0.0)], "one   two"),
            (&[("one", 0.0, 0.0), ("two", 0.0, -12.0)], "one\ntwo"),
            (&[("one", 0.0, 0.0), ("two", 0.0, -30.0)], "one\n\ntwo"),
            (&[("one", 0.0, 0.0), ("two", 200.0, 500.0)], "one\n\ntwo"),
            (&[("x", 0.0, 0.0), ("2", 5.0, 4.0)], "x2"),
            (&[("bold", 0.0, 0.0), ("bold", 0.2, 0.0)], "bold"),
            (&[("two", 100.0, 0.0), ("one", 0.0, 0.0)], "two\none"),
            (&[("if x:", 0.0, 0.0), ("    go", 0.0, -12.0)], "if x:\n    go"),
            (&[("Tea . . . . . . . 12", 0.0, 0.0)], "Tea … 12"),
            (&[("Tea.........12 ...", 0.0, 0.0)], "Tea … 12 ..."),
            (&[("e\u{fb03}cient\u{a0}\u{7}x", 0.0, 0.0)], "efficient x"),
        ];
        for (pieces, text) in rows {
            assert_eq!(put(pieces), text, "{pieces:?}");
        }
    }

    #[test]
    fn text_that_runs_another_way_stands_for_itself_and_places_without_sense_are_left() {
        let mut lines = Lines::new(100);
        let piece = |text: &'static str, direction: (f64, f64), x: f64| Piece {
            text,
            start: (x, 0.0),
            end: (x, 1.0),
            direction,
            size: 10.0,
        };
        lines.add(piece("a", (1.0, 0.0), 0.0));
        lines.add(piece("b", (0.0, 1.0), 1.0));
        lines.add(piece("c", (0.0, 1.0), f64::NAN));
        assert_eq!(lines.finish(), "a\n\nb");
    }
}
