//! How much went through a ring: its own positions, so that no message costs a count.

use lintel_snapshot::Count;
use std::cell::Cell;

/// Bytes of a slot, and of a line of data.
const LINE: u64 = 64;

/// A number that is known modulo 2^32, beyond that; it is to be followed before it has
/// wrapped.
#[derive(Default)]
struct Extended(Cell<u64>);

impl Extended {
    fn follow(&self, low: u32) -> u64 {
        let before = self.0.get();
        let now = before.wrapping_add(low.wrapping_sub(before as u32).into());
        self.0.set(now);
        now
    }
}

/// What went one way through a ring, and beside it.
#[derive(Default)]
pub(crate) struct Tally {
    slots: Extended,
    lines: Extended,
    /// Records that were parts of a stream.
    pub(crate) chunks: u64,
    /// Bytes copied from the sender's memory or to it by this process.
    pub(crate) copied: u64,
}

impl Tally {
    /// What it is at that position, in slots and lines of data modulo 2^32.
    pub(crate) fn at(&self, (slots, lines): (u32, u32)) -> Count {
        let (slots, lines) = (self.slots.follow(slots), self.lines.follow(lines));
        Count {
            messages: slots.wrapping_sub(self.chunks),
            bytes: slots.wrapping_add(lines).wrapping_mul(LINE),
            copied: self.copied,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_on_where_positions_wrap() {
        let tally = Tally::default();
        for slots in [u32::MAX, 4, u32::MAX, 9] {
            tally.at((slots, 0));
        }
        let count = tally.at((9, 1));
        assert_eq!(count.messages, (2 << 32) + 9);
        assert_eq!(count.bytes, ((2 << 32) + 9 + 1) * LINE);
    }

    #[test]
    fn parts_of_streams_are_no_messages() {
        let tally = Tally {
            chunks: 4,
            copied: 7,
            ..Tally::default()
        };
        let count = tally.at((5, 256));
        assert_eq!((count.messages, count.copied), (1, 7));
    }
}
