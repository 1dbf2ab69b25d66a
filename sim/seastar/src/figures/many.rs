//! Points that many nodes show: RandomAccess (S0 and PL), and Red Storm's diameter (S1).
//!
//! PL is S. Plimpton, R. Brightwell, C. Vaughan, K. Underwood, M. Davis, *A simple synchronous
//! distributed-memory algorithm for the HPCC RandomAccess benchmark*, 2006, abstract: on Red
//! Storm 1.02 GUPS with HPCC's program on 10,350 processors, 19.98 with its own on 8192. What
//! either program costs the host is stated nowhere, so these points depend on our costs; but
//! they are absolute, and S0's gains aren't.

use lintel_sim_kernel::Duration;

use super::in_us;
use super::point::Published::{AtMost, Value};
use super::point::{How, Machines, On, Point};
use crate::node::{Mode, Placement, Refused};
use crate::workload::{
    Case, Halo, Hypercube, RandomAccess, Way, farthest, halo, hypercube, ping_pong, random_access,
};

pub(super) const POINTS: &[Point] = &[
    Point::new(
        On::RedStorm,
        ("S1 1", "MPI required, nearest nodes; accelerated put", "us"),
        AtMost(2.0),
        |m| Ok(in_us(ping_pong(&nic(m), Way::Put, 0, 0)?)),
    )
    .is(How::Depends)
    .because("a requirement, met by no machine of these papers; a put without MPI is simulated"),
    Point::new(
        On::RedStorm,
        (
            "S1 1",
            "MPI required, farthest nodes; accelerated put",
            "us",
        ),
        AtMost(5.0),
        |m| Ok(in_us(farthest(&nic(m), ALL, Way::Put)?)),
    )
    .is(How::Depends),
    // S0 states neither the number of nodes nor the program, and either decides the gain:
    // the gains themselves are a figure, and the row is their ratio.
    Point::new(
        On::Upgraded,
        (
            "S0",
            "RandomAccess, VN's gain over SN's, 32 nodes (our count)",
            "",
        ),
        Value(90.0 / 27.0),
        |m| {
            let gain = |placement| gain_on(m, placement, [4, 4, 2]);
            Ok(gain(Placement::Virtual)? / gain(Placement::Single)?)
        },
    )
    .is(How::Depends)
    .because("with HPCC's loop; with exchanges along a hypercube it is another"),
    Point::new(
        On::Upgraded,
        ("S0", "the same, exchanges along a hypercube, 16 nodes", ""),
        Value(90.0 / 27.0),
        |m| {
            let gain = |placement| hypercube_gain(m, placement);
            Ok(gain(Placement::Virtual)? / gain(Placement::Single)?)
        },
    )
    .is(How::Depends)
    .because("S0 states neither its program nor its nodes; HPCC's loop misses on the other side"),
    Point::new(
        On::RedStorm,
        (
            "PL",
            "RandomAccess, HPCC's program, 10,350 processes",
            "GUPS",
        ),
        Value(1.02),
        hpcc_gups,
    )
    .is(How::Depends)
    .because("64 nodes whose look-ahead is scaled down stand for 10,350; our costs of the program"),
    // CTH and Sage themselves are no programs of ours.
    Point::new(
        On::Upgraded,
        (
            "S0",
            "gain of a halo exchange that computes 10 ms (our 5 %)",
            "%",
        ),
        AtMost(5.0),
        halo_gain,
    )
    .is(How::Depends),
];

/// Points that take a machine of thousands of nodes, and so most of a minute each.
pub(super) const LARGE: &[Point] = &[Point::new(
    On::RedStorm,
    (
        "PL",
        "RandomAccess along a hypercube, 8192 processes",
        "GUPS",
    ),
    Value(19.98),
    hypercube_gups,
)
.is(How::Depends)];

/// Red Storm's compute nodes as a torus: 10,368.
const ALL: [u16; 3] = [27, 16, 24];

fn nic(m: &Machines) -> Case {
    Case::new(m.red_storm, Mode::Accelerated)
}

/// On 64 nodes, with as many updates ahead for each process as on 10,350: a tenth.
fn hpcc_gups(m: &Machines) -> Result<f64, Refused> {
    let (processes, few) = (10_350.0, 64);
    let run = RandomAccess {
        dimensions: [4, 4, 4],
        updates: 300,
        ahead: (1_024.0 / processes * f64::from(few)) as u32,
        ..RandomAccess::RED_STORM
    };
    let took = in_us(random_access(&m.red_storm(), run)?);
    Ok(processes * f64::from(run.updates) / took / 1e3)
}

/// One chunk on 8192 nodes.
fn hypercube_gups(m: &Machines) -> Result<f64, Refused> {
    let run = Hypercube {
        dimensions: [32, 16, 16],
        chunks: 1,
        ..Hypercube::OURS
    };
    let case = m.red_storm();
    let took = in_us(hypercube(&case, run)?);
    Ok(run.updates_of_chunk(&case) as f64 / took / 1e3)
}

/// What accelerated mode gains where faces of 100 KB go to and fro between long computations,
/// in percent.
fn halo_gain(m: &Machines) -> Result<f64, Refused> {
    let run = Halo {
        dimensions: [3, 3, 3],
        bytes: 100 << 10,
        compute: Duration::from_us(10_000),
        rounds: 2,
    };
    let time = |mode| halo(&m.upgraded(mode), run).map(in_us);
    Ok(100.0 * (time(Mode::Generic)? / time(Mode::Accelerated)? - 1.0))
}

fn hypercube_gain(m: &Machines, placement: Placement) -> Result<f64, Refused> {
    let time = |mode| {
        let mut case = m.upgraded(mode);
        case.setting.placement = placement;
        hypercube(&case, Hypercube::OURS).map(in_us)
    };
    Ok(100.0 * (time(Mode::Generic)? / time(Mode::Accelerated)? - 1.0))
}

/// What accelerated mode gains in RandomAccess, in percent.
pub(super) fn gain_on(
    m: &Machines,
    placement: Placement,
    dimensions: [u16; 3],
) -> Result<f64, Refused> {
    let run = RandomAccess {
        dimensions,
        ..RandomAccess::RED_STORM
    };
    let time = |mode| {
        let mut case: Case = m.upgraded(mode);
        case.setting.placement = placement;
        random_access(&case, run).map(in_us)
    };
    Ok(100.0 * (time(Mode::Generic)? / time(Mode::Accelerated)? - 1.0))
}
