//! Cases, and how long their operations take.

use std::fmt;

use lintel_collectives::Tree;
use lintel_sim_fabric::{Dimension, PacketFabric, Torus};
use lintel_sim_kernel::{Duration, Samples, SimTime, Simulation, Stream, Streams};
use lintel_sim_node::{Noise, NoiseParameters, Placement};

use crate::machine::{Machine, operate};
use crate::outline::Outline;
use crate::program::{self, Program};
use crate::timing::{self, Timing};

/// An all-reduce of 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Algorithm {
    /// Who carries it out.
    pub by: By,
    /// Along which tree; none: by recursive doubling.
    pub tree: Option<Tree>,
}

/// Who carries an operation out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Hosts send and receive.
    Hosts,
    /// Hosts post triggered operations and wait for the end.
    Interfaces,
}

/// How operations begin where there is noise: at a time drawn by lot, everywhere at
/// once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// No host is disturbed at that moment: in the model, noise stands still between
    /// operations.
    Undisturbed,
    /// Some may be: those enter late.
    Anyhow,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// The machine's constants.
    pub timing: Timing,
    /// Nodes along each dimension of the torus.
    pub sides: [u16; 3],
    /// What they do.
    pub algorithm: Algorithm,
    /// What disturbs the hosts.
    pub noise: Option<NoiseParameters>,
    /// How operations begin.
    pub entry: Entry,
    /// From which noise is drawn.
    pub seed: u64,
}

/// What is wrong with a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake(String);

/// Noise that takes 2.5 % of a host, the same length at the same interval: the
/// seed's three profiles.
pub const NOISES: [NoiseParameters; 3] = [
    noise(Duration::from_ns(250), Duration::from_us(10)),
    noise(Duration::from_us(25), Duration::from_us(1_000)),
    noise(Duration::from_us(2_500), Duration::from_us(100_000)),
];

const fn noise(length: Duration, interval: Duration) -> NoiseParameters {
    NoiseParameters {
        length,
        interval,
        placement: Placement::Periodic,
    }
}

/// The sides of a torus of a power of two, as nearly a cube as can be; the last
/// ones are the longer ones.
pub const fn cube(nodes_log2: u32) -> [u16; 3] {
    [
        1 << (nodes_log2 / 3),
        1 << ((nodes_log2 + 1) / 3),
        1 << nodes_log2.div_ceil(3),
    ]
}

impl Algorithm {
    /// This way, by these.
    pub const fn new(by: By, tree: Option<Tree>) -> Self {
        Algorithm { by, tree }
    }

    /// What a host does.
    pub fn program(&self, rank: u32, ranks: u32) -> Program {
        match (self.by, self.tree) {
            (By::Hosts, None) => program::doubling_by_host(rank, ranks),
            (By::Hosts, Some(tree)) => program::tree_by_host(tree, rank, ranks),
            (By::Interfaces, None) => program::doubling_by_interface(rank, ranks),
            (By::Interfaces, Some(tree)) => program::tree_by_interface(tree, rank, ranks),
        }
    }

    /// When the model's first operation begins, after hosts have set up what all
    /// operations need. An interface's clock has edges at even nanoseconds only, so
    /// that it shows in the first operation whether this is even.
    fn first_start(&self, constants: &Timing, ranks: u32) -> SimTime {
        let ns = Duration::from_ns;
        let begin = SimTime::START + ns(1);
        let (command, bind) = (constants.command(), timing::BIND);
        match (self.by, self.tree) {
            (By::Hosts, _) => begin,
            (By::Interfaces, None) => {
                let rounds = u64::from(ranks.ilog2());
                begin + (command * 2 + bind) * rounds + bind + ns(1)
            }
            (By::Interfaces, Some(_)) => begin + command * 2 + bind * 2,
        }
    }
}

