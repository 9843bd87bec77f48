//! The part of a page that is there to be read, without its menus, notices and lists of other pages; and what the page says of
//! itself. A judgement by how text is spread over the page, so it can be wrong: then the whole page is given, and it says so.

use super::rewrite::{self, Keep};
use super::{Purpose, SKIPPED, folded, page_base, parsed_base, selector, tidied};
use crate::base::error::Result;
use ego_tree::iter::Edge;
use ego_tree::{NodeId, NodeRef};
use scraper::{ElementRef, Html, Node};
use serde_json::Value;
use std::collections::HashMap;

/// A page, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Article {
    /// Its heading; empty where it has none. So are all that follow.
    pub title: String,
    /// Who wrote it.
    pub byline: String,
    /// When it was published, as the page writes it.
    pub published: String,
    /// The name of the site.
    pub site: String,
    /// What the page says it is about.
    pub description: String,
    /// The language, such as `en`.
    pub language: String,
    /// The HTML of what is there to be read, without scripts, styles and most attributes.
    pub html: String,
    /// Whether that is the whole page, because no part of it stands out.
    pub whole: bool,
}

/// Least text of a part that stands out, in characters.
const LEAST: usize = 200;
/// Least share of the page's text that a part has which the page itself marks as its text, and one that only looks like it.
const SHARE: f64 = 0.3;
const UNMARKED_SHARE: f64 = 0.7;
/// A list of so many links that is nearly nothing else is no part of a text, unless it has this share of it.
const LINKS: usize = 10;
const LINKS_SHARE: f64 = 0.3;
/// Largest description of itself in JSON that is looked at, in bytes.
const MAX_JSON: usize = 256 << 10;

/// Elements that are never part of the text.
const NEVER: [&str; 10] =
    ["nav", "aside", "footer", "dialog", "button", "input", "select", "textarea", "canvas", "menu"];
/// Roles of the same kind.
const ROLES: [&str; 9] =
    ["navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog", "menu", "menubar"];
/// Words in classes and ids of what surrounds a text.
const AROUND: [&str; 40] = [
    "ad",
    "ads",
    "advert",
    "advertisement",
    "banner",
    "breadcrumb",
    "breadcrumbs",
    "comment",
    "comments",
    "consent",
    "cookie",
    "cookies",
    "disqus",
    "editsection",
    "footer",
    "masthead",
    "menu",
    "modal",
    "nav",
    "navbar",
    "navigation",
    "newsletter",
    "noprint",
    "outbrain",
    "pager",
    "pagination",
    "paywall",
    "popup",
    "promo",
    "recommended",
    "related",
    "share",
    "sharing",
    "sidebar",
    "signup",
    "skip",
    "social",
    "sponsored",
    "subscribe",
    "taboola",
];
/// Words in classes and ids of texts.
const TEXT: [&str; 10] = ["article", "body", "content", "entry", "main", "post", "story", "text", "prose", "markdown"];

/// What is known of one element.
#[derive(Default)]
struct Seen {
    parent: usize,
    /// Characters of text, and how many of them are links.
    text: usize,
    linked: usize,
    links: usize,
    commas: usize,
    score: f64,
    noise: bool,
}

struct Survey<'p> {
    nodes: Vec<ElementRef<'p>>,
    seen: Vec<Seen>,
    index: HashMap<NodeId, usize>,
}

