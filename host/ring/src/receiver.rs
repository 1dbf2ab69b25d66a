//! The receiving side.

use crate::{Control, LINE, LINES, MAX_PAYLOAD, SKIP, WORDS, after, lines, word};
use lintel_claim::Claim;
use std::sync::atomic::Ordering;

/// Reads the records of one ring, in order.
#[derive(Debug)]
pub struct Receiver {
    ring: *mut u8,
    control: *const Control,
    at: usize,
    /// Lines done with since the beginning, and how many of them the sender knows.
    head: u64,
    published: u64,
    sequence: u16,
    /// Lines of the record that `peek` has shown.
    open: usize,
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
    /// The receiver of a fresh ring: memory of zeros and a [`Control`] of zero.
    ///
    /// # Safety
    /// `ring` is aligned to 64 bytes, [`RING_BYTES`](crate::RING_BYTES) long and,
    /// with `control`, stays mapped as long as the receiver and its records live.
    pub unsafe fn new(ring: *mut u8, control: *const Control) -> Self {
        Receiver {
            ring,
            control,
            at: 0,
            head: 0,
            published: 0,
            sequence: 1,
            open: 0,
        }
    }

    /// The next record, if one has arrived; the same one again until
    /// [`advance`](Self::advance).
    ///
    /// # Errors
    /// [`Corrupt`] for ever after the sender has written nonsense.
    #[inline(always)]
    pub fn peek(&mut self) -> Result<Option<Record>, Corrupt> {
        loop {
            let line = self.line(self.at);
            // Pairs with the Release store in Sender::commit ("ring commit").
            // SAFETY: the start of a line.
            let commit = unsafe { word(line) }.load(Ordering::Acquire);
            if commit == 0 {
                return Ok(None);
            }
            let bytes = (commit >> 16) as u16 as usize;
            if commit as u16 != self.sequence || bytes > MAX_PAYLOAD {
                return Err(Corrupt);
            }
            if commit & SKIP == SKIP {
                self.open = LINES - self.at;
                self.advance();
                continue;
            }
            self.open = lines(bytes);
            if self.at + self.open > LINES {
                return Err(Corrupt);
            }
            let mut words = [commit; WORDS];
            for (index, value) in words.iter_mut().enumerate().skip(1) {
                // SAFETY: the words lie in the record's first line.
                *value = unsafe { word(line.add(index * 8)) }.load(Ordering::Relaxed);
            }
            // SAFETY: the record's lines were checked to lie inside the ring.
            let payload = unsafe { Claim::new(line.add(WORDS * 8), bytes as u64) };
            return Ok(Some(Record { words, payload }));
        }
    }

    /// As [`peek`](Self::peek), but also gives nothing if anything but a plain
    /// record comes next.
    #[inline(always)]
    pub fn peek_plain(&mut self) -> Option<Record> {
        let line = self.line(self.at);
        // Pairs with the Release store in Sender::commit ("ring commit").
        // SAFETY: the start of a line.
        let commit = unsafe { word(line) }.load(Ordering::Acquire);
        let bytes = (commit >> 16) as u16 as usize;
        let open = lines(bytes);
        let fits = bytes <= MAX_PAYLOAD && self.at + open <= LINES;
        if commit as u16 != self.sequence || !fits || commit & SKIP == SKIP {
            return None;
        }
        self.open = open;
        // SAFETY: five times: the words lie in the record's first line.
        let load = |index: usize| unsafe { word(line.add(index * 8)) }.load(Ordering::Relaxed);
        let words = [commit, load(1), load(2), load(3), load(4), load(5)];
        // SAFETY: the record's lines were checked to lie inside the ring.
        let payload = unsafe { Claim::new(line.add(WORDS * 8), bytes as u64) };
        Some(Record { words, payload })
    }

    /// Done with the record that `peek` has shown.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.at += self.open;
        if self.at >= LINES {
            self.at = 0;
        }
        self.head += self.open as u64;
        self.open = 0;
        self.sequence = after(self.sequence);
        if self.head - self.published >= LINES as u64 / 4 {
            self.publish_head();
        }
    }

    /// Publishes to the sender how far this side has read. Pairs with the Acquire load
    /// in `Sender::refresh` ("ring room"): what the sender writes next comes
    /// after everything read here.
    #[inline]
    pub fn publish_head(&mut self) {
        if self.published != self.head {
            self.published = self.head;
            // SAFETY: the control stays mapped (Receiver::new).
            unsafe { &*self.control }
                .head
                .store(self.head, Ordering::Release);
        }
    }

    #[inline]
    fn line(&self, index: usize) -> *mut u8 {
        debug_assert!(index < LINES);
        // SAFETY: index < LINES, so the line lies inside the ring's memory.
        unsafe { self.ring.add(index * LINE) }
    }
}
