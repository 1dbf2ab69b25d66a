//! What arrives: requests land where the engine says, replies go to the operation that
//! awaits them. Bytes are moved by the owner's [`Mover`].

use crate::mover::{Extent, MoveParts, Mover, Source};
use crate::portals3::names::from_network;
use crate::portals3::owner::Owner3;
use crate::portals3::state::{Portals3, Sender};
use crate::streams::Place;
use crate::transports::Transports;
use lintel_claim::{Claim, Region, copy_vectored};
use lintel_engine3::{Landed, PendingReply};
use lintel_memory::{Pieces, Span};
use lintel_nal::{Origin, Outgoing, Payload};
use lintel_types::NiFail;
use lintel_wire::Words;
use lintel_wire::portals3::{Request, Response, Verb};

/// A stream, from its announcement until it is whole or broken.
pub(crate) struct Stream<S> {
    target: StreamTarget,
    /// The buffer that the bytes come into first, and where they go from there.
    staged: Option<(Region, Pieces<S>)>,
}

/// The operation that a stream belongs to.
enum StreamTarget {
    /// The stream is the body of a request.
    Request(Landed),
    /// The stream is the body of a reply.
    Reply(PendingReply),
}

/// Bytes up to which a reply isn't worth a loan.
const SHORT_REPLY: u64 = 4096;

impl<O: Owner3> Portals3<O> {
    #[inline]
    pub(crate) fn on_request(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        request: &Request,
        payload: Payload,
    ) {
        let Some((interface, mut effects)) = self.interface(transports) else {
            return refuse(transports, origin, request);
        };
        let from = from_network(origin.process);
        let accepted = match interface.accept(from, origin.uid, request) {
            Ok(accepted) => accepted,
            Err(Some(response)) => return respond(transports, origin, &response),
            Err(None) => return,
        };
        let (pieces, landed) =
            interface.begin_landing(accepted, from, origin.uid, request, &mut effects);
        match payload {
            // Most requests: at once, so that nothing of the landing has to be moved.
            Payload::Inline(bytes) if request.verb == Verb::Put => {
                let fail = O::Mover::deposit(effects.owner, bytes, &pieces, (&landed).into());
                if let Some(response) = landed.response(fail) {
                    respond(effects.transports, origin, &response);
                }
                interface.on_landed(landed, fail, &mut effects);
            }
            payload => self.land(transports, origin, pieces, landed, payload),
        }
    }

    /// Lands a put whose bytes came with it in one step; false if it takes more.
    #[inline(always)]
    pub(crate) fn deliver_put(
        &mut self,
        transports: &mut Transports,
        (origin, sender): (Origin, Sender),
        put: &Request,
        body: Claim,
    ) -> bool {
        let Some((interface, mut effects)) = self.interface(transports) else {
            return false;
        };
        let owner = effects.owner;
        let delivered = interface.deliver(
            sender.name,
            origin.uid,
            put,
            #[inline(always)]
            |span: O::Span, is_accessible| {
                let length = span.length();
                let extent = Extent {
                    length,
                    is_accessible,
                };
                O::Mover::deposit(owner, body, &Pieces::One(span), extent)
            },
            &mut effects,
        );
        match delivered {
            Some(delivered) => {
                if let Some(response) = delivered.response {
                    respond(transports, origin, &response);
                }
                true
            }
            None => false,
        }
    }

    /// Ends a put that was acknowledged in one step; false if it takes more.
    #[inline(always)]
    pub(crate) fn deliver_acknowledgement(
        &mut self,
        transports: &mut Transports,
        sender: Sender,
        words: &Words,
    ) -> bool {
        let Some(response) = Response::parse_acknowledgement(words) else {
            return false;
        };
        let opened = self.interface(transports);
        opened.is_some_and(|(interface, mut effects)| {
            interface.deliver_acknowledgement(sender.name, &response, &mut effects)
        })
    }

