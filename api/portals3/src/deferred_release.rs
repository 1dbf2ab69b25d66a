//! Releases of objects that messages still use.

use lintel_claim::{Deferred, Memory};
use lintel_runtime::process3;
use lintel_types::Handle;
use lintel_types::portals3::{Error, Result};

/// An object of the engine that its owner has dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dropped {
    Descriptor(Handle),
    Entry(Handle),
}

static DEFERRED: Deferred<Dropped> = Deferred::new();

impl Dropped {
    /// Releases the object now, or as soon as nothing uses it.
    pub(crate) fn release(self, memory: Memory) {
        DEFERRED.release(self, memory, Dropped::is_in_use);
    }

    /// Unlinks the object now.
    ///
    /// # Errors
    /// `MdInUse` or `MeInUse` while operations use it; `MdInvalid` or `MeInvalid` if it is gone.
    pub(crate) fn unlink(self) -> Result<()> {
        match self {
            Dropped::Descriptor(handle) => process3().descriptor_unlink3(handle),
            Dropped::Entry(handle) => process3().entry_unlink3(handle),
        }
    }

    fn is_in_use(self) -> bool {
        matches!(self.unlink(), Err(Error::MdInUse | Error::MeInUse))
    }
}

/// Retries every deferred release.
pub(crate) fn retry_all() {
    DEFERRED.retry_all(Dropped::is_in_use);
}
