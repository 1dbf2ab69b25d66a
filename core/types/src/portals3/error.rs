//! Return codes: their values, their names, and what each means.

use core::ffi::CStr;

/// The return codes of Portals 3.3 other than `PTL_OK`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(i32)]
pub enum Error {
    /// The access control table has no such index.
    AcIndexInvalid = 1,
    /// The event queue lost events; the event returned is good.
    EqDropped = 2,
    /// The event queue holds no event.
    EqEmpty = 3,
    /// The handle names no event queue.
    EqInvalid = 4,
    /// The system failed; the log says how.
    Fail = 5,
    /// The handle names nothing.
    HandleInvalid = 6,
    /// There is no such interface.
    IfaceInvalid = 7,
    /// The memory descriptor's fields are wrong.
    MdIllegal = 8,
    /// The handle names no memory descriptor, or one that is inactive.
    MdInvalid = 9,
    /// Operations are pending on the memory descriptor.
    MdInUse = 10,
    /// The test queue wasn't empty, or operations are pending; nothing was changed.
    MdNoUpdate = 11,
    /// The handle names no match entry.
    MeInvalid = 12,
    /// The match entry has a descriptor already, or operations are pending on it.
    MeInUse = 13,
    /// The match list has its full length.
    MeListTooLong = 14,
    /// The handle names no interface.
    NiInvalid = 15,
    /// `PtlInit` wasn't called, or failed.
    NoInit = 16,
    /// A limit of the interface is reached, or memory is short.
    NoSpace = 17,
    /// The process identifier can't be had.
    PidInvalid = 18,
    /// The process can't be a target.
    ProcessInvalid = 19,
    /// Every portal table index has a match list.
    PtFull = 20,
    /// The portal table has no such index.
    PtIndexInvalid = 21,
    /// An output pointer is null.
    Segv = 22,
    /// There is no such status register.
    SrIndexInvalid = 23,
    /// An unknown error.
    Unknown = 24,
}

/// Each error beside the name of its constant, in the order of their values from 1 on.
const TABLE: [(Error, &CStr); 24] = {
    use Error::*;
    [
        (AcIndexInvalid, c"PTL_AC_INDEX_INVALID"),
        (EqDropped, c"PTL_EQ_DROPPED"),
        (EqEmpty, c"PTL_EQ_EMPTY"),
        (EqInvalid, c"PTL_EQ_INVALID"),
        (Fail, c"PTL_FAIL"),
        (HandleInvalid, c"PTL_HANDLE_INVALID"),
        (IfaceInvalid, c"PTL_IFACE_INVALID"),
        (MdIllegal, c"PTL_MD_ILLEGAL"),
        (MdInvalid, c"PTL_MD_INVALID"),
        (MdInUse, c"PTL_MD_IN_USE"),
        (MdNoUpdate, c"PTL_MD_NO_UPDATE"),
        (MeInvalid, c"PTL_ME_INVALID"),
        (MeInUse, c"PTL_ME_IN_USE"),
        (MeListTooLong, c"PTL_ME_LIST_TOO_LONG"),
        (NiInvalid, c"PTL_NI_INVALID"),
        (NoInit, c"PTL_NO_INIT"),
        (NoSpace, c"PTL_NO_SPACE"),
        (PidInvalid, c"PTL_PID_INVALID"),
        (ProcessInvalid, c"PTL_PROCESS_INVALID"),
        (PtFull, c"PTL_PT_FULL"),
        (PtIndexInvalid, c"PTL_PT_INDEX_INVALID"),
        (Segv, c"PTL_SEGV"),
        (SrIndexInvalid, c"PTL_SR_INDEX_INVALID"),
        (Unknown, c"PTL_UNKNOWN_ERROR"),
    ]
};

impl Error {
    /// Every error, in the order of their values.
    pub fn all() -> impl Iterator<Item = Error> {
        TABLE.iter().map(|(error, _)| *error)
    }

    /// The name of its constant in `portals3.h`.
    pub fn name(self) -> &'static str {
        // Names are ASCII.
        self.c_name().to_str().unwrap_or_default()
    }

    /// The name of its constant in `portals3.h`, for C.
    pub const fn c_name(self) -> &'static CStr {
        TABLE[self as usize - 1].1
    }
}

/// A return code that is neither `PTL_OK` nor an [`Error`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownCode(pub i32);

impl core::fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} is no error of portals3.h", self.0)
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

/// Who is wrong, and what.
impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::AcIndexInvalid => "the access control table has no such index",
            Self::EqDropped => {
                "the event queue was full and has lost events: make it larger, or read it sooner"
            }
            Self::EqEmpty => "no event is there: wait for one",
            Self::EqInvalid => "the handle names no event queue of this interface",
            Self::Fail => "the system or the environment failed; standard error says how",
            Self::HandleInvalid => "the handle names nothing that is in use",
            Self::IfaceInvalid => "there is no such interface",
            Self::MdIllegal => {
                "the memory descriptor, or the part of it, is wrong: memory, options, threshold, \
                 vector or queue"
            }
            Self::MdInvalid => "the memory descriptor is gone, or inactive",
            Self::MdInUse => {
                "operations are pending on the memory descriptor: wait for their events"
            }
            Self::MdNoUpdate => {
                "nothing was changed, since the event queue holds events or operations are \
                 pending: read the events, then try again"
            }
            Self::MeInvalid => "the handle names no match entry of this interface",
            Self::MeInUse => {
                "the match entry has a memory descriptor already, or operations are pending on it"
            }
            Self::MeListTooLong => "the match list is full: wait until entries are used",
            Self::NiInvalid => "the handle names no open interface",
            Self::NoInit => "the library isn't started in this process: call PtlInit",
            Self::NoSpace => "a limit of the interface or of memory is reached: release something",
            Self::PidInvalid => "the process identifier is taken or out of range",
            Self::ProcessInvalid => "the target is a wildcard, or no process",
            Self::PtFull => "every portal table index has match entries: unlink some",
            Self::PtIndexInvalid => "the portal table has no such index",
            Self::Segv => "an argument that must point to memory doesn't",
            Self::SrIndexInvalid => "there is no such status register",
            Self::Unknown => "an unknown error",
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
        for code in [0, 25, -1] {
            assert_eq!(Error::try_from(code), Err(UnknownCode(code)));
        }
    }
}
