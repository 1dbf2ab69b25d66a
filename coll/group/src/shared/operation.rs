//! The steps that an operation is cut into, and who gives what to whom in them.

use super::layout::{
    APART, AREA, AREAS_AT, IN_LINE, LINE, MAX_SHORT_CALL, SLOTS, WINDOW, few_bytes_of,
};
use super::protocol::{Class, MIN_CHOICE};
use crate::call::Call;
use crate::portals::Combine;
use lintel_claim::Claim;
use std::ops::Range;

/// An operation of so many bytes of each rank.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    pub(super) call: Call,
    pub(super) ranks: u64,
    pub(super) bytes: u64,
    /// Bytes of each rank in a step.
    pub(super) piece: u64,
    /// The number of its first step.
    pub(super) first: u64,
    /// Each rank combines a part of each step.
    pub(super) is_split: bool,
    /// Of one that has a choice of protocols.
    pub(super) class: Option<Class>,
}

/// Bytes of a rank in a step.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) number: u64,
    pub(super) at: u64,
    pub(super) bytes: u64,
}

/// When a root copies what it gives to itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Before all else.
    First,
    /// Once others have all they need to go on.
    WhileOthersCopy,
    /// After all else.
    Last,
}

/// Up to so many bytes of all ranks together, each rank combines all of them: a split saves less
/// than its second wait costs.
const MAX_WHOLE: u64 = 4 << 10;
/// Up to so many ranks, a root by itself copies or combines all that they get or give. More of them
/// share the work, each a part.
const FEW_RANKS: u64 = 4;
/// Reductions to a root of more ranks are split if all together give more.
const MAX_WHOLE_REDUCE: u64 = 256 << 10;
/// Bytes from which on two ranks copy half of them each. Of fewer, the getter loses more than that when it
/// reads what the giver has copied, which lies in the giver's cache.
const MIN_JOINT: u64 = 256 << 10;
/// Up to so many bytes of a rank go in smaller pieces: others read the first while the next is written.
const MAX_SHORT: u64 = 64 << 10;
/// The smaller pieces.
const SHORT_PIECE: u64 = 4 << 10;

impl Step {
    /// Where its bytes are among those of a rank.
    #[inline]
    pub(super) fn range(&self) -> Range<usize> {
        self.at as usize..(self.at + self.bytes) as usize
    }
}

impl Operation {
    #[inline]
    pub(super) fn new(
        (call, bytes): (Call, u64),
        ranks: u64,
        first: u64,
        has_choice: bool,
    ) -> Self {
        match bytes <= MAX_SHORT_CALL {
            true => Operation::of_one_step((call, bytes), ranks, first),
            false => Operation::of_several_lines((call, bytes), ranks, first, has_choice),
        }
    }

    /// Of so few bytes that nothing need be weighed.
    #[inline(always)]
    pub(super) fn of_one_step((call, bytes): (Call, u64), ranks: u64, first: u64) -> Self {
        Operation {
            call,
            ranks,
            bytes,
            piece: MAX_SHORT_CALL,
            first,
            is_split: false,
            class: None,
        }
    }

    fn of_several_lines(
        (call, bytes): (Call, u64),
        ranks: u64,
        first: u64,
        has_choice: bool,
    ) -> Self {
        let least = match call {
            Call::Scatter { .. } => MIN_CHOICE,
            Call::Gather { .. } if ranks == 2 => MIN_CHOICE,
            // Each of more ranks would wait until the root has copied what all others give, too, which it
            // does at leisure from their areas if those hold it all.
            Call::Gather { .. } => WINDOW * AREA + 1,
            // The root of more ranks would wait for all, which read from its areas at leisure.
            Call::Broadcast { .. } if ranks == 2 => MIN_CHOICE,
            // Of more ranks, who gives what how would decide about the order of combining.
            Call::Allreduce(_) | Call::Reduce { .. } if ranks == 2 => MIN_CHOICE,
            _ => u64::MAX,
        };
        let class = match has_choice && bytes >= least {
            true => Class::of(bytes, call.combine().is_some()),
            false => None,
        };
        let most = match call {
            // All ranks' bytes are in the root's area.
            Call::Scatter { .. } => (AREA / ranks) & !(LINE - 1),
            _ => AREA,
        };
        let piece = match bytes {
            ..=MAX_SHORT => most.min(SHORT_PIECE),
            _ => most,
        };
        let others_bytes = bytes * (ranks - 1);
        Operation {
            call,
            ranks,
            bytes,
            piece,
            first,
            is_split: match call {
                Call::Allreduce(_) => class.is_none() && others_bytes > MAX_WHOLE,
                Call::Reduce { .. } => ranks > FEW_RANKS && others_bytes > MAX_WHOLE_REDUCE,
                _ => false,
            },
            class,
        }
    }

    #[inline]
    pub(super) fn steps(&self) -> u64 {
        match self.call {
            Call::Barrier => 1,
            _ if self.bytes <= self.piece => self.bytes.min(1),
            _ => self.bytes.div_ceil(self.piece),
        }
    }

