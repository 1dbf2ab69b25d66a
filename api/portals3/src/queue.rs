//! Event queues.

use crate::interface::Interface;
use lintel_runtime::{Taken3, process3};
use lintel_types::Handle;
use lintel_types::portals3::{EQ_NONE, Error, Event, Result};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// An event queue (PtlEQAlloc). Clones are the same queue; each event goes to one reader.
///
/// ```
/// use portals33::*;
/// use std::time::Duration;
/// # let portals = Portals::init()?;
/// # let interface = Interface::open(&portals, Options::default())?;
/// let queue = EventQueue::alloc(&interface, 8)?;
/// assert!(queue.get()?.is_none());
/// assert!(queue.poll(Duration::from_millis(1))?.is_none());
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
        let _ = process3().queue_free3(self.handle);
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
    /// `NoSpace` beyond `max_eqs`, or for a count that is too large.
    pub fn alloc(interface: &Interface, count: u64) -> Result<EventQueue> {
        let handle = process3().queue_alloc(interface.handle(), count, None)?;
        Ok(EventQueue::new(handle, interface))
    }

    /// A queue that keeps no event: `handler` is called with each as soon as it is complete, by a
    /// thread of the library or inside a call. It mustn't wait, nor open or close an interface.
    ///
    /// ```
    /// use portals33::*;
    /// use std::sync::mpsc;
    /// # let portals = Portals::init()?;
    /// # let interface = Interface::open(&portals, Options::default())?;
    /// let (sender, kinds) = mpsc::channel();
    /// let queue = EventQueue::with_handler(&interface, move |event| {
    ///     let _ = sender.send(event.kind);
    /// })?;
    /// let source = MemoryDescriptor::bind(&interface, DescriptorSpec {
    ///     queue: Some(queue),
    ///     ..DescriptorSpec::default()
    /// })?;
    /// source.put(Put { target: Target::new(interface.id()?, 0), ..Put::default() })?;
    /// assert_eq!(kinds.recv(), Ok(EventKind::SendStart));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `NoSpace` beyond `max_eqs`.
    pub fn with_handler(
        interface: &Interface,
        handler: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<EventQueue> {
        let handle = process3().queue_alloc(interface.handle(), 0, Some(Arc::new(handler)))?;
        Ok(EventQueue::new(handle, interface))
    }

    fn new(handle: Handle, interface: &Interface) -> EventQueue {
        let interface = interface.clone();
        EventQueue {
            queue: Arc::new(Queue { handle, interface }),
        }
    }

    /// The next event, if one is there (PtlEQGet).
    ///
    /// # Errors
    /// `NoInit` in a fork's child.
    #[inline]
    pub fn get(&self) -> Result<Option<Taken>> {
        found(process3().queue_get(self.handle(), |taken| taken))
    }

    /// The next event, if one is there; it stays in the queue (PtlEQPeek).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn peek(&self) -> Result<Option<Taken>> {
        found(process3().queue_peek(self.handle()))
    }

    /// Waits for the next event (PtlEQWait).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[inline]
    pub fn wait(&self) -> Result<Taken> {
        let (taken, _) = process3().queue_poll(&[self.handle()], FOREVER)?;
        Ok(Taken::from(taken))
    }

    /// Waits for the next event, at most so long (PtlEQPoll).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn poll(&self, timeout: Duration) -> Result<Option<Taken>> {
        Ok(EventQueue::poll_any(&[self], timeout)?.map(|(_, taken)| taken))
    }

    /// Waits for an event on any of several queues, at most so long; returns which one it was
    /// (PtlEQPoll).
    ///
    /// # Errors
    /// As [`get`](Self::get); `EqInvalid` for no queue.
    pub fn poll_any(queues: &[&EventQueue], timeout: Duration) -> Result<Option<(usize, Taken)>> {
        let handles: Vec<Handle> = queues.iter().map(|queue| queue.handle()).collect();
        match process3().queue_poll(&handles, milliseconds(timeout)) {
            Ok((taken, which)) => Ok(Some((which, Taken::from(taken)))),
            Err(Error::EqEmpty) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The interface that it was made on.
    pub fn interface(&self) -> &Interface {
        &self.queue.interface
    }

    fn handle(&self) -> Handle {
        self.queue.handle
    }

    /// The queue's handle, or that of none.
    pub(crate) fn handle_of(queue: Option<&EventQueue>) -> Handle {
        queue.map_or(EQ_NONE, EventQueue::handle)
    }
}

impl From<Taken3> for Taken {
    #[inline]
    fn from(taken: Taken3) -> Taken {
        Taken {
            event: taken.event(),
            dropped: taken.dropped,
        }
    }
}

#[inline]
fn found(taken: Result<Taken3>) -> Result<Option<Taken>> {
    match taken {
        Ok(taken) => Ok(Some(Taken::from(taken))),
        Err(Error::EqEmpty) => Ok(None),
        Err(error) => Err(error),
    }
}

/// `PTL_TIME_FOREVER`: a timeout in milliseconds that never ends.
const FOREVER: u32 = u32::MAX;

/// In the specification's unit, not shorter than asked for.
fn milliseconds(timeout: Duration) -> u32 {
    let whole = timeout.as_nanos().div_ceil(1_000_000);
    u32::try_from(whole).unwrap_or(FOREVER).min(FOREVER - 1)
}
