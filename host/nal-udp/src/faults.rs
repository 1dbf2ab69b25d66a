//! Faults injected on purpose: datagrams are lost, duplicated or reordered, so that tests
//! see what a bad network does.

use lintel_claim::{Claim, Region};
use lintel_types::ProcessId;
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

/// Shares of datagrams that are lost, sent twice, or sent later than others.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Faults {
    /// Share that is lost, 0 to 1.
    pub loss: f64,
    /// Share that is sent twice, 0 to 1.
    pub duplicate: f64,
    /// Share that one to four others overtake, 0 to 1.
    pub reorder: f64,
    /// Seed of the random numbers: the same seed gives the same faults.
    pub seed: u64,
}

/// What is wrong with a description of faults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultsError(String);

impl fmt::Display for FaultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no fault: write loss=, duplicate= or reorder= with a share from 0 to 1, \
             seed= with a number, and commas in between",
            self.0
        )
    }
}

impl std::error::Error for FaultsError {}

impl FromStr for Faults {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Faults, FaultsError> {
        let mut faults = Faults {
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            seed: 1,
        };
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let wrong = || FaultsError(part.to_owned());
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            let share = || {
                let share = value
                    .parse()
                    .ok()
                    .filter(|share| (0.0..=1.0).contains(share));
                share.ok_or_else(wrong)
            };
            match name {
                "loss" => faults.loss = share()?,
                "duplicate" => faults.duplicate = share()?,
                "reorder" => faults.reorder = share()?,
                "seed" => faults.seed = value.parse().map_err(|_| wrong())?,
                _ => return Err(wrong()),
            }
        }
        Ok(faults)
    }
}

/// A datagram that is sent when others have overtaken it.
struct Delayed {
    to: ProcessId,
    bytes: Region,
    /// Datagrams, or reads of the clock, until it is sent.
    others: u32,
}

/// Decides at random which datagrams are lost, sent twice or delayed.
pub(crate) struct FaultRng {
    faults: Faults,
    state: u64,
    delayed: VecDeque<Delayed>,
}

impl FaultRng {
    pub(crate) fn new(faults: Faults) -> FaultRng {
        FaultRng {
            faults,
            state: faults.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            delayed: VecDeque::new(),
        }
    }

    /// How often a datagram is to be sent now; one that is delayed is copied and kept.
    pub(crate) fn copies_to_send(&mut self, to: ProcessId, pieces: &[Claim]) -> u32 {
        if self.is_hit(self.faults.loss) {
            return 0;
        }
        if self.is_hit(self.faults.reorder) {
            let bytes = Region::new(lintel_memory::length(pieces));
            lintel_claim::copy_vectored(pieces, &[bytes.claim()]);
            let others = 1 + (self.draw() * 4.0) as u32;
            self.delayed.push_back(Delayed { to, bytes, others });
            return 0;
        }
        1 + u32::from(self.is_hit(self.faults.duplicate))
    }

    /// Another datagram was sent, or time has passed: sends what was delayed long enough.
    pub(crate) fn pass(&mut self, mut send: impl FnMut(ProcessId, &[Claim])) {
        self.delayed.retain_mut(|delayed| {
            delayed.others -= 1;
            if delayed.others == 0 {
                send(delayed.to, &[delayed.bytes.claim()]);
            }
            delayed.others > 0
        });
    }

    pub(crate) fn is_clear(&self) -> bool {
        self.delayed.is_empty()
    }

    fn is_hit(&mut self, share: f64) -> bool {
        share > 0.0 && self.draw() < share
    }

    /// A number from 0 to 1, by xorshift64.
    fn draw(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_they_are_written() {
        let faults: Faults = "loss=0.01, duplicate=0.5,reorder=1,seed=7"
            .parse()
            .expect("sound");
        assert_eq!((faults.loss, faults.duplicate), (0.01, 0.5));
        assert_eq!((faults.reorder, faults.seed), (1.0, 7));
        for wrong in ["loss", "loss=2", "lose=0.1", "seed=x", "loss=0.1;seed=1"] {
            let error = wrong.parse::<Faults>().expect_err(wrong);
            assert!(error.to_string().contains("write loss="), "{error}");
        }
    }
}
