//! Messages to be sent.

use crate::fabric::{Posted, Use};
use crate::frame::{ENTRY, Header, Kind, MAX_PIECES, Piece, write_entry, write_table};
use crate::peer::{Body, HANDSHAKE_BACKOFF, Peer, QUERY_INTERVAL, Queued};
use crate::{OfiNal, Operation};
use lintel_claim::{Claim, Lent, copy_checked, copy_vectored};
use lintel_memory::length;
use lintel_nal::{Arrival, Outgoing, Unreachable};
use lintel_types::ProcessId;
use lintel_wire::{OPERAND_BYTES, WORDS, Words};
use std::time::Instant;

/// The bytes behind a message's words.
#[derive(Clone, Copy)]
pub(crate) enum Bytes<'a> {
    /// The user's: an operand, then pieces of memory.
    User(Option<&'a [u8; OPERAND_BYTES]>, &'a [Claim]),
    /// Copies, behind the table of a body or a batch if there is one.
    Own(&'a [&'a [u8]]),
}

/// A frame to be sent.
pub(crate) struct Draft<'a> {
    kind: Kind,
    ack_requested: bool,
    /// Messages in it.
    messages: u8,
    words: &'a Words,
    bytes: Bytes<'a>,
}

impl<'a> Draft<'a> {
    /// One without a payload.
    pub(crate) fn bare(kind: Kind) -> Draft<'a> {
        Draft {
            kind,
            ack_requested: false,
            messages: 0,
            words: &[0; WORDS],
            bytes: Bytes::Own(&[]),
        }
    }

    fn message(kind: Kind, words: &'a Words, bytes: Bytes<'a>) -> Draft<'a> {
        Draft {
            kind,
            ack_requested: false,
            messages: 1,
            words,
            bytes,
        }
    }

    /// Messages of such bytes, behind their table.
    fn batch(messages: usize, parts: &'a [&'a [u8]]) -> Draft<'a> {
        Draft {
            messages: messages as u8,
            bytes: Bytes::Own(parts),
            ..Draft::bare(Kind::Batch)
        }
    }
}

impl Bytes<'_> {
    fn length(self) -> u64 {
        match self {
            Bytes::User(operand, pieces) => {
                operand.map_or(0, |operand| operand.len() as u64) + length(pieces)
            }
            Bytes::Own(parts) => parts.iter().map(|part| part.len() as u64).sum(),
        }
    }

    /// Copies them, which is when an application's bytes are read.
    fn copy_to(self, to: Claim) {
        match self {
            Bytes::User(operand, pieces) => {
                let ahead = operand.map_or(0, |operand| to.write(operand)) as u64;
                copy_vectored(pieces, &[to.slice(ahead, u64::MAX)]);
            }
            Bytes::Own(parts) => {
                let mut at = 0;
                for part in parts {
                    at += to.slice(at, u64::MAX).write(part) as u64;
                }
            }
        }
    }

    fn to_vec(self) -> Vec<u8> {
        match self {
            Bytes::User(operand, pieces) => {
                let mut bytes = operand.map_or_else(Vec::new, |operand| operand.to_vec());
                for piece in pieces {
                    let at = bytes.len();
                    bytes.resize(at + piece.len() as usize, 0);
                    piece.read(&mut bytes[at..]);
                }
                bytes
            }
            Bytes::Own(parts) => parts.concat(),
        }
    }
}

impl OfiNal {
    pub(crate) fn send_message(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        let lane = self.lane_to(to)?;
        match body {
            Outgoing::Copied { operand, pieces } => {
                let bytes = Bytes::User(operand, pieces);
                if bytes.length() <= self.link.frames.eager() {
                    self.send_or_queue(lane, Kind::Inline, words, bytes);
                    return Ok(());
                }
                self.announce_copy(lane, words, bytes)
            }
            Outgoing::LentToRead(lent) => {
                if lent.len() <= self.link.frames.eager() {
                    let bytes = Bytes::User(None, lent.pieces());
                    self.send_or_queue(lane, Kind::Inline, words, bytes);
                    return Ok(());
                }
                if !self.link.fabric.traits().cancels_reads {
                    let bytes = Bytes::User(None, lent.pieces());
                    return self.announce_copy(lane, words, bytes);
                }
                self.announce_lent(lane, words, lent, None)
            }
            // To be filled by an answer: memory that may not be there can be sent
            // from by the kernel only, which checks, and so isn't written from here.
            Outgoing::LentToFill(_) => {
                self.send_or_queue(lane, Kind::Inline, words, Bytes::Own(&[]));
                Ok(())
            }
        }
    }

