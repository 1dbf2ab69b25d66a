//! Receive buffers: by size, out of larger regions, used again and again.

use lintel_claim::{Claim, Region};

/// Bytes of a class's buffers, but for the last one's, which holds every message.
const SMALL: [u64; 2] = [128, 1024];
/// Bytes of a region that is cut into buffers.
const REGION: u64 = 64 * 1024;

/// A receive buffer; to be given back.
#[derive(Debug)]
pub struct Buffer {
    claim: Claim,
    class: usize,
}

impl Buffer {
    /// Its bytes, aligned to 8.
    pub(crate) fn claim(&self) -> Claim {
        self.claim
    }
}

pub(crate) struct Buffers {
    sizes: [u64; 3],
    free: [Vec<Claim>; 3],
    /// What buffers were cut from; kept as long as the endpoint.
    regions: Vec<Region>,
}

impl Buffers {
    /// Buffers for up to `longest` bytes and one more.
    pub(crate) fn new(longest: u32) -> Buffers {
        let last = (u64::from(longest) + 1).next_multiple_of(64);
        Buffers {
            sizes: [SMALL[0], SMALL[1], last.max(SMALL[1])],
            free: Default::default(),
            regions: Vec::new(),
        }
    }

    /// A buffer for `length` bytes and one more.
    pub(crate) fn take(&mut self, length: u64) -> Buffer {
        let fits = |size: &u64| length < *size;
        let class = self.sizes.iter().position(fits).unwrap_or(2);
        if self.free[class].is_empty() {
            self.cut(class);
        }
        let claim = self.free[class].pop().expect("a region has a buffer");
        Buffer { claim, class }
    }

    pub(crate) fn give_back(&mut self, buffer: Buffer) {
        self.free[buffer.class].push(buffer.claim);
    }

    /// Bytes of all buffers, in use or not.
    pub(crate) fn bytes(&self) -> u64 {
        self.regions.iter().map(Region::len).sum()
    }

    fn cut(&mut self, class: usize) {
        let size = self.sizes[class];
        let region = Region::new(REGION.max(size));
        let all = region.claim();
        let count = all.len() / size;
        self.free[class].extend((0..count).rev().map(|at| all.slice(at * size, size)));
        self.regions.push(region);
    }
}
