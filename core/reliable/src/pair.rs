//! The light part of a connection: order between this process and one other.

use crate::congestion::OVERHEAD;
use crate::packet::{Class, FIRST_BYTES, FURTHER_BYTES, Fragment, WHOLE_BYTES};
use crate::time::Time;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use lintel_types::ProcessId;
use lintel_wire::Words;

/// No context.
pub(crate) const NONE: u32 = u32::MAX;
/// Packets so far beyond the next one are kept until it comes: as many as the
/// acknowledgement can name.
pub(crate) const REORDER_WINDOW: u32 = u64::BITS;
/// The number of a pair's first packet: so close to the largest one that what begins
/// again behind it is exercised every day.
const FIRST_NUMBER: u32 = u32::MAX - 999;
/// With so many packets under way a short message gains nothing by being alone in a
/// system call: it may wait for the next ones, so many and of so many bytes at most.
const COALESCE_IN_FLIGHT: usize = 16;
const MAX_COALESCED: usize = 32;
const MAX_COALESCED_BYTES: u64 = 256;
/// A packet is lost when so many that were sent after it have arrived.
const PACKET_THRESHOLD: u32 = 3;

/// Something to be sent.
pub struct Message<B> {
    /// What order and certainty it gets.
    pub class: Class,
    /// Its words.
    pub words: Words,
    /// Length of its body, bytes.
    pub length: u64,
    /// Bytes of memory that it takes until it has arrived.
    pub memory: u64,
    /// Where that is; given back by `Endpoint::take_finished` once it has arrived.
    pub body: B,
}

/// A message on its way.
pub(crate) struct Outbound<B> {
    pub(crate) message: Message<B>,
    /// Bytes that were sent at least once.
    sent: u64,
    /// Every part was sent at least once.
    pub(crate) is_sent: bool,
    /// It isn't needed any more.
    is_finished: bool,
    /// It may be an answer to a stream that is still coming, and waits for its end.
    pub(crate) is_held: bool,
    /// Its body was taken back after a part was sent.
    pub(crate) is_void: bool,
}

impl<B> Outbound<B> {
    pub(crate) fn new(message: Message<B>, is_held: bool) -> Self {
        Outbound {
            message,
            sent: 0,
            is_sent: false,
            is_finished: false,
            is_held,
            is_void: false,
        }
    }

    /// Length of the next part in datagrams of that size. The first of several takes what
    /// would be left over for the last: it is the one that a receiver must copy.
    #[inline]
    pub(crate) fn next_length(&self, datagram: u32) -> u32 {
        let room = |ahead: usize| u64::from(datagram) - ahead as u64;
        let rest = self.message.length - self.sent;
        let most = match self.sent {
            0 if rest <= room(WHOLE_BYTES) => rest,
            0 => match rest % room(FURTHER_BYTES) {
                0 => room(FIRST_BYTES),
                over => over.min(room(FIRST_BYTES)),
            },
            _ => room(FURTHER_BYTES),
        };
        rest.min(most) as u32
    }

    #[inline]
    fn take_part(&mut self, length: u32) -> u64 {
        let offset = self.sent;
        self.sent += u64::from(length);
        self.is_sent = self.is_void || self.sent == self.message.length;
        offset
    }

    /// The next part that wasn't sent yet; all that is left of a message without a body.
    #[inline]
    fn next_part(&self, message: usize, datagram: u32) -> Part {
        let length = match self.is_void {
            true => 0,
            false => self.next_length(datagram),
        };
        Part {
            message,
            offset: self.sent,
            length,
            is_last: self.is_void || self.sent + u64::from(length) == self.message.length,
            retransmitted: None,
        }
    }

