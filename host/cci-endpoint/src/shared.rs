//! What the application's threads share with the helper, and whether they poll.

use crate::state::State;
use lintel_presence::{Bell, Sleeper, StatsWriter};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Polls after which senders needn't ring.
const BUSY_POLLS: u32 = 8;
/// Polls in vain, one after the other, between two yields of the processor.
const YIELD_AFTER: u32 = 64;

/// What the lock protects.
pub(crate) struct Guarded<T> {
    pub(crate) state: State,
    pub(crate) handles: T,
}

/// What the application's threads and the helper share.
pub(crate) struct Shared<T> {
    pub(crate) guarded: Mutex<Guarded<T>>,
    pub(crate) bell: Option<Bell>,
    pub(crate) statistics: Option<StatsWriter>,
    /// The network's socket, if it has one.
    pub(crate) socket: Option<OwnedFd>,
    /// Readable when the helper is to stop.
    pub(crate) wake: OwnedFd,
    pub(crate) stops: AtomicBool,
    /// Those by which the application counts as polling: with a handle, on which it may sleep,
    /// polls in vain; otherwise all.
    pub(crate) polls: AtomicU32,
    /// Polls in vain since the last event.
    pub(crate) idle_polls: AtomicU32,
    pub(crate) counts_all_polls: bool,
}

impl<T> Shared<T> {
    pub(crate) fn lock(&self) -> MappedMutexGuard<'_, State> {
        MutexGuard::map(self.guarded.lock(), |guarded| &mut guarded.state)
    }

    /// The application has taken an event.
    #[inline]
    pub(crate) fn note_event(&self) {
        self.idle_polls.store(0, Ordering::Relaxed);
        if self.counts_all_polls {
            self.count_poll();
        }
    }

    /// The application has found nothing.
    pub(crate) fn note_empty_poll(&self) {
        self.count_poll();
        let idle = self.idle_polls.load(Ordering::Relaxed) + 1;
        self.idle_polls.store(idle % YIELD_AFTER, Ordering::Relaxed);
        // The process that it waits for may need this processor.
        if idle == YIELD_AFTER {
            std::thread::yield_now();
        }
    }

    /// An application that polls needn't be woken; the helper looks soon whether it still does.
    #[inline]
    fn count_poll(&self) {
        let count = self.polls.load(Ordering::Relaxed).wrapping_add(1);
        self.polls.store(count, Ordering::Relaxed);
        if count % BUSY_POLLS == 0 {
            self.disarm();
        }
    }

    fn disarm(&self) {
        if let Some(bell) = self.bell.as_ref().filter(|bell| bell.is_armed()) {
            bell.disarm();
            bell.wake(Sleeper::Helper);
        }
    }
}
