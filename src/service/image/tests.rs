//! What the picture pipeline promises, on pictures that are made here: formats, sizes, turning, colours, alpha,
//! and every way in which hostile bytes are refused.

mod make;

use super::*;
use image_rs::ImageFormat;
use jpeg_encoder::{ColorType, SamplingFactor};
use make::Kind as Made;
use std::sync::atomic::{AtomicUsize, Ordering};

fn go_on() -> Result<()> {
    Ok(())
}

fn small(side: u32) -> ForModel {
    ForModel { max_side: side, quality: 95, ..ForModel::default() }
}

/// A JPEG's pixels, by the general decoder.
fn pixels(jpeg: &Jpeg) -> Vec<u8> {
    use zune_jpeg::zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions};
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(&jpeg.bytes), options);
    let out = decoder.decode().unwrap();
    assert_eq!(out.len(), (jpeg.width * jpeg.height * 3) as usize);
    out
}

/// The pixel at a place given in percent of the size.
fn at(jpeg: &Jpeg, across: u32, down: u32) -> [u8; 3] {
    let (x, y) = (jpeg.width * across / 100, jpeg.height * down / 100);
    let start = ((y * jpeg.width + x) * 3) as usize;
    pixels(jpeg)[start..start + 3].try_into().unwrap()
}

fn close(a: [u8; 3], b: [u8; 3], by: u8) -> bool {
    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= by)
}

/// How far two pictures are apart: the mean of the differences.
fn distance(a: &[u8], b: &[u8]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| f64::from(a.abs_diff(*b))).sum::<f64>() / a.len() as f64
}

/// A scene at this size as the reference: resized from the pixels themselves.
fn expected(from: (usize, usize), to: (usize, usize)) -> Vec<u8> {
    let scene = raster::Rgb { width: from.0, height: from.1, bytes: make::scene(from.0, from.1) };
    resize::whole(scene, to).unwrap().bytes
}

/// One whole picture of every format and kind that can be decoded, by name.
fn zoo(width: usize, height: usize) -> Vec<(&'static str, Vec<u8>)> {
    let size = (width, height);
    let scene = make::scene(width, height);
    let progressive = Made { progressive: true, ..Made::default() };
    vec![
        ("jpeg", make::jpeg(width, height)),
        ("progressive jpeg", make::jpeg_with(&scene, size, progressive, &[], &[])),
        ("png", make::png_scene(width, height)),
        ("lossy webp", make::webp_lossy(width, height)),
        ("lossless webp", make::webp_lossless(&scene, size, &[])),
        ("bmp", make::rare(width, height, ImageFormat::Bmp)),
        ("tiff", make::rare(width, height, ImageFormat::Tiff)),
        ("gif", make::rare(width, height, ImageFormat::Gif)),
        ("ico", make::rare(width, height, ImageFormat::Ico)),
    ]
}

