//! The table `workload` of hosts that go through a schedule.

use lintel_collectives::{Algorithm, Collective, Shape, Tree};
use lintel_sim_goal::{Goal, patterns};
use lintel_sim_kernel::{Duration, Streams};

use crate::choice::Choice;
use crate::config_error::ConfigError;
use crate::reader::Reader;
use crate::run::{Figure, micro};

/// What `workload.kind` takes with hosts.
pub(crate) const KINDS: [Choice<Kind>; 12] = [
    Choice::new(
        "goal",
        "a schedule in the textual form of GOAL: file",
        Kind::Goal,
    ),
    Choice::new(
        "ping-pong",
        "the first and the last rank in turn: bytes, repeats",
        Kind::PingPong,
    ),
    Choice::new(
        "uniform",
        "messages to ranks chosen at random: messages, bytes, gap_ns",
        Kind::Uniform,
    ),
    Choice::new(
        "incast",
        "all send to rank 0: messages, bytes",
        Kind::Incast,
    ),
    Choice::new(
        "all-to-all",
        "each rank sends to each: bytes",
        Kind::AllToAll,
    ),
    Choice::new(
        "halo",
        "six neighbours in a closed 3D grid: places, bytes, compute_ns, repeats",
        Kind::Halo,
    ),
    Choice::new(
        "barrier",
        "all ranks wait for all: algorithm, operations",
        Kind::Collective(Operation::Barrier),
    ),
    Choice::new(
        "all-reduce",
        "the result goes to all ranks: algorithm, bytes, operations",
        Kind::Collective(Operation::AllReduce),
    ),
    Choice::new(
        "broadcast",
        "from one rank to all: algorithm, bytes, operations, piece_bytes",
        Kind::Collective(Operation::Broadcast),
    ),
    Choice::new(
        "reduce",
        "the result goes to one rank: algorithm, bytes, operations",
        Kind::Collective(Operation::Reduce),
    ),
    Choice::new(
        "gather",
        "from all ranks to one: algorithm, bytes, operations",
        Kind::Collective(Operation::Gather),
    ),
    Choice::new(
        "scatter",
        "from one rank, a part to each: algorithm, bytes, operations",
        Kind::Collective(Operation::Scatter),
    ),
];

/// The schedule that hosts execute.
#[derive(Clone, Debug)]
pub(crate) enum Workload {
    File(String),
    PingPong {
        ranks: u32,
        bytes: u64,
        repeats: u32,
    },
    Uniform {
        ranks: u32,
        messages: u32,
        bytes: u64,
        gap_ns: u64,
    },
    Incast {
        ranks: u32,
        messages: u32,
        bytes: u64,
    },
    AllToAll {
        ranks: u32,
        bytes: u64,
    },
    Halo {
        places: [u32; 3],
        bytes: u64,
        compute_ns: u64,
        repeats: u32,
    },
    Collective {
        collective: Collective,
        operations: u32,
        bytes: u64,
        /// In so many it goes.
        pieces: u64,
    },
}

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Goal,
    PingPong,
    Uniform,
    Incast,
    AllToAll,
    Halo,
    Collective(Operation),
}

/// A collective operation that hosts execute.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Barrier,
    AllReduce,
    Broadcast,
    Reduce,
    Gather,
    Scatter,
}

/// What a schedule's time is divided by.
struct Meaning {
    /// What one of them is called; the figure is its time.
    unit: &'static str,
    /// How many the schedule has, one after the other.
    count: u64,
    /// Bytes that one of them moves.
    bytes: f64,
}

impl Workload {
    /// `room` is how many ranks the machine has, if that is fixed.
    pub(crate) fn read(reader: &Reader<'_>, room: Option<u64>) -> Result<Workload, ConfigError> {
        let workload = Self::chosen(reader, room)?;
        match workload.operations() {
            operations if operations > MOST_OPERATIONS => {
                let what = format!(
                    "workload has about {operations} operations of ranks; this takes \
                     {MOST_OPERATIONS}: take fewer ranks, messages, repeats or operations"
                );
                Err(reader.wrong("workload.kind", what))
            }
            _ => Ok(workload),
        }
    }

