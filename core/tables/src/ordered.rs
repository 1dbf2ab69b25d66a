//! Entries that wait for keys, in an order that the caller chooses.
//!
//! A [`MatchList`] whose entries can be put before or behind each other. Each bears a
//! number; the list is in the order of the numbers. An entry between two others gets a
//! number between theirs. If there is none left, all are numbered anew, which happens once in
//! about a million insertions.

use crate::chain::{Chain, Chains};
use crate::match_list::MatchList;

/// A list of patterns under slot numbers that the caller chooses.
pub struct OrderedMatchList {
    list: MatchList,
    order: Chains,
    all: Chain,
}

/// The first entry's number: in the middle, for both ends grow.
const MIDDLE: u64 = 1 << 63;
/// Between the numbers of entries at either end; 65,535 of them are less than all numbers.
const SPACING: u64 = 1 << 40;
/// Between the numbers of entries put one after another next to the same entry.
const STEP: u64 = 1 << 20;

impl Default for OrderedMatchList {
    fn default() -> Self {
        Self::new()
    }
}

impl OrderedMatchList {
    /// A list without entries.
    pub const fn new() -> Self {
        OrderedMatchList {
            list: MatchList::new(),
            order: Chains::new(),
            all: Chain::EMPTY,
        }
    }

    /// How many entries it holds.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Its entries in order: slot, match bits, ignore bits.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64, u64)> {
        let slots = core::iter::successors(self.all.first(), |slot| self.order.next(*slot));
        slots.map(|slot| {
            let (bits, ignore) = self.list.pattern(slot);
            (slot, bits, ignore)
        })
    }

    /// Puts the entry in `slot`, which is not in the list, at the head.
    pub fn push_front(&mut self, slot: u16, bits: u64, ignore: u64) {
        let posted = match self.all.first().map(|first| self.list.posted(first)) {
            None => MIDDLE,
            Some(first) => match first.checked_sub(SPACING) {
                Some(posted) => posted,
                None => self.number_anew().0 - SPACING,
            },
        };
        self.insert(slot, bits, ignore, posted, self.all.first());
    }

    /// Puts the entry in `slot`, which is not in the list, at the tail.
    pub fn push_back(&mut self, slot: u16, bits: u64, ignore: u64) {
        let posted = match self.all.last().map(|last| self.list.posted(last)) {
            None => MIDDLE,
            Some(last) => match last.checked_add(SPACING) {
                Some(posted) => posted,
                None => self.number_anew().1 + SPACING,
            },
        };
        self.insert(slot, bits, ignore, posted, None);
    }

    /// Puts the entry in `slot`, which is not in the list, directly before `base`, which is.
    pub fn insert_before(&mut self, base: u16, slot: u16, bits: u64, ignore: u64) {
        let Some(previous) = self.order.previous(base) else {
            return self.push_front(slot, bits, ignore);
        };
        let (low, high) = self.gap(previous, base);
        // Near the lower end: the next one before the same base finds as much room.
        let posted = low + STEP.min((high - low) / 2);
        self.insert(slot, bits, ignore, posted, Some(base));
    }

    /// Puts the entry in `slot`, which is not in the list, directly behind `base`, which is.
    pub fn insert_after(&mut self, base: u16, slot: u16, bits: u64, ignore: u64) {
        let Some(next) = self.order.next(base) else {
            return self.push_back(slot, bits, ignore);
        };
        let (low, high) = self.gap(base, next);
        let posted = high - STEP.min((high - low) / 2);
        self.insert(slot, bits, ignore, posted, Some(next));
    }

    /// Takes the entry in `slot`, which is in the list, out of it.
    pub fn remove(&mut self, slot: u16) {
        self.list.remove(slot);
        self.order.remove(&mut self.all, slot);
    }

    /// The entry that [`find`](Self::find) looks at first, if that is known without a search: it
    /// fits `bits`, and all entries of the list ignore the same bits. Mostly it is the one found.
    #[inline(always)]
    pub fn first(&self, bits: u64) -> Option<u16> {
        self.list.first(bits)
    }

    /// The first entry whose pattern fits `bits` and that `accepts`; and how many entries
    /// were looked at.
    #[inline]
    pub fn find(&self, bits: u64, accepts: impl FnMut(u16) -> bool) -> (Option<u16>, u32) {
        self.list.find(bits, accepts)
    }

    fn insert(&mut self, slot: u16, bits: u64, ignore: u64, posted: u64, next: Option<u16>) {
        self.list.insert(slot, bits, ignore, posted);
        self.order.insert_before(&mut self.all, slot, next);
    }

    /// The numbers of two entries side by side, with at least one number between them.
    fn gap(&mut self, low: u16, high: u16) -> (u64, u64) {
        let gap = (self.list.posted(low), self.list.posted(high));
        if gap.1 - gap.0 > 1 {
            return gap;
        }
        self.number_anew();
        (self.list.posted(low), self.list.posted(high))
    }

    /// Numbers all entries anew, around the middle. Returns the first and the last number.
    fn number_anew(&mut self) -> (u64, u64) {
        let first = MIDDLE - self.list.len() as u64 / 2 * SPACING;
        let slots = core::iter::successors(self.all.first(), |slot| self.order.next(*slot));
        let numbers = (0..).map(|place| first + place * SPACING);
        self.list.renumber(slots.zip(numbers));
        let last = first + (self.list.len() as u64).saturating_sub(1) * SPACING;
        (first, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;
    use alloc::vec::Vec;

    /// The oracle: entries in a vector, searched from its front.
    #[derive(Default)]
    struct Walk(Vec<(u16, u64, u64)>);

    impl Walk {
        fn place(&self, slot: u16) -> usize {
            let place = self.0.iter().position(|(other, ..)| *other == slot);
            place.expect("the slot is in the list")
        }

        fn find(&self, bits: u64, accepts: impl Fn(u16) -> bool) -> Option<u16> {
            let fits =
                |(slot, b, ignore): &&(u16, u64, u64)| (b ^ bits) & !ignore == 0 && accepts(*slot);
            self.0.iter().find(fits).map(|(slot, ..)| *slot)
        }
    }

    fn insert(list: &mut OrderedMatchList, walk: &mut Walk, slot: u16, state: &mut u64) {
        let bits = random(state) % 6;
        let ignore = [0, 0, 1, u64::MAX][random(state) as usize % 4];
        let entry = (slot, bits, ignore);
        let base = match walk.0.len() {
            0 => None,
            length => Some(walk.0[random(state) as usize % length].0),
        };
        match (random(state) % 4, base) {
            (0, Some(base)) => {
                list.insert_before(base, slot, bits, ignore);
                walk.0.insert(walk.place(base), entry);
            }
            (1, Some(base)) => {
                list.insert_after(base, slot, bits, ignore);
                walk.0.insert(walk.place(base) + 1, entry);
            }
            (2, _) => {
                list.push_front(slot, bits, ignore);
                walk.0.insert(0, entry);
            }
            _ => {
                list.push_back(slot, bits, ignore);
                walk.0.push(entry);
            }
        }
    }

    #[test]
    fn the_list_finds_what_a_walk_from_its_head_finds() {
        for seed in 0..200u64 {
            let (mut list, mut walk) = (OrderedMatchList::new(), Walk::default());
            let (mut slots, mut state): (Vec<u16>, u64) = ((0..64).collect(), seed);
            for step in 0..400 {
                match random(&mut state) % 3 {
                    0 if !slots.is_empty() => {
                        let at = random(&mut state) as usize % slots.len();
                        let slot = slots.swap_remove(at);
                        insert(&mut list, &mut walk, slot, &mut state);
                    }
                    1 if !walk.0.is_empty() => {
                        let at = random(&mut state) as usize % walk.0.len();
                        let (slot, ..) = walk.0.remove(at);
                        list.remove(slot);
                        slots.push(slot);
                    }
                    2 if random(&mut state) % 20 == 0 => drop(list.number_anew()),
                    _ => {
                        let refuses = random(&mut state) as u16 % 5;
                        let accepts = |slot: u16| slot % 5 != refuses;
                        let bits = random(&mut state) % 6;
                        let found = list.find(bits, accepts).0;
                        assert_eq!(found, walk.find(bits, accepts), "seed {seed} step {step}");
                        if let Some(first) = list.first(bits) {
                            assert_eq!(walk.find(bits, |_| true), Some(first));
                            assert_eq!(list.find(bits, |_| true), (Some(first), 1));
                        }
                    }
                }
                assert_eq!(list.len(), walk.0.len());
                assert_eq!(list.is_empty(), walk.0.is_empty());
            }
        }
    }

    /// Entries 0 and 1, side by side in number, too.
    fn without_a_gap() -> OrderedMatchList {
        let mut list = OrderedMatchList::default();
        list.push_back(0, 0, u64::MAX);
        list.push_back(1, 0, u64::MAX);
        let numbers = [(0, MIDDLE), (1, MIDDLE + 1)];
        list.list.renumber(numbers.into_iter());
        list
    }

    fn order(list: &OrderedMatchList) -> Vec<u16> {
        let mut found = Vec::new();
        while let (Some(slot), _) = list.find(0, |slot| !found.contains(&slot)) {
            found.push(slot);
        }
        found
    }

    #[test]
    fn entries_are_numbered_anew_if_no_number_is_left_between_two() {
        let mut list = without_a_gap();
        list.insert_before(1, 2, 0, u64::MAX);
        assert_eq!(order(&list), [0, 2, 1]);
        let mut list = without_a_gap();
        list.insert_after(0, 2, 0, u64::MAX);
        assert_eq!(order(&list), [0, 2, 1]);
    }

    #[test]
    fn entries_are_numbered_anew_if_no_number_is_left_at_an_end() {
        let mut list = without_a_gap();
        list.list.renumber([(0, 5), (1, MIDDLE)].into_iter());
        list.push_front(2, 0, u64::MAX);
        assert_eq!(order(&list), [2, 0, 1]);
        list.list
            .renumber([(2, 5), (0, MIDDLE), (1, u64::MAX - 5)].into_iter());
        list.push_back(3, 0, u64::MAX);
        assert_eq!(order(&list), [2, 0, 1, 3]);
    }

    #[test]
    fn an_entry_takes_the_number_of_one_that_has_left() {
        let mut list = without_a_gap();
        list.list
            .renumber([(0, MIDDLE), (1, MIDDLE + 2)].into_iter());
        for slot in [2, 3, 4] {
            list.insert_before(1, slot, 0, u64::MAX);
            assert_eq!(order(&list), [0, slot, 1]);
            list.remove(slot);
        }
        assert_eq!(order(&list), [0, 1]);
    }

    /// The place where a program that posts its receives puts them.
    #[test]
    fn many_entries_go_before_the_same_base_without_numbering_anew() {
        let mut list = OrderedMatchList::new();
        list.push_back(0, 0, 0);
        list.push_back(1, 0, u64::MAX);
        for slot in 2..10_000 {
            list.insert_before(1, slot, 7, 0);
        }
        assert_eq!(list.list.posted(0), MIDDLE);
        assert_eq!(list.find(7, |_| true), (Some(2), 1));
        assert_eq!(list.find(7, |slot| slot == 9_999).0, Some(9_999));
    }
}
