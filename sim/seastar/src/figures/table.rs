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
        "S4 V-A",
        "copying into a bound buffer beats binding each, up to 8 KB",
        "what binding costs is stated nowhere, and nothing else follows from it",
    ),
    (
        "S4 IV-B",
        "292 KB of header tables for 32 endpoints",
        "the sizes of their entries aren't stated",
    ),
    (
        "S2",
        "time steps of S3D, run times of MILC, onload against offload bandwidth",
        "measurements of applications and of two InfiniBand adapters, of which no model is here",
    ),
    (
        "LW",
        "all-reduce of 16 bytes, 2.5 times as slow under Linux",
        "its MPI's algorithm and costs aren't stated",
    ),
];