#[test]
fn a_format_is_known_by_its_content_alone() {
    let media: Vec<_> = zoo(16, 16).into_iter().map(|(_, bytes)| media_type(&bytes).unwrap()).collect();
    let wanted = "jpeg jpeg png webp webp bmp tiff gif x-icon".split(' ').map(|m| format!("image/{m}"));
    assert_eq!(media, wanted.collect::<Vec<_>>());
    for (bytes, media) in [
        (&b"\0\0\0\x18ftypavif\0\0\0\0avifmif1"[..], Some("image/avif")),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", Some("image/heic")),
        (b"\0\0\0\x14ftypisom\0\0\0\0mp42", None),
        (b"<html><body>photo.jpg</body></html>", None),
        (b"BM is how this sentence begins, not a bitmap", None),
        (b"\0\0\x01\0", None),
        (b"RIFF\0\0\0\0WAVEfmt ", None),
        (b"GIF88a", None),
        (b"\xff\xd8", None),
        (b"", None),
    ] {
        assert_eq!(media_type(bytes), media, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn what_is_no_picture_is_said_to_be_none() {
    for junk in [&b"junk"[..], b"", &[0; 4096], b"<svg xmlns='http://www.w3.org/2000/svg'/>"] {
        let e = for_model(junk, &ForModel::default(), &go_on).unwrap_err();
        assert_eq!(e.kind(), Kind::BadImage);
        assert!(e.message().contains("not an image"), "{e}");
    }
    let avif = for_model(b"\0\0\0\x18ftypavif\0\0\0\0avifmif1", &ForModel::default(), &go_on).unwrap_err();
    assert!(avif.message().contains("image/avif") && avif.kind() == Kind::BadImage);
}

#[test]
fn the_long_side_shrinks_to_what_is_asked_and_nothing_grows() {
    for (from, side, to) in [
        ((4000, 1000), 1536, (1536, 384)),
        ((1000, 4000), 1536, (384, 1536)),
        ((100, 50), 1536, (100, 50)),
        ((1536, 2), 1536, (1536, 2)),
        ((1537, 1), 1536, (1536, 1)),
        ((300, 200), 7, (7, 5)),
        ((3, 2), 1, (1, 1)),
        ((1, 1), 1536, (1, 1)),
    ] {
        for bytes in [make::jpeg(from.0, from.1), make::png_scene(from.0, from.1)] {
            let made = for_model(&bytes, &small(side), &go_on).unwrap();
            assert_eq!((made.width, made.height), to, "{from:?} to {side}");
            assert_eq!(media_type(&made.bytes), Some("image/jpeg"));
            assert_eq!(pixels(&made).len(), (to.0 * to.1 * 3) as usize);
        }
    }
}

#[test]
fn every_format_comes_out_as_the_same_picture() {
    for (from, side, to) in [((254, 190), 100, (100, 75)), ((90, 67), 400, (90, 67))] {
        let wanted = expected(from, to);
        for (name, bytes) in zoo(from.0, from.1) {
            let made = for_model(&bytes, &small(side), &go_on).unwrap_or_else(|e| panic!("{name}: {e}"));
            // A GIF has 256 colours.
            let most = if name == "gif" { 6.0 } else { 3.0 };
            let off = distance(&pixels(&made), &wanted);
            assert!(off < most, "{name} of {from:?}: {off}");
        }
    }
}

#[test]
fn a_jpeg_decoded_at_a_smaller_scale_is_the_picture_that_full_decoding_gives() {
    use SamplingFactor as S;
    let samplings = [S::F_1_1, S::F_2_1, S::F_1_2, S::F_2_2, S::F_4_1, S::F_4_2, S::F_1_4, S::F_2_4];
    for (index, sampling) in samplings.into_iter().enumerate() {
        for (restart, progressive) in [(0, false), (1, false), (7, false), (0, true), (7, true)] {
            for (from, side) in [((401, 299), 200), ((401, 299), 97), ((640, 400), 80), ((203, 517), 60)] {
                let kind = Made { sampling, restart, progressive, ..Made::default() };
                let bytes = make::jpeg_with(&make::scene(from.0, from.1), from, kind, &[], &[]);
                // The encoder writes a scan for each component where one samples four times as often as another.
                if index >= 4 && (restart != 0 && !progressive || index > 4) {
                    let e = for_model(&bytes, &small(side), &go_on).unwrap_err();
                    assert!(e.message().contains("this kind of JPEG"), "{e}");
                    continue;
                }
                let made = for_model(&bytes, &small(side), &go_on).unwrap();
                let to = (made.width as usize, made.height as usize);
                let off = distance(&pixels(&made), &expected(from, to));
                assert!(off < 2.5, "sampling {index}, restart {restart}, {progressive}, {from:?} to {side}: {off}");
            }
        }
    }
}

#[test]
fn grey_is_grey_in_every_format_that_knows_it() {
    let ramp: Vec<u8> = (0..200 * 100).map(|i| (i % 200) as u8).collect();
    let wide: Vec<u8> = ramp.iter().flat_map(|&v| [v, 77]).collect();
    let (grey, eight, sixteen) = (png::ColorType::Grayscale, png::BitDepth::Eight, png::BitDepth::Sixteen);
    let kind = Made { colours: ColorType::Luma, ..Made::default() };
    let progressive = Made { progressive: true, ..kind };
    for (name, bytes) in [
        ("jpeg", make::jpeg_with(&ramp, (200, 100), kind, &[], &[])),
        ("progressive jpeg", make::jpeg_with(&ramp, (200, 100), progressive, &[], &[])),
        ("png", make::png(&ramp, (200, 100), grey, eight)),
        ("png of 16 bits", make::png(&wide, (200, 100), grey, sixteen)),
    ] {
        for side in [200, 50] {
            let made = for_model(&bytes, &small(side), &go_on).unwrap();
            for (across, wanted) in [(10, 20), (50, 100), (90, 180)] {
                let pixel = at(&made, across, 50);
                assert!(close(pixel, [wanted; 3], 4), "{name} at {across} % of {side}: {pixel:?}");
            }
        }
    }
}

#[test]
fn palettes_and_sixteen_bits_and_interlacing_are_read_as_they_are_meant() {
    // Two by two pixels: red, green, blue, half transparent black.
    let palette = [
        make::chunk(b"PLTE", &[255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0]),
        make::chunk(b"tRNS", &[255, 255, 255, 128]),
    ];
    let indexed = make::raw_png(&make::ihdr(2, 2, 8, 3, 0), &palette.concat(), &[0, 0, 1, 0, 2, 3]);
    let deep: Vec<u8> = [[255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 255, 255], [0, 0, 0, 128]].concat();
    let deep: Vec<u8> = deep.into_iter().flat_map(|v| [v, v]).collect();
    let deep = make::png(&deep, (2, 2), png::ColorType::Rgba, png::BitDepth::Sixteen);
    // Adam7: the first pass has the first pixel, the sixth the second, the seventh the second line.
    let lines = [[0, 255, 0, 0, 255].as_slice(), &[0, 0, 255, 0, 255], &[0, 0, 0, 255, 255, 0, 0, 0, 128]].concat();
    let interlaced = make::raw_png(&make::ihdr(2, 2, 8, 6, 1), &[], &lines);
    for (name, bytes) in [("palette", indexed), ("16 bits", deep), ("interlaced", interlaced)] {
        let picture = decode::fitted(&bytes, 10, Chroma::Full, &Limits::default(), &go_on).unwrap().into_rgb();
        let wanted = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [127, 127, 127]];
        for (pixel, wanted) in picture.bytes.chunks_exact(3).zip(wanted) {
            assert!(close(pixel.try_into().unwrap(), wanted, 2), "{name}: {pixel:?} for {wanted:?}");
        }
    }
}

#[test]
fn transparent_is_white_and_hidden_colours_do_not_show_at_the_edges() {
    // Left half: opaque grey. Right half: transparent, with bright green hidden in it.
    let line: Vec<u8> = [[90, 90, 90, 255]; 64].into_iter().chain([[0, 255, 0, 0]; 64]).flatten().collect();
    let samples = line.repeat(64);
    let png = make::png(&samples, (128, 64), png::ColorType::Rgba, png::BitDepth::Eight);
    for bytes in [png, make::webp_lossless(&samples, (128, 64), &[])] {
        let picture = decode::fitted(&bytes, 20, Chroma::Full, &Limits::default(), &go_on).unwrap().into_rgb();
        for pixel in picture.bytes.chunks_exact(3) {
            assert!(pixel[0].abs_diff(pixel[1]) <= 2 && pixel[1].abs_diff(pixel[2]) <= 2, "{pixel:?} is tinted");
        }
        assert!(close(picture.bytes[..3].try_into().unwrap(), [90; 3], 2));
        assert!(close(picture.bytes[57..60].try_into().unwrap(), [255; 3], 2));
    }
}

#[test]
fn print_colours_become_what_they_look_like() {
    for (ink, wanted) in [
        ([0u8, 0, 0, 0], [255u8, 255, 255]),
        ([255, 0, 0, 0], [0, 255, 255]),
        ([0, 255, 0, 0], [255, 0, 255]),
        ([0, 0, 255, 0], [255, 255, 0]),
        ([0, 0, 0, 255], [0, 0, 0]),
        ([0, 0, 0, 128], [127, 127, 127]),
    ] {
        for colours in [ColorType::Cmyk, ColorType::CmykAsYcck] {
            let kind = Made { colours, sampling: SamplingFactor::F_1_1, ..Made::default() };
            let bytes = make::jpeg_with(&ink.repeat(64 * 64), (64, 64), kind, &[], &[]);
            let pixel = at(&for_model(&bytes, &small(16), &go_on).unwrap(), 50, 50);
            assert!(close(pixel, wanted, 6), "{ink:?} became {pixel:?}");
        }
    }
}

#[test]
fn of_an_animation_the_model_sees_the_first_frame() {
    for (name, bytes, still) in [
        ("gif", make::gif(32, &[200, 20]), make::gif(32, &[200])),
        ("png", make::apng(32, &[200, 20]), make::apng(32, &[200])),
        ("webp", make::webp_animated(32, &[200, 20]), make::webp_lossless(&[200; 32 * 32 * 3], (32, 32), &[])),
    ] {
        assert!(probe(&bytes, &Limits::default()).unwrap().animated, "{name}");
        assert!(!probe(&still, &Limits::default()).unwrap().animated, "{name}");
        for bytes in [bytes, still] {
            let pixel = at(&for_model(&bytes, &small(16), &go_on).unwrap(), 50, 50);
            assert!(close(pixel, [200; 3], 4), "{name}: {pixel:?}");
        }
    }
}

/// Where the bright square of a scene is seen, in percent, when its file says this orientation.
const SQUARE: [(u8, u32, u32); 8] =
    [(1, 25, 25), (2, 75, 25), (3, 75, 75), (4, 25, 75), (5, 25, 25), (6, 75, 25), (7, 75, 75), (8, 25, 75)];

#[test]
fn each_of_the_eight_orientations_is_put_upright() {
    let square = |jpeg: &Jpeg| {
        // The blue of a scene is brightest where its slopes begin; the square tells by its edge.
        let points = [(25, 25), (75, 25), (25, 75), (75, 75)];
        points.into_iter().max_by_key(|&(x, y)| at(jpeg, x, y)[0]).unwrap()
    };
    let size = (200, 120);
    let mut plain = vec![60; size.0 * size.1 * 3];
    for y in 15..45 {
        plain[(y * size.0 + 25) * 3..(y * size.0 + 75) * 3].fill(250);
    }
    for (orientation, across, down) in SQUARE {
        let exif = make::turned(orientation);
        let jpeg = make::jpeg_with(&plain, size, Made::default(), &exif, &[]);
        let progressive = Made { progressive: true, ..Made::default() };
        let progressive = make::jpeg_with(&plain, size, progressive, &exif, &[]);
        let webp = make::webp_lossless(&plain, size, &exif);
        let mut png = make::png(&plain, size, png::ColorType::Rgb, png::BitDepth::Eight);
        png.splice(33..33, make::chunk(b"eXIf", &exif));
        for (name, bytes) in [("jpeg", jpeg), ("progressive", progressive), ("webp", webp), ("png", png)] {
            for side in [400, 200, 61, 25] {
                let made = for_model(&bytes, &small(side), &go_on).unwrap();
                let info = probe(&bytes, &Limits::default()).unwrap();
                assert_eq!(info.orientation, orientation, "{name}");
                assert_eq!((info.width, info.height), if orientation > 4 { (120, 200) } else { (200, 120) });
                assert_eq!(made.width > made.height, orientation < 5, "{name} {orientation} at {side}");
                assert_eq!(square(&made), (across, down), "{name} {orientation} at {side}");
            }
        }
    }
    let jpeg = make::jpeg_with(&make::scene(100, 50), (100, 50), Made::default(), &make::turned(6), &[]);
    let made = for_model(&jpeg, &ForModel::default(), &go_on).unwrap();
    assert_eq!((made.width, made.height), (50, 100));
}

#[test]
fn colours_of_another_space_are_converted_and_a_broken_profile_is_left_alone() {
    let profile = moxcms::ColorProfile::new_display_p3().encode().unwrap();
    // Display P3's (200, 80, 60) in sRGB, by the matrices of both.
    let (given, converted) = ([200u8, 80, 60], [212u8, 72, 51]);
    let size = (64, 64);
    let samples = given.repeat(64 * 64);
    let progressive = Made { progressive: true, ..Made::default() };
    for side in [64, 16] {
        for kind in [Made::default(), progressive] {
            let with = make::jpeg_with(&samples, size, kind, &[], &profile);
            let pixel = at(&for_model(&with, &small(side), &go_on).unwrap(), 50, 50);
            assert!(close(pixel, converted, 4), "{pixel:?}");
            let broken = make::jpeg_with(&samples, size, kind, &[], &[7; 300]);
            let pixel = at(&for_model(&broken, &small(side), &go_on).unwrap(), 50, 50);
            assert!(close(pixel, given, 3), "{pixel:?}");
        }
    }
}

#[test]
fn a_bomb_is_refused_by_its_head() {
    let png = make::raw_png(&make::ihdr(60_000, 60_000, 8, 6, 0), &[], &[0]);
    let mut jpeg = make::jpeg(16, 16);
    let frame = jpeg.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xdc, 0xff, 0xdc]);
    let mut gif = make::gif(8, &[1]);
    gif[6..10].copy_from_slice(&[0xff, 0xff, 0xff, 0xff]);
    let mut webp = make::webp_animated(8, &[1]);
    webp[24..30].copy_from_slice(&[0xff, 0xff, 0, 0xff, 0xff, 0]);
    let mut bmp = make::rare(8, 8, ImageFormat::Bmp);
    bmp[18..26].copy_from_slice(&[0xff, 0x7f, 0, 0, 0xff, 0x7f, 0, 0]);
    let mut lossless = make::webp_lossless(&make::scene(8, 8), (8, 8), &[]);
    lossless[21..25].copy_from_slice(&[0xff, 0xff, 0xff, 0x0f]);
    for (name, bytes) in
        [("png", png), ("jpeg", jpeg), ("gif", gif), ("webp", webp), ("lossless webp", lossless), ("bmp", bmp)]
    {
        let asked = AtomicUsize::new(0);
        let check = || {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let e = for_model(&bytes, &ForModel::default(), &check).unwrap_err();
        assert_eq!(e.kind(), Kind::TooLarge, "{name}: {e}");
        assert_eq!(asked.into_inner(), 0, "{name}: decoding had begun");
    }
}

#[test]
fn each_limit_holds_and_says_so() {
    let bytes = make::png_scene(100, 80);
    let with = |limits: Limits| for_model(&bytes, &ForModel { limits, ..ForModel::default() }, &go_on);
    assert!(with(Limits { max_pixels: 8000, max_side: 100, ..Limits::default() }).is_ok());
    for limits in [
        Limits { max_pixels: 7999, ..Limits::default() },
        Limits { max_side: 99, ..Limits::default() },
        Limits { max_bytes: bytes.len() - 1, ..Limits::default() },
        Limits { max_memory: 1000, ..Limits::default() },
    ] {
        assert_eq!(with(limits).unwrap_err().kind(), Kind::TooLarge, "{limits:?}");
    }
    let frugal = ForModel { limits: Limits { max_memory: 1000, ..Limits::default() }, ..ForModel::default() };
    for (name, bytes) in zoo(90, 67).into_iter().filter(|(name, _)| *name != "jpeg") {
        assert_eq!(for_model(&bytes, &frugal, &go_on).unwrap_err().kind(), Kind::TooLarge, "{name}");
    }
}

#[test]
fn a_jpeg_with_a_hundred_scans_over_a_large_picture_is_refused() {
    let kind = Made { progressive: true, ..Made::default() };
    let mut bytes = make::jpeg_with(&make::scene(64, 64), (64, 64), kind, &[], &[]);
    bytes.truncate(bytes.len() - 2);
    for _ in 0..100 {
        bytes.extend(b"\xff\xda\x00\x08\x01\x01\x00\x01\x01\x00");
    }
    bytes.extend([0xff, 0xd9]);
    let limits = Limits { max_pixels: 64 * 64, ..Limits::default() };
    let e = for_model(&bytes, &ForModel { limits, ..ForModel::default() }, &go_on).unwrap_err();
    assert_eq!(e.kind(), Kind::TooLarge, "{e}");
}

#[test]
fn a_file_that_is_cut_off_is_refused_wherever_the_cut_is() {
    for (name, bytes) in zoo(90, 67) {
        for side in [20, 90] {
            for cut in (0..bytes.len() - 2).step_by(bytes.len() / 97 + 1) {
                let made = for_model(&bytes[..cut], &small(side), &go_on);
                // The end of a PNG or GIF holds no pixels, and that of a bitmap may be filling.
                let late = cut + 40 > bytes.len() && ["png", "gif", "bmp", "ico", "tiff"].contains(&name);
                match made {
                    Err(e) => assert_eq!(e.kind(), Kind::BadImage, "{name} cut to {cut}: {e}"),
                    Ok(_) => assert!(late, "{name} cut to {cut} of {} at {side} was taken", bytes.len()),
                }
            }
        }
    }
}

#[test]
fn rubbish_behind_a_picture_does_no_harm() {
    for (name, bytes) in zoo(90, 67) {
        let whole = for_model(&bytes, &small(30), &go_on).unwrap();
        let longer = [&bytes[..], &[0xff, 0xd8, 0, 1, 2, 0xff], b"<script>", &[0; 500]].concat();
        assert_eq!(for_model(&longer, &small(30), &go_on).unwrap(), whole, "{name}");
    }
}

#[test]
fn a_wrong_name_for_a_table_or_a_component_is_an_error_and_no_panic() {
    let good = make::jpeg(64, 64);
    let place = |marker: u8| good.windows(2).position(|w| w == [0xff, marker]).unwrap();
    for (what, at, value) in [
        ("a code table that is not there", place(0xda) + 6, 0x33),
        ("a component that is not there", place(0xda) + 5, 9),
        ("no components", place(0xc0) + 9, 0),
        ("a sampling of zero", place(0xc0) + 11, 0),
        ("a quantisation table that is not there", place(0xc0) + 12, 3),
        ("too many codes", place(0xc4) + 5, 3),
        ("no width", place(0xc0) + 8, 0),
        ("twelve bits", place(0xc0) + 4, 12),
    ] {
        let mut bytes = good.clone();
        bytes[at] = value;
        for side in [8, 64] {
            let e = for_model(&bytes, &small(side), &go_on).unwrap_err();
            assert_eq!(e.kind(), Kind::BadImage, "{what}: {e}");
        }
    }
}

#[test]
fn broken_bytes_anywhere_end_in_a_picture_or_an_error_of_a_picture() {
    let mut chance = 0x2545_f491_4f6c_dd1du64;
    let mut next = |below: usize| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        (chance % below as u64) as usize
    };
    let limits = Limits { max_pixels: 100_000, ..Limits::default() };
    for (name, good) in zoo(61, 40) {
        for round in 0..150 {
            let mut bytes = good.clone();
            for _ in 0..1 + round % 4 {
                let place = if round % 3 == 0 { next(bytes.len().min(200)) } else { next(bytes.len()) };
                bytes[place] = [next(256) as u8, 0, 0xff, 0x7f][next(4)];
            }
            for side in [7, 61] {
                if let Err(e) = for_model(&bytes, &ForModel { limits, ..small(side) }, &go_on) {
                    assert!(matches!(e.kind(), Kind::BadImage | Kind::TooLarge), "{name} round {round}: {e}");
                    assert!(!e.message().contains("breaks its decoder"), "{name} round {round}: a decoder panicked");
                }
            }
        }
    }
}

