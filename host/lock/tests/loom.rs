//! The biased lock, every interleaving, under loom:
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test --release -p lintel-lock --test loom --target-dir target/loom
//! ```
//!
//! This is the crate's own code on loom's atomics. Loom knows no `membarrier`: the barrier that
//! the revoking thread has executed on every processor stands as a fence on each side, which is
//! what it amounts to.
#![cfg(loom)]
#![allow(dead_code)] // the file is included whole

#[path = "../src/raw.rs"]
mod raw;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use raw::RawBiased;
use system::{AtomicBool, AtomicU32, AtomicUsize, RawMutex, set_thread};

/// In the place of `src/system.rs`.
mod system {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
    use std::cell::Cell;

    loom::thread_local! {
        static NUMBER: Cell<usize> = Cell::new(0);
    }

    /// Names this thread.
    pub(crate) fn set_thread(number: usize) {
        NUMBER.with(|cell| cell.set(number));
    }

    pub(crate) fn thread() -> usize {
        NUMBER.with(Cell::get)
    }

    pub(crate) fn is_registered() -> bool {
        true
    }

    pub(crate) fn order_for_others() {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }

    pub(crate) fn order_others() {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }

    pub(crate) fn pause(_: u32) {
        loom::thread::yield_now();
    }

    /// A mutex of loom's atomics.
    pub(crate) struct RawMutex(pub(crate) AtomicBool);

    impl RawMutex {
        pub(crate) fn lock(&self) {
            while !self.try_lock() {
                loom::thread::yield_now();
            }
        }

        pub(crate) fn try_lock(&self) -> bool {
            let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
            self.0
                .compare_exchange(false, true, acquire, relaxed)
                .is_ok()
        }

        pub(crate) fn unlock(&self) {
            self.0.store(false, Ordering::Release);
        }

        pub(crate) fn unlock_to_waiter(&self) {
            self.unlock();
        }
    }
}

/// A value that the lock guards.
struct Guarded {
    lock: RawBiased,
    value: UnsafeCell<u32>,
}

// SAFETY: the value is accessed under the lock only, which is what loom checks.
unsafe impl Sync for Guarded {}
// SAFETY: as above.
unsafe impl Send for Guarded {}

/// The only thread that the lock can be biased to, and another.
const CANDIDATE: usize = 10;
const OTHER: usize = 20;

impl Guarded {
    /// A lock that is biased to the candidate.
    fn biased() -> Arc<Guarded> {
        let lock = RawBiased {
            bias: AtomicUsize::new(CANDIDATE),
            entered: AtomicBool::new(false),
            is_held: AtomicBool::new(false),
            mutex: RawMutex(AtomicBool::new(false)),
            other_waits: AtomicBool::new(false),
            candidate: AtomicUsize::new(CANDIDATE),
            last: AtomicUsize::new(raw::NOBODY),
            streak: AtomicU32::new(0),
            needed: AtomicU32::new(raw::STREAK.0),
        };
        let value = UnsafeCell::new(0);
        Arc::new(Guarded { lock, value })
    }

    /// Adds 1 in two steps; loom reports another thread between them.
    fn add(&self) {
        // SAFETY: the caller has the lock.
        self.value.with_mut(|value| unsafe { *value += 1 });
        self.lock.unlock();
    }

    fn lock_and_add(&self) {
        self.lock.lock();
        self.add();
    }
}

fn model(explore: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(explore);
}

#[test]
fn the_thread_with_the_bias_and_one_that_revokes_it_are_never_in_together() {
    model(|| {
        let guarded = Guarded::biased();
        let shared = guarded.clone();
        let other = thread::spawn(move || {
            set_thread(OTHER);
            shared.lock_and_add();
        });
        set_thread(CANDIDATE);
        guarded.lock_and_add();
        guarded.lock_and_add();
        other.join().unwrap();
        guarded.lock_and_add();
        guarded.value.with(|value| {
            // SAFETY: no other thread is left.
            assert_eq!(unsafe { *value }, 4);
        });
    });
}

#[test]
fn one_that_only_tries_gets_it_or_changes_nothing() {
    model(|| {
        let guarded = Guarded::biased();
        let shared = guarded.clone();
        let other = thread::spawn(move || {
            set_thread(OTHER);
            let is_taken = shared.lock.try_lock();
            if is_taken {
                shared.add();
            }
            u32::from(is_taken)
        });
        set_thread(CANDIDATE);
        guarded.lock_and_add();
        guarded.lock_and_add();
        let tried = other.join().unwrap();
        guarded.value.with(|value| {
            // SAFETY: no other thread is left.
            assert_eq!(unsafe { *value }, 2 + tried);
        });
    });
}
