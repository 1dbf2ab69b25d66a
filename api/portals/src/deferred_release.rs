//! Releases of objects that messages still use.

use lintel_claim::{Deferred, Memory};
use lintel_runtime::process;
use lintel_types::{Error, Handle, PortalIndex, Result};

/// An object of the engine that its owner has dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dropped {
    Descriptor(Handle),
    Entry(Handle),
    /// The interface and the index in its portal table.
    Portal(Handle, PortalIndex),
}

static DEFERRED: Deferred<Dropped> = Deferred::new();

impl Dropped {
    /// Releases the object now, or as soon as nothing uses it.
    pub(crate) fn release(self, memory: Memory) {
        DEFERRED.release(self, memory, Dropped::is_in_use);
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
    DEFERRED.retry_all(Dropped::is_in_use);
}
