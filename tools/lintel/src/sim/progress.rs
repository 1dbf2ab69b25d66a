//! A progress bar: how far, how fast, how long still.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use lintel_sim_kernel::SimTime;
use lintel_sim_scenario::Run;

/// Shows a person at a terminal how far a row of simulations is.
pub struct SimulationProgress(ProgressBar);

impl SimulationProgress {
    /// A bar of so many simulations. Draws nothing if standard error is no terminal.
    pub fn new(simulations: usize) -> Self {
        let bar = ProgressBar::new(simulations as u64 * SHARES);
        let style = ProgressStyle::with_template("{bar:24} {percent}% {msg}, {eta} left");
        bar.set_style(style.expect("the template is sound"));
        bar.set_message("building");
        SimulationProgress(bar)
    }

    /// Goes through a simulation; how many seconds it took.
    pub fn through(&self, run: &mut dyn Run) -> f64 {
        let begin = Instant::now();
        let before = self.0.position();
        loop {
            let is_through = run.advance(EVENTS);
            let seconds = begin.elapsed().as_secs_f64();
            self.0
                .set_position(before + (run.done() * SHARES as f64) as u64);
            self.0.set_message(format!(
                "{:.3} ms simulated, {:.1} M events/s",
                run.now().since(SimTime::START).as_ps() as f64 / 1e9,
                run.executed() as f64 / seconds.max(1e-9) / 1e6
            ));
            if is_through {
                self.0.set_position(before + SHARES);
                return seconds;
            }
        }
    }

    /// Removes the bar after the last simulation.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// Shows how many of some steps are done.
pub struct StepProgress(ProgressBar);

impl StepProgress {
    /// A bar of as many steps as `steps` says.
    pub fn new(steps: usize) -> Self {
        let bar = ProgressBar::new(steps as u64);
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}, {elapsed}");
        bar.set_style(style.expect("the template is sound"));
        // A step takes up to a minute: the time shows that it goes on.
        bar.enable_steady_tick(Duration::from_secs(1));
        StepProgress(bar)
    }

    /// Does something that writes to the terminal.
    pub fn pause<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.suspend(write)
    }

    /// Names the step that begins.
    pub fn announce(&self, what: &str) {
        self.0.set_message(what.to_string());
        self.0.inc(1);
    }

    /// Removes the bar after the last step.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// Shares of a simulation that the bar distinguishes.
const SHARES: u64 = 1_000;
/// Events between two looks at the clock: some milliseconds.
const EVENTS: u64 = 50_000;
