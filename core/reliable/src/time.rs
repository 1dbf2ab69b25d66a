//! [`Time`]: a moment that comes in from outside.

use core::time::Duration;

/// A moment: nanoseconds since one that whoever holds the endpoint has chosen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Time(pub u64);

impl Time {
    /// Later than every other.
    pub const NEVER: Time = Time(u64::MAX);

    /// So much later.
    #[inline]
    pub fn after(self, wait: Nanos) -> Time {
        Time(self.0.saturating_add(wait.0))
    }

    /// How much later than another; nothing where it is earlier.
    #[inline]
    pub fn since(self, earlier: Time) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A length of time, nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// So many microseconds.
    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros * 1000)
    }

    /// So many milliseconds.
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
