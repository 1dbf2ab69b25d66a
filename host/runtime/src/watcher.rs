//! The thread that sleeps on a network's descriptor while nobody else looks there.
//!
//! A doorbell in memory can't wake who sleeps on a socket, nor a datagram who
//! sleeps on a doorbell. So a process with a socket has a second sleeper. While
//! somebody polls it is parked: a datagram that wakes a thread for nothing costs its
//! sender more than the datagram.

use crate::core::{BATCH, Core};
use crate::library::{Held, Library};
use crate::owner::Owner;
use lintel_nal::Wake;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

/// The watcher, as the core knows it.
pub(crate) struct Watcher {
    thread: JoinHandle<()>,
    end: Arc<EventFd>,
    /// It sleeps on the descriptor, or is about to.
    watches: bool,
}

impl Watcher {
    /// Has the descriptor watched from now on.
    #[inline]
    pub(crate) fn watch(&mut self) {
        if !self.watches {
            self.watches = true;
            self.thread.thread().unpark();
        }
    }

    /// Ends the thread; to be called without the core's lock.
    pub(crate) fn end(self) {
        let _ = self.end.write(1);
        self.thread.thread().unpark();
        let _ = self.thread.join();
    }
}

/// Starts the watcher of an open process, where its network has a descriptor.
pub(crate) fn start<O: Owner>(library: &Held<O>) -> io::Result<()> {
    let descriptor = library.with_core(|core| {
        let descriptor = core.ways.nal.descriptor();
        descriptor.map(|descriptor| descriptor.try_clone_to_owned())
    });
    let Some(descriptor) = descriptor.flatten().transpose()? else {
        return Ok(());
    };
    let held = library.clone();
    let end = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?);
    let ended = end.clone();
    let thread = crate::helper::spawn("lintel-net", move || run(&held, &descriptor, &ended))?;
    library.with_core(|core| {
        core.watcher = Some(Watcher {
            thread,
            end,
            watches: false,
        });
    });
    Ok(())
}

/// What the watcher does next.
#[derive(PartialEq)]
enum Next {
    Park,
    Watch,
    /// What is being sent waits for acknowledgements: they are nearer than a sleep.
    Stay,
    /// More has come than is handled at once: it is no longer in the socket.
    GoOn,
}

/// Looks without a sleep while something is being sent.
const STAYS: u32 = 256;

fn run<O: Owner>(library: &Library<O>, descriptor: &OwnedFd, end: &EventFd) {
    let mut seen = 0;
    let mut next = Next::Park;
    let mut stays = 0;
    loop {
        stays = if next == Next::Stay { stays + 1 } else { 0 };
        match next {
            Next::Park => std::thread::park(),
            Next::GoOn => {}
            Next::Stay if stays <= STAYS => std::thread::yield_now(),
            Next::Stay | Next::Watch => {
                stays = 0;
                if !readable(descriptor, end) {
                    return;
                }
            }
        }
        // Who closes doesn't wait for anything to come.
        let looked = library.with_core(|core| match core.closing {
            true => None,
            false => Some(look(core, &next, &mut seen)),
        });
        match looked.flatten() {
            Some(then) => next = then,
            None => return,
        }
    }
}

/// Waits until something may have come; false where it is to end.
fn readable(descriptor: &OwnedFd, end: &EventFd) -> bool {
    let mut waits = [
        PollFd::new(descriptor.as_fd(), PollFlags::POLLIN),
        PollFd::new(end.as_fd(), PollFlags::POLLIN),
    ];
    // A signal ends it early: then there is nothing, and it is looked at for nothing.
    let _ = poll(&mut waits, PollTimeout::NONE);
    waits[1].any() != Some(true)
}

/// After a park, whether to watch; else takes what has come, and sends.
fn look<O: Owner>(core: &mut Core<O>, after: &Next, seen: &mut u64) -> Next {
    let parked = *after == Next::Park;
    if !parked {
        core.ways.nal.on_readable();
        if core.progress() >= BATCH {
            return Next::GoOn;
        }
    }
    let polled = core.callers_asleep == 0 && core.polls != *seen;
    *seen = core.polls;
    let Some(watcher) = &mut core.watcher else {
        return Next::Park;
    };
    if !parked && polled && !core.ways.nal.is_idle() {
        // Whoever stops polling says so, and the helper looks meanwhile.
        watcher.watches = false;
        core.wake_helper();
        return Next::Park;
    }
    if !watcher.watches {
        return Next::Park;
    }
    let waits = core.ways.nal_waits();
    // To ask for what is due tells the network that somebody will sleep: libfabric's
    // descriptor stays readable else.
    if core.oversleeps() {
        core.wake_helper();
    }
    if waits { Next::Stay } else { Next::Watch }
}
