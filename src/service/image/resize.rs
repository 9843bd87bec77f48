//! Makes pictures smaller with a Lanczos filter, plane by plane, whole or as their lines come in.
//! It owns the calls of the resizing crate; orientation, alpha and colour are settled before or after.

use super::jpeg::scan::Plane;
use super::raster::{Chroma, Rgb, Ycc};
use crate::base::error::{Error, Result};
use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

/// Bytes of the lines that are made narrower at once: many, because the filter is reckoned anew for each band.
const BAND: usize = 6 << 20;

fn options() -> ResizeOptions {
    ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3)).use_alpha(false)
}

fn failed(e: impl std::fmt::Display) -> Error {
    Error::internal(format!("resizing a picture: {e}"))
}

/// A size of a picture or plane, across and down.
pub(super) type Size = (usize, usize);

/// Resizes `samples` from one size to another.
fn run(
    resizer: &mut Resizer,
    samples: &[u8],
    from: Size,
    to: Size,
    kind: PixelType,
    o: &ResizeOptions,
) -> Result<Vec<u8>> {
    let source = ImageRef::new(from.0 as u32, from.1 as u32, samples, kind).map_err(failed)?;
    let mut target = Image::new(to.0 as u32, to.1 as u32, kind);
    resizer.resize(&source, &mut target, o).map_err(failed)?;
    Ok(target.into_vec())
}

/// Resizes the planes of a JPEG to a picture of this size; one plane alone is grey.
pub(super) fn planes(planes: Vec<Plane>, (width, height): Size, chroma: Chroma) -> Result<Ycc> {
    let mut resizer = Resizer::new();
    let mut out = [Vec::new(), Vec::new(), Vec::new()];
    let colour = chroma.size(width, height);
    let grey = planes.len() == 1;
    for (index, plane) in planes.into_iter().enumerate().take(3) {
        let to = if index == 0 { (width, height) } else { colour };
        let across = plane.inside.0.min(plane.width as f64);
        let down = plane.inside.1.min(plane.height as f64);
        let options = options().crop(0.0, 0.0, across, down);
        out[index] = run(&mut resizer, &plane.samples, (plane.width, plane.height), to, PixelType::U8, &options)?;
    }
    if grey {
        out[1] = vec![128; colour.0 * colour.1];
        out[2] = out[1].clone();
    }
    Ok(Ycc { width, height, chroma, planes: out })
}

/// Resizes a whole picture.
pub(super) fn whole(picture: Rgb, to: Size) -> Result<Rgb> {
    let from = (picture.width, picture.height);
    if from == to {
        return Ok(picture);
    }
    let bytes = run(&mut Resizer::new(), &picture.bytes, from, to, PixelType::U8x3, &options())?;
    Ok(Rgb { width: to.0, height: to.1, bytes })
}

/// Takes a picture line by line and holds it only at its new width.
pub(super) struct Lines {
    resizer: Resizer,
    from: Size,
    to: Size,
    /// Lines of a band.
    lines: usize,
    band: Vec<u8>,
    narrow: Vec<u8>,
}

impl Lines {
    pub(super) fn new(from: Size, to: Size) -> Lines {
        let lines = (BAND / (from.0 * 3).max(1)).clamp(1, from.1.max(1));
        Lines {
            resizer: Resizer::new(),
            from,
            to,
            lines,
            band: Vec::with_capacity(if from == to { 0 } else { lines * from.0 * 3 }),
            narrow: Vec::with_capacity(to.0 * from.1 * 3),
        }
    }

    /// Takes the next line: `fill` appends its pixels, three bytes each. True when a band is complete.
    pub(super) fn line(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<bool> {
        if self.from == self.to {
            fill(&mut self.narrow);
            return Ok((self.narrow.len() / (self.from.0 * 3)).is_multiple_of(self.lines));
        }
        fill(&mut self.band);
        if self.band.len() < self.lines * self.from.0 * 3 {
            return Ok(false);
        }
        self.narrow()?;
        Ok(true)
    }

    fn narrow(&mut self) -> Result<()> {
        let lines = self.band.len() / (self.from.0 * 3);
        if lines > 0 {
            let (from, to) = ((self.from.0, lines), (self.to.0, lines));
            let done = run(&mut self.resizer, &self.band, from, to, PixelType::U8x3, &options())?;
            self.narrow.extend_from_slice(&done);
            self.band.clear();
        }
        Ok(())
    }

    /// The resized picture.
    ///
    /// # Errors
    /// `internal` if not all lines came.
    pub(super) fn finish(mut self) -> Result<Rgb> {
        self.narrow()?;
        whole(Rgb { width: self.to.0, height: self.from.1, bytes: self.narrow }, self.to)
    }
}
