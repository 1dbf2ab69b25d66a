//! The operation of a call, its algorithm, and its segments.

use crate::error::{Error, Result};
use crate::lane;
use crate::portals::Combine;
use crate::tuning::{BINOMIAL, Class, FLAT};
use lintel_claim::{AtomicCall, valid};
use lintel_collectives::{Algorithm, Collective, ConfigError, Order, Reuse, Shape};
use lintel_types::ProcessId;

/// How elements are combined, and how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reduction {
    /// By what, and of what type.
    pub combine: Combine,
    /// How many elements each rank gives.
    pub count: u64,
}

/// A collective operation. All ranks call the same one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// No rank leaves it before all have entered it.
    Barrier,
    /// All get what `root` gives: so many bytes.
    Broadcast {
        /// The rank whose bytes are sent.
        root: u32,
        /// Length in bytes, the same at all ranks.
        bytes: u64,
    },
    /// All get what all give, combined.
    Allreduce(Reduction),
    /// `root` gets what all give, combined.
    Reduce {
        /// The rank that receives the result.
        root: u32,
        /// Operation, type and number of elements, the same at all ranks.
        reduction: Reduction,
    },
    /// `root` gets what all give, side by side: so many bytes of each.
    Gather {
        /// The rank that receives the result.
        root: u32,
        /// How much of each.
        bytes: u64,
    },
    /// Each gets its part of what `root` gives: so many bytes for each.
    Scatter {
        /// The rank whose bytes are sent.
        root: u32,
        /// How much for each.
        bytes: u64,
    },
}

/// A call that is checked, and how it is cut. Each segment is as many bytes of each
/// rank's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) call: Call,
    pub(crate) algorithm: Algorithm,
    ranks: u32,
    /// Length in bytes, the same at all ranks.
    pub(crate) bytes: u64,
    /// Of each rank, in each segment but the last.
    segment: u64,
    largest_combine: u64,
}

/// How messages go between a group's ranks, which determines what a round of them costs beside its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// All ranks are on one node.
    Node,
    Network,
}

/// Until it is [measured](crate::tuning), reductions within a node of up to so many bytes have few rounds
/// with all bytes in each: recursive doubling, or a binomial tree. What is longer goes by halving.
const MAX_DOUBLING_BYTES: u64 = 4 << 10;
/// The same of all-reduces over a network.
const MAX_NETWORK_DOUBLING_BYTES: u64 = 16 << 10;
/// What a round over a network costs, as the bytes that are sent in the same time: about 5 µs at 5 GB/s
/// over UDP, and more where a processor has several ranks.
const ROUND_BYTES: u64 = 24 << 10;
/// Up to so many bytes, gathers and scatters go by a tree with few rounds. What is
/// longer goes straight, so that it is copied once.
const MAX_TREE_BYTES: u64 = 1 << 10;
/// Segments, unless a pipeline names its own: what two caches hold.
pub(crate) const SEGMENT: u64 = 64 << 10;
/// Segments that are halved within a node: short enough that both of a pair can send at once without
/// waiting for the other to read.
const HALVED_SEGMENT: u64 = 16 << 10;

impl Call {
    /// Bytes that each rank contributes or receives.
    fn bytes(&self) -> Result<u64> {
        match *self {
            Call::Barrier => Ok(0),
            Call::Broadcast { bytes, .. }
            | Call::Gather { bytes, .. }
            | Call::Scatter { bytes, .. } => Ok(bytes),
            Call::Allreduce(reduction) | Call::Reduce { reduction, .. } => reduction.bytes(),
        }
    }

    /// Bytes that each rank contributes or receives, if the call can be among so many ranks; a
    /// [`Plan`] says what is wrong with it.
    #[inline]
    pub(crate) fn sound_bytes(&self, ranks: u32) -> Option<u64> {
        let (root, bytes) = match *self {
            Call::Barrier => (0, 0),
            Call::Allreduce(reduction) => (0, reduction.sound_bytes()?),
            Call::Broadcast { root, bytes }
            | Call::Gather { root, bytes }
            | Call::Scatter { root, bytes } => (root, bytes),
            Call::Reduce { root, reduction } => (root, reduction.sound_bytes()?),
        };
        let is_sound = root < ranks && bytes.checked_mul(ranks.into()).is_some();
        is_sound.then_some(bytes)
    }

    /// How many bytes `rank` of so many gives, and gets, if each has `bytes`.
    #[inline]
    pub(crate) fn lengths(&self, bytes: u64, rank: u32, ranks: u32) -> (u64, u64) {
        let all = bytes * u64::from(ranks);
        match *self {
            Call::Barrier => (0, 0),
            Call::Broadcast { root, .. } if rank == root => (bytes, 0),
            Call::Broadcast { .. } => (0, bytes),
            Call::Allreduce(_) => (bytes, bytes),
            Call::Reduce { root, .. } if rank == root => (bytes, bytes),
            Call::Gather { root, .. } if rank == root => (bytes, all),
            Call::Reduce { .. } | Call::Gather { .. } => (bytes, 0),
            Call::Scatter { root, .. } if rank == root => (all, bytes),
            Call::Scatter { .. } => (0, bytes),
        }
    }

