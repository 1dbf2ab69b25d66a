//! What `lintel perf` may be told.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::harness::Plan;
use super::network::{Model, Network};
use crate::error::{Error, Result};

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Benchmark {
    /// put, get, bandwidth, rate, atomics: a first look
    All,
    /// Every benchmark below
    Every,
    /// What the project's performance targets need, with a verdict on each
    Targets,
    /// What the machine itself can do, without Portals
    Limits,
    /// Ping-pong of puts over persistent descriptors, half a round trip
    Put,
    /// Gets, a whole round trip
    Get,
    /// Puts in both directions at once
    Bidirectional,
    /// Streams of puts and gets
    Bandwidth,
    /// Streams of 8 B puts
    Rate,
    /// 8 B: put by every way to wait, get, fetch-atomic, in turns
    Small,
    /// Atomic, fetch-atomic, swap and conditional swap of 8 B
    Atomics,
    /// Many sizes, each a little less and a little more; offsets; streaming
    Netpipe,
    /// RandomAccess: remote xor of random words
    Gups,
    /// Latency behind long match lists
    Depth,
    /// Transfer hidden behind computing, at either side
    Overlap,
    /// Delivery to a target that computes and makes no call
    Delay,
    /// Resident memory of an interface, and of each peer
    Memory,
    /// From PtlNIInit to the first message, in fresh processes
    Startup,
    /// Processor time of a process that only holds an interface open
    Idle,
    /// RC beside XRC and node-to-node connections, between two nodes of several
    /// processes: latency, bandwidth, multi-pair, many-to-many, contexts, memory
    Connections,
    /// Generic beside accelerated placement, one and two processes a node
    Placements,
    /// Barrier, broadcast, all-reduce, reduce, gather and scatter of libptlcoll, carried
    /// out by the Portals library beside the calling thread
    Collectives,
}

impl Benchmark {
    /// Its name on the command line and in reports.
    pub fn name(self) -> String {
        let value = self.to_possible_value().expect("no benchmark is hidden");
        value.get_name().to_owned()
    }
}

/// How a process waits for what it expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// PtlEQGet, again and again
    Eq,
    /// PtlEQWait
    Eqwait,
    /// PtlCTWait
    Ct,
}

impl Wait {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eq => "PtlEQGet",
            Self::Eqwait => "PtlEQWait",
            Self::Ct => "PtlCTWait",
        }
    }
}

/// Options of `lintel perf`; each is written into the report.
#[derive(Clone, Debug, Args, Serialize)]
pub struct Options {
    /// What to measure
    #[arg(value_enum, value_name = "BENCHMARK", default_value = "all")]
    pub benchmarks: Vec<Benchmark>,

    /// Message sizes in bytes; K and M stand for KiB and MiB [default:
    /// 0,1,8,64,256,1K,4K,16K,64K,256K,1M,4M; connections: powers of two to 8K and 1M;
    /// placements: NetPIPE's to 1M; collectives: 8,1K,16K,64K,256K]
    #[arg(long, value_delimiter = ',', value_parser = parse_size, value_name = "BYTES,…")]
    pub sizes: Vec<u64>,

    /// How to wait for messages
    #[arg(long, value_enum, default_value = "eq")]
    pub wait: Wait,

    /// Time spent on one point, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 200)]
    pub time: u64,

    /// Turns that a benchmark and its limit take on one point
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Cores to pin the two processes to [default: the first two allowed]
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub cores: Vec<usize>,

    /// What carries the messages.
    #[command(flatten)]
    #[serde(flatten)]
    pub network: Network,

