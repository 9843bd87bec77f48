//! Makes the pictures that the tests read: every format and kind, whole, so that tests can break them.
//! Nothing is kept in the repository as a file.

use image_rs::{DynamicImage, ImageFormat, RgbImage, RgbaImage};
use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, SamplingFactor};
use std::io::Cursor;

/// A picture that is different everywhere: slopes of colour, and a bright square near the top left corner.
pub(super) fn scene(width: usize, height: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            let (across, down) = (x * 200 / width, y * 200 / height);
            let square = x * 8 > width && x * 8 < width * 3 && y * 8 > height && y * 8 < height * 3;
            let bright = if square { 55 } else { 0 };
            out.extend([across + bright, down + bright, 200 - across.min(down)].map(|v| v as u8));
        }
    }
    out
}

/// How a JPEG of the tests is written.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) sampling: SamplingFactor,
    pub(super) progressive: bool,
    pub(super) restart: u16,
    pub(super) colours: ColorType,
}

impl Default for Kind {
    fn default() -> Self {
        Kind { sampling: SamplingFactor::F_2_2, progressive: false, restart: 0, colours: ColorType::Rgb }
    }
}

/// A JPEG of these samples, with what is to stand in its EXIF and ICC segments.
pub(super) fn jpeg_with(pixels: &[u8], (w, h): (usize, usize), kind: Kind, exif: &[u8], icc: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, 95);
    encoder.set_sampling_factor(kind.sampling);
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    encoder.set_progressive(kind.progressive);
    encoder.set_restart_interval(kind.restart);
    if !exif.is_empty() {
        encoder.add_exif_metadata(exif).unwrap();
    }
    if !icc.is_empty() {
        encoder.add_icc_profile(icc).unwrap();
    }
    encoder.encode(pixels, w as u16, h as u16, kind.colours).unwrap();
    out
}

/// The ordinary JPEG of a scene.
pub(super) fn jpeg(width: usize, height: usize) -> Vec<u8> {
    jpeg_with(&scene(width, height), (width, height), Kind::default(), &[], &[])
}

/// EXIF that says nothing but how the picture is turned.
pub(super) fn turned(orientation: u8) -> Vec<u8> {
    let mut out = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    out.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    out
}

/// A PNG of these samples: colour type, bits, frames of the same content, and its EXIF.
pub(super) fn png(samples: &[u8], (w, h): (usize, usize), colour: png::ColorType, bits: png::BitDepth) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, w as u32, h as u32);
    encoder.set_color(colour);
    encoder.set_depth(bits);
    encoder.write_header().unwrap().write_image_data(samples).unwrap();
    out
}

/// A PNG of a scene.
pub(super) fn png_scene(width: usize, height: usize) -> Vec<u8> {
    png(&scene(width, height), (width, height), png::ColorType::Rgb, png::BitDepth::Eight)
}

/// An animated PNG whose frames have one grey each.
pub(super) fn apng(size: usize, greys: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, size as u32, size as u32);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_animated(greys.len() as u32, 0).unwrap();
    let mut writer = encoder.write_header().unwrap();
    for &grey in greys {
        writer.write_image_data(&vec![grey; size * size]).unwrap();
    }
    writer.finish().unwrap();
    out
}

/// A PNG chunk.
pub(super) fn chunk(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut out = (body.len() as u32).to_be_bytes().to_vec();
    out.extend_from_slice(kind);
    out.extend_from_slice(body);
    let crc = out[4..].iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    });
    out.extend((!crc).to_be_bytes());
    out
}

/// A PNG made by hand: its head, other chunks, and its lines (filter bytes included) in one block that is stored.
pub(super) fn raw_png(ihdr: &[u8], others: &[u8], lines: &[u8]) -> Vec<u8> {
    let (low, high) = lines.iter().fold((1u32, 0u32), |(a, b), &byte| {
        let a = (a + u32::from(byte)) % 65521;
        (a, (b + a) % 65521)
    });
    let mut data = vec![0x78, 0x01, 0x01];
    data.extend((lines.len() as u16).to_le_bytes());
    data.extend((!(lines.len() as u16)).to_le_bytes());
    data.extend_from_slice(lines);
    data.extend((high << 16 | low).to_be_bytes());
    let parts = [chunk(b"IHDR", ihdr), others.to_vec(), chunk(b"IDAT", &data), chunk(b"IEND", &[])];
    [&b"\x89PNG\r\n\x1a\n"[..], &parts.concat()].concat()
}

