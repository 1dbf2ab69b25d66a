//! Keys that wait for patterns, in order of arrival: the other way round from
//! [`MatchList`](crate::MatchList).

use crate::buckets::Buckets;
use crate::chain::{Chain, Chains};
use alloc::vec::Vec;

/// Keys that a search has looked at before it is worth a hash table for those that ignore the same
/// bits.
const LONG: u32 = 64;
/// Such tables of a list, at most.
const MOST_TABLES: usize = 3;

/// A list of keys under slot numbers that the caller chooses.
pub struct Posted {
    keys: Vec<u64>,
    order: Chains,
    all: Chain,
    exact: Table,
    /// For patterns that ignore bits, while the list is long.
    ignoring: Vec<Table>,
    length: usize,
}

/// The keys, hashed by the bits that some patterns compare.
struct Table {
    /// These bits.
    mask: u64,
    chains: Chains,
    buckets: Buckets,
}

impl Table {
    const fn new(mask: u64) -> Self {
        Table {
            mask,
            chains: Chains::new(),
            buckets: Buckets::new(),
        }
    }

    /// Appends the key in `slot`.
    #[inline(always)]
    fn push(&mut self, keys: &[u64], slot: u16) {
        let key_of = |slot: u16| keys[slot as usize] & self.mask;
        let key = key_of(slot);
        self.buckets.insert(&mut self.chains, key, slot, key_of);
    }

    #[inline(always)]
    fn remove(&mut self, keys: &[u64], slot: u16) {
        let key = keys[slot as usize] & self.mask;
        self.buckets.remove(&mut self.chains, key, slot);
    }
}

impl Default for Posted {
    fn default() -> Self {
        Self::new()
    }
}

impl Posted {
    /// A list without keys.
    pub const fn new() -> Self {
        Posted {
            keys: Vec::new(),
            order: Chains::new(),
            all: Chain::EMPTY,
            exact: Table::new(u64::MAX),
            ignoring: Vec::new(),
            length: 0,
        }
    }

    /// How many keys it holds.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends the key in `slot`, which is not in the list.
    pub fn push(&mut self, slot: u16, key: u64) {
        let at = slot as usize;
        if at >= self.keys.len() {
            self.keys.resize(at + 1, 0);
        }
        self.keys[at] = key;
        self.order.push_back(&mut self.all, slot);
        self.exact.push(&self.keys, slot);
        for table in &mut self.ignoring {
            table.push(&self.keys, slot);
        }
        self.length += 1;
    }

    /// Takes the key in `slot`, which is in the list, out of it.
    pub fn remove(&mut self, slot: u16) {
        self.order.remove(&mut self.all, slot);
        self.exact.remove(&self.keys, slot);
        for table in &mut self.ignoring {
            table.remove(&self.keys, slot);
        }
        self.length -= 1;
        if self.is_empty() && !self.ignoring.is_empty() {
            self.ignoring.clear();
        }
    }

    /// The earliest key that fits the pattern and that `accepts`; and how many
    /// keys were looked at.
    pub fn find(
        &mut self,
        bits: u64,
        ignore: u64,
        mut accepts: impl FnMut(u16) -> bool,
    ) -> (Option<u16>, u32) {
        let table = match ignore {
            0 => Some(&self.exact),
            _ => self.ignoring.iter().find(|table| table.mask == !ignore),
        };
        let (mut at, chains) = match table {
            Some(table) => (table.buckets.first(bits & table.mask), &table.chains),
            None => (self.all.first(), &self.order),
        };
        let mut walked = 0;
        let mut found = None;
        while let Some(slot) = at {
            walked += 1;
            if (self.keys[slot as usize] ^ bits) & !ignore == 0 && accepts(slot) {
                found = Some(slot);
                break;
            }
            at = chains.next(slot);
        }
        if table.is_none() && walked >= LONG {
            self.hash_by(!ignore);
        }
        (found, walked)
    }