    #[inline(always)]
    fn land(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        pieces: Pieces<O::Span>,
        landed: Landed,
        payload: Payload,
    ) {
        let fail = match (landed.request().verb, payload) {
            (Verb::Put, Payload::Lent(loan)) if landed.mlength() > 0 => {
                let parts = self.move_parts(transports);
                O::Mover::fetch(parts, origin, &loan, pieces.as_slice())
            }
            (Verb::Put, Payload::Streamed(announced)) => {
                return self.land_stream(transports, origin, (pieces, announced), landed);
            }
            // Without bytes; inline ones have landed.
            (Verb::Put, _) => NiFail::Ok,
            (Verb::Get, payload) => {
                return self.answer_get(transports, origin, &pieces, landed, payload);
            }
            (Verb::GetPut, Payload::Inline(bytes)) => {
                return self.exchange(transports, origin, bytes, &pieces, landed);
            }
            (Verb::GetPut, _) => NiFail::OpViolation,
        };
        self.finish_landing(transports, origin, landed, fail);
    }

    fn finish_landing(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        landed: Landed,
        fail: NiFail,
    ) {
        if let Some(response) = landed.response(fail) {
            respond(transports, origin, &response);
        }
        self.post_landed(transports, landed, fail);
    }

    pub(crate) fn post_landed(
        &mut self,
        transports: &mut Transports,
        landed: Landed,
        fail: NiFail,
    ) {
        if let Some((interface, mut effects)) = self.interface(transports) {
            interface.on_landed(landed, fail, &mut effects);
        }
    }

    fn move_parts<'a>(&'a mut self, transports: &'a mut Transports) -> MoveParts<'a, O> {
        MoveParts {
            memory: &self.owner,
            transports,
            pool: &mut self.staged.pool,
        }
    }

    /// Answers a get: into the initiator's memory if that was lent, else with the bytes in
    /// the reply.
    fn answer_get(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        pieces: &Pieces<O::Span>,
        landed: Landed,
        payload: Payload,
    ) {
        let Some(mut response) = landed.response(NiFail::Ok) else {
            return self.post_landed(transports, landed, NiFail::Ok);
        };
        let Payload::Lent(loan) = payload else {
            return self.reply_from(transports, origin, pieces, landed);
        };
        if landed.mlength() == 0 {
            return self.finish_landing(transports, origin, landed, NiFail::Ok);
        }
        response.placed = true;
        let parts = self.move_parts(transports);
        response.fail = O::Mover::fill(parts, origin, pieces.as_slice(), &loan);
        respond(transports, origin, &response);
        self.post_landed(transports, landed, response.fail);
    }

    /// Sends a reply with the bytes of a descriptor, or with the reason why there are none. Long
    /// ones may be read in place, and then the get is over once they have arrived.
    fn reply_from(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        pieces: &Pieces<O::Span>,
        landed: Landed,
    ) {
        let (pool, extent) = (&mut self.staged.pool, (&landed).into());
        let source = match O::Mover::source(&self.owner, pool, pieces, extent) {
            Ok(source) => source,
            Err(fail) => return self.finish_landing(transports, origin, landed, fail),
        };
        if let Some(response) = landed.response(NiFail::Ok) {
            if let Source::Direct(claims) = source {
                if let Some(number) = self.reply_lent(transports, origin, &response, claims) {
                    return self.lent_replies.insert(number, landed);
                }
            }
            reply(transports, origin, &response, source.claims());
        }
        self.put_back(source);
        self.post_landed(transports, landed, NiFail::Ok);
    }

    /// Sends a reply whose bytes are read in place; returns the number of the loan, unless they
    /// are to be copied.
    fn reply_lent(
        &self,
        transports: &mut Transports,
        origin: Origin,
        response: &Response,
        pieces: &[Claim],
    ) -> Option<u64> {
        let lease = &self
            .open
            .as_ref()
            .filter(|_| response.mlength > SHORT_REPLY)?
            .lease;
        transports.answer_lent(origin.process, &response.to_words(), lease.lend(pieces))
    }

