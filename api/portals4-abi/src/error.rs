//! Refusals, by call and return code.

use lintel_types::Error;
use portals4_sys::codes;
use std::ffi::c_int;
use std::fmt;

/// A call that Portals refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallError {
    /// The function's name in the specification.
    pub call: &'static str,
    /// The return code, which another library than ours may have made up.
    pub code: c_int,
}

/// The outcome of a Portals call.
pub type Result<T> = std::result::Result<T, CallError>;

impl CallError {
    /// A refusal for that reason.
    pub const fn new(call: &'static str, why: Error) -> Self {
        CallError {
            call,
            code: why as c_int,
        }
    }

    /// Whether this is the reason.
    pub const fn is(self, why: Error) -> bool {
        self.code == why as c_int
    }
}

/// A code that `portals4.h` doesn't have counts as `PTL_FAIL`.
impl From<CallError> for Error {
    fn from(error: CallError) -> Error {
        Error::try_from(error.code).unwrap_or(Error::Fail)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Error::try_from(self.code) {
            Ok(error) => write!(f, "{} returned {}", self.call, error.name()),
            Err(unknown) => write!(f, "{} returned {}", self.call, unknown.0),
        }
    }
}

impl std::error::Error for CallError {}

#[inline]
pub(crate) fn check(call: &'static str, code: c_int) -> Result<()> {
    match code {
        codes::OK => Ok(()),
        code => Err(CallError { call, code }),
    }
}
