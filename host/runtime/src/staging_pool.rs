//! Staging buffers, used again and again: pages that the system gives anew cost more than
//! a copy.

use crate::memory::Memory;
use lintel_claim::{Claim, Region};
use lintel_types::NiFail;
use std::io;

/// Bytes of free buffers that are kept for further messages.
const MAX_KEPT: u64 = 8 << 20;
/// Bytes of the smallest buffer.
const PAGE: u64 = 4096;

/// The free buffers of one owner. An owner's bytes stay in them, so no other gets them.
#[derive(Default)]
pub struct StagingPool {
    free: Vec<Region>,
    bytes: u64,
}

impl StagingPool {
    /// A buffer of at least so many bytes; its length is a power of two.
    ///
    /// # Errors
    /// As [`Memory::staging`].
    pub(crate) fn take(&mut self, memory: &impl Memory, length: u64) -> io::Result<Region> {
        let size = length
            .max(PAGE)
            .checked_next_power_of_two()
            .unwrap_or(length);
        match self.free.iter().rposition(|buffer| buffer.len() == size) {
            Some(index) => {
                self.bytes -= size;
                Ok(self.free.swap_remove(index))
            }
            None => memory.staging(size),
        }
    }

    /// A buffer, and the part of it that has exactly so many bytes.
    ///
    /// # Errors
    /// `Segv`: a peer may name any length, so that a refusal of the system is an answer.
    pub(crate) fn take_part(
        &mut self,
        memory: &impl Memory,
        length: u64,
    ) -> Result<(Region, Claim), NiFail> {
        let buffer = self.take(memory, length).map_err(|_| NiFail::Segv)?;
        let part = buffer.claim().slice(0, length);
        Ok((buffer, part))
    }

    /// Takes a buffer back.
    pub(crate) fn put_back(&mut self, buffer: Region) {
        if self.bytes + buffer.len() <= MAX_KEPT {
            self.bytes += buffer.len();
            self.free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::CopiedMemory;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_buffer_that_was_put_back_is_used_again_for_its_size() {
        let (memory, mut pool) = (CopiedMemory::default(), StagingPool::default());
        for length in [1, 4096, 3000] {
            let buffer = pool.take(&memory, length).expect("there is memory");
            assert_eq!(buffer.len(), 4096);
            pool.put_back(buffer);
        }
        assert_eq!(memory.buffers.load(Ordering::Relaxed), 1);
        let longer = pool.take(&memory, 4097).expect("there is memory");
        assert_eq!(longer.len(), 8192);
        assert_eq!(memory.buffers.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn free_buffers_take_a_bounded_part_of_memory() {
        let (memory, mut pool) = (CopiedMemory::default(), StagingPool::default());
        let buffers: Vec<Region> = (0..5)
            .map(|_| pool.take(&memory, MAX_KEPT / 4).expect("there is memory"))
            .collect();
        buffers.into_iter().for_each(|buffer| pool.put_back(buffer));
        assert_eq!((pool.free.len(), pool.bytes), (4, MAX_KEPT));
    }

    #[test]
    fn a_length_that_the_owner_cant_have_is_an_answer() {
        let memory = CopiedMemory {
            max_buffer: 1 << 20,
            ..CopiedMemory::default()
        };
        let mut pool = StagingPool::default();
        for length in [1 << 21, u64::MAX] {
            let refused = pool.take_part(&memory, length).map(drop);
            assert_eq!(refused, Err(NiFail::Segv));
        }
        let (buffer, part) = pool.take_part(&memory, 5000).expect("there is memory");
        assert_eq!((buffer.len(), part.len()), (8192, 5000));
    }
}
