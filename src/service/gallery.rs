//! Rows of numbered tiles for the person: which addresses and handles may stand in one. A page loads nothing of other hosts
//! for it: their pictures go through the proxy, and links lead only to the web.

use super::attachments::{one_line, route_of};
use super::picture;
use super::proxy::{MAX_URL, Signer};
use crate::base::error::{Error, Kind, Result, excerpt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// Most tiles of one row.
pub const MAX_TILES: usize = 100;
/// Most characters of a title.
const MAX_TITLE: usize = 200;

/// A row of tiles, numbered from 1 in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gallery {
    /// What stands above the row; may be empty.
    pub title: String,
    /// At least one.
    pub items: Vec<Tile>,
}

/// One tile.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tile {
    /// The handle of a picture of the chat, `img:<id>`, which the tile shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// A path on this host that a click enlarges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full: Option<String>,
    /// What stands below it.
    pub title: String,
    /// The web page that it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// A path on this host that the tile shows where it has no handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thumb: Option<String>,
}

impl Tile {
    /// Where the picture of the tile is: its handle, or a path on this host.
    #[must_use]
    pub fn place(&self) -> Option<&str> {
        self.handle.as_deref().or(self.thumb.as_deref()).or(self.full.as_deref())
    }

    /// The same with its texts as `change` makes them: see [`Part::map_texts`](super::markers::Part::map_texts).
    pub(super) fn map_texts(self, change: &mut impl FnMut(String) -> String) -> Tile {
        let Tile { handle, full, title, page, thumb } = self;
        Tile {
            handle,
            full: full.map(&mut *change),
            title: change(title),
            page: page.map(&mut *change),
            thumb: thumb.map(&mut *change),
        }
    }
}

/// A row of tiles as it may be shown; `None` where there are none.
///
/// # Errors
/// `too_large` beyond [`MAX_TILES`], `invalid_arguments` for a handle that is none, what the file system says of the proxy's key.
pub fn row(plugin: &str, signer: &Signer, title: &str, tiles: Vec<Tile>) -> Result<Option<Gallery>> {
    if tiles.len() > MAX_TILES {
        return Err(Error::new(
            Kind::TooLarge,
            format!("a gallery of {} pictures; at most {MAX_TILES} are shown", tiles.len()),
        )
        .hint("show the best ones"));
    }
    let items = tiles.into_iter().map(|tile| checked(plugin, signer, tile)).collect::<Result<Vec<_>>>()?;
    Ok((!items.is_empty()).then(|| Gallery { title: one_line(title, MAX_TITLE), items }))
}

fn checked(plugin: &str, signer: &Signer, tile: Tile) -> Result<Tile> {
    if let Some(handle) = tile.handle.as_deref().filter(|handle| picture::id_of(handle).is_none()) {
        let shown = excerpt(handle, 60);
        return Err(
            Error::invalid(format!("`{shown}` is no handle of a picture")).hint("images::stash gives one: img:<id>")
        );
    }
    let local = |url: Option<String>| url.map_or(Ok(None), |url| local(plugin, signer, &url));
    Ok(Tile {
        handle: tile.handle,
        full: local(tile.full)?,
        title: one_line(&tile.title, MAX_TITLE),
        page: tile.page.filter(|page| is_web(page)),
        thumb: local(tile.thumb)?,
    })
}

/// The path on this host that shows what is at `url`: a route of the plugin and a signed address as they are, an address of the
/// internet through the proxy. What a page could not load, or not safely, is left out, for search results bring all kinds of
/// things.
fn local(plugin: &str, signer: &Signer, url: &str) -> Result<Option<String>> {
    if route_of(url) == Some(plugin) || signer.is_signed(url) {
        return Ok(Some(url.to_owned()));
    }
    match signer.sign(url) {
        Ok(path) => Ok(Some(path)),
        Err(e) if matches!(e.kind(), Kind::InvalidArguments | Kind::PermissionDenied) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether a link leads to the web and nowhere else.
fn is_web(page: &str) -> bool {
    page.len() <= MAX_URL
        && !page.chars().any(char::is_control)
        && Url::parse(page).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none()
        })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::paths::Paths;

    fn checked_tile(tile: Tile) -> Tile {
        let dir = tempfile::tempdir().unwrap();
        let signer = Signer::new(Paths::at(dir.path()));
        row("mine", &signer, "t", vec![tile]).unwrap().unwrap().items.remove(0)
    }

    #[test]
    fn a_tile_loads_nothing_from_another_host() {
        let dir = tempfile::tempdir().unwrap();
        let signer = Signer::new(Paths::at(dir.path()));
        let signed = signer.sign("https://example.org/a.png").unwrap();
        let rows = [
            ("/api/plugin/mine/a.png", Some("/api/plugin/mine/a.png".to_owned())),
            (signed.as_str(), Some(signed.clone())),
            ("https://example.org/a.png", Some(signed.clone())),
            ("/api/plugin/other/a.png", None),
            ("/api/proxy?u=https%3A%2F%2Fexample.org%2F&s=AAAA", None),
            ("/api/settings", None),
            ("//example.org/a.png", None),
            ("http://localhost:8888/a.png", None),
            ("http://192.168.1.1/a.png", None),
            ("https://nas.local/a.png", None),
            ("javascript:alert(1)", None),
            ("data:image/png;base64,AAAA", None),
            ("file:///etc/passwd", None),
            ("", None),
        ];
        for (url, expected) in rows {
            let tile = Tile { thumb: Some(url.into()), full: Some(url.into()), ..Tile::default() };
            let made = row("mine", &signer, "t", vec![tile]).unwrap().unwrap();
            assert_eq!((&made.items[0].thumb, &made.items[0].full), (&expected, &expected), "{url}");
        }
    }

    #[test]
    fn a_link_leads_to_the_web_only() {
        for (page, stays) in [
            ("https://example.org/a?b#c", true),
            ("http://printer.lan/", true),
            ("javascript:alert(1)", false),
            ("https://user:pass@example.org/", false),
            ("//example.org/", false),
            ("/api/settings", false),
            ("https://example.org/\n", false),
            ("", false),
        ] {
            assert_eq!(
                checked_tile(Tile { page: Some(page.into()), ..Tile::default() }).page.is_some(),
                stays,
                "{page}"
            );
        }
    }

    #[test]
    fn titles_stay_on_one_line_and_handles_are_handles() {
        assert_eq!(checked_tile(Tile { title: " a\nb ".into(), ..Tile::default() }).title, "a b");
        let dir = tempfile::tempdir().unwrap();
        let signer = Signer::new(Paths::at(dir.path()));
        for (handle, kind) in
            [("img:ab.jpg", None), ("ab.jpg", Some(Kind::InvalidArguments)), ("img:../x", Some(Kind::InvalidArguments))]
        {
            let tile = Tile { handle: Some(handle.into()), ..Tile::default() };
            assert_eq!(row("mine", &signer, "t", vec![tile]).err().map(|e| e.kind()), kind, "{handle}");
        }
        assert_eq!(row("mine", &signer, "t", Vec::new()).unwrap(), None);
        let many = vec![Tile::default(); MAX_TILES + 1];
        assert_eq!(row("mine", &signer, "t", many).unwrap_err().kind(), Kind::TooLarge);
    }
}
