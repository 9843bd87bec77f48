//! From the bytes of any format to a small picture, upright, on white, in sRGB: never larger in memory than it must be.
//! Which decoder a format gets, and what is refused before it runs, is decided here.

use super::jpeg::{Header, Process, scan};
use super::raster::{Chroma, Rgb, Ycc};
use super::resize::{self, Lines, Size};
use super::sniff::{Format, WebP, admit, probe};
use super::{Check, Info, Limits, broken, colour, exif};
use crate::base::error::{Error, Kind, Result};
use image_rs::codecs::{bmp::BmpDecoder, gif::GifDecoder, ico::IcoDecoder, tiff::TiffDecoder};
use image_rs::metadata::Orientation;
use image_rs::{DynamicImage, ImageDecoder};
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// A picture that fits into a square, with as many samples of colour as asked for.
///
/// # Errors
/// As [`probe`]; `bad_image` for a file that is cut off or broken; what `check` says, between lines and stages.
pub(super) fn fitted(bytes: &[u8], side: usize, chroma: Chroma, limits: &Limits, check: Check) -> Result<Ycc> {
    let info = probe(bytes, limits)?;
    // A decoder that panics on hostile bytes must not take a worker with it; none keeps state between pictures.
    catch_unwind(AssertUnwindSafe(|| shrunk(bytes, &info, side, chroma, limits, check)))
        .unwrap_or_else(|_| Err(broken("the picture breaks its decoder")))
}

/// The pixels of a still PNG that is no larger than `side` and stands upright, on white and in sRGB; `None` for every other
/// picture.
///
/// # Errors
/// As [`fitted`].
pub(super) fn still_png(bytes: &[u8], side: usize, limits: &Limits, check: Check) -> Result<Option<Rgb>> {
    let info = probe(bytes, limits)?;
    let size = (info.width as usize, info.height as usize);
    let fits = info.format == Format::Png && !info.animated && info.orientation == 1 && size.0.max(size.1) <= side;
    if !fits {
        return Ok(None);
    }
    check()?;
    let decoded = || {
        let (picture, profile) = png(bytes, size, size, limits, check)?;
        Ok(Some(match profile {
            Some(profile) => colour::to_srgb(picture, &profile),
            None => picture,
        }))
    };
    catch_unwind(AssertUnwindSafe(decoded)).unwrap_or_else(|_| Err(broken("the picture breaks its decoder")))
}

/// The size that a picture gets: its long side is `side`, and it never grows.
fn target(width: u32, height: u32, side: usize) -> Size {
    let (width, height) = (width as usize, height as usize);
    let long = width.max(height);
    if long <= side {
        return (width, height);
    }
    let fit = |length: usize| ((length * side * 2 + long) / (long * 2)).max(1);
    (fit(width), fit(height))
}

fn shrunk(bytes: &[u8], info: &Info, side: usize, chroma: Chroma, limits: &Limits, check: Check) -> Result<Ycc> {
    let turned = exif::is_sideways(info.orientation);
    let (width, height) = if turned { (info.height, info.width) } else { (info.width, info.height) };
    let to = target(width, height, side);
    // Halved colour must not change sides on an odd edge.
    let odd = info.orientation != 1 && (to.0 % 2 == 1 || to.1 % 2 == 1);
    let working = if odd { Chroma::Full } else { chroma };
    let size = (width as usize, height as usize);
    check()?;
    let picture = match info.format {
        Format::Jpeg => jpeg(bytes, to, working, limits, check)?,
        Format::Png => in_srgb(png(bytes, size, to, limits, check)?, working),
        Format::WebP => webp(bytes, size, to, working, limits, check)?,
        Format::Gif | Format::Bmp | Format::Tiff | Format::Ico => {
            in_srgb(rare(bytes, info.format, size, to, limits, check)?, working)
        }
        Format::Avif | Format::Heif => return Err(broken("this format cannot be decoded here")),
    };
    check()?;
    Ok(picture.upright(info.orientation).with(chroma))
}

/// A resized picture, and the profile of its colours.
type Profiled = (Rgb, Option<Vec<u8>>);

fn in_srgb((picture, profile): Profiled, chroma: Chroma) -> Ycc {
    match profile {
        Some(profile) => colour::to_srgb(picture, &profile),
        None => picture,
    }
    .into_ycc(chroma)
}

/// Refuses what would take more memory than allowed.
fn afford(bytes: u64, limits: &Limits) -> Result<()> {
    if bytes > limits.max_memory {
        return Err(Error::new(
            Kind::TooLarge,
            format!("decoding the picture takes {} MiB; at most {} are given", bytes >> 20, limits.max_memory >> 20),
        )
        .hint("make it smaller first, or save it as an ordinary JPEG or PNG"));
    }
    Ok(())
}

/// Scans that the largest picture may have; usual are ten.
const MOST_SCANS: u64 = 16;

