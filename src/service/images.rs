//! Pictures of a call: what a source means and whether it may be read, where pictures are kept, and what a model is shown of
//! one. Decoding is `image`'s and what may stand beside a text is `markers`'.

use super::Services;
use super::files::Folder;
use super::image::{self, Check, ForModel, Limits, Sheet};
use super::permissions::Grants;
use super::picture::{self, Image, PREFIX, Pixels, View};
use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result, excerpt};
use crate::base::paths::Paths;
use crate::store::images::{Keep, NewImage};
use crate::store::main::MainDb;
use std::path::Path;
use std::time::Duration;

/// Most pictures beside one text.
pub const MAX_IMAGES: usize = 24;
/// Most bytes of a picture that is fetched or read: 20 MiB.
pub const MAX_BYTES: usize = crate::store::images::MAX_BYTES;
/// How long fetching one may take.
pub const FETCH_TIMEOUT: Duration = Duration::from_secs(15);
/// Pictures that stay in a chat which has no messages to name them: those of the command line, of the HTTP API, and of MCP clients.
const NEWEST: u32 = 300;
/// Most bytes of a PNG that a model is shown; beyond it is shown a JPEG.
const MAX_SHOWN: usize = 3 << 20;
/// Most characters of a label.
const MAX_LABEL: usize = 80;

/// The forms that a source may have.
const FORMS: &str = "a picture is img:<id>, https://.., root:<name>/path, or a path in the plugin's own folder";

/// What a text names as a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source<'a> {
    /// A picture of the chat, by its id.
    Kept(&'a str),
    /// A picture of a library, by its number.
    Library(u64),
    /// An address of the web.
    Web(&'a str),
    /// A file of a folder that the owner granted by name.
    Granted(&'a str, &'a str),
    /// A file by its place on the machine.
    Absolute(&'a str),
    /// A file of the plugin's own folder.
    Own(&'a str),
}

impl Source<'_> {
    /// Reads a source; white space around it does not count.
    ///
    /// # Errors
    /// `invalid_arguments` where it names nothing, `not_found` for a handle that cannot be one.
    pub fn of(text: &str) -> Result<Source<'_>> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Error::invalid("no picture is given").hint(FORMS));
        }
        if text.starts_with(PREFIX) {
            return picture::id_of(text).map(Source::Kept).ok_or_else(|| no_image(text));
        }
        if let Some(number) = text.strip_prefix("doc:") {
            return number.parse().map(Source::Library).map_err(|_| {
                Error::invalid(format!("`{}` is no id of a library", shown(text))).hint("it is doc:<number>")
            });
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(Source::Web(text));
        }
        if let Some(rest) = text.strip_prefix("root:") {
            return match rest.split_once('/') {
                Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok(Source::Granted(name, path)),
                _ => Err(Error::invalid(format!("`{}` names no file", shown(text))).hint("write root:<name>/path")),
            };
        }
        if Path::new(text).is_absolute() || text.starts_with('/') {
            return Ok(Source::Absolute(text));
        }
        Ok(Source::Own(text))
    }
}

/// Whether a chat is a door's own, where calls go that name none: it is made when something is first kept there.
pub(super) fn is_passing(chat: &str) -> bool {
    matches!(chat, "cli" | "http" | "mcp") || chat.starts_with("mcp:")
}

/// A picture that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its bytes.
    pub data: Vec<u8>,
    /// Its media type.
    pub media_type: String,
    /// What to call it: the handle, the file's name, the last part of the address.
    pub label: String,
    /// Where it is from: `chat`, `web` or `file`.
    pub origin: &'static str,
}

/// What a plugin can reach in a call.
pub struct Shelf<'a> {
    /// The host's database.
    pub store: &'a MainDb,
    /// The clock.
    pub clock: &'a Clock,
    /// Where everything lives.
    pub paths: &'a Paths,
    /// The chat of the call.
    pub chat: Option<&'a str>,
    /// Whether that chat is private.
    pub private: bool,
}

impl Services {
    /// The pictures that a call in this chat can reach.
    #[must_use]
    pub fn shelf<'a>(&'a self, chat: Option<&'a str>, private: bool) -> Shelf<'a> {
        Shelf { store: &self.store, clock: &self.clock, paths: &self.paths, chat, private }
    }
}

/// How a picture is kept.
#[derive(Debug, Clone, Default)]
pub struct Stash {
    /// Whether a model may be shown it again by itself.
    pub visible: bool,
    /// What it shows, in words.
    pub caption: Option<String>,
}

