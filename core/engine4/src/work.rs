//! Counts of what the engine did: a simulator prices them, a real run exports them.

/// Work since it was last taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// List entries and unexpected headers looked at.
    pub walked: u64,
    /// Requests that arrived from initiators.
    pub requests: u64,
    /// Acknowledgements and replies that arrived from targets.
    pub responses: u64,
    /// Full events that were posted to queues.
    pub events: u64,
    /// Updates of counting events.
    pub counts: u64,
    /// Atomic elements to combine.
    pub atomics: u64,
    /// Triggered operations that fired.
    pub fired: u64,
}
