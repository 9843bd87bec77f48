//! The bits and codes of a baseline JPEG scan: a reader that takes out stuffed bytes, and code tables built for speed.
//! It knows nothing of pixels. Whatever the bytes say, it neither panics nor reads beyond them.

/// Bits that one look into a code table spends.
const LOOK: u32 = 10;
/// Bits that one look into the table for skipping spends; several codes may lie within.
const SKIP: u32 = 14;
/// Marks an entry of the skipping table whose last code ends the block.
const ENDS: u16 = 1 << 15;

/// A Huffman table as a DHT segment gives it.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    /// How many codes there are of 1 to 16 bits.
    pub(super) counts: [u8; 16],
    /// The symbols in the order of their codes.
    pub(super) symbols: Vec<u8>,
}

/// A reader of the entropy-coded bytes. Past a marker or the end it gives zeros and counts them.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    data: &'a [u8],
    pos: usize,
    /// The next bits, the first at the top.
    acc: u64,
    count: u32,
    padded: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(data: &'a [u8], pos: usize) -> Self {
        Bits { data, pos, acc: 0, count: 0, padded: 0 }
    }

    /// Makes sure that at least 48 bits can be looked at.
    #[inline(always)]
    fn refill(&mut self) {
        if self.count >= 48 {
            return;
        }
        if let Some(next) = self.data.get(self.pos..).and_then(|rest| rest.first_chunk::<8>()) {
            let next = u64::from_be_bytes(*next);
            let inverse = !next;
            // No byte is 0xff: neither stuffing nor a marker, so all of them can be taken as they are.
            if inverse.wrapping_sub(0x0101_0101_0101_0101) & next & 0x8080_8080_8080_8080 == 0 {
                self.acc |= next >> self.count;
                let bytes = (63 - self.count) >> 3;
                self.pos += bytes as usize;
                self.count += bytes * 8;
                return;
            }
        }
        *self = self.refilled_by_byte();
    }

    /// By value, so that a reader in a loop can stay in registers.
    #[inline(never)]
    fn refilled_by_byte(mut self) -> Self {
        // What a quick refill left below the count is the same bits again, except before a marker: there it must go.
        self.acc &= !(u64::MAX.checked_shr(self.count).unwrap_or(0));
        while self.count <= 56 {
            let byte = match self.data.get(self.pos) {
                Some(0xff) => match self.data.get(self.pos + 1) {
                    Some(0) => {
                        self.pos += 2;
                        0xff
                    }
                    Some(0xff) => {
                        self.pos += 1;
                        continue;
                    }
                    _ => {
                        self.padded += 8;
                        0
                    }
                },
                Some(&byte) => {
                    self.pos += 1;
                    byte
                }
                None => {
                    self.padded += 8;
                    0
                }
            };
            self.acc |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
        self
    }

    #[inline(always)]
    fn peek(&self, bits: u32) -> usize {
        (self.acc >> (64 - bits)) as usize
    }

    #[inline(always)]
    fn consume(&mut self, bits: u32) {
        self.acc <<= bits;
        self.count -= bits;
    }

    /// The next `size` bits (1 to 15) as the signed number that JPEG means by them.
    #[inline(always)]
    fn signed(&mut self, size: u32) -> i32 {
        let bits = self.peek(size) as i32;
        self.consume(size);
        extend(bits, size)
    }

    /// Whether more was read than there was.
    pub(super) fn overran(&self) -> bool {
        self.padded > self.count
    }

    /// How far was read.
    pub(super) fn position(&self) -> usize {
        self.pos
    }

    /// Goes on behind the restart marker of this number (modulo 8); false where another or none stands.
    pub(super) fn restart(&mut self, number: usize) -> bool {
        if self.overran() {
            return false;
        }
        (self.acc, self.count, self.padded) = (0, 0, 0);
        while let Some(&[first, second]) = self.data.get(self.pos..).and_then(|rest| rest.first_chunk::<2>()) {
            if first == 0xff && (0xd0..=0xd7).contains(&second) {
                self.pos += 2;
                return usize::from(second & 7) == number & 7;
            }
            if first == 0xff && second != 0 && second != 0xff {
                return false;
            }
            self.pos += 1;
        }
        false
    }
}

#[inline(always)]
fn extend(bits: i32, size: u32) -> i32 {
    if bits < 1 << (size - 1) { bits - (1 << size) + 1 } else { bits }
}

/// Codes to symbols.
struct Codes {
    /// By the next `LOOK` bits: length and symbol, or zero for a longer code.
    look: Box<[u16; 1 << LOOK]>,
    /// By length: one past the last code of this length, put to the top of 16 bits.
    limit: [u32; 17],
    /// By length: what to add to a code to get its symbol's place.
    offset: [i32; 17],
    symbols: Vec<u8>,
}

impl Codes {
    /// `None` where the counts do not make a prefix code.
    fn new(spec: &Spec) -> Option<Codes> {
        let mut look = Box::new([0u16; 1 << LOOK]);
        let (mut limit, mut offset) = ([0u32; 17], [0i32; 17]);
        let (mut code, mut place) = (0u32, 0usize);
        for len in 1..=16u32 {
            let count = u32::from(spec.counts[len as usize - 1]);
            offset[len as usize] = place as i32 - code as i32;
            for _ in 0..count {
                let symbol = *spec.symbols.get(place)?;
                if code >= 1 << len {
                    return None;
                }
                if len <= LOOK {
                    let first = (code << (LOOK - len)) as usize;
                    look[first..first + (1 << (LOOK - len))].fill((len as u16) << 8 | u16::from(symbol));
                }
                code += 1;
                place += 1;
            }
            limit[len as usize] = code << (16 - len);
            code <<= 1;
        }
        Some(Codes { look, limit, offset, symbols: spec.symbols.clone() })
    }