    /// Sends a long message from its place, unless the provider can't be kept from reading it.
    pub(crate) fn send_message_lent(
        &mut self,
        to: ProcessId,
        words: &Words,
        lent: Lent<'_>,
        number: u64,
    ) -> Result<bool, Unreachable> {
        let is_better =
            lent.len() > self.link.frames.eager() && self.link.fabric.traits().cancels_reads;
        if is_better {
            let lane = self.lane_to(to)?;
            self.announce_lent(lane, words, lent, Some(number))?;
        }
        Ok(is_better)
    }

    /// The lane of a peer that is to get a message.
    #[inline]
    fn lane_to(&mut self, process: ProcessId) -> Result<u32, Unreachable> {
        if self.clock.may_have_slept.replace(false) {
            self.clock.now = Instant::now();
        }
        let lane = match self.peers.lane_of(process) {
            Some(lane) => lane,
            None => self.connect(process)?,
        };
        let peer = self.peers.get_mut(lane).ok_or(Unreachable)?;
        if peer.closed_at.is_some() || !peer.may_be_reached() {
            return Err(Unreachable);
        }
        peer.was_addressed = true;
        Ok(lane)
    }

    #[cold]
    fn connect(&mut self, process: ProcessId) -> Result<u32, Unreachable> {
        if process == self.local.me {
            return Err(Unreachable);
        }
        let lane = self.add_peer(process);
        if self.peers.get(lane).is_some_and(Peer::may_be_reached) {
            self.addresses.last_unreachable = None;
            return Ok(lane);
        }
        self.remove_peer(lane);
        if self.addresses.last_unreachable.replace(process) != Some(process) {
            (self.log)(&format!(
                "no way to process {process}: {}",
                self.addresses.directory.limits()
            ));
        }
        Err(Unreachable)
    }

    pub(crate) fn add_peer(&mut self, process: ProcessId) -> u32 {
        self.clock.now = Instant::now();
        let peer = self.peers.add(process, self.clock.now);
        let lane = peer.lane;
        let address = self.addresses.directory.find(process);
        peer.address = address.and_then(|address| self.link.fabric.insert(&address));
        if peer.address.is_none()
            && process.nid != self.local.me.nid
            && self.addresses.resolver.is_some()
        {
            peer.next_query = Some(self.clock.now);
        }
        let asks = peer.next_query.is_some();
        if asks {
            self.peers.list(lane);
        }
        lane
    }

    /// Queries a peer's address, if that is due.
    pub(crate) fn query_address(&mut self, lane: u32) {
        let (now, me) = (self.clock.now, self.local.me);
        let peer = self
            .peers
            .get_mut(lane)
            .filter(|peer| peer.next_query.is_some_and(|at| at <= now));
        if let (Some(peer), Some(resolver)) = (peer, &mut self.addresses.resolver) {
            resolver.query(me, peer.process);
            peer.next_query = Some(now + QUERY_INTERVAL);
        }
    }

    /// Takes addresses that were queried.
    pub(crate) fn poll_addresses(&mut self) {
        while let Some((process, address)) = self
            .addresses
            .resolver
            .as_mut()
            .and_then(|i| i.poll(self.local.me))
        {
            let address = self.link.fabric.insert(&address);
            let lane = self.peers.lane_of(process).unwrap_or_default();
            if let Some(peer) = self
                .peers
                .get_mut(lane)
                .filter(|peer| peer.address.is_none())
            {
                peer.address = address;
                peer.next_query = None;
                peer.sending.retry = None;
                self.peers.list(lane);
            }
        }
    }

    /// A long body stays in place, and the peer reads it; its return is reported if it has a
    /// number.
    fn announce_lent(
        &mut self,
        lane: u32,
        words: &Words,
        lent: Lent<'_>,
        number: Option<u64>,
    ) -> Result<(), Unreachable> {
        let pieces = lent.pieces();
        let held = pieces.iter().filter(|piece| !piece.is_empty());
        if held.clone().count() > MAX_PIECES {
            return self.announce_copy_of(lane, words, pieces, number);
        }
        let (mut holds, mut table) = (Vec::new(), Vec::new());
        for piece in held {
            let hold = self
                .link
                .registrations
                .hold(&mut self.link.fabric, *piece, Use::Lent);
            let Ok(hold) = hold else {
                holds
                    .drain(..)
                    .for_each(|hold| self.link.registrations.release(hold));
                return self.announce_copy_of(lane, words, pieces, number);
            };
            holds.push(hold);
            table.extend(self.link.registrations.piece(hold, *piece));
        }
        self.announce(lane, words, Body::Lent(holds, lent.keep(), number), &table);
        Ok(())
    }

