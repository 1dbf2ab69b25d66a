//! The table `machine` and the workloads of the simulated SeaStar machine.

use std::ops::RangeInclusive;

use lintel_sim_kernel::Duration;
use lintel_sim_seastar::profile::{PROFILES, Unit};
use lintel_sim_seastar::workload::{
    Arrivals, Benchmark, Case, Exchange, Halo, Hypercube, Incast, ManyToMany, NetPipe, Pattern,
    RandomAccess, Rounds, Running, Stream, Way,
};
use lintel_sim_seastar::{Class, Mode, Placement, Profile, Protection, Refused};

use crate::choice::Choice;
use crate::config_error::ConfigError;
use crate::machine::sides;
use crate::reader::Reader;
use crate::run::{Figure, Run, Stepped, micro};
use crate::span::{Observer, Place, relay};

/// What `workload.kind` takes with this model.
pub(crate) const KINDS: [Choice<Kind>; 16] = [
    Choice::new(
        "put",
        "half a round trip of puts: bytes, entries_ahead",
        Kind::PingPong(Way::Put),
    ),
    Choice::new(
        "copied-put",
        "the same, each payload copied into a bound buffer: bytes, entries_ahead",
        Kind::PingPong(Way::CopiedPut),
    ),
    Choice::new(
        "bound-put",
        "the same, each payload's memory bound before and unlinked after: bytes, entries_ahead",
        Kind::PingPong(Way::BoundPut),
    ),
    Choice::new(
        "acknowledged-put",
        "half a round trip of puts, each acknowledged: bytes, entries_ahead",
        Kind::PingPong(Way::AcknowledgedPut),
    ),
    Choice::new(
        "get",
        "from the call to the reply: bytes, entries_ahead",
        Kind::PingPong(Way::Get),
    ),
    Choice::new(
        "both-ways",
        "puts both ways at once: bytes, entries_ahead",
        Kind::PingPong(Way::Both),
    ),
    Choice::new(
        "netpipe",
        "NetPIPE's own loops of puts: bytes, pattern",
        Kind::NetPipe,
    ),
    Choice::new(
        "cci",
        "half a round trip of CCI messages: bytes, class",
        Kind::Cci,
    ),
    Choice::new(
        "stream",
        "puts one after the other: bytes, window, messages",
        Kind::Stream(Ways::One),
    ),
    Choice::new(
        "two-way-stream",
        "streams both ways between two cores: bytes, window, messages",
        Kind::Stream(Ways::Both),
    ),
    Choice::new(
        "cci-stream",
        "CCI messages one after the other: bytes, window, messages, class",
        Kind::CciStream,
    ),
    Choice::new("incast", "all put to node 0: bytes, messages", Kind::Incast),
    Choice::new(
        "many-to-many",
        "each puts to each: bytes, messages",
        Kind::ManyToMany,
    ),
    Choice::new(
        "halo",
        "faces put to six neighbours: bytes, compute_ns, repeats",
        Kind::Halo,
    ),
    Choice::new(
        "random-access",
        "HPCC RandomAccess, words updated anywhere: updates",
        Kind::RandomAccess,
    ),
    Choice::new(
        "random-access-hypercube",
        "the same by exchanges along a hypercube: chunks",
        Kind::Hypercube,
    ),
];

/// A machine, and what runs on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    case: Case,
    work: Work,
}

#[derive(Clone, Copy, Debug)]
enum Work {
    PingPong(Rounds),
    NetPipe(NetPipe),
    Stream(Stream, Ways),
    Incast(Incast),
    ManyToMany(ManyToMany),
    Halo(Halo),
    RandomAccess(RandomAccess),
    Hypercube(Hypercube),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ways {
    One,
    Both,
}

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    PingPong(Way),
    NetPipe,
    Cci,
    Stream(Ways),
    CciStream,
    Incast,
    ManyToMany,
    Halo,
    RandomAccess,
    Hypercube,
}

impl Setup {
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Setup, ConfigError> {
        let profile = profile(reader)?;
        let kind = reader.must_choose_from("workload.kind", &KINDS)?;
        let case = case(reader, profile, kind)?;
        let work = work(reader, &case, kind)?;
        Ok(Setup { case, work })
    }

    pub(crate) fn prepare(&self, observer: Option<Observer>) -> Result<Box<dyn Run>, String> {
        self.benchmark()
            .map(|benchmark| begin(benchmark, observer))
            .map_err(|refused| refused.to_string())
    }