    /// Messages in flight when streaming 8 B puts
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..))]
    pub window: u64,

    /// netpipe: how far around each size to look, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 3)]
    pub perturbation: u64,

    /// netpipe: offsets of the data in its page
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "BYTES,…",
        default_value = "0,1"
    )]
    pub offsets: Vec<u64>,

    /// depth: entries ahead of the one that matches
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,…",
        default_value = "1,10,100,1000,10000"
    )]
    pub depths: Vec<usize>,

    /// delay: how long the target computes, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 10)]
    pub compute: u64,

    /// memory: peers to touch
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub peers: u16,

    /// connections: models to compare, in turns, the others with the first
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "MODEL,…",
        default_value = "rc,xrc,node"
    )]
    pub models: Vec<Model>,

    /// connections: processes a node in the multi-pair and many-to-many figures
    #[arg(long, value_name = "N", default_value = "8", value_parser = parse_processes)]
    pub most_pairs: usize,

    /// connections: processes a node up to which contexts and memory are counted
    #[arg(long, value_name = "N", default_value = "16", value_parser = parse_processes)]
    pub most_processes: usize,

    /// collectives: numbers of ranks, each measured in a job of its own
    #[arg(long, value_delimiter = ',', value_name = "N,…", default_value = "2,4", value_parser = parse_processes)]
    pub ranks: Vec<usize>,

    /// Draw the figures there, as SVG and PNG, as `lintel plot` does [default for
    /// connections, placements and collectives: the current directory]
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,

    /// Write the report as JSON, with all that is needed to repeat it; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<String>,

    /// Write the rows as comma-separated values; - is standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<String>,
}

impl Options {
    /// How long and how often to measure one point.
    pub fn plan(&self) -> Plan {
        Plan {
            rounds: self.rounds,
            time: Duration::from_millis(self.time),
        }
    }

    /// Fills in what isn't given: the benchmark's own default, or what the environment
    /// says.
    ///
    /// # Errors
    /// Options that contradict each other or the environment.
    pub fn complete(&mut self) -> Result<()> {
        use Benchmark::{Collectives, Connections, Placements};
        let own_ranks = |b: &Benchmark| matches!(b, Connections | Placements | Collectives);
        let starts_ranks = self.benchmarks.iter().find(|b| own_ranks(b));
        if let (Some(one), 2..) = (starts_ranks, self.benchmarks.len()) {
            let name = one.name();
            return Err(Error::Usage(format!(
                "{name} starts its own ranks: name it alone"
            )));
        }
        self.models.dedup();
        if starts_ranks.is_some() {
            self.plots.get_or_insert_with(|| ".".into());
            self.network.complete(match starts_ranks {
                Some(Collectives) => 1,
                _ => 2,
            });
            return Ok(());
        }
        if self.sizes.is_empty() {
            self.sizes = DEFAULT_SIZES.into();
        }
        self.network.complete(1);
        Ok(())
    }

    /// For a run that starts ranks of its own: what differs between them isn't chosen.
    ///
    /// # Errors
    /// An option that the benchmark varies.
    pub fn check_varied(&self) -> Result<()> {
        let network = &self.network;
        let refuse = |text: &str| Err(Error::Usage(text.into()));
        match self.benchmarks.as_slice() {
            [Benchmark::Connections] if network.conn.is_some() => {
                refuse("connections measures several: say which by --models, not --conn")
            }
            [Benchmark::Placements] if network.mode.is_some() => {
                refuse("placements measures every placement: leave --mode out")
            }
            _ => Ok(()),
        }
    }

    /// The largest message size, at least 8.
    pub fn largest(&self) -> u64 {
        self.sizes.iter().copied().max().unwrap_or(0).max(8)
    }

    /// What to run, in order, with the collective words taken apart.
    pub fn selected(&self) -> Vec<Benchmark> {
        let mut all = Vec::new();
        for &benchmark in &self.benchmarks {
            match benchmark {
                Benchmark::All => all.extend(FIRST_LOOK),
                Benchmark::Every => all.extend(EVERY),
                Benchmark::Targets if self.network.is_crossed() => all.extend(FOR_NETWORK_TARGETS),
                Benchmark::Targets => all.extend(FOR_TARGETS),
                one => all.push(one),
            }
        }
        all
    }
}

