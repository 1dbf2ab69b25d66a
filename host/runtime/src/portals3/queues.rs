//! The event queues of an interface: in the process, or shared with a client.

use crate::portals3::handlers::{Handler, HandlerCalls};
use crate::queue::{EventQueue, SLOTS};
use crate::tables::ChunkedTable;
use lintel_bridge::Taken3;
use lintel_types::portals3::{Error, Event, Result};
use lintel_types::{Handle, Kind, QueueIndex};
use std::sync::Arc;

/// The most events that a queue can be asked to hold.
pub const MAX_EVENTS: u64 = SLOTS;

/// Where the events of an interface are queued; a queue has the index of its handle. One
/// thread at a time writes.
pub trait EventQueues: Send {
    /// Opens a queue for `count` events, or for those that a handler takes.
    ///
    /// # Errors
    /// `NoSpace`
    fn begin(&mut self, queue: Handle, count: u64, handler: Option<Handler>) -> Result<()>;

    /// Closes a queue; its handle is stale from now on.
    fn end(&mut self, queue: Handle);

    /// Closes all queues.
    fn end_all(&mut self);

    /// Adds an event, or what becomes one. A full queue loses it.
    fn post<E>(&mut self, queue: QueueIndex, event: E)
    where
        Event: From<E>;

    /// Whether every event of a queue has been taken.
    fn is_empty(&self, queue: QueueIndex) -> bool;

    /// Of each open queue the index, the events in it, and how many it can hold.
    fn lengths(&self) -> Vec<(usize, usize, usize)>;

    /// Calls of handlers, which run here; none if they run in the owner's process.
    fn handlers(&mut self) -> Option<&mut HandlerCalls>;

    /// Whether a handler is to be called.
    fn has_calls(&self) -> bool;
}

/// Events that a queue has room for: programs count on the room that the reference leaves, a
/// power of two.
pub(crate) fn capacity(count: u64) -> u64 {
    count.clamp(LEAST_EVENTS, MAX_EVENTS).next_power_of_two()
}

/// Events that a queue has room for at least. Programs of the reference ask for 5, and count on
/// its progress, which pauses while the target takes no events; here nothing pauses.
const LEAST_EVENTS: u64 = 1024;

/// Events on the heap of the process, which callers take without the library's lock. They
/// outlive the interface, since a caller may still look; a handle of the past finds nothing.
pub(crate) struct LocalQueues {
    queues: ChunkedTable<EventQueue<{ Event::WORDS }>, CHUNK, { 65536 / CHUNK }>,
}

/// Queues in a chunk of the table.
const CHUNK: usize = 64;

impl LocalQueues {
    pub(crate) const fn new() -> LocalQueues {
        LocalQueues {
            queues: ChunkedTable::new(),
        }
    }

    /// An open queue.
    ///
    /// # Errors
    /// `EqInvalid`
    #[inline(always)]
    pub(crate) fn queue(&self, handle: Handle) -> Result<&EventQueue<{ Event::WORDS }>> {
        match self.queues.get(handle.index()) {
            Some(queue) if handle.is(Kind::EventQueue) && queue.ends.is(handle.0) => Ok(queue),
            _ => Err(Error::EqInvalid),
        }
    }

    #[inline(always)]
    fn at(&self, index: QueueIndex) -> &EventQueue<{ Event::WORDS }> {
        match self.queues.get(index.0) {
            Some(queue) => queue,
            None => self.queues.get_or_make(index.0),
        }
    }
}

impl EventQueue<{ Event::WORDS }> {
    /// Takes the next event.
    #[inline(always)]
    pub(crate) fn pop3(&self) -> Option<Taken3> {
        self.ends.pop3(&self.chunks)
    }

    /// The next event, which stays.
    pub(crate) fn peek3(&self) -> Option<Taken3> {
        self.ends.peek3(&self.chunks)
    }
}

/// The queues of a process with its own engine.
pub struct Queues {
    events: Arc<LocalQueues>,
    /// By the index that the engine gives.
    states: Vec<Option<State>>,
    handlers: HandlerCalls,
}

/// What the writer of a queue knows of it.
#[derive(Clone)]
struct State {
    capacity: usize,
    /// An event was lost since the last one.
    lost: bool,
    handler: Option<Handler>,
}

impl Queues {
    pub(crate) fn new(events: Arc<LocalQueues>) -> Queues {
        Queues {
            events,
            states: Vec::new(),
            handlers: HandlerCalls::default(),
        }
    }
}

