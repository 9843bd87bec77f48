//! Brings pictures with an ICC profile into sRGB, which is what a model and a contact sheet take for granted.
//! A profile that cannot be used is left alone: its picture is still a picture.

use super::raster::Rgb;
use moxcms::{ColorProfile, DataColorSpace, Layout, RenderingIntent, TransformOptions};

/// Converts from the colours that `profile` describes; a profile for grey, print or none at all changes nothing.
pub(super) fn to_srgb(mut picture: Rgb, profile: &[u8]) -> Rgb {
    let Ok(source) = ColorProfile::new_from_slice(profile) else { return picture };
    if source.color_space != DataColorSpace::Rgb {
        return picture;
    }
    let target = ColorProfile::new_srgb();
    let options = TransformOptions { rendering_intent: RenderingIntent::Perceptual, ..TransformOptions::default() };
    let Ok(transform) = source.create_transform_8bit(Layout::Rgb, &target, Layout::Rgb, options) else {
        return picture;
    };
    let mut out = vec![0; picture.bytes.len()];
    if transform.transform(&picture.bytes, &mut out).is_ok() {
        picture.bytes = out;
    }
    picture
}