    #[inline]
    pub(crate) fn fragment(&self, part: &Part) -> Fragment {
        let is_whole = part.offset == 0 && part.is_last;
        let length = if self.is_void { 0 } else { part.length };
        Fragment {
            class: self.message.class,
            words: (part.offset == 0).then_some(self.message.words),
            last: part.is_last,
            total: match is_whole {
                true => length.into(),
                false => self.message.length,
            },
            offset: part.offset,
            length,
            checksum: None,
            is_void: self.is_void,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    InFlight,
    Lost,
    /// Though something before it hasn't.
    Acked,
}

/// A packet that was sent and not yet acknowledged together with all before it.
pub(crate) struct SentPacket {
    /// Its message's number.
    message: u32,
    offset: u64,
    length: u32,
    /// The last time that it was sent, and the how-manieth sending that was.
    at: Time,
    tx_sequence: u32,
    state: State,
    /// Sent more than once, so that an answer tells no round-trip time.
    retransmitted: bool,
    is_last: bool,
}

#[inline]
pub(crate) fn cost(length: u32) -> u64 {
    u64::from(length) + OVERHEAD
}

/// What is on its way to the peer.
pub(crate) struct Sending<B> {
    messages: VecDeque<Outbound<B>>,
    /// Number of the first of them.
    first: u32,
    /// Index of the first that isn't sent whole.
    next_unsent: usize,
    /// The front one has the number that the peer awaits.
    unacked: VecDeque<SentPacket>,
    lost: u32,
    /// Bytes under way.
    pub(crate) in_flight: u64,
    tx_sequence: u32,
    /// The latest sending that is known to have arrived.
    largest_acked: u32,
    /// When to send again without an answer.
    pub(crate) deadline: Time,
    /// Deadlines missed in a row.
    pub(crate) timeout_count: u32,
    /// It gets no answers, and its bytes don't count against the context's window.
    pub(crate) is_parked: bool,
    /// The next packet is sent whatever the window says.
    pub(crate) is_urgent: bool,
    pub(crate) is_ready: bool,
    /// Bytes sent since an acknowledgement was asked for, and in the present turn.
    pub(crate) since_ack_request: u64,
    pub(crate) quantum_used: u64,
    /// Bytes that the peer can buffer.
    pub(crate) recv_window: u64,
    /// Messages that wait for nothing but the peer's first answer, and their bytes.
    pub(crate) awaiting_handshake: usize,
    handshake_bytes: u64,
    /// Bytes of memory of all messages.
    pub(crate) memory: u64,
}

/// What an acknowledgement has brought.
#[derive(Default)]
pub(crate) struct Progress {
    /// Bytes that have arrived.
    pub(crate) acked_bytes: u64,
    /// When the latest of them was sent, if all of them were sent once.
    pub(crate) rtt_sent_at: Option<Time>,
    /// The latest sending of those that were sent once, and of the others.
    once: Option<(u32, Time)>,
    retransmitted: Option<u32>,
    /// When the latest of those now taken for lost was sent.
    pub(crate) lost_sent_at: Option<Time>,
    /// The peer knows of more than before.
    pub(crate) is_new: bool,
}

impl Progress {
    /// Something has arrived that was sent once.
    pub(crate) fn has_first_transmission(&self) -> bool {
        self.once.is_some()
    }
}

/// What to send next.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// Index of its message.
    pub(crate) message: usize,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// The message ends with it.
    pub(crate) is_last: bool,
    /// Index among the unacknowledged packets, if it was sent before.
    pub(crate) retransmitted: Option<usize>,
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

    /// The message pushed last is for a peer that hasn't answered yet; whether that alone
    /// keeps it here, since it would fit into what may be under way.
    pub(crate) fn awaits_handshake(&mut self) -> bool {
        let length = self.messages.back().map_or(0, |last| last.message.length);
        self.handshake_bytes += length + OVERHEAD;
        let fits = self.handshake_bytes <= self.recv_window;
        self.awaiting_handshake += usize::from(fits);
        fits
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Messages that aren't sent whole.
    pub(crate) fn unsent(&self) -> usize {
        self.messages.len() - self.next_unsent
    }

    /// Whether what waits may wait for more to go with: it is short, and the answer to what
    /// is under way will call for it in any case.
    #[inline]
    pub(crate) fn may_coalesce(&self) -> bool {
        let newest = self.messages.back();
        self.unacked.len() >= COALESCE_IN_FLIGHT
            && self.unsent() < MAX_COALESCED
            && newest.is_some_and(|outbound| outbound.message.length <= MAX_COALESCED_BYTES)
    }

    /// Whether the packet sent last is the one after which messages are gathered.
    #[inline]
    pub(crate) fn begins_coalescing(&self) -> bool {
        self.unacked.len() == COALESCE_IN_FLIGHT
    }

    pub(crate) fn awaits_answer(&self) -> bool {
        !self.unacked.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.messages.capacity() * size_of::<Outbound<B>>()
            + self.unacked.capacity() * size_of::<SentPacket>()
    }

    /// The packet that is to be sent next, what is lost first.
    pub(crate) fn next_part(&self, datagram: u32) -> Option<Part> {
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
        let fresh = self.messages.get(self.next_unsent)?;
        (!fresh.is_held && !self.is_parked).then(|| fresh.next_part(self.next_unsent, datagram))
    }

    pub(crate) fn outbound(&self, index: usize) -> &Outbound<B> {
        &self.messages[index]
    }

    /// Books a part as sent; true where its message now is sent whole for the first time.
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

    /// All up to there have arrived, and those that the bits name. Nothing where that
    /// can't be.
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

    /// Which sending of a packet that was sent again has arrived, nobody says. Where one
    /// that was sent once came along with it, the first: it had only been waiting.
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

    /// What others have overtaken by too much is lost.
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

    /// The packet that the peer awaits is to be sent again, now.
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

    /// A packet that was sent, so far ahead of the awaited one, didn't leave after all;
    /// gives its cost.
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

    /// A message at the front that isn't needed any more.
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

    /// Takes bodies back: messages that haven't begun go unsent, the others are void and get
    /// an empty body. Tells how many go unsent, and how many of them waited for nothing but
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

    /// What waited for the end of a stream may go.
    pub(crate) fn release(&mut self) {
        for outbound in &mut self.messages {
            outbound.is_held = false;
        }
    }

    pub(crate) fn into_messages(self) -> impl Iterator<Item = Message<B>> {
        self.messages.into_iter().map(|outbound| outbound.message)
    }
}

/// What comes from the peer.
pub(crate) struct Receiving {
    /// Bit i: number `expected + 1 + i` has come already.
    pub(crate) early: u64,
    /// Those among them that have been delivered.
    taken: u64,
    /// Packets since the last acknowledgement.
    pub(crate) ack_pending: u32,
    /// When to send one at the latest.
    pub(crate) ack_at: Time,
    pub(crate) is_ack_queued: bool,
    /// Length of the message that comes in parts, and bytes that have come, if it may still
    /// get whole.
    assembly: Option<(u64, Option<u64>)>,
}

impl Receiving {
    pub(crate) fn new() -> Self {
        Receiving {
            early: 0,
            taken: 0,
            ack_pending: 0,
            ack_at: Time::NEVER,
            is_ack_queued: false,
            assembly: None,
        }
    }

    /// Whether a message has come in part.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.assembly.is_some()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.early == 0 && self.ack_pending == 0 && self.assembly.is_none()
    }

    /// Books a part in its order; false where it contradicts the parts before it.
    pub(crate) fn assemble(&mut self, fragment: &Fragment) -> bool {
        if fragment.class != Class::Ordered {
            return true;
        }
        let (come, sound) = match self.assembly {
            None => (Some(fragment.offset), fragment.words.is_some()),
            Some((total, come)) => {
                let is_next = come.is_none_or(|come| fragment.offset == come);
                (
                    come,
                    fragment.words.is_none() && fragment.total == total && is_next,
                )
            }
        };
        let come = come.filter(|_| !fragment.is_void);
        let come = come.map(|come| come + u64::from(fragment.length));
        self.assembly = (!fragment.last).then_some((fragment.total, come));
        sound
    }

    /// The awaited packet has been delivered; gives the number to await next.
    #[inline]
    pub(crate) fn advance(&mut self, mut expected: u32) -> u32 {
        loop {
            expected = expected.wrapping_add(1);
            let delivered = self.taken & 1 != 0;
            self.early >>= 1;
            self.taken >>= 1;
            if !delivered {
                return expected;
            }
        }
    }

    /// Whether that packet, `ahead` of the awaited one, came before.
    pub(crate) fn has(&self, ahead: u32) -> bool {
        self.early & bit(ahead) != 0
    }

    pub(crate) fn mark(&mut self, ahead: u32, delivered: bool) {
        self.early |= bit(ahead);
        self.taken |= if delivered { bit(ahead) } else { 0 };
    }
}

/// Whether a sending came after another.
#[inline]
fn is_later(order: u32, than: u32) -> bool {
    order.wrapping_sub(than) as i32 > 0
}

fn bit(ahead: u32) -> u64 {
    1 << (ahead - 1)
}

/// This process and one other.
pub(crate) struct Pair<B> {
    pub(crate) name: ProcessId,
    /// This side's incarnation: a newer one after each loss.
    pub(crate) local: u64,
    /// The peer's, which has shown that it knows `local`; 0 while there is none.
    pub(crate) remote: u64,
    /// The latest of the peer's that was given up.
    pub(crate) dead: u64,
    pub(crate) last_heard: Time,
    /// Since when something depends on the peer.
    pub(crate) depends_since: Time,
    pub(crate) last_probe: Time,
    /// Until then somebody waits for the peer to do something.
    pub(crate) checked_until: Time,
    /// Number of the next packet to be sent for the first time.
    pub(crate) next_sequence: u32,
    /// Number that the peer awaits.
    pub(crate) acknowledged: u32,
    /// Number that this side awaits.
    pub(crate) expected: u32,
    pub(crate) context: u32,
    pub(crate) sending: Option<Box<Sending<B>>>,
    pub(crate) receiving: Option<Box<Receiving>>,
    pub(crate) is_armed: bool,
    /// The system said that nobody is there, though somebody has been.
    pub(crate) is_suspect: bool,
    /// Something has been sent to it.
    pub(crate) is_addressed: bool,
}

impl<B> Pair<B> {
    pub(crate) fn new(name: ProcessId, local: u64) -> Self {
        Pair {
            name,
            local,
            remote: 0,
            dead: 0,
            last_heard: Time(0),
            depends_since: Time(0),
            last_probe: Time(0),
            checked_until: Time(0),
            next_sequence: FIRST_NUMBER,
            acknowledged: FIRST_NUMBER,
            expected: FIRST_NUMBER,
            context: NONE,
            sending: None,
            receiving: None,
            is_armed: false,
            is_suspect: false,
            is_addressed: false,
        }
    }

    /// The latest of the peer's incarnations that was known.
    pub(crate) fn latest(&self) -> u64 {
        self.dead.max(self.remote)
    }

    /// Drops the queues where there is nothing in them.
    pub(crate) fn release_queues(&mut self) {
        self.sending
            .take_if(|sending| sending.is_empty() && !sending.is_ready);
        self.receiving
            .take_if(|receiving| receiving.is_idle() && !receiving.is_ack_queued);
    }

    /// Whether something that is under way or waited for depends on the peer.
    pub(crate) fn depends(&self, now: Time) -> bool {
        self.sending
            .as_ref()
            .is_some_and(|sending| !sending.is_empty())
            || self
                .receiving
                .as_ref()
                .is_some_and(|receiving| receiving.is_incomplete())
            || now < self.checked_until
    }
}