    fn chosen(reader: &Reader<'_>, room: Option<u64>) -> Result<Workload, ConfigError> {
        Ok(match reader.must_choose_from("workload.kind", &KINDS)? {
            Kind::Goal => Workload::File(file(reader)?),
            Kind::PingPong => Workload::PingPong {
                ranks: ranks(reader, room)?,
                bytes: bytes(reader)?,
                repeats: count(reader, "workload.repeats")?,
            },
            Kind::Uniform => Workload::Uniform {
                ranks: ranks(reader, room)?,
                messages: count(reader, "workload.messages")?,
                bytes: bytes(reader)?,
                gap_ns: nanoseconds(reader, "workload.gap_ns")?,
            },
            Kind::Incast => Workload::Incast {
                ranks: ranks(reader, room)?,
                messages: count(reader, "workload.messages")?,
                bytes: bytes(reader)?,
            },
            Kind::AllToAll => Workload::AllToAll {
                ranks: ranks(reader, room)?,
                bytes: bytes(reader)?,
            },
            Kind::Halo => Workload::Halo {
                places: places(reader, room)?,
                bytes: bytes(reader)?,
                compute_ns: nanoseconds(reader, "workload.compute_ns")?,
                repeats: count(reader, "workload.repeats")?,
            },
            Kind::Collective(operation) => collective(reader, operation, ranks(reader, room)?)?,
        })
    }

    /// How many operations its schedule has, rather too many than too few.
    fn operations(&self) -> u64 {
        let product = |factors: &[u64]| factors.iter().copied().fold(1, u64::saturating_mul);
        match *self {
            Workload::File(_) => 0,
            Workload::PingPong { repeats, .. } => 4 * u64::from(repeats),
            Workload::Uniform {
                ranks, messages, ..
            } => product(&[3, ranks.into(), messages.into()]),
            Workload::Incast {
                ranks, messages, ..
            } => product(&[2, ranks.into(), messages.into()]),
            Workload::AllToAll { ranks, .. } => product(&[2, ranks.into(), ranks.into()]),
            Workload::Halo {
                places, repeats, ..
            } => product(&[13, product(&places.map(u64::from)), repeats.into()]),
            Workload::Collective {
                ref collective,
                operations,
                pieces,
                ..
            } => {
                let ranks = collective.shape().ranks;
                let steps = 4 * u64::from(1 + ranks.max(1).ilog2());
                product(&[steps, ranks.into(), operations.into(), pieces])
            }
        }
    }

    pub(crate) fn file(&self) -> Option<&str> {
        match self {
            Workload::File(file) => Some(file),
            _ => None,
        }
    }

    pub(crate) fn goal(&self, text: Option<&str>, streams: Streams) -> Result<Goal, String> {
        Ok(match *self {
            Workload::File(ref file) => {
                let text = text.ok_or_else(|| format!("{file} wasn't read"))?;
                Goal::parse(text).map_err(|m| format!("{file}:{}: {}", m.line, m.what))?
            }
            Workload::PingPong {
                ranks,
                bytes,
                repeats,
            } => patterns::ping_pong(ranks, bytes, repeats),
            Workload::Uniform {
                ranks,
                messages,
                bytes,
                gap_ns,
            } => {
                let mut stream = streams.stream("workload/uniform");
                patterns::uniform(ranks, messages, bytes, gap_ns, &mut stream)
            }
            Workload::Incast {
                ranks,
                messages,
                bytes,
            } => patterns::incast(ranks, messages, bytes),
            Workload::AllToAll { ranks, bytes } => patterns::all_to_all(ranks, bytes),
            Workload::Halo {
                places,
                bytes,
                compute_ns,
                repeats,
            } => patterns::halo(places, bytes, compute_ns, repeats),
            Workload::Collective {
                ref collective,
                operations,
                ..
            } => Goal::of_collective(collective, operations),
        })
    }

    /// What a run of `end` has found.
    pub(crate) fn figures(&self, end: Duration, messages: u64) -> Vec<Figure> {
        let mut figures = Vec::new();
        if let Some(meaning) = self.meaning() {
            let each = micro(end) / meaning.count.max(1) as f64;
            figures.push(Figure::new(&format!("{}, µs", meaning.unit), each));
            if meaning.bytes > 0.0 && each > 0.0 {
                figures.push(Figure::new("MB/s", meaning.bytes / each));
            }
        }
        figures.push(Figure::new("all, µs", micro(end)));
        figures.push(Figure::new("messages", messages as f64));
        figures
    }

