//! Rendezvous whose bodies the initiator moves: it waits, while the target computes.
//!
//! A put or get whose body is lent is a request for a rendezvous. A caller of the target, which
//! polls or waits, moves the body by itself (`landing_lent`). The helper would take the processor
//! from the application for as long as that takes; so if a caller of the initiator polls, the
//! helper grants it to move the body: it lends the target's memory in turn, in the response. The
//! initiator ends the operation by itself, and says so, which wakes nobody; until then nothing
//! behind the message arrives, so that all keeps its order. So does a caller with a long body that
//! hasn't waited for it: it may be about to compute.

use crate::core::Core;
use crate::landing_lent::moves_lent;
use crate::lent_landings::LentLanding;
use crate::mover::Mover;
use crate::owner::Owner;
use lintel_engine4::Landed;
use lintel_memory::length;
use lintel_nal::{Nal, Origin, Outgoing, Payload, RemoteLoan, Wake};
use lintel_types::{NiFail, ProcessId};
use lintel_wire::{Response, Verb};

/// Pieces of memory that one grant names at most.
const MOST_PIECES: usize = 8;

/// At the target.
impl<O: Owner> Core<O> {
    /// Whether the initiator had better move the body of a message than this thread.
    pub(crate) fn may_grant(
        &mut self,
        origin: Origin,
        landed: &Landed,
        pieces: &[O::Span],
    ) -> bool {
        let by_helper = self.transports.holds_answers;
        let is_waiting = !by_helper && self.wakeup.waits_long();
        let is_own = origin.process == self.transports.me;
        if is_waiting || is_own || !moves_lent(landed) || pieces.len() > MOST_PIECES {
            return false;
        }
        // What a counter may cause waits for no call of the application.
        let opened = self.interfaces[landed.request().interface.position()].as_ref();
        opened.is_some_and(|opened| !opened.interface.is_counted(landed))
            && landed.request().token != 0
            && O::Mover::as_claims(pieces).is_some()
            && (self.transports.nal).would_move(origin.process, landed.mlength(), by_helper)
    }

    /// Lets the initiator move the body of a message, which is to be left to it.
    #[cold]
    pub(crate) fn grant(&mut self, origin: Origin, landing: LentLanding<O::Span>) {
        let landed = &landing.landed;
        let opened = self.interfaces[landed.request().interface.position()].as_ref();
        let claims = O::Mover::as_claims(landing.pieces.as_slice());
        let (Some(opened), Some(claims), Some(response)) =
            (opened, claims, landed.response(NiFail::Ok))
        else {
            return;
        };
        let lent = opened.lease.lend(claims);
        let body = match landed.request().verb {
            Verb::Put => Outgoing::LentToFill(lent),
            _ => Outgoing::LentToRead(lent),
        };
        self.transports.answer(origin.process, &response, body);
        self.grants.insert(origin, landing);
    }

    /// An initiator has moved a body as it was granted to, or leaves it to this process.
    #[cold]
    pub(crate) fn on_moved(&mut self, origin: Origin, is_moved: bool) {
        match (self.grants.take(origin.lane), is_moved) {
            (Some(landing), true) => self.post_landed(landing.landed, NiFail::Ok),
            (Some(landing), false) => {
                let fail = self.move_lent(origin, &landing);
                self.finish_lent(origin, landing.landed, fail);
            }
            // The interface was closed meanwhile: the message arrives once more, and is refused.
            (None, false) => return,
            (None, true) => {}
        }
        self.transports.done(origin);
    }

    /// A process that was granted to move bodies is lost.
    #[cold]
    pub(crate) fn end_grants_of(&mut self, process: ProcessId) {
        while let Some(landing) = self.grants.take_of(process) {
            self.post_landed(landing.landed, NiFail::Undeliverable);
        }
    }
}

