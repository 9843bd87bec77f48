//! Lossy WebP frames through libwebp: the one decoder here that is not Rust, and the only one that is fast enough.
//! It gets nothing but a key frame whose size was read before, and writes into buffers of exactly that size.

use super::broken;
use super::jpeg::scan::Plane;
use super::raster::Ycc;
use super::resize::Size;
use crate::base::error::Result;
use std::ffi::c_int;

/// Decodes a `VP8 ` chunk to planes of YCbCr in the range of video.
///
/// # Errors
/// `bad_image` where the frame is cut off, broken or of another size.
pub(super) fn decode(frame: &[u8], (width, height): Size) -> Result<Vec<Plane>> {
    let (across, down) = (width.div_ceil(2), height.div_ceil(2));
    let mut luma = vec![0u8; width * height];
    let mut blue = vec![0u8; across * down];
    let mut red = vec![0u8; across * down];
    // SAFETY: every pointer comes with the length of what it points to, the strides are the widths that the lengths
    // were made from, and libwebp checks size, strides and lengths against the frame before it writes.
    let done = unsafe {
        libwebp_sys::WebPDecodeYUVInto(
            frame.as_ptr(),
            frame.len(),
            luma.as_mut_ptr(),
            luma.len(),
            width as c_int,
            blue.as_mut_ptr(),
            blue.len(),
            across as c_int,
            red.as_mut_ptr(),
            red.len(),
            across as c_int,
        )
    };
    if done.is_null() {
        return Err(broken("the WebP is cut off or broken"));
    }
    let colour_inside = (width as f64 / 2.0, height as f64 / 2.0);
    Ok(vec![
        Plane { width, height, inside: (width as f64, height as f64), samples: luma },
        Plane { width: across, height: down, inside: colour_inside, samples: blue },
        Plane { width: across, height: down, inside: colour_inside, samples: red },
    ])
}

/// Stretches the range of video (16 to 235, colour to 240) to that of JPEG.
pub(super) fn to_full_range(picture: &mut Ycc) {
    let stretched = |from: f64, to: f64, span: f64| -> [u8; 256] {
        std::array::from_fn(|v| ((v as f64 - from) * 255.0 / span + to).round().clamp(0.0, 255.0) as u8)
    };
    let (luma, colour) = (stretched(16.0, 0.0, 219.0), stretched(128.0, 128.0, 224.0));
    let [y, cb, cr] = &mut picture.planes;
    y.iter_mut().for_each(|v| *v = luma[usize::from(*v)]);
    cb.iter_mut().chain(cr).for_each(|v| *v = colour[usize::from(*v)]);
}
