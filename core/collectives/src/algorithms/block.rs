//! Bytes that travel as they are: broadcast, gather, scatter.

use super::reduction::release;
use super::{Draft, when};
use crate::schedule::{CounterId, Memory, Span};
use crate::tree::{Branch, Tree};

/// Counts how often the ranks that this one sends to have released their slots.
const FREE: CounterId = CounterId(0);
/// Counts what arrives, and the leave to send it on. A pipeline has one such for
/// each piece: they may overtake each other.
const ARRIVED: CounterId = CounterId(1);

/// Pieces of a pipeline, at most: each has a counter.
const MOST_PIECES: u64 = 64;

pub(crate) fn broadcast(draft: &mut Draft, tree: Tree, piece: u64) {
    let family = tree.family(draft.rank, draft.ranks);
    let bytes = draft.bytes;
    let piece = piece.max(bytes.div_ceil(MOST_PIECES)).max(1);
    let children = family.largest_first();
    let leaves = draft.leaves(children.len());
    let leave = leaves.min(1);
    draft.counter(leaves);
    for number in 0..bytes.div_ceil(piece).max(1) {
        let begin = number * piece;
        let part = |memory: Memory| memory.span(begin, piece.min(bytes - begin));
        let (from, ready) = match family.parent {
            None => (part(Memory::Input), when(FREE, 0)),
            Some(_) => {
                let arrived = draft.counter(1 + leave);
                if leave > 0 {
                    draft.count(when(FREE, 0), arrived);
                }
                let ready = when(arrived, 1 + leave);
                draft.schedule.done.extend(ready);
                (part(Memory::Slots), ready)
            }
        };
        for child in &children {
            let counter = CounterId(ARRIVED.0 + number as u32);
            let to = draft.target(child.first, counter, begin);
            draft.put(ready, from, to);
        }
    }
    match family.parent {
        None => draft.store(draft.input(), 0),
        Some(parent) => {
            draft.schedule.slot_bytes = bytes;
            draft.store(Memory::Slots.span(0, bytes), 0);
            release_to(draft, parent);
        }
    }
}

/// A rank's slots hold the blocks of its branch.
pub(crate) fn gather(draft: &mut Draft, tree: Tree) {
    let family = tree.family(draft.rank, draft.ranks);
    let leave = draft.leaves(usize::from(family.parent.is_some()));
    let parts = 1 + family.children.len() as u64 + leave;
    draft.counter(leave);
    let arrived = draft.counter(parts);
    let own = draft.target(draft.rank, arrived, 0);
    draft.put(None, draft.input(), own);
    let blocks = u64::from(family.branch.ranks) * draft.bytes;
    draft.schedule.slot_bytes = blocks;
    match family.parent {
        Some(parent) => {
            if leave > 0 {
                draft.count(when(FREE, 0), arrived);
            }
            let at = u64::from(draft.rank - parent) * draft.bytes;
            let to = draft.target(parent, ARRIVED, at);
            draft.put(when(arrived, parts), Memory::Slots.span(0, blocks), to);
        }
        None => {
            for (in_order, in_slots) in runs(draft, family.branch) {
                draft.store(Memory::Slots.span(in_slots, in_order.bytes), in_order.at);
            }
        }
    }
    draft.done(arrived, parts);
    release(draft, &family, FREE);
}

/// A rank's slots hold the blocks of its branch; the root's input holds all, in the
/// order of ranks.
pub(crate) fn scatter(draft: &mut Draft, tree: Tree) {
    let family = tree.family(draft.rank, draft.ranks);
    let children = family.largest_first();
    let leaves = draft.leaves(children.len());
    draft.counter(leaves);
    let Some(parent) = family.parent else {
        return scatter_from_root(draft, &children);
    };
    let from_root = parent == 0;
    let messages = if from_root {
        runs(draft, family.branch).len()
    } else {
        1
    } as u64;
    let leave = leaves.min(1);
    let arrived = draft.counter(messages + leave);
    if leave > 0 {
        draft.count(when(FREE, 0), arrived);
    }
    for child in children {
        let at = u64::from(child.first - draft.rank) * draft.bytes;
        let blocks = u64::from(child.ranks) * draft.bytes;
        let to = draft.target(child.first, ARRIVED, 0);
        draft.put(
            when(arrived, messages + leave),
            Memory::Slots.span(at, blocks),
            to,
        );
    }
    draft.schedule.slot_bytes = u64::from(family.branch.ranks) * draft.bytes;
    draft.done(arrived, messages + leave);
    draft.store(Memory::Slots.span(0, draft.bytes), 0);
    release_to(draft, parent);
}

fn scatter_from_root(draft: &mut Draft, children: &[Branch]) {
    for &child in children {
        for (from, at) in runs(draft, child) {
            let to = draft.target(child.first, ARRIVED, at);
            draft.put(when(FREE, 0), from, to);
        }
    }
    let own = u64::from(draft.real(draft.rank)) * draft.bytes;
    draft.store(Memory::Input.span(own, draft.bytes), 0);
}

/// Notifies the parent that its child's slots are free again.
fn release_to(draft: &mut Draft, parent: u32) {
    if !draft.reuse_by_caller {
        draft.schedule.releases.push(draft.target(parent, FREE, 0));
    }
}

/// A branch's blocks where all blocks lie in the order of ranks, and where each run
/// of them lies in the branch's own slots: two runs if the numbers of the ranks wrap around.
fn runs(draft: &Draft, branch: Branch) -> alloc::vec::Vec<(Span, u64)> {
    let first = draft.real(branch.first);
    let until_end = (draft.ranks - first).min(branch.ranks);
    let run = |first: u32, ranks: u32, before: u32| {
        let in_order = Memory::Input.span(
            u64::from(first) * draft.bytes,
            u64::from(ranks) * draft.bytes,
        );
        (in_order, u64::from(before) * draft.bytes)
    };
    let mut runs = alloc::vec![run(first, until_end, 0)];
    if until_end < branch.ranks {
        runs.push(run(0, branch.ranks - until_end, until_end));
    }
    runs
}
