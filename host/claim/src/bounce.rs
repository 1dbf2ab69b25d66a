//! Copies by the system through a bounce buffer, where its own copy is slow.
//!
//! The kernel moves bytes with `rep movsb`. Where that is [slow](is_slow_to_move), two copies by
//! way of a buffer that lies well for both sides take half the time or less: 1 MiB in 210 instead
//! of 430 to 600 µs on an AMD EPYC of Zen 3, where 90 to 115 are usual.

use crate::claim::Claim;
use crate::copy::{PAGE, is_slow_to_move};
use crate::cross_memory::{BATCH, copy_as_it_lies};
use crate::region::Region;
use lintel_memory::{Span, Walk};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Shorter pieces are done before a further call of the system would be.
const WORTH: u64 = 16 * 1024;
/// Bytes that are in the buffer at once: they stay in the processor's cache.
const BUFFER: u64 = 64 * 1024;
/// Copies of each kind that are timed; the least time counts.
const TRIES: u32 = 3;

thread_local! {
    static REGION: Region = Region::new(BUFFER + PAGE as u64);
}

/// Bytes up to the first ones that go better through a buffer, if `is_slow`; or as many as
/// one call names on both sides.
pub(crate) fn length_before<S: Span, D: Span>(
    from: &Walk<'_, S>,
    to: &Walk<'_, D>,
    is_slow: impl Fn() -> bool,
) -> u64 {
    let (mut from, mut to) = (*from, *to);
    let mut before = 0;
    // One is the guard's.
    for _ in 0..BATCH - 1 {
        let length = from.front().length().min(to.front().length());
        let ahead = to.front().address().wrapping_sub(from.front().address());
        if length >= WORTH && is_slow_to_move(ahead as usize) && is_slow() {
            break;
        }
        before += length;
        from.advance(length);
        to.advance(length);
    }
    before
}

/// A part of the buffer, for bytes on their way from that address to one a little ahead of it in
/// its page: it lies far from both.
pub(crate) fn with_buffer<R>(from: u64, length: u64, f: impl FnOnce(Claim) -> R) -> R {
    let offset = (from + PAGE as u64 / 2) % PAGE as u64;
    REGION.with(|region| f(region.claim().slice(offset, length.min(BUFFER))))
}

/// Whether this processor is slow at that, measured when it is first asked: 0.2 ms if it is.
pub(crate) fn is_slow_here() -> bool {
    static SLOW: OnceLock<bool> = OnceLock::new();
    *SLOW.get_or_init(|| {
        let [from, to] = [(); 2].map(|()| Region::new(BUFFER + PAGE as u64));
        let time = |ahead: u64| {
            let times = (0..TRIES).map(|_| {
                let begun = Instant::now();
                let to = to.claim().slice(ahead, BUFFER);
                let copied = copy_as_it_lies(&[from.claim().slice(0, BUFFER)], &[to]);
                copied.map_or(Duration::MAX, |_| begun.elapsed())
            });
            times.min().unwrap_or_default()
        };
        // So far ahead, it is quick everywhere.
        let usual = time(PAGE as u64 / 2);
        time(16) > usual.saturating_mul(2)
    })
}
