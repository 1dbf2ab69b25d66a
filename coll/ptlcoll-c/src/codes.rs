//! Return codes, and what was wrong in words.

use lintel_group::{Error, Trouble};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

/// The codes of `ptlcoll.h`, in the order of their values.
const NAMES: [&CStr; 11] = [
    c"PTLCOLL_OK",
    c"PTLCOLL_ARG_INVALID",
    c"PTLCOLL_DEAD",
    c"PTLCOLL_LOST",
    c"PTLCOLL_FAILED",
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

/// `PTLCOLL_OK` or the trouble's code; keeps what is to be told of it.
pub(crate) fn code(result: Result<(), Trouble>) -> c_int {
    let Err(trouble) = result else {
        return 0;
    };
    let told = CString::new(trouble.to_string()).unwrap_or_default();
    EXPLANATION.with(|kept| *kept.borrow_mut() = told);
    match trouble {
        Trouble::Caller(_) | Trouble::NoRequest => 1,
        Trouble::Portals(Error::ArgInvalid) => 1,
        Trouble::Dead { .. } => 2,
        Trouble::Lost => 3,
        Trouble::Failed => 4,
        Trouble::Environment(_) => 5,
        Trouble::Portals(Error::NoSpace | Error::ListTooLong | Error::PtFull) => 6,
        Trouble::Portals(Error::NoInit) => 7,
        Trouble::Portals(Error::PtInUse) => 8,
        Trouble::Portals(Error::Aborted) => 9,
        Trouble::Portals(_) => 10,
    }
}

/// `ptlcoll_strerror`
#[unsafe(no_mangle)]
pub extern "C" fn ptlcoll_strerror(code: c_int) -> *const c_char {
    let name = usize::try_from(code).ok().and_then(|code| NAMES.get(code));
    name.unwrap_or(&c"Unknown").as_ptr()
}

/// `ptlcoll_explain`
#[unsafe(no_mangle)]
pub extern "C" fn ptlcoll_explain() -> *const c_char {
    EXPLANATION.with(|kept| kept.borrow().as_ptr())
}
