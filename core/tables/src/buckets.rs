//! A hash table of chains that doubles as it fills.

use crate::chain::{Chain, Chains};
use alloc::vec;
use alloc::vec::Vec;

pub(crate) struct Buckets {
    heads: Vec<Chain>,
    count: usize,
}

impl Buckets {
    pub(crate) const fn new() -> Self {
        Buckets {
            heads: Vec::new(),
            count: 0,
        }
    }

    /// Fibonacci hashing: the high bits of a multiplication spread any pattern.
    #[inline]
    fn bucket(&self, key: u64) -> usize {
        let bits = self.heads.len().trailing_zeros();
        let mixed = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if bits == 0 {
            0
        } else {
            (mixed >> (64 - bits)) as usize
        }
    }

    #[inline]
    pub(crate) fn first(&self, key: u64) -> Option<u16> {
        if self.count == 0 {
            return None;
        }
        self.heads[self.bucket(key)].first()
    }

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

    pub(crate) fn remove(&mut self, chains: &mut Chains, key: u64, slot: u16) {
        let bucket = self.bucket(key);
        chains.remove(&mut self.heads[bucket], slot);
        self.count -= 1;
    }

    /// Slots of one key keep their order, for a bucket is split from its front.
    fn grow(&mut self, chains: &mut Chains, key_of: impl Fn(u16) -> u64) {
        let size = (self.heads.len() * 2).max(8);
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
