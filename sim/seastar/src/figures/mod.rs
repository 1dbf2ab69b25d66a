//! The papers' points and figures, and what the simulated machines say.
//!
//! [`table()`] is all points beside their predictions; [`figure`] is a figure's curves.
//! Both run the benchmarks of [`crate::workload`]; nothing is stored.

mod curves;
mod many;
mod point;
mod red_storm;
mod table;
mod xt5;

use lintel_sim_kernel::Duration;

use crate::message::Class;
use crate::node::{Mode, Refused};
use crate::profile::{RED_STORM_2005, RED_STORM_2006, XT5_2009};
use crate::workload::{Case, NetPipe, Pattern, Way, netpipe, ping_pong};

pub use curves::{Curve, Figure, figure};
pub use point::{How, Machines, On, Point, Published, Row, number};
pub use table::{REFUSED, pairs, points_of_large_machines, points_of_many, points_of_pairs, table};

const RED_STORM: Case = Case::new(RED_STORM_2005, Mode::Generic);
const UPGRADED: Case = Case::new(RED_STORM_2006, Mode::Generic);
const UPGRADED_NIC: Case = Case::new(RED_STORM_2006, Mode::Accelerated);
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

fn point_rate(case: &Case, way: Way, bytes: u64) -> Result<f64, Refused> {
    Ok(rate(ping_pong(case, way, bytes, 0)?, bytes))
}

/// The largest size that takes no longer than no payload.
fn inline_step(took: impl Fn(u64) -> Result<Duration, Refused>) -> Result<f64, Refused> {
    let least = took(0)?;
    for bytes in 1..=64 {
        if took(bytes)? > least + Duration::from_ns(500) {
            return Ok((bytes - 1) as f64);
        }
    }
    Ok(64.0)
}

/// What NetPIPE reports: bytes of both directions, if it sends both ways.
fn netpipe_rate(case: &Case, pattern: Pattern, bytes: u64) -> Result<f64, Refused> {
    let one_way = rate(netpipe(case, NetPipe { pattern, bytes })?, bytes);
    Ok(match pattern {
        Pattern::Bidirectional => 2.0 * one_way,
        Pattern::PingPong | Pattern::Streaming => one_way,
    })
}

/// The size at which half of `whole` is reached.
fn half_bandwidth(whole: f64, rate: impl Fn(u64) -> Result<f64, Refused>) -> Result<f64, Refused> {
    let (mut low, mut high) = (64, 64 * KB);
    while high - low > 16 {
        let middle = (low + high) / 2;
        match rate(middle)? < whole / 2.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(high as f64)
}