fn jpeg(bytes: &[u8], to: Size, chroma: Chroma, limits: &Limits, check: Check) -> Result<Ycc> {
    let header = Header::read(bytes)?;
    let odd = || broken("this kind of JPEG is not decoded").hint("save it as an ordinary JPEG");
    if header.precision != 8 || header.process == Process::Rare {
        return Err(odd());
    }
    // Colour that is a little short of its size is not seen to be, and often comes at half the price.
    let (across, down) = chroma.size(to.0, to.1);
    let colour = (across - across / 16, down - down / 16);
    if let Some(planes) = scan::decode(&header, bytes, to, colour, check)? {
        let profile = header.profile.as_deref().filter(|_| planes.len() == 3);
        let working = if profile.is_some() { Chroma::Full } else { chroma };
        let picture = resize::planes(planes, to, working)?;
        return Ok(match profile {
            Some(profile) => colour::to_srgb(picture.into_rgb(), profile).into_ycc(chroma),
            None => picture,
        });
    }
    // What the general decoder would scramble, and nobody makes.
    if header.is_odd() {
        return Err(odd());
    }
    let scans = header.scans_to_end(bytes, header.start()).ok_or_else(|| broken("the JPEG is cut off"))?;
    let pixels = u64::from(header.width) * u64::from(header.height);
    // Each scan goes over the whole picture, even if nothing is in it, and nothing stops the decoder on its way.
    if scans.saturating_mul(pixels) > limits.max_pixels.saturating_mul(MOST_SCANS) {
        return Err(Error::new(Kind::TooLarge, format!("the JPEG has {scans} scans, too many for its size")));
    }
    let samples = if header.components() == 4 { 4 } else { 3 };
    // Several passes keep every coefficient, two bytes each, until the last.
    let passes = if header.process == Process::Progressive { 2 * samples } else { 0 };
    afford(pixels * (3 + passes), limits)?;
    let options = DecoderOptions::default()
        .set_max_width(header.width as usize)
        .set_max_height(header.height as usize)
        .set_strict_mode(false)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    let rgb = decoder.decode().map_err(|e| broken(format!("the JPEG is broken: {e}")))?;
    check()?;
    let from = (header.width as usize, header.height as usize);
    let picture = exact(rgb, from)?;
    let coloured = header.components() == 3;
    let profile = header.profile.filter(|_| coloured);
    Ok(in_srgb((resize::whole(picture, to)?, profile), chroma))
}

/// Three bytes a pixel as a picture, if they are as many as its size says.
fn exact(bytes: Vec<u8>, (width, height): Size) -> Result<Rgb> {
    if bytes.len() != width * height * 3 {
        return Err(broken("the picture is not as large as it says"));
    }
    Ok(Rgb { width, height, bytes })
}

/// Puts a value of this opacity upon white.
#[inline(always)]
fn on_white(value: u8, alpha: u8) -> u8 {
    let sum = u32::from(value) * u32::from(alpha) + 255 * (255 - u32::from(alpha)) + 127;
    (sum / 255) as u8
}

/// Appends pixels of one to four channels of 8 bits as RGB upon white. Doing so before the picture is resized is what
/// keeps the colour that hides in transparent pixels from showing at the edges.
fn flatten(line: &[u8], channels: usize, out: &mut Vec<u8>) {
    match channels {
        1 => out.extend(line.iter().flat_map(|&v| [v, v, v])),
        2 => out.extend(line.chunks_exact(2).flat_map(|p| [on_white(p[0], p[1]); 3])),
        3 => out.extend_from_slice(line),
        _ => out.extend(
            line.chunks_exact(4).flat_map(|p| [on_white(p[0], p[3]), on_white(p[1], p[3]), on_white(p[2], p[3])]),
        ),
    }
}

fn png(bytes: &[u8], size: Size, to: Size, limits: &Limits, check: Check) -> Result<Profiled> {
    let failed = |e: png::DecodingError| broken(format!("the PNG is broken: {e}"));
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_ignore_text_chunk(true);
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(failed)?;
    if (reader.info().width as usize, reader.info().height as usize) != size {
        return Err(broken("the PNG is not as large as it says"));
    }
    let channels = reader.output_color_type().0.samples();
    let profile = reader.info().icc_profile.as_ref().map(|p| p.to_vec()).filter(|_| channels >= 3);
    let mut lines = Lines::new(size, to);
    if reader.info().interlaced {
        let needed = size.0 * size.1 * channels;
        afford(needed as u64 + (to.0 * size.1 * 3) as u64, limits)?;
        let mut whole = vec![0; needed];
        reader.next_frame(&mut whole).map_err(failed)?;
        for line in whole.chunks_exact(size.0 * channels) {
            if lines.line(|out| flatten(line, channels, out))? {
                check()?;
            }
        }
    } else {
        afford((to.0 * size.1 * 3) as u64, limits)?;
        for _ in 0..size.1 {
            let row = reader.next_row().map_err(failed)?.ok_or_else(|| broken("the PNG is cut off"))?;
            if lines.line(|out| flatten(row.data(), channels, out))? {
                check()?;
            }
        }
    }
    Ok((lines.finish()?, profile))
}