    /// How its elements are combined, if they are.
    pub(crate) fn combine(&self) -> Option<Combine> {
        match *self {
            Call::Allreduce(reduction) | Call::Reduce { reduction, .. } => Some(reduction.combine),
            _ => None,
        }
    }

    /// The algorithm until it is [measured](crate::tuning) which is the quickest: the same for all calls
    /// of a class.
    fn default_algorithm(&self, bytes: u64, ranks: u32, reach: Reach) -> Algorithm {
        let bytes = Class::of(self, bytes).least_bytes;
        match self {
            Call::Barrier => Algorithm::Dissemination,
            Call::Allreduce(_) if bytes <= reach.max_doubling_bytes() => {
                Algorithm::RecursiveDoubling
            }
            Call::Reduce { .. } if reach.tree_costs_less(bytes, ranks) => BINOMIAL,
            Call::Allreduce(_) | Call::Reduce { .. } => Algorithm::Halving,
            Call::Gather { .. } | Call::Scatter { .. } if bytes > MAX_TREE_BYTES => FLAT,
            _ => BINOMIAL,
        }
    }

    fn collective(
        &self,
        shape: Shape,
        algorithm: Algorithm,
    ) -> std::result::Result<Collective, ConfigError> {
        match *self {
            Call::Barrier => Collective::barrier(shape.ranks, algorithm),
            Call::Broadcast { root, .. } => Collective::broadcast(shape, root, algorithm),
            Call::Allreduce(_) => Collective::allreduce(shape, algorithm),
            Call::Reduce { root, .. } => Collective::reduce(shape, root, algorithm),
            Call::Gather { root, .. } => Collective::gather(shape, root, algorithm),
            Call::Scatter { root, .. } => Collective::scatter(shape, root, algorithm),
        }
    }
}

impl Reduction {
    fn bytes(&self) -> Result<u64> {
        let Combine {
            operation,
            datatype,
        } = self.combine;
        if !valid(operation, datatype, AtomicCall::Atomic) {
            return Err(Error::InvalidArgument(format!(
                "{operation:?} isn't defined on {datatype:?}: PtlAtomic lists what is"
            )));
        }
        let bytes = self.sound_bytes();
        bytes.ok_or_else(|| Error::InvalidArgument("the elements have more bytes than 2^64".into()))
    }

    /// Its bytes, unless the operation isn't defined or they are too many.
    #[inline]
    fn sound_bytes(&self) -> Option<u64> {
        let Combine {
            operation,
            datatype,
        } = self.combine;
        let is_valid = valid(operation, datatype, AtomicCall::Atomic);
        let bytes = self.count.checked_mul(datatype.size() as u64);
        bytes.filter(|_| is_valid)
    }
}

impl Reach {
    /// Between those processes; the same at all ranks.
    pub(crate) fn of(processes: &[ProcessId]) -> Reach {
        match processes
            .iter()
            .all(|process| process.nid == processes[0].nid)
        {
            true => Reach::Node,
            false => Reach::Network,
        }
    }

    fn max_doubling_bytes(self) -> u64 {
        match self {
            Reach::Node => MAX_DOUBLING_BYTES,
            Reach::Network => MAX_NETWORK_DOUBLING_BYTES,
        }
    }

    /// Whether a reduction by a binomial tree, whose root receives all bytes in each round, costs less
    /// than by halving, which has twice the rounds and in all of them together twice the bytes.
    fn tree_costs_less(self, bytes: u64, ranks: u32) -> bool {
        if self == Reach::Node {
            return bytes <= MAX_DOUBLING_BYTES;
        }
        let rounds = u64::from(ranks.next_power_of_two().trailing_zeros());
        let tree = rounds.saturating_mul(ROUND_BYTES.saturating_add(bytes));
        let halving = (2 * rounds * ROUND_BYTES).saturating_add(bytes.saturating_mul(2));
        tree <= halving
    }
}

impl Plan {
    /// # Errors
    /// `InvalidArgument` if the call is none that can be.
    pub(crate) fn new(
        call: Call,
        algorithm: Option<Algorithm>,
        ranks: u32,
        reach: Reach,
        largest_combine: u64,
    ) -> Result<Plan> {
        let bytes = call.bytes()?;
        let asked = algorithm.unwrap_or_else(|| call.default_algorithm(bytes, ranks, reach));
        // A pipeline is a tree whose segments are as small as its pieces.
        let (algorithm, piece) = match (call, asked) {
            (Call::Broadcast { .. }, Algorithm::Pipelined(tree, piece)) => {
                (Algorithm::Tree(tree), piece)
            }
            (_, Algorithm::Halving) if reach == Reach::Node => (asked, HALVED_SEGMENT),
            (_, algorithm) => (algorithm, SEGMENT),
        };
        let element = call.combine().map_or(1, |c| c.datatype.size() as u64);
        let room = lane::largest_segment(&call, algorithm, ranks);
        let plan = Plan {
            call,
            algorithm,
            ranks,
            bytes,
            segment: whole(room.min(piece.max(1)), element),
            largest_combine: whole(largest_combine, element),
        };
        if piece == 0 {
            return Err(Error::InvalidArgument(ConfigError::NoBytes.to_string()));
        }
        let shape = Shape { ranks, bytes };
        let checked = call.collective(shape, algorithm);
        checked.map_err(|error| Error::InvalidArgument(error.to_string()))?;
        Ok(plan)
    }