/// The head of a PNG.
pub(super) fn ihdr(width: u32, height: u32, bits: u8, colour: u8, interlace: u8) -> Vec<u8> {
    [&width.to_be_bytes()[..], &height.to_be_bytes(), &[bits, colour, 0, 0, interlace]].concat()
}

/// A scene in one of the rarer formats.
pub(super) fn rare(width: usize, height: usize, format: ImageFormat) -> Vec<u8> {
    let picture = RgbImage::from_raw(width as u32, height as u32, scene(width, height)).unwrap();
    let mut out = Cursor::new(Vec::new());
    let picture = DynamicImage::ImageRgb8(picture);
    // An icon has alpha, always.
    let picture = if format == ImageFormat::Ico { picture.into_rgba8().into() } else { picture };
    picture.write_to(&mut out, format).unwrap();
    out.into_inner()
}

/// A GIF whose frames have one grey each.
pub(super) fn gif(size: u32, greys: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = image_rs::codecs::gif::GifEncoder::new(&mut out);
    for &grey in greys {
        let frame = RgbaImage::from_pixel(size, size, image_rs::Rgba([grey, grey, grey, 255]));
        encoder.encode_frame(image_rs::Frame::new(frame)).unwrap();
    }
    drop(encoder);
    out
}

/// A lossless WebP: of RGB, or of RGBA where there are four samples a pixel.
pub(super) fn webp_lossless(samples: &[u8], (w, h): (usize, usize), exif: &[u8]) -> Vec<u8> {
    let colour = if samples.len() == w * h * 4 { image_webp::ColorType::Rgba8 } else { image_webp::ColorType::Rgb8 };
    let mut out = Vec::new();
    let mut encoder = image_webp::WebPEncoder::new(&mut out);
    if !exif.is_empty() {
        encoder.set_exif_metadata(exif.to_vec());
    }
    encoder.encode(samples, w as u32, h as u32, colour).unwrap();
    out
}

/// A lossy WebP of a scene.
pub(super) fn webp_lossy(width: usize, height: usize) -> Vec<u8> {
    let pixels = scene(width, height);
    let mut made: *mut u8 = std::ptr::null_mut();
    // SAFETY: the pixels are as many as width, height and stride say; what comes back has the length that is returned
    // and is given back to the library that allocated it.
    unsafe {
        let (w, h) = (width as i32, height as i32);
        let len = libwebp_sys::WebPEncodeRGB(pixels.as_ptr(), w, h, w * 3, 95.0, &mut made);
        let out = std::slice::from_raw_parts(made, len).to_vec();
        libwebp_sys::WebPFree(made.cast());
        out
    }
}

/// An animated WebP of one lossless frame after another, put together by hand.
pub(super) fn webp_animated(size: u32, greys: &[u8]) -> Vec<u8> {
    let three = |v: u32| v.to_le_bytes()[..3].to_vec();
    let part = |kind: &[u8; 4], body: Vec<u8>| {
        let mut out = [&kind[..], &(body.len() as u32).to_le_bytes(), &body].concat();
        out.resize(out.len().next_multiple_of(2), 0);
        out
    };
    let mut body = b"WEBP".to_vec();
    body.extend(part(b"VP8X", [vec![2, 0, 0, 0], three(size - 1), three(size - 1)].concat()));
    body.extend(part(b"ANIM", vec![0; 6]));
    for &grey in greys {
        let side = size as usize;
        let still = webp_lossless(&vec![grey; side * side * 3], (side, side), &[]);
        let head = [three(0), three(0), three(size - 1), three(size - 1), three(100), vec![0]].concat();
        body.extend(part(b"ANMF", [head, still[12..].to_vec()].concat()));
    }
    [&b"RIFF"[..], &(body.len() as u32).to_le_bytes(), &body].concat()
}
