//! [`Sending`]: what is to be sent to a peer, until it is acknowledged.
//!
//! Loss detection follows RFC 9002: each transmission has a number of its own, and a packet
//! is lost once one that was sent [`PACKET_THRESHOLD`] later has arrived, or no
//! acknowledgement has for a timeout.

use crate::congestion::OVERHEAD;
use crate::outbound::{Message, Outbound, Part};
use crate::packet::Class;
use crate::time::Time;
use alloc::collections::VecDeque;
use lintel_session::{Coalescing, Waiting};

/// Behind packets in flight, short messages wait for more: as many as one system call takes
/// (`UDP_SEGMENT`).
const COALESCING: Coalescing = Coalescing {
    in_flight: 4,
    message_bytes: 8 << 10,
    messages: 32,
    bytes: 64 << 10,
};
/// Later transmissions that must have arrived before a packet is taken for lost
/// (kPacketThreshold of RFC 9002).
const PACKET_THRESHOLD: u32 = 3;
/// Bytes that a pair may send before it is another one's turn.
const QUANTUM: u64 = 64 << 10;

/// What became of the latest transmission of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    InFlight,
    Lost,
    /// Selectively: one before it isn't acknowledged.
    Acked,
}

/// A packet that was sent and isn't acknowledged together with all before it.
struct SentPacket {
    /// The number of its message.
    message: u32,
    offset: u64,
    length: u32,
    /// When it was last sent, and the number of that transmission.
    at: Time,
    tx_sequence: u32,
    state: State,
    /// Sent more than once, so that its acknowledgement is no sample of the round trip.
    retransmitted: bool,
    is_last: bool,
}

/// Bytes that a packet counts for in windows.
#[inline]
pub(crate) fn cost(length: u32) -> u64 {
    u64::from(length) + OVERHEAD
}

/// What is to be sent to the peer or in flight.
pub(crate) struct Sending<B> {
    messages: VecDeque<Outbound<B>>,
    /// Number of the first of them.
    first: u32,
    /// Index of the first that isn't sent whole.
    next_unsent: usize,
    /// Packets by sequence number; the front one is the first that the peer misses.
    unacked: VecDeque<SentPacket>,
    /// Packets among them that are lost.
    lost: u32,
    /// Bytes in flight, by [`cost`].
    in_flight: u64,
    /// Number of the latest transmission, modulo 2^32.
    tx_sequence: u32,
    /// The latest transmission that is known to have arrived.
    largest_acked: u32,
    /// When to retransmit if nothing is acknowledged before.
    deadline: Time,
    /// Deadlines missed in a row.
    timeout_count: u32,
    /// Its peer doesn't answer: its bytes don't count against the context's window.
    is_parked: bool,
    /// The next packet is sent whatever the windows say.
    is_urgent: bool,
    /// The pair is queued to send.
    is_ready: bool,
    /// Bytes sent since an acknowledgement was requested.
    since_ack_request: u64,
    /// Bytes sent since it was the pair's turn.
    quantum_used: u64,
    /// Bytes that the peer can buffer.
    recv_window: u64,
    /// Messages that wait for nothing but the peer's first answer, and their bytes.
    awaiting_handshake: usize,
    handshake_bytes: u64,
    /// Bytes of memory of all messages.
    memory: u64,
}

/// What an acknowledgement says.
#[derive(Default)]
pub(crate) struct Progress {
    /// Bytes that have arrived, by [`cost`].
    pub(crate) acked_bytes: u64,
    /// When the latest of them was sent, if that is a sample of the round trip.
    pub(crate) rtt_sent_at: Option<Time>,
    /// The latest transmission of packets sent once, and of retransmitted ones.
    once: Option<(u32, Time)>,
    retransmitted: Option<u32>,
    /// When the latest of the packets now taken for lost was sent.
    pub(crate) lost_sent_at: Option<Time>,
    /// It acknowledges more than was known before.
    pub(crate) is_new: bool,
}

