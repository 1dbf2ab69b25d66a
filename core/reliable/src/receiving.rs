//! [`Receiving`]: what arrives from the peer, until it is in order and acknowledged.

use crate::packet::{Class, Fragment};
use crate::time::Time;

/// Packets this far ahead of the expected one are kept: as many as a selective
/// acknowledgement can name.
pub(crate) const REORDER_WINDOW: u32 = u64::BITS;
/// Packets after which an acknowledgement is delayed no longer.
const MAX_ACK_PENDING: u32 = 32;

/// What a pair keeps while packets from its peer are missing or unacknowledged.
pub(crate) struct Receiving {
    /// Bit i: packet `expected + 1 + i` has arrived already.
    early: u64,
    /// Those among them that have been delivered.
    delivered: u64,
    /// Packets since the last acknowledgement.
    ack_pending: u32,
    /// When a delayed acknowledgement is sent at the latest.
    ack_at: Time,
    /// The pair is queued to acknowledge now.
    is_ack_queued: bool,
    /// The message that is arriving in parts.
    assembly: Option<Assembly>,
}

/// A message of which the first parts have arrived.
struct Assembly {
    /// Bytes of the whole message.
    total: u64,
    /// Bytes that have arrived; `None` once a part is void: it never gets whole.
    arrived: Option<u64>,
}

impl Receiving {
    pub(crate) fn new() -> Self {
        Receiving {
            early: 0,
            delivered: 0,
            ack_pending: 0,
            ack_at: Time::NEVER,
            is_ack_queued: false,
            assembly: None,
        }
    }

    /// Whether a message has arrived in part.
    #[inline]
    pub(crate) fn is_incomplete(&self) -> bool {
        self.assembly.is_some()
    }

    /// Whether it holds nothing that the pair would miss.
    pub(crate) fn is_idle(&self) -> bool {
        self.early == 0 && self.ack_pending == 0 && self.assembly.is_none() && !self.is_ack_queued
    }

    /// The selective acknowledgement: what has arrived behind the expected packet.
    #[inline]
    pub(crate) fn early(&self) -> u64 {
        self.early
    }

    /// When a delayed acknowledgement is due.
    #[inline]
    pub(crate) fn ack_at(&self) -> Time {
        self.ack_at
    }

    /// An acknowledgement goes with a packet that is being sent.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self) {
        self.ack_pending = 0;
        self.ack_at = Time::NEVER;
    }

    /// Asks for an acknowledgement now; true if the pair is to be queued for it.
    #[inline]
    pub(crate) fn queue_ack(&mut self) -> bool {
        self.ack_pending = self.ack_pending.max(1);
        self.ack_at = Time::NEVER;
        !core::mem::replace(&mut self.is_ack_queued, true)
    }

    /// The pair has left the queue; true if an acknowledgement is still to be sent.
    pub(crate) fn on_unqueued(&mut self) -> bool {
        self.is_ack_queued = false;
        self.ack_pending > 0
    }

    /// The expected packet has arrived; true if it is to be acknowledged at once, because
    /// enough have arrived or something is missing.
    #[inline]
    pub(crate) fn on_expected(&mut self) -> bool {
        self.ack_pending += 1;
        self.ack_pending >= MAX_ACK_PENDING || self.early != 0
    }

    /// Delays the acknowledgement until then; false if one is due before or queued.
    #[inline]
    pub(crate) fn delay_ack(&mut self, at: Time) -> bool {
        let is_first = self.ack_at == Time::NEVER && !self.is_ack_queued;
        if is_first {
            self.ack_at = at;
        }
        is_first
    }

    /// Takes note of a part in its turn; false if it contradicts the parts before it.
    pub(crate) fn assemble(&mut self, fragment: &Fragment) -> bool {
        if fragment.class != Class::Ordered {
            return true;
        }
        let (arrived, is_sound) = match &self.assembly {
            None => (Some(fragment.offset), fragment.words.is_some()),
            Some(Assembly { total, arrived }) => {
                let is_next = arrived.is_none_or(|arrived| fragment.offset == arrived);
                let is_further = fragment.words.is_none() && fragment.total == *total;
                (*arrived, is_further && is_next)
            }
        };
        let arrived = arrived.filter(|_| !fragment.is_void);
        self.assembly = (!fragment.last).then(|| Assembly {
            total: fragment.total,
            arrived: arrived.map(|arrived| arrived + u64::from(fragment.length)),
        });
        is_sound
    }

    /// The expected packet was delivered; returns the number that is expected next.
    #[inline]
    pub(crate) fn advance(&mut self, mut expected: u32) -> u32 {
        loop {
            expected = expected.wrapping_add(1);
            let was_delivered = self.delivered & 1 != 0;
            self.early >>= 1;
            self.delivered >>= 1;
            if !was_delivered {
                return expected;
            }
        }
    }

    /// Whether the packet `ahead` of the expected one has arrived already.
    pub(crate) fn has(&self, ahead: u32) -> bool {
        self.early & bit(ahead) != 0
    }

    /// The packet `ahead` of the expected one has arrived.
    pub(crate) fn mark(&mut self, ahead: u32, is_delivered: bool) {
        self.early |= bit(ahead);
        self.delivered |= if is_delivered { bit(ahead) } else { 0 };
    }
}

