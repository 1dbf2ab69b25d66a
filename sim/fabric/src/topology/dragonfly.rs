//! A dragonfly: groups of routers, all joined within a group, and each group
//! joined to each other one by one far link (Kim, Dally, Scott, Abts, ISCA 2008).
//!
//! A packet takes the shortest way that crosses one far link at most: within its
//! group to the router that has the link, over it, and within the other group to
//! its node's router. It is in lane 0 until the far link is behind it and in lane
//! 1 after it, so that near links of one group wait for far ones, those for near
//! ones of another, and these for nodes: no circle.

use super::{End, Leg, Legs, Port, Reach, Step, Topology};
use crate::message::Node;
use crate::parameters::ConfigError;

/// A dragonfly with minimal routing.
#[derive(Clone, Debug)]
pub struct Dragonfly {
    groups: u32,
    routers: u32,
    nodes: u32,
    far_links: u32,
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DragonflyRoute {
    to: u32,
    crossed: bool,
}

impl Dragonfly {
    /// So many groups of so many routers, each with so many nodes and far links.
    pub fn new(groups: u32, routers: u32, nodes: u32, far_links: u32) -> Result<Self, ConfigError> {
        let wrong = |what: String| Err(ConfigError(format!("a dragonfly {what}")));
        let all = [groups, routers, nodes];
        if all.contains(&0) {
            return wrong("has groups, routers in each and nodes at each".into());
        }
        let product = |of: &[u32]| {
            of.iter()
                .map(|&n| u64::from(n))
                .fold(1, u64::saturating_mul)
        };
        if product(&all) > 1 << 26 {
            return wrong("has up to 2^26 nodes".into());
        }
        let links = product(&[routers, far_links]);
        if links < u64::from(groups - 1) || links > 1 << 26 {
            let others = groups - 1;
            return wrong(format!(
                "group has {links} far links, for {others} other groups"
            ));
        }
        Ok(Dragonfly {
            groups,
            routers,
            nodes,
            far_links,
        })
    }

    /// The far link, among those of `group`, that leads to another one.
    fn far_link(&self, group: u32, to: u32) -> u32 {
        (to + self.groups - group) % self.groups - 1
    }

    fn router_of(&self, node: u32) -> u32 {
        node / self.nodes
    }

    fn group_of(&self, router: u32) -> u32 {
        router / self.routers
    }

    /// The port from one router to another of its group.
    fn near_port(&self, from: u32, to: u32) -> u32 {
        let (from, to) = (from % self.routers, to % self.routers);
        self.nodes + if to < from { to } else { to - 1 }
    }

    /// The router that has a far link of a group.
    fn owner(&self, group: u32, link: u32) -> u32 {
        group * self.routers + link / self.far_links
    }
}

impl Topology for Dragonfly {
    type Route = DragonflyRoute;

    fn nodes(&self) -> u32 {
        self.groups * self.routers * self.nodes
    }

    fn routers(&self) -> u32 {
        self.groups * self.routers
    }

    fn ports(&self) -> u32 {
        self.nodes + self.routers - 1 + self.far_links
    }

    fn lanes(&self) -> u32 {
        2
    }

    fn home(&self, node: Node) -> Port {
        Port {
            router: self.router_of(node.0),
            port: node.0 % self.nodes,
        }
    }

    fn end(&self, Port { router, port }: Port) -> End {
        let (group, place) = (self.group_of(router), router % self.routers);
        if port < self.nodes {
            return End::Node(Node(router * self.nodes + port));
        }
        let near = port - self.nodes;
        if near < self.routers - 1 {
            let to = if near < place { near } else { near + 1 };
            return End::Router(group * self.routers + to, Reach::Near);
        }
        let link = place * self.far_links + (near - (self.routers - 1));
        if link >= self.groups - 1 {
            return End::Nowhere;
        }
        let there = (group + link + 1) % self.groups;
        End::Router(self.owner(there, self.far_link(there, group)), Reach::Far)
    }

    fn route(&self, _from: Node, to: Node) -> DragonflyRoute {
        DragonflyRoute {
            to: to.0,
            crossed: false,
        }
    }

    fn step(&self, router: u32, route: &mut DragonflyRoute) -> Step {
        let last = self.router_of(route.to);
        let lane = u32::from(route.crossed);
        let near = |port| Step {
            port,
            lane,
            reach: Some(Reach::Near),
        };
        if router == last {
            return Step {
                port: route.to % self.nodes,
                lane: 0,
                reach: None,
            };
        }
        let (group, goal) = (self.group_of(router), self.group_of(last));
        if group == goal {
            return near(self.near_port(router, last));
        }
        let link = self.far_link(group, goal);
        let owner = self.owner(group, link);
        if router != owner {
            return near(self.near_port(router, owner));
        }
        route.crossed = true;
        let port = self.nodes + self.routers - 1 + link % self.far_links;
        Step {
            port,
            lane,
            reach: Some(Reach::Far),
        }
    }

    fn legs(&self, from: Node, to: Node) -> Legs {
        let (first, last) = (self.router_of(from.0), self.router_of(to.0));
        let (group, goal) = (self.group_of(first), self.group_of(last));
        let leg = |reach, is: bool| Leg {
            reach,
            links: u32::from(is),
        };
        if group == goal {
            return super::near(u32::from(first != last));
        }
        let out = self.owner(group, self.far_link(group, goal));
        let into = self.owner(goal, self.far_link(goal, group));
        [
            leg(Reach::Near, first != out),
            leg(Reach::Far, true),
            leg(Reach::Near, into != last),
        ]
    }
}
