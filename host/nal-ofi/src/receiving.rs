//! Frames that arrive, and the messages in them.

use crate::fabric::Posted;
use crate::frame::{Entry, Header, Kind, PREFIX, Prefix, Reject, read_batch, read_table};
use crate::peer::{ACK_DELAY, Body, BufferedMessage, Item, RemoteBody, WINDOW};
use crate::peers::Sender;
use crate::{OfiNal, Operation};
use lintel_nal::{Arrival, Payload};
use lintel_session::Incarnation;
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::ops::Range;

/// What becomes of a frame, by its sender.
enum Source {
    /// It is handled, for the peer on that lane.
    Peer(u32),
    /// It waits until the messages of its sender's predecessor have been read.
    Deferred,
    /// It is dropped: its sender has ended, or was lost.
    Stale,
}

impl OfiNal {
    /// Offers the provider all buffers that hold nothing.
    pub(crate) fn offer_buffers(&mut self) {
        while let Some(buffer) = self.arrivals.unposted.pop() {
            let (place, descriptor) = (
                self.link.frames.claim(buffer),
                self.link.frames.descriptor(),
            );
            let operation = Operation::Receive(buffer);
            if self.link.fabric.receive(place, descriptor, operation) != Posted::Yes {
                self.arrivals.unposted.push(buffer);
                return;
            }
        }
    }

    pub(crate) fn on_frame(&mut self, buffer: u32, length: usize) {
        let mut prefix: Prefix = [0; PREFIX];
        let frame = self.link.frames.claim(buffer).slice(0, length as u64);
        frame.read(&mut prefix);
        let table = |place: Range<usize>| {
            let mut table = vec![0; place.len()];
            frame.slice(place.start as u64, u64::MAX).read(&mut table);
            table
        };
        let read = self.local.seal.read(self.local.me, &prefix, length, table);
        match read {
            Ok((header, words, table)) => self.dispatch(buffer, length, &header, words, &table),
            Err(reject) => {
                match reject {
                    Reject::Malformed => self.counts.malformed += 1,
                    Reject::Forged => self.counts.forged += 1,
                }
                self.arrivals.unposted.push(buffer);
            }
        }
    }

    fn dispatch(
        &mut self,
        buffer: u32,
        length: usize,
        header: &Header,
        words: Words,
        table: &[u8],
    ) {
        let lane = match self.sender(header) {
            Source::Peer(lane) => lane,
            Source::Deferred => return self.arrivals.deferred.push((header.from, buffer, length)),
            Source::Stale => {
                self.counts.duplicates += 1;
                return self.arrivals.unposted.push(buffer);
            }
        };
        if !self.on_header(lane, header) {
            return self.arrivals.unposted.push(buffer);
        }
        match header.kind {
            Kind::Inline => return self.on_message(lane, header, buffer, words, None),
            Kind::Rendezvous => match read_table(table).map(RemoteBody::new) {
                Some(body) => return self.on_message(lane, header, buffer, words, Some(body)),
                None => self.counts.malformed += 1,
            },
            Kind::Batch => match read_batch(table, header.length as usize) {
                Some(entries) => return self.on_batch(lane, header.sequence, buffer, &entries),
                None => self.counts.malformed += 1,
            },
            Kind::Status => {}
            Kind::Recall => self.on_recall(lane, header.recalled),
            Kind::RecallAck => self.on_recalled(lane, header.recalled),
            Kind::Close => self.close_peer(lane),
        }
        self.arrivals.unposted.push(buffer);
    }

    /// Takes what every frame says of its sender; false if it was for an earlier process of
    /// this one's name.
    fn on_header(&mut self, lane: u32, header: &Header) -> bool {
        // A message is only sent to a process that its sender has heard.
        let named = Incarnation::new(header.to_incarnation);
        let is_ours = match named {
            None => !header.kind.is_message(),
            Some(incarnation) => incarnation == self.local.incarnation,
        };
        let Some(peer) = self.peers.get_mut(lane) else {
            return false;
        };
        peer.uid = header.uid;
        peer.health.on_heard(self.clock.now);
        peer.sending.retry = None;
        // A peer that sends to a predecessor is answered, so that it knows.
        peer.receiving.ack_requested |= header.ack_requested || !is_ours;
        if peer.receiving.ack_requested || !peer.sending.queue.is_empty() {
            self.peers.list(lane);
        }
        if !is_ours {
            self.counts.misdirected += 1;
        } else if named.is_some() {
            // A peer that hasn't heard this process yet can't have counted.
            self.on_counts(lane, header);
        }
        is_ours
    }

