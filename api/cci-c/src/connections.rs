//! Connections: request, answer, end.

use crate::cells::{EventCell, Held, Tables, connection_of, endpoint_of};
use crate::convert::{code, memory, text};
use cci_sys::{CONN_REQ_LEN, Connection, Endpoint, Event, timeval};
use lintel_cci_endpoint::{Attribute, ConnectionId, Status};
use std::ffi::{c_char, c_int, c_void};

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_connect(
    endpoint: *mut Endpoint,
    server_uri: *const c_char,
    data_ptr: *const c_void,
    data_len: u32,
    attribute: u32,
    context: *const c_void,
    flags: c_int,
    timeout: *const timeval,
) -> c_int {
    if flags != 0 || data_len > CONN_REQ_LEN {
        return code(Err(Status::Invalid));
    }
    let connect = || {
        // SAFETY: the caller's, as the header says.
        let cell = unsafe { endpoint_of(endpoint) }?;
        // SAFETY: as above.
        let uri = unsafe { text(server_uri) }?;
        // SAFETY: as above.
        let data = unsafe { memory(data_ptr, data_len.into()) }?;
        let attribute = Attribute::from_value(attribute.into()).ok_or(Status::Invalid)?;
        // SAFETY: as above.
        let timeout = unsafe { crate::convert::timeout(timeout) }?;
        cell.inner
            .connect(uri, data, attribute, context as u64, timeout)
    };
    code(connect())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_accept(conn_req: *mut Event, context: *const c_void) -> c_int {
    // SAFETY: the caller's, as the header says.
    code(unsafe { answer(conn_req, |endpoint, id| endpoint.accept(id, context as u64)) })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_reject(conn_req: *mut Event) -> c_int {
    // SAFETY: the caller's, as the header says.
    code(unsafe { answer(conn_req, |endpoint, id| endpoint.reject(id)) })
}

/// Answers a request that wasn't answered yet.
///
/// # Safety
/// `conn_req` is null or an event that wasn't returned.
unsafe fn answer(
    conn_req: *mut Event,
    call: impl FnOnce(&lintel_cci_endpoint::Endpoint<Tables>, ConnectionId) -> Result<(), Status>,
) -> Result<(), Status> {
    let cell: *mut EventCell = conn_req.cast();
    if cell.is_null() {
        return Err(Status::Invalid);
    }
    // SAFETY: it isn't null, and its endpoint is open.
    let endpoint = unsafe { endpoint_of((*cell).endpoint.cast_mut().cast()) }?;
    let id = endpoint.inner.with_handles(|_| {
        // SAFETY: the event wasn't returned, and the lock keeps other threads from it.
        let held = unsafe { &mut (*cell).held };
        match held {
            Held::Request {
                id, is_answered, ..
            } if !*is_answered => {
                *is_answered = true;
                Ok(*id)
            }
            _ => Err(Status::Invalid),
        }
    })?;
    call(&endpoint.inner, id)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_disconnect(connection: *mut Connection) -> c_int {
    // SAFETY: the caller's, as the header says.
    let cells = unsafe { connection_of(connection) };
    code(cells.and_then(|(endpoint, connection)| {
        let id = connection.id;
        endpoint.inner.with_handles(|tables| tables.close(id));
        endpoint.inner.disconnect(id)
    }))
}
