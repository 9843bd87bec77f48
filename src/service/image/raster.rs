//! A small picture on its way out: planes of YCbCr as JPEG wants them, or RGB where colours are still to be converted.
//! It knows no formats and no files; sizes are in pixels, samples run from 0 to 255.

use super::exif;

/// How many samples of colour there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chroma {
    /// One for each pixel.
    Full,
    /// One for two by two pixels, rounded up at the edges.
    Half,
}

/// A picture in YCbCr, full range.
pub(super) struct Ycc {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) chroma: Chroma,
    /// Brightness, blue and red; the last two as `chroma` says.
    pub(super) planes: [Vec<u8>; 3],
}

/// A picture in RGB, three bytes a pixel.
pub(super) struct Rgb {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) bytes: Vec<u8>,
}

impl Chroma {
    /// The size of the colour planes of a picture of this size.
    pub(super) fn size(self, width: usize, height: usize) -> (usize, usize) {
        match self {
            Chroma::Full => (width, height),
            Chroma::Half => (width.div_ceil(2), height.div_ceil(2)),
        }
    }
}

/// Fractions of 2^16.
const HALF: i32 = 1 << 15;

/// RGB to YCbCr, as JFIF defines it.
#[inline(always)]
pub(super) fn ycc([r, g, b]: [u8; 3]) -> [u8; 3] {
    let (r, g, b) = (i32::from(r), i32::from(g), i32::from(b));
    let y = (19595 * r + 38470 * g + 7471 * b + HALF) >> 16;
    let cb = (-11059 * r - 21709 * g + 32768 * b + (128 << 16) + HALF - 1) >> 16;
    let cr = (32768 * r - 27439 * g - 5329 * b + (128 << 16) + HALF - 1) >> 16;
    [y as u8, cb as u8, cr as u8]
}

/// YCbCr to RGB, as JFIF defines it.
#[inline(always)]
fn rgb([y, cb, cr]: [u8; 3]) -> [u8; 3] {
    let (y, cb, cr) = (i32::from(y) << 16 | HALF, i32::from(cb) - 128, i32::from(cr) - 128);
    let clip = |v: i32| (v >> 16).clamp(0, 255) as u8;
    [clip(y + 91881 * cr), clip(y - 22554 * cb - 46802 * cr), clip(y + 116_130 * cb)]
}

impl Rgb {
    /// The same picture in YCbCr.
    pub(super) fn into_ycc(self, chroma: Chroma) -> Ycc {
        let (width, height) = (self.width, self.height);
        let mut planes = [vec![0; width * height], vec![0; width * height], vec![0; width * height]];
        let [y, cb, cr] = &mut planes;
        for (pixel, ((y, cb), cr)) in self.bytes.chunks_exact(3).zip(y.iter_mut().zip(cb.iter_mut()).zip(cr.iter_mut()))
        {
            [*y, *cb, *cr] = ycc([pixel[0], pixel[1], pixel[2]]);
        }
        Ycc { width, height, chroma: Chroma::Full, planes }.with(chroma)
    }
}

impl Ycc {
    /// A picture of one colour, given in RGB.
    pub(super) fn filled(width: usize, height: usize, colour: [u8; 3]) -> Ycc {
        Ycc { width, height, chroma: Chroma::Full, planes: ycc(colour).map(|v| vec![v; width * height]) }
    }

    /// The same picture with as many samples of colour: the mean of four where they get fewer.
    pub(super) fn with(mut self, chroma: Chroma) -> Ycc {
        if self.chroma == Chroma::Full && chroma == Chroma::Half {
            for plane in &mut self.planes[1..] {
                *plane = halved(plane, self.width, self.height);
            }
            self.chroma = Chroma::Half;
        }
        self
    }

    /// The same picture in RGB.
    pub(super) fn into_rgb(self) -> Rgb {
        let (width, _) = self.chroma.size(self.width, self.height);
        let step = if self.chroma == Chroma::Half { 1 } else { 0 };
        let [y, cb, cr] = &self.planes;
        let mut bytes = Vec::with_capacity(self.width * self.height * 3);
        for line in 0..self.height {
            for column in 0..self.width {
                let at = (line >> step) * width + (column >> step);
                bytes.extend_from_slice(&rgb([y[line * self.width + column], cb[at], cr[at]]));
            }
        }
        Rgb { width: self.width, height: self.height, bytes }
    }

