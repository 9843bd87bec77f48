//! `html::`: pages as Markdown, text, links and elements. The reading is `service::html`'s; nothing is fetched here.

use crate::base::error::Result;
use crate::script::control;
use crate::script::module::HostModule;
use crate::service::html::{Article, Element, Link};
use rhai::{Dynamic, Map};

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "html",
        "Pages as Markdown, text, links and elements. A page has at most 8 MiB; scripts and styles in it are left out.",
        || rhai::exported_module!(api),
    )
}

/// Asks the memory budget for the tree of a page: a short tag becomes a large node.
fn room(html: &str) -> Result<()> {
    let tags = html.bytes().filter(|b| *b == b'<').count();
    control::reserve(tags.saturating_mul(256).saturating_add(html.len().saturating_mul(2)))
}

fn link(link: Link) -> Dynamic {
    let mut map = Map::new();
    map.insert("href".into(), link.href.into());
    map.insert("text".into(), link.text.into());
    map.into()
}

fn article(article: Article) -> Map {
    let mut map = Map::new();
    for (key, text) in [
        ("title", article.title),
        ("byline", article.byline),
        ("published", article.published),
        ("site", article.site),
        ("description", article.description),
        ("language", article.language),
        ("html", article.html),
    ] {
        map.insert(key.into(), text.into());
    }
    map.insert("whole".into(), article.whole.into());
    map
}

fn element(element: Element) -> Dynamic {
    let attributes: Map =
        element.attributes.into_iter().map(|(name, value)| (name.as_str().into(), value.into())).collect();
    let mut map = Map::new();
    map.insert("tag".into(), element.tag.into());
    map.insert("text".into(), element.text.into());
    map.insert("html".into(), element.html.into());
    map.insert("attributes".into(), attributes.into());
    map.into()
}

#[rhai::plugin::export_module]
mod api {
    use super::{article as shown, element, link, room};
    use crate::host::argument::{ANY, Options};
    use crate::script::control;
    use crate::script::ctx::{OrRaise, Res};
    use crate::service::{html, text};
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{Array, Map};

    #[rhai_fn(return_raw)]
    pub fn to_markdown(call: NativeCallContext, html: &str) -> Res<String> {
        room(html).and_then(|()| html::to_markdown(html)).or_raise(&call)
    }

    /// A page as Markdown: headings, lists, links, tables and code are kept. A table without headings keeps its rows under an
    /// empty heading, where it holds data; one that is there for the layout becomes its cells, one after the other.
    /// Options: `max_chars` (integer) cuts it after so many characters, with an ellipsis; `base` (the page's own address) makes
    /// links and pictures absolute, and leaves out those that cannot be followed.
    ///
    /// Throws `too_large` for a page over 8 MiB or elements nested deeper than 512; so in all functions here.
    ///
    /// ```rhai
    /// assert_eq(html::to_markdown("<h1>Tea</h1><p>See <a href='/a'>all</a>.</p>"), "# Tea\n\nSee [all](/a).");
    /// assert_eq(html::to_markdown("<p>Hello there</p>", #{max_chars: 6}), "Hello…");
    /// ```
    #[rhai_fn(return_raw, name = "to_markdown")]
    pub fn to_markdown_with(call: NativeCallContext, html: &str, opts: Map) -> Res<String> {
        let options = Options::read(opts, &["max_chars", "base"]).or_raise(&call)?;
        let most = options.count("max_chars", 0..=ANY).or_raise(&call)?;
        let markdown = match options.text("base").or_raise(&call)? {
            // The page is parsed twice.
            Some(base) => room(html).and_then(|()| room(html)).and_then(|()| html::to_markdown_from(html, &base)),
            None => room(html).and_then(|()| html::to_markdown(html)),
        }
        .or_raise(&call)?;
        Ok(if let Some(most) = most { text::truncate(&markdown, most) } else { markdown })
    }

    #[rhai_fn(return_raw)]
    pub fn article(call: NativeCallContext, html: &str) -> Res<Map> {
        article_with(call, html, Map::new())
    }

    /// The part of a page that is there to be read, without menus, notices and lists of other pages. Gives a map: `html`,
    /// `title`, `byline`, `published`, `site`, `description`, `language` (texts, empty where the page does not say), and
    /// `whole`: `true` where no part stands out and `html` is the whole page.
    /// Options: `base` (the page's own address) makes links and pictures absolute.
    ///
    /// Throws `invalid_arguments` for a base that is no address.
    ///
    /// ```rhai
    /// let words = "";
    /// for i in 0..20 { words += "Tea is a drink, and people like it. "; }
    /// let page = `<title>Tea | Shop</title><nav><a href=/>Home</a></nav><article><h1>Tea</h1><p>${words} <a href=/green>Green</a></article>`;
    /// let article = html::article(page, #{base: "https://example.org/tea"});
    /// assert_eq(article.title, "Tea");
    /// assert(!article.whole && !article.html.contains("Home"), "without the menu");
    /// assert(article.html.contains("https://example.org/green"), "with whole addresses");
    /// ```
    #[rhai_fn(return_raw, name = "article")]
    pub fn article_with(call: NativeCallContext, html: &str, opts: Map) -> Res<Map> {
        let options = Options::read(opts, &["base"]).or_raise(&call)?;
        let base = options.text("base").or_raise(&call)?;
        let read =
            room(html).and_then(|()| room(html)).and_then(|()| html::article(html, base.as_deref(), &control::check));
        Ok(shown(read.or_raise(&call)?))
    }

    /// The text that a reader would see, one line for each block.
    ///
    /// ```rhai
    /// assert_eq(html::text("<p>One <b>two</b></p><script>x()</script><p>three</p>"), "One two\nthree");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn text(call: NativeCallContext, html: &str) -> Res<String> {
        room(html).and_then(|()| html::text(html)).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn links(call: NativeCallContext, html: &str) -> Res<Array> {
        let found = room(html).and_then(|()| html::links(html, None)).or_raise(&call)?;
        Ok(found.into_iter().map(link).collect())
    }

    /// Every link with a target, in order: maps with `href` and `text`. With `base`, the page's own address, targets are made
    /// absolute and what is no address is left out.
    ///
    /// Throws `invalid_arguments` for a base that is no address.
    ///
    /// ```rhai
    /// let page = "<a href='/tea'>Tea</a>";
    /// assert_eq(html::links(page), [#{href: "/tea", text: "Tea"}]);
    /// assert_eq(html::links(page, "https://example.org/shop")[0].href, "https://example.org/tea");
    /// ```
    #[rhai_fn(return_raw, name = "links")]
    pub fn links_from(call: NativeCallContext, html: &str, base: &str) -> Res<Array> {
        let found = room(html).and_then(|()| html::links(html, Some(base))).or_raise(&call)?;
        Ok(found.into_iter().map(link).collect())
    }

    /// The elements that a CSS selector finds, in order and at most 10,000: maps with `tag`, `text`, `html` and
    /// `attributes` (a map).
    ///
    /// Throws `invalid_arguments` for a selector that is none.
    ///
    /// ```rhai
    /// let rows = html::select("<ul><li id='a'>Tea</li><li>Milk</li></ul>", "li");
    /// assert_eq(rows.map(|row| row.text), ["Tea", "Milk"]);
    /// assert_eq(rows[0].attributes, #{id: "a"});
    /// ```
    #[rhai_fn(return_raw)]
    pub fn select(call: NativeCallContext, html: &str, css: &str) -> Res<Array> {
        let found = room(html).and_then(|()| html::select(html, css, &control::check)).or_raise(&call)?;
        Ok(found.into_iter().map(element).collect())
    }
}
