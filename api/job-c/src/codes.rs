//! Return codes, and what was wrong in words.

use crate::job::Error;
use lintel_pmi::client::Error as LauncherError;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};

thread_local! {
    static EXPLANATION: RefCell<CString> = RefCell::default();
}

/// `PTLJOB_OK`, or the error's code, whose explanation is kept for the thread.
pub(crate) fn code(result: Result<(), Error>) -> c_int {
    let Err(error) = result else { return 0 };
    explain(&error);
    match error {
        Error::NullPointer | Error::NotText | Error::OtherSize { .. } => 1,
        Error::Launcher(LauncherError::NotStorable { .. }) => 1,
        Error::NoInit => 2,
        Error::Launcher(_) | Error::NodeUnknown => 3,
        Error::NotFound(_) => 4,
        Error::NoSpace { .. } => 5,
    }
}

/// The value, or -1 and an explanation.
pub(crate) fn number(result: Result<usize, Error>) -> c_int {
    match result {
        Ok(number) => c_int::try_from(number).unwrap_or(c_int::MAX),
        Err(error) => {
            explain(&error);
            -1
        }
    }
}

/// `PMI_SUCCESS`, or the code of `portals4/pmi.h` for the error.
pub(crate) fn pmi_code(result: Result<(), Error>) -> c_int {
    let Err(error) = result else { return 0 };
    explain(&error);
    match error {
        Error::NoInit => 1,
        Error::NoSpace { .. } => 2,
        Error::NullPointer => 3,
        Error::Launcher(LauncherError::NotStorable { what: "key", .. }) => 4,
        Error::NotText | Error::Launcher(LauncherError::NotStorable { .. }) => 6,
        Error::NodeUnknown | Error::NotFound(_) | Error::Launcher(_) | Error::OtherSize { .. } => {
            -1
        }
    }
}

fn explain(error: &Error) {
    let text = CString::new(error.to_string()).unwrap_or_default();
    EXPLANATION.with(|stored| *stored.borrow_mut() = text);
}

/// `ptljob_explain`, as `include/portals4_job.h` describes it.
#[unsafe(no_mangle)]
pub extern "C" fn ptljob_explain() -> *const c_char {
    EXPLANATION.with(|stored| stored.borrow().as_ptr())
}
