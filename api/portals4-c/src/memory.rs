//! Memory that peers can map.

use crate::convert::{give, not_null};
use lintel_runtime::process;
use std::ffi::{c_int, c_void};

/// `PtlMemAlloc`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMemAlloc(length: u64, start: *mut *mut c_void) -> c_int {
    let allocate = || {
        not_null(start)?;
        process().memory_alloc(length)
    };
    let allocated = allocate().map(|memory| give(start, memory.cast()));
    allocated.err().map_or(0, |error| error as c_int)
}

/// `PtlMemFree`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMemFree(start: *mut c_void) -> c_int {
    let freed = process().memory_free(start as u64);
    freed.err().map_or(0, |error| error as c_int)
}
