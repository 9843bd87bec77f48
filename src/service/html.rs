//! Pages as Markdown, text, links and elements: what `html::` does, over `htmd` and `scraper`.
//! It fetches nothing. Every page is made tidy before it is parsed: deep or huge ones end in an error, never in a crash.

mod article;
mod rewrite;
mod table;
mod tag;
mod tidy;

use crate::base::error::{Error, Kind, Result, excerpt};
use htmd::HtmlToMarkdown;
use scraper::{ElementRef, Html, Node, Selector};
use tidy::Purpose;
use url::Url;

pub use article::{Article, article};

/// The largest page, in bytes.
pub const MAX: usize = 8 << 20;
/// The deepest page. The parser's work grows with the depth for every tag, and the Markdown converter recurses.
pub const MAX_DEPTH: usize = tidy::MAX_DEPTH;
/// Longest CSS selector, in bytes.
pub const MAX_SELECTOR: usize = 1_000;
/// Most elements that one selection gives.
pub const MAX_ELEMENTS: usize = 10_000;

/// Parts of a page that are not for reading.
const SKIPPED: [&str; 8] = ["script", "style", "noscript", "template", "iframe", "svg", "head", "object"];

/// A link of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where it leads; absolute where a base was given.
    pub href: String,
    /// Its text.
    pub text: String,
}

/// An element that a selector found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// Tag name in lower case.
    pub tag: String,
    /// Its text, white space folded.
    pub text: String,
    /// Its HTML, with the element itself.
    pub html: String,
    /// Attributes in document order.
    pub attributes: Vec<(String, String)>,
}

/// A page as Markdown: headings, lists, links, tables and code are kept, scripts and styles are not.
///
/// # Errors
/// `too_large` past [`MAX`] bytes or [`MAX_DEPTH`] elements deep.
pub fn to_markdown(html: &str) -> Result<String> {
    let page = tidied(html, Purpose::Markdown)?;
    let converter = table::handled(HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec())).build();
    let markdown =
        converter.convert(&page).map_err(|e| Error::internal(format!("the page cannot be converted: {e}")))?;
    Ok(table::without_marks(&markdown).trim().to_owned())
}

/// As [`to_markdown`], with links and pictures made absolute by `base`, the page's own address, and without those that cannot
/// be followed.
///
/// # Errors
/// As [`to_markdown`]; `invalid_arguments` for a base that is no URL.
pub fn to_markdown_from(html: &str, base: &str) -> Result<String> {
    let base = parsed_base(Some(base))?;
    let page = Html::parse_document(&tidied(html, Purpose::Page)?);
    let base = base.map(|given| page_base(&page, &given).unwrap_or(given));
    to_markdown(&rewrite::written(&[*page.root_element()], base.as_ref(), |_| rewrite::Keep::All))
}

/// The text that a reader would see, one line for each block.
///
/// # Errors
/// `too_large` past [`MAX`].
pub fn text(html: &str) -> Result<String> {
    Ok(readable(Html::parse_document(&tidied(html, Purpose::Page)?).root_element()))
}

/// Every link with a target, in order. With `base`, targets are made absolute and what is no URL is left out.
///
/// # Errors
/// `too_large` past [`MAX`], `invalid_arguments` for a base that is no URL.
pub fn links(html: &str, base: Option<&str>) -> Result<Vec<Link>> {
    let page = tidied(html, Purpose::Page)?;
    let base = parsed_base(base)?;
    let page = Html::parse_document(&page);
    // A page may say itself what its links are relative to.
    let base = base.map(|b| page_base(&page, &b).unwrap_or(b));
    let anchors = selector("a[href]")?;
    Ok(page
        .select(&anchors)
        .take(MAX_ELEMENTS)
        .filter_map(|a| {
            let href = a.attr("href")?.trim();
            let href = match &base {
                Some(base) => base.join(href).ok()?.to_string(),
                None => href.to_owned(),
            };
            Some(Link { href, text: folded(a) })
        })
        .collect())
}

