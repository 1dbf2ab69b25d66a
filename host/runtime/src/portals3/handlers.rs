//! Handlers of event queues (section 3.11.6), which run without the lock.

use crate::protocol::Deferred;
use lintel_types::Handle;
use lintel_types::portals3::{Event, EventKind, MemoryDescriptor};
use std::collections::VecDeque;
use std::sync::Arc;

/// Called with each event of a queue, in order, one at a time.
pub type Handler = Arc<dyn Fn(Event) + Send + Sync>;

/// Events on their way to handlers.
#[derive(Default)]
pub struct HandlerCalls {
    waiting: VecDeque<(Handler, Event)>,
    /// A thread runs one now, and will take the next.
    running: bool,
}

impl HandlerCalls {
    /// Appends a call, and returns the place of its event. A caller that posts most events
    /// elsewhere has the fields of one in registers, and fills the place with them.
    #[cold]
    #[inline(never)]
    pub(crate) fn push(&mut self, handler: &Handler) -> &mut Event {
        let event = Event::new(
            EventKind::Unlink,
            Handle::INVALID,
            MemoryDescriptor::default(),
        );
        self.waiting.push_back((handler.clone(), event));
        let last = self.waiting.back_mut();
        &mut last.expect("it was just appended").1
    }

    pub(crate) fn is_due(&self) -> bool {
        !self.running && !self.waiting.is_empty()
    }

    pub(crate) fn begin(&mut self) -> Option<Deferred> {
        if self.running {
            return None;
        }
        let (handler, event) = self.waiting.pop_front()?;
        self.running = true;
        Some(Box::new(move || handler(event)))
    }

    pub(crate) fn end(&mut self) {
        self.running = false;
    }
}
