//! Decodes the one scan of a baseline JPEG straight to a smaller picture: each block of 8x8 becomes 4x4, 2x2 or 1x1
//! samples from its lowest frequencies, and what is not needed is skipped, not decoded. Planes stay YCbCr.

use super::Header;
use super::huffman::{Ac, Bits, Dc};
use crate::base::error::Result;
use crate::service::image::{Check, broken};

/// One plane of a picture, as blocks laid side by side: wider and higher than what of it belongs to the picture.
pub(in crate::service::image) struct Plane {
    pub(in crate::service::image) width: usize,
    pub(in crate::service::image) height: usize,
    /// The part that is picture, from the top left; the fraction is where it ends within a sample.
    pub(in crate::service::image) inside: (f64, f64),
    pub(in crate::service::image) samples: Vec<u8>,
}

/// Where the coefficients of the zigzag lie in a 4x4 corner of their block; 16 for those outside of it.
const CORNER_4: [u8; 25] = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 16, 13, 10, 7, 16, 16, 16, 11, 14, 16, 16, 16, 16, 16, 15];
/// The same for a corner of 2x2.
const CORNER_2: [u8; 5] = [0, 1, 2, 16, 3];

struct Component<'a> {
    dc: &'a Dc,
    ac: &'a Ac,
    /// Blocks of one MCU.
    across: usize,
    down: usize,
    /// Samples that a block becomes, in each direction.
    size: usize,
    /// Factors from what is stored to coefficients, in zigzag order.
    factor: [f32; 25],
    before: i32,
    plane: Plane,
}

/// How small a block may become so that a component of `have` samples still has `need` of them.
fn size(have: (usize, usize), need: (usize, usize)) -> Option<usize> {
    [1, 2, 4].into_iter().find(|n| (have.0 * n).div_ceil(8) >= need.0 && (have.1 * n).div_ceil(8) >= need.1)
}

/// Decodes to planes that have at least `need` samples of luma and `colour` of the others.
/// `None` where this picture is not for this decoder: another kind of JPEG, or no block may shrink.
///
/// # Errors
/// `bad_image` for a file that is cut off or broken; what `check` says, once a row of blocks.
pub(in crate::service::image) fn decode(
    header: &Header,
    data: &[u8],
    need: (usize, usize),
    colour: (usize, usize),
    check: Check,
) -> Result<Option<Vec<Plane>>> {
    let Some(start) = header.whole_scan() else { return Ok(None) };
    let (width, height) = (header.width as usize, header.height as usize);
    let single = header.components.len() == 1;
    let (h_max, v_max) = if single { (1, 1) } else { header.sampling() };
    let (mcus_across, mcus_down) = (width.div_ceil(8 * h_max), height.div_ceil(8 * v_max));
    let mut dc: Vec<Option<Dc>> = Vec::new();
    let mut ac: Vec<Option<Ac>> = Vec::new();
    for table in 0..4 {
        dc.push(header.dc[table].as_ref().and_then(Dc::new));
        ac.push(header.ac[table].as_ref().and_then(Ac::new));
    }
    let mut components = Vec::new();
    for (index, c) in header.components.iter().enumerate() {
        let (across, down) = if single { (1, 1) } else { (c.across, c.down) };
        if h_max % across != 0 || v_max % down != 0 {
            return Ok(None);
        }
        let have = ((width * across).div_ceil(h_max), (height * down).div_ceil(v_max));
        let need = if index == 0 { need } else { colour };
        let Some(size) = size(have, need) else { return Ok(None) };
        let (Some(dc), Some(ac), Some(quantisation)) = (&dc[c.dc], &ac[c.ac], &header.quantisation[c.quantisation])
        else {
            return Err(broken("a table of the JPEG is missing or broken"));
        };
        let scale = size as f32 / 8.0;
        let (plane_width, plane_height) = (mcus_across * across * size, mcus_down * down * size);
        components.push(Component {
            dc,
            ac,
            across,
            down,
            size,
            factor: std::array::from_fn(|k| f32::from(quantisation[k]) * scale),
            before: 0,
            plane: Plane {
                width: plane_width,
                height: plane_height,
                inside: (
                    (width * across * size) as f64 / (8 * h_max) as f64,
                    (height * down * size) as f64 / (8 * v_max) as f64,
                ),
                samples: vec![0; plane_width * plane_height],
            },
        });
    }
    let mut bits = Bits::new(data, start);
    let interval = usize::from(header.restart);
    let mut until_restart = interval;
    let mut restarts = 0;
    for row in 0..mcus_down {
        check()?;
        for column in 0..mcus_across {
            if interval != 0 {
                if until_restart == 0 {
                    if !bits.restart(restarts) {
                        return Err(broken("the JPEG is cut off or broken"));
                    }
                    restarts += 1;
                    until_restart = interval;
                    components.iter_mut().for_each(|c| c.before = 0);
                }
                until_restart -= 1;
            }
            for component in &mut components {
                if component.mcu(&mut bits, row, column).is_none() {
                    return Err(broken("the JPEG is broken"));
                }
            }
        }
        if bits.overran() {
            return Err(broken("the JPEG is cut off"));
        }
    }
    if header.scans_to_end(data, bits.position()).is_none() {
        return Err(broken("the JPEG is cut off"));
    }
    Ok(Some(components.into_iter().map(|c| c.plane).collect()))
}

