//! The options of `lintel perf`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::benchmarks::{Benchmark, Group, Jobs, Run};
use super::network::{Model, Network};
use crate::error::{Error, Result};
use crate::harness::Plan;

/// How a process waits for what it expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// PtlEQGet in a loop
    Eq,
    /// PtlEQWait, which may sleep
    Eqwait,
    /// PtlCTWait on a counter
    Ct,
}

/// The interface that benchmarks measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// Portals 4
    #[default]
    Portals4,
    /// Portals 3.3: put, get, bidirectional, bandwidth, rate, netpipe and depth
    Portals3,
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
    /// Benchmarks to run, in this order
    #[arg(value_enum, value_name = "BENCHMARK", default_value = "all")]
    pub benchmarks: Vec<Benchmark>,

    /// Interface to measure
    #[arg(long, value_enum, value_name = "API", default_value = "portals4")]
    pub api: Api,

    /// Message sizes in bytes; K and M stand for KiB and MiB [default:
    /// 0,1,8,64,256,1K,4K,16K,64K,256K,1M,4M; connections: powers of two to 8K and 1M;
    /// placements: NetPIPE's to 1M; collectives: 8,1K,16K,64K,256K]
    #[arg(long, value_delimiter = ',', value_parser = parse_size, value_name = "BYTES,…")]
    pub sizes: Vec<u64>,

    /// How to wait for messages
    #[arg(long, value_enum, default_value = "eq")]
    pub wait: Wait,

    /// Time spent on each point, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 200)]
    pub time: u64,

    /// Number of turns that a benchmark and its limit take at each point
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Wall-clock time that a benchmark or its limit may take at each point, in milliseconds;
    /// on a busy machine fewer rounds are measured then, and the row says how many [default:
    /// 5 times --time, at least 500]
    #[arg(long, value_name = "MS")]
    pub budget: Option<u64>,

    /// Wait for `lintel perf --peer` on another machine, and measure with it what it asks for
    #[arg(long, conflicts_with_all = ["peer", "benchmarks"])]
    pub listen: bool,

    /// Measure with the machine on which `lintel perf --listen` waits, without a launcher: put,
    /// get, bidirectional, bandwidth, netpipe and depth, over UDP unless --nal names another
    /// network. Both machines need the same secret file
    #[arg(long, value_name = "HOST")]
    pub peer: Option<String>,

    /// TCP port of --listen and --peer, on which the two processes meet between measurements
    #[arg(long, value_name = "N", default_value_t = super::peer::PORT)]
    pub port: u16,

    /// Cores to pin the two processes to [default: the first two allowed]
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub cores: Vec<usize>,

    /// What carries the messages.
    #[command(flatten)]
    #[serde(flatten)]
    pub network: Network,

    /// put: write each line of what is put before, and read it once it has arrived, as programs do;
    /// the limits' bytes stay unused
    #[arg(long)]
    pub used: bool,

    /// Messages in flight when streaming 8 B puts
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..))]
    pub window: u64,

    /// netpipe: distance of the sizes measured around each size, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 3)]
    pub perturbation: u64,

    /// netpipe: offsets of the data in its page, in bytes
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

    /// memory: number of peers to send to
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub peers: u16,

    /// connections: models to measure in turns; the others are compared with the first
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "MODEL,…",
        default_value = "rc,xrc,node"
    )]
    pub models: Vec<Model>,

    /// connections: processes per node in the multi-pair and many-to-many figures
    #[arg(long, value_name = "N", default_value = "8", value_parser = parse_processes)]
    pub most_pairs: usize,

    /// connections: processes per node up to which contexts and memory are counted
    #[arg(long, value_name = "N", default_value = "16", value_parser = parse_processes)]
    pub most_processes: usize,

    /// collectives: numbers of ranks, each measured in a job of its own
    #[arg(long, value_delimiter = ',', value_name = "N,…", default_value = "2,4", value_parser = parse_processes)]
    pub ranks: Vec<usize>,

    /// Draw the figures into this directory, as SVG and PNG, as `lintel plot` does [default
    /// for connections, placements and collectives: the current directory]
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,

    /// Write each point to standard error as soon as it is measured; on a terminal that happens
    /// anyway
    #[arg(long)]
    pub live: bool,

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
            budget: Duration::from_millis(self.budget.unwrap_or(self.default_budget())),
        }
    }

    fn default_budget(&self) -> u64 {
        self.time.saturating_mul(5).max(500)
    }

    /// Fills in what isn't given: the benchmark's own default, or what the environment
    /// says.
    ///
    /// # Errors
    /// Options that contradict each other or the environment.
    pub fn complete(&mut self) -> Result<()> {
        let own_jobs = |benchmark: &&Benchmark| benchmark.jobs().is_some();
        if let (Some(one), 2..) = (self.benchmarks.iter().find(own_jobs), self.benchmarks.len()) {
            let name = one.name;
            return Err(Error::Usage(format!(
                "{name} starts its own ranks: name it alone"
            )));
        }
        self.check_api()?;
        self.check_peer()?;
        self.models.dedup();
        self.budget = self.budget.or(Some(self.default_budget()));
        if let Some(jobs) = self.jobs() {
            self.plots.get_or_insert_with(|| ".".into());
            self.network.complete(jobs.nodes);
            return Ok(());
        }
        if self.sizes.is_empty() {
            self.sizes = DEFAULT_SIZES.into();
        }
        self.network.complete(1);
        Ok(())
    }

    /// Over Portals 3.3 only some benchmarks run, and nothing is counted.
    fn check_api(&self) -> Result<()> {
        if self.api == Api::Portals4 {
            return Ok(());
        }
        if self.wait == Wait::Ct {
            let words = "--wait ct: Portals 3.3 has no counters; use eq or eqwait";
            return Err(Error::Usage(words.into()));
        }
        let refused = |one: &&Benchmark| match one.run {
            Run::Group(group) => !matches!(group, Group::All | Group::Every),
            Run::InSession(..) | Run::InJobs(_) => !one.runs_over(self.api),
        };
        match self.benchmarks.iter().find(refused) {
            None => Ok(()),
            Some(one) => Err(Error::Usage(format!(
                "{} runs over Portals 4 only; --api portals3 takes {}",
                one.name,
                Benchmark::names_over(self.api).join(", ")
            ))),
        }
    }

    /// Between two machines only some benchmarks run.
    fn check_peer(&self) -> Result<()> {
        let refused = |one: &&Benchmark| match one.run {
            Run::Group(group) => !matches!(group, Group::All | Group::Every),
            Run::InSession(..) | Run::InJobs(_) => !one.runs_over_peers(),
        };
        match self.benchmarks.iter().find(refused) {
            Some(one) if self.peer.is_some() => Err(Error::Usage(format!(
                "{} needs memory that both processes share; --peer takes {}",
                one.name,
                Benchmark::names_over_peers()
            ))),
            _ => Ok(()),
        }
    }

    /// How the jobs of the one benchmark asked for are started, if it starts jobs of its own.
    pub fn jobs(&self) -> Option<Jobs> {
        match self.benchmarks.as_slice() {
            [one] => one.jobs(),
            _ => None,
        }
    }

    /// Whether `group` is asked for by its word.
    pub fn asks_for(&self, group: Group) -> bool {
        self.benchmarks.iter().any(|one| one.is_group(group))
    }

    /// Whether all-reduces of more ranks, in jobs of their own, are part of what is asked for.
    pub fn measures_crowds(&self) -> bool {
        self.asks_for(Group::Targets) && !self.network.is_crossed()
    }

    /// Refuses what the launching process has to begin, in a rank whose launcher may or may not
    /// have measured crowds.
    ///
    /// # Errors
    /// The launcher is another program.
    pub fn check_in_rank(&self, crowds_are_measured: bool) -> Result<()> {
        match self.measures_crowds() && !crowds_are_measured {
            true => Err(starts_own_ranks("targets")),
            false => Ok(()),
        }
    }

    /// The largest message size, at least 8.
    pub fn largest(&self) -> u64 {
        self.sizes.iter().copied().max().unwrap_or(0).max(8)
    }

    /// What to run, in order, with the words that stand for several taken apart.
    pub fn selected(&self) -> Vec<Benchmark> {
        let mut all = Vec::new();
        for &benchmark in &self.benchmarks {
            match benchmark.run {
                Run::Group(Group::Targets) if self.network.is_crossed() => {
                    all.extend(Benchmark::of(Group::NetworkTargets));
                }
                Run::Group(group) => all.extend(Benchmark::of(group)),
                Run::InSession(..) | Run::InJobs(_) => all.push(benchmark),
            }
        }
        all.retain(|benchmark| benchmark.runs_over(self.api));
        all.retain(|benchmark| self.peer.is_none() || benchmark.runs_over_peers());
        all
    }
}

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

