//! Memory that messages are sent from or reach.

use crate::{Claim, Region};
use lintel_memory::{Buffer, Span};

/// The bytes of a descriptor or entry: of one [`Region`], or of several that count
/// as one (PTL_IOVEC). It keeps its regions.
///
/// ```
/// use lintel_claim::{Memory, Region};
/// let (head, body) = (Region::new(16), Region::new(4096));
/// let memory = Memory::vector([Memory::from(&head), Memory::part(&body, 1024, 100)]);
/// assert_eq!(memory.len(), 116);
/// ```
#[derive(Clone, Debug)]
pub struct Memory {
    buffer: Buffer<Claim>,
    regions: Vec<Region>,
}

impl Memory {
    /// `length` bytes of a region from `offset` on; fewer at its end.
    pub fn part(region: &Region, offset: u64, length: u64) -> Memory {
        Memory {
            buffer: Buffer::Contiguous(region.claim().slice(offset, length)),
            regions: vec![region.clone()],
        }
    }

    /// Several pieces, one behind the other.
    pub fn vector(pieces: impl IntoIterator<Item = Memory>) -> Memory {
        let (mut claims, mut regions) = (Vec::new(), Vec::new());
        for piece in pieces {
            claims.extend_from_slice(piece.buffer.pieces(0, u64::MAX).as_slice());
            regions.extend(piece.regions);
        }
        Memory {
            buffer: Buffer::vector(claims),
            regions,
        }
    }

    /// The pieces, as an engine takes them.
    pub fn buffer(&self) -> &Buffer<Claim> {
        &self.buffer
    }

    /// The length of all pieces, bytes.
    pub fn len(&self) -> u64 {
        self.buffer.length()
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<&Region> for Memory {
    fn from(region: &Region) -> Self {
        Memory::part(region, 0, u64::MAX)
    }
}

/// No bytes at all.
impl Default for Memory {
    fn default() -> Self {
        Memory {
            buffer: Buffer::Contiguous(<Claim as Span>::empty()),
            regions: Vec::new(),
        }
    }
}
