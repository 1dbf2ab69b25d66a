//! Which thread waits for the launcher of the process, as all do in a barrier of the job.
//!
//! The clients of launchers are other libraries (`libportals_job`, `libcnos`, an MPI), so the system is asked:
//! a thread that sleeps in a read of the socket that `PMI_FD` names waits for the launcher. Of PMIx, and of
//! `PMI_PORT`, the socket isn't known.

use crate::thread::own_thread;
use nix::libc::{SYS_read, SYS_recvfrom, SYS_recvmsg};
use std::fs::{read_dir, read_link, read_to_string};
use std::path::PathBuf;

/// Threads that are looked at, the oldest first: the core's lock is held meanwhile, and each takes some microseconds.
const MOST_THREADS: usize = 64;

/// Calls of the system that read from the descriptor that is their first argument.
const READS: [i64; 3] = [SYS_read, SYS_recvfrom, SYS_recvmsg];

/// A thread of this process that waits for the launcher.
pub(crate) fn thread_awaiting_launcher() -> Option<i32> {
    thread_reading(std::env::var("PMI_FD").ok()?.parse().ok()?)
}

/// A thread of this process that sleeps in a read of the descriptor, or of a duplicate of it.
fn thread_reading(descriptor: u32) -> Option<i32> {
    let file = open_file(descriptor)?;
    let threads = read_dir("/proc/self/task").ok()?;
    let mut threads = threads
        .take(MOST_THREADS)
        .filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok())
        .filter(|thread| *thread != own_thread());
    threads.find(|thread| {
        let call = read_to_string(format!("/proc/self/task/{thread}/syscall"));
        let read = call.ok().and_then(|call| descriptor_read_in(&call));
        read.and_then(open_file).is_some_and(|read| read == file)
    })
}

/// The system's name of what the descriptor refers to; of a socket, the same for all of its duplicates.
fn open_file(descriptor: u32) -> Option<PathBuf> {
    read_link(format!("/proc/self/fd/{descriptor}")).ok()
}

/// The descriptor that the call reads from, which is described as in `/proc/PID/syscall`: its number and its
/// arguments, or `running`.
fn descriptor_read_in(call: &str) -> Option<u32> {
    let mut words = call.split_ascii_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let first = words.next()?.strip_prefix("0x")?;
    let descriptor = u32::from_str_radix(first, 16).ok()?;
    READS.contains(&number).then_some(descriptor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::wait_until;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_that_reads_a_duplicate_of_the_launchers_socket_is_found_until_the_answer_comes() {
        let (mut launcher, inherited) = UnixStream::pair().expect("sockets can be made");
        let mut duplicate = inherited.try_clone().expect("there is room");
        let descriptor = u32::try_from(inherited.as_raw_fd()).expect("it is open");
        assert_eq!(thread_reading(descriptor), None);
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            scope.spawn(move || {
                sender.send(own_thread()).expect("it listens");
                duplicate.read_exact(&mut [0]).expect("a byte comes");
            });
            let reader = receiver.recv().expect("it has begun");
            wait_until("it reads", || thread_reading(descriptor) == Some(reader));
            launcher.write_all(&[0]).expect("it is open");
        });
        assert_eq!(thread_reading(descriptor), None);
    }

    #[test]
    fn a_call_that_reads_names_its_descriptor_and_others_none() {
        let read = format!("{SYS_read} 0xc 0x7f4af896a000 0x20000 0x0 0x0 0x0 0x7ffd 0x7f4a");
        assert_eq!(descriptor_read_in(&read), Some(12));
        let others = [
            "running".to_owned(),
            "-1 0x7ffd 0x7f4a".to_owned(),
            format!(
                "{} 0xc 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f4a",
                nix::libc::SYS_wait4
            ),
            format!("{SYS_read} 0xffffffffffffffff 0x0"),
        ];
        for call in others {
            assert_eq!(descriptor_read_in(&call), None, "{call}");
        }
    }
}
