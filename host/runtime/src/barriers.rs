//! Barriers that the system executes in this process for others: for a thread that takes the lock
//! from one it is biased to, and for a peer that is about to sleep.

use crate::thread::{is_alone, spawn};

/// Registers this process for both kinds. Until that is done its lock is a plain one, and it fences
/// each send.
///
/// The system needs microseconds for it in a process of one thread, and otherwise milliseconds to
/// seconds: then it happens on a thread that nobody waits for.
pub fn register_for_barriers() {
    if lintel_lock::is_registered() && lintel_presence::is_registered_for_barriers() {
        return;
    }
    let register = || {
        lintel_lock::register();
        lintel_presence::register_for_barriers();
    };
    if is_alone() {
        register();
    } else {
        // Without that thread the lock stays plain, and sends are fenced.
        let _ = spawn("lintel-register", register);
    }
}
