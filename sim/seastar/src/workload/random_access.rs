//! HPCC RandomAccess (S0): every process updates words anywhere in the machine. It
//! looks 1024 updates ahead, sorts them into buckets by process, sends the fullest
//! bucket when the one before has left, and takes whatever comes meanwhile. The more
//! processes there are, the shorter are its messages.
//!
//! What the program and its MPI cost the host isn't published, nor on how many nodes
//! it ran. Both are assumed here and are no constants of the machine:
//! [`RandomAccess::RED_STORM`].

use lintel_memory::{Buffer, Ghost};
use lintel_sim_kernel::{Duration, SimTime, Stream, Streams};
use lintel_types::portals3::{EventKind, MdOptions};
use lintel_types::{Handle, ProcessId};

use super::benchmark::{Benchmark, Steps};
use super::rig::{Case, nodes};
use crate::node::{Action, Exposure, Notice, Program, Refused, Setup, put};

/// A run of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomAccess {
    /// Nodes of the torus in each dimension.
    pub dimensions: [u16; 3],
    /// Updates of each process.
    pub updates: u32,
    /// Updates that wait in a process at most: 1024 by HPCC's rules. What decides is how many
    /// of them have the same target, so that fewer on fewer nodes stand for a larger machine.
    pub ahead: u32,
    /// Drawing an update and finding its bucket.
    pub draw: Duration,
    /// Asking MPI for a message, once for each update drawn.
    pub test: Duration,
    /// Updating a word of the own memory.
    pub update: Duration,
    /// MPI's part of a message, at either end.
    pub mpi: Duration,
}

impl RandomAccess {
    /// As on 64 nodes of Red Storm. An update is a miss of cache and TLB; MPI's part of a
    /// message is two thousand cycles, of a test eight hundred.
    pub const RED_STORM: RandomAccess = RandomAccess {
        dimensions: [4, 4, 4],
        updates: 3_000,
        ahead: 1_024,
        draw: Duration::from_ns(100),
        test: Duration::from_ns(400),
        update: Duration::from_ns(150),
        mpi: Duration::from_ns(1_000),
    };

    /// Updates of all processes.
    pub fn updates_in_all(self, case: &Case) -> u64 {
        let processes = nodes(self.dimensions) * (case.last_core() + 1);
        u64::from(processes) * u64::from(self.updates)
    }

    /// Sets [`random_access`] up.
    ///
    /// # Errors
    /// The machine can't do it.
    pub fn prepare(self, case: &Case) -> Result<Benchmark<Duration>, Refused> {
        let mut machine = case.torus(self.dimensions)?;
        let cores = case.last_core() + 1;
        let processes = nodes(self.dimensions) * cores;
        let (streams, made) = (Streams::new(case.setting.seed), Steps::default());
        for process in 0..processes {
            let id = ProcessId::new(process / cores, process % cores);
            let program = Updater {
                run: self,
                me: process,
                cores,
                buckets: vec![0; processes as usize],
                draws: streams.stream(&format!("node/{}/process/{}", id.nid, id.pid)),
                memory: Handle::INVALID,
                undrawn: self.updates,
                pending: 0,
                sending: Sending::No,
                made: made.clone(),
            };
            machine.add(id.nid, case.mode, Box::new(program))?;
        }
        let all = self.updates_in_all(case);
        Ok(Benchmark::new(
            machine,
            made.of(all),
            move |simulation| match made.get() == all {
                true => Ok(simulation.events.now().since(SimTime::START)),
                false => Err(Refused(format!(
                    "{} of {all} updates were made: messages were lost, protect the machine",
                    made.get()
                ))),
            },
        ))
    }
}

/// Time until all updates are made.
///
/// # Errors
/// The machine can't do it.
pub fn random_access(case: &Case, run: RandomAccess) -> Result<Duration, Refused> {
    run.prepare(case)?.run()
}

struct Updater {
    run: RandomAccess,
    me: u32,
    cores: u32,
    /// Updates that wait, by process.
    buckets: Vec<u32>,
    draws: Stream,
    memory: Handle,
    undrawn: u32,
    pending: u32,
    sending: Sending,
    /// Updates of all processes.
    made: Steps,
}

/// How far a message has got.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sending {
    No,
    /// MPI does its part.
    Called,
    UnderWay,
}

const BITS: u64 = 7;

impl Updater {
    /// Fills the buckets; says how many updates were drawn.
    fn fill(&mut self) -> u32 {
        let drawn = self.undrawn.min(self.run.ahead - self.pending);
        let others = self.buckets.len() as u64 - 1;
        for _ in 0..drawn {
            // Below a number of 32 bits.
            let other = self.draws.below(others) as u32;
            let process = other + u32::from(other >= self.me);
            self.buckets[process as usize] += 1;
        }
        self.undrawn -= drawn;
        self.pending += drawn;
        drawn
    }

    fn go_on(&mut self) -> Action {
        let drawn = self.fill();
        if drawn > 0 {
            return Action::Compute((self.run.draw + self.run.test) * u64::from(drawn));
        }
        match self.sending {
            Sending::No if self.pending > 0 => {
                self.sending = Sending::Called;
                Action::Compute(self.run.mpi)
            }
            Sending::Called => self.send_fullest(),
            _ => Action::Wait,
        }
    }

    fn send_fullest(&mut self) -> Action {
        self.sending = Sending::UnderWay;
        let fullest = (0..self.buckets.len()).max_by_key(|&at| self.buckets[at]);
        let fullest = fullest.expect("there are other processes");
        let updates = std::mem::take(&mut self.buckets[fullest]);
        self.pending -= updates;
        let process = u32::try_from(fullest).expect("processes have numbers of 32 bits");
        let target = ProcessId::new(process / self.cores, process % self.cores);
        Action::Start(put(self.memory, 8 * u64::from(updates), target, BITS))
    }
}

impl Program for Updater {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        let bytes = 8 * u64::from(self.run.ahead);
        let memory = Buffer::Contiguous(Ghost::new(0x1000, bytes));
        self.memory = setup.bind(memory, MdOptions::EVENT_START_DISABLE)?;
        setup.expose(&Exposure::of_ends(bytes, BITS))?;
        Ok(())
    }

    fn next(&mut self, _: SimTime, notice: Option<&Notice>) -> Action {
        match notice {
            Some(Notice::Portals(event)) if event.kind == EventKind::PutEnd => {
                let updates = event.mlength / 8;
                self.made.count(updates);
                Action::Compute(self.run.update * updates + self.run.mpi)
            }
            Some(Notice::Portals(event)) if event.kind == EventKind::SendEnd => {
                self.sending = Sending::No;
                self.go_on()
            }
            _ => self.go_on(),
        }
    }
}
