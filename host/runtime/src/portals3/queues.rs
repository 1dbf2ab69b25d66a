//! The event queues of an interface.

use crate::portals3::handlers::{Handler, HandlerCalls};
use lintel_types::QueueIndex;
use lintel_types::portals3::Event;
use std::collections::VecDeque;

/// The most events that a queue can be asked to hold.
pub const MAX_EVENTS: u64 = 1 << 24;

/// By the index that the engine gives.
#[derive(Default)]
pub(crate) struct Queues {
    queues: Vec<Option<Queue>>,
    pub(crate) handlers: HandlerCalls,
}

struct Queue {
    /// Each with whether others before it were lost.
    events: VecDeque<(Event, bool)>,
    capacity: usize,
    /// An event was lost since the last one.
    lost: bool,
    handler: Option<Handler>,
}

impl Queues {
    /// Opens a queue for `count` events, or for those that a handler takes.
    pub(crate) fn begin(&mut self, index: QueueIndex, count: u64, handler: Option<Handler>) {
        if self.queues.len() <= index.position() {
            self.queues.resize_with(index.position() + 1, || None);
        }
        self.queues[index.position()] = Some(Queue {
            events: VecDeque::new(),
            // Programs count on the room that the reference leaves: a power of two.
            capacity: count.clamp(1, MAX_EVENTS).next_power_of_two() as usize,
            lost: false,
            handler,
        });
    }

    pub(crate) fn end(&mut self, index: QueueIndex) {
        if let Some(queue) = self.queues.get_mut(index.position()) {
            *queue = None;
        }
    }

    fn get_mut(&mut self, index: QueueIndex) -> Option<&mut Queue> {
        self.queues.get_mut(index.position())?.as_mut()
    }

    /// Adds an event. A full queue loses it.
    #[inline]
    pub(crate) fn post(&mut self, index: QueueIndex, event: &Event) {
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

    pub(crate) fn is_empty(&self, index: QueueIndex) -> bool {
        let queue = self.queues.get(index.position()).and_then(Option::as_ref);
        queue.is_none_or(|queue| queue.events.is_empty())
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

    /// How many events wait in a queue, and how many it can hold.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let each = self.queues.iter().enumerate();
        each.filter_map(|(index, queue)| {
            let queue = queue.as_ref()?;
            Some((index, queue.events.len(), queue.capacity))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_types::Handle;
    use lintel_types::portals3::{EventKind, MemoryDescriptor};

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
        let (mut queues, index) = (Queues::default(), QueueIndex(2));
        queues.begin(index, 2, None);
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
        let (mut queues, index) = (Queues::default(), QueueIndex(0));
        queues.post(index, &event(0));
        queues.begin(index, 1, None);
        queues.end(index);
        queues.post(index, &event(1));
        assert_eq!(queues.pop(index), None);
    }
}
