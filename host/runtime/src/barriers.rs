//! Barriers that the system executes in this process for others: for a thread that takes the lock
//! from one it is biased to, and for a peer that is about to sleep.

use crate::thread::{is_alone, spawn};

/// Registers this process for both kinds. Until that is done its lock is a plain one, and it fences
/// each send.
///
/// The system needs microseconds for it in a process of one thread, and otherwise milliseconds to
/// seconds: then it happens on a thread that nobody waits for.
pub fn register_for_barriers() {
    let are_registered =
        || lintel_lock::is_registered() && lintel_presence::is_registered_for_barriers();
    let register = || {
        lintel_lock::register();
        lintel_presence::register_for_barriers();
    };
    if are_registered() {
        return;
    }
    if is_alone() {
        register();
    } else {
        // Without that thread all stays as it is.
        let _ = spawn("lintel-register", register);
    }
}
