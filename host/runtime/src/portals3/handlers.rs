//! Handlers of event queues (section 3.11.6), which run without the lock.

use crate::protocol::Deferred;
use lintel_types::portals3::Event;
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
    pub(crate) fn push(&mut self, handler: &Handler, event: Event) {
        self.waiting.push_back((handler.clone(), event));
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
