//! Bytes, and bytes per second.

use crate::time::Duration;

const PS_PER_SECOND: u128 = 1_000_000_000_000;

/// A count of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Bytes(pub u64);

/// Bytes per second, never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bandwidth(u64);

impl Bandwidth {
    /// A rate of this many bytes per second; none for zero.
    pub const fn from_bytes_per_second(rate: u64) -> Option<Self> {
        match rate {
            0 => None,
            rate => Some(Bandwidth(rate)),
        }
    }

    /// In bytes per second.
    pub const fn bytes_per_second(self) -> u64 {
        self.0
    }

    /// How long so many bytes take: the true quotient, rounded up to the
    /// picosecond, so that nothing passes faster than it can.
    pub fn time_for(self, bytes: Bytes) -> Duration {
        let ps = (u128::from(bytes.0) * PS_PER_SECOND).div_ceil(u128::from(self.0));
        Duration::from_ps(u64::try_from(ps).expect("a transfer ends within 213 days"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_its_bytes_over_the_rate() {
        let rate = Bandwidth::from_bytes_per_second(2_500_000_000).expect("not zero");
        assert_eq!(rate.time_for(Bytes(64)), Duration::from_ps(25_600));
        assert_eq!(rate.time_for(Bytes(0)), Duration::ZERO);
    }

    #[test]
    fn a_part_of_a_picosecond_counts_as_one() {
        let rate = Bandwidth::from_bytes_per_second(3_000_000_000).expect("not zero");
        assert_eq!(rate.time_for(Bytes(1)), Duration::from_ps(334));
    }

    #[test]
    fn no_rate_is_zero() {
        assert_eq!(Bandwidth::from_bytes_per_second(0), None);
    }
}
