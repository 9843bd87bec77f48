//! Parts of a parsed page as HTML again, with what a reader needs and nothing else: no scripts, few attributes, and addresses
//! that hold wherever the text goes. What stays is said by whoever asks.

use super::SKIPPED;
use super::table;
use ego_tree::NodeRef;
use ego_tree::iter::Edge;
use scraper::{ElementRef, Node};
use url::Url;

/// What becomes of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// It stays.
    All,
    /// It goes, with everything inside.
    Nothing,
}

/// Attributes that stay, beside addresses.
const ATTRIBUTES: [&str; 4] = ["alt", "start", "lang", "datetime"];
/// Where pages that load pictures late keep their addresses.
const LATE: [&str; 4] = ["data-src", "data-original", "data-lazy-src", "data-url"];
/// Have no content.
const VOID: [&str; 6] = ["br", "hr", "img", "wbr", "col", "source"];

/// These nodes as HTML. With `base`, links and pictures are made absolute; links without words, and addresses that lead nowhere
/// from there, such as scripts and places on the same page, are left out.
pub(super) fn written(
    parts: &[NodeRef<'_, Node>],
    base: Option<&Url>,
    mut keep: impl FnMut(ElementRef) -> Keep,
) -> String {
    let mut out = String::new();
    for part in parts {
        // Elements that are open and left out.
        let mut left_out = 0_usize;
        for edge in part.traverse() {
            match edge {
                Edge::Open(node) => match node.value() {
                    Node::Text(text) if left_out == 0 => escaped(text, &mut out),
                    Node::Element(_) => {
                        let Some(element) = ElementRef::wrap(node) else { continue };
                        let stays = left_out == 0
                            && !SKIPPED.contains(&element.value().name())
                            && !is_empty_picture(element, base)
                            && !is_empty_link(element)
                            && keep(element) == Keep::All;
                        if stays {
                            opened(element, base, &mut out);
                        } else {
                            left_out += 1;
                        }
                    }
                    _ => {}
                },
                Edge::Close(node) => {
                    let Node::Element(element) = node.value() else { continue };
                    if left_out > 0 {
                        left_out -= 1;
                    } else if !VOID.contains(&element.name()) {
                        out.push_str("</");
                        out.push_str(element.name());
                        out.push('>');
                    }
                }
            }
        }
    }
    out
}

fn opened(element: ElementRef, base: Option<&Url>, out: &mut String) {
    let value = element.value();
    let name = value.name();
    out.push('<');
    out.push_str(name);
    let mut put = |key: &str, text: &str| {
        out.push(' ');
        out.push_str(key);
        out.push_str("=\"");
        escaped_in_quotes(text, out);
        out.push('"');
    };
    for key in ATTRIBUTES {
        if let Some(text) = value.attr(key) {
            put(key, text);
        }
    }
    for (key, text) in value.attrs().filter(|(key, _)| table::is_telling(name, key)) {
        put(key, text);
    }
    // The language of a piece of code stands in its class.
    if matches!(name, "code" | "pre")
        && let Some(class) = value.attr("class")
    {
        put("class", class);
    }
    if name == "a"
        && let Some(href) = value.attr("href").and_then(|href| address(href, base, false))
        && !is_same_page(&href, base)
    {
        put("href", &href);
    }
    if name == "img"
        && let Some(src) = picture(element, base)
    {
        put("src", &src);
    }
    out.push('>');
}

/// Whether a link has nothing that says where it leads, or only the sign by which headings are linked to.
fn is_empty_link(element: ElementRef) -> bool {
    if element.value().name() != "a" {
        return false;
    }
    let mut signs = element.text().flat_map(str::chars).filter(|c| !c.is_whitespace());
    let first = signs.next();
    let bare =
        first.is_none() || (signs.next().is_none() && matches!(first, Some('¶' | '§' | '#' | '🔗' | '\u{f0c1}')));
    let pictures = || element.descendants().filter_map(ElementRef::wrap).any(|inside| inside.value().name() == "img");
    bare && !pictures()
}

fn is_same_page(href: &str, base: Option<&Url>) -> bool {
    let (Some(base), Some((page, _))) = (base, href.split_once('#')) else { return false };
    base.as_str().split('#').next() == Some(page)
}

/// Whether a picture has nothing to show: no address, or it only counts who looks.
fn is_empty_picture(element: ElementRef, base: Option<&Url>) -> bool {
    let value = element.value();
    if value.name() != "img" {
        return false;
    }
    let tiny = |key: &str| value.attr(key).and_then(|n| n.trim().parse::<u32>().ok()).is_some_and(|n| n <= 2);
    tiny("width") || tiny("height") || picture(element, base).is_none()
}

fn picture(element: ElementRef, base: Option<&Url>) -> Option<String> {
    let value = element.value();
    let of_set = || value.attr("srcset").or_else(|| value.attr("data-srcset"))?.split_whitespace().next();
    let late = LATE.iter().find_map(|key| value.attr(key));
    [late, value.attr("src"), of_set()].into_iter().flatten().find_map(|src| address(src, base, true))
}

/// An address that can be followed, absolute where there is a base.
fn address(text: &str, base: Option<&Url>, picture: bool) -> Option<String> {
    let text = text.trim();
    let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase()).unwrap_or_default();
    if text.is_empty() || matches!(scheme.as_str(), "javascript" | "data" | "blob" | "vbscript" | "about") {
        return None;
    }
    let Some(base) = base else { return Some(text.to_owned()) };
    let url = base.join(text).ok()?;
    (!picture || matches!(url.scheme(), "http" | "https")).then(|| url.into())
}

fn escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
}

fn escaped_in_quotes(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '<' => out.push_str("&lt;"),
            other => out.push(other),
        }
    }
}
