//! What a rank knows of another: whether they talk, and what is on its way.

use std::time::{Duration, Instant};

/// Slots for puts at each target; the last one is that of the interface without
/// matching.
pub const SLOTS: usize = 3;
/// The slot of the interface without matching.
pub const PLAIN_SLOT: usize = SLOTS - 1;

/// How soon after a failed attempt the next one is made.
const AGAIN: Duration = Duration::from_millis(100);
/// How long a welcome may take; it is then asked for again.
const WELCOME: Duration = Duration::from_secs(5);

/// Another rank, from this one's side.
#[derive(Debug, Default)]
pub struct Session {
    state: State,
    /// Counts hellos.
    attempt: u32,
    /// When a hello was last begun.
    since: Option<Instant>,
    /// Operations that haven't ended.
    pub under_way: u32,
    /// By slot, what is there.
    pub slots: [Slot; SLOTS],
    /// Numbers puts.
    pub sequence: u32,
    /// What the words there hold by what this rank did to them.
    pub words: Words,
}

/// How far they have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// Nothing is known, or it was lost.
    #[default]
    Apart,
    /// A hello is under way, or waits for its welcome.
    Hailed,
    /// They talk; the other is in this life.
    Together(u32),
}

/// A place at the target that holds one put at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Slot {
    /// Nothing.
    #[default]
    Free,
    /// A put of this number.
    Busy {
        sequence: u32,
        since: Instant,
        acknowledged: bool,
        credited: bool,
    },
}

/// Words for atomics that no other rank changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Words {
    /// The sum.
    pub sum: u64,
    /// What was swapped in last.
    pub swapped: u64,
    /// At least so much was there of the sum that all ranks share.
    pub shared: u64,
}

impl Session {
    /// Which life the other is in, where they talk.
    pub fn life(&self) -> Option<u32> {
        match self.state {
            State::Together(life) => Some(life),
            State::Apart | State::Hailed => None,
        }
    }

    /// Whether it is time for a hello: nothing of the past is on its way any more.
    pub fn may_hail(&self) -> bool {
        let patience = match self.state {
            State::Apart => AGAIN,
            State::Hailed => WELCOME,
            State::Together(_) => return false,
        };
        let waited = self.since.is_none_or(|since| since.elapsed() > patience);
        self.under_way == 0 && waited
    }

    /// A hello begins; its number.
    pub fn hail(&mut self) -> u32 {
        self.state = State::Hailed;
        self.since = Some(Instant::now());
        self.attempt += 1;
        self.attempt
    }

    /// A welcome has come; whether it begins something.
    pub fn on_welcome(&mut self, life: u32, attempt: u32) -> bool {
        if self.state != State::Hailed || attempt != self.attempt {
            return false;
        }
        self.state = State::Together(life);
        self.slots = [Slot::Free; SLOTS];
        self.words = Words::default();
        true
    }

    /// The other has gone, or isn't the one that it was.
    pub fn end(&mut self) {
        self.state = State::Apart;
        self.since = Some(Instant::now());
    }

    /// Takes a free slot of some; the put's number.
    pub fn take_slot(&mut self, of: std::ops::Range<usize>) -> Option<(usize, u32)> {
        let slot = of
            .into_iter()
            .find(|slot| self.slots[*slot] == Slot::Free)?;
        self.sequence += 1;
        self.slots[slot] = Slot::Busy {
            sequence: self.sequence,
            since: Instant::now(),
            acknowledged: false,
            credited: false,
        };
        Some((slot, self.sequence))
    }

    /// The put in a slot was acknowledged.
    pub fn on_acknowledgement(&mut self, slot: usize, number: u32) {
        if let Slot::Busy {
            sequence,
            acknowledged,
            credited,
            ..
        } = &mut self.slots[slot]
        {
            if *sequence == number {
                *acknowledged = true;
                if *credited {
                    self.slots[slot] = Slot::Free;
                }
            }
        }
    }

    /// The target has checked the put in a slot.
    pub fn on_credit(&mut self, slot: usize, number: u32) {
        if let Slot::Busy {
            sequence,
            acknowledged,
            credited,
            ..
        } = &mut self.slots[slot]
        {
            if *sequence == number {
                *credited = true;
                if *acknowledged {
                    self.slots[slot] = Slot::Free;
                }
            }
        }
    }

    /// A put that was acknowledged, and has waited for its credit longer than this.
    pub fn forgotten(&self, limit: Duration) -> Option<u32> {
        self.life()?;
        self.slots.iter().find_map(|slot| match slot {
            Slot::Busy {
                sequence,
                since,
                acknowledged: true,
                credited: false,
            } if since.elapsed() > limit => Some(*sequence),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_once_acknowledged_and_credited_in_either_order() {
        let mut session = Session::default();
        let attempt = session.hail();
        assert!(!session.on_welcome(4, attempt + 1), "of another hello");
        assert!(session.on_welcome(4, attempt));
        assert_eq!(session.life(), Some(4));
        let (one, first) = session.take_slot(0..2).expect("both are free");
        let (two, second) = session.take_slot(0..2).expect("one is free");
        assert!(session.take_slot(0..2).is_none());
        session.on_acknowledgement(one, first);
        session.on_credit(one, second);
        assert_ne!(session.slots[one], Slot::Free, "that was another's credit");
        session.on_credit(one, first);
        session.on_credit(two, second);
        session.on_acknowledgement(two, second);
        assert_eq!(session.slots[..2], [Slot::Free; 2]);
    }
}
