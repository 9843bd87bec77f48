//! The one thing of EXIF that a picture needs to be seen right: which way is up.
//! It reads the tag, and turns planes of samples by it.

/// The orientation (1 to 8) in a TIFF structure as EXIF holds it; 1 where there is none or it makes no sense.
pub(super) fn orientation(tiff: &[u8]) -> u8 {
    read(tiff).filter(|o| (1..=8).contains(o)).unwrap_or(1)
}

fn read(tiff: &[u8]) -> Option<u8> {
    // Some writers keep JPEG's prefix in other files too.
    let tiff = tiff.strip_prefix(b"Exif\0\0").unwrap_or(tiff);
    let little = match tiff.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let two = |at: usize| -> Option<u16> {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        Some(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let four = |at: usize| -> Option<u32> {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        Some(if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let directory = four(4)? as usize;
    let entries = usize::from(two(directory)?);
    for entry in 0..entries {
        let at = directory.checked_add(2 + entry * 12)?;
        if two(at)? == 0x0112 {
            return u8::try_from(two(at + 8)?).ok();
        }
    }
    None
}

/// Whether this orientation changes width and height.
pub(super) fn is_sideways(orientation: u8) -> bool {
    orientation >= 5
}

/// Turns a plane of `width` x `height` samples so that what is up is up.
pub(super) fn upright(plane: Vec<u8>, width: usize, height: usize, orientation: u8) -> Vec<u8> {
    if width == 0 || height == 0 {
        return plane;
    }
    match orientation {
        2 => plane.chunks_exact(width).flat_map(|row| row.iter().rev().copied()).collect(),
        3 => plane.into_iter().rev().collect(),
        4 => plane.chunks_exact(width).rev().flatten().copied().collect(),
        5 => turned(&plane, width, height, |x, y| (x, y)),
        6 => turned(&plane, width, height, |x, y| (x, height - 1 - y)),
        7 => turned(&plane, width, height, |x, y| (width - 1 - x, height - 1 - y)),
        8 => turned(&plane, width, height, |x, y| (width - 1 - x, y)),
        _ => plane,
    }
}

/// Lines become columns: the sample at (x, y) goes to line `to.0`, column `to.1`.
#[inline(always)]
fn turned(plane: &[u8], width: usize, height: usize, to: impl Fn(usize, usize) -> (usize, usize)) -> Vec<u8> {
    /// Both sides of a tile stay in the cache.
    const TILE: usize = 32;
    let mut out = vec![0; plane.len()];
    for top in (0..height).step_by(TILE) {
        for left in (0..width).step_by(TILE) {
            for x in left..(left + TILE).min(width) {
                for y in top..(top + TILE).min(height) {
                    let (line, column) = to(x, y);
                    out[line * height + column] = plane[y * width + x];
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_orientation_puts_the_corners_where_they_belong() {
        // Three across, two down; what each orientation makes of it, as lines.
        let plane = b"abcdef".to_vec();
        let rows: [(u8, &[&str]); 9] = [
            (0, &["abc", "def"]),
            (1, &["abc", "def"]),
            (2, &["cba", "fed"]),
            (3, &["fed", "cba"]),
            (4, &["def", "abc"]),
            (5, &["ad", "be", "cf"]),
            (6, &["da", "eb", "fc"]),
            (7, &["fc", "eb", "da"]),
            (8, &["cf", "be", "ad"]),
        ];
        for (orientation, lines) in rows {
            let turned = upright(plane.clone(), 3, 2, orientation);
            assert_eq!(turned, lines.concat().into_bytes(), "orientation {orientation}");
        }
    }

    #[test]
    fn a_plane_larger_than_a_tile_turns_back_to_itself() {
        let plane: Vec<u8> = (0..70u32 * 45).map(|i| (i * 7 % 251) as u8).collect();
        for (there, back) in [(2, 2), (3, 3), (4, 4), (5, 5), (6, 8), (7, 7), (8, 6)] {
            let turned = upright(plane.clone(), 70, 45, there);
            let (width, height) = if is_sideways(there) { (45, 70) } else { (70, 45) };
            assert_eq!(upright(turned, width, height, back), plane, "{there} and {back}");
        }
    }

    /// A TIFF structure with one tag.
    fn tiff(order: &str, tag: u16, value: u16) -> Vec<u8> {
        let mut out = order.as_bytes().to_vec();
        let mut two = |v: u16| out.extend(if order == "II" { v.to_le_bytes() } else { v.to_be_bytes() });
        two(42);
        let rest: [u16; 9] =
            if order == "II" { [8, 0, 1, tag, 3, 1, 0, value, 0] } else { [0, 8, 1, tag, 3, 0, 1, value, 0] };
        rest.into_iter().for_each(two);
        out
    }

    #[test]
    fn the_tag_is_read_in_both_byte_orders_and_nonsense_is_upright() {
        for value in 1..=8 {
            for order in ["II", "MM"] {
                assert_eq!(orientation(&tiff(order, 0x0112, value)), value as u8);
                let mut prefixed = b"Exif\0\0".to_vec();
                prefixed.extend(tiff(order, 0x0112, value));
                assert_eq!(orientation(&prefixed), value as u8);
            }
        }
        for (what, bytes) in [
            ("another tag", tiff("II", 0x0110, 6)),
            ("no such orientation", tiff("MM", 0x0112, 9)),
            ("zero", tiff("MM", 0x0112, 0)),
            ("cut off", tiff("II", 0x0112, 6)[..17].to_vec()),
            ("a directory beyond the end", b"II*\0\xff\xff\xff\xff".to_vec()),
            ("no bytes", Vec::new()),
        ] {
            assert_eq!(orientation(&bytes), 1, "{what}");
        }
    }
}
