//! Memory that peers read and write.

use crate::Result;
use crate::endpoint::Endpoint;
use lintel_cci_endpoint::{Access, Direction, Status};
use lintel_claim::Region;
use std::sync::Arc;

/// Registered memory (cci_rma_register). Dropping it ends the registration, and waits while a peer
/// is copying; later accesses of peers fail with `RmaHandle`.
///
/// ```
/// use cci2::*;
/// # let device = devices().into_iter().next().ok_or(Status::NoDevice)?;
/// # let endpoint = Endpoint::open(&device)?;
/// let memory = Region::new(1 << 20);
/// let access = Access { read: true, write: false };
/// let registration = Registration::new(&endpoint, &memory, access)?;
/// let bytes = registration.handle().to_bytes();
/// assert_eq!(RmaHandle::from_bytes(bytes), registration.handle());
/// # Ok::<(), Status>(())
/// ```
#[derive(Debug)]
pub struct Registration {
    endpoint: Endpoint,
    memory: Region,
    key: u64,
}

impl Registration {
    /// Registers memory, which stays as long as the registration. As in C, an access without
    /// `read` and `write` allows both.
    ///
    /// # Errors
    /// `Invalid` for memory without a byte.
    pub fn new(endpoint: &Endpoint, memory: &Region, access: Access) -> Result<Registration> {
        if memory.is_empty() {
            return Err(Status::Invalid);
        }
        Ok(Registration {
            endpoint: endpoint.clone(),
            memory: memory.clone(),
            key: endpoint.open.inner.register(memory.claim(), access),
        })
    }

    /// By which peers name it.
    pub fn handle(&self) -> RmaHandle {
        RmaHandle {
            words: [self.key, self.memory.len(), 0, 0],
        }
    }

    /// The memory.
    pub fn memory(&self) -> &Region {
        &self.memory
    }

    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    pub(crate) fn is_of(&self, endpoint: &Endpoint) -> bool {
        Arc::ptr_eq(&self.endpoint.open, &endpoint.open)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // It is registered, as nobody else ends it.
        let _ = self.endpoint.open.inner.deregister(self.key);
    }
}

/// Names registered memory to peers, which get its bytes in a message (cci_rma_handle_t).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RmaHandle {
    /// Key and length, as in `libcci.so.2`, and two zeros.
    words: [u64; 4],
}

impl RmaHandle {
    /// The 32 bytes that a C program sends for it.
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// The handle of 32 bytes. The peer checks it at each access.
    pub fn from_bytes(bytes: [u8; 32]) -> RmaHandle {
        let mut words = [0; 4];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(chunk.try_into().expect("a chunk has 8 bytes"));
        }
        RmaHandle { words }
    }

    /// The length of the memory that its peer has registered, bytes.
    pub fn length(self) -> u64 {
        self.words[1]
    }

    pub(crate) fn key(self) -> u64 {
        self.words[0]
    }
}

/// A remote memory access.
#[derive(Clone, Copy, Debug)]
pub struct Rma<'a> {
    /// `Read`: from the peer's memory into ours; `Write`: the other way.
    pub direction: Direction,
    /// Our memory.
    pub local: &'a Registration,
    /// Where in it, bytes.
    pub local_offset: u64,
    /// The peer's memory.
    pub remote: RmaHandle,
    /// Where in it, bytes.
    pub remote_offset: u64,
    /// Bytes.
    pub length: u64,
    /// A message that the peer gets after the data are in place.
    pub message: Option<&'a [u8]>,
    /// Whether it begins only after earlier accesses of the connection have ended.
    pub fence: bool,
}

impl<'a> Rma<'a> {
    /// All of our memory, to or from the start of the peer's, without a message.
    pub fn new(direction: Direction, local: &'a Registration, remote: RmaHandle) -> Rma<'a> {
        Rma {
            direction,
            local,
            local_offset: 0,
            remote,
            remote_offset: 0,
            length: local.memory.len(),
            message: None,
            fence: false,
        }
    }
}
