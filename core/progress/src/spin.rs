//! How long a caller polls before it yields its processor.

use core::time::Duration;

/// A yield that takes this long has let another thread run.
const OTHERS_RAN: Duration = Duration::from_micros(1);

/// Polls in vain until the caller yields. A peer that runs on another processor answers sooner
/// than any yield pays; one that waits for this processor can't answer before. Which of the two
/// holds shows in the yields themselves: one that returns at once was for nothing, and the next
/// comes twice as late; one after which others have run makes the next come soon.
#[derive(Debug)]
pub struct SpinLimit {
    polls: u32,
    limit: u32,
}

impl SpinLimit {
    /// The least and the most polls between yields: about half a microsecond, and 0.1 ms.
    const LEAST: u32 = 32;
    const MOST: u32 = 8192;

    /// A poll has found something.
    #[inline(always)]
    pub fn found(&mut self) {
        self.polls = 0;
    }

    /// So many polls have found nothing; whether the caller yields now.
    #[inline(always)]
    pub fn in_vain(&mut self, polls: u32) -> bool {
        self.polls += polls;
        self.polls >= self.limit
    }

    /// The caller has yielded for so long.
    pub fn yielded(&mut self, took: Duration) {
        self.polls = 0;
        self.limit = match took >= OTHERS_RAN {
            true => (self.limit / 4).max(Self::LEAST),
            false => (self.limit * 2).min(Self::MOST),
        };
    }
}

impl Default for SpinLimit {
    fn default() -> SpinLimit {
        SpinLimit {
            polls: 0,
            limit: 2048,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    const NOBODY: Duration = Duration::from_nanos(200);
    const ANOTHER: Duration = Duration::from_micros(5);

    /// Polls in vain until the next yield.
    fn polls(spin: &mut SpinLimit) -> u32 {
        (1..).find(|_| spin.in_vain(1)).expect("limits are finite")
    }

    #[test]
    fn a_caller_whose_yields_let_others_run_yields_after_few_polls() {
        let mut spin = SpinLimit::default();
        for _ in 0..8 {
            spin.yielded(ANOTHER);
        }
        assert_eq!(polls(&mut spin), SpinLimit::LEAST);
    }

    #[test]
    fn a_caller_that_has_the_processor_for_itself_yields_ever_less() {
        let mut spin = SpinLimit::default();
        (0..4).for_each(|_| spin.yielded(ANOTHER));
        let counts: Vec<u32> = (0..12)
            .map(|_| {
                let count = polls(&mut spin);
                spin.yielded(NOBODY);
                count
            })
            .collect();
        assert!(counts.is_sorted(), "{counts:?}");
        assert_eq!(counts.last(), Some(&SpinLimit::MOST));
    }

    #[test]
    fn what_a_poll_finds_starts_the_count_anew() {
        let mut spin = SpinLimit::default();
        let whole = polls(&mut spin);
        (1..whole - 1).for_each(|_| spin.found());
        spin.found();
        assert_eq!(polls(&mut spin), whole);
    }
}
