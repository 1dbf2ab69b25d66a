//! Rounds among all ranks alike: dissemination and recursive doubling.

use super::{Draft, when};
use crate::schedule::{CounterId, Memory};

/// Round `r` counts two at counter `r`: that the rank itself is there, and that the
/// one before it is.
pub(crate) fn dissemination(draft: &mut Draft) {
    let rounds = draft.ranks.next_power_of_two().trailing_zeros();
    let mut after = None;
    for round in 0..rounds {
        let counter = draft.counter(2);
        let next = (u64::from(draft.rank) + (1 << round)) % u64::from(draft.ranks);
        let next = draft.target(next as u32, counter, 0);
        draft.put(after, Memory::Input.span(0, 0), next);
        draft.count(after, counter);
        after = when(counter, 2);
    }
    draft.schedule.done.extend(after);
}

/// What a round has gathered lies in the slot of its number, into which the rank
/// itself and its partner combine what the round before has. So each sum has two
/// terms, and all ranks have the same result to the last bit.
///
/// ```text
///   extra rank ──▶ slot 0 ── round 0 ──▶ slot 1 ── round 1 ──▶ slot 2 ──▶ extra rank
/// ```
pub(crate) fn recursive_doubling(draft: &mut Draft) {
    let rounds = draft.ranks.ilog2();
    let paired = 1 << rounds;
    if draft.rank >= paired {
        return extra(draft, paired);
    }
    let extra = (draft.rank + paired < draft.ranks).then_some(draft.rank + paired);
    let both = 2 * draft.pieces();
    let joined = draft.counter(extra.map_or(0, |_| both));
    let (mut known, mut after) = (draft.input(), None);
    if extra.is_some() {
        let own = draft.target(draft.rank, joined, 0);
        draft.combine(None, known, own);
        draft.reset(draft.slot(0));
        (known, after) = (draft.slot(0), when(joined, both));
    }
    for round in 0..rounds {
        let slot = u64::from(round) + 1;
        let counter = draft.counter(both);
        let partner = draft.rank ^ (1 << round);
        let to = draft.target(partner, counter, draft.slot(slot).at);
        draft.combine(after, known, to);
        let own = draft.target(draft.rank, counter, draft.slot(slot).at);
        draft.combine(after, known, own);
        draft.reset(draft.slot(slot));
        (known, after) = (draft.slot(slot), when(counter, both));
    }
    if let Some(extra) = extra {
        let to = draft.target(extra, CounterId(0), 0);
        draft.put(after, known, to);
    }
    draft.schedule.slot_bytes = draft.stride() * (u64::from(rounds) + 1);
    draft.schedule.done.extend(after);
    draft.store(known, 0);
}

/// A rank without a partner gives to one that has, and hears of the result.
fn extra(draft: &mut Draft, paired: u32) {
    let heard = draft.counter(1);
    let other = draft.target(draft.rank - paired, CounterId(0), 0);
    draft.combine(None, draft.input(), other);
    draft.schedule.slot_bytes = draft.stride();
    draft.done(heard, 1);
    draft.store(draft.slot(0), 0);
}
