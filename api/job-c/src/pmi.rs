//! The entries of `portals4/pmi.h`.

use crate::codes::pmi_code;
use crate::job;
use crate::pointers::{give_number, give_text, text};
use std::ffi::{c_char, c_int};

/// `PMI_FAIL`.
const FAIL: c_int = -1;
/// `PMI_ERR_INVALID_LENGTH`.
const INVALID_LENGTH: c_int = 8;
/// The most bytes of the name of a store, its NUL included: MPICH's.
const NAME_MAX: usize = 256;

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Init(spawned: *mut c_int) -> c_int {
    // SAFETY: the caller's, as the header says.
    pmi_code(unsafe { give_number(spawned, || job::open().map(|()| 0)) })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Initialized(initialized: *mut c_int) -> c_int {
    // SAFETY: the caller's, as the header says.
    pmi_code(unsafe { give_number(initialized, || Ok(usize::from(job::is_open()))) })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn PMI_Finalize() -> c_int {
    pmi_code(job::close())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Abort(exit_code: c_int, message: *const c_char) -> c_int {
    // SAFETY: the caller's, as the header says.
    unsafe { crate::ptljob_abort(exit_code, message) };
    FAIL
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_size(size: *mut c_int) -> c_int {
    // SAFETY: the caller's, as the header says.
    pmi_code(unsafe { give_number(size, || job::with(|job| Ok(job.size()))) })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_rank(rank: *mut c_int) -> c_int {
    // SAFETY: the caller's, as the header says.
    pmi_code(unsafe { give_number(rank, || job::with(|job| Ok(job.rank()))) })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_universe_size(size: *mut c_int) -> c_int {
    // SAFETY: the caller's, as the header says.
    pmi_code(unsafe { give_number(size, || job::with(|job| job.universe_size())) })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_appnum(appnum: *mut c_int) -> c_int {
    // SAFETY: the caller's, as the header says.
    pmi_code(unsafe { give_number(appnum, || job::with(|_| Ok(0))) })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn PMI_Barrier() -> c_int {
    pmi_code(job::with(|job| job.barrier()))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get_my_name(store: *mut c_char, length: c_int) -> c_int {
    let Some(size) = size(length) else {
        return INVALID_LENGTH;
    };
    let name = job::with(|job| Ok(job.store_name().to_string()));
    // SAFETY: the caller's, as the header says.
    pmi_code(name.and_then(|name| unsafe { give_text(store, size, &name) }))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get_name_length_max(length: *mut c_int) -> c_int {
    // SAFETY: the caller's, as the header says.
    pmi_code(unsafe { give_number(length, || job::with(|_| Ok(NAME_MAX))) })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get_key_length_max(length: *mut c_int) -> c_int {
    // SAFETY: the caller's, as the header says.
    pmi_code(unsafe { give_number(length, || job::with(|job| Ok(job.longest().0 + 1))) })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get_value_length_max(length: *mut c_int) -> c_int {
    // SAFETY: the caller's, as the header says.
    pmi_code(unsafe { give_number(length, || job::with(|job| Ok(job.longest().1 + 1))) })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Put(
    store: *const c_char,
    key: *const c_char,
    value: *const c_char,
) -> c_int {
    // SAFETY: the caller's, as the header says.
    let store = unsafe { text(store) };
    // SAFETY: as above.
    let key = unsafe { text(key) };
    // SAFETY: as above.
    let value = unsafe { text(value) };
    pmi_code(job::with(|job| store.and(job.put(key?, value?))))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Commit(store: *const c_char) -> c_int {
    // SAFETY: the caller's, as the header says. What is put travels at once, or at the barrier.
    let store = unsafe { text(store) };
    pmi_code(job::with(|_| store.map(drop)))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get(
    store: *const c_char,
    key: *const c_char,
    value: *mut c_char,
    length: c_int,
) -> c_int {
    let Some(size) = size(length) else {
        return INVALID_LENGTH;
    };
    // SAFETY: the caller's, as the header says.
    let store = unsafe { text(store) };
    // SAFETY: as above.
    let key = unsafe { text(key) };
    let found = job::with(|job| store.and(job.get(key?)));
    // SAFETY: as above.
    pmi_code(found.and_then(|found| unsafe { give_text(value, size, &found) }))
}

/// See the header: refused.
#[unsafe(no_mangle)]
pub extern "C" fn PMI_Publish_name(service: *const c_char, port: *const c_char) -> c_int {
    let _ = (service, port);
    FAIL
}

/// See the header: refused.
#[unsafe(no_mangle)]
pub extern "C" fn PMI_Unpublish_name(service: *const c_char) -> c_int {
    let _ = service;
    FAIL
}

/// See the header: refused.
#[unsafe(no_mangle)]
pub extern "C" fn PMI_Lookup_name(service: *const c_char, port: *mut c_char) -> c_int {
    let _ = (service, port);
    FAIL
}

/// See the header: refused, whatever the arguments, which it doesn't look at.
#[unsafe(no_mangle)]
pub extern "C" fn PMI_Spawn_multiple() -> c_int {
    FAIL
}

/// A length of the caller, if it is positive.
fn size(length: c_int) -> Option<usize> {
    usize::try_from(length).ok().filter(|&size| size > 0)
}