    /// Swaps the bytes of a request with the target's. The lock keeps exchanges apart.
    fn exchange(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        bytes: Claim,
        pieces: &Pieces<O::Span>,
        landed: Landed,
    ) {
        let mlength = landed.mlength();
        let (pool, extent) = (&mut self.staged.pool, (&landed).into());
        let source = match O::Mover::source(&self.owner, pool, pieces, extent) {
            Ok(source) if mlength <= bytes.len() => source,
            Ok(_) => return self.finish_landing(transports, origin, landed, NiFail::Segv),
            Err(fail) => return self.finish_landing(transports, origin, landed, fail),
        };
        let target = O::Mover::operands(pieces, &source);
        let buffer = Region::new(mlength);
        let old = buffer.claim();
        copy_vectored(target, &[old]);
        copy_vectored(&[bytes.slice(0, mlength)], target);
        let fail = O::Mover::write_back(&self.owner, target, pieces, mlength);
        self.put_back(source);
        match landed.response(fail) {
            Some(response) if fail == NiFail::Ok => reply(transports, origin, &response, &[old]),
            Some(response) => respond(transports, origin, &response),
            None => {}
        }
        self.post_landed(transports, landed, fail);
    }

    fn put_back(&mut self, source: Source<'_>) {
        if let Source::Staged(buffer, _) = source {
            self.staged.pool.put_back(buffer);
        }
    }

    #[inline(never)]
    pub(crate) fn on_response(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        response: &Response,
        payload: Payload,
    ) {
        // What this process has refused itself comes by the loopback, and not from the process that was to answer.
        let is_own = origin.process == transports.me;
        let Some((interface, mut effects)) = self.interface(transports) else {
            return;
        };
        if !is_own && !interface.awaits(from_network(origin.process), response) {
            return interface.drop_response(response);
        }
        let settled = O::Mover::settle(effects.staged, effects.owner, &response.into());
        let fail = settled.unwrap_or(response.fail);
        let response = Response { fail, ..*response };
        let Some((pieces, pending)) = interface.on_response(&response, &mut effects) else {
            return;
        };
        match payload {
            Payload::Inline(bytes) => {
                let fail = O::Mover::deposit_reply(effects.owner, bytes, &pieces);
                interface.on_filled(pending, fail, &mut effects);
            }
            Payload::Streamed(length) if length < pieces.length() => {
                interface.on_filled(pending, NiFail::Segv, &mut effects);
            }
            Payload::Streamed(_) => self.stream_reply(transports, origin, pieces, pending),
            Payload::Lent(_) | Payload::Placed => {
                interface.on_filled(pending, NiFail::Undeliverable, &mut effects);
            }
        }
    }

    fn land_stream(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        (pieces, announced): (Pieces<O::Span>, u64),
        landed: Landed,
    ) {
        let (length, pool) = (landed.mlength(), &mut self.staged.pool);
        if announced < length {
            // The sender has announced fewer bytes than its header.
            return self.finish_landing(transports, origin, landed, NiFail::Segv);
        }
        let accessible = landed.is_accessible();
        match O::Mover::stream_buffer(&self.owner, pool, length, accessible) {
            Ok(buffer) => {
                let target = StreamTarget::Request(landed);
                self.begin_stream(transports, origin, target, (pieces, length, buffer));
            }
            // A peer may name any length, so that a refusal of the system is an answer.
            Err(_) => self.finish_landing(transports, origin, landed, NiFail::Segv),
        }
    }

