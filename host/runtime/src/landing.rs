//! What arrives: requests land where the engine says, replies go to the operation that
//! awaits them. Bytes are moved by the owner's [`Mover`].

use crate::core::{Core, Unexpected};
use crate::exchange::{Exchange, SHORT_EXCHANGE};
use crate::landing_lent::moves_lent;
use crate::mover::{MoveParts, Mover, Source};
use crate::owner::Owner;
use crate::protocol::Protocol;
use crate::streams::{Place, Stream, StreamTarget};
use crate::transports::Transports;
use lintel_claim::{Claim, Region};
use lintel_engine4::{Landed, PendingReply};
use lintel_memory::Pieces;
use lintel_nal::{Origin, Outgoing, Payload};
use lintel_presence::shareable;
use lintel_types::{InterfaceNumber, NiFail, options::FEATURE_COHERENT_ATOMICS};
use lintel_wire::{Request, Response, Verb};

impl<O: Owner> Core<O> {
    /// Returns how many messages it has dealt with: further ones may land with this one.
    pub(crate) fn on_request(
        &mut self,
        origin: Origin,
        request: &Request,
        payload: Payload,
    ) -> u32 {
        if let Payload::Placed = payload {
            self.on_placed(origin, request);
            return 1;
        }
        let Some((interface, mut effects)) = self.interface(request.interface) else {
            self.refuse(origin, request);
            return 1;
        };
        let accepted = interface.accept(origin.process, origin.uid, request, &mut effects);
        match accepted {
            Ok(accepted) => {
                let (pieces, landed) =
                    interface.begin_landing(accepted, origin.process, origin.uid, request);
                if landed.is_unexpected() {
                    self.unexpected = Unexpected::Taken;
                }
                match payload {
                    Payload::Lent(loan) if moves_lent(&landed) => {
                        return self.land_lent(origin, pieces, landed, loan);
                    }
                    payload => self.land(origin, pieces, landed, payload),
                }
            }
            Err(Some(response)) => self.transports.respond(origin.process, &response),
            Err(None) => {}
        }
        1
    }

    /// Reports a put or a get whose initiator has copied the bytes, and knows that it is done.
    #[cold]
    fn on_placed(&mut self, origin: Origin, request: &Request) {
        let Some((interface, mut effects)) = self.interface(request.interface) else {
            return;
        };
        let (process, uid) = (origin.process, origin.uid);
        if let Ok(accepted) = interface.accept(process, uid, request, &mut effects) {
            let (_, landed) = interface.begin_landing(accepted, process, uid, request);
            interface.on_landed(landed, NiFail::Ok, &mut effects);
        }
    }

    #[inline(always)]
    fn land(&mut self, origin: Origin, pieces: Pieces<O::Span>, landed: Landed, payload: Payload) {
        let fail = match landed.request().verb {
            Verb::Put => match payload {
                Payload::Inline(claim) => {
                    O::Mover::deposit(&self.owner, claim, &pieces, (&landed).into())
                }
                // No byte of it lands.
                Payload::Lent(_) | Payload::Placed => NiFail::Ok,
                // The sender has announced fewer bytes than its header.
                Payload::Streamed(length) if length < landed.mlength() => NiFail::Segv,
                Payload::Streamed(_) => return self.land_stream(origin, pieces, landed),
            },
            Verb::Get => return self.answer_get(origin, &pieces, landed),
            Verb::Atomic | Verb::FetchAtomic | Verb::Swap => {
                return self.land_atomic(origin, &pieces, landed, payload);
            }
        };
        self.finish_landing(origin, landed, fail);
    }

    #[inline(always)]
    pub(crate) fn finish_landing(&mut self, origin: Origin, landed: Landed, fail: NiFail) {
        if let Some(response) = landed.response(fail) {
            self.transports.respond(origin.process, &response);
        }
        self.post_landed(landed, fail);
    }

    #[inline(always)]
    pub(crate) fn post_landed(&mut self, landed: Landed, fail: NiFail) {
        if let Some((interface, mut effects)) = self.interface(landed.request().interface) {
            interface.on_landed(landed, fail, &mut effects);
        }
    }

