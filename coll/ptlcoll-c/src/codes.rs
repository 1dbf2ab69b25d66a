//! Return codes, and what was wrong in words.

use lintel_group::{Error, PortalsError};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

/// The codes of `ptlcoll.h`, in the order of their values.
const NAMES: [&CStr; 11] = [
    c"PTLCOLL_OK",
    c"PTLCOLL_ARG_INVALID",
    c"PTLCOLL_PROC_FAILED",
    c"PTLCOLL_MSG_FAILED",
    c"PTLCOLL_REVOKED",
    c"PTLCOLL_ENVIRONMENT",
    c"PTLCOLL_NO_SPACE",
    c"PTLCOLL_NO_INIT",
    c"PTLCOLL_PT_IN_USE",
    c"PTLCOLL_ABORTED",
    c"PTLCOLL_PORTALS",
];

thread_local! {
    static EXPLANATION: RefCell<CString> = RefCell::default();
}

/// `PTLCOLL_OK`, or the error's code, whose explanation is kept for the thread.
#[inline(always)]
pub(crate) fn code(result: Result<(), Error>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => code_of(error),
    }
}

#[cold]
#[inline(never)]
fn code_of(error: Error) -> c_int {
    let text = CString::new(error.to_string()).unwrap_or_default();
    EXPLANATION.with(|stored| *stored.borrow_mut() = text);
    match error {
        Error::InvalidArgument(_) | Error::InvalidRequest => 1,
        Error::Portals(PortalsError::ArgInvalid) => 1,
        Error::ProcFailed { .. } | Error::NotCreated { .. } => 2,
        Error::MessageFailed => 3,
        Error::Revoked => 4,
        Error::Environment(_) => 5,
        Error::Portals(
            PortalsError::NoSpace | PortalsError::ListTooLong | PortalsError::PtFull,
        ) => 6,
        Error::Portals(PortalsError::NoInit) => 7,
        Error::Portals(PortalsError::PtInUse) => 8,
        Error::Portals(PortalsError::Aborted) => 9,
        Error::Portals(_) => 10,
    }
}

/// `ptlcoll_strerror`, as `include/ptlcoll.h` describes it.
#[unsafe(no_mangle)]
pub extern "C" fn ptlcoll_strerror(code: c_int) -> *const c_char {
    let name = usize::try_from(code).ok().and_then(|code| NAMES.get(code));
    name.unwrap_or(&c"Unknown").as_ptr()
}

/// `ptlcoll_explain`, as `include/ptlcoll.h` describes it.
#[unsafe(no_mangle)]
pub extern "C" fn ptlcoll_explain() -> *const c_char {
    EXPLANATION.with(|stored| stored.borrow().as_ptr())
}
