//! Halo exchange in three dimensions: each process computes, then puts a face to
//! each of its six neighbours and waits for theirs.

use lintel_memory::{Buffer, Ghost};
use lintel_sim_kernel::{Duration, SimTime};
use lintel_types::portals3::{EventKind, MdOptions};
use lintel_types::{Handle, ProcessId};

use super::benchmark::{Benchmark, Steps};
use super::rig::{Case, all_ended, nodes};
use crate::node::{Action, Exposure, Notice, Program, Refused, Setup, put};

/// A run of it, one process a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Halo {
    /// Nodes of the torus in each dimension.
    pub dimensions: [u16; 3],
    /// Bytes of a face.
    pub bytes: u64,
    /// What a process computes between exchanges.
    pub compute: Duration,
    /// Exchanges; at least 1.
    pub rounds: u32,
}

/// Time of a round, on average.
///
/// # Errors
/// The machine can't do it.
pub fn halo(case: &Case, halo: Halo) -> Result<Duration, Refused> {
    halo.prepare(case)?.run()
}

impl Halo {
    /// Sets [`halo`] up.
    ///
    /// # Errors
    /// The machine can't do it.
    pub fn prepare(self, case: &Case) -> Result<Benchmark<Duration>, Refused> {
        let mut machine = case.torus(self.dimensions)?;
        let (nodes, begun) = (nodes(self.dimensions), Steps::default());
        for node in 0..nodes {
            let cell = Cell {
                halo: self,
                neighbours: neighbours(node, self.dimensions),
                memory: Handle::INVALID,
                round: 0,
                sent: FACES,
                left: FACES,
                came: FACES,
                begun: begun.clone(),
            };
            machine.add(node, case.mode, Box::new(cell))?;
        }
        let done = begun.of(u64::from(nodes) * u64::from(self.rounds));
        Ok(Benchmark::new(machine, done, move |simulation| {
            all_ended(simulation)?;
            let took = simulation.events.now().since(SimTime::START).as_ps();
            Ok(Duration::from_ps(took / u64::from(self.rounds.max(1))))
        }))
    }
}

const FACES: usize = 6;

struct Cell {
    halo: Halo,
    neighbours: [ProcessId; FACES],
    memory: Handle,
    round: u32,
    /// Faces of this round that were put, and that have left.
    sent: usize,
    left: usize,
    /// Faces that have arrived: more than six if a neighbour is a round ahead.
    came: usize,
    /// Rounds of all cells.
    begun: Steps,
}

/// A neighbour up and down each dimension.
fn neighbours(node: u32, dimensions: [u16; 3]) -> [ProcessId; FACES] {
    let sizes = dimensions.map(u32::from);
    let places = [
        node % sizes[0],
        node / sizes[0] % sizes[1],
        node / sizes[0] / sizes[1],
    ];
    std::array::from_fn(|face| {
        let (dimension, mut places) = (face / 2, places);
        let size = sizes[dimension];
        let step = if face % 2 == 0 { 1 } else { size - 1 };
        places[dimension] = (places[dimension] + step) % size;
        let nid = places[0] + sizes[0] * (places[1] + sizes[1] * places[2]);
        ProcessId::new(nid, 0)
    })
}

impl Cell {
    fn is_exchanged(&self) -> bool {
        self.sent == FACES && self.left == FACES && self.came >= FACES
    }

    fn next_round(&mut self) -> Action {
        if self.round == self.halo.rounds {
            return Action::End;
        }
        self.round += 1;
        self.begun.count(1);
        (self.sent, self.left) = (0, 0);
        self.came -= FACES;
        Action::Compute(self.halo.compute)
    }
}

impl Program for Cell {
    fn begin(&mut self, setup: &mut Setup<'_>) -> Result<(), Refused> {
        let memory = Buffer::Contiguous(Ghost::new(0x1000, self.halo.bytes));
        self.memory = setup.bind(memory, MdOptions::EVENT_START_DISABLE)?;
        setup.expose(&Exposure {
            ignore_bits: u64::MAX,
            ..Exposure::of_ends(self.halo.bytes, 0)
        })?;
        Ok(())
    }

    fn next(&mut self, _: SimTime, notice: Option<&Notice>) -> Action {
        match notice {
            Some(notice) if notice.is(EventKind::PutEnd) => self.came += 1,
            Some(_) => self.left += 1,
            None => {}
        }
        if self.is_exchanged() {
            return self.next_round();
        }
        if self.sent == FACES {
            return Action::Wait;
        }
        let target = self.neighbours[self.sent];
        self.sent += 1;
        Action::Start(put(self.memory, self.halo.bytes, target, 0))
    }
}
