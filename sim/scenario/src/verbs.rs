//! The table `machine` and the workloads of host channel adapters.

use lintel_sim_kernel::{Bytes, Duration};
use lintel_sim_verbs::Transport;
use lintel_sim_verbs::constants::MTU;
use lintel_sim_verbs::measure::{Pattern, bandwidth, latency};

use crate::mistake::Mistake;
use crate::reader::Reader;
use crate::run::{AtOnce, Figure, Outcome, Run, micro};

/// Two nodes, and what goes between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    transport: Transport,
    /// None: a ping-pong.
    pattern: Option<Pattern>,
    bytes: Bytes,
}

#[derive(Clone, Copy)]
enum Kind {
    Latency,
    Pairs,
    BothWays,
    ManyToMany,
}

impl Setup {
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Setup, Mistake> {
        let transports = [
            ("rc", Transport::Rc),
            ("xrc", Transport::Xrc),
            ("ud", Transport::Ud),
        ];
        let transport = reader.must_choose("machine.transport", &transports)?;
        let kinds = [
            ("latency", Kind::Latency),
            ("pairs", Kind::Pairs),
            ("both-ways", Kind::BothWays),
            ("many-to-many", Kind::ManyToMany),
        ];
        let longest = match transport {
            Transport::Ud => MTU.0,
            Transport::Rc | Transport::Xrc => 64 << 20,
        };
        let processes = || {
            let processes = reader.count("workload.processes", 1..=64)?;
            Ok::<u32, Mistake>(processes.unwrap_or(1))
        };
        let pattern = match reader.must_choose("workload.kind", &kinds)? {
            Kind::Latency => None,
            Kind::Pairs => Some(Pattern::Pairs(processes()?)),
            Kind::BothWays => Some(Pattern::BothWays),
            Kind::ManyToMany => Some(Pattern::ManyToMany(processes()?)),
        };
        let bytes = reader.number("workload.bytes", 1..=longest)?;
        Ok(Setup {
            transport,
            pattern,
            bytes: Bytes(bytes.unwrap_or(8)),
        })
    }

    pub(crate) fn prepare(&self) -> Box<dyn Run> {
        let setup = *self;
        Box::new(AtOnce::new(move || Ok(setup.measure())))
    }

    fn measure(&self) -> Outcome {
        let Some(pattern) = self.pattern else {
            let took = latency(self.transport, self.bytes);
            return Outcome {
                figures: vec![Figure::new("one way, µs", micro(took))],
                trace_hash: None,
                events: 0,
                simulated: took,
            };
        };
        let found = bandwidth(self.transport, pattern, self.bytes);
        Outcome {
            figures: vec![
                Figure::new("MB/s", found.megabytes_per_second),
                Figure::new("contexts fetched", found.misses as f64),
            ],
            trace_hash: Some(found.trace_hash),
            events: 0,
            simulated: Duration::ZERO,
        }
    }
}
