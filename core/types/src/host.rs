//! What a host reports to an engine of the way to a process.

/// Bytes up to which a body is copied wherever it goes: nobody asks the host whether it is better
/// left in place.
pub const ALWAYS_COPIED: u64 = 2048;

/// How much a host has queued for a process that hasn't taken it yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backlog {
    /// Bodies are copied (eager).
    Low,
    /// Bodies should stay in place (rendezvous).
    High,
    /// New operations are refused; triggered operations and responses are sent all the same.
    Full,
}

/// No route leads to the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Undeliverable;
