//! Moves the bytes of requests and replies to where the engine says.

use crate::core::Core;
use crate::owner::Owner;
use lintel_claim::{
    Claim, CrossMemoryError, Datatype, Operation, Region, atomic, combine, copy_vectored,
    fetch_atomic, swap,
};
use lintel_engine4::{Landed, PendingReply};
use lintel_memory::{Pieces, length, part};
use lintel_nal::{MoveError, Nal, Origin, Outgoing, Payload, RemoteLoan};
use lintel_types::{InterfaceNumber, NiFail, options::FEATURE_COHERENT_ATOMICS};
use lintel_wire::{OPERAND_BYTES, Request, Response, Verb};
use std::slice;

/// What to finish when a stream is whole.
pub(crate) enum StreamTask<S> {
    /// A request.
    Landing(Landed),
    /// A request whose memory may not be there: the bytes come into a region
    /// first, and from there through the kernel, which looks.
    Checked(Landed, Region, Pieces<S>),
    /// A reply on that interface.
    Reply(InterfaceNumber, PendingReply),
    /// A reply for memory that can't be touched.
    Copying(InterfaceNumber, PendingReply, Region, Pieces<S>),
}

impl<S> StreamTask<S> {
    fn interface(&self) -> InterfaceNumber {
        match self {
            StreamTask::Landing(landed) | StreamTask::Checked(landed, ..) => {
                landed.request().interface
            }
            StreamTask::Reply(number, _) | StreamTask::Copying(number, ..) => *number,
        }
    }
}

/// Bytes that are copied at once where they take a detour: the second copy finds
/// them in the cache.
const STAGING_CHUNK: u64 = 256 << 10;

impl<O: Owner> Core<O> {
    #[inline(always)]
    pub(crate) fn on_request(&mut self, origin: Origin, request: &Request, payload: Payload) {
        let Some((interface, mut effects)) = self.interface(request.interface) else {
            return self.refuse(origin, request);
        };
        let accepted = interface.accept(origin.process, origin.uid, request, &mut effects);
        match accepted {
            Ok(accepted) => {
                let (pieces, landed) =
                    interface.begin_landing(accepted, origin.process, origin.uid, request);
                self.land(origin, pieces, landed, payload);
            }
            Err(Some(response)) => self.transports.respond(origin.process, &response),
            Err(None) => {}
        }
    }

    #[inline(always)]
    fn land(&mut self, origin: Origin, pieces: Pieces<O::Span>, landed: Landed, payload: Payload) {
        let fail = match landed.request().verb {
            Verb::Put => match payload {
                Payload::Inline(claim) => deposit(&self.owner, claim, &pieces, &landed),
                Payload::Lent(loan) => self.fetch(origin, &loan, pieces.as_slice()),
                Payload::Streamed(_) => return self.stream_in(origin, pieces, landed),
            },
            Verb::Get => return self.give(origin, &pieces, landed, payload),
            Verb::Atomic | Verb::FetchAtomic | Verb::Swap => {
                return self.combine(origin, &pieces, landed, payload);
            }
        };
        self.finish_landing(origin, landed, fail);
    }

    #[inline(always)]
    fn finish_landing(&mut self, origin: Origin, landed: Landed, fail: NiFail) {
        if let Some(response) = landed.response(fail) {
            self.transports.respond(origin.process, &response);
        }
        self.post_landed(landed, fail);
    }

    #[inline(always)]
    fn post_landed(&mut self, landed: Landed, fail: NiFail) {
        if let Some((interface, mut effects)) = self.interface(landed.request().interface) {
            interface.on_landed(landed, fail, &mut effects);
        }
    }

    /// Fetches what the initiator has lent.
    fn fetch(&mut self, origin: Origin, loan: &RemoteLoan, to: &[O::Span]) -> NiFail {
        let wanted = length(to);
        if wanted == 0 {
            return NiFail::Ok;
        }
        match O::claims(to) {
            Some(to) => moved_all(self.move_in(origin, &loan.part(0, wanted), to), wanted),
            None if origin.process == self.transports.me => {
                let lent = part(self.transports.loopback.lent(), 0, wanted);
                copied_all(self.owner.copy_in(&lent, to), wanted)
            }
            None => self.in_chunks(wanted, |core, at, room| {
                let loan = loan.part(at, room.len());
                match core.move_in(origin, &loan, &[room]) {
                    Ok(moved) if moved == room.len() => {}
                    other => return moved_all(other, room.len()),
                }
                let copied = core.owner.copy_in(&[room], &part(to, at, room.len()));
                copied_all(copied, room.len())
            }),
        }
    }

