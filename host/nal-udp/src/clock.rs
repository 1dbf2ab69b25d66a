//! The clock of a NAL.

use lintel_presence::{ticks, ticks_are_steady};
use lintel_reliable::{Nanos, Time};
use nix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Ticks of the processor for which a reading serves: some microseconds, since a counter that
/// the kernel uses as its clock ticks at 1 to 5 GHz. No timer here is shorter than 250 µs.
const SERVES_FOR: u64 = 1 << 13;

/// Reads the clock that all processes of this machine share. To read it takes 20 ns, of the 1.7 µs of
/// a message; where the processor's ticks show that a reading is only some microseconds old, it
/// is used again.
pub(crate) struct Clock {
    uses_ticks: bool,
    /// The latest reading, and the ticks at that moment.
    time: Cell<Time>,
    read_at: Cell<u64>,
    /// A moment by both clocks.
    opened_at: (Instant, Time),
}

impl Clock {
    pub(crate) fn new() -> Clock {
        // Before the reading that they belong to, which then never counts as newer than it is.
        let read_at = ticks();
        let opened_at = (Instant::now(), since_boot());
        Clock {
            uses_ticks: ticks_are_steady(),
            time: Cell::new(opened_at.1),
            read_at: Cell::new(read_at),
            opened_at,
        }
    }

    /// The time, or that of some microseconds ago.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        let ticks = ticks();
        let is_recent = ticks.wrapping_sub(self.read_at.get()) < SERVES_FOR;
        if !(is_recent && self.uses_ticks) {
            self.read_at.set(ticks);
            self.time.set(since_boot());
        }
        self.time.get()
    }

    /// The moment at which the clock was made, which has passed.
    pub(crate) fn opened_at(&self) -> Instant {
        self.opened_at.0
    }

    /// A time as others know it.
    pub(crate) fn instant(&self, time: Time) -> Instant {
        let (opened_at, then) = self.opened_at;
        opened_at + Duration::from(Nanos(time.0.saturating_sub(then.0)))
    }
}

/// Not 0, which stands for a time long ago.
fn since_boot() -> Time {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has it");
    Time(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_goes_back_and_is_never_late_by_more_than_a_reading_serves() {
        let clock = Clock::new();
        let mut last = clock.now();
        for _ in 0..100_000 {
            let before = since_boot();
            let now = clock.now();
            assert!(now >= last && now <= since_boot());
            // At 1 GHz.
            assert!(before.since(now) <= Nanos(SERVES_FOR));
            last = now;
        }
    }

    #[test]
    fn without_steady_ticks_each_look_is_a_reading() {
        let clock = Clock {
            uses_ticks: false,
            ..Clock::new()
        };
        for _ in 0..100 {
            let before = since_boot();
            assert!(clock.now() >= before);
        }
    }

    #[test]
    fn times_are_moments_of_the_other_clock() {
        let clock = Clock::new();
        let (opened_at, then) = clock.opened_at;
        let moment = clock.instant(then.after(Nanos(5)));
        assert_eq!(moment, opened_at + Duration::from_nanos(5));
        assert_eq!(clock.instant(Time(0)), clock.opened_at());
    }
}
