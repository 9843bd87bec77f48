//! Pictures for a model and contact sheets, beside the plain way with the same decoders: everything decoded at full
//! size, resized as RGB, encoded. Quality comes first: each result is held against the exact Lanczos picture.

use crate::measure::{self, Pair, process_cpu, ratio};
use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{PixelType, ResizeOptions, Resizer};
use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, SamplingFactor};
use lapidary::service::image::{self, ForModel, Sheet};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;

const QUALITY: u8 = 85;
/// The long side of what a model gets.
const SIDE: usize = 1536;

/// A picture in RGB.
struct Rgb {
    width: usize,
    height: usize,
    bytes: Vec<u8>,
}

/// Slopes, rings, hard edges and a sensor's noise: something of all that makes pictures hard to decode and resize.
fn scene(width: usize, height: usize, seed: u64) -> Rgb {
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut bytes = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            let (across, down) = (x as f32 / width as f32, y as f32 / height as f32);
            let ring = ((across - 0.5).hypot(down - 0.4) * 400.0).sin() * 40.0;
            let tile = if (x / 97 + y / 61) % 7 == 0 { 70.0 } else { 0.0 };
            let line = if (x + 2 * y) % 311 < 3 { -90.0 } else { 0.0 };
            for colour in [90.0 + 100.0 * across + ring, 110.0 + 60.0 * down + tile, 160.0 - 90.0 * across * down] {
                let noise = chance.i32(-6..=6) as f32;
                bytes.push((colour + line + noise).clamp(0.0, 255.0) as u8);
            }
        }
    }
    Rgb { width, height, bytes }
}

fn encoded(picture: &Rgb, quality: u8, orientation: u8) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, quality);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    let tag =
        [b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".as_slice(), &[orientation, 0, 0, 0, 0, 0, 0, 0]].concat();
    encoder.add_exif_metadata(&tag).expect("the tag fits");
    encoder
        .encode(&picture.bytes, picture.width as u16, picture.height as u16, ColorType::Rgb)
        .expect("the picture is encoded");
    out
}

fn png(picture: &Rgb) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, picture.width as u32, picture.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().expect("a head").write_image_data(&picture.bytes).expect("the picture is written");
    out
}

fn webp(picture: &Rgb) -> Vec<u8> {
    let (width, height) = (picture.width as i32, picture.height as i32);
    let mut made: *mut u8 = std::ptr::null_mut();
    // SAFETY: the bytes are as many as width, height and stride say; the result has the length that is returned, and is
    // given back to the library that allocated it.
    unsafe {
        let len = libwebp_sys::WebPEncodeRGB(picture.bytes.as_ptr(), width, height, width * 3, 85.0, &mut made);
        let out = std::slice::from_raw_parts(made, len).to_vec();
        libwebp_sys::WebPFree(made.cast());
        out
    }
}

fn decoded_jpeg(bytes: &[u8]) -> Rgb {
    let mut decoder = JpegDecoder::new(ZCursor::new(bytes));
    let pixels = decoder.decode().expect("a JPEG");
    let info = decoder.info().expect("its size");
    Rgb { width: info.width as usize, height: info.height as usize, bytes: pixels }
}

fn decoded_png(bytes: &[u8]) -> Rgb {
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("its size")];
    let info = reader.next_frame(&mut pixels).expect("a picture");
    Rgb { width: info.width as usize, height: info.height as usize, bytes: pixels }
}

fn decoded_webp(bytes: &[u8]) -> Rgb {
    let mut decoder = image_webp::WebPDecoder::new(std::io::Cursor::new(bytes)).expect("a WebP");
    let (width, height) = decoder.dimensions();
    let mut pixels = vec![0; decoder.output_buffer_size().expect("its size")];
    decoder.read_image(&mut pixels).expect("a picture");
    Rgb { width: width as usize, height: height as usize, bytes: pixels }
}

