//! The sending side.

use crate::{Control, LINE, LINES, MAX_PAYLOAD, SKIP, WORDS, after, lines, word};
use lintel_claim::{Claim, copy};
use std::sync::atomic::Ordering;

/// Writes records.
#[derive(Debug)]
pub struct Sender {
    ring: *mut u8,
    control: *const Control,
    /// Line where the next record begins.
    at: usize,
    /// Lines written since the beginning.
    tail: u64,
    /// What the receiver had done with when it was last looked at.
    head: u64,
    sequence: u16,
}

/// There is no room; the receiver is behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

// SAFETY: the pointers name shared memory that outlives the sender (Sender::new);
// the sender is the only one to write records, whichever thread holds it.
unsafe impl Send for Sender {}

impl Sender {
    /// The sender of a fresh ring: memory of zeros and a [`Control`] of zero.
    ///
    /// # Safety
    /// `ring` is aligned to 64 bytes, [`RING_BYTES`](crate::RING_BYTES) long and,
    /// with `control`, stays mapped as long as the sender lives. No other sender
    /// writes to it.
    pub unsafe fn new(ring: *mut u8, control: *const Control) -> Self {
        Sender {
            ring,
            control,
            at: 0,
            tail: 0,
            head: 0,
            sequence: 1,
        }
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
        let bytes = match payload {
            [one] => one.len() as usize,
            many => many.iter().map(|piece| piece.len() as usize).sum(),
        };
        assert!(bytes <= MAX_PAYLOAD, "payloads are split by the caller");
        let needed = lines(bytes);
        self.make_room(needed)?;
        let record = self.line(self.at);
        let behind = self.behind(needed);
        self.clear(behind);
        for (index, value) in words.iter().enumerate().skip(1) {
            // SAFETY: the words lie in the record's first line, which is reserved.
            unsafe { word(record.add(index * 8)) }.store(*value, Ordering::Relaxed);
        }
        // SAFETY: make_room has reserved these bytes: they are inside the ring and
        // the receiver has done with them.
        let mut room = unsafe { Claim::new(record.add(WORDS * 8), bytes as u64) };
        for piece in payload {
            room = room.slice(copy(*piece, room), u64::MAX);
        }
        self.commit(words[0], bytes, needed, behind);
        // The line that the next record most likely clears is fetched meanwhile.
        self.clear(self.behind(1));
        Ok(())
    }

    /// Whether the receiver has done with everything that was sent.
    pub fn is_drained(&mut self) -> bool {
        self.refresh();
        self.head == self.tail
    }

    /// Ensures `needed` lines in a row, and two more whose commit words are cleared.
    #[inline(always)]
    fn make_room(&mut self, needed: usize) -> Result<(), Full> {
        let skipped = if self.at + needed > LINES {
            LINES - self.at
        } else {
            0
        };
        let wanted = (needed + skipped + 2) as u64;
        if LINES as u64 - (self.tail - self.head) < wanted {
            self.refresh();
            if LINES as u64 - (self.tail - self.head) < wanted {
                return Err(Full);
            }
        }
        if skipped > 0 {
            self.clear(0);
            self.commit(SKIP, 0, skipped, 0);
        }
        Ok(())
    }

    #[inline]
    fn refresh(&mut self) {
        // SAFETY: the control stays mapped (Sender::new).
        let head = unsafe { &*self.control }.head.load(Ordering::Acquire);
        // A receiver that publishes an invalid position only loses messages itself.
        if head <= self.tail && head >= self.head {
            self.head = head;
        }
    }

    /// The line behind a record of so many lines.
    #[inline(always)]
    fn behind(&self, lines: usize) -> usize {
        let behind = self.at + lines;
        if behind >= LINES {
            behind - LINES
        } else {
            behind
        }
    }

    /// Clears a commit word that isn't written yet. Before anything of the record
    /// ahead of it is: a processor makes stores visible in order, and this line
    /// may first have to come from the receiver, who polls the other one.
    #[inline(always)]
    fn clear(&mut self, line: usize) {
        // SAFETY: a line start; make_room has kept the line free.
        unsafe { word(self.line(line)) }.store(0, Ordering::Relaxed);
    }

    /// Publishes the record at `at`. Pairs with the Acquire load in
    /// `Receiver::peek` ("ring commit"): a reader that sees the commit word sees the
    /// record's words and payload and the cleared commit word behind it.
    #[inline(always)]
    fn commit(&mut self, first: u64, bytes: usize, lines: usize, behind: usize) {
        let record = self.line(self.at);
        self.at = behind;
        self.tail += lines as u64;
        let commit =
            first & 0xffff_ffff_0000_0000 | (bytes as u64) << 16 | u64::from(self.sequence);
        self.sequence = after(self.sequence);
        // SAFETY: the start of the record's first line.
        unsafe { word(record) }.store(commit, Ordering::Release);
    }

    #[inline]
    fn line(&self, index: usize) -> *mut u8 {
        debug_assert!(index < LINES);
        // SAFETY: index < LINES, so the line lies inside the ring's memory.
        unsafe { self.ring.add(index * LINE) }
    }
}
