//! What of a page is still there in its Markdown: headings, links, cells of tables, items of lists, code. The page is read
//! with a parser of HTML and the Markdown with one of CommonMark, so every converter is held to the same rule.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use scraper::{ElementRef, Html, Node, Selector};
use std::collections::HashMap;

/// The kinds of parts, in the order of every array here.
pub const KINDS: [&str; 6] = ["headings", "links", "cells", "items", "blocks", "code"];

/// Parts of a page by kind, each as what identifies it.
#[derive(Debug, Default)]
pub struct Parts([Vec<String>; 6]);

const HEADINGS: usize = 0;
const LINKS: usize = 1;
const CELLS: usize = 2;
const ITEMS: usize = 3;
const BLOCKS: usize = 4;
const CODE: usize = 5;

/// What nobody reads.
const UNSEEN: [&str; 9] = ["script", "style", "noscript", "template", "iframe", "svg", "head", "object", "form"];

impl Parts {
    fn add(&mut self, kind: usize, text: &str) {
        self.insert(kind, "", text);
    }

    /// Blocks of code keep their lines; of all else the letters and digits count, so that no converter is held to another's
    /// escapes, quotes and spaces.
    fn insert(&mut self, kind: usize, mark: &str, text: &str) {
        let said = if kind == BLOCKS {
            text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
        } else {
            text.chars().filter(|c| c.is_alphanumeric()).collect()
        };
        if !said.is_empty() {
            self.0[kind].push(format!("{mark}{said}"));
        }
    }

    /// How many parts of each kind there are.
    pub fn counts(&self) -> [usize; 6] {
        self.0.each_ref().map(Vec::len)
    }

    /// The parts of one kind that `other` lacks.
    pub fn lost_in(&self, other: &Parts, kind: usize) -> Vec<&str> {
        let mut there: HashMap<&str, usize> = HashMap::new();
        for part in &other.0[kind] {
            *there.entry(part).or_default() += 1;
        }
        let is_lost = |part: &&String| match there.get_mut(part.as_str()) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        };
        self.0[kind].iter().filter(is_lost).map(String::as_str).collect()
    }
}

/// The parts that a reader of this page sees.
pub fn of_page(html: &str) -> Parts {
    let page = Html::parse_document(html);
    let mut parts = Parts::default();
    let all = Selector::parse("h1,h2,h3,h4,h5,h6,a[href],td,th,li,pre,code").expect("a selector");
    for element in page.select(&all).filter(|e| !is_unseen(*e)) {
        let tag = element.value().name();
        match tag {
            "a" => {
                // A link around a picture or a heading has no text of its own to find again.
                let href = element.attr("href").unwrap_or_default().trim();
                if !href.is_empty()
                    && !is_inside(element, &["pre"])
                    && !holds(element, &["img", "h1", "h2", "h3", "h4", "h5", "h6", "p", "div", "pre"])
                {
                    parts.insert_link(href, &text(element, &[]));
                }
            }
            "td" | "th" => {
                // What is there for the layout is no table to a reader, and tables in tables have no Markdown.
                let table = element.ancestors().filter_map(ElementRef::wrap).find(|e| e.value().name() == "table");
                if table.is_some_and(|t| is_data(t) && !holds(t, &["table"]) && !is_inside(t, &["table"])) {
                    // A title or a note over the whole width may stand beside the table as well.
                    let alone = element.parent().is_some_and(|row| elements(row).count() < 2);
                    if !alone || table.is_some_and(|t| holds(t, &["th"])) {
                        parts.add(CELLS, &text(element, &[]));
                    }
                }
            }
            // What stands in an item before the lists, tables and blocks inside it.
            "li" => parts.add(ITEMS, &text(element, &["ul", "ol", "pre", "table", "p", "div", "dl", "blockquote"])),
            "pre" if !is_inside(element, &["table", "a"]) => parts.add(BLOCKS, &text(element, &[])),
            "code" if !is_inside(element, &["pre"]) => parts.add(CODE, &text(element, &[])),
            "pre" | "code" => {}
            _ => {
                if !is_inside(element, &["table", "li", "a"]) {
                    parts.insert(HEADINGS, &tag[1..], &text(element, &[]));
                }
            }
        }
    }
    parts
}

