//! One function an algorithm: it writes a rank's schedule.

mod block;
mod doubling;
mod halving;
mod reduction;

pub(crate) use block::{broadcast, gather, scatter};
pub(crate) use doubling::{dissemination, recursive_doubling};
pub(crate) use halving::{halving_allreduce, halving_reduce};
pub(crate) use reduction::{reduce, reduce_and_broadcast};

use crate::collective::Shape;
use crate::schedule::{
    Act, Counter, CounterId, Memory, Movement, Schedule, Span, Step, Store, Target, Transfer, When,
};

/// Where slots of their own begin: a cache line, and enough for any element.
pub(crate) const ALIGNMENT: u64 = 64;

/// A schedule that is being written. Ranks are numbered from the root.
pub(crate) struct Draft {
    pub(crate) schedule: Schedule,
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    pub(crate) bytes: u64,
    /// The caller makes sure that slots are free when an operation begins.
    pub(crate) reuse_by_caller: bool,
    root: u32,
    largest_combine: u64,
}

/// What a counter waits for, shorter to write.
pub(crate) fn when(counter: CounterId, count: u64) -> Option<When> {
    Some(When { counter, count })
}

impl Draft {
    pub(crate) fn new(rank: u32, shape: Shape, largest_combine: u64) -> Self {
        Draft {
            schedule: Schedule::default(),
            rank,
            ranks: shape.ranks,
            bytes: shape.bytes,
            reuse_by_caller: false,
            root: 0,
            largest_combine,
        }
    }

    /// From here on, ranks are numbered from `root`.
    pub(crate) fn rooted_at(&mut self, root: u32) -> &mut Self {
        self.root = root;
        self.rank = ((u64::from(self.rank) + u64::from(self.ranks) - u64::from(root))
            % u64::from(self.ranks)) as u32;
        self
    }

    /// The rank that the caller knows.
    fn real(&self, rank: u32) -> u32 {
        ((u64::from(rank) + u64::from(self.root)) % u64::from(self.ranks)) as u32
    }

    /// How far apart slots for a rank's bytes are.
    fn stride(&self) -> u64 {
        self.bytes.next_multiple_of(ALIGNMENT)
    }

    /// How many messages combine so many bytes.
    fn pieces(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.largest_combine).max(1)
    }

    fn input(&self) -> Span {
        Memory::Input.span(0, self.bytes)
    }

    fn slot(&self, number: u64) -> Span {
        Memory::Slots.span(number * self.stride(), self.bytes)
    }

    fn target(&self, rank: u32, counter: CounterId, at: u64) -> Target {
        let rank = self.real(rank);
        Target { rank, counter, at }
    }

    /// Counters are numbered in the order in which they are added.
    fn counter(&mut self, each: u64) -> CounterId {
        let counter = self.next_counter();
        self.schedule.counters.push(Counter { each });
        counter
    }

    /// The one that is added next: if ranks add the same ones, a partner's too.
    fn next_counter(&self) -> CounterId {
        CounterId(self.schedule.counters.len() as u32)
    }

    /// How many leaves to send a rank waits for that needs so many.
    fn leaves(&self, needed: usize) -> u64 {
        if self.reuse_by_caller {
            0
        } else {
            needed as u64
        }
    }

    fn step(&mut self, when: Option<When>, act: Act) {
        self.schedule.steps.push(Step { when, act });
    }

    fn count(&mut self, when: Option<When>, counter: CounterId) {
        self.step(when, Act::Count(counter));
    }

    fn put(&mut self, when: Option<When>, from: Span, to: Target) {
        let transfer = Transfer {
            movement: Movement::Put,
            from,
            to,
        };
        self.step(when, Act::Send(transfer));
    }

    /// In as many messages as [`Draft::pieces`] says.
    fn combine(&mut self, when: Option<When>, from: Span, to: Target) {
        let largest = self.largest_combine;
        for piece in 0..self.pieces(from.bytes) {
            let begin = piece * largest;
            let transfer = Transfer {
                movement: Movement::Combine,
                from: Span {
                    at: from.at + begin,
                    bytes: largest.min(from.bytes - begin),
                    ..from
                },
                to: Target {
                    at: to.at + begin,
                    ..to
                },
            };
            self.step(when, Act::Send(transfer));
        }
    }

    /// Others combine in this slot.
    fn reset(&mut self, slot: Span) {
        if slot.bytes > 0 {
            self.schedule.resets.push(slot.at..slot.at + slot.bytes);
        }
    }

    fn store(&mut self, from: Span, to: u64) {
        if from.bytes > 0 {
            self.schedule.stores.push(Store { from, to });
        }
    }

    fn done(&mut self, counter: CounterId, count: u64) {
        self.schedule.done.push(When { counter, count });
    }
}
