//! What can go wrong, and who is to blame.

use std::fmt;
use std::io;

use portals4_abi::CallError;

/// Why a command ended without its result.
#[derive(Debug)]
pub enum Error {
    /// Portals refused a call.
    Portals(CallError),
    /// Portals 3.3 refused a call.
    Portals3(portals33::Error),
    /// The system refused; `what` was being done.
    System {
        /// What was being done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// Nobody reads standard output any more.
    OutputClosed,
    /// The other process didn't come to a meeting point in time.
    PeerStalled,
    /// The results contradict what was sent.
    Wrong(String),
    /// The command line or a file asks for something that can't be.
    Usage(String),
}

/// The outcome of a step of a command.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Portals(error) => write!(f, "{error}"),
            Self::Portals3(error) => write!(f, "Portals 3.3: {error}"),
            Self::System { what, source } => write!(f, "{what}: {source}"),
            Self::OutputClosed => write!(f, "the reader of standard output has closed it"),
            Self::PeerStalled => write!(f, "the other process did not arrive in time"),
            Self::Wrong(what) => write!(f, "wrong result: {what}"),
            Self::Usage(what) => write!(f, "{what}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        Self::Portals(error)
    }
}

impl From<portals33::Error> for Error {
    fn from(error: portals33::Error) -> Self {
        Self::Portals3(error)
    }
}

/// Says what was being done when the system refused.
pub trait During<T> {
    /// Wraps the system's error.
    fn during(self, what: impl Into<String>) -> Result<T>;
}

impl<T, E: Into<io::Error>> During<T> for std::result::Result<T, E> {
    fn during(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|source| Error::System {
            what: what.into(),
            source: source.into(),
        })
    }
}