fn bit(ahead: u32) -> u64 {
    1 << (ahead - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Fragment = Fragment {
        class: Class::Ordered,
        words: Some([0; 6]),
        last: true,
        total: 10,
        offset: 0,
        length: 10,
        checksum: None,
        is_void: false,
    };

    /// The part of a message of 10 bytes from `offset` on.
    fn part(offset: u64, length: u32) -> Fragment {
        Fragment {
            words: (offset == 0).then_some([0; 6]),
            last: offset + u64::from(length) == 10,
            offset,
            length,
            ..WHOLE
        }
    }

    #[test]
    fn an_acknowledgement_is_delayed_for_31_packets_unless_one_is_missing() {
        let mut receiving = Receiving::new();
        let due = [(); 33].map(|()| receiving.on_expected());
        assert_eq!(due.iter().position(|&is_due| is_due), Some(31));
        receiving.on_acknowledged();
        assert!(!receiving.on_expected());
        receiving.mark(2, false);
        assert!(receiving.on_expected(), "something is missing");
    }

    #[test]
    fn a_delayed_acknowledgement_is_due_at_the_first_time_that_was_set() {
        let mut receiving = Receiving::new();
        assert!(receiving.delay_ack(Time(5)));
        assert!(!receiving.delay_ack(Time(7)));
        assert_eq!(receiving.ack_at(), Time(5));
        receiving.on_acknowledged();
        assert_eq!(receiving.ack_at(), Time::NEVER);
        assert!(receiving.queue_ack());
        assert!(!receiving.delay_ack(Time(9)), "it is queued");
        assert_eq!(receiving.ack_at(), Time::NEVER);
    }

    #[test]
    fn a_pair_is_queued_to_acknowledge_once_and_not_at_all_if_another_packet_did() {
        let mut receiving = Receiving::new();
        assert!(receiving.queue_ack());
        assert!(!receiving.queue_ack());
        assert!(receiving.on_unqueued());
        assert!(receiving.queue_ack());
        receiving.on_acknowledged();
        assert!(!receiving.on_unqueued());
    }

    #[test]
    fn it_is_idle_unless_it_holds_something() {
        let uses: [fn(&mut Receiving); 4] = [
            |receiving| receiving.mark(1, false),
            |receiving| _ = receiving.on_expected(),
            |receiving| _ = receiving.assemble(&part(0, 4)),
            |receiving| {
                receiving.queue_ack();
                receiving.on_acknowledged();
            },
        ];
        for used in uses {
            let mut receiving = Receiving::new();
            assert!(receiving.is_idle());
            used(&mut receiving);
            assert!(!receiving.is_idle());
        }
    }

    #[test]
    fn the_next_expected_packet_is_the_first_that_was_not_delivered() {
        let mut receiving = Receiving::new();
        for (ahead, is_delivered) in [(1, true), (2, true), (4, false), (5, true), (64, true)] {
            assert!(!receiving.has(ahead));
            receiving.mark(ahead, is_delivered);
            assert!(receiving.has(ahead));
        }
        assert_eq!(receiving.advance(10), 13);
        assert_eq!(receiving.early(), 0b11 | 1 << 60);
        assert_eq!(receiving.advance(13), 14, "it is kept, and its turn");
        assert_eq!(receiving.advance(14), 16, "the one behind it was delivered");
        assert_eq!(receiving.advance(u32::MAX), 0);
    }

    #[test]
    fn parts_follow_each_other_until_the_last() {
        let mut receiving = Receiving::new();
        assert!(receiving.assemble(&part(0, 4)) && receiving.is_incomplete());
        assert!(receiving.assemble(&part(4, 3)) && receiving.is_incomplete());
        assert!(receiving.assemble(&part(7, 3)) && !receiving.is_incomplete());
        assert!(receiving.assemble(&WHOLE) && !receiving.is_incomplete());
    }

    #[test]
    fn a_part_that_contradicts_those_before_it_is_not_sound() {
        let headless = part(4, 3);
        assert!(!Receiving::new().assemble(&headless), "there is no header");
        let contradictions = [
            part(5, 2),
            Fragment {
                total: 11,
                ..part(4, 3)
            },
            Fragment {
                words: Some([0; 6]),
                ..part(4, 3)
            },
        ];
        for contradiction in contradictions {
            let mut receiving = Receiving::new();
            assert!(receiving.assemble(&part(0, 4)));
            assert!(!receiving.assemble(&contradiction), "{contradiction:?}");
        }
    }

    #[test]
    fn behind_a_void_part_offsets_do_not_count_any_more() {
        let mut receiving = Receiving::new();
        assert!(receiving.assemble(&part(0, 4)));
        let void = Fragment {
            is_void: true,
            length: 0,
            ..part(4, 1)
        };
        assert!(receiving.assemble(&void) && receiving.is_incomplete());
        assert!(receiving.assemble(&part(8, 2)) && !receiving.is_incomplete());
    }

    #[test]
    fn an_unordered_message_is_no_part_of_another() {
        let mut receiving = Receiving::new();
        assert!(receiving.assemble(&part(0, 4)));
        let reliable = Fragment {
            class: Class::Reliable,
            ..WHOLE
        };
        assert!(receiving.assemble(&reliable) && receiving.is_incomplete());
        assert!(receiving.assemble(&part(4, 6)));
    }
}