    /// Moves bytes part by part through memory of this process, until one fails.
    fn in_chunks(
        &mut self,
        total: u64,
        mut part: impl FnMut(&mut Self, u64, Claim) -> NiFail,
    ) -> NiFail {
        let Ok(room) = self.staged.pool.take(&self.owner, total.min(STAGING_CHUNK)) else {
            return NiFail::Segv;
        };
        let (mut at, mut fail) = (0, NiFail::Ok);
        while at < total && fail == NiFail::Ok {
            let claim = room.claim().slice(0, (total - at).min(STAGING_CHUNK));
            fail = part(self, at, claim);
            at += claim.len();
        }
        self.staged.pool.put_back(room);
        fail
    }

    fn move_in(
        &mut self,
        origin: Origin,
        loan: &RemoteLoan,
        to: &[Claim],
    ) -> Result<u64, MoveError> {
        if origin.process == self.transports.me {
            self.transports.loopback.fetch(origin, loan, to)
        } else {
            self.transports.nal.fetch(origin, loan, to)
        }
    }

    fn move_out(
        &mut self,
        origin: Origin,
        from: &[Claim],
        loan: &RemoteLoan,
    ) -> Result<u64, MoveError> {
        if origin.process == self.transports.me {
            self.transports.loopback.fill(origin, from, loan)
        } else {
            self.transports.nal.fill(origin, from, loan)
        }
    }

    fn stream_in(&mut self, origin: Origin, pieces: Pieces<O::Span>, landed: Landed) {
        let number = landed.request().interface;
        let direct = O::claims(pieces.as_slice()).filter(|_| landed.is_accessible());
        let (place, task) = match direct {
            Some(claims) => (claims.to_vec(), StreamTask::Landing(landed)),
            // Whatever length a peer names, a refusal of the system is an answer.
            None => match self.staged.pool.take(&self.owner, landed.mlength()) {
                Ok(region) => {
                    let place = vec![region.claim().slice(0, landed.mlength())];
                    (place, StreamTask::Checked(landed, region, pieces))
                }
                Err(_) => return self.finish_landing(origin, landed, NiFail::Segv),
            },
        };
        self.begin_stream(origin, number, &place, task);
    }

    /// Has a stream put into memory that an interface vouches for.
    fn begin_stream(
        &mut self,
        origin: Origin,
        number: InterfaceNumber,
        place: &[Claim],
        task: StreamTask<O::Span>,
    ) {
        if let Some(opened) = &self.interfaces[number.position()] {
            let place = opened.lease.lend(place).keep();
            self.transports.nal.receive_into(origin, place);
            self.streams.push((origin, task));
        }
    }

    /// Breaks off the streams into memory of an interface that closes. Who sends is told
    /// as if the target had become unreachable.
    pub(crate) fn abort_streams(&mut self, number: InterfaceNumber) {
        let (ended, others) = std::mem::take(&mut self.streams)
            .into_iter()
            .partition(|(_, task)| task.interface() == number);
        self.streams = others;
        let ended: Vec<(Origin, StreamTask<O::Span>)> = ended;
        for (origin, task) in ended {
            match task {
                StreamTask::Landing(landed) | StreamTask::Checked(landed, ..) => {
                    self.finish_landing(origin, landed, NiFail::Undeliverable);
                }
                StreamTask::Reply(number, pending) | StreamTask::Copying(number, pending, ..) => {
                    self.fill(number, pending, NiFail::Undeliverable);
                }
            }
        }
    }

    /// Answers a get: into the initiator's memory where it was lent and the
    /// answer is long, else with the bytes enclosed.
    fn give(&mut self, origin: Origin, pieces: &Pieces<O::Span>, landed: Landed, payload: Payload) {
        let mut fail = NiFail::Ok;
        let mut response = match landed.response(NiFail::Ok) {
            Some(response) => response,
            None => return self.post_landed(landed, NiFail::Ok),
        };
        match payload {
            Payload::Lent(loan) if landed.mlength() > 0 => {
                fail = self.place(origin, pieces.as_slice(), &loan);
                response.placed = true;
                response.fail = fail;
                self.transports.respond(origin.process, &response);
            }
            _ => match self.source(pieces, &landed) {
                Ok(Source::Direct(claims)) => self.reply(origin, &response, claims),
                Ok(Source::Copy(copy, claim)) => {
                    self.reply(origin, &response, &[claim]);
                    self.staged.pool.put_back(copy);
                }
                Err(why) => {
                    fail = why;
                    response.fail = fail;
                    response.mlength = 0;
                    self.transports.respond(origin.process, &response);
                }
            },
        }
        self.post_landed(landed, fail);
    }

