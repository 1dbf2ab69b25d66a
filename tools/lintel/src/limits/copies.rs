//! Copies: within a process, and out of another one by cross-memory attach.

use std::rc::Rc;

use crate::error::{During, Result};
use crate::harness::Workload;
use crate::raw::Region;
use crate::team::{Team, WORDS};

/// `memcpy` within rank 0, from and to memory that is in the cache or isn't.
pub struct Memcpy {
    from: Vec<Region>,
    to: Vec<Region>,
    bytes: usize,
    next: usize,
}

impl Memcpy {
    /// Over and over between the same two buffers.
    pub fn hot(team: &Team, bytes: usize) -> Result<Self> {
        Self::among(team, bytes, 1)
    }

    /// Between buffers that together are larger than the caches.
    pub fn cold(team: &Team, bytes: usize) -> Result<Self> {
        Self::among(team, bytes, (COLD / bytes).max(2))
    }

    fn among(team: &Team, bytes: usize, pairs: usize) -> Result<Self> {
        let pairs = if team.leads() { pairs } else { 0 };
        let buffers = || -> Result<Vec<Region>> {
            (0..pairs)
                .map(|_| Region::private(bytes).during("allocating"))
                .collect()
        };
        Ok(Self {
            from: buffers()?,
            to: buffers()?,
            bytes,
            next: 0,
        })
    }
}

impl Workload for Memcpy {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.to[self.next].copy_from(&self.from[self.next], self.bytes);
            std::hint::black_box(&self.to[self.next]);
            self.next = (self.next + 1) % self.from.len();
        }
        Ok(())
    }

    fn follow(&mut self, _: u64) -> Result<()> {
        Ok(())
    }
}

/// Rank 0 copies out of rank 1's buffer with `process_vm_readv`.
pub struct CrossMemory {
    buffer: Rc<Region>,
    pid: u32,
    address: u64,
    bytes: usize,
}

impl CrossMemory {
    /// Over buffers of its own.
    pub fn new(team: &Team, bytes: usize) -> Result<Self> {
        let buffer = Rc::new(Region::private(bytes).during("allocating")?);
        Self::between(team, &buffer, &buffer, bytes)
    }

    /// From rank 1's `source` to rank 0's `landing`, the benchmark's own buffers.
    pub fn between(
        team: &Team,
        source: &Region,
        landing: &Rc<Region>,
        bytes: usize,
    ) -> Result<Self> {
        let mut words = [0; WORDS];
        words[0] = std::process::id().into();
        words[1] = source.address();
        let words = team.swap(words)?;
        Ok(Self {
            buffer: Rc::clone(landing),
            pid: words[0] as u32,
            address: words[1],
            bytes,
        })
    }

    /// Whether rank 0 may do this here; the answer is the same in every rank.
    pub fn is_allowed(team: &Team) -> Result<bool> {
        let probe = Self::new(team, 64)?;
        let mut words = [0; WORDS];
        words[0] = (team.leads() && probe.copy().is_ok()).into();
        Ok(team.broadcast(words)?[0] != 0)
    }

    fn copy(&self) -> Result<()> {
        self.buffer
            .read_process(self.pid, self.address, self.bytes)
            .during("process_vm_readv")
    }
}

impl Workload for CrossMemory {
    fn lead(&mut self, n: u64) -> Result<()> {
        (0..n).try_for_each(|_| self.copy())
    }

    fn follow(&mut self, _: u64) -> Result<()> {
        Ok(())
    }
}

const COLD: usize = 256 << 20;
