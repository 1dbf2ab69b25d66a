//! Whether a failure is a killed process's.

use std::time::{Duration, Instant};

/// What the driver did to each rank.
pub struct Verdict {
    histories: Vec<History>,
    /// How long after its return a rank's absence may still be told.
    grace: Duration,
}

#[derive(Clone, Copy, Default)]
struct History {
    /// The last life that was ended; lives are numbered from 1.
    ended: u32,
    /// Since when it is there, unless it isn't.
    there: Option<Instant>,
}

impl Verdict {
    pub fn new(ranks: u32, grace: Duration) -> Verdict {
        Verdict {
            histories: vec![History::default(); ranks as usize],
            grace,
        }
    }

    /// A rank is about to be killed.
    pub fn on_kill(&mut self, rank: u32, life: u32) {
        self.histories[rank as usize] = History {
            ended: life,
            there: None,
        };
    }

    /// A rank has begun.
    pub fn on_ready(&mut self, rank: u32) {
        self.histories[rank as usize].there = Some(Instant::now());
    }

    /// Whether an operation for a life of a rank, or for any where that is 0, may
    /// have failed.
    pub fn may_fail(&self, rank: u32, life: u32) -> bool {
        let history = &self.histories[rank as usize];
        match life {
            0 => history
                .there
                .is_none_or(|since| since.elapsed() < self.grace),
            life => life <= history.ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_meant_for_a_killed_life_may_fail() {
        let mut verdict = Verdict::new(2, Duration::ZERO);
        assert!(verdict.may_fail(1, 0), "it isn't there yet");
        verdict.on_ready(1);
        assert!(!verdict.may_fail(1, 0));
        assert!(!verdict.may_fail(1, 1));
        verdict.on_kill(1, 1);
        verdict.on_ready(1);
        assert!(verdict.may_fail(1, 1));
        assert!(!verdict.may_fail(1, 2));
    }
}
