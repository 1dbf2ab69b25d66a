//! Options.

use crate::cells::{Tables, connection_of, endpoint_of};
use crate::convert::{code, give};
use crate::endpoints::is_endpoint;
use cci_sys::{Alignment, option};
use lintel_cci_endpoint::{Endpoint, EndpointOption, Status};
use std::ffi::{CString, c_char, c_int, c_void};

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_set_opt(handle: *mut c_void, name: u32, val: *const c_void) -> c_int {
    let set = || {
        if val.is_null() {
            return Err(Status::Invalid);
        }
        // SAFETY: the caller's, as the header says.
        let (endpoint, option) = unsafe { numeric(handle, name) }?;
        // SAFETY: as above; the value of these options is a number.
        let value = unsafe { val.cast::<u32>().read() };
        endpoint.set_option(option, value)
    };
    code(set())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_get_opt(handle: *mut c_void, name: u32, val: *mut c_void) -> c_int {
    let get = || match name {
        // SAFETY: the caller's, as the header says.
        option::ENDPT_URI => unsafe { give_uri(handle, val.cast()) },
        option::ENDPT_RMA_ALIGN if is_endpoint(handle) => {
            // The structure itself is filled: programs of the public library pass one, though
            // its header speaks of the address of a pointer.
            // SAFETY: as above.
            unsafe { give(val.cast(), Alignment::default()) }
        }
        _ => {
            // SAFETY: as above.
            let (endpoint, option) = unsafe { numeric(handle, name) }?;
            // SAFETY: as above.
            unsafe { give(val.cast(), endpoint.option(option)?) }
        }
    };
    code(get())
}

/// An option whose value is a number, and the endpoint that has it.
///
/// # Safety
/// `handle` is null, an endpoint, or a connection.
unsafe fn numeric<'a>(
    handle: *mut c_void,
    name: u32,
) -> Result<(&'a Endpoint<Tables>, EndpointOption), Status> {
    let of_endpoint = match name {
        option::ENDPT_SEND_TIMEOUT => Some(EndpointOption::SendTimeout),
        option::ENDPT_RECV_BUF_COUNT => Some(EndpointOption::RecvBuffers),
        option::ENDPT_SEND_BUF_COUNT => Some(EndpointOption::SendBuffers),
        option::ENDPT_KEEPALIVE_TIMEOUT => Some(EndpointOption::Keepalive),
        option::CONN_SEND_TIMEOUT | option::CONN_KEEPALIVE_TIMEOUT => None,
        _ => return Err(Status::Invalid),
    };
    if is_endpoint(handle) != of_endpoint.is_some() {
        return Err(Status::Invalid);
    }
    if let Some(option) = of_endpoint {
        // SAFETY: it is an open endpoint.
        let cell = unsafe { endpoint_of(handle.cast()) }?;
        return Ok((&cell.inner, option));
    }
    // SAFETY: the caller's: it is null, or a connection, as it is no endpoint.
    let (endpoint, connection) = unsafe { connection_of(handle.cast()) }?;
    let option = match name {
        option::CONN_SEND_TIMEOUT => EndpointOption::ConnectionSendTimeout(connection.id),
        _ => EndpointOption::ConnectionKeepalive(connection.id),
    };
    Ok((&endpoint.inner, option))
}

/// # Safety
/// `handle` is null, an endpoint, or a connection; `into` is null or may be written.
unsafe fn give_uri(handle: *mut c_void, into: *mut *mut c_char) -> Result<(), Status> {
    if !is_endpoint(handle) || into.is_null() {
        return Err(Status::Invalid);
    }
    // SAFETY: it is an open endpoint.
    let cell = unsafe { endpoint_of(handle.cast()) }?;
    let uri = CString::new(cell.inner.uri()).map_err(|_| Status::Error)?;
    // SAFETY: it ends with a zero. The copy is the caller's, to be freed by C's free.
    let copy = unsafe { libc::strdup(uri.as_ptr()) };
    if copy.is_null() {
        return Err(Status::NoMemory);
    }
    // SAFETY: the caller's; it isn't null.
    unsafe { give(into, copy) }
}
