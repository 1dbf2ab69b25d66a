//! The nouns of Portals 4: identifiers, handles, options, events, limits.
//!
//! Everything here is a plain value with the numbers of the public Portals 4.3
//! header, so that a value crosses the C boundary unchanged. What the values
//! *do* stands in `engine4`. Where Portals 3.3 differs, its nouns stand in [`portals3`].
//!
//! ```
//! use lintel_types::{Handle, InterfaceNumber, Kind, ProcessId};
//! let interface = InterfaceNumber::new(true, false);
//! let handle = Handle::new(Kind::MemoryDescriptor, interface, 5, 17);
//! assert_eq!((handle.kind(), handle.index()), (Some(Kind::MemoryDescriptor), 17));
//! assert_eq!(ProcessId::new(1, 2), ProcessId { nid: 1, pid: 2 });
//! ```
#![no_std]
#![forbid(unsafe_code)]

mod atomic;
mod error;
mod event;
mod handle;
mod host;
mod index;
mod limits;
pub mod options;
pub mod portals3;

pub use atomic::{AtomicCall, Datatype, Operation, Unknown, valid};
pub use error::{Error, Result, UnknownCode};
pub use event::{CountingEvent, Event, EventKind, List, NiFail};
pub use handle::{Handle, Kind};
pub use host::{ALWAYS_COPIED, Backlog, Undeliverable};
pub use index::{
    CounterIndex, DescriptorIndex, EntryIndex, HeaderIndex, InterfaceNumber, OperationIndex,
    PortalIndex, QueueIndex,
};
pub use limits::Limits;
pub use options::{MdOptions, MeOptions, NiOptions, PtOptions};

/// A process, by node and process number (physical addressing), or by rank in
/// the first word (logical addressing): the 8 bytes of `ptl_process_t`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct ProcessId {
    /// Node identifier; on a logical interface the rank.
    pub nid: u32,
    /// Portals process identifier on that node.
    pub pid: u32,
}

impl ProcessId {
    /// `PTL_NID_ANY`: matches every node.
    pub const NID_ANY: u32 = 0xffff;
    /// `PTL_PID_ANY`: matches every process of a node; in `PtlNIInit`, any free number.
    pub const PID_ANY: u32 = 0xffff;
    /// `PTL_RANK_ANY`: matches every rank.
    pub const RANK_ANY: u32 = u32::MAX;

    /// A physical process identifier.
    pub const fn new(nid: u32, pid: u32) -> Self {
        Self { nid, pid }
    }

    /// A logical process identifier.
    pub const fn from_rank(rank: u32) -> Self {
        Self { nid: rank, pid: 0 }
    }

    /// The rank, if the interface is logical.
    pub const fn rank(self) -> u32 {
        self.nid
    }

    /// Both numbers as the one word that they are passed in, which is compared at once.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        (self.pid as u64) << 32 | self.nid as u64
    }
}

/// A physical identifier as `127.0.0.1/1024`: the node's address, whose number is the nid, and
/// the pid.
impl core::fmt::Display for ProcessId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}", core::net::Ipv4Addr::from(self.nid), self.pid)
    }
}

/// `PTL_UID_ANY`: any user may reach the entry.
pub const UID_ANY: u32 = u32::MAX;
/// `PTL_PT_ANY`: any free portal table index.
pub const PT_ANY: u32 = u32::MAX;

/// What acknowledgement the initiator of a put or atomic asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum AckRequest {
    /// `PTL_NO_ACK_REQ`: the target sends no acknowledgement.
    #[default]
    None = 0,
    /// `PTL_ACK_REQ`: a full event, and a count if the descriptor asks for it.
    Full = 1,
    /// `PTL_CT_ACK_REQ`: a count of successes, failures or bytes.
    Counting = 2,
    /// `PTL_OC_ACK_REQ`: a count that the operation has come to its end.
    OperationCompleted = 3,
}

impl TryFrom<u8> for AckRequest {
    type Error = Error;
    fn try_from(value: u8) -> Result<Self> {
        Ok(match value {
            0 => Self::None,
            1 => Self::Full,
            2 => Self::Counting,
            3 => Self::OperationCompleted,
            _ => return Err(Error::ArgInvalid),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_the_first_word_of_a_logical_process() {
        assert_eq!(ProcessId::from_rank(7), ProcessId::new(7, 0));
        assert_eq!(ProcessId::from_rank(u32::MAX).rank(), u32::MAX);
    }

    #[test]
    fn an_acknowledgement_is_asked_for_by_its_number_and_others_are_refused() {
        use AckRequest::{Counting, Full, None, OperationCompleted};
        for request in [None, Full, Counting, OperationCompleted] {
            assert_eq!(AckRequest::try_from(request as u8), Ok(request));
        }
        assert_eq!(AckRequest::try_from(4), Err(Error::ArgInvalid));
    }
}