    /// Has patterns that compare these bits find keys without a walk.
    #[cold]
    fn hash_by(&mut self, mask: u64) {
        if self.ignoring.len() == MOST_TABLES {
            return;
        }
        let mut table = Table::new(mask);
        let mut at = self.all.first();
        while let Some(slot) = at {
            table.push(&self.keys, slot);
            at = self.order.next(slot);
        }
        self.ignoring.push(table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

    #[test]
    fn keys_are_found_in_order_of_arrival() {
        let mut posted = Posted::new();
        for (slot, key) in [(3, 10), (1, 20), (2, 10), (9, 30)] {
            posted.push(slot, key);
        }
        assert_eq!(posted.find(10, 0, |_| true).0, Some(3));
        assert_eq!(posted.find(10, 0, |slot| slot != 3).0, Some(2));
        assert_eq!(posted.find(0, u64::MAX, |slot| slot != 3).0, Some(1));
        posted.remove(3);
        assert_eq!(posted.find(10, 0, |_| true).0, Some(2));
        assert_eq!(posted.find(99, 0, |_| true).0, None);
        assert_eq!(posted.len(), 3);
    }

    #[test]
    fn a_list_without_keys_is_empty_and_finds_nothing() {
        let mut posted = Posted::default();
        assert!(posted.is_empty());
        assert_eq!(posted.find(1, 0, |_| true), (None, 0));
        assert_eq!(posted.find(1, u64::MAX, |_| true), (None, 0));
        posted.push(4, 1);
        assert!(!posted.is_empty());
        posted.remove(4);
        assert_eq!((posted.len(), posted.is_empty()), (0, true));
    }

    #[test]
    fn ignored_bits_are_not_compared_and_all_others_are() {
        let mut posted = Posted::new();
        for (slot, key) in [(0, 0xa0), (1, 0xb1), (2, 0xa1)] {
            posted.push(slot, key);
        }
        assert_eq!(posted.find(0xb0, 0x0f, |_| true), (Some(1), 2));
        assert_eq!(posted.find(0xa1, 0x0f, |_| true), (Some(0), 1));
        assert_eq!(posted.find(0xa1, 0xf0, |_| true), (Some(1), 2));
        assert_eq!(posted.find(0xa1, 0, |_| true), (Some(2), 1));
        assert_eq!(posted.find(0xc0, 0x0f, |_| true), (None, 3));
    }

    #[test]
    fn the_list_finds_what_a_walk_in_order_of_arrival_finds() {
        let mut tables = 0;
        for seed in 0..20 {
            let (mut posted, mut walk, mut state) = (Posted::new(), Vec::new(), seed);
            let mut slots: Vec<u16> = (0..400).collect();
            for step in 0..4_000 {
                // It grows, then shrinks until it is empty.
                let grows = step < 2_000;
                match random(&mut state) % 8 {
                    0..=4 if grows && !slots.is_empty() => {
                        let at = random(&mut state) as usize % slots.len();
                        let (slot, key) = (slots.swap_remove(at), random(&mut state) % 64);
                        posted.push(slot, key);
                        walk.push((slot, key));
                    }
                    0..=5 if !walk.is_empty() => {
                        let at = random(&mut state) as usize % walk.len();
                        let (slot, _) = walk.remove(at);
                        posted.remove(slot);
                        slots.push(slot);
                    }
                    _ => {
                        let bits = random(&mut state) % 64;
                        let ignore = [0, 1, 6, 32, 56, u64::MAX][random(&mut state) as usize % 6];
                        let refuses = random(&mut state) as u16 % 5;
                        let accepts = |slot: u16| slot % 5 != refuses;
                        let fits = |(slot, key): &&(u16, u64)| {
                            (key ^ bits) & !ignore == 0 && accepts(*slot)
                        };
                        let expected = walk.iter().find(fits).map(|(slot, _)| *slot);
                        let (found, _) = posted.find(bits, ignore, accepts);
                        assert_eq!(found, expected, "seed {seed} step {step}");
                    }
                }
                assert_eq!(posted.len(), walk.len());
                assert!(posted.ignoring.len() <= MOST_TABLES);
                tables = tables.max(posted.ignoring.len());
            }
            assert!(posted.is_empty() && posted.ignoring.is_empty());
        }
        assert_eq!(tables, MOST_TABLES);
    }

    /// Receives of MPI: for one source and one tag, and any protocol.
    #[test]
    fn patterns_that_ignore_the_same_bits_walk_a_long_list_once() {
        const PROTOCOL: u64 = 3 << 60;
        let mut posted = Posted::new();
        for slot in 0..10_000 {
            posted.push(slot, 1 << 60 | u64::from(slot));
        }
        assert_eq!(
            posted.find(9_999, PROTOCOL, |_| true),
            (Some(9_999), 10_000)
        );
        for slot in [9_999, 5_000, 3] {
            let (found, walked) = posted.find(slot, PROTOCOL, |_| true);
            assert_eq!(found, Some(slot as u16));
            assert!(walked < 12, "{walked}");
        }
    }
}
