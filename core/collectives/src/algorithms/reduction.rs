//! Up a tree, combining; and down again with the result.

use alloc::vec::Vec;

use super::{Draft, when};
use crate::collective::Order;
use crate::schedule::{CounterId, Memory, Span, When};
use crate::tree::{Family, Tree};

/// Counts the rank's own part, its children's, and its parent's leave to send.
const UP: CounterId = CounterId(0);
/// Counts the result's arrival, if it comes down. Counter 1 counts parts that are
/// combined in order.
const DOWN: CounterId = CounterId(2);
/// Counts how often the parent has released its slots, if no result comes down.
const FREE: CounterId = CounterId(2);

/// Where the sum grows: the children's own slots follow it.
const SUM: u64 = 0;

pub(crate) fn reduce(draft: &mut Draft, tree: Tree, order: Order) {
    let family = tree.family(draft.rank, draft.ranks);
    let leave = draft.leaves(usize::from(family.parent.is_some()));
    if leave > 0 {
        draft.count(when(FREE, 0), UP);
    }
    let (sum, summed) = gather_parts(draft, &family, order, leave);
    draft.counter(leave);
    if family.parent.is_some() {
        send_up(draft, &family, tree, order, (sum, summed));
    } else {
        draft.store(sum, 0);
    }
    draft.schedule.done.push(summed);
    release(draft, &family, FREE);
}

/// No leave is needed: the result comes down only when all parts have gone up.
pub(crate) fn reduce_and_broadcast(draft: &mut Draft, tree: Tree, order: Order) {
    let family = tree.family(draft.rank, draft.ranks);
    let (sum, summed) = gather_parts(draft, &family, order, 0);
    let (mut result, mut known) = (sum, summed);
    if family.parent.is_some() {
        let down = draft.counter(1);
        send_up(draft, &family, tree, order, (sum, summed));
        result = Memory::Slots.span(draft.schedule.slot_bytes, draft.bytes);
        known = When {
            counter: down,
            count: 1,
        };
    }
    for child in family.largest_first() {
        let below = tree.family(child.first, draft.ranks);
        let at = draft.stride() * slots_of(&below, order);
        let to = draft.target(child.first, DOWN, at);
        draft.put(Some(known), result, to);
    }
    draft.schedule.slot_bytes += draft.stride();
    draft.schedule.done.push(known);
    draft.store(result, 0);
}

/// Where a family's sum is, and when: makes the counters and the slots for it.
/// `leave` more are counted before it may be sent.
fn gather_parts(draft: &mut Draft, family: &Family, order: Order, leave: u64) -> (Span, When) {
    draft.schedule.slot_bytes = draft.stride() * slots_of(family, order);
    let children = family.children.len() as u64;
    let pieces = draft.pieces(draft.bytes);
    let messages = match order {
        _ if children == 0 => 0,
        Order::Arrival => (children + 1) * pieces,
        Order::Ranks => children,
    };
    let chained = match order {
        Order::Ranks if children > 0 => first_of_chain(draft) + children * pieces,
        _ => 0,
    };
    let up = draft.counter(messages + leave);
    let chain = draft.counter(chained);
    let arrived = When {
        counter: up,
        count: messages + leave,
    };
    if children == 0 {
        return (draft.input(), arrived);
    }
    let sum = draft.target(draft.rank, up, draft.slot(SUM).at);
    match order {
        Order::Arrival => {
            draft.reset(draft.slot(SUM));
            draft.combine(None, draft.input(), sum);
            (draft.slot(SUM), arrived)
        }
        Order::Ranks => {
            let chained = chain_in_order(draft, family, (arrived, chain));
            (draft.slot(SUM), chained)
        }
    }
}

/// Combines the children's parts with the rank's own, one after the other, counted at `chain`, as
/// [`combinations`] says; when the last one is combined.
fn chain_in_order(draft: &mut Draft, family: &Family, (arrived, chain): (When, CounterId)) -> When {
    let first = first_of_chain(draft);
    let pieces = draft.pieces(draft.bytes);
    let own = draft.target(draft.rank, chain, draft.slot(SUM).at);
    if draft.reuse_by_caller {
        draft.put(None, draft.input(), own);
        draft.count(Some(arrived), chain);
    } else {
        draft.put(Some(arrived), draft.input(), own);
    }
    let mut combined = first;
    for (into, from) in combinations(family) {
        let into = draft.target(draft.rank, chain, draft.slot(into).at);
        draft.combine(when(chain, combined), draft.slot(from), into);
        combined += pieces;
    }
    When {
        counter: chain,
        count: combined,
    }
}

/// Which slot is combined into which: the rank's own is 0, and each child's follows. Single ranks are
/// combined in the pairs in which a binomial tree would combine them, so that a flat tree gives the same
/// bits; branches in the order of ranks.
fn combinations(family: &Family) -> Vec<(u64, u64)> {
    let slots = 1 + family.children.len() as u64;
    if family.children.iter().any(|child| child.ranks > 1) {
        return (1..slots).map(|child| (SUM, child)).collect();
    }
    let mut pairs = Vec::new();
    let mut apart = 1;
    while apart < slots {
        let lower = (0..slots - apart).step_by(2 * apart as usize);
        pairs.extend(lower.map(|slot| (slot, slot + apart)));
        apart *= 2;
    }
    pairs
}

/// What the chain has counted when the first child's part may be combined. If slots are
/// free, the rank's own part goes there at once, and only the others' are waited for.
fn first_of_chain(draft: &Draft) -> u64 {
    1 + u64::from(draft.reuse_by_caller)
}

/// Slots that a family needs for its sum.
fn slots_of(family: &Family, order: Order) -> u64 {
    match (family.children.len() as u64, order) {
        (0, _) => 0,
        (_, Order::Arrival) => 1,
        (children, Order::Ranks) => 1 + children,
    }
}

fn send_up(
    draft: &mut Draft,
    family: &Family,
    tree: Tree,
    order: Order,
    (sum, summed): (Span, When),
) {
    let parent = family.parent.expect("only a rank with a parent sends up");
    let summed = (summed.count > 0).then_some(summed);
    match order {
        Order::Arrival => {
            let to = draft.target(parent, UP, draft.slot(SUM).at);
            draft.combine(summed, sum, to);
        }
        Order::Ranks => {
            let place = tree.family(parent, draft.ranks).index_of(draft.rank);
            let to = draft.target(parent, UP, draft.slot(1 + place).at);
            draft.put(summed, sum, to);
        }
    }
}

/// Notifies the children that their parent's slots are free again.
pub(super) fn release(draft: &mut Draft, family: &Family, counter: CounterId) {
    if draft.reuse_by_caller {
        return;
    }
    for child in family.largest_first() {
        let to = draft.target(child.first, counter, 0);
        draft.schedule.releases.push(to);
    }
}
