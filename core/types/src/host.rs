//! What a host reports to an engine of the way to a process.

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
