//! The papers' points and figures, and what the simulated machines say.
//!
//! [`table`] is all points beside their predictions; [`figure`] is a figure's curves.
//! Both run the benchmarks of [`crate::workload`]; nothing is stored.

use std::fmt;

use lintel_sim_kernel::Duration;

use crate::node::{Mode, Placement, Refused};
use crate::parcel::Class;
use crate::profile::{Profile, RED_STORM_2005, XT5_2009};
use crate::workload::{
    Case, RandomAccess, Stream, Way, netpipe_sizes, ping_pong, random_access, tuned_stream,
};

/// What a document says of a point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Published {
    /// So much.
    Value(f64),
    /// So much or more.
    AtLeast(f64),
    /// So much or less.
    AtMost(f64),
    /// Between these.
    Between(f64, f64),
}

use Published::{AtLeast, AtMost, Between, Value};

/// How a simulated point comes about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum How {
    /// A constant was chosen so that it comes out.
    Fitted,
    /// A constant says it.
    Set,
    /// Of itself.
    Predicted,
}

/// A published point and its simulated one.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Where it stands.
    pub source: &'static str,
    /// The simulated machine.
    pub profile: &'static str,
    /// What was measured.
    pub what: &'static str,
    /// In this unit.
    pub unit: &'static str,
    /// What the document says.
    pub published: Published,
    /// What the simulation says.
    pub simulated: f64,
    /// How it comes to say so.
    pub how: How,
}

/// A figure of a paper.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Figure {
    /// S1, Figure 3: latency of PortalPerf.
    Latency,
    /// S1, Figures 4 and 5: bandwidth of PortalPerf.
    Bandwidth,
    /// S1, Figure 6: latency of NetPIPE, streaming puts included.
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
    /// Of no paper: latency by entries that are walked, generic and accelerated.
    Entries,
}

/// A curve of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// What it shows.
    pub label: &'static str,
    /// In this unit.
    pub unit: &'static str,
    /// By bytes of a message, or by entries.
    pub points: Vec<(u64, f64)>,
}

impl Figure {
    /// All figures.
    pub const ALL: [Figure; 9] = [
        Figure::Latency,
        Figure::Bandwidth,
        Figure::NetpipeLatency,
        Figure::NetpipeBandwidth,
        Figure::CciLatency,
        Figure::CciBandwidth,
        Figure::CciRate,
        Figure::Accelerated,
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
            Figure::Entries => "entries",
        }
    }
}

impl Published {
    /// How far a simulated point is from the published one, as a part of it: 0 where
    /// it lies where the document says.
    pub fn difference(self, simulated: f64) -> f64 {
        let (low, high) = match self {
            Value(value) => (value, value),
            AtLeast(least) => (least, f64::INFINITY),
            AtMost(most) => (f64::NEG_INFINITY, most),
            Between(low, high) => (low, high),
        };
        let nearest = simulated.clamp(low, high);
        (simulated - nearest) / nearest
    }

    /// The same for people.
    pub fn off(self, simulated: f64) -> String {
        let percent = 100.0 * self.difference(simulated);
        match self {
            Value(_) if percent.abs() < 0.05 => "0.0 %".to_string(),
            AtLeast(_) | AtMost(_) | Between(..) if percent == 0.0 => "within".to_string(),
            _ => format!("{percent:+.1} %"),
        }
    }
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Value(value) => number(value),
            AtLeast(least) => format!("≥ {}", number(least)),
            AtMost(most) => format!("≤ {}", number(most)),
            Between(low, high) => format!("{} … {}", number(low), number(high)),
        };
        f.pad(&text)
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            How::Fitted => "fitted",
            How::Set => "set",
            How::Predicted => "predicted",
        })
    }
}

/// A line of the table.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row {
            source,
            profile,
            what,
            unit,
            published,
            how,
            ..
        } = self;
        let (simulated, off) = (number(self.simulated), published.off(self.simulated));
        write!(
            f,
            "{source:11} {profile:13} {what:45} {published:>15} {simulated:>10} {unit:10} {off:>8} {how}"
        )
    }
}

