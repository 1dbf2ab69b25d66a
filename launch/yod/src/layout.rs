//! Which rank runs on which node, and the address of each node.

use std::ffi::OsString;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The nodes that a job runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Nodes {
    /// This machine, under the address that the ranks choose.
    #[default]
    Local,
    /// This machine as several virtual nodes, each with a loopback address.
    Virtual {
        /// How many; at least 1.
        count: usize,
        /// The first node's address; the others follow it.
        first: Ipv4Addr,
    },
    /// Other machines, reached through a launch agent such as ssh; those for which no rank
    /// is left aren't used.
    Hosts(Vec<Host>),
}

/// A machine that a launch agent reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name for the launch agent.
    pub name: String,
    /// The address by which the others reach its ranks.
    pub address: Ipv4Addr,
    /// How many ranks it takes. If no host says, all take as many; if some do, the
    /// others take one.
    pub slots: Option<usize>,
}

/// The order in which ranks are given to nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Map {
    /// Consecutive ranks share a node
    #[default]
    Block,
    /// Consecutive ranks go to consecutive nodes
    Cyclic,
}

/// The node and local number of every rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Layout {
    /// The address of each node; `None` if the ranks choose their own.
    pub(crate) addresses: Vec<Option<Ipv4Addr>>,
    /// The slot of each rank, by rank.
    pub(crate) slots: Vec<RankSlot>,
}

/// The node of a rank, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RankSlot {
    pub(crate) rank: usize,
    pub(crate) node: usize,
    /// Its number among the ranks of its node.
    pub(crate) local_rank: usize,
    /// How many ranks its node has.
    pub(crate) local_size: usize,
}

impl Layout {
    /// Places `ranks` ranks.
    ///
    /// # Errors
    /// No ranks, a node without a rank, a node without an address, too few slots.
    pub(crate) fn new(ranks: usize, nodes: &Nodes, map: Map) -> Result<Layout, Error> {
        if ranks == 0 {
            return Err(Error::NoRanks);
        }
        let (mut addresses, capacities) = match nodes {
            Nodes::Local => (vec![None], vec![ranks]),
            &Nodes::Virtual { count, first } => {
                let addresses = loopback_addresses(count, first)?;
                if count > ranks {
                    return Err(Error::TooManyNodes {
                        nodes: count,
                        ranks,
                    });
                }
                (addresses, shares(ranks, count))
            }
            Nodes::Hosts(hosts) => {
                let addresses = hosts.iter().map(|host| Some(host.address)).collect();
                (addresses, capacities_of(hosts, ranks)?)
            }
        };
        let nodes = nodes_of_ranks(ranks, capacities, map);
        addresses.truncate(nodes.iter().max().map_or(0, |last| last + 1));
        let slots = rank_slots(&nodes);
        Ok(Layout { addresses, slots })
    }

    /// The node of each rank.
    pub(crate) fn nodes_of_ranks(&self) -> Vec<usize> {
        self.slots.iter().map(|slot| slot.node).collect()
    }

    /// The environment variables from which a rank learns its slot.
    pub(crate) fn variables(&self, slot: &RankSlot) -> Vec<(OsString, OsString)> {
        // The local numbers are what MPICH's hydra sets beside PMI-1's own.
        let mut all: Vec<(OsString, OsString)> = [
            ("PMI_RANK", slot.rank),
            ("PMI_SIZE", self.slots.len()),
            ("MPI_LOCALRANKID", slot.local_rank),
            ("MPI_LOCALNRANKS", slot.local_size),
            ("LINTEL_NODES", self.addresses.len()),
            ("LINTEL_NODE_RANK", slot.node),
        ]
        .into_iter()
        .map(|(name, number)| (name.into(), number.to_string().into()))
        .collect();
        if let Some(address) = self.addresses[slot.node] {
            all.push(("PTL_IFACE".into(), address.to_string().into()));
        }
        all
    }
}

fn loopback_addresses(count: usize, first: Ipv4Addr) -> Result<Vec<Option<Ipv4Addr>>, Error> {
    let nth = |n: usize| {
        let number = u32::from(first).checked_add(u32::try_from(n).ok()?)?;
        let address = Ipv4Addr::from(number);
        // The network's own address and its broadcast address are no node's.
        let plain = !matches!(address.octets(), [_, 0, 0, 0] | [_, 255, 255, 255]);
        (address.is_loopback() && plain).then_some(address)
    };
    let addresses: Vec<_> = (0..count).map(nth).collect();
    match addresses.iter().all(Option::is_some) && count > 0 {
        true => Ok(addresses),
        false => Err(Error::NoSuchNodes { count, first }),
    }
}