impl Case {
    /// How long one operation after the other takes, every packet over every link.
    /// Each begins everywhere at once: see [`Entry`].
    ///
    /// # Errors
    ///
    /// Where there is no such torus, recursive doubling isn't for a power of two, or
    /// noise leaves no time.
    pub fn measure(&self, operations: u32) -> Result<Samples, Mistake> {
        let torus = self.torus()?;
        let fabric = PacketFabric::new(torus, &self.timing.network()).map_err(mistaken)?;
        let machine = Machine::new(self.timing, fabric, self.programs(), self.noises()?);
        let mut simulation = Simulation::new(machine);
        let starts = Starts::new(self);
        Ok(starts.measure(operations, |start| {
            let took = operate(&mut simulation, start, self.entry);
            (took, simulation.agenda.now())
        }))
    }

    /// As [`Case::measure`], in outline: an event or two a message.
    ///
    /// # Errors
    ///
    /// As [`Case::measure`].
    pub fn measure_in_outline(&self, operations: u32) -> Result<Samples, Mistake> {
        let torus = self.torus()?;
        let outline = Outline::new(self.timing, torus, self.programs(), self.noises()?);
        let mut simulation = Simulation::new(outline);
        let starts = Starts::new(self);
        Ok(starts.measure(operations, |start| {
            let took = Outline::operate(&mut simulation, start, self.entry);
            (took, simulation.agenda.now())
        }))
    }

    /// How many nodes it has.
    pub fn nodes(&self) -> u32 {
        self.sides.iter().map(|&side| u32::from(side)).product()
    }

    fn torus(&self) -> Result<Torus, Mistake> {
        let torus = Torus::new(self.sides.map(Dimension::ring)).map_err(mistaken)?;
        let ranks = self.nodes();
        if self.algorithm.tree.is_none() && (!ranks.is_power_of_two() || ranks == 1) {
            let text = format!(
                "{ranks} nodes are no power of two above one, which recursive doubling takes here: \
                 choose other sides, or a tree"
            );
            return Err(Mistake(text));
        }
        Ok(torus)
    }

    fn programs(&self) -> Vec<Program> {
        let ranks = self.nodes();
        (0..ranks)
            .map(|rank| self.algorithm.program(rank, ranks))
            .collect()
    }

    fn noises(&self) -> Result<Vec<Noise>, Mistake> {
        let streams = Streams::new(self.seed);
        let of_node = |node| match self.noise {
            None => Ok(Noise::NONE),
            Some(noise) => {
                let stream = streams.stream(&format!("node/{node}/noise"));
                Noise::new(noise, stream).map_err(mistaken)
            }
        };
        (0..self.nodes()).map(of_node).collect()
    }
}

/// When operations begin.
struct Starts {
    next: SimTime,
    noise: Option<NoiseParameters>,
    stream: Stream,
}

impl Starts {
    fn new(case: &Case) -> Self {
        Starts {
            next: case.algorithm.first_start(&case.timing, case.nodes()),
            noise: case.noise,
            stream: Streams::new(case.seed).stream("starts"),
        }
    }

    /// `operate` says how long an operation took that began then, and when all was
    /// quiet again.
    fn measure(
        mut self,
        operations: u32,
        mut operate: impl FnMut(SimTime) -> (Duration, SimTime),
    ) -> Samples {
        let mut samples = Samples::new();
        for _ in 0..operations {
            let (took, quiet) = operate(self.next);
            samples.add(took);
            self.next = self.after(quiet.max(self.next + took));
        }
        samples
    }

    /// In the interval of noise after the next one: how long exactly the last
    /// operation took hardly ever matters.
    fn after(&mut self, quiet: SimTime) -> SimTime {
        let Some(NoiseParameters { interval, .. }) = self.noise else {
            return quiet + Duration::from_us(1);
        };
        let intervals = quiet.as_ps().div_ceil(interval.as_ps()) + 1;
        SimTime::START + interval * intervals + self.stream.below_duration(interval)
    }
}

fn mistaken(mistake: impl fmt::Display) -> Mistake {
    Mistake(mistake.to_string())
}

impl Mistake {
    pub(crate) fn no_set(set: u8) -> Self {
        Mistake(format!("there is no timing set {set}: choose 1, 2 or 3"))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mistake {}
