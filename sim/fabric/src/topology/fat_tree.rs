//! A fat tree: nodes below, levels of routers above them, several ways up and
//! one way down.
//!
//! It is an extended generalised fat tree (Öhring, Ibel, Das, Kumar, IPPS 1995):
//! a router of level *l* has `down[l]` children and each router or node below it
//! has `up[l]` parents. A packet goes up until its destination lies below it, and
//! then down. On the way up it takes the parent that its destination's number
//! chooses (D-mod-k; Zahavi, 2012), so that packets to one node share one way
//! and packets of a shift don't meet. Up and then down forms no circle: one lane.

use super::{End, Legs, Port, Reach, Step, Topology, near};
use crate::message::Node;
use crate::parameters::ConfigError;

/// An extended generalised fat tree with D-mod-k routing.
#[derive(Clone, Debug)]
pub struct FatTree {
    levels: Vec<Level>,
    nodes: u32,
    routers: u32,
    ports: u32,
}

/// One level of routers.
#[derive(Clone, Debug)]
struct Level {
    /// Children of each router.
    down: u32,
    /// Parents of each, in the level above.
    parents: u32,
    /// Nodes below each child.
    below_child: u32,
    /// Routers that stand above the same nodes.
    copies: u32,
    /// The number of the level's first router.
    first: u32,
}

/// Where a packet is and how far it has to climb.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FatTreeRoute {
    to: u32,
    level: u8,
    top: u8,
}

impl FatTree {
    /// Levels from the nodes up: children of each router there, and parents of
    /// each child. A node has one parent.
    pub fn new(down: &[u32], up: &[u32]) -> Result<Self, ConfigError> {
        let wrong = |what: &str| Err(ConfigError(format!("a fat tree {what}")));
        if down.is_empty() || down.len() > 16 || down.len() != up.len() {
            return wrong("has 1 to 16 levels, each with children and parents");
        }
        if down.iter().chain(up).any(|&n| n == 0) {
            return wrong("has no level without children or parents");
        }
        if up[0] != 1 {
            return wrong("gives each node one parent");
        }
        let product = |of: &[u32]| {
            of.iter()
                .map(|&n| u64::from(n))
                .fold(1, u64::saturating_mul)
        };
        let router_count = |l: usize| product(&down[l + 1..]).saturating_mul(product(&up[..=l]));
        let routers = (0..down.len())
            .map(router_count)
            .fold(0, u64::saturating_add);
        if product(down) > 1 << 26 || routers > 1 << 26 {
            return wrong("has up to 2^26 nodes and as many routers");
        }
        Ok(Self::of_levels(down, up))
    }

    fn of_levels(down: &[u32], up: &[u32]) -> Self {
        let nodes = down.iter().product();
        let (mut levels, mut first, mut below, mut copies) = (Vec::new(), 0, 1, 1);
        for (l, &children) in down.iter().enumerate() {
            copies *= up[l];
            levels.push(Level {
                down: children,
                parents: up.get(l + 1).copied().unwrap_or(0),
                below_child: below,
                copies,
                first,
            });
            below *= children;
            first += nodes / below * copies;
        }
        let ports = levels.iter().map(|l| l.down + l.parents).max().unwrap_or(0);
        FatTree {
            levels,
            nodes,
            routers: first,
            ports,
        }
    }

    /// A router's level, 0 next to the nodes.
    fn level_of(&self, router: u32) -> usize {
        self.levels.partition_point(|level| level.first <= router) - 1
    }

    /// The lowest level at which one router stands above both nodes.
    fn meeting(&self, from: Node, to: Node) -> usize {
        let together = |l: &Level| {
            let below = l.below_child * l.down;
            from.0 / below == to.0 / below
        };
        self.levels
            .iter()
            .position(together)
            .expect("the top stands above all nodes")
    }
}

impl Level {
    /// The child under which a node lies.
    fn child(&self, node: u32) -> u32 {
        node / self.below_child % self.down
    }
}

impl Topology for FatTree {
    type Route = FatTreeRoute;

    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn routers(&self) -> u32 {
        self.routers
    }

    fn ports(&self) -> u32 {
        self.ports
    }

    fn lanes(&self) -> u32 {
        1
    }

    fn home(&self, node: Node) -> Port {
        let leaf = &self.levels[0];
        Port {
            router: node.0 / leaf.down,
            port: leaf.child(node.0),
        }
    }

    fn end(&self, Port { router, port }: Port) -> End {
        let l = self.level_of(router);
        let level = &self.levels[l];
        // A router is one of the copies that stand above a block of nodes.
        let (block, copy) = (
            (router - level.first) / level.copies,
            (router - level.first) % level.copies,
        );
        if port < level.down {
            let child = block * level.down + port;
            let Some(lower) = l.checked_sub(1).map(|l| &self.levels[l]) else {
                return End::Node(Node(child));
            };
            return End::Router(
                lower.first + child * lower.copies + copy % lower.copies,
                Reach::Near,
            );
        }
        if port - level.down >= level.parents {
            return End::Nowhere;
        }
        let upper = &self.levels[l + 1];
        let copy = copy + (port - level.down) * level.copies;
        End::Router(
            upper.first + block / upper.down * upper.copies + copy,
            Reach::Near,
        )
    }

    fn route(&self, from: Node, to: Node) -> FatTreeRoute {
        // There are at most 16 levels.
        let top = self.meeting(from, to) as u8;
        FatTreeRoute {
            to: to.0,
            level: 0,
            top,
        }
    }

    fn step(&self, _router: u32, route: &mut FatTreeRoute) -> Step {
        let level = &self.levels[usize::from(route.level)];
        if route.level < route.top {
            route.level += 1;
            let parent = route.to / level.copies % level.parents;
            return Step {
                port: level.down + parent,
                lane: 0,
                reach: Some(Reach::Near),
            };
        }
        let reach = (route.level > 0).then_some(Reach::Near);
        // From here on each step goes down.
        route.level = route.level.saturating_sub(1);
        route.top = route.level;
        Step {
            port: level.child(route.to),
            lane: 0,
            reach,
        }
    }

    fn legs(&self, from: Node, to: Node) -> Legs {
        near(2 * self.meeting(from, to) as u32)
    }
}
