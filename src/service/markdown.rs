//! Markdown as HTML that cannot do anything: every tag is written here, from a short list, and everything else is text. What
//! models and strangers write goes through it, so it fetches nothing, links only where a person may want to go, and has bounds.

use super::picture;
use pulldown_cmark::{Alignment, CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd, TextMergeStream};
use std::fmt::Write as _;
use url::Url;

/// Longest text in bytes that is read as Markdown; a longer one is shown as it is.
pub const LONGEST: usize = 512 << 10;
/// Most bytes of HTML; a text that would make more is shown as it is.
const MOST: usize = 4 << 20;
/// Deepest nesting that is shown; what lies deeper stands at this depth.
const DEEPEST: usize = 24;
/// Longest address of a link, in bytes.
const FARTHEST: usize = 4096;

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// A text as HTML. The elements are `p h3 h4 h5 h6 blockquote pre code ul ol li table thead tbody tr th td em strong del a br hr
/// span`; the attributes are `class` (`language-…`, `start`, `center`, `end`, `raw`, `task`, `plain`), `start` of lists, and of
/// links `href`, `target`, `rel`. A picture is a link with its words, so nothing is ever fetched; HTML in the text is shown as
/// text.
#[must_use]
pub fn to_html(text: &str) -> String {
    if text.len() > LONGEST {
        return plain(text);
    }
    let mut page = Page { out: String::with_capacity(text.len() + text.len() / 4), ..Page::default() };
    for event in TextMergeStream::new(Parser::new_ext(text, options())) {
        page.take(event);
        if page.out.len() > MOST {
            return plain(text);
        }
    }
    page.out
}

/// Where the last block of a text begins, in bytes. What stands before it stays as it is, however the text goes on; the address
/// that a link names by reference apart.
#[must_use]
pub fn last_block(text: &str) -> usize {
    if text.len() > LONGEST {
        return 0;
    }
    let mut depth = 0usize;
    let mut last = 0;
    for (event, place) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    last = place.start;
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            Event::Rule if depth == 0 => last = place.start,
            _ => {}
        }
    }
    last
}

/// A text that is no Markdown, or too much of it.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    out.push_str("<pre class=\"plain\">");
    escape(text, &mut out);
    out.push_str("</pre>\n");
    out
}

/// An element that is open: what closes it; nothing where it was not written.
struct Open {
    close: &'static str,
    /// Where its content begins, for one that must not be empty.
    filled: Option<usize>,
    /// Whether it is a link that was written.
    is_link: bool,
}

#[derive(Default)]
struct Page {
    out: String,
    open: Vec<Open>,
    /// Columns of the table that is open.
    columns: Vec<Alignment>,
    column: usize,
    in_head: bool,
    in_code: bool,
    in_link: bool,
}

