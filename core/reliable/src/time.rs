//! [`Time`]: a moment that comes in from outside.

use core::time::Duration;

/// A moment: nanoseconds since one that the endpoint's owner has chosen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Time(pub u64);

impl Time {
    /// Later than every other: a timer that isn't set.
    pub const NEVER: Time = Time(u64::MAX);

    /// The moment so much later, `NEVER` at the latest.
    #[inline]
    pub fn after(self, wait: Nanos) -> Time {
        Time(self.0.saturating_add(wait.0))
    }

    /// How much later than another it is; 0 if it is earlier.
    #[inline]
    pub fn since(self, earlier: Time) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A length of time, nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// So many microseconds, which must be fewer than 2^54.
    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros * 1000)
    }

    /// So many milliseconds, which must be fewer than 2^44.
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis * 1_000_000)
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Nanos {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Duration {
        Duration::from_nanos(nanos.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_lengths_saturate() {
        assert_eq!(Time(5).after(Nanos(3)), Time(8));
        assert_eq!(Time::NEVER.after(Nanos(1)), Time::NEVER);
        assert_eq!(Time(8).since(Time(5)), Nanos(3));
        assert_eq!(Time(5).since(Time(8)), Nanos(0));
        assert_eq!(Nanos::from_micros(2), Nanos(2000));
        assert_eq!(Nanos::from_millis(2), Nanos(2_000_000));
        assert_eq!(Nanos::from(Duration::from_nanos(9)), Nanos(9));
        assert_eq!(Nanos::from(Duration::MAX), Nanos(u64::MAX));
        assert_eq!(Duration::from(Nanos(9)), Duration::from_nanos(9));
    }
}
