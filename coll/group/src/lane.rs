//! Lanes: memory, counters and entries for one segment at a time.

use crate::call::Call;
use crate::error::Result;
use crate::portals::Portals;
use lintel_collectives::{Algorithm, Schedule, Tree};

/// Lanes for segments: how many may be under way at once.
pub(crate) const LANES: u64 = 32;
/// Lanes for barriers. A rank may be one ahead of another.
pub(crate) const BARRIER_LANES: u64 = 2;
/// Bytes of a lane: a few segments of the usual size.
const AREA: u64 = 256 << 10;
/// Between two lanes, so that their first lines don't share a set of the cache.
const APART: u64 = 5 * LINE;
const LINE: u64 = 64;

/// One of a group's lanes.
pub(crate) struct Lane<P: Portals> {
    // Before the counters that they count at.
    _entries: Vec<P::Entry>,
    /// Where it begins in the region.
    pub(crate) at: u64,
    counters: Vec<P::Counter>,
    /// What each has counted when all that was begun before has ended.
    counted: Vec<u64>,
    /// Which of the group's lanes it is.
    number: u64,
}

/// Where the lanes for some operations are: from which number on, and how many bytes each has.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    first: u64,
    area: u64,
}

impl Place {
    /// Of the operations of a group of so many ranks.
    pub(crate) fn of_all(ranks: u32) -> Self {
        let area = area(ranks);
        Place { first: 0, area }
    }

    /// Of those among the leaders of its nodes.
    pub(crate) fn of_leaders(ranks: u32) -> Self {
        Place {
            first: LANES + BARRIER_LANES,
            ..Place::of_all(ranks)
        }
    }
}

impl<P: Portals> Lane<P> {
    /// The lane with that number of those at a place, for so many ranks.
    pub(crate) fn new(portals: &P, place: Place, number: u64, ranks: u32) -> Result<Self> {
        let number = place.first + number;
        let at = number * (place.area + APART);
        let counters = (0..counters(ranks)).map(|_| portals.counter());
        let counters: Vec<P::Counter> = counters.collect::<std::result::Result<_, _>>()?;
        let entries = counters.iter().enumerate().map(|(index, counter)| {
            portals.entry(
                match_bits(number, index as u32),
                (at, place.area),
                Some(counter),
            )
        });
        let entries = entries.collect::<std::result::Result<_, _>>()?;
        Ok(Lane {
            at,
            counted: vec![0; counters.len()],
            counters,
            number,
            _entries: entries,
        })
    }

    pub(crate) fn counter(&self, index: u32) -> &P::Counter {
        &self.counters[index as usize]
    }

    /// What a counter shows when it has counted so much in the present operation.
    pub(crate) fn threshold(&self, index: u32, count: u64) -> u64 {
        self.counted[index as usize] + count
    }

    /// The match bits of the same counter at any rank.
    pub(crate) fn match_bits(&self, index: u32) -> u64 {
        match_bits(self.number, index)
    }

    /// The operation has ended.
    pub(crate) fn end(&mut self, schedule: &Schedule) {
        for (counted, counter) in self.counted.iter_mut().zip(&schedule.counters) {
            *counted += counter.each;
        }
    }

    /// Where a segment's input lies in the region: behind its slots.
    pub(crate) fn input(&self, schedule: &Schedule) -> u64 {
        self.at + schedule.slot_bytes.next_multiple_of(LINE)
    }
}

/// Bytes of the region in which the lanes at a place are.
pub(crate) fn region_bytes(ranks: u32) -> u64 {
    (LANES + BARRIER_LANES) * (area(ranks) + APART)
}

/// A lane holds a line of each rank and a few more, however many they are.
fn area(ranks: u32) -> u64 {
    AREA.max(2 * LINE * (u64::from(ranks) + 4))
}

