//! Rendezvous whose bodies the initiator moves, or both sides.
//!
//! A put or get whose body is lent is a request for a rendezvous: the target moves the body
//! (`landing_lent`), or grants it, by lending its own memory in turn in a response. Then either side
//! takes parts, until none is left. The target's helper, and a caller that may be about to compute,
//! grant what the initiator moves alone, if it polls: it ends the operation by itself, and says so,
//! which wakes nobody. A caller that waits takes parts as well, and then it is the target that answers.
//! Until then nothing behind the message arrives, so that all keeps its order.

use crate::core::Core;
use crate::grants::Grant;
use crate::landing_lent::moves_lent;
use crate::lent_landings::LentLanding;
use crate::mover::Mover;
use crate::owner::Owner;
use lintel_claim::Claim;
use lintel_engine4::{Counting, Landed};
use lintel_memory::{Pieces, parts};
use lintel_nal::{Finder, Granted, Moved, Nal, Origin, Outgoing, Parts, Payload, RemoteLoan, Wake};
use lintel_types::{NiFail, ProcessId};
use lintel_wire::{Response, Verb};

/// Pieces of memory that one grant names at most.
const MOST_PIECES: usize = 8;

/// At the target.
impl<O: Owner> Core<O> {
    /// Whether the initiator had better move a message's body, or parts of it: in which parts.
    pub(crate) fn may_grant(
        &mut self,
        origin: Origin,
        landed: &Landed,
        pieces: &[O::Span],
    ) -> Option<Parts> {
        let found = match self.wakeup.waits_long() {
            _ if self.transports.holds_answers => Finder::Helper,
            true => Finder::WaitingCaller,
            false => Finder::Caller,
        };
        let opened = self.interfaces[landed.request().interface.position()].as_ref()?;
        // An initiator that moves all wakes nobody, and leaves the count to this process's next call.
        // One that moves parts wakes who sleeps. A count that triggers something waits for neither.
        let found = match opened.interface.counting(landed) {
            Counting::Nothing => found,
            Counting::Counter if found != Finder::Helper => Finder::WaitingCaller,
            Counting::Counter | Counting::Triggers => return None,
        };
        let may_wait = origin.process != self.transports.me
            && moves_lent(landed)
            && landed.request().token != 0
            && pieces.len() <= MOST_PIECES
            && O::Mover::as_claims(pieces).is_some();
        let nal = &mut self.transports.nal;
        may_wait.then(|| nal.would_move(origin, landed.mlength(), found))?
    }

    /// Lets the initiator move the body of a message, which is to be left to it: false if this process
    /// has moved all of it meanwhile.
    #[cold]
    pub(crate) fn grant(
        &mut self,
        origin: Origin,
        landing: LentLanding<O::Span>,
        parts: Parts,
    ) -> bool {
        let landed = &landing.landed;
        let opened = self.interfaces[landed.request().interface.position()].as_ref();
        let claims = O::Mover::as_claims(landing.pieces.as_slice());
        let (Some(opened), Some(claims), Some(response)) =
            (opened, claims, landed.response(NiFail::Ok))
        else {
            let fail = self.move_lent(origin, &landing);
            self.finish_lent(origin, landing.landed, fail);
            return false;
        };
        let (nal, length) = (&mut self.transports.nal, landed.mlength());
        // Before the initiator could take all, and wake nobody.
        let first = nal.begin_parts(origin, parts, length);
        let lent = opened.lease.lend(claims);
        let body = match landed.request().verb {
            Verb::Put => Outgoing::LentToFill(lent),
            _ => Outgoing::LentToRead(lent),
        };
        self.transports.answer(origin.process, &response, body);
        self.grants.insert(Grant::new(origin, landing));
        if let Some((offset, bytes)) = first {
            self.move_taken_part(origin, offset, bytes);
        }
        while parts.is_joint && self.move_own_part(origin) {}
        !(parts.is_joint && self.revoke_grant(origin))
    }

