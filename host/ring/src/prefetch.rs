//! Lines that are needed soon, fetched while something else is done.

use crate::{LINE, word};
use std::sync::atomic::Ordering;

/// Lines fetched at once: more than processors have requests under way.
const MOST: usize = 144;
/// Bytes of a line ahead of its last word.
const LAST_WORD: usize = LINE - size_of::<u64>();

/// Has the processor fetch lines in order to read them.
///
/// # Safety
/// `lines` lines from `start` on are mapped.
#[inline(always)]
pub(crate) unsafe fn to_read(start: *const u8, lines: usize) {
    for line in 0..lines.min(MOST) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch changes no memory, and faults nowhere; the place is mapped, by the
        // caller.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(start.add(line * LINE).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (start, line, LINE);
    }
}

/// Whether this processor overlaps its requests for lines that are stored to one right after the
/// other, but not those of stores, nor of prefetches, that are a message apart: AMD's do (Zen 4, cores far
/// from each other), and they and Hygon's, which are built alike, alone have SSE4a. Intel's overlap prefetches, and
/// stores that lack their line hold up later ones.
pub(crate) fn is_by_stores() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("sse4a");
    #[cfg(not(target_arch = "x86_64"))]
    true
}

/// Has the processor fetch lines in order to write them, so that no other processor keeps them: by
/// a store to the last word of each, or by prefetches.
///
/// # Safety
/// `lines` lines from `start` on are mapped; nobody but the caller accesses their last words now,
/// which hold nothing.
#[inline(always)]
pub(crate) unsafe fn to_write(start: *mut u8, lines: usize, by_stores: bool) {
    for line in 0..lines {
        // SAFETY: mapped, by the caller.
        let line = unsafe { start.add(line * LINE) };
        match by_stores {
            // SAFETY: aligned as lines are, and the caller's alone.
            true => unsafe { word(line.add(LAST_WORD)) }.store(0, Ordering::Relaxed),
            false => lintel_claim::prefetch_to_write(line),
        }
    }
}