#[test]
fn a_stop_ends_the_work_between_lines() {
    for (name, bytes) in zoo(200, 150) {
        for allowed in 0..2 {
            let asked = AtomicUsize::new(0);
            let check = || match asked.fetch_add(1, Ordering::Relaxed) {
                n if n < allowed => Ok(()),
                _ => Err(Error::new(Kind::Cancelled, "stopped")),
            };
            let e = for_model(&bytes, &small(50), &check).unwrap_err();
            assert_eq!(e.kind(), Kind::Cancelled, "{name}");
            assert_eq!(asked.into_inner(), allowed + 1, "{name}: it went on");
            let sheet = Sheet { cell: 50, ..Sheet::default() };
            let stop = || Err(Error::new(Kind::Timeout, "too late"));
            assert_eq!(contact_sheet(&[&bytes, &bytes], &sheet, &stop).unwrap_err().kind(), Kind::Timeout);
        }
    }
}

/// Every chunk of a PNG by its name.
fn chunks(png: &[u8]) -> Vec<String> {
    let (mut at, mut out) = (8, Vec::new());
    while let Some(head) = png.get(at..at + 8) {
        out.push(String::from_utf8_lossy(&head[4..]).into_owned());
        at += 12 + u32::from_be_bytes(head[..4].try_into().unwrap()) as usize;
    }
    out
}