impl EventQueues for Queues {
    fn begin(&mut self, queue: Handle, count: u64, handler: Option<Handler>) -> Result<()> {
        let index = QueueIndex(queue.index());
        let capacity = capacity(count);
        if self.states.len() <= index.position() {
            self.states.resize(index.position() + 1, None);
        }
        self.states[index.position()] = Some(State {
            capacity: capacity as usize,
            lost: false,
            handler,
        });
        self.events.at(index).ends.begin(queue.0, capacity);
        Ok(())
    }

    fn end(&mut self, queue: Handle) {
        let index = QueueIndex(queue.index());
        self.events.at(index).ends.end();
        if let Some(state) = self.states.get_mut(index.position()) {
            *state = None;
        }
    }

    fn end_all(&mut self) {
        self.events.queues.each(|queue| queue.ends.end());
        *self = Queues::new(self.events.clone());
    }

    #[inline(always)]
    fn post<E>(&mut self, index: QueueIndex, event: E)
    where
        Event: From<E>,
    {
        let Some(Some(state)) = self.states.get_mut(index.position()) else {
            return;
        };
        if let Some(handler) = &state.handler {
            *self.handlers.push(handler) = Event::from(event);
            return;
        }
        let queue = self.events.at(index);
        state.lost = !queue.ends.push3(&queue.chunks, event, state.lost);
    }

    fn is_empty(&self, index: QueueIndex) -> bool {
        self.events.at(index).ends.is_empty()
    }

    fn lengths(&self) -> Vec<(usize, usize, usize)> {
        let each = self.states.iter().enumerate();
        let length = |(index, state): (usize, &Option<State>)| {
            let capacity = state.as_ref()?.capacity;
            let free = self.events.at(QueueIndex(index as u16)).ends.free_slots();
            Some((index, capacity.saturating_sub(free), capacity))
        };
        each.filter_map(length).collect()
    }

    fn handlers(&mut self) -> Option<&mut HandlerCalls> {
        Some(&mut self.handlers)
    }

    #[inline]
    fn has_calls(&self) -> bool {
        self.handlers.is_due()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_types::InterfaceNumber;
    use lintel_types::portals3::{EventKind, MemoryDescriptor};

    fn queue(index: u16) -> (Handle, QueueIndex) {
        let [number, ..] = InterfaceNumber::ALL;
        let handle = Handle::new(Kind::EventQueue, number, 1, index);
        (handle, QueueIndex(index))
    }

    fn event(number: u32) -> Event {
        Event {
            sequence: number,
            ..Event::new(
                EventKind::PutEnd,
                Handle::INVALID,
                MemoryDescriptor::default(),
            )
        }
    }

    #[test]
    fn a_full_queue_loses_the_newest_and_the_next_one_reports_it() {
        let events = Arc::new(LocalQueues::new());
        let (mut queues, (queue, index)) = (Queues::new(events.clone()), queue(2));
        queues.begin(queue, 2, None).expect("there is memory");
        let room = LEAST_EVENTS as u32;
        (0..=room).for_each(|number| queues.post(index, event(number)));
        assert_eq!(queues.lengths(), [(2, room as usize, room as usize)]);
        let read = events.queue(queue).expect("it is open");
        let shown = |taken: Taken3| (taken.event().sequence, taken.dropped);
        let next = || read.pop3().map(shown);
        (0..room).for_each(|number| assert_eq!(next(), Some((number, false))));
        assert_eq!(next(), None);
        queues.post(index, event(room + 1));
        assert_eq!(read.peek3().map(shown), Some((room + 1, true)));
        assert_eq!(next(), Some((room + 1, true)));
        assert!(queues.is_empty(index));
    }

    #[test]
    fn a_queue_that_has_ended_is_found_no_more_and_loses_events() {
        let events = Arc::new(LocalQueues::new());
        let (mut queues, (queue, index)) = (Queues::new(events.clone()), queue(0));
        queues.post(index, event(0));
        queues.begin(queue, 1, None).expect("there is memory");
        queues.end(queue);
        queues.post(index, event(1));
        assert_eq!(events.queue(queue).err(), Some(Error::EqInvalid));
        queues.begin(queue, 1, None).expect("there is memory");
        assert!(queues.is_empty(index));
        queues.end_all();
        assert_eq!(events.queue(queue).err(), Some(Error::EqInvalid));
    }
}
