//! How many queue pairs there are, and what they weigh.
//!
//! All processes talk to all on other nodes; a node's own talk through its memory. The
//! rules are those of the XRC seed and of connections by sockets alike: P processes, c a
//! node, N nodes, q receive queues.

use lintel_sim_kernel::Bytes;

use crate::Transport;
use crate::constants::{CONTEXT, RECEIVE_BUFFERS, SEND_QUEUE};

/// A job: processes, on nodes of so many each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// P: processes of the whole job.
    pub processes: u64,
    /// c: processes on each node.
    pub per_node: u64,
    /// q: receive queues of different buffer sizes. Under RC each takes queue pairs of its
    /// own.
    pub receive_queues: u64,
}

impl Job {
    /// P processes, c on each node, with one receive queue.
    ///
    /// # Panics
    ///
    /// If c is zero, or P is none of its multiples.
    pub fn new(processes: u64, per_node: u64) -> Self {
        let divides = per_node > 0 && processes % per_node == 0;
        assert!(divides, "{processes} processes, {per_node} a node");
        Job {
            processes,
            per_node,
            receive_queues: 1,
        }
    }

    /// Queue pairs that a process sends from.
    pub fn senders(&self, transport: Transport) -> u64 {
        let nodes = self.processes / self.per_node;
        match transport {
            Transport::Rc => self.receive_queues * (self.processes - self.per_node),
            Transport::Xrc => nodes - 1,
            Transport::Ud => 1,
        }
    }

    /// Queue pairs of a node that only receive.
    pub fn targets(&self, transport: Transport) -> u64 {
        let nodes = self.processes / self.per_node;
        match transport {
            Transport::Xrc => self.per_node * (nodes - 1),
            Transport::Rc | Transport::Ud => 0,
        }
    }

    /// Queue pairs of a node.
    pub fn of_node(&self, transport: Transport) -> u64 {
        self.per_node * self.senders(transport) + self.targets(transport)
    }

    /// Memory of a process for connections and receive queues, with its share of what
    /// belongs to the node.
    pub fn memory(&self, transport: Transport) -> Bytes {
        let senders = self.senders(transport) * (CONTEXT.0 + SEND_QUEUE.0);
        let targets = self.targets(transport) * CONTEXT.0 / self.per_node;
        Bytes(senders + targets + self.receive_queues * RECEIVE_BUFFERS.0)
    }
}