/// The elements that a CSS selector finds, in order, at most [`MAX_ELEMENTS`].
///
/// # Errors
/// `too_large` past [`MAX`], `invalid_arguments` for a selector that is none; those of `go_on`, which is asked again and again.
pub fn select(html: &str, css: &str, go_on: &dyn Fn() -> Result<()>) -> Result<Vec<Element>> {
    let page = tidied(html, Purpose::Page)?;
    let wanted = selector(css)?;
    let page = Html::parse_document(&page);
    let mut bytes = 0;
    let mut out = Vec::new();
    let found: Box<dyn Iterator<Item = Result<ElementRef>>> = if css.contains('~') {
        // Each element may ask all that stand before it: with many of them that is the square, so it can be ended in between.
        let elements = page.tree.nodes().filter(|node| node.parent().is_some()).filter_map(ElementRef::wrap);
        Box::new(elements.filter_map(|element| match go_on() {
            Ok(()) => wanted.matches(&element).then_some(Ok(element)),
            Err(e) => Some(Err(e)),
        }))
    } else {
        Box::new(page.select(&wanted).map(Ok))
    };
    for element in found.take(MAX_ELEMENTS) {
        let element = element?;
        go_on()?;
        let found = Element {
            tag: element.value().name().to_owned(),
            text: folded(element),
            html: element.html(),
            attributes: element.value().attrs().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        };
        // Nested matches repeat their insides: `*` on a deep page would be quadratic.
        bytes += found.html.len() + found.text.len();
        if bytes > 4 * MAX {
            return Err(Error::new(Kind::TooLarge, "the selection is too large").hint("select something narrower"));
        }
        out.push(found);
    }
    Ok(out)
}

fn tidied(html: &str, purpose: Purpose) -> Result<String> {
    if html.len() > MAX {
        return Err(Error::new(Kind::TooLarge, format!("the page has {} bytes; at most {MAX} are taken", html.len())));
    }
    tidy::tidy(html, purpose)
}

fn selector(css: &str) -> Result<Selector> {
    if css.len() > MAX_SELECTOR {
        return Err(Error::invalid(format!("the selector is longer than {MAX_SELECTOR} bytes")));
    }
    Selector::parse(css).map_err(|_| {
        let shown = excerpt(css, 60);
        Error::invalid(format!("`{shown}` is no CSS selector")).hint("for example \"table.prices td\"")
    })
}

fn parsed_base(base: Option<&str>) -> Result<Option<Url>> {
    let read = |base| {
        Url::parse(base).map_err(|_| Error::invalid("the base is no URL").hint("for example https://example.org/page"))
    };
    base.map(read).transpose()
}

fn page_base(page: &Html, given: &Url) -> Option<Url> {
    let base = selector("base[href]").ok()?;
    given.join(page.select(&base).next()?.attr("href")?).ok()
}

