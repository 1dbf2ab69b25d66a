//! Cases, and how long their operations take.

use std::fmt;

use lintel_collectives::{Family, Tree};
use lintel_sim_kernel::{Duration, Samples, SimTime};
use lintel_sim_node::{NoiseParameters, Placement};

use crate::program::{self, Program};
use crate::series::{Detail, MachineSetup, Series};
use crate::timing::{self, Timing};

/// An all-reduce of 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Algorithm {
    /// Who carries it out.
    pub by: By,
    /// Along which tree; none: by recursive doubling.
    pub tree: Option<Tree>,
    /// In which order a node of the tree sends to its children.
    pub order: Order,
}

/// The order in which something goes out to several nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// To those with most behind them first, which are also the farthest ones: the model's.
    FarFirst,
    /// To the nearest first.
    NearFirst,
}

/// Who carries an operation out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Hosts send and receive.
    Hosts,
    /// Hosts post triggered operations and wait for the end.
    Interfaces,
}

/// How operations begin if there is noise: at a random time, everywhere at
/// once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// No host is disturbed at that moment: in the model, noise stands still between
    /// operations.
    Undisturbed,
    /// Some may be: those enter late.
    Anyhow,
}

/// A machine, its noise, and the operation that is measured on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// The machine's constants, such as [`Timing::SET_1`].
    pub timing: Timing,
    /// Nodes along each dimension of the torus.
    pub sides: [u16; 3],
    /// The operation's tree, and what executes it.
    pub algorithm: Algorithm,
    /// What disturbs the hosts.
    pub noise: Option<NoiseParameters>,
    /// When hosts enter an operation.
    pub entry: Entry,
    /// From which noise is drawn.
    pub seed: u64,
}

/// What is wrong with a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError(String);

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
        let order = Order::FarFirst;
        Algorithm { by, tree, order }
    }

    /// The same in another order.
    #[must_use]
    pub const fn in_order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// What a host does.
    pub fn program(&self, rank: u32, ranks: u32) -> Program {
        match (self.by, self.tree) {
            (By::Hosts, None) => program::doubling_by_host(rank, ranks),
            (By::Hosts, Some(tree)) => program::tree_by_host(&self.family(tree, rank, ranks)),
            (By::Interfaces, None) => program::doubling_by_interface(rank, ranks),
            (By::Interfaces, Some(tree)) => {
                program::tree_by_interface(&self.family(tree, rank, ranks), rank)
            }
        }
    }

    /// A rank's place in a tree, its children in order.
    fn family(&self, tree: Tree, rank: u32, ranks: u32) -> Family {
        let mut family = tree.family(rank, ranks);
        if self.order == Order::FarFirst {
            family.children.reverse();
        }
        family
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
    /// If there is no such torus, recursive doubling isn't for a power of two, or
    /// noise leaves no time.
    pub fn measure(&self, operations: u32) -> Result<Samples, ConfigError> {
        Ok(self.begin(Detail::Packets, operations)?.run())
    }

    /// As [`Case::measure`], by the coarse model: an event or two a message.
    ///
    /// # Errors
    ///
    /// As [`Case::measure`].
    pub fn measure_coarse(&self, operations: u32) -> Result<Samples, ConfigError> {
        Ok(self.begin(Detail::Coarse, operations)?.run())
    }

    /// The same, to be gone through one by one.
    ///
    /// # Errors
    ///
    /// As [`Case::measure`].
    pub fn begin(&self, detail: Detail, operations: u32) -> Result<Series, ConfigError> {
        self.setup().torus()?;
        let ranks = self.nodes();
        if self.algorithm.tree.is_none() && (!ranks.is_power_of_two() || ranks == 1) {
            let text = format!(
                "{ranks} nodes are no power of two above one, which recursive doubling takes here: \
                 choose other sides, or a tree"
            );
            return Err(ConfigError(text));
        }
        let program = |rank| self.algorithm.program(rank, ranks);
        let programs = (0..ranks).map(program).collect();
        let first = self.algorithm.first_start(&self.timing, ranks);
        self.setup().begin(programs, first, detail, operations)
    }

    /// How many nodes it has.
    pub fn nodes(&self) -> u32 {
        self.sides.iter().map(|&side| u32::from(side)).product()
    }

    /// Where its operations are carried out, whichever they are.
    pub fn setup(&self) -> MachineSetup {
        let Case {
            timing,
            sides,
            noise,
            entry,
            seed,
            ..
        } = *self;
        MachineSetup {
            timing,
            sides,
            noise,
            entry,
            seed,
        }
    }
}

pub(crate) fn config_error(mistake: impl fmt::Display) -> ConfigError {
    ConfigError(mistake.to_string())
}

impl ConfigError {
    pub(crate) fn no_set(set: u8) -> Self {
        ConfigError(format!("there is no timing set {set}: choose 1, 2 or 3"))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
