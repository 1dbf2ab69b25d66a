//! What is sent: which pair's turn it is, and what its packet says.

use crate::config::PairId;
use crate::context::ContextIndex;
use crate::endpoint::Endpoint;
use crate::outbound::Part;
use crate::packet::{Class, Header, Kind};
use crate::sending::cost;
use crate::time::Time;

/// The payload of a datagram: a range of a message's body.
pub struct PayloadRange<'a, B> {
    /// The body that it is part of.
    pub body: &'a B,
    /// Where in the body it begins, bytes.
    pub offset: u64,
    /// Bytes of the body that the datagram carries.
    pub length: u32,
    /// It was sent before.
    pub retransmitted: bool,
}

/// A datagram to be sent. The checksum of its payload is still to be set.
pub struct Transmit<'a, B> {
    /// What precedes the payload.
    pub header: Header,
    /// What follows the header.
    pub payload: Option<PayloadRange<'a, B>>,
    /// Nothing else may be sent now: [`Endpoint::poll_transmit`] needn't be called again.
    pub is_last: bool,
}

impl<B> Endpoint<B> {
    /// The next datagram, if one may be sent now. Pairs take turns.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit<'_, B>> {
        if let Some(id) = self.unreliable_sent.take() {
            self.collect_finished(id);
        }
        loop {
            if let Some(header) = self.control.pop_front() {
                return Some(self.without_payload(header));
            }
            let Some(&id) = self.ready.front() else {
                return self.poll_ack();
            };
            if let Some((context, part)) = self.choose(now, id) {
                return Some(self.compose(now, id, context, part));
            }
            self.ready.pop_front();
        }
    }

    /// A datagram that [`poll_transmit`](Self::poll_transmit) returned didn't leave: what is
    /// reliable in it is to be retransmitted.
    pub fn on_send_failed(&mut self, header: &Header) {
        let is_reliable = match header.kind {
            Kind::Data(fragment) => fragment.class != Class::Unreliable,
            _ => false,
        };
        let Some(id) = self.find(header.destination).filter(|_| is_reliable) else {
            return;
        };
        let pair = &mut self.pairs[id];
        let ahead = header.sequence.wrapping_sub(pair.acknowledged());
        let context = pair.context();
        let Some(sending) = pair.sending_mut() else {
            return;
        };
        if let (Some(cost), false) = (sending.mark_lost(ahead), sending.is_parked()) {
            let context = context.expect("what is in flight has a context");
            self.contexts.get(context).in_flight -= cost;
        }
        self.make_ready(id);
    }

    fn poll_ack(&mut self) -> Option<Transmit<'_, B>> {
        while let Some(id) = self.acks.pop_front() {
            let receiving = self.pairs[id].receiving_mut();
            if receiving.is_some_and(|receiving| receiving.on_unqueued()) {
                let header = self.header(id, Kind::Ack);
                return Some(self.without_payload(header));
            }
        }
        None
    }

    fn without_payload(&self, header: Header) -> Transmit<'_, B> {
        Transmit {
            header,
            payload: None,
            is_last: !self.has_work(),
        }
    }

    /// What the pair may send now, and its context; if that is nothing, it isn't ready any
    /// more.
    #[inline]
    fn choose(&mut self, now: Time, id: PairId) -> Option<(ContextIndex, Part)> {
        let pair = &mut self.pairs[id];
        let index = pair.open_context(&mut self.contexts, now);
        let is_established = pair.is_established();
        let sending = pair.sending_mut()?;
        if !is_established {
            sending.mark_unready();
            if sending.deadline() == Time::NEVER {
                self.start_handshake(now, id);
            }
            return None;
        }
        let Some(part) = sending.next_part(self.config.max_datagram) else {
            sending.mark_unready();
            return None;
        };
        let cost = cost(part.length);
        if sending.is_urgent() {
            return Some((index, part));
        }
        if !sending.has_window(cost) {
            sending.mark_unready(); // Until its peer acknowledges something.
            return None;
        }
        let context = self.contexts.get_synced(index, now);
        if !context.admits(cost) {
            context.blocked.push_back(id);
            return None;
        }
        if let Some(until) = context.window.paced(now) {
            context.blocked.push_back(id);
            self.paced_until = self.paced_until.min(until);
            return None;
        }
        Some((index, part))
    }

    #[inline]
    fn compose(
        &mut self,
        now: Time,
        id: PairId,
        context: ContextIndex,
        part: Part,
    ) -> Transmit<'_, B> {
        let pair = &mut self.pairs[id];
        let mut header = pair.header(&self.config, Kind::Ack);
        let acknowledged = pair.acknowledged();
        let sending = pair.sending_mut().expect("it was chosen");
        let fragment = sending.message(part.message).fragment(&part);
        header.kind = Kind::Data(fragment);
        self.unsent -= usize::from(sending.on_sent(&part, now));
        if let Some(ahead) = part.retransmitted {
            header.sequence = acknowledged.wrapping_add(ahead as u32);
            self.counts.retransmitted += 1;
        }
        if fragment.class == Class::Unreliable {
            header.sequence = 0;
            self.unreliable_sent = Some(id);
        } else {
            header.ack_requested = self.on_transmitted(now, id, context, &part);
        }
        self.end_turn(id, &part);
        let is_last = !self.has_work() && self.unreliable_sent.is_none();
        let sending = self.pairs[id].sending().expect("it was chosen");
        Transmit {
            header,
            payload: (!fragment.is_void).then_some(PayloadRange {
                body: sending.message(part.message).body(),
                offset: part.offset,
                length: part.length,
                retransmitted: part.retransmitted.is_some(),
            }),
            is_last,
        }
    }

    /// The first pair that is ready has sent something: another one's turn begins if it has
    /// nothing else, or has sent enough.
    #[inline]
    fn end_turn(&mut self, id: PairId, part: &Part) {
        let sending = self.pairs[id].sending_mut().expect("it has sent");
        let is_over = sending.use_quantum(cost(part.length));
        if sending.has_sent_all() {
            sending.mark_unready();
            self.ready.pop_front();
        } else if is_over {
            self.ready.rotate_left(1);
        }
    }

    /// A reliable packet is in flight; true if it requests an acknowledgement.
    #[inline]
    fn on_transmitted(
        &mut self,
        now: Time,
        id: PairId,
        context: ContextIndex,
        part: &Part,
    ) -> bool {
        let (cost, most) = (cost(part.length), self.max_timeout);
        let context = self.contexts.get(context);
        let pair = &mut self.pairs[id];
        if part.retransmitted.is_none() {
            pair.on_first_transmission();
        }
        let sending = pair.sending_mut().expect("it was chosen");
        context.last_used = now;
        context.in_flight += if sending.is_parked() { 0 } else { cost };
        context.window.on_sent(now, cost, &context.round_trip);
        let requests = sending.requests_ack(part, context.share(), !context.admits(cost));
        if sending.deadline() == Time::NEVER {
            let deadline = now.after(context.round_trip.timeout(most));
            sending.set_deadline(deadline);
            self.arm(id, deadline);
        }
        requests
    }
}
