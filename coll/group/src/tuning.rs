//! Which algorithm carries out the operations by messages: measured while they run, since it depends on
//! the network and on how many ranks share a processor.
//!
//! ```text
//!   blocking calls of a class     0 … 15     16 … 20   21 … 25   26 … 30   31 … 35        36 …
//!   algorithm                     default    A A A A A B B B B B A A A A A B B B B B  ▲   the quickest
//!                                            each timed            the ranks add up their times
//! ```
//!
//! A class is a kind of operation and a range of lengths. Its first calls take the default: a program
//! that makes few pays nothing. The next ones take turns with the algorithms that may be the quickest, and
//! each rank times them. Then the ranks add up their times of each call, and all choose the algorithm whose
//! calls have the least median (as STAR-MPI: Faraj, Yuan, Lowenthal, 2006). A class is measured again
//! after many more calls.
//!
//! All algorithms of a class give the same bits.

use crate::call::{Call, SEGMENT};
use arrayvec::ArrayVec;
use lintel_collectives::{Algorithm, Tree};
use std::time::{Duration, Instant};

/// The binomial tree.
pub(crate) const BINOMIAL: Algorithm = Algorithm::Tree(Tree::KNomial(2));
/// All other ranks are children of the root.
pub(crate) const FLAT: Algorithm = Algorithm::Tree(Tree::KAry(1 << 16));
const CHAIN: Algorithm = Algorithm::Tree(Tree::KAry(1));

const MAX_CANDIDATES: usize = 4;
/// Calls of a class before it is measured.
const FIRST_CALLS: u32 = 16;
/// Calls until it is measured again.
const CALLS_BETWEEN: u32 = 4096;
/// Calls of each candidate in a row, of which the first depends on the one before and doesn't count, and
/// rows of each.
const IN_A_ROW: usize = 5;
const ROWS: usize = 2;
const SAMPLES: usize = ROWS * IN_A_ROW;
/// A class changes its algorithm for one that saves more than such a part of the time.
const WORTH_A_CHANGE: u64 = 16;

/// A flat tree of more ranks isn't tried, nor one whose root sends or receives more bytes, unless each rank
/// has its own.
const MAX_FLAT_RANKS: u32 = 64;
const MAX_FLAT_BYTES: u64 = 1 << 20;
/// Halving cuts between lines.
const LINE: u64 = 64;

type Candidates = ArrayVec<Algorithm, MAX_CANDIDATES>;
/// Nanoseconds of each trial, in the order of the calls.
type Times = ArrayVec<u64, { SAMPLES * MAX_CANDIDATES }>;

/// Operations that are measured together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Class {
    kind: Kind,
    /// Its operations have as many bytes of each rank, but fewer than twice as many.
    pub(crate) least_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Barrier,
    Broadcast,
    /// If the order in which elements are combined makes no difference, there are more candidates.
    Allreduce {
        in_any_order: bool,
    },
    Reduce {
        in_any_order: bool,
    },
    Gather,
    Scatter,
}

/// A call that is timed.
pub(crate) struct Trial {
    /// The number of its class among those that are known.
    class: usize,
    begun: Instant,
}

/// What this rank has measured of a class.
pub(crate) struct Measured {
    class: usize,
    times: Times,
}

/// What the ranks of a group know of the classes whose operations they have called: the same at all ranks,
/// but for the times.
#[derive(Default)]
pub(crate) struct Tuning(Vec<Known>);

struct Known {
    class: Class,
    candidates: Candidates,
    /// The default until it is measured.
    chosen: Algorithm,
    /// Calls until the next trials.
    calls_left: u32,
    times: Times,
}

