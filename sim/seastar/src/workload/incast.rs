//! Many to one: every other node puts into node 0, at once. More senders than its
//! CAM has entries show what protects it.

use lintel_memory::{Buffer, Ghost};
use lintel_sim_kernel::{Duration, SimTime};
use lintel_types::portals3::{EventKind, MdOptions};
use lintel_types::{Handle, ProcessId};

use super::benchmark::Benchmark;
use super::rig::{Case, Measured, measured, nodes};
use crate::node::{Action, Exposure, NodeReport, Notice, Program, Refused, Setup, put};

/// How much comes to node 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Incast {
    /// The torus, whose other nodes send.
    pub dimensions: [u16; 3],
    /// Puts of each sender.
    pub messages: u32,
    /// Bytes of a put.
    pub bytes: u64,
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// Puts that were sent.
    pub sent: u64,
    /// Puts that were reported to node 0's process.
    pub received: u64,
    /// When nothing was to happen any more.
    pub end: Duration,
    /// What node 0 counted.
    pub report: NodeReport,
    /// What the senders sent once more.
    pub retransmitted: u64,
    /// Processes that wait for what never comes.
    pub stuck: Vec<String>,
    /// Hash of all that happened.
    pub trace: u64,
}

/// Runs it to the end, which may find processes stuck.
///
/// # Errors
/// There is no such machine.
pub fn incast(case: &Case, incast: Incast) -> Result<Arrivals, Refused> {
    incast.prepare(case)?.run()
}

impl Incast {
    /// Sets [`incast`] up.
    ///
    /// # Errors
    /// There is no such machine.
    pub fn prepare(self, case: &Case) -> Result<Benchmark<Arrivals>, Refused> {
        let mut machine = case.torus(self.dimensions)?;
        let nodes = nodes(self.dimensions);
        let total = (nodes - 1) * self.messages;
        let received = measured();
        let sink = Sink {
            bytes: self.bytes,
            left: total,
            received: received.clone(),
        };
        machine.add(0, case.mode, Box::new(sink))?;
        for node in 1..nodes {
            let source = Source {
                incast: self,
                memory: Handle::INVALID,
                unsent: self.messages,
                under_way: 0,
            };
            machine.add(node, case.mode, Box::new(source))?;
        }
        let came = received.clone();
        let done = move || came.borrow().len() as f64 / f64::from(total.max(1));
        Ok(Benchmark::new(machine, done, move |simulation| {
            let world = &simulation.world;
            Ok(Arrivals {
                sent: u64::from(total),
                received: received.borrow().len() as u64,
                end: simulation.events.now().since(SimTime::START),
                report: world.report(0),
                retransmitted: (1..nodes)
                    .map(|node| world.report(node).retransmitted)
                    .sum(),
                stuck: world.unfinished(),
                trace: simulation.events.trace_hash(),
            })
        }))
    }
}

struct Source {
    incast: Incast,
    memory: Handle,
    unsent: u32,
    under_way: u32,
}

struct Sink {
    bytes: u64,
    left: u32,
    received: Measured,
}

const BITS: u64 = 7;

impl Program for Source {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        let memory = Buffer::Contiguous(Ghost::new(0x1000, self.incast.bytes));
        self.memory = setup.bind(memory, MdOptions::EVENT_START_DISABLE)?;
        Ok(())
    }

    fn next(&mut self, _: SimTime, notice: Option<&Notice>) -> Action {
        if notice.is_some_and(|notice| notice.is(EventKind::SendEnd)) {
            self.under_way -= 1;
        }
        if self.unsent > 0 {
            self.unsent -= 1;
            self.under_way += 1;
            let to = ProcessId::new(0, 0);
            return Action::Start(put(self.memory, self.incast.bytes, to, BITS));
        }
        match self.under_way {
            0 => Action::End,
            _ => Action::Wait,
        }
    }
}

impl Program for Sink {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        setup.expose(&Exposure::of_ends(self.bytes, BITS))?;
        Ok(())
    }

    fn next(&mut self, now: SimTime, notice: Option<&Notice>) -> Action {
        if notice.is_some_and(|notice| notice.is(EventKind::PutEnd)) {
            let since_start = now.since(SimTime::START);
            self.received.borrow_mut().add(since_start);
            self.left -= 1;
        }
        match self.left {
            0 => Action::End,
            _ => Action::Wait,
        }
    }
}
