//! Rewrites a page into well-nested HTML before anything parses it: strangers' pages may not cost more than their size.
//! Knows tags and nesting, nothing of what the page is wanted for beyond [`Purpose`].

use super::tag::{Tag, after, after_comment, raw_content, tag_at};
use crate::base::error::{Error, Kind, Result};
use std::collections::HashMap;

/// The deepest page, in elements open at once.
pub(super) const MAX_DEPTH: usize = 512;
/// Most elements of a page.
pub(super) const MAX_TAGS: usize = 200_000;
/// Most formatting elements open at once; the parser opens all of them again in every block they reach into.
const MAX_FORMATTING: usize = 16;
/// Most lists and quotes around a line of Markdown; each indents every line inside it.
const MAX_INDENTS: usize = 10;
/// How many elements around a piece of code may name its language.
const MAX_CODE_FRAMES: usize = 4;
/// How far back an end tag looks for its element.
const MAX_REACH: usize = 256;

/// What the page is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To be selected from: everything stays but what only a browser shows.
    Page,
    /// To be read: only what Markdown can say stays.
    Markdown,
}

/// Never hold anything.
const VOID: [&str; 18] = [
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen", "link",
    "meta", "param", "source", "track", "wbr",
];
/// Reopened by the parser after whatever closed them.
const FORMATTING: [&str; 14] =
    ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];
/// Content that is one text up to the end tag.
const RAW: [&str; 10] =
    ["iframe", "noembed", "noframes", "noscript", "script", "style", "textarea", "title", "xmp", "plaintext"];
/// Begin a new block; an open paragraph ends before them.
const BLOCKS: [&str; 66] = [
    "address",
    "article",
    "aside",
    "base",
    "basefont",
    "blockquote",
    "body",
    "caption",
    "center",
    "col",
    "colgroup",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "iframe",
    "legend",
    "li",
    "link",
    "main",
    "menu",
    "menuitem",
    "nav",
    "noframes",
    "ol",
    "optgroup",
    "option",
    "p",
    "param",
    "pre",
    "script",
    "search",
    "section",
    "style",
    "summary",
    "table",
    "tbody",
    "td",
    "textarea",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "track",
    "ul",
];
/// Indent every line inside them.
const INDENTING: [&str; 5] = ["ul", "ol", "blockquote", "dir", "menu"];
/// An end tag of something else does not reach through these.
const WALLS: [&str; 12] =
    ["table", "caption", "td", "th", "button", "marquee", "object", "applet", "svg", "math", "foreignobject", "select"];
/// Inside these stands nothing but parts of a table.
const TABLE_PARTS: [&str; 6] = ["table", "tbody", "thead", "tfoot", "tr", "colgroup"];

/// The page, well nested: every element that is opened is closed, in order, and no deeper than [`MAX_DEPTH`].
///
/// # Errors
/// `too_large` beyond [`MAX_DEPTH`] or [`MAX_TAGS`].
pub(super) fn tidy(html: &str, purpose: Purpose) -> Result<String> {
    let mut page = Page {
        out: String::with_capacity(html.len() + 64),
        open: Vec::new(),
        names: HashMap::new(),
        formatting: 0,
        indents: 0,
        purpose,
        tags: 0,
        templates: 0,
        last_closed: None,
        begins_code: false,
    };
    page.read(html)?;
    while !page.open.is_empty() {
        page.pop();
    }
    Ok(page.out)
}

/// The language of code inside this element, by the ways in which pages mark it.
fn language(tag: &Tag<'_>) -> Option<String> {
    if !matches!(tag.name.as_str(), "pre" | "code" | "div" | "figure") {
        return None;
    }
    let class = tag.attributes.iter().find(|(name, _)| name == "class")?.1;
    let marked = class.split_ascii_whitespace().find_map(|word| {
        let after = |mark: &str| word.strip_prefix(mark);
        after("language-")
            .or_else(|| after("lang-"))
            .or_else(|| after("highlight-source-"))
            .or_else(|| after("highlight-"))
    })?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '_' | '.' | '-');
    let says_something = !matches!(marked, "" | "default" | "none" | "text" | "plaintext");
    (says_something && marked.len() <= 24 && marked.chars().all(is_name)).then(|| marked.to_owned())
}

