//! How a rank waits for a word in memory that another rank stores.

use lintel_progress::SpinLimit;
use std::hint;
use std::thread;
use std::time::{Duration, Instant};

/// The thread looks, then yields its processor, which the rank that it waits for may need,
/// then sleeps ever longer.
#[derive(Default)]
pub(crate) struct Waiting {
    spin: SpinLimit,
    yields: u32,
    since: Option<Instant>,
}

/// Yields before the caller looks around and perhaps sleeps, and between two times of that.
const YIELDS: u32 = 64;
/// A thread that sleeps is late by this part of what it has waited, at most.
const LATE: u32 = 16;
/// Shorter sleeps take longer themselves.
const LEAST_SLEEP: Duration = Duration::from_micros(100);
const MOST_SLEEP: Duration = Duration::from_millis(1);

impl Waiting {
    /// A wait begins.
    pub(crate) fn begin(&mut self) {
        self.spin.found();
        self.yields = 0;
        self.since = None;
    }

    /// Another look was in vain; whether the caller is to look around, as now and then in a
    /// long wait.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        hint::spin_loop();
        self.spin.in_vain(1) && self.let_others_run()
    }

    /// When the wait began, as far as is known.
    pub(crate) fn since(&mut self) -> Instant {
        *self.since.get_or_insert_with(Instant::now)
    }

    #[cold]
    fn let_others_run(&mut self) -> bool {
        let begun = Instant::now();
        let since = *self.since.get_or_insert(begun);
        thread::yield_now();
        self.spin.yielded(begun.elapsed());
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
