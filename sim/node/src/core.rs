//! A core: one thing after the other.

use lintel_sim_kernel::{Duration, SimTime};

use crate::noise::Noise;

/// A core of a node.
#[derive(Clone, Debug)]
pub struct Core {
    noise: Noise,
    free_at: SimTime,
    worked: Duration,
}

impl Core {
    /// A core that has nothing to do yet.
    pub const fn new(noise: Noise) -> Self {
        Core {
            noise,
            free_at: SimTime::START,
            worked: Duration::ZERO,
        }
    }

    /// Does so much work as soon as it can, from `now` on; says when it is done.
    /// A trap is work: what it costs to enter and leave, and what it does.
    pub fn run(&mut self, now: SimTime, work: Duration) -> SimTime {
        let start = now.max(self.free_at);
        self.free_at = self.noise.stretch(start, work);
        self.worked += work;
        self.free_at
    }

    /// Until when it has work.
    pub fn free_at(&self) -> SimTime {
        self.free_at
    }

    /// The work that it was given, noise not counted.
    pub fn worked(&self) -> Duration {
        self.worked
    }
}