const FIRST_LOOK: [Benchmark; 5] = [
    Benchmark::Put,
    Benchmark::Get,
    Benchmark::Bandwidth,
    Benchmark::Rate,
    Benchmark::Atomics,
];

const FOR_TARGETS: [Benchmark; 11] = [
    Benchmark::Small,
    Benchmark::Put,
    Benchmark::Bandwidth,
    Benchmark::Rate,
    Benchmark::Gups,
    Benchmark::Depth,
    Benchmark::Overlap,
    Benchmark::Delay,
    Benchmark::Memory,
    Benchmark::Startup,
    Benchmark::Idle,
];

const FOR_NETWORK_TARGETS: [Benchmark; 5] = [
    Benchmark::Small,
    Benchmark::Bandwidth,
    Benchmark::Memory,
    Benchmark::Startup,
    Benchmark::Idle,
];

const EVERY: [Benchmark; 16] = [
    Benchmark::Limits,
    Benchmark::Small,
    Benchmark::Put,
    Benchmark::Get,
    Benchmark::Bidirectional,
    Benchmark::Bandwidth,
    Benchmark::Rate,
    Benchmark::Atomics,
    Benchmark::Netpipe,
    Benchmark::Gups,
    Benchmark::Depth,
    Benchmark::Overlap,
    Benchmark::Delay,
    Benchmark::Memory,
    Benchmark::Startup,
    Benchmark::Idle,
];

const DEFAULT_SIZES: [u64; 12] = [
    0,
    1,
    8,
    64,
    256,
    1 << 10,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
];

/// Processes of one of two nodes.
fn parse_processes(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=64) => Ok(count),
        _ => Err(format!("'{text}' is no number from 1 to 64")),
    }
}

fn parse_size(text: &str) -> std::result::Result<u64, String> {
    let upper = text.to_ascii_uppercase();
    let (digits, unit) = match upper.strip_suffix(['K', 'M']) {
        Some(digits) if upper.ends_with('K') => (digits, 1 << 10),
        Some(digits) => (digits, 1 << 20),
        None => (upper.as_str(), 1),
    };
    let refusal = || format!("'{text}' is no size such as 8, 64K or 4M, at most 1024M");
    let number: u64 = digits.parse().map_err(|_| refusal())?;
    let bytes = number.checked_mul(unit).ok_or_else(refusal)?;
    match bytes {
        0..=LARGEST_SIZE => Ok(bytes),
        _ => Err(refusal()),
    }
}

const LARGEST_SIZE: u64 = 1 << 30;

#[cfg(test)]
impl Options {
    /// As they are when nothing is given.
    pub(crate) fn for_tests() -> Self {
        Self::parse(&["connections"])
    }

    fn parse(words: &[&str]) -> Self {
        #[derive(clap::Parser)]
        struct Alone {
            #[command(flatten)]
            options: Options,
        }
        let words = std::iter::once(&"perf").chain(words);
        <Alone as clap::Parser>::parse_from(words).options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmarks_with_ranks_of_their_own_stand_alone_on_two_nodes() {
        let mut options = Options::parse(&["connections", "--models", "rc,xrc"]);
        options.complete().expect("sound");
        assert_eq!(options.network.nodes(), 2);
        assert_eq!(options.models, [Model::Rc, Model::Xrc]);
        assert!(options.sizes.is_empty() && options.plots.is_some());
        assert!(Options::parse(&["placements", "put"]).complete().is_err());
        let fixed = ["connections", "--conn", "rc"];
        assert!(Options::parse(&fixed).check_varied().is_err());
    }

    #[test]
    fn sizes_take_binary_units() {
        let sizes = ["0", "8", "64k", "4M"].map(|text| parse_size(text).expect("a size"));
        assert_eq!(sizes, [0, 8, 64 << 10, 4 << 20]);
    }

    #[test]
    fn senseless_sizes_are_refused() {
        for text in ["", "K", "-1", "8 KiB", "99999999999999999999", "2048M"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
