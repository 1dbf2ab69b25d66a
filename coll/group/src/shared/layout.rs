//! Where marks and bytes are in a rank's memory.

use super::MAX_SHARING_RANKS;
use super::protocol::RANGES;

/// Whom a rank waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Its bytes are in its area, or their address in the slot.
    Given,
    /// Its part of the combined bytes is in its area.
    Combined,
    /// It has copied what it gets.
    Pulled,
    /// It has copied the part of what it gives that it does.
    Pushed,
}

/// Slots, and areas, of a rank.
pub(super) const SLOTS: u64 = 32;
/// Steps that are given before the first of them is taken.
pub(super) const WINDOW: u64 = SLOTS / 2;
/// A rank fetches the line of its mark, by a store, so many steps before it writes it: those that
/// have read the line in the slot's step before still have copies.
pub(super) const FETCHED_AHEAD: u64 = 2;
pub(super) const LINE: u64 = 64;
/// A slot has a line for each mark.
const SLOT: u64 = 2 * LINE;
/// So few bytes lie in the line of the mark.
pub(super) const IN_LINE: u64 = 48;
/// An operation of so few bytes of each rank is one step: also of a scatter, whose bytes for all
/// ranks are in an area then.
pub(crate) const MAX_SHORT_CALL: u64 = IN_LINE;
const _: () = assert!(MAX_SHORT_CALL * MAX_SHARING_RANKS as u64 <= AREA);
/// Where they lie there: aligned to any element, behind the mark and a word that holds nothing.
const IN_LINE_AT: u64 = LINE - IN_LINE;
/// Bytes of an area.
pub(super) const AREA: u64 = 16 << 10;
/// From one area to the next: their first lines don't share a set of the cache.
pub(super) const APART: u64 = AREA + 5 * LINE;
/// Behind the line of `entered`, which other lines' neighbours aren't fetched with.
const SLOTS_AT: u64 = SLOT;
pub(super) const AREAS_AT: u64 = SLOTS_AT + SLOTS * SLOT;
/// Where a rank publishes what it has measured.
pub(super) const MEASURED_AT: u64 = LINE;
const _: () = assert!(MEASURED_AT + (RANGES * size_of::<u64>()) as u64 <= SLOTS_AT);

/// Where few bytes of a step are in a rank's memory.
#[inline]
pub(super) fn few_bytes_of(number: u64) -> u64 {
    place_of(number, Mark::Given) + IN_LINE_AT
}

/// Where it says beside [`Mark::Pushed`] whether that has failed.
pub(super) fn push_failed_of(number: u64) -> u64 {
    place_of(number, Mark::Pushed) + size_of::<u64>() as u64
}

/// A word in the line of a step's mark that holds nothing.
#[inline]
pub(super) fn unused_of(number: u64) -> u64 {
    place_of(number, Mark::Given) + size_of::<u64>() as u64
}

/// Where the mark of a step is in a rank's memory.
#[inline]
pub(super) fn place_of(number: u64, mark: Mark) -> u64 {
    let line = SLOTS_AT + number % SLOTS * SLOT;
    match mark {
        Mark::Given => line,
        Mark::Combined | Mark::Pulled | Mark::Pushed => line + LINE,
    }
}
