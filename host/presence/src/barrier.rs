//! Memory barriers that one process orders for all.

use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::atomic::{Ordering, fence};

/// Whether this process takes part in barriers that others order.
pub fn register_for_barriers() -> bool {
    membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
}

/// Orders the memory accesses of every registered process against those of this one.
pub fn barrier() {
    // If the system has none, senders fence.
    if membarrier(MembarrierCommand::GlobalExpedited).is_err() {
        fence(Ordering::SeqCst);
    }
}
