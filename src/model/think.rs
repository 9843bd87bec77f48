//! Thoughts that a model writes into its text between tags, told apart from it while it streams. Pure.

const OPENING: [&str; 2] = ["<think>", "<thinking>"];
const CLOSING: [&str; 2] = ["</think>", "</thinking>"];

/// A piece, told apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Thinking(String),
    /// A closing tag on a line of its own with no opening one: all of the text before it was thought.
    AllThought,
}

/// Where a text stands. A tag opens thoughts at the beginning of a line only, so that a text may speak of tags.
pub(super) struct Splitter {
    is_thinking: bool,
    at_line_start: bool,
    has_thought: bool,
    held: String,
}

impl Default for Splitter {
    fn default() -> Self {
        Splitter { is_thinking: false, at_line_start: true, has_thought: false, held: String::new() }
    }
}

impl Splitter {
    /// Tells a further piece apart. What may be the beginning of a tag is held back.
    pub(super) fn take(&mut self, piece: &str) -> Vec<Part> {
        self.held.push_str(piece);
        let mut out = Vec::new();
        while !self.held.is_empty() && self.step(&mut out) {}
        out
    }

    /// What was held back, when nothing more comes.
    pub(super) fn rest(&mut self) -> Vec<Part> {
        let held = std::mem::take(&mut self.held);
        let is_orphan = !self.is_thinking && !self.has_thought && self.at_line_start;
        if is_orphan && CLOSING.contains(&held.trim_end()) {
            return vec![Part::AllThought];
        }
        let mut out = Vec::new();
        self.emit(&held, &mut out);
        out
    }

    /// Whether it came further.
    fn step(&mut self, out: &mut Vec<Part>) -> bool {
        let Some(at) = self.held.find('<') else {
            let all = std::mem::take(&mut self.held);
            self.emit(&all, out);
            return true;
        };
        if at > 0 {
            let before: String = self.held.drain(..at).collect();
            self.emit(&before, out);
        }
        let tags: &[&str] = match (self.is_thinking, self.at_line_start) {
            (true, _) => &CLOSING,
            (false, true) if !self.has_thought => &[OPENING[0], OPENING[1], CLOSING[0], CLOSING[1]],
            (false, true) => &OPENING,
            (false, false) => &[],
        };
        if let Some(tag) = tags.iter().find(|tag| self.held.starts_with(**tag)) {
            let is_closing = tag.starts_with("</");
            if is_closing && !self.is_thinking {
                // Only with nothing else on its line.
                match self.held[tag.len()..].chars().next() {
                    None => return false,
                    Some('\n' | '\r') => out.push(Part::AllThought),
                    Some(_) => {
                        self.held.drain(..1);
                        self.emit("<", out);
                        return true;
                    }
                }
            }
            let rest = self.held.split_off(tag.len());
            self.held = rest.trim_start_matches(['\n', '\r']).to_owned();
            self.is_thinking = !is_closing;
            self.has_thought = true;
            self.at_line_start = true;
            return true;
        }
        if tags.iter().any(|tag| tag.starts_with(self.held.as_str())) {
            return false;
        }
        self.held.drain(..1);
        self.emit("<", out);
        true
    }

    fn emit(&mut self, text: &str, out: &mut Vec<Part>) {
        if text.is_empty() {
            return;
        }
        let last = text.rfind('\n').map_or(text, |at| &text[at + 1..]);
        let is_blank = last.chars().all(char::is_whitespace);
        self.at_line_start = is_blank && (self.at_line_start || last.len() < text.len());
        match (self.is_thinking, out.last_mut()) {
            (true, Some(Part::Thinking(before))) | (false, Some(Part::Text(before))) => before.push_str(text),
            (true, _) => out.push(Part::Thinking(text.to_owned())),
            (false, _) => out.push(Part::Text(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_between_tags_are_told_apart_however_the_text_is_cut() {
        let rows = [
            ("plain", "plain", ""),
            ("<think>a</think>b", "b", "a"),
            ("<think>\na\n</think>\n\nb", "b", "a\n"),
            ("  <think>a</think>b", "  b", "a"),
            ("<thinking>a</thinking>b", "b", "a"),
            ("the tag <think> opens", "the tag <think> opens", ""),
            ("x\n<think>a</think>y", "x\ny", "a"),
            ("<think>never closed", "", "never closed"),
            ("<think></think>b", "b", ""),
            ("a < b and c <", "a < b and c <", ""),
            ("<thi", "<thi", ""),
            ("<b>bold</b>", "<b>bold</b>", ""),
            ("thought\n</think>\nsaid", "said", "thought\n"),
            ("thought\n</think>", "", "thought\n"),
            ("a\n</think> is a tag", "a\n</think> is a tag", ""),
            ("<think>a < b</think>c", "c", "a < b"),
            ("<think>a</think>b\n<think>c</think>d", "b\nd", "ac"),
            ("<think>\u{1f600}</think>\u{e9}", "\u{e9}", "\u{1f600}"),
        ];
        for (whole, want_text, want_thinking) in rows {
            let letters: Vec<char> = whole.chars().collect();
            for size in 1..=letters.len() {
                let mut splitter = Splitter::default();
                let (mut text, mut thinking) = (String::new(), String::new());
                let mut parts = Vec::new();
                for piece in letters.chunks(size) {
                    parts.extend(splitter.take(&piece.iter().collect::<String>()));
                }
                parts.extend(splitter.rest());
                for part in parts {
                    match part {
                        Part::Text(piece) => text.push_str(&piece),
                        Part::Thinking(piece) => thinking.push_str(&piece),
                        Part::AllThought => thinking.push_str(&std::mem::take(&mut text)),
                    }
                }
                // A line's end behind a tag belongs to the tag, where both come together.
                assert_eq!(text.trim_start_matches('\n'), want_text, "{whole:?} in pieces of {size}");
                assert_eq!(thinking.trim_start_matches('\n'), want_thinking, "{whole:?} in pieces of {size}");
            }
        }
    }
}
