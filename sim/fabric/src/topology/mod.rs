//! Which link leads where, and which one a packet takes next.

mod dragonfly;
mod fat_tree;
mod torus;

pub use dragonfly::Dragonfly;
pub use fat_tree::FatTree;
pub use torus::{Dimension, Torus};

use crate::message::Node;

/// Routers, the links between them, and a route for each pair of nodes.
///
/// A lane is a buffer of its own at the end of a link (a virtual channel). A
/// topology says which lane a packet takes, so that packets that wait for each
/// other never form a circle.
pub trait Topology {
    /// What a packet carries along to find its way.
    type Route: Copy;

    /// Nodes, numbered from 0.
    fn nodes(&self) -> u32;

    /// Routers, numbered from 0.
    fn routers(&self) -> u32;

    /// Ports of a router, those to nodes included; some may lead nowhere.
    fn ports(&self) -> u32;

    /// Lanes of a link.
    fn lanes(&self) -> u32;

    /// The port at which a node sits.
    fn home(&self, node: Node) -> Port;

    /// Where a port leads.
    fn end(&self, port: Port) -> End;

    /// The way from one node to another.
    fn route(&self, from: Node, to: Node) -> Self::Route;

    /// The way out of the router in which the packet is. Called once per router
    /// of the way, in order.
    fn step(&self, router: u32, route: &mut Self::Route) -> Step;

    /// How many links of which kind lie between the two nodes' routers.
    fn legs(&self, from: Node, to: Node) -> Legs;
}

/// One end of a link at a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// The router's number, from 0.
    pub router: u32,
    /// Its port, from 0.
    pub port: u32,
}

/// Where a port leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// To another router, by a link of this kind.
    Router(u32, Reach),
    /// To a node, which receives by it.
    Node(Node),
    /// To nothing: the port isn't connected.
    Nowhere,
}

/// How far a link goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Within a grid, a tree or a group.
    Near,
    /// Between two groups of a dragonfly.
    Far,
}

/// A way out of a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The router's port by which the packet leaves.
    pub port: u32,
    /// The lane of that link, among those of the packet's class.
    pub lane: u32,
    /// The kind of that link; none if it leads to the node.
    pub reach: Option<Reach>,
}

/// Links of one kind in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leg {
    /// The kind of these links.
    pub reach: Reach,
    /// Their number; may be zero.
    pub links: u32,
}

/// The links between two nodes' routers, in order.
pub type Legs = [Leg; 3];

/// Legs of near links alone.
pub(crate) const fn near(links: u32) -> Legs {
    let none = Leg {
        reach: Reach::Near,
        links: 0,
    };
    [
        Leg {
            reach: Reach::Near,
            links,
        },
        none,
        none,
    ]
}