    /// A caller waits: it moves the next part of a body that was granted.
    #[cold]
    pub(crate) fn move_granted_part(&mut self) {
        let Some(origin) = self.grants.first() else {
            return;
        };
        if !self.move_own_part(origin) && self.revoke_grant(origin) {
            self.transports.done(origin);
        }
    }

    /// Ends a grant of which this process has moved all parts, unless the initiator has taken one.
    fn revoke_grant(&mut self, origin: Origin) -> bool {
        let Some(grant) = self.grants.take(origin.lane) else {
            return false;
        };
        if grant.is_closed || !self.transports.nal.revoke_grant(origin, grant.parts) {
            self.grants.insert(grant);
            return false;
        }
        self.finish_lent(origin, grant.landing.landed, grant.fail);
        true
    }

    /// Moves the next part of the body that was granted to that process; false if none is left.
    fn move_own_part(&mut self, origin: Origin) -> bool {
        let grant = self.grants.of(origin.lane).filter(|grant| !grant.is_closed);
        let taken = grant.and_then(|grant| {
            let length = grant.landing.landed.mlength();
            (self.transports.nal).take_part(Granted::To(origin), length)
        });
        let Some((offset, bytes)) = taken else {
            return false;
        };
        self.move_taken_part(origin, offset, bytes);
        true
    }

    /// Moves a part that this process has taken of the body that was granted to that process.
    fn move_taken_part(&mut self, origin: Origin, offset: u64, bytes: u64) {
        let Some(mut grant) = self.grants.take(origin.lane) else {
            return;
        };
        let fail = self.move_part(origin, &grant.landing, offset, bytes);
        grant.parts += 1;
        if fail != NiFail::Ok {
            grant.fail = fail;
        }
        self.grants.insert(grant);
    }

    /// An initiator has moved what it took of a body, or leaves it to this process.
    #[cold]
    pub(crate) fn on_moved(&mut self, origin: Origin, is_moved: bool) {
        match self.grants.take(origin.lane) {
            // The initiator has ended the operation.
            Some(grant) if is_moved && grant.parts == 0 => self.post_granted(grant, NiFail::Ok),
            // The message arrives once more, and is refused.
            Some(grant) if grant.is_closed => return,
            Some(grant) => {
                let fail = match is_moved && grant.fail == NiFail::Ok {
                    true => NiFail::Ok,
                    // Which shows whose memory is at fault.
                    false => self.move_lent(origin, &grant.landing),
                };
                self.finish_lent(origin, grant.landing.landed, fail);
            }
            None => {}
        }
        self.transports.done(origin);
    }

    /// Moves so many bytes of a body from `offset` on.
    fn move_part(
        &mut self,
        origin: Origin,
        one: &LentLanding<O::Span>,
        offset: u64,
        bytes: u64,
    ) -> NiFail {
        let here = one.pieces.part(offset, bytes);
        let (here, loan) = (here.as_slice(), one.loan.part(offset, bytes));
        match one.landed.request().verb {
            Verb::Put => O::Mover::fetch(self.move_parts(), origin, &loan, here),
            _ => O::Mover::fill(self.move_parts(), origin, here, &loan),
        }
    }

    /// A process that was granted to move bodies is lost.
    #[cold]
    pub(crate) fn end_grants_of(&mut self, process: ProcessId) {
        while let Some(grant) = self.grants.take_of(process) {
            self.post_granted(grant, NiFail::Undeliverable);
        }
    }

    /// A message is over without an answer.
    fn post_granted(&mut self, grant: Grant<O::Span>, fail: NiFail) {
        if !grant.is_closed {
            self.post_landed(grant.landing.landed, fail);
        }
    }
}

