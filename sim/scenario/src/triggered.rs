//! The table `machine` and the workloads of hosts whose interfaces carry operations out.

use lintel_collectives::{Collective, Tree};
use lintel_sim_kernel::{Duration, SimTime};
use lintel_sim_triggered::program::{Program, gone_through, posted};
use lintel_sim_triggered::{Algorithm, By, Case, Detail, Entry, Series, Timing, cube};

use crate::choice::Choice;
use crate::config_error::ConfigError;
use crate::machine::noise;
use crate::reader::Reader;
use crate::run::{Figure, Outcome, Run, micro};
use crate::span::{Observer, Place, relay};
use crate::workload::{self, Operation};

/// What `workload.kind` takes with this model.
pub(crate) const KINDS: [Choice<Option<Operation>>; 6] = [
    Choice::new(
        "all-reduce",
        "8 bytes, as in the first studies: algorithm, operations",
        None,
    ),
    Choice::new(
        "barrier",
        "all ranks wait for all: algorithm, operations",
        Some(Operation::Barrier),
    ),
    Choice::new(
        "broadcast",
        "8 bytes to all: algorithm, operations",
        Some(Operation::Broadcast),
    ),
    Choice::new(
        "reduce",
        "8 bytes of all: algorithm, operations",
        Some(Operation::Reduce),
    ),
    Choice::new(
        "gather",
        "each message costs as one of 8 bytes: algorithm, operations",
        Some(Operation::Gather),
    ),
    Choice::new(
        "scatter",
        "each message costs as one of 8 bytes: algorithm, operations",
        Some(Operation::Scatter),
    ),
];

/// A machine of the first studies, and its operations.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    case: Case,
    work: Work,
    detail: Detail,
    operations: u32,
}

#[derive(Clone, Debug)]
enum Work {
    /// The case's own algorithm.
    AllReduce,
    Other(Collective),
}

impl Setup {
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Setup, ConfigError> {
        let set = reader.count("machine.timing_set", 1..=3)?.unwrap_or(1);
        let set = u8::try_from(set).expect("it is 3 at most");
        let carriers = [("hosts", By::Hosts), ("interfaces", By::Interfaces)];
        let by = reader.must_choose("machine.carried_by", &carriers)?;
        let nodes_log2 = reader.count("machine.nodes_log2", 1..=16)?.unwrap_or(6);
        let (tree, work) = work(reader, 1 << nodes_log2)?;
        let noise = noise(reader)?;
        let details = [("packets", Detail::Packets), ("coarse", Detail::Coarse)];
        let detail = reader.choose("machine.detail", &details)?;
        let operations = reader.count("workload.operations", 1..=1_000_000)?;
        Ok(Setup {
            case: Case {
                timing: Timing::set(set).expect("there are three"),
                sides: cube(nodes_log2),
                algorithm: Algorithm::new(by, tree),
                noise,
                entry: Entry::Undisturbed,
                seed: reader.number("seed", 0..=i64::MAX as u64)?.unwrap_or(1),
            },
            work,
            // Noise takes many operations.
            detail: detail.unwrap_or(match noise {
                Some(_) => Detail::Coarse,
                None => Detail::Packets,
            }),
            operations: operations.unwrap_or(1),
        })
    }

    pub(crate) fn prepare(&self, observer: Option<Observer>) -> Result<Box<dyn Run>, String> {
        let series = match &self.work {
            Work::AllReduce => self.case.begin(self.detail, self.operations),
            Work::Other(collective) => self.case.setup().begin(
                self.programs(collective),
                SimTime::START + Duration::from_ns(1),
                self.detail,
                self.operations,
            ),
        };
        let mut series = series.map_err(|error| error.to_string())?;
        if let Some(observer) = observer {
            series.observe(relay(observer, Place::Node));
        }
        Ok(Box::new(Repeated(series)))
    }

    fn programs(&self, collective: &Collective) -> Vec<Program> {
        let program = |rank| {
            let schedule = collective.schedule(rank);
            match self.case.algorithm.by {
                By::Hosts => gone_through(&schedule, rank),
                By::Interfaces => posted(&schedule),
            }
        };
        (0..self.case.nodes()).map(program).collect()
    }
}

/// The operation, and the tree of an all-reduce.
fn work(reader: &Reader<'_>, ranks: u32) -> Result<(Option<Tree>, Work), ConfigError> {
    if let Some(operation) = reader.must_choose_from("workload.kind", &KINDS)? {
        let collective = workload::short_collective(reader, operation, ranks)?;
        return Ok((None, Work::Other(collective)));
    }
    if let Some(tree) = workload::k_nomial(reader)? {
        return Ok((Some(tree), Work::AllReduce));
    }
    let trees = [
        ("recursive-doubling", None),
        ("binomial", Some(Tree::KNomial(2))),
        (workload::K_NOMIAL, Some(Tree::KNomial(2))),
    ];
    let tree = reader.must_choose("workload.algorithm", &trees)?;
    Ok((tree, Work::AllReduce))
}

/// Operations one after the other.
struct Repeated(Series);

impl Run for Repeated {
    fn advance(&mut self, events: u64) -> bool {
        let enough = self.0.executed() + events;
        while self.0.executed() < enough {
            if !self.0.advance() {
                return true;
            }
        }
        false
    }

    fn now(&self) -> SimTime {
        self.0.now()
    }

    fn executed(&self) -> u64 {
        self.0.executed()
    }

    fn done(&self) -> f64 {
        self.0.took().len() as f64 / f64::from(self.0.operations())
    }

    fn finish(self: Box<Self>) -> Result<Outcome, String> {
        let Repeated(mut series) = *self;
        while series.advance() {}
        let (trace_hash, events) = (series.trace_hash(), series.executed());
        let simulated = series.now().since(SimTime::START);
        let mut took = series.run();
        let mut figures = vec![Figure::new("operation, µs", took.mean().map_or(0.0, micro))];
        let others = if took.len() > 1 {
            &PERCENTILES[..]
        } else {
            &[]
        };
        for &(name, permille) in others {
            let took = took.permille(permille).map_or(0.0, micro);
            figures.push(Figure::new(name, took));
        }
        Ok(Outcome {
            figures,
            trace_hash,
            events,
            simulated,
        })
    }
}

const PERCENTILES: [(&str, u32); 4] = [
    ("median, µs", 500),
    ("90th percentile, µs", 900),
    ("99th percentile, µs", 990),
    ("longest, µs", 1_000),
];
