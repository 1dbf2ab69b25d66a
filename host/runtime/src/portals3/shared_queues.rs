//! Event queues in the region that an agent shares with its client.

use crate::owner::Owner;
use crate::portals3::handlers::{Handler, HandlerCalls};
use crate::portals3::lifecycle::NUMBER;
use crate::portals3::queues::{EventQueues, capacity};
use lintel_bridge::{SharedTables, Tables};
use lintel_types::portals3::{Event, Result};
use lintel_types::{Handle, QueueIndex};

/// The queues of one client. It takes the events itself, and calls its handlers.
pub struct SharedQueues<O> {
    client: O,
    /// By the index that the engine gives.
    queues: Vec<Option<Queue>>,
}

#[derive(Clone, Copy)]
struct Queue {
    capacity: u64,
    /// An event was lost since the last one.
    lost: bool,
}

impl<O: Owner<Tables = SharedTables>> SharedQueues<O> {
    pub(crate) fn new(client: O) -> SharedQueues<O> {
        SharedQueues {
            client,
            queues: Vec::new(),
        }
    }

    fn tables(&self) -> &SharedTables {
        &self.client.tables()[NUMBER.position()]
    }
}

impl<O: Owner<Tables = SharedTables>> EventQueues for SharedQueues<O> {
    fn begin(&mut self, queue: Handle, count: u64, _: Option<Handler>) -> Result<()> {
        let (index, capacity) = (queue.index() as usize, capacity(count));
        self.tables().begin_queue3(queue, capacity)?;
        if self.queues.len() <= index {
            self.queues.resize(index + 1, None);
        }
        self.queues[index] = Some(Queue {
            capacity,
            lost: false,
        });
        Ok(())
    }

    fn end(&mut self, queue: Handle) {
        self.tables().end_queue(queue);
        if let Some(queue) = self.queues.get_mut(queue.index() as usize) {
            *queue = None;
        }
    }

    fn end_all(&mut self) {
        self.tables().end_all();
        self.queues.clear();
    }

    fn post<E>(&mut self, index: QueueIndex, event: E)
    where
        Event: From<E>,
    {
        let tables = &self.client.tables()[NUMBER.position()];
        if let Some(Some(queue)) = self.queues.get_mut(index.position()) {
            let posted = tables.post3(index, event, queue.lost);
            queue.lost = !posted;
        }
    }

    fn is_empty(&self, index: QueueIndex) -> bool {
        self.tables().is_empty3(index)
    }

    fn lengths(&self) -> Vec<(usize, usize, usize)> {
        let each = self.queues.iter().enumerate();
        let length = |(index, queue): (usize, &Option<Queue>)| {
            let capacity = queue.as_ref()?.capacity as usize;
            let free = self.tables().free_slots(QueueIndex(index as u16));
            Some((index, capacity.saturating_sub(free), capacity))
        };
        each.filter_map(length).collect()
    }

    fn handlers(&mut self) -> Option<&mut HandlerCalls> {
        None
    }

    fn has_calls(&self) -> bool {
        false
    }
}
