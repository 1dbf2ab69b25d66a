//! Moves the bytes of requests and replies to where the engine says.

use crate::core::Core;
use lintel_claim::{
    Claim, CrossMemoryError, Datatype, Operation, Region, RemoteSpan, atomic, copy_checked,
    copy_vectored, fetch_atomic, swap,
};
use lintel_engine4::{Filling, Landed};
use lintel_memory::Pieces;
use lintel_nal::{MoveError, Nal, Origin, Outgoing, Payload};
use lintel_types::NiFail;
use lintel_wire::{OPERAND_BYTES, Request, Response, Verb};

/// What to finish when a stream is whole.
pub(crate) enum StreamTask {
    /// A request.
    Landing(Landed),
    /// A request whose memory may not be there: the bytes come into a region
    /// first, and from there through the kernel, which looks.
    Checked(Landed, Region, Pieces<Claim>),
    /// A reply on that interface.
    Filling(u8, Filling),
}

impl Core {
    #[inline(always)]
    pub(crate) fn on_request(&mut self, origin: Origin, request: &Request, payload: Payload) {
        let Some((interface, mut effects)) = self.parts(request.interface) else {
            return self.refuse(origin, request);
        };
        let accepted = interface.accept(origin.process, origin.uid, request, &mut effects);
        match accepted {
            Ok(accepted) => {
                let (pieces, landed) =
                    interface.begin_landing(accepted, origin.process, origin.uid, request);
                self.land(origin, pieces, landed, payload);
            }
            Err(Some(response)) => self.ways.respond(origin.process, &response),
            Err(None) => {}
        }
    }

