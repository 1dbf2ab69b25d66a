//! Arguments of C as values, and results as codes.

use cci_sys::{
    FLAG_BLOCKING, FLAG_FENCE, FLAG_NO_COPY, FLAG_READ, FLAG_SILENT, FLAG_WRITE, timeval,
};
use lintel_cci_endpoint::{Attribute, MessageFlags, Status, Time};
use lintel_claim::Claim;
use std::ffi::{CStr, c_char, c_int, c_void};

/// All flags of the header. Programs send with the flags of their remote memory accesses, so
/// those of the other calls are ignored.
const KNOWN: c_int =
    FLAG_BLOCKING | FLAG_NO_COPY | FLAG_SILENT | FLAG_READ | FLAG_WRITE | FLAG_FENCE;

/// The code of a result.
pub(crate) fn code(result: Result<(), Status>) -> c_int {
    match result {
        Ok(()) => Status::Success as c_int,
        Err(status) => status as c_int,
    }
}

/// The flags of a send or an access on a connection of that attribute.
pub(crate) fn message_flags(flags: c_int, attribute: u32) -> Result<MessageFlags, Status> {
    let has = |flag| flags & flag != 0;
    let is_ordered = attribute == Attribute::Ro as u32;
    if flags & !KNOWN != 0 || (has(FLAG_NO_COPY) && has(FLAG_SILENT) && !is_ordered) {
        return Err(Status::Invalid);
    }
    Ok(MessageFlags {
        blocking: has(FLAG_BLOCKING),
        no_copy: has(FLAG_NO_COPY),
        silent: has(FLAG_SILENT),
    })
}

/// Memory of the caller.
///
/// # Safety
/// `start` is null or names that many bytes for as long as the call's comment says.
pub(crate) unsafe fn memory(start: *const c_void, length: u64) -> Result<Claim, Status> {
    if length == 0 {
        return Ok(Claim::empty());
    }
    let wraps = (start as u64).checked_add(length).is_none();
    if start.is_null() || wraps {
        return Err(Status::Invalid);
    }
    // SAFETY: the caller guarantees the bytes; they don't wrap.
    Ok(unsafe { Claim::new(start.cast_mut().cast(), length) })
}

/// A string of the caller.
///
/// # Safety
/// `text` is null or a string that ends with a zero.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Status> {
    if text.is_null() {
        return Err(Status::Invalid);
    }
    // SAFETY: the caller guarantees the string.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Status::Invalid)
}

/// A timeout; null waits for ever.
///
/// # Safety
/// `timeout` is null or points to one.
pub(crate) unsafe fn timeout(timeout: *const timeval) -> Result<Option<Time>, Status> {
    if timeout.is_null() {
        return Ok(None);
    }
    // SAFETY: it isn't null, so the caller guarantees it.
    let timeout = unsafe { timeout.read() };
    let seconds = u64::try_from(timeout.tv_sec).map_err(|_| Status::Invalid)?;
    let micros = u64::try_from(timeout.tv_usec).map_err(|_| Status::Invalid)?;
    Ok(Some(Time(
        seconds.saturating_mul(1_000_000).saturating_add(micros),
    )))
}

/// Writes an output that isn't null.
///
/// # Safety
/// `output` is null or may be written.
pub(crate) unsafe fn give<T>(output: *mut T, value: T) -> Result<(), Status> {
    if output.is_null() {
        return Err(Status::Invalid);
    }
    // SAFETY: it isn't null, so the caller guarantees that it may be written.
    unsafe { output.write(value) };
    Ok(())
}
