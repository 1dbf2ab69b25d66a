//! Pointers that C passes in.

use crate::job::Error;
use std::ffi::{CStr, c_char, c_int};

/// A text of the caller.
///
/// # Errors
/// `NullPointer`, `NotText`.
///
/// # Safety
/// `text` is null or a string that ends with NUL and outlives `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Error> {
    if text.is_null() {
        return Err(Error::NullPointer);
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Error::NotText)
}

/// Writes a text and its NUL into the caller's buffer of `size` bytes.
///
/// # Errors
/// `NullPointer`, `NoSpace`.
///
/// # Safety
/// `to` is null or has `size` writable bytes.
pub(crate) unsafe fn give_text(to: *mut c_char, size: usize, text: &str) -> Result<(), Error> {
    if to.is_null() {
        return Err(Error::NullPointer);
    }
    let needed = text.len() + 1;
    if needed > size {
        return Err(Error::NoSpace {
            needed,
            given: size,
        });
    }
    // SAFETY: `to` has room for the text and its NUL, and is no part of a string of ours.
    unsafe {
        to.cast::<u8>()
            .copy_from_nonoverlapping(text.as_ptr(), text.len())
    };
    // SAFETY: as above.
    unsafe { to.add(text.len()).write(0) };
    Ok(())
}

/// Writes a number, or why there is none.
///
/// # Errors
/// `NullPointer`, and the result's.
///
/// # Safety
/// `to` is null or points to an int.
pub(crate) unsafe fn give_number(
    to: *mut c_int,
    number: impl FnOnce() -> Result<usize, Error>,
) -> Result<(), Error> {
    if to.is_null() {
        return Err(Error::NullPointer);
    }
    let number = c_int::try_from(number()?).unwrap_or(c_int::MAX);
    // SAFETY: the caller's.
    unsafe { to.write(number) };
    Ok(())
}
