//! The sending side.

use crate::{
    Control, INLINE, MAX_PAYLOAD, NEAR_LINES, Position, SLOTS, WORDS, WRAPS, data_at, data_lines,
    prefetch, slot_at, word,
};
use lintel_claim::{Claim, copy};
use std::sync::atomic::Ordering;

/// Slots that are fetched at once, and how far ahead the first of them is; lines of data that are
/// fetched at once, for payloads that take fewer.
const FETCHED: usize = 4;
/// Lines of data that a receiver which keeps up may not have done with.
const BEHIND: usize = NEAR_LINES / 4;
const _: () = assert!(SLOTS % FETCHED == 0, "slots are fetched in groups");

/// The end of a ring that writes records.
#[derive(Debug)]
pub struct Sender {
    ring: *mut u8,
    control: *const Control,
    /// Lines of data.
    lines: usize,
    position: Position,
    /// The line of data from which on the sender looks whether to wrap.
    wrap_at: usize,
    /// The line of data up to which those that come next were fetched.
    fetched_to: usize,
    /// Slots and lines of data that the receiver had done with when it was last looked at.
    head_slots: u32,
    head_lines: u32,
    /// How lines are fetched.
    by_stores: bool,
}

/// There is no room; the receiver is behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

// SAFETY: the pointers name shared memory that outlives the sender (Sender::new);
// the sender is the only one to write records, whichever thread holds it.
unsafe impl Send for Sender {}

impl Sender {
    /// The sender of a fresh ring with so many lines of data: memory of zeros and a [`Control`]
    /// of zero.
    ///
    /// # Panics
    /// Where the ring has fewer than [`NEAR_LINES`].
    ///
    /// # Safety
    /// `ring` is aligned to 64 bytes, [`ring_bytes`](crate::ring_bytes) long and,
    /// with `control`, stays mapped as long as the sender lives. No other sender
    /// writes to it.
    pub unsafe fn new(ring: *mut u8, control: *const Control, lines: usize) -> Self {
        assert!(lines >= NEAR_LINES, "each ring has so many lines");
        Sender {
            ring,
            control,
            lines,
            position: Position::START,
            wrap_at: NEAR_LINES,
            fetched_to: 0,
            head_slots: 0,
            head_lines: 0,
            by_stores: prefetch::is_by_stores(),
        }
    }

    /// Slots and lines of data that this side has done with so far, modulo 2^32.
    pub fn position(&self) -> (u32, u32) {
        (self.position.slots, self.position.lines)
    }

    /// Writes a record: the words (of the first only the high half is used) and
    /// the payload, in one piece whatever pieces it comes from.
    ///
    /// # Errors
    /// [`Full`] where there is no room now; nothing was written then.
    ///
    /// # Panics
    /// Where the payload is longer than [`MAX_PAYLOAD`].
    #[inline(always)]
    pub fn push(&mut self, words: &[u64; WORDS], payload: &[Claim]) -> Result<(), Full> {
        let bytes = length(payload);
        match bytes <= INLINE {
            true => self.push_slot(words, payload, bytes),
            false => self.push_data(words, payload, bytes),
        }
    }

    /// As [`push`](Self::push), for a payload that the slot holds.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    ///
    /// # Panics
    /// Where the payload is longer than [`INLINE`].
    #[inline(always)]
    pub fn push_short(&mut self, words: &[u64; WORDS], payload: &[Claim]) -> Result<(), Full> {
        let bytes = length(payload);
        assert!(bytes <= INLINE, "a longer payload takes data");
        self.push_slot(words, payload, bytes)
    }

    /// Writes a record whose payload lies in its slot.
    #[inline(always)]
    fn push_slot(
        &mut self,
        words: &[u64; WORDS],
        payload: &[Claim],
        bytes: usize,
    ) -> Result<(), Full> {
        self.make_room(0)?;
        let slot = self.write_words(words);
        // SAFETY: the slot's last bytes, which the receiver has done with.
        let room = unsafe { Claim::new(slot.add(WORDS * 8), bytes as u64) };
        fill(room, payload);
        self.commit(slot, words, (bytes as u64) << 16);
        Ok(())
    }

