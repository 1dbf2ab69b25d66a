//! A simulation that is gone through in pieces, so that somebody can watch.

use lintel_sim_goal::{Machine, Network};
use lintel_sim_kernel::{Agenda, Duration, SimTime, Simulation, World};

/// Something that a simulation found.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// What it is, with its unit.
    pub name: String,
    /// So much.
    pub value: f64,
}

/// What a simulation found.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The figures, the most telling first.
    pub figures: Vec<Figure>,
    /// The hash of all that happened, where one machine was simulated from begin to end.
    pub trace_hash: Option<u64>,
    /// How many events there were.
    pub events: u64,
    /// How long it was in simulated time.
    pub simulated: Duration,
}

/// A simulation under way.
pub trait Run {
    /// Lets so many events happen; whether the simulation is through.
    fn advance(&mut self, events: u64) -> bool;

    /// The simulated time.
    fn now(&self) -> SimTime;

    /// How many events have happened.
    fn executed(&self) -> u64;

    /// How much of the workload is done, 0 to 1.
    fn done(&self) -> f64;

    /// What it found.
    ///
    /// # Errors
    ///
    /// What is left undone, in a sentence.
    fn finish(self: Box<Self>) -> Result<Outcome, String>;
}

impl Outcome {
    /// A figure's value.
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

/// What a schedule's time is divided by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    /// What one of them is called; the figure is its time.
    pub(crate) unit: &'static str,
    /// How many the schedule has, one after the other.
    pub(crate) count: u64,
    /// Bytes that one of them moves.
    pub(crate) bytes: u64,
}

/// A schedule on hosts.
pub(crate) struct Scheduled<N: Network> {
    pub(crate) simulation: Simulation<Machine<N>>,
    pub(crate) meaning: Option<Meaning>,
}

impl<N: Network> Run for Scheduled<N> {
    fn advance(&mut self, events: u64) -> bool {
        step(&mut self.simulation, events)
    }

    fn now(&self) -> SimTime {
        self.simulation.agenda.now()
    }

    fn executed(&self) -> u64 {
        self.simulation.agenda.executed()
    }

    fn done(&self) -> f64 {
        let machine = &self.simulation.world;
        let all = machine.operations().max(1);
        1.0 - machine.undone() as f64 / all as f64
    }

    fn finish(self: Box<Self>) -> Result<Outcome, String> {
        let Simulation { world, agenda } = &self.simulation;
        if let Some(unfinished) = world.unfinished() {
            return Err(unfinished.to_string());
        }
        let end = world.end();
        let mut figures = Vec::new();
        if let Some(meaning) = self.meaning {
            let each = micro(end) / meaning.count.max(1) as f64;
            figures.push(Figure::new(&format!("{}, µs", meaning.unit), each));
            if meaning.bytes > 0 && each > 0.0 {
                figures.push(Figure::new("MB/s", meaning.bytes as f64 / each));
            }
        }
        figures.push(Figure::new("all, µs", micro(end)));
        figures.push(Figure::new("messages", world.sent() as f64));
        Ok(Outcome {
            figures,
            trace_hash: Some(agenda.trace_hash()),
            events: agenda.executed(),
            simulated: agenda.now().since(SimTime::START),
        })
    }
}

/// A simulation that gives its figures in one go.
pub(crate) struct AtOnce {
    work: Option<Box<dyn FnOnce() -> Result<Outcome, String>>>,
    found: Option<Result<Outcome, String>>,
}

impl AtOnce {
    pub(crate) fn new(work: impl FnOnce() -> Result<Outcome, String> + 'static) -> Self {
        AtOnce {
            work: Some(Box::new(work)),
            found: None,
        }
    }
}

impl Run for AtOnce {
    fn advance(&mut self, _: u64) -> bool {
        if let Some(work) = self.work.take() {
            self.found = Some(work());
        }
        true
    }

    fn now(&self) -> SimTime {
        let simulated = match &self.found {
            Some(Ok(outcome)) => outcome.simulated,
            _ => Duration::ZERO,
        };
        SimTime::START + simulated
    }

    fn executed(&self) -> u64 {
        match &self.found {
            Some(Ok(outcome)) => outcome.events,
            _ => 0,
        }
    }

    fn done(&self) -> f64 {
        if self.found.is_some() { 1.0 } else { 0.0 }
    }

    fn finish(mut self: Box<Self>) -> Result<Outcome, String> {
        self.advance(0);
        self.found.expect("it has been worked out")
    }
}

/// Microseconds, for people.
pub(crate) fn micro(time: Duration) -> f64 {
    time.as_ps() as f64 / 1e6
}

fn step<W: World>(simulation: &mut Simulation<W>, events: u64) -> bool {
    let Simulation { world, agenda } = simulation;
    for _ in 0..events {
        let next = Agenda::take_due(agenda, SimTime::NEVER, |event| world.foresee(event));
        let Some(event) = next else {
            return true;
        };
        world.on_event(event, agenda);
    }
    agenda.pending() == 0
}
