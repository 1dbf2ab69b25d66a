//! RandomAccess by exchanges along a hypercube (S. Plimpton et al., *A simple synchronous
//! distributed-memory algorithm for the HPCC RandomAccess benchmark*, 2006): each process
//! draws a chunk of updates; along one dimension after the other it sends those that belong
//! to the other half, half of what it has, to its partner there, and then makes the rest.
//!
//! What drawing, sorting and updating cost the host isn't published: [`Hypercube::OURS`].

use lintel_memory::{Buffer, Ghost};
use lintel_sim_kernel::{Duration, SimTime};
use lintel_types::portals3::{EventKind, MdOptions};
use lintel_types::{Handle, ProcessId};

use super::benchmark::{Benchmark, Steps};
use super::rig::{Case, all_ended, nodes};
use crate::node::{Action, Exposure, Notice, Program, Refused, Setup, put};

/// A run of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hypercube {
    /// Nodes of the torus in each dimension; a power of two of them in all.
    pub dimensions: [u16; 3],
    /// Chunks of each process.
    pub chunks: u32,
    /// Updates of a chunk: 1024 by HPCC's rules.
    pub updates: u32,
    /// Drawing an update.
    pub draw: Duration,
    /// Deciding for an update, in each dimension, whether it is sent.
    pub sort: Duration,
    /// Updating a word of the own memory.
    pub update: Duration,
}

impl Hypercube {
    /// On 16 nodes. Drawing and sorting are twenty cycles of a register's work, an update
    /// is a miss of cache and TLB: assumed.
    pub const OURS: Hypercube = Hypercube {
        dimensions: [4, 2, 2],
        chunks: 3,
        updates: 1_024,
        draw: Duration::from_ns(10),
        sort: Duration::from_ns(10),
        update: Duration::from_ns(100),
    };

    /// Sets [`hypercube`] up.
    ///
    /// # Errors
    /// The machine can't do it, or the number of processes is no power of two.
    pub fn prepare(self, case: &Case) -> Result<Benchmark<Duration>, Refused> {
        let mut machine = case.torus(self.dimensions)?;
        let cores = case.last_core() + 1;
        let processes = nodes(self.dimensions) * cores;
        if !processes.is_power_of_two() {
            let why = format!("a hypercube has a power of two of processes, not {processes}");
            return Err(Refused(why));
        }
        let rounds = processes.trailing_zeros();
        let begun = Steps::default();
        for process in 0..processes {
            let corner = Corner {
                run: self,
                me: process,
                cores,
                rounds,
                came: vec![0; rounds as usize],
                chunk: 0,
                step: Step::Draw,
                memory: Handle::INVALID,
                begun: begun.clone(),
            };
            machine.add(process / cores, case.mode, Box::new(corner))?;
        }
        let done = begun.of(u64::from(processes) * u64::from(self.chunks));
        Ok(Benchmark::new(machine, done, move |simulation| {
            all_ended(simulation)?;
            let took = simulation.events.now().since(SimTime::START).as_ps();
            Ok(Duration::from_ps(took / u64::from(self.chunks.max(1))))
        }))
    }

    /// Updates that all processes make in a chunk.
    pub fn updates_of_chunk(&self, case: &Case) -> u64 {
        let processes = nodes(self.dimensions) * (case.last_core() + 1);
        u64::from(processes) * u64::from(self.updates)
    }

    /// Bytes of an exchange: half of a chunk's updates.
    fn bytes(&self) -> u64 {
        4 * u64::from(self.updates)
    }
}

/// Time of a chunk, on average.
///
/// # Errors
/// The machine can't do it, or the number of processes is no power of two.
pub fn hypercube(case: &Case, run: Hypercube) -> Result<Duration, Refused> {
    run.prepare(case)?.run()
}

struct Corner {
    run: Hypercube,
    me: u32,
    cores: u32,
    rounds: u32,
    /// Messages that have come, by dimension: a partner may be ahead.
    came: Vec<u32>,
    chunk: u32,
    step: Step,
    memory: Handle,
    begun: Steps,
}

/// What a process does next.
#[derive(Clone, Copy)]
enum Step {
    /// Draws a chunk, or ends.
    Draw,
    /// Sorts for a dimension, then sends.
    Sort(u32),
    Send(u32),
    /// Waits until its own message has left and its partner's has come.
    Await(u32, bool),
    /// Makes what is left to it.
    Update,
}

impl Corner {
    fn partner(&self, round: u32) -> ProcessId {
        let process = self.me ^ (1 << round);
        ProcessId::new(process / self.cores, process % self.cores)
    }

    fn after(&mut self, round: u32) -> Action {
        self.step = match round < self.rounds {
            true => Step::Sort(round),
            false => Step::Update,
        };
        self.act()
    }

    fn act(&mut self) -> Action {
        let updates = u64::from(self.run.updates);
        match self.step {
            Step::Draw if self.chunk == self.run.chunks => Action::End,
            Step::Draw => {
                self.chunk += 1;
                self.begun.count(1);
                self.step = match self.rounds {
                    0 => Step::Update,
                    _ => Step::Sort(0),
                };
                Action::Compute(self.run.draw * updates)
            }
            Step::Sort(round) => {
                self.step = Step::Send(round);
                Action::Compute(self.run.sort * updates)
            }
            Step::Send(round) => {
                self.step = Step::Await(round, false);
                let partner = self.partner(round);
                Action::Start(put(self.memory, self.run.bytes(), partner, round.into()))
            }
            Step::Await(round, has_left) => {
                let has_come = self.came[round as usize] >= self.chunk;
                match has_left && has_come {
                    true => self.after(round + 1),
                    false => Action::Wait,
                }
            }
            Step::Update => {
                self.step = Step::Draw;
                Action::Compute(self.run.update * updates)
            }
        }
    }
}

impl Program for Corner {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        let memory = Buffer::Contiguous(Ghost::new(0x1000, self.run.bytes()));
        self.memory = setup.bind(memory, MdOptions::EVENT_START_DISABLE)?;
        for round in 0..self.rounds {
            setup.expose(&Exposure::of_ends(self.run.bytes(), round.into()))?;
        }
        Ok(())
    }

    fn next(&mut self, _: SimTime, notice: Option<&Notice>) -> Action {
        match notice {
            Some(Notice::Portals(event)) if event.kind == EventKind::PutEnd => {
                let round = usize::try_from(event.match_bits).expect("a dimension");
                self.came[round] += 1;
            }
            Some(notice) if notice.is(EventKind::SendEnd) => {
                if let Step::Await(round, _) = self.step {
                    self.step = Step::Await(round, true);
                }
            }
            _ => {}
        }
        self.act()
    }
}