/// What stands in metadata and is nobody's business.
const SECRET: &[u8] = b"GPS 52.5163 N, at home";

#[test]
fn a_copy_is_made_of_pixels_alone_whatever_else_is_in_the_file() {
    let (scene, size) = (make::scene(60, 40), (60, 40));
    let mut exif = make::turned(1);
    exif.extend(SECRET);
    let mut comment = make::jpeg(60, 40);
    comment.splice(2..2, [&[0xff, 0xfe, 0, SECRET.len() as u8 + 2], SECRET].concat());
    let mut behind = make::jpeg(60, 40);
    behind.extend(SECRET);
    let png = make::png_scene(60, 40);
    let with = |kind: &[u8; 4], body: &[u8]| {
        let mut out = png.clone();
        out.splice(33..33, make::chunk(kind, body));
        out
    };
    let text = [b"Description\0", SECRET].concat();
    let mut png_behind = png.clone();
    png_behind.extend(SECRET);
    let cmyk = Made { colours: ColorType::Cmyk, ..Made::default() };
    let deep: Vec<u8> = scene.iter().flat_map(|&v| [v, v]).collect();
    let rows: Vec<(&str, Vec<u8>, &str)> = vec![
        ("jpeg with exif", make::jpeg_with(&scene, size, Made::default(), &exif, &[]), "image/jpeg"),
        ("jpeg with a comment", comment, "image/jpeg"),
        ("jpeg with a tail", behind, "image/jpeg"),
        (
            "progressive",
            make::jpeg_with(&scene, size, Made { progressive: true, ..Made::default() }, &exif, &[]),
            "image/jpeg",
        ),
        ("print", make::jpeg_with(&make::scene(80, 40)[..60 * 40 * 4], size, cmyk, &exif, &[]), "image/jpeg"),
        ("png with text", with(b"tEXt", &text), "image/png"),
        ("png with exif", with(b"eXIf", &exif), "image/png"),
        ("png with a broken compressed text", with(b"zTXt", b"a\0\0GPS"), "image/png"),
        ("png with a tail", png_behind, "image/png"),
        ("deep png", make::png(&deep, size, png::ColorType::Rgb, png::BitDepth::Sixteen), "image/png"),
    ];
    for (name, file, media_type) in rows {
        let copy = model_copy(&file, &ForModel::default(), 3 << 20, &go_on).unwrap();
        assert_eq!(copy.media_type, media_type, "{name}");
        assert!(!copy.bytes.windows(3).any(|w| w == b"GPS"), "{name}");
        let info = probe(&copy.bytes, &Limits::default()).unwrap();
        assert_eq!((info.width, info.height, info.orientation), (60, 40, 1), "{name}");
        if media_type == "image/png" {
            assert!(chunks(&copy.bytes).iter().all(|c| ["IHDR", "IDAT", "IEND"].contains(&c.as_str())), "{name}");
            assert_eq!(copy.bytes[24..26], [8, 2], "{name}");
        } else {
            let header = jpeg::Header::read(&copy.bytes).unwrap();
            assert_eq!((header.precision, header.components()), (8, 3), "{name}");
            assert_eq!(header.process, jpeg::Process::Sequential, "{name}");
        }
    }
}

