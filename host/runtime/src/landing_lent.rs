//! Puts and gets whose bodies are lent: the target moves each body once, from buffer to buffer.
//!
//! A call of the system has fixed costs, and each names the lender's key, so that bodies of a
//! stream that have arrived behind one another are moved by one call. Each message lands and is
//! answered as if it had come alone, in order; if the call fails each is moved again by itself,
//! which shows whose memory is at fault. Nothing waits for messages that haven't arrived.

use crate::core::Core;
use crate::lent_landings::{LentLanding, LentLandings};
use crate::mover::Mover;
use crate::owner::Owner;
use lintel_engine4::Landed;
use lintel_memory::{Pieces, parts};
use lintel_nal::{Origin, RemoteLoan};
use lintel_types::NiFail;
use lintel_wire::{Message, Response, Verb, Words};
use std::mem;

/// Whether a message whose body is lent moves it.
pub(crate) fn moves_lent(landed: &Landed) -> bool {
    let is_awaited = landed.request().token != 0;
    match landed.request().verb {
        Verb::Put => landed.mlength() > 0,
        Verb::Get => landed.mlength() > 0 && is_awaited,
        _ => false,
    }
}

impl<O: Owner> Core<O> {
    /// Lands a message and those behind it whose bodies can be moved with its own. Returns how
    /// many messages that were.
    pub(crate) fn land_lent(
        &mut self,
        origin: Origin,
        pieces: Pieces<O::Span>,
        landed: Landed,
        loan: RemoteLoan,
    ) -> u32 {
        let grant = self.may_grant(origin, &landed, pieces.as_slice());
        let is_followed = grant.is_none()
            && O::Mover::as_claims(pieces.as_slice()).is_some()
            && (self.transports.lent_behind(origin, 1, landed.mlength())).is_some();
        let landing = LentLanding {
            landed,
            pieces,
            loan,
        };
        if let Some(parts) = grant {
            return u32::from(!self.grant(origin, landing, parts));
        }
        if is_followed {
            return self.land_together(origin, landing);
        }
        let fail = self.move_lent(origin, &landing);
        self.finish_lent(origin, landing.landed, fail);
        1
    }

    /// Lands a message, and as many of those behind it as can be moved with it.
    #[inline(never)]
    fn land_together(&mut self, origin: Origin, first: LentLanding<O::Span>) -> u32 {
        let mut landings = mem::take(&mut self.lent);
        landings.push(first);
        while self.begin_behind(origin, &mut landings) {}
        let messages = landings.begun.len() as u32;
        let are_moved = messages > 1 && self.move_together(origin, &mut landings);
        for one in landings.begun.drain(..) {
            let fail = match are_moved {
                true => NiFail::Ok,
                false => self.move_lent(origin, &one),
            };
            self.finish_lent(origin, one.landed, fail);
        }
        landings.bytes = 0;
        self.lent = landings;
        messages
    }

    /// Begins to land the message behind those that have begun, if it has come and goes with
    /// them.
    fn begin_behind(&mut self, origin: Origin, landings: &mut LentLandings<O::Span>) -> bool {
        let places = landings.begun.len() as u32;
        let behind = self.transports.lent_behind(origin, places, landings.bytes);
        match (behind, landings.begun.last()) {
            (Some((words, loan)), Some(before)) => {
                let Some((pieces, landed)) = self.begin_like(before, origin, &words, &loan) else {
                    return false;
                };
                landings.push(LentLanding {
                    landed,
                    pieces,
                    loan,
                });
                true
            }
            _ => false,
        }
    }

    /// Begins to land a message, if it is of the same kind and lender as the one before it and
    /// doesn't depend on it.
    fn begin_like(
        &mut self,
        before: &LentLanding<O::Span>,
        origin: Origin,
        words: &Words,
        loan: &RemoteLoan,
    ) -> Option<(Pieces<O::Span>, Landed)> {
        let Ok(Message::Request(request)) = Message::parse(words) else {
            return None;
        };
        let first = before.landed.request();
        let is_like = (request.verb, request.interface) == (first.verb, first.interface)
            && request.token != 0
            && loan.key == before.loan.key
            && loan.spans.length() >= request.length;
        if !is_like {
            return None;
        }
        let (interface, _) = self.interface(request.interface)?;
        let (from, uid) = (origin.process, origin.uid);
        let accepted = interface.accept_behind(&before.landed, from, uid, &request)?;
        Some(interface.begin_landing(accepted, from, uid, &request))
    }

    /// Moves all bodies by one call; false if that fails, perhaps for some of them.
    fn move_together(&mut self, origin: Origin, landings: &mut LentLandings<O::Span>) -> bool {
        let LentLandings {
            begun, loan, here, ..
        } = landings;
        let mut there = mem::take(&mut loan.spans).into_vec();
        there.clear();
        here.clear();
        for one in begun.iter() {
            let wanted = one.landed.mlength();
            loan.key = one.loan.key;
            there.extend(parts(one.loan.spans.as_slice(), 0, wanted));
            here.extend(O::Mover::as_claims(one.pieces.as_slice()).unwrap_or_default());
        }
        loan.spans = Pieces::Many(there);
        let moved = match begun[0].landed.request().verb {
            Verb::Put => self.transports.fetch(origin, loan, here),
            _ => self.transports.fill(origin, here, loan),
        };
        moved == Ok(landings.bytes)
    }