/// At the initiator.
impl<O: Owner> Core<O> {
    /// The target has granted that this process moves the body of an operation.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_granted(&mut self, origin: Origin, response: &Response, loan: &RemoteLoan) {
        let moved = self.move_granted(origin, response, loan);
        let moved = moved.unwrap_or(Moved::Nothing);
        (self.transports.nal).note_moved(origin.process, moved);
        if moved == Moved::Whole {
            let response = Response {
                placed: true,
                ..*response
            };
            self.on_response(origin, &response, Payload::Placed);
        }
    }

    /// Moves the parts of a body that the target doesn't take; nothing if they are better moved by
    /// the target, which finds out whose memory is at fault.
    fn move_granted(
        &mut self,
        origin: Origin,
        response: &Response,
        loan: &RemoteLoan,
    ) -> Option<Moved> {
        let opened = self.interfaces[response.interface.position()].as_ref()?;
        let pieces = opened.interface.granted(origin.process, response)?;
        let here = O::Mover::as_claims(pieces.as_slice())?;
        let (all, mut moved) = (response.mlength, 0);
        if pieces.length() != all || loan.spans.length() != all {
            return None;
        }
        let granted = Granted::By(origin.process);
        while let Some((offset, bytes)) = self.transports.nal.take_part(granted, all) {
            let here: Pieces<Claim> = parts(here, offset, bytes).collect();
            let (here, there) = (here.as_slice(), loan.part(offset, bytes));
            let part = match response.reply {
                true => self.transports.fetch(origin, &there, here),
                false => self.transports.fill(origin, here, &there),
            };
            if part != Ok(bytes) {
                return None;
            }
            moved += bytes;
        }
        match moved == all {
            true => Some(Moved::Whole),
            false => Some(Moved::Parts),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::core::Core;
    use crate::owner::LocalProcess;
    use crate::testing::{MEMORY, Network, Peer, wait_until};
    use lintel_engine4::Deferred;
    use lintel_types::{CountingEvent, Error, EventKind, InterfaceNumber, NiFail};
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

    /// The target waits, and moves so many parts of what it has granted.
    fn move_parts(peer: &Peer, parts: usize) {
        peer.library.with_core(|core| {
            for _ in 0..parts {
                core.move_granted_part();
            }
        });
    }

    #[test]
    fn both_sides_move_parts_of_a_body_if_both_wait() {
        for at_target in 0..=4 {
            let (network, one, two) = pair();
            network.parts_of_each.store(4, Ordering::SeqCst);
            fill(&one, 7);
            start_and_grant(&network, &one, &two, || one.put(&two, MEMORY));
            move_parts(&two, at_target);
            *network.deaf.lock() = None;
            assert_eq!(one.event().kind, EventKind::Send);
            let ack = one.event();
            assert_eq!((ack.kind, ack.mlength), (EventKind::Ack, MEMORY));
            assert!(is_filled(&two, 7));
            let mut movers = vec![two.me; at_target];
            movers.resize(4, one.me);
            assert_eq!(*network.movers.lock(), movers);
            let event = two.event();
            assert_eq!((event.ni_fail, event.mlength), (NiFail::Ok, MEMORY));
        }
    }

    #[test]
    fn both_sides_move_parts_of_what_is_got() {
        let (network, one, two) = pair();
        network.parts_of_each.store(3, Ordering::SeqCst);
        fill(&two, 9);
        start_and_grant(&network, &one, &two, || one.get(&two, MEMORY));
        move_parts(&two, 1);
        *network.deaf.lock() = None;
        let reply = one.event();
        assert_eq!((reply.kind, reply.mlength), (EventKind::Reply, MEMORY));
        assert!(is_filled(&one, 9));
        assert_eq!(network.movers.lock()[..2], [two.me, one.me]);
        assert_eq!(two.event().kind, EventKind::Get);
    }

    #[test]
    fn a_caller_of_the_target_moves_what_the_initiator_does_not_take() {
        let (network, one, two) = pair();
        network.both_move.store(true, Ordering::SeqCst);
        network.parts_of_each.store(4, Ordering::SeqCst);
        fill(&one, 7);
        *network.deaf.lock() = Some(two.me);
        one.put(&two, MEMORY);
        wait_until("it is sent", || network.waiting(two.me) == 1);
        two.library.with_core(|core| {
            *network.deaf.lock() = Some(one.me);
            core.progress();
        });
        assert!(is_filled(&two, 7));
        let taken = two
            .library
            .queue_take(two.queue, |taken| taken.event().mlength);
        assert_eq!(taken, Ok(MEMORY), "nobody waits for the initiator");
        *network.deaf.lock() = None;
        wait_until("it is answered", || one.event().kind == EventKind::Ack);
        assert_eq!(*network.movers.lock(), [two.me; 4]);
    }

    fn by_caller(core: &mut Core<LocalProcess>) {
        core.progress();
    }

    /// A put to a target that waits, or whose helper finds it, while its initiator doesn't look: the
    /// calls by which the target moves its body.
    fn moves_at_target(
        network: &Network,
        one: &Peer,
        two: &Peer,
        finds: fn(&mut Core<LocalProcess>),
    ) -> usize {
        fill(one, 7);
        fill(two, 0);
        network.movers.lock().clear();
        *network.deaf.lock() = Some(two.me);
        one.put(two, MEMORY);
        wait_until("it is sent", || network.waiting(two.me) == 1);
        two.library.with_core(|core| {
            *network.deaf.lock() = Some(one.me);
            finds(core);
        });
        *network.deaf.lock() = None;
        wait_until("it is answered", || one.event().kind == EventKind::Ack);
        assert_eq!(two.event().ni_fail, NiFail::Ok);
        assert!(is_filled(two, 7));
        let movers = network.movers.lock();
        assert!(movers.iter().all(|mover| *mover == two.me));
        movers.len()
    }

    #[test]
    fn of_what_is_counted_a_caller_moves_parts_as_well_unless_the_count_triggers_something()
    -> lintel_types::Result<()> {
        let (network, one, mut two) = pair();
        network.both_move.store(true, Ordering::SeqCst);
        network.parts_of_each.store(4, Ordering::SeqCst);
        let counter = two.count()?;
        assert_eq!(moves_at_target(&network, &one, &two, by_caller), 4);
        assert_eq!(two.library.counter_get(counter)?.success, 1);
        let all = moves_at_target(&network, &one, &two, Core::progress_for_peers);
        assert_eq!(all, 1, "the initiator alone would wake nobody");
        let (success, failure) = (10, 0);
        let increment = Deferred::Increment(counter, CountingEvent { success, failure });
        two.library.trigger(increment, counter, 3)?;
        assert_eq!(moves_at_target(&network, &one, &two, by_caller), 1);
        assert_eq!(two.library.counter_get(counter)?.success, 13);
        Ok(())
    }

    #[test]
    fn a_target_that_moves_parts_takes_one_before_its_initiator_could_take_all() {
        let (network, one, two) = pair();
        network.both_move.store(true, Ordering::SeqCst);
        network.parts_of_each.store(4, Ordering::SeqCst);
        moves_at_target(&network, &one, &two, by_caller);
        assert_eq!(network.taken_before.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_body_of_which_the_initiator_cant_move_a_part_is_moved_by_the_target() {
        let (network, one, two) = pair();
        network.parts_of_each.store(4, Ordering::SeqCst);
        let bad = two.memory.claim().address() + MEMORY / 4 * 2;
        network.bad_address.store(bad, Ordering::SeqCst);
        fill(&one, 7);
        start_and_grant(&network, &one, &two, || one.put(&two, MEMORY));
        move_parts(&two, 1);
        *network.deaf.lock() = None;
        assert_eq!(one.event().kind, EventKind::Send);
        assert_eq!(one.event().ni_fail, NiFail::Ok);
        let movers = [two.me, one.me, one.me, two.me];
        assert_eq!(*network.movers.lock(), movers);
        assert!(is_filled(&two, 7));
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
