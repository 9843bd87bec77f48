//! What stands beside the text of a result, as the protocol says it: pictures with who they are for, links to files.

use super::resource::SCHEME;
use crate::service::gallery::Gallery;
use crate::service::markers::Part;
use crate::service::picture::Image;
use crate::service::proxy;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{Annotations, ContentBlock, ImageContent, Resource, Role, TextContent};
use std::fmt::Write as _;

/// The content blocks of parts, in their order. The model's blocks have no audience, the person's alone have it.
pub(super) fn content(parts: &[Part]) -> Vec<ContentBlock> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            Part::Image(image) => out.extend(picture(image)),
            Part::Gallery(gallery) => {
                out.push(ContentBlock::Text(TextContent::new(listed(gallery)).with_annotations(for_person())));
            }
            Part::Files(files) => out.extend(files.items.iter().map(|item| {
                // The path is this host's own: a client that has the host's HTTP address puts it before.
                let mut link = Resource::new(format!("{SCHEME}{}", item.url), item.name.clone());
                link.title = (!files.title.is_empty()).then(|| files.title.clone());
                link.mime_type = media_type(&item.name).map(str::to_owned);
                link.annotations = Some(for_person());
                ContentBlock::ResourceLink(link)
            })),
        }
    }
    out
}

/// One copy of a picture: what the model can read, or what is for the person alone.
fn picture(image: &Image) -> Option<ContentBlock> {
    if let Some((media_type, data)) = image.for_model() {
        return Some(ContentBlock::image(STANDARD.encode(data), media_type));
    }
    let is_there = !image.data.is_empty();
    is_there.then(|| {
        let content = ImageContent::new(STANDARD.encode(&*image.data), image.media_type.clone());
        ContentBlock::Image(content.with_annotations(for_person()))
    })
}

/// A gallery in words: the protocol has no tiles.
fn listed(gallery: &Gallery) -> String {
    let mut text = gallery.title.clone();
    for (at, tile) in gallery.items.iter().enumerate() {
        let _ = write!(text, "\n{}. ", at + 1);
        // A path of this host says nothing to a person; what it stands for does.
        let place = tile.place().map_or_else(|| "(no picture)".to_owned(), address);
        let words = [tile.title.as_str(), tile.page.as_deref().unwrap_or_default(), &place];
        let _ = write!(text, "{}", words.into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" - "));
    }
    text.trim_start().to_owned()
}

/// Where a tile's picture is, for who has no page of this host: a handle as it is, an address of the web, a resource.
fn address(place: &str) -> String {
    match proxy::address_of(place) {
        Some(address) => address,
        None if place.starts_with('/') => format!("{SCHEME}{place}"),
        None => place.to_owned(),
    }
}

fn for_person() -> Annotations {
    let mut annotations = Annotations::default();
    annotations.audience = Some(vec![Role::User]);
    annotations
}

/// The media type of a file that a person may want to play, by its name.
fn media_type(name: &str) -> Option<&'static str> {
    let (_, ending) = name.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "ogg" | "oga" => "audio/ogg",
        "m4a" => "audio/mp4",
        "flac" => "audio/flac",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "txt" => "text/plain",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::service::attachments::{Files, Item};
    use crate::service::gallery::Tile;
    use crate::service::picture::{Pixels, View};
    use serde_json::{Value, json};

    fn sent(parts: &[Part]) -> Value {
        serde_json::to_value(content(parts)).unwrap()
    }

    #[test]
    fn row_30_a_picture_goes_once_and_says_who_it_is_for() {
        let image = Image::of(b"abc".to_vec(), "image/png");
        let small = View::Copy { data: Pixels::new(b"s".to_vec()), media_type: "image/jpeg" };
        let user = json!({ "audience": ["user"] });
        let rows = [
            (image.clone(), json!({ "type": "image", "data": "YWJj", "mimeType": "image/png" })),
            (
                Image { view: small, ..image.clone() },
                json!({ "type": "image", "data": "cw==", "mimeType": "image/jpeg" }),
            ),
            (
                Image { display_only: true, ..image.clone() },
                json!({ "type": "image", "data": "YWJj", "mimeType": "image/png", "annotations": user }),
            ),
            (
                Image { view: View::Unseen("x".into()), ..image.clone() },
                json!({ "type": "image", "data": "YWJj", "mimeType": "image/png", "annotations": user }),
            ),
        ];
        for (image, expected) in rows {
            assert_eq!(sent(&[Part::Image(image)]), json!([expected]));
        }
        assert_eq!(sent(&[Part::Image(image.without_data())]), json!([]));
    }

    #[test]
    fn files_are_links_and_galleries_are_lists_for_the_person() {
        let item = Item { url: "/api/plugin/songs/a.mp3".into(), name: "a.mp3".into() };
        let files = Part::Files(Files { title: "Songs".into(), items: vec![item] });
        let tile = Tile { title: "one".into(), page: Some("https://example.org/".into()), ..Tile::default() };
        let at = |place: &str| Some(place.to_owned());
        let tiles = vec![
            tile.clone(),
            Tile { handle: at("img:0123456789ab.png"), ..tile },
            Tile { thumb: at("/api/proxy?u=https%3A%2F%2Fexample.org%2Fa.png&s=x"), ..Tile::default() },
            Tile { full: at("/api/plugin/songs/a.png"), title: "two".into(), ..Tile::default() },
            Tile::default(),
        ];
        let gallery = Part::Gallery(Gallery { title: "Cats".into(), items: tiles });
        let made = sent(&[files, gallery]);
        assert_eq!(made[0]["uri"], "lapidary:/api/plugin/songs/a.mp3");
        assert_eq!((&made[0]["type"], &made[0]["mimeType"]), (&json!("resource_link"), &json!("audio/mpeg")));
        let lines = [
            "Cats",
            "1. one - https://example.org/ - (no picture)",
            "2. one - https://example.org/ - img:0123456789ab.png",
            "3. https://example.org/a.png",
            "4. two - lapidary:/api/plugin/songs/a.png",
            "5. (no picture)",
        ];
        assert_eq!(made[1]["text"], lines.join("\n"));
        for block in [&made[0], &made[1]] {
            assert_eq!(block["annotations"]["audience"], json!(["user"]));
        }
    }
}
