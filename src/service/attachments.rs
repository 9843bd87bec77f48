//! Rows of files that a tool gives to the person: which addresses and names may stand in one. It makes values, not markers.

use crate::base::error::{Error, Result, excerpt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most files of one row; what is beyond is left out.
pub const MAX_ITEMS: usize = 12;
/// Most characters of a title or a name.
const MAX_TEXT: usize = 120;

/// A row of files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Files {
    /// What stands above the row; may be empty.
    pub title: String,
    /// At least one.
    pub items: Vec<Item>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FileItem")]
pub struct Item {
    /// The path on this host that serves it: a route of the plugin itself.
    pub url: String,
    /// What the file is called when it is saved.
    pub name: String,
}

impl Item {
    /// The same with its texts as `change` makes them: see [`Part::map_texts`](super::markers::Part::map_texts).
    pub(super) fn map_texts(self, change: &mut impl FnMut(String) -> String) -> Item {
        let Item { url, name } = self;
        Item { url: change(url), name: change(name) }
    }
}

/// A row of files of `plugin`; `None` where there are no items. What is beyond the twelfth is left out before anything is
/// checked. An empty name becomes the last segment of the address.
///
/// # Errors
/// `invalid_arguments` for an address that is not a plain one of the plugin's own routes.
pub fn row(plugin: &str, title: &str, items: &[Item]) -> Result<Option<Files>> {
    let items = items.iter().take(MAX_ITEMS).map(|item| checked(plugin, item)).collect::<Result<Vec<_>>>()?;
    Ok((!items.is_empty()).then(|| Files { title: one_line(title, MAX_TEXT), items }))
}

fn checked(plugin: &str, item: &Item) -> Result<Item> {
    admit(plugin, &item.url)?;
    let kept: String = item.name.chars().filter(|c| !c.is_control() && !matches!(c, '<' | '>' | '"')).collect();
    let mut name: String = kept.trim().chars().take(MAX_TEXT).collect();
    if name.is_empty() {
        let path = item.url.split('?').next().unwrap_or_default();
        name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().chars().take(MAX_TEXT).collect();
    }
    Ok(Item { url: item.url.clone(), name })
}

/// Whether `url` is a route of `plugin`, written so that it cannot mean anything else.
///
/// # Errors
/// `invalid_arguments` saying what such an address looks like.
pub fn admit(plugin: &str, url: &str) -> Result<()> {
    if route_of(url).is_some_and(|owner| owner == plugin) {
        return Ok(());
    }
    let shown = excerpt(url, 80);
    let other = route_of(url).map(|owner| format!(", but of the plugin `{owner}`")).unwrap_or_default();
    Err(Error::invalid(format!("`{shown}` is no route of the plugin `{plugin}`{other}"))
        .hint(format!("serve the file from a route of your own: /api/plugin/{plugin}/<letters, digits and . _ - />")))
}

/// The plugin whose route an address is: `/api/plugin/<name>/<path>`, perhaps with a query; `None` for anything else.
#[must_use]
pub fn route_of(url: &str) -> Option<&str> {
    let word = |text: &str, more: &[u8]| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || more.contains(&b))
    };
    let (path, query) = match url.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (url, None),
    };
    let (plugin, rest) = path.strip_prefix("/api/plugin/")?.split_once('/')?;
    let fits = word(plugin, b"_-")
        && word(rest, b"_./-")
        && query.is_none_or(|query| query.is_empty() || word(query, b"_=&-"))
        && !url.contains("..")
        && !url.contains("//");
    fits.then_some(plugin)
}