impl Class {
    /// Of a call with so many bytes of each rank.
    pub(crate) fn of(call: &Call, bytes: u64) -> Class {
        let is_exact = call
            .combine()
            .is_none_or(|combine| combine.datatype.is_integer());
        let kind = match call {
            Call::Barrier => Kind::Barrier,
            Call::Broadcast { .. } => Kind::Broadcast,
            Call::Allreduce(_) => Kind::Allreduce {
                in_any_order: is_exact,
            },
            Call::Reduce { .. } => Kind::Reduce {
                in_any_order: is_exact,
            },
            Call::Gather { .. } => Kind::Gather,
            Call::Scatter { .. } => Kind::Scatter,
        };
        Class {
            kind,
            least_bytes: bytes.checked_ilog2().map_or(0, |power| 1 << power),
        }
    }

    /// Algorithms that may be the quickest among so many ranks, where `default` would be taken. All give
    /// the same bits.
    fn candidates(self, ranks: u32, default: Algorithm) -> Candidates {
        let bytes = self.least_bytes;
        let all_bytes = bytes.saturating_mul(ranks.into());
        let few = (3..=MAX_FLAT_RANKS).contains(&ranks);
        let flat = few && all_bytes <= MAX_FLAT_BYTES;
        let halved = bytes >= LINE * u64::from(ranks);
        let pairs = ranks.is_power_of_two();
        // Other algorithms combine in another order, except in pairs.
        let same_bits = |in_any_order| pairs || in_any_order;
        let possible = match self.kind {
            _ if ranks < 2 => vec![],
            Kind::Barrier => vec![
                (Algorithm::Dissemination, true),
                (Algorithm::RecursiveDoubling, pairs),
                (BINOMIAL, true),
                (FLAT, flat),
            ],
            _ if bytes == 0 => vec![], // Nothing is sent.
            Kind::Broadcast => vec![
                (BINOMIAL, true),
                (FLAT, flat),
                (CHAIN, ranks > 2 && bytes >= SEGMENT * u64::from(ranks)),
            ],
            Kind::Allreduce { in_any_order } => vec![
                (Algorithm::RecursiveDoubling, true),
                (Algorithm::Halving, halved),
                (FLAT, flat && same_bits(in_any_order)),
            ],
            Kind::Reduce { in_any_order } => {
                let (all, is_halving) = (same_bits(in_any_order), default == Algorithm::Halving);
                vec![
                    (BINOMIAL, all || !is_halving),
                    (FLAT, flat && (all || !is_halving)),
                    (Algorithm::Halving, is_halving || halved && all),
                ]
            }
            Kind::Gather | Kind::Scatter => vec![
                (BINOMIAL, true),
                (FLAT, ranks > 2 && (few || default == FLAT)),
            ],
        };
        let possible = possible.into_iter().filter(|(_, is_possible)| *is_possible);
        possible.map(|(algorithm, _)| algorithm).collect()
    }
}

impl Tuning {
    /// The algorithm of a class, if there is a choice.
    pub(crate) fn chosen(&self, class: Class) -> Option<Algorithm> {
        self.place(class).map(|place| self.0[place].chosen)
    }

    /// The ranks, so many, call an operation of a class, and block: whether to try an algorithm, and which.
    /// `default` is taken until one is chosen.
    pub(crate) fn begin(
        &mut self,
        class: Class,
        ranks: u32,
        default: Algorithm,
    ) -> Option<(Algorithm, Trial)> {
        let place = self.place(class).unwrap_or_else(|| {
            self.0.push(Known::new(class, ranks, default));
            self.0.len() - 1
        });
        let known = &mut self.0[place];
        if known.candidates.len() < 2 {
            return None;
        }
        if known.calls_left > 0 {
            known.calls_left -= 1;
            return None;
        }
        let candidate = candidate_of(known.times.len(), known.candidates.len());
        let trial = Trial {
            class: place,
            begun: Instant::now(),
        };
        Some((known.candidates[candidate], trial))
    }

    /// A trial has ended. Returns what was measured after the last one: the ranks add it up, then
    /// [`decide`](Self::decide).
    pub(crate) fn end(&mut self, trial: Trial) -> Option<Measured> {
        self.add(&trial, trial.begun.elapsed())
    }

