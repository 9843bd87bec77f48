//! The head of a JPEG: size, kind, tables, orientation, colour profile; and which decoder its picture is for.
//! A baseline scan that may shrink goes through `scan`, everything else through the general decoder in `decode`.

mod huffman;
pub(super) mod scan;

use super::{broken, exif};
use crate::base::error::Result;
use huffman::Spec;

/// How the picture is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Process {
    /// Huffman codes, one pass: SOF0 and SOF1.
    Sequential,
    /// Huffman codes, several passes: SOF2.
    Progressive,
    /// Arithmetic codes, lossless, hierarchical: nobody makes them, no decoder here reads them.
    Rare,
}

/// A component as SOF and SOS describe it.
#[derive(Debug, Clone, Default)]
pub(super) struct Component {
    id: u8,
    across: usize,
    down: usize,
    quantisation: usize,
    dc: usize,
    ac: usize,
}

/// Everything that stands before the first scan.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) process: Process,
    pub(super) precision: u8,
    /// 1 to 8, from EXIF.
    pub(super) orientation: u8,
    /// The ICC profile, put together.
    pub(super) profile: Option<Vec<u8>>,
    components: Vec<Component>,
    quantisation: [Option<[u16; 64]>; 4],
    dc: [Option<Spec>; 4],
    ac: [Option<Spec>; 4],
    restart: u16,
    adobe: Option<u8>,
    jfif: bool,
    scanned: usize,
    start: usize,
}

impl Header {
    /// Reads up to the first scan.
    ///
    /// # Errors
    /// `bad_image` where a segment is cut off or makes no sense.
    pub(super) fn read(data: &[u8]) -> Result<Header> {
        let mut header = Header {
            width: 0,
            height: 0,
            process: Process::Rare,
            precision: 0,
            orientation: 1,
            profile: None,
            components: Vec::new(),
            quantisation: [const { None }; 4],
            dc: [const { None }; 4],
            ac: [const { None }; 4],
            restart: 0,
            adobe: None,
            jfif: false,
            scanned: 0,
            start: 0,
        };
        let mut profile: Vec<(u8, &[u8])> = Vec::new();
        let mut at = 2;
        loop {
            let (marker, segment, next) = segment(data, at).ok_or_else(|| broken("the head of the JPEG is cut off"))?;
            at = next;
            match marker {
                0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => header.frame(marker, segment)?,
                0xc4 => header.codes(segment).ok_or_else(|| broken("a code table of the JPEG is broken"))?,
                0xdb => header.quantisation(segment).ok_or_else(|| broken("a quantisation table is broken"))?,
                0xdd => {
                    let restart = segment.first_chunk::<2>().ok_or_else(|| broken("the restart interval is broken"))?;
                    header.restart = u16::from_be_bytes(*restart);
                }
                0xe0 if segment.starts_with(b"JFIF\0") => header.jfif = true,
                0xe1 if segment.starts_with(b"Exif\0") => {
                    header.orientation = exif::orientation(segment.get(6..).unwrap_or_default());
                }
                0xe2 if segment.starts_with(b"ICC_PROFILE\0") && segment.len() > 14 => {
                    profile.push((segment[12], &segment[14..]));
                }
                0xee if segment.starts_with(b"Adobe") && segment.len() >= 12 => header.adobe = Some(segment[11]),
                0xda => {
                    header.scan(segment).ok_or_else(|| broken("the scan of the JPEG is broken"))?;
                    header.start = at;
                    break;
                }
                0xd9 => return Err(broken("the JPEG holds no picture")),
                _ => {}
            }
        }
        if header.components.is_empty() || header.width == 0 || header.height == 0 {
            return Err(broken("the JPEG does not say how large it is"));
        }
        profile.sort_by_key(|(number, _)| *number);
        if !profile.is_empty() {
            header.profile = Some(profile.into_iter().flat_map(|(_, part)| part.iter().copied()).collect());
        }
        Ok(header)
    }

    fn frame(&mut self, marker: u8, segment: &[u8]) -> Result<()> {
        self.process = match marker {
            0xc0 | 0xc1 => Process::Sequential,
            0xc2 => Process::Progressive,
            _ => Process::Rare,
        };
        if !self.components.is_empty() {
            return Err(broken("the JPEG has two frames"));
        }
        let fields = segment.get(..6).ok_or_else(|| broken("the frame of the JPEG is cut off"))?;
        self.precision = fields[0];
        self.height = u32::from(u16::from_be_bytes([fields[1], fields[2]]));
        self.width = u32::from(u16::from_be_bytes([fields[3], fields[4]]));
        for c in segment[6..].chunks_exact(3).take(usize::from(fields[5])) {
            let (across, down) = (usize::from(c[1] >> 4), usize::from(c[1] & 15));
            if !(1..=4).contains(&across) || !(1..=4).contains(&down) || c[2] > 3 {
                return Err(broken("the frame of the JPEG is broken"));
            }
            let quantisation = usize::from(c[2]);
            self.components.push(Component { id: c[0], across, down, quantisation, ..Component::default() });
        }
        if !(1..=4).contains(&self.components.len()) || self.components.len() != usize::from(fields[5]) {
            return Err(broken("the frame of the JPEG is broken"));
        }
        Ok(())
    }

