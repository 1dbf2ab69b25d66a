//! Operations one after the other, run one at a time so that a caller can
//! watch.

use lintel_sim_fabric::{Dimension, PacketFabric, Torus};
use lintel_sim_kernel::{Duration, Samples, SimTime, Simulation, Stream, Streams};
use lintel_sim_node::{Noise, NoiseParameters};

use crate::coarse::CoarseMachine;
use crate::machine::{Machine, operate};
use crate::measure::{ConfigError, Entry, config_error};
use crate::program::Program;
use crate::timing::Timing;
use crate::trace::Observer;

/// How closely operations are simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// Every part, each packet over each link: [`Machine`].
    Packets,
    /// An event or two a message: [`CoarseMachine`].
    Coarse,
}

/// Where operations are carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MachineSetup {
    /// The machine's constants, such as [`Timing::SET_1`].
    pub timing: Timing,
    /// Nodes along each dimension of the torus.
    pub sides: [u16; 3],
    /// What disturbs the hosts.
    pub noise: Option<NoiseParameters>,
    /// When hosts enter an operation.
    pub entry: Entry,
    /// From which noise is drawn.
    pub seed: u64,
}

/// Operations under way. Each begins everywhere at once: see [`Entry`].
pub struct Series {
    stage: Stage,
    starts: Starts,
    entry: Entry,
    operations: u32,
    took: Samples,
}

enum Stage {
    Packets(Box<Simulation<Machine<PacketFabric<Torus>>>>),
    Coarse(Box<Simulation<CoarseMachine>>),
}

impl MachineSetup {
    /// So many operations in which node `n` does `programs[n]`, the first one at `first`.
    ///
    /// # Errors
    ///
    /// If there is no such torus, or noise leaves no time.
    ///
    /// # Panics
    ///
    /// If there isn't a program for each node.
    pub fn begin(
        &self,
        programs: Vec<Program>,
        first: SimTime,
        detail: Detail,
        operations: u32,
    ) -> Result<Series, ConfigError> {
        let torus = self.torus()?;
        let noises = self.noises(programs.len())?;
        let stage = match detail {
            Detail::Coarse => {
                let coarse = CoarseMachine::new(self.timing, torus, programs, noises);
                Stage::Coarse(Box::new(Simulation::new(coarse)))
            }
            Detail::Packets => {
                let fabric =
                    PacketFabric::new(torus, &self.timing.network()).map_err(config_error)?;
                let machine = Machine::new(self.timing, fabric, programs, noises);
                Stage::Packets(Box::new(Simulation::new(machine)))
            }
        };
        Ok(Series {
            stage,
            starts: Starts {
                next: first,
                noise: self.noise,
                stream: Streams::new(self.seed).stream("starts"),
            },
            entry: self.entry,
            operations,
            took: Samples::new(),
        })
    }

    /// The network.
    ///
    /// # Errors
    ///
    /// If there is no such torus.
    pub(crate) fn torus(&self) -> Result<Torus, ConfigError> {
        Torus::new(self.sides.map(Dimension::ring)).map_err(config_error)
    }

    fn noises(&self, nodes: usize) -> Result<Vec<Noise>, ConfigError> {
        let streams = Streams::new(self.seed);
        let of_node = |node| match self.noise {
            None => Ok(Noise::NONE),
            Some(noise) => {
                let stream = streams.stream(&format!("node/{node}/noise"));
                Noise::new(noise, stream).map_err(config_error)
            }
        };
        (0..nodes).map(of_node).collect()
    }
}

impl Series {
    /// Reports each span from now on.
    pub fn observe(&mut self, observer: Observer) {
        match &mut self.stage {
            Stage::Packets(simulation) => simulation.world.observe(observer),
            Stage::Coarse(simulation) => simulation.world.observe(observer),
        }
    }

    /// Carries out the next operation; whether there was one.
    ///
    /// # Panics
    ///
    /// As [`operate`].
    pub fn advance(&mut self) -> bool {
        if self.took.len() >= self.operations as usize {
            return false;
        }
        let start = self.starts.next;
        let took = match &mut self.stage {
            Stage::Packets(simulation) => operate(simulation, start, self.entry),
            Stage::Coarse(simulation) => CoarseMachine::operate(simulation, start, self.entry),
        };
        self.took.add(took);
        self.starts.move_on(self.now().max(start + took));
        true
    }

    /// All operations, and how long each took until the last host had ended it.
    ///
    /// # Panics
    ///
    /// As [`operate`].
    pub fn run(mut self) -> Samples {
        while self.advance() {}
        self.took
    }

    /// How long each took so far.
    pub fn took(&self) -> &Samples {
        &self.took
    }

    /// How many operations there are in all.
    pub fn operations(&self) -> u32 {
        self.operations
    }

    /// The simulated time so far.
    pub fn now(&self) -> SimTime {
        match &self.stage {
            Stage::Packets(simulation) => simulation.events.now(),
            Stage::Coarse(simulation) => simulation.events.now(),
        }
    }

    /// How many events have happened.
    pub fn executed(&self) -> u64 {
        match &self.stage {
            Stage::Packets(simulation) => simulation.events.executed(),
            Stage::Coarse(simulation) => simulation.events.executed(),
        }
    }

    /// The hash of all that happened.
    pub fn trace_hash(&self) -> u64 {
        match &self.stage {
            Stage::Packets(simulation) => simulation.events.trace_hash(),
            Stage::Coarse(simulation) => simulation.events.trace_hash(),
        }
    }
}

/// The times at which operations begin.
struct Starts {
    next: SimTime,
    noise: Option<NoiseParameters>,
    stream: Stream,
}

impl Starts {
    /// All was quiet again at `quiet`. With noise, the next operation begins in the
    /// interval after the next one: how long exactly the last operation took hardly
    /// ever matters.
    fn move_on(&mut self, quiet: SimTime) {
        self.next = match self.noise {
            None => quiet + Duration::from_us(1),
            Some(NoiseParameters { interval, .. }) => {
                let intervals = quiet.as_ps().div_ceil(interval.as_ps()) + 1;
                SimTime::START + interval * intervals + self.stream.below_duration(interval)
            }
        };
    }
}