/// Finds what is there to be read. With `base`, the page's own address, links and pictures are made absolute.
///
/// # Errors
/// `too_large` as for every page; `invalid_arguments` for a base that is no URL; those of `go_on`.
pub fn article(html: &str, base: Option<&str>, go_on: &dyn Fn() -> Result<()>) -> Result<Article> {
    let base = parsed_base(base)?;
    let page = Html::parse_document(&tidied(html, Purpose::Page)?);
    go_on()?;
    let base = base.map(|given| page_base(&page, &given).unwrap_or(given));
    let mut found = described(&page)?;
    let mut survey = Survey::of(&page);
    survey.find_noise();
    survey.score();
    go_on()?;
    let (parts, whole) = survey.choose();
    if !whole {
        survey.find_lists(&parts);
    }
    let noise = |id: NodeId| survey.index.get(&id).is_some_and(|at| survey.seen[*at].noise);
    let headings = parts.iter().flat_map(|part| part.descendants()).filter_map(ElementRef::wrap);
    let heading =
        headings.filter(|element| element.value().name() == "h1" && !noise(element.id())).map(heading_of).next();
    if let Some(heading) = heading
        .filter(|heading| !heading.is_empty() && (found.head.is_empty() || found.head.contains(heading.as_str())))
    {
        found.article.title = heading;
    }
    let mut found = found.article;
    let title = found.title.clone();
    let mut repeated = false;
    let keep = |element: ElementRef| {
        // The heading stands in the title already.
        if !repeated
            && matches!(element.value().name(), "h1" | "h2")
            && !title.is_empty()
            && heading_of(element) == title
        {
            repeated = true;
            return Keep::Nothing;
        }
        if noise(element.id()) { Keep::Nothing } else { Keep::All }
    };
    found.html = rewrite::written(&parts, base.as_ref(), keep);
    found.whole = whole;
    Ok(found)
}

impl<'p> Survey<'p> {
    fn of(page: &'p Html) -> Survey<'p> {
        let mut survey = Survey { nodes: Vec::new(), seen: Vec::new(), index: HashMap::new() };
        let mut open: Vec<usize> = Vec::new();
        // Elements of links, and of what is not for reading, that are open.
        let (mut links, mut skipped) = (0_usize, 0_usize);
        for edge in page.root_element().traverse() {
            match edge {
                Edge::Open(node) => match node.value() {
                    Node::Text(text) if skipped == 0 => {
                        if let Some(at) = open.last() {
                            let count = spread(text);
                            let seen = &mut survey.seen[*at];
                            seen.text += count;
                            seen.linked += if links > 0 { count } else { 0 };
                            seen.commas += text.chars().filter(|c| matches!(c, ',' | '，' | '、' | '،')).count();
                        }
                    }
                    _ => {
                        let Some(element) = ElementRef::wrap(node) else { continue };
                        links += usize::from(element.value().name() == "a");
                        skipped += usize::from(SKIPPED.contains(&element.value().name()));
                        let at = survey.nodes.len();
                        survey.index.insert(element.id(), at);
                        survey.nodes.push(element);
                        survey.seen.push(Seen { parent: open.last().copied().unwrap_or(0), ..Seen::default() });
                        open.push(at);
                    }
                },
                Edge::Close(node) => {
                    let Some(element) = ElementRef::wrap(node) else { continue };
                    links -= usize::from(element.value().name() == "a");
                    skipped -= usize::from(SKIPPED.contains(&element.value().name()));
                    let Some(at) = open.pop() else { continue };
                    survey.give_to_parent(at);
                }
            }
        }
        survey
    }

    fn give_to_parent(&mut self, at: usize) {
        let Seen { parent, text, linked, links, commas, .. } = self.seen[at];
        if parent != at {
            self.seen[parent].text += text;
            self.seen[parent].linked += linked;
            self.seen[parent].links += links + usize::from(self.name(at) == "a");
            self.seen[parent].commas += commas;
        }
    }

    fn name(&self, at: usize) -> &'p str {
        self.nodes[at].value().name()
    }

