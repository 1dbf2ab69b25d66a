//! Endpoints.

use crate::cells::{EndpointCell, Tables, endpoint_of};
use crate::convert::{code, give, text};
use crate::library::with_library;
use cci_sys::{Device, Endpoint};
use lintel_cci_endpoint::Status;
use std::ffi::{c_char, c_int};
use std::os::fd::AsRawFd;
use std::ptr;

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_create_endpoint(
    device: *mut Device,
    flags: c_int,
    endpoint: *mut *mut Endpoint,
    fd: *mut c_int,
) -> c_int {
    // SAFETY: the caller's, as the header says.
    code(unsafe { create(device, None, flags, endpoint, fd) })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_create_endpoint_at(
    device: *mut Device,
    service: *const c_char,
    flags: c_int,
    endpoint: *mut *mut Endpoint,
    fd: *mut c_int,
) -> c_int {
    // SAFETY: the caller's, as the header says.
    let service = unsafe { text(service) };
    // SAFETY: as above.
    code(service.and_then(|service| unsafe { create(device, Some(service), flags, endpoint, fd) }))
}

/// # Safety
/// As the header says.
unsafe fn create(
    device: *mut Device,
    service: Option<&str>,
    flags: c_int,
    endpoint: *mut *mut Endpoint,
    fd: *mut c_int,
) -> Result<(), Status> {
    if endpoint.is_null() || flags != 0 {
        return Err(Status::Invalid);
    }
    let cell = with_library(|library| {
        let (public, device) = library.devices.get(device).ok_or(Status::NoDevice)?;
        let has_handle = !fd.is_null();
        let inner =
            lintel_cci_endpoint::Endpoint::open_with(device, service, has_handle, Tables::new())?;
        let cell = Box::into_raw(Box::new(EndpointCell {
            public: Endpoint { device: public },
            inner,
            has_handle,
        }));
        library.endpoints.insert(cell);
        Ok(cell)
    })?;
    // SAFETY: the cell was just made.
    let handle =
        unsafe { &(*cell).inner }.with_handle(|handle| handle.map(|handle| handle.as_raw_fd()));
    if let Some(handle) = handle {
        // SAFETY: there is a handle only if `fd` isn't null.
        unsafe { give(fd, handle) }?;
    }
    // SAFETY: the caller's; it isn't null.
    unsafe { give(endpoint, cell.cast()) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_destroy_endpoint(endpoint: *mut Endpoint) -> c_int {
    let cell: *mut EndpointCell = endpoint.cast();
    let known = with_library(|library| match library.endpoints.remove(&cell) {
        true => Ok(()),
        false => Err(Status::Invalid),
    });
    if known.is_ok() {
        // SAFETY: it was in the table, so it came from `Box::into_raw`; now it is in none.
        drop(unsafe { Box::from_raw(cell) });
    }
    code(known)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_arm_os_handle(endpoint: *mut Endpoint, flags: c_int) -> c_int {
    // SAFETY: the caller's, as the header says.
    let cell = unsafe { endpoint_of(endpoint) };
    code(cell.and_then(|cell| match cell.has_handle && flags == 0 {
        true => Ok(()),
        false => Err(Status::Invalid),
    }))
}

/// Whether a handle is an open endpoint.
pub(crate) fn is_endpoint(handle: *const std::ffi::c_void) -> bool {
    let cell: *mut EndpointCell = handle.cast_mut().cast();
    let is_open = with_library(|library| Ok(library.endpoints.contains(&cell)));
    !ptr::eq(cell, ptr::null()) && is_open == Ok(true)
}
