//! Event queues.

use crate::interface::Interface;
use lintel_runtime::process;
use lintel_types::{Error, Event, Handle, Result};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// An event queue (PtlEQAlloc). Clones are the same queue; each event goes to one
/// reader.
///
/// ```
/// use portals4::*;
/// use std::time::Duration;
/// # let portals = Portals::init()?;
/// # let interface = Interface::open(&portals, Options::default())?;
/// let queue = EventQueue::alloc(&interface, 8)?;
/// assert!(queue.get()?.is_none());
/// assert!(queue.poll(Duration::from_millis(1))?.is_none());
///
/// // Linking an entry is an event.
/// let portal = PortalTableEntry::alloc(&interface, PortalSpec {
///     queue: Some(queue.clone()),
///     ..PortalSpec::default()
/// })?;
/// let spec = EntrySpec { user_ptr: 7, ..EntrySpec::default() };
/// let _entries = (Entry::append(&portal, spec.clone())?, Entry::append(&portal, spec)?);
/// for event in queue.events() {
///     let event = event?;
///     assert_eq!((event.kind, event.user_ptr), (EventKind::Link, 7));
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct EventQueue {
    queue: Arc<Queue>,
}

#[derive(Debug)]
struct Queue {
    handle: Handle,
    interface: Interface,
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Fails only if the library has been finalized before.
        let _ = process().queue_free(self.handle);
    }
}

/// An event that was taken from a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// The event; after a loss, the next one that was kept.
    pub event: Event,
    /// Whether others before it were lost, because the queue was full.
    pub dropped: bool,
}

impl Taken {
    fn of(taken: &lintel_runtime::Taken) -> Taken {
        Taken {
            event: taken.event(),
            dropped: taken.dropped,
        }
    }
}

impl Deref for Taken {
    type Target = Event;
    fn deref(&self) -> &Event {
        &self.event
    }
}

impl EventQueue {
    /// A queue that holds `count` events at least.
    ///
    /// # Errors
    /// `NoSpace` beyond `max_eqs`, or if there is no memory for so many events.
    pub fn alloc(interface: &Interface, count: u64) -> Result<EventQueue> {
        let handle = process().queue_alloc(interface.handle(), count)?;
        let interface = interface.clone();
        Ok(EventQueue {
            queue: Arc::new(Queue { handle, interface }),
        })
    }

    /// The next event, if one is there (PtlEQGet).
    ///
    /// # Errors
    /// `NoInit` in a fork's child.
    pub fn get(&self) -> Result<Option<Taken>> {
        match process().queue_get(self.handle()) {
            Ok((event, dropped)) => Ok(Some(Taken { event, dropped })),
            Err(Error::EqEmpty) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits for the next event (PtlEQWait).
    ///
    /// # Errors
    /// `Aborted` after [`Portals::abort`](crate::Portals::abort).
    pub fn wait(&self) -> Result<Taken> {
        process().queue_poll(&[self.handle()], FOREVER, |taken, _| Taken::of(&taken))
    }

    /// Waits for the next event, at most so long (PtlEQPoll).
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn poll(&self, timeout: Duration) -> Result<Option<Taken>> {
        Ok(EventQueue::poll_any(&[self], timeout)?.map(|(_, taken)| taken))
    }

    /// Waits for an event on any of several queues, at most so long; returns which
    /// one it was (PtlEQPoll).
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn poll_any(queues: &[&EventQueue], timeout: Duration) -> Result<Option<(usize, Taken)>> {
        let handles: Vec<Handle> = queues.iter().map(|queue| queue.handle()).collect();
        let take = |taken: lintel_runtime::Taken, which| (which, Taken::of(&taken));
        match process().queue_poll(&handles, milliseconds(timeout), take) {
            Ok(found) => Ok(Some(found)),
            Err(Error::EqEmpty) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The events that are there, until none is.
    pub fn events(&self) -> Events<'_> {
        Events { queue: self }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.queue.handle
    }

    /// The queue's handle, or that of none.
    pub(crate) fn handle_of(queue: Option<&EventQueue>) -> Handle {
        queue.map_or(Handle::EQ_NONE, EventQueue::handle)
    }

    /// The interface that it was made on.
    pub fn interface(&self) -> &Interface {
        &self.queue.interface
    }
}

/// Events of a queue as they come: [`EventQueue::events`].
#[derive(Debug)]
pub struct Events<'a> {
    queue: &'a EventQueue,
}

impl Iterator for Events<'_> {
    type Item = Result<Taken>;
    fn next(&mut self) -> Option<Result<Taken>> {
        self.queue.get().transpose()
    }
}

/// `PTL_TIME_FOREVER`: a timeout in milliseconds that never ends.
pub(crate) const FOREVER: u32 = u32::MAX;

/// In the specification's unit, not shorter than asked for.
pub(crate) fn milliseconds(timeout: Duration) -> u32 {
    let whole = timeout.as_nanos().div_ceil(1_000_000);
    u32::try_from(whole).unwrap_or(FOREVER).min(FOREVER - 1)
}