    fn codes(&mut self, mut segment: &[u8]) -> Option<()> {
        while let Some((head, rest)) = segment.split_first_chunk::<17>() {
            let counts: [u8; 16] = *head[1..].first_chunk()?;
            let total: usize = counts.iter().map(|&c| usize::from(c)).sum();
            let symbols = rest.get(..total).filter(|_| total <= 256)?.to_vec();
            let tables = if head[0] >> 4 == 0 { &mut self.dc } else { &mut self.ac };
            *tables.get_mut(usize::from(head[0] & 15))? = Some(Spec { counts, symbols });
            segment = &rest[total..];
        }
        Some(())
    }

    fn quantisation(&mut self, mut segment: &[u8]) -> Option<()> {
        while let Some((&head, rest)) = segment.split_first() {
            let wide = usize::from(head >> 4 != 0) + 1;
            let values = rest.get(..64 * wide)?;
            let table = std::array::from_fn(|i| match wide {
                1 => u16::from(values[i]),
                _ => u16::from_be_bytes([values[2 * i], values[2 * i + 1]]),
            });
            *self.quantisation.get_mut(usize::from(head & 15))? = Some(table);
            segment = &rest[64 * wide..];
        }
        Some(())
    }

    fn scan(&mut self, segment: &[u8]) -> Option<()> {
        let (&count, rest) = segment.split_first()?;
        self.scanned = usize::from(count);
        for (index, choice) in rest.get(..self.scanned * 2)?.chunks_exact(2).enumerate() {
            let component = self.components.iter_mut().find(|c| c.id == choice[0])?;
            (component.dc, component.ac) = (usize::from(choice[1] >> 4), usize::from(choice[1] & 15));
            if component.dc > 3 || component.ac > 3 {
                return None;
            }
            // Where the order differs from the frame's, the general decoder may have it.
            if self.components.get(index).map(|c| c.id) != Some(choice[0]) {
                self.scanned = 0;
                return Some(());
            }
        }
        Some(())
    }

    /// Samples of luma for one of the coarsest component, across and down.
    fn sampling(&self) -> (usize, usize) {
        let most = |of: fn(&Component) -> usize| self.components.iter().map(of).max().unwrap_or(1);
        (most(|c| c.across), most(|c| c.down))
    }

    /// How many components: 1 is grey, 3 colour, 4 print colours.
    pub(super) fn components(&self) -> usize {
        self.components.len()
    }

    /// Where the entropy-coded bytes start, if there is one scan with everything, in YCbCr or grey of 8 bits.
    fn whole_scan(&self) -> Option<usize> {
        let ids: Vec<u8> = self.components.iter().map(|c| c.id).collect();
        let ycc = match ids.len() {
            1 => true,
            3 => self.adobe.map_or(self.jfif || ids != *b"RGB", |transform| transform == 1),
            _ => false,
        };
        let whole = self.scanned == ids.len() && self.process == Process::Sequential && self.precision == 8;
        (ycc && whole).then_some(self.start)
    }

    /// Whether this is a sequential picture with a scan for each component and restarts in them, or one whose colour
    /// is coarser than a quarter, or by more than two down.
    pub(super) fn is_odd(&self) -> bool {
        let (across, down) = self.sampling();
        let scattered = self.process == Process::Sequential && self.scanned != self.components.len();
        across * down > 4 || down > 2 || scattered && self.restart != 0
    }

    /// How many scans there are up to the end marker, which is looked for from `from` on: `None` where there is none,
    /// and the file is cut off.
    pub(super) fn scans_to_end(&self, data: &[u8], from: usize) -> Option<u64> {
        let (mut at, mut scans) = (from, 1);
        loop {
            at += data.get(at..)?.iter().position(|&b| b == 0xff)? + 1;
            match *data.get(at)? {
                0xd9 => return Some(scans),
                // Stuffing, a restart, or filling.
                0 | 0xd0..=0xd7 | 0xff => {}
                // Another segment between scans: what lies in it is no marker.
                marker => {
                    scans += u64::from(marker == 0xda);
                    at = segment(data, at - 1)?.2;
                }
            }
        }
    }

    /// Where the first scan starts.
    pub(super) fn start(&self) -> usize {
        self.start
    }
}

/// The marker at or after `at`, what its segment holds, and where the next one starts.
fn segment(data: &[u8], mut at: usize) -> Option<(u8, &[u8], usize)> {
    while *data.get(at)? != 0xff {
        at += 1;
    }
    while *data.get(at)? == 0xff {
        at += 1;
    }
    let marker = data[at];
    at += 1;
    if matches!(marker, 0 | 0x01 | 0xd0..=0xd9) {
        return Some((marker, &[], at));
    }
    let len = usize::from(u16::from_be_bytes(*data.get(at..)?.first_chunk()?));
    let body = data.get(at + 2..at + len.max(2))?;
    Some((marker, body, at + len.max(2)))
}
