//! Arguments to values, results to return codes.

use lintel_claim::Claim;
use lintel_engine4::{DescriptorSpec, EntrySpec, SearchOp};
use lintel_memory::Buffer;
use lintel_runtime::process;
use lintel_types::{Error, Handle, Limits, List, ProcessId, Result, options};
use portals4_sys::{Iovec, Le, Md, Me};
use std::ffi::{c_int, c_void};

/// A region longer than this is all memory of the process, wherever it starts.
const ALL_MEMORY: u64 = 1 << 46;

/// `PTL_OK` or the error's code. Whatever else is wrong, a library that isn't
/// initialized is reported first.
#[inline]
pub(crate) fn code(result: Result<()>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => process().check_alive().err().unwrap_or(error) as c_int,
    }
}

/// Writes an output; a null pointer was refused before.
#[inline]
pub(crate) fn give<T>(place: *mut T, value: T) {
    // SAFETY: not null (checked by every caller), and the header asks for a place
    // that can be written.
    unsafe { place.write(value) };
}

/// Reads an input structure.
#[inline]
pub(crate) fn take<T: Copy>(place: *const T) -> Result<T> {
    if place.is_null() {
        return Err(Error::ArgInvalid);
    }
    // SAFETY: not null, and the header asks for a filled structure.
    Ok(unsafe { place.read() })
}

/// Reads the fields of an input structure one at a time. The caller has just written them, one at a
/// time as a rule, and a load of two neighbours at once, which a compiler makes of a copy, would wait
/// until both have left the processor's store buffer.
macro_rules! take_fields {
    ($place:ident: $kind:ident { $($field:ident),* }) => {{
        not_null($place)?;
        // SAFETY: not null, and the header asks for a filled structure.
        unsafe { $kind { $($field: (&raw const (*$place).$field).read_volatile()),* } }
    }};
}

#[inline]
pub(crate) fn not_null<T>(place: *const T) -> Result<()> {
    if place.is_null() {
        Err(Error::ArgInvalid)
    } else {
        Ok(())
    }
}

/// An array of the caller's, for the length of a call.
#[inline]
pub(crate) fn array<'a, T>(start: *const T, length: u64) -> Result<&'a [T]> {
    if length == 0 {
        return Ok(&[]);
    }
    not_null(start)?;
    let bytes = (length as usize)
        .checked_mul(size_of::<T>())
        .ok_or(Error::ArgInvalid)?;
    if bytes > isize::MAX as usize {
        return Err(Error::ArgInvalid);
    }
    // SAFETY: not null, of a size that can be, and the header asks for an array of
    // that length which nobody changes during the call.
    Ok(unsafe { std::slice::from_raw_parts(start, length as usize) })
}

/// The user's memory, which stays the user's: the header asks that it lives until the
/// descriptor or entry is released.
#[inline(always)]
fn claim(start: *mut c_void, length: u64) -> Result<Claim> {
    let wraps = (start as u64).checked_add(length).is_none();
    if length > 0 && length < ALL_MEMORY && (start.is_null() || wraps) {
        return Err(Error::ArgInvalid);
    }
    // SAFETY: the header asks that the memory stays usable while it is bound; if
    // an entry spans all memory, the runtime touches it through the kernel only.
    Ok(unsafe { Claim::new(start.cast(), length) })
}

#[inline(always)]
fn buffer(start: *mut c_void, length: u64, options: u32) -> Result<Buffer<Claim>> {
    match options & options::IOVEC {
        0 => claim(start, length).map(Buffer::Contiguous),
        _ => vector(start, length),
    }
}

#[inline(never)]
fn vector(start: *mut c_void, length: u64) -> Result<Buffer<Claim>> {
    if length > Limits::HIGHEST.max_iovecs as u64 {
        return Err(Error::ArgInvalid);
    }
    let pieces = array(start.cast::<Iovec>(), length)?;
    let pieces: Result<Vec<Claim>> = pieces
        .iter()
        .map(|piece| claim(piece.iov_base, piece.iov_len))
        .collect();
    Ok(Buffer::vector(pieces?))
}

pub(crate) fn descriptor(md: *const Md) -> Result<DescriptorSpec<Claim>> {
    let md = take(md)?;
    Ok(DescriptorSpec {
        buffer: buffer(md.start, md.length, md.options)?,
        options: md.options.into(),
        queue: Handle(md.eq_handle),
        counter: Handle(md.ct_handle),
    })
}

#[inline(always)]
pub(crate) fn list_entry(le: *const Le, portal: u32, user_ptr: u64) -> Result<EntrySpec<Claim>> {
    let le = take_fields!(le: Le { start, length, ct_handle, uid, options });
    Ok(EntrySpec {
        portal: portal.try_into()?,
        buffer: buffer(le.start, le.length, le.options)?,
        counter: Handle(le.ct_handle),
        uid: le.uid,
        options: le.options.into(),
        source: ProcessId::default(),
        match_bits: 0,
        ignore_bits: u64::MAX,
        min_free: 0,
        user_ptr,
    })
}

#[inline(always)]
pub(crate) fn match_entry(me: *const Me, portal: u32, user_ptr: u64) -> Result<EntrySpec<Claim>> {
    let me = take_fields!(me: Me {
        start, length, ct_handle, uid, options, match_id, match_bits, ignore_bits, min_free
    });
    Ok(EntrySpec {
        portal: portal.try_into()?,
        buffer: buffer(me.start, me.length, me.options)?,
        counter: Handle(me.ct_handle),
        uid: me.uid,
        options: me.options.into(),
        source: source(me.match_id),
        match_bits: me.match_bits,
        ignore_bits: me.ignore_bits,
        min_free: me.min_free,
        user_ptr,
    })
}

/// A program that initializes `match_id` with PTL_NID_ANY alone leaves a pid of 0,
/// which is PTL_PID_ANY in some headers, and which the library gives to nobody.
/// A rank is not touched by this.
fn source(match_id: ProcessId) -> ProcessId {
    const NID_ANY_ALONE: ProcessId = ProcessId::new(ProcessId::NID_ANY, 0);
    match match_id {
        NID_ANY_ALONE => ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
        other => other,
    }
}

pub(crate) fn list(list: u8) -> Result<List> {
    match list {
        0 => Ok(List::Priority),
        1 => Ok(List::Overflow),
        _ => Err(Error::ArgInvalid),
    }
}

pub(crate) fn search(op: u8) -> Result<SearchOp> {
    match op {
        0 => Ok(SearchOp::Only),
        1 => Ok(SearchOp::Delete),
        _ => Err(Error::ArgInvalid),
    }
}