impl Progress {
    /// Whether something has arrived that was sent once.
    pub(crate) fn has_first_transmission(&self) -> bool {
        self.once.is_some()
    }
}

impl<B> Sending<B> {
    pub(crate) fn new(recv_window: u64) -> Self {
        Sending {
            messages: VecDeque::new(),
            first: 0,
            next_unsent: 0,
            unacked: VecDeque::new(),
            lost: 0,
            in_flight: 0,
            tx_sequence: 0,
            largest_acked: 0,
            deadline: Time::NEVER,
            timeout_count: 0,
            is_parked: false,
            is_urgent: false,
            is_ready: false,
            since_ack_request: 0,
            quantum_used: 0,
            recv_window,
            awaiting_handshake: 0,
            handshake_bytes: 0,
            memory: 0,
        }
    }

    pub(crate) fn push(&mut self, outbound: Outbound<B>) {
        self.memory += outbound.message.memory;
        self.messages.push_back(outbound);
    }

    /// The message pushed last is for a peer whose incarnation isn't known; true if nothing
    /// else keeps it here, since it fits into the peer's window.
    pub(crate) fn awaits_handshake(&mut self) -> bool {
        let length = self.messages.back().map_or(0, |last| last.message.length);
        self.handshake_bytes += length + OVERHEAD;
        let fits = self.handshake_bytes <= self.recv_window;
        self.awaiting_handshake += usize::from(fits);
        fits
    }

    /// The peer has named its incarnation and its window; returns the messages that waited
    /// for nothing else.
    pub(crate) fn on_handshake(&mut self, recv_window: u64) -> usize {
        self.recv_window = recv_window;
        self.restart_timer(Time::NEVER);
        core::mem::take(&mut self.awaiting_handshake)
    }

    /// Messages that wait for nothing but the peer's first answer.
    pub(crate) fn awaiting_handshake(&self) -> usize {
        self.awaiting_handshake
    }

    /// Bytes of memory of all messages.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether it holds nothing, and the pair isn't queued to send.
    pub(crate) fn is_idle(&self) -> bool {
        self.messages.is_empty() && !self.is_ready
    }

    /// Marks the pair as queued to send; true if it wasn't.
    #[inline]
    pub(crate) fn mark_ready(&mut self) -> bool {
        !core::mem::replace(&mut self.is_ready, true)
    }

    #[inline]
    pub(crate) fn mark_unready(&mut self) {
        self.is_ready = false;
    }

