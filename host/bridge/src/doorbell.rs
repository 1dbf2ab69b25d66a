//! A doorbell in shared memory: one side rings it, the other sleeps on it.
//!
//! The sleeper polls for a moment, then sleeps without a timeout: if the other side
//! ends, a thread that watches the socket rings. A thread that rings checks whether any
//! sleeps. All stores and loads on both sides are `SeqCst`, so that either the ringer sees
//! the sleeper or the sleeper sees what the ring is for.

use crate::futex;
use crate::sync::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Polls before a waiter yields the processor. They are few: the other side may need this
/// processor.
const SPINS: u32 = if cfg!(loom) { 0 } else { 20 };
/// How long a waiter yields before it sleeps. A time rather than a count: on a busy machine the
/// processor is returned late, and sooner to a thread that is woken.
const PATIENCE: Duration = Duration::from_micros(if cfg!(loom) { 0 } else { 100 });

/// The other side has closed the connection, or has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disconnected;

/// The words of a doorbell, and of the message that it may ring for.
#[repr(C, align(128))]
pub(crate) struct Doorbell {
    /// Changes when sleepers are to look again.
    rings: AtomicU32,
    /// Threads that sleep, or are about to.
    asleep: AtomicU32,
    /// Messages announced so far.
    messages: AtomicU32,
    /// Bytes of the last one.
    length: AtomicU32,
}

impl Doorbell {
    /// A doorbell outside shared memory, whose zeros are one.
    #[cfg(test)]
    pub(crate) fn new() -> Doorbell {
        Doorbell {
            rings: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
            messages: AtomicU32::new(0),
            length: AtomicU32::new(0),
        }
    }

    /// Rings, for a reason that no sleeper can see by itself.
    pub(crate) fn ring(&self) {
        // Pairs with the load in `rings` ("what the ring is for is there").
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.has_sleepers() {
            futex::wake_all(&self.rings);
        }
    }

    /// Rings if a thread sleeps. What it rings for was stored `SeqCst`.
    pub(crate) fn ring_sleepers(&self) {
        if self.has_sleepers() {
            self.ring();
        }
    }

    /// As [`ring`](Self::ring), and wakes sleepers even if the count of them is wrong.
    pub(crate) fn ring_always(&self) {
        self.ring();
        futex::wake_all(&self.rings);
    }

    pub(crate) fn has_sleepers(&self) -> bool {
        self.asleep.load(Ordering::SeqCst) != 0
    }

    pub(crate) fn rings(&self) -> u32 {
        self.rings.load(Ordering::SeqCst)
    }

    /// As [`rings`](Self::rings), for a caller that doesn't sleep afterwards.
    #[inline]
    pub(crate) fn rings_relaxed(&self) -> u32 {
        self.rings.load(Ordering::Acquire)
    }

    /// Announces a message of that many bytes.
    pub(crate) fn announce(&self, length: u32) {
        self.length.store(length, Ordering::Relaxed);
        // Pairs with the load in `messages` ("the message is there").
        self.messages.fetch_add(1, Ordering::SeqCst);
        self.ring_sleepers();
    }

    pub(crate) fn messages(&self) -> u32 {
        self.messages.load(Ordering::SeqCst)
    }

    /// Bytes of the last message.
    pub(crate) fn length(&self) -> u32 {
        self.length.load(Ordering::Relaxed)
    }

    /// Sleeps until it rings, at most for `most`; not at all if `something` is there.
    pub(crate) fn sleep_unless(&self, something: impl FnOnce() -> bool, most: Option<Duration>) {
        self.asleep.fetch_add(1, Ordering::SeqCst);
        let rings = self.rings();
        if !something() {
            futex::wait(&self.rings, rings, most);
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }

    /// Waits for something that rings: polls for a moment, then sleeps.
    pub(crate) fn wait_for(
        &self,
        something: impl Fn() -> bool,
        is_alive: impl Fn() -> bool,
    ) -> Result<(), Disconnected> {
        for _ in 0..SPINS {
            if something() {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        let since = Instant::now();
        while !something() {
            if !is_alive() {
                return Err(Disconnected);
            }
            if since.elapsed() < PATIENCE {
                std::thread::yield_now();
            } else {
                self.sleep_unless(|| something() || !is_alive(), None);
            }
        }
        Ok(())
    }
}
