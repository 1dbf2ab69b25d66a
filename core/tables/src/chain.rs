//! Doubly linked chains through numbered slots: a slot is in at most one chain
//! of a [`Chains`].

use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Link {
    next: u32,
    previous: u32,
}

/// The links of all chains.
#[derive(Default)]
pub struct Chains {
    links: Vec<Link>,
}

/// The two ends of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chain {
    first: u32,
    last: u32,
}

impl Chain {
    /// A chain without slots.
    pub const EMPTY: Chain = Chain {
        first: NONE,
        last: NONE,
    };

    /// The slot at the front, if any.
    #[inline]
    pub fn first(self) -> Option<u16> {
        (self.first != NONE).then_some(self.first as u16)
    }

    /// The slot at the back, if any.
    #[inline]
    pub fn last(self) -> Option<u16> {
        (self.last != NONE).then_some(self.last as u16)
    }
}

impl Chains {
    /// Links for any number of chains; they grow with the slots.
    pub const fn new() -> Self {
        Chains { links: Vec::new() }
    }

    /// Appends a slot that is in no chain.
    #[inline(always)]
    pub fn push_back(&mut self, chain: &mut Chain, slot: u16) {
        let link = Link {
            next: NONE,
            previous: chain.last,
        };
        match self.links.get_mut(slot as usize) {
            Some(place) => *place = link,
            None => self.link_first(slot, link),
        }
        match chain.last {
            NONE => chain.first = slot as u32,
            last => self.links[last as usize].next = slot as u32,
        }
        chain.last = slot as u32;
    }

    /// Links a slot beyond all that there were.
    #[cold]
    #[inline(never)]
    fn link_first(&mut self, slot: u16, link: Link) {
        let unlinked = Link {
            next: NONE,
            previous: NONE,
        };
        self.links.resize(slot as usize, unlinked);
        self.links.push(link);
    }

    /// Puts a slot that is in no chain before `next`, which is in the chain; at the back if
    /// there is no `next`.
    pub fn insert_before(&mut self, chain: &mut Chain, slot: u16, next: Option<u16>) {
        let Some(next) = next else {
            return self.push_back(chain, slot);
        };
        let previous = self.links[next as usize].previous;
        let link = Link {
            next: next as u32,
            previous,
        };
        match self.links.get_mut(slot as usize) {
            Some(place) => *place = link,
            None => self.link_first(slot, link),
        }
        self.links[next as usize].previous = slot as u32;
        match previous {
            NONE => chain.first = slot as u32,
            previous => self.links[previous as usize].next = slot as u32,
        }
    }

    /// Takes a slot out of the chain that it is in.
    #[inline(always)]
    pub fn remove(&mut self, chain: &mut Chain, slot: u16) {
        let Link { next, previous } = self.links[slot as usize];
        match previous {
            NONE => chain.first = next,
            previous => self.links[previous as usize].next = next,
        }
        match next {
            NONE => chain.last = previous,
            next => self.links[next as usize].previous = previous,
        }
    }

    /// The slot after this one, in the chain that it is in.
    #[inline]
    pub fn next(&self, slot: u16) -> Option<u16> {
        let next = self.links[slot as usize].next;
        (next != NONE).then_some(next as u16)
    }

    /// The slot before this one, in the chain that it is in.
    #[inline]
    pub fn previous(&self, slot: u16) -> Option<u16> {
        let previous = self.links[slot as usize].previous;
        (previous != NONE).then_some(previous as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_keeps_its_order_through_removals() {
        let (mut chains, mut chain) = (Chains::new(), Chain::EMPTY);
        for slot in [4, 1, 7] {
            chains.push_back(&mut chain, slot);
        }
        chains.remove(&mut chain, 1);
        assert_eq!(
            (chain.first(), chains.next(4), chains.next(7)),
            (Some(4), Some(7), None)
        );
        chains.remove(&mut chain, 4);
        chains.remove(&mut chain, 7);
        assert_eq!(chain, Chain::EMPTY);
    }

    fn slots(chains: &Chains, chain: Chain) -> Vec<u16> {
        core::iter::successors(chain.first(), |slot| chains.next(*slot)).collect()
    }

    #[test]
    fn the_first_the_last_and_a_middle_slot_can_be_taken_out() {
        for (removed, left) in [(0, [5, 9]), (5, [0, 9]), (9, [0, 5])] {
            let (mut chains, mut chain) = (Chains::new(), Chain::EMPTY);
            for slot in [0, 5, 9] {
                chains.push_back(&mut chain, slot);
            }
            chains.remove(&mut chain, removed);
            assert_eq!(slots(&chains, chain), left);
            chains.push_back(&mut chain, removed);
            assert_eq!(slots(&chains, chain), [left[0], left[1], removed]);
        }
    }

    #[test]
    fn a_slot_can_be_put_before_any_other() {
        for (next, expected) in [
            (Some(5), [3, 5, 9].as_slice()),
            (Some(9), &[5, 3, 9]),
            (None, &[5, 9, 3]),
        ] {
            let (mut chains, mut chain) = (Chains::new(), Chain::EMPTY);
            chains.push_back(&mut chain, 5);
            chains.insert_before(&mut chain, 9, None);
            chains.insert_before(&mut chain, 3, next);
            assert_eq!(slots(&chains, chain), expected);
            let back = core::iter::successors(chain.last(), |slot| chains.previous(*slot));
            assert!(back.eq(expected.iter().rev().copied()));
        }
        assert_eq!(Chain::EMPTY.last(), None);
    }

    #[test]
    fn chains_share_their_links_without_meeting() {
        let (mut chains, mut even, mut odd) = (Chains::default(), Chain::EMPTY, Chain::EMPTY);
        for slot in (0..10).rev() {
            let chain = if slot % 2 == 0 { &mut even } else { &mut odd };
            chains.push_back(chain, slot);
        }
        assert_eq!(slots(&chains, even), [8, 6, 4, 2, 0]);
        assert_eq!(slots(&chains, odd), [9, 7, 5, 3, 1]);
        assert_eq!(slots(&chains, Chain::EMPTY), []);
    }
}
