//! Entries that wait for keys, in posting order.
//!
//! An entry either names its key exactly, or ignores some of its bits. Exact
//! entries are found by hash, the others by a walk in posting order; of the two
//! candidates the one posted earlier wins. A walk of all entries in posting
//! order would find the same, which the tests check.

use crate::buckets::Buckets;
use crate::chain::Chains;
use alloc::vec::Vec;

#[derive(Clone, Copy, Default)]
struct Pattern {
    bits: u64,
    ignore: u64,
    posted: u64,
}

/// A pattern that ignores bits, or the hole that it left.
#[derive(Clone, Copy)]
struct Ignoring {
    bits: u64,
    /// Bits that are compared: the complement of the ignore bits.
    mask: u64,
    posted: u64,
    slot: u16,
    live: bool,
}

/// A list of patterns under slot numbers that the caller chooses.
pub struct MatchList {
    patterns: Vec<Pattern>,
    chains: Chains,
    exact: Buckets,
    /// In posting order and side by side, so that a walk is quick.
    ignoring: Vec<Ignoring>,
    holes: usize,
    posted: u64,
    length: usize,
}

impl Default for MatchList {
    fn default() -> Self {
        Self::new()
    }
}

impl MatchList {
    /// A list without entries.
    pub const fn new() -> Self {
        MatchList {
            patterns: Vec::new(),
            chains: Chains::new(),
            exact: Buckets::new(),
            ignoring: Vec::new(),
            holes: 0,
            posted: 0,
            length: 0,
        }
    }

    /// How many entries it holds.
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The match bits and the ignore bits of the entry in `slot`, which is in the list.
    pub(crate) fn pattern(&self, slot: u16) -> (u64, u64) {
        let pattern = &self.patterns[slot as usize];
        (pattern.bits, pattern.ignore)
    }

    /// Appends the entry in `slot`, which is not in the list.
    #[inline(always)]
    pub fn push(&mut self, slot: u16, bits: u64, ignore: u64) {
        let posted = self.posted;
        self.posted += 1;
        self.length += 1;
        let pattern = Pattern {
            bits,
            ignore,
            posted,
        };
        match self.patterns.get_mut(slot as usize) {
            Some(place) => *place = pattern,
            None => self.note_first(slot, pattern),
        }
        if ignore == 0 {
            let patterns = &self.patterns;
            self.exact.insert(&mut self.chains, bits, slot, |slot| {
                patterns[slot as usize].bits
            });
        } else {
            self.ignoring.push(Ignoring {
                bits: bits & !ignore,
                mask: !ignore,
                posted,
                slot,
                live: true,
            });
        }
    }

    /// Notes the pattern of a slot beyond all that the list has held.
    #[cold]
    #[inline(never)]
    fn note_first(&mut self, slot: u16, pattern: Pattern) {
        self.patterns.resize(slot as usize, Pattern::default());
        self.patterns.push(pattern);
    }

    /// Puts the entry in `slot`, which is not in the list, at the place in posting order
    /// that `posted` names; no entry of the list has that number. Not to be mixed with
    /// [`push`](Self::push).
    pub(crate) fn insert(&mut self, slot: u16, bits: u64, ignore: u64, posted: u64) {
        let pattern = Pattern {
            bits,
            ignore,
            posted,
        };
        match self.patterns.get_mut(slot as usize) {
            Some(place) => *place = pattern,
            None => self.note_first(slot, pattern),
        }
        self.length += 1;
        if ignore == 0 {
            let patterns = &self.patterns;
            let key_of = |slot: u16| patterns[slot as usize].bits;
            let follows = |slot: u16| patterns[slot as usize].posted > posted;
            self.exact
                .insert_in_order(&mut self.chains, bits, slot, key_of, follows);
            return;
        }
        let entry = Ignoring {
            bits: bits & !ignore,
            mask: !ignore,
            posted,
            slot,
            live: true,
        };
        match self.ignoring_at(posted) {
            // A hole may bear the number of an earlier entry.
            Ok(hole) => {
                self.ignoring[hole] = entry;
                self.holes -= 1;
            }
            Err(place) => self.ignoring.insert(place, entry),
        }
    }

    /// The number that the entry in `slot`, which is in the list, has in posting order.
    pub(crate) fn posted(&self, slot: u16) -> u64 {
        self.patterns[slot as usize].posted
    }

    /// Gives the entries new numbers: all of them, in posting order.
    pub(crate) fn renumber(&mut self, numbers: impl Iterator<Item = (u16, u64)>) {
        for (slot, posted) in numbers {
            self.patterns[slot as usize].posted = posted;
        }
        self.ignoring.retain(|pattern| pattern.live);
        self.holes = 0;
        for pattern in &mut self.ignoring {
            pattern.posted = self.patterns[pattern.slot as usize].posted;
        }
    }