#[test]
fn a_drawing_stays_sharp_to_the_last_pixel() {
    // One pixel black, one white, one red: what JPEG smears.
    let lines: Vec<u8> = (0..200 * 100).flat_map(|i| [[0, 0, 0], [255, 255, 255], [255, 0, 0]][i % 3]).collect();
    let drawing = make::png(&lines, (200, 100), png::ColorType::Rgb, png::BitDepth::Eight);
    let copy = model_copy(&drawing, &ForModel::default(), 3 << 20, &go_on).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(&copy.bytes)).read_info().unwrap();
    let mut read = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut read).unwrap();
    assert_eq!((copy.media_type, read == lines), ("image/png", true));
    // What is seen through is white, as in every other copy.
    let clear = make::png(&[255, 0, 0, 0, 255, 0, 0, 255], (2, 1), png::ColorType::Rgba, png::BitDepth::Eight);
    let copy = model_copy(&clear, &ForModel::default(), 3 << 20, &go_on).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(&copy.bytes)).read_info().unwrap();
    let mut read = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut read).unwrap();
    assert_eq!(read, [255, 255, 255, 255, 0, 0]);
    // Too many bytes as a PNG, too many pixels, several frames: a JPEG.
    for (file, most) in [(&drawing, 100), (&make::png_scene(1600, 20), 3 << 20), (&make::apng(8, &[9, 90]), 3 << 20)] {
        let copy = model_copy(file, &ForModel::default(), most, &go_on).unwrap();
        assert_eq!(copy.media_type, "image/jpeg");
    }
}

