//! A simulation that runs in pieces, so that its progress can be shown.

use lintel_sim_kernel::{Duration, SimTime, Simulation, World};

/// Something that a simulation found.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// What it is, with its unit.
    pub name: String,
    /// In the unit that the name ends with.
    pub value: f64,
}

/// What a simulation found.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The figures, the most important first.
    pub figures: Vec<Figure>,
    /// The hash of all that happened.
    pub trace_hash: u64,
    /// How many events there were.
    pub events: u64,
    /// How long it was in simulated time.
    pub simulated: Duration,
}

/// A simulation under way.
pub trait Run {
    /// Lets so many events happen, and those that can't be parted from them; whether the
    /// simulation is through.
    fn advance(&mut self, events: u64) -> bool;

    /// The simulated time so far.
    fn now(&self) -> SimTime;

    /// How many events have happened.
    fn executed(&self) -> u64;

    /// How much of the workload is done, 0 to 1.
    fn done(&self) -> f64;

    /// What it found; the simulation is through.
    ///
    /// # Errors
    ///
    /// What is left undone, in a sentence.
    fn finish(self: Box<Self>) -> Result<Outcome, String>;
}

impl Outcome {
    /// The value of the figure with this name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let found = self.figures.iter().find(|figure| figure.name == name);
        found.map(|figure| figure.value)
    }
}

impl Figure {
    pub(crate) fn new(name: &str, value: f64) -> Self {
        Figure {
            name: name.into(),
            value,
        }
    }
}

/// A world that is gone through event by event.
pub(crate) struct Stepped<W: World> {
    pub(crate) simulation: Simulation<W>,
    /// How much of the workload is done, 0 to 1.
    pub(crate) done: Box<dyn Fn(&W) -> f64>,
    /// What it has found, when nothing is to happen any more.
    pub(crate) read: Read<W>,
}

/// The figures, or what is left undone.
pub(crate) type Read<W> = Box<dyn FnOnce(&Simulation<W>) -> Result<Vec<Figure>, String>>;

impl<W: World> Run for Stepped<W> {
    fn advance(&mut self, events: u64) -> bool {
        self.simulation.advance(events)
    }

    fn now(&self) -> SimTime {
        self.simulation.events.now()
    }

    fn executed(&self) -> u64 {
        self.simulation.events.executed()
    }

    fn done(&self) -> f64 {
        (self.done)(&self.simulation.world)
    }

    fn finish(self: Box<Self>) -> Result<Outcome, String> {
        let figures = (self.read)(&self.simulation)?;
        let events = &self.simulation.events;
        Ok(Outcome {
            figures,
            trace_hash: events.trace_hash(),
            events: events.executed(),
            simulated: events.now().since(SimTime::START),
        })
    }
}

/// In microseconds, rounded as a float is: for output only.
pub(crate) fn micro(time: Duration) -> f64 {
    time.as_ps() as f64 / 1e6
}
