//! How many contexts there are at any number of processes, and what they weigh: the
//! counts of RC and XRC (seed 003; receive-queue sizes from MVAPICH), and their form in
//! software, where a context serves both directions.

use crate::perf::network::Model;
use crate::report::Row;
use crate::report::names::{COUNTS, FORMULA};
use crate::stats::median;

/// How many processes there are, and how many of them a node has. Peers on the same
/// node need no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Processes of the whole job.
    pub processes: u64,
    /// Those of one node.
    pub a_node: u64,
}

/// Contexts when every process is in touch with every other node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contexts {
    /// Of one process alone.
    pub a_process: u64,
    /// Of all processes of a node, with what they share.
    pub a_node: u64,
}

impl Place {
    fn nodes(self) -> u64 {
        self.processes / self.a_node
    }

    /// Processes of other nodes.
    pub fn remote(self) -> u64 {
        self.processes - self.a_node
    }

    /// In hardware, with `queues` receive-queue sizes: RC has a queue pair a process
    /// and size; XRC an initiator a process and remote node, and on the node as many
    /// targets, which belong to no process.
    pub fn hardware_contexts(self, model: Model, queues: u64) -> Contexts {
        let far = self.nodes() - 1;
        match model {
            Model::Rc => Contexts {
                a_process: queues * self.remote(),
                a_node: queues * self.a_node * self.remote(),
            },
            Model::Xrc => Contexts {
                a_process: far,
                a_node: 2 * self.a_node * far,
            },
            Model::Node => Contexts {
                a_process: 0,
                a_node: far,
            },
        }
    }

    /// In software: one context serves both directions and every size.
    pub fn software_contexts(self, model: Model) -> Contexts {
        match model {
            Model::Xrc => Contexts {
                a_process: self.nodes() - 1,
                a_node: self.a_node * (self.nodes() - 1),
            },
            other => self.hardware_contexts(other, 1),
        }
    }
}

/// What was counted, taken apart: bytes of a process with no peer, of a context, and
/// of the order kept with one process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Of a process without peers.
    pub base: f64,
    /// Bytes of one context.
    pub context: f64,
    /// Bytes of one pair.
    pub pair: f64,
}

impl Weights {
    /// From the counted rows' leanest processes, since others keep buffers of what has
    /// been: a context by RC beside XRC at each count, a pair by XRC from count to
    /// count, both by medians, since a buffer more or less weighs as much as many
    /// contexts. `None` without both models at two counts.
    pub fn of(rows: &[Row]) -> Option<Self> {
        let counted = |model: Model| -> Vec<Counted> {
            let own = |row: &&Row| row.benchmark == COUNTS && row.variant == model.name();
            rows.iter().filter(own).filter_map(Counted::of).collect()
        };
        let (rc, xrc) = (counted(Model::Rc), counted(Model::Xrc));
        let beside = rc.iter().zip(&xrc);
        let context =
            slopes(beside.map(|(rc, xrc)| (rc.contexts - xrc.contexts, rc.bytes - xrc.bytes)))?;
        let rest = |one: &Counted| one.bytes - context * one.contexts;
        let pair = slopes(xrc.iter().flat_map(|few| {
            let steps = xrc
                .iter()
                .map(|many| (many.pairs - few.pairs, rest(many) - rest(few)));
            steps.collect::<Vec<_>>()
        }))?;
        let bases: Vec<f64> = rc
            .iter()
            .chain(&xrc)
            .map(|one| rest(one) - pair * one.pairs)
            .collect();
        Some(Self {
            base: median(&bases),
            context,
            pair,
        })
    }

    /// Bytes of a process at `place`.
    pub fn a_process(self, place: Place, model: Model) -> f64 {
        let contexts = place.software_contexts(model).a_process as f64;
        self.base + self.context * contexts + self.pair * place.remote() as f64
    }

    /// Bytes of a node at `place`, with what its processes share.
    pub fn a_node(self, place: Place, model: Model) -> f64 {
        let contexts = place.software_contexts(model);
        let shared = contexts.a_node - place.a_node * contexts.a_process;
        place.a_node as f64 * self.a_process(place, model) + self.context * shared as f64
    }
}

/// Adds to the counted rows how their bytes stand to the formula's, where the counts
/// determine it.
pub fn compare(rows: &mut [Row]) {
    let Some(weights) = Weights::of(rows) else {
        return;
    };
    for row in rows.iter_mut().filter(|row| row.benchmark == COUNTS) {
        let Some(Counted {
            contexts,
            pairs,
            bytes,
        }) = Counted::of(row)
        else {
            continue;
        };
        let expected = weights.base + weights.context * contexts + weights.pair * pairs;
        let ratio = bytes / expected;
        row.figures.insert("the least × formula".into(), ratio);
    }
}

/// Carries on what `rows` counted, by the formula: 2 nodes, then twice as many, to
/// [`MOST_PROCESSES`]. Memory is reported if the counts determine it.
pub fn rows(rows: &[Row]) -> Vec<Row> {
    let models = [Model::Rc, Model::Xrc, Model::Node];
    let counted = |model: &Model| {
        rows.iter()
            .any(|row| row.benchmark == COUNTS && row.variant == model.name())
    };
    let weights = Weights::of(rows);
    let mut all = Vec::new();
    for model in models.into_iter().filter(counted) {
        let processes = (5..).map(|n| 1 << n).take_while(|&n| n <= MOST_PROCESSES);
        all.extend(processes.map(|processes| {
            let place = Place {
                processes,
                a_node: A_NODE,
            };
            row(model, place, weights)
        }));
    }
    all
}