    /// When to retransmit if nothing is acknowledged before.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.deadline
    }

    #[inline]
    pub(crate) fn set_deadline(&mut self, deadline: Time) {
        self.deadline = deadline;
    }

    /// The peer has answered: timeouts are counted anew.
    #[inline]
    pub(crate) fn restart_timer(&mut self, deadline: Time) {
        self.deadline = deadline;
        self.timeout_count = 0;
    }

    /// Deadlines missed in a row.
    #[inline]
    pub(crate) fn timeout_count(&self) -> u32 {
        self.timeout_count
    }

    /// A deadline was missed; the next one is `deadline`.
    pub(crate) fn on_timeout(&mut self, deadline: Time) {
        self.timeout_count += 1;
        self.deadline = deadline;
    }

    /// Whether the next packet is sent whatever the windows say.
    #[inline]
    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// Bytes that count against the context's window.
    #[inline]
    pub(crate) fn counted_in_flight(&self) -> u64 {
        match self.is_parked {
            true => 0,
            false => self.in_flight,
        }
    }

    /// The peer doesn't answer; returns the bytes that count no more.
    pub(crate) fn park(&mut self) -> u64 {
        let counted = self.counted_in_flight();
        self.is_parked = true;
        counted
    }

    /// The peer has answered; returns the bytes that count.
    #[inline]
    pub(crate) fn unpark(&mut self) -> u64 {
        self.is_parked = false;
        self.in_flight
    }

    #[inline]
    pub(crate) fn is_parked(&self) -> bool {
        self.is_parked
    }

    /// The peer has said how much it can buffer.
    #[inline]
    pub(crate) fn set_recv_window(&mut self, recv_window: u64) {
        self.recv_window = recv_window;
    }

    /// Whether the peer can buffer a packet of that cost; one at a time always goes.
    #[inline]
    pub(crate) fn has_window(&self, cost: u64) -> bool {
        self.in_flight == 0 || self.in_flight + cost <= self.recv_window
    }

    /// A packet was sent, by a context that lets the pair have `share` bytes in flight.
    /// Whether it requests an acknowledgement: it was sent before, a window is full or half
    /// used since the last request, messages are coalesced from now on, or its message is
    /// awaited and ends with it.
    #[inline]
    pub(crate) fn requests_ack(&mut self, part: &Part, share: u64, is_path_full: bool) -> bool {
        let cost = cost(part.length);
        self.since_ack_request += cost;
        let window = share.min(self.recv_window);
        let is_full = is_path_full || self.in_flight + cost > self.recv_window;
        let message = self.messages.get(part.message);
        let is_awaited =
            part.is_last && message.is_some_and(|outbound| outbound.message.is_awaited);
        let is_due = is_awaited || self.since_ack_request >= window / 2 || self.begins_coalescing();
        let requests = part.retransmitted.is_some() || is_full || is_due;
        if requests {
            self.since_ack_request = 0;
        }
        requests
    }

    /// Uses up a part of the pair's turn; true if the turn is over.
    #[inline]
    pub(crate) fn use_quantum(&mut self, cost: u64) -> bool {
        self.quantum_used += cost;
        let is_over = self.quantum_used >= QUANTUM;
        if is_over {
            self.quantum_used = 0;
        }
        is_over
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Messages that aren't sent whole.
    pub(crate) fn unsent(&self) -> usize {
        self.messages.len() - self.next_unsent
    }

    /// Whether there is nothing to be sent, for the first time or again.
    #[inline]
    pub(crate) fn has_sent_all(&self) -> bool {
        self.lost == 0 && self.next_unsent == self.messages.len()
    }

    /// Whether what waits may wait for more: it is short, and the acknowledgement of what is
    /// in flight will have it sent in any case.
    #[inline]
    pub(crate) fn may_coalesce(&self) -> bool {
        let newest = self.messages.back();
        let newest = newest.map_or(0, |outbound| outbound.message.length);
        let messages = self.unsent() as u32;
        let waiting = Waiting {
            messages,
            // Only those of one length go in one call.
            bytes: newest * u64::from(messages),
            newest,
        };
        COALESCING.may_wait(self.unacked.len() as u32, waiting)
    }

    /// Whether messages are coalesced after the packet sent last.
    #[inline]
    fn begins_coalescing(&self) -> bool {
        let now = self.unacked.len() as u32;
        COALESCING.begins(now.saturating_sub(1), now)
    }

    /// Whether anything is to be acknowledged.
    #[inline]
    pub(crate) fn awaits_ack(&self) -> bool {
        !self.unacked.is_empty()
    }

    /// Bytes of memory, bodies aside.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.messages.capacity() * size_of::<Outbound<B>>()
            + self.unacked.capacity() * size_of::<SentPacket>()
    }

    /// The packet that is to be sent next; lost ones come first.
    pub(crate) fn next_part(&self, max_datagram: u32) -> Option<Part> {
        if self.lost > 0 {
            let index = self
                .unacked
                .iter()
                .position(|sent| sent.state == State::Lost)?;
            let sent = &self.unacked[index];
            return Some(Part {
                message: sent.message.wrapping_sub(self.first) as usize,
                offset: sent.offset,
                length: sent.length,
                is_last: sent.is_last,
                retransmitted: Some(index),
            });
        }
        let next = self.messages.get(self.next_unsent)?;
        (!next.is_held && !self.is_parked).then(|| next.next_part(self.next_unsent, max_datagram))
    }

    pub(crate) fn message(&self, index: usize) -> &Outbound<B> {
        &self.messages[index]
    }

    /// A part was sent; true if its message is sent whole now, for the first time.
    pub(crate) fn on_sent(&mut self, part: &Part, now: Time) -> bool {
        self.is_urgent = false;
        if let Some(index) = part.retransmitted {
            self.tx_sequence = self.tx_sequence.wrapping_add(1);
            let sent = &mut self.unacked[index];
            sent.state = State::InFlight;
            sent.at = now;
            sent.tx_sequence = self.tx_sequence;
            sent.retransmitted = true;
            self.lost -= 1;
            self.in_flight += cost(part.length);
            return false;
        }
        let outbound = &mut self.messages[part.message];
        outbound.take_part(part.length);
        let (is_sent, class) = (outbound.is_sent, outbound.message.class);
        self.next_unsent += usize::from(is_sent);
        if class == Class::Unreliable {
            outbound.is_finished = true;
            return is_sent;
        }
        self.tx_sequence = self.tx_sequence.wrapping_add(1);
        self.in_flight += cost(part.length);
        self.unacked.push_back(SentPacket {
            message: self.first.wrapping_add(part.message as u32),
            offset: part.offset,
            length: part.length,
            at: now,
            tx_sequence: self.tx_sequence,
            state: State::InFlight,
            retransmitted: false,
            is_last: part.is_last,
        });
        is_sent
    }

    /// The first `count` packets have arrived, and those behind them that the bits name.
    /// `None` if so many weren't sent.
    pub(crate) fn on_ack(&mut self, count: u32, selective: u64) -> Option<Progress> {
        if count as usize > self.unacked.len() {
            return None;
        }
        let mut progress = Progress::default();
        for _ in 0..count {
            self.pop(&mut progress);
        }
        progress.is_new = count > 0;
        let mut bits = selective;
        while bits != 0 {
            let index = bits.trailing_zeros() as usize + 1;
            bits &= bits - 1;
            self.on_selected(index, &mut progress);
        }
        self.note_arrived(&mut progress);
        if selective != 0 || self.timeout_count > 0 || progress.rtt_sent_at.is_none() {
            self.detect_lost(&mut progress);
        }
        Some(progress)
    }

    /// An acknowledgement doesn't say which transmission of a retransmitted packet has
    /// arrived. If a packet that was sent once is acknowledged along with it, it was the
    /// first one: that had only been waiting.
    #[inline]
    fn note_arrived(&mut self, progress: &mut Progress) {
        let (order, at) = match (progress.once, progress.retransmitted) {
            (Some((order, at)), None) => (order, Some(at)),
            (Some((order, _)), Some(_)) | (None, Some(order)) => (order, None),
            (None, None) => return,
        };
        if is_later(order, self.largest_acked) {
            self.largest_acked = order;
            progress.rtt_sent_at = at;
        }
    }

    fn pop(&mut self, progress: &mut Progress) {
        let Some(sent) = self.unacked.pop_front() else {
            return;
        };
        self.on_arrived(&sent, progress);
        let index = sent.message.wrapping_sub(self.first) as usize;
        self.messages[index].is_finished |= sent.is_last;
    }

    fn on_selected(&mut self, index: usize, progress: &mut Progress) {
        let Some(sent) = self.unacked.get_mut(index) else {
            return;
        };
        if sent.state == State::Acked {
            return;
        }
        let seen = SentPacket { ..*sent };
        sent.state = State::Acked;
        progress.is_new = true;
        self.on_arrived(&seen, progress);
    }

    #[inline]
    fn on_arrived(&mut self, sent: &SentPacket, progress: &mut Progress) {
        match sent.state {
            State::InFlight => {
                self.in_flight -= cost(sent.length);
                progress.acked_bytes += cost(sent.length);
            }
            State::Lost => self.lost -= 1,
            State::Acked => return,
        }
        if sent.retransmitted {
            let is_latest = progress
                .retransmitted
                .is_none_or(|other| is_later(sent.tx_sequence, other));
            progress.retransmitted = if is_latest {
                Some(sent.tx_sequence)
            } else {
                progress.retransmitted
            };
        } else if progress
            .once
            .is_none_or(|(other, _)| is_later(sent.tx_sequence, other))
        {
            progress.once = Some((sent.tx_sequence, sent.at));
        }
    }

    /// Takes packets for lost that were overtaken by too many.
    fn detect_lost(&mut self, progress: &mut Progress) {
        for sent in &mut self.unacked {
            let overtaken = self.largest_acked.wrapping_sub(sent.tx_sequence) as i32;
            if sent.state == State::InFlight && overtaken >= PACKET_THRESHOLD as i32 {
                sent.state = State::Lost;
                self.lost += 1;
                self.in_flight -= cost(sent.length);
                progress.lost_sent_at = progress.lost_sent_at.max(Some(sent.at));
            }
        }
    }

    /// The first packet that the peer misses is to be retransmitted now.
    pub(crate) fn retransmit_first(&mut self) {
        if let Some(sent) = self.unacked.front_mut() {
            if sent.state == State::InFlight {
                sent.state = State::Lost;
                self.lost += 1;
                self.in_flight -= cost(sent.length);
            }
            self.is_urgent = true;
        }
    }

    /// The packet `ahead` of the first that the peer misses didn't leave after all; returns
    /// its cost.
    pub(crate) fn mark_lost(&mut self, ahead: u32) -> Option<u64> {
        let sent = self.unacked.get_mut(ahead as usize)?;
        if sent.state != State::InFlight {
            return None;
        }
        sent.state = State::Lost;
        self.lost += 1;
        self.in_flight -= cost(sent.length);
        Some(cost(sent.length))
    }

    /// A message at the front that is acknowledged.
    pub(crate) fn pop_finished(&mut self) -> Option<Message<B>> {
        if !self.messages.front()?.is_finished {
            return None;
        }
        self.first = self.first.wrapping_add(1);
        self.next_unsent -= 1;
        let message = self.messages.pop_front()?.message;
        self.memory -= message.memory;
        Some(message)
    }

    /// Recalls bodies: messages that haven't begun go unsent, the others are void and get an
    /// empty body. Returns how many go unsent, and how many of them waited for nothing but
    /// the peer's first answer.
    pub(crate) fn recall(
        &mut self,
        is_meant: &mut impl FnMut(&B) -> bool,
        empty: &impl Fn() -> B,
    ) -> (usize, usize) {
        let (before, awaiting_handshake) = (self.messages.len(), self.awaiting_handshake);
        let mut index = 0;
        while let Some(outbound) = self.messages.get_mut(index) {
            if !is_meant(&outbound.message.body) {
                index += 1;
            } else if index < self.next_unsent || outbound.sent > 0 {
                outbound.is_void = true;
                outbound.message.body = empty();
                index += 1;
            } else {
                self.memory -= outbound.message.memory;
                self.awaiting_handshake -= usize::from(index < self.awaiting_handshake);
                self.messages.remove(index);
            }
        }
        (
            before - self.messages.len(),
            awaiting_handshake - self.awaiting_handshake,
        )
    }

    /// What waited for the end of a stream may be sent.
    pub(crate) fn release(&mut self) {
        for outbound in &mut self.messages {
            outbound.is_held = false;
        }
    }

    pub(crate) fn into_messages(self) -> impl Iterator<Item = Message<B>> {
        self.messages.into_iter().map(|outbound| outbound.message)
    }
}

/// Whether a transmission came after another.
#[inline]
fn is_later(number: u32, than: u32) -> bool {
    number.wrapping_sub(than) as i32 > 0
}

#[cfg(test)]
mod tests;
