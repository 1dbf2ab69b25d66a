//! When something was recorded: by the processor's ticks, which are read in less time than the
//! system's clock, where the kernel trusts them, and else by that clock itself.
//!
//! A [`Clock`] compares both now and then, and converts by interpolation between the comparisons.

use lintel_presence::{ticks, ticks_are_steady};
use nix::time::{ClockId, clock_gettime};
use std::sync::LazyLock;

/// A moment: ticks of the processor, or nanoseconds of the system's clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Stamp(u64);

impl Stamp {
    #[inline(always)]
    pub(crate) fn now() -> Stamp {
        Stamp(if *USES_TICKS { ticks() } else { monotonic_ns() })
    }
}

static USES_TICKS: LazyLock<bool> = LazyLock::new(ticks_are_steady);

/// Nanoseconds of the clock that all processes of the machine share.
fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has it");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// What both clocks said at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pair {
    at: Stamp,
    ns: u64,
}

impl Pair {
    /// The tightest of some: a reading of the system's clock between two stamps.
    fn now() -> Pair {
        let tries = (0..TRIES).map(|_| {
            let before = Stamp::now();
            let ns = monotonic_ns();
            let took = Stamp::now().0.saturating_sub(before.0);
            let at = Stamp(before.0 + took / 2);
            (took, Pair { at, ns })
        });
        let tightest = tries.min_by_key(|(took, _)| *took);
        tightest.expect("there is a try").1
    }
}

/// Readings of which the tightest becomes a pair: an interrupt, or a cache miss, spoils some.
const TRIES: u32 = 8;
/// Stamps after which both clocks are compared again: about a second, or four nanosecond stamps'.
const RENEWED_AFTER: u64 = 1 << 32;
/// Pairs that are kept; when there are more, every second one goes.
const MOST_PAIRS: usize = 4096;

/// Converts stamps into nanoseconds of the clock that all processes of the machine share.
pub(crate) struct Clock {
    /// In order, and none twice.
    pairs: Vec<Pair>,
    /// Stamp from which on both clocks are compared again.
    due: Stamp,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        let first = Pair::now();
        let mut clock = Clock {
            pairs: Vec::new(),
            due: first.at,
        };
        clock.add(first);
        clock
    }

    /// The first comparison's nanoseconds.
    pub(crate) fn began_ns(&self) -> u64 {
        self.pairs[0].ns
    }

    /// Compares both clocks again if that is due.
    #[inline(always)]
    pub(crate) fn keep_true(&mut self, now: Stamp) {
        if now >= self.due {
            self.compare();
        }
    }

    /// Compares both clocks.
    #[cold]
    pub(crate) fn compare(&mut self) {
        self.add(Pair::now());
    }

    fn add(&mut self, pair: Pair) {
        self.due = Stamp(pair.at.0.saturating_add(RENEWED_AFTER));
        let is_later = |last: &Pair| pair.at > last.at && pair.ns >= last.ns;
        if !self.pairs.last().is_none_or(is_later) {
            return;
        }
        if self.pairs.len() == MOST_PAIRS {
            let mut is_kept = false;
            self.pairs.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
        self.pairs.push(pair);
    }

    /// Nanoseconds at a stamp, on the line through the two pairs around it, or the nearest two.
    /// With one pair alone, as if ticks were nanoseconds.
    pub(crate) fn ns(&self, at: Stamp) -> u64 {
        let after = self.pairs.partition_point(|pair| pair.at <= at);
        let end = after.clamp(1, self.pairs.len() - 1 + usize::from(self.pairs.len() == 1));
        let from = self.pairs[end - 1];
        let (ticks, ns) = match self.pairs.get(end) {
            Some(to) => (to.at.0 - from.at.0, to.ns - from.ns),
            None => (1, 1),
        };
        let since = i128::from(at.0) - i128::from(from.at.0);
        let since_ns = (since * i128::from(ns)).div_euclid(i128::from(ticks));
        (i128::from(from.ns) + since_ns).max(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(pairs: &[(u64, u64)]) -> Clock {
        let mut clock = Clock {
            pairs: Vec::new(),
            due: Stamp(0),
        };
        for (at, ns) in pairs {
            clock.add(Pair {
                at: Stamp(*at),
                ns: *ns,
            });
        }
        clock
    }

    #[test]
    fn between_two_pairs_stamps_follow_their_line_and_beyond_them_the_nearest() {
        let clock = clock(&[(100, 1000), (200, 1050), (300, 1150)]);
        let given = [80, 100, 150, 200, 250, 300, 320].map(|at| clock.ns(Stamp(at)));
        assert_eq!(given, [990, 1000, 1025, 1050, 1100, 1150, 1170]);
    }

    #[test]
    fn later_stamps_are_never_earlier_in_nanoseconds_where_the_clock_drifts() {
        let clock = clock(&[(0, 0), (3_500, 1_000), (7_000, 2_010), (10_500, 3_001)]);
        let given: Vec<u64> = (0..12_000).map(|at| clock.ns(Stamp(at))).collect();
        assert!(given.is_sorted());
    }

    #[test]
    fn a_pair_out_of_order_is_left_out() {
        let clock = clock(&[
            (100, 1000),
            (90, 1040),
            (150, 900),
            (100, 1000),
            (200, 1100),
        ]);
        assert_eq!(clock.pairs.len(), 2);
        assert_eq!(clock.ns(Stamp(150)), 1050);
    }

    #[test]
    fn with_a_first_pair_alone_stamps_keep_their_order() {
        let clock = clock(&[(100, 1000)]);
        assert_eq!((clock.ns(Stamp(90)), clock.ns(Stamp(130))), (990, 1030));
    }

    #[test]
    fn stamps_of_the_systems_clock_are_its_nanoseconds() {
        let clock = clock(&[(1_000, 1_000), (5_000_000_000, 5_000_000_000)]);
        assert_eq!(clock.ns(Stamp(77_777_777)), 77_777_777);
    }

    #[test]
    fn counts_near_their_largest_value_convert_without_overflow() {
        let large = u64::MAX - 1_000;
        let clock = clock(&[(large, 1 << 62), (u64::MAX, (1 << 62) + 500)]);
        assert_eq!(clock.due, Stamp(u64::MAX));
        assert_eq!(clock.ns(Stamp(large + 500)), (1 << 62) + 250);
    }

    #[test]
    fn pairs_stay_few_however_long_a_process_records() {
        let pairs: Vec<(u64, u64)> = (0..3 * MOST_PAIRS as u64).map(|n| (n * 7, n * 2)).collect();
        let clock = clock(&pairs);
        assert!(clock.pairs.len() <= MOST_PAIRS);
        assert_eq!(clock.pairs[0].at, Stamp(0));
        assert_eq!(clock.ns(Stamp(7_000)), 2_000);
    }

    #[test]
    fn what_is_stamped_between_two_comparisons_lies_between_their_nanoseconds() {
        let mut clock = Clock::new();
        let before = monotonic_ns();
        let stamp = Stamp::now();
        let after = monotonic_ns();
        clock.compare();
        // What two comparisons within so short a time can be wrong by.
        let error = 1_000;
        let ns = clock.ns(stamp);
        assert!(
            (before - error..=after + error).contains(&ns),
            "{before} {ns} {after}"
        );
    }
}