    fn place(&mut self, origin: Origin, from: &[O::Span], loan: &RemoteLoan) -> NiFail {
        let wanted = length(from);
        match O::claims(from) {
            Some(from) => moved_all(self.move_out(origin, from, &loan.part(0, wanted)), wanted),
            None if origin.process == self.transports.me => {
                let lent = part(self.transports.loopback.lent(), 0, wanted);
                copied_all(self.owner.copy_out(from, &lent), wanted)
            }
            None => self.in_chunks(wanted, |core, at, room| {
                match core.owner.copy_out(&part(from, at, room.len()), &[room]) {
                    Ok(copied) if copied == room.len() => {}
                    other => return copied_all(other, room.len()),
                }
                let loan = loan.part(at, room.len());
                moved_all(core.move_out(origin, &[room], &loan), room.len())
            }),
        }
    }

    /// Where the bytes of an entry can be read. What may name memory which isn't
    /// there, or can't be touched, is copied first by the system, which looks.
    fn source<'a>(
        &mut self,
        pieces: &'a Pieces<O::Span>,
        landed: &Landed,
    ) -> Result<Source<'a>, NiFail> {
        let claims = O::claims(pieces.as_slice());
        match claims {
            Some(claims) if landed.is_accessible() => return Ok(Source::Direct(claims)),
            _ if landed.mlength() == 0 => return Ok(Source::Direct(&[])),
            _ => {}
        }
        // Whatever length a peer names, a refusal of the system is an answer.
        let spare = self.staged.pool.take(&self.owner, landed.mlength());
        let copy = spare.map_err(|_| NiFail::Segv)?;
        let claim = copy.claim().slice(0, landed.mlength());
        match (self.owner.copy_out(pieces.as_slice(), &[claim]), claims) {
            (Err(CrossMemoryError::Denied), Some(claims)) => Ok(Source::Direct(claims)),
            (copied, _) => match copied_all(copied, claim.len()) {
                NiFail::Ok => Ok(Source::Copy(copy, claim)),
                fail => Err(fail),
            },
        }
    }

    fn reply(&mut self, origin: Origin, response: &Response, pieces: &[Claim]) {
        let outgoing = Outgoing::Copied {
            operand: None,
            pieces,
        };
        // An initiator that is gone awaits nothing.
        let _ = self
            .transports
            .send(origin.process, &response.to_words(), outgoing);
    }

    /// Carries out an atomic, and returns the earlier value where it is wanted.
    fn combine(
        &mut self,
        origin: Origin,
        pieces: &Pieces<O::Span>,
        landed: Landed,
        payload: Payload,
    ) {
        let request = *landed.request();
        let length = landed.mlength();
        let exchange = match Exchange::new(&request, length, payload) {
            Ok(exchange) => exchange,
            Err(fail) => return self.finish_landing(origin, landed, fail),
        };
        let source = match self.source(pieces, &landed) {
            Ok(source) => source,
            Err(fail) => return self.finish_landing(origin, landed, fail),
        };
        let target = match (O::claims(pieces.as_slice()), &source) {
            (Some(claims), _) => claims,
            (None, source) => source.claims(),
        };
        let mut small = [0; SHORT_EXCHANGE];
        let mut scratch = std::mem::take(&mut self.scratch);
        let old = match target {
            // The processor's atomics don't meet us there, and the lock keeps our own apart.
            &[target] if request.verb == Verb::Atomic && !self.is_coherent(&request) => {
                let operands = exchange.data.slice(0, length);
                combine(exchange.operation, exchange.datatype, operands, target);
                &[]
            }
            target => exchange.perform(target, &mut small, &mut scratch),
        };
        let fail = match O::DIRECT {
            true => NiFail::Ok,
            false => copied_all(self.owner.copy_in(target, pieces.as_slice()), length),
        };
        self.answer_atomic(origin, landed, fail, old);
        self.scratch = scratch;
        if let Source::Copy(copy, _) = source {
            self.staged.pool.put_back(copy);
        }
    }

    /// Whether the target was promised that its processor's atomics and these meet.
    fn is_coherent(&mut self, request: &Request) -> bool {
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
            let bounce = self.bounce(old);
            self.reply(origin, &response, &[bounce]);
        }
        self.post_landed(landed, NiFail::Ok);
    }

    /// A claim of a copy in the core's own buffer, good until the next one.
    fn bounce(&mut self, bytes: &[u8]) -> Claim {
        if self.bounce.len() < bytes.len() as u64 {
            self.bounce = Region::new(bytes.len() as u64);
        }
        self.bounce.write(0, bytes);
        self.bounce.claim().slice(0, bytes.len() as u64)
    }

    #[inline]
    pub(crate) fn on_response(&mut self, origin: Origin, response: &Response, payload: Payload) {
        if !O::DIRECT {
            return self.on_response_to_copy(origin, response, payload);
        }
        let Some((interface, mut effects)) = self.interface(response.interface) else {
            return;
        };
        let Some((pieces, pending)) = interface.on_response(response, &mut effects) else {
            return;
        };
        let Some(claims) = O::claims(pieces.as_slice()) else {
            return;
        };
        match payload {
            Payload::Inline(claim) => {
                copy_vectored(&[claim], claims);
                interface.on_filled(pending, NiFail::Ok, &mut effects);
            }
            Payload::Streamed(_) => {
                let task = StreamTask::Reply(response.interface, pending);
                self.begin_stream(origin, response.interface, claims, task);
            }
            Payload::Lent(_) => {
                interface.on_filled(pending, NiFail::Undeliverable, &mut effects);
            }
        }
    }

    /// As [`on_response`](Self::on_response), where a copy may have been lent in the
    /// place of the owner's memory, which can't be touched.
    fn on_response_to_copy(&mut self, origin: Origin, response: &Response, payload: Payload) {
        let mut response = *response;
        if let Some(lent) = self.staged.take(&response) {
            if response.placed && response.fail == NiFail::Ok {
                let placed = response.mlength.min(length(&lent.pieces));
                let claims = [lent.copy.claim().slice(0, placed)];
                response.fail = copied_all(self.owner.copy_in(&claims, &lent.pieces), placed);
            }
            self.staged.pool.put_back(lent.copy);
        }
        let Some((interface, mut effects)) = self.interface(response.interface) else {
            return;
        };
        let Some((pieces, pending)) = interface.on_response(&response, &mut effects) else {
            return;
        };
        let wanted = pieces.length();
        let fail = match payload {
            Payload::Inline(claim) => {
                let claim = claim.slice(0, wanted);
                copied_all(self.owner.copy_in(&[claim], pieces.as_slice()), claim.len())
            }
            Payload::Streamed(_) => match self.staged.pool.take(&self.owner, wanted) {
                Ok(copy) => {
                    let place = [copy.claim().slice(0, wanted)];
                    let task = StreamTask::Copying(response.interface, pending, copy, pieces);
                    return self.begin_stream(origin, response.interface, &place, task);
                }
                Err(_) => NiFail::Undeliverable,
            },
            Payload::Lent(_) => NiFail::Undeliverable,
        };
        self.fill(response.interface, pending, fail);
    }

    fn fill(&mut self, number: InterfaceNumber, pending: PendingReply, fail: NiFail) {
        if let Some((interface, mut effects)) = self.interface(number) {
            interface.on_filled(pending, fail, &mut effects);
        }
    }

    #[cold]
    pub(crate) fn on_streamed(&mut self, origin: Origin, fail: NiFail) {
        let found = self
            .streams
            .iter()
            .position(|(from, _)| from.lane == origin.lane);
        if let Some(index) = found {
            let (_, task) = self.streams.swap_remove(index);
            self.finish_stream(origin, task, fail);
        }
    }

    fn finish_stream(&mut self, origin: Origin, task: StreamTask<O::Span>, fail: NiFail) {
        match task {
            StreamTask::Landing(landed) if fail == NiFail::Ok => {
                self.finish_landing(origin, landed, fail);
            }
            StreamTask::Checked(landed, region, pieces) if fail == NiFail::Ok => {
                let fail = deposit(&self.owner, region.claim(), &pieces, &landed);
                self.staged.pool.put_back(region);
                self.finish_landing(origin, landed, fail);
            }
            // Who broke it off has ended; an answer could reach another of its name.
            StreamTask::Landing(landed) | StreamTask::Checked(landed, ..) => {
                self.post_landed(landed, fail);
            }
            StreamTask::Copying(number, pending, copy, pieces) if fail == NiFail::Ok => {
                let copied = self.owner.copy_in(&[copy.claim()], pieces.as_slice());
                self.staged.pool.put_back(copy);
                self.fill(number, pending, copied_all(copied, pieces.length()));
            }
            StreamTask::Reply(number, pending) | StreamTask::Copying(number, pending, ..) => {
                self.fill(number, pending, fail);
            }
        }
    }
}

