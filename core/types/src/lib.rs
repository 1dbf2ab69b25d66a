//! The nouns of Portals 4: identifiers, handles, options, events, limits.
//!
//! Everything here is a plain value with the numbers of the public Portals 4.3
//! header, so that a value crosses the C boundary unchanged. What the values
//! *do* stands in `engine4`.
//!
//! ```
//! use lintel_types::{Handle, Kind, ProcessId};
//! let handle = Handle::new(Kind::MemoryDescriptor, 2, 5, 17);
//! assert_eq!((handle.kind(), handle.index()), (Some(Kind::MemoryDescriptor), 17));
//! assert_eq!(ProcessId::new(1, 2), ProcessId { nid: 1, pid: 2 });
//! ```
#![no_std]
#![forbid(unsafe_code)]

mod event;
mod handle;
mod limits;
pub mod options;

pub use event::{CountingEvent, Event, EventKind, List, NiFail};
pub use handle::{Handle, Kind};
pub use limits::Limits;

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
}

/// `PTL_UID_ANY`: any user may reach the entry.
pub const UID_ANY: u32 = u32::MAX;
/// `PTL_PT_ANY`: any free portal table index.
pub const PT_ANY: u32 = u32::MAX;

/// The return codes of Portals 4.3 other than `PTL_OK`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(i32)]
pub enum Error {
    /// An argument is invalid.
    ArgInvalid = 1,
    /// The timeout came before any counter reached its test.
    CtNoneReached = 2,
    /// The event queue lost events; the event returned is good.
    EqDropped = 3,
    /// The event queue holds no event.
    EqEmpty = 4,
    /// The system failed; the log says how.
    Fail = 5,
    /// The map is set already and can't be changed.
    Ignored = 6,
    /// Something still uses the resource.
    InUse = 7,
    /// The list has its full length.
    ListTooLong = 8,
    /// `PtlInit` wasn't called, or failed.
    NoInit = 9,
    /// A limit of the interface is reached, or memory is short.
    NoSpace = 10,
    /// Another process has the process identifier.
    PidInUse = 11,
    /// The portal table has no free entry.
    PtFull = 12,
    /// Flow control needs an event queue.
    PtEqNeeded = 13,
    /// The portal table index is taken.
    PtInUse = 14,
    /// `PtlAbort` was called.
    Aborted = 15,
}

/// Who is wrong, what, and how it is mended.
impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::ArgInvalid => {
                "the caller passed a wrong argument: something gone or of another interface, \
                 out of range, or an unknown option; the call's page lists them"
            }
            Self::CtNoneReached => {
                "no counter has reached its test in time: wait longer, or look at the peer"
            }
            Self::EqDropped => {
                "the event queue was full and has lost events: make it larger, or read it sooner"
            }
            Self::EqEmpty => "no event is there: wait for one",
            Self::Fail => "the system or the environment failed; standard error says how",
            Self::Ignored => {
                "the interface has a map already: set it once, by whoever opens the interface"
            }
            Self::InUse => {
                "messages still use it: wait for their events, then release it once more"
            }
            Self::ListTooLong => {
                "the list is full: wait until entries are used, or ask for more max_list_size"
            }
            Self::NoInit => {
                "the library isn't started in this process: call PtlInit, in a fork's child never"
            }
            Self::NoSpace => {
                "a limit of the interface or of memory is reached: release something, or ask for \
                 higher limits when opening the interface"
            }
            Self::PidInUse => {
                "another process of the node has that pid: choose another, or let the library"
            }
            Self::PtFull => {
                "every portal table index is taken: free one, or ask for more max_pt_index"
            }
            Self::PtEqNeeded => "flow control reports to an event queue: give it one",
            Self::PtInUse => {
                "the portal table index is taken: unlink its entries and free it, or choose another"
            }
            Self::Aborted => "this process called PtlAbort: end the library and start it again",
        })
    }
}

impl core::error::Error for Error {}

/// The result of a call; the error is its return code.
pub type Result<T> = core::result::Result<T, Error>;

/// What acknowledgement the initiator of a put or atomic asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum AckRequest {
    /// `PTL_NO_ACK_REQ`
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

/// Bytes in one element of a `ptl_datatype_t`, or nothing for a number that is no datatype.
pub const fn datatype_size(datatype: u8) -> Option<u64> {
    const SIZES: [u8; 14] = [1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 8, 16, 16, 32];
    match datatype {
        0..=13 => Some(SIZES[datatype as usize] as u64),
        _ => None,
    }
}

/// `PTL_SWAP`: the first `ptl_op_t` that exchanges.
pub const OP_SWAP: u8 = 10;
/// `PTL_CSWAP`: the first `ptl_op_t` that takes an operand.
pub const OP_CSWAP: u8 = 11;
/// `PTL_OP_LAST`: one more than the highest `ptl_op_t`.
pub const OP_LAST: u8 = 18;
