//! A hash table of chains that doubles as it fills.

use crate::chain::{Chain, Chains};
use alloc::vec;
use alloc::vec::Vec;

pub(crate) struct Buckets {
    /// None, or a power of two from [`LEAST`] on.
    heads: Vec<Chain>,
    /// Bits of a hash that don't choose the bucket; 0 without any.
    shift: u32,
    count: usize,
}

/// Buckets of a table with slots, at least.
const LEAST: usize = 8;

impl Buckets {
    pub(crate) const fn new() -> Self {
        Buckets {
            heads: Vec::new(),
            shift: 0,
            count: 0,
        }
    }

    /// Fibonacci hashing: the high bits of a multiplication spread any pattern.
    #[inline(always)]
    fn bucket(&self, key: u64) -> usize {
        let mixed = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> self.shift) as usize
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline(always)]
    pub(crate) fn first(&self, key: u64) -> Option<u16> {
        self.heads.get(self.bucket(key))?.first()
    }

    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        chains: &mut Chains,
        key: u64,
        slot: u16,
        key_of: impl Fn(u16) -> u64,
    ) {
        if self.count >= self.heads.len() {
            self.grow(chains, key_of);
        }
        let bucket = self.bucket(key);
        chains.push_back(&mut self.heads[bucket], slot);
        self.count += 1;
    }

    /// As [`insert`](Self::insert), behind all slots of its bucket but those that `follows`
    /// says come after it.
    pub(crate) fn insert_in_order(
        &mut self,
        chains: &mut Chains,
        key: u64,
        slot: u16,
        key_of: impl Fn(u16) -> u64,
        follows: impl Fn(u16) -> bool,
    ) {
        if self.count >= self.heads.len() {
            self.grow(chains, key_of);
        }
        let bucket = self.bucket(key);
        let chain = &mut self.heads[bucket];
        let mut next = chain.first().filter(|first| follows(*first));
        if next.is_none() {
            let mut at = chain.last();
            while let Some(follower) = at.filter(|slot| follows(*slot)) {
                next = Some(follower);
                at = chains.previous(follower);
            }
        }
        chains.insert_before(chain, slot, next);
        self.count += 1;
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, chains: &mut Chains, key: u64, slot: u16) {
        let bucket = self.bucket(key);
        chains.remove(&mut self.heads[bucket], slot);
        self.count -= 1;
    }

    /// Slots of one key keep their order, for a bucket is split from its front.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, chains: &mut Chains, key_of: impl Fn(u16) -> u64) {
        let size = (self.heads.len() * 2).max(LEAST);
        self.shift = u64::BITS - size.trailing_zeros();
        let old = core::mem::replace(&mut self.heads, vec![Chain::EMPTY; size]);
        for chain in old {
            let mut at = chain.first();
            while let Some(slot) = at {
                at = chains.next(slot);
                let bucket = self.bucket(key_of(slot));
                chains.push_back(&mut self.heads[bucket], slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buckets with these keys, in slots of the same numbers.
    fn filled(keys: &[u64]) -> (Buckets, Chains) {
        let (mut buckets, mut chains) = (Buckets::new(), Chains::new());
        for (slot, key) in keys.iter().enumerate() {
            buckets.insert(&mut chains, *key, slot as u16, |slot| keys[slot as usize]);
        }
        (buckets, chains)
    }

    fn longest_chain(keys: &[u64]) -> usize {
        let (buckets, chains) = filled(keys);
        let chain = |key: &u64| {
            core::iter::successors(buckets.first(*key), |slot| chains.next(*slot)).count()
        };
        keys.iter().map(chain).max().unwrap_or(0)
    }

    #[test]
    fn the_patterns_that_programs_use_as_match_bits_spread_over_the_buckets() {
        let numbers = 0..1000u64;
        for keys in [
            numbers.clone().collect::<Vec<_>>(),
            numbers.clone().map(|n| n << 16).collect(),
            numbers.clone().map(|n| n << 32).collect(),
            numbers.clone().map(|n| n << 48).collect(),
            numbers.clone().map(|n| 0xffff_ffff << 32 | n).collect(),
            numbers.clone().map(|n| n << 32 | 0xffff_ffff).collect(),
            numbers.map(u64::reverse_bits).collect(),
        ] {
            let longest = longest_chain(&keys);
            assert!(longest <= 12, "{longest} of {:#x}, …", keys[1]);
        }
    }

    #[test]
    fn there_are_as_many_buckets_as_keys_and_at_most_twice_as_many() {
        for count in [1, 8, 9, 16, 17, 500] {
            let keys: Vec<u64> = (0..count).collect();
            let (buckets, _) = filled(&keys);
            let wanted = (count as usize).next_power_of_two().max(8);
            assert_eq!((buckets.heads.len(), buckets.count), (wanted, keys.len()));
        }
    }

    #[test]
    fn keys_of_one_bucket_keep_their_order_while_it_is_split() {
        let keys: Vec<u64> = (0..200).map(|slot| slot % 5).collect();
        let (buckets, chains) = filled(&keys);
        for key in 0..5 {
            let chain = core::iter::successors(buckets.first(key), |slot| chains.next(*slot));
            let found: Vec<u16> = chain.filter(|slot| keys[*slot as usize] == key).collect();
            assert!(found.is_sorted() && found.len() == 40, "{key}: {found:?}");
        }
    }

    #[test]
    fn an_empty_table_has_no_first_slot() {
        let (mut buckets, mut chains) = filled(&[7]);
        assert_eq!(buckets.first(7), Some(0));
        buckets.remove(&mut chains, 7, 0);
        assert_eq!((buckets.first(7), buckets.count), (None, 0));
        assert_eq!(Buckets::new().first(7), None);
    }
}