impl Shelf<'_> {
    /// Keeps a picture in the call's chat and gives its handle.
    ///
    /// # Errors
    /// `bad_image` for bytes that are no picture, `invalid_arguments` in a call without a chat, `too_large`, `quota`.
    pub fn stash(&self, data: &[u8], stash: &Stash) -> Result<String> {
        let media_type = media_type(data)?;
        let chat = self.chat.ok_or_else(|| {
            Error::invalid("this call belongs to no chat, so there is nowhere to keep a picture")
                .hint("call it in a chat; or return the picture itself with images::result")
        })?;
        let keep = if is_passing(chat) { Keep::Newest(NEWEST) } else { Keep::All };
        let mut last = None;
        // Two of 2^48 ids may be the same one day.
        for _ in 0..3 {
            let id = picture::new_id(media_type)?;
            let image = NewImage {
                chat,
                private: self.private,
                id: &id,
                data,
                media_type,
                visible: stash.visible,
                caption: stash.caption.as_deref(),
                now: self.clock.unix_ms(),
            };
            match self.store.put_image(&image, keep) {
                Ok(()) => return Ok(format!("{PREFIX}{id}")),
                Err(e) if e.kind() == Kind::Conflict && !e.retryable() => last = Some(e),
                Err(e) => return Err(e),
            }
        }
        Err(last.unwrap_or_else(|| Error::internal("no free id for a picture")))
    }

    /// A picture of the call's chat. `reserve` is asked for its size before it is read.
    ///
    /// # Errors
    /// `not_found` for what this chat does not have, also where another one does; what `reserve` says.
    pub fn kept(&self, id: &str, reserve: impl FnOnce(usize) -> Result<()>) -> Result<Found> {
        let handle = || format!("{PREFIX}{id}");
        let chat = self.chat.ok_or_else(|| no_image(&handle()))?;
        let row = self.store.image(chat, id)?.ok_or_else(|| no_image(&handle()))?;
        reserve(usize::try_from(row.size).unwrap_or(usize::MAX))?;
        let data = self.store.image_data(chat, id)?.ok_or_else(|| no_image(&handle()))?;
        let media_type = if row.media_type.is_empty() { media_type(&data)?.to_owned() } else { row.media_type };
        Ok(Found { data, media_type, label: handle(), origin: "chat" })
    }

    /// A picture in a file: of the plugin's own folder, or of one that the owner granted.
    ///
    /// # Errors
    /// `permission_denied` for every other place, with one text whether or not something is there; `bad_image`, `too_large`,
    /// `not_found` for what is missing in a granted folder.
    pub fn file(
        &self,
        source: &Source,
        plugin: &str,
        grants: &Grants,
        reserve: impl FnOnce(usize) -> Result<()>,
    ) -> Result<Found> {
        let (folder, path) = match source {
            Source::Granted(name, path) => (Folder::granted(grants, name, plugin)?, (*path).to_owned()),
            Source::Absolute(path) => self.inside(Path::new(path), plugin, grants)?,
            Source::Own(path) => {
                let folder = Folder::data(self.paths, plugin)?;
                match folder.stat(path) {
                    Ok(Some(_)) => (folder, (*path).to_owned()),
                    Ok(None) if is_path(path) => {
                        let told = format!("there is no picture `{}` in the plugin's own folder", shown(path));
                        return Err(Error::invalid(told).hint(FORMS));
                    }
                    Ok(None) => {
                        return Err(Error::invalid(format!("`{}` names no picture", shown(path))).hint(FORMS));
                    }
                    Err(_) => return Err(outside()),
                }
            }
            Source::Kept(_) | Source::Library(_) | Source::Web(_) => {
                return Err(Error::internal("this source is no file"));
            }
        };
        if let Some(entry) = folder.stat(&path)? {
            reserve(usize::try_from(entry.size).unwrap_or(usize::MAX))?;
        }
        let data = folder.read_blob(&path)?;
        let name = path.rsplit('/').next().unwrap_or(&path);
        let media_type = media_type(&data).map_err(|e| e.context(format!("`{}`", shown(name))))?.to_owned();
        Ok(Found { data, media_type, label: name.chars().take(MAX_LABEL).collect(), origin: "file" })
    }

    /// The folder that a place on the machine is in, and the path from there.
    fn inside(&self, place: &Path, plugin: &str, grants: &Grants) -> Result<(Folder, String)> {
        let real = place.canonicalize().map_err(|_| outside())?;
        let own = (self.paths.files_dir(plugin), Folder::data(self.paths, plugin));
        let granted = grants
            .folder_names()
            .filter_map(|name| Some((grants.folder(name)?.to_path_buf(), Folder::granted(grants, name, plugin))));
        for (base, folder) in std::iter::once(own).chain(granted) {
            let Ok(base) = base.canonicalize() else { continue };
            if let Some(path) = real.strip_prefix(&base).ok().and_then(Path::to_str) {
                return Ok((folder?, path.replace(std::path::MAIN_SEPARATOR, "/")));
            }
        }
        Err(outside())
    }
}

