//! The two ways out of a NIC: the TX engine's queue of commands, and PIO.

use std::collections::VecDeque;

/// A message for the TX engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Transmission {
    pub(crate) ticket: u64,
    /// The node that it is for.
    pub(crate) to: u32,
    /// Commands that it takes.
    pub(crate) commands: u64,
}

/// The TX engine's commands, and the messages that wait for room among them.
///
/// A message whose commands don't all fit gets the rest fed while it goes out, so
/// it counts for what there is.
#[derive(Debug)]
pub(crate) struct TxQueue {
    room: u64,
    capacity: u64,
    most: u64,
    fed: VecDeque<Transmission>,
    waiting: VecDeque<Transmission>,
}

impl TxQueue {
    pub(crate) fn new(capacity: u64) -> Self {
        TxQueue {
            room: capacity,
            capacity,
            most: 0,
            fed: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }

    pub(crate) fn push(&mut self, transmission: Transmission) {
        self.waiting.push_back(transmission);
    }

    /// The next message that finds room; its commands are in the queue then.
    pub(crate) fn feed_next(&mut self) -> Option<Transmission> {
        let next = *self.waiting.front()?;
        let needed = next.commands.min(self.capacity);
        if needed > self.room {
            return None;
        }
        self.room -= needed;
        self.most = self.most.max(self.capacity - self.room);
        self.waiting.pop_front();
        self.fed.push_back(next);
        Some(next)
    }

    /// The oldest message has left. Gives the commands that had to be fed late.
    pub(crate) fn retire(&mut self, ticket: u64) -> u64 {
        let done = self.fed.pop_front().expect("what leaves was fed");
        assert_eq!(done.ticket, ticket, "the TX engine keeps order");
        let held = done.commands.min(self.capacity);
        self.room += held;
        done.commands - held
    }

    /// The node to which a message is on its way out.
    pub(crate) fn busy_with(&self) -> Option<u32> {
        self.fed.front().map(|transmission| transmission.to)
    }

    /// The most commands that it ever held.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }
}

/// The PIO path: a few packets of the firmware's own.
#[derive(Debug)]
pub(crate) struct PioQueue<T> {
    capacity: usize,
    under_way: usize,
    most: usize,
    waiting: VecDeque<(u32, T)>,
}

impl<T> PioQueue<T> {
    /// As many as there are commands, and as fit in the buffer.
    pub(crate) fn new(commands: u64, buffer: u64, packet: u64) -> Self {
        let capacity = commands.min(buffer / packet.max(1)).max(1);
        PioQueue {
            capacity: usize::try_from(capacity).unwrap_or(usize::MAX),
            under_way: 0,
            most: 0,
            waiting: VecDeque::new(),
        }
    }

    pub(crate) fn push(&mut self, to: u32, item: T) {
        self.waiting.push_back((to, item));
    }

    /// The next one that may go: there is room, and it wouldn't come into the
    /// middle of the TX engine's message to the same node.
    pub(crate) fn start_next(&mut self, busy_with: Option<u32>) -> Option<T> {
        if self.under_way == self.capacity {
            return None;
        }
        let may_go = |(to, _): &(u32, T)| Some(*to) != busy_with;
        let at = self.waiting.iter().position(may_go)?;
        self.under_way += 1;
        self.most = self.most.max(self.under_way);
        self.waiting.remove(at).map(|(_, item)| item)
    }

    pub(crate) fn retire(&mut self) {
        self.under_way -= 1;
    }

    /// The most packets that it ever held.
    pub(crate) fn most(&self) -> usize {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transmission(ticket: u64, commands: u64) -> Transmission {
        Transmission {
            ticket,
            to: 1,
            commands,
        }
    }

    #[test]
    fn a_full_tx_queue_makes_the_next_message_wait() {
        let mut queue = TxQueue::new(31);
        for ticket in 0..11 {
            queue.push(transmission(ticket, 3));
        }
        assert_eq!(std::iter::from_fn(|| queue.feed_next()).count(), 10);
        assert_eq!(queue.most(), 30);
        assert_eq!(queue.retire(0), 0);
        assert_eq!(queue.feed_next(), Some(transmission(10, 3)));
    }

    #[test]
    fn a_message_longer_than_the_tx_queue_is_fed_while_it_goes_out() {
        let mut queue = TxQueue::new(31);
        queue.push(transmission(7, 258));
        assert_eq!(queue.feed_next(), Some(transmission(7, 258)));
        assert_eq!((queue.most(), queue.retire(7)), (31, 227));
    }

    #[test]
    fn pio_never_goes_into_the_middle_of_a_message_to_the_same_node() {
        let mut pio = PioQueue::new(4, 256, 64);
        pio.push(1, "to 1");
        pio.push(2, "to 2");
        assert_eq!(pio.start_next(Some(1)), Some("to 2"));
        assert_eq!(pio.start_next(Some(1)), None);
        assert_eq!(pio.start_next(None), Some("to 1"));
    }

    #[test]
    fn pio_holds_four_packets() {
        let mut pio = PioQueue::new(4, 256, 64);
        (0..6).for_each(|n| pio.push(9, n));
        assert_eq!(std::iter::from_fn(|| pio.start_next(None)).count(), 4);
        pio.retire();
        assert_eq!((pio.start_next(None), pio.most()), (Some(4), 4));
    }
}