    /// The peer that a frame is from. A process that is new gets a lane.
    fn sender(&mut self, header: &Header) -> Source {
        match self.peers.sender(header.from, header.incarnation) {
            Sender::Known(lane) => Source::Peer(lane),
            Sender::First(lane, incarnation) => self.establish(lane, incarnation),
            Sender::New(incarnation) if header.kind.opens() => {
                let lane = self.add_peer(header.from);
                self.establish(lane, incarnation)
            }
            Sender::Successor(lane) => {
                self.lose_peer(lane, "has been followed by another of its name");
                match self.peers.lane_of(header.from) {
                    Some(_) => Source::Deferred,
                    None => self.sender(header),
                }
            }
            Sender::Deferred => Source::Deferred,
            Sender::New(_) | Sender::Stale => Source::Stale,
        }
    }

    fn establish(&mut self, lane: u32, incarnation: Incarnation) -> Source {
        if let Some(peer) = self.peers.get_mut(lane) {
            peer.history.establish(incarnation);
        }
        Source::Peer(lane)
    }

    /// Takes the peer's counts of messages to it, if they are new.
    fn on_counts(&mut self, lane: u32, header: &Header) {
        let Some(peer) = self.peers.get_mut(lane) else {
            return;
        };
        let sending = &mut peer.sending;
        let sent = sending.sequence;
        if is_news(sending.arrived, header.arrived, sent) {
            sending.arrived = header.arrived;
            peer.health.last_progress = self.clock.now;
        }
        if is_news(sending.consumed, header.consumed, sent) {
            sending.consumed = header.consumed;
        }
        let bodies = sending.fetched.wrapping_add(sending.bodies.len() as u32);
        while is_news(sending.fetched, header.fetched, bodies) {
            sending.fetched = sending.fetched.wrapping_add(1);
            match sending.pop_body() {
                Some(body) => {
                    let returned = body.number().map(Arrival::Returned);
                    self.arrivals.notices.extend(returned);
                    drop_body(&mut self.link.registrations, body);
                }
                None => break,
            }
        }
    }

    /// A message that has the frame for itself.
    fn on_message(
        &mut self,
        lane: u32,
        header: &Header,
        buffer: u32,
        words: Words,
        body: Option<RemoteBody>,
    ) {
        let message = BufferedMessage {
            buffer,
            words,
            offset: PREFIX as u32,
            length: header.length,
            body,
        };
        self.link.frames.fill(buffer, 1);
        self.on_numbered(lane, header.sequence, message);
    }

    /// Several messages, the first of which has that number.
    fn on_batch(&mut self, lane: u32, sequence: u32, buffer: u32, entries: &[Entry]) {
        self.link.frames.fill(buffer, entries.len());
        for (number, entry) in (0..).zip(entries) {
            let message = BufferedMessage {
                buffer,
                words: entry.words,
                offset: entry.offset,
                length: entry.length,
                body: None,
            };
            self.on_numbered(lane, sequence.wrapping_add(number), message);
        }
    }

    /// A message with its number: in order it is to be read, early ones wait.
    fn on_numbered(&mut self, lane: u32, sequence: u32, message: BufferedMessage) {
        let Some(peer) = self.peers.get_mut(lane) else {
            return self.release(message.buffer);
        };
        let receiving = &mut peer.receiving;
        let ahead = sequence.wrapping_sub(receiving.arrived);
        if ahead >= WINDOW {
            // It arrived before, or its sender has exceeded its credit.
            self.counts.duplicates += 1;
            return self.release(message.buffer);
        }
        let mut twice = None;
        match ahead {
            0 => receiving.take_in_order(message),
            _ => twice = receiving.early.insert(sequence, message),
        }
        receiving.due.get_or_insert(self.clock.now + ACK_DELAY);
        if !receiving.early.is_empty() {
            self.peers.note_needed(lane);
        }
        if let Some(twice) = twice {
            self.counts.duplicates += 1;
            self.release(twice.buffer);
        }
        self.peers.list(lane);
        self.peers.make_readable(lane);
    }

    /// A message is no longer in that buffer, which is offered again once it was the last.
    fn release(&mut self, buffer: u32) {
        if self.link.frames.empty(buffer) {
            self.arrivals.unposted.push(buffer);
        }
    }

    /// The first message of that lane, which stays there.
    pub(crate) fn message_of(&self, lane: u32) -> Option<Arrival> {
        let peer = self.peers.get(lane)?;
        let Some(Item::Message(held)) = peer.receiving.inbox.front() else {
            return None;
        };
        let payload = match &held.body {
            Some(body) => Payload::Streamed(body.announced.length()),
            None => {
                let frame = self.link.frames.claim(held.buffer);
                Payload::Inline(frame.slice(u64::from(held.offset), u64::from(held.length)))
            }
        };
        Some(Arrival::Message(peer.origin(), held.words, payload))
    }

