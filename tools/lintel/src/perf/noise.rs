//! What disturbs a measurement: other programs, and the machine below a virtual one.

use std::fs;
use std::time::{Duration, Instant};

use crate::report::Noise;

/// Reads the system's counters; the difference to the last reading is what has happened.
pub struct Meter {
    core: usize,
    at: Instant,
    counters: Counters,
}

/// Times so far; those that this system doesn't count stay 0.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
struct Counters {
    /// The core's time that the machine below took.
    stolen: Duration,
    /// Time for which this thread was ready to run and didn't.
    waited: Duration,
    /// Time for which any thread of the system did.
    pressure: Duration,
}

impl Meter {
    /// Of the thread that measures, which is bound to `core`.
    pub fn new(core: usize) -> Meter {
        Meter {
            core,
            at: Instant::now(),
            counters: Counters::now(core),
        }
    }

    /// A measurement begins.
    pub fn restart(&mut self) {
        *self = Meter::new(self.core);
    }

    /// What has disturbed it since it began, in shares of the time; nothing below
    /// [`NOTED`].
    pub fn noise(&self) -> Option<Noise> {
        let noise = share(self.counters, Counters::now(self.core), self.at.elapsed());
        let is_noted = noise.stolen >= NOTED || noise.waited >= NOTED;
        is_noted.then_some(noise)
    }
}

/// Shares of the time from which on a measurement is marked.
const NOTED: f64 = 0.01;

fn share(before: Counters, now: Counters, time: Duration) -> Noise {
    let of = |before: Duration, now: Duration| {
        let share = now.saturating_sub(before).as_secs_f64() / time.as_secs_f64().max(1e-9);
        share.min(1.0)
    };
    Noise {
        stolen: of(before.stolen, now.stolen),
        waited: of(before.waited, now.waited),
        pressure: of(before.pressure, now.pressure),
    }
}

impl Counters {
    fn now(core: usize) -> Counters {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Counters {
            stolen: stolen(&read("/proc/stat"), core).unwrap_or_default(),
            waited: waited(&read("/proc/thread-self/schedstat")).unwrap_or_default(),
            pressure: pressure(&read("/proc/pressure/cpu")).unwrap_or_default(),
        }
    }
}

/// The core's eighth number in `/proc/stat`, in hundredths of a second.
fn stolen(stat: &str, core: usize) -> Option<Duration> {
    let name = format!("cpu{core} ");
    let numbers = stat.lines().find_map(|line| line.strip_prefix(&name))?;
    let ticks: u64 = numbers.split_whitespace().nth(7)?.parse().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

/// The second number of `/proc/thread-self/schedstat`, in nanoseconds.
fn waited(schedstat: &str) -> Option<Duration> {
    let nanoseconds = schedstat.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// `total` of the first line of `/proc/pressure/cpu`, in microseconds.
fn pressure(text: &str) -> Option<Duration> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    let total = some
        .split_whitespace()
        .find_map(|word| word.strip_prefix("total="))?;
    Some(Duration::from_micros(total.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_counters_are_read() {
        let stat =
            "cpu  9 9 9 9 9 9 9 99 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 12 0 0\n";
        assert_eq!(stolen(stat, 1), Some(Duration::from_millis(120)));
        assert_eq!(stolen(stat, 2), None);
        assert_eq!(waited("5 70 3\n"), Some(Duration::from_nanos(70)));
        let text = "some avg10=1.00 avg60=0.0 avg300=0.0 total=42\nfull avg10=0 total=7\n";
        assert_eq!(pressure(text), Some(Duration::from_micros(42)));
        assert_eq!(pressure(""), None);
    }

    #[test]
    fn a_disturbance_is_a_share_of_the_time() {
        let ms = Duration::from_millis;
        let now = Counters {
            stolen: ms(10),
            waited: ms(30),
            pressure: ms(300),
        };
        let noise = share(Counters::default(), now, ms(80));
        assert_eq!(
            (noise.stolen, noise.waited, noise.pressure),
            (0.125, 0.375, 1.0)
        );
    }
}
