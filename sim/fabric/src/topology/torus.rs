//! Routers in a grid of up to three dimensions, each a ring or a line, with one
//! node at each router.
//!
//! A packet goes along the first dimension, then the second, then the third
//! (dimension order), the shorter way around a ring. The link that closes a ring
//! is its dateline: a packet takes lane 0 until it, lane 1 on it and after it,
//! and comes to lane 0 again in the next dimension. Lane 1 never reaches a
//! dateline, so that no circle of packets waits for itself
//! (Dally and Seitz, "Deadlock-free message routing", 1987).

use super::{End, Legs, Port, Reach, Step, Topology, near};
use crate::message::Node;
use crate::parameters::ConfigError;

const DIMENSIONS: usize = 3;
/// Two ports a dimension, up and down, then the node's.
const NODE_PORT: u32 = 2 * DIMENSIONS as u32;

/// One dimension of a [`Torus`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dimension {
    size: u16,
    wraps: bool,
}

/// A torus, a mesh, or one in some dimensions and the other in the rest.
#[derive(Clone, Debug)]
pub struct Torus {
    dimensions: [Dimension; DIMENSIONS],
}

/// What is left to go, per dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TorusRoute {
    /// Links, negative when downwards.
    left: [i16; DIMENSIONS],
    /// Of these, so many from the dateline on.
    beyond: [i16; DIMENSIONS],
}

impl Dimension {
    /// A dimension that isn't used.
    pub const LINE_OF_ONE: Dimension = Dimension::line(1);

    /// The last router is joined to the first.
    pub const fn ring(size: u16) -> Self {
        Dimension { size, wraps: true }
    }

    /// It has two ends.
    pub const fn line(size: u16) -> Self {
        Dimension { size, wraps: false }
    }

    /// Links between two coordinates, negative when downwards; and how many of them
    /// lie from the dateline on. Where both ways are equally long, even coordinates
    /// go up and odd ones down, so that both directions carry their share.
    fn displacement(self, from: i16, to: i16) -> (i16, i16) {
        let size = self.size as i16;
        let up = (to - from).rem_euclid(size);
        let goes_up = match self.wraps {
            false => to >= from,
            true if 2 * up == size => from % 2 == 0,
            true => 2 * up < size,
        };
        if goes_up {
            (up, (up - (size - 1 - from)).max(0))
        } else {
            let down = (size - up) % size;
            (-down, (down - from).max(0))
        }
    }

    /// The neighbour of a position.
    fn neighbour(self, place: u32, up: bool) -> Option<u32> {
        let size = u32::from(self.size);
        match up {
            true if place + 1 < size => Some(place + 1),
            false if place > 0 => Some(place - 1),
            _ if !self.wraps || size == 1 => None,
            true => Some(0),
            false => Some(size - 1),
        }
    }
}

impl Torus {
    /// A grid of these dimensions.
    pub fn new(dimensions: [Dimension; DIMENSIONS]) -> Result<Self, ConfigError> {
        // Half a ring, with its sign, is kept in 16 bits.
        if let Some(d) = dimensions.iter().find(|d| d.size == 0 || d.size > 1 << 14) {
            let size = d.size;
            return Err(ConfigError(format!(
                "a dimension has {size} routers, it takes 1 to 16384"
            )));
        }
        let routers: u64 = dimensions.iter().map(|d| u64::from(d.size)).product();
        if routers > 1 << 26 {
            return Err(ConfigError(format!(
                "a torus has {routers} routers, it takes up to 2^26"
            )));
        }
        Ok(Torus { dimensions })
    }

    /// The router at these coordinates, the first dimension changing fastest.
    pub fn at(&self, coordinates: [u32; DIMENSIONS]) -> Node {
        let [x, y, z] = coordinates;
        let [width, height, _] = self.dimensions.map(|d| u32::from(d.size));
        Node(x + width * (y + height * z))
    }

    /// Where a router is.
    pub fn coordinates(&self, node: Node) -> [u32; DIMENSIONS] {
        let [width, height, _] = self.dimensions.map(|d| u32::from(d.size));
        let row = node.0 / width;
        [node.0 % width, row % height, row / height]
    }

    /// Links between two nodes' routers.
    pub fn distance(&self, from: Node, to: Node) -> u32 {
        let route = self.route(from, to);
        route.left.iter().map(|n| u32::from(n.unsigned_abs())).sum()
    }
}

impl Topology for Torus {
    type Route = TorusRoute;

    fn nodes(&self) -> u32 {
        self.dimensions.iter().map(|d| u32::from(d.size)).product()
    }

    fn routers(&self) -> u32 {
        self.nodes()
    }

    fn ports(&self) -> u32 {
        NODE_PORT + 1
    }

    fn lanes(&self) -> u32 {
        if self.dimensions.iter().any(|d| d.wraps) {
            2
        } else {
            1
        }
    }

    fn home(&self, node: Node) -> Port {
        Port {
            router: node.0,
            port: NODE_PORT,
        }
    }

    fn end(&self, Port { router, port }: Port) -> End {
        if port == NODE_PORT {
            return End::Node(Node(router));
        }
        let dimension = (port / 2) as usize;
        let mut coordinates = self.coordinates(Node(router));
        let next = self.dimensions[dimension].neighbour(coordinates[dimension], port % 2 == 0);
        let Some(next) = next else {
            return End::Nowhere;
        };
        coordinates[dimension] = next;
        End::Router(self.at(coordinates).0, Reach::Near)
    }

    fn route(&self, from: Node, to: Node) -> TorusRoute {
        let (from, to) = (self.coordinates(from), self.coordinates(to));
        let mut route = TorusRoute {
            left: [0; DIMENSIONS],
            beyond: [0; DIMENSIONS],
        };
        for (i, dimension) in self.dimensions.iter().enumerate() {
            // A place is below 2^14.
            let way = dimension.displacement(from[i] as i16, to[i] as i16);
            (route.left[i], route.beyond[i]) = way;
        }
        route
    }

    #[inline]
    fn step(&self, _router: u32, route: &mut TorusRoute) -> Step {
        for dimension in 0..DIMENSIONS {
            let left = &mut route.left[dimension];
            if *left == 0 {
                continue;
            }
            let up = *left > 0;
            let lane = u32::from(left.abs() <= route.beyond[dimension]);
            *left -= left.signum();
            let port = 2 * dimension as u32 + u32::from(!up);
            return Step {
                port,
                lane,
                reach: Some(Reach::Near),
            };
        }
        Step {
            port: NODE_PORT,
            lane: 0,
            reach: None,
        }
    }

    fn legs(&self, from: Node, to: Node) -> Legs {
        near(self.distance(from, to))
    }
}
