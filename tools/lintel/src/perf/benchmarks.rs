//! The benchmarks of `lintel perf`: one table, from which the command line, `--help`, the
//! runs and the titles of reports are made.

use std::process::ExitCode;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::{Serialize, Serializer};

use super::options::{Api, Options};
use super::session::Session;
use super::{
    asleep, atomics, cci, collectives, connections, delay, depth, direct, fresh_processes, gups,
    idle, limits, netpipe, one_core, overlap, paths, pingpong, placements, small, stream,
};
use crate::error::Result;
use crate::report::names;

/// A word of the command line that asks for measurements.
#[derive(Clone, Copy, Debug)]
pub struct Benchmark {
    /// On the command line and in reports.
    pub name: &'static str,
    /// What `--help` says of it.
    pub help: &'static str,
    /// The title of its table in a report; empty if its rows have names of their own.
    pub title: &'static str,
    /// How it is run.
    pub run: Run,
}

/// How a [`Benchmark`] is run.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// It stands for several benchmarks.
    Group(Group),
    /// In both ranks of a run, among others, in these groups.
    InSession(fn(&mut Session) -> Result<()>, &'static [Group]),
    /// It starts jobs of its own, so it stands alone.
    InJobs(Jobs),
}

/// A word that stands for several benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The benchmarks of a first look.
    All,
    /// All that run in two ranks.
    Every,
    /// What the performance targets need, within a node.
    Targets,
    /// What the performance targets need, between nodes; `targets` stands for it too.
    NetworkTargets,
}

/// How a benchmark that starts jobs of its own is run.
#[derive(Clone, Copy, Debug)]
pub struct Jobs {
    /// Refuses options that fix what the benchmark varies.
    pub check: fn(&Options) -> Result<()>,
    /// Starts the jobs and delivers the report.
    pub launch: fn(&Options) -> Result<ExitCode>,
    /// Virtual nodes unless others are asked for.
    pub nodes: u16,
}

impl Benchmark {
    /// The benchmarks of `group`, in the order in which they run.
    pub fn of(group: Group) -> impl Iterator<Item = Benchmark> {
        let all = BENCHMARKS.iter().copied();
        all.filter(move |benchmark| match benchmark.run {
            Run::InSession(_, groups) => group == Group::Every || groups.contains(&group),
            Run::Group(_) | Run::InJobs(_) => false,
        })
    }

    /// How its jobs are started, if it starts jobs of its own.
    pub fn jobs(&self) -> Option<Jobs> {
        match self.run {
            Run::InJobs(jobs) => Some(jobs),
            Run::Group(_) | Run::InSession(..) => None,
        }
    }

    /// Whether it can measure an interface.
    pub fn runs_over(&self, api: Api) -> bool {
        api == Api::Portals4 || OVER_BOTH.contains(&self.name)
    }

    /// Whether its two processes can be on two machines, which share no memory.
    pub fn runs_over_peers(&self) -> bool {
        OVER_PEERS.contains(&self.name)
    }

    /// The benchmarks whose processes can be on two machines.
    pub fn names_over_peers() -> String {
        OVER_PEERS.join(", ")
    }

    /// The benchmarks that can measure an interface.
    pub fn names_over(api: Api) -> Vec<&'static str> {
        let all = BENCHMARKS.iter().filter(|one| one.runs_over(api));
        all.map(|one| one.name).collect()
    }

    /// How many points it measures with these options, for the progress bar: exact for those
    /// that go through sizes, 1 for others.
    pub fn points(&self, options: &Options) -> u64 {
        let sizes = |least: u64| options.sizes.iter().filter(|&&size| size >= least).count();
        let points = match self.name {
            "put" | "get" | "bidirectional" => sizes(0),
            "bandwidth" => 2 * sizes(stream::SMALLEST),
            "depth" => 2 * options.depths.len(),
            _ => 1,
        };
        points.max(1) as u64
    }

    /// Whether it stands for `group`.
    pub fn is_group(&self, group: Group) -> bool {
        matches!(self.run, Run::Group(own) if own == group)
    }
}

/// The title of the table of rows that bear the name `benchmark`.
pub fn title(benchmark: &str) -> &str {
    let own = BENCHMARKS.iter().map(|one| (one.name, one.title));
    let mut all = own.chain(names::CONNECTIONS);
    let found = all.find(|(name, title)| *name == benchmark && !title.is_empty());
    found.map_or(benchmark, |(_, title)| title)
}

impl ValueEnum for Benchmark {
    fn value_variants<'a>() -> &'a [Self] {
        &BENCHMARKS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name).help(self.help))
    }
}

