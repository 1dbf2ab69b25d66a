//! Lines that are needed soon, fetched while something else is done.

use crate::LINE;

/// Lines fetched at once: more than processors have requests under way.
const MOST: usize = 144;

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

/// Has the processor fetch lines in order to write them: no other processor keeps them.
///
/// # Safety
/// `lines` lines from `start` on are mapped.
#[inline(always)]
pub(crate) unsafe fn to_write(start: *mut u8, lines: usize) {
    for line in 0..lines.min(MOST) {
        // SAFETY: mapped, by the caller.
        lintel_claim::prefetch_to_write(unsafe { start.add(line * LINE) });
    }
}
