//! Copies by the system through a bounce buffer, where its own copy is slow.
//!
//! The kernel moves bytes with `rep movsb`. Where that is slow because source and destination
//! [alias](is_aliased), two copies by way of a buffer that aliases neither take half the time or
//! less: 1 MiB in 210 instead of 430 to 600 µs on an AMD EPYC of Zen 3, where 90 to 115 are usual.

use crate::claim::Claim;
use crate::copy::is_aliased;
use crate::cross_memory::{BATCH, copy_without_bounce};
use crate::region::{PAGE, Region};
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
    static REGION: Region = region();
}

/// A buffer, at whatever offset in a page.
fn region() -> Region {
    Region::new(BUFFER + PAGE)
}

/// Bytes up to the first ones that alias, if that `is_slow`; or as many as one call names on both
/// sides.
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
        if length == 0 || may_be_slow(length, ahead) && is_slow() {
            break;
        }
        before += length;
        from.advance(length);
        to.advance(length);
    }
    before
}

/// Whether a copy of that length, to an address so far ahead of where it comes from, is worth a look
/// whether it is slow here.
pub(crate) fn may_be_slow(length: u64, ahead: u64) -> bool {
    length >= WORTH && is_aliased(ahead)
}

/// A part of the buffer that aliases neither that address nor one a little ahead of it.
pub(crate) fn with_buffer<R>(from: u64, length: u64, f: impl FnOnce(Claim) -> R) -> R {
    // A thread that ends may copy when its own buffer is gone.
    let region = REGION.try_with(Region::clone);
    let region = region.unwrap_or_else(|_| self::region());
    let offset = from.wrapping_add(PAGE / 2) % PAGE;
    f(region.claim().slice(offset, length.min(BUFFER)))
}

/// Whether copies that alias are slow on this processor, measured when it is first asked: 0.2 ms
/// if they are.
pub(crate) fn is_slow_here() -> bool {
    static SLOW: OnceLock<bool> = OnceLock::new();
    *SLOW.get_or_init(|| {
        let [from, to] = [(); 2].map(|()| region());
        let time = |ahead: u64| {
            let times = (0..TRIES).map(|_| {
                let begun = Instant::now();
                let to = to.claim().slice(ahead, BUFFER);
                let copied = copy_without_bounce(&[from.claim().slice(0, BUFFER)], &[to]);
                copied.map_or(Duration::MAX, |_| begun.elapsed())
            });
            times.min().unwrap_or_default()
        };
        time(16) > time(PAGE / 2).saturating_mul(2)
    })
}
