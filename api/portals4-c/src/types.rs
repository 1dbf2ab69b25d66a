//! The structures of `portals4.h` that have no twin in `lintel-types`.

use lintel_types::ProcessId;
use std::ffi::c_void;

/// `ptl_md_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Md {
    /// First byte, or first I/O vector piece.
    pub start: *mut c_void,
    /// Bytes, or pieces.
    pub length: u64,
    /// `PTL_MD_*`
    pub options: u32,
    /// Event queue.
    pub eq_handle: u32,
    /// Counting event.
    pub ct_handle: u32,
}

/// `ptl_iovec_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Iovec {
    /// First byte.
    pub iov_base: *mut c_void,
    /// Bytes.
    pub iov_len: u64,
}

/// `ptl_le_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Le {
    /// First byte, or first I/O vector piece.
    pub start: *mut c_void,
    /// Bytes, or pieces.
    pub length: u64,
    /// Counting event.
    pub ct_handle: u32,
    /// Who may reach it.
    pub uid: u32,
    /// `PTL_LE_*`
    pub options: u32,
}

/// `ptl_me_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Me {
    /// First byte, or first I/O vector piece.
    pub start: *mut c_void,
    /// Bytes, or pieces.
    pub length: u64,
    /// Counting event.
    pub ct_handle: u32,
    /// Who may reach it.
    pub uid: u32,
    /// `PTL_ME_*`
    pub options: u32,
    /// Whose messages it takes.
    pub match_id: ProcessId,
    /// Match bits.
    pub match_bits: u64,
    /// Bits that don't matter.
    pub ignore_bits: u64,
    /// Bytes below which it unlinks.
    pub min_free: u64,
}

const _: () = assert!(size_of::<Md>() == 32 && size_of::<Iovec>() == 16);
const _: () = assert!(size_of::<Le>() == 32 && size_of::<Me>() == 64);