/// With as many digits as tell something: two behind the point, three below 100.
pub fn number(value: f64) -> String {
    let digits = if value.abs() < 100.0 { 3 } else { 2 };
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

const RED_STORM: Case = Case::new(RED_STORM_2005, Mode::Generic);
const RED_STORM_NIC: Case = Case::new(RED_STORM_2005, Mode::Accelerated);
const XT5: Case = Case::new(XT5_2009, Mode::Generic);
const XT5_CCI: Case = Case::new(XT5_2009, Mode::Cci);
const UU: Way = Way::Cci(Class::Unreliable);
const RO: Way = Way::Cci(Class::Reliable);
const KB: u64 = 1 << 10;

/// All points of the papers that the machines predict, and those that were fitted.
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
    let mut rows = Rows::default();
    generic(&mut rows)?;
    bandwidth(&mut rows)?;
    linux(&mut rows)?;
    throughput(&mut rows)?;
    cci_latency(&mut rows)?;
    cci_streams(&mut rows)?;
    Ok(rows.0)
}

/// Those of the [`table`] that take more.
///
/// # Errors
/// A machine can't do a benchmark.
pub fn points_of_many() -> Result<Vec<Row>, Refused> {
    let mut rows = Rows::default();
    for (what, gain, dimensions, placement) in RANDOM_ACCESS {
        let run = RandomAccess {
            dimensions,
            ..RandomAccess::RED_STORM
        };
        let time = |mut case: Case| {
            case.setting.placement = placement;
            random_access(&case, run).map(in_us)
        };
        let faster = 100.0 * (time(RED_STORM)? / time(RED_STORM_NIC)? - 1.0);
        rows.add(&RED_STORM_2005, ("S0", what, "%"), Value(gain), faster);
    }
    Ok(rows.0)
}

/// What accelerated mode gains. On how many nodes isn't published: the counts are ours.
/// The more there are, the shorter are the messages and the more it gains.
const RANDOM_ACCESS: [(&str, f64, [u16; 3], Placement); 4] = [
    (
        "RandomAccess gains, SN, 32 nodes (our count)",
        27.0,
        [4, 4, 2],
        Placement::Single,
    ),
    (
        "RandomAccess gains, SN, 64 nodes (our count)",
        27.0,
        [4, 4, 4],
        Placement::Single,
    ),
    (
        "RandomAccess gains, VN, 32 nodes (our count)",
        90.0,
        [4, 4, 2],
        Placement::Virtual,
    ),
    (
        "RandomAccess gains, VN, 64 nodes (our count)",
        90.0,
        [4, 4, 4],
        Placement::Virtual,
    ),
];

/// The curves of a figure.
///
/// # Errors
/// A machine can't do a benchmark.
pub fn figure(figure: Figure) -> Result<Vec<Curve>, Refused> {
    let (put, get, both) = (Way::Put, Way::Get, Way::Both);
    match figure {
        Figure::Latency => curves(
            &SMALL,
            "us",
            latency,
            &[
                ("put", RED_STORM, put),
                ("get", RED_STORM, get),
                ("bidirectional put", RED_STORM, both),
            ],
        ),
        Figure::Bandwidth => curves(
            &LONG,
            "MB/s",
            rate,
            &[
                ("put", RED_STORM, put),
                ("get", RED_STORM, get),
                ("bidirectional put", RED_STORM, both),
            ],
        ),
        Figure::NetpipeLatency => netpipe_latency(),
        Figure::NetpipeBandwidth => {
            let sizes = netpipe_sizes(1_024 * KB);
            let mut all = curves(&sizes, "MB/s", rate, &[("put", RED_STORM, put)])?;
            let ways = [("bidirectional", RED_STORM, both)];
            all.extend(curves(&sizes, "MB/s", both_rates, &ways)?);
            Ok(all)
        }
        Figure::CciLatency => curves(
            &CCI,
            "us",
            latency,
            &[
                ("CCI UU", XT5_CCI, UU),
                ("CCI RO", XT5_CCI, RO),
                ("Portals", XT5, put),
            ],
        ),
        Figure::CciBandwidth => streams("MB/s", stream_bandwidth),
        Figure::CciRate => streams("messages/s", |gap, _| per_second(gap)),
        Figure::Accelerated => curves(
            &SMALL,
            "us",
            latency,
            &[
                ("generic, SN", RED_STORM, put),
                ("accelerated, SN", RED_STORM_NIC, put),
                ("generic, VN", RED_STORM.virtual_nodes(), put),
                ("accelerated, VN", RED_STORM_NIC.virtual_nodes(), put),
            ],
        ),
        Figure::Entries => entries(),
    }
}

