//! Time as a count of picoseconds: 2^64 of them are 213 days.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A point of simulated time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SimTime(u64);

/// A length of simulated time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl SimTime {
    /// When every simulation begins.
    pub const START: SimTime = SimTime(0);
    /// Later than anything that happens.
    pub const NEVER: SimTime = SimTime(u64::MAX);

    /// This many picoseconds after the start.
    pub const fn from_ps(ps: u64) -> Self {
        SimTime(ps)
    }

    /// Picoseconds since the start.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it isn't after it.
    #[inline]
    pub const fn since(self, earlier: SimTime) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// The duration of an action that takes no time.
    pub const ZERO: Duration = Duration(0);

    /// A duration of this many picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Duration(ps)
    }

    /// A duration of this many nanoseconds, below 213 days.
    pub const fn from_ns(ns: u64) -> Self {
        Duration(ns * 1_000)
    }

    /// A duration of this many microseconds, below 213 days.
    pub const fn from_us(us: u64) -> Self {
        Duration(us * 1_000_000)
    }

    /// The duration in picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// This less the other; zero if the other is longer.
    #[inline]
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl Add<Duration> for SimTime {
    type Output = SimTime;

    #[inline]
    fn add(self, length: Duration) -> SimTime {
        let ps = self.0.checked_add(length.0);
        SimTime(ps.expect("a simulation lasts less than 213 days"))
    }
}

impl AddAssign<Duration> for SimTime {
    #[inline]
    fn add_assign(&mut self, length: Duration) {
        *self = *self + length;
    }
}

impl Add for Duration {
    type Output = Duration;

    #[inline]
    fn add(self, other: Duration) -> Duration {
        let ps = self.0.checked_add(other.0);
        Duration(ps.expect("a duration is below 213 days"))
    }
}

impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Duration;

    #[inline]
    fn sub(self, other: Duration) -> Duration {
        let ps = self.0.checked_sub(other.0);
        Duration(ps.expect("a duration is never negative"))
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;

    #[inline]
    fn mul(self, times: u64) -> Duration {
        let ps = self.0.checked_mul(times);
        Duration(ps.expect("a duration is below 213 days"))
    }
}

impl Sum for Duration {
    fn sum<I: Iterator<Item = Duration>>(lengths: I) -> Duration {
        lengths.fold(Duration::ZERO, Add::add)
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Duration(self.0))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ns, ps) = (self.0 / 1_000, self.0 % 1_000);
        match ps {
            0 => write!(f, "{ns} ns"),
            _ => write!(f, "{ns}.{ps:03} ns"),
        }
    }
}

impl fmt::Debug for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_in_nanoseconds_with_what_is_left_of_one() {
        assert_eq!(Duration::from_us(5).to_string(), "5000 ns");
        assert_eq!(SimTime::from_ps(25_600).to_string(), "25.600 ns");
    }

    #[test]
    fn time_since_something_later_is_nothing() {
        let early = SimTime::START + Duration::from_ns(1);
        let late = early + Duration::from_ns(2);
        assert_eq!(late.since(early), Duration::from_ns(2));
        assert_eq!(early.since(late), Duration::ZERO);
    }

    #[test]
    #[should_panic(expected = "less than 213 days")]
    fn time_never_wraps() {
        let _ = SimTime::NEVER + Duration::from_ps(1);
    }
}
