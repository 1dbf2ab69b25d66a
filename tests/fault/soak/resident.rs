//! How much memory a process holds, and whether that grows.

use std::fmt;

/// Fewer seconds than this tell nothing.
const LEAST: usize = 40;
/// What may come with the time and isn't growth, bytes: a network keeps up to 5 MiB of
/// packets that came early, in buffers that it makes when it first needs them.
const SLACK: u64 = 6 << 20;

/// Resident bytes of a process, once a second.
#[derive(Default)]
pub struct Resident {
    samples: Vec<u64>,
}

impl Resident {
    /// Looks at a process.
    pub fn sample(&mut self, process: u32) {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        self.samples.extend(kib.map(|kib| kib << 10));
    }

    /// Medians of the second and the last quarter, where there is enough of both.
    fn quarters(&self) -> Option<(u64, u64)> {
        let count = self.samples.len();
        let quarter =
            |which: usize| median(&self.samples[which * count / 4..(which + 1) * count / 4]);
        (count >= LEAST).then(|| (quarter(1), quarter(3)))
    }

    /// Whether it holds more at the end than it should.
    pub fn has_grown(&self) -> bool {
        let quarters = self.quarters();
        quarters.is_some_and(|(second, last)| last > second + second / 20 + SLACK)
    }
}

impl fmt::Display for Resident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        match self.quarters() {
            Some((second, last)) => {
                write!(f, "{:.1} MiB, then {:.1} MiB", mib(second), mib(last))
            }
            None => write!(f, "too short to tell"),
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
    fn growth_is_told_and_a_late_page_isnt() {
        let of = |at: fn(u64) -> u64| Resident {
            samples: (0..100).map(at).collect(),
        };
        assert!(!of(|_| 50 << 20).has_grown());
        assert!(!of(|second| (50 << 20) + second * 4096).has_grown());
        assert!(of(|second| (50 << 20) + second * (200 << 10)).has_grown());
    }
}
