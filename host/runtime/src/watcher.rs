//! The thread that sleeps on a network's descriptor while nobody else looks there.
//!
//! A doorbell in memory can't wake who sleeps on a socket, nor a datagram who
//! sleeps on a doorbell. So a process with a socket has a second sleeper. While
//! a caller polls it is parked: a datagram that wakes a thread for nothing costs its
//! sender more than the datagram.

use crate::core::{BATCH, Core};
use crate::library::{Library, LibraryRef};
use crate::owner::Owner;
use crate::thread::spawn;
use crate::wakeup::Watcher;
use lintel_nal::Wake;
use lintel_progress::{WatcherLook, WatcherNext};
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::os::fd::OwnedFd;

/// Starts the watcher of an open process, where its network has a descriptor.
pub(crate) fn start<O: Owner>(library: &LibraryRef<O>) -> io::Result<()> {
    let descriptor = library.with_core(|core| {
        let descriptor = core.transports.nal.descriptor();
        descriptor.map(|descriptor| descriptor.try_clone_to_owned())
    });
    let Some(descriptor) = descriptor.flatten().transpose()? else {
        return Ok(());
    };
    let end = Watcher::end_signal()?;
    let (pinned, ended) = (library.clone(), end.clone());
    let thread = spawn("lintel-net", move || run(&pinned, &descriptor, &ended))?;
    library.with_core(|core| core.wakeup.set_watcher(Watcher::new(thread, end)));
    Ok(())
}

fn run<O: Owner>(library: &Library<O>, descriptor: &OwnedFd, end: &OwnedFd) {
    let mut next = WatcherNext::Park;
    loop {
        match next {
            WatcherNext::Park => std::thread::park(),
            WatcherNext::Continue => {}
            WatcherNext::Yield => std::thread::yield_now(),
            WatcherNext::Watch => {
                if !readable(descriptor, end) {
                    return;
                }
            }
        }
        // Who closes doesn't wait for anything to come.
        let looked = library.with_core(|core| match core.wakeup.is_closing() {
            true => None,
            false => {
                library.count_looks(core);
                Some(service(core, next))
            }
        });
        match looked.flatten() {
            Some(then) => next = then,
            None => return,
        }
    }
}

/// Waits until something may have come; false where it is to end.
fn readable(descriptor: &OwnedFd, end: &OwnedFd) -> bool {
    let mut ends = [
        PollFd::new(descriptor, PollFlags::IN),
        PollFd::new(end, PollFlags::IN),
    ];
    // A signal ends it early; then the look finds nothing.
    let _ = poll(&mut ends, None);
    ends[1].revents().is_empty()
}

/// After a park, whether to watch; else takes what has come, and sends.
fn service<O: Owner>(core: &mut Core<O>, after: WatcherNext) -> WatcherNext {
    let look = look(core, after);
    let next = core.wakeup.watcher_looked(look);
    if matches!(next, WatcherNext::Watch | WatcherNext::Yield) {
        // To ask for what is due informs the network that a thread will sleep: libfabric's
        // descriptor stays readable else.
        if core.helper_oversleeps() {
            core.wakeup.wake_helper();
        }
    }
    next
}

fn look<O: Owner>(core: &mut Core<O>, after: WatcherNext) -> WatcherLook {
    if after != WatcherNext::Park {
        core.transports.nal.on_readable();
        if core.progress() >= BATCH {
            return WatcherLook::More;
        }
    }
    let queued = core.transports.flush();
    match after {
        WatcherNext::Park => WatcherLook::Unparked { queued },
        _ => WatcherLook::Polled {
            idle: core.transports.nal.is_idle(),
            queued,
        },
    }
}
