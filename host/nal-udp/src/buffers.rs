//! Buffers for what must be kept: used again rather than given back.

use lintel_claim::{Claim, Region};

/// Bytes of a buffer, by class; what is longer gets memory of its own.
const CLASSES: [u64; 3] = [512, 8 << 10, 64 << 10];
/// Buffers of a class are made so many bytes at a time.
const CHUNK: u64 = 64 << 10;
/// Bytes of longer buffers that are kept: to have pages made costs more than to fill them.
const MOST_LONG: u64 = 8 << 20;

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
    /// Longer ones, and their bytes.
    long: Vec<Region>,
    long_bytes: u64,
}

impl Buffers {
    pub(crate) fn new() -> Buffers {
        Buffers {
            spare: Default::default(),
            chunks: Vec::new(),
            long: Vec::new(),
            long_bytes: 0,
        }
    }

    /// A buffer of at least that length.
    pub(crate) fn take(&mut self, length: u64) -> Buffer {
        let Some(class) = CLASSES.iter().position(|size| length <= *size) else {
            return self.take_long(length);
        };
        let whole = self.spare[class].pop().unwrap_or_else(|| self.make(class));
        Buffer {
            claim: whole,
            class: Ok(class as u8),
        }
    }

    pub(crate) fn put(&mut self, buffer: Buffer) {
        match buffer.class {
            Ok(class) => self.spare[class as usize].push(buffer.claim),
            Err(region) if self.long_bytes + region.len() <= MOST_LONG => {
                self.long_bytes += region.len();
                self.long.push(region);
            }
            Err(_) => {}
        }
    }

    fn take_long(&mut self, length: u64) -> Buffer {
        let fits = |region: &Region| (length..=4 * length).contains(&region.len());
        let region = match self.long.iter().position(fits) {
            Some(index) => {
                let region = self.long.swap_remove(index);
                self.long_bytes -= region.len();
                region
            }
            None => Region::new(length),
        };
        Buffer {
            claim: region.claim(),
            class: Err(region),
        }
    }

    /// Bytes held, used or not.
    pub(crate) fn bytes(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK + self.long_bytes
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
