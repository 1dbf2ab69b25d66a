//! Many to many: every process puts to every other one, in turn from its next one on,
//! so that no target is the first of all senders.

use lintel_memory::{Buffer, Ghost};
use lintel_sim_fabric::Fabric;
use lintel_sim_kernel::{Duration, SimTime, Simulation};
use lintel_types::portals3::{EventKind, MdOptions};
use lintel_types::{Handle, ProcessId};

use super::benchmark::{Benchmark, Steps};
use super::rig::{Case, TorusMachine, nodes};
use crate::node::{Action, Exposure, Notice, Program, Refused, Setup, put};

/// A run of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ManyToMany {
    /// Nodes of the torus in each dimension.
    pub dimensions: [u16; 3],
    /// Puts of each process to each other one.
    pub messages: u32,
    /// Bytes of a put.
    pub bytes: u64,
}

/// What became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// Puts that were sent.
    pub sent: u64,
    /// Puts that were reported to their targets.
    pub received: u64,
    /// Until nothing was to happen any more.
    pub took: Duration,
    /// Messages that found no entry of a CAM.
    pub overflows: u64,
    /// What senders sent once more.
    pub retransmitted: u64,
    /// Entries of CAMs swapped.
    pub swaps: u64,
}

impl ManyToMany {
    /// Sets it up, with a process or two on each node.
    ///
    /// # Errors
    /// There is no such machine.
    pub fn prepare(self, case: &Case) -> Result<Benchmark<Exchange>, Refused> {
        let mut machine = case.torus(self.dimensions)?;
        let cores = case.last_core() + 1;
        let processes = nodes(self.dimensions) * cores;
        let received = Steps::default();
        let to_each = u64::from(processes - 1) * u64::from(self.messages);
        for process in 0..processes {
            let member = Member {
                run: self,
                me: process,
                cores,
                processes,
                memory: Handle::INVALID,
                sent: 0,
                under_way: 0,
                missing: to_each,
                received: received.clone(),
            };
            machine.add(process / cores, case.mode, Box::new(member))?;
        }
        let all = u64::from(processes) * to_each;
        let done = received.of(all);
        let read = move |simulation: &Simulation<TorusMachine>| {
            Ok(exchanged(simulation, all, received.get()))
        };
        Ok(Benchmark::new(machine, done, read))
    }
}

fn exchanged(simulation: &Simulation<TorusMachine>, sent: u64, received: u64) -> Exchange {
    let world = &simulation.world;
    let mut exchange = Exchange {
        sent,
        received,
        took: simulation.events.now().since(SimTime::START),
        overflows: 0,
        retransmitted: 0,
        swaps: 0,
    };
    for node in 0..world.fabric().nodes() {
        let report = world.report(node);
        exchange.overflows += report.overflows;
        exchange.retransmitted += report.retransmitted;
        exchange.swaps += report.swaps;
    }
    exchange
}

struct Member {
    run: ManyToMany,
    me: u32,
    cores: u32,
    processes: u32,
    memory: Handle,
    /// Puts to all others.
    sent: u64,
    under_way: u32,
    /// Puts that are still to come.
    missing: u64,
    received: Steps,
}

const BITS: u64 = 7;
/// Puts of a process that haven't left, at most.
const WINDOW: u32 = 16;

impl Member {
    fn put_next(&mut self) -> Action {
        // Each round goes to all others, from the next one on.
        let others = u64::from(self.processes - 1);
        let ahead = 1 + u32::try_from(self.sent % others).expect("there are as many as that");
        let target = (self.me + ahead) % self.processes;
        let target = ProcessId::new(target / self.cores, target % self.cores);
        self.sent += 1;
        self.under_way += 1;
        Action::Start(put(self.memory, self.run.bytes, target, BITS))
    }
}

impl Program for Member {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        let memory = Buffer::Contiguous(Ghost::new(0x1000, self.run.bytes));
        self.memory = setup.bind(memory, MdOptions::EVENT_START_DISABLE)?;
        setup.expose(&Exposure::of_ends(self.run.bytes, BITS))?;
        Ok(())
    }

    fn next(&mut self, _: SimTime, notice: Option<&Notice>) -> Action {
        match notice {
            Some(notice) if notice.is(EventKind::PutEnd) => {
                self.missing -= 1;
                self.received.count(1);
            }
            Some(_) => self.under_way -= 1,
            None => {}
        }
        let all = u64::from(self.processes - 1) * u64::from(self.run.messages);
        let is_through = self.sent == all;
        match (is_through, self.under_way) {
            (false, WINDOW) => Action::Wait,
            (false, _) => self.put_next(),
            (true, 0) if self.missing == 0 => Action::End,
            (true, _) => Action::Wait,
        }
    }
}