fn row(model: Model, place: Place, weights: Option<Weights>) -> Row {
    let contexts = place.software_contexts(model);
    let hardware = place.hardware_contexts(model, 1);
    let row = Row::new(FORMULA, model.name(), 0)
        .with("processes", place.processes as f64)
        .with("contexts a process", contexts.a_process as f64)
        .with("contexts a node", contexts.a_node as f64)
        .with("queue pairs a node in hardware", hardware.a_node as f64);
    match weights {
        None => row,
        Some(weights) => row
            .with("KiB a process", weights.a_process(place, model) / 1024.0)
            .with("KiB a node", weights.a_node(place, model) / 1024.0),
    }
}

/// What was counted of a process.
struct Counted {
    contexts: f64,
    pairs: f64,
    bytes: f64,
}

impl Counted {
    fn of(row: &Row) -> Option<Self> {
        let figure = |name: &str| row.figures.get(name).copied();
        Some(Self {
            contexts: figure("contexts a process")?,
            pairs: figure("pairs a process")?,
            bytes: figure("the least")?,
        })
    }
}

/// The median of all rises over their runs, backward runs left out.
fn slopes(steps: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let forward = steps.filter(|(run, _)| *run > 0.0);
    let all: Vec<f64> = forward.map(|(run, rise)| rise / run).collect();
    (!all.is_empty()).then(|| median(&all))
}

/// Where the formula ends.
pub const MOST_PROCESSES: u64 = 64 << 10;
/// Processes of a node beyond what was counted.
pub const A_NODE: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: Place = Place {
        processes: 65_536,
        a_node: 16,
    };

    /// Bytes of an idle TCP end on Linux 6.18.
    const TCP: f64 = 3650.0;

    #[test]
    fn a_connection_to_every_process_fills_a_node() {
        let rc = LARGE.hardware_contexts(Model::Rc, 1);
        assert_eq!((rc.a_process, rc.a_node), (65_520, 1_048_320));
        assert_eq!((rc.a_process as f64 * TCP / 1e6).round(), 239.0);
        assert_eq!((rc.a_node as f64 * TCP / 1e8).round(), 38.0);
    }

    #[test]
    fn extended_connections_grow_with_nodes() {
        let xrc = LARGE.hardware_contexts(Model::Xrc, 7);
        assert_eq!((xrc.a_process, xrc.a_node), (4095, 131_040));
        // A process's share of its node, targets included.
        assert_eq!((xrc.a_node as f64 / 16.0 * TCP / 1e6).round(), 30.0);
        let node = LARGE.hardware_contexts(Model::Node, 7);
        assert_eq!((node.a_process, node.a_node), (0, 4095));
        assert_eq!((node.a_node as f64 * TCP / 1e6).round(), 15.0);
    }

    #[test]
    fn a_kilobyte_a_context_is_64_mib_by_process_and_4_by_node() {
        let mib = |model| LARGE.software_contexts(model).a_process as f64 / 1024.0;
        assert_eq!(mib(Model::Rc).round(), 64.0);
        assert_eq!(mib(Model::Xrc).round(), 4.0);
        assert_eq!(mib(Model::Node), 0.0);
    }

    #[test]
    fn queue_sizes_multiply_connections_of_rc_only() {
        // 8 processes, all to all, two nodes of four: what Open MPI's component made
        // grows with the sizes in RC only.
        let small = Place {
            processes: 8,
            a_node: 4,
        };
        assert_eq!(small.hardware_contexts(Model::Rc, 4).a_process, 16);
        assert_eq!(small.hardware_contexts(Model::Xrc, 4).a_process, 1);
    }

    const WEIGHTS: Weights = Weights {
        base: 3000.0,
        context: 900.0,
        pair: 80.0,
    };

    fn count(model: Model, slots: u64) -> Row {
        let place = Place {
            processes: 2 * slots,
            a_node: slots,
        };
        let contexts = place.software_contexts(model).a_process;
        Row::new(COUNTS, model.name(), 0)
            .with("contexts a process", contexts as f64)
            .with("pairs a process", slots as f64)
            .with("the least", WEIGHTS.a_process(place, model))
    }

    fn assert_found(rows: &[Row]) {
        let found = Weights::of(rows).expect("two models determine it");
        for (found, true_one) in [
            (found.base, WEIGHTS.base),
            (found.context, WEIGHTS.context),
            (found.pair, WEIGHTS.pair),
        ] {
            assert!((found - true_one).abs() < 1e-3, "{found} {true_one}");
        }
    }

    #[test]
    fn weights_are_found_again_in_counts_made_of_them() {
        let rc_alone: Vec<Row> = [1, 2, 4].map(|slots| count(Model::Rc, slots)).into();
        assert_eq!(Weights::of(&rc_alone), None);
        let both: Vec<Row> = [1, 2, 4, 8, 16]
            .into_iter()
            .flat_map(|slots| [count(Model::Rc, slots), count(Model::Xrc, slots)])
            .collect();
        assert_found(&both);
        // A buffer more in one process is no context.
        let mut disturbed = both.clone();
        disturbed[0].figures["the least"] += 65_536.0;
        disturbed[1].figures["the least"] += 65_536.0;
        assert_found(&disturbed);
        let mut compared = both.clone();
        compare(&mut compared);
        for row in compared {
            assert!((row.figures["the least × formula"] - 1.0).abs() < 1e-6);
        }
        let last = rows(&both).into_iter().next_back().expect("rows");
        assert_eq!(last.figures["processes"], 65_536.0);
        assert_eq!(last.figures["contexts a process"], 4095.0);
    }
}