    fn add(&mut self, trial: &Trial, took: Duration) -> Option<Measured> {
        let known = &mut self.0[trial.class];
        known.times.push(took.as_nanos() as u64);
        (known.times.len() == SAMPLES * known.candidates.len()).then(|| Measured {
            class: trial.class,
            times: known.times.take(),
        })
    }

    /// The class takes the algorithm whose trials have the least median. `sums` stand where the times were.
    pub(crate) fn decide(&mut self, measured: &Measured, sums: &[u8]) {
        let sums = sums.chunks_exact(8);
        let sums = sums.map(|sum| u64::from_ne_bytes(sum.try_into().expect("8 bytes")));
        self.0[measured.class].decide(&sums.collect::<Vec<_>>());
    }

    fn place(&self, class: Class) -> Option<usize> {
        self.0.iter().position(|known| known.class == class)
    }
}

impl Known {
    fn new(class: Class, ranks: u32, default: Algorithm) -> Known {
        Known {
            class,
            candidates: class.candidates(ranks, default),
            chosen: default,
            calls_left: FIRST_CALLS,
            times: Times::new(),
        }
    }

    /// `sums` has all ranks' time of each trial.
    fn decide(&mut self, sums: &[u64]) {
        let candidates = self.candidates.iter().copied().zip(0..);
        let timed =
            candidates.map(|(it, number)| (it, median(sums, number, self.candidates.len())));
        let timed: Vec<(Algorithm, u64)> = timed.collect();
        let kept = timed.iter().find(|(it, _)| *it == self.chosen);
        let kept = kept.map_or(u64::MAX, |(_, time)| *time);
        let least = timed.iter().min_by_key(|(_, time)| *time);
        if let Some((quickest, _)) =
            least.filter(|(_, least)| *least < kept - kept / WORTH_A_CHANGE)
        {
            self.chosen = *quickest;
        }
        self.calls_left = CALLS_BETWEEN;
    }
}

/// The median time of one of so many candidates, but for the first call of each row.
fn median(sums: &[u64], candidate: usize, candidates: usize) -> u64 {
    let timed = (0..sums.len()).filter(|trial| trial % IN_A_ROW > 0);
    let own = timed.filter(|trial| candidate_of(*trial, candidates) == candidate);
    let mut own: Vec<u64> = own.map(|trial| sums[trial]).collect();
    own.sort_unstable();
    own[own.len() / 2]
}

/// Which of so many candidates a trial is of.
fn candidate_of(trial: usize, candidates: usize) -> usize {
    trial / IN_A_ROW % candidates
}

impl Measured {
    /// The times as elements of 64 bits.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let bytes = self.times.iter().flat_map(|time| time.to_ne_bytes());
        bytes.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Reduction;
    use crate::portals::Combine;
    use lintel_claim::{Datatype, Operation};

    const GATHER: Call = Call::Gather { root: 0, bytes: 8 };

    fn reduce(datatype: Datatype, count: u64) -> (Call, u64) {
        let combine = Combine {
            operation: Operation::Sum,
            datatype,
        };
        let reduction = Reduction { combine, count };
        let call = Call::Reduce { root: 0, reduction };
        (call, count * datatype.size() as u64)
    }

    /// Makes calls until trials have ended, of which each takes as long as `took` says. How many calls
    /// those were, and what is measured.
    fn measure(tuning: &mut Tuning, took: impl Fn(Algorithm) -> u64) -> (u32, Measured) {
        let class = Class::of(&GATHER, 8);
        let mut calls = 0;
        loop {
            calls += 1;
            let Some((algorithm, trial)) = tuning.begin(class, 4, FLAT) else {
                continue;
            };
            let took = Duration::from_nanos(took(algorithm));
            if let Some(measured) = tuning.add(&trial, took) {
                return (calls, measured);
            }
        }
    }

