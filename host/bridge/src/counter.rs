//! A counter as callers see it: written by one thread at a time, read without a lock.

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use lintel_types::{CountingEvent, Handle};

/// In place of the handle of a counter that isn't open.
const FREE: u32 = u32::MAX;

/// A counter's value, and the handle under which it is open.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct CounterCell {
    handle: AtomicU32,
    success: AtomicU64,
    failure: AtomicU64,
}

impl Default for CounterCell {
    fn default() -> Self {
        CounterCell {
            handle: AtomicU32::new(FREE),
            success: AtomicU64::new(0),
            failure: AtomicU64::new(0),
        }
    }
}

impl CounterCell {
    /// The value now; its two halves may be of different moments (Portals 4.3, PtlCTGet).
    #[inline]
    pub fn value(&self) -> CountingEvent {
        CountingEvent {
            success: self.success.load(Ordering::Acquire),
            failure: self.failure.load(Ordering::Acquire),
        }
    }

    /// Publishes a value to readers.
    #[inline]
    pub fn set(&self, value: CountingEvent) {
        self.failure.store(value.failure, Ordering::Release);
        self.success.store(value.success, Ordering::Release);
    }

    /// Publishes a value of which only the successes have changed.
    #[inline(always)]
    pub fn set_success(&self, success: u64) {
        self.success.store(success, Ordering::Release);
    }

    /// Opens the counter under a handle, at zero.
    pub fn begin(&self, handle: Handle) {
        self.set(CountingEvent::default());
        self.handle.store(handle.0, Ordering::Release);
    }

    /// Closes the counter: a caller with its handle finds nothing.
    pub fn end(&self) {
        self.handle.store(FREE, Ordering::Release);
    }

    /// Whether it is open under that handle.
    #[inline]
    pub fn is(&self, handle: Handle) -> bool {
        self.handle.load(Ordering::Acquire) == handle.0
    }
}