impl Page {
    fn take(&mut self, event: Event) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
            Event::Text(text) if self.in_code || self.in_link => escape(&text, &mut self.out),
            Event::Text(text) => self.words(&text),
            Event::Code(text) => {
                self.out.push_str("<code>");
                escape(&text, &mut self.out);
                self.out.push_str("</code>");
            }
            Event::Html(text) | Event::InlineHtml(text) => escape(&text, &mut self.out),
            // In a chat, a line that ends is meant to end.
            Event::SoftBreak | Event::HardBreak => self.out.push_str("<br>\n"),
            Event::Rule => self.out.push_str("<hr>\n"),
            Event::TaskListMarker(is_done) => {
                let mark = if is_done { '☑' } else { '☐' };
                let _ = write!(self.out, "<span class=\"task\">{mark}</span> ");
            }
            // Switched off, and text where they came all the same.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                escape(&text, &mut self.out);
            }
        }
    }

    fn push(&mut self, open: &str, close: &'static str) {
        self.out.push_str(open);
        self.open.push(Open { close, filled: None, is_link: false });
    }

    fn start(&mut self, tag: Tag) {
        // The parts of a list or a table go with it: alone they would be no HTML.
        let is_part = matches!(tag, Tag::Item | Tag::TableHead | Tag::TableRow | Tag::TableCell);
        let parent_is_unwritten = self.open.last().is_some_and(|parent| parent.close.is_empty());
        if if is_part { parent_is_unwritten } else { self.open.len() >= DEEPEST } {
            self.in_code |= matches!(tag, Tag::CodeBlock(_));
            self.open.push(Open { close: "", filled: None, is_link: false });
            return;
        }
        match tag {
            Tag::Paragraph => self.push("<p>", "</p>\n"),
            // The page has headings of its own above these.
            Tag::Heading { level, .. } => match level as usize {
                1 => self.push("<h3>", "</h3>\n"),
                2 => self.push("<h4>", "</h4>\n"),
                3 => self.push("<h5>", "</h5>\n"),
                _ => self.push("<h6>", "</h6>\n"),
            },
            Tag::BlockQuote(_) => self.push("<blockquote>\n", "</blockquote>\n"),
            Tag::CodeBlock(kind) => {
                self.in_code = true;
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => language(info),
                    CodeBlockKind::Indented => None,
                };
                match language {
                    Some(language) => {
                        let open = format!("<pre><code class=\"language-{language}\">");
                        self.push(&open, "</code></pre>\n");
                    }
                    None => self.push("<pre><code>", "</code></pre>\n"),
                }
            }
            Tag::HtmlBlock => self.push("<p class=\"raw\">", "</p>\n"),
            Tag::List(None) => self.push("<ul>\n", "</ul>\n"),
            Tag::List(Some(1)) => self.push("<ol>\n", "</ol>\n"),
            Tag::List(Some(first)) => {
                let open = format!("<ol start=\"{first}\">\n");
                self.push(&open, "</ol>\n");
            }
            Tag::Item => self.push("<li>", "</li>\n"),
            Tag::Table(columns) => {
                self.columns = columns;
                self.push("<table>", "</tbody></table>\n");
            }
            Tag::TableHead => {
                self.in_head = true;
                self.column = 0;
                self.push("<thead><tr>", "</tr></thead><tbody>\n");
            }
            Tag::TableRow => {
                self.column = 0;
                self.push("<tr>", "</tr>\n");
            }
            Tag::TableCell => self.cell(),
            Tag::Emphasis => self.push("<em>", "</em>"),
            Tag::Strong => self.push("<strong>", "</strong>"),
            Tag::Strikethrough => self.push("<del>", "</del>"),
            Tag::Link { link_type, dest_url, .. } => {
                let dest = match link_type {
                    LinkType::Email => address(&format!("mailto:{dest_url}")),
                    _ => address(&dest_url),
                };
                self.link(dest.as_deref());
            }
            Tag::Image { dest_url, .. } => {
                self.link(address(&dest_url).as_deref());
                let filled = Some(self.out.len());
                if let Some(open) = self.open.last_mut() {
                    open.filled = filled;
                }
            }
            // What is switched off would be shown by its content alone.
            Tag::Superscript
            | Tag::Subscript
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => self.push("", ""),
        }
    }

    fn cell(&mut self) {
        let class = match self.columns.get(self.column) {
            Some(Alignment::Left) => " class=\"start\"",
            Some(Alignment::Center) => " class=\"center\"",
            Some(Alignment::Right) => " class=\"end\"",
            Some(Alignment::None) | None => "",
        };
        self.column += 1;
        let (name, close) = if self.in_head { ("th", "</th>") } else { ("td", "</td>") };
        let open = format!("<{name}{class}>");
        self.push(&open, close);
    }

    /// A link; only its words where it leads nowhere or stands in another.
    fn link(&mut self, dest: Option<&str>) {
        match dest {
            Some(dest) if !self.in_link => {
                self.anchor(dest);
                self.in_link = true;
                self.open.push(Open { close: "</a>", filled: None, is_link: true });
            }
            _ => self.open.push(Open { close: "", filled: None, is_link: false }),
        }
    }

    fn anchor(&mut self, dest: &str) {
        self.out.push_str("<a href=\"");
        escape(dest, &mut self.out);
        self.out.push_str("\" target=\"_blank\" rel=\"noopener noreferrer\">");
    }

    fn end(&mut self, end: TagEnd) {
        match end {
            TagEnd::CodeBlock => self.in_code = false,
            TagEnd::TableHead => self.in_head = false,
            _ => {}
        }
        let Some(open) = self.open.pop() else { return };
        if open.filled == Some(self.out.len()) {
            self.out.push_str("picture");
        }
        if open.is_link {
            self.in_link = false;
        }
        self.out.push_str(open.close);
    }

    /// Text in which an address that stands alone becomes a link.
    fn words(&mut self, mut text: &str) {
        while let Some((at, length)) = bare_address(text) {
            let (before, rest) = text.split_at(at);
            let (link, after) = rest.split_at(length);
            escape(before, &mut self.out);
            match address(link) {
                Some(dest) => {
                    self.anchor(&dest);
                    escape(link, &mut self.out);
                    self.out.push_str("</a>");
                }
                None => escape(link, &mut self.out),
            }
            text = after;
        }
        escape(text, &mut self.out);
    }
}

