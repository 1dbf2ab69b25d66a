//! Rounds among all ranks alike: dissemination and recursive doubling.

use super::{Draft, when};
use crate::collective::Order;
use crate::schedule::{CounterId, Memory, Span, Target, When};

/// Round `r` counts at counter `r` that the one before it is there, and, if that
/// isn't plain as in the first round, that the rank itself is.
pub(crate) fn dissemination(draft: &mut Draft) {
    let rounds = draft.ranks.next_power_of_two().trailing_zeros();
    let mut after = None;
    for round in 0..rounds {
        let all = 1 + u64::from(after.is_some());
        let counter = draft.counter(all);
        let next = (u64::from(draft.rank) + (1 << round)) % u64::from(draft.ranks);
        let next = draft.target(next as u32, counter, 0);
        draft.put(after, Memory::Input.span(0, 0), next);
        if after.is_some() {
            draft.count(after, counter);
        }
        after = when(counter, all);
    }
    draft.schedule.done.extend(after);
}

/// What a round has gathered lies in the slot of its number, where the rank's own
/// and its partner's are combined. So each sum has two terms, and all ranks have the
/// same result to the last bit.
///
/// ```text
///   extra rank ──▶ slot 0 ── round 0 ──▶ slot 1 ── round 1 ──▶ slot 2 ──▶ extra rank
/// ```
pub(crate) fn recursive_doubling(draft: &mut Draft, order: Order) {
    let rounds = draft.ranks.ilog2();
    let paired = 1 << rounds;
    if draft.rank >= paired {
        return extra(draft, 0, order);
    }
    let extra = (draft.rank + paired < draft.ranks).then_some(draft.rank + paired);
    let mut known = Known {
        bytes: draft.input(),
        when: None,
    };
    match extra {
        Some(_) => known = meet(draft, known, draft.slot(0), order),
        None => _ = draft.counter(0),
    }
    for round in 0..rounds {
        let slot = draft.slot(u64::from(round) + 1);
        let counter = CounterId(round + 1);
        let partner = draft.target(draft.rank ^ (1 << round), counter, slot.at);
        give(draft, known, partner, order);
        known = meet(draft, known, slot, order);
    }
    if let Some(extra) = extra {
        let to = draft.target(extra, CounterId(0), 0);
        draft.put(known.when, known.bytes, to);
    }
    draft.schedule.slot_bytes = draft.stride() * (u64::from(rounds) + 1);
    draft.schedule.done.extend(known.when);
    draft.store(known.bytes, 0);
}

/// What a rank has gathered, and when it has.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) bytes: Span,
    pub(super) when: Option<When>,
}

/// Hands it to a partner's slot.
pub(super) fn give(draft: &mut Draft, known: Known, partner: Target, order: Order) {
    match order {
        Order::Arrival => draft.combine(known.when, known.bytes, partner),
        Order::Ranks => draft.put(known.when, known.bytes, partner),
    }
}

/// Combines it with what a partner gives to `slot`, counting at a counter that it
/// makes.
pub(super) fn meet(draft: &mut Draft, known: Known, slot: Span, order: Order) -> Known {
    let pieces = draft.pieces(slot.bytes);
    // What needs no waiting for needs no counting either.
    let both = 1 + u64::from(known.when.is_some());
    let all = match order {
        Order::Arrival => 2 * pieces,
        Order::Ranks => both + pieces,
    };
    let counter = draft.counter(all);
    let own = draft.target(draft.rank, counter, slot.at);
    match order {
        Order::Arrival => {
            draft.combine(known.when, known.bytes, own);
            draft.reset(slot);
        }
        Order::Ranks => {
            if known.when.is_some() {
                draft.count(known.when, counter);
            }
            draft.combine(when(counter, both), known.bytes, own);
        }
    }
    Known {
        bytes: slot,
        when: when(counter, all),
    }
}

/// A rank without a partner sends to one that has, to that place of its slots, and receives
/// the result.
pub(super) fn extra(draft: &mut Draft, at: u64, order: Order) {
    let heard = draft.counter(1);
    let paired = 1 << draft.ranks.ilog2();
    let other = draft.target(draft.rank - paired, CounterId(0), at);
    let own = Known {
        bytes: draft.input(),
        when: None,
    };
    give(draft, own, other, order);
    draft.schedule.slot_bytes = draft.stride();
    draft.done(heard, 1);
    draft.store(draft.slot(0), 0);
}
