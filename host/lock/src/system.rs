//! What biasing needs of processor and system.

use rustix::thread::{MembarrierCommand, membarrier};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use parking_lot::lock_api::{RawMutex as _, RawMutexFair};

/// A plain mutex.
pub(crate) struct RawMutex(parking_lot::RawMutex);

impl RawMutex {
    pub(crate) const fn new() -> RawMutex {
        RawMutex(parking_lot::RawMutex::INIT)
    }

    pub(crate) fn lock(&self) {
        self.0.lock();
    }

    pub(crate) fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    /// Gives it back, which this thread has locked.
    pub(crate) fn unlock(&self) {
        // SAFETY: by the caller.
        unsafe { self.0.unlock() };
    }

    /// As [`unlock`](Self::unlock); a thread that sleeps for it has it at once.
    pub(crate) fn unlock_to_waiter(&self) {
        // SAFETY: by the caller.
        unsafe { self.0.unlock_fair() };
    }
}

/// A number that no other running thread of this process has: the address of the thread's
/// control block. 0 where that isn't known.
#[inline(always)]
pub(crate) fn thread() -> usize {
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
    {
        let thread: usize;
        // SAFETY: on x86-64 Linux, the word that fs points to is its own address (ELF handling
        // for thread-local storage, section 3.4.6); it is only read.
        unsafe {
            std::arch::asm!(
                "mov {}, fs:0",
                out(reg) thread,
                options(nostack, preserves_flags, pure, readonly)
            );
        }
        thread
    }
    #[cfg(all(target_arch = "aarch64", target_os = "linux", not(miri)))]
    {
        let thread: usize;
        // SAFETY: the register holds the address of the thread's control block; it is only read.
        unsafe {
            std::arch::asm!(
                "mrs {}, tpidr_el0",
                out(reg) thread,
                options(nostack, preserves_flags, pure, nomem)
            );
        }
        thread
    }
    #[cfg(not(all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        target_os = "linux",
        not(miri)
    )))]
    0
}

/// Lets the locks of this process be biased from now on; false if the system can't. Until then
/// they are plain mutexes.
///
/// In a process of several threads it lasts as long as a grace period of RCU: 5 to 25 ms, and
/// seconds where more threads are runnable than there are processors. So it isn't to be called with
/// a lock held that others wait for.
pub fn register() -> bool {
    membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
}

/// Whether [`order_others`] works. The system is asked, by such a barrier: it is another library
/// with a copy of this code that may have registered the process.
pub fn is_registered() -> bool {
    membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}

/// Orders the memory accesses of this thread for those who call [`order_others`]: the compiler
/// keeps their order, and the barrier that the system executes here does the rest.
#[inline(always)]
pub(crate) fn order_for_others() {
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// Executes a full memory barrier on each thread of this process.
///
/// # Panics
/// The system refuses, although it has let this process [`register`].
pub(crate) fn order_others() {
    // A fork's child may have to register for itself.
    let ordered = is_registered() || register() && is_registered();
    assert!(ordered, "the system refuses a memory barrier");
}

/// Waits a little for a thread that holds the lock: others run, and from the `MOST_YIELDS`th
/// time on it sleeps.
#[cold]
pub(crate) fn pause(times: u32) {
    const SPINS: u32 = 64;
    const MOST_YIELDS: u32 = 128;
    const NAP: std::time::Duration = std::time::Duration::from_micros(50);
    match times {
        0..SPINS => std::hint::spin_loop(),
        SPINS..MOST_YIELDS => std::thread::yield_now(),
        _ => std::thread::sleep(NAP),
    }
}