    /// How many segments there are: none, if there are no bytes.
    pub(crate) fn segments(&self) -> u64 {
        match self.call {
            Call::Barrier => 1,
            _ => self.bytes.div_ceil(self.segment),
        }
    }

    /// The first byte of a segment among a rank's, and how many they are.
    pub(crate) fn segment(&self, number: u64) -> (u64, u64) {
        let begin = number * self.segment;
        (begin, self.segment.min(self.bytes - begin))
    }

    /// What is done with a segment.
    pub(crate) fn collective(&self, number: u64) -> Collective {
        let (_, bytes) = self.segment(number);
        let shape = Shape {
            ranks: self.ranks,
            bytes,
        };
        let collective = self
            .call
            .collective(shape, self.algorithm)
            .expect("a part of what was checked");
        collective
            .in_order(Order::Ranks)
            .with_reuse(Reuse::ByCaller)
            .combining_at_most(self.largest_combine)
            .expect("an element has bytes")
    }

    /// How many bytes `rank` gives, and gets.
    pub(crate) fn lengths(&self, rank: u32) -> (u64, u64) {
        self.call.lengths(self.bytes, rank, self.ranks)
    }

    /// Where a segment's bytes are at the caller, in the order in which they lie in the
    /// lane: `part` says how many they are there.
    pub(crate) fn pieces(
        &self,
        number: u64,
        part: std::ops::Range<u64>,
    ) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let (begin, each) = self.segment(number);
        let bytes = self.bytes;
        let mut at = part.start;
        std::iter::from_fn(move || {
            if at >= part.end {
                return None;
            }
            // Ranks' blocks lie side by side in both places, but here only parts.
            let (block, within) = (at / each, at % each);
            let length = (each - within).min(part.end - at);
            at += length;
            let start = (block * bytes + begin + within) as usize;
            Some(start..start + length as usize)
        })
    }
}

/// The largest number of whole elements in so many bytes; one at least.
fn whole(bytes: u64, element: u64) -> u64 {
    (bytes / element).max(1) * element
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(bytes: u64) -> Plan {
        Plan::new(Call::Gather { root: 0, bytes }, None, 4, Reach::Node, 4096)
            .expect("a gather of bytes")
    }

    #[test]
    fn segments_cover_a_members_bytes_without_gap() {
        let plan = gather(1_000_000);
        let mut next = 0;
        for number in 0..plan.segments() {
            let (begin, bytes) = plan.segment(number);
            assert_eq!(begin, next);
            next += bytes;
        }
        assert_eq!(next, 1_000_000);
    }

    #[test]
    fn a_segment_of_all_members_lies_in_as_many_places() {
        let plan = gather(1_000_000);
        let (_, each) = plan.segment(1);
        let pieces: Vec<_> = plan.pieces(1, each..3 * each).collect();
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces[0].start as u64, 1_000_000 + each);
        assert_eq!(pieces[1].start as u64, 2_000_000 + each);
    }

    #[test]
    fn a_reduction_over_a_network_goes_by_a_tree_until_its_bytes_cost_more_than_its_rounds() {
        let tree = |ranks, bytes| Reach::Network.tree_costs_less(bytes, ranks);
        for ranks in [1, 2, 3, 4] {
            assert!(tree(ranks, u64::MAX / 2), "{ranks} ranks");
        }
        for ranks in [5, 8, 16, 100, 4096, u32::MAX / 2] {
            assert!(
                tree(ranks, ROUND_BYTES) && !tree(ranks, 1 << 20),
                "{ranks} ranks"
            );
        }
        assert!(tree(8, 3 * ROUND_BYTES) && !tree(8, 3 * ROUND_BYTES + 1));
    }

    #[test]
    fn ranks_reach_each_other_within_a_node_if_all_are_there() {
        let on = |nids: &[u32]| {
            let processes: Vec<_> = nids.iter().map(|nid| ProcessId::new(*nid, 7)).collect();
            Reach::of(&processes)
        };
        assert_eq!(on(&[3]), Reach::Node);
        assert_eq!(on(&[3, 3, 3]), Reach::Node);
        assert_eq!(on(&[3, 3, 4]), Reach::Network);
    }

    #[test]
    fn no_bytes_need_no_segment() {
        assert_eq!(gather(0).segments(), 0);
        let barrier = Plan::new(Call::Barrier, None, 4, Reach::Node, 4096).expect("a barrier");
        assert_eq!(barrier.segments(), 1);
    }
}
