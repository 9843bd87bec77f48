//! Single tags as they stand in a page, read as a browser's tokenizer reads them. Knows nothing of nesting.

use super::table::is_telling;
use super::tidy::Purpose;
use std::collections::HashSet;

/// Most attributes of one element; the parser compares each with each.
const MAX_ATTRIBUTES: usize = 64;
/// Attributes that Markdown has words for.
const SAID: [&str; 6] = ["alt", "class", "href", "src", "start", "title"];

/// A start or end tag as it stands in the page.
#[derive(Clone)]
pub(super) struct Tag<'h> {
    /// In lower case.
    pub name: String,
    /// Names in lower case, values with their character references.
    pub attributes: Vec<(String, &'h str)>,
    /// Whether it ends in a slash.
    pub closes_itself: bool,
}

impl Tag<'_> {
    /// The tag in the one way the parser cannot misread.
    pub fn written(&self, purpose: Purpose) -> String {
        let mut text = format!("<{}", self.name);
        for (name, value) in &self.attributes {
            let said = match name.as_str() {
                "class" => matches!(self.name.as_str(), "code" | "pre"),
                other => SAID.contains(&other) || is_telling(&self.name, other),
            };
            if purpose == Purpose::Markdown && !said {
                continue;
            }
            text.push(' ');
            text.push_str(name);
            text.push_str("=\"");
            for c in value.chars() {
                match c {
                    '"' => text.push_str("&quot;"),
                    '\0' => {}
                    other => text.push(other),
                }
            }
            text.push('"');
        }
        text.push('>');
        text
    }
}

/// Reads the tag whose name begins at `from`; `None` for one that is cut off or has an impossible name.
pub(super) fn tag_at(text: &str, from: usize) -> (Option<Tag<'_>>, &str) {
    let space = |c: char| c.is_ascii_whitespace();
    let body = &text[from..];
    let length = body.find(|c: char| space(c) || matches!(c, '/' | '>')).unwrap_or(body.len());
    let name = body[..length].to_ascii_lowercase();
    let mut rest = &body[length..];
    let mut attributes: Vec<(String, &str)> = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    let closes_itself = loop {
        let before = rest.trim_start_matches(|c: char| space(c) || c == '/');
        let slash = rest.len() != before.len() && rest[..rest.len() - before.len()].ends_with('/');
        rest = before;
        if let Some(after) = rest.strip_prefix('>') {
            rest = after;
            break slash;
        }
        if rest.is_empty() {
            // The page ends inside the tag: the parser drops it.
            return (None, rest);
        }
        // An equals sign may begin a name, nowhere else.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end =
            rest[first..].find(|c: char| space(c) || matches!(c, '/' | '>' | '=')).map_or(rest.len(), |at| at + first);
        let attribute = &rest[..end];
        rest = &rest[end..];
        let mut value = "";
        if let Some(after) = rest.trim_start_matches(space).strip_prefix('=') {
            rest = after.trim_start_matches(space);
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            if let Some(quote) = quote {
                let inside = &rest[1..];
                let Some(close) = inside.find(quote) else { return (None, "") };
                value = &inside[..close];
                rest = &inside[close + 1..];
            } else {
                let close = rest.find(|c: char| space(c) || c == '>').unwrap_or(rest.len());
                value = &rest[..close];
                rest = &rest[close..];
            }
        }
        if attributes.len() < MAX_ATTRIBUTES && is_name(attribute) {
            let attribute = attribute.to_ascii_lowercase();
            if seen.insert(attribute.clone()) {
                attributes.push((attribute, value));
            }
        }
    };
    let name = match name.as_str() {
        "image" => "img".to_owned(),
        _ => name,
    };
    (is_name(&name).then_some(Tag { name, attributes, closes_itself }), rest)
}

/// Names that mean the same to the parser however it reads them.
fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':' | b'.' | b'@'))
}

/// The content of a raw element, and what follows its end tag.
pub(super) fn raw_content<'h>(text: &'h str, name: &str) -> (&'h str, &'h str) {
    if name == "plaintext" {
        return (text, "");
    }
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let at = from + at;
        let after = &text[at + 2..];
        let ends = after.get(..name.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(name))
            && after[name.len()..].chars().next().is_none_or(|c| c.is_ascii_whitespace() || matches!(c, '/' | '>'));
        if ends {
            let (_, rest) = tag_at(&text[at..], 2);
            return (&text[..at], rest);
        }
        from = at + 2;
    }
    (text, "")
}

pub(super) fn after_comment(text: &str) -> &str {
    let body = &text[4..];
    // `<!-->` and `<!--->` are whole comments.
    if let Some(rest) = body.strip_prefix('>').or_else(|| body.strip_prefix("->")) {
        return rest;
    }
    let end = body.find("-->");
    // Only up to the usual end: the rest belongs to others, and would be searched again for each comment.
    let other = body[..end.unwrap_or(body.len())].find("--!>");
    match (other, end) {
        (Some(at), _) => &body[at + 4..],
        (None, Some(at)) => &body[at + 3..],
        (None, None) => "",
    }
}

pub(super) fn after<'h>(text: &'h str, mark: &str) -> &'h str {
    text.find(mark).map_or("", |at| &text[at + mark.len()..])
}
