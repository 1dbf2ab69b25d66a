//! How messages go to another process of this machine, by their length.

use std::fmt::Write;

use lintel_runtime::{Costs, SettingError, Settings};
use serde::Serialize;

/// Costs of a further KiB through a ring that are shown as examples, ns: two threads of one
/// core, two cores of a fast and of a slow machine.
const EXAMPLES: [f32; 4] = [40.0, 80.0, 160.0, 320.0];

/// What a process of this machine knows when it starts, and what it makes of what it learns.
#[derive(Debug, Serialize)]
pub(super) struct Paths {
    /// A copy of 8 bytes by the system, ns; nothing if it isn't used to choose.
    system_call_ns: Option<f32>,
    /// Each further KiB of it, ns.
    system_kib_ns: Option<f32>,
    /// Bytes up to which a message goes through the ring before anything is known of the peer.
    first: u64,
    /// Bytes up to which it does once a KiB through the ring is known to cost so much.
    thresholds: Vec<Threshold>,
}

#[derive(Debug, Serialize)]
struct Threshold {
    ring_kib_ns: f32,
    bytes: u64,
}

impl Paths {
    /// Measures the system's copy, unless a variable sets the threshold.
    ///
    /// # Errors
    /// A variable isn't understood.
    pub(super) fn of_this_machine() -> Result<Paths, SettingError> {
        Ok(Paths::of(Settings::from_env()?.costs()))
    }

    fn of(costs: Costs) -> Paths {
        let copy = match costs {
            Costs::Measured(copy) => Some(copy),
            Costs::Set(_) => None,
        };
        let threshold = |ring_kib_ns| Threshold {
            ring_kib_ns,
            bytes: costs.threshold(Some(ring_kib_ns)),
        };
        Paths {
            system_call_ns: copy.map(|copy| copy.call_ns),
            system_kib_ns: copy.map(|copy| copy.kib_ns),
            first: costs.threshold(None),
            thresholds: match copy {
                Some(_) => EXAMPLES.map(threshold).into(),
                None => Vec::new(),
            },
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::from(
            "messages to another process of this machine:\n  \
             up to 16 B        in the cache line of their header\n  \
             up to a threshold through the receiver's ring: copied by both sides\n  \
             longer ones       copied once, by the system, when the receiver has matched them:\n  \
             \x20                 by the side that waits, or one half by each if both wait\n\n",
        );
        let (Some(call), Some(kib)) = (self.system_call_ns, self.system_kib_ns) else {
            let _ = writeln!(
                text,
                "threshold: {} B, because PTL_SHM_EAGER sets it or the system forbids its copy",
                self.first
            );
            return text;
        };
        let _ = write!(
            text,
            "a copy by the system: {call:.0} ns, and {kib:.0} ns per KiB (measured now)\n\
             threshold: {} B, until a process knows what its ring to a peer costs:\n",
            self.first
        );
        for Threshold { ring_kib_ns, bytes } in &self.thresholds {
            let _ = writeln!(text, "  {ring_kib_ns:>4.0} ns per KiB: {bytes:>6} B");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_runtime::SystemCopy;

    #[test]
    fn a_slower_ring_has_a_lower_threshold() {
        let paths = Paths::of(Costs::Measured(SystemCopy {
            call_ns: 440.0,
            kib_ns: 25.0,
        }));
        let bytes: Vec<u64> = paths.thresholds.iter().map(|t| t.bytes).collect();
        assert!(bytes.is_sorted_by(|a, b| a > b), "{bytes:?}");
        assert!(paths.text().contains("440 ns, and 25 ns per KiB"));
    }

    #[test]
    fn a_threshold_that_is_set_is_the_only_one() {
        let text = Paths::of(Costs::Set(5000)).text();
        assert!(
            text.contains("threshold: 5000 B, because PTL_SHM_EAGER"),
            "{text}"
        );
    }
}
