//! A mutex that is biased to the thread that takes it all the time (biased locking; K. Kawachiya
//! et al., "Lock Reservation", OOPSLA 2002).
//!
//! A program that communicates from one thread takes the library's lock twice for each message,
//! and nobody competes for it: the helper thread sleeps as long as a caller polls. A locked
//! instruction takes some 20 cycles all the same. Here the thread that has taken the lock many
//! times in a row takes it by a store and a load from then on. Another thread that wants it
//! revokes that first, and has the system execute a memory barrier on the processor of the
//! first one (`membarrier`): a few microseconds. After each revocation the lock must be taken
//! more often before it is biased again, so threads that share it pay no more than with a
//! plain mutex.
//!
//! The system executes such barriers for a process that has [registered](register), which may take
//! long: it is done once, where nobody waits for it. Locks are plain mutexes until then.
//!
//! ```
//! lintel_lock::register();
//! let mutex = lintel_lock::Mutex::new(1);
//! *mutex.lock() += 1;
//! assert_eq!(*mutex.lock(), 2);
//! ```

mod biased;
mod raw;
mod system;

pub use biased::{BiasedGuard, lock_by_bias};
pub use raw::RawBiased;
pub use system::{is_registered, register};

use parking_lot::lock_api;
use raw::{NOBODY, STREAK};
use system::{AtomicBool, AtomicU32, AtomicUsize, RawMutex};

/// A mutex that is biased to the thread that takes it all the time.
pub type Mutex<T> = lock_api::Mutex<RawBiased, T>;
/// Holds a [`Mutex`].
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawBiased, T>;

// SAFETY: one thread at a time has the lock. By the mutex: who has it has revoked the bias and
// waited until nobody has entered. By the bias: it is biased to one thread only, for which the
// barrier that `revoke` has executed comes before or after its store to `entered`: before, it
// sees the revocation; after, the revoker sees that it has entered, and waits.
unsafe impl lock_api::RawMutex for RawBiased {
    #[allow(clippy::declare_interior_mutable_const)] // as the trait has it
    const INIT: RawBiased = RawBiased {
        bias: AtomicUsize::new(NOBODY),
        entered: AtomicBool::new(false),
        is_held: AtomicBool::new(false),
        mutex: RawMutex::new(),
        other_waits: AtomicBool::new(false),
        candidate: AtomicUsize::new(NOBODY),
        last: AtomicUsize::new(NOBODY),
        streak: AtomicU32::new(0),
        needed: AtomicU32::new(STREAK.0),
    };

    /// As a guard of `parking_lot`, it stays with its thread.
    type GuardMarker = <parking_lot::RawMutex as lock_api::RawMutex>::GuardMarker;

    #[inline(always)]
    fn lock(&self) {
        RawBiased::lock(self);
    }

    #[inline(always)]
    fn try_lock(&self) -> bool {
        RawBiased::try_lock(self)
    }

    #[inline(always)]
    unsafe fn unlock(&self) {
        RawBiased::unlock(self);
    }

    fn is_locked(&self) -> bool {
        RawBiased::is_locked(self)
    }
}
