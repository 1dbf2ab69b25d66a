//! Blocking operations of ranks on several nodes: in shared memory within each node, and by messages
//! only among the *leaders*, the lowest rank of each node.
//!
//! ```text
//!   an all-reduce        node 0        │      node 1
//!   1. shared reduce     0 ◀── 1, 2    │      3 ◀── 4
//!   2. all-reduce by messages:  0 ◀────┼────▶ 3
//!   3. shared broadcast  0 ──▶ 1, 2    │      3 ──▶ 4
//! ```
//!
//! A barrier is the same with a byte that says nothing. A broadcast begins with the shared one on its
//! root's node, a reduce ends there. So the network has a message between two nodes where it would have
//! one between every two of their ranks. Gathers and scatters go by messages among all ranks: their bytes
//! are as many either way.
//!
//! The leaders' messages have lanes of their own, behind those of the group, whose operations go on
//! meanwhile.

use crate::buffers::{Buffers, InPlace, Separate};
use crate::call::{Call, Reduction};
use crate::error::Result;
use crate::group::Group;
use crate::lane::Place;
use crate::messages::MessageOperations;
use crate::portals::{Combine, Portals};
use crate::shared::{SharedMemory, SharedOperations};
use crate::spec::Spec;
use lintel_claim::{Datatype, Operation};

/// Which ranks are on the same node: the same at all ranks.
pub(crate) struct Nodes {
    locations: Vec<Location>,
    /// The lowest rank of each node.
    leaders: Vec<u32>,
}

/// Where a rank is: the number of its node, and its rank among the node's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Location {
    node: u32,
    rank: u32,
}

/// The operations of a group on several nodes.
pub(crate) struct HierarchicalOperations<P: Portals> {
    nodes: Nodes,
    /// This rank's.
    own: Location,
    /// Among the ranks of this node.
    shared: SharedOperations,
    /// Among the leaders, if this is one.
    leaders: Option<MessageOperations<P>>,
    /// A node's result, at a rank that has no buffer for it.
    aside: Vec<u8>,
}

/// The leader among the ranks of its node.
const LEADER: u32 = 0;
/// Bytes that lie aside between operations.
const MOST_ASIDE: usize = 1 << 20;
/// What a barrier combines and broadcasts.
const ONE_BYTE: Reduction = Reduction {
    combine: Combine {
        operation: Operation::Bor,
        datatype: Datatype::Uint8,
    },
    count: 1,
};

impl Nodes {
    /// `nids` has the node of each rank.
    pub(crate) fn new(nids: &[u32]) -> Nodes {
        let mut known: Vec<(u32, u32)> = Vec::new();
        let mut leaders = Vec::new();
        let locations = nids.iter().zip(0..).map(|(nid, rank)| {
            let place = known.iter().position(|(known, _)| known == nid);
            let node = place.unwrap_or(known.len());
            if place.is_none() {
                known.push((*nid, 0));
                leaders.push(rank);
            }
            let on_node = &mut known[node].1;
            *on_node += 1;
            Location {
                node: node as u32,
                rank: *on_node - 1,
            }
        });
        Nodes {
            locations: locations.collect(),
            leaders,
        }
    }

    /// Whether operations need fewer messages so: there are several nodes, and one with several ranks.
    pub(crate) fn have_several_ranks(&self) -> bool {
        (2..self.locations.len()).contains(&self.leaders.len())
    }

    /// How many ranks are on that rank's node.
    pub(crate) fn ranks_beside(&self, rank: u32) -> usize {
        let node = self.locations[rank as usize].node;
        self.locations
            .iter()
            .filter(|location| location.node == node)
            .count()
    }
}