fn folded(element: ElementRef) -> String {
    readable(element).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text without the parts that are not for reading; blocks begin new lines. Walks without recursion.
fn readable(root: ElementRef) -> String {
    use ego_tree::iter::Edge;
    let mut out = String::new();
    let (mut skipping, mut verbatim) = (0_usize, 0_usize);
    for edge in root.traverse() {
        match edge {
            Edge::Open(node) => match node.value() {
                Node::Element(e) if SKIPPED.contains(&e.name()) => skipping += 1,
                Node::Element(e) if is_block(e.name()) => {
                    newline(&mut out);
                    verbatim += usize::from(e.name() == "pre");
                }
                // The lines of code are lines.
                Node::Text(text) if skipping == 0 && verbatim > 0 => out.push_str(text),
                Node::Text(text) if skipping == 0 => push_folded(&mut out, text),
                _ => {}
            },
            Edge::Close(node) => match node.value() {
                Node::Element(e) if SKIPPED.contains(&e.name()) => skipping -= 1,
                Node::Element(e) if is_block(e.name()) => {
                    newline(&mut out);
                    verbatim -= usize::from(e.name() == "pre");
                }
                _ => {}
            },
        }
    }
    out.trim().to_owned()
}

fn newline(out: &mut String) {
    while out.ends_with(' ') {
        out.pop();
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
}

fn push_folded(out: &mut String, text: &str) {
    for c in text.chars() {
        if c.is_whitespace() {
            if !out.is_empty() && !out.ends_with([' ', '\n']) {
                out.push(' ');
            }
        } else {
            out.push(c);
        }
    }
}

fn is_block(tag: &str) -> bool {
    matches!(
        tag,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "br"
            | "dd"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hr"
            | "li"
            | "main"
            | "nav"
            | "ol"
            | "p"
            | "pre"
            | "section"
            | "table"
            | "tbody"
            | "td"
            | "th"
            | "thead"
            | "tr"
            | "ul"
            | "title"
            | "summary"
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn on() -> Result<()> {
        Ok(())
    }

    const PAGE: &str = r#"<html><head><title>T</title><style>p { color: red }</style></head><body>
<h1>Prices</h1><script>alert(1)</script><p>See <a href="/list?x=1">the <b>list</b></a> and <a href="https://b.example/">b</a>.</p>
<ul><li>one</li><li>two</li></ul><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<pre><code>let x = 1;</code></pre></body></html>"#;

    #[test]
    fn markdown_keeps_what_a_reader_needs() {
        let markdown = to_markdown(PAGE).unwrap();
        for wanted in ["# Prices", "[the **list**](/list?x=1)", "one", "two", "| a", "let x = 1;"] {
            assert!(markdown.contains(wanted), "{wanted}:\n{markdown}");
        }
        assert!(!markdown.contains("alert") && !markdown.contains("color"), "{markdown}");
    }

    #[test]
    fn text_is_one_line_a_block() {
        let text = text(PAGE).unwrap();
        assert!(text.starts_with("Prices\nSee the list and b.\none\ntwo\n"), "{text}");
        assert_eq!(super::text("<p>a</p><pre>if x:\n    b\n</pre><p>c").unwrap(), "a\nif x:\n    b\nc");
        assert!(!text.contains("alert"));
    }

    #[test]
    fn links_are_absolute_where_a_base_is_given() {
        let plain = links(PAGE, None).unwrap();
        assert_eq!(plain[0], Link { href: "/list?x=1".into(), text: "the list".into() });
        let absolute = links(PAGE, Some("https://a.example/dir/page")).unwrap();
        assert_eq!(absolute[0].href, "https://a.example/list?x=1");
        let based = links("<base href=\"/other/\"><a href=\"x\">x</a>", Some("https://a.example/dir/")).unwrap();
        assert_eq!(based[0].href, "https://a.example/other/x");
        assert!(links(PAGE, Some("not a url")).is_err());
    }

    #[test]
    fn a_selector_finds_elements_with_their_attributes() {
        let found = select(PAGE, "a[href^=https]", &on).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].attributes, [("href".to_owned(), "https://b.example/".to_owned())]);
        assert_eq!((found[0].tag.as_str(), found[0].text.as_str()), ("a", "b"));
        assert!(select(PAGE, "a[[", &on).is_err());
    }

    #[test]
    fn a_selector_that_looks_at_all_siblings_finds_the_same_and_can_be_ended() {
        let page = "<h1>a</h1><p>b</p><i>c</i><p>d</p>";
        let found = |css| select(page, css, &on).unwrap().into_iter().map(|e| e.text).collect::<Vec<_>>();
        assert_eq!(found("h1 ~ p"), ["b", "d"]);
        assert_eq!(found("p ~ p, i"), ["c", "d"]);
        let asked = Cell::new(0);
        let few = || {
            asked.set(asked.get() + 1);
            if asked.get() > 9 { Err(Error::new(Kind::Cancelled, "enough")) } else { Ok(()) }
        };
        let long = "<p>x</p>".repeat(1_000);
        assert_eq!(select(&long, "i ~ p", &few).unwrap_err().kind(), Kind::Cancelled);
        asked.set(0);
        assert_eq!(select(&long, "p", &few).unwrap_err().kind(), Kind::Cancelled);
    }

    #[test]
    fn a_cell_is_as_wide_as_it_is_and_no_wider_than_its_column() {
        let page =
            format!("<table><tr><th>{}</th></tr>{}</table>", "x".repeat(100_000), "<tr><td>y</td></tr>".repeat(2_000));
        let markdown = to_markdown(&page).unwrap();
        assert!(markdown.len() < 200_000, "{}", markdown.len());
    }

    #[test]
    fn deep_and_huge_pages_are_refused_before_they_are_parsed() {
        let deep = |open: &str| open.repeat(20_000);
        for bomb in [
            "<div>",
            "<b>",
            "<foo>",
            "<foo/>",
            "<svg><div><foo/>",
            "<a-b>",
            "<DIV x='>'>",
            "<div></x>",
            "<div><object></div>",
        ] {
            let page = deep(bomb);
            assert_eq!(to_markdown(&page).unwrap_err().kind(), Kind::TooLarge, "{bomb}");
            assert_eq!(text(&page).unwrap_err().kind(), Kind::TooLarge, "{bomb}");
        }
        assert_eq!(text(&"x".repeat(MAX + 1)).unwrap_err().kind(), Kind::TooLarge);
        // Depth that is none: left-out end tags, text that looks like tags, drawings.
        let fine = [
            "<p>a<li>b".repeat(2_000),
            format!("<script>{}</script>", "if (a<b) {}".repeat(2_000)),
            format!("<!--{}-->x", "<div>".repeat(2_000)),
            format!("<svg>{}</svg>", "<path d='x'/>".repeat(2_000)),
            "<br>".repeat(2_000),
            format!("{}x{}", "<div>".repeat(500), "</div>".repeat(500)),
        ];
        for page in fine {
            assert!(text(&page).is_ok(), "{}", &page[..40]);
        }
        // Markdown recurses: as deep as is allowed must fit a call thread.
        let page = format!("{}x{}", "<div>".repeat(500), "</div>".repeat(500));
        let done = std::thread::Builder::new().stack_size(16 << 20).spawn(move || to_markdown(&page).unwrap()).unwrap();
        assert_eq!(done.join().unwrap(), "x");
    }
}
