//! What kind of picture some bytes are and how large it says it is: by content alone, and before anything is decoded.
//! Names and types that came along are never asked. Reading the heads allocates nothing that a file can choose.

use super::{Info, Limits, broken, exif, jpeg};
use crate::base::error::{Error, Kind, Result};

/// The kinds of picture that are told apart. The last two cannot be decoded here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// JPEG.
    Jpeg,
    /// PNG, with or without animation.
    Png,
    /// GIF.
    Gif,
    /// WebP, of either kind.
    WebP,
    /// Windows bitmap.
    Bmp,
    /// TIFF.
    Tiff,
    /// Windows icon.
    Ico,
    /// AVIF.
    Avif,
    /// HEIF, as some phones write it.
    Heif,
}

impl Format {
    /// The media type, such as `image/png`.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Format::Jpeg => "image/jpeg",
            Format::Png => "image/png",
            Format::Gif => "image/gif",
            Format::WebP => "image/webp",
            Format::Bmp => "image/bmp",
            Format::Tiff => "image/tiff",
            Format::Ico => "image/x-icon",
            Format::Avif => "image/avif",
            Format::Heif => "image/heic",
        }
    }

    /// The kind of these bytes, or `None` where they are no picture that is known.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Format> {
        let begins = |with: &[u8]| bytes.starts_with(with);
        if begins(&[0xff, 0xd8, 0xff]) {
            return Some(Format::Jpeg);
        }
        if begins(PNG) {
            return Some(Format::Png);
        }
        if begins(b"GIF87a") || begins(b"GIF89a") {
            return Some(Format::Gif);
        }
        if begins(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            return Some(Format::WebP);
        }
        if begins(b"II*\0") || begins(b"MM\0*") {
            return Some(Format::Tiff);
        }
        if bytes.get(4..8) == Some(b"ftyp") {
            return brand(bytes);
        }
        // Two letters are little to go by: the size of the header must be one that exists.
        if begins(b"BM")
            && little(bytes, 14).is_some_and(|size| matches!(size, 12 | 16 | 40 | 52 | 56 | 64 | 108 | 124))
        {
            return Some(Format::Bmp);
        }
        // An icon begins with four bytes that much else begins with too; its first entry must point behind the list.
        if begins(&[0, 0, 1, 0]) && bytes.get(4..6) != Some(&[0, 0]) && little(bytes, 18).is_some_and(|at| at >= 22) {
            return Some(Format::Ico);
        }
        None
    }
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// AVIF or HEIF by the brands of an ISO file.
fn brand(bytes: &[u8]) -> Option<Format> {
    let size = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
    let brands = bytes.get(8..size.min(bytes.len()).min(256))?;
    let has = |wanted: &[&[u8]]| brands.chunks_exact(4).any(|brand| wanted.contains(&brand));
    if has(&[b"avif", b"avis"]) {
        return Some(Format::Avif);
    }
    has(&[b"heic", b"heix", b"hevc", b"hevx", b"mif1", b"msf1"]).then_some(Format::Heif)
}