/// The number of ranks of each node: as equal as possible, the larger ones first.
fn shares(ranks: usize, nodes: usize) -> Vec<usize> {
    let (each, more) = (ranks / nodes, ranks % nodes);
    (0..nodes)
        .map(|node| each + usize::from(node < more))
        .collect()
}

/// How many ranks each host takes.
fn capacities_of(hosts: &[Host], ranks: usize) -> Result<Vec<usize>, Error> {
    if hosts.iter().all(|host| host.slots.is_none()) {
        return Ok(shares(ranks, hosts.len().max(1)));
    }
    let capacities: Vec<usize> = hosts.iter().map(|host| host.slots.unwrap_or(1)).collect();
    match capacities.iter().sum() {
        slots if slots >= ranks => Ok(capacities),
        slots => Err(Error::TooFewSlots { slots, ranks }),
    }
}

/// The node of each rank, if node n takes `capacities[n]` of them.
fn nodes_of_ranks(ranks: usize, mut capacities: Vec<usize>, map: Map) -> Vec<usize> {
    let mut nodes = Vec::with_capacity(ranks);
    while nodes.len() < ranks {
        for (node, capacity) in capacities.iter_mut().enumerate() {
            let taken = match map {
                Map::Block => *capacity,
                Map::Cyclic => 1.min(*capacity),
            };
            let taken = taken.min(ranks - nodes.len());
            nodes.extend(std::iter::repeat_n(node, taken));
            *capacity -= taken;
        }
    }
    nodes
}

