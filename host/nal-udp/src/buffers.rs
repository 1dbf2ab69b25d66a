//! Buffers for what must be kept: used again rather than given back.

use lintel_claim::{Claim, Region};

/// Bytes of a buffer, by class; what is longer gets memory of its own.
const CLASSES: [u64; 3] = [512, 8 << 10, 64 << 10];
/// Buffers of a class are made so many bytes at a time.
const CHUNK: u64 = 64 << 10;

/// Memory of our own: for a copy to be sent, or a packet that came early.
pub(crate) struct Buffer {
    claim: Claim,
    /// Its class; without one, the region that it is.
    class: Result<u8, Region>,
}

impl Buffer {
    pub(crate) fn claim(&self) -> Claim {
        self.claim
    }
}

/// Buffers that nobody uses, by class.
pub(crate) struct Buffers {
    spare: [Vec<Claim>; CLASSES.len()],
    chunks: Vec<Region>,
}

impl Buffers {
    pub(crate) fn new() -> Buffers {
        Buffers {
            spare: Default::default(),
            chunks: Vec::new(),
        }
    }

    /// A buffer of at least that length.
    pub(crate) fn take(&mut self, length: u64) -> Buffer {
        let Some(class) = CLASSES.iter().position(|size| length <= *size) else {
            let region = Region::new(length);
            return Buffer {
                claim: region.claim(),
                class: Err(region),
            };
        };
        let whole = self.spare[class].pop().unwrap_or_else(|| self.make(class));
        Buffer {
            claim: whole,
            class: Ok(class as u8),
        }
    }

    pub(crate) fn put(&mut self, buffer: Buffer) {
        if let Ok(class) = buffer.class {
            self.spare[class as usize].push(buffer.claim);
        }
    }

    /// Bytes held, used or not.
    pub(crate) fn bytes(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK
    }

    #[cold]
    fn make(&mut self, class: usize) -> Claim {
        let region = Region::new(CHUNK);
        let size = CLASSES[class];
        for number in 1..CHUNK / size {
            self.spare[class].push(region.claim().slice(number * size, size));
        }
        let first = region.claim().slice(0, size);
        self.chunks.push(region);
        first
    }
}