    #[test]
    fn the_algorithm_with_the_least_median_of_all_ranks_is_taken_until_it_is_measured_again() {
        let class = Class::of(&GATHER, 8);
        let mut tuning = Tuning::default();
        let trials = 2 * SAMPLES as u32;
        let (calls, measured) = measure(&mut tuning, |algorithm| match algorithm {
            FLAT => 70,
            _ => 80,
        });
        assert_eq!(calls, FIRST_CALLS + trials);
        assert_eq!(measured.times[3..7], [80, 80, 70, 70]);
        assert_eq!(tuning.chosen(class), Some(FLAT), "by default");
        // Other ranks have found the binomial tree quicker, but for two disturbed calls.
        let sum = |trial: usize| match candidate_of(trial, 2) {
            0 if trial % 3 == 0 => 9000u64,
            0 => 500,
            _ => 550,
        };
        let sums: Vec<u8> = (0..2 * SAMPLES)
            .flat_map(|it| sum(it).to_ne_bytes())
            .collect();
        tuning.decide(&measured, &sums);
        assert_eq!(tuning.chosen(class), Some(BINOMIAL));
        let (calls, measured) = measure(&mut tuning, |_| 5);
        assert_eq!(calls, CALLS_BETWEEN + trials);
        assert!(
            measured.times.iter().all(|time| *time == 5),
            "earlier times don't count"
        );
    }

    #[test]
    fn a_class_has_lengths_up_to_twice_the_least() {
        let of = |bytes| Class::of(&Call::Broadcast { root: 0, bytes }, bytes).least_bytes;
        assert_eq!([0, 1, 7, 8, 15, 16].map(of), [0, 1, 4, 8, 8, 16]);
        assert_eq!(of(u64::MAX), 1 << 63);
    }

    #[test]
    fn floats_are_reduced_only_by_algorithms_that_combine_in_the_same_order() {
        let candidates = |datatype, ranks, default| {
            let (call, bytes) = reduce(datatype, 4096);
            Class::of(&call, bytes).candidates(ranks, default).to_vec()
        };
        let halving = Algorithm::Halving;
        let all = [BINOMIAL, FLAT, halving];
        assert_eq!(candidates(Datatype::Int64, 6, BINOMIAL), all);
        assert_eq!(candidates(Datatype::Double, 8, BINOMIAL), all);
        assert_eq!(candidates(Datatype::Double, 6, BINOMIAL), all[..2]);
        assert_eq!(candidates(Datatype::Double, 6, halving), [halving]);
        assert_eq!(candidates(Datatype::Double, 4, halving).len(), 3);
    }

    #[test]
    fn a_rank_alone_has_nothing_to_choose_and_two_no_trees() {
        let candidates = |ranks| Class::of(&Call::Barrier, 0).candidates(ranks, BINOMIAL);
        assert!(candidates(1).is_empty());
        assert!(!candidates(2).contains(&FLAT) && candidates(3).contains(&FLAT));
    }

    #[test]
    fn an_operation_that_sends_nothing_has_nothing_to_choose() {
        let call = Call::Broadcast { root: 0, bytes: 0 };
        let candidates = Class::of(&call, 0).candidates(4, BINOMIAL);
        assert!(candidates.is_empty());
    }

    #[test]
    fn a_flat_tree_that_is_the_default_is_compared_with_a_binomial_one_among_many_ranks_too() {
        let candidates = |default| Class::of(&GATHER, 8).candidates(1000, default).to_vec();
        assert_eq!(candidates(FLAT), [BINOMIAL, FLAT]);
        assert_eq!(candidates(BINOMIAL), [BINOMIAL]);
    }

    #[test]
    fn no_root_of_very_many_bytes_is_asked_for_them_all() {
        let candidates = |bytes, ranks| {
            let call = Call::Broadcast { root: 0, bytes };
            Class::of(&call, bytes).candidates(ranks, BINOMIAL)
        };
        assert!(candidates(200_000, 4).contains(&FLAT));
        assert!(!candidates(2 << 20, 4).contains(&FLAT) && !candidates(8, 65).contains(&FLAT));
        assert!(
            candidates(2 << 20, 4).contains(&CHAIN) && !candidates(2 << 20, 64).contains(&CHAIN)
        );
    }
}
