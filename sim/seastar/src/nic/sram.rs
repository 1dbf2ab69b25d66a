//! The memory of the NIC, accounted by what it is for.

use std::fmt;

/// The memory of a NIC, and what takes how much of it.
#[derive(Clone, Debug)]
pub struct Sram {
    capacity: u64,
    used: Vec<(&'static str, u64)>,
}

/// Something doesn't fit into a NIC's memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutOfMemory {
    what: &'static str,
    wanted: u64,
    free: u64,
}

impl Sram {
    /// Memory in which nothing is.
    pub const fn new(capacity: u64) -> Self {
        Sram {
            capacity,
            used: Vec::new(),
        }
    }

    /// Takes some of it.
    ///
    /// # Errors
    /// There isn't so much left.
    pub fn reserve(&mut self, what: &'static str, bytes: u64) -> Result<(), OutOfMemory> {
        let free = self.capacity - self.taken();
        if bytes > free {
            return Err(OutOfMemory {
                what,
                wanted: bytes,
                free,
            });
        }
        self.used.push((what, bytes));
        Ok(())
    }

    /// How much is taken.
    pub fn taken(&self) -> u64 {
        self.used.iter().map(|(_, bytes)| bytes).sum()
    }

    /// What it was taken for, in order.
    pub fn used(&self) -> &[(&'static str, u64)] {
        &self.used
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutOfMemory { what, wanted, free } = self;
        write!(
            f,
            "the NIC's memory has {free} bytes left, {what} takes {wanted}: \
             put fewer clients on the node that the NIC serves itself"
        )
    }
}

impl std::error::Error for OutOfMemory {}