    pub(crate) fn move_parts(&mut self) -> MoveParts<'_, O> {
        MoveParts {
            memory: &self.owner,
            transports: &mut self.transports,
            pool: &mut self.staged.pool,
        }
    }

    /// Answers a get with the bytes in the reply.
    fn answer_get(&mut self, origin: Origin, pieces: &Pieces<O::Span>, landed: Landed) {
        match landed.response(NiFail::Ok) {
            Some(response) => self.reply_from(origin, pieces, landed, &response),
            None => self.post_landed(landed, NiFail::Ok),
        }
    }

    /// Sends a reply with the bytes of an entry, or with the reason why there are none. Long ones
    /// may be read in place, and then the get is over once they have arrived.
    fn reply_from(
        &mut self,
        origin: Origin,
        pieces: &Pieces<O::Span>,
        landed: Landed,
        response: &Response,
    ) {
        let pool = &mut self.staged.pool;
        match O::Mover::source(&self.owner, pool, pieces, (&landed).into()) {
            Ok(Source::Direct(claims)) => {
                if let Some(number) = self.reply_lent(origin, &landed, response, claims) {
                    return self.lent_replies.insert(number, landed);
                }
                reply(&mut self.transports, origin, response, claims);
            }
            Ok(Source::Staged(buffer, claim)) => {
                reply(&mut self.transports, origin, response, &[claim]);
                self.staged.pool.put_back(buffer);
            }
            Err(fail) => {
                let refusal = Response {
                    fail,
                    mlength: 0,
                    ..*response
                };
                self.transports.respond(origin.process, &refusal);
                return self.post_landed(landed, fail);
            }
        }
        self.post_landed(landed, NiFail::Ok);
    }

    /// Sends a reply whose bytes are read in place; returns the number of the loan, unless they
    /// are to be copied. Short ones are: a later write of the initiator doesn't change them.
    fn reply_lent(
        &mut self,
        origin: Origin,
        landed: &Landed,
        response: &Response,
        pieces: &[Claim],
    ) -> Option<u64> {
        let opened = self.interfaces[landed.request().interface.position()].as_ref()?;
        // Portals 4.3, section `Ordering of data`, write after read.
        if landed.mlength() <= opened.interface.limits().max_war_ordered_size {
            return None;
        }
        let body = opened.lease.lend(pieces);
        self.transports
            .answer_lent(origin.process, &response.to_words(), body)
    }

    /// A reply was read in place, or its initiator is lost.
    #[cold]
    pub(crate) fn on_returned(&mut self, number: u64) {
        match self.lent_replies.remove(number) {
            Some(landed) => self.post_landed(landed, NiFail::Ok),
            None => self.protocol.on_returned(&mut self.transports, number),
        }
    }

    /// Carries out an atomic, and returns the earlier value to an initiator that wants it.
    fn land_atomic(
        &mut self,
        origin: Origin,
        pieces: &Pieces<O::Span>,
        landed: Landed,
        payload: Payload,
    ) {
        let (request, length) = (*landed.request(), landed.mlength());
        let exchange = match Exchange::new(&request, length, payload) {
            Ok(exchange) => exchange,
            Err(fail) => return self.finish_landing(origin, landed, fail),
        };
        let pool = &mut self.staged.pool;
        let source = match O::Mover::source(&self.owner, pool, pieces, (&landed).into()) {
            Ok(source) => source,
            Err(fail) => return self.finish_landing(origin, landed, fail),
        };
        let target = O::Mover::operands(pieces, &source);
        let mut small = [0; SHORT_EXCHANGE];
        let mut large = self.exchange.take_scratch();
        let is_coherent = self.is_coherent(&request);
        let old = exchange.perform(target, is_coherent, &mut small, &mut large);
        let fail = O::Mover::write_back(&self.owner, target, pieces, length);
        self.answer_atomic(origin, landed, fail, old);
        self.exchange.put_back_scratch(large);
        if let Source::Staged(buffer, _) = source {
            self.staged.pool.put_back(buffer);
        }
    }

    /// Whether the target was promised atomics that the processor's own ones see as such, or
    /// peers may carry out atomics on its memory by themselves.
    pub(crate) fn is_coherent(&mut self, request: &Request) -> bool {
        if shareable().is_used() {
            return true;
        }
        self.interface(request.interface)
            .is_some_and(|(interface, _)| {
                interface.limits().features & FEATURE_COHERENT_ATOMICS != 0
            })
    }

    fn answer_atomic(&mut self, origin: Origin, landed: Landed, fail: NiFail, old: &[u8]) {
        if landed.request().verb == Verb::Atomic || fail != NiFail::Ok {
            return self.finish_landing(origin, landed, fail);
        }
        if let Some(response) = landed.response(NiFail::Ok) {
            let old = self.exchange.reply_of(old);
            reply(&mut self.transports, origin, &response, &[old]);
        }
        self.post_landed(landed, NiFail::Ok);
    }

    #[inline]
    pub(crate) fn on_response(&mut self, origin: Origin, response: &Response, payload: Payload) {
        let opened = self.interfaces[response.interface.position()].as_ref();
        if !opened.is_some_and(|opened| opened.interface.awaits(origin.process, response)) {
            return;
        }
        let settled = O::Mover::settle(&mut self.staged, &self.owner, &response.into());
        let changed;
        let response = match settled {
            Some(fail) => {
                changed = Response { fail, ..*response };
                &changed
            }
            None => response,
        };
        let number = response.interface;
        let Some((interface, mut effects)) = self.interface(number) else {
            return;
        };
        let Some((pieces, pending)) = interface.on_response(response, &mut effects) else {
            return;
        };
        match payload {
            Payload::Inline(claim) => {
                let fail = O::Mover::deposit_reply(effects.owner, claim, &pieces);
                interface.on_filled(pending, fail, &mut effects);
            }
            Payload::Streamed(length) if length < pieces.length() => {
                interface.on_filled(pending, NiFail::Segv, &mut effects);
            }
            Payload::Streamed(_) => self.stream_reply(origin, number, pieces, pending),
            Payload::Lent(_) | Payload::Placed => {
                interface.on_filled(pending, NiFail::Undeliverable, &mut effects);
            }
        }
    }

    fn finish_reply(&mut self, number: InterfaceNumber, pending: PendingReply, fail: NiFail) {
        if let Some((interface, mut effects)) = self.interface(number) {
            interface.on_filled(pending, fail, &mut effects);
        }
    }
}

