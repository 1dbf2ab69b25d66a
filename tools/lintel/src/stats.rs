//! Order statistics of measured times.

use serde::{Deserialize, Serialize};

/// Times of one thing, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The median, in microseconds.
    pub median_us: f64,
    /// The minimum, in microseconds.
    pub min_us: f64,
    /// The arithmetic mean, in microseconds.
    pub mean_us: f64,
    /// 99 of 100 are no greater.
    pub p99_us: f64,
}

impl Times {
    /// Of nanoseconds, at least one.
    pub fn of(nanoseconds: &[f64]) -> Self {
        let mut sorted = nanoseconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self {
            median_us: quantile(&sorted, 0.5) / 1e3,
            min_us: sorted[0] / 1e3,
            mean_us: sorted.iter().sum::<f64>() / sorted.len() as f64 / 1e3,
            p99_us: quantile(&sorted, 0.99) / 1e3,
        }
    }
}

/// The median of at least one value.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len() - 1) as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (sorted[high] - sorted[low]) * part
}

/// 1, 2, 4 … and `most` itself.
pub fn doubling(most: usize) -> Vec<usize> {
    let powers = (0..).map(|n| 1 << n).take_while(|&count| count < most);
    powers.chain([most]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_an_even_count_lies_between() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
    }

    #[test]
    fn times_of_one_sample_are_that_sample() {
        let times = Times::of(&[1500.0]);
        assert_eq!((times.median_us, times.p99_us), (1.5, 1.5));
    }

    #[test]
    fn counts_double_and_end_where_asked() {
        assert_eq!(doubling(8), [1, 2, 4, 8]);
        assert_eq!(doubling(6), [1, 2, 4, 6]);
        assert_eq!(doubling(1), [1]);
    }
}