    fn parents(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(at), |at| (*at != 0).then(|| self.seen[*at].parent)).skip(1)
    }

    /// Marks what surrounds the text, and takes its text out of what holds it.
    fn find_noise(&mut self) {
        let all = self.seen.first().map_or(0, |seen| seen.text);
        for at in 1..self.nodes.len() {
            if self.seen[self.seen[at].parent].noise {
                self.seen[at].noise = true;
                continue;
            }
            let inside = |names: &[&str]| self.parents(at).any(|parent| names.contains(&self.name(parent)));
            let element = self.nodes[at].value();
            let never = match element.name() {
                "header" => !inside(&["article", "main"]),
                name => NEVER.contains(&name) || SKIPPED.contains(&name),
            };
            let role = element.attr("role").is_some_and(|role| ROLES.contains(&role));
            // A word in a class may be about what is inside, so what holds much of the page is believed to be text.
            let small = self.seen[at].text * 3 < all;
            if never && (small || SKIPPED.contains(&element.name()))
                || hidden(self.nodes[at])
                || (small && (role || around(self.nodes[at])))
            {
                self.seen[at].noise = true;
                let Seen { text, linked, commas, .. } = self.seen[at];
                let parents: Vec<usize> = self.parents(at).collect();
                for parent in parents {
                    let seen = &mut self.seen[parent];
                    seen.text = seen.text.saturating_sub(text);
                    seen.linked = seen.linked.saturating_sub(linked);
                    seen.commas = seen.commas.saturating_sub(commas);
                }
            }
        }
    }

    /// Marks lists of links inside the text that was chosen.
    fn find_lists(&mut self, parts: &[NodeRef<'p, Node>]) {
        let chosen: Vec<usize> = parts.iter().filter_map(|part| self.index.get(&part.id()).copied()).collect();
        let all: usize = chosen.iter().map(|at| self.seen[*at].text).sum();
        for at in 1..self.nodes.len() {
            let seen = &self.seen[at];
            if self.seen[seen.parent].noise {
                self.seen[at].noise = true;
                continue;
            }
            let list = matches!(self.name(at), "ul" | "ol" | "dl" | "table" | "div" | "section");
            let small = (seen.text as f64) < LINKS_SHARE * all as f64;
            if list && small && seen.links >= LINKS && self.plain(at) < 0.2 && !chosen.contains(&at) {
                self.seen[at].noise = true;
            }
        }
    }

    fn plain(&self, at: usize) -> f64 {
        let seen = &self.seen[at];
        1.0 - seen.linked as f64 / seen.text.max(1) as f64
    }

    /// Gives points to what holds paragraphs.
    fn score(&mut self) {
        for at in 1..self.nodes.len() {
            if self.seen[at].noise || self.seen[at].text < 25 {
                continue;
            }
            let paragraph = match self.name(at) {
                "p" | "pre" => true,
                // One that holds paragraphs is none itself.
                "blockquote" | "td" | "dd" | "li" => !holds_blocks(self.nodes[at]),
                "div" | "section" | "span" => own_text(self.nodes[at]) >= 25,
                _ => false,
            };
            if !paragraph {
                continue;
            }
            let seen = &self.seen[at];
            let points = (1.0 + seen.commas.min(20) as f64 + (seen.text as f64 / 100.0).min(3.0)) * self.plain(at);
            let parents: Vec<usize> = self.parents(at).take(4).collect();
            for (level, parent) in parents.into_iter().enumerate() {
                let part = [1.0, 0.5, 0.2, 0.1][level];
                self.seen[parent].score += points * part;
            }
        }
    }

    /// The parts that are there to be read, and whether that is the whole page.
    fn choose(&self) -> (Vec<NodeRef<'p, Node>>, bool) {
        let body = self.nodes.iter().position(|node| node.value().name() == "body").unwrap_or(0);
        // Words that are no links: of those a list of other pages has few.
        let words = |at: usize| self.seen.get(at).map_or(0, |seen| seen.text.saturating_sub(seen.linked));
        let all = words(body) as f64;
        let named: [&dyn Fn(usize) -> bool; 3] = [
            &|at| self.nodes[at].value().attr("itemprop") == Some("articleBody"),
            &|at| self.name(at) == "article" && !self.parents(at).any(|parent| self.name(parent) == "article"),
            &|at| self.name(at) == "main" || self.nodes[at].value().attr("role") == Some("main"),
        ];
        for is in named {
            let mut found = (1..self.nodes.len()).filter(|at| is(*at) && !self.seen[*at].noise);
            if let (Some(at), None) = (found.next(), found.next())
                && self.seen[at].text >= LEAST
                && words(at) as f64 >= SHARE * all
            {
                return (vec![*self.nodes[at]], false);
            }
        }
        let worth =
            |at: usize| self.seen[at].score * self.plain(at) * if has(self.nodes[at], &TEXT) { 1.25 } else { 1.0 };
        let best = (1..self.nodes.len())
            .filter(|at| !self.seen[*at].noise && !matches!(self.name(*at), "html" | "body"))
            .max_by(|a, b| worth(*a).total_cmp(&worth(*b)));
        if let Some(best) = best.filter(|best| worth(*best) > 0.0) {
            let parent = self.seen[best].parent;
            let limit = (worth(best) * 0.2).max(10.0);
            let beside = |at: usize| {
                at == best
                    || worth(at) >= limit
                    || (matches!(
                        self.name(at),
                        "p" | "pre" | "table" | "ul" | "ol" | "blockquote" | "h1" | "h2" | "h3"
                    ) && self.plain(at) > 0.6)
            };
            let siblings = (1..self.nodes.len()).filter(|at| self.seen[*at].parent == parent && !self.seen[*at].noise);
            let parts: Vec<usize> = siblings.filter(|at| beside(*at)).collect();
            let enough = |words: usize| words >= LEAST && words as f64 >= UNMARKED_SHARE * all;
            if enough(parts.iter().map(|at| words(*at)).sum()) {
                return (parts.into_iter().map(|at| *self.nodes[at]).collect(), false);
            }
            // Sections that lie beside each other deeper down: what holds them all.
            let holder = self.parents(best).take_while(|at| *at != body && *at != 0).find(|at| enough(words(*at)));
            if let Some(at) = holder {
                return (vec![*self.nodes[at]], false);
            }
        }
        (self.nodes.get(body).map(|node| **node).into_iter().collect(), true)
    }
}