    /// The same picture, turned by an EXIF orientation. Halved colour of an odd size would slide by half a sample
    /// where its edge changes sides, so what turns should have full colour or even sides.
    pub(super) fn upright(self, orientation: u8) -> Ycc {
        let (width, height) = (self.width, self.height);
        let (chroma_width, chroma_height) = self.chroma.size(width, height);
        let [y, cb, cr] = self.planes;
        let planes = [
            exif::upright(y, width, height, orientation),
            exif::upright(cb, chroma_width, chroma_height, orientation),
            exif::upright(cr, chroma_width, chroma_height, orientation),
        ];
        let (width, height) = if exif::is_sideways(orientation) { (height, width) } else { (width, height) };
        Ycc { width, height, chroma: self.chroma, planes }
    }

    /// Lays `other` upon this one; both have full colour, and `other` must fit in.
    pub(super) fn paste(&mut self, other: &Ycc, left: usize, top: usize) {
        for (to, from) in self.planes.iter_mut().zip(&other.planes) {
            for (line, row) in from.chunks_exact(other.width.max(1)).enumerate() {
                let at = (top + line) * self.width + left;
                to[at..at + other.width].copy_from_slice(row);
            }
        }
    }

    /// Draws over one pixel: `share` of `shares` is `colour` (YCbCr). Nothing happens outside of the picture.
    pub(super) fn blend(&mut self, x: usize, y: usize, colour: [u8; 3], share: u32, shares: u32) {
        if x >= self.width || y >= self.height {
            return;
        }
        for (plane, value) in self.planes.iter_mut().zip(colour) {
            let at = &mut plane[y * self.width + x];
            *at = ((u32::from(*at) * (shares - share) + u32::from(value) * share + shares / 2) / shares) as u8;
        }
    }
}

/// The mean of each two by two samples; the last line and column stand in for those beyond the edge.
fn halved(plane: &[u8], width: usize, height: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(width.div_ceil(2) * height.div_ceil(2));
    for top in (0..height).step_by(2) {
        let upper = &plane[top * width..][..width];
        let lower = &plane[(top + 1).min(height - 1) * width..][..width];
        let (pairs, rest) = upper.as_chunks::<2>();
        let (pairs_below, rest_below) = lower.as_chunks::<2>();
        // Rounding up and down in turn, so that no colour drifts.
        out.extend(pairs.iter().zip(pairs_below).enumerate().map(|(column, (a, b))| {
            let sum = u16::from(a[0]) + u16::from(a[1]) + u16::from(b[0]) + u16::from(b[1]);
            ((sum + 1 + (column as u16 & 1)) >> 2) as u8
        }));
        if let (Some(&a), Some(&b)) = (rest.first(), rest_below.first()) {
            out.push((u16::from(a) + u16::from(b)).div_ceil(2) as u8);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_survive_the_way_to_ycc_and_back() {
        for r in (0..=255).step_by(17) {
            for g in (0..=255).step_by(15) {
                for b in (0..=255).step_by(51) {
                    let back = rgb(ycc([r as u8, g as u8, b as u8]));
                    let off = [(back[0], r), (back[1], g), (back[2], b)].map(|(a, b)| (i32::from(a) - b).abs());
                    assert!(off.iter().all(|&o| o <= 2), "{r} {g} {b} became {back:?}");
                }
            }
        }
        assert_eq!(ycc([255, 255, 255]), [255, 128, 128]);
        assert_eq!(ycc([0, 0, 0]), [0, 128, 128]);
    }

    #[test]
    fn halving_takes_the_mean_and_repeats_the_edge() {
        assert_eq!(halved(&[0, 4, 10, 4, 8, 20, 2, 2, 7], 3, 3), [4, 15, 2, 7]);
        assert_eq!(halved(&[9], 1, 1), [9]);
    }
}
