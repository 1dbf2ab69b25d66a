//! The thread that sleeps on a network's descriptor while nobody else looks there.
//!
//! A doorbell in memory can't wake who sleeps on a socket, nor a datagram who
//! sleeps on a doorbell. So a process with a socket has a second sleeper. While
//! somebody polls it is parked: a datagram that wakes a thread for nothing costs its
//! sender more than the datagram.

use crate::core::{BATCH, Core};
use crate::library::{Library, LibraryRef};
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
    is_watching: bool,
}

impl Watcher {
    /// Has the descriptor watched from now on.
    #[inline]
    pub(crate) fn watch(&mut self) {
        if !self.is_watching {
            self.is_watching = true;
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
pub(crate) fn start<O: Owner>(library: &LibraryRef<O>) -> io::Result<()> {
    let descriptor = library.with_core(|core| {
        let descriptor = core.transports.nal.descriptor();
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
            is_watching: false,
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
    Yield,
    /// More has come than is handled at once: it is no longer in the socket.
    Continue,
}

/// Looks without a sleep while something is being sent.
const MAX_YIELDS: u32 = 256;

fn run<O: Owner>(library: &Library<O>, descriptor: &OwnedFd, end: &EventFd) {
    let mut seen = 0;
    let mut next = Next::Park;
    let mut yields = 0;
    loop {
        yields = if next == Next::Yield { yields + 1 } else { 0 };
        match next {
            Next::Park => std::thread::park(),
            Next::Continue => {}
            Next::Yield if yields <= MAX_YIELDS => std::thread::yield_now(),
            Next::Yield | Next::Watch => {
                yields = 0;
                if !readable(descriptor, end) {
                    return;
                }
            }
        }
        // Who closes doesn't wait for anything to come.
        let looked = library.with_core(|core| match core.closing {
            true => None,
            false => Some(service(core, &next, &mut seen)),
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
fn service<O: Owner>(core: &mut Core<O>, after: &Next, seen: &mut u64) -> Next {
    let parked = *after == Next::Park;
    if !parked {
        core.transports.nal.on_readable();
        if core.progress() >= BATCH {
            return Next::Continue;
        }
    }
    let polled = core.callers_asleep == 0 && core.polls != *seen;
    *seen = core.polls;
    let Some(watcher) = &mut core.watcher else {
        return Next::Park;
    };
    if !parked && polled && !core.transports.nal.is_idle() {
        // Whoever stops polling says so, and the helper looks meanwhile.
        watcher.is_watching = false;
        core.wake_helper();
        return Next::Park;
    }
    if !watcher.is_watching {
        return Next::Park;
    }
    let waits = core.transports.nal_has_queued();
    // To ask for what is due tells the network that somebody will sleep: libfabric's
    // descriptor stays readable else.
    if core.helper_oversleeps() {
        core.wake_helper();
    }
    if waits { Next::Yield } else { Next::Watch }
}
