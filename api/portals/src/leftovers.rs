//! What was dropped while messages still used it.
//!
//! A drop doesn't wait. What the engine can't let go yet is kept here with its
//! memory, and tried again whenever something is made, dropped or closed.

use crate::memory::Memory;
use lintel_runtime::process;
use lintel_types::{Error, Handle, PortalIndex, Result};
use std::sync::{Mutex, PoisonError};

/// Something of the engine's that wants to go.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leftover {
    Descriptor(Handle),
    Entry(Handle),
    /// An interface's index.
    Portal(Handle, PortalIndex),
}

/// With the memory that messages may still reach.
static LEFTOVERS: Mutex<Vec<(Leftover, Memory)>> = Mutex::new(Vec::new());

impl Leftover {
    /// Lets it go now, or as soon as nothing uses it.
    pub(crate) fn let_go(self, memory: Memory) {
        sweep();
        if self.is_in_use() {
            lock(|leftovers| leftovers.push((self, memory)));
        }
    }

    /// Tries to release it; what is gone already isn't in use.
    fn is_in_use(self) -> bool {
        let released = self.release();
        matches!(released, Err(Error::InUse | Error::PtInUse))
    }

    fn release(self) -> Result<()> {
        match self {
            Leftover::Descriptor(handle) => process().descriptor_release(handle),
            Leftover::Entry(handle) => process().unlink(handle),
            Leftover::Portal(handle, index) => process().portal_free(handle, index),
        }
    }
}

/// Tries everything again.
pub(crate) fn sweep() {
    let mut tried = lock(std::mem::take);
    tried.retain(|(leftover, _)| leftover.is_in_use());
    if !tried.is_empty() {
        lock(|leftovers| leftovers.append(&mut tried));
    }
}

fn lock<R>(f: impl FnOnce(&mut Vec<(Leftover, Memory)>) -> R) -> R {
    f(&mut LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner))
}
