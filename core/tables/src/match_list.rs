//! Entries that wait for keys, in posting order.
//!
//! An entry either names its key exactly, or ignores some of its bits. Exact
//! entries are found by hash, the others by a walk in posting order; of the two
//! candidates the one posted earlier wins. A walk of all entries in posting
//! order would find the same, which the tests check.

use crate::buckets::Buckets;
use crate::chain::{Chain, Chains};
use alloc::vec::Vec;

#[derive(Clone, Copy, Default)]
struct Pattern {
    bits: u64,
    ignore: u64,
    posted: u64,
}

/// A list of patterns under slot numbers that the caller chooses.
pub struct MatchList {
    patterns: Vec<Pattern>,
    chains: Chains,
    exact: Buckets,
    ignoring: Chain,
    posted: u64,
    length: usize,
}

impl Default for MatchList {
    fn default() -> Self {
        Self::new()
    }
}

impl MatchList {
    /// An empty list.
    pub const fn new() -> Self {
        MatchList {
            patterns: Vec::new(),
            chains: Chains::new(),
            exact: Buckets::new(),
            ignoring: Chain::EMPTY,
            posted: 0,
            length: 0,
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends the entry in `slot`, which is not in the list.
    pub fn push(&mut self, slot: u16, bits: u64, ignore: u64) {
        let at = slot as usize;
        if at >= self.patterns.len() {
            self.patterns.resize(at + 1, Pattern::default());
        }
        self.patterns[at] = Pattern {
            bits,
            ignore,
            posted: self.posted,
        };
        self.posted += 1;
        self.length += 1;
        if ignore == 0 {
            let patterns = &self.patterns;
            self.exact.insert(&mut self.chains, bits, slot, |slot| {
                patterns[slot as usize].bits
            });
        } else {
            self.chains.push_back(&mut self.ignoring, slot);
        }
    }

    /// Takes the entry in `slot`, which is in the list, out of it.
    pub fn remove(&mut self, slot: u16) {
        let Pattern { bits, ignore, .. } = self.patterns[slot as usize];
        if ignore == 0 {
            self.exact.remove(&mut self.chains, bits, slot);
        } else {
            self.chains.remove(&mut self.ignoring, slot);
        }
        self.length -= 1;
    }

    /// The earliest entry whose pattern fits `bits` and that `accepts`; and how
    /// many entries were looked at.
    #[inline]
    pub fn find(&self, bits: u64, mut accepts: impl FnMut(u16) -> bool) -> (Option<u16>, u32) {
        let mut walked = 0;
        let mut found = None;
        let mut before = u64::MAX;
        let mut at = self.exact.first(bits);
        while let Some(slot) = at {
            walked += 1;
            let pattern = &self.patterns[slot as usize];
            if pattern.bits == bits && accepts(slot) {
                (found, before) = (Some(slot), pattern.posted);
                break;
            }
            at = self.chains.next(slot);
        }
        at = self.ignoring.first();
        while let Some(slot) = at {
            let pattern = &self.patterns[slot as usize];
            if pattern.posted > before {
                break;
            }
            walked += 1;
            if (pattern.bits ^ bits) & !pattern.ignore == 0 && accepts(slot) {
                found = Some(slot);
                break;
            }
            at = self.chains.next(slot);
        }
        (found, walked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The oracle: a walk in posting order.
    #[derive(Default)]
    struct Walk(Vec<(u16, u64, u64)>);

    impl Walk {
        fn find(&self, bits: u64, accepts: impl Fn(u16) -> bool) -> Option<u16> {
            self.0
                .iter()
                .find(|(slot, b, ignore)| (b ^ bits) & !ignore == 0 && accepts(*slot))
                .map(|(slot, ..)| *slot)
        }
    }

    /// A small generator, so that a failure can be repeated from its seed.
    fn random(state: &mut u64) -> u64 {
        *state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        *state >> 33
    }

    #[test]
    fn the_list_finds_what_a_walk_in_posting_order_finds() {
        for seed in 0..200u64 {
            let (mut list, mut walk, mut state) = (MatchList::new(), Walk::default(), seed);
            let mut slots: Vec<u16> = (0..64).collect();
            for step in 0..400 {
                let bits = random(&mut state) % 6;
                match random(&mut state) % 3 {
                    0 if !slots.is_empty() => {
                        let at = random(&mut state) as usize % slots.len();
                        let slot = slots.swap_remove(at);
                        let ignore = [0, 0, 1, u64::MAX][random(&mut state) as usize % 4];
                        list.push(slot, bits, ignore);
                        walk.0.push((slot, bits, ignore));
                    }
                    1 if !walk.0.is_empty() => {
                        let at = random(&mut state) as usize % walk.0.len();
                        let (slot, ..) = walk.0.remove(at);
                        list.remove(slot);
                        slots.push(slot);
                    }
                    _ => {
                        let refuses = random(&mut state) as u16 % 5;
                        let accepts = |slot: u16| slot % 5 != refuses;
                        assert_eq!(
                            list.find(bits, accepts).0,
                            walk.find(bits, accepts),
                            "seed {seed} step {step}"
                        );
                    }
                }
                assert_eq!(list.len(), walk.0.len());
            }
        }
    }
}
