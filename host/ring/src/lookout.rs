//! Looks for what arrives, by any thread and without the receiver.

use crate::{Receiver, prefetch, word};
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Rings that a lookout can watch.
const MOST: usize = 128;
/// Rings that one look looks at, besides the one that was read last: of more, each look takes the next
/// ones.
const AT_ONCE: usize = 8;
/// No ring.
const NONE: usize = usize::MAX;
/// Counts that it can watch besides.
const MOST_COUNTS: usize = 16;

/// Where the next record of each ring of a process comes, and what peers count by themselves, for
/// threads that don't own the receivers. The owner [watches](Self::watch) the rings after it has read
/// them, and has each look taken by others.
///
/// A look may race with the owner. It errs in one of two ways: it sees a record that the owner
/// is just reading, which costs a poll, or it misses one. So only a bounded number of looks
/// finds nothing until the owner is asked.
#[derive(Debug)]
pub struct Lookout {
    /// Looks until the owner has to be asked.
    left: AtomicU32,
    /// `left` when the owner last counted the looks.
    counted: AtomicU32,
    /// How many rings the next look looks at; none if it is [left out](Self::leave_one_out).
    rings: AtomicUsize,
    /// How many the looks after that one look at.
    rings_then: AtomicUsize,
    /// The ring that was read last.
    last: AtomicUsize,
    /// Where the next look begins.
    begin: AtomicUsize,
    /// The ring that was found filled, or [`NONE`].
    found: AtomicUsize,
    next: [NextSlot; MOST],
    counts: AtomicUsize,
    taken: [TakenCount; MOST_COUNTS],
}

/// A slot without a record, as long as it bears the former lap's number.
#[derive(Debug)]
struct NextSlot {
    slot: AtomicPtr<u8>,
    former_lap: AtomicU64,
}

/// A count that peers add to, as far as the owner has taken it.
#[derive(Debug)]
struct TakenCount {
    count: AtomicPtr<u64>,
    taken: AtomicU64,
}

impl Default for Lookout {
    fn default() -> Self {
        Lookout::new()
    }
}

impl Lookout {
    /// A lookout that has the owner asked at each look.
    pub const fn new() -> Lookout {
        Lookout {
            left: AtomicU32::new(0),
            counted: AtomicU32::new(0),
            rings: AtomicUsize::new(0),
            rings_then: AtomicUsize::new(0),
            last: AtomicUsize::new(0),
            begin: AtomicUsize::new(0),
            found: AtomicUsize::new(NONE),
            next: [const { NextSlot::new() }; MOST],
            counts: AtomicUsize::new(0),
            taken: [const { TakenCount::new() }; MOST_COUNTS],
        }
    }

