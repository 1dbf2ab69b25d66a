//! Schedules of `lintel-collectives` on the machine.

use lintel_collectives::{Algorithm, Collective, Order, Shape, Tree};
use lintel_sim_fabric::{Dimension, Fabric, PacketFabric, Torus};
use lintel_sim_kernel::{Duration, SimTime, Simulation};
use lintel_sim_node::Noise;
use lintel_sim_triggered::program::{self, Program};
use lintel_sim_triggered::{Entry, Machine, Timing, operate};

fn ns(sides: [u16; 3], program: impl Fn(u32) -> Program) -> u64 {
    let timing = Timing::SET_1;
    let torus = Torus::new(sides.map(Dimension::ring)).expect("a good torus");
    let fabric = PacketFabric::new(torus, &timing.network()).expect("good parameters");
    let nodes = fabric.nodes();
    let programs = (0..nodes).map(program).collect();
    let noises = vec![Noise::NONE; nodes as usize];
    let mut simulation = Simulation::new(Machine::new(timing, fabric, programs, noises));
    let start = SimTime::START + Duration::from_ns(1);
    operate(&mut simulation, start, Entry::Undisturbed).as_ps() / 1_000
}

fn posted(sides: [u16; 3], collective: &Collective) -> u64 {
    ns(sides, |rank| program::posted(&collective.schedule(rank)))
}

fn gone_through(sides: [u16; 3], collective: &Collective) -> u64 {
    ns(sides, |rank| {
        program::gone_through(&collective.schedule(rank), rank)
    })
}

const SIDES: [u16; 3] = [4, 8, 8];
const ALL: Shape = Shape {
    ranks: 256,
    bytes: 8,
};

#[test]
fn every_collective_ends_posted_and_gone_through() {
    let sides = [3, 5, 2];
    let shape = Shape {
        ranks: 30,
        bytes: 8,
    };
    for tree in [
        Tree::KNomial(2),
        Tree::KNomial(8),
        Tree::KAry(2),
        Tree::KAry(1),
    ] {
        let by_tree = Algorithm::Tree(tree);
        let collectives = [
            Collective::barrier(30, by_tree),
            Collective::barrier(30, Algorithm::Dissemination),
            Collective::barrier(30, Algorithm::RecursiveDoubling),
            Collective::allreduce(shape, Algorithm::RecursiveDoubling),
            Collective::allreduce(shape, by_tree),
            Collective::allreduce(shape, by_tree).map(|c| c.in_order(Order::Ranks)),
            Collective::reduce(shape, 7, by_tree),
            Collective::broadcast(shape, 7, by_tree),
            Collective::broadcast(shape, 7, Algorithm::Pipelined(tree, 2)),
            Collective::gather(shape, 7, by_tree),
            Collective::scatter(shape, 7, by_tree),
        ];
        for collective in collectives {
            let collective = collective.expect("a sound collective");
            assert!(posted(sides, &collective) > 0, "{collective:?}");
            assert!(gone_through(sides, &collective) > 0, "{collective:?}");
        }
    }
}

/// The model's program of recursive doubling also clears each round's place and moves
/// the result through the interface; a schedule leaves both to the host.
#[test]
fn a_posted_schedule_takes_what_the_model_takes_but_for_its_housekeeping() {
    let doubling = Collective::allreduce(ALL, Algorithm::RecursiveDoubling).expect("sound");
    let model = ns(SIDES, |rank| program::doubling_by_interface(rank, 256));
    let schedule = posted(SIDES, &doubling);
    let housekeeping = model - schedule;
    assert!(
        (500..1_500).contains(&housekeeping),
        "{model} ns, {schedule} ns"
    );
}

#[test]
fn posted_schedules_are_faster_than_those_that_hosts_go_through() {
    let tree = Algorithm::Tree(Tree::KNomial(8));
    for collective in [
        Collective::allreduce(ALL, Algorithm::RecursiveDoubling),
        Collective::allreduce(ALL, tree),
        Collective::barrier(256, Algorithm::Dissemination),
        Collective::broadcast(ALL, 0, tree),
    ] {
        let collective = collective.expect("a sound collective");
        let (by_interface, by_host) =
            (posted(SIDES, &collective), gone_through(SIDES, &collective));
        assert!(
            by_interface < by_host,
            "{collective:?}: {by_interface} ns, {by_host} ns"
        );
    }
}