/// A text on one line: breaks and other control characters become one space each, the ends are trimmed, `most` characters stay.
#[must_use]
pub fn one_line(text: &str, most: usize) -> String {
    let joined = text.replace("\r\n", " ").replace(char::is_control, " ");
    joined.trim().chars().take(most).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::error::Kind;

    fn item(url: &str, name: &str) -> Item {
        Item { url: url.into(), name: name.into() }
    }

    #[test]
    fn row_32_only_plain_routes_of_the_plugin_itself_are_taken() {
        let good = [
            "/api/plugin/my-songs/a.mp3",
            "/api/plugin/my-songs/song/ab12.mp3",
            "/api/plugin/my-songs/a/b/c_d-e.f?x=1&y=a-b_c",
            "/api/plugin/my-songs/a?",
            "/api/plugin/my-songs/a/",
        ];
        for url in good {
            admit("my-songs", url).unwrap();
        }
        let bad = [
            "",
            "null",
            "http://example.org/a.mp3",
            "https://example.org/api/plugin/my-songs/a.mp3",
            "//example.org/a.mp3",
            "//api/plugin/my-songs/a.mp3",
            "javascript:alert(1)",
            "data:audio/mpeg;base64,AAAA",
            "/api/settings",
            "/api/plugin/my-songs",
            "/api/plugin/my-songs/",
            "/api/plugin/my-songs?x=/a",
            "/api/plugin//a.mp3",
            "/api/plugin/my-songs/../other/a.mp3",
            "/api/plugin/my-songs/a..mp3",
            "/api/plugin/my-songs//a.mp3",
            "/api/plugin/my-songs/a.mp3?x=<",
            "/api/plugin/my-songs/a.mp3?x=..",
            "/api/plugin/my-songs/a.mp3?x=1?y=2",
            "/api/plugin/my-songs/a.mp3?x=/",
            "/api/plugin/my-songs/a%20b.mp3",
            "/api/plugin/my-songs/a b.mp3",
            "/api/plugin/my-songs/ž.mp3",
            "/api/plugin/my-songs/a.mp3#t=1",
            "/api/plugin/my-songs/a.mp3\n",
            "\n/api/plugin/my-songs/a.mp3",
            "/api/plugin/my-songs/a\\b",
            "/api/plugin/my.songs/a.mp3",
            "/API/plugin/my-songs/a.mp3",
            "api/plugin/my-songs/a.mp3",
            "/api/plugin/other/a.mp3",
            "/api/plugin/my-song/a.mp3",
            "/api/plugin/my-songs2/a.mp3",
            "/api/plugin/My-Songs/a.mp3",
        ];
        for url in bad {
            let e = admit("my-songs", url).unwrap_err();
            assert_eq!(e.kind(), Kind::InvalidArguments, "{url:?}");
            assert!(!e.message().contains('\n'));
        }
        assert!(admit("my-songs", "/api/plugin/other/a.mp3").unwrap_err().message().contains("`other`"));
    }

    #[test]
    fn row_32_twelve_files_are_taken_before_anything_is_checked() {
        let mut items: Vec<Item> = (0..12).map(|n| item(&format!("/api/plugin/p/{n}.mp3"), "x")).collect();
        items.push(item("javascript:alert(1)", "bad"));
        assert_eq!(row("p", "t", &items).unwrap().unwrap().items.len(), 12);
        items.swap(11, 12);
        assert!(row("p", "t", &items).is_err());
        assert_eq!(row("p", "t", &[]).unwrap(), None);
    }

    #[test]
    fn names_and_titles_stay_on_their_line_and_hold_nothing_that_a_page_would_read() {
        let long = "n".repeat(130);
        let rows = [
            ("a.mp3", "a.mp3"),
            ("  a b.mp3 ", "a b.mp3"),
            ("<b>\"a\"</b>\r\n.mp3", "ba/b.mp3"),
            ("日本.mp3", "日本.mp3"),
            ("", "song.mp3"),
            (" <> \n", "song.mp3"),
            (long.as_str(), &long[..120]),
        ];
        for (name, expected) in rows {
            let files = row("p", "", &[item("/api/plugin/p/x/song.mp3?v=1", name)]).unwrap().unwrap();
            assert_eq!(files.items[0].name, expected, "{name:?}");
        }
        for (title, expected) in
            [("Copper Light", "Copper Light"), (" a\r\nb\nc ", "a b c"), ("\u{1b}[31m", "[31m"), (&long, &long[..120])]
        {
            let files = row("p", title, &[item("/api/plugin/p/x", "")]).unwrap().unwrap();
            assert_eq!((files.title.as_str(), files.items[0].name.as_str()), (expected, "x"));
        }
    }
}
