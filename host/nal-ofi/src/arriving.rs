//! Frames that come, and the messages in them.

use crate::fabric::Posted;
use crate::frame::{Header, Kind, PREFIX, Prefix, Reject, read_table};
use crate::peer::{ACKNOWLEDGE, Body, Held, Item, Peer, WINDOW};
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
    Ended,
}

impl OfiNal {
    /// Offers the provider all buffers that hold nothing.
    pub(crate) fn offer_buffers(&mut self) {
        while let Some(buffer) = self.idle.pop() {
            let (place, descriptor) = (self.frames.claim(buffer), self.frames.descriptor());
            let operation = Operation::Receive(buffer);
            if self.fabric.receive(place, descriptor, operation) != Posted::Yes {
                self.idle.push(buffer);
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
            Ok((header, words)) => self.on_header(buffer, length, &header, words, &table),
            Err(reject) => {
                match reject {
                    Reject::Malformed => self.troubles.malformed += 1,
                    Reject::Forged => self.troubles.forged += 1,
                }
                self.idle.push(buffer);
            }
        }
    }

    fn on_header(
        &mut self,
        buffer: u32,
        length: usize,
        header: &Header,
        words: Words,
        table: &[u8],
    ) {
        let lane = match self.sender(header) {
            Sender::Known(lane) => lane,
            Sender::Successor => return self.parked.push((header.from, buffer, length)),
            Sender::Ended => {
                self.troubles.duplicates += 1;
                return self.idle.push(buffer);
            }
        };
        if !self.hear(lane, header) {
            return self.idle.push(buffer);
        }
        match header.kind {
            Kind::Inline | Kind::Announced => {
                let held = Held {
                    buffer,
                    words,
                    length: header.length,
                    announced: read_table(table),
                };
                return self.on_numbered(lane, header, held);
            }
            Kind::Status => {}
            Kind::Recall => self.on_recall(lane, header.recalled),
            Kind::Recalled => self.on_recalled(lane, header.recalled),
            Kind::Farewell => self.end(lane, "has ended"),
        }
        self.idle.push(buffer);
    }

    /// Takes what any frame says of its sender; false where it was for one who had
    /// this process's name before.
    fn hear(&mut self, lane: u32, header: &Header) -> bool {
        // A message goes only to whom its sender has heard.
        let is_ours = match header.to_incarnation {
            0 => !header.kind.is_message(),
            incarnation => incarnation == self.incarnation,
        };
        let Some(peer) = self.peers.get_mut(&lane) else {
            return false;
        };
        peer.uid = header.uid;
        peer.health.heard = self.now;
        peer.health.asks = 0;
        peer.sending.retry = None;
        // Who sends to a predecessor is to know.
        peer.receiving.is_asked |= header.asks || !is_ours;
        if peer.receiving.is_asked || !peer.sending.waiting.is_empty() {
            self.list(lane);
        }
        if !is_ours {
            self.troubles.misdirected += 1;
        } else if header.to_incarnation != 0 {
            // Who hasn't heard of this one yet can't have counted.
            self.on_counts(lane, header);
        }
        is_ours
    }

    fn sender(&mut self, header: &Header) -> Sender {
        let process = header.from;
        let buried = self.graves.get(&process);
        if buried.is_some_and(|buried| header.incarnation <= *buried) {
            return Sender::Ended;
        }
        let Some(lane) = self.by_process.get(&process).copied() else {
            if matches!(header.kind, Kind::Farewell | Kind::Recall | Kind::Recalled) {
                return Sender::Ended;
            }
            let lane = self.make_peer(process);
            return self.introduce(lane, header.incarnation);
        };
        let known = self.peers.get(&lane).map_or(0, |peer| peer.incarnation);
        match known {
            0 => self.introduce(lane, header.incarnation),
            known if known == header.incarnation => self.living(lane),
            known if known > header.incarnation => Sender::Ended,
            _ => {
                self.end(lane, "has been followed by another of its name");
                match self.by_process.contains_key(&process) {
                    true => Sender::Successor,
                    false => self.sender(header),
                }
            }
        }
    }

    fn living(&self, lane: u32) -> Sender {
        match self.peers.get(&lane) {
            Some(peer) if peer.ended.is_none() => Sender::Known(lane),
            _ => Sender::Ended,
        }
    }

    fn introduce(&mut self, lane: u32, incarnation: u64) -> Sender {
        match self.peers.get_mut(&lane) {
            // Given up for lost before it was ever heard.
            Some(peer) if peer.ended.is_some() => Sender::Successor,
            Some(peer) => {
                peer.incarnation = incarnation;
                Sender::Known(lane)
            }
            None => Sender::Ended,
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
            peer.health.moved = self.now;
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
    fn on_numbered(&mut self, lane: u32, header: &Header, held: Held) {
        let whole = header.kind == Kind::Inline || held.announced.is_some();
        let Some(peer) = self.peers.get_mut(&lane).filter(|_| whole) else {
            self.troubles.malformed += 1;
            return self.idle.push(held.buffer);
        };
        let receiving = &mut peer.receiving;
        let ahead = header.sequence.wrapping_sub(receiving.arrived);
        if ahead >= WINDOW {
            // It came before, or its sender doesn't keep to what there is room for.
            self.troubles.duplicates += 1;
            return self.idle.push(held.buffer);
        }
        if let Some(twice) = receiving.early.insert(header.sequence, held) {
            self.troubles.duplicates += 1;
            self.idle.push(twice.buffer);
        }
        while let Some(held) = receiving.early.remove(&receiving.arrived) {
            receiving.arrived = receiving.arrived.wrapping_add(1);
            receiving.inbox.push_back(Item::Message(held));
        }
        receiving.due.get_or_insert(self.now + ACKNOWLEDGE);
        self.list(lane);
        self.make_ready(lane);
    }

    /// Puts a peer into the list of those with something to read, if it is one.
    pub(crate) fn make_ready(&mut self, lane: u32) {
        if let Some(peer) = self.peers.get_mut(&lane) {
            if peer.is_readable() && !std::mem::replace(&mut peer.ready, true) {
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
        let owes = receiving.owes_now();
        self.idle.push(held.buffer);
        if owes {
            self.list(lane);
        }
        if let Some((pieces, _)) = held.announced {
            self.begin_stream(lane, pieces, place);
        }
        self.make_ready(lane);
        self.forget_if_over(lane);
    }

    /// Takes a lane from the list of those with something to read.
    fn take_turn(&mut self, lane: u32) {
        if self.ready.front() == Some(&lane) {
            self.ready.pop_front();
        }
        if let Some(peer) = self.peers.get_mut(&lane) {
            peer.ready = false;
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
        self.forget_if_over(lane);
        Arrival::Lost(process)
    }

    /// Forgets a peer of which nothing is left, and hears its successor.
    pub(crate) fn forget_if_over(&mut self, lane: u32) {
        let over = self.peers.get(&lane).filter(|peer| peer.is_over());
        if let Some(process) = over.map(|peer| peer.process) {
            self.forget(lane);
            self.unpark(process);
        }
    }

    pub(crate) fn forget(&mut self, lane: u32) {
        let Some(peer) = self.peers.remove(&lane) else {
            return;
        };
        self.by_process.remove(&peer.process);
        if let Some(inquiry) = &mut self.inquiry {
            inquiry.forget(peer.process);
        }
        if let Some(address) = peer.address {
            self.fabric.remove(address);
        }
        if peer.incarnation != 0 {
            self.graves.insert(peer.process, peer.incarnation);
        }
    }

    fn unpark(&mut self, process: ProcessId) {
        let parked = std::mem::take(&mut self.parked);
        let (of_process, others) = parked.into_iter().partition(|(from, ..)| *from == process);
        self.parked = others;
        let of_process: Vec<_> = of_process;
        for (_, buffer, length) in of_process {
            self.on_frame(buffer, length);
        }
    }

    /// Nothing more goes to a peer or comes from it; what has come is still read.
    pub(crate) fn end(&mut self, lane: u32, why: &str) {
        let now = self.now;
        let Some(peer) = self
            .peers
            .get_mut(&lane)
            .filter(|peer| peer.ended.is_none())
        else {
            return;
        };
        peer.ended = Some(now);
        for body in peer.sending.end() {
            drop_body(&mut self.registrations, body);
        }
        let early = std::mem::take(&mut peer.receiving.early);
        self.idle
            .extend(early.into_values().map(|held| held.buffer));
        if peer.called {
            peer.receiving.inbox.push_back(Item::Lost);
            let Peer { process, .. } = peer;
            (self.log)(&format!("process {:#x}/{} {why}", process.nid, process.pid));
        }
        if let Some(stream) = &mut peer.receiving.stream {
            stream.failure.get_or_insert(libc::ENOTCONN);
            self.end_stream_if_over(lane);
        }
        self.make_ready(lane);
        self.forget_if_over(lane);
    }

    /// An operation with that peer failed: what it carried is lost.
    pub(crate) fn on_error(&mut self, lane: u32, code: i32) {
        let why = format!("can't be reached any more: {}", self.fabric.explain(code));
        self.end(lane, &why);
    }
}

/// Whether `said` lies beyond `known`, and not beyond `limit`.
fn is_news(known: u32, said: u32, limit: u32) -> bool {
    let most = limit.wrapping_sub(known);
    (1..=most).contains(&said.wrapping_sub(known))
}

pub(crate) fn drop_body(registrations: &mut crate::registrations::Registrations, body: Body) {
    match body {
        Body::Copied(copied) => registrations.give_back(copied),
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
