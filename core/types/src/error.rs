//! Return codes: their values, their names, and what to do about each.

use core::ffi::CStr;

/// The return codes of Portals 4.3 other than `PTL_OK`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(i32)]
pub enum Error {
    /// An argument is invalid.
    ArgInvalid = 1,
    /// The timeout came before any counter reached its test.
    CtNoneReached = 2,
    /// The event queue lost events; the event returned is good.
    EqDropped = 3,
    /// The event queue holds no event.
    EqEmpty = 4,
    /// The system failed; the log says how.
    Fail = 5,
    /// The map is set already and can't be changed.
    Ignored = 6,
    /// Something still uses the resource.
    InUse = 7,
    /// The list has its full length.
    ListTooLong = 8,
    /// `PtlInit` wasn't called, or failed.
    NoInit = 9,
    /// A limit of the interface is reached, or memory is short.
    NoSpace = 10,
    /// Another process has the process identifier.
    PidInUse = 11,
    /// The portal table has no free entry.
    PtFull = 12,
    /// Flow control needs an event queue.
    PtEqNeeded = 13,
    /// The portal table index is taken.
    PtInUse = 14,
    /// `PtlAbort` was called: it ends all waiting calls of the process.
    Aborted = 15,
}

/// Each error beside the name of its constant, in the order of their values from 1 on:
/// whatever reads or prints a return code reads this table.
const TABLE: [(Error, &CStr); 15] = {
    use Error::*;
    [
        (ArgInvalid, c"PTL_ARG_INVALID"),
        (CtNoneReached, c"PTL_CT_NONE_REACHED"),
        (EqDropped, c"PTL_EQ_DROPPED"),
        (EqEmpty, c"PTL_EQ_EMPTY"),
        (Fail, c"PTL_FAIL"),
        (Ignored, c"PTL_IGNORED"),
        (InUse, c"PTL_IN_USE"),
        (ListTooLong, c"PTL_LIST_TOO_LONG"),
        (NoInit, c"PTL_NO_INIT"),
        (NoSpace, c"PTL_NO_SPACE"),
        (PidInUse, c"PTL_PID_IN_USE"),
        (PtFull, c"PTL_PT_FULL"),
        (PtEqNeeded, c"PTL_PT_EQ_NEEDED"),
        (PtInUse, c"PTL_PT_IN_USE"),
        (Aborted, c"PTL_ABORTED"),
    ]
};

impl Error {
    /// Every error, in the order of their values.
    pub fn all() -> impl Iterator<Item = Error> {
        TABLE.iter().map(|(error, _)| *error)
    }

    /// The name of its constant in `portals4.h`.
    pub fn name(self) -> &'static str {
        // Names are ASCII.
        self.c_name().to_str().unwrap_or_default()
    }

    /// The name of its constant in `portals4.h`, for C.
    pub const fn c_name(self) -> &'static CStr {
        TABLE[self as usize - 1].1
    }
}

/// A return code that is neither `PTL_OK` nor an [`Error`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownCode(pub i32);

impl core::fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} is no error of portals4.h", self.0)
    }
}

impl core::error::Error for UnknownCode {}

impl TryFrom<i32> for Error {
    type Error = UnknownCode;

    fn try_from(code: i32) -> core::result::Result<Self, UnknownCode> {
        let found = TABLE.iter().find(|(error, _)| *error as i32 == code);
        found.map(|(error, _)| *error).ok_or(UnknownCode(code))
    }
}

/// Who is wrong, what, and how it is mended.
impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::ArgInvalid => {
                "the caller passed a wrong argument: something gone or of another interface, \
                 out of range, or an unknown option; the call's page lists them"
            }
            Self::CtNoneReached => {
                "no counter has reached its test in time: wait longer, or look at the peer"
            }
            Self::EqDropped => {
                "the event queue was full and has lost events: make it larger, or read it sooner"
            }
            Self::EqEmpty => "no event is there: wait for one",
            Self::Fail => "the system or the environment failed; standard error says how",
            Self::Ignored => {
                "the interface has a map already: set it once, in the process that opens the interface"
            }
            Self::InUse => {
                "messages still use it: wait for their events, then release it once more"
            }
            Self::ListTooLong => {
                "the list is full: wait until entries are used, or ask for more max_list_size"
            }
            Self::NoInit => {
                "the library isn't started in this process: call PtlInit, in a fork's child never"
            }
            Self::NoSpace => {
                "a limit of the interface or of memory is reached: release something, or ask for \
                 higher limits when opening the interface"
            }
            Self::PidInUse => {
                "another process of the node has that pid: choose another, or let the library"
            }
            Self::PtFull => {
                "every portal table index is taken: free one, or ask for more max_pt_index"
            }
            Self::PtEqNeeded => "flow control reports to an event queue: give it one",
            Self::PtInUse => {
                "the portal table index is taken: unlink its entries and free it, or choose another"
            }
            Self::Aborted => "this process called PtlAbort: end the library and start it again",
        })
    }
}

impl core::error::Error for Error {}

/// The result of a call; the error is its return code.
pub type Result<T> = core::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_is_found_by_its_value_and_stands_in_its_place() {
        for (place, error) in Error::all().enumerate() {
            assert_eq!(error as usize, place + 1, "{}", error.name());
            assert_eq!(Error::try_from(error as i32), Ok(error));
        }
    }

    #[test]
    fn success_and_codes_of_other_libraries_are_no_errors() {
        for code in [0, 16, -1, i32::MAX, i32::MIN] {
            assert_eq!(Error::try_from(code), Err(UnknownCode(code)));
        }
    }

    #[test]
    fn each_error_has_the_name_of_its_constant_and_an_explanation() {
        extern crate alloc;
        use alloc::string::ToString;
        for error in Error::all() {
            assert!(error.name().starts_with("PTL_"), "{error:?}");
            assert!(error.to_string().len() > 20, "{error:?}");
        }
        assert_eq!(Error::ArgInvalid.name(), "PTL_ARG_INVALID");
        assert_eq!(Error::PtInUse.name(), "PTL_PT_IN_USE");
        let unknown = UnknownCode(-77).to_string();
        assert!(unknown.contains("-77"), "{unknown}");
    }
}