    /// The peer reads a copy of what was lent, which is returned at once.
    fn announce_copy_of(
        &mut self,
        lane: u32,
        words: &Words,
        pieces: &[Claim],
        number: Option<u64>,
    ) -> Result<(), Unreachable> {
        self.announce_copy(lane, words, Bytes::User(None, pieces))?;
        let returned = number.map(Arrival::Returned);
        self.arrivals.notices.extend(returned);
        Ok(())
    }

    /// If the bytes may be overwritten at once, the peer reads a copy. Memory that couldn't
    /// be registered may not be there: so the kernel checks.
    fn announce_copy(
        &mut self,
        lane: u32,
        words: &Words,
        bytes: Bytes<'_>,
    ) -> Result<(), Unreachable> {
        let length = bytes.length();
        let copied = self
            .link
            .registrations
            .bounce_buffer(&mut self.link.fabric, length);
        let copied = copied.map_err(|code| self.refuse(lane, code))?;
        match bytes {
            Bytes::User(None, pieces) if copy_checked(pieces, &[copied.claim()]).is_ok() => {}
            bytes => bytes.copy_to(copied.claim()),
        }
        let piece = copied.piece(length);
        self.announce(lane, words, Body::Bounce(copied), &[piece]);
        Ok(())
    }

    #[cold]
    fn refuse(&mut self, lane: u32, code: i32) -> Unreachable {
        let process = self.peers.get(lane).map(|peer| peer.process);
        (self.log)(&format!(
            "a message to {process:?} couldn't be sent: {} refuses memory for its copy: {}; \
             see ulimit -l, or send shorter ones",
            self.link.fabric.name(),
            self.link.fabric.explain(code)
        ));
        Unreachable
    }

    fn announce(&mut self, lane: u32, words: &Words, body: Body, table: &[Piece]) {
        if let Some(peer) = self.peers.get_mut(lane) {
            peer.sending.push_body(body);
            self.send_or_queue(
                lane,
                Kind::Rendezvous,
                words,
                Bytes::Own(&[&write_table(table)]),
            );
        }
    }

    #[inline]
    fn send_or_queue(&mut self, lane: u32, kind: Kind, words: &Words, bytes: Bytes<'_>) {
        self.peers.note_needed(lane);
        let Some(peer) = self.peers.get_mut(lane) else {
            return;
        };
        let limits = self.link.frames.coalescing();
        let waits = peer.may_coalesce(limits, kind, bytes.length());
        let sending = &mut peer.sending;
        let is_first = peer.history.current().is_some() && sending.queue.is_empty();
        if is_first && !waits && sending.has_credit() {
            match self.post(lane, Draft::message(kind, words, bytes)) {
                Posted::Yes => return,
                Posted::Later => {}
                Posted::No(code) => return self.on_error(lane, code),
            }
        }
        let Some(peer) = self.peers.get_mut(lane) else {
            return;
        };
        peer.sending.push_queued(Queued {
            kind,
            words: *words,
            payload: bytes.to_vec(),
        });
        self.is_coalescing = waits;
        self.peers.list(lane);
    }

    /// Sends what waited for credit, or for more.
    pub(crate) fn send_queued(&mut self, lane: u32) {
        while let Some(peer) = self.peers.get_mut(lane) {
            let known = peer.is_known();
            let sending = &mut peer.sending;
            let early = sending.retry.is_some_and(|(at, _)| at > self.clock.now);
            if peer.closed_at.is_some()
                || early
                || !sending.has_credit()
                || sending.queue.is_empty()
            {
                return;
            }
            if !known {
                peer.back_off(self.clock.now);
                return self.send_status(lane, true);
            }
            let frame = sending.pop_frame(self.link.frames.coalescing());
            let posted = self.post_queued(lane, &frame);
            let Some(peer) = self.peers.get_mut(lane) else {
                return;
            };
            match posted {
                Posted::Yes => peer.sending.retry = None,
                Posted::Later => {
                    for message in frame.into_iter().rev() {
                        peer.sending.put_back(message);
                    }
                    return peer.back_off(self.clock.now);
                }
                Posted::No(code) => return self.on_error(lane, code),
            }
        }
    }

    /// Sends messages that waited, in one frame.
    fn post_queued(&mut self, lane: u32, messages: &[Queued]) -> Posted {
        if let [one] = messages {
            let bytes = &[&one.payload[..]];
            return self.post(
                lane,
                Draft::message(one.kind, &one.words, Bytes::Own(bytes)),
            );
        }
        let mut table = Vec::with_capacity(messages.len() * ENTRY);
        for message in messages {
            write_entry(&mut table, &message.words, message.payload.len());
        }
        let payloads = messages.iter().map(|message| &message.payload[..]);
        let parts: Vec<&[u8]> = std::iter::once(&table[..]).chain(payloads).collect();
        self.post(lane, Draft::batch(messages.len(), &parts))
    }