    /// Writes a record whose payload lies in the data.
    #[inline(always)]
    fn push_data(
        &mut self,
        words: &[u64; WORDS],
        payload: &[Claim],
        bytes: usize,
    ) -> Result<(), Full> {
        assert!(bytes <= MAX_PAYLOAD, "payloads are split by the caller");
        let lines = data_lines(bytes);
        let wraps = self.wraps(lines);
        self.make_room(lines + self.position.unused(wraps, self.lines))?;
        let slot = self.write_words(words);
        let begin = self.position.begin(wraps);
        // SAFETY: the payload ends with the data or before (`wraps`), and make_room has reserved
        // these bytes: the receiver has done with them.
        let room = unsafe { Claim::new(data_at(self.ring, begin), bytes as u64) };
        fill(room, payload);
        let flag = if wraps { WRAPS } else { 0 };
        self.position.advance_data(lines, wraps, self.lines);
        self.commit(slot, words, (bytes as u64) << 16 | flag);
        self.fetch_data_ahead(lines);
        Ok(())
    }

    /// Whether a payload of so many lines begins where the data does; else there are lines for it
    /// behind the one before it.
    #[inline(always)]
    fn wraps(&mut self, lines: usize) -> bool {
        self.position.data + lines > self.wrap_at && self.decide_to_wrap(lines)
    }

    /// As [`wraps`](Self::wraps), where that depends on the receiver, or on the ring's end.
    #[inline(never)]
    fn decide_to_wrap(&mut self, lines: usize) -> bool {
        let end = self.position.data + lines;
        let wraps = end > self.lines || self.keeps_up(lines);
        self.wrap_at = match wraps {
            true => NEAR_LINES,
            false => self.lines.min(end + NEAR_LINES),
        };
        wraps
    }

    /// Whether the receiver has done with almost everything, and with so many lines at the
    /// beginning of the data.
    fn keeps_up(&mut self, lines: usize) -> bool {
        if self.unread() > BEHIND {
            self.refresh();
        }
        self.unread() <= BEHIND && self.has_room_ahead(lines)
    }

    /// Whether the receiver has done with so many lines at the beginning of the data, as far as it
    /// is known.
    #[inline(always)]
    fn has_room_ahead(&self, lines: usize) -> bool {
        self.unread() + lines <= self.position.data
    }

    /// Lines of data that the receiver hasn't done with, as far as it is known.
    #[inline(always)]
    fn unread(&self) -> usize {
        self.position.lines.wrapping_sub(self.head_lines) as usize
    }

    /// Writes all words but the first to the next slot, for which there is room; returns it.
    #[inline(always)]
    fn write_words(&mut self, words: &[u64; WORDS]) -> *mut u8 {
        // SAFETY: the ring is mapped (Sender::new), and a position's slot lies inside.
        let slot = unsafe { slot_at(self.ring, self.position.slot) };
        for (index, value) in words.iter().enumerate().skip(1) {
            // SAFETY: the words lie in the slot, which the receiver has done with.
            unsafe { word(slot.add(index * 8)) }.store(*value, Ordering::Relaxed);
        }
        slot
    }

    /// Publishes the record in the next slot, which is `slot`, with that payload.
    #[inline(always)]
    fn commit(&mut self, slot: *mut u8, words: &[u64; WORDS], payload: u64) {
        let lap = u64::from(self.position.lap);
        let commit = words[0] & 0xffff_ffff_0000_0000 | payload | lap;
        self.position.advance();
        // Pairs with the Acquire load in `Receiver::commit_word` ("ring commit"): a reader that
        // sees the commit word sees the record's words and payload.
        // SAFETY: a slot begins with its commit word.
        unsafe { word(slot) }.store(commit, Ordering::Release);
        self.fetch_slots_ahead();
    }

