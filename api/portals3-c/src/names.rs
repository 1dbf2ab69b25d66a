//! Names of codes, failures and events.
#![allow(non_upper_case_globals)] // they are C's

use lintel_types::Handle;
use std::ffi::{CStr, c_char, c_int};

/// An array of names, in C's form.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Name(*const c_char);

// SAFETY: it points to a constant, which no thread changes.
unsafe impl Sync for Name {}

const fn names<const N: usize>(texts: [&'static CStr; N]) -> [Name; N] {
    let mut names = [Name(std::ptr::null()); N];
    let mut at = 0;
    while at < N {
        names[at] = Name(texts[at].as_ptr());
        at += 1;
    }
    names
}

/// `ptl_err_str`
#[unsafe(no_mangle)]
pub static ptl_err_str: [Name; 34] = names([
    c"PTL_OK",
    c"PTL_AC_INDEX_INVALID",
    c"PTL_EQ_DROPPED",
    c"PTL_EQ_EMPTY",
    c"PTL_EQ_INVALID",
    c"PTL_FAIL",
    c"PTL_HANDLE_INVALID",
    c"PTL_IFACE_INVALID",
    c"PTL_MD_ILLEGAL",
    c"PTL_MD_INVALID",
    c"PTL_MD_IN_USE",
    c"PTL_MD_NO_UPDATE",
    c"PTL_ME_INVALID",
    c"PTL_ME_IN_USE",
    c"PTL_ME_LIST_TOO_LONG",
    c"PTL_NI_INVALID",
    c"PTL_NO_INIT",
    c"PTL_NO_SPACE",
    c"PTL_PID_INVALID",
    c"PTL_PROCESS_INVALID",
    c"PTL_PT_FULL",
    c"PTL_PT_INDEX_INVALID",
    c"PTL_SEGV",
    c"PTL_SR_INDEX_INVALID",
    c"PTL_UNKNOWN_ERROR",
    c"PTL_IFACE_DUP",
    c"PTL_EQ_IN_USE",
    c"PTL_VAL_FAILED",
    c"PTL_NAL_FAILED",
    c"PTL_PID_IN_USE",
    c"PTL_INV_EQ_SIZE",
    c"PTL_AGAIN",
    c"PTL_NOT_IMPLEMENTED",
    c"PTL_IOV_INVALID",
]);

/// `ptl_event_str`
#[unsafe(no_mangle)]
pub static ptl_event_str: [Name; 12] = names([
    c"PTL_EVENT_GET_START",
    c"PTL_EVENT_GET_END",
    c"PTL_EVENT_PUT_START",
    c"PTL_EVENT_PUT_END",
    c"PTL_EVENT_GETPUT_START",
    c"PTL_EVENT_GETPUT_END",
    c"PTL_EVENT_REPLY_START",
    c"PTL_EVENT_REPLY_END",
    c"PTL_EVENT_SEND_START",
    c"PTL_EVENT_SEND_END",
    c"PTL_EVENT_ACK",
    c"PTL_EVENT_UNLINK",
]);

/// The name of that number, or what stands for a number without one.
fn name(names: &[Name], number: usize, otherwise: &'static CStr) -> *const c_char {
    let found = names.get(number).map(|name| name.0);
    found.unwrap_or(otherwise.as_ptr())
}

/// `PtlErrorStr`
#[unsafe(no_mangle)]
pub extern "C" fn PtlErrorStr(code: u32) -> *const c_char {
    name(&ptl_err_str, code as usize, c"no return code of portals3.h")
}

/// `PtlNIFailStr`
#[unsafe(no_mangle)]
pub extern "C" fn PtlNIFailStr(ni: Handle, fail: u32) -> *const c_char {
    // All interfaces have the same failures.
    let _ = ni;
    let names = names([c"PTL_NI_OK", c"PTL_NI_FAIL"]);
    name(&names, fail as usize, c"no failure of portals3.h")
}

/// `PtlEventKindStr`
#[unsafe(no_mangle)]
pub extern "C" fn PtlEventKindStr(kind: c_int) -> *const c_char {
    let number = usize::try_from(kind).unwrap_or(usize::MAX);
    name(&ptl_event_str, number, c"no event of portals3.h")
}
