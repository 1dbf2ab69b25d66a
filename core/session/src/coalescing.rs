//! [`Coalescing`]: when a short message waits for more, to share a packet or a system call.

/// Limits within which messages to a peer wait for more, as in Nagle's algorithm (RFC 896): a message
/// is sent at once while little is in flight, and waits behind what is, if it is short. The
/// acknowledgement of what is in flight has it sent in any case, so it must be requested: by the packet
/// with which waiting [begins](Coalescing::begins).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coalescing {
    /// Packets or messages in flight behind which others may wait.
    pub in_flight: u32,
    /// Bytes of a message that may wait, at most.
    pub message_bytes: u64,
    /// Messages that are sent together, at most.
    pub messages: u32,
    /// Their bytes, at most.
    pub bytes: u64,
}

/// Messages that wait, with the newest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// How many.
    pub messages: u32,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the newest.
    pub newest: u64,
}

impl Coalescing {
    /// Whether the newest message may wait for another like it. With one that may not, all are sent.
    #[inline]
    pub const fn may_wait(&self, in_flight: u32, waiting: Waiting) -> bool {
        in_flight >= self.in_flight
            && waiting.newest <= self.message_bytes
            && waiting.messages < self.messages
            && waiting.bytes + waiting.newest <= self.bytes
    }

    /// Whether messages may wait from now on, and couldn't before: so much was and is in flight.
    #[inline]
    pub const fn begins(&self, before: u32, now: u32) -> bool {
        before < self.in_flight && now >= self.in_flight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Coalescing = Coalescing {
        in_flight: 4,
        message_bytes: 100,
        messages: 8,
        bytes: 300,
    };

    fn waiting(messages: u32, newest: u64) -> Waiting {
        Waiting {
            messages,
            bytes: newest * u64::from(messages),
            newest,
        }
    }

    #[test]
    fn a_message_waits_behind_enough_in_flight_until_as_many_wait_as_go_together() {
        for in_flight in 0..10 {
            let waits = LIMITS.may_wait(in_flight, waiting(1, 8));
            assert_eq!(waits, in_flight >= 4, "{in_flight} in flight");
        }
        for messages in 1..10 {
            let waits = LIMITS.may_wait(4, waiting(messages, 8));
            assert_eq!(waits, messages < 8, "{messages} wait");
        }
    }

    #[test]
    fn a_long_message_or_many_bytes_wait_for_nothing() {
        assert!(LIMITS.may_wait(4, waiting(1, 100)));
        assert!(!LIMITS.may_wait(4, waiting(1, 101)));
        assert!(LIMITS.may_wait(4, waiting(2, 100)));
        assert!(!LIMITS.may_wait(4, waiting(3, 100)), "no fourth would fit");
    }

    #[test]
    fn waiting_begins_once() {
        let begins = |before, now| LIMITS.begins(before, now);
        assert!(!begins(2, 3) && begins(3, 4) && !begins(4, 5));
        assert!(begins(0, 16), "with many at once, too");
    }
}