/// Characters of a text that are not white space.
fn spread(text: &str) -> usize {
    text.chars().filter(|c| !c.is_whitespace()).count()
}

/// The text that stands in an element itself.
fn own_text(element: ElementRef) -> usize {
    element.children().filter_map(|child| child.value().as_text().map(|text| spread(text))).sum()
}

fn holds_blocks(element: ElementRef) -> bool {
    let blocks = ["p", "div", "section", "article", "table", "ul", "ol", "h1", "h2", "h3", "pre"];
    element.children().filter_map(ElementRef::wrap).any(|child| blocks.contains(&child.value().name()))
}

fn hidden(element: ElementRef) -> bool {
    let value = element.value();
    let style = value.attr("style").unwrap_or_default().to_ascii_lowercase().replace(' ', "");
    value.attr("hidden").is_some()
        || value.attr("aria-hidden") == Some("true")
        || style.contains("display:none")
        || style.contains("visibility:hidden")
}

fn around(element: ElementRef) -> bool {
    !matches!(element.value().name(), "html" | "body" | "article" | "main" | "a" | "p" | "pre" | "code" | "h1")
        && has(element, &AROUND)
        && !has(element, &TEXT)
}

/// Whether one of these words is in the classes or the id.
fn has(element: ElementRef, words: &[&str]) -> bool {
    let value = element.value();
    [value.attr("class"), value.attr("id")].into_iter().flatten().any(|names| {
        names
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| words.iter().any(|known| word.eq_ignore_ascii_case(known)))
    })
}

/// What the page says of itself.
struct Described {
    article: Article,
    /// The title of the window.
    head: String,
}