fn resized(picture: &Rgb, side: usize) -> Rgb {
    let long = picture.width.max(picture.height);
    let fit = |length: usize| (length * side * 2 + long) / (long * 2);
    let (width, height) = (fit(picture.width), fit(picture.height));
    let (w, h) = (picture.width as u32, picture.height as u32);
    let source = ImageRef::new(w, h, &picture.bytes, PixelType::U8x3).expect("the picture has its size");
    let mut target = Image::new(width as u32, height as u32, PixelType::U8x3);
    Resizer::new().resize(&source, &mut target, &ResizeOptions::new()).expect("it is resized");
    Rgb { width, height, bytes: target.into_vec() }
}

/// How close two pictures are, in decibels.
fn psnr(a: &Rgb, b: &Rgb) -> f64 {
    assert_eq!((a.width, a.height), (b.width, b.height));
    let squares: f64 = a.bytes.iter().zip(&b.bytes).map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2)).sum();
    10.0 * (255.0 * 255.0 * a.bytes.len() as f64 / squares).log10()
}

fn cpu(work: impl FnOnce()) -> Duration {
    let start = process_cpu();
    work();
    process_cpu() - start
}

/// One input: its name, the limit of the ratio, the file, and the plain way to decode it.
type Input = (&'static str, f64, Vec<u8>, fn(&[u8]) -> Rgb);

pub fn run() {
    let by = if measure::is_measuring() { 1 } else { 8 };
    let go_on = || Ok(());
    let photo = scene(4000 / by, 3000 / by, 1);
    let inputs: [Input; 3] = [
        ("jpeg", 0.7, encoded(&photo, 92, 1), decoded_jpeg),
        ("png", 1.05, png(&scene(6000 / by, 4000 / by, 2)), decoded_png),
        ("webp", 0.6, webp(&scene(2400 / by, 1700 / by, 3)), decoded_webp),
    ];
    let side = SIDE / by;
    let options = ForModel { max_side: side as u32, quality: QUALITY, ..ForModel::default() };
    for (name, limit, file, decode) in inputs {
        let made = image::for_model(&file, &options, &go_on).expect("a picture");
        let exact = resized(&decode(&file), side);
        let plain = psnr(&decoded_jpeg(&encoded(&exact, QUALITY, 1)), &exact);
        let short = plain - psnr(&decoded_jpeg(&made.bytes), &exact);
        measure::value(&format!("image/{name} lost against the exact picture"), short, "dB", 0.15);
        ratio(
            &Pair { name: &format!("image/{name}"), limit, rounds: 7, of: 1 },
            || measure::timed(|| drop(encoded(&resized(&decode(&file), side), QUALITY, 1))),
            || measure::timed(|| drop(image::for_model(&file, &options, &go_on).expect("a picture"))),
        );
    }
    sheets(&photo, by);
}

fn sheets(photo: &Rgb, by: usize) {
    let files: Vec<Vec<u8>> = [1, 6, 8, 3].map(|orientation| encoded(photo, 90, orientation)).into();
    for (count, limit) in [(9, 0.5), (25, 0.5)] {
        let pictures: Vec<&[u8]> = (0..count).map(|i| files[i % files.len()].as_slice()).collect();
        let cell = SIDE / by / count.isqrt();
        let with = |threads| Sheet {
            cell: cell as u32,
            quality: QUALITY,
            threads: NonZeroUsize::new(threads),
            ..Sheet::default()
        };
        let make = |threads| drop(image::contact_sheet(&pictures, &with(threads), &|| Ok(())).expect("a sheet"));
        ratio(
            &Pair { name: &format!("image/sheet of {count}"), limit, rounds: 3, of: 1 },
            || measure::timed(|| pictures.iter().for_each(|file| drop(resized(&decoded_jpeg(file), cell)))),
            || measure::timed(|| make(1)),
        );
        // Only an idle machine tells: elsewhere the second thread waits for its core.
        let (started, mut spent) = (Instant::now(), Duration::ZERO);
        for _ in 0..measure::rounds(5) {
            spent += cpu(|| make(2));
        }
        let share = started.elapsed().as_secs_f64() / spent.as_secs_f64();
        measure::value(&format!("image/sheet of {count}, two threads, time for each second of CPU"), share, "s", 0.6);
    }
}