fn rank_slots(nodes: &[usize]) -> Vec<RankSlot> {
    let mut taken = vec![0; nodes.iter().max().map_or(0, |last| last + 1)];
    let mut slots: Vec<RankSlot> = Vec::with_capacity(nodes.len());
    for (rank, &node) in nodes.iter().enumerate() {
        slots.push(RankSlot {
            rank,
            node,
            local_rank: taken[node],
            local_size: 0,
        });
        taken[node] += 1;
    }
    for slot in &mut slots {
        slot.local_size = taken[slot.node];
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_virtual(ranks: usize, count: usize, map: Map) -> Result<Layout, Error> {
        let first = Ipv4Addr::LOCALHOST;
        Layout::new(ranks, &Nodes::Virtual { count, first }, map)
    }

    fn local(layout: &Layout) -> Vec<(usize, usize, usize)> {
        let each = layout.slots.iter();
        each.map(|slot| (slot.node, slot.local_rank, slot.local_size))
            .collect()
    }

    #[test]
    fn blocks_differ_by_one_rank_at_most() {
        let layout = on_virtual(5, 2, Map::Block).unwrap();
        assert_eq!(
            local(&layout),
            [(0, 0, 3), (0, 1, 3), (0, 2, 3), (1, 0, 2), (1, 1, 2)]
        );
    }

    #[test]
    fn cyclic_ranks_go_round() {
        let layout = on_virtual(5, 2, Map::Cyclic).unwrap();
        assert_eq!(
            local(&layout),
            [(0, 0, 3), (1, 0, 2), (0, 1, 3), (1, 1, 2), (0, 2, 3)]
        );
    }

    #[test]
    fn addresses_follow_the_first() {
        let nodes = Nodes::Virtual {
            count: 3,
            first: Ipv4Addr::new(127, 0, 0, 255),
        };
        let layout = Layout::new(3, &nodes, Map::Block).unwrap();
        let addresses: Vec<String> = layout
            .addresses
            .iter()
            .flatten()
            .map(ToString::to_string)
            .collect();
        assert_eq!(addresses, ["127.0.0.255", "127.0.1.0", "127.0.1.1"]);
    }

    #[test]
    fn a_job_on_this_machine_alone_names_no_address() {
        let layout = Layout::new(2, &Nodes::Local, Map::Block).unwrap();
        assert_eq!(local(&layout), [(0, 0, 2), (0, 1, 2)]);
        let variables = layout.variables(&layout.slots[1]);
        assert!(variables.iter().all(|(name, _)| name != "PTL_IFACE"));
    }

    #[test]
    fn nodes_without_rank_or_address_are_refused() {
        assert!(matches!(
            on_virtual(2, 3, Map::Block),
            Err(Error::TooManyNodes { nodes: 3, ranks: 2 })
        ));
        for (count, first) in [
            (0, Ipv4Addr::LOCALHOST),
            (1, Ipv4Addr::new(10, 0, 0, 1)),
            (1, Ipv4Addr::new(127, 0, 0, 0)),
            (2, Ipv4Addr::new(127, 255, 255, 254)),
        ] {
            let nodes = Nodes::Virtual { count, first };
            let refused = Layout::new(9, &nodes, Map::Block);
            assert!(
                matches!(refused, Err(Error::NoSuchNodes { .. })),
                "{count} from {first}"
            );
        }
    }

    #[test]
    fn a_job_without_ranks_is_refused() {
        let refused = Layout::new(0, &Nodes::Local, Map::Block);
        assert!(matches!(refused, Err(Error::NoRanks)));
    }

    #[test]
    fn a_rank_learns_its_slot_from_its_environment() {
        let layout = on_virtual(5, 2, Map::Cyclic).unwrap();
        let set = layout.variables(&layout.slots[3]);
        let text: Vec<String> = set
            .iter()
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
            .collect();
        let expected = [
            "PMI_RANK=3",
            "PMI_SIZE=5",
            "MPI_LOCALRANKID=1",
            "MPI_LOCALNRANKS=2",
            "LINTEL_NODES=2",
            "LINTEL_NODE_RANK=1",
            "PTL_IFACE=127.0.0.2",
        ];
        assert_eq!(text, expected);
    }

    #[test]
    fn every_rank_has_one_slot_and_local_numbers_count_up() {
        for (ranks, count) in [(1, 1), (7, 3), (8, 8), (64, 5)] {
            for map in [Map::Block, Map::Cyclic] {
                let layout = on_virtual(ranks, count, map).unwrap();
                let numbers: Vec<usize> = layout.slots.iter().map(|slot| slot.rank).collect();
                assert_eq!(numbers, (0..ranks).collect::<Vec<_>>());
                for node in 0..count {
                    let local = layout.slots.iter().filter(|slot| slot.node == node);
                    let local: Vec<_> = local.map(|s| (s.local_rank, s.local_size)).collect();
                    let size = local.len();
                    assert!((ranks / count..=ranks.div_ceil(count)).contains(&size));
                    assert_eq!(local, (0..size).map(|n| (n, size)).collect::<Vec<_>>());
                }
            }
        }
    }

    fn on_hosts(ranks: usize, slots: &[Option<usize>], map: Map) -> Result<Vec<usize>, Error> {
        let host = |(n, &slots): (u8, _)| Host {
            name: format!("host{n}"),
            address: Ipv4Addr::new(10, 0, 0, n),
            slots,
        };
        let hosts = Nodes::Hosts((1..).zip(slots).map(host).collect());
        let layout = Layout::new(ranks, &hosts, map)?;
        let nodes = layout.nodes_of_ranks();
        assert_eq!(
            Some(layout.addresses.len()),
            nodes.iter().max().map(|n| n + 1)
        );
        Ok(nodes)
    }

    #[test]
    fn hosts_take_what_their_slots_say() {
        let slots = [Some(2), None, Some(3)];
        let block = on_hosts(5, &slots, Map::Block).unwrap();
        assert_eq!(block, [0, 0, 1, 2, 2]);
        let cyclic = on_hosts(5, &slots, Map::Cyclic).unwrap();
        assert_eq!(cyclic, [0, 1, 2, 0, 2]);
        assert!(matches!(
            on_hosts(7, &slots, Map::Block),
            Err(Error::TooFewSlots { slots: 6, ranks: 7 })
        ));
    }

    #[test]
    fn hosts_without_slots_share_and_those_without_ranks_stay_out() {
        assert_eq!(on_hosts(3, &[None; 2], Map::Block).unwrap(), [0, 0, 1]);
        assert_eq!(on_hosts(2, &[None; 4], Map::Block).unwrap(), [0, 1]);
        assert_eq!(
            on_hosts(2, &[Some(2), Some(2)], Map::Block).unwrap(),
            [0, 0]
        );
    }
}