fn described(page: &Html) -> Result<Described> {
    let metas = selector("meta[content]")?;
    let mut meta: HashMap<String, String> = HashMap::new();
    for element in page.select(&metas) {
        let name = ["property", "name", "itemprop"].iter().find_map(|key| element.attr(key));
        if let (Some(name), Some(content)) = (name, element.attr("content")) {
            let content = one_line(content, 500);
            if !content.is_empty() {
                meta.entry(name.to_ascii_lowercase()).or_insert(content);
            }
        }
    }
    let graph = stated(page)?;
    let say = |keys: &[&str]| keys.iter().find_map(|key| meta.get(*key)).cloned();
    let first = |css: &str| -> Result<Option<ElementRef>> { Ok(page.select(&selector(css)?).next()) };
    let text = |css: &str, most: usize| -> Result<Option<String>> {
        let found = first(css)?.map(|element| one_line(&folded(element), 2 * most));
        Ok(found.filter(|text| !text.is_empty() && text.chars().count() <= most))
    };
    let site = say(&["og:site_name", "application-name"]).unwrap_or_default();
    let heading = first("h1")?.map(heading_of).filter(|heading| !heading.is_empty());
    let head = first("title")?.map(|title| one_line(&title.text().collect::<String>(), 300)).unwrap_or_default();
    let title = match (&heading, say(&["og:title", "twitter:title"])) {
        // The heading of the page, where the rest of it agrees.
        (Some(heading), _) if head.is_empty() || head.contains(heading.as_str()) => heading.clone(),
        (_, Some(said)) => said,
        (_, None) if !head.is_empty() => without_site(&head, &site),
        _ => heading.clone().unwrap_or_default(),
    };
    let is_name = |name: &String| !name.contains("://") && name.chars().count() <= 120;
    let byline = say(&["author", "article:author", "dc.creator", "parsely-author"])
        .filter(is_name)
        .or_else(|| graph.author.clone().filter(is_name))
        .map_or_else(|| text("[rel~=author], [itemprop~=author], .byline, .author", 100), |name| Ok(Some(name)))?
        .unwrap_or_default();
    let byline = byline.strip_prefix("By ").or_else(|| byline.strip_prefix("by ")).unwrap_or(&byline).to_owned();
    let published = say(&["article:published_time", "datepublished", "date", "dc.date", "parsely-pub-date"])
        .or(graph.published)
        .map_or_else(
            || -> Result<Option<String>> {
                Ok(first("time[datetime]")?.and_then(|time| time.attr("datetime")).map(|at| one_line(at, 40)))
            },
            |at| Ok(Some(at)),
        )?;
    let article = Article {
        title,
        byline,
        published: published.unwrap_or_default(),
        site,
        description: say(&["description", "og:description", "twitter:description"]).unwrap_or_default(),
        language: page.root_element().attr("lang").map(|lang| one_line(lang, 20)).unwrap_or_default(),
        html: String::new(),
        whole: false,
    };
    Ok(Described { article, head })
}

/// The words of a heading, without the sign by which it is linked to.
fn heading_of(element: ElementRef) -> String {
    one_line(folded(element).trim_end_matches(['¶', '§', '#', ' ']), 300)
}

#[derive(Default)]
struct Stated {
    author: Option<String>,
    published: Option<String>,
}

/// What a page states for machines, as JSON inside it.
fn stated(page: &Html) -> Result<Stated> {
    let mut out = Stated::default();
    for script in page.select(&selector("script[type=\"application/ld+json\"]")?).take(10) {
        let text: String = script.text().collect();
        if text.len() > MAX_JSON {
            continue;
        }
        let Ok(value) = serde_json::from_str::<Value>(&text) else { continue };
        let mut open = vec![&value];
        let mut left = 1_000;
        while let Some(value) = open.pop() {
            left -= 1;
            if left == 0 {
                break;
            }
            match value {
                Value::Array(items) => open.extend(items.iter().rev()),
                Value::Object(map) => {
                    open.extend(map.get("@graph"));
                    let names: Vec<&str> = match map.get("author") {
                        Some(Value::Array(authors)) => authors.iter().filter_map(name_of).collect(),
                        Some(one) => name_of(one).into_iter().collect(),
                        None => Vec::new(),
                    };
                    if !names.is_empty() {
                        out.author.get_or_insert_with(|| one_line(&names.join(", "), 120));
                    }
                    if let Some(at) = map.get("datePublished").and_then(Value::as_str) {
                        out.published.get_or_insert_with(|| one_line(at, 40));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(out)
}

fn name_of(author: &Value) -> Option<&str> {
    author.as_str().or_else(|| author.get("name")?.as_str()).map(str::trim).filter(|name| !name.is_empty())
}

fn one_line(text: &str, most: usize) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(most).collect()
}

/// A title without the name of the site behind it.
fn without_site(title: &str, site: &str) -> String {
    for separator in [" | ", " - ", " – ", " — ", " · ", " :: "] {
        if let Some((before, after)) = title.rsplit_once(separator)
            && !before.trim().is_empty()
            && (after.eq_ignore_ascii_case(site) || (site.is_empty() && separator == " | "))
        {
            return before.trim().to_owned();
        }
    }
    title.to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