/// The 32-bit number at `at`, the low byte first.
fn little(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The 32-bit number at `at`, the high byte first.
fn big(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Refuses what is larger than `limits` allow.
pub(super) fn admit(width: u32, height: u32, limits: &Limits) -> Result<()> {
    let pixels = u64::from(width) * u64::from(height);
    if width == 0 || height == 0 {
        return Err(broken("the picture has no pixels"));
    }
    if pixels > limits.max_pixels || width > limits.max_side || height > limits.max_side {
        return Err(Error::new(
            Kind::TooLarge,
            format!(
                "the picture has {width} x {height} pixels; at most {} megapixels and {} a side are taken",
                limits.max_pixels / 1_000_000,
                limits.max_side
            ),
        )
        .hint("make it smaller first"));
    }
    Ok(())
}

/// What the head of a picture says; sizes are held against `limits`.
///
/// # Errors
/// `bad_image` where the bytes are no picture, one that cannot be decoded here, or its head is broken;
/// `too_large` beyond the limits.
pub fn probe(bytes: &[u8], limits: &Limits) -> Result<Info> {
    let format = Format::of(bytes).ok_or_else(|| {
        let what = if bytes.is_empty() { "no bytes at all" } else { "the bytes are of no known picture format" };
        Error::new(Kind::BadImage, format!("not an image: {what}"))
            .hint("JPEG, PNG, GIF, WebP, BMP, TIFF and ICO can be used")
    })?;
    if bytes.len() > limits.max_bytes {
        return Err(Error::new(
            Kind::TooLarge,
            format!("the picture has {} bytes; at most {} are taken", bytes.len(), limits.max_bytes),
        ));
    }
    let mut info = Info { format, width: 0, height: 0, orientation: 1, animated: false };
    let head_broken = || broken("the head of the picture is broken");
    match format {
        Format::Jpeg => {
            let header = jpeg::Header::read(bytes)?;
            (info.width, info.height, info.orientation) = (header.width, header.height, header.orientation);
        }
        Format::Png => png(bytes, &mut info).ok_or_else(head_broken)?,
        Format::Gif => gif(bytes, &mut info).ok_or_else(head_broken)?,
        Format::WebP => {
            let parts = WebP::read(bytes).ok_or_else(head_broken)?;
            (info.width, info.height, info.animated) = (parts.width, parts.height, parts.animated);
            info.orientation = parts.exif.map_or(1, exif::orientation);
        }
        Format::Bmp | Format::Tiff | Format::Ico => {
            let (width, height, orientation) = super::decode::rare_head(bytes, format, limits)?;
            (info.width, info.height, info.orientation) = (width, height, orientation);
        }
        Format::Avif | Format::Heif => {
            return Err(broken(format!("pictures of the type {} cannot be decoded here", format.media_type()))
                .hint("convert it to JPEG, PNG or WebP"));
        }
    }
    admit(info.width, info.height, limits)?;
    if exif::is_sideways(info.orientation) {
        (info.width, info.height) = (info.height, info.width);
    }
    Ok(info)
}

/// Walks the chunks of a PNG: size, orientation, animation.
fn png(bytes: &[u8], info: &mut Info) -> Option<()> {
    let mut at = PNG.len();
    while let (Some(len), Some(kind)) = (big(bytes, at), bytes.get(at + 4..at + 8)) {
        let body = bytes.get(at + 8..)?;
        let body = &body[..(len as usize).min(body.len())];
        match kind {
            b"IHDR" => (info.width, info.height) = (big(body, 0)?, big(body, 4)?),
            b"acTL" => info.animated = big(body, 0)? > 1,
            b"eXIf" => info.orientation = exif::orientation(body),
            b"IEND" => break,
            _ => {}
        }
        at = at.checked_add(12)?.checked_add(len as usize)?;
    }
    (info.width > 0).then_some(())
}

/// Walks the blocks of a GIF up to its second picture.
fn gif(bytes: &[u8], info: &mut Info) -> Option<()> {
    let screen = bytes.get(6..13)?;
    info.width = u32::from(u16::from_le_bytes([screen[0], screen[1]]));
    info.height = u32::from(u16::from_le_bytes([screen[2], screen[3]]));
    let colours = |flags: u8| if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) };
    let mut at = 13 + colours(screen[4]);
    let mut frames = 0;
    // A broken end is no reason to refuse: the first picture may be whole.
    while let Some(&kind) = bytes.get(at) {
        at += match kind {
            0x21 => 2,
            0x2c => {
                frames += 1;
                match bytes.get(at + 9) {
                    Some(&flags) => 11 + colours(flags),
                    None => break,
                }
            }
            _ => break,
        };
        if frames == 2 {
            break;
        }
        while let Some(&len) = bytes.get(at) {
            at += usize::from(len) + 1;
            if len == 0 {
                break;
            }
        }
    }
    info.animated = frames > 1;
    Some(())
}

/// What a WebP file consists of.
pub(super) struct WebP<'a> {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) animated: bool,
    /// The frame of a still picture in the lossy format without alpha.
    pub(super) lossy: Option<&'a [u8]>,
    pub(super) profile: Option<&'a [u8]>,
    exif: Option<&'a [u8]>,
}

impl<'a> WebP<'a> {
    /// Walks the chunks; `None` where the file is cut off or makes no sense.
    pub(super) fn read(bytes: &'a [u8]) -> Option<WebP<'a>> {
        let size = little(bytes, 4)? as usize;
        let body = bytes.get(12..size.checked_add(8)?)?;
        let mut parts = WebP { width: 0, height: 0, animated: false, lossy: None, profile: None, exif: None };
        let (mut at, mut alpha, mut canvas) = (0, false, false);
        while let (Some(kind), Some(len)) = (body.get(at..at + 4), little(body, at + 4)) {
            let data = body.get(at + 8..(at + 8).checked_add(len as usize)?)?;
            match kind {
                b"VP8X" => {
                    let three = |at: usize| Some(little(&[data.get(at..at + 3)?, &[0]].concat(), 0)? + 1);
                    (parts.width, parts.height, canvas) = (three(4)?, three(7)?, true);
                }
                b"ANIM" | b"ANMF" => parts.animated = true,
                b"ALPH" => alpha = true,
                b"ICCP" => parts.profile = Some(data),
                b"EXIF" => parts.exif = Some(data),
                b"VP8 " => {
                    // A key frame: three bytes of flags, a start code, and two sizes of 14 bits.
                    let head = data.get(..10).filter(|head| head[0] & 1 == 0 && head[3..6] == [0x9d, 0x01, 0x2a])?;
                    let width = u32::from(u16::from_le_bytes([head[6], head[7]]) & 0x3fff);
                    let height = u32::from(u16::from_le_bytes([head[8], head[9]]) & 0x3fff);
                    if !canvas {
                        (parts.width, parts.height) = (width, height);
                    }
                    if (parts.width, parts.height) == (width, height) {
                        parts.lossy = Some(data);
                    }
                }
                b"VP8L" if !canvas => {
                    let head = little(data.strip_prefix(&[0x2f])?, 0)?;
                    (parts.width, parts.height) = ((head & 0x3fff) + 1, (head >> 14 & 0x3fff) + 1);
                }
                _ => {}
            }
            at = (at + 8).checked_add(len as usize)?.checked_add(len as usize & 1)?;
        }
        if alpha || parts.animated {
            parts.lossy = None;
        }
        (parts.width > 0 && parts.height > 0).then_some(parts)
    }
}
