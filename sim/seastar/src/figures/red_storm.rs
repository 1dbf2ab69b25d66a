//! Red Storm's points: S1's, and the throughput of S0.

use lintel_sim_kernel::Duration;

use super::point::Published::{Over, Value};
use super::point::{How, Machines, On, Point};
use super::{KB, half_bandwidth, in_us, inline_step, netpipe_rate, point_rate};
use crate::node::{Mode, Refused};
use crate::workload::{NetPipe, Pattern, Way, both_at_random, netpipe, ping_pong};

const fn of(
    point: (&'static str, &'static str, &'static str),
    published: super::Published,
    measure: fn(&Machines) -> Result<f64, Refused>,
) -> Point {
    Point::new(On::RedStorm, point, published, measure)
}

pub(super) const POINTS: &[Point] = &[
    of(("S1 6", "put, 0 B", "us"), Value(4.89), |m| us(m, Way::Put)).is(How::Fitted),
    of(("S1 6", "get, 0 B", "us"), Value(6.09), |m| us(m, Way::Get)),
    of(("S1 6", "bidirectional put, 0 B", "us"), Value(8.39), |m| {
        Ok(in_us(both_at_random(&m.red_storm(), 0, PHASE)?))
    })
    .because(
        "what one interrupt costs follows from the put; two of 3.3 us would be needed. That one \
         node begins up to 1 us later, at random, takes time off",
    ),
    of(
        ("S1 6", "last size of one interrupt", "B"),
        Value(12.0),
        |m| inline_step(|bytes| ping_pong(&m.red_storm(), Way::Put, bytes, 0)),
    )
    .is(How::Set),
    of(
        (
            "S1 6",
            "the same, bidirectional NetPIPE, which counts both",
            "B",
        ),
        Value(24.0),
        |m| Ok(2.0 * netpipe_step(m)?),
    )
    .is(How::Set),
    of(("S1 6", "put, 100 KB", "MB/s"), Value(1051.43), |m| {
        point_rate(&m.red_storm(), Way::Put, MEDIUM)
    }),
    of(("S1 6", "get, 100 KB", "MB/s"), Value(1012.17), |m| {
        point_rate(&m.red_storm(), Way::Get, MEDIUM)
    }),
    of(("S1 6", "put, 2 MB", "MB/s"), Value(1108.0), |m| {
        point_rate(&m.red_storm(), Way::Put, LONGEST)
    }),
    of(
        ("S1 6", "bidirectional put, 2 MB, both ways", "MB/s"),
        Over(2200.0),
        |m| Ok(2.0 * point_rate(&m.red_storm(), Way::Both, LONGEST)?),
    ),
    of(
        ("S1 6", "half bandwidth, PortalPerf", "B"),
        Value(6144.0),
        |m| {
            let rate = |bytes| point_rate(&m.red_storm(), Way::Put, bytes);
            half_bandwidth(rate(MEDIUM)?, rate)
        },
    ),
    of(
        ("S1 6", "half bandwidth, NetPIPE", "B"),
        Value(8192.0),
        |m| half_of_netpipe(m, Pattern::PingPong),
    )
    .because(
        "by S1's two half bandwidths its NetPIPE takes 1.9 us longer than its PortalPerf over \
         the same path; why isn't said. NetPIPE's own loop takes 0.05 us longer here",
    ),
    of(
        ("S1 6", "half bandwidth, NetPIPE bidirectional", "B"),
        Value(24_576.0),
        |m| Ok(2.0 * half_of_netpipe(m, Pattern::Bidirectional)?),
    )
    .because("as the row above; two of 3.3 us an interrupt would be needed, as for 0 bytes"),
    Point::new(
        On::Upgraded,
        ("S0", "size below which 5 % more throughput (our 5 %)", "B"),
        Value(32_768.0),
        last_gain,
    )
    .is(How::Depends)
    .because("S0 prints no criterion; at 2 % the size would be larger still"),
];

/// How far apart two nodes begin that are "first synchronized" (S1 5.1), at most: some
/// hundreds of nanoseconds of a barrier's last messages, rounded up.
const PHASE: Duration = Duration::from_us(1);
/// Where PortalPerf's figure for medium sizes ends.
const MEDIUM: u64 = 100 * KB;
/// Where that for long messages ends.
const LONGEST: u64 = 2_048 * KB;

/// The largest size that takes NetPIPE both ways no longer than no payload.
fn netpipe_step(m: &Machines) -> Result<f64, Refused> {
    inline_step(|bytes| {
        let pattern = Pattern::Bidirectional;
        netpipe(&m.red_storm(), NetPipe { pattern, bytes })
    })
}

/// The size of a message with which NetPIPE reaches half of what it ends with.
fn half_of_netpipe(m: &Machines, pattern: Pattern) -> Result<f64, Refused> {
    let rate = |bytes| netpipe_rate(&m.red_storm(), pattern, bytes);
    half_bandwidth(rate(LONGEST)?, rate)
}

fn us(m: &Machines, way: Way) -> Result<f64, Refused> {
    Ok(in_us(ping_pong(&m.red_storm(), way, 0, 0)?))
}

/// The size up to which accelerated mode's puts reach 5 % more throughput.
fn last_gain(m: &Machines) -> Result<f64, Refused> {
    let (mut low, mut high) = (KB, 256 * KB);
    while high - low > 256 {
        let middle = (low + high) / 2;
        let rate = |mode| point_rate(&m.upgraded(mode), Way::Put, middle);
        match rate(Mode::Accelerated)? > 1.05 * rate(Mode::Generic)? {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(high as f64)
}