pub(super) fn starts_own_ranks(name: &str) -> Error {
    Error::Usage(format!(
        "{name} starts its own ranks: run it without a launcher"
    ))
}

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
        for fixed in [
            ["connections", "--conn", "rc"],
            ["placements", "--mode", "generic"],
        ] {
            let options = Options::parse(&fixed);
            let jobs = options.jobs().expect("it starts its own ranks");
            assert!((jobs.check)(&options).is_err(), "{fixed:?}");
        }
    }

    #[test]
    fn targets_begins_in_the_launching_process_alone() {
        let targets = Options::parse(&["put", "targets"]);
        assert!(targets.check_in_rank(false).is_err());
        assert!(targets.check_in_rank(true).is_ok());
        assert!(Options::parse(&["put"]).check_in_rank(false).is_ok());
    }

    #[test]
    fn a_point_has_a_budget_of_several_times_its_time() {
        let budget = |words: &[&str]| Options::parse(words).plan().budget.as_millis();
        assert_eq!(budget(&["put"]), 1000);
        assert_eq!(budget(&["put", "--time", "2"]), 500);
        assert_eq!(budget(&["put", "--time", "2", "--budget", "9"]), 9);
    }

    #[test]
    fn over_portals_3_groups_keep_what_runs_and_names_that_do_not_are_refused() {
        let options = Options::parse(&["all", "depth", "--api", "portals3"]);
        assert!(options.check_api().is_ok());
        let names: Vec<_> = options.selected().iter().map(|one| one.name).collect();
        assert_eq!(names, ["put", "get", "bandwidth", "rate", "depth"]);
        for words in [
            ["put", "atomics"],
            ["put", "targets"],
            ["put", "connections"],
        ] {
            let options = Options::parse(&[words[0], words[1], "--api", "portals3"]);
            let error = options
                .check_api()
                .expect_err("it needs Portals 4")
                .to_string();
            assert!(
                error.starts_with(words[1]) && error.contains("netpipe"),
                "{error}"
            );
        }
        let counted = Options::parse(&["put", "--api", "portals3", "--wait", "ct"]);
        assert!(counted.check_api().is_err());
    }

    #[test]
    fn between_two_machines_benchmarks_that_share_memory_are_refused() {
        let options = Options::parse(&["all", "--peer", "there"]);
        assert!(options.check_peer().is_ok());
        let names: Vec<_> = options.selected().iter().map(|one| one.name).collect();
        assert_eq!(names, ["put", "get", "bandwidth"]);
        for word in ["rate", "limits", "targets", "connections"] {
            let mut options = Options::parse(&[word, "--peer", "there"]);
            let error = options.complete().expect_err("it shares memory");
            assert!(error.to_string().contains("netpipe"), "{error}");
        }
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