    fn benchmark(&self) -> Result<Benchmark<Vec<Figure>>, Refused> {
        let case = &self.case;
        Ok(match self.work {
            Work::PingPong(rounds) => rounds
                .prepare(case)?
                .map(move |took| rounds_found(rounds, took)),
            Work::NetPipe(run) => run.prepare(case)?.map(move |took| netpipe_found(run, took)),
            Work::Stream(stream, Ways::One) => stream
                .prepare(case)?
                .map(move |gap| stream_found(stream, gap)),
            Work::Stream(stream, Ways::Both) => stream
                .prepare_both_ways(case)?
                .map(move |gap| stream_found(stream, gap)),
            Work::Incast(incast) => incast.prepare(case)?.map(|found| arrivals_found(&found)),
            Work::ManyToMany(run) => {
                let bytes = run.bytes;
                run.prepare(case)?
                    .map(move |found| exchange_found(bytes, &found))
            }
            Work::Halo(halo) => halo
                .prepare(case)?
                .map(|took| vec![Figure::new("exchange, µs", micro(took))]),
            Work::RandomAccess(run) => {
                let updates = run.updates_in_all(case);
                run.prepare(case)?.map(move |took| {
                    vec![
                        Figure::new("updates/µs", updates as f64 / micro(took)),
                        Figure::new("all, µs", micro(took)),
                    ]
                })
            }
            Work::Hypercube(run) => {
                let updates = run.updates_of_chunk(case);
                run.prepare(case)?.map(move |took| {
                    vec![
                        Figure::new("updates/µs", updates as f64 / micro(took)),
                        Figure::new("chunk, µs", micro(took)),
                    ]
                })
            }
        })
    }
}

fn begin(mut benchmark: Benchmark<Vec<Figure>>, observer: Option<Observer>) -> Box<dyn Run> {
    if let Some(observer) = observer {
        benchmark.observe(relay(observer, Place::Node));
    }
    let Running {
        simulation,
        done,
        read,
    } = benchmark.begin();
    Box::new(Stepped {
        simulation,
        done: Box::new(move |_| done()),
        read: Box::new(|simulation| read(simulation).map_err(|refused| refused.to_string())),
    })
}

fn profile(reader: &Reader<'_>) -> Result<Profile, ConfigError> {
    let profiles = PROFILES.map(|profile| (profile.name, *profile));
    let mut profile = reader.must_choose("machine.profile", &profiles)?;
    for (name, constant) in profile.constants() {
        let path = format!("machine.constants.{name}");
        if let Some(value) = reader.number(&path, allowed(name, constant.unit))? {
            let known = profile.with(name, value);
            profile = known.expect("it is one of the profile's");
        }
    }
    Ok(profile)
}

/// What a constant may be: nothing works with no room or at no rate.
fn allowed(name: &str, unit: Unit) -> RangeInclusive<u64> {
    match unit {
        Unit::PerBillion => 0..=1_000_000_000,
        Unit::Nanoseconds | Unit::Cycles => 0..=1 << 40,
        Unit::Bytes if name == "inline_bytes" => 0..=1 << 40,
        Unit::Bytes | Unit::Hertz | Unit::BytesPerSecond | Unit::Count => 1..=1 << 40,
    }
}

/// Who serves processes, how many a node has, and what protects it.
fn case(reader: &Reader<'_>, profile: Profile, kind: Kind) -> Result<Case, ConfigError> {
    let mut case = Case::new(profile, Mode::Cci);
    if !matches!(kind, Kind::Cci | Kind::CciStream) {
        let modes = [("host", Mode::Generic), ("nic", Mode::Accelerated)];
        let mode = reader.choose("machine.matching", &modes)?;
        case.mode = mode.unwrap_or(Mode::Generic);
        let protections = [
            ("none", Protection::None),
            ("host", Protection::Host),
            ("end-to-end", Protection::EndToEnd),
            ("swapping", Protection::Swap),
        ];
        let protection = reader.choose("machine.protection", &protections)?;
        case.setting.protection = protection.unwrap_or(Protection::None);
    }
    if !matches!(kind, Kind::Incast | Kind::Halo | Kind::Stream(Ways::Both)) {
        let placements = [("sn", Placement::Single), ("vn", Placement::Virtual)];
        let placement = reader.choose("machine.placement", &placements)?;
        case.setting.placement = placement.unwrap_or(Placement::Single);
    }
    case.setting.seed = reader.number("seed", 0..=i64::MAX as u64)?.unwrap_or(1);
    Ok(case)
}

