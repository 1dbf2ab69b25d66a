//! Every published point beside the simulated one.

use super::point::{Machines, Point, Row};
use super::{many, red_storm, xt5};
use crate::node::Refused;

/// All points that two nodes show.
pub fn pairs() -> impl Iterator<Item = &'static Point> {
    [red_storm::POINTS, xt5::PORTALS, xt5::CCI]
        .into_iter()
        .flatten()
}

/// All points of the papers, those that were fitted included.
///
/// # Errors
/// A machine can't do a benchmark.
pub fn table() -> Result<Vec<Row>, Refused> {
    let mut rows = points_of_pairs()?;
    rows.extend(points_of_many()?);
    Ok(rows)
}

/// Those of the [`table`] that two nodes show.
///
/// # Errors
/// A machine can't do a benchmark.
pub fn points_of_pairs() -> Result<Vec<Row>, Refused> {
    pairs()
        .map(|point| point.row(&Machines::PUBLISHED))
        .collect()
}

/// Those of the [`table`] that take more.
///
/// # Errors
/// A machine can't do a benchmark.
pub fn points_of_many() -> Result<Vec<Row>, Refused> {
    let points = many::POINTS.iter();
    points
        .map(|point| point.row(&Machines::PUBLISHED))
        .collect()
}

/// Those that take machines of thousands of nodes; the [`table`] is without them.
///
/// # Errors
/// A machine can't do a benchmark.
pub fn points_of_large_machines() -> Result<Vec<Row>, Refused> {
    let points = many::LARGE.iter();
    points
        .map(|point| point.row(&Machines::PUBLISHED))
        .collect()
}

/// What the documents state and no machine here can show: where it stands, what it is, and
/// why it is missing.
pub const REFUSED: &[(&str, &str, &str)] = &[
    (
        "S1 6",
        "bandwidth of more than 1500 MB/s, \"currently not consistent\"",
        "the cause wasn't known to its authors",
    ),
    (
        "S0",
        "latency and throughput figures",
        "drawn beside their simulations; the copies that were at hand have no plots, so there are \
         no numbers to compare",
    ),
    (
        "S4 IV-B",
        "292 KB of header tables for 32 endpoints",
        "the sizes of their entries aren't stated",
    ),
    (
        "S0",
        "the figure of VN mode by protocol offload",
        "its axes aren't known; RandomAccess by nodes is drawn in its place, as streams of two \
         processes are as fast here as those of one",
    ),
    (
        "S0",
        "no gain for CTH and Sage",
        "applications, of which no model is here; the row of a halo exchange stands for them",
    ),
    (
        "S0",
        "runs on 2500 nodes with 5000 processes, on 7500 nodes at once",
        "no number of them is printed; RandomAccess on 25x10x10 nodes ends here in either mode",
    ),
    (
        "S4 IV-B",
        "2.5 MB for the CAM entries of 19,200 nodes",
        "the product of 128 bytes and the nodes: nothing is simulated",
    ),
    (
        "S2",
        "hosts that push data",
        "no number; in the public simulator's code hosts write their own bytes with the command",
    ),
    (
        "S2",
        "rendezvous and recovery of flow control by triggered operations",
        "the slides print no number; the triggered machine's messages have 32 bytes at most",
    ),
    (
        "S2",
        "time steps of S3D: 4.77, 4.68, 4.59 s on 14, 15, 16 cores without progression, 3.93, 4.05, \
         4.06 s with it",
        "measurements of an application, of which no model is here",
    ),
    (
        "S2",
        "MILC on 4096 and 8192 ranks: 2165 and 1168 s without progression; 2121 and 1072 s in phase 1 \
         of it, 3782 and 2138 s in phase 2; phase 1 without reserved cores 3560 and 2210 s, with \
         reserved ones but no core specialization 2930 and 2070 s",
        "measurements of an application, of which no model is here",
    ),
    (
        "S2",
        "bandwidth of onload and offload adapters",
        "two InfiniBand adapters, of which no model is here; the copies that were at hand have no \
         plots",
    ),
    (
        "LW",
        "all-reduce of 16 bytes, 2.5 times as slow under Linux",
        "its MPI's algorithm and costs aren't stated",
    ),
];
