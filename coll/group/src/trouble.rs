//! What can go wrong.

use lintel_types::Error;
use std::fmt;

/// Why an operation, or a group, isn't.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The caller asks for what can't be; this tells what would be right.
    Caller(String),
    /// A member has died or can't be reached. The group is of no use any more.
    Dead {
        /// Its rank.
        rank: u32,
    },
    /// A message to this member failed there. The group is of no use any more.
    Lost,
    /// The group had trouble before, and can only be freed.
    Failed,
    /// No such request: it was waited for already, or is another group's.
    NoRequest,
    /// The environment has a value that isn't understood.
    Environment(String),
    /// The Portals library refused something.
    Portals(Error),
}

/// A call's result.
pub type Result<T> = std::result::Result<T, Trouble>;

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Portals(error)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Caller(what) | Trouble::Environment(what) => f.write_str(what),
            Trouble::Dead { rank } => write!(
                f,
                "rank {rank} has died or can't be reached: free the group and make one of those \
                 that are left"
            ),
            Trouble::Lost => f.write_str(
                "a message failed on its way into this process: its sender has died, or the \
                 memory is gone; free the group",
            ),
            Trouble::Failed => {
                f.write_str("the group has failed before, as an earlier call told: free it")
            }
            Trouble::NoRequest => {
                f.write_str("no such request: it has ended already, or it belongs to another group")
            }
            Trouble::Portals(error) => write!(f, "Portals: {error}"),
        }
    }
}

impl std::error::Error for Trouble {}
