//! The nouns of Portals 3.3: identifiers, options, events, limits, return codes.
//!
//! Values and layouts are those of `portals3.h` on x86-64, so that a value crosses the C
//! boundary unchanged. Handles, process identifiers and indices are those of Portals 4;
//! only the reserved values differ. What the values *do* stands in `engine3`.
//!
//! ```
//! use lintel_types::portals3::{EQ_NONE, MdOptions, MemoryDescriptor, THRESHOLD_INFINITE};
//! let md = MemoryDescriptor {
//!     length: 4096,
//!     threshold: THRESHOLD_INFINITE,
//!     options: MdOptions::OP_PUT | MdOptions::TRUNCATE,
//!     ..MemoryDescriptor::default()
//! };
//! assert_eq!((md.queue, size_of_val(&md)), (EQ_NONE, 56));
//! ```

mod error;
mod event;
mod limits;
mod options;

pub use error::{Error, Result, UnknownCode};
pub use event::{Event, EventKind, NI_FAIL, NI_OK};
pub use limits::Limits;
pub use options::MdOptions;

use crate::Handle;

/// `PTL_NID_ANY`: matches every node.
pub const NID_ANY: u32 = u32::MAX;
/// `PTL_PID_ANY`: matches every process of a node; in `PtlNIInit`, any free number.
pub const PID_ANY: u32 = u32::MAX;
/// `PTL_UID_ANY`: matches every user.
pub const UID_ANY: u32 = u32::MAX;
/// `PTL_JID_ANY`: matches every job.
pub const JID_ANY: u32 = u32::MAX;
/// `PTL_PT_INDEX_ANY`: matches every portal table index.
pub const PT_INDEX_ANY: u32 = u32::MAX;
/// `PTL_EQ_NONE`: no event queue.
pub const EQ_NONE: Handle = Handle(0xbfff_ffff);
/// `PTL_HANDLE_NONE`: names nothing.
pub const HANDLE_NONE: Handle = Handle(0x7fff_ffff);
/// `PTL_MD_THRESH_INF`: a threshold that is never reached.
pub const THRESHOLD_INFINITE: i32 = -1;

/// `ptl_unlink_t`: what becomes of an object that is no longer active.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(i32)]
pub enum Unlink {
    /// `PTL_RETAIN`: it stays.
    #[default]
    Retain = 0,
    /// `PTL_UNLINK`: it is unlinked once nothing is pending.
    Unlink = 1,
}

/// `ptl_ins_pos_t`: where a match entry goes in its list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(i32)]
pub enum Position {
    /// `PTL_INS_BEFORE`: before the base, or at the head of the list.
    Before = 0,
    /// `PTL_INS_AFTER`: after the base, or at the tail of the list.
    After = 1,
}

/// A memory descriptor as the caller sees it, field for field `ptl_md_t` (56 bytes).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct MemoryDescriptor {
    /// Address of the memory, or of an array of `ptl_md_iovec_t`.
    pub start: u64,
    /// Bytes, or entries of the array.
    pub length: u64,
    /// Operations until it is inactive, or [`THRESHOLD_INFINITE`].
    pub threshold: i32,
    /// With [`MdOptions::MAX_SIZE`]: inactive once fewer bytes than this are left.
    pub max_size: u64,
    /// Which operations it takes, and what is reported.
    pub options: MdOptions,
    /// The caller's value, returned in events.
    pub user_ptr: u64,
    /// Receives events, unless [`EQ_NONE`].
    pub queue: Handle,
}

impl Default for MemoryDescriptor {
    /// No memory, threshold 0, no event queue.
    fn default() -> Self {
        MemoryDescriptor {
            start: 0,
            length: 0,
            threshold: 0,
            max_size: 0,
            options: MdOptions::empty(),
            user_ptr: 0,
            queue: EQ_NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn a_descriptor_has_the_layout_of_the_header() {
        assert_eq!(size_of::<MemoryDescriptor>(), 56);
        for (offset, expected) in [
            (offset_of!(MemoryDescriptor, start), 0),
            (offset_of!(MemoryDescriptor, length), 8),
            (offset_of!(MemoryDescriptor, threshold), 16),
            (offset_of!(MemoryDescriptor, max_size), 24),
            (offset_of!(MemoryDescriptor, options), 32),
            (offset_of!(MemoryDescriptor, user_ptr), 40),
            (offset_of!(MemoryDescriptor, queue), 48),
        ] {
            assert_eq!(offset, expected);
        }
    }

    #[test]
    fn no_live_object_bears_a_reserved_handle() {
        for none in [EQ_NONE, HANDLE_NONE] {
            assert_eq!(none.generation(), Handle::GENERATIONS);
        }
    }
}
