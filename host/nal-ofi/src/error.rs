//! Why libfabric can't be used.

use std::fmt;
use std::io;

/// What [`OfiNal::open`](crate::OfiNal::open) reports if it fails.
#[derive(Debug)]
pub enum OpenError {
    /// The library isn't there; the words are the loader's.
    NoLibrary(String),
    /// The library is older than what is declared here: major and minor version.
    TooOld(u32, u32),
    /// No provider does what is needed.
    NoProvider {
        /// The provider that was asked for by name.
        wanted: Option<String>,
        /// The names of those that libfabric has.
        present: Vec<String>,
    },
    /// Another process has that process identifier.
    InUse(u32),
    /// The system has no process identifier left.
    NoneFree,
    /// libfabric refused a call.
    Refused {
        /// The call's name in libfabric.
        call: &'static str,
        /// libfabric's error number, positive.
        code: i32,
        /// libfabric's text for it.
        why: String,
    },
    /// A system call failed; the error has its number.
    System(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NoLibrary(why) => write!(
                f,
                "there is no libfabric on this machine ({why}): install the package libfabric1 \
                 (Debian, Ubuntu) or libfabric (Fedora, RHEL, SUSE), or name the folder of your \
                 own libfabric.so.1 in LD_LIBRARY_PATH; or leave ofi out of PTL_NAL"
            ),
            OpenError::TooOld(major, minor) => write!(
                f,
                "libfabric {major}.{minor} is too old: 1.17 is the first that serves; install a \
                 newer one, or name its folder in LD_LIBRARY_PATH"
            ),
            OpenError::NoProvider { wanted, present } => no_provider(f, wanted.as_deref(), present),
            OpenError::InUse(pid) => write!(
                f,
                "another process has process identifier {pid} on this node (or another program \
                 its port): choose another, or PTL_PID_ANY"
            ),
            OpenError::NoneFree => f.write_str("every process identifier is taken"),
            OpenError::Refused { call, why, .. } => write!(
                f,
                "libfabric refused {call}: {why}; FI_LOG_LEVEL=warn makes it say more"
            ),
            OpenError::System(error) => write!(f, "the system refused: {error}"),
        }
    }
}

fn no_provider(
    f: &mut fmt::Formatter<'_>,
    wanted: Option<&str>,
    present: &[String],
) -> fmt::Result {
    match wanted {
        Some(name) => write!(
            f,
            "libfabric has no provider {name:?} with reliable datagrams and remote reads at this \
             address"
        )?,
        None => f.write_str(
            "libfabric has no provider with reliable datagrams and remote reads at this address",
        )?,
    }
    if present.is_empty() {
        f.write_str("; it has none at all here: see what fi_info says")
    } else {
        let names = present.join(", ");
        write!(
            f,
            "; there are: {names}. Name one in PTL_OFI_PROVIDER, or none"
        )
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        OpenError::System(error)
    }
}

impl From<rustix::io::Errno> for OpenError {
    fn from(error: rustix::io::Errno) -> Self {
        OpenError::System(error.into())
    }
}
