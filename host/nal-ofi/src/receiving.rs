//! Frames that come, and the messages in them.

use crate::fabric::Posted;
use crate::frame::{Header, Kind, PREFIX, Prefix, Reject, read_table};
use crate::peer::{ACK_DELAY, Body, BufferedMessage, Item, Peer, WINDOW};
use crate::{OfiNal, Operation};
use lintel_nal::{Arrival, Payload};
use lintel_types::ProcessId;
use lintel_wire::Words;

/// Whose a frame is.
enum Sender {
    /// The peer on that lane, which lives.
    Known(u32),
    /// Of a process whose predecessor's messages are still unread.
    Successor,
    /// Of one that has ended, or was lost.
    Stale,
}

impl OfiNal {
    /// Offers the provider all buffers that hold nothing.
    pub(crate) fn offer_buffers(&mut self) {
        while let Some(buffer) = self.unposted.pop() {
            let (place, descriptor) = (self.frames.claim(buffer), self.frames.descriptor());
            let operation = Operation::Receive(buffer);
            if self.fabric.receive(place, descriptor, operation) != Posted::Yes {
                self.unposted.push(buffer);
                return;
            }
        }
    }

    pub(crate) fn on_frame(&mut self, buffer: u32, length: usize) {
        let mut prefix: Prefix = [0; PREFIX];
        let frame = self.frames.claim(buffer).slice(0, length as u64);
        frame.read(&mut prefix);
        let mut table = Vec::new();
        let read = self.seal.read(self.me, &prefix, length, || {
            table = vec![0; length - PREFIX];
            frame.slice(PREFIX as u64, u64::MAX).read(&mut table);
            table.clone()
        });
        match read {
            Ok((header, words)) => self.dispatch(buffer, length, &header, words, &table),
            Err(reject) => {
                match reject {
                    Reject::Malformed => self.counts.malformed += 1,
                    Reject::Forged => self.counts.forged += 1,
                }
                self.unposted.push(buffer);
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
            Sender::Known(lane) => lane,
            Sender::Successor => return self.deferred.push((header.from, buffer, length)),
            Sender::Stale => {
                self.counts.duplicates += 1;
                return self.unposted.push(buffer);
            }
        };
        if !self.on_header(lane, header) {
            return self.unposted.push(buffer);
        }
        match header.kind {
            Kind::Inline | Kind::Rendezvous => {
                let held = BufferedMessage {
                    buffer,
                    words,
                    length: header.length,
                    announced: read_table(table),
                };
                return self.on_numbered(lane, header, held);
            }
            Kind::Status => {}
            Kind::Recall => self.on_recall(lane, header.recalled),
            Kind::RecallAck => self.on_recalled(lane, header.recalled),
            Kind::Close => self.close_peer(lane, "has ended"),
        }
        self.unposted.push(buffer);
    }

    /// Takes what any frame says of its sender; false where it was for one who had
    /// this process's name before.
    fn on_header(&mut self, lane: u32, header: &Header) -> bool {
        // A message goes only to whom its sender has heard.
        let is_ours = match header.to_incarnation {
            0 => !header.kind.is_message(),
            incarnation => incarnation == self.incarnation,
        };
        let Some(peer) = self.peers.get_mut(&lane) else {
            return false;
        };
        peer.uid = header.uid;
        peer.health.last_heard = self.now;
        peer.health.probes = 0;
        peer.sending.retry = None;
        // Who sends to a predecessor is to know.
        peer.receiving.ack_requested |= header.ack_requested || !is_ours;
        if peer.receiving.ack_requested || !peer.sending.queue.is_empty() {
            self.list(lane);
        }
        if !is_ours {
            self.counts.misdirected += 1;
        } else if header.to_incarnation != 0 {
            // Who hasn't heard of this one yet can't have counted.
            self.on_counts(lane, header);
        }
        is_ours
    }

    fn sender(&mut self, header: &Header) -> Sender {
        let process = header.from;
        let dead = self.tombstones.get(&process);
        if dead.is_some_and(|dead| header.incarnation <= *dead) {
            return Sender::Stale;
        }
        let Some(lane) = self.by_process.get(&process).copied() else {
            if matches!(header.kind, Kind::Close | Kind::Recall | Kind::RecallAck) {
                return Sender::Stale;
            }
            let lane = self.add_peer(process);
            return self.on_first_incarnation(lane, header.incarnation);
        };
        let known = self.peers.get(&lane).map_or(0, |peer| peer.incarnation);
        match known {
            0 => self.on_first_incarnation(lane, header.incarnation),
            known if known == header.incarnation => self.if_alive(lane),
            known if known > header.incarnation => Sender::Stale,
            _ => {
                self.close_peer(lane, "has been followed by another of its name");
                match self.by_process.contains_key(&process) {
                    true => Sender::Successor,
                    false => self.sender(header),
                }
            }
        }
    }

    fn if_alive(&self, lane: u32) -> Sender {
        match self.peers.get(&lane) {
            Some(peer) if peer.closed_at.is_none() => Sender::Known(lane),
            _ => Sender::Stale,
        }
    }

    fn on_first_incarnation(&mut self, lane: u32, incarnation: u64) -> Sender {
        match self.peers.get_mut(&lane) {
            // Given up for lost before it was ever heard.
            Some(peer) if peer.closed_at.is_some() => Sender::Successor,
            Some(peer) => {
                peer.incarnation = incarnation;
                Sender::Known(lane)
            }
            None => Sender::Stale,
        }
    }

    /// Takes what the peer says of messages to it, where it is news.
    fn on_counts(&mut self, lane: u32, header: &Header) {
        let Some(peer) = self.peers.get_mut(&lane) else {
            return;
        };
        let sending = &mut peer.sending;
        let sent = sending.sequence;
        if is_news(sending.arrived, header.arrived, sent) {
            sending.arrived = header.arrived;
            peer.health.last_progress = self.now;
        }
        if is_news(sending.consumed, header.consumed, sent) {
            sending.consumed = header.consumed;
        }
        let bodies = sending.fetched.wrapping_add(sending.bodies.len() as u32);
        while is_news(sending.fetched, header.fetched, bodies) {
            sending.fetched = sending.fetched.wrapping_add(1);
            match sending.pop_body() {
                Some(body) => drop_body(&mut self.registrations, body),
                None => break,
            }
        }
    }

    /// A message with its number: in order it is to be read, early ones wait.
    fn on_numbered(&mut self, lane: u32, header: &Header, held: BufferedMessage) {
        let whole = header.kind == Kind::Inline || held.announced.is_some();
        let Some(peer) = self.peers.get_mut(&lane).filter(|_| whole) else {
            self.counts.malformed += 1;
            return self.unposted.push(held.buffer);
        };
        let receiving = &mut peer.receiving;
        let ahead = header.sequence.wrapping_sub(receiving.arrived);
        if ahead >= WINDOW {
            // It came before, or its sender doesn't keep to what there is room for.
            self.counts.duplicates += 1;
            return self.unposted.push(held.buffer);
        }
        if let Some(twice) = receiving.early.insert(header.sequence, held) {
            self.counts.duplicates += 1;
            self.unposted.push(twice.buffer);
        }
        while let Some(held) = receiving.early.remove(&receiving.arrived) {
            receiving.arrived = receiving.arrived.wrapping_add(1);
            receiving.inbox.push_back(Item::Message(held));
        }
        receiving.due.get_or_insert(self.now + ACK_DELAY);
        self.list(lane);
        self.make_ready(lane);
    }

    /// Puts a peer into the list of those with something to read, if it is one.
    pub(crate) fn make_ready(&mut self, lane: u32) {
        if let Some(peer) = self.peers.get_mut(&lane) {
            if peer.is_readable() && !std::mem::replace(&mut peer.is_ready, true) {
                self.ready.push_back(lane);
            }
        }
    }

    /// The first message of that lane, which stays there.
    pub(crate) fn message_of(&self, lane: u32) -> Option<Arrival> {
        let peer = self.peers.get(&lane)?;
        let Some(Item::Message(held)) = peer.receiving.inbox.front() else {
            return None;
        };
        let payload = match &held.announced {
            Some((_, length)) => Payload::Streamed(*length),
            None => {
                let frame = self.frames.claim(held.buffer);
                Payload::Inline(frame.slice(PREFIX as u64, u64::from(held.length)))
            }
        };
        Some(Arrival::Message(peer.origin(), held.words, payload))
    }

    /// The first message of that lane has been dealt with; the next is another's.
    pub(crate) fn finish_message(&mut self, lane: u32) {
        self.take_turn(lane);
        let Some(peer) = self.peers.get_mut(&lane) else {
            return;
        };
        let receiving = &mut peer.receiving;
        let place = receiving.place.take();
        let Some(Item::Message(held)) = receiving.inbox.pop_front() else {
            return;
        };
        receiving.consumed = receiving.consumed.wrapping_add(1);
        let owes = receiving.is_ack_pending();
        self.unposted.push(held.buffer);
        if owes {
            self.list(lane);
        }
        if let Some((pieces, _)) = held.announced {
            self.begin_stream(lane, pieces, place);
        }
        self.make_ready(lane);
        self.remove_if_drained(lane);
    }

    /// Takes a lane from the list of those with something to read.
    fn take_turn(&mut self, lane: u32) {
        if self.ready.front() == Some(&lane) {
            self.ready.pop_front();
        }
        if let Some(peer) = self.peers.get_mut(&lane) {
            peer.is_ready = false;
        }
    }

    /// Tells that a peer is lost, behind all that it has sent.
    pub(crate) fn take_loss(&mut self, lane: u32) -> Arrival {
        self.take_turn(lane);
        let peer = self
            .peers
            .get_mut(&lane)
            .expect("a lane that is ready has its peer");
        peer.receiving.inbox.pop_front();
        let process = peer.process;
        self.remove_if_drained(lane);
        Arrival::Lost(process)
    }

    /// Forgets a peer of which nothing is left, and hears its successor.
    pub(crate) fn remove_if_drained(&mut self, lane: u32) {
        let over = self.peers.get(&lane).filter(|peer| peer.is_drained());
        if let Some(process) = over.map(|peer| peer.process) {
            self.remove_peer(lane);
            self.replay_deferred(process);
        }
    }

    pub(crate) fn remove_peer(&mut self, lane: u32) {
        let Some(peer) = self.peers.remove(&lane) else {
            return;
        };
        self.by_process.remove(&peer.process);
        if let Some(resolver) = &mut self.resolver {
            resolver.forget(peer.process);
        }
        if let Some(address) = peer.address {
            self.fabric.remove(address);
        }
        if peer.incarnation != 0 {
            self.tombstones.insert(peer.process, peer.incarnation);
        }
    }

    fn replay_deferred(&mut self, process: ProcessId) {
        let deferred = std::mem::take(&mut self.deferred);
        let (of_process, others) = deferred
            .into_iter()
            .partition(|(from, ..)| *from == process);
        self.deferred = others;
        let of_process: Vec<_> = of_process;
        for (_, buffer, length) in of_process {
            self.on_frame(buffer, length);
        }
    }

    /// Nothing more goes to a peer or comes from it; what has come is still read.
    pub(crate) fn close_peer(&mut self, lane: u32, why: &str) {
        let now = self.now;
        let Some(peer) = self
            .peers
            .get_mut(&lane)
            .filter(|peer| peer.closed_at.is_none())
        else {
            return;
        };
        peer.closed_at = Some(now);
        for body in peer.sending.end() {
            drop_body(&mut self.registrations, body);
        }
        let early = std::mem::take(&mut peer.receiving.early);
        self.unposted
            .extend(early.into_values().map(|held| held.buffer));
        if peer.was_addressed {
            peer.receiving.inbox.push_back(Item::Lost);
            let Peer { process, .. } = peer;
            (self.log)(&format!("process {:#x}/{} {why}", process.nid, process.pid));
        }
        if let Some(stream) = &mut peer.receiving.stream {
            stream.failure.get_or_insert(libc::ENOTCONN);
            self.end_stream_if_over(lane);
        }
        self.make_ready(lane);
        self.remove_if_drained(lane);
    }

    /// An operation with that peer failed: what it carried is lost.
    pub(crate) fn on_error(&mut self, lane: u32, code: i32) {
        let why = format!("can't be reached any more: {}", self.fabric.explain(code));
        self.close_peer(lane, &why);
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
        Body::Lent(holds, _) => holds
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
