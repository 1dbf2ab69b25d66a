//! A benchmark that is set up: the caller runs it, and may observe it meanwhile.

use std::cell::Cell;
use std::rc::Rc;

use lintel_sim_kernel::Simulation;

use super::rig::TorusMachine;
use crate::node::Refused;
use crate::trace::Observer;

/// A machine with its programs, before the clock starts.
///
/// ```
/// use lintel_sim_kernel::{Duration, SimTime};
/// use lintel_sim_seastar::workload::{Case, Stream};
/// use lintel_sim_seastar::{Mode, profile::RED_STORM_2005};
///
/// let case = Case::new(RED_STORM_2005, Mode::Generic);
/// let mut running = Stream::of(8).prepare(&case)?.begin();
/// let soon = SimTime::START + Duration::from_us(1_000);
/// assert!(running.simulation.run_until(soon) && (running.done)() < 1.0);
/// running.simulation.run();
/// let gap = (running.read)(&running.simulation)?;
/// assert!(gap < Duration::from_us(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Benchmark<T> {
    machine: TorusMachine,
    done: Done,
    read: Read<T>,
}

/// A benchmark whose clock has started.
pub struct Running<T> {
    /// The machine that runs the benchmark.
    pub simulation: Simulation<TorusMachine>,
    /// How much of it is done, 0 to 1.
    pub done: Done,
    /// What it has found, when nothing is to happen any more.
    pub read: Read<T>,
}

/// Returns how much of a benchmark is done, 0 to 1.
pub type Done = Box<dyn Fn() -> f64>;
/// Returns what a benchmark has found, when no event is left: perhaps that a
/// program failed, or waits for what never comes.
pub type Read<T> = Box<dyn FnOnce(&Simulation<TorusMachine>) -> Result<T, Refused>>;

impl<T: 'static> Benchmark<T> {
    pub(super) fn new(
        machine: TorusMachine,
        done: impl Fn() -> f64 + 'static,
        read: impl FnOnce(&Simulation<TorusMachine>) -> Result<T, Refused> + 'static,
    ) -> Self {
        Benchmark {
            machine,
            done: Box::new(done),
            read: Box::new(read),
        }
    }

    /// The same, whose result is read otherwise.
    pub fn map<U: 'static>(self, read: impl FnOnce(T) -> U + 'static) -> Benchmark<U> {
        let first = self.read;
        Benchmark {
            machine: self.machine,
            done: self.done,
            read: Box::new(move |simulation| first(simulation).map(read)),
        }
    }

    /// Reports each span of the run.
    pub fn observe(&mut self, observer: Observer) {
        self.machine.observe(observer);
    }

    /// Lets the clock start.
    pub fn begin(self) -> Running<T> {
        Running {
            simulation: self.machine.into_simulation(),
            done: self.done,
            read: self.read,
        }
    }

    /// Runs it until nothing is to happen any more.
    ///
    /// # Errors
    /// A program failed, or waits for what never comes.
    pub fn run(self) -> Result<T, Refused> {
        let mut running = self.begin();
        running.simulation.run();
        (running.read)(&running.simulation)
    }
}

/// Steps of a benchmark that programs count while it runs.
#[derive(Clone, Default)]
pub(super) struct Steps(Rc<Cell<u64>>);

impl Steps {
    pub(super) fn count(&self, steps: u64) {
        self.0.set(self.0.get() + steps);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.get()
    }

    /// The part of `all` that is counted.
    pub(super) fn of(&self, all: u64) -> impl Fn() -> f64 + use<> {
        let steps = self.clone();
        // Far below 2^53.
        move || steps.0.get() as f64 / all.max(1) as f64
    }
}
