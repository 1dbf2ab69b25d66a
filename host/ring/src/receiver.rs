//! The receiving side.

use crate::{
    Control, INLINE, MAX_PAYLOAD, NEAR_LINES, Position, SLOTS, WORDS, WRAPS, data_at, data_lines,
    head, payload_bytes, prefetch, slot_at, word,
};
use lintel_claim::Claim;
use std::sync::atomic::Ordering;

/// Records in a row from which on more are expected.
const STREAM: u32 = 4;
/// How far ahead slots are fetched then: beyond those that the sender fetches in order to write
/// them. Where it hasn't come so far, this processor still has the line of the lap before, and
/// takes none from the sender.
const SLOTS_AHEAD: usize = 32;

/// Reads the records of one ring, in order.
#[derive(Debug)]
pub struct Receiver {
    ring: *mut u8,
    control: *const Control,
    /// Lines of data.
    lines: usize,
    position: Position,
    /// Slots that the sender knows this side has done with, and lines of payload that it doesn't.
    published_slots: u32,
    unpublished_lines: u32,
    /// Lines of data of the record that `peek` has shown, and whether they wrap, if there are any.
    open: usize,
    open_wraps: bool,
    /// Records found since the last look in vain, modulo 2^32.
    in_a_row: u32,
}

/// A record that has arrived. Its payload stays valid until [`Receiver::advance`].
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// The header; of the first word the low half is the ring's.
    pub words: [u64; WORDS],
    /// The payload, in the ring. The sender could still change it.
    pub payload: Claim,
}

/// The sender has written what no sender writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corrupt;

// SAFETY: the pointers name shared memory that outlives the receiver
// (Receiver::new); the receiver is the only reader, whichever thread holds it.
unsafe impl Send for Receiver {}

impl Receiver {
    /// The receiver of a fresh ring with so many lines of data: memory of zeros and a [`Control`]
    /// of zero.
    ///
    /// # Safety
    /// `ring` is aligned to 64 bytes, [`ring_bytes`](crate::ring_bytes) long and,
    /// with `control`, stays mapped as long as the receiver and its records live.
    pub unsafe fn new(ring: *mut u8, control: *const Control, lines: usize) -> Self {
        Receiver {
            ring,
            control,
            lines,
            position: Position::START,
            published_slots: 0,
            unpublished_lines: 0,
            open: 0,
            open_wraps: false,
            in_a_row: 0,
        }
    }

    /// Slots and lines of data that this side has done with so far, modulo 2^32.
    pub fn position(&self) -> (u32, u32) {
        (self.position.slots, self.position.lines)
    }

    /// The next record, if one has arrived; the same one again until
    /// [`advance`](Self::advance).
    ///
    /// # Errors
    /// [`Corrupt`] for ever after the sender has written nonsense.
    #[inline(always)]
    pub fn peek(&mut self) -> Result<Option<Record>, Corrupt> {
        let commit = self.commit_word();
        if commit as u16 == self.position.former_lap {
            return Ok(None);
        }
        self.record(commit).ok_or(Corrupt).map(Some)
    }