    /// Whether ranks get something in the place of what they give.
    #[inline]
    pub(super) fn gets_and_gives(&self) -> bool {
        matches!(self.call, Call::Allreduce(_))
    }

    /// Whether more ranks than a few would copy at once what the root would copy alone.
    pub(super) fn is_for_many(&self) -> bool {
        matches!(self.call, Call::Scatter { .. }) && self.ranks > FEW_RANKS
    }

    /// Whether both ranks copy if the one that gives bytes doesn't copy them to its areas. Of a reduction one
    /// does: what it combines would be in the other's cache.
    pub(super) fn is_joint(&self) -> bool {
        let only_moves = matches!(
            self.call,
            Call::Broadcast { .. } | Call::Gather { .. } | Call::Scatter { .. }
        );
        only_moves && self.ranks == 2 && self.class.is_some() && self.bytes >= MIN_JOINT
    }

    /// A step by its place among the operation's.
    #[inline]
    pub(super) fn step(&self, number: u64) -> Step {
        let at = number * self.piece;
        Step {
            number: self.first + number,
            at,
            bytes: self.piece.min(self.bytes - at),
        }
    }

    /// Whether a rank gives bytes, or its presence.
    #[inline]
    pub(super) fn gives(&self, rank: usize) -> bool {
        match self.call {
            Call::Broadcast { root, .. } | Call::Scatter { root, .. } => root as usize == rank,
            Call::Gather { root, .. } => root as usize != rank,
            Call::Reduce { root, .. } => self.is_split || root as usize != rank,
            Call::Barrier | Call::Allreduce(_) => true,
        }
    }

    /// Whether a rank gets bytes of another one.
    #[inline]
    pub(super) fn gets(&self, rank: usize, of: usize) -> bool {
        match self.call {
            Call::Gather { root, .. } | Call::Reduce { root, .. } => root as usize == rank,
            Call::Broadcast { root, .. } | Call::Scatter { root, .. } => root as usize == of,
            Call::Barrier | Call::Allreduce(_) => true,
        }
    }

    /// What a rank gives has so many times the bytes that each gets or gives.
    #[inline]
    pub(super) fn blocks(&self) -> u64 {
        match self.call {
            Call::Barrier => 0,
            Call::Scatter { .. } => self.ranks,
            _ => 1,
        }
    }

    /// Where the bytes of a step go in the area of a rank that gives them, and where they are in
    /// its input.
    pub(super) fn given(
        &self,
        step: Step,
        rank: usize,
    ) -> impl Iterator<Item = (u64, Range<usize>)> + use<> {
        let blocks = self.blocks();
        let (all, Step { at, bytes, .. }) = (self.bytes, step);
        let is_others = move |block: &u64| blocks < 2 || *block != rank as u64;
        (0..blocks).filter(is_others).map(move |block| {
            let begin = (block * all + at) as usize;
            (block * bytes, begin..begin + bytes as usize)
        })
    }

    /// What the root gives to itself: where it is in its input, and where it goes in its result.
    #[inline]
    pub(super) fn own_piece(&self, rank: usize) -> Option<(Range<usize>, Range<usize>)> {
        let block = |block: usize| {
            let begin = block * self.bytes as usize;
            begin..begin + self.bytes as usize
        };
        match self.call {
            Call::Gather { root, .. } if root as usize == rank => Some((block(0), block(rank))),
            Call::Scatter { root, .. } if root as usize == rank => Some((block(rank), block(0))),
            _ => None,
        }
    }

    /// When that is copied. In place it may be overwritten by what others give, or overwrite what they get.
    pub(super) fn keeps_own(&self, is_in_place: bool) -> Keep {
        match self.call {
            _ if !is_in_place => Keep::WhileOthersCopy,
            Call::Scatter { .. } => Keep::Last,
            _ => Keep::First,
        }
    }

    /// How a reduction combines.
    #[inline]
    pub(super) fn combine(&self) -> Combine {
        self.call.combine().expect("only reductions combine")
    }

    /// Where a rank's bytes of a step are in its memory.
    #[inline]
    pub(super) fn area(&self, memory: Claim, step: Step) -> Claim {
        let blocks = self.blocks();
        let slot = step.number % SLOTS;
        let at = match step.bytes * blocks {
            ..=IN_LINE => few_bytes_of(step.number),
            _ => AREAS_AT + slot * APART,
        };
        memory.slice(at, step.bytes * blocks)
    }

    /// The part of a step that a rank combines: whole lines, so whole elements.
    pub(super) fn part(&self, step: Step, rank: usize) -> Range<u64> {
        let ranks = self.ranks;
        let bound = |rank: u64| match rank == ranks {
            true => step.bytes,
            false => step.bytes * rank / ranks / LINE * LINE,
        };
        bound(rank as u64)..bound(rank as u64 + 1)
    }
}