#[test]
fn no_copy_is_made_of_a_picture_that_is_not_whole() {
    for (name, file) in zoo(96, 64) {
        for share in [30, 60, 90] {
            let cut = &file[..file.len() * share / 100];
            if let Ok(copy) = model_copy(cut, &ForModel::default(), 3 << 20, &go_on) {
                // Some formats are whole without their last bytes; then the copy is.
                assert!(share == 90 && !["jpeg", "png"].contains(&name), "{name} {share}: {}", copy.media_type);
            }
        }
        assert!(model_copy(&file, &ForModel::default(), 3 << 20, &go_on).is_ok(), "{name}");
    }
}

#[test]
fn a_contact_sheet_has_as_many_cells_as_it_needs() {
    for (pictures, columns, rows) in [
        (0, 1, 1),
        (1, 1, 1),
        (2, 2, 1),
        (3, 2, 2),
        (4, 2, 2),
        (5, 3, 2),
        (9, 3, 3),
        (10, 4, 3),
        (25, 5, 5),
        (26, 6, 5),
    ] {
        assert_eq!(sheet::grid(pictures), (columns, rows), "{pictures}");
    }
    let bytes = make::jpeg(60, 40);
    let made = contact_sheet(&[&bytes[..]; 5], &Sheet { cell: 100, ..Sheet::default() }, &go_on).unwrap();
    assert_eq!((made.width, made.height), (300, 200));
    assert_eq!(pixels(&made).len(), 300 * 200 * 3);
    let huge = Sheet { cell: 60_000, ..Sheet::default() };
    assert_eq!(contact_sheet(&[&bytes[..]; 5], &huge, &go_on).unwrap_err().kind(), Kind::TooLarge);
    let none = Sheet { cell: 0, ..Sheet::default() };
    assert_eq!(contact_sheet(&[&bytes[..]], &none, &go_on).unwrap_err().kind(), Kind::InvalidArguments);
}