/// Sends a response with a copy of these bytes.
#[inline(always)]
pub(crate) fn reply(
    transports: &mut Transports,
    origin: Origin,
    response: &Response,
    pieces: &[Claim],
) {
    let outgoing = Outgoing::Copied {
        operand: None,
        pieces,
    };
    transports.answer(origin.process, response, outgoing);
}

/// Streams: their bytes arrive after the header.
impl<O: Owner> Core<O> {
    fn land_stream(&mut self, origin: Origin, pieces: Pieces<O::Span>, landed: Landed) {
        let (length, is_accessible) = (landed.mlength(), landed.is_accessible());
        let number = landed.request().interface;
        let pool = &mut self.staged.pool;
        match O::Mover::stream_buffer(&self.owner, pool, length, is_accessible) {
            Ok(buffer) => {
                let target = StreamTarget::Request(landed);
                self.begin_stream(origin, number, target, pieces, length, buffer);
            }
            // A peer may name any length, so that a refusal of the system is an answer.
            Err(_) => self.finish_landing(origin, landed, NiFail::Segv),
        }
    }

    fn stream_reply(
        &mut self,
        origin: Origin,
        number: InterfaceNumber,
        pieces: Pieces<O::Span>,
        pending: PendingReply,
    ) {
        let (length, pool) = (pieces.length(), &mut self.staged.pool);
        match O::Mover::stream_buffer(&self.owner, pool, length, true) {
            Ok(buffer) => {
                let target = StreamTarget::Reply(number, pending);
                self.begin_stream(origin, number, target, pieces, length, buffer);
            }
            Err(_) => self.finish_reply(number, pending, NiFail::Undeliverable),
        }
    }

    /// Has a stream arrive in its staging buffer, or in its place if it has none. The
    /// interface lends the memory to the NAL.
    fn begin_stream(
        &mut self,
        origin: Origin,
        number: InterfaceNumber,
        target: StreamTarget,
        pieces: Pieces<O::Span>,
        length: u64,
        buffer: Option<Region>,
    ) {
        let Some(opened) = &self.interfaces[number.position()] else {
            return;
        };
        let place = Place::<O> {
            lease: &opened.lease,
            pieces,
            length,
            buffer,
        };
        let staged = place.receive(&mut self.transports, origin);
        self.streams.push((origin, Stream { target, staged }));
    }

    /// Ends a stream that is whole, or broken.
    #[cold]
    pub(crate) fn on_streamed(&mut self, origin: Origin, fail: NiFail) {
        let found = self
            .streams
            .iter()
            .position(|(from, _)| from.lane == origin.lane);
        let Some(index) = found else {
            return self
                .protocol
                .on_streamed(&mut self.transports, origin, fail);
        };
        let (_, stream) = self.streams.swap_remove(index);
        let Stream { target, staged } = stream;
        match fail {
            NiFail::Ok => self.finish_stream(origin, target, staged),
            fail => self.break_stream(target, fail),
        }
    }