/// Where bytes can be read.
enum Source<'a> {
    Direct(&'a [Claim]),
    /// In that part of a copy.
    Copy(Region, Claim),
}

impl Source<'_> {
    fn claims(&self) -> &[Claim] {
        match self {
            Source::Direct(claims) => claims,
            Source::Copy(_, claim) => slice::from_ref(claim),
        }
    }
}

/// An atomic that goes by the processor's own ones.
struct Exchange {
    verb: Verb,
    operation: Operation,
    datatype: Datatype,
    /// The operands, behind what a swap compares with.
    data: Claim,
    /// Bytes of the operands, and of the target.
    length: usize,
}

/// Bytes that a short exchange takes: what it compares with, operands and earlier values.
const SHORT_EXCHANGE: usize = 128;

impl Exchange {
    fn new(request: &Request, length: u64, payload: Payload) -> Result<Exchange, NiFail> {
        let Payload::Inline(data) = payload else {
            return Err(NiFail::OpViolation);
        };
        let exchange = Exchange {
            verb: request.verb,
            operation: request.operation,
            datatype: request.datatype,
            data,
            length: length as usize,
        };
        match data.len() < exchange.bytes_ahead() as u64 + length {
            true => Err(NiFail::Segv),
            false => Ok(exchange),
        }
    }