#[test]
fn a_picture_that_cannot_be_read_keeps_its_cell_and_its_number() {
    let good = make::jpeg(80, 80);
    let bad = &good[..good.len() / 2];
    let sheet = Sheet { cell: 100, quality: 95, ..Sheet::default() };
    let made = contact_sheet(&[&good, bad, &good], &sheet, &go_on).unwrap();
    assert_eq!((made.width, made.height), (200, 200));
    assert!(close(at(&made, 90, 40), [40, 20, 20], 4), "{:?}", at(&made, 90, 40));
    assert!(close(at(&made, 90, 90), [24, 24, 28], 4), "{:?}", at(&made, 90, 90));
    let all = pixels(&made);
    let whites = |left: usize, top: usize| {
        let inside = (0..40 * 40).filter(|i| all[((top + i / 40) * 200 + left + i % 40) * 3] > 200);
        inside.count()
    };
    for (left, top) in [(0, 0), (100, 0), (0, 100)] {
        assert!(whites(left, top) > 15, "no number at {left}, {top}");
    }
    assert_eq!(whites(100, 100), 0, "the fourth cell is empty");
}

#[test]
fn one_thread_and_two_make_the_same_sheet() {
    let pictures: Vec<Vec<u8>> = (1..12).map(|i| make::jpeg(40 + i * 9, 200 - i * 7)).collect();
    let pictures: Vec<&[u8]> = pictures.iter().map(Vec::as_slice).collect();
    let by = |threads| Sheet { cell: 64, threads: NonZeroUsize::new(threads), ..Sheet::default() };
    let one = contact_sheet(&pictures, &by(1), &go_on).unwrap();
    assert_eq!(contact_sheet(&pictures, &by(2), &go_on).unwrap(), one);
    assert_eq!(contact_sheet(&pictures, &by(7), &go_on).unwrap(), one);
}

#[test]
fn a_number_of_any_length_stays_in_its_cell() {
    let bytes = make::jpeg(8, 8);
    let tiny = Sheet { cell: 24, quality: 95, ..Sheet::default() };
    let made = contact_sheet(&[&bytes[..]; 101], &tiny, &go_on).unwrap();
    assert_eq!((made.width, made.height), (11 * 24, 10 * 24));
}
