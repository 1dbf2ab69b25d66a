//! An owner's memory, as far as the system copies it.

use lintel_claim::{Claim, CrossMemoryError, Region};
use lintel_memory::Span;
use std::io;

/// The memory that the spans of an engine name. Copies go through the system, which checks
/// each address.
pub trait Memory: Send + Sync {
    /// What the engine calls memory.
    type Span: Span + Send + Sync;

    /// Copies bytes of this process into the owner's memory.
    ///
    /// # Errors
    /// The system refused a copy; some bytes may have been copied.
    fn copy_in(&self, from: &[Claim], to: &[Self::Span]) -> Result<u64, CrossMemoryError>;

    /// Copies bytes of the owner's memory into this process.
    ///
    /// # Errors
    /// The system refused a copy; some bytes may have been copied.
    fn copy_out(&self, from: &[Self::Span], to: &[Claim]) -> Result<u64, CrossMemoryError>;

    /// Memory of this process for bytes on their way to or from the owner's.
    ///
    /// # Errors
    /// The system has none, or this owner can't have so much.
    fn staging(&self, length: u64) -> io::Result<Region>;
}