/// An element that is open.
struct Open {
    name: String,
    /// Whether its tag was written; one that was not only counts.
    written: bool,
    /// Where its start tag stands in the output.
    start: (usize, usize),
    /// The language that its class names, for the code inside.
    language: Option<String>,
}

struct Page {
    out: String,
    open: Vec<Open>,
    /// How many elements of each name are open, so that most searches need not begin.
    names: HashMap<String, usize>,
    /// Formatting elements that are open and written.
    formatting: usize,
    /// Lists and quotes that are open and written.
    indents: usize,
    purpose: Purpose,
    tags: usize,
    /// Templates around the present place; what is inside is not part of the page.
    templates: usize,
    /// The last end tag: where it stands, and its element's start tag.
    last_closed: Option<((usize, usize), (usize, usize))>,
    /// Whether a block of code was opened that has no text yet.
    begins_code: bool,
}

impl Page {
    fn read(&mut self, html: &str) -> Result<()> {
        let mut rest = html;
        while let Some(at) = rest.find('<') {
            self.text(&rest[..at]);
            rest = &rest[at..];
            let second = rest.as_bytes().get(1).copied().unwrap_or(b' ');
            rest = match second {
                b'!' if rest.starts_with("<!--") => after_comment(rest),
                // A document type, a section of data, or nonsense: the parser skips it all up to the bracket.
                b'!' | b'?' => after(rest, ">"),
                b'/' if rest.as_bytes().get(2).is_some_and(u8::is_ascii_alphabetic) => {
                    let (tag, rest) = tag_at(rest, 2);
                    if let Some(tag) = tag {
                        self.end(self.plain_name(&tag.name));
                    }
                    rest
                }
                b'/' => after(rest, ">"),
                letter if letter.is_ascii_alphabetic() => {
                    let (tag, after_tag) = tag_at(rest, 1);
                    match tag {
                        Some(mut tag) => {
                            tag.name = self.plain_name(&tag.name).to_owned();
                            self.start(&tag, after_tag)?
                        }
                        None => after_tag,
                    }
                }
                _ => {
                    self.text("<");
                    &rest[1..]
                }
            };
        }
        self.text(rest);
        Ok(())
    }