    fn finish_stream(
        &mut self,
        origin: Origin,
        target: StreamTarget,
        staged: Option<(Region, Pieces<O::Span>)>,
    ) {
        let mut fail = NiFail::Ok;
        if let Some((buffer, pieces)) = staged {
            let claim = buffer.claim();
            fail = match &target {
                StreamTarget::Request(landed) => {
                    O::Mover::deposit(&self.owner, claim, &pieces, landed.into())
                }
                StreamTarget::Reply(..) => O::Mover::deposit_reply(&self.owner, claim, &pieces),
            };
            self.staged.pool.put_back(buffer);
        }
        match target {
            StreamTarget::Request(landed) => self.finish_landing(origin, landed, fail),
            StreamTarget::Reply(number, pending) => self.finish_reply(number, pending, fail),
        }
    }

    /// A stream whose sender has ended isn't answered: the answer could reach another process
    /// of that name.
    fn break_stream(&mut self, target: StreamTarget, fail: NiFail) {
        match target {
            StreamTarget::Request(landed) => self.post_landed(landed, fail),
            StreamTarget::Reply(number, pending) => self.finish_reply(number, pending, fail),
        }
    }

    /// Breaks off the streams into memory of an interface that closes. To their senders the
    /// target has become unreachable.
    pub(crate) fn abort_streams(&mut self, number: InterfaceNumber) {
        let (ended, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.streams)
            .into_iter()
            .partition(|(_, stream)| stream.interface() == number);
        self.streams = others;
        for (origin, stream) in ended {
            match stream.target {
                StreamTarget::Request(landed) => {
                    self.finish_landing(origin, landed, NiFail::Undeliverable);
                }
                StreamTarget::Reply(number, pending) => {
                    self.finish_reply(number, pending, NiFail::Undeliverable);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{MEMORY, Network, put_of};
    use lintel_nal::{Nal, Outgoing};
    use lintel_types::{Error, EventKind, NiFail};
    use std::sync::atomic::Ordering;

    #[test]
    fn a_long_get_is_over_at_its_target_once_its_bytes_have_arrived() {
        let network = Network::default();
        let (initiator, target) = (network.peer(1), network.peer(2));
        network.is_far.store(true, Ordering::SeqCst);
        network.holds_returns.store(true, Ordering::SeqCst);
        initiator.get(&target, MEMORY);
        assert_eq!(initiator.event().kind, EventKind::Reply);
        // Short ones don't wait: they were copied.
        initiator.get(&target, 8);
        assert_eq!(initiator.event().kind, EventKind::Reply);
        let (queue, entry) = (target.queue, target.entry);
        let event = target.event();
        assert_eq!((event.kind, event.mlength), (EventKind::Get, 8));
        let taken = target.library.queue_take(queue, |taken| taken.event().kind);
        assert_eq!(taken, Err(Error::EqEmpty));
        assert_eq!(target.library.unlink(entry), Err(Error::InUse));
        network.holds_returns.store(false, Ordering::SeqCst);
        let event = target.event();
        assert_eq!((event.kind, event.mlength), (EventKind::Get, MEMORY));
        assert_eq!(target.library.unlink(entry), Ok(()));
    }

    #[test]
    fn an_interface_closes_while_a_reply_is_read_in_place() {
        let network = Network::default();
        let (initiator, target) = (network.peer(1), network.peer(2));
        network.is_far.store(true, Ordering::SeqCst);
        network.holds_returns.store(true, Ordering::SeqCst);
        initiator.get(&target, MEMORY);
        assert_eq!(initiator.event().kind, EventKind::Reply);
        drop(target);
        initiator.get(&initiator, 8);
        assert_eq!(initiator.event().mlength, 8, "it goes on");
    }

    /// Neither way to land a put takes bytes for granted that didn't come.
    #[test]
    fn a_put_with_fewer_bytes_than_its_header_says_fails_at_the_target() {
        let network = Network::default();
        let (initiator, target) = (network.peer(1), network.peer(2));
        let interface = initiator.descriptor.interface();
        let put = put_of(initiator.descriptor, target.me, 16).request(interface, 0);
        for bytes in [16, 8, 0] {
            let piece = initiator.memory.claim().slice(0, bytes);
            let copied = Outgoing::Copied {
                operand: None,
                pieces: &[piece],
            };
            let mut sender = network.transport(initiator.me);
            let sent = sender.send(target.me, &put.to_words(), copied);
            assert_eq!(sent, Ok(()));
            let event = target.event();
            let expected = match bytes {
                16 => (NiFail::Ok, 16),
                _ => (NiFail::Segv, 0),
            };
            assert_eq!((event.ni_fail, event.mlength), expected);
        }
    }
}
