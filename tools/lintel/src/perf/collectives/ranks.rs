//! One rank's end: two groups of all ranks over one interface, and what they work on.

use std::time::{Duration, Instant};

use lintel_pmi::client::Client;
use portals4::{Interface, Portals, ProcessId};
use portals4_collectives::{
    self as collectives, CREATE_TIMEOUT, Call, Group, Progress, Separate, Spec, open,
};

use crate::error::{Error, Result};
use crate::harness::Plan;
use crate::machine;
use crate::perf::options::Options;
use crate::stats::median;
use crate::team::{Team, WORDS, WaitMode};

/// Who goes through the steps, in the order of rows.
pub const PROGRESS: [(&str, Progress); 2] =
    [("offloaded", Progress::Offloaded), ("host", Progress::Host)];

/// All ranks, seen from one.
pub struct CollectiveRanks {
    /// One for each of [`PROGRESS`].
    groups: [Group; 2],
    given: Vec<u8>,
    got: Vec<u8>,
}

/// What rank 0 has measured of one of [`PROGRESS`], in nanoseconds.
#[derive(Debug, Default)]
pub struct Turns {
    /// The duration of each operation.
    pub samples: Vec<f64>,
    /// The median of each round.
    pub rounds: Vec<f64>,
}

impl CollectiveRanks {
    /// Joins the others of the job; `largest` bytes of each are the most that is asked
    /// for.
    pub fn join(client: &mut Client, options: &Options, largest: u64) -> Result<Self> {
        let rank = client.rank();
        machine::pin(options.cores[rank % options.cores.len()])?;
        let team = crate::perf::form_team(client, WaitMode::Sleep)?;
        let interface = Portals::init()
            .and_then(|portals| Interface::open(&portals, portals4::Options::default()));
        let interface = interface.map_err(|error| Error::Wrong(error.to_string()))?;
        let processes = exchange_addresses(&team, &interface)?;
        let [offloaded, host] = PROGRESS.map(|(_, progress)| {
            let spec = Spec {
                processes: processes.clone(),
                rank: rank as u32,
                progress,
                create_timeout: CREATE_TIMEOUT,
            };
            open(&interface, FIRST_PORTAL + progress as u32, spec).map_err(failed)
        });
        let bytes = largest as usize * team.size();
        Ok(Self {
            groups: [offloaded?, host?],
            given: vec![0; bytes],
            got: vec![0; bytes],
        })
    }

    /// Whether this is the rank that holds the watch.
    pub fn leads(&self) -> bool {
        self.groups[0].rank() == 0
    }

    /// How many there are.
    pub fn ranks(&self) -> u32 {
        self.groups[0].ranks()
    }

    /// Both of [`PROGRESS`] at one point, round by round.
    pub fn in_turns(&mut self, call: Call, plan: Plan) -> Result<[Turns; 2]> {
        let end = plan.deadline(PROGRESS.len());
        let mut found = [Turns::default(), Turns::default()];
        let time = plan.time / plan.rounds;
        for _ in 0..plan.rounds {
            for (which, turns) in found.iter_mut().enumerate() {
                let samples = self.turn(which, call, time)?;
                turns.rounds.push(median(&samples));
                turns.samples.extend(samples);
            }
            if self.is_enough(0, Instant::now() >= end)? {
                break;
            }
        }
        Ok(found)
    }

    fn turn(&mut self, which: usize, call: Call, time: Duration) -> Result<Vec<f64>> {
        let end = Instant::now() + time;
        let mut samples = Vec::new();
        self.operate(which, call)?;
        // Doubled up to BATCH, so that slow operations don't exceed the time by far.
        let mut batch = 1;
        loop {
            for _ in 0..batch {
                self.operate(which, Call::Barrier)?;
                let start = Instant::now();
                self.operate(which, call)?;
                samples.push(start.elapsed().as_nanos() as f64);
            }
            if self.is_enough(which, Instant::now() >= end)? {
                return Ok(samples);
            }
            batch = (2 * batch).min(BATCH);
        }
    }

    fn operate(&mut self, which: usize, call: Call) -> Result<()> {
        let mut buffers = Separate {
            input: &self.given,
            output: &mut self.got,
        };
        let done = self.groups[which].run(call, None, &mut buffers);
        done.map_err(failed)
    }

    /// What rank 0 says, in every rank.
    fn is_enough(&mut self, which: usize, said: bool) -> Result<bool> {
        let mut heard = [0];
        let mut buffers = Separate {
            input: &[u8::from(said)],
            output: &mut heard,
        };
        let call = Call::Broadcast { root: 0, bytes: 1 };
        let done = self.groups[which].run(call, None, &mut buffers);
        done.map_err(failed)?;
        Ok(match self.leads() {
            true => said,
            false => heard != [0],
        })
    }

    /// Ends both groups, with the others.
    pub fn leave(self) -> Result<()> {
        let ended = self.groups.map(|group| group.free().map_err(failed));
        ended.into_iter().collect()
    }
}

/// Everyone's process id, by rank.
fn exchange_addresses(team: &Team, interface: &Interface) -> Result<Vec<ProcessId>> {
    let id = interface.id();
    let id = id.map_err(|error| Error::Wrong(error.to_string()))?;
    let mut words = [0; WORDS];
    words[..2].copy_from_slice(&[id.nid.into(), id.pid.into()]);
    let all = team.exchange(words)?.into_iter();
    Ok(all
        .map(|words| ProcessId::new(words[0] as u32, words[1] as u32))
        .collect())
}

fn failed(error: collectives::Error) -> Error {
    Error::Wrong(error.to_string())
}

/// Of the portal table; each group has one.
const FIRST_PORTAL: u32 = 20;
/// The most operations between two looks at the clock that all ranks hear of.
const BATCH: usize = 16;
