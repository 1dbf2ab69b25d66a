//! The entries of `portals4_job.h`.

use crate::codes::{code, number};
use crate::job::{self, Error};
use crate::pointers::{give_text, text};
use std::ffi::{c_char, c_int, c_void};
use std::io::Write;

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn ptljob_init() -> c_int {
    code(job::open())
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn ptljob_fini() -> c_int {
    code(job::close())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptljob_abort(exit_code: c_int, message: *const c_char) {
    // SAFETY: the caller's, as the header says.
    match unsafe { text(message) } {
        // Standard error may be closed.
        Ok(message) if !message.is_empty() => {
            let _ = writeln!(std::io::stderr(), "{message}");
        }
        _ => {}
    }
    job::abort(exit_code);
    std::process::exit(exit_code);
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn ptljob_rank() -> c_int {
    number(job::with(|job| Ok(job.rank())))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn ptljob_size() -> c_int {
    number(job::with(|job| Ok(job.size())))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn ptljob_node_rank() -> c_int {
    number(job::with(|job| Ok(job.place_on_node()?.rank)))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn ptljob_node_size() -> c_int {
    number(job::with(|job| Ok(job.place_on_node()?.size)))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn ptljob_barrier() -> c_int {
    code(job::with(|job| job.barrier()))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptljob_put(key: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: the caller's, as the header says.
    let key = unsafe { text(key) };
    // SAFETY: as above.
    let value = unsafe { text(value) };
    code(job::with(|job| job.put(key?, value?)))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptljob_get(key: *const c_char, value: *mut c_char, size: usize) -> c_int {
    // SAFETY: the caller's, as the header says.
    let key = unsafe { text(key) };
    let found = job::with(|job| job.get(key?));
    // SAFETY: as above.
    code(found.and_then(|found| unsafe { give_text(value, size, &found) }))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptljob_gather(
    mine: *const c_void,
    size: usize,
    all: *mut c_void,
) -> c_int {
    if mine.is_null() || all.is_null() {
        return code(Err(Error::NullPointer));
    }
    // SAFETY: the caller's, as the header says.
    let mine = unsafe { std::slice::from_raw_parts(mine.cast::<u8>(), size) };
    let gathered = job::with(|job| job.gather(mine));
    code(gathered.map(|bytes| {
        // SAFETY: `all` has `size` bytes for each rank, and these are as many.
        unsafe { all.cast::<u8>().copy_from(bytes.as_ptr(), bytes.len()) }
    }))
}