    /// Takes the entry in `slot`, which is in the list, out of it.
    #[inline(always)]
    pub fn remove(&mut self, slot: u16) {
        let Pattern {
            bits,
            ignore,
            posted,
        } = self.patterns[slot as usize];
        if ignore == 0 {
            self.exact.remove(&mut self.chains, bits, slot);
        } else {
            self.leave_hole(posted);
        }
        self.length -= 1;
    }

    fn ignoring_at(&self, posted: u64) -> Result<usize, usize> {
        self.ignoring
            .binary_search_by_key(&posted, |pattern| pattern.posted)
    }

    /// Holes are filled when there are more of them than patterns.
    #[inline(never)]
    fn leave_hole(&mut self, posted: u64) {
        if let Ok(at) = self.ignoring_at(posted) {
            self.ignoring[at].live = false;
            self.holes += 1;
        }
        if self.holes * 2 > self.ignoring.len() {
            self.ignoring.retain(|pattern| pattern.live);
            self.holes = 0;
        }
    }

    /// The entry that [`find`](Self::find) looks at first, if that one fits `bits` and none that
    /// ignores bits may come before it.
    #[inline(always)]
    pub(crate) fn first(&self, bits: u64) -> Option<u16> {
        let first = self.exact.first(bits).filter(|_| self.ignoring.is_empty());
        first.filter(|slot| self.patterns[*slot as usize].bits == bits)
    }

    /// The earliest entry whose pattern fits `bits` and that `accepts`; and how
    /// many entries were looked at.
    #[inline(always)]
    pub fn find(&self, bits: u64, mut accepts: impl FnMut(u16) -> bool) -> (Option<u16>, u32) {
        match self.only_candidate(bits).filter(|slot| accepts(*slot)) {
            Some(slot) => (Some(slot), 1),
            None => self.walk(bits, accepts),
        }
    }

    /// The entry that a [walk](Self::walk) looks at first, if it fits and is the earliest for
    /// certain: all entries name their key exactly, or all ignore bits.
    #[inline(always)]
    fn only_candidate(&self, bits: u64) -> Option<u16> {
        match self.ignoring.first() {
            None => self.first(bits),
            Some(first) if self.exact.is_empty() => {
                (first.live && bits & first.mask == first.bits).then_some(first.slot)
            }
            Some(_) => None,
        }
    }

    /// As [`find`](Self::find), a function of its own that a search seldom needs.
    #[inline(never)]
    fn walk(&self, bits: u64, mut accepts: impl FnMut(u16) -> bool) -> (Option<u16>, u32) {
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
        for pattern in &self.ignoring {
            if pattern.posted > before {
                break;
            }
            walked += u32::from(pattern.live);
            if bits & pattern.mask == pattern.bits && pattern.live && accepts(pattern.slot) {
                found = Some(pattern.slot);
                break;
            }
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

    #[test]
    fn a_list_says_how_many_entries_it_holds() {
        let mut list = MatchList::default();
        assert!(list.is_empty());
        assert_eq!(list.find(7, |_| true), (None, 0));
        list.push(3, 7, 0);
        list.push(4, 7, 1);
        assert_eq!((list.len(), list.is_empty()), (2, false));
        list.remove(4);
        list.remove(3);
        assert_eq!((list.len(), list.is_empty()), (0, true));
    }

    #[test]
    fn every_entry_that_is_looked_at_is_counted_once() {
        let mut list = MatchList::new();
        list.push(0, 8, u64::MAX - 15);
        list.push(1, 5, 0);
        list.push(2, 5, 0);
        list.push(3, 0, u64::MAX);
        assert_eq!(
            list.find(5, |_| true),
            (Some(1), 2),
            "and slot 0, posted earlier"
        );
        assert_eq!(list.find(5, |slot| slot == 2), (Some(2), 3));
        assert_eq!(list.find(5, |slot| slot == 3), (Some(3), 4));
        assert_eq!(list.find(8, |_| true), (Some(0), 1));
        list.remove(0);
        assert_eq!(list.find(8, |_| true), (Some(3), 1), "a hole costs nothing");
    }

    #[test]
    fn holes_are_filled_once_they_are_the_majority() {
        let mut list = MatchList::new();
        for slot in 0..8 {
            list.push(slot, 0, u64::MAX);
        }
        for slot in 0..4 {
            list.remove(slot);
        }
        assert_eq!((list.ignoring.len(), list.holes), (8, 4));
        list.remove(4);
        assert_eq!((list.ignoring.len(), list.holes), (3, 0));
        assert_eq!(list.find(1, |_| true), (Some(5), 1));
        list.remove(6);
        assert_eq!((list.ignoring.len(), list.holes), (3, 1));
    }

    #[test]
    fn bits_that_are_ignored_may_be_set_in_the_pattern() {
        let mut list = MatchList::new();
        list.push(0, 0xff, 0x0f);
        assert_eq!(list.find(0xf0, |_| true).0, Some(0));
        assert_eq!(list.find(0xf9, |_| true).0, Some(0));
        assert_eq!(list.find(0xe0, |_| true).0, None);
    }
}
