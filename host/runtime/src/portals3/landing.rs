//! What arrives: requests land where the engine says, replies go to the operation that
//! awaits them. Memory is the process's own, and is touched unless an address may be wrong.

use crate::portals3::names::from_network;
use crate::portals3::state::Portals3;
use crate::transports::Transports;
use lintel_claim::{Claim, CrossMemoryError, Region, copy_checked, copy_vectored};
use lintel_engine3::{Landed, Landing, PendingReply};
use lintel_memory::{Pieces, length};
use lintel_nal::{MoveError, Nal, Origin, Outgoing, Payload, RemoteLoan};
use lintel_types::NiFail;
use lintel_wire::portals3::{Request, Response, Verb};

/// An operation whose bytes arrive after its header.
pub(crate) enum Stream {
    /// They are the body of a request.
    Request(Landed),
    /// They are the body of a reply.
    Reply(PendingReply),
}

impl Portals3 {
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
        match interface.on_request(from, origin.uid, request, &mut effects) {
            Landing::Accepted(pieces, landed) => {
                self.land(transports, origin, &pieces, landed, payload);
            }
            Landing::Refused(Some(response)) => respond(transports, origin, &response),
            Landing::Refused(None) => {}
        }
    }

    fn land(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        pieces: &Pieces<Claim>,
        landed: Landed,
        payload: Payload,
    ) {
        let to = pieces.as_slice();
        let fail = match (landed.request().verb, payload) {
            (Verb::Put, Payload::Inline(bytes)) => deposit(bytes, to, &landed),
            (Verb::Put, Payload::Lent(loan)) => fetch(transports, origin, &loan, to),
            (Verb::Put, Payload::Streamed(_)) => {
                return self.begin_stream(transports, origin, to, Stream::Request(landed));
            }
            (Verb::Get, payload) => {
                return self.answer_get(transports, origin, to, landed, payload);
            }
            (Verb::GetPut, Payload::Inline(bytes)) => {
                return self.exchange(transports, origin, bytes, to, landed);
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

    fn post_landed(&mut self, transports: &mut Transports, landed: Landed, fail: NiFail) {
        if let Some((interface, mut effects)) = self.interface(transports) {
            interface.on_landed(landed, fail, &mut effects);
        }
    }

    /// Answers a get: into the initiator's memory if that was lent, else with the bytes in
    /// the reply.
    fn answer_get(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        from: &[Claim],
        landed: Landed,
        payload: Payload,
    ) {
        let Some(mut response) = landed.response(NiFail::Ok) else {
            return self.post_landed(transports, landed, NiFail::Ok);
        };
        match payload {
            Payload::Lent(loan) if landed.mlength() > 0 => {
                response.placed = true;
                let loan = loan.part(0, length(from));
                let moved = transports.fill(origin, from, &loan);
                response.fail = moved_all(moved, length(from));
                respond(transports, origin, &response);
            }
            _ => reply(transports, origin, &response, from),
        }
        self.post_landed(transports, landed, response.fail);
    }

    /// Swaps the bytes of a request with the target's. The lock keeps exchanges apart.
    fn exchange(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        bytes: Claim,
        to: &[Claim],
        landed: Landed,
    ) {
        let mlength = landed.mlength();
        let whole = landed
            .response(NiFail::Ok)
            .filter(|_| mlength <= bytes.len());
        let Some(response) = whole else {
            return self.finish_landing(transports, origin, landed, NiFail::Segv);
        };
        let buffer = Region::new(mlength);
        let old = buffer.claim();
        copy_vectored(to, &[old]);
        copy_vectored(&[bytes.slice(0, mlength)], to);
        reply(transports, origin, &response, &[old]);
        self.post_landed(transports, landed, NiFail::Ok);
    }

    #[inline]
    pub(crate) fn on_response(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        response: &Response,
        payload: Payload,
    ) {
        let Some((interface, mut effects)) = self.interface(transports) else {
            return;
        };
        let Some((pieces, pending)) = interface.on_response(response, &mut effects) else {
            return;
        };
        match payload {
            Payload::Inline(bytes) => {
                copy_vectored(&[bytes], pieces.as_slice());
                interface.on_filled(pending, NiFail::Ok, &mut effects);
            }
            Payload::Streamed(_) => {
                let stream = Stream::Reply(pending);
                self.begin_stream(transports, origin, pieces.as_slice(), stream);
            }
            Payload::Lent(_) => {
                interface.on_filled(pending, NiFail::Undeliverable, &mut effects);
            }
        }
    }

    /// Has a stream arrive in its place, which the interface lends to the NAL.
    fn begin_stream(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        place: &[Claim],
        stream: Stream,
    ) {
        let Some(opened) = &self.open else { return };
        let place = opened.lease.lend(place).keep();
        transports.nal.receive_into(origin, place);
        self.streams.push((origin, stream));
    }

    /// Ends a stream that is whole, or broken. A broken one isn't answered: its sender has
    /// ended, and the answer could reach another process of that name.
    pub(crate) fn end_stream(&mut self, transports: &mut Transports, origin: Origin, fail: NiFail) {
        let mut streams = self.streams.iter();
        let Some(index) = streams.position(|(from, _)| from.lane == origin.lane) else {
            return;
        };
        match self.streams.swap_remove(index).1 {
            Stream::Request(landed) if fail == NiFail::Ok => {
                self.finish_landing(transports, origin, landed, fail);
            }
            Stream::Request(landed) => self.post_landed(transports, landed, fail),
            Stream::Reply(pending) => {
                if let Some((interface, mut effects)) = self.interface(transports) {
                    interface.on_filled(pending, fail, &mut effects);
                }
            }
        }
    }

    /// Breaks off all streams. To their senders the target has become unreachable.
    pub(crate) fn abort_streams(&mut self, transports: &mut Transports) {
        for (origin, stream) in std::mem::take(&mut self.streams) {
            if let Stream::Request(landed) = stream {
                self.finish_landing(transports, origin, landed, NiFail::Undeliverable);
            }
        }
    }
}

/// Copies the bytes of a request to where they land. Memory so long that a message may name
/// an unmapped address is copied by the system, which checks.
#[inline]
fn deposit(bytes: Claim, to: &[Claim], landed: &Landed) -> NiFail {
    if landed.is_accessible() || landed.mlength() == 0 {
        copy_vectored(&[bytes], to);
        return NiFail::Ok;
    }
    match copy_checked(&[bytes], to) {
        Ok(copied) if copied >= landed.mlength() => NiFail::Ok,
        // Then the memory is touched after all, and a wrong address is the program's.
        Err(CrossMemoryError::Denied) => {
            copy_vectored(&[bytes], to);
            NiFail::Ok
        }
        _ => NiFail::Segv,
    }
}

fn fetch(transports: &mut Transports, origin: Origin, loan: &RemoteLoan, to: &[Claim]) -> NiFail {
    let wanted = length(to);
    if wanted == 0 {
        return NiFail::Ok;
    }
    moved_all(transports.fetch(origin, &loan.part(0, wanted), to), wanted)
}

/// How a move by the NAL ends for the peer.
fn moved_all(moved: Result<u64, MoveError>, wanted: u64) -> NiFail {
    match moved {
        Ok(bytes) if bytes >= wanted => NiFail::Ok,
        Ok(_) | Err(MoveError::Fault) => NiFail::Segv,
        Err(MoveError::Unavailable) => NiFail::Undeliverable,
    }
}

/// A process whose interface isn't open drops requests; one that awaits a response gets it.
fn refuse(transports: &mut Transports, origin: Origin, request: &Request) {
    if let Some(response) = request.refusal() {
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
