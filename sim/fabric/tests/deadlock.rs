//! Datelines: without them a ring stands still for ever.

mod rig;

use lintel_sim_fabric::{End, Fabric, Legs, Node, Parameters, Port, Step, Topology, Torus};
use rig::{by_packet, even, message, ring, send};

/// A torus in which every packet stays in lane 0.
struct WithoutDatelines(Torus);

impl Topology for WithoutDatelines {
    type Route = <Torus as Topology>::Route;

    fn nodes(&self) -> u32 {
        self.0.nodes()
    }

    fn routers(&self) -> u32 {
        self.0.routers()
    }

    fn ports(&self) -> u32 {
        self.0.ports()
    }

    fn lanes(&self) -> u32 {
        1
    }

    fn home(&self, node: Node) -> Port {
        self.0.home(node)
    }

    fn end(&self, port: Port) -> End {
        self.0.end(port)
    }

    fn route(&self, from: Node, to: Node) -> Self::Route {
        self.0.route(from, to)
    }

    fn step(&self, router: u32, route: &mut Self::Route) -> Step {
        Step {
            lane: 0,
            ..self.0.step(router, route)
        }
    }

    fn legs(&self, from: Node, to: Node) -> Legs {
        self.0.legs(from, to)
    }
}

/// Every node sends a long message three places on; gives what is stuck.
fn stuck_after_a_shift<T: Topology>(topology: T, buffer: u32) -> usize {
    let mut simulation = by_packet(topology, &Parameters { buffer, ..even() });
    for node in 0..8 {
        send(&mut simulation, message(node, (node + 3) % 8, 6_400));
    }
    simulation.run();
    simulation.world.fabric.unfinished()
}

#[test]
fn a_ring_without_datelines_stands_still() {
    for buffer in [1, 2] {
        assert!(stuck_after_a_shift(WithoutDatelines(ring(8)), buffer) > 0);
    }
}

#[test]
fn datelines_keep_a_ring_going() {
    for buffer in [1, 2] {
        assert_eq!(stuck_after_a_shift(ring(8), buffer), 0);
    }
}
