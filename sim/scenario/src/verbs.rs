//! The table `machine` and the workloads of host channel adapters.

use lintel_sim_kernel::Bytes;
use lintel_sim_verbs::Transport;
use lintel_sim_verbs::constants::MTU;
use lintel_sim_verbs::measure::{Measurement, Pattern, prepare_bandwidth, prepare_latency};

use crate::choice::Choice;
use crate::config_error::ConfigError;
use crate::reader::Reader;
use crate::run::{Figure, Run, Stepped, micro};
use crate::span::{Observer, Place, relay};

/// What `workload.kind` takes with this model.
pub(crate) const KINDS: [Choice<Kind>; 4] = [
    Choice::new("latency", "half a round trip: bytes", Kind::Latency),
    Choice::new(
        "pairs",
        "one stream for each pair of processes: bytes, processes",
        Kind::Pairs,
    ),
    Choice::new("both-ways", "streams both ways: bytes", Kind::BothWays),
    Choice::new(
        "many-to-many",
        "each process with each of the other node: bytes, processes",
        Kind::ManyToMany,
    ),
];

/// Two nodes, and what goes between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    transport: Transport,
    /// A ping-pong if there is none.
    pattern: Option<Pattern>,
    bytes: Bytes,
}

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Latency,
    Pairs,
    BothWays,
    ManyToMany,
}

impl Setup {
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Setup, ConfigError> {
        let transports = [
            ("rc", Transport::Rc),
            ("xrc", Transport::Xrc),
            ("ud", Transport::Ud),
        ];
        let transport = reader.must_choose("machine.transport", &transports)?;
        let longest = match transport {
            Transport::Ud => MTU.0,
            Transport::Rc | Transport::Xrc => 64 << 20,
        };
        let processes = || {
            let processes = reader.count("workload.processes", 1..=64)?;
            Ok::<u32, ConfigError>(processes.unwrap_or(1))
        };
        let pattern = match reader.must_choose_from("workload.kind", &KINDS)? {
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

    pub(crate) fn prepare(&self, observer: Option<Observer>) -> Box<dyn Run> {
        let Setup {
            transport, bytes, ..
        } = *self;
        let observer = observer.map(|observer| relay(observer, Place::Node));
        match self.pattern {
            None => begin(prepare_latency(transport, bytes, observer), |took| {
                vec![Figure::new("one way, µs", micro(took))]
            }),
            Some(pattern) => begin(
                prepare_bandwidth(transport, pattern, bytes, observer),
                |found| {
                    vec![
                        Figure::new("MB/s", found.megabytes_per_second),
                        Figure::new("contexts fetched", found.misses as f64),
                    ]
                },
            ),
        }
    }
}

fn begin<T: 'static>(
    measurement: Measurement<T>,
    figures: impl FnOnce(T) -> Vec<Figure> + 'static,
) -> Box<dyn Run> {
    let Measurement {
        simulation,
        done,
        read,
    } = measurement;
    Box::new(Stepped {
        simulation,
        done: Box::new(move |_| done()),
        read: Box::new(|simulation| Ok(figures(read(simulation)))),
    })
}