    /// Whether no record has arrived.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.commit_word() as u16 == self.position.former_lap
    }

    /// As [`peek`](Self::peek), but also gives nothing if the sender has written nonsense.
    #[inline(always)]
    pub fn peek_plain(&mut self) -> Option<Record> {
        self.peek_if(|_| true)
    }

    /// As [`peek_plain`](Self::peek_plain), only a record whose first word is wanted; of one that
    /// isn't, no other is read. The first word may be that of an earlier record, which isn't given.
    #[inline(always)]
    pub fn peek_if(&mut self, is_wanted: impl FnOnce(u64) -> bool) -> Option<Record> {
        let commit = self.commit_word();
        match is_wanted(commit) {
            true => self.record(commit),
            false => None,
        }
    }

    /// Where the next record comes, and the lap that its slot bears until then.
    #[inline(always)]
    pub(crate) fn next_slot(&self) -> (*mut u8, u16) {
        // SAFETY: the ring is mapped (Receiver::new), and a position's slot lies inside.
        let slot = unsafe { slot_at(self.ring, self.position.slot) };
        (slot, self.position.former_lap)
    }

    /// The commit word of the slot where the next record comes.
    #[inline(always)]
    fn commit_word(&self) -> u64 {
        self.commit_word_at(&self.position)
    }

    #[inline(always)]
    fn commit_word_at(&self, position: &Position) -> u64 {
        // SAFETY: the ring is mapped (Receiver::new), and a position's slot lies inside.
        let slot = unsafe { slot_at(self.ring, position.slot) };
        // Pairs with the Release store in `Sender::commit` ("ring commit").
        // SAFETY: a slot begins with its commit word.
        unsafe { word(slot) }.load(Ordering::Acquire)
    }

    /// The record that this commit word commits; nothing if it is of another lap, or names a
    /// payload that no record has.
    #[inline(always)]
    fn record(&mut self, commit: u64) -> Option<Record> {
        let Some(record) = self.record_at(&self.position, commit) else {
            self.in_a_row = 0;
            return None;
        };
        self.in_a_row = self.in_a_row.wrapping_add(1);
        if self.in_a_row > STREAM {
            self.fetch_slot_ahead();
        }
        self.open = data_lines(payload_bytes(commit));
        if self.open > 0 {
            self.open_wraps = commit & WRAPS != 0;
        }
        Some(record)
    }

    /// As [`record`](Self::record), at that position.
    #[inline(always)]
    fn record_at(&self, position: &Position, commit: u64) -> Option<Record> {
        let bytes = payload_bytes(commit);
        if commit as u16 != position.lap || bytes > MAX_PAYLOAD {
            return None;
        }
        // SAFETY: as in commit_word.
        let slot = unsafe { slot_at(self.ring, position.slot) };
        // SAFETY: five times: the words lie in the slot.
        let load = |index: usize| unsafe { word(slot.add(index * 8)) }.load(Ordering::Relaxed);
        let words = [commit, load(1), load(2), load(3), load(4), load(5)];
        let payload = if bytes <= INLINE {
            // SAFETY: the slot's last bytes.
            unsafe { Claim::new(slot.add(WORDS * 8), bytes as u64) }
        } else {
            let begin = position.begin(commit & WRAPS != 0);
            if begin + data_lines(bytes) > self.lines {
                return None;
            }
            // SAFETY: so many lines from there on lie inside the ring.
            unsafe { Claim::new(data_at(self.ring, begin), bytes as u64) }
        };
        Some(Record { words, payload })
    }

    /// The record so many places behind the one that `peek` has shown, if it and those between
    /// have arrived; nothing if the sender has written nonsense. Its payload stays valid until
    /// [`advance_by`](Self::advance_by).
    pub fn peek_behind(&self, places: u32) -> Option<Record> {
        let (mut position, mut lines, mut wraps) = (self.position, self.open, self.open_wraps);
        let mut found = None;
        for _ in 0..places {
            if lines > 0 {
                position.advance_data(lines, wraps, self.lines);
            }
            position.advance();
            let commit = self.commit_word_at(&position);
            found = Some(self.record_at(&position, commit)?);
            (lines, wraps) = (data_lines(payload_bytes(commit)), commit & WRAPS != 0);
        }
        found
    }

    /// Fetches the payload of the record that `peek` has shown, while the caller looks at the
    /// header. More lines than the processor fetches at once take their time here.
    #[inline(always)]
    pub fn fetch_payload(&self) {
        if self.open > 0 {
            let begin = self.position.begin(self.open_wraps);
            // SAFETY: the payload lies inside the ring (`record_at`).
            let start = unsafe { data_at(self.ring, begin) };
            // SAFETY: as above.
            unsafe { prefetch::to_read(start, self.open) };
        }
    }

    /// Fetches a slot that the sender of a stream has probably written by now, so that its
    /// line arrives while the records before it are handled.
    #[inline(always)]
    fn fetch_slot_ahead(&self) {
        let slot = (self.position.slot + SLOTS_AHEAD) % SLOTS;
        // SAFETY: the slot lies inside the ring.
        unsafe { prefetch::to_read(slot_at(self.ring, slot), 1) };
    }

    /// Done with the record that `peek` has shown.
    #[inline(always)]
    pub fn advance(&mut self) {
        let lines = std::mem::take(&mut self.open);
        self.position.advance();
        let mut is_due = self.position.slots % (SLOTS as u32 / 4) == 0;
        if lines > 0 {
            self.position
                .advance_data(lines, self.open_wraps, self.lines);
            self.unpublished_lines += lines as u32;
            is_due |= self.unpublished_lines >= NEAR_LINES as u32 / 4;
        }
        if is_due {
            self.publish_head();
        }
    }

    /// Done with that many records: the one that `peek` has shown, and those that
    /// [`peek_behind`](Self::peek_behind) has.
    pub fn advance_by(&mut self, records: u32) {
        for record in 0..records {
            // A sender that has changed one since is found out by the next `peek`.
            if record > 0 && self.peek_plain().is_none() {
                return;
            }
            self.advance();
        }
    }

    /// Publishes to the sender how far this side has read. Pairs with the Acquire load
    /// in `Sender::refresh` ("ring room"): what the sender writes next comes
    /// after everything read here.
    #[inline]
    pub fn publish_head(&mut self) {
        let (slots, lines) = (self.position.slots, self.position.lines);
        if self.published_slots != slots {
            (self.published_slots, self.unpublished_lines) = (slots, 0);
            // SAFETY: the control stays mapped (Receiver::new).
            unsafe { &*self.control }
                .head
                .store(head(slots, lines), Ordering::Release);
        }
    }
}
