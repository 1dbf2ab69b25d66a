//! The table `machine` and the workload of hosts whose interfaces carry operations out.

use lintel_collectives::Tree;
use lintel_sim_triggered::{Algorithm, By, Case, Entry, Timing, cube};

use crate::machine::noise;
use crate::mistake::Mistake;
use crate::reader::Reader;
use crate::run::{AtOnce, Figure, Outcome, Run, micro};

/// A machine of the first studies, and its all-reduce.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    case: Case,
    operations: u32,
}

impl Setup {
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Setup, Mistake> {
        let set = reader.count("machine.timing_set", 1..=3)?.unwrap_or(1);
        let set = u8::try_from(set).expect("it is 3 at most");
        let carriers = [("hosts", By::Hosts), ("interfaces", By::Interfaces)];
        let by = reader.must_choose("machine.carried_by", &carriers)?;
        let nodes_log2 = reader.count("machine.nodes_log2", 1..=16)?.unwrap_or(6);
        reader.must_choose("workload.kind", &[("all-reduce", ())])?;
        let trees = [
            ("recursive-doubling", None),
            ("binomial", Some(Tree::KNomial(2))),
            ("4-nomial", Some(Tree::KNomial(4))),
            ("8-nomial", Some(Tree::KNomial(8))),
        ];
        let tree = reader.must_choose("workload.algorithm", &trees)?;
        let operations = reader.count("workload.operations", 1..=1_000_000)?;
        Ok(Setup {
            case: Case {
                timing: Timing::set(set).expect("there are three"),
                sides: cube(nodes_log2),
                algorithm: Algorithm::new(by, tree),
                noise: noise(reader)?,
                entry: Entry::Undisturbed,
                seed: reader.number("seed", 0..=i64::MAX as u64)?.unwrap_or(1),
            },
            operations: operations.unwrap_or(1),
        })
    }

    pub(crate) fn prepare(&self) -> Box<dyn Run> {
        let setup = *self;
        Box::new(AtOnce::new(move || setup.measure()))
    }

    /// With noise in outline, which many operations take; without, packet by packet.
    fn measure(&self) -> Result<Outcome, String> {
        let samples = match self.case.noise {
            Some(_) => self.case.measure_in_outline(self.operations),
            None => self.case.measure(self.operations),
        };
        let mut samples = samples.map_err(|mistake| mistake.to_string())?;
        let mut figures = vec![Figure::new(
            "operation, µs",
            samples.mean().map_or(0.0, micro),
        )];
        for (name, permille) in [
            ("median, µs", 500),
            ("99th percentile, µs", 990),
            ("longest, µs", 1_000),
        ] {
            let took = samples.permille(permille).map_or(0.0, micro);
            figures.push(Figure::new(name, took));
        }
        Ok(Outcome {
            figures,
            trace_hash: None,
            events: 0,
            simulated: samples.max().unwrap_or_default(),
        })
    }
}
