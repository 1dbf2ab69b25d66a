//! Sleeping on a word in shared memory.

use crate::sync::AtomicU32;
use rustix::thread::futex;
use std::time::Duration;

/// Sleeps until [`wake_all`], a signal, or the timeout; not at all unless the word still
/// has the expected value.
pub(crate) fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    let timeout = timeout.map(|timeout| futex::Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    });
    // Any error is an early return, and the caller checks its condition anyway.
    let _ = futex::wait(word, futex::Flags::empty(), expected, timeout.as_ref());
}

/// Wakes all that sleep on the word.
pub(crate) fn wake_all(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}