fn work(reader: &Reader<'_>, case: &Case, kind: Kind) -> Result<Work, ConfigError> {
    Ok(match kind {
        Kind::PingPong(way) => Work::PingPong(rounds(reader, case, way)?),
        Kind::NetPipe => Work::NetPipe(NetPipe {
            pattern: pattern(reader)?,
            bytes: bytes(reader, MOST_BYTES)?,
        }),
        Kind::Cci => Work::PingPong(Rounds {
            way: Way::Cci(class(reader)?),
            bytes: bytes(reader, case.profile.cci_mss.value)?,
            ahead: 0,
            phase: Duration::ZERO,
        }),
        Kind::Stream(ways) => Work::Stream(stream(reader, MOST_BYTES)?, ways),
        Kind::CciStream => {
            let class = class(reader)?;
            let stream = stream(reader, case.profile.cci_mss.value)?;
            Work::Stream(Stream { class, ..stream }, Ways::One)
        }
        Kind::Incast => Work::Incast(Incast {
            dimensions: dimensions(reader)?,
            messages: messages(reader, 100_000)?,
            bytes: bytes(reader, MOST_BYTES)?,
        }),
        Kind::ManyToMany => Work::ManyToMany(ManyToMany {
            dimensions: dimensions(reader)?,
            messages: messages(reader, 1_000)?,
            bytes: bytes(reader, MOST_BYTES)?,
        }),
        Kind::Halo => Work::Halo(halo(reader)?),
        Kind::RandomAccess => Work::RandomAccess(random_access(reader)?),
        Kind::Hypercube => Work::Hypercube(Hypercube {
            dimensions: dimensions(reader)?,
            chunks: reader.count("workload.chunks", 1..=100_000)?.unwrap_or(1),
            ..Hypercube::OURS
        }),
    })
}

fn bytes(reader: &Reader<'_>, most: u64) -> Result<u64, ConfigError> {
    let bytes = reader.number("workload.bytes", 0..=most)?;
    Ok(bytes.unwrap_or(0))
}

fn messages(reader: &Reader<'_>, most: u32) -> Result<u32, ConfigError> {
    let messages = reader.count("workload.messages", 1..=most)?;
    Ok(messages.unwrap_or(1))
}

/// With entries ahead of the one that matches, as many as there may be.
fn rounds(reader: &Reader<'_>, case: &Case, way: Way) -> Result<Rounds, ConfigError> {
    let entries = match case.mode {
        Mode::Generic => case.profile.generic_entries.value,
        Mode::Accelerated | Mode::Cci => case.profile.accelerated_entries.value,
    };
    let ahead = reader.number("workload.entries_ahead", 0..=entries.saturating_sub(1))?;
    Ok(Rounds {
        way,
        bytes: bytes(reader, MOST_BYTES)?,
        ahead: ahead.unwrap_or(0),
        phase: Duration::ZERO,
    })
}

fn halo(reader: &Reader<'_>) -> Result<Halo, ConfigError> {
    let compute = reader.number("workload.compute_ns", 0..=1_000_000_000)?;
    let rounds = reader.count("workload.repeats", 1..=1_000_000)?;
    Ok(Halo {
        dimensions: dimensions(reader)?,
        bytes: bytes(reader, MOST_BYTES)?,
        compute: Duration::from_ns(compute.unwrap_or(0)),
        rounds: rounds.unwrap_or(1),
    })
}

fn random_access(reader: &Reader<'_>) -> Result<RandomAccess, ConfigError> {
    let updates = reader.count("workload.updates", 1..=100_000_000)?;
    Ok(RandomAccess {
        dimensions: dimensions(reader)?,
        updates: updates.unwrap_or(RandomAccess::RED_STORM.updates),
        ..RandomAccess::RED_STORM
    })
}

fn pattern(reader: &Reader<'_>) -> Result<Pattern, ConfigError> {
    let patterns = [
        ("ping-pong", Pattern::PingPong),
        ("bidirectional", Pattern::Bidirectional),
        ("streaming", Pattern::Streaming),
    ];
    let pattern = reader.choose("workload.pattern", &patterns)?;
    Ok(pattern.unwrap_or(Pattern::PingPong))
}

