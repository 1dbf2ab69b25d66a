//! Waiting for descriptors.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// What to wait for: the caller's name for it, the descriptor, and reading or writing.
pub(crate) type Interest<'a, S> = (S, BorrowedFd<'a>, PollFlags);

/// Waits until one of `interests` is ready, at most `timeout`; returns those that are, in
/// the given order.
///
/// # Errors
/// A system call failed.
pub(crate) fn wait_for<S: Copy>(
    interests: &[Interest<'_, S>],
    timeout: Option<Duration>,
) -> io::Result<Vec<(S, PollFlags)>> {
    let mut fds: Vec<PollFd> = interests
        .iter()
        .map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags))
        .collect();
    let timeout = timeout.map(|left| {
        Timespec::try_from(left).unwrap_or(Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        })
    });
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let each = interests.iter().zip(&fds);
    let ready = each.filter(|(_, fd)| !fd.revents().is_empty());
    Ok(ready
        .map(|((source, ..), fd)| (*source, fd.revents()))
        .collect())
}

/// Whether a read from `fd` returns bytes, or the end, without waiting.
pub(crate) fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let ready = wait_for(&[((), fd, PollFlags::IN)], Some(Duration::ZERO));
    ready.is_ok_and(|ready| !ready.is_empty())
}