impl<P: Portals> HierarchicalOperations<P> {
    /// The lanes of a leader find messages from here on. `memory` is that of this node's ranks, and
    /// `of` the group's operations by messages.
    ///
    /// # Errors
    /// Those of Portals.
    pub(crate) fn new(
        portals: &P,
        nodes: Nodes,
        memory: SharedMemory,
        of: &MessageOperations<P>,
    ) -> Result<Self> {
        let own = nodes.locations[of.rank() as usize];
        let leaders = match own.rank {
            LEADER => {
                let process = |rank: &u32| of.processes()[*rank as usize];
                let spec = Spec {
                    processes: nodes.leaders.iter().map(process).collect(),
                    rank: own.node,
                    ..of.spec().clone()
                };
                let place = Place::of_leaders(of.processes().len() as u32);
                let region = of.region().clone();
                Some(MessageOperations::new(portals, region, spec, place)?)
            }
            _ => None,
        };
        Ok(HierarchicalOperations {
            nodes,
            own,
            shared: SharedOperations::new(memory, own.rank),
            leaders,
            aside: Vec::new(),
        })
    }

    /// Whether a call is carried out so.
    pub(crate) fn takes(call: Call) -> bool {
        !matches!(call, Call::Gather { .. } | Call::Scatter { .. })
    }

    /// Carries out an operation of so many bytes of each rank.
    pub(crate) fn run(
        &mut self,
        group: &mut Group<P>,
        (call, bytes): (Call, u64),
        buffers: &mut dyn Buffers,
    ) -> Result<()> {
        match call {
            Call::Barrier => self.barrier(group),
            Call::Broadcast { root, .. } => self.broadcast(group, (root, bytes), buffers),
            Call::Allreduce(reduction) => self.allreduce(group, (reduction, bytes), buffers),
            Call::Reduce { root, reduction } => {
                self.reduce(group, root, (reduction, bytes), buffers)
            }
            Call::Gather { .. } | Call::Scatter { .. } => unreachable!("they go by messages"),
        }
    }

    /// The operations among the leaders, if this is one.
    pub(crate) fn leaders(&mut self) -> Option<&mut MessageOperations<P>> {
        self.leaders.as_mut()
    }

    fn barrier(&mut self, group: &mut Group<P>) -> Result<()> {
        let mut byte = [0];
        let mut byte = InPlace::all(&mut byte);
        self.on_node(group, (reduce_to_leader(ONE_BYTE), 1), &mut byte)?;
        self.among_leaders(group, Call::Barrier, &mut byte)?;
        self.on_node(group, (broadcast(LEADER, 1), 1), &mut byte)
    }

    fn allreduce(
        &mut self,
        group: &mut Group<P>,
        (reduction, bytes): (Reduction, u64),
        buffers: &mut dyn Buffers,
    ) -> Result<()> {
        self.on_node(group, (reduce_to_leader(reduction), bytes), buffers)?;
        let mut result = InPlace::all(buffers.output(0..bytes as usize));
        self.among_leaders(group, Call::Allreduce(reduction), &mut result)?;
        self.on_node(group, (broadcast(LEADER, bytes), bytes), &mut result)
    }

    fn broadcast(
        &mut self,
        group: &mut Group<P>,
        (root, bytes): (u32, u64),
        buffers: &mut dyn Buffers,
    ) -> Result<()> {
        let from = self.nodes.locations[root as usize];
        match self.own == from {
            true => self.broadcast_from(group, (from, bytes), buffers),
            false => {
                // A leader gives to others what it has got.
                let mut got = InPlace::all(buffers.output(0..bytes as usize));
                self.broadcast_from(group, (from, bytes), &mut got)
            }
        }
    }

    fn broadcast_from(
        &mut self,
        group: &mut Group<P>,
        (from, bytes): (Location, u64),
        buffers: &mut dyn Buffers,
    ) -> Result<()> {
        // The leader of the root's node gets the bytes as all on that node do.
        let is_node_first = from.node == self.own.node && from.rank != LEADER;
        if is_node_first {
            self.on_node(group, (broadcast(from.rank, bytes), bytes), buffers)?;
        }
        self.among_leaders(group, broadcast(from.node, bytes), buffers)?;
        match is_node_first {
            true => Ok(()),
            false => self.on_node(group, (broadcast(LEADER, bytes), bytes), buffers),
        }
    }