impl Serialize for Benchmark {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

/// A word that stands for several benchmarks.
const fn group(name: &'static str, group: Group, help: &'static str) -> Benchmark {
    Benchmark {
        name,
        help,
        title: "",
        run: Run::Group(group),
    }
}

/// A benchmark of two ranks.
const fn pair(
    name: &'static str,
    run: fn(&mut Session) -> Result<()>,
    groups: &'static [Group],
    help: &'static str,
    title: &'static str,
) -> Benchmark {
    Benchmark {
        name,
        help,
        title,
        run: Run::InSession(run, groups),
    }
}

/// What is written over [`Side`](super::side::Side).
const OVER_BOTH: [&str; 7] = [
    "put",
    "get",
    "bidirectional",
    "bandwidth",
    "rate",
    "netpipe",
    "depth",
];

/// What shares nothing but messages.
const OVER_PEERS: [&str; 6] = [
    "put",
    "get",
    "bidirectional",
    "bandwidth",
    "netpipe",
    "depth",
];

const NO_GROUP: &[Group] = &[];
const FIRST_LOOK: &[Group] = &[Group::All];
const FIRST_LOOK_AND_NODE: &[Group] = &[Group::All, Group::Targets];
const FIRST_LOOK_AND_TARGETS: &[Group] = &[Group::All, Group::Targets, Group::NetworkTargets];
const NODE: &[Group] = &[Group::Targets];
const TARGETS: &[Group] = &[Group::Targets, Group::NetworkTargets];

/// In the order in which `every` runs them, and `--help` lists them.
static BENCHMARKS: [Benchmark; 27] = [
    group(
        "all",
        Group::All,
        "put, get, bandwidth, rate, atomics: a first look",
    ),
    group("every", Group::Every, "Every benchmark of two processes"),
    group(
        "targets",
        Group::Targets,
        "What the project's performance targets need, with a verdict on each",
    ),
    pair(
        "limits",
        limits::run,
        NO_GROUP,
        "What the machine itself can do, without Portals",
        "limits: what the machine itself can do",
    ),
    pair(
        "small",
        small::run,
        TARGETS,
        "Operations of 8 B in turns: put by each way to wait, get, fetch-atomic",
        "small: 8 B in turns; a put is half a round trip, the others from call to reply",
    ),
    pair(
        "put",
        pingpong::put,
        FIRST_LOOK_AND_NODE,
        "Ping-pong of puts over persistent descriptors, half a round trip",
        "put: ping-pong over persistent descriptors, half a round trip",
    ),
    pair(
        "get",
        pingpong::get,
        FIRST_LOOK,
        "Gets, a whole round trip",
        "get: from the call to the reply, target polling",
    ),
    pair(
        "bidirectional",
        pingpong::bidirectional,
        NO_GROUP,
        "Puts in both directions at once",
        "bidirectional: both put at once, until own send and the other's put",
    ),
    pair(
        "bandwidth",
        stream::bandwidth,
        FIRST_LOOK_AND_TARGETS,
        "Streams of puts and gets",
        "bandwidth: streams, time of one message",
    ),
    pair(
        "rate",
        stream::rate,
        FIRST_LOOK_AND_NODE,
        "Streams of 8 B puts",
        "rate: streams of 8 B puts, time of one message",
    ),
    pair(
        "atomics",
        atomics::run,
        FIRST_LOOK,
        "Atomic, fetch-atomic, swap and conditional swap of 8 B",
        "atomics: one 8 B word; one way, or from the call to the reply",
    ),
    pair(
        "cci",
        cci::run,
        NO_GROUP,
        "CCI: UU and RO sends and streams, remote memory accesses, beside a put",
        "cci: a send is half a round trip, an access from call to event, a stream one message",
    ),
    pair(
        "netpipe",
        netpipe::run,
        NO_GROUP,
        "Many sizes, each a little smaller and a little larger; offsets; streaming",
        "netpipe: many sizes and offsets",
    ),
    pair(
        "direct",
        direct::run,
        NODE,
        "Get, put and atomics on memory that both can map, of a target that computes",
        "direct: operations on direct entries of a target that computes, from the call to the end",
    ),
    pair(
        "gups",
        gups::run,
        NODE,
        "RandomAccess: remote xor of words at random",
        "gups: RandomAccess by Portals atomics, time of one rank's update",
    ),
    pair(
        "depth",
        depth::run,
        NODE,
        "Latency behind long match lists",
        "depth: half round trip of a put behind other match entries",
    ),
    pair(
        "overlap",
        overlap::run,
        NODE,
        "Transfers hidden behind computation, at either side",
        "overlap: transfer and computing at once",
    ),
    pair(
        "delay",
        delay::run,
        NODE,
        "Delivery to a target that computes and makes no call",
        "delay: the target computes and makes no call; until acknowledgement or reply",
    ),
    pair(
        names::ASLEEP,
        asleep::run,
        &[],
        "Requests to a server that sleeps in PtlEQWait, and its answers",
        "asleep: from a put to a server that sleeps until its put back has come",
    ),
    pair(
        names::ONE_CORE,
        one_core::run,
        NODE,
        "Two ranks on one core: 8 B puts by each way to wait",
        "one-core: two ranks on one core, half a round trip of 8 B puts",
    ),
    pair(
        "memory",
        fresh_processes::memory,
        TARGETS,
        "Resident memory of an interface, and of each peer",
        "memory: resident, default limits",
    ),
    pair(
        "startup",
        fresh_processes::startup,
        TARGETS,
        "From PtlNIInit to the first message, in fresh processes",
        "startup: fresh processes, from PtlNIInit to the first message's event",
    ),
    pair(
        "idle",
        idle::run,
        TARGETS,
        "Processor time of a process that only holds an interface open",
        "idle: processor time of the busier process",
    ),
    Benchmark {
        name: "connections",
        help: "RC against XRC and node-to-node connections, between two nodes of several \
               processes: latency, bandwidth, multi-pair, many-to-many, contexts, memory",
        title: "",
        run: Run::InJobs(Jobs {
            check: connections::check,
            launch: connections::launch,
            nodes: 2,
        }),
    },
    Benchmark {
        name: names::PLACEMENTS,
        help: "Generic against accelerated placement, with one and two processes per node",
        title: "placements: ping-pong between nodes, half a round trip",
        run: Run::InJobs(Jobs {
            check: placements::check,
            launch: placements::launch,
            nodes: 2,
        }),
    },
    Benchmark {
        name: names::PATHS,
        help: "The path chosen within a node beside each path alone, from 0 B to 8 MiB, with the \
               worst ratio",
        title: "paths: puts and gets between two processes of a node, time of one message",
        run: Run::InJobs(Jobs {
            check: paths::check,
            launch: paths::launch,
            nodes: 1,
        }),
    },
    Benchmark {
        name: names::COLLECTIVES,
        help: "Barrier, broadcast, all-reduce, reduce, gather and scatter of libptlcoll, run by \
               the Portals library and by the calling thread",
        title: "collectives: rank 0's call, after a barrier; sums of doubles",
        run: Run::InJobs(Jobs {
            check: |_| Ok(()),
            launch: collectives::launch,
            nodes: 1,
        }),
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names_of(group: Group) -> Vec<&'static str> {
        Benchmark::of(group)
            .map(|benchmark| benchmark.name)
            .collect()
    }

    #[test]
    fn each_benchmark_has_a_name_of_its_own_and_a_help_text() {
        let names: BTreeSet<_> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
        assert_eq!(names.len(), BENCHMARKS.len());
        for benchmark in &BENCHMARKS {
            assert!(benchmark.help.len() > 10, "{}", benchmark.name);
            assert!(!benchmark.help.ends_with('.'), "{}", benchmark.name);
        }
    }

    #[test]
    fn help_lists_each_benchmark_with_its_text() {
        let mut command = crate::command();
        let perf = command
            .find_subcommand_mut("perf")
            .expect("a word of lintel");
        let help = perf.render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for benchmark in &BENCHMARKS {
            let line = format!("- {}: {}", benchmark.name, benchmark.help);
            assert!(help.contains(&line), "{line}");
        }
    }

    #[test]
    fn each_benchmark_of_two_ranks_has_a_title() {
        for benchmark in Benchmark::of(Group::Every) {
            let start = format!("{}: ", benchmark.name);
            assert!(title(benchmark.name).starts_with(&start), "{start}");
        }
        assert_eq!(title(names::LATENCY), names::CONNECTIONS[0].1);
        assert_eq!(title("unknown"), "unknown");
    }

    #[test]
    fn a_benchmark_that_goes_through_sizes_has_a_point_for_each() {
        let mut options = Options::for_tests();
        options.sizes = vec![0, 8, 64, 4096];
        let points = |name: &str| {
            let found = BENCHMARKS.iter().find(|benchmark| benchmark.name == name);
            found.expect("it is in the table").points(&options)
        };
        assert_eq!(
            [points("put"), points("bandwidth"), points("idle")],
            [4, 4, 1]
        );
    }

    #[test]
    fn groups_keep_the_order_of_the_table() {
        let first_look = ["put", "get", "bandwidth", "rate", "atomics"];
        assert_eq!(names_of(Group::All), first_look);
        let network = ["small", "bandwidth", "memory", "startup", "idle"];
        assert_eq!(names_of(Group::NetworkTargets), network);
        let targets = [
            "small",
            "put",
            "bandwidth",
            "rate",
            "direct",
            "gups",
            "depth",
            "overlap",
            "delay",
            "one-core",
            "memory",
            "startup",
            "idle",
        ];
        assert_eq!(names_of(Group::Targets), targets);
        assert_eq!(names_of(Group::Every).len(), 20);
    }
}
