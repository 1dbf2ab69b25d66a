//! The curves of the papers' figures.

use lintel_sim_kernel::Duration;

use super::many::gain_on;
use super::point::Machines;
use super::{
    KB, LONG, RED_STORM, RO, UPGRADED, UPGRADED_NIC, UU, XT5, XT5_CCI, in_us, netpipe_rate,
    per_second, rate,
};
use crate::message::Class;
use crate::node::{Placement, Refused};
use crate::workload::{
    Case, NetPipe, Pattern, Stream, Way, netpipe, netpipe_sizes, ping_pong, tuned_stream,
};

/// A figure of a paper.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Figure {
    /// S1, Figure 3: latency of PortalPerf.
    Latency,
    /// S1, Figures 4 and 5: bandwidth of PortalPerf.
    Bandwidth,
    /// S1, Figure 6: latency of NetPIPE, streaming included; gets are in S1's text only.
    NetpipeLatency,
    /// S1, Figure 7: bandwidth of NetPIPE, whose bidirectional one counts both ways.
    NetpipeBandwidth,
    /// S4, Figure 2: ping-pong of CCI and Portals.
    CciLatency,
    /// S4, Figure 3: streaming bandwidth.
    CciBandwidth,
    /// S4, Figure 4: streaming message rate.
    CciRate,
    /// S0: ping-pong, generic and accelerated, in SN and VN mode.
    Accelerated,
    /// S0: throughput, generic and accelerated.
    Throughput,
    /// S0: what accelerated mode gains in RandomAccess, by nodes, in SN and VN mode.
    RandomAccessGain,
    /// Of no paper: latency by entries that are walked, generic and accelerated.
    Entries,
}

/// A curve of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// Its text in the legend.
    pub label: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// By bytes of a message, or by entries.
    pub points: Vec<(u64, f64)>,
}

impl Figure {
    /// All figures, in the order of their publications.
    pub const ALL: [Figure; 11] = [
        Figure::Latency,
        Figure::Bandwidth,
        Figure::NetpipeLatency,
        Figure::NetpipeBandwidth,
        Figure::CciLatency,
        Figure::CciBandwidth,
        Figure::CciRate,
        Figure::Accelerated,
        Figure::Throughput,
        Figure::RandomAccessGain,
        Figure::Entries,
    ];

    /// What it is called on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Latency => "seed-001-3",
            Figure::Bandwidth => "seed-001-4",
            Figure::NetpipeLatency => "seed-001-6",
            Figure::NetpipeBandwidth => "seed-001-7",
            Figure::CciLatency => "seed-004-2",
            Figure::CciBandwidth => "seed-004-3",
            Figure::CciRate => "seed-004-4",
            Figure::Accelerated => "seed-000-ping-pong",
            Figure::Throughput => "seed-000-throughput",
            Figure::RandomAccessGain => "seed-000-random-access",
            Figure::Entries => "entries",
        }
    }
}

/// The curves of a figure.
///
/// # Errors
/// A machine can't do a benchmark.
pub fn figure(figure: Figure) -> Result<Vec<Curve>, Refused> {
    match figure {
        Figure::Latency => curves(&SMALL, "us", latency, &PORTAL_PERF),
        Figure::Bandwidth => curves(&LONG, "MB/s", rate, &PORTAL_PERF),
        Figure::NetpipeLatency => netpipe_latency(),
        Figure::NetpipeBandwidth => netpipe_bandwidth(),
        Figure::CciLatency => curves(&CCI, "us", latency, &CCI_AND_PORTALS),
        Figure::CciBandwidth => streams("MB/s", rate),
        Figure::CciRate => streams("messages/s", |gap, _| per_second(gap)),
        Figure::Accelerated => curves(&SMALL, "us", latency, &BOTH_MODES),
        Figure::Throughput => curves(&LONG[..12], "MB/s", rate, &BOTH_MODES[..2]),
        Figure::RandomAccessGain => random_access_gain(),
        Figure::Entries => entries(),
    }
}