    /// Markdown has one sign for either of two names, and the converter joins what bears them.
    fn plain_name<'n>(&self, name: &'n str) -> &'n str {
        match (self.purpose, name) {
            (Purpose::Markdown, "strong") => "b",
            (Purpose::Markdown, "em") => "i",
            _ => name,
        }
    }

    /// A start tag; returns where reading goes on, which is behind the content of a raw element.
    fn start<'h>(&mut self, tag: &Tag<'h>, rest: &'h str) -> Result<&'h str> {
        self.tags += 1;
        if self.tags > MAX_TAGS {
            return Err(Error::new(Kind::TooLarge, format!("the page has more than {MAX_TAGS} elements")));
        }
        let drawn = self.is_open("svg") || self.is_open("math");
        let name = tag.name.as_str();
        if RAW.contains(&name) && !drawn {
            let (content, rest) = raw_content(rest, name);
            self.raw(tag, content)?;
            return Ok(rest);
        }
        match name {
            "template" => self.templates += 1,
            _ if self.templates > 0 => {}
            // The parser makes these itself; what they say is kept where it stands first.
            "html" | "head" | "body" => {
                if self.open.is_empty() && self.purpose == Purpose::Page {
                    let text = tag.written(self.purpose);
                    self.out.push_str(&text);
                }
            }
            "frameset" => {}
            _ => self.element(tag, drawn)?,
        }
        Ok(rest)
    }

    fn element(&mut self, tag: &Tag<'_>, drawn: bool) -> Result<()> {
        let name = tag.name.as_str();
        if self.is_in_code() {
            return self.element_in_code(tag);
        }
        if !drawn {
            self.make_room(name);
            if !self.fits_here(name) {
                return Ok(());
            }
        }
        if VOID.contains(&name) || (drawn && tag.closes_itself) {
            let text = tag.written(self.purpose);
            self.out.push_str(&text);
            if !VOID.contains(&name) {
                self.out.push_str("</");
                self.out.push_str(name);
                self.out.push('>');
            }
            return Ok(());
        }
        let written = self.may_write(name);
        self.push(tag, written)
    }

    fn push(&mut self, tag: &Tag<'_>, written: bool) -> Result<()> {
        if self.open.len() >= MAX_DEPTH {
            return Err(Error::new(Kind::TooLarge, format!("the page nests deeper than {MAX_DEPTH} elements")));
        }
        let start = self.out.len();
        let language = if self.purpose == Purpose::Markdown { language(tag) } else { None };
        if written {
            let text = tag.written(self.purpose);
            if let Some(open) = self.joined(&tag.name, &text) {
                self.entered(open);
                return Ok(());
            }
            self.out.push_str(&text);
        }
        self.begins_code |= written && tag.name == "pre" && self.purpose == Purpose::Markdown;
        self.entered(Open { name: tag.name.clone(), written, start: (start, self.out.len()), language });
        Ok(())
    }

    /// Whether this is inside a block of code that is to be read: then spaces and lines count, and tags do not.
    fn is_in_code(&self) -> bool {
        self.purpose == Purpose::Markdown && self.is_open("pre")
    }

    /// What is inside `pre` becomes one text, as the converter knows blocks of code only from `code` directly inside.
    fn element_in_code(&mut self, tag: &Tag<'_>) -> Result<()> {
        let name = tag.name.as_str();
        if name == "br" {
            self.text("\n");
        }
        if VOID.contains(&name) || tag.closes_itself {
            return Ok(());
        }
        if is_block(name) {
            self.end_line();
        }
        self.push(tag, false)
    }

    /// Some pages make each line of code an element.
    fn end_line(&mut self) {
        if !self.begins_code && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    /// Opens the code of a `pre`, with the language that it or what is around it names.
    fn open_code(&mut self) {
        self.begins_code = false;
        let named = self.open.iter().rev().take(MAX_CODE_FRAMES).find_map(|open| open.language.as_deref());
        match named {
            Some(language) => self.out.push_str(&format!("<code class=\"language-{language}\">")),
            None => self.out.push_str("<code>"),
        }
    }

    /// In Markdown two like elements side by side are one: the converter would join them itself, one by one.
    fn joined(&mut self, name: &str, text: &str) -> Option<Open> {
        let ((from, to), start) = self.last_closed?;
        let alike = self.purpose == Purpose::Markdown
            && to == self.out.len()
            && self.out[start.0..start.1] == *text
            && name != "a"
            && !is_block(name);
        if !alike {
            return None;
        }
        self.out.truncate(from);
        self.last_closed = None;
        Some(Open { name: name.to_owned(), written: true, start, language: None })
    }

    /// Closes what a new element of that name ends by itself.
    fn make_room(&mut self, name: &str) {
        match name {
            "li" => self.close_nearest(&["li"], &["ul", "ol", "menu", "dir"]),
            "dt" | "dd" => self.close_nearest(&["dt", "dd"], &["dl"]),
            "option" => self.close_nearest(&["option"], &["optgroup", "datalist"]),
            "optgroup" => self.close_nearest(&["optgroup", "option"], &["datalist"]),
            "rt" | "rp" => self.close_nearest(&["rt", "rp"], &["ruby"]),
            "a" | "nobr" => self.close_nearest(&[name], &[]),
            "button" | "select" => self.close_nearest(&[name], &[]),
            "td" | "th" => self.back_to(&["tr", "tbody", "thead", "tfoot", "table"]),
            "tr" => self.back_to(&["tbody", "thead", "tfoot", "table"]),
            "tbody" | "thead" | "tfoot" | "caption" | "colgroup" => self.back_to(&["table"]),
            "col" => self.back_to(&["colgroup", "table"]),
            _ => {}
        }
        if is_block(name)
            && !matches!(name, "td" | "th" | "tr" | "tbody" | "thead" | "tfoot" | "caption" | "colgroup" | "col")
        {
            // A paragraph ends where a block begins, through the formatting inside it.
            let inline = |open: &&Open| FORMATTING.contains(&open.name.as_str());
            let above = self.open.iter().rev().take_while(inline).count();
            if self.open.len() > above && self.open[self.open.len() - above - 1].name == "p" {
                self.close_down_to(self.open.len() - above - 1);
            }
        }
        if is_heading(name) && self.open.last().is_some_and(|open| is_heading(&open.name)) {
            self.pop();
        }
    }

    /// Whether an element of that name may stand here; opens the cell it needs inside a table.
    fn fits_here(&mut self, name: &str) -> bool {
        let part = matches!(name, "td" | "th" | "tr" | "tbody" | "thead" | "tfoot" | "caption" | "colgroup" | "col");
        if part && !self.is_open("table") {
            // Outside a table the parser ignores the tag; the words around it stay apart.
            self.out.push(' ');
            return false;
        }
        if !part && self.in_table_parts() {
            if name == "form" {
                return false;
            }
            self.open_cell();
        }
        true
    }

    fn is_open(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|count| *count > 0)
    }

    fn in_table_parts(&self) -> bool {
        self.open.iter().rev().find(|open| open.written).is_some_and(|open| TABLE_PARTS.contains(&open.name.as_str()))
    }

    /// What stands loose in a table goes into a cell: the parser would carry each piece out in front of the table,
    /// searching its place anew every time.
    fn open_cell(&mut self) {
        if self.open.last().is_some_and(|open| open.name == "colgroup") {
            self.pop();
        }
        let in_row = self.open.iter().rev().find(|open| open.written).is_some_and(|open| open.name == "tr");
        for name in if in_row { &["td"][..] } else { &["tr", "td"][..] } {
            let start = self.out.len();
            self.out.push('<');
            self.out.push_str(name);
            self.out.push('>');
            let start = (start, self.out.len());
            self.entered(Open { name: (*name).to_owned(), written: true, start, language: None });
        }
    }

    /// Whether the tag is written, or only counted because too many of its kind are open.
    fn may_write(&self, name: &str) -> bool {
        if FORMATTING.contains(&name) {
            return self.formatting < MAX_FORMATTING;
        }
        self.purpose == Purpose::Page || !INDENTING.contains(&name) || self.indents < MAX_INDENTS
    }

    fn end(&mut self, name: &str) {
        if name == "template" {
            self.templates = self.templates.saturating_sub(1);
            return;
        }
        if self.templates > 0 {
            return;
        }
        if name == "br" {
            self.out.push_str("<br>");
            return;
        }
        if !self.is_open(name) && !is_heading(name) {
            return;
        }
        let mut found = None;
        for (back, open) in self.open.iter().rev().take(MAX_REACH).enumerate() {
            if open.name == name || (is_heading(name) && is_heading(&open.name)) {
                found = Some(self.open.len() - back - 1);
                break;
            }
            let list_wall = name == "li" && matches!(open.name.as_str(), "ul" | "ol");
            if list_wall || (WALLS.contains(&open.name.as_str()) && !TABLE_PARTS.contains(&name)) {
                break;
            }
            if open.name == "table" {
                break;
            }
        }
        if let Some(at) = found {
            self.close_down_to(at);
        }
    }

    /// Closes the nearest of `names`, with what is inside it, unless one of `walls` stands before it.
    fn close_nearest(&mut self, names: &[&str], walls: &[&str]) {
        if !names.iter().any(|name| self.is_open(name)) {
            return;
        }
        for (back, open) in self.open.iter().rev().take(MAX_REACH).enumerate() {
            let other = open.name.as_str();
            if names.contains(&other) {
                self.close_down_to(self.open.len() - back - 1);
                return;
            }
            if walls.contains(&other) || WALLS.contains(&other) {
                return;
            }
        }
    }

    /// Closes what is inside the nearest of `names`, not the element itself.
    fn back_to(&mut self, names: &[&str]) {
        let near = self.open.iter().rev().take(MAX_REACH).position(|open| names.contains(&open.name.as_str()));
        if let Some(back) = near {
            self.close_down_to(self.open.len() - back);
        }
    }

    fn close_down_to(&mut self, length: usize) {
        while self.open.len() > length {
            self.pop();
        }
    }

    fn entered(&mut self, open: Open) {
        *self.names.entry(open.name.clone()).or_insert(0) += 1;
        if open.written {
            self.formatting += usize::from(FORMATTING.contains(&open.name.as_str()));
            self.indents += usize::from(INDENTING.contains(&open.name.as_str()));
        }
        self.open.push(open);
    }

    fn pop(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if let Some(count) = self.names.get_mut(&open.name) {
            *count -= 1;
        }
        if !open.written && self.is_in_code() && is_block(&open.name) {
            self.end_line();
        }
        if open.written && open.name == "pre" && self.purpose == Purpose::Markdown {
            if self.begins_code {
                self.open_code();
            }
            self.out.push_str("</code>");
        }
        if open.written {
            self.formatting -= usize::from(FORMATTING.contains(&open.name.as_str()));
            self.indents -= usize::from(INDENTING.contains(&open.name.as_str()));
            let from = self.out.len();
            self.out.push_str("</");
            self.out.push_str(&open.name);
            self.out.push('>');
            self.last_closed = Some(((from, self.out.len()), open.start));
        }
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() || self.templates > 0 {
            return;
        }
        if self.in_table_parts() {
            if text.trim().is_empty() {
                return;
            }
            self.open_cell();
        }
        let mut text = text;
        if self.begins_code {
            // As the parser does behind `<pre>`.
            text = text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')).unwrap_or(text);
            if text.is_empty() {
                return;
            }
            self.open_code();
        }
        self.escaped(text);
    }

    /// Text as it stands, character references included; only a bracket that begins no tag is written out.
    fn escaped(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '<' => self.out.push_str("&lt;"),
                // The marks that the table writer uses between cells, and what no page may hold.
                '\u{fdd0}'..='\u{fdef}' | '\0' => {}
                other => self.out.push(other),
            }
        }
    }

    /// An element whose content is one text.
    fn raw(&mut self, tag: &Tag<'_>, content: &str) -> Result<()> {
        let name = tag.name.as_str();
        if self.templates > 0 || matches!(name, "noembed" | "noframes" | "noscript") {
            return Ok(());
        }
        let reading = self.purpose == Purpose::Markdown;
        match name {
            "script" | "style" | "iframe" => {
                let loose_in_table = name == "iframe" && self.in_table_parts();
                if !reading && !loose_in_table {
                    let text = tag.written(self.purpose);
                    self.out.push_str(&text);
                    // A script that opens a comment could hide its own end tag from the parser.
                    if name != "iframe" && !content.contains("<!--") {
                        self.out.push_str(content);
                    }
                    self.out.push_str("</");
                    self.out.push_str(name);
                    self.out.push('>');
                }
            }
            "title" | "textarea" if reading => {}
            _ => {
                let plain = Tag {
                    name: if matches!(name, "xmp" | "plaintext") { "pre".to_owned() } else { name.to_owned() },
                    ..tag.clone()
                };
                self.make_room(&plain.name);
                if self.fits_here(&plain.name) {
                    self.push(&plain, true)?;
                    if self.begins_code {
                        self.open_code();
                    }
                    self.escaped(content);
                    self.pop();
                }
            }
        }
        Ok(())
    }
}

fn is_block(name: &str) -> bool {
    BLOCKS.contains(&name)
}

fn is_heading(name: &str) -> bool {
    matches!(name, "h1" | "h2" | "h3" | "h4" | "h5" | "h6")
}

#[cfg(test)]
mod tests;