    fn meaning(&self) -> Option<Meaning> {
        let meaning = |unit, count: u32, bytes: f64| {
            let count = u64::from(count);
            Some(Meaning { unit, count, bytes })
        };
        match *self {
            Workload::PingPong { bytes, repeats, .. } => {
                meaning("one way", 2 * repeats, bytes as f64)
            }
            Workload::Halo { repeats, .. } => meaning("exchange", repeats, 0.0),
            Workload::Collective {
                operations, bytes, ..
            } => meaning("operation", operations, bytes as f64),
            Workload::Incast {
                ranks,
                messages,
                bytes,
            } => {
                let all = f64::from(ranks.saturating_sub(1)) * f64::from(messages);
                meaning("all of them", 1, all * bytes as f64)
            }
            _ => None,
        }
    }
}

fn bytes(reader: &Reader<'_>) -> Result<u64, ConfigError> {
    let bytes = reader.number("workload.bytes", 0..=MOST_BYTES)?;
    Ok(bytes.unwrap_or(8))
}

fn nanoseconds(reader: &Reader<'_>, path: &str) -> Result<u64, ConfigError> {
    let ns = reader.number(path, 0..=MOST_BYTES)?;
    Ok(ns.unwrap_or(0))
}

/// So many, or one.
fn count(reader: &Reader<'_>, path: &str) -> Result<u32, ConfigError> {
    let count = reader.count(path, 1..=MOST)?;
    Ok(count.unwrap_or(1))
}

fn file(reader: &Reader<'_>) -> Result<String, ConfigError> {
    let missing = || {
        let what = "workload.file is missing; it takes a path, from this file on";
        reader.wrong("workload.file", what.into())
    };
    let file = reader.text("workload.file")?;
    file.map(String::from).ok_or_else(missing)
}

/// As many as the scenario says, or as there are.
fn ranks(reader: &Reader<'_>, room: Option<u64>) -> Result<u32, ConfigError> {
    let most = room.unwrap_or(u64::from(MOST)).min(u64::from(MOST));
    let most = u32::try_from(most).expect("it is below MOST");
    match (reader.count("workload.ranks", 1..=most)?, room) {
        (Some(ranks), _) => Ok(ranks),
        (None, Some(_)) => Ok(most),
        (None, None) => {
            let what = format!("workload.ranks is missing; it takes a whole number, 1 to {most}");
            Err(reader.wrong("workload.ranks", what))
        }
    }
}

fn places(reader: &Reader<'_>, room: Option<u64>) -> Result<[u32; 3], ConfigError> {
    let path = match reader.sizes("workload.places", "8x8x8")? {
        Some(_) => "workload.places",
        None => "machine.size",
    };
    let sizes = reader.sizes(path, "8x8x8")?.unwrap_or_default();
    let [x, y, z] = sizes[..] else {
        let what = "workload.places is missing; it takes 3 sizes, such as \"8x8x8\"";
        return Err(reader.wrong("workload.places", what.into()));
    };
    let all = u64::from(x) * u64::from(y) * u64::from(z);
    let most = room.unwrap_or(u64::from(MOST)).min(u64::from(MOST));
    match all <= most {
        true => Ok([x, y, z]),
        false => {
            let what = format!("{path} has {all} places; there are {most} ranks at most");
            Err(reader.wrong(path, what))
        }
    }
}

fn collective(
    reader: &Reader<'_>,
    operation: Operation,
    ranks: u32,
) -> Result<Workload, ConfigError> {
    let operations = count(reader, "workload.operations")?;
    let bytes = match operation {
        Operation::Barrier => 0,
        _ => reader
            .number("workload.bytes", 1..=MOST_BYTES)?
            .unwrap_or(8),
    };
    let (collective, pieces) = made(reader, operation, Shape { ranks, bytes })?;
    Ok(Workload::Collective {
        collective,
        operations,
        bytes,
        pieces,
    })
}