    fn reduce(
        &mut self,
        group: &mut Group<P>,
        root: u32,
        (reduction, bytes): (Reduction, u64),
        buffers: &mut dyn Buffers,
    ) -> Result<()> {
        let (own, to) = (self.own, self.nodes.locations[root as usize]);
        let mut aside = std::mem::take(&mut self.aside);
        if own != to && (own.rank == LEADER || self.is_node_last(to)) {
            aside.resize(aside.len().max(bytes as usize), 0);
        }
        let on_node = (reduce_to_leader(reduction), bytes);
        if own == to && own.rank == LEADER {
            self.on_node(group, on_node, buffers)?;
        } else {
            let mut given = Separate {
                input: buffers.input(0..bytes as usize),
                output: &mut aside,
            };
            self.on_node(group, on_node, &mut given)?;
        }
        let result = match own == to {
            true => buffers.output(0..bytes as usize),
            false => &mut aside,
        };
        self.reduce_nodes(group, to, (reduction, bytes), result)?;
        aside.truncate(MOST_ASIDE);
        aside.shrink_to(MOST_ASIDE);
        self.aside = aside;
        Ok(())
    }

    /// Combines what is in `result` at the leaders; at `to` it is the result then.
    fn reduce_nodes(
        &mut self,
        group: &mut Group<P>,
        to: Location,
        (reduction, bytes): (Reduction, u64),
        result: &mut [u8],
    ) -> Result<()> {
        let (root, mut result) = (to.node, InPlace::all(result));
        self.among_leaders(group, Call::Reduce { root, reduction }, &mut result)?;
        match self.is_node_last(to) {
            true => self.on_node(group, (broadcast(LEADER, bytes), bytes), &mut result),
            false => Ok(()),
        }
    }

    /// Whether this node's ranks get the result of a reduce from their leader: one of them is the root.
    fn is_node_last(&self, to: Location) -> bool {
        self.own.node == to.node && to.rank != LEADER
    }

    /// Carries out an operation of so many bytes among the ranks of this node.
    fn on_node(
        &mut self,
        group: &mut Group<P>,
        call: (Call, u64),
        buffers: &mut dyn Buffers,
    ) -> Result<()> {
        let wait = &mut |is_first| group.on_vain_look(is_first);
        self.shared.run(call, buffers, wait)
    }

    /// Carries out an operation among the leaders, if this is one.
    fn among_leaders(
        &mut self,
        group: &mut Group<P>,
        call: Call,
        buffers: &mut dyn Buffers,
    ) -> Result<()> {
        match &mut self.leaders {
            Some(leaders) => group.run_beside(leaders, call, buffers),
            None => Ok(()),
        }
    }
}

fn reduce_to_leader(reduction: Reduction) -> Call {
    let root = LEADER;
    Call::Reduce { root, reduction }
}

fn broadcast(root: u32, bytes: u64) -> Call {
    Call::Broadcast { root, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leader_of_a_node_is_its_lowest_rank() {
        let nodes = Nodes::new(&[7, 9, 7, 3, 9]);
        assert_eq!(nodes.leaders, [0, 1, 3]);
        let locations: Vec<_> = nodes
            .locations
            .iter()
            .map(|it| (it.node, it.rank))
            .collect();
        assert_eq!(locations, [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1)]);
        assert_eq!([0, 3, 4].map(|rank| nodes.ranks_beside(rank)), [2, 1, 2]);
    }

    #[test]
    fn a_group_of_one_node_or_of_one_rank_on_each_has_no_use_for_leaders() {
        let have = |nids: &[u32]| Nodes::new(nids).have_several_ranks();
        assert!(!have(&[5]) && !have(&[5, 5, 5]) && !have(&[1, 2]) && !have(&[1, 2, 3]));
        assert!(have(&[1, 2, 1]) && have(&[1, 1, 2, 2]));
    }
}
