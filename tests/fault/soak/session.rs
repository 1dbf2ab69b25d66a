//! A rank's session with another: the state of their connection, and what is in flight.

use std::time::{Duration, Instant};

/// Slots for puts at each target; the last one is on the interface without matching.
pub const SLOTS: usize = 3;
/// The slot of the interface without matching.
pub const PLAIN_SLOT: usize = SLOTS - 1;

/// Pause between a failed hello and the next one.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How long the reply to a hello may take before the hello is repeated.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Another rank, from this one's side.
#[derive(Debug, Default)]
pub struct Session {
    state: State,
    /// Number of the last hello, which its reply repeats.
    attempt: u32,
    /// When the last hello was sent, or the session last ended.
    since: Option<Instant>,
    /// Operations in flight to this rank.
    pub in_flight: u32,
    /// The state of each slot at this rank.
    pub slots: [Slot; SLOTS],
    /// Number of the last put, from 1 on.
    pub sequence: u32,
    /// Values of the words there, as this rank has changed them.
    pub words: Words,
}

/// The state of the connection between two ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// No session, or one that has ended.
    #[default]
    Disconnected,
    /// A hello is in flight, or awaits its reply.
    HelloSent,
    /// The session with this incarnation of the other rank is open.
    Connected(u32),
}

/// A place at the target that holds one put at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Slot {
    /// A put may be sent into the slot.
    #[default]
    Free,
    /// The slot holds the put of this sequence number.
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
    /// The sum of what this rank has added.
    pub sum: u64,
    /// The value that was swapped in last.
    pub swapped: u64,
    /// A lower bound of the sum that all ranks add to.
    pub shared: u64,
}

impl Session {
    /// The incarnation of the other rank, if the session is open.
    pub fn incarnation(&self) -> Option<u32> {
        match self.state {
            State::Connected(incarnation) => Some(incarnation),
            State::Disconnected | State::HelloSent => None,
        }
    }

    /// Whether a hello may be sent: the pause is over, and nothing of an earlier session is in
    /// flight.
    pub fn may_send_hello(&self) -> bool {
        let patience = match self.state {
            State::Disconnected => RETRY_PAUSE,
            State::HelloSent => REPLY_TIMEOUT,
            State::Connected(_) => return false,
        };
        let waited = self.since.is_none_or(|since| since.elapsed() > patience);
        self.in_flight == 0 && waited
    }

    /// Starts a hello; returns its number.
    pub fn send_hello(&mut self) -> u32 {
        self.state = State::HelloSent;
        self.since = Some(Instant::now());
        self.attempt += 1;
        self.attempt
    }

    /// A reply arrives; returns whether it opens the session.
    pub fn on_reply(&mut self, incarnation: u32, attempt: u32) -> bool {
        if self.state != State::HelloSent || attempt != self.attempt {
            return false;
        }
        self.state = State::Connected(incarnation);
        self.slots = [Slot::Free; SLOTS];
        self.words = Words::default();
        true
    }

    /// Ends the session: the other rank is dead, or has a new incarnation.
    pub fn end(&mut self) {
        self.state = State::Disconnected;
        self.since = Some(Instant::now());
    }

    /// Takes a free slot of a range; returns the slot and the number of the put.
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

    /// The number of a put that was acknowledged, and has awaited its credit longer than this.
    pub fn uncredited(&self, limit: Duration) -> Option<u32> {
        self.incarnation()?;
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
        let attempt = session.send_hello();
        assert!(
            !session.on_reply(4, attempt + 1),
            "the reply to another hello"
        );
        assert!(session.on_reply(4, attempt));
        assert_eq!(session.incarnation(), Some(4));
        let (one, first) = session.take_slot(0..2).expect("both are free");
        let (two, second) = session.take_slot(0..2).expect("one is free");
        assert!(session.take_slot(0..2).is_none());
        session.on_acknowledgement(one, first);
        session.on_credit(one, second);
        assert_ne!(session.slots[one], Slot::Free, "the credit of another put");
        session.on_credit(one, first);
        session.on_credit(two, second);
        session.on_acknowledgement(two, second);
        assert_eq!(session.slots[..2], [Slot::Free; 2]);
    }
}
