//! Counts of what the engine did: a simulator prices them, a real run exports them.

/// Work since it was last taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Match entries looked at.
    pub walked: u64,
    /// Requests that arrived, dropped ones too.
    pub requests: u64,
    /// Responses that arrived, whether or not one was awaited.
    pub responses: u64,
    /// Events posted: START and END events, acknowledgements, unlinkings.
    pub events: u64,
}
