//! How a job is ended.

use std::time::Instant;

use rustix::process::Signal;

/// The steps of ending a job, each harder than the one before.
pub(crate) struct Ending {
    /// What is sent next; after SIGKILL nothing is.
    pub(crate) next: Option<Signal>,
    /// When.
    pub(crate) at: Instant,
    /// SIGKILL was sent a while ago: what still holds a pipe is no process of the job.
    pub(crate) given_up: bool,
}
