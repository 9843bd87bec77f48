//! Pictures as tools need them: what they are, a small upright JPEG for a model, many on one numbered sheet.
//! Owns decoding hostile bytes within limits; it knows nothing of scripts, chats, stores or the network.

mod colour;
mod decode;
mod encode;
mod exif;
mod jpeg;
mod lossy;
mod raster;
mod resize;
mod sheet;
mod sniff;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use crate::base::error::{Error, Kind, Result};
use raster::Chroma;
pub use sniff::{Format, probe};
use std::num::NonZeroUsize;

/// What a long job asks now and then: an error (a deadline, a stop) ends it. Must be cheap; called from several threads.
pub type Check<'a> = &'a (dyn Fn() -> Result<()> + Sync);

/// How large a picture may be before it is refused, without being decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file.
    pub max_bytes: usize,
    /// Pixels, width by height; also those of a contact sheet.
    pub max_pixels: u64,
    /// Pixels of the longer side.
    pub max_side: u32,
    /// Bytes that decoding one picture may take, as reckoned from its head.
    pub max_memory: u64,
}

impl Default for Limits {
    /// 64 MiB, 64 megapixels, 32768 a side, 512 MiB.
    fn default() -> Self {
        Limits { max_bytes: 64 << 20, max_pixels: 64_000_000, max_side: 32_768, max_memory: 512 << 20 }
    }
}

/// What the head of a picture says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// The kind, by content.
    pub format: Format,
    /// Pixels across when seen upright.
    pub width: u32,
    /// Pixels down when seen upright.
    pub height: u32,
    /// How the stored picture is turned: 1 to 8 as in EXIF, 1 is upright.
    pub orientation: u8,
    /// Whether there is more than one frame.
    pub animated: bool,
}

/// A JPEG that was made here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jpeg {
    /// The file.
    pub bytes: Vec<u8>,
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
}

/// What a model is shown of a picture: made anew from its pixels, so that nothing else of the file is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCopy {
    /// The file.
    pub bytes: Vec<u8>,
    /// `image/png` or `image/jpeg`.
    pub media_type: &'static str,
}

/// How a picture is made fit for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForModel {
    /// Pixels of the longer side at most; smaller pictures do not grow.
    pub max_side: u32,
    /// Quality of the JPEG, 1 to 100.
    pub quality: u8,
    /// What is taken in.
    pub limits: Limits,
}

impl Default for ForModel {
    /// 1536 pixels, quality 88.
    fn default() -> Self {
        ForModel { max_side: 1536, quality: 88, limits: Limits::default() }
    }
}

impl ForModel {
    /// For a tile in a gallery: 400 pixels, quality 80.
    #[must_use]
    pub fn thumbnail() -> Self {
        ForModel { max_side: 400, quality: 80, limits: Limits::default() }
    }
}

/// How a contact sheet is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sheet {
    /// Pixels of a cell, across and down.
    pub cell: u32,
    /// Quality of the JPEG, 1 to 100.
    pub quality: u8,
    /// Size of the numbers in pixels, close to the corner; `None` is a sixth of the cell and at least 20.
    pub number_height: Option<u32>,
    /// The colour behind the pictures, RGB; `None` is nearly black.
    pub ground: Option<[u8; 3]>,
    /// Threads to decode with; `None` is two, or one where there is one core.
    pub threads: Option<NonZeroUsize>,
    /// What is taken in, each picture by itself; `max_pixels` also holds for the sheet.
    pub limits: Limits,
}

impl Default for Sheet {
    /// Cells of 400 pixels, quality 88.
    fn default() -> Self {
        Sheet { cell: 400, quality: 88, number_height: None, ground: None, threads: None, limits: Limits::default() }
    }
}

/// The media type of a picture by its content, such as `image/png`; `None` where the bytes are no picture.
#[must_use]
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    Format::of(bytes).map(Format::media_type)
}

/// A picture of any format as a JPEG for a model: upright, small enough, transparent parts white, colours in sRGB,
/// of an animation the first frame.
///
/// # Errors
/// `bad_image` where the bytes are no picture or a broken one; `too_large` beyond the limits; what `check` says.
pub fn for_model(bytes: &[u8], options: &ForModel, check: Check) -> Result<Jpeg> {
    let side = options.max_side.clamp(1, encode::MAX_SIDE as u32) as usize;
    let picture = decode::fitted(bytes, side, Chroma::Half, &options.limits, check)?;
    let (width, height) = (picture.width as u32, picture.height as u32);
    let bytes = encode::jpeg(picture, options.quality)?;
    check()?;
    Ok(Jpeg { bytes, width, height })
}

/// As [`for_model`], but a still PNG that is small enough as it is stays a PNG, for edges of drawings and letters on a screen
/// are what a JPEG smears; of more than `most_bytes` it becomes a JPEG all the same.
///
/// # Errors
/// As [`for_model`].
pub fn model_copy(bytes: &[u8], options: &ForModel, most_bytes: usize, check: Check) -> Result<ModelCopy> {
    let side = options.max_side.clamp(1, encode::MAX_SIDE as u32) as usize;
    let Some(picture) = decode::still_png(bytes, side, &options.limits, check)? else {
        let copy = for_model(bytes, options, check)?;
        return Ok(ModelCopy { bytes: copy.bytes, media_type: "image/jpeg" });
    };
    let made = encode::png(&picture)?;
    check()?;
    if made.len() <= most_bytes {
        return Ok(ModelCopy { bytes: made, media_type: "image/png" });
    }
    let made = encode::jpeg(picture.into_ycc(Chroma::Half), options.quality)?;
    check()?;
    Ok(ModelCopy { bytes: made, media_type: "image/jpeg" })
}

/// Many pictures as one JPEG, in square cells numbered from 1, as many columns as lines or one more.
/// One that cannot be decoded or is too large leaves its cell dark red and keeps its number.
///
/// # Errors
/// `too_large` where the sheet itself would be; what `check` says.
pub fn contact_sheet(pictures: &[&[u8]], options: &Sheet, check: Check) -> Result<Jpeg> {
    sheet::make(pictures, options, check)
}

/// An error of kind `bad_image`.
fn broken(message: impl Into<String>) -> Error {
    Error::new(Kind::BadImage, message)
}
