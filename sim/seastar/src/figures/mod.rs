//! The papers' points and figures, and what the simulated machines say.
//!
//! [`table()`] is all points beside their predictions; [`figure`] is a figure's curves.
//! Both run the benchmarks of [`crate::workload`]; nothing is stored.

mod curves;
mod table;

use lintel_sim_kernel::Duration;

use crate::message::Class;
use crate::node::Mode;
use crate::profile::{RED_STORM_2005, XT5_2009};
use crate::workload::{Case, Way};

pub use curves::{Curve, Figure, figure};
pub use table::{How, Published, Row, number, points_of_many, points_of_pairs, table};

const RED_STORM: Case = Case::new(RED_STORM_2005, Mode::Generic);
const RED_STORM_NIC: Case = Case::new(RED_STORM_2005, Mode::Accelerated);
const XT5: Case = Case::new(XT5_2009, Mode::Generic);
const XT5_CCI: Case = Case::new(XT5_2009, Mode::Cci);
const UU: Way = Way::Cci(Class::Unreliable);
const RO: Way = Way::Cci(Class::Reliable);
const KB: u64 = 1 << 10;

/// Sizes of messages up to very long ones.
const LONG: [u64; 14] = [
    16,
    64,
    256,
    KB,
    2 * KB,
    4 * KB,
    6 * KB,
    8 * KB,
    16 * KB,
    32 * KB,
    64 * KB,
    100 * KB,
    512 * KB,
    2_048 * KB,
];

fn in_us(duration: Duration) -> f64 {
    duration.as_ps() as f64 / 1e6
}

fn per_second(gap: Duration) -> f64 {
    1e12 / gap.as_ps() as f64
}

/// Bandwidth in MB/s, of 10^6 bytes.
fn rate(took: Duration, bytes: u64) -> f64 {
    bytes as f64 / in_us(took)
}
