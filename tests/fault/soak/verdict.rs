//! Whether a failed operation is explained by a kill.

use std::time::{Duration, Instant};

/// The history of kills and restarts of each rank.
pub struct Verdict {
    histories: Vec<History>,
    /// How long after its return a rank's absence may still be name.
    grace: Duration,
}

#[derive(Clone, Copy, Default)]
struct History {
    /// The last incarnation that was killed; incarnations are numbered from 1.
    ended: u32,
    /// When the rank became ready, unless it is absent.
    ready: Option<Instant>,
}

impl Verdict {
    /// No rank has started; `grace` is how long a restarted one may be missing.
    pub fn new(ranks: u32, grace: Duration) -> Verdict {
        Verdict {
            histories: vec![History::default(); ranks as usize],
            grace,
        }
    }

    /// A rank is about to be killed, in this incarnation.
    pub fn on_kill(&mut self, rank: u32, incarnation: u32) {
        self.histories[rank as usize] = History {
            ended: incarnation,
            ready: None,
        };
    }

    /// A rank has started and is ready.
    pub fn on_ready(&mut self, rank: u32) {
        self.histories[rank as usize].ready = Some(Instant::now());
    }

    /// Whether an operation with an incarnation of a rank may have failed; 0 is any
    /// incarnation.
    pub fn may_fail(&self, rank: u32, incarnation: u32) -> bool {
        let history = &self.histories[rank as usize];
        match incarnation {
            0 => history
                .ready
                .is_none_or(|since| since.elapsed() < self.grace),
            incarnation => incarnation <= history.ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_meant_for_a_killed_life_may_fail() {
        let mut verdict = Verdict::new(2, Duration::ZERO);
        assert!(verdict.may_fail(1, 0), "the rank has not started yet");
        verdict.on_ready(1);
        assert!(!verdict.may_fail(1, 0));
        assert!(!verdict.may_fail(1, 1));
        verdict.on_kill(1, 1);
        verdict.on_ready(1);
        assert!(verdict.may_fail(1, 1));
        assert!(!verdict.may_fail(1, 2));
    }
}
