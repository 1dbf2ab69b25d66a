//! Releases that wait until no message uses the object any more.
//!
//! A drop doesn't wait. If the engine refuses a release because the object is in use, the
//! object is kept here with its memory, and the release is retried whenever something is
//! made, dropped or closed.

use crate::memory::Memory;
use lintel_runtime::process;
use lintel_types::{Error, Handle, PortalIndex, Result};
use std::sync::{Mutex, PoisonError};

/// An object of the engine that its owner has dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dropped {
    Descriptor(Handle),
    Entry(Handle),
    /// The interface and the index in its portal table.
    Portal(Handle, PortalIndex),
}

/// With the memory that messages may still reach.
static DEFERRED: Mutex<Vec<(Dropped, Memory)>> = Mutex::new(Vec::new());

impl Dropped {
    /// Releases the object now, or as soon as nothing uses it.
    pub(crate) fn release(self, memory: Memory) {
        retry_all();
        if self.is_in_use() {
            with_deferred(|deferred| deferred.push((self, memory)));
        }
    }

    /// Tries to release the object; one that is closed already isn't in use.
    fn is_in_use(self) -> bool {
        let released = self.try_release();
        matches!(released, Err(Error::InUse | Error::PtInUse))
    }

    fn try_release(self) -> Result<()> {
        match self {
            Dropped::Descriptor(handle) => process().descriptor_release(handle),
            Dropped::Entry(handle) => process().unlink(handle),
            Dropped::Portal(handle, index) => process().portal_free(handle, index),
        }
    }
}

/// Retries every deferred release.
pub(crate) fn retry_all() {
    let mut tried = with_deferred(std::mem::take);
    tried.retain(|(dropped, _)| dropped.is_in_use());
    if !tried.is_empty() {
        with_deferred(|deferred| deferred.append(&mut tried));
    }
}

fn with_deferred<R>(f: impl FnOnce(&mut Vec<(Dropped, Memory)>) -> R) -> R {
    f(&mut DEFERRED.lock().unwrap_or_else(PoisonError::into_inner))
}