    /// Whether nothing has arrived, as far as can be seen from here; false if the owner is to
    /// be asked.
    #[inline(always)]
    pub fn is_quiet(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return false;
        }
        // Threads that look at the same time may count as one.
        self.left.store(left - 1, Ordering::Relaxed);
        let is_empty = match self.rings.load(Ordering::Relaxed) {
            1 => self.next[0].is_empty(),
            rings => self.find_filled(rings).is_none(),
        };
        is_empty && !self.is_count_due()
    }

    /// The first of so many rings that isn't empty, of those that one look looks at.
    #[inline(never)]
    fn find_filled(&self, rings: usize) -> Option<usize> {
        let rings = rings.min(MOST);
        if rings == 0 {
            let rings = self.rings_then.load(Ordering::Relaxed);
            self.rings.store(rings, Ordering::Relaxed);
            return None;
        }
        let last = self.last.load(Ordering::Relaxed).min(rings);
        let is_filled = |ring: &usize| !self.next[*ring].is_empty();
        let filled = match rings {
            // The ones behind the last have waited longest.
            0..=AT_ONCE => (last..rings).chain(0..last).find(is_filled),
            _ => {
                let some = self.next_part(rings);
                (last..rings.min(last + 1)).chain(some).find(is_filled)
            }
        };
        if let Some(ring) = filled {
            self.found.store(ring, Ordering::Relaxed);
        }
        filled
    }

    /// The part of so many rings whose turn it is to be looked at.
    #[inline(always)]
    fn next_part(&self, rings: usize) -> Range<usize> {
        let begin = self.begin.load(Ordering::Relaxed);
        let end = (begin + AT_ONCE).min(rings);
        let next = if end < rings { end } else { 0 };
        // Threads that look at the same time may look at the same ones.
        self.begin.store(next, Ordering::Relaxed);
        begin..end
    }

    /// The number of the ring, of several, that a look has found filled since this was last asked.
    #[inline(always)]
    pub fn take_found(&self) -> Option<usize> {
        let found = self.found.load(Ordering::Relaxed);
        if found == NONE {
            return None;
        }
        self.found.store(NONE, Ordering::Relaxed);
        Some(found)
    }

    /// Whether peers have counted something, or may have, that the owner hadn't taken when it last
    /// [named](Self::watch_counts) the counts.
    #[inline(always)]
    pub fn is_count_due(&self) -> bool {
        let counts = self.counts.load(Ordering::Relaxed);
        counts > 0 && self.is_one_due(counts)
    }

    #[inline(never)]
    fn is_one_due(&self, counts: usize) -> bool {
        match self.taken.get(..counts) {
            Some(taken) => taken.iter().any(TakenCount::is_due),
            None => true,
        }
    }

    /// Looks of others since the owner last asked this or watched.
    #[inline]
    pub fn take_looks(&self) -> u32 {
        let left = self.left.load(Ordering::Relaxed);
        let counted = self.counted.load(Ordering::Relaxed);
        self.counted.store(left, Ordering::Relaxed);
        counted.saturating_sub(left)
    }

    /// Has the owner asked at each look.
    #[inline]
    pub fn close(&self) {
        self.left.store(0, Ordering::Relaxed);
        self.counted.store(0, Ordering::Relaxed);
    }

    /// Has others look at these rings, which the owner has found empty, of which it has read the
    /// one with the number `last` last, for so many looks at each. More rings than a lookout can watch
    /// close it.
    ///
    /// # Safety
    /// The rings' memory stays readable as long as the lookout lives: another thread may be
    /// about to look.
    #[inline(always)]
    pub unsafe fn watch<'a>(
        &self,
        receivers: impl Iterator<Item = &'a Receiver>,
        last: usize,
        looks: u32,
    ) {
        let mut rings = 0;
        for receiver in receivers {
            let Some(next) = self.next.get(rings) else {
                self.rings.store(0, Ordering::Relaxed);
                self.rings_then.store(0, Ordering::Relaxed);
                return self.close();
            };
            next.watch(receiver);
            rings += 1;
        }
        self.open(rings, last, looks);
    }

    /// As [`watch`](Self::watch), of the same rings as before, if the owner has read only the one with
    /// the number `last` since. If it has read others, too, that costs a poll.
    ///
    /// # Safety
    /// As of [`watch`](Self::watch).
    #[inline(always)]
    pub unsafe fn watch_on(&self, last: usize, receiver: &Receiver, looks: u32) {
        let rings = self.watched();
        match self.next.get(last) {
            Some(next) if last < rings => next.watch(receiver),
            _ => return self.close(),
        }
        self.open(rings, last, looks);
    }

    /// The rings that are watched.
    #[inline(always)]
    fn watched(&self) -> usize {
        match self.rings.load(Ordering::Relaxed) {
            0 => self.rings_then.load(Ordering::Relaxed),
            rings => rings,
        }
    }

    /// Has the next look find nothing, and the line fetched meanwhile where the next record of the ring
    /// comes that was read last. For who is about to do something else, as a rule, but looks once more
    /// before: what has just arrived would keep that look waiting for its line.
    #[inline]
    pub fn leave_one_out(&self) {
        let rings = self.watched();
        // Of a single ring it isn't noted which was read last.
        let last = if rings == 1 {
            0
        } else {
            self.last.load(Ordering::Relaxed)
        };
        if let Some(next) = self.next.get(last) {
            next.fetch();
        }
        self.rings_then.store(rings, Ordering::Relaxed);
        self.rings.store(0, Ordering::Relaxed);
    }

    /// Allows so many looks at each of the rings, of which `last` was read last.
    #[inline(always)]
    fn open(&self, rings: usize, last: usize, looks: u32) {
        let looks = match rings {
            0..=AT_ONCE => looks,
            _ => looks * rings.div_ceil(AT_ONCE) as u32,
        };
        self.rings.store(rings, Ordering::Relaxed);
        if rings > 1 {
            self.last.store(last, Ordering::Relaxed);
        }
        self.left.store(looks, Ordering::Relaxed);
        self.counted.store(looks, Ordering::Relaxed);
    }

    /// Has others look at these counts, each with what the owner has taken of it. Of more than a lookout
    /// can watch it always finds one [due](Self::is_count_due).
    ///
    /// # Safety
    /// As of [`watch`](Self::watch).
    pub unsafe fn watch_counts<'a>(&self, counts: impl Iterator<Item = (&'a AtomicU64, u64)>) {
        let mut watched = 0;
        for (count, taken) in counts {
            if let Some(place) = self.taken.get(watched) {
                place.count.store(count.as_ptr(), Ordering::Relaxed);
                place.taken.store(taken, Ordering::Relaxed);
            }
            watched += 1;
        }
        self.counts.store(watched, Ordering::Relaxed);
    }

    /// Has others look at no counts.
    #[inline(always)]
    pub fn watch_no_counts(&self) {
        self.counts.store(0, Ordering::Relaxed);
    }

    /// Has the owner asked whether a count is due, until it names the counts again.
    #[inline]
    pub fn forget_counts(&self) {
        self.counts.store(usize::MAX, Ordering::Relaxed);
    }
}