    /// Sends the counts alone: an acknowledgement, or a probe.
    pub(crate) fn send_status(&mut self, lane: u32, ack_requested: bool) {
        let status = Draft {
            ack_requested,
            ..Draft::bare(Kind::Status)
        };
        let posted = self.post(lane, status);
        if let Posted::No(code) = posted {
            self.on_error(lane, code);
        }
    }

    /// Writes a frame and gives it to the fabric.
    #[inline]
    pub(crate) fn post(&mut self, lane: u32, draft: Draft<'_>) -> Posted {
        let Some(peer) = self.peers.get(lane) else {
            return Posted::No(libc::EHOSTUNREACH);
        };
        let Some(address) = peer.address else {
            return peer
                .next_query
                .map_or(Posted::No(libc::EHOSTUNREACH), |_| Posted::Later);
        };
        let Some(buffer) = self.link.frames.take() else {
            return Posted::Later;
        };
        let frame = self.write_frame(buffer, peer, &draft);
        let injected = frame.len() <= self.link.fabric.traits().inject as u64;
        let posted = if injected {
            self.link.fabric.inject(address, frame)
        } else {
            let operation = Operation::Send(buffer, lane);
            self.link
                .fabric
                .send(address, frame, self.link.frames.descriptor(), operation)
        };
        if injected || posted != Posted::Yes {
            self.link.frames.give_back(buffer);
        }
        if let (Posted::Yes, Some(peer)) = (posted, self.peers.get_mut(lane)) {
            peer.on_posted(draft.messages, self.clock.now);
        }
        posted
    }

    /// A whole frame in its buffer.
    #[inline]
    fn write_frame(&self, buffer: u32, peer: &Peer, draft: &Draft<'_>) -> Claim {
        let Draft { kind, bytes, .. } = *draft;
        let [arrived, consumed, fetched] = peer.receiving.counts();
        let limits = self.link.frames.coalescing();
        let header = Header {
            kind,
            ack_requested: draft.ack_requested || peer.sending.requests_ack(limits, draft.messages),
            messages: draft.messages,
            length: bytes.length() as u32,
            from: self.local.me,
            uid: self.local.uid,
            sequence: peer.sending.sequence,
            incarnation: self.local.incarnation.get(),
            to_incarnation: peer.history.current_number(),
            arrived,
            consumed,
            fetched,
            recalled: peer.next_recalled(kind).unwrap_or_default(),
        };
        let table = match (kind, bytes) {
            (Kind::Rendezvous | Kind::Batch, Bytes::Own([table, ..])) => table,
            _ => &[][..],
        };
        let seal = &self.local.seal;
        let prefix = &seal.write(peer.process, &header, draft.words, table)[..kind.prefix()];
        let frame = self.link.frames.claim(buffer);
        frame.write(prefix);
        bytes.copy_to(frame.slice(prefix.len() as u64, u64::MAX));
        frame.slice(0, prefix.len() as u64 + u64::from(header.length))
    }

    pub(crate) fn send_close(&mut self) {
        let living = self.peers.iter().filter(|peer| peer.closed_at.is_none());
        for lane in living.map(|peer| peer.lane).collect::<Vec<_>>() {
            self.post(lane, Draft::bare(Kind::Close));
        }
    }
}

impl Peer {
    /// Whether its address is known, or will be.
    fn may_be_reached(&self) -> bool {
        self.address.is_some() || self.next_query.is_some()
    }

    /// Whether it has been heard. Before that no message is sent to it: what a process of
    /// its name took and died of, its successor would miss for ever.
    fn is_known(&self) -> bool {
        self.history.current().is_some()
    }

    /// A frame was sent, and with it the counts.
    #[inline]
    fn on_posted(&mut self, messages: u8, now: Instant) {
        self.receiving.acked = self.receiving.counts();
        self.receiving.due = None;
        self.receiving.ack_requested = false;
        if messages > 0 {
            if self.sending.arrived == self.sending.sequence {
                self.health.last_progress = now;
            }
            self.sending.sequence = self.sending.sequence.wrapping_add(messages.into());
        }
    }

    /// A peer that has answered lacks only room at the moment. For one that hasn't, a
    /// connection is tried with exponential backoff.
    fn back_off(&mut self, now: Instant) {
        if self.is_known() {
            self.sending.retry = None;
            return;
        }
        let [shortest, longest] = HANDSHAKE_BACKOFF;
        let last = self.sending.retry.map_or(shortest / 2, |(_, pause)| pause);
        let pause = (last * 2).min(longest);
        self.sending.retry = Some((now + pause, pause));
    }
}