impl Component<'_> {
    #[inline]
    fn mcu(&mut self, bits: &mut Bits, row: usize, column: usize) -> Option<()> {
        let stride = self.plane.width;
        for y in 0..self.down {
            for x in 0..self.across {
                let corner = ((row * self.down + y) * stride + column * self.across + x) * self.size;
                // Hostile differences must not add up to an overflow; a real sum has 12 bits.
                self.before = (self.before + self.dc.difference(bits)?).clamp(-65536, 65535);
                let first = self.before as f32 * self.factor[0];
                let out = &mut self.plane.samples[corner..];
                match self.size {
                    1 => {
                        self.ac.block(bits, 0, |_, _| {})?;
                        out[0] = sample(first);
                    }
                    2 => {
                        let mut c = [0f32; 17];
                        c[0] = first;
                        let factor = &self.factor;
                        self.ac.block(bits, 4, |k, value| {
                            c[usize::from(CORNER_2[k])] = value as f32 * factor[k];
                        })?;
                        two(&c, out, stride);
                    }
                    _ => {
                        let mut c = [0f32; 17];
                        c[0] = first;
                        let factor = &self.factor;
                        self.ac.block(bits, 24, |k, value| {
                            c[usize::from(CORNER_4[k])] = value as f32 * factor[k];
                        })?;
                        four(&c, out, stride);
                    }
                }
            }
        }
        Some(())
    }
}

/// A sample from its distance to mid-grey.
#[inline(always)]
fn sample(value: f32) -> u8 {
    (value + 128.5) as u8
}

#[inline(always)]
fn two(c: &[f32; 17], out: &mut [u8], stride: usize) {
    let (a, b, d, e) = (c[0] + c[1], c[0] - c[1], c[2] + c[3], c[2] - c[3]);
    out[..2].copy_from_slice(&[sample((a + d) * 0.5), sample((b + e) * 0.5)]);
    out[stride..stride + 2].copy_from_slice(&[sample((a - d) * 0.5), sample((b - e) * 0.5)]);
}

/// cos(pi/8) and cos(3 pi/8), each by sqrt(1/2): the odd part of a cosine transform of four.
const ODD: (f32, f32) = (0.653_281_5, 0.270_598_05);

/// One direction of the inverse transform of four, for four lines at once.
#[inline(always)]
fn lines(v: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    let mut out = [[0f32; 4]; 4];
    for i in 0..4 {
        let (sum, difference) = ((v[0][i] + v[2][i]) * 0.5, (v[0][i] - v[2][i]) * 0.5);
        let outer = ODD.0 * v[1][i] + ODD.1 * v[3][i];
        let inner = ODD.1 * v[1][i] - ODD.0 * v[3][i];
        out[0][i] = sum + outer;
        out[1][i] = difference + inner;
        out[2][i] = difference - inner;
        out[3][i] = sum - outer;
    }
    out
}

#[inline(always)]
fn turned(v: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    std::array::from_fn(|y| std::array::from_fn(|x| v[x][y]))
}

#[inline(always)]
fn four(c: &[f32; 17], out: &mut [u8], stride: usize) {
    let rows: [[f32; 4]; 4] = std::array::from_fn(|y| std::array::from_fn(|x| c[y * 4 + x]));
    let done = turned(lines(turned(lines(rows))));
    for (y, line) in done.iter().enumerate() {
        let at = y * stride;
        // Adding this number leaves the rounded value in the low bits; far cheaper than a checked conversion.
        let bytes: [u8; 4] = std::array::from_fn(|x| {
            let bits = (line[x].clamp(-1024.0, 1024.0) + (12_582_912.0 + 128.0)).to_bits() as i32
                - 12_582_912f32.to_bits() as i32;
            bits.clamp(0, 255) as u8
        });
        out[at..at + 4].copy_from_slice(&bytes);
    }
}
