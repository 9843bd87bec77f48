//! The contact sheet: many pictures in numbered cells of one JPEG, so that a model sees them at the price of one.
//! A picture that cannot be decoded keeps its cell and its number. Digits are drawn here; no font is needed.

use super::raster::{Chroma, Ycc, ycc};
use super::{Check, Jpeg, Sheet, decode, encode};
use crate::base::error::{Error, Kind, Result};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Behind the pictures.
const GROUND: [u8; 3] = [24, 24, 28];
/// Where a picture could not be decoded.
const MISSING: [u8; 3] = [40, 20, 20];

/// The digits, five wide and seven high, a byte a line, the leftmost pixel in bit 4.
const DIGITS: [[u8; 7]; 10] = [
    [0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110],
    [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
    [0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111],
    [0b11111, 0b00010, 0b00100, 0b00010, 0b00001, 0b10001, 0b01110],
    [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010],
    [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110],
    [0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110],
    [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000],
    [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110],
    [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100],
];

/// The columns and lines of cells for so many pictures.
pub(super) fn grid(pictures: usize) -> (usize, usize) {
    let count = pictures.max(1);
    let root = count.isqrt();
    let columns = if root * root < count { root + 1 } else { root };
    (columns, count.div_ceil(columns))
}

/// Makes the sheet; see [`super::contact_sheet`].
pub(super) fn make(pictures: &[&[u8]], options: &Sheet, check: Check) -> Result<Jpeg> {
    let cell = options.cell as usize;
    let (columns, rows) = grid(pictures.len());
    let (width, height) = (columns.saturating_mul(cell), rows.saturating_mul(cell));
    if cell == 0 {
        return Err(Error::invalid("a cell of a contact sheet needs at least one pixel"));
    }
    let pixels = width.saturating_mul(height) as u64;
    if pixels > options.limits.max_pixels || width.max(height) > encode::MAX_SIDE {
        return Err(Error::new(
            Kind::TooLarge,
            format!("a contact sheet of {} pictures in cells of {cell} pixels is too large", pictures.len()),
        )
        .hint("use fewer pictures or smaller cells"));
    }
    let sheet = Mutex::new(Ycc::filled(width, height, options.ground.unwrap_or(GROUND)));
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let outcome: Mutex<Result<()>> = Mutex::new(Ok(()));
    let work = || {
        while !stopped.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(bytes) = pictures.get(index) else { break };
            let done = match decode::fitted(bytes, cell, Chroma::Full, &options.limits, check) {
                Ok(picture) => Ok(Some(picture)),
                Err(e) if matches!(e.kind(), Kind::BadImage | Kind::TooLarge) => Ok(None),
                Err(e) => Err(e),
            };
            match done {
                Ok(picture) => {
                    let (left, top) = (index % columns * cell, index / columns * cell);
                    let mut sheet = sheet.lock().unwrap_or_else(PoisonError::into_inner);
                    place(&mut sheet, picture.as_ref(), left, top, cell);
                    badge(&mut sheet, index + 1, left, top, cell, options.number_height);
                }
                Err(e) => {
                    *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Err(e);
                    stopped.store(true, Ordering::Relaxed);
                }
            }
        }
    };
    let threads = options.threads.map_or_else(two_at_most, NonZeroUsize::get).min(pictures.len()).max(1);
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    outcome.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    check()?;
    let sheet = sheet.into_inner().unwrap_or_else(PoisonError::into_inner);
    let bytes = encode::jpeg(sheet, options.quality)?;
    Ok(Jpeg { bytes, width: width as u32, height: height as u32 })
}

fn two_at_most() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get).min(2)
}

/// Puts a picture in the middle of its cell, or paints the cell where there is none.
fn place(sheet: &mut Ycc, picture: Option<&Ycc>, left: usize, top: usize, cell: usize) {
    match picture {
        Some(picture) => sheet.paste(picture, left + (cell - picture.width) / 2, top + (cell - picture.height) / 2),
        None => sheet.paste(&Ycc::filled(cell, cell, MISSING), left, top),
    }
}

/// Writes a number in white on a black box into the top left corner of a cell, cut off where the cell ends.
fn badge(sheet: &mut Ycc, number: usize, left: usize, top: usize, cell: usize, height: Option<u32>) {
    // A type of this size has digits of about seven tenths of it.
    let size = height.map_or((cell / 6).max(20), |h| h as usize);
    let tall = (size * 7 / 10).max(7);
    let wide = tall * 5 / 7;
    let gap = (tall / 7).max(1);
    let (outside, inside) = match height {
        Some(_) => (0, 2),
        None => ((size / 5).max(6), (size / 5).max(4)),
    };
    let text = number.to_string();
    let box_width = text.len() * (wide + gap) - gap + 2 * inside;
    let box_height = tall + 2 * inside;
    let (black, white) = (ycc([0, 0, 0]), ycc([255, 255, 255]));
    let mut dot = |x: usize, y: usize, colour: [u8; 3], share: u32, shares: u32| {
        if x < cell && y < cell {
            sheet.blend(left + x, top + y, colour, share, shares);
        }
    };
    for y in 0..box_height {
        for x in 0..box_width {
            dot(outside + x, outside + y, black, 1, 1);
        }
    }
    for (place, digit) in text.bytes().enumerate() {
        let glyph = &DIGITS[usize::from(digit - b'0')];
        let corner = outside + inside + place * (wide + gap);
        for y in 0..tall {
            for x in 0..wide {
                let share = coverage(glyph, (x, wide), (y, tall));
                if share > 0 {
                    dot(corner + x, outside + inside + y, white, share, FINE * FINE);
                }
            }
        }
    }
}

/// Samples of a pixel in each direction, by which the edges of digits are smoothed.
const FINE: u32 = 4;

/// How many of a pixel's samples lie in the glyph: pixel `x.0` of `x.1` across and `y.0` of `y.1` down.
fn coverage(glyph: &[u8; 7], x: (usize, usize), y: (usize, usize)) -> u32 {
    let fine = FINE as usize;
    let at = |(pixel, of): (usize, usize), sample: usize, cells: usize| {
        (2 * (pixel * fine + sample) + 1) * cells / (2 * of * fine)
    };
    let samples = (0..fine * fine).filter(|s| glyph[at(y, s / fine, 7)] >> (4 - at(x, s % fine, 5)) & 1 == 1);
    samples.count() as u32
}
