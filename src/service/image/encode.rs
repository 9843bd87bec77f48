//! Writes a picture as a JPEG: the sizes and tables everybody uses, colour at half the resolution; or as a PNG.
//! The encoder of JPEG gets YCbCr as it is, so nothing is converted twice and colour is averaged, not picked.

use super::raster::{Chroma, Rgb, Ycc};
use crate::base::error::{Error, Result};
use jpeg_encoder::{Encoder, ImageBuffer, JpegColorType, SamplingFactor};

/// The largest side that a JPEG can have.
pub(super) const MAX_SIDE: usize = 65_535;

struct Planes(Ycc);

impl ImageBuffer for Planes {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        JpegColorType::Ycbcr
    }

    fn width(&self) -> u16 {
        self.0.width as u16
    }

    fn height(&self) -> u16 {
        self.0.height as u16
    }

    fn fill_buffers(&self, y: u16, buffers: &mut [Vec<u8>; 4]) {
        let (line, width) = (usize::from(y), self.0.width);
        let colour = self.0.chroma.size(width, self.0.height).0;
        let [luma, blue, red] = &self.0.planes;
        buffers[0].extend_from_slice(&luma[line * width..][..width]);
        for (buffer, plane) in buffers[1..].iter_mut().zip([blue, red]) {
            let row = &plane[line / 2 * colour..][..colour];
            // The encoder asks for one sample a pixel and takes the mean of four: here the same one four times.
            let start = buffer.len();
            buffer.extend(row.iter().flat_map(|&v| [v, v]));
            buffer.truncate(start + width);
        }
    }
}

/// Encodes at `quality` 1 to 100.
///
/// # Errors
/// `too_large` beyond what a JPEG can hold.
pub(super) fn jpeg(picture: Ycc, quality: u8) -> Result<Vec<u8>> {
    if picture.width > MAX_SIDE || picture.height > MAX_SIDE {
        return Err(Error::new(
            crate::base::error::Kind::TooLarge,
            format!("a JPEG of {} x {} pixels cannot be", picture.width, picture.height),
        ));
    }
    let picture = picture.with(Chroma::Half);
    let mut out = Vec::with_capacity(picture.width * picture.height / 4 + 1024);
    let mut encoder = Encoder::new(&mut out, quality.clamp(1, 100));
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.encode_image(Planes(picture)).map_err(|e| Error::internal(format!("encoding a JPEG: {e}")))?;
    Ok(out)
}

/// A PNG of 8 bits a channel that holds pixels and nothing else.
///
/// # Errors
/// `internal`.
pub(super) fn png(picture: &Rgb) -> Result<Vec<u8>> {
    let failed = |e: png::EncodingError| Error::internal(format!("encoding a PNG: {e}"));
    let mut out = Vec::with_capacity(picture.bytes.len() / 8 + 1024);
    let mut encoder = png::Encoder::new(&mut out, picture.width as u32, picture.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&picture.bytes).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(out)
}
