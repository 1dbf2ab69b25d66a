//! A descriptor whose number is in the environment: `std` and `rustix` offer no safe
//! way to use it.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// A close-on-exec duplicate of the inherited descriptor `number`.
///
/// The inherited one stays open, so that another library of the process (an MPI,
/// say) may use it too.
///
/// # Errors
/// `EBADF` if `number` is not open.
pub(crate) fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::Error::from(rustix::io::Errno::BADF));
    }
    // SAFETY: `number` is not -1, and the borrow lives for the one system call
    // below, which answers EBADF when the descriptor is not open; nothing is
    // read, written or closed through the borrow.
    let inherited = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(rustix::io::fcntl_dupfd_cloexec(inherited, 3)?)
}