    /// Moves one body.
    pub(crate) fn move_lent(&mut self, origin: Origin, one: &LentLanding<O::Span>) -> NiFail {
        let here = one.pieces.as_slice();
        match one.landed.request().verb {
            Verb::Put => O::Mover::fetch(self.move_parts(), origin, &one.loan, here),
            _ => O::Mover::fill(self.move_parts(), origin, here, &one.loan),
        }
    }

    /// Answers a message whose body was moved, or couldn't be.
    pub(crate) fn finish_lent(&mut self, origin: Origin, landed: Landed, fail: NiFail) {
        if landed.request().verb == Verb::Put {
            return self.finish_landing(origin, landed, fail);
        }
        if let Some(response) = landed.response(NiFail::Ok) {
            let response = Response {
                placed: true,
                fail,
                ..response
            };
            self.transports.respond(origin.process, &response);
        }
        self.post_landed(landed, fail);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{MEMORY, Network, Peer, put_of, wait_until};
    use lintel_engine4::Transfer;
    use lintel_types::{AckRequest, Event, EventKind, Handle, NiFail};
    use lintel_wire::Verb;
    use std::sync::atomic::Ordering;

    /// Messages that arrive at once, and bytes of each: more than are copied.
    const COUNT: u64 = 4;
    const PART: u64 = MEMORY / COUNT;

    /// Moves each part of the initiator's memory by a message of its own; all of them arrive at
    /// once. Returns the target's events.
    fn move_parts(network: &Network, verb: Verb, initiator: &Peer, target: &Peer) -> Vec<Event> {
        network.holds_arrivals.store(true, Ordering::SeqCst);
        for part in 0..COUNT {
            let put = Transfer {
                source_offset: part * PART,
                remote_offset: part * PART,
                ..put_of(initiator.descriptor, target.me, PART)
            };
            initiator.start(match verb {
                Verb::Put => put,
                _ => Transfer {
                    verb,
                    source: Handle::INVALID,
                    sink: put.source,
                    sink_offset: put.source_offset,
                    ack: AckRequest::None,
                    ..put
                },
            });
        }
        wait_until("all wait", || network.waiting(target.me) == COUNT as usize);
        network.holds_arrivals.store(false, Ordering::SeqCst);
        (0..COUNT).map(|_| target.event()).collect()
    }

    /// Fills each part of a peer's memory with a number of its own.
    fn fill(peer: &Peer, first: u8) {
        for part in 0..COUNT {
            let bytes = [first + part as u8; PART as usize];
            peer.memory.write(part * PART, &bytes);
        }
    }

    /// The first byte of each part.
    fn first_bytes(peer: &Peer) -> Vec<u8> {
        let mut byte = [0];
        let first = |part| {
            peer.memory.read(part * PART, &mut byte);
            byte[0]
        };
        (0..COUNT).map(first).collect()
    }

    #[test]
    fn lent_puts_behind_one_another_land_by_one_call_and_in_order() {
        let network = Network::default();
        let (initiator, target) = (network.peer(1), network.peer(2));
        fill(&initiator, 10);
        let events = move_parts(&network, Verb::Put, &initiator, &target);
        for (part, event) in (0..).zip(events) {
            assert_eq!((event.kind, event.ni_fail), (EventKind::Put, NiFail::Ok));
            assert_eq!((event.remote_offset, event.mlength), (part * PART, PART));
        }
        assert_eq!(first_bytes(&target), [10, 11, 12, 13]);
        assert_eq!(network.moves.load(Ordering::SeqCst), 1);
        for part in 0..COUNT {
            assert_eq!(initiator.event().kind, EventKind::Send);
            let ack = initiator.event();
            let expected = (EventKind::Ack, part * PART, PART);
            assert_eq!((ack.kind, ack.remote_offset, ack.mlength), expected);
        }
    }

    #[test]
    fn gets_into_lent_memory_are_filled_by_one_call() {
        let network = Network::default();
        let (initiator, target) = (network.peer(1), network.peer(2));
        fill(&target, 20);
        let events = move_parts(&network, Verb::Get, &initiator, &target);
        for (part, event) in (0..).zip(events) {
            assert_eq!((event.kind, event.ni_fail), (EventKind::Get, NiFail::Ok));
            assert_eq!((event.remote_offset, event.mlength), (part * PART, PART));
        }
        for _ in 0..COUNT {
            let reply = initiator.event();
            assert_eq!((reply.kind, reply.mlength), (EventKind::Reply, PART));
        }
        assert_eq!(first_bytes(&initiator), [20, 21, 22, 23]);
        assert_eq!(network.moves.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_lent_put_from_bad_memory_fails_and_the_others_land() {
        let network = Network::default();
        let (initiator, target) = (network.peer(1), network.peer(2));
        fill(&initiator, 10);
        let bad = initiator.memory.claim().address() + 2 * PART;
        network.bad_address.store(bad, Ordering::SeqCst);
        let events = move_parts(&network, Verb::Put, &initiator, &target);
        let fails: Vec<NiFail> = events.iter().map(|event| event.ni_fail).collect();
        assert_eq!(fails, [NiFail::Ok, NiFail::Ok, NiFail::Segv, NiFail::Ok]);
        assert_eq!(first_bytes(&target), [10, 11, 0, 13]);
        let moves = network.moves.load(Ordering::SeqCst);
        assert_eq!(moves, 1 + COUNT as u32, "one by one once more");
    }
}
