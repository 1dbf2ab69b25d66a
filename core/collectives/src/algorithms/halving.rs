//! Long reductions: each rank sums one part of the bytes, and the parts are joined
//! (Thakur, Rabenseifner, Gropp, 2005).
//!
//! ```text
//!            all bytes    a half      its part               all bytes
//!   rank 0   aaaaaaaa ─▶  AAAA---- ─▶ AA------  ─▶ AAAA---- ─▶ AAAAAAAA
//!   rank 1   aaaaaaaa ─▶  ----AAAA ─▶ ----AA--  ─▶ ----AAAA ─▶ AAAAAAAA
//!   rank 2   aaaaaaaa ─▶  AAAA---- ─▶ --AA----  ─▶ AAAA---- ─▶ AAAAAAAA
//!   rank 3   aaaaaaaa ─▶  ----AAAA ─▶ ------AA  ─▶ ----AAAA ─▶ AAAAAAAA
//!               partner 1 away, then 2      then 2 and 1 away again
//! ```
//!
//! A rank combines and sends less than twice its bytes, however many ranks there are;
//! recursive doubling does so with all bytes in each round. Each part is summed by one
//! rank, so all ranks get the same bits; and in the pairs of recursive doubling, so they are the
//! same by both.

use alloc::vec::Vec;

use super::doubling::{Known, extra, give, meet};
use super::{ALIGNMENT, Draft, when};
use crate::collective::Order;
use crate::schedule::{CounterId, Memory, Span};

/// Counts what comes from the rank without a partner, and there the result or the
/// leave to send.
const FOLD: CounterId = CounterId(0);

pub(crate) fn halving_allreduce(draft: &mut Draft, order: Order) {
    let layout = Layout::of(draft);
    if draft.rank >= layout.paired {
        return extra(draft, layout.folded(), order);
    }
    let known = fold(draft, &layout, order);
    let (parts, own) = scatter_sums(draft, &layout, known, order);
    let mut known = own;
    for (round, &(part, whole)) in parts.iter().enumerate().rev() {
        let counter = draft.counter(2);
        let partner = draft.target(layout.partner(draft.rank, round), counter, part.begin);
        draft.put(known.when, part.joined(), partner);
        draft.count(known.when, counter);
        known = Known {
            bytes: whole.joined(),
            when: when(counter, 2),
        };
    }
    if let Some(extra) = layout.extra(draft) {
        let to = draft.target(extra, FOLD, 0);
        draft.put(known.when, known.bytes, to);
    }
    draft.schedule.slot_bytes = layout.bytes();
    draft.schedule.done.extend(known.when);
    draft.store(known.bytes, 0);
}

/// Ranks are numbered from the root, which the parts go to.
pub(crate) fn halving_reduce(draft: &mut Draft, order: Order) {
    let layout = Layout::of(draft);
    if draft.rank >= layout.paired {
        return extra_of_reduce(draft, &layout, order);
    }
    let known = fold(draft, &layout, order);
    let (parts, mut known) = scatter_sums(draft, &layout, known, order);
    for (round, &(part, whole)) in parts.iter().enumerate().rev() {
        let partner = layout.partner(draft.rank, round);
        if partner < draft.rank {
            let up = draft.target(partner, draft.next_counter(), part.begin);
            draft.put(known.when, part.joined(), up);
            break;
        }
        let counter = draft.counter(2);
        draft.count(known.when, counter);
        known = Known {
            bytes: whole.joined(),
            when: when(counter, 2),
        };
    }
    draft.schedule.slot_bytes = layout.bytes();
    draft.schedule.done.extend(known.when);
    if draft.rank == 0 {
        draft.store(known.bytes, 0);
    }
    if let (Some(extra), false) = (layout.extra(draft), draft.reuse_by_caller) {
        draft.schedule.releases.push(draft.target(extra, FOLD, 0));
    }
}

/// It receives no result, so a message of its own says when its slot is free.
fn extra_of_reduce(draft: &mut Draft, layout: &Layout, order: Order) {
    let leave = draft.leaves(1);
    let free = draft.counter(leave);
    let at = draft.target(draft.rank - layout.paired, FOLD, layout.folded());
    let own = Known {
        bytes: draft.input(),
        when: when(free, 0).filter(|_| leave > 0),
    };
    give(draft, own, at, order);
}