    /// Fetches some slots that the next records take, but for those of the very next ones, where
    /// the receiver may be polling. In a stream of short records each would otherwise wait for its
    /// line.
    #[inline(always)]
    fn fetch_slots_ahead(&self) {
        let slots = self.position.slots.wrapping_sub(self.head_slots) as usize;
        if self.position.slot % FETCHED == 0 && slots + 2 * FETCHED <= SLOTS {
            let first = (self.position.slot + FETCHED) % SLOTS;
            // SAFETY: these slots lie inside the ring, whose slots are a multiple of so many; the
            // receiver has done with them.
            unsafe { prefetch::to_write(slot_at(self.ring, first), FETCHED, self.by_stores) };
        }
    }

    /// Fetches the lines of data that a record of the same length takes next, unless the receiver
    /// may still read them, or they were fetched before.
    #[inline(always)]
    fn fetch_data_ahead(&mut self, lines: usize) {
        let wraps = self.position.data + lines > self.wrap_at;
        let begin = self.position.begin(wraps);
        if wraps {
            self.fetched_to = 0;
        }
        let from = begin.max(self.fetched_to);
        if from >= begin + lines {
            return;
        }
        let is_free = |lines: usize| match wraps {
            true => self.has_room_ahead(lines),
            false => self.has_room(lines),
        };
        let group = lines.max(FETCHED.min(self.wrap_at.saturating_sub(begin)));
        let lines = if is_free(group) { group } else { lines };
        if is_free(lines) {
            self.fetched_to = begin + lines;
            let count = self.fetched_to - from;
            // SAFETY: these lines lie inside the ring, and the receiver has done with them.
            unsafe { prefetch::to_write(data_at(self.ring, from), count, self.by_stores) };
        }
    }

    /// Whether the receiver has done with everything that was sent.
    #[inline]
    pub fn is_drained(&mut self) -> bool {
        if self.head_slots != self.position.slots {
            self.refresh();
        }
        self.head_slots == self.position.slots
    }

    /// Whether the receiver has done with everything that was sent before that position, in slots
    /// modulo 2^32, which at most a ring's slots were sent behind.
    #[inline]
    pub fn is_drained_up_to(&mut self, slots: u32) -> bool {
        let behind = self.position.slots.wrapping_sub(slots);
        self.is_drained() || self.position.slots.wrapping_sub(self.head_slots) <= behind
    }

    /// Ensures a slot, and so many lines of data.
    #[inline(always)]
    fn make_room(&mut self, lines: usize) -> Result<(), Full> {
        if !self.has_room(lines) {
            self.refresh();
            if !self.has_room(lines) {
                return Err(Full);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn has_room(&self, lines: usize) -> bool {
        let slots = self.position.slots.wrapping_sub(self.head_slots);
        slots < SLOTS as u32 && (lines == 0 || self.unread() + lines <= self.lines)
    }

    #[inline]
    fn refresh(&mut self) {
        // SAFETY: the control stays mapped (Sender::new).
        let head = unsafe { &*self.control }.head.load(Ordering::Acquire);
        let (slots, lines) = (head as u32, (head >> 32) as u32);
        // A receiver that publishes an invalid position only loses messages itself.
        let behind = self.position.slots.wrapping_sub(slots);
        let taken = self.position.lines.wrapping_sub(lines);
        if behind <= self.position.slots.wrapping_sub(self.head_slots)
            && taken <= self.position.lines.wrapping_sub(self.head_lines)
        {
            (self.head_slots, self.head_lines) = (slots, lines);
        }
    }
}

/// Bytes of the pieces.
#[inline(always)]
fn length(payload: &[Claim]) -> usize {
    match payload {
        [one] => one.len() as usize,
        many => many.iter().map(|piece| piece.len() as usize).sum(),
    }
}

/// Copies the pieces there, one after the other.
#[inline(always)]
fn fill(mut room: Claim, payload: &[Claim]) {
    for piece in payload {
        room = room.slice(copy(*piece, room), u64::MAX);
    }
}
