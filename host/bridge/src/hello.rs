//! What both ends of a connection agree on: where the agent listens, and the bytes that
//! the client sends first.

use lintel_claim::Key;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// "bridge" and the version of the protocol and of the region's layout.
const VERSION: u64 = 0x6272_6964_6765_0004;
/// Bytes of a hello: the version, the generation, and the key's two words.
pub(crate) const HELLO_BYTES: usize = 32;
/// What the agent answers; the region's file comes with it.
pub(crate) const ACCEPTED: u8 = 1;

/// Path of the socket on which the agent of a job's node listens.
pub fn path(job: &str, nid: u32) -> PathBuf {
    Path::new("/dev/shm").join(format!("lintel-{job}-{nid:x}.agent"))
}

/// A Unix socket that preserves message boundaries.
pub(crate) fn seqpacket(flags: SocketFlags) -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// The first message of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hello {
    /// Generation of the client's first handles, so that handles of an earlier session are
    /// stale.
    pub generation: u16,
    /// Names the client's memory in each copy that the agent makes of it.
    pub key: Key,
}

impl Hello {
    pub(crate) fn to_bytes(self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        let generation = self.generation.into();
        let words = [VERSION, generation, self.key.address, self.key.nonce];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&u64::to_ne_bytes(word));
        }
        bytes
    }

    pub(crate) fn parse(bytes: &[u8; HELLO_BYTES]) -> Option<Hello> {
        let mut words = [0; HELLO_BYTES / 8];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("a chunk has eight bytes"));
        }
        let [VERSION, generation, address, nonce] = words else {
            return None;
        };
        Some(Hello {
            generation: u16::try_from(generation).ok()?,
            key: Key { address, nonce },
        })
    }
}
