//! The resident memory of a process, and whether it grows.

use std::fmt;

/// The shortest run, in seconds, that shows growth.
const LEAST: usize = 40;
/// Growth that is no leak, bytes: a network keeps up to 5 MiB of early packets, in buffers
/// that it allocates on first use, and an allocator keeps what was freed in pieces.
const SLACK: i64 = 6 << 20;

/// Resident bytes of a process, once a second, without those that it accounts for.
#[derive(Default)]
pub struct Resident {
    /// Less than zero if it holds more than it has touched.
    samples: Vec<i64>,
}

impl Resident {
    /// Reads how much memory of a process is resident, by its number. `accounted` is the most that
    /// it has ever held in buffers that are bounded, bytes: memory that was used once stays resident.
    pub fn sample(&mut self, process: u32, accounted: u64) {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<i64>().ok());
        let accounted = i64::try_from(accounted).unwrap_or(i64::MAX);
        self.samples.extend(kib.map(|kib| (kib << 10) - accounted));
    }

    /// Medians of the second and the last quarter, if the run was long enough.
    fn quarters(&self) -> Option<(i64, i64)> {
        let count = self.samples.len();
        let quarter =
            |which: usize| median(&self.samples[which * count / 4..(which + 1) * count / 4]);
        (count >= LEAST).then(|| (quarter(1), quarter(3)))
    }

    /// Whether the process holds more at the end than the slack allows.
    pub fn has_grown(&self) -> bool {
        let quarters = self.quarters();
        quarters.is_some_and(|(second, last)| last > second + second.max(0) / 20 + SLACK)
    }
}

impl fmt::Display for Resident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: i64| bytes as f64 / f64::from(1 << 20);
        match self.quarters() {
            Some((second, last)) => {
                write!(f, "{:.1} MiB, then {:.1} MiB", mib(second), mib(last))
            }
            None => write!(f, "too short"),
        }
    }
}

fn median(samples: &[i64]) -> i64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_reported_and_a_late_page_is_not() {
        let of = |at: fn(i64) -> i64| Resident {
            samples: (0..100).map(at).collect(),
        };
        assert!(!of(|_| 50 << 20).has_grown());
        assert!(!of(|second| (50 << 20) + second * 4096).has_grown());
        let growing = of(|second| (50 << 20) + second * (200 << 10));
        assert!(growing.has_grown());
        let late = of(|second| if second < 60 { 8 << 20 } else { 13 << 20 });
        assert!(!late.has_grown());
    }
}