    /// What lies ahead of the operands.
    fn bytes_ahead(&self) -> usize {
        match self.verb {
            Verb::Swap => OPERAND_BYTES,
            _ => 0,
        }
    }

    /// Returns the target's earlier values, which lie in `small`, or in `large` where
    /// that is too small.
    fn perform<'a>(
        &self,
        target: &[Claim],
        small: &'a mut [u8; SHORT_EXCHANGE],
        large: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let ahead = self.bytes_ahead();
        let bytes = ahead + 2 * self.length;
        let room = match small.get_mut(..bytes) {
            Some(room) => room,
            None => {
                large.resize(large.len().max(bytes), 0);
                &mut large[..bytes]
            }
        };
        let (sent, old) = room.split_at_mut(ahead + self.length);
        self.data.read(sent);
        let (compare, operands) = sent.split_at(ahead);
        match self.verb {
            Verb::Atomic => atomic(self.operation, self.datatype, target, operands),
            Verb::FetchAtomic => fetch_atomic(self.operation, self.datatype, target, operands, old),
            _ => {
                let compare = &compare[..self.datatype.size().min(ahead)];
                swap(
                    self.operation,
                    self.datatype,
                    target,
                    operands,
                    compare,
                    old,
                );
            }
        }
        old
    }
}

/// Copies enclosed bytes to their place.
#[inline(always)]
fn deposit<O: Owner>(owner: &O, from: Claim, to: &Pieces<O::Span>, landed: &Landed) -> NiFail {
    if let Pieces::One(to) = to {
        if let (Some([to]), true) = (O::claims(slice::from_ref(to)), landed.is_accessible()) {
            lintel_claim::copy(from, *to);
            return NiFail::Ok;
        }
    }
    let claims = O::claims(to.as_slice());
    match claims {
        Some(to) if landed.is_accessible() || landed.mlength() == 0 => {
            copy_vectored(&[from], to);
            return NiFail::Ok;
        }
        None if landed.mlength() == 0 => return NiFail::Ok,
        _ => {}
    }
    match (owner.copy_in(&[from], to.as_slice()), claims) {
        (Err(CrossMemoryError::Denied), Some(to)) => {
            copy_vectored(&[from], to);
            NiFail::Ok
        }
        (copied, _) => copied_all(copied, landed.mlength()),
    }
}

/// How it ends for the peer. An owner that has died before its session did is no
/// owner of bad memory.
fn copied_all(copied: Result<u64, CrossMemoryError>, wanted: u64) -> NiFail {
    match copied {
        Ok(bytes) if bytes >= wanted => NiFail::Ok,
        Err(CrossMemoryError::NoProcess) => NiFail::Undeliverable,
        _ => NiFail::Segv,
    }
}

fn moved_all(moved: Result<u64, MoveError>, wanted: u64) -> NiFail {
    match moved {
        Ok(bytes) if bytes >= wanted => NiFail::Ok,
        Ok(_) | Err(MoveError::Fault) => NiFail::Segv,
        Err(MoveError::Gone) => NiFail::Undeliverable,
    }
}