fn webp(bytes: &[u8], size: Size, to: Size, chroma: Chroma, limits: &Limits, check: Check) -> Result<Ycc> {
    let parts = WebP::read(bytes).ok_or_else(|| broken("the WebP is broken"))?;
    let profile = parts.profile.map(<[u8]>::to_vec);
    let pixels = (size.0 * size.1) as u64;
    if let Some(frame) = parts.lossy {
        afford(pixels * 3, limits)?;
        let planes = super::lossy::decode(frame, size)?;
        check()?;
        let working = if profile.is_some() { Chroma::Full } else { chroma };
        let mut picture = resize::planes(planes, to, working)?;
        super::lossy::to_full_range(&mut picture);
        return Ok(match profile {
            Some(profile) => colour::to_srgb(picture.into_rgb(), &profile).into_ycc(chroma),
            None => picture,
        });
    }
    afford(pixels * 12, limits)?;
    let failed = |e: image_webp::DecodingError| broken(format!("the WebP is broken: {e}"));
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(bytes)).map_err(failed)?;
    decoder.set_memory_limit(usize::try_from(limits.max_memory).unwrap_or(usize::MAX));
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let (width, height) = decoder.dimensions();
    if (width as usize, height as usize) != size {
        return Err(broken("the WebP is not as large as it says"));
    }
    let mut whole = vec![0; size.0 * size.1 * channels];
    if parts.animated {
        decoder.read_frame(&mut whole).map_err(failed)?;
    } else {
        decoder.read_image(&mut whole).map_err(failed)?;
    }
    check()?;
    Ok(in_srgb((whole_lines(&whole, channels, size, to, check)?, profile), chroma))
}

/// Resizes a picture of any number of channels that lies in memory as a whole.
fn whole_lines(whole: &[u8], channels: usize, size: Size, to: Size, check: Check) -> Result<Rgb> {
    let mut lines = Lines::new(size, to);
    for line in whole.chunks_exact(size.0 * channels) {
        if lines.line(|out| flatten(line, channels, out))? {
            check()?;
        }
    }
    lines.finish()
}

fn unreadable(e: impl std::fmt::Display) -> Error {
    broken(format!("the picture is broken: {e}"))
}

/// The decoder of a format that is rare enough not to need a fast one.
fn rare_decoder<'a>(bytes: &'a [u8], format: Format, limits: &Limits) -> Result<Box<dyn ImageDecoder + 'a>> {
    let input = Cursor::new(bytes);
    let mut decoder: Box<dyn ImageDecoder> = match format {
        Format::Gif => Box::new(GifDecoder::new(input).map_err(unreadable)?),
        Format::Bmp => Box::new(BmpDecoder::new(input).map_err(unreadable)?),
        Format::Tiff => Box::new(TiffDecoder::new(input).map_err(unreadable)?),
        Format::Ico => Box::new(IcoDecoder::new(input).map_err(unreadable)?),
        Format::Jpeg | Format::Png | Format::WebP | Format::Avif | Format::Heif => {
            return Err(Error::internal("this format has a decoder of its own"));
        }
    };
    let (width, height) = decoder.dimensions();
    admit(width, height, limits)?;
    // What it decodes to, and that again in 8 bits.
    afford(decoder.total_bytes().saturating_mul(2), limits)?;
    let mut allowed = image_rs::Limits::default();
    allowed.max_image_width = Some(limits.max_side);
    allowed.max_image_height = Some(limits.max_side);
    allowed.max_alloc = Some(limits.max_memory);
    decoder.set_limits(allowed).map_err(unreadable)?;
    Ok(decoder)
}

/// Width, height and orientation as the head of a rare format gives them.
pub(super) fn rare_head(bytes: &[u8], format: Format, limits: &Limits) -> Result<(u32, u32, u8)> {
    catch_unwind(AssertUnwindSafe(|| {
        let mut decoder = rare_decoder(bytes, format, limits)?;
        let (width, height) = decoder.dimensions();
        let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms).to_exif();
        Ok((width, height, orientation))
    }))
    .unwrap_or_else(|_| Err(broken("the picture breaks its decoder")))
}

fn rare(bytes: &[u8], format: Format, size: Size, to: Size, limits: &Limits, check: Check) -> Result<Profiled> {
    let mut decoder = rare_decoder(bytes, format, limits)?;
    let profile = decoder.icc_profile().ok().flatten();
    let coloured = decoder.color_type().has_color();
    let picture = DynamicImage::from_decoder(decoder).map_err(unreadable)?;
    check()?;
    if (picture.width() as usize, picture.height() as usize) != size {
        return Err(broken("the picture is not as large as it says"));
    }
    let (whole, channels) = if picture.color().has_alpha() {
        (picture.into_rgba8().into_raw(), 4)
    } else {
        (picture.into_rgb8().into_raw(), 3)
    };
    Ok((whole_lines(&whole, channels, size, to, check)?, profile.filter(|_| coloured)))
}