    #[inline(always)]
    fn land(&mut self, origin: Origin, pieces: Pieces<Claim>, landed: Landed, payload: Payload) {
        let fail = match landed.request().verb {
            Verb::Put => match payload {
                Payload::Enclosed(claim) => deposit(claim, &pieces, &landed),
                Payload::Lent(spans) => self.fetch(origin, &spans, pieces.as_slice()),
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
            self.ways.respond(origin.process, &response);
        }
        self.tell_landed(landed, fail);
    }

    #[inline(always)]
    fn tell_landed(&mut self, landed: Landed, fail: NiFail) {
        if let Some((interface, mut effects)) = self.parts(landed.request().interface) {
            interface.on_landed(landed, fail, &mut effects);
        }
    }

    /// Fetches what the initiator has lent.
    fn fetch(&mut self, origin: Origin, spans: &[RemoteSpan], to: &[Claim]) -> NiFail {
        let wanted: u64 = to.iter().map(|piece| piece.len()).sum();
        if wanted == 0 {
            return NiFail::Ok;
        }
        let spans = first_bytes(spans, wanted);
        let moved = if origin.process == self.ways.me {
            self.ways.loopback.fetch(origin, &spans, to)
        } else {
            self.ways.nal.fetch(origin, &spans, to)
        };
        moved_all(moved, wanted)
    }

    fn stream_in(&mut self, origin: Origin, pieces: Pieces<Claim>, landed: Landed) {
        let (place, task) = if landed.is_accessible() {
            (pieces.as_slice().to_vec(), StreamTask::Landing(landed))
        } else {
            // Whatever length a peer names, a refusal of the system is an answer.
            match Region::try_new(landed.mlength()) {
                Ok(region) => {
                    let place = vec![region.claim()];
                    (place, StreamTask::Checked(landed, region, pieces))
                }
                Err(_) => return self.finish_landing(origin, landed, NiFail::Segv),
            }
        };
        self.ways.nal.receive_into(origin, place);
        self.streams.push((origin.lane, task));
    }

    /// Answers a get: into the initiator's memory where it was lent and the
    /// answer is long, else with the bytes enclosed.
    fn give(&mut self, origin: Origin, pieces: &Pieces<Claim>, landed: Landed, payload: Payload) {
        let mut fail = NiFail::Ok;
        let mut response = match landed.response(NiFail::Ok) {
            Some(response) => response,
            None => return self.tell_landed(landed, NiFail::Ok),
        };
        match payload {
            Payload::Lent(spans) if landed.mlength() > 0 => {
                fail = self.place(origin, pieces.as_slice(), &spans);
                response.placed = true;
                response.fail = fail;
                self.ways.respond(origin.process, &response);
            }
            _ => {
                let checked = self.checked_source(pieces, &landed);
                match checked {
                    Ok(Some(copy)) => self.reply(origin, &response, &[copy.claim()]),
                    Ok(None) => self.reply(origin, &response, pieces.as_slice()),
                    Err(why) => {
                        fail = why;
                        response.fail = fail;
                        response.mlength = 0;
                        self.ways.respond(origin.process, &response);
                    }
                }
            }
        }
        self.tell_landed(landed, fail);
    }

    fn place(&mut self, origin: Origin, from: &[Claim], spans: &[RemoteSpan]) -> NiFail {
        let wanted: u64 = from.iter().map(|piece| piece.len()).sum();
        let spans = first_bytes(spans, wanted);
        let moved = if origin.process == self.ways.me {
            self.ways.loopback.place(origin, from, &spans)
        } else {
            self.ways.nal.place(origin, from, &spans)
        };
        moved_all(moved, wanted)
    }

    /// Bytes of an entry that may name memory which isn't there are copied first,
    /// by the system, which looks.
    fn checked_source(
        &mut self,
        pieces: &Pieces<Claim>,
        landed: &Landed,
    ) -> Result<Option<Region>, NiFail> {
        if landed.is_accessible() || landed.mlength() == 0 {
            return Ok(None);
        }
        // Whatever length a peer names, a refusal of the system is an answer.
        let region = Region::try_new(landed.mlength()).map_err(|_| NiFail::Segv)?;
        match copy_checked(pieces.as_slice(), &[region.claim()]) {
            Ok(moved) if moved == landed.mlength() => Ok(Some(region)),
            Err(CrossMemoryError::Denied) => Ok(None),
            _ => Err(NiFail::Segv),
        }
    }

    fn reply(&mut self, origin: Origin, response: &Response, pieces: &[Claim]) {
        let outgoing = Outgoing::Copied {
            operand: None,
            pieces,
        };
        // An initiator that is gone awaits nothing.
        let _ = self
            .ways
            .send(origin.process, &response.to_words(), outgoing);
    }

    /// Carries out an atomic, and returns the earlier value where it is wanted.
    fn combine(
        &mut self,
        origin: Origin,
        pieces: &Pieces<Claim>,
        landed: Landed,
        payload: Payload,
    ) {
        let mut small = [0u8; 64];
        let mut fetched = [0u8; 64];
        let request = *landed.request();
        let ahead = if request.verb == Verb::Swap {
            OPERAND_BYTES
        } else {
            0
        };
        let length = landed.mlength() as usize;
        let kinds = (
            Operation::try_from(request.operation),
            Datatype::try_from(request.datatype),
            payload,
        );
        let (Ok(operation), Ok(datatype), Payload::Enclosed(data)) = kinds else {
            return self.finish_landing(origin, landed, NiFail::OpViolation);
        };
        if (data.len() as usize) < ahead + length || self.checked_source(pieces, &landed).is_err() {
            return self.finish_landing(origin, landed, NiFail::Segv);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let (data_bytes, old) = if ahead + length <= small.len() {
            (&mut small[..ahead + length], &mut fetched[..length])
        } else {
            scratch.resize(ahead + 2 * length, 0);
            scratch.split_at_mut(ahead + length)
        };
        data.read(data_bytes);
        let (operand, operands) = data_bytes.split_at(ahead);
        let target = pieces.as_slice();
        match request.verb {
            Verb::Atomic => atomic(operation, datatype, target, operands),
            Verb::FetchAtomic => fetch_atomic(operation, datatype, target, operands, old),
            _ => {
                let compare = &operand[..datatype.size().min(ahead)];
                swap(operation, datatype, target, operands, compare, old);
            }
        }
        self.answer_atomic(origin, landed, old);
        self.scratch = scratch;
    }

    fn answer_atomic(&mut self, origin: Origin, landed: Landed, old: &[u8]) {
        if landed.request().verb == Verb::Atomic {
            return self.finish_landing(origin, landed, NiFail::Ok);
        }
        if let Some(response) = landed.response(NiFail::Ok) {
            let bounce = self.bounce(old);
            self.reply(origin, &response, &[bounce]);
        }
        self.tell_landed(landed, NiFail::Ok);
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
        let Some((interface, mut effects)) = self.parts(response.interface) else {
            return;
        };
        let Some((pieces, filling)) = interface.on_response(response, &mut effects) else {
            return;
        };
        match payload {
            Payload::Enclosed(claim) => {
                copy_vectored(&[claim], pieces.as_slice());
                interface.on_filled(filling, NiFail::Ok, &mut effects);
            }
            Payload::Streamed(_) => {
                self.ways
                    .nal
                    .receive_into(origin, pieces.as_slice().to_vec());
                let task = StreamTask::Filling(response.interface, filling);
                self.streams.push((origin.lane, task));
            }
            Payload::Lent(_) => {
                interface.on_filled(filling, NiFail::Undeliverable, &mut effects);
            }
        }
    }

    #[cold]
    pub(crate) fn on_streamed(&mut self, origin: Origin, fail: NiFail) {
        let found = self
            .streams
            .iter()
            .position(|(lane, _)| *lane == origin.lane);
        if let Some(index) = found {
            let (_, task) = self.streams.swap_remove(index);
            self.finish_stream(origin, task, fail);
        }
    }

    fn finish_stream(&mut self, origin: Origin, task: StreamTask, fail: NiFail) {
        match task {
            StreamTask::Landing(landed) if fail == NiFail::Ok => {
                self.finish_landing(origin, landed, fail);
            }
            StreamTask::Checked(landed, region, pieces) if fail == NiFail::Ok => {
                let fail = deposit(region.claim(), &pieces, &landed);
                self.finish_landing(origin, landed, fail);
            }
            // Who broke it off has ended; an answer could reach another of its name.
            StreamTask::Landing(landed) | StreamTask::Checked(landed, ..) => {
                self.tell_landed(landed, fail);
            }
            StreamTask::Filling(number, filling) => {
                if let Some((interface, mut effects)) = self.parts(number) {
                    interface.on_filled(filling, fail, &mut effects);
                }
            }
        }
    }
}

/// Copies enclosed bytes to their place.
#[inline(always)]
fn deposit(from: Claim, to: &Pieces<Claim>, landed: &Landed) -> NiFail {
    if let Pieces::One(to) = to {
        if landed.is_accessible() {
            lintel_claim::copy(from, *to);
            return NiFail::Ok;
        }
    }
    if landed.is_accessible() || landed.mlength() == 0 {
        copy_vectored(&[from], to.as_slice());
        return NiFail::Ok;
    }
    match copy_checked(&[from], to.as_slice()) {
        Ok(moved) if moved == landed.mlength() => NiFail::Ok,
        Err(CrossMemoryError::Denied) => {
            copy_vectored(&[from], to.as_slice());
            NiFail::Ok
        }
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

fn first_bytes(spans: &[RemoteSpan], mut bytes: u64) -> Vec<RemoteSpan> {
    let mut first = Vec::with_capacity(spans.len());
    for span in spans {
        if bytes == 0 {
            break;
        }
        let length = span.length.min(bytes);
        bytes -= length;
        first.push(RemoteSpan {
            address: span.address,
            length,
        });
    }
    first
}
