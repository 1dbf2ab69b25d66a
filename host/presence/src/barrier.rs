//! Memory barriers that one process orders for all.

use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// [`register_for_barriers`] has succeeded in this process, or in the one that forked it.
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// Has this process take part in barriers that others order; false if the system has none. Until
/// then it has to fence by itself.
///
/// In a process of several threads it lasts as long as a grace period of RCU: 5 to 25 ms, and
/// seconds where more threads are runnable than there are processors. So it isn't to be called with
/// a lock held that others wait for.
pub fn register_for_barriers() -> bool {
    let is_registered = membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok();
    if is_registered {
        IS_REGISTERED.store(true, Ordering::Release);
    }
    is_registered
}

/// Whether this process takes part in barriers that others order.
pub fn is_registered_for_barriers() -> bool {
    IS_REGISTERED.load(Ordering::Acquire)
}

/// Whether this process can order barriers.
pub(crate) fn has_barriers() -> bool {
    membarrier_query().contains_command(MembarrierCommand::GlobalExpedited)
}

/// Orders the memory accesses of every registered process against those of this one.
pub fn barrier() {
    // If the system has none, senders fence.
    if membarrier(MembarrierCommand::GlobalExpedited).is_err() {
        fence(Ordering::SeqCst);
    }
}
