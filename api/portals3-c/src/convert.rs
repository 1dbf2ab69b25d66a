//! Arguments to values, results to return codes.

use lintel_claim::Claim;
use lintel_engine3::{DescriptorSpec, EntrySpec};
use lintel_memory::Buffer;
use lintel_runtime::process3;
use lintel_types::ProcessId;
use lintel_types::portals3::{
    Error, Limits, MdOptions, MemoryDescriptor, Position, Result, Unlink,
};
use portals3_sys::Iovec;
use std::ffi::{c_int, c_void};

/// `PTL_OK` or the error's code. Whatever else is wrong, a library that isn't initialized is
/// reported first.
#[inline]
pub(crate) fn code(result: Result<()>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(_) if process3().check_alive().is_err() => Error::NoInit as c_int,
        Err(error) => error as c_int,
    }
}

/// Writes an output; a null pointer was refused before.
#[inline]
pub(crate) fn give<T>(place: *mut T, value: T) {
    // SAFETY: not null (checked by every caller), and the header asks for a place
    // that can be written.
    unsafe { place.write(value) };
}

/// Writes an output that may be null.
pub(crate) fn give_if_wanted<T>(place: *mut T, value: T) {
    if !place.is_null() {
        give(place, value);
    }
}

#[inline]
pub(crate) fn not_null<T>(place: *const T) -> Result<()> {
    match place.is_null() {
        true => Err(Error::Segv),
        false => Ok(()),
    }
}

/// An array of the caller's, for the length of a call.
pub(crate) fn array<'a, T>(start: *const T, length: usize) -> Result<&'a [T]> {
    not_null(start)?;
    // SAFETY: not null, of a size that the callers bound, and the header asks for an array of
    // that length which nobody changes during the call.
    Ok(unsafe { std::slice::from_raw_parts(start, length) })
}

pub(crate) fn unlink(op: c_int) -> Result<Unlink> {
    match op {
        0 => Ok(Unlink::Retain),
        1 => Ok(Unlink::Unlink),
        _ => Err(Error::Fail),
    }
}

pub(crate) fn position(position: c_int) -> Result<Position> {
    match position {
        0 => Ok(Position::Before),
        1 => Ok(Position::After),
        _ => Err(Error::Fail),
    }
}

pub(crate) fn entry(
    source: ProcessId,
    match_bits: u64,
    ignore_bits: u64,
    op: c_int,
) -> Result<EntrySpec> {
    Ok(EntrySpec {
        source,
        match_bits,
        ignore_bits,
        unlink: unlink(op)?,
    })
}

pub(crate) fn descriptor(md: MemoryDescriptor, op: c_int) -> Result<DescriptorSpec<Claim>> {
    Ok(DescriptorSpec {
        md,
        buffer: buffer(&md)?,
        unlink: unlink(op)?,
    })
}

fn buffer(md: &MemoryDescriptor) -> Result<Buffer<Claim>> {
    if !md.options.contains(MdOptions::IOVEC) {
        return claim(md.start as *mut c_void, md.length).map(Buffer::Contiguous);
    }
    if md.length == 0 {
        return Ok(Buffer::vector(Vec::new()));
    }
    if md.length > Limits::HIGHEST.max_md_iovecs as u64 {
        return Err(Error::MdIllegal);
    }
    let pieces = array(md.start as *const Iovec, md.length as usize);
    let pieces: Result<Vec<Claim>> = pieces
        .map_err(|_| Error::MdIllegal)?
        .iter()
        .map(|piece| claim(piece.iov_base, piece.iov_len))
        .collect();
    Ok(Buffer::vector(pieces?))
}

/// The user's memory, which stays the user's: the header asks that it lives until the
/// descriptor is unlinked.
fn claim(start: *mut c_void, length: u64) -> Result<Claim> {
    let wraps = (start as u64).checked_add(length).is_none();
    if length > 0 && (start.is_null() || wraps) {
        return Err(Error::MdIllegal);
    }
    // SAFETY: the header asks that the memory stays usable while a descriptor names it.
    Ok(unsafe { Claim::new(start.cast(), length) })
}