impl Parts {
    fn insert_link(&mut self, to: &str, text: &str) {
        let said: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
        if !said.is_empty() {
            self.0[LINKS].push(format!("{} {said}", to.replace("%20", " ")));
        }
    }
}

fn elements<'d>(node: ego_tree::NodeRef<'d, Node>) -> impl Iterator<Item = ElementRef<'d>> {
    node.children().filter_map(ElementRef::wrap)
}

/// Whether a table holds data: it has headings or says so, or it has rows of a few words side by side.
fn is_data(table: ElementRef) -> bool {
    const BLOCKS: [&str; 12] = ["ul", "ol", "dl", "pre", "blockquote", "h1", "h2", "h3", "h4", "img", "table", "form"];
    let said = |name: &str| table.attr(name).map(str::trim);
    if matches!(said("role"), Some("presentation" | "none")) {
        return false;
    }
    if holds(table, &["th", "thead"])
        || table.select(&Selector::parse("td[scope]").expect("a selector")).next().is_some()
    {
        return true;
    }
    let rows: Vec<Vec<ElementRef>> = table
        .descendants()
        .filter_map(ElementRef::wrap)
        .filter(|e| e.value().name() == "tr")
        .map(|row| elements(*row).filter(|e| e.value().name() == "td").collect())
        .filter(|row: &Vec<ElementRef>| !row.is_empty())
        .collect();
    let is_marked = said("border").is_some_and(|b| b != "0")
        || said("summary").is_some_and(|s| !s.is_empty())
        || holds(table, &["caption"]);
    if is_marked && rows.len() > 1 && !holds(table, &BLOCKS) {
        return true;
    }
    let wide = || rows.iter().filter(|row| row.len() > 1);
    let is_short = |cell: &ElementRef| {
        text(*cell, &[]).split_whitespace().map(|word| word.len() + 1).sum::<usize>() <= 100
            && !holds(*cell, &BLOCKS)
            && !holds(*cell, &["p", "div", "br", "input", "textarea"])
    };
    let says = |cell: &&ElementRef, but: &[&str]| text(**cell, but).chars().any(char::is_alphanumeric);
    let first = rows.iter().position(|row| row.len() > 1).unwrap_or_default();
    let last = rows.iter().rposition(|row| row.len() > 1).unwrap_or_default();
    wide().filter(|row| row.iter().filter(|cell| says(cell, &[])).count() > 1).count() > 1
        && rows[first..=last].iter().all(|row| row.len() > 1 && row.iter().all(is_short))
        && wide().flatten().any(|cell| says(&cell, &["a"]))
}

fn is_unseen(element: ElementRef) -> bool {
    is_inside(element, &UNSEEN)
}

fn is_inside(element: ElementRef, tags: &[&str]) -> bool {
    element.ancestors().filter_map(ElementRef::wrap).any(|e| tags.contains(&e.value().name()))
}

fn holds(element: ElementRef, tags: &[&str]) -> bool {
    element.descendants().skip(1).filter_map(ElementRef::wrap).any(|e| tags.contains(&e.value().name()))
}

fn text(element: ElementRef, but: &[&str]) -> String {
    let mut out = String::new();
    for node in element.children() {
        match node.value() {
            Node::Text(t) => out.push_str(t),
            Node::Element(e) if e.name() == "br" => out.push('\n'),
            Node::Element(e) if !but.contains(&e.name()) && !UNSEEN.contains(&e.name()) => {
                out.push_str(&ElementRef::wrap(node).map(|e| text(e, but)).unwrap_or_default());
            }
            _ => {}
        }
    }
    out
}

