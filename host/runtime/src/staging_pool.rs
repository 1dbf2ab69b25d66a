//! Memory for bytes on their way to or from memory that can't be touched, used again
//! and again: pages that the system gives anew cost more than a copy.

use crate::owner::Owner;
use lintel_claim::Region;
use std::io;

/// Bytes that are kept for further messages.
const MOST: u64 = 8 << 20;
/// Bytes of the smallest region.
const PAGE: u64 = 4096;

/// Regions that nobody uses now, of one owner: what is left in them is his.
#[derive(Default)]
pub(crate) struct StagingPool {
    regions: Vec<Region>,
    bytes: u64,
}

impl StagingPool {
    /// A region of at least so many bytes.
    ///
    /// # Errors
    /// As [`Owner::staging`].
    pub(crate) fn take(&mut self, owner: &impl Owner, length: u64) -> io::Result<Region> {
        let size = length
            .max(PAGE)
            .checked_next_power_of_two()
            .unwrap_or(length);
        match self.regions.iter().rposition(|spare| spare.len() == size) {
            Some(index) => {
                self.bytes -= size;
                Ok(self.regions.swap_remove(index))
            }
            None => owner.staging(size),
        }
    }

    /// Whoever had it is done with it.
    pub(crate) fn put_back(&mut self, region: Region) {
        if self.bytes + region.len() <= MOST {
            self.bytes += region.len();
            self.regions.push(region);
        }
    }
}
