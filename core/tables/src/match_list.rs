//! Entries that wait for keys, in posting order.
//!
//! An entry compares all bits of a key, or ignores some. Entries that compare the same bits share a
//! hash table; of the candidates that the tables have for a key, the one posted earliest wins. A
//! walk of all entries in posting order would find the same, which the tests check.

use crate::buckets::Buckets;
use crate::chain::Chains;
use alloc::vec::Vec;

/// Groups of a list, at most. Programs ignore few different sets of bits: MPI needs four, for one
/// or any source, and one or any tag.
const MOST_GROUPS: usize = 8;

#[derive(Clone, Copy, Default)]
struct Pattern {
    bits: u64,
    ignore: u64,
    posted: u64,
    /// Where its group is.
    group: usize,
}

/// Entries in a hash table by some of the bits that each of them compares.
struct Group {
    /// These bits.
    mask: u64,
    buckets: Buckets,
}

impl Group {
    const fn new(mask: u64) -> Self {
        Group {
            mask,
            buckets: Buckets::new(),
        }
    }

    /// The earliest entry that may fit a key.
    #[inline(always)]
    fn first(&self, bits: u64) -> Option<u16> {
        self.buckets.first(bits & self.mask)
    }
}

/// A list of patterns under slot numbers that the caller chooses.
pub struct MatchList {
    patterns: Vec<Pattern>,
    chains: Chains,
    /// By the bits that entries compare. The last of [`MOST_GROUPS`] holds all that have no group of
    /// their own.
    groups: Vec<Group>,
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
            groups: Vec::new(),
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
        let group = self.note(slot, bits, ignore, posted);
        let (patterns, group) = (&self.patterns, &mut self.groups[group]);
        let mask = group.mask;
        let key_of = |slot: u16| patterns[slot as usize].bits & mask;
        let buckets = &mut group.buckets;
        buckets.insert(&mut self.chains, bits & mask, slot, key_of);
    }

    /// Puts the entry in `slot`, which is not in the list, at the place in posting order
    /// that `posted` names; no entry of the list has that number. Not to be mixed with
    /// [`push`](Self::push).
    pub(crate) fn insert(&mut self, slot: u16, bits: u64, ignore: u64, posted: u64) {
        let group = self.note(slot, bits, ignore, posted);
        let (patterns, group) = (&self.patterns, &mut self.groups[group]);
        let mask = group.mask;
        let key_of = |slot: u16| patterns[slot as usize].bits & mask;
        let follows = |slot: u16| patterns[slot as usize].posted > posted;
        let buckets = &mut group.buckets;
        buckets.insert_in_order(&mut self.chains, bits & mask, slot, key_of, follows);
    }

    /// Notes the pattern of an entry that is about to be put into its group; returns that.
    #[inline(always)]
    fn note(&mut self, slot: u16, bits: u64, ignore: u64, posted: u64) -> usize {
        let group = self.group_of(!ignore);
        if slot as usize >= self.patterns.len() {
            self.make_room(slot);
        }
        // Not a pattern as a whole, which would be put together elsewhere and loaded from there
        // before its parts have left the processor's store buffer.
        let pattern = &mut self.patterns[slot as usize];
        pattern.bits = bits;
        pattern.ignore = ignore;
        pattern.posted = posted;
        pattern.group = group;
        self.length += 1;
        group
    }

    /// Room for a slot beyond all that the list has held.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, slot: u16) {
        let none = Pattern::default();
        self.patterns.resize(slot as usize + 1, none);
    }

    /// Where the group of entries that compare these bits is.
    #[inline(always)]
    fn group_of(&mut self, mask: u64) -> usize {
        let group = self.groups.iter().position(|group| group.mask == mask);
        group.unwrap_or_else(|| self.begin_group(mask))
    }

    /// A group for bits that none has compared: one without entries, or a new one, or the last.
    #[cold]
    #[inline(never)]
    fn begin_group(&mut self, mask: u64) -> usize {
        const LAST: usize = MOST_GROUPS - 1;
        let mut own = self.groups.iter().take(LAST);
        if let Some(empty) = own.position(|group| group.buckets.is_empty()) {
            self.groups[empty].mask = mask;
            return empty;
        }
        if self.groups.len() < MOST_GROUPS {
            let is_own = self.groups.len() < LAST;
            self.groups.push(Group::new(if is_own { mask } else { 0 }));
        }
        self.groups.len() - 1
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
    }

    /// Takes the entry in `slot`, which is in the list, out of it.
    #[inline(always)]
    pub fn remove(&mut self, slot: u16) {
        let pattern = &self.patterns[slot as usize];
        let Group { mask, buckets } = &mut self.groups[pattern.group];
        buckets.remove(&mut self.chains, pattern.bits & *mask, slot);
        self.length -= 1;
    }

    /// The entry that [`find`](Self::find) looks at first, if that one fits `bits` and no other may
    /// come before it: all entries compare the same bits.
    #[inline(always)]
    pub(crate) fn first(&self, bits: u64) -> Option<u16> {
        let [group] = self.groups.as_slice() else {
            return None;
        };
        match group.first(bits) {
            Some(slot) if self.has(slot, group.mask, bits) => Some(slot),
            _ => None,
        }
    }

    /// Whether the entry in `slot` has these bits where the mask has any.
    #[inline(always)]
    fn has(&self, slot: u16, mask: u64, bits: u64) -> bool {
        (self.patterns[slot as usize].bits ^ bits) & mask == 0
    }

    /// The earliest entry whose pattern fits `bits` and that `accepts`, the last one that was asked;
    /// and how many entries were looked at.
    #[inline(always)]
    pub fn find(&self, bits: u64, mut accepts: impl FnMut(u16) -> bool) -> (Option<u16>, u32) {
        match self.groups.as_slice() {
            [] => return (None, 0),
            [group] => match group.first(bits) {
                None => return (None, 0),
                Some(slot) if self.has(slot, group.mask, bits) && accepts(slot) => {
                    return (Some(slot), 1);
                }
                Some(_) => {}
            },
            _ => {}
        }
        self.walk(bits, accepts)
    }

    /// As [`find`](Self::find), a function of its own that a search seldom needs.
    #[inline(never)]
    fn walk(&self, bits: u64, mut accepts: impl FnMut(u16) -> bool) -> (Option<u16>, u32) {
        let (mut found, mut before, mut walked) = (None, u64::MAX, 0);
        for group in &self.groups {
            let mut at = group.first(bits);
            while let Some(slot) = at {
                let posted = self.posted(slot);
                if posted > before {
                    break;
                }
                walked += 1;
                let mask = !self.patterns[slot as usize].ignore;
                if self.has(slot, mask, bits) && accepts(slot) {
                    (found, before) = (Some(slot), posted);
                    break;
                }
                at = self.chains.next(slot);
            }
        }
        (found, walked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

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

    /// Appends, removes and searches at random.
    fn compare(seed: u64, ignores: &[u64]) {
        let (mut list, mut walk, mut state) = (MatchList::new(), Walk::default(), seed);
        let mut slots: Vec<u16> = (0..64).collect();
        for step in 0..400 {
            let bits = random(&mut state) % 6;
            match random(&mut state) % 3 {
                0 if !slots.is_empty() => {
                    let at = random(&mut state) as usize % slots.len();
                    let slot = slots.swap_remove(at);
                    let ignore = ignores[random(&mut state) as usize % ignores.len()];
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
                    let mut last = None;
                    let (found, _) = list.find(bits, |slot| {
                        let accepted = accepts(slot);
                        last = accepted.then_some(slot).or(last);
                        accepted
                    });
                    let expected = walk.find(bits, accepts);
                    assert_eq!(found, expected, "seed {seed} step {step}");
                    assert_eq!(last, expected, "seed {seed} step {step}");
                }
            }
            assert_eq!(list.len(), walk.0.len());
            assert!(list.groups.len() <= MOST_GROUPS);
        }
    }

    #[test]
    fn the_list_finds_what_a_walk_in_posting_order_finds() {
        for seed in 0..200 {
            compare(seed, &[0, 0, 1, u64::MAX]);
        }
    }

    #[test]
    fn so_it_does_if_entries_ignore_more_sets_of_bits_than_there_are_groups() {
        let ignores: Vec<u64> = (0..20).chain([u64::MAX, u64::MAX - 2]).collect();
        for seed in 0..200 {
            compare(seed, &ignores);
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
        list.push(0, 0, u64::MAX);
        list.push(1, 5, 0);
        list.push(2, 5, 0);
        list.push(3, 0, u64::MAX);
        assert_eq!(list.find(5, |_| true), (Some(0), 1), "others came later");
        assert_eq!(list.find(5, |slot| slot == 1), (Some(1), 3), "0 and 3, too");
        assert_eq!(list.find(5, |slot| slot == 2), (Some(2), 4));
        assert_eq!(list.find(5, |slot| slot == 3), (Some(3), 4));
        assert_eq!(list.find(8, |_| true), (Some(0), 1));
        list.remove(0);
        assert_eq!(list.find(8, |_| true), (Some(3), 1));
    }

    /// Receives of MPI: for one source and one tag, and any protocol.
    #[test]
    fn entries_that_ignore_the_same_bits_are_found_without_a_walk() {
        const PROTOCOL: u64 = 3 << 60;
        let mut list = MatchList::new();
        for slot in 0..10_000 {
            list.push(slot, slot.into(), PROTOCOL);
        }
        for slot in [0, 77, 9_999] {
            let (found, walked) = list.find(u64::from(slot) | 1 << 60, |_| true);
            assert_eq!(found, Some(slot));
            assert!(walked < 12, "{walked}");
        }
        list.push(10_000, 5, u64::MAX - 15);
        let (found, walked) = list.find(20_005, |_| true);
        assert_eq!((found, walked < 12), (Some(10_000), true), "{walked}");
    }

    #[test]
    fn a_group_without_entries_serves_those_that_compare_other_bits() {
        let mut list = MatchList::new();
        for ignore in 0..100 {
            list.push(3, 0, ignore);
            assert_eq!(list.find(ignore, |_| true), (Some(3), 1));
            list.remove(3);
        }
        assert_eq!(list.groups.len(), 1);
    }

    #[test]
    fn entries_that_find_no_group_of_their_own_share_the_last() {
        let mut list = MatchList::new();
        for slot in 0..20u16 {
            list.push(slot, 1 << 40 | u64::from(slot) << 32, slot.into());
        }
        assert_eq!(list.groups.len(), MOST_GROUPS);
        assert_eq!(list.groups[MOST_GROUPS - 1].mask, 0);
        list.remove(0);
        list.push(0, 2 << 40, 1 << 20);
        assert_eq!(list.groups[0].mask, !(1 << 20), "not the last");
        assert_eq!(list.find(2 << 40 | 1 << 20, |_| true).0, Some(0));
        assert_eq!(list.find(1 << 40 | 19 << 32 | 3, |_| true).0, Some(19));
        assert_eq!(list.find(1 << 40 | 19 << 32 | 4, |_| true).0, None);
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