/// The parts that Markdown says.
pub fn of_markdown(markdown: &str) -> Parts {
    let mut parts = Parts::default();
    // What is open, with the text that it has so far; texts count for everything that they stand in.
    let mut open: Vec<(usize, String, String)> = Vec::new();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                open.push((HEADINGS, (level as usize).to_string(), String::new()))
            }
            Event::Start(Tag::Link { dest_url, .. }) => open.push((LINKS, dest_url.into_string(), String::new())),
            Event::Start(Tag::TableCell) => open.push((CELLS, String::new(), String::new())),
            Event::Start(Tag::Item) => open.push((ITEMS, String::new(), String::new())),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented)) => {
                open.push((BLOCKS, String::new(), String::new()));
            }
            // What an item says by itself ends where a list inside it begins.
            Event::Start(Tag::List(_)) => {
                if let Some((ITEMS, mark, said)) = open.last_mut() {
                    "said".clone_into(mark);
                    parts.add(ITEMS, said);
                }
            }
            Event::End(TagEnd::Heading(_) | TagEnd::Link | TagEnd::TableCell | TagEnd::CodeBlock | TagEnd::Item) => {
                match open.pop() {
                    Some((LINKS, to, said)) => parts.insert_link(&to, &said),
                    Some((ITEMS, mark, _)) if mark == "said" => {}
                    Some((kind, mark, said)) => parts.insert(kind, &mark, &said),
                    None => {}
                }
            }
            Event::Text(said) => open.iter_mut().for_each(|(_, _, all)| all.push_str(&said)),
            Event::Code(said) => {
                parts.add(CODE, &said);
                open.iter_mut().for_each(|(_, _, all)| all.push_str(&said));
            }
            Event::SoftBreak | Event::HardBreak => open.iter_mut().for_each(|(_, _, all)| all.push('\n')),
            _ => {}
        }
    }
    parts
}

/// A page of at least this many bytes: a menu, headings, paragraphs with links and code, lists in lists, tables, blocks of code,
/// and pictures.
pub fn made(bytes: usize) -> String {
    let mut chance = fastrand::Rng::with_seed(7);
    let mut words = |n: usize| -> String {
        const WORDS: [&str; 16] = [
            "stone", "cut", "facet", "a", "light", "of", "table", "polish", "the", "wheel", "girdle", "under", "angle",
            "slow", "with", "water",
        ];
        let picked: Vec<&str> = (0..n).map(|_| WORDS[chance.usize(..WORDS.len())]).collect();
        picked.join(" ")
    };
    let mut out = String::from(
        "<!DOCTYPE html><html><head><title>Made</title><style>p { margin: 0 }</style><script>let x = '<p>';</script></head><body>",
    );
    out.push_str("<nav><ul>");
    for i in 0..40 {
        out.push_str(&format!("<li><a href=\"/menu/{i}\">{} {i}</a></li>", words(2)));
    }
    out.push_str("</ul></nav><main>");
    for i in 0.. {
        if out.len() >= bytes {
            break;
        }
        out.push_str(&match i % 7 {
            0 => format!("<h{0} id=\"p{i}\">{1} {i}</h{0}>", 1 + i / 7 % 4, words(4)),
            1 | 2 => format!(
                "<p>{} <a href=\"https://example.org/{i}\">{}</a>, <strong>{}</strong> &amp; <em>{}</em>, <code>{}()</code> {}.</p>\n",
                words(30),
                words(3),
                words(2),
                words(3),
                words(1),
                words(20)
            ),
            3 => {
                let item = format!("<li>{}<ul><li>{}</li></ul></li>\n", words(8), words(5));
                format!("<ul>\n{}</ul>\n", item.repeat(4))
            }
            4 => {
                let row = format!("<tr><td>{}</td><td>{i}</td><td><b>{}</b></td></tr>\n", words(3), words(2));
                // Every other table has no headings, as on many pages.
                let head = "<thead><tr><th>Stone</th><th>Number</th><th>Cut</th></tr></thead>";
                let head = if i / 7 % 2 == 0 { head } else { "" };
                format!("<table>{head}<tbody>\n{}</tbody></table>\n", row.repeat(8))
            }
            5 => format!("<pre><code class=\"language-py\">def f(x):\n    return '{}' &lt; x\n</code></pre>\n", words(4)),
            _ => format!(
                "<div class=\"box\"><figure><img src=\"/picture/{i}.png\" alt=\"{}\"><figcaption>{}</figcaption></figure></div>\n",
                words(3),
                words(6)
            ),
        });
    }
    out.push_str("</main><footer><p>The end.</p></footer></body></html>");
    out
}
