//! What is kept of a process for the snapshots that tools ask for.

use lintel_snapshot::Wait;
use std::time::{Duration, Instant};

/// What is kept for snapshots.
#[derive(Default)]
pub(crate) struct Observed {
    /// Threads that sleep in a call, and since when.
    pub(crate) waits: Vec<(Wait, Instant)>,
    /// The network's number of arrivals when it was last looked at.
    pub(crate) arrivals: u64,
    /// When that was last found to have changed.
    pub(crate) arrived: Option<Instant>,
}

pub(crate) fn milliseconds_since(then: Instant) -> u64 {
    let since: Duration = then.elapsed();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
