//! What stands beside the text of a result, on the command line: a line each for people, JSON for programs, files on demand.

use crate::base::error::{Result, io};
use crate::base::file;
use crate::service::attachments::{Item, one_line};
use crate::service::gallery::Tile;
use crate::service::journal::Piece;
use crate::service::markers::Part;
use crate::service::picture::{self, Image, View};
use crate::tool::dispatch::Outcome;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// A line for each picture, tile and file.
pub(super) fn lines(outcome: &Outcome) -> Vec<String> {
    let mut out = Vec::new();
    for part in &outcome.parts {
        match part {
            Part::Image(image) => out.push(picture_line(image)),
            Part::Gallery(row) => gallery(&row.title, &row.items, &mut out),
            Part::Files(row) => files(&row.title, &row.items, &mut out),
        }
    }
    out
}

/// As [`lines`], for what the journal kept.
pub(super) fn kept_lines(pieces: &[Piece]) -> Vec<String> {
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Image { id, media_type, width, height, display_only, unseen, bytes, .. } => {
                out.push(picture(&Picture {
                    id: id.as_deref(),
                    media_type,
                    size: (*width, *height),
                    display_only: *display_only,
                    unseen: unseen.as_deref(),
                    bytes: *bytes,
                }));
            }
            Piece::Gallery { title, items } => gallery(title, items, &mut out),
            Piece::Files { title, items } => files(title, items, &mut out),
        }
    }
    out
}

fn gallery(title: &str, items: &[Tile], out: &mut Vec<String>) {
    out.push(format!("gallery {title}").trim_end().to_owned());
    for (at, tile) in items.iter().enumerate() {
        let place = tile.place().unwrap_or("(no picture)");
        let line = format!("  {}. {}  {place}", at + 1, tile.title);
        out.push(line.trim_end().to_owned());
    }
}

fn files(title: &str, items: &[Item], out: &mut Vec<String>) {
    out.push(format!("files {title}").trim_end().to_owned());
    out.extend(items.iter().map(|item| format!("  {}  {}", item.name, item.url)));
}

fn picture_line(image: &Image) -> String {
    picture(&Picture {
        id: image.id.as_deref(),
        media_type: &image.media_type,
        size: (image.width, image.height),
        display_only: image.display_only,
        unseen: match &image.view {
            View::Unseen(why) => Some(why),
            View::Same | View::Copy { .. } => None,
        },
        bytes: image.data.len() as u64,
    })
}

/// What a line says of a picture.
struct Picture<'a> {
    id: Option<&'a str>,
    media_type: &'a str,
    size: (u32, u32),
    display_only: bool,
    unseen: Option<&'a str>,
    bytes: u64,
}

fn picture(picture: &Picture) -> String {
    let handle = picture.id.unwrap_or("(not kept)");
    let (width, height) = picture.size;
    let size = if width > 0 { format!("{width} x {height}, ") } else { String::new() };
    let only = match picture.unseen {
        _ if picture.display_only => ", for you alone".to_owned(),
        Some(why) => format!(", not shown to a model: {}", one_line(why, 200)),
        None => String::new(),
    };
    format!("picture {handle}  {}, {size}{} bytes{only}", picture.media_type, picture.bytes)
}

/// `images`, `files` and, where there are some, `galleries`.
pub(super) fn insert(value: &mut Map<String, Value>, outcome: &Outcome) {
    let (mut images, mut files, mut galleries) = (Vec::new(), Vec::new(), Vec::new());
    for part in &outcome.parts {
        match part {
            Part::Image(image) => {
                let mut one = json!({
                    "id": image.id,
                    "media_type": image.media_type,
                    "width": image.width,
                    "height": image.height,
                    "display_only": image.display_only,
                });
                if let View::Unseen(why) = &image.view {
                    one["unseen"] = why.as_str().into();
                }
                images.push(one);
            }
            Part::Gallery(gallery) => galleries.push(json!(gallery)),
            Part::Files(row) => files
                .extend(row.items.iter().map(|item| json!({ "title": row.title, "name": item.name, "url": item.url }))),
        }
    }
    value.insert("images".into(), images.into());
    value.insert("files".into(), files.into());
    if !galleries.is_empty() {
        value.insert("galleries".into(), galleries.into());
    }
}

/// Writes the pictures of a result into a folder, each under its id, and gives their paths.
///
/// # Errors
/// What the file system says.
pub(super) fn save(outcome: &Outcome, folder: &Path) -> Result<Vec<PathBuf>> {
    let images = outcome.parts.iter().filter_map(|part| match part {
        Part::Image(image) => Some(image),
        Part::Gallery(_) | Part::Files(_) => None,
    });
    let mut saved = Vec::new();
    for image in images {
        std::fs::create_dir_all(folder)
            .map_err(|e| io(format_args!("cannot make the folder `{}`", folder.display()), &e))?;
        let path = folder.join(file_name(image)?);
        file::write_atomic(&path, &image.data)?;
        saved.push(path);
    }
    Ok(saved)
}

/// The id with the ending that fits what the file is: an id says no more than whether it is a PNG.
fn file_name(image: &Image) -> Result<String> {
    let id = match image.id.as_deref().and_then(picture::id_of) {
        Some(id) => id.to_owned(),
        None => picture::new_id(&image.media_type)?,
    };
    let stem = id.split('.').next().unwrap_or(&id);
    let ending = match image.media_type.as_str() {
        "image/jpeg" => "jpg",
        "image/x-icon" => "ico",
        "image/tiff" => "tif",
        other => other.strip_prefix("image/").unwrap_or("bin"),
    };
    Ok(format!("{stem}.{ending}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_picture_is_named_by_its_id_and_what_it_is() {
        let mut image = Image::of(vec![1], "image/webp");
        image.id = Some("img:0123456789ab.jpg".into());
        assert_eq!(file_name(&image).unwrap(), "0123456789ab.webp");
        for (media_type, ending) in
            [("image/jpeg", ".jpg"), ("image/png", ".png"), ("image/gif", ".gif"), ("x", ".bin")]
        {
            let name = file_name(&Image::of(vec![1], media_type)).unwrap();
            assert!(name.ends_with(ending) && name.len() == 12 + ending.len(), "{name}");
        }
    }
}