/// Enough for every algorithm: halving has two for each round and one for ranks without
/// a partner, dissemination has one for each of its rounds, trees have three.
fn counters(ranks: u32) -> u32 {
    (2 * ranks.ilog2() + 1).max(rounds(ranks)).max(3)
}

fn rounds(ranks: u32) -> u32 {
    ranks.next_power_of_two().trailing_zeros()
}

/// A counter's match bits, below those that [`crate::peers`] uses.
fn match_bits(lane: u64, counter: u32) -> u64 {
    lane << 8 | u64::from(counter)
}

/// How many bytes of each rank a segment may have, so that slots and input of every
/// rank fit into a lane. The same on all ranks.
pub(crate) fn largest_segment(call: &Call, algorithm: Algorithm, ranks: u32) -> u64 {
    let blocks = match (call, algorithm) {
        (Call::Gather { .. } | Call::Scatter { .. }, _) => u64::from(ranks) + 1,
        (Call::Broadcast { .. }, _) => 2,
        (_, Algorithm::Tree(tree)) => children(tree, ranks) + 3,
        // The result, less than as much for the rounds, the input, and one more for a
        // rank without a partner.
        (_, Algorithm::Halving) => 3 + u64::from(!ranks.is_power_of_two()),
        _ => u64::from(rounds(ranks)) + 2,
    };
    // Each slot may be rounded up to a line.
    area(ranks) / blocks - LINE
}

/// No rank of the tree has more of them.
fn children(tree: Tree, ranks: u32) -> u64 {
    let others = u64::from(ranks) - 1;
    let most = match tree {
        Tree::KNomial(base) => u64::from(base) * u64::from(rounds(ranks)),
        Tree::KAry(arity) => arity.into(),
    };
    most.min(others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Plan, Reach, Reduction};
    use crate::portals::Combine;
    use lintel_claim::{Datatype, Operation};

    #[test]
    fn every_segment_and_every_counter_has_its_place_in_a_lane() {
        let reduction = Reduction {
            combine: Combine {
                operation: Operation::Sum,
                datatype: Datatype::LongDoubleComplex,
            },
            count: 1 << 20,
        };
        let bytes = 1 << 20;
        for ranks in [1, 2, 3, 5, 16, 37, 300] {
            let root = ranks - 1;
            let calls = [
                Call::Barrier,
                Call::Broadcast { root, bytes },
                Call::Allreduce(reduction),
                Call::Reduce { root, reduction },
                Call::Gather { root, bytes },
                Call::Scatter { root, bytes },
            ];
            for call in calls {
                for (algorithm, reach) in algorithms() {
                    let Ok(plan) = Plan::new(call, algorithm, ranks, reach, 4096) else {
                        continue; // not by this one
                    };
                    for rank in [0, ranks / 2, root] {
                        let collective = plan.collective(0);
                        let schedule = collective.schedule(rank);
                        let input = schedule.slot_bytes.next_multiple_of(LINE);
                        assert!(schedule.counters.len() as u32 <= counters(ranks));
                        assert!(
                            input + collective.input_bytes(rank) <= area(ranks),
                            "{plan:?}"
                        );
                    }
                }
            }
        }
    }

    /// Each algorithm, for ranks of one node and of several.
    fn algorithms() -> impl Iterator<Item = (Option<Algorithm>, Reach)> {
        let algorithms = [
            None,
            Some(Algorithm::Dissemination),
            Some(Algorithm::RecursiveDoubling),
            Some(Algorithm::Halving),
            Some(Algorithm::Tree(Tree::KNomial(2))),
            Some(Algorithm::Tree(Tree::KNomial(8))),
            Some(Algorithm::Tree(Tree::KAry(1))),
            Some(Algorithm::Tree(Tree::KAry(1000))),
            Some(Algorithm::Pipelined(Tree::KAry(2), 8192)),
        ];
        let each = |reach| {
            algorithms
                .into_iter()
                .map(move |algorithm| (algorithm, reach))
        };
        each(Reach::Node).chain(each(Reach::Network))
    }
}