    #[inline(always)]
    fn next(&self, bits: &mut Bits) -> Option<u8> {
        let entry = self.look[bits.peek(LOOK)];
        if entry != 0 {
            bits.consume(u32::from(entry >> 8));
            return Some(entry as u8);
        }
        let (symbol, len) = self.long(bits.peek(16) as u32)?;
        bits.consume(len);
        Some(symbol)
    }

    /// The symbol and length of a code that is longer than a look.
    #[inline(never)]
    fn long(&self, ahead: u32) -> Option<(u8, u32)> {
        let len = (LOOK + 1..=16).find(|&len| ahead < self.limit[len as usize])?;
        let place = (ahead >> (16 - len)) as i32 + self.offset[len as usize];
        Some((*self.symbols.get(usize::try_from(place).ok()?)?, len))
    }
}

/// The table of the first coefficient of a block.
pub(super) struct Dc(Codes);

impl Dc {
    pub(super) fn new(spec: &Spec) -> Option<Dc> {
        Codes::new(spec).map(Dc)
    }

    /// The difference to the block before, or `None` for a code that does not exist.
    #[inline(always)]
    pub(super) fn difference(&self, bits: &mut Bits) -> Option<i32> {
        bits.refill();
        match u32::from(self.0.next(bits)?) {
            0 => Some(0),
            size @ 1..=11 => Some(bits.signed(size)),
            _ => None,
        }
    }
}

/// The table of the other coefficients.
pub(super) struct Ac {
    codes: Codes,
    /// By the next `LOOK` bits, where code and number lie within: number, run and length; or zero.
    value: Box<[i32; 1 << LOOK]>,
    /// By the next `SKIP` bits: how many bits and coefficients the whole codes in them take; or zero.
    skip: Box<[u16; 1 << SKIP]>,
}

impl Ac {
    pub(super) fn new(spec: &Spec) -> Option<Ac> {
        let codes = Codes::new(spec)?;
        let value: Vec<i32> = (0..1u32 << LOOK)
            .map(|window| {
                let entry = codes.look[window as usize];
                let (len, run, size) = (u32::from(entry >> 8), i32::from(entry >> 4 & 15), u32::from(entry & 15));
                if len == 0 || len + size > LOOK {
                    return 0;
                }
                let number = match size {
                    0 => 0,
                    _ => extend((window >> (LOOK - len - size) & ((1 << size) - 1)) as i32, size),
                };
                number << 16 | run << 8 | (len + size) as i32
            })
            .collect();
        let skip: Vec<u16> = (0..1u32 << SKIP).map(|window| skips(&codes, window)).collect();
        // Arrays, so that no look-up needs a check.
        let (value, skip) = (value.into_boxed_slice().try_into().ok()?, skip.into_boxed_slice().try_into().ok()?);
        Some(Ac { codes, value, skip })
    }

    /// Reads a block's coefficients from the second on and hands those up to place `last` of the zigzag to `put`;
    /// the others are skipped, several at a time. `None` where the bits are no block.
    #[inline(always)]
    pub(super) fn block(&self, bits: &mut Bits, last: usize, mut put: impl FnMut(usize, i32)) -> Option<()> {
        let mut at = 1;
        while at <= last {
            bits.refill();
            let entry = self.value[bits.peek(LOOK)];
            let (number, run);
            if entry != 0 {
                bits.consume((entry & 0xff) as u32);
                (number, run) = (entry >> 16, (entry >> 8 & 0xff) as usize);
            } else {
                let symbol = self.codes.next(bits)?;
                let size = u32::from(symbol & 15);
                run = usize::from(symbol >> 4);
                number = if size == 0 { 0 } else { bits.signed(size) };
            }
            if number == 0 && run != 15 {
                return Some(());
            }
            at += run;
            if at > 63 {
                return None;
            }
            if at <= last {
                put(at, number);
            }
            at += 1;
        }
        while at < 64 {
            bits.refill();
            let entry = self.skip[bits.peek(SKIP)];
            let next = at + usize::from(entry & 0x7f);
            if entry != 0 && next + usize::from(entry >> 15) <= 64 {
                bits.consume(u32::from(entry >> 8 & 0x1f));
                if entry & ENDS != 0 {
                    return Some(());
                }
                at = next;
                continue;
            }
            let symbol = self.codes.next(bits)?;
            let (run, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
            if size == 0 && run != 15 {
                return Some(());
            }
            bits.consume(size);
            at += run + 1;
        }
        (at == 64).then_some(())
    }
}

/// What the whole codes within a window of `SKIP` bits take: bits at 8, coefficients at 0, `ENDS` after an end of block.
fn skips(codes: &Codes, window: u32) -> u16 {
    let (mut used, mut coefficients) = (0u32, 0u16);
    loop {
        let rest = window << used & ((1 << SKIP) - 1);
        let entry = codes.look[(rest >> (SKIP - LOOK)) as usize];
        let (len, run, size) = (u32::from(entry >> 8), entry >> 4 & 15, u32::from(entry & 15));
        if len == 0 || used + len + size > SKIP {
            break;
        }
        let ends = size == 0 && run != 15;
        if !ends && coefficients + run + 1 > 64 {
            break;
        }
        used += len + size;
        if ends {
            return ENDS | (used as u16) << 8 | coefficients;
        }
        coefficients += run + 1;
    }
    (used as u16) << 8 | coefficients
}
