//! What a node takes in while it is held: packets behind the one that it stopped at.

use std::collections::VecDeque;

use lintel_sim_kernel::SimTime;

/// The buffers of all nodes, in front of their receive engines.
pub(super) struct Fifos {
    /// Packets for which each has room; 0 if there are none.
    depth: usize,
    nodes: Vec<Fifo>,
}

/// A node's buffer.
#[derive(Clone, Default)]
pub(super) struct Fifo {
    /// Packets by number, with the time at which each is all there.
    packets: VecDeque<(u32, SimTime)>,
    /// The node takes nothing out of it.
    pub(super) is_held: bool,
    /// Its first packet is being taken out.
    pub(super) is_draining: bool,
}

impl Fifos {
    pub(super) fn new(nodes: u32, depth: u32) -> Self {
        let count = if depth == 0 { 0 } else { nodes as usize };
        Fifos {
            depth: depth as usize,
            nodes: vec![Fifo::default(); count],
        }
    }

    /// A node's buffer, if nodes have one.
    #[inline]
    pub(super) fn of(&mut self, node: u32) -> Option<&mut Fifo> {
        self.nodes.get_mut(node as usize)
    }

    /// Whether a node's buffer has no room.
    pub(super) fn is_full(&self, node: u32) -> bool {
        self.nodes[node as usize].packets.len() >= self.depth
    }
}

impl Fifo {
    /// Whether a packet that comes now goes into it, behind others or because the node is
    /// held.
    pub(super) fn is_used(&self) -> bool {
        self.is_held || self.is_draining || !self.packets.is_empty()
    }

    pub(super) fn push(&mut self, packet: u32, there: SimTime) {
        self.packets.push_back((packet, there));
    }

    /// The same for a packet that others overtook on their way, each of which is there later.
    pub(super) fn insert(&mut self, packet: u32, there: SimTime) {
        let place = self.packets.partition_point(|&(_, other)| other <= there);
        self.packets.insert(place, (packet, there));
    }

    /// The packet that is taken out next, and when it is all there.
    pub(super) fn first(&self) -> Option<(u32, SimTime)> {
        self.packets.front().copied()
    }

    pub(super) fn pop(&mut self) -> Option<u32> {
        self.packets.pop_front().map(|(packet, _)| packet)
    }
}
