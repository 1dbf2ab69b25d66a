//! How a rank waits for a word in memory that another rank stores.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

/// The thread looks, then yields its processor, which the rank that it waits for may need,
/// then sleeps ever longer.
#[derive(Default)]
pub(crate) struct Waiting {
    looks: u32,
    /// Others ran when the thread yielded last: its peers wait for this processor, perhaps.
    is_crowded: bool,
    yields: u32,
    since: Option<Instant>,
}

/// Looks between two yields of a thread that has its processor for itself: some microseconds,
/// since a processor pauses for 10 to 40 ns in each.
const LOOKS: u32 = 200;
/// The first of them, without a pause: an answer that is under way is there by then.
const QUICK_LOOKS: u32 = 50;
/// Looks between two yields of one that hasn't: what is there is seen in the first.
const CROWDED_LOOKS: u32 = 2;
/// A yield that takes this long has let another thread run.
const OTHERS_RAN: Duration = Duration::from_nanos(800);
/// Yields before the caller looks around and perhaps sleeps, and between two times of that.
const YIELDS: u32 = 64;
/// A thread that sleeps is late by this part of what it has waited, at most.
const LATE: u32 = 16;
/// Shorter sleeps take longer themselves.
const LEAST_SLEEP: Duration = Duration::from_micros(500);
const MOST_SLEEP: Duration = Duration::from_millis(1);

impl Waiting {
    /// A wait begins.
    pub(crate) fn begin(&mut self) {
        self.looks = 0;
        self.yields = 0;
        self.since = None;
    }

    /// Another look was in vain; whether the caller is to look around, as now and then in a
    /// long wait.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        self.looks += 1;
        if self.looks > QUICK_LOOKS {
            hint::spin_loop();
        }
        let limit = match self.is_crowded {
            true => CROWDED_LOOKS,
            false => LOOKS,
        };
        self.looks >= limit && self.let_others_run()
    }

    /// When the wait began, as far as is known.
    pub(crate) fn since(&mut self) -> Instant {
        *self.since.get_or_insert_with(Instant::now)
    }

    /// Whether others ran when the thread yielded last.
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// Lets other threads have the processor, if there are any.
    pub(crate) fn yield_processor(&mut self) {
        let begun = Instant::now();
        thread::yield_now();
        self.is_crowded = begun.elapsed() >= OTHERS_RAN;
    }

    #[cold]
    fn let_others_run(&mut self) -> bool {
        let since = self.since();
        self.yield_processor();
        self.looks = 0;
        self.yields += 1;
        if self.yields % YIELDS > 0 {
            return false;
        }
        let sleep = (since.elapsed() / LATE).min(MOST_SLEEP);
        if sleep >= LEAST_SLEEP {
            thread::sleep(sleep);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_wait_looks_around_and_a_new_one_begins_anew() {
        let mut waiting = Waiting::default();
        for _ in 0..3 {
            waiting.begin();
            assert!(waiting.since.is_none());
            while !waiting.next() {}
            assert_eq!(waiting.yields, YIELDS);
        }
    }
}
