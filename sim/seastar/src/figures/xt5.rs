//! The XT5's points: generic Portals under Linux, and CCI (S4).

use lintel_sim_kernel::Duration;

use super::point::Published::{AtMost, Between, Over, Value};
use super::point::{How, Machines, On, Point};
use super::{KB, RO, UU, in_us, inline_step, per_second, rate};
use crate::message::Class;
use crate::node::{CciArea, Refused, cci_room};
use crate::workload::{Stream, Way, ping_pong, tuned_stream};

const fn of(
    point: (&'static str, &'static str, &'static str),
    published: super::Published,
    measure: fn(&Machines) -> Result<f64, Refused>,
) -> Point {
    Point::new(On::Xt5, point, published, measure)
}

pub(super) const PORTALS: &[Point] = &[
    of(
        ("S4 V-A", "last size of one interrupt", "B"),
        Between(16.0, 31.0),
        |m| inline_step(|bytes| ping_pong(&m.xt5(), Way::Put, bytes, 0)),
    )
    .is(How::Set),
    of(("S4 V-B", "put, 1 MB", "MB/s"), Over(1700.0), |m| {
        let gap = tuned_stream(&m.xt5(), Stream::of(1_024 * KB))?;
        Ok(rate(gap, 1_024 * KB))
    })
    .because(
        "S4 has it from other work and suspects the receiver; its firmware feeds 250 of 257 commands \
         while the message comes here, and the RX engine never waits for one",
    ),
    of(
        ("LW", "put, Linux over Catamount, 8 B", "%"),
        Over(20.0),
        |m| {
            let catamount = in_us(ping_pong(&m.red_storm(), Way::Put, 8, 0)?);
            Ok(100.0 * (portals(m, Way::Put, 8)? / catamount - 1.0))
        },
    )
    .because("LW's machine is an XT3 with an early Linux; S4's acknowledgement asks for more"),
    of(
        ("S4 V-A", "an acknowledgement adds, 8 B", "us"),
        Between(4.4, 6.0),
        |m| Ok(portals(m, Way::AcknowledgedPut, 8)? - portals(m, Way::Put, 8)?),
    )
    .is(How::Fitted),
    of(
        ("S4 V-A", "copying beats binding each, up to", "B"),
        Value(8192.0),
        copying_beats_binding,
    )
    .because(
        "binding and unlinking are two calls here, of which the second goes on while the message \
         travels; what S4's cost, pinning pages included, is stated nowhere",
    ),
    of(
        ("S4 abstract", "CCI's latency less than Portals', 8 B", "%"),
        Between(30.0, 50.0),
        |m| Ok(100.0 * (1.0 - cci(m, UU, 8)? / portals(m, Way::CopiedPut, 8)?)),
    )
    .because("S4's part VI says it otherwise (the row below), and both can hold near a half only"),
    of(
        ("S4 VI", "CCI's latency of Portals', 0 B", "%"),
        Between(30.0, 50.0),
        |m| Ok(100.0 * cci(m, UU, 0)? / portals(m, Way::CopiedPut, 0)?),
    ),
];

pub(super) const CCI: &[Point] = &[
    of(("S4 VI", "CCI UU, 0 B", "us"), Value(2.83), |m| {
        cci(m, UU, 0)
    })
    .is(How::Fitted),
    of(("S4 VI", "CCI RO, 0 B", "us"), Value(2.99), |m| {
        cci(m, RO, 0)
    }),
    of(("S4 V-A", "CCI UU, 256 B", "us"), AtMost(3.0), |m| {
        cci(m, UU, 256)
    }),
    of(
        ("S4 V-A", "size at which CCI UU takes 3 us", "B"),
        Between(256.0, 512.0),
        three_microseconds,
    ),
    of(("S4 VI", "CCI UU, 4 KB", "us"), Value(4.99), |m| {
        cci(m, UU, 4 * KB)
    }),
    of(("S4 VI", "CCI RO, 4 KB", "us"), Value(5.26), |m| {
        cci(m, RO, 4 * KB)
    }),
    of(
        (
            "S4 VI",
            "CCI, RO's latency above UU's, 0 B (2.99 - 2.83)",
            "us",
        ),
        Value(0.16),
        |m| Ok(cci(m, RO, 0)? - cci(m, UU, 0)?),
    )
    .because(ACKNOWLEDGED),
    of(
        (
            "S4 VI",
            "CCI, RO's latency above UU's, 4 KB (5.26 - 4.99)",
            "us",
        ),
        Value(0.27),
        |m| Ok(cci(m, RO, 4 * KB)? - cci(m, UU, 4 * KB)?),
    )
    .because(ACKNOWLEDGED),
    of(("S4 V-B", "CCI UU, 8 B", "messages/s"), Value(RATE), |m| {
        cci_rate(m, Class::Unreliable, 8)
    })
    .is(How::Fitted),
    of(("S4 V-B", "CCI UU, 1 KB", "messages/s"), Value(RATE), |m| {
        cci_rate(m, Class::Unreliable, KB)
    }),
    of(("S4 VI", "CCI RO, 8 B", "messages/s"), Over(640e3), |m| {
        cci_rate(m, Class::Reliable, 8)
    }),
    // The paper's "slightly under 500,000 messages/s" is the same measurement.
    of(("S4 V-B", "CCI UU, 4 KB", "MB/s"), Value(2000.0), |m| {
        Ok(rate(cci_gap(m, Class::Unreliable, 4 * KB)?, 4 * KB))
    }),
    of(
        ("S4 V-B", "CCI, RO's rate of UU's, 4 KB", "%"),
        Value(100.0),
        |m| {
            let unreliable = cci_rate(m, Class::Unreliable, 4 * KB)?;
            Ok(100.0 * cci_rate(m, Class::Reliable, 4 * KB)? / unreliable)
        },
    ),
    of(
        ("S4 V-B", "CCI UU runs out of bandwidth (our 10 %)", "B"),
        Value(2048.0),
        runs_out,
    )
    .is(How::Depends),
    of(
        (
            "S4 IV-C",
            "messages of 4 KB that an endpoint buffers to send",
            "",
        ),
        Value(96.0),
        |m| Ok(cci_room(&m.xt5, CciArea::Send, 4 * KB) as f64),
    )
    .is(How::Set),
    of(("S4 IV-C", "the same, 40 B", ""), Value(8_192.0), |m| {
        Ok(cci_room(&m.xt5, CciArea::Send, 40) as f64)
    })
    .is(How::Set),
    of(
        (
            "S4 IV-B",
            "messages of 4 KB that it has room to receive",
            "",
        ),
        Value(24_576.0),
        |m| Ok(cci_room(&m.xt5, CciArea::Receive, 4 * KB) as f64),
    )
    .is(How::Set),
    of(
        ("S4 VI", "CCI UU sends so many times as fast, 8 B", ""),
        Value(6.0),
        |m| times_as_fast(m, 8),
    ),
    of(
        ("S4 abstract", "the same, 512 B", ""),
        Between(6.0, 7.0),
        |m| times_as_fast(m, 512),
    ),
];

const ACKNOWLEDGED: &str = "of S4's own three numbers (0.16 and 0.27 us in part VI, about 0.8 us in \
                            V-A) no two agree; the model has the library's part at both ends only";
/// "A message every 960 ns" (S4 V-B).
const RATE: f64 = 1e9 / 960.0;

fn portals(m: &Machines, way: Way, bytes: u64) -> Result<f64, Refused> {
    Ok(in_us(ping_pong(&m.xt5(), way, bytes, 0)?))
}

/// The size from which a put of bound memory is as fast as one that is copied before.
fn copying_beats_binding(m: &Machines) -> Result<f64, Refused> {
    let (mut low, mut high) = (0, 64 * KB);
    while high - low > 64 {
        let middle = (low + high) / 2;
        match portals(m, Way::CopiedPut, middle)? < portals(m, Way::BoundPut, middle)? {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(high as f64)
}

fn cci(m: &Machines, way: Way, bytes: u64) -> Result<f64, Refused> {
    Ok(in_us(ping_pong(&m.xt5_cci(), way, bytes, 0)?))
}

fn cci_gap(m: &Machines, class: Class, bytes: u64) -> Result<Duration, Refused> {
    let wanted = Stream {
        class,
        ..Stream::of(bytes)
    };
    tuned_stream(&m.xt5_cci(), wanted)
}

fn cci_rate(m: &Machines, class: Class, bytes: u64) -> Result<f64, Refused> {
    Ok(per_second(cci_gap(m, class, bytes)?))
}

/// How many times as fast CCI sends as generic Portals.
fn times_as_fast(m: &Machines, bytes: u64) -> Result<f64, Refused> {
    let portals = per_second(tuned_stream(&m.xt5(), Stream::of(bytes))?);
    Ok(cci_rate(m, Class::Unreliable, bytes)? / portals)
}

/// The first size whose latency isn't below 3 microseconds.
fn three_microseconds(m: &Machines) -> Result<f64, Refused> {
    let (mut low, mut high) = (0, 4 * KB);
    while high - low > 1 {
        let middle = (low + high) / 2;
        match cci(m, UU, middle)? < 3.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(high as f64)
}

/// The first power of two whose message rate is a tenth below that of short messages.
fn runs_out(m: &Machines) -> Result<f64, Refused> {
    let short = cci_rate(m, Class::Unreliable, 8)?;
    for bytes in [256, 512, KB, 2 * KB] {
        if cci_rate(m, Class::Unreliable, bytes)? < 0.9 * short {
            return Ok(bytes as f64);
        }
    }
    Ok((4 * KB) as f64)
}
