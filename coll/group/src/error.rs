//! What can go wrong.

use lintel_types::Error as PortalsError;
use std::fmt;

/// Why an operation, or a group, isn't.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The caller asks for what can't be; this tells what would be right.
    InvalidArgument(String),
    /// A member has died or can't be reached. The group is of no use any more.
    ProcFailed {
        /// Its rank.
        rank: u32,
    },
    /// A message to this member failed there. The group is of no use any more.
    MessageFailed,
    /// The group had trouble before, and can only be freed.
    Revoked,
    /// No such request: it was waited for already, or is another group's.
    InvalidRequest,
    /// The environment has a value that isn't understood.
    Environment(String),
    /// The Portals library refused something.
    Portals(PortalsError),
}

/// A call's result.
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
                "rank {rank} has died or can't be reached: free the group and make one of those \
                 that are left"
            ),
            Error::MessageFailed => f.write_str(
                "a message failed on its way into this process: its sender has died, or the \
                 memory is gone; free the group",
            ),
            Error::Revoked => {
                f.write_str("the group has failed before, as an earlier call told: free it")
            }
            Error::InvalidRequest => {
                f.write_str("no such request: it has ended already, or it belongs to another group")
            }
            Error::Portals(error) => write!(f, "Portals: {error}"),
        }
    }
}

impl std::error::Error for Error {}
