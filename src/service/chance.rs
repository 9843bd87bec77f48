//! Random numbers of the operating system, without bias. What a script draws may be a password, so nothing here is guessable.

use super::digest::random_bytes;
use crate::base::error::{Error, Result};

/// Bytes fetched from the system at once.
const BATCH: usize = 4096;

/// A source of random numbers that asks the system for as many bytes as a draw is likely to need.
pub struct Chance {
    bytes: Vec<u8>,
    next: usize,
    batch: usize,
}

impl Chance {
    /// A source for about `draws` draws.
    #[must_use]
    pub fn for_draws(draws: usize) -> Self {
        Chance { bytes: Vec::new(), next: 0, batch: draws.saturating_mul(8).clamp(8, BATCH) }
    }

    fn word(&mut self) -> Result<u64> {
        if self.next + 8 > self.bytes.len() {
            self.bytes = random_bytes(self.batch)?;
            self.next = 0;
        }
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[self.next..self.next + 8]);
        self.next += 8;
        Ok(u64::from_le_bytes(word))
    }

    /// A number below `bound`, each equally likely.
    fn below(&mut self, bound: u64) -> Result<u64> {
        // The last, incomplete run of `bound` numbers would favour the small ones, so it is drawn again.
        let excess = (u64::MAX % bound + 1) % bound;
        loop {
            let word = self.word()?;
            if word <= u64::MAX - excess {
                return Ok(word % bound);
            }
        }
    }

    /// An integer from `low` to `high`, both included.
    ///
    /// # Errors
    /// `invalid_arguments` where `low` is above `high`; `internal` where the system has no randomness.
    pub fn integer(&mut self, low: i64, high: i64) -> Result<i64> {
        if low > high {
            return Err(
                Error::invalid(format!("nothing lies between {low} and {high}")).hint("the lower bound comes first")
            );
        }
        let offset = match high.abs_diff(low).checked_add(1) {
            Some(span) => self.below(span)?,
            None => self.word()?,
        };
        Ok(low.wrapping_add_unsigned(offset))
    }

    /// A number from 0.0 up to but not including 1.0, in steps of 2^-53.
    ///
    /// # Errors
    /// `internal` where the system has no randomness.
    pub fn float(&mut self) -> Result<f64> {
        #[allow(clippy::cast_precision_loss)] // 53 bits fit exactly
        let share = (self.word()? >> 11) as f64;
        Ok(share / (1_u64 << 53) as f64)
    }

    /// A position in something of `len` entries.
    ///
    /// # Errors
    /// `invalid_arguments` for an empty thing; `internal` where the system has no randomness.
    pub fn index(&mut self, len: usize) -> Result<usize> {
        if len == 0 {
            return Err(Error::invalid("nothing can be picked from an empty array"));
        }
        Ok(usize::try_from(self.below(len as u64)?).unwrap_or(0))
    }

    /// Puts `items` into a random order, each order equally likely.
    ///
    /// # Errors
    /// `internal` where the system has no randomness.
    pub fn shuffle<T>(&mut self, items: &mut [T]) -> Result<()> {
        for last in (1..items.len()).rev() {
            let other = self.index(last + 1)?;
            items.swap(last, other);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn integers_reach_both_bounds_and_nothing_beyond() {
        let mut chance = Chance::for_draws(1000);
        let mut seen = [0; 6];
        for _ in 0..1000 {
            seen[usize::try_from(chance.integer(1, 6).unwrap() - 1).unwrap()] += 1;
        }
        assert!(seen.iter().all(|n| *n > 50), "{seen:?}");
        assert_eq!(chance.integer(7, 7).unwrap(), 7);
        assert_eq!(chance.integer(i64::MIN, i64::MIN).unwrap(), i64::MIN);
        chance.integer(i64::MIN, i64::MAX).unwrap();
        assert!(chance.integer(2, 1).is_err());
    }

    #[test]
    fn floats_stay_below_one() {
        let mut chance = Chance::for_draws(1);
        for _ in 0..1000 {
            assert!((0.0..1.0).contains(&chance.float().unwrap()));
        }
    }

    #[test]
    fn a_shuffle_keeps_every_entry() {
        let mut items: Vec<usize> = (0..1000).collect();
        let mut chance = Chance::for_draws(items.len());
        chance.shuffle(&mut items).unwrap();
        assert_ne!(items, (0..1000).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..1000).collect::<Vec<_>>());
        chance.shuffle::<usize>(&mut []).unwrap();
        assert!(chance.index(0).is_err());
    }
}