/// A curve's label, its machine and what goes to and fro there.
type Wanted = (&'static str, Case, Way);

const PORTAL_PERF: [Wanted; 3] = [
    ("put", RED_STORM, Way::Put),
    ("get", RED_STORM, Way::Get),
    ("bidirectional put", RED_STORM, Way::Both),
];

const CCI_AND_PORTALS: [Wanted; 3] = [
    ("CCI UU", XT5_CCI, UU),
    ("CCI RO", XT5_CCI, RO),
    ("Portals", XT5, Way::CopiedPut),
];

const BOTH_MODES: [Wanted; 4] = [
    ("generic, SN", UPGRADED, Way::Put),
    ("accelerated, SN", UPGRADED_NIC, Way::Put),
    ("generic, VN", UPGRADED.virtual_nodes(), Way::Put),
    ("accelerated, VN", UPGRADED_NIC.virtual_nodes(), Way::Put),
];

const SMALL: [u64; 13] = [0, 1, 2, 4, 8, 12, 13, 16, 32, 64, 256, 512, 1_024];
const CCI: [u64; 12] = [0, 1, 2, 4, 8, 16, 32, 128, 512, KB, 2 * KB, 4 * KB];

fn latency(took: Duration, _: u64) -> f64 {
    in_us(took)
}

fn curves(
    sizes: &[u64],
    unit: &'static str,
    value: impl Fn(Duration, u64) -> f64,
    wanted: &[Wanted],
) -> Result<Vec<Curve>, Refused> {
    let mut curves = Vec::new();
    for (label, case, way) in wanted {
        let mut points = Vec::new();
        for &bytes in sizes {
            points.push((bytes, value(ping_pong(case, *way, bytes, 0)?, bytes)));
        }
        curves.push(Curve {
            label,
            unit,
            points,
        });
    }
    Ok(curves)
}

/// NetPIPE's patterns; of a bidirectional one it counts the bytes of both directions.
const NETPIPE: [(&str, Pattern); 3] = [
    ("put", Pattern::PingPong),
    ("bidirectional", Pattern::Bidirectional),
    ("streaming put", Pattern::Streaming),
];

fn netpipe_curves(
    sizes: &[u64],
    unit: &'static str,
    value: impl Fn(Pattern, u64) -> Result<f64, Refused>,
) -> Result<Vec<Curve>, Refused> {
    let mut all = Vec::new();
    for (label, pattern) in NETPIPE {
        let counted = match pattern {
            Pattern::Bidirectional => 2,
            Pattern::PingPong | Pattern::Streaming => 1,
        };
        let mut points = Vec::new();
        for &bytes in sizes {
            points.push((counted * bytes, value(pattern, bytes)?));
        }
        all.push(Curve {
            label,
            unit,
            points,
        });
    }
    Ok(all)
}

const GETS: [Wanted; 1] = [("get", RED_STORM, Way::Get)];

fn netpipe_latency() -> Result<Vec<Curve>, Refused> {
    let mut all = netpipe_curves(&SMALL, "us", |pattern, bytes| {
        netpipe(&RED_STORM, NetPipe { pattern, bytes }).map(in_us)
    })?;
    all.extend(curves(&SMALL, "us", latency, &GETS)?);
    let mut points = Vec::new();
    for bytes in SMALL {
        let gets = Stream {
            gets: true,
            ..Stream::of(bytes)
        };
        points.push((bytes, in_us(tuned_stream(&RED_STORM, gets)?)));
    }
    all.push(Curve {
        label: "streaming get",
        unit: "us",
        points,
    });
    Ok(all)
}

fn netpipe_bandwidth() -> Result<Vec<Curve>, Refused> {
    let sizes = netpipe_sizes(1_024 * KB);
    let mut all = netpipe_curves(&sizes, "MB/s", |pattern, bytes| {
        netpipe_rate(&RED_STORM, pattern, bytes)
    })?;
    all.extend(curves(&sizes, "MB/s", rate, &GETS)?);
    Ok(all)
}

fn streams(
    unit: &'static str,
    value: impl Fn(Duration, u64) -> f64 + Copy,
) -> Result<Vec<Curve>, Refused> {
    let cases = [
        ("CCI UU", XT5_CCI, Class::Unreliable),
        ("CCI RO", XT5_CCI, Class::Reliable),
        ("Portals", XT5, Class::Unreliable),
    ];
    let mut curves = Vec::new();
    for (label, case, class) in cases {
        let points = stream_points(&CCI, &case, class, value)?;
        curves.push(Curve {
            label,
            unit,
            points,
        });
    }
    Ok(curves)
}

fn stream_points(
    sizes: &[u64],
    case: &Case,
    class: Class,
    value: impl Fn(Duration, u64) -> f64,
) -> Result<Vec<(u64, f64)>, Refused> {
    let mut points = Vec::new();
    for &bytes in sizes {
        let gap = tuned_stream(
            case,
            Stream {
                class,
                ..Stream::of(bytes)
            },
        )?;
        points.push((bytes, value(gap, bytes)));
    }
    Ok(points)
}

/// S0 states one gain for each mode, and not on how many nodes: lines across the figure.
fn random_access_gain() -> Result<Vec<Curve>, Refused> {
    let modes = [
        (
            "SN",
            "S0's SN, on a number of nodes that it doesn't state",
            27.0,
            Placement::Single,
        ),
        ("VN", "S0's VN, likewise", 90.0, Placement::Virtual),
    ];
    let tori = [[2, 2, 2], [4, 2, 2], [4, 4, 2], [4, 4, 4]];
    let nodes = tori.map(|sides| sides.map(u64::from).iter().product::<u64>());
    let mut all = Vec::new();
    for (label, _, _, placement) in modes {
        let mut points = Vec::new();
        for (nodes, dimensions) in nodes.into_iter().zip(tori) {
            points.push((nodes, gain_on(&Machines::PUBLISHED, placement, dimensions)?));
        }
        all.push(Curve {
            label,
            unit: "%",
            points,
        });
    }
    all.extend(modes.map(|(_, label, gain, _)| Curve {
        label,
        unit: "%",
        points: nodes.map(|nodes| (nodes, gain)).to_vec(),
    }));
    Ok(all)
}

fn entries() -> Result<Vec<Curve>, Refused> {
    let mut curves = Vec::new();
    for (label, case) in [("generic", UPGRADED), ("accelerated", UPGRADED_NIC)] {
        let mut points = Vec::new();
        for ahead in [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000] {
            points.push((ahead, in_us(ping_pong(&case, Way::Put, 0, ahead)?)));
        }
        curves.push(Curve {
            label,
            unit: "us",
            points,
        });
    }
    Ok(curves)
}