/// The first address in a text that is one as it stands, as its place and length in bytes.
fn bare_address(text: &str) -> Option<(usize, usize)> {
    let at = text.match_indices("http").map(|(at, _)| at).find(|&at| {
        let rest = &text[at..];
        let begins = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '/');
        begins && (rest.starts_with("https://") || rest.starts_with("http://"))
    })?;
    let rest = &text[at..];
    let ends = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | '`' | '|' | '\\');
    let mut link = &rest[..rest.find(ends).unwrap_or(rest.len())];
    // What ends a sentence is no part of an address; a bracket only where it was opened in it.
    while let Some(last) = link.chars().next_back() {
        let opens = |c: char| link.matches(c).count();
        let is_left = match last {
            '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '*' | '_' | '~' => true,
            ')' => opens('(') < opens(')'),
            ']' => opens('[') < opens(']'),
            '}' => opens('{') < opens('}'),
            _ => false,
        };
        if !is_left {
            break;
        }
        link = &link[..link.len() - last.len_utf8()];
    }
    Some((at, link.len()))
}

/// Where a link may lead: to the web, to somebody's mailbox, to a page of this host, to a picture by its handle. As it is written
/// into the page; `None` for every other.
fn address(dest: &str) -> Option<String> {
    if dest.len() > FARTHEST || dest.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
        // Browsers take a backslash for a slash, and leave tabs and line ends out: `/<tab>/host` would be another host.
        return None;
    }
    if let Some(id) = picture::id_of(dest) {
        return Some(format!("/api/tool-image/{id}"));
    }
    if dest.starts_with("#/") || (dest.starts_with('/') && !dest.starts_with("//")) {
        return Some(dest.to_owned());
    }
    let url = Url::parse(dest).ok()?;
    match url.scheme() {
        // A name before the host is there to be taken for the host.
        "http" | "https" => (url.username().is_empty() && url.password().is_none()).then(|| url.to_string()),
        "mailto" => Some(url.to_string()),
        _ => None,
    }
}

/// The language in the words behind a fence, as part of a class.
fn language(info: &str) -> Option<String> {
    let word = info.split([' ', '\t', ',', '{']).next().unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '-' | '_' | '.');
    (!word.is_empty() && word.len() <= 32 && word.chars().all(fits)).then(|| word.to_ascii_lowercase())
}

fn escape(text: &str, out: &mut String) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let written = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\'' => "&#39;",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(written);
        from = at + 1;
    }
    out.push_str(&text[from..]);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