fn class(reader: &Reader<'_>) -> Result<Class, ConfigError> {
    let classes = [
        ("unreliable", Class::Unreliable),
        ("reliable", Class::Reliable),
    ];
    let class = reader.choose("workload.class", &classes)?;
    Ok(class.unwrap_or(Class::Unreliable))
}

fn stream(reader: &Reader<'_>, most_bytes: u64) -> Result<Stream, ConfigError> {
    let usual = Stream::of(bytes(reader, most_bytes)?);
    let window = reader.count("workload.window", 1..=100_000)?;
    let messages = reader.count("workload.messages", 1..=10_000_000)?;
    Ok(Stream {
        window: window.unwrap_or(usual.window),
        messages: messages.unwrap_or(usual.messages),
        ..usual
    })
}

/// A torus of two nodes or more.
fn dimensions(reader: &Reader<'_>) -> Result<[u16; 3], ConfigError> {
    let sizes = reader.sizes("machine.size", EXAMPLE)?;
    let Some(sizes) = sizes else {
        let what = format!("machine.size is missing; it takes 3 sizes, such as {EXAMPLE:?}");
        return Err(reader.wrong("machine.size", what));
    };
    let nodes: u64 = sizes.iter().map(|&size| u64::from(size)).product();
    match (2..=MOST_NODES).contains(&nodes) {
        true => sides(reader, &sizes),
        false => {
            let what = format!("machine.size has {nodes} nodes; it takes 2 to {MOST_NODES}");
            Err(reader.wrong("machine.size", what))
        }
    }
}

fn rounds_found(rounds: Rounds, took: Duration) -> Vec<Figure> {
    let mut figures = vec![Figure::new("one way, µs", micro(took))];
    if rounds.bytes > 0 {
        let directions = if rounds.way == Way::Both { 2.0 } else { 1.0 };
        let rate = directions * rounds.bytes as f64 / micro(took);
        figures.push(Figure::new("MB/s", rate));
    }
    figures
}

/// NetPIPE counts the bytes of both directions.
fn netpipe_found(run: NetPipe, took: Duration) -> Vec<Figure> {
    let directions = if run.pattern == Pattern::Bidirectional {
        2.0
    } else {
        1.0
    };
    let mut figures = vec![Figure::new("a message, µs", micro(took))];
    if run.bytes > 0 {
        let rate = directions * run.bytes as f64 / micro(took);
        figures.push(Figure::new("MB/s", rate));
    }
    figures
}

/// For each direction, if there are two.
fn stream_found(stream: Stream, gap: Duration) -> Vec<Figure> {
    let mut figures = vec![Figure::new("messages/s", 1e6 / micro(gap))];
    if stream.bytes > 0 {
        figures.push(Figure::new("MB/s", stream.bytes as f64 / micro(gap)));
    }
    figures.push(Figure::new("a message, µs", micro(gap)));
    figures
}

fn arrivals_found(found: &Arrivals) -> Vec<Figure> {
    let lost = found.sent - found.received;
    vec![
        Figure::new("all, µs", micro(found.end)),
        Figure::new("received", found.received as f64),
        Figure::new("lost", lost as f64),
        Figure::new("without an entry of the CAM", found.report.overflows as f64),
        Figure::new("without a structure", found.report.exhausted as f64),
        Figure::new("retransmitted", found.retransmitted as f64),
        Figure::new("entries swapped", found.report.swaps as f64),
        Figure::new("node aborted", f64::from(found.report.aborted.is_some())),
    ]
}

fn exchange_found(bytes: u64, found: &Exchange) -> Vec<Figure> {
    let mut figures = vec![Figure::new("all, µs", micro(found.took))];
    if bytes > 0 {
        let rate = (bytes * found.received) as f64 / micro(found.took);
        figures.push(Figure::new("MB/s", rate));
    }
    let lost = found.sent - found.received;
    figures.extend([
        Figure::new("received", found.received as f64),
        Figure::new("lost", lost as f64),
        Figure::new("without an entry of the CAM", found.overflows as f64),
        Figure::new("retransmitted", found.retransmitted as f64),
        Figure::new("entries swapped", found.swaps as f64),
    ]);
    figures
}

const EXAMPLE: &str = "4x4x4";
/// The longest message, 1 GiB.
const MOST_BYTES: u64 = 1 << 30;
/// Some gigabytes of a machine's memory.
const MOST_NODES: u64 = 1 << 15;
