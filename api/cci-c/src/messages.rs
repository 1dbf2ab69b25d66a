//! Messages.

use crate::cells::connection_of;
use crate::convert::{code, memory, message_flags};
use cci_sys::{Connection, iovec};
use lintel_cci_endpoint::Status;
use lintel_claim::Claim;
use std::ffi::{c_int, c_void};
use std::slice;

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_send(
    connection: *mut Connection,
    msg_ptr: *const c_void,
    msg_len: u32,
    context: *const c_void,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's, as the header says.
    let piece = unsafe { memory(msg_ptr, msg_len.into()) };
    // SAFETY: as above.
    code(piece.and_then(|piece| unsafe { send(connection, &[piece], context, flags) }))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_sendv(
    connection: *mut Connection,
    data: *const iovec,
    iovcnt: u32,
    context: *const c_void,
    flags: c_int,
) -> c_int {
    if data.is_null() && iovcnt > 0 {
        return code(Err(Status::Invalid));
    }
    let vectors = match iovcnt {
        0 => &[],
        // SAFETY: the caller's, as the header says; it isn't null.
        count => unsafe { slice::from_raw_parts(data, count as usize) },
    };
    let piece = |vector: &iovec| {
        // SAFETY: the caller's, as the header says.
        unsafe { memory(vector.iov_base, vector.iov_len as u64) }
    };
    let pieces: Result<Vec<Claim>, Status> = vectors.iter().map(piece).collect();
    // SAFETY: as above.
    code(pieces.and_then(|pieces| unsafe { send(connection, &pieces, context, flags) }))
}

/// # Safety
/// As the header says.
unsafe fn send(
    connection: *mut Connection,
    pieces: &[Claim],
    context: *const c_void,
    flags: c_int,
) -> Result<(), Status> {
    // SAFETY: the caller's.
    let (endpoint, connection) = unsafe { connection_of(connection) }?;
    let flags = message_flags(flags, connection.public.attribute)?;
    endpoint
        .inner
        .send(connection.id, pieces, context as u64, flags)
}