/// Whether a text is meant as a path: it has a folder, or a name with an ending.
fn is_path(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    let ending = name.rsplit_once('.').map_or("", |(stem, ending)| if stem.is_empty() { "" } else { ending });
    text.contains('/') || ((1..=5).contains(&ending.len()) && ending.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// A picture that came from the web: `kind` is the answer's content type, where it has one.
///
/// # Errors
/// `bad_image` naming the content type.
pub fn fetched(url: &str, kind: Option<&str>, data: Vec<u8>) -> Result<Found> {
    // What stands behind the path may be a secret.
    let place = url.split(['?', '#']).next().unwrap_or(url);
    let Ok(media_type) = media_type(&data) else {
        let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim).filter(|kind| !kind.is_empty());
        return Err(Error::new(
            Kind::BadImage,
            format!("what is at {} is not an image but {}", shown(place), shown(kind.unwrap_or("?"))),
        )
        .hint("give the address of the picture itself, not of a page that shows it"));
    };
    let path = place.trim_end_matches('/').splitn(4, '/').nth(3);
    let name = path.and_then(|path| path.rsplit('/').next()).filter(|name| !name.is_empty());
    let label = name.unwrap_or(place).chars().take(MAX_LABEL).collect();
    Ok(Found { data, media_type: media_type.to_owned(), label, origin: "web" })
}

/// The media type of a picture by its bytes; names and headers are never asked.
///
/// # Errors
/// `bad_image` for what is no picture.
pub fn media_type(data: &[u8]) -> Result<&'static str> {
    image::media_type(data).ok_or_else(|| {
        Error::new(Kind::BadImage, "not an image: the bytes are of no known picture format")
            .hint("JPEG, PNG, GIF, WebP, BMP, TIFF and ICO can be used")
    })
}

/// A picture as a result shows it: the file for the person, and for the model a copy that was made of its pixels alone, upright
/// and small enough. What the file holds beside them, such as where it was taken, stays with the person; what cannot be decoded
/// goes to no provider.
///
/// # Errors
/// `bad_image` for what is no picture; what `check` says.
pub fn shown_image(data: Vec<u8>, audience: Audience, check: Check) -> Result<Image> {
    let mut image = Image::of(Vec::new(), media_type(&data)?);
    image.display_only = audience == Audience::Person;
    let info = image::probe(&data, &Limits::default());
    if let Ok(info) = &info {
        (image.width, image.height) = (info.width, info.height);
    }
    if audience == Audience::Both {
        image.view = match info {
            Ok(_) => match image::model_copy(&data, &ForModel::default(), MAX_SHOWN, check) {
                Ok(copy) => View::Copy { data: Pixels::new(copy.bytes), media_type: copy.media_type },
                Err(e) => unseen(e)?,
            },
            Err(e) => unseen(e)?,
        };
    }
    image.data = Pixels::new(data);
    Ok(image)
}

/// Who sees a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The model and the person.
    Both,
    /// Only the person.
    Person,
}

/// A picture that cannot be decoded is no reason to lose the result; a call that is over is.
fn unseen(e: Error) -> Result<View> {
    match e.kind() {
        Kind::BadImage | Kind::TooLarge => Ok(View::Unseen(e.message().to_owned())),
        _ => Err(e),
    }
}

/// A small upright JPEG of a picture: at most `max_px` pixels a side, in `quality` 1 to 100.
///
/// # Errors
/// `bad_image`, `too_large`; what `check` says.
pub fn for_chat(data: &[u8], max_px: u32, quality: u8, check: Check) -> Result<Vec<u8>> {
    let options = ForModel { max_side: max_px, quality, ..ForModel::default() };
    Ok(image::for_model(data, &options, check)?.bytes)
}

/// Pictures as one numbered JPEG, in cells of `cell` pixels.
///
/// # Errors
/// `too_large`; what `check` says.
pub fn contact_sheet(pictures: &[&[u8]], cell: u32, check: Check) -> Result<Vec<u8>> {
    Ok(image::contact_sheet(pictures, &Sheet { cell, ..Sheet::default() }, check)?.bytes)
}

fn no_image(handle: &str) -> Error {
    Error::not_found(format!("there is no picture `{}` in this chat", shown(handle)))
        .hint("a handle is written as the receipt in the text has it: img:<id>")
}

/// One text for every place that a plugin may not read.
fn outside() -> Error {
    Error::denied("this path is outside the plugin's own folder and the folders granted to it").hint(FORMS)
}

fn shown(text: &str) -> String {
    excerpt(text, 120)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