const SMALL: [u64; 13] = [0, 1, 2, 4, 8, 12, 13, 16, 32, 64, 256, 512, 1_024];
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
const CCI: [u64; 12] = [0, 1, 2, 4, 8, 16, 32, 128, 512, KB, 2 * KB, 4 * KB];

#[derive(Default)]
struct Rows(Vec<Row>);

/// Where a point stands, what was measured there, and in which unit.
type Point = (&'static str, &'static str, &'static str);

impl Rows {
    /// Adds a predicted point.
    fn add(&mut self, profile: &Profile, point: Point, published: Published, simulated: f64) {
        let (source, what, unit) = point;
        self.0.push(Row {
            source,
            profile: profile.name,
            what,
            unit,
            published,
            simulated,
            how: How::Predicted,
        });
    }

    /// The point added last comes about otherwise.
    fn last_is(&mut self, how: How) {
        if let Some(row) = self.0.last_mut() {
            row.how = how;
        }
    }
}

fn generic(rows: &mut Rows) -> Result<(), Refused> {
    let p = &RED_STORM_2005;
    let us = |way| Ok::<f64, Refused>(in_us(ping_pong(&RED_STORM, way, 0, 0)?));
    let (put, get, both) = (us(Way::Put)?, us(Way::Get)?, us(Way::Both)?);
    rows.add(p, ("S1 6", "put, 0 B", "us"), Value(4.89), put);
    rows.last_is(How::Fitted);
    rows.add(p, ("S1 6", "get, 0 B", "us"), Value(6.09), get);
    let what = ("S1 6", "bidirectional put, 0 B", "us");
    rows.add(p, what, Value(8.39), both);
    let what = ("S1 6", "last size of one interrupt", "B");
    rows.add(p, what, Value(12.0), inline_step(&RED_STORM)?);
    rows.last_is(How::Set);
    Ok(())
}

fn bandwidth(rows: &mut Rows) -> Result<(), Refused> {
    let p = &RED_STORM_2005;
    let medium = point_rate(&RED_STORM, Way::Put, 100 * KB)?;
    let what = ("S1 6", "put, 100 KB", "MB/s");
    rows.add(p, what, Value(1051.43), medium);
    let get = point_rate(&RED_STORM, Way::Get, 100 * KB)?;
    rows.add(p, ("S1 6", "get, 100 KB", "MB/s"), Value(1012.17), get);
    let longest = point_rate(&RED_STORM, Way::Put, 2_048 * KB)?;
    rows.add(p, ("S1 6", "put, 2 MB", "MB/s"), Value(1108.0), longest);
    rows.last_is(How::Fitted);
    let both = 2.0 * point_rate(&RED_STORM, Way::Both, 2_048 * KB)?;
    let what = ("S1 6", "bidirectional put, 2 MB", "MB/s");
    rows.add(p, what, AtLeast(2200.0), both);
    half_bandwidths(rows, medium, longest, both)
}

/// Half of what each benchmark's own figure tops out at: PortalPerf's at 100 KB,
/// NetPIPE's where messages are longest.
fn half_bandwidths(rows: &mut Rows, medium: f64, longest: f64, both: f64) -> Result<(), Refused> {
    let p = &RED_STORM_2005;
    let half = half_bandwidth(&RED_STORM, Way::Put, medium)?;
    let what = ("S1 6", "half bandwidth, PortalPerf", "B");
    rows.add(p, what, Value(6144.0), half);
    let half = half_bandwidth(&RED_STORM, Way::Put, longest)?;
    let what = ("S1 6", "half bandwidth, NetPIPE", "B");
    rows.add(p, what, Value(8192.0), half);
    let half = 2.0 * half_bandwidth(&RED_STORM, Way::Both, both / 2.0)?;
    let what = ("S1 6", "half bandwidth, NetPIPE bidirectional", "B");
    rows.add(p, what, Value(24_576.0), half);
    Ok(())
}

fn linux(rows: &mut Rows) -> Result<(), Refused> {
    let p = &XT5_2009;
    let what = ("S4 V-A", "last size of one interrupt", "B");
    rows.add(p, what, Between(16.0, 31.0), inline_step(&XT5)?);
    rows.last_is(How::Set);
    let gap = tuned_stream(&XT5, Stream::of(1_024 * KB))?;
    let rate = stream_bandwidth(gap, 1_024 * KB);
    rows.add(p, ("S4 V-B", "put, 1 MB", "MB/s"), AtLeast(1700.0), rate);
    let plain = in_us(ping_pong(&XT5, Way::Put, 8, 0)?);
    let acknowledged = in_us(ping_pong(&XT5, Way::AcknowledgedPut, 8, 0)?);
    let what = ("S4 V-A", "an acknowledgement adds, 8 B", "us");
    rows.add(p, what, Between(4.4, 6.0), acknowledged - plain);
    let less = 100.0 * (1.0 - in_us(ping_pong(&XT5_CCI, UU, 8, 0)?) / plain);
    let what = ("S4 abstract", "CCI's latency less than Portals', 8 B", "%");
    rows.add(p, what, Between(30.0, 50.0), less);
    Ok(())
}

fn throughput(rows: &mut Rows) -> Result<(), Refused> {
    let mut last = 0;
    for bytes in LONG.into_iter().filter(|&bytes| bytes <= 128 * KB) {
        let generic = point_rate(&RED_STORM, Way::Put, bytes)?;
        if point_rate(&RED_STORM_NIC, Way::Put, bytes)? > 1.05 * generic {
            last = bytes;
        }
    }
    let what = ("S0", "last size with 5 % more throughput", "B");
    rows.add(&RED_STORM_2005, what, AtMost(32_768.0), last as f64);
    Ok(())
}

fn cci_latency(rows: &mut Rows) -> Result<(), Refused> {
    let p = &XT5_2009;
    let us = |way, bytes| Ok::<f64, Refused>(in_us(ping_pong(&XT5_CCI, way, bytes, 0)?));
    rows.add(p, ("S4 VI", "CCI UU, 0 B", "us"), Value(2.83), us(UU, 0)?);
    rows.last_is(How::Fitted);
    rows.add(p, ("S4 VI", "CCI RO, 0 B", "us"), Value(2.99), us(RO, 0)?);
    let what = ("S4 V-A", "CCI UU, 256 B", "us");
    rows.add(p, what, AtMost(3.0), us(UU, 256)?);
    let (unreliable, reliable) = (us(UU, 4 * KB)?, us(RO, 4 * KB)?);
    rows.add(p, ("S4 VI", "CCI UU, 4 KB", "us"), Value(4.99), unreliable);
    rows.add(p, ("S4 VI", "CCI RO, 4 KB", "us"), Value(5.26), reliable);
    let what = ("S4 V-A", "CCI, an acknowledgement adds, 64 B", "us");
    rows.add(p, what, Value(0.8), us(RO, 64)? - us(UU, 64)?);
    Ok(())
}

fn cci_streams(rows: &mut Rows) -> Result<(), Refused> {
    let p = &XT5_2009;
    let small = cci_gap(Class::Unreliable, 8)?;
    let what = ("S4 V-B", "CCI UU, 8 B", "messages/s");
    rows.add(p, what, Value(1e9 / 960.0), per_second(small));
    rows.last_is(How::Fitted);
    let medium = per_second(cci_gap(Class::Unreliable, KB)?);
    let what = ("S4 V-B", "CCI UU, 1 KB", "messages/s");
    rows.add(p, what, AtLeast(1e6), medium);
    let reliable = per_second(cci_gap(Class::Reliable, 8)?);
    let what = ("S4 VI", "CCI RO, 8 B", "messages/s");
    rows.add(p, what, Value(640e3), reliable);
    let long = cci_gap(Class::Unreliable, 4 * KB)?;
    let what = ("S4 V-B", "CCI UU, 4 KB", "messages/s");
    rows.add(p, what, Between(450e3, 500e3), per_second(long));
    let what = ("S4 V-B", "CCI UU, 4 KB", "MB/s");
    rows.add(p, what, Value(2000.0), stream_bandwidth(long, 4 * KB));
    against_portals(rows, small)
}

/// How much faster CCI sends than generic Portals.
fn against_portals(rows: &mut Rows, small: Duration) -> Result<(), Refused> {
    let p = &XT5_2009;
    let portals = |bytes| tuned_stream(&XT5, Stream::of(bytes));
    let times = per_second(small) / per_second(portals(8)?);
    let what = ("S4 VI", "CCI UU sends so many times as fast, 8 B", "");
    rows.add(p, what, Value(6.0), times);
    let medium = cci_gap(Class::Unreliable, 512)?;
    let times = per_second(medium) / per_second(portals(512)?);
    let what = ("S4 abstract", "the same, 512 B", "");
    rows.add(p, what, Between(6.0, 7.0), times);
    Ok(())
}

fn cci_gap(class: Class, bytes: u64) -> Result<Duration, Refused> {
    let wanted = Stream {
        class,
        ..Stream::of(bytes)
    };
    tuned_stream(&XT5_CCI, wanted)
}

/// The largest size whose put takes no longer than one without payload.
fn inline_step(case: &Case) -> Result<f64, Refused> {
    let least = ping_pong(case, Way::Put, 0, 0)?;
    for bytes in 1..=64 {
        if ping_pong(case, Way::Put, bytes, 0)? > least + Duration::from_ns(500) {
            return Ok((bytes - 1) as f64);
        }
    }
    Ok(64.0)
}

/// The size at which half of `whole` is reached.
fn half_bandwidth(case: &Case, way: Way, whole: f64) -> Result<f64, Refused> {
    let (mut low, mut high) = (64, 64 * KB);
    while high - low > 16 {
        let middle = (low + high) / 2;
        match point_rate(case, way, middle)? < whole / 2.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(high as f64)
}

fn in_us(duration: Duration) -> f64 {
    duration.as_ps() as f64 / 1e6
}

fn per_second(gap: Duration) -> f64 {
    1e12 / gap.as_ps() as f64
}

fn stream_bandwidth(gap: Duration, bytes: u64) -> f64 {
    bytes as f64 / in_us(gap)
}

fn point_rate(case: &Case, way: Way, bytes: u64) -> Result<f64, Refused> {
    Ok(rate(ping_pong(case, way, bytes, 0)?, bytes))
}

fn latency(took: Duration, _: u64) -> f64 {
    in_us(took)
}

fn rate(took: Duration, bytes: u64) -> f64 {
    bytes as f64 / in_us(took)
}

fn both_rates(took: Duration, bytes: u64) -> f64 {
    2.0 * rate(took, bytes)
}

fn curves(
    sizes: &[u64],
    unit: &'static str,
    value: impl Fn(Duration, u64) -> f64,
    cases: &[(&'static str, Case, Way)],
) -> Result<Vec<Curve>, Refused> {
    let mut curves = Vec::new();
    for (label, case, way) in cases {
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

fn netpipe_latency() -> Result<Vec<Curve>, Refused> {
    let ways = [
        ("put", RED_STORM, Way::Put),
        ("bidirectional", RED_STORM, Way::Both),
    ];
    let mut all = curves(&SMALL, "us", latency, &ways)?;
    let points = stream_points(&SMALL, &RED_STORM, Class::Unreliable, |gap, _| in_us(gap))?;
    all.push(Curve {
        label: "streaming put",
        unit: "us",
        points,
    });
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

fn entries() -> Result<Vec<Curve>, Refused> {
    let mut curves = Vec::new();
    for (label, case) in [("generic", RED_STORM), ("accelerated", RED_STORM_NIC)] {
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
