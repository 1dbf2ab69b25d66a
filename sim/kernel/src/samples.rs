//! Measured durations, and what they say.

use crate::time::Duration;

/// Every duration that was measured, so that percentiles are exact.
#[derive(Clone, Default, Debug)]
pub struct Samples {
    values: Vec<Duration>,
    sorted: bool,
}

impl Samples {
    /// A collection without samples.
    pub const fn new() -> Self {
        Samples {
            values: Vec::new(),
            sorted: true,
        }
    }

    /// Adds a measured duration.
    pub fn add(&mut self, value: Duration) {
        self.sorted = false;
        self.values.push(value);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The shortest sample, if there is one.
    pub fn min(&self) -> Option<Duration> {
        self.values.iter().min().copied()
    }

    /// The longest sample, if there is one.
    pub fn max(&self) -> Option<Duration> {
        self.values.iter().max().copied()
    }

    /// The mean, rounded down to the picosecond.
    pub fn mean(&self) -> Option<Duration> {
        let count = u128::try_from(self.len()).expect("a length fits");
        let sum: u128 = self.values.iter().map(|v| u128::from(v.as_ps())).sum();
        let mean = sum.checked_div(count)?;
        Some(Duration::from_ps(
            u64::try_from(mean).expect("a mean is no longer than the longest"),
        ))
    }

    /// The shortest one that at least `permille` thousandths of all don't
    /// exceed (nearest rank): 500 is the median, 990 the 99th percentile.
    pub fn permille(&mut self, permille: u32) -> Option<Duration> {
        if !self.sorted {
            self.values.sort_unstable();
            self.sorted = true;
        }
        let rank = (self.len() * permille as usize).div_ceil(1_000).max(1);
        self.values.get(rank - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(ns: impl IntoIterator<Item = u64>) -> Samples {
        let mut samples = Samples::new();
        ns.into_iter()
            .for_each(|ns| samples.add(Duration::from_ns(ns)));
        samples
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut hundred = samples((1..=100).rev());
        for (permille, ns) in [
            (0, 1),
            (10, 1),
            (500, 50),
            (505, 51),
            (990, 99),
            (1000, 100),
        ] {
            assert_eq!(hundred.permille(permille), Some(Duration::from_ns(ns)));
        }
    }

    #[test]
    fn mean_and_extremes_are_those_of_the_list() {
        let three = samples([9, 1, 2]);
        assert_eq!(three.mean(), Some(Duration::from_ns(4)));
        assert_eq!(three.min(), Some(Duration::from_ns(1)));
        assert_eq!(three.max(), Some(Duration::from_ns(9)));
    }

    #[test]
    fn nothing_measured_says_nothing() {
        let mut none = Samples::new();
        assert!(none.is_empty());
        assert_eq!(
            (none.mean(), none.permille(500), none.max()),
            (None, None, None)
        );
    }
}
