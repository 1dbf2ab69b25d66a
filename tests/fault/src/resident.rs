//! The resident memory of a process, and whether it grows.

use std::fmt;

/// The shortest run, in seconds, that shows growth.
const LEAST: usize = 40;
/// Growth that is no leak, bytes: a network keeps up to 5 MiB of early packets, in buffers
/// that it allocates on first use.
const SLACK: u64 = 6 << 20;

/// Resident bytes of a process, once a second.
#[derive(Default)]
pub struct Resident {
    samples: Vec<u64>,
}

impl Resident {
    /// Reads how much memory of a process is resident, by its number.
    pub fn sample(&mut self, process: u32) {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        self.samples.extend(kib.map(|kib| kib << 10));
    }

    /// Medians of the second and the last quarter, if the run was long enough.
    fn quarters(&self) -> Option<(u64, u64)> {
        let count = self.samples.len();
        let quarter =
            |which: usize| median(&self.samples[which * count / 4..(which + 1) * count / 4]);
        (count >= LEAST).then(|| (quarter(1), quarter(3)))
    }

    /// Whether the process holds more at the end than the slack allows, and so many bytes of other
    /// buffers that are bounded and allocated on first use.
    pub fn has_grown(&self, bounded: u64) -> bool {
        let quarters = self.quarters();
        quarters.is_some_and(|(second, last)| last > second + second / 20 + SLACK + bounded)
    }
}

impl fmt::Display for Resident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        match self.quarters() {
            Some((second, last)) => {
                write!(f, "{:.1} MiB, then {:.1} MiB", mib(second), mib(last))
            }
            None => write!(f, "too short"),
        }
    }
}

fn median(samples: &[u64]) -> u64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_reported_and_a_late_page_is_not() {
        let of = |at: fn(u64) -> u64| Resident {
            samples: (0..100).map(at).collect(),
        };
        assert!(!of(|_| 50 << 20).has_grown(0));
        assert!(!of(|second| (50 << 20) + second * 4096).has_grown(0));
        let growing = of(|second| (50 << 20) + second * (200 << 10));
        assert!(growing.has_grown(0));
        let late = of(|second| if second < 60 { 8 << 20 } else { 15 << 20 });
        assert!(late.has_grown(0) && !late.has_grown(8 << 20));
    }
}