/// Takes in what a rank without a partner gives.
fn fold(draft: &mut Draft, layout: &Layout, order: Order) -> Known {
    let known = Known {
        bytes: draft.input(),
        when: None,
    };
    match layout.extra(draft) {
        Some(_) => {
            let slot = Memory::Slots.span(layout.folded(), draft.bytes);
            meet(draft, known, slot, order)
        }
        None => {
            draft.counter(0);
            known
        }
    }
}

/// Round by round gives one half away and sums the other. Returns, of each round, the
/// half that was kept and what it was a half of; and the sum of the last one.
fn scatter_sums(
    draft: &mut Draft,
    layout: &Layout,
    mut known: Known,
    order: Order,
) -> (Vec<(Part, Part)>, Known) {
    let mut whole = Part {
        begin: 0,
        end: draft.bytes,
    };
    let mut parts = Vec::new();
    for round in 0..layout.rounds as usize {
        let (lower, upper) = whole.halves();
        let partner = layout.partner(draft.rank, round);
        let (kept, given) = match draft.rank < partner {
            true => (lower, upper),
            false => (upper, lower),
        };
        let there = draft.target(partner, draft.next_counter(), layout.slot(round, given).at);
        let of = |half: Part| Known {
            bytes: Span {
                at: known.bytes.at + half.begin - whole.begin,
                bytes: half.end - half.begin,
                ..known.bytes
            },
            ..known
        };
        give(draft, of(given), there, order);
        known = meet(draft, of(kept), layout.slot(round, kept), order);
        parts.push((kept, whole));
        whole = kept;
    }
    (parts, known)
}

/// Some of a rank's bytes.
#[derive(Clone, Copy)]
struct Part {
    begin: u64,
    end: u64,
}

impl Part {
    /// Cut between two lines, and so between two elements of any size.
    fn halves(self) -> (Part, Part) {
        let lines = (self.end - self.begin).div_ceil(ALIGNMENT);
        let middle = self.begin + lines.div_ceil(2) * ALIGNMENT;
        let middle = middle.min(self.end);
        let (begin, end) = (self.begin, self.end);
        (Part { begin, end: middle }, Part { begin: middle, end })
    }

    /// Where it lies when parts are joined.
    fn joined(self) -> Span {
        Memory::Slots.span(self.begin, self.end - self.begin)
    }
}

/// Where things lie in the slots of every rank: first the result, where the last round
/// sums already; then a slot for each earlier round; last what a rank without a partner
/// gives.
struct Layout {
    paired: u32,
    rounds: u32,
    lines: u64,
}

impl Layout {
    fn of(draft: &Draft) -> Layout {
        let rounds = draft.ranks.ilog2();
        Layout {
            paired: 1 << rounds,
            rounds,
            lines: draft.bytes.div_ceil(ALIGNMENT),
        }
    }

    fn partner(&self, rank: u32, round: usize) -> u32 {
        rank ^ (1 << round)
    }

    /// The rank without a partner that gives to this one.
    fn extra(&self, draft: &Draft) -> Option<u32> {
        Some(draft.rank + self.paired).filter(|&extra| extra < draft.ranks)
    }

    /// Where a round sums the half that is kept.
    fn slot(&self, round: usize, kept: Part) -> Span {
        let last = round + 1 == self.rounds as usize;
        let at = if last { kept.begin } else { self.behind(round) };
        Memory::Slots.span(at, kept.end - kept.begin)
    }

    /// The end of the result and of so many rounds' slots.
    fn behind(&self, rounds: usize) -> u64 {
        let of_round = |round| self.lines.div_ceil(2u64 << round);
        (self.lines + (0..rounds).map(of_round).sum::<u64>()) * ALIGNMENT
    }

    fn folded(&self) -> u64 {
        self.behind((self.rounds as usize).saturating_sub(1))
    }

    fn bytes(&self) -> u64 {
        self.folded() + self.lines * ALIGNMENT
    }
}