    fn stream_reply(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        pieces: Pieces<O::Span>,
        pending: PendingReply,
    ) {
        let (length, pool) = (pieces.length(), &mut self.staged.pool);
        match O::Mover::stream_buffer(&self.owner, pool, length, true) {
            Ok(buffer) => {
                let target = StreamTarget::Reply(pending);
                self.begin_stream(transports, origin, target, (pieces, length, buffer));
            }
            Err(_) => self.finish_reply(transports, pending, NiFail::Undeliverable),
        }
    }

    /// Has a stream arrive in its staging buffer, or in its place if it has none.
    fn begin_stream(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        target: StreamTarget,
        (pieces, length, buffer): (Pieces<O::Span>, u64, Option<Region>),
    ) {
        let Some(opened) = &self.open else { return };
        let place = Place::<O> {
            lease: &opened.lease,
            pieces,
            length,
            buffer,
        };
        let staged = place.receive(transports, origin);
        self.streams.push((origin, Stream { target, staged }));
    }

    fn finish_reply(&mut self, transports: &mut Transports, pending: PendingReply, fail: NiFail) {
        if let Some((interface, mut effects)) = self.interface(transports) {
            interface.on_filled(pending, fail, &mut effects);
        }
    }

    /// Ends a stream that is whole, or broken. A broken one isn't answered: its sender has
    /// ended, and the answer could reach another process of that name.
    pub(crate) fn end_stream(&mut self, transports: &mut Transports, origin: Origin, fail: NiFail) {
        let mut streams = self.streams.iter();
        let Some(index) = streams.position(|(from, _)| from.lane == origin.lane) else {
            return;
        };
        let Stream { target, staged } = self.streams.swap_remove(index).1;
        match target {
            StreamTarget::Request(landed) if fail == NiFail::Ok => {
                let fail = self.unstage(staged, (&landed).into());
                self.finish_landing(transports, origin, landed, fail);
            }
            StreamTarget::Request(landed) => self.post_landed(transports, landed, fail),
            StreamTarget::Reply(pending) if fail == NiFail::Ok => {
                let length = staged.as_ref().map_or(0, |(_, pieces)| pieces.length());
                let extent = Extent {
                    length,
                    is_accessible: true,
                };
                let fail = self.unstage(staged, extent);
                self.finish_reply(transports, pending, fail);
            }
            StreamTarget::Reply(pending) => self.finish_reply(transports, pending, fail),
        }
    }

    /// Copies a stream that is whole from its staging buffer, if it has one, to its place.
    fn unstage(&mut self, staged: Option<(Region, Pieces<O::Span>)>, extent: Extent) -> NiFail {
        let Some((buffer, pieces)) = staged else {
            return NiFail::Ok;
        };
        let fail = O::Mover::deposit(&self.owner, buffer.claim(), &pieces, extent);
        self.staged.pool.put_back(buffer);
        fail
    }

    /// Breaks off all streams. To their senders the target has become unreachable.
    pub(crate) fn abort_streams(&mut self, transports: &mut Transports) {
        for (origin, stream) in std::mem::take(&mut self.streams) {
            if let StreamTarget::Request(landed) = stream.target {
                self.finish_landing(transports, origin, landed, NiFail::Undeliverable);
            }
        }
    }
}

/// A process whose interface isn't open drops requests, and one that has ended can't be reached; who
/// awaits a response gets it.
fn refuse(transports: &mut Transports, origin: Origin, request: &Request) {
    if let Some(mut response) = request.refusal() {
        if transports.has_lost_owner {
            response.fail = NiFail::Undeliverable;
        }
        respond(transports, origin, &response);
    }
}

fn respond(transports: &mut Transports, origin: Origin, response: &Response) {
    reply(transports, origin, response, &[]);
}

/// Sends a response with bytes. It fails if the initiator has ended; then nothing awaits it.
fn reply(transports: &mut Transports, origin: Origin, response: &Response, pieces: &[Claim]) {
    let outgoing = Outgoing::Copied {
        operand: None,
        pieces,
    };
    let _ = transports.send(origin.process, &response.to_words(), outgoing);
}
