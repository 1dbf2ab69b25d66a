//! Remote memory. A handle's words are the registration's key, its length, and two zeros.

use crate::cells::{connection_of, endpoint_of};
use crate::convert::{code, give, memory, message_flags};
use cci_sys::{Connection, Endpoint, FLAG_FENCE, FLAG_READ, FLAG_WRITE, RmaHandle};
use lintel_cci_endpoint::{Access, Direction, Region, RmaRequest, Status};
use std::ffi::{c_int, c_void};

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_rma_register(
    endpoint: *mut Endpoint,
    start: *mut c_void,
    length: u64,
    flags: c_int,
    rma_handle: *mut *mut RmaHandle,
) -> c_int {
    let register = || {
        // SAFETY: the caller's, as the header says.
        let cell = unsafe { endpoint_of(endpoint) }?;
        if rma_handle.is_null() || length == 0 {
            return Err(Status::Invalid);
        }
        // SAFETY: as above.
        let memory = unsafe { memory(start, length) }?;
        let key = cell.inner.register(memory, access(flags));
        let handle = RmaHandle {
            stuff: [key, length, 0, 0],
        };
        let pointer = cell
            .inner
            .with_handles(|tables| tables.register(key, handle));
        // SAFETY: as above; it isn't null.
        unsafe { give(rma_handle, pointer) }
    };
    code(register())
}

/// Other bits are ignored: a public program registers with 1 or 2.
fn access(flags: c_int) -> Access {
    Access {
        read: flags & FLAG_READ != 0,
        write: flags & FLAG_WRITE != 0,
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_rma_deregister(
    endpoint: *mut Endpoint,
    rma_handle: *mut RmaHandle,
) -> c_int {
    let deregister = || {
        // SAFETY: the caller's, as the header says.
        let cell = unsafe { endpoint_of(endpoint) }?;
        // SAFETY: as above.
        let key = unsafe { words(rma_handle) }?[0];
        cell.inner.deregister(key)?;
        cell.inner.with_handles(|tables| tables.deregister(key));
        Ok(())
    };
    code(deregister())
}

/// # Safety
/// `handle` is null or points to 32 bytes.
unsafe fn words(handle: *mut RmaHandle) -> Result<[u64; 4], Status> {
    if handle.is_null() {
        return Err(Status::Invalid);
    }
    // SAFETY: it isn't null, so the caller guarantees the bytes. A copy inside of a message
    // may be at any address.
    Ok(unsafe { handle.read_unaligned() }.stuff)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_rma(
    connection: *mut Connection,
    msg_ptr: *const c_void,
    msg_len: u32,
    local_handle: *mut RmaHandle,
    local_offset: u64,
    remote_handle: *mut RmaHandle,
    remote_offset: u64,
    data_len: u64,
    context: *const c_void,
    flags: c_int,
) -> c_int {
    let start = || {
        // SAFETY: the caller's, as the header says.
        let (endpoint, connection) = unsafe { connection_of(connection) }?;
        let message_flags = message_flags(flags, connection.public.attribute)?;
        let request = RmaRequest {
            direction: direction(flags)?,
            local: Region {
                // SAFETY: as above.
                key: unsafe { words(local_handle) }?[0],
                offset: local_offset,
                length: data_len,
            },
            // SAFETY: as above.
            remote_key: unsafe { words(remote_handle) }?[0],
            remote_offset,
            fence: flags & FLAG_FENCE != 0,
        };
        // SAFETY: as above.
        let message = unsafe { memory(msg_ptr, msg_len.into()) }?;
        let message = (!msg_ptr.is_null() && msg_len > 0).then_some(message);
        let (id, context) = (connection.id, context as u64);
        endpoint
            .inner
            .rma(id, request, message, context, message_flags)
    };
    code(start())
}

fn direction(flags: c_int) -> Result<Direction, Status> {
    match (flags & FLAG_READ != 0, flags & FLAG_WRITE != 0) {
        (true, false) => Ok(Direction::Read),
        (false, true) => Ok(Direction::Write),
        _ => Err(Status::Invalid),
    }
}