/// A slot that stays empty, and a count that stays 0, until there is one to watch.
static EMPTY: AtomicU64 = AtomicU64::new(0);

impl NextSlot {
    const fn new() -> NextSlot {
        NextSlot {
            slot: AtomicPtr::new(EMPTY.as_ptr().cast()),
            former_lap: AtomicU64::new(0),
        }
    }

    /// Looks where this ring's next record comes.
    #[inline(always)]
    fn watch(&self, receiver: &Receiver) {
        let (slot, former_lap) = receiver.next_slot();
        self.slot.store(slot, Ordering::Relaxed);
        self.former_lap.store(former_lap.into(), Ordering::Relaxed);
    }

    /// Has the processor fetch the line, which it doesn't wait for.
    #[inline(always)]
    fn fetch(&self) {
        let slot = self.slot.load(Ordering::Relaxed);
        // SAFETY: a slot whose memory stays readable (Lookout::watch), or the static one.
        unsafe { prefetch::to_read(slot, 1) };
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        let slot = self.slot.load(Ordering::Relaxed);
        // SAFETY: the beginning of a slot whose memory stays readable (Lookout::watch), or of
        // the static one.
        let commit = unsafe { word(slot) }.load(Ordering::Relaxed);
        commit as u16 == self.former_lap.load(Ordering::Relaxed) as u16
    }
}

impl TakenCount {
    const fn new() -> TakenCount {
        TakenCount {
            count: AtomicPtr::new(EMPTY.as_ptr()),
            taken: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    fn is_due(&self) -> bool {
        let count = self.count.load(Ordering::Relaxed);
        // SAFETY: a count whose memory stays readable (Lookout::watch), or the static one.
        let count = unsafe { AtomicU64::from_ptr(count) }.load(Ordering::Relaxed);
        count != self.taken.load(Ordering::Relaxed)
    }
}
