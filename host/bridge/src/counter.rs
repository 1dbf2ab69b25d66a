//! A counter as callers see it: written by one, read without a lock.

use lintel_types::{CountingEvent, Handle};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const FREE: u32 = u32::MAX;

/// A counter's value, and the handle that it has now.
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
            success: 0.into(),
            failure: 0.into(),
        }
    }
}

impl CounterCell {
    /// The value; its two halves may be of different moments (Portals 4.3, PtlCTGet).
    #[inline]
    pub fn value(&self) -> CountingEvent {
        CountingEvent {
            success: self.success.load(Ordering::Acquire),
            failure: self.failure.load(Ordering::Acquire),
        }
    }

    /// Shows a value.
    #[inline]
    pub fn set(&self, value: CountingEvent) {
        self.failure.store(value.failure, Ordering::Release);
        self.success.store(value.success, Ordering::Release);
    }

    /// Begins a new life at zero.
    pub fn begin(&self, handle: Handle) {
        self.set(CountingEvent::default());
        self.handle.store(handle.0, Ordering::Release);
    }

    /// Ends that life: whoever looks finds nothing.
    pub fn end(&self) {
        self.handle.store(FREE, Ordering::Release);
    }

    /// Whether it lives under that handle.
    #[inline]
    pub fn is(&self, handle: Handle) -> bool {
        self.handle.load(Ordering::Acquire) == handle.0
    }
}
