//! What goes out: whose turn it is, and what its packet says.

use crate::endpoint::Endpoint;
use crate::packet::{Class, Header, Kind};
use crate::pair::{NONE, Part, cost};
use crate::time::Time;

/// Bytes that a pair may send before the next one has its turn.
const QUANTUM: u64 = 64 << 10;

/// The payload of a datagram.
pub struct PayloadRange<'a, B> {
    /// The body that it is part of.
    pub body: &'a B,
    /// Where in that, bytes.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// It has been sent before.
    pub retransmitted: bool,
}

/// A datagram to be sent. The checksum of its payload is still to be set.
pub struct Transmit<'a, B> {
    /// What it says.
    pub header: Header,
    /// What goes behind the header.
    pub payload: Option<PayloadRange<'a, B>>,
}

impl<B> Endpoint<B> {
    /// The next datagram, if one may go now. Pairs take turns.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit<'_, B>> {
        if let Some(index) = self.unreliable_sent.take() {
            self.collect_finished(index);
        }
        loop {
            if let Some(header) = self.control.pop_front() {
                return Some(Transmit {
                    header,
                    payload: None,
                });
            }
            let Some(&index) = self.ready.front() else {
                return self.poll_ack();
            };
            if let Some(part) = self.choose(now, index) {
                return Some(self.compose(now, index, part));
            }
            self.ready.pop_front();
        }
    }

    /// A datagram that [`poll_transmit`](Self::poll_transmit) gave didn't leave: what is
    /// reliable in it is to be sent again.
    pub fn on_send_failed(&mut self, header: &Header) {
        let is_reliable = match header.kind {
            Kind::Data(fragment) => fragment.class != Class::Unreliable,
            _ => false,
        };
        let Some(index) = self.find(header.destination).filter(|_| is_reliable) else {
            return;
        };
        let pair = &mut self.pairs[index as usize];
        let Some(sending) = &mut pair.sending else {
            return;
        };
        let ahead = header.sequence.wrapping_sub(pair.acknowledged);
        if let (Some(cost), false) = (sending.mark_lost(ahead), sending.is_parked) {
            self.contexts.get(pair.context).in_flight -= cost;
        }
        self.make_ready(index);
    }

    fn poll_ack(&mut self) -> Option<Transmit<'_, B>> {
        while let Some(index) = self.acks.pop_front() {
            let Some(receiving) = &mut self.pairs[index as usize].receiving else {
                continue;
            };
            receiving.is_ack_queued = false;
            if receiving.ack_pending > 0 {
                return Some(Transmit {
                    header: self.header(index, Kind::Ack),
                    payload: None,
                });
            }
        }
        None
    }

    /// What the pair may send now; where that is nothing, it isn't ready any more.
    #[inline]
    fn choose(&mut self, now: Time, index: u32) -> Option<Part> {
        let pair = &mut self.pairs[index as usize];
        if pair.context == NONE {
            pair.context = self.contexts.open(pair.name, now);
        }
        let sending = pair.sending.as_mut()?;
        if pair.remote == 0 {
            sending.is_ready = false;
            if sending.deadline == Time::NEVER {
                self.start_handshake(now, index);
            }
            return None;
        }
        let Some(part) = sending.next_part(self.config.max_datagram) else {
            sending.is_ready = false;
            return None;
        };
        let cost = cost(part.length);
        if sending.is_urgent {
            return Some(part);
        }
        if sending.in_flight > 0 && sending.in_flight + cost > sending.recv_window {
            sending.is_ready = false; // Its own acknowledgements make it so again.
            return None;
        }
        let context = self.contexts.get_synced(pair.context, now);
        if !context.admits(cost) {
            context.blocked.push_back(index);
            return None;
        }
        if let Some(until) = context.window.paced(now) {
            context.blocked.push_back(index);
            self.paced_until = self.paced_until.min(until);
            return None;
        }
        Some(part)
    }

    #[inline]
    fn compose(&mut self, now: Time, index: u32, part: Part) -> Transmit<'_, B> {
        let mut header = self.header(index, Kind::Ack);
        let pair = &mut self.pairs[index as usize];
        let sending = pair.sending.as_mut().expect("it has been chosen");
        let fragment = sending.outbound(part.message).fragment(&part);
        header.kind = Kind::Data(fragment);
        header.sequence = match part.retransmitted {
            Some(ahead) => pair.acknowledged.wrapping_add(ahead as u32),
            None => pair.next_sequence,
        };
        self.counts.retransmitted += u64::from(part.retransmitted.is_some());
        self.unsent -= usize::from(sending.on_sent(&part, now));
        if fragment.class == Class::Unreliable {
            header.sequence = 0;
            self.unreliable_sent = Some(index);
        } else {
            pair.next_sequence = pair
                .next_sequence
                .wrapping_add(u32::from(part.retransmitted.is_none()));
            header.ack_requested = self.book(now, index, &part);
        }
        let sending = self.pairs[index as usize].sending.as_mut();
        let sending = sending.expect("as above");
        sending.quantum_used += cost(part.length);
        if sending.quantum_used >= QUANTUM {
            sending.quantum_used = 0;
            self.ready.rotate_left(1);
        }
        Transmit {
            header,
            payload: (!fragment.is_void).then_some(PayloadRange {
                body: &sending.outbound(part.message).message.body,
                offset: part.offset,
                length: part.length,
                retransmitted: part.retransmitted.is_some(),
            }),
        }
    }

    /// Books a reliable packet as under way; tells whether it asks for an
    /// acknowledgement: the window is full, or half used since the last that did, or
    /// messages wait from now on for others to go with.
    #[inline]
    fn book(&mut self, now: Time, index: u32, part: &Part) -> bool {
        let (cost, most) = (cost(part.length), self.max_timeout());
        let pair = &mut self.pairs[index as usize];
        let context = self.contexts.get(pair.context);
        let sending = pair.sending.as_mut().expect("it has been chosen");
        context.last_used = now;
        context.in_flight += if sending.is_parked { 0 } else { cost };
        context.window.on_sent(now, cost, &context.round_trip);
        sending.since_ack_request += cost;
        let window = context.share().min(sending.recv_window);
        let is_full = !context.admits(cost) || sending.in_flight + cost > sending.recv_window;
        let is_due = sending.since_ack_request >= window / 2 || sending.begins_coalescing();
        let ack_requested = part.retransmitted.is_some() || is_full || is_due;
        if ack_requested {
            sending.since_ack_request = 0;
        }
        if sending.deadline == Time::NEVER {
            let deadline = now.after(context.round_trip.timeout(most));
            sending.deadline = deadline;
            self.arm(index, deadline);
        }
        ack_requested
    }
}