    /// The first message of that lane has been dealt with; the next is another's.
    pub(crate) fn finish_message(&mut self, lane: u32) {
        self.peers.take_turn(lane);
        let Some(peer) = self.peers.get_mut(lane) else {
            return;
        };
        let receiving = &mut peer.receiving;
        let Some(Item::Message(held)) = receiving.inbox.pop_front() else {
            return;
        };
        receiving.consumed = receiving.consumed.wrapping_add(1);
        let owes = receiving.is_ack_pending();
        self.release(held.buffer);
        if owes {
            self.peers.list(lane);
        }
        if let Some(body) = held.body {
            self.begin_stream(lane, body);
        }
        self.peers.make_readable(lane);
        self.remove_if_drained(lane);
    }

    /// Reports that a peer is lost, behind all that it has sent.
    pub(crate) fn take_loss(&mut self, lane: u32) -> Arrival {
        self.peers.take_turn(lane);
        let peer = self
            .peers
            .get_mut(lane)
            .expect("a lane that is ready has its peer");
        peer.receiving.inbox.pop_front();
        let process = peer.process;
        self.remove_if_drained(lane);
        Arrival::Lost(process)
    }

    /// Removes a peer of which nothing is left, and handles its successor's frames.
    pub(crate) fn remove_if_drained(&mut self, lane: u32) {
        let over = self.peers.get(lane).filter(|peer| peer.is_drained());
        if let Some(process) = over.map(|peer| peer.process) {
            self.remove_peer(lane);
            self.replay_deferred(process);
        }
    }

    pub(crate) fn remove_peer(&mut self, lane: u32) {
        let Some(peer) = self.peers.remove(lane) else {
            return;
        };
        if let Some(resolver) = &mut self.addresses.resolver {
            resolver.forget(peer.process);
        }
        if let Some(address) = peer.address {
            self.link.fabric.remove(address);
        }
    }

    fn replay_deferred(&mut self, process: ProcessId) {
        let deferred = std::mem::take(&mut self.arrivals.deferred);
        let (of_process, others) = deferred
            .into_iter()
            .partition(|(from, ..)| *from == process);
        self.arrivals.deferred = others;
        let of_process: Vec<_> = of_process;
        for (_, buffer, length) in of_process {
            self.on_frame(buffer, length);
        }
    }

    /// Nothing more is sent to a peer or accepted from it; what has arrived is still read.
    pub(crate) fn close_peer(&mut self, lane: u32) {
        let now = self.clock.now;
        let Some(peer) = self
            .peers
            .get_mut(lane)
            .filter(|peer| peer.closed_at.is_none())
        else {
            return;
        };
        peer.closed_at = Some(now);
        for body in peer.sending.end() {
            let returned = body.number().map(Arrival::Returned);
            self.arrivals.notices.extend(returned);
            drop_body(&mut self.link.registrations, body);
        }
        let early = std::mem::take(&mut peer.receiving.early);
        if peer.was_addressed {
            peer.receiving.inbox.push_back(Item::Lost);
        }
        if let Some(stream) = &mut peer.receiving.stream {
            stream.failure.get_or_insert(libc::ENOTCONN);
            self.end_stream_if_over(lane);
        }
        for message in early.into_values() {
            self.release(message.buffer);
        }
        self.peers.make_readable(lane);
        self.remove_if_drained(lane);
    }

    /// Closes a peer that is lost without having closed its side, and says why.
    pub(crate) fn lose_peer(&mut self, lane: u32, why: &str) {
        let peer = self.peers.get_mut(lane);
        if let Some(peer) = peer.filter(|peer| peer.closed_at.is_none() && peer.was_addressed) {
            (self.log)(&format!("process {} {why}", peer.process));
        }
        self.close_peer(lane);
    }

    /// An operation with that peer failed: what it carried is lost.
    pub(crate) fn on_error(&mut self, lane: u32, code: i32) {
        let why = format!(
            "can't be reached any more: {}",
            self.link.fabric.explain(code)
        );
        self.lose_peer(lane, &why);
    }
}

/// Whether `said` lies beyond `known`, and not beyond `limit`.
fn is_news(known: u32, said: u32, limit: u32) -> bool {
    let most = limit.wrapping_sub(known);
    (1..=most).contains(&said.wrapping_sub(known))
}

pub(crate) fn drop_body(registrations: &mut crate::registrations::Registrations, body: Body) {
    match body {
        Body::Bounce(copied) => registrations.give_back(copied),
        Body::Lent(holds, ..) => holds
            .into_iter()
            .for_each(|hold| registrations.release(hold)),
        Body::Void => {}
    }
}

#[cfg(test)]
mod tests {
    use super::is_news;

    #[test]
    fn a_count_is_news_once_and_only_of_what_was_sent() {
        assert!(is_news(3, 4, 5));
        assert!(!is_news(4, 4, 5));
        assert!(!is_news(4, 3, 5));
        assert!(!is_news(4, 6, 5));
        assert!(is_news(u32::MAX, 1, 2));
        assert!(!is_news(1, u32::MAX, 2));
    }
}
