//! The secret that only the processes of a job share.

use std::fmt::{self, Write as _};
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};

/// 32 random bytes, others for each job. Packets between nodes are
/// authenticated under it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Secret(String);

impl Secret {
    /// Creates a secret from random bytes of the system.
    ///
    /// # Errors
    /// The system returns no random bytes.
    pub(crate) fn draw() -> io::Result<Secret> {
        random_digits::<32>().map(Secret)
    }

    /// As 64 hexadecimal digits, for the job's processes alone.
    pub(crate) fn digits(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret(not shown)")
    }
}

/// `BYTES` random bytes, two hexadecimal digits each.
///
/// # Errors
/// The system returns no random bytes.
pub(crate) fn random_digits<const BYTES: usize>() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    let mut digits = String::with_capacity(2 * BYTES);
    for byte in bytes {
        let _ = write!(digits, "{byte:02x}");
    }
    Ok(digits)
}