/// One of 8 bytes.
pub(crate) fn short_collective(
    reader: &Reader<'_>,
    operation: Operation,
    ranks: u32,
) -> Result<Collective, ConfigError> {
    let (collective, _) = made(reader, operation, Shape { ranks, bytes: 8 })?;
    Ok(collective)
}

/// An operation by an algorithm that it can be done by, and in how many pieces.
fn made(
    reader: &Reader<'_>,
    operation: Operation,
    shape: Shape,
) -> Result<(Collective, u64), ConfigError> {
    let make = |algorithm| match operation {
        Operation::Barrier => Collective::barrier(shape.ranks, algorithm),
        Operation::AllReduce => Collective::allreduce(shape, algorithm),
        Operation::Broadcast => Collective::broadcast(shape, 0, algorithm),
        Operation::Reduce => Collective::reduce(shape, 0, algorithm),
        Operation::Gather => Collective::gather(shape, 0, algorithm),
        Operation::Scatter => Collective::scatter(shape, 0, algorithm),
    };
    // A tree is for every operation: what is wrong with it is wrong with the shape.
    if let Err(error) = make(Algorithm::Tree(Tree::KNomial(2))) {
        return Err(reader.wrong("workload.bytes", format!("workload.bytes: {error}")));
    }
    let piece = reader.number("workload.piece_bytes", 1..=MOST_BYTES)?;
    let piece = piece.unwrap_or(8_192);
    let with_pieces = |algorithm| match algorithm {
        Algorithm::Pipelined(..) => shape.bytes.div_ceil(piece).max(1),
        _ => 1,
    };
    if let Some(tree) = k_nomial(reader)? {
        let collective = make(Algorithm::Tree(tree));
        let collective = collective.map_err(|error| {
            reader.wrong("workload.algorithm", format!("workload.algorithm: {error}"))
        })?;
        return Ok((collective, 1));
    }
    let possible: Vec<_> = algorithms(piece)
        .into_iter()
        .filter_map(|(name, algorithm)| {
            let collective = make(algorithm).ok()?;
            Some((name, (collective, with_pieces(algorithm))))
        })
        .collect();
    reader.must_choose("workload.algorithm", &possible)
}

/// How lists of algorithms name the trees that [`k_nomial`] reads; no word that a file has.
pub(crate) const K_NOMIAL: &str = "K-nomial";

/// The k-nomial tree of any base, if `workload.algorithm` names one, as `3-nomial`.
pub(crate) fn k_nomial(reader: &Reader<'_>) -> Result<Option<Tree>, ConfigError> {
    let path = "workload.algorithm";
    let word = reader.text(path)?.unwrap_or_default();
    let Some(base) = word.strip_suffix("-nomial") else {
        return Ok(None);
    };
    match base
        .parse()
        .ok()
        .filter(|base| (2..=MOST_BASE).contains(base))
    {
        Some(base) => Ok(Some(Tree::KNomial(base))),
        None => {
            let what = format!("{path} is {word:?}; K in {K_NOMIAL} is 2 to {MOST_BASE}");
            Err(reader.wrong(path, what))
        }
    }
}

fn algorithms(piece: u64) -> [(&'static str, Algorithm); 9] {
    [
        ("recursive-doubling", Algorithm::RecursiveDoubling),
        ("halving", Algorithm::Halving),
        ("dissemination", Algorithm::Dissemination),
        ("binomial", Algorithm::Tree(Tree::KNomial(2))),
        (K_NOMIAL, Algorithm::Tree(Tree::KNomial(2))),
        ("binary", Algorithm::Tree(Tree::KAry(2))),
        ("chain", Algorithm::Tree(Tree::KAry(1))),
        (
            "pipelined-chain",
            Algorithm::Pipelined(Tree::KAry(1), piece),
        ),
        (
            "pipelined-binary",
            Algorithm::Pipelined(Tree::KAry(2), piece),
        ),
    ]
}

/// Ranks, messages and repeats, at most.
const MOST: u32 = 1 << 22;
/// Operations of all ranks: some ten gigabytes.
const MOST_OPERATIONS: u64 = 1 << 28;
/// Base of a k-nomial tree, at most.
const MOST_BASE: u32 = 1 << 16;
/// Bytes of a message, and nanoseconds between two, at most.
const MOST_BYTES: u64 = 1 << 40;
