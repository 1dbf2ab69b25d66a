//! From a device's report to its handler.
//!
//! Reports that come while the handler has not been entered are served by one
//! run of it. With coalescing the line waits for more of them: until the first
//! one has waited long enough, or enough have come.
//!
//! ```text
//!   raise ──▶ first? ── wait, or until enough ──▶ enter ── how many ──▶ handler
//! ```
//!
//! Order of use: [`InterruptLine::raise`] may name a time; put an event there.
//! When it comes, [`InterruptLine::enter`] says how many reports the handler
//! serves; run the cost of an interrupt and the handler's work on a core.

use lintel_sim_kernel::{Duration, SimTime};

/// How a line coalesces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterruptParameters {
    /// What entering and leaving the handler costs a core.
    pub cost: Duration,
    /// How long the first report waits for others; none: not at all.
    pub wait: Duration,
    /// So many reports wait no longer; at least 1.
    pub enough: u32,
}

/// The interrupt line of one device.
#[derive(Clone, Debug)]
pub struct InterruptLine {
    parameters: InterruptParameters,
    reports: u32,
    /// When the handler is to be entered.
    due: SimTime,
    taken: u64,
}

impl InterruptLine {
    /// A line without pending reports.
    pub const fn new(parameters: InterruptParameters) -> Self {
        InterruptLine {
            parameters,
            reports: 0,
            due: SimTime::NEVER,
            taken: 0,
        }
    }

    /// A device has something to report. Gives the time at which `enter` is to be
    /// called, if that is new.
    pub fn raise(&mut self, now: SimTime) -> Option<SimTime> {
        self.reports += 1;
        let InterruptParameters { wait, enough, .. } = self.parameters;
        let due = match self.reports {
            reports if reports >= enough => now,
            1 => now + wait,
            _ => return None,
        };
        if due >= self.due {
            return None;
        }
        self.due = due;
        Some(due)
    }

    /// How many reports the handler serves that is entered now; none if an
    /// earlier call has served them.
    pub fn enter(&mut self, now: SimTime) -> u32 {
        if now != self.due {
            return 0;
        }
        self.due = SimTime::NEVER;
        self.taken += 1;
        std::mem::take(&mut self.reports)
    }

    /// What entering and leaving the handler costs a core.
    pub fn cost(&self) -> Duration {
        self.parameters.cost
    }

    /// How many interrupts were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }
}
