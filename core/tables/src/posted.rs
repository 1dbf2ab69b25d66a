//! Keys that wait for patterns, in order of arrival: the other way round from
//! [`MatchList`](crate::MatchList).

use crate::buckets::Buckets;
use crate::chain::{Chain, Chains};
use alloc::vec::Vec;

/// A list of keys under slot numbers that the caller chooses.
pub struct Posted {
    keys: Vec<u64>,
    order: Chains,
    all: Chain,
    by_key: Chains,
    buckets: Buckets,
    length: usize,
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
            by_key: Chains::new(),
            buckets: Buckets::new(),
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
        let keys = &self.keys;
        self.buckets
            .insert(&mut self.by_key, key, slot, |slot| keys[slot as usize]);
        self.length += 1;
    }

    /// Takes the key in `slot`, which is in the list, out of it.
    pub fn remove(&mut self, slot: u16) {
        self.order.remove(&mut self.all, slot);
        self.buckets
            .remove(&mut self.by_key, self.keys[slot as usize], slot);
        self.length -= 1;
    }

    /// The earliest key that fits the pattern and that `accepts`; and how many
    /// keys were looked at.
    pub fn find(
        &self,
        bits: u64,
        ignore: u64,
        mut accepts: impl FnMut(u16) -> bool,
    ) -> (Option<u16>, u32) {
        let (mut at, chains) = match ignore {
            0 => (self.buckets.first(bits), &self.by_key),
            _ => (self.all.first(), &self.order),
        };
        let mut walked = 0;
        while let Some(slot) = at {
            walked += 1;
            if (self.keys[slot as usize] ^ bits) & !ignore == 0 && accepts(slot) {
                return (Some(slot), walked);
            }
            at = chains.next(slot);
        }
        (None, walked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