/// At the initiator.
impl<O: Owner> Core<O> {
    /// The target has granted that this process moves the body of an operation.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_granted(&mut self, origin: Origin, response: &Response, loan: &RemoteLoan) {
        let is_moved = self.move_granted(origin, response, loan).is_some();
        (self.transports.nal).note_moved(origin.process, is_moved);
        if is_moved {
            let response = Response {
                placed: true,
                ..*response
            };
            self.on_response(origin, &response, Payload::Placed);
        }
    }

    /// Moves a body; nothing if it is better moved by the target, which finds out whose memory is
    /// at fault.
    fn move_granted(
        &mut self,
        origin: Origin,
        response: &Response,
        loan: &RemoteLoan,
    ) -> Option<()> {
        let opened = self.interfaces[response.interface.position()].as_ref()?;
        let pieces = opened.interface.granted(origin.process, response)?;
        let here = O::Mover::as_claims(pieces.as_slice())?;
        let bytes = response.mlength;
        if pieces.length() != bytes || length(&loan.spans) != bytes {
            return None;
        }
        let moved = match response.reply {
            true => self.transports.fetch(origin, loan, here),
            false => self.transports.fill(origin, here, loan),
        };
        (moved == Ok(bytes)).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use crate::core::Core;
    use crate::testing::{MEMORY, Network, Peer, wait_until};
    use lintel_types::{Error, EventKind, InterfaceNumber, NiFail};
    use std::sync::atomic::Ordering;

    /// Two processes, of which the one that waits moves bodies.
    fn pair() -> (Network, Peer, Peer) {
        let network = Network::default();
        network.initiators_move.store(true, Ordering::SeqCst);
        let (one, two) = (network.peer(1), network.peer(2));
        (network, one, two)
    }

    fn fill(peer: &Peer, with: u8) {
        peer.memory.write(0, &[with; MEMORY as usize]);
    }

    fn is_filled(peer: &Peer, with: u8) -> bool {
        let mut bytes = vec![0; MEMORY as usize];
        peer.memory.read(0, &mut bytes);
        bytes.iter().all(|byte| *byte == with)
    }

    fn grants(peer: &Peer) -> usize {
        let count = peer.library.with_core(|core| core.grants.len());
        count.expect("the library is open")
    }

    /// Starts an operation of which the target's helper grants that the initiator moves its body.
    /// Nothing arrives at the initiator so far.
    fn start_and_grant(network: &Network, one: &Peer, two: &Peer, start: impl FnOnce()) {
        *network.deaf.lock() = Some(two.me);
        start();
        wait_until("it is sent", || network.waiting(two.me) == 1);
        two.library.with_core(|core| {
            *network.deaf.lock() = Some(one.me);
            core.progress_for_peers();
        });
        assert_eq!(grants(two), 1);
    }

    #[test]
    fn an_initiator_that_waits_moves_the_body_of_its_put() {
        let (network, one, two) = pair();
        fill(&one, 7);
        start_and_grant(&network, &one, &two, || one.put(&two, MEMORY));
        *network.deaf.lock() = None;
        assert_eq!(one.event().kind, EventKind::Send);
        let ack = one.event();
        assert_eq!((ack.kind, ack.mlength), (EventKind::Ack, MEMORY));
        assert!(is_filled(&two, 7), "though the target has made no call");
        assert_eq!(*network.movers.lock(), [one.me]);
        let event = two.event();
        assert_eq!((event.kind, event.ni_fail), (EventKind::Put, NiFail::Ok));
        assert_eq!(event.mlength, MEMORY);
        assert_eq!(two.library.unlink(two.entry), Ok(()));
    }

    #[test]
    fn an_initiator_that_waits_moves_what_it_gets() {
        let (network, one, two) = pair();
        fill(&two, 9);
        start_and_grant(&network, &one, &two, || one.get(&two, MEMORY));
        *network.deaf.lock() = None;
        let reply = one.event();
        assert_eq!((reply.kind, reply.mlength), (EventKind::Reply, MEMORY));
        assert!(is_filled(&one, 9));
        assert_eq!(*network.movers.lock(), [one.me]);
        let event = two.event();
        assert_eq!((event.kind, event.mlength), (EventKind::Get, MEMORY));
    }

    #[test]
    fn what_its_initiator_cant_move_is_moved_by_the_target() {
        let (network, one, two) = pair();
        let bad = two.memory.claim().address();
        network.bad_address.store(bad, Ordering::SeqCst);
        fill(&one, 7);
        start_and_grant(&network, &one, &two, || one.put(&two, MEMORY));
        *network.deaf.lock() = None;
        assert_eq!(one.event().kind, EventKind::Send);
        let ack = one.event();
        assert_eq!((ack.kind, ack.ni_fail), (EventKind::Ack, NiFail::Ok));
        assert_eq!(*network.movers.lock(), [one.me, two.me]);
        assert!(is_filled(&two, 7));
        assert_eq!(two.event().ni_fail, NiFail::Ok);
    }

    #[test]
    fn an_entry_is_in_use_until_its_grant_ends_with_the_initiator_or_is_used() {
        let (network, one, two) = pair();
        start_and_grant(&network, &one, &two, || one.put(&two, MEMORY));
        assert_eq!(two.library.unlink(two.entry), Err(Error::InUse));
        two.library.with_core(|core| core.end_grants_of(one.me));
        assert_eq!(two.event().ni_fail, NiFail::Undeliverable);
        assert_eq!(two.library.unlink(two.entry), Ok(()));
        *network.deaf.lock() = None;
        wait_until("the initiator has moved it", || {
            one.event().kind == EventKind::Ack
        });
    }

    #[test]
    fn a_message_arrives_once_more_if_its_grant_was_given_up() {
        let (network, one, two) = pair();
        let bad = two.memory.claim().address();
        network.bad_address.store(bad, Ordering::SeqCst);
        start_and_grant(&network, &one, &two, || one.put(&two, MEMORY));
        two.library.with_core(|core| {
            core.grants.close(InterfaceNumber::new(true, false));
        });
        *network.deaf.lock() = None;
        assert_eq!(one.event().kind, EventKind::Send);
        let ack = one.event();
        assert_eq!((ack.kind, ack.ni_fail), (EventKind::Ack, NiFail::Ok));
        assert_eq!(two.event().kind, EventKind::Put);
        assert_eq!(network.movers.lock()[0], one.me);
    }

    #[test]
    fn nothing_overtakes_what_the_initiator_moves() {
        let (network, one, two) = pair();
        start_and_grant(&network, &one, &two, || one.put(&two, MEMORY));
        one.put(&two, 8);
        two.library.with_core(Core::progress);
        let taken = two
            .library
            .queue_take(two.queue, |taken| taken.event().kind);
        assert_eq!(taken, Err(Error::EqEmpty));
        *network.deaf.lock() = None;
        wait_until("the body is moved", || one.event().kind == EventKind::Ack);
        assert_eq!(two.event().mlength, MEMORY);
        assert_eq!(two.event().mlength, 8);
    }
}
