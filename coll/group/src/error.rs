//! The errors of groups.

use lintel_types::Error as PortalsError;
use std::fmt;

/// Why an operation, or the creation of a group, failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The call is invalid; this says what is wrong and what would be right.
    InvalidArgument(String),
    /// A process has failed or can't be reached (MPI_ERR_PROC_FAILED). The group can only be
    /// freed.
    ProcFailed {
        /// Its rank in the group.
        rank: u32,
    },
    /// A process exists, but has given up creating the group, or hasn't begun within
    /// [`Spec::create_timeout`](crate::Spec::create_timeout).
    NotCreated {
        /// Its rank in the group.
        rank: u32,
    },
    /// A message to this process failed. The group can only be freed.
    MessageFailed,
    /// An earlier call failed: the group can only be freed (MPI_ERR_REVOKED).
    Revoked,
    /// No such request: it has completed, or it is another group's (MPI_ERR_REQUEST).
    InvalidRequest,
    /// An environment variable has an invalid value.
    Environment(String),
    /// The Portals library returned an error.
    Portals(PortalsError),
}

/// What a group's functions return: see [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl From<PortalsError> for Error {
    fn from(error: PortalsError) -> Self {
        Error::Portals(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::InvalidArgument(what) | Error::Environment(what) => f.write_str(what),
            Error::ProcFailed { rank } => write!(
                f,
                "rank {rank} has failed or can't be reached: free the group and create one of the \
                 remaining processes"
            ),
            Error::NotCreated { rank } => write!(
                f,
                "rank {rank} has given up creating the group, or hasn't called within \
                 PTLCOLL_CREATE_TIMEOUT"
            ),
            Error::MessageFailed => f.write_str(
                "a message to this process failed: its sender has failed, or the memory is gone; free \
                 the group",
            ),
            Error::Revoked => {
                f.write_str("an earlier call reported that the group failed: free it")
            }
            Error::InvalidRequest => {
                f.write_str("no such request: it has completed, or it belongs to another group")
            }
            Error::Portals(error) => write!(f, "Portals: {error}"),
        }
    }
}

impl std::error::Error for Error {}
