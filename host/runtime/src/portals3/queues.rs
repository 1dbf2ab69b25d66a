//! The event queues of an interface: in the process, or shared with a client.

use crate::portals3::handlers::{Handler, HandlerCalls};
use lintel_types::portals3::{Event, Result};
use lintel_types::{Handle, QueueIndex};
use std::collections::VecDeque;

/// The most events that a queue can be asked to hold.
pub const MAX_EVENTS: u64 = 1 << 24;

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

    /// Adds an event. A full queue loses it.
    fn post(&mut self, queue: QueueIndex, event: &Event);

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
    count.clamp(1, MAX_EVENTS).next_power_of_two()
}

/// On the heap of the process.
#[derive(Default)]
pub struct Queues {
    queues: Vec<Option<Queue>>,
    handlers: HandlerCalls,
}

struct Queue {
    /// Each with whether others before it were lost.
    events: VecDeque<(Event, bool)>,
    capacity: usize,
    /// An event was lost since the last one.
    lost: bool,
    handler: Option<Handler>,
}

impl EventQueues for Queues {
    fn begin(&mut self, queue: Handle, count: u64, handler: Option<Handler>) -> Result<()> {
        let index = QueueIndex(queue.index());
        if self.queues.len() <= index.position() {
            self.queues.resize_with(index.position() + 1, || None);
        }
        self.queues[index.position()] = Some(Queue {
            events: VecDeque::new(),
            capacity: capacity(count) as usize,
            lost: false,
            handler,
        });
        Ok(())
    }

    fn end(&mut self, queue: Handle) {
        if let Some(queue) = self.queues.get_mut(queue.index() as usize) {
            *queue = None;
        }
    }

    fn end_all(&mut self) {
        *self = Queues::default();
    }

    #[inline]
    fn post(&mut self, index: QueueIndex, event: &Event) {
        let Some(Some(queue)) = self.queues.get_mut(index.position()) else {
            return;
        };
        if let Some(handler) = &queue.handler {
            return self.handlers.push(handler, *event);
        }
        if queue.events.len() >= queue.capacity {
            queue.lost = true;
            return;
        }
        let lost = std::mem::take(&mut queue.lost);
        queue.events.push_back((*event, lost));
    }

    fn is_empty(&self, index: QueueIndex) -> bool {
        let queue = self.queues.get(index.position()).and_then(Option::as_ref);
        queue.is_none_or(|queue| queue.events.is_empty())
    }

    fn lengths(&self) -> Vec<(usize, usize, usize)> {
        let each = self.queues.iter().enumerate();
        let length = |(index, queue): (usize, &Option<Queue>)| {
            let queue = queue.as_ref()?;
            Some((index, queue.events.len(), queue.capacity))
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

impl Queues {
    fn get_mut(&mut self, index: QueueIndex) -> Option<&mut Queue> {
        self.queues.get_mut(index.position())?.as_mut()
    }

    /// Takes the next event, and whether others before it were lost.
    #[inline]
    pub(crate) fn pop(&mut self, index: QueueIndex) -> Option<(Event, bool)> {
        self.get_mut(index)?.events.pop_front()
    }

    /// The next event, which stays.
    pub(crate) fn peek(&mut self, index: QueueIndex) -> Option<(Event, bool)> {
        self.get_mut(index)?.events.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_types::portals3::{EventKind, MemoryDescriptor};
    use lintel_types::{InterfaceNumber, Kind};

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
        let (mut queues, (queue, index)) = (Queues::default(), queue(2));
        queues.begin(queue, 2, None).expect("there is memory");
        (0..3).for_each(|number| queues.post(index, &event(number)));
        let mut next = || {
            queues
                .pop(index)
                .map(|(event, lost)| (event.sequence, lost))
        };
        assert_eq!(next(), Some((0, false)));
        assert_eq!(next(), Some((1, false)));
        assert_eq!(next(), None);
        queues.post(index, &event(3));
        assert_eq!(queues.peek(index), Some((event(3), true)));
        assert_eq!(queues.pop(index), Some((event(3), true)));
        assert!(queues.is_empty(index));
    }

    #[test]
    fn events_of_a_queue_that_has_ended_are_lost() {
        let (mut queues, (queue, index)) = (Queues::default(), queue(0));
        queues.post(index, &event(0));
        queues.begin(queue, 1, None).expect("there is memory");
        queues.end(queue);
        queues.post(index, &event(1));
        assert_eq!(queues.pop(index), None);
    }
}
