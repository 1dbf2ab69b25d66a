//! What one lock guards: the interfaces, their transports, and the state of all that poll
//! and sleep.

use crate::effects::Effects;
use crate::exchange::ExchangeBuffers;
use crate::grants::Grants;
use crate::lent_landings::LentLandings;
use crate::lent_replies::LentReplies;
use crate::log::{Level, log};
use crate::observed::Observed;
use crate::owner::Owner;
use crate::prepared::PreparedOperations;
use crate::prepared_landings::PreparedLandings;
use crate::prepared_sends::PreparedSends;
use crate::protocol::Protocol;
use crate::resources::{ProcessInfo, Stats};
use crate::staged_sends::StagedSends;
use crate::streams::Stream;
use crate::transport::{Endpoint, OfTransport, Transport};
use crate::transports::Transports;
use crate::wakeup::Wakeup;
use lintel_claim::{Claim, Lease};
use lintel_engine4::{Interface, Landed};
use lintel_nal::{Arrival, Nal, Origin, Payload, Wake};
use lintel_nal_shm::ShmNal;
use lintel_progress::{Deferral, RoomNext, RoomWait};
use lintel_types::{InterfaceNumber, List, NiFail, ProcessId};
use lintel_wire::{Kind, Message, Request, Response, Verb, Words};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Messages handled before the lock is released.
pub(crate) const BATCH: usize = 256;
/// How often peers are checked while something is awaited from them.
pub(crate) const PEER_CHECK: Duration = Duration::from_millis(50);

pub(crate) struct Core<O: Owner> {
    pub(crate) interfaces: [Option<OpenInterface<O>>; 4],
    pub(crate) owner: O,
    pub(crate) transports: Transports,
    /// Buffers that stand for the owner's memory.
    pub(crate) staged: StagedSends<O::Span>,
    /// Where messages land whose bodies are lent.
    pub(crate) lent: LentLandings<O::Span>,
    /// Streams that are arriving, with their senders.
    pub(crate) streams: Vec<(Origin, Stream<O::Span>)>,
    /// Messages whose bodies their initiators move.
    pub(crate) grants: Grants<O::Span>,
    /// Gets whose replies are read in place.
    pub(crate) lent_replies: LentReplies<Landed>,
    /// Memory that atomics use one after the other.
    pub(crate) exchange: ExchangeBuffers,
    /// What runs beside Portals 4.
    pub(crate) protocol: O::Protocol,
    /// Who polls, who sleeps, and who is rung.
    pub(crate) wakeup: Wakeup,
    /// What tools read of this process.
    pub(crate) stats: Stats,
    pub(crate) observed: Observed,
    /// The last polls have found messages one after the other, and nothing was sent meanwhile.
    pub(crate) receives_stream: bool,
    /// The last poll has found messages.
    found: bool,
    /// A caller polls, or has polled last, and a look in vain came before.
    waited: bool,
    /// The last look of a caller has ended with an acknowledgement.
    pub(crate) acknowledged: bool,
    /// Sends that were started otherwise since one was last prepared.
    pub(crate) unprepared_sends: u32,
    /// Polls of callers since one looked for a put that others may land like.
    pub(crate) unprepared_landings: u32,
    /// How often callers still try to land a message like an earlier one. More often than every
    /// fifth time it pays.
    pub(crate) landing_tries: u32,
    /// What became of an unexpected message that the last look at what has arrived has met.
    pub(crate) unexpected: Unexpected,
    /// Whether a caller's look leaves such a message for the next one.
    deferral: Deferral,
    /// When peers were last checked.
    peers_checked: Instant,
}

/// What ends a caller's look: an unexpected message, or an acknowledgement that took more steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unexpected {
    /// There was none so far.
    None,
    /// It has landed.
    Taken,
    /// It is still the next message.
    Left,
    /// It was none, but an acknowledgement that the caller has waited for.
    Acknowledgement,
}

/// What became of a message that was looked at.
enum Handled {
    /// It has been dealt with.
    InOneStep,
    /// Likewise; it was an acknowledgement.
    Acknowledgement,
    /// It is still the next one.
    Left,
    /// It takes more steps.
    No,
}

/// What the log says of a process that is lost to this one.
fn lost(process: ProcessId, me: ProcessId) -> String {
    let is_loopback = |process: ProcessId| Ipv4Addr::from(process.nid).is_loopback();
    let mut words = format!("process {process} is gone, or can't be reached");
    if is_loopback(process) != is_loopback(me) {
        words.push_str(&format!(
            ": of it and this one, {me}, only one has a loopback address; PTL_IFACE chooses both"
        ));
    }
    words
}

/// An interface in use.
pub(crate) struct OpenInterface<O: Owner> {
    pub(crate) interface: Box<Interface<O::Span>>,
    /// Calls of PtlNIInit less calls of PtlNIFini; at 0 the interface closes.
    pub(crate) references: u32,
    /// Part of the interface's handles, so that those of a closed one are stale.
    pub(crate) generation: u16,
    /// The lease under which its memory is lent.
    pub(crate) lease: Lease,
    /// Operations on direct entries of peers.
    pub(crate) prepared: Box<PreparedOperations>,
    /// Sends to processes of this node.
    pub(crate) sends: Box<PreparedSends<O::Span>>,
    /// Puts from processes of this node.
    pub(crate) landings: Box<PreparedLandings<O::Span>>,
}

impl<O: Owner> Core<O> {
    pub(crate) fn new(endpoint: Endpoint, info: ProcessInfo, owner: O) -> Core<O> {
        let Endpoint {
            me,
            transport,
            bell,
            stats,
        } = endpoint;
        Core {
            interfaces: [const { None }; 4],
            transports: Transports::new(me, owner.uid(), transport),
            protocol: O::Protocol::new(&owner),
            owner,
            staged: StagedSends::default(),
            lent: LentLandings::default(),
            streams: Vec::new(),
            grants: Grants::default(),
            lent_replies: LentReplies::default(),
            exchange: ExchangeBuffers::new(),
            wakeup: Wakeup::new(bell, O::DEFERS_ACKNOWLEDGEMENTS),
            stats: Stats::new(stats, info),
            observed: Observed::default(),
            receives_stream: false,
            found: false,
            waited: false,
            acknowledged: false,
            unprepared_sends: 0,
            unprepared_landings: 0,
            landing_tries: 0,
            unexpected: Unexpected::None,
            deferral: Deferral::default(),
            peers_checked: Instant::now(),
        }
    }

    /// An open interface, and what its commands cause.
    #[inline(always)]
    pub(crate) fn interface(
        &mut self,
        number: InterfaceNumber,
    ) -> Option<(&mut Interface<O::Span>, Effects<'_, O>)> {
        let opened = self.interfaces[number.position()].as_mut()?;
        Some((
            &mut opened.interface,
            Effects {
                transports: &mut self.transports,
                tables: &self.owner.tables()[number.position()],
                owner: &self.owner,
                staged: &mut self.staged,
                exchange: &mut self.exchange,
                lease: &opened.lease,
            },
        ))
    }

    /// Begins with the sender on that lane, whose message a look has seen.
    #[inline(always)]
    pub(crate) fn turn_to(&mut self, lane: usize) {
        if let Some(near) = self.transports.nal.near_mut() {
            near.turn_to(lane);
        }
    }

    /// Handles what has arrived and sends what is queued. Returns the number of arrivals. Ends with a
    /// message whose answer is queued behind much else: those to further ones would have to be
    /// copied for that, too.
    #[inline(never)]
    pub(crate) fn progress(&mut self) -> usize {
        self.waited = false;
        self.progress_until(|_| false)
    }

    /// As [`progress`](Self::progress); ends also where `is_over` says so.
    #[inline(always)]
    fn progress_until(&mut self, is_over: impl Fn(&Self) -> bool) -> usize {
        self.unexpected = Unexpected::None;
        let mut handled = 0;
        while handled < BATCH {
            if let Some(arrival) = self.transports.nal.next() {
                self.on_arrival(arrival);
                handled += 1;
            } else {
                break;
            }
            handled += self.handle_inline(BATCH, false);
            if self.take_queued_more() || is_over(self) {
                break;
            }
        }
        handled + self.progress_own()
    }

    #[inline(always)]
    fn take_queued_more(&mut self) -> bool {
        let near = self.transports.nal.near_mut();
        near.is_some_and(ShmNal::take_queued_more)
    }

    /// As [`progress`](Self::progress), by a caller that polls again: inline messages, which
    /// most are, and the others only if there is none. Ends also with an unexpected message, or
    /// in front of it: the caller may be about to append entries for it, or for those behind it. One
    /// that is left counts as one that has arrived.
    #[inline(always)]
    fn progress_of_caller(&mut self) -> usize {
        self.unexpected = Unexpected::None;
        for look in 0..=self.transports.nal.inline_polls() {
            let handled = self.handle_inline(BATCH, true);
            let is_left = self.unexpected == Unexpected::Left;
            if handled > 0 || is_left {
                if self.unexpected == Unexpected::None {
                    self.deferral.on_looked(handled);
                }
                return handled + usize::from(is_left) + self.progress_own();
            }
            if look == 0 {
                let others = self.progress_until_unexpected();
                if others > 0 {
                    return others;
                }
            }
        }
        0
    }

    /// As [`progress`](Self::progress); ends also with an unexpected message.
    #[inline(never)]
    fn progress_until_unexpected(&mut self) -> usize {
        self.progress_until(|core| core.unexpected == Unexpected::Taken)
    }

    /// Handles messages that have their bytes with them, at most so many, and none behind an unexpected
    /// one, which a caller may leave, nor behind an acknowledgement that a caller has waited for: it goes
    /// on then, and what has arrived behind it would keep it waiting for its line.
    #[inline(always)]
    fn handle_inline(&mut self, most: usize, by_caller: bool) -> usize {
        match self.transports.nal {
            Transport::Shm(_) => self.handle_inline_on::<ShmNal>(most, by_caller),
            _ => self.handle_inline_on::<Transport>(most, by_caller),
        }
    }

    /// As [`handle_inline`](Self::handle_inline), on a transport whose type is known.
    #[inline(never)]
    fn handle_inline_on<N: OfTransport>(&mut self, most: usize, by_caller: bool) -> usize {
        let mut handled = 0;
        while handled < most {
            let next = N::of(&mut self.transports.nal).and_then(N::next_inline);
            let Some((origin, words, claim)) = next else {
                break;
            };
            let behind = by_caller.then_some(handled);
            match self.on_inline::<N>(origin, &words, claim, behind) {
                Handled::InOneStep => {}
                Handled::Acknowledgement if by_caller && self.waited => {
                    self.acknowledged = true;
                    handled += 1;
                    break;
                }
                Handled::Acknowledgement => {}
                Handled::Left => break,
                // A copy, so that the common path has none in memory.
                Handled::No => self.on_message(origin, &{ words }, Payload::Inline(claim)),
            }
            handled += 1;
            if self.unexpected != Unexpected::None {
                break;
            }
        }
        self.transports.send_acknowledgements();
        handled
    }

    /// Whether a caller's look, which has handled so many messages, leaves this put: the caller
    /// may be about to append an entry for it.
    #[inline(never)]
    fn leaves(&mut self, origin: Origin, words: &Words, handled: usize) -> bool {
        let is_unexpected = Request::parse_put(words).is_some_and(|put| {
            let opened = self.interfaces[put.interface.position()].as_ref();
            opened.is_some_and(|opened| opened.interface.is_unexpected(origin.process, &put))
        });
        let leaves = is_unexpected && self.deferral.on_unexpected(handled);
        if leaves {
            self.unexpected = Unexpected::Left;
        }
        leaves
    }

    /// Messages of this process to itself, what peers have counted, and what is queued.
    #[inline(always)]
    fn progress_own(&mut self) -> usize {
        let queued = self.transports.flush();
        self.transports.congested &= queued;
        self.transports.queued = queued;
        let counted = match self.transports.direct.counts() {
            false => 0,
            true => self.count_direct(),
        };
        match self.transports.loopback.is_empty() {
            true => counted,
            false => counted + self.drain_loopback(),
        }
    }

    /// Progress made by a caller that waits for something, in the last of so many polls;
    /// whether the bell can be disarmed.
    #[inline(always)]
    pub(crate) fn poll(&mut self, polls: u32) -> bool {
        let answers = std::mem::take(&mut self.transports.sent);
        // One look may have seen what this poll is about to find.
        self.waited = !self.found | (polls > 2);
        if self.progress_of_caller() > 0 {
            self.landing_tries = self.landing_tries.saturating_sub(1);
            self.found = true;
            self.receives_stream = !self.waited & !answers;
            self.wakeup.poll_found();
        } else {
            self.receives_stream = false;
            self.found = false;
            if answers {
                self.wakeup.begin_polling();
            }
            if self.wakeup.poll_in_vain(polls) {
                self.wake_peers();
            }
            if !self.grants.is_empty() && self.wakeup.waits_long() {
                self.move_granted_part();
            }
            if self.transports.nal.is_idle() {
                self.wakeup.network_is_idle();
            }
        }
        self.end_poll()
    }

    /// A caller has polled; whether the bell can be disarmed.
    #[inline(always)]
    pub(crate) fn end_poll(&mut self) -> bool {
        self.wakeup.end_poll(|| self.transports.moved_by_callers)
    }

    #[cold]
    fn wake_peers(&mut self) {
        self.transports.nal.wake_peers();
    }

    /// Whether the helper sleeps beyond what is due.
    #[inline]
    pub(crate) fn helper_oversleeps(&self) -> bool {
        let due = self.transports.nal.due();
        due.is_some_and(|due| self.wakeup.helper_oversleeps(due))
    }

    /// Sees to it that the helper looks in time for what a call has begun.
    #[inline(always)]
    pub(crate) fn hasten_helper(&mut self) {
        if !self.wakeup.helper_polls() {
            if self.helper_oversleeps() {
                self.wakeup.wake_helper();
            }
        } else if self.wakeup.helper_looks_seldom() && self.transports.nal.needs_progress() {
            self.wakeup.hurry_helper();
        }
    }

    /// The thread that polls stops. Returns how many messages arrived meanwhile: there may
    /// be more, for which nobody rings.
    pub(crate) fn stop_polling(&mut self) -> usize {
        self.wakeup.stop_polling();
        let arrived = self.progress();
        // Only the helper checks peers from now on.
        if arrived == 0 && self.awaits_peers() {
            let check = Instant::now() + PEER_CHECK;
            if self.wakeup.helper_oversleeps(check) {
                self.wakeup.wake_helper();
            }
        }
        arrived
    }

    /// A look of a caller that waits until a peer takes what is queued for it; nothing once it
    /// has. The first look begins the wait.
    pub(crate) fn look_at_peer(
        &mut self,
        peer: ProcessId,
        wait: &mut Option<RoomWait>,
    ) -> Option<RoomNext> {
        let (before, congested) = (self.transports.nal.backlog(peer), self.transports.congested);
        let wait = wait.get_or_insert_with(|| RoomWait::new(before, congested));
        self.progress();
        if !self.transports.flush() || !self.transports.nal.has_queued(peer) {
            return None;
        }
        let queued = self.transports.nal.backlog(peer);
        let next = wait.on_looked(queued, || self.wakeup.now());
        if next == RoomNext::GiveUp {
            self.transports.congested = true;
            self.wakeup.wake_helper();
        }
        Some(next)
    }

    /// The process of this node that something was sent to last, if the last poll has left much
    /// queued for it and the caller had better wait until it has read that.
    #[cold]
    pub(crate) fn slow_reader(&mut self) -> Option<ProcessId> {
        let peer = self.transports.behind()?;
        let congested = self.transports.congested;
        let near = self.transports.nal.near_mut()?;
        let may_wait = !congested && near.has_much_queued() && near.may_await_reader(peer);
        may_wait.then_some(peer)
    }

    /// A look of a caller that sees to it that answers reach a peer before it takes further
    /// messages; nothing once they have. The first look begins the wait.
    pub(crate) fn look_at_reader(
        &mut self,
        peer: ProcessId,
        wait: &mut Option<RoomWait>,
    ) -> Option<RoomNext> {
        let is_queued = self.transports.flush();
        let near = self.transports.nal.near_mut()?;
        if !is_queued || !near.may_await_reader(peer) {
            return None;
        }
        let queued = near.backlog(peer);
        let wait = wait.get_or_insert_with(|| RoomWait::new(queued, false));
        let next = wait.on_looked(queued, || self.wakeup.now());
        self.transports.congested |= next == RoomNext::GiveUp;
        Some(next)
    }

    /// Handles messages of this process to itself; they may cause further ones.
    #[inline]
    pub(crate) fn drain_loopback(&mut self) -> usize {
        let mut handled = 0;
        while let Some(arrival) = self.transports.loopback.next() {
            self.on_arrival(arrival);
            handled += 1;
        }
        handled
    }

    #[inline(never)]
    fn on_arrival(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Message(origin, words, payload) => self.on_message(origin, &words, payload),
            Arrival::Streamed(origin) => self.on_streamed(origin, NiFail::Ok),
            Arrival::Broken(origin) => self.on_streamed(origin, NiFail::Undeliverable),
            Arrival::Lost(process) => self.on_lost(process),
            Arrival::Returned(number) => self.on_returned(number),
            Arrival::Moved(origin, is_moved) => self.on_moved(origin, is_moved),
        }
    }

    /// A message from elsewhere whose bytes came with it; most are handled in one step. `behind` is
    /// how many a caller's look has handled before it, if it is a caller that looks.
    #[inline(always)]
    fn on_inline<N: OfTransport>(
        &mut self,
        origin: Origin,
        words: &Words,
        body: Claim,
        behind: Option<usize>,
    ) -> Handled {
        let mut handled = Handled::InOneStep;
        let is_done = match Request::parse_put(words) {
            Some(put) => {
                let is_done = self.deliver(origin, &put, body);
                if !is_done && behind.is_some_and(|behind| self.leaves(origin, &{ *words }, behind))
                {
                    return Handled::Left;
                }
                is_done
            }
            None => match Message::kind(words[0]) {
                kind @ (Kind::Acknowledgements | Kind::Acknowledgement) => {
                    handled = Handled::Acknowledgement;
                    match kind {
                        Kind::Acknowledgements => self.deliver_acknowledgements(origin, words),
                        _ => self.deliver_acknowledgement(origin, words),
                    }
                }
                Kind::Exchange => self.deliver_exchange(origin, words, body),
                _ => (self.protocol).deliver(&mut self.transports, origin, words, body),
            },
        };
        if is_done && self.transports.holds_answers {
            self.offer_private(origin, &{ *words });
        }
        match N::of(&mut self.transports.nal) {
            Some(nal) if is_done => {
                nal.done(origin);
                handled
            }
            _ => Handled::No,
        }
    }

    #[inline(never)]
    fn on_message(&mut self, origin: Origin, words: &Words, payload: Payload) {
        // What answers this one comes behind them.
        self.transports.send_acknowledgements();
        let is_long = !matches!(payload, Payload::Inline(_));
        if self.transports.holds_answers || is_long && self.transports.is_offer_due() {
            self.offer_private(origin, words);
        }
        match Message::parse(words) {
            Ok(Message::Request(request)) => {
                let landed = self.on_request(origin, &request, payload);
                return self.transports.done_lent(origin, landed);
            }
            Ok(Message::Response(response)) => match payload {
                Payload::Lent(loan) => self.on_granted(origin, &response, &loan),
                payload => {
                    self.on_response(origin, &response, payload);
                    self.end_look_behind(!response.reply);
                }
            },
            Ok(Message::Acknowledgements(all)) => {
                self.on_acknowledgements(origin, &all);
                self.end_look_behind(true);
            }
            Err(malformed) => {
                let (protocol, transports) = (&mut self.protocol, &mut self.transports);
                if !protocol.on_message(transports, origin, words, payload) {
                    log(
                        Level::Warn,
                        &format!("{malformed} (process {})", origin.process),
                    );
                }
            }
        }
        self.transports.done(origin);
    }

    /// Ends a caller's look behind an acknowledgement, if it was one and the caller has waited for it.
    fn end_look_behind(&mut self, is_acknowledgement: bool) {
        if is_acknowledgement && self.waited {
            self.unexpected = Unexpected::Acknowledgement;
            self.acknowledged = true;
        }
    }

    /// A request for an interface that isn't open is dropped as if its portal
    /// table entry weren't allocated, and undeliverable if its process has ended.
    pub(crate) fn refuse(&mut self, origin: Origin, request: &Request) {
        if request.token != 0 {
            let fail = match self.transports.has_lost_owner {
                true => NiFail::Undeliverable,
                false => NiFail::Dropped,
            };
            let response = Response {
                reply: !matches!(request.verb, Verb::Put | Verb::Atomic),
                interface: request.interface,
                placed: false,
                silent: false,
                token: request.token,
                mlength: 0,
                offset: 0,
                list: List::Priority,
                fail,
            };
            self.transports.respond(origin.process, &response);
        }
    }

    #[cold]
    fn on_lost(&mut self, process: ProcessId) {
        self.staged.forget(process);
        self.end_grants_of(process);
        let mut undelivered = 0;
        for number in InterfaceNumber::ALL {
            if let Some((interface, mut effects)) = self.interface(number) {
                undelivered += interface.on_target_lost(process, &mut effects);
            }
        }
        // A process that has ended is news only to those that await its answers.
        let level = if undelivered > 0 {
            Level::Warn
        } else {
            Level::Info
        };
        log(level, &lost(process, self.transports.me));
        self.protocol.on_lost(&mut self.transports, process);
    }

    /// Whether something is awaited from another process: an answer, a stream, or free space.
    pub(crate) fn awaits_peers(&mut self) -> bool {
        let waits = self.awaits_answers()
            || !self.streams.is_empty()
            || !self.lent_replies.is_empty()
            || !self.grants.is_empty()
            || self.protocol.depends_on_peers();
        waits || self.transports.flush()
    }

    /// Whether operations of this process are under way.
    pub(crate) fn awaits_answers(&self) -> bool {
        let mut opened = self.interfaces.iter().flatten();
        opened.any(|opened| opened.interface.operations_under_way() > 0)
    }

    /// When a sleeper must wake by itself: when the NAL has something due, or peers are to be
    /// checked.
    pub(crate) fn next_due(&self, awaits_peers: bool) -> Option<Instant> {
        let check = awaits_peers.then(|| Instant::now() + PEER_CHECK);
        self.transports.nal.due().into_iter().chain(check).min()
    }

    /// Checks peers, if it is time to.
    pub(crate) fn check_peers(&mut self) {
        if self.peers_checked.elapsed() >= PEER_CHECK {
            self.peers_checked = Instant::now();
            self.transports.nal.check_peers();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MEMORY, Network, Peer, put_of, segment, wait_until};
    use lintel_engine4::Transfer;
    use lintel_types::{AckRequest, Error, EventKind, MeOptions};
    use std::sync::atomic::Ordering;

    #[test]
    fn peers_are_checked_while_the_thread_that_polled_sleeps() {
        let network = Network::default();
        let one = network.peer(1);
        // The helper's looks on the way to its first sleep.
        one.put(&one, 8);
        one.event();
        let silent = ProcessId::new(1, 2);
        network.register(silent, segment());
        let transfer = put_of(one.descriptor, silent, 8);
        let started = one.library.try_start(transfer);
        started.expect("the arguments are valid");
        one.library.with_core(Core::stop_polling);
        let checks = || network.checks.load(Ordering::SeqCst);
        wait_until("peers are checked again and again", || checks() > 2);
    }

    /// Two peers, of which the second one takes a message at a time and has an overflow entry, and
    /// so many messages for it that wait.
    fn with_waiting(messages: usize) -> Result<(Network, Peer, Peer), Error> {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        network.holds_arrivals.store(true, Ordering::SeqCst);
        two.library.unlink(two.entry)?;
        two.append_behind(MeOptions::USE_ONCE, List::Priority)?;
        two.append_behind(MeOptions::empty(), List::Overflow)?;
        (0..messages).for_each(|_| one.put(&two, 8));
        Ok((network, one, two))
    }

    /// Who polls may be about to append entries for it, and for the messages behind it.
    #[test]
    fn a_callers_look_leaves_an_unexpected_message_once_and_ends_behind_it() -> Result<(), Error> {
        let (network, _one, two) = with_waiting(5)?;
        let mut left = Vec::new();
        // Under one lock, so that the helper takes none.
        two.library.with_core(|core| {
            network.holds_arrivals.store(false, Ordering::SeqCst);
            for _ in 0..5 {
                core.poll(1);
                left.push(network.waiting(two.me));
            }
        });
        assert_eq!(
            left,
            [4, 4, 3, 3, 2],
            "behind an expected one, in vain, and then each by the second look"
        );
        Ok(())
    }

    /// MPI libraries poll until nothing more comes before a program can post its next receive.
    #[test]
    fn a_message_that_was_left_meets_the_entry_appended_for_it() -> Result<(), Error> {
        let (network, _one, two) = with_waiting(2)?;
        two.library.with_core(|core| {
            network.holds_arrivals.store(false, Ordering::SeqCst);
            core.poll(1);
            core.poll(1);
            network.holds_arrivals.store(true, Ordering::SeqCst);
        });
        two.append_behind(MeOptions::USE_ONCE, List::Priority)?;
        network.holds_arrivals.store(false, Ordering::SeqCst);
        let kinds = [0; 4].map(|_| two.event().kind);
        let of_each = [EventKind::Put, EventKind::AutoUnlink];
        assert_eq!(kinds, [of_each, of_each].concat()[..]);
        Ok(())
    }

    /// Who has waited for it goes on before what has arrived behind it is read, but not between many.
    #[test]
    fn a_callers_look_after_one_in_vain_ends_behind_an_acknowledgement() {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        network.holds_arrivals.store(true, Ordering::SeqCst);
        // Ten of them are acknowledged together.
        (0..31).for_each(|_| one.put(&two, 8));
        let mut waiting = Vec::new();
        // Under both locks, so that no helper takes any.
        one.library.with_core(|sender| {
            two.library.with_core(|core| {
                network.holds_arrivals.store(false, Ordering::SeqCst);
                core.poll(1);
            });
            for polls in [3, 3, 1] {
                sender.poll(polls);
                waiting.push(network.waiting(one.me));
            }
            assert!(std::mem::take(&mut sender.acknowledged));
        });
        assert_eq!(waiting, [3, 2, 0]);
    }

    /// An acknowledgement of lent bytes is one, too.
    #[test]
    fn a_callers_look_ends_behind_the_acknowledgement_of_a_long_put() {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        network.holds_arrivals.store(true, Ordering::SeqCst);
        (0..3).for_each(|_| one.put(&two, MEMORY));
        let mut waiting = Vec::new();
        // Under both locks, so that no helper takes any.
        one.library.with_core(|sender| {
            two.library.with_core(|core| {
                network.holds_arrivals.store(false, Ordering::SeqCst);
                core.poll(1);
            });
            for polls in [3, 3] {
                sender.poll(polls);
                let is_acknowledged = std::mem::take(&mut sender.acknowledged);
                waiting.push((network.waiting(one.me), is_acknowledged));
            }
        });
        assert_eq!(waiting, [(2, true), (1, true)]);
    }

    /// A program that polls until a message comes, and then for the next one, has polled in vain in
    /// between.
    #[test]
    fn messages_are_a_stream_if_polls_in_a_row_find_them() {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        let transfer = Transfer {
            ack: AckRequest::None,
            ..put_of(one.descriptor, two.me, 8)
        };
        let mut streams = Vec::new();
        two.library.with_core(|core| {
            for polls in [1, 1, 2, 3, 1] {
                one.start(transfer.clone());
                core.poll(polls);
                streams.push(core.receives_stream);
            }
            core.poll(1);
            streams.push(core.receives_stream);
        });
        assert_eq!(streams, [false, true, true, false, true, false]);
    }

    #[test]
    fn progress_for_no_caller_leaves_no_unexpected_message() -> Result<(), Error> {
        let (network, _one, two) = with_waiting(5)?;
        two.library.with_core(|core| {
            network.holds_arrivals.store(false, Ordering::SeqCst);
            core.progress();
            assert_eq!(network.waiting(two.me), 0);
        });
        Ok(())
    }

    /// What a look has landed is acknowledged when it ends.
    #[test]
    fn acknowledgements_of_one_look_go_together_in_front_of_later_answers() {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        network.holds_arrivals.store(true, Ordering::SeqCst);
        (0..12).for_each(|_| one.put(&two, 8));
        (0..12).for_each(|_| assert_eq!(one.event().kind, EventKind::Send));
        one.get(&two, 8);
        // Under both locks, so that no helper takes any.
        one.library.with_core(|_| {
            two.library.with_core(|core| {
                network.holds_arrivals.store(false, Ordering::SeqCst);
                core.poll(1);
            });
            let sent = (0..).map_while(|at| network.words(one.me, at));
            let sent: Vec<String> = sent.map(|words| described(&words)).collect();
            assert_eq!(sent, ["10 puts", "2 puts", "reply"]);
        });
        (0..12).for_each(|_| assert_eq!(one.event().kind, EventKind::Ack));
        assert_eq!(one.event().kind, EventKind::Reply);
    }

    fn described(words: &Words) -> String {
        match Message::parse(words) {
            Ok(Message::Acknowledgements(all)) => format!("{} puts", all.tokens().count()),
            Ok(Message::Response(response)) if response.reply => "reply".to_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_message_to_a_process_that_has_ended_is_undeliverable_while_its_agent_closes() {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        let ended = two.library.with_core(|core| {
            core.transports.has_lost_owner = true;
            core.end_interface(two.interface.interface());
        });
        assert_eq!(ended, Some(()));
        one.put(&two, 8);
        assert_eq!(one.event().ni_fail, NiFail::Ok, "it was sent");
        assert_eq!(one.event().ni_fail, NiFail::Undeliverable);
    }

    #[test]
    fn a_loopback_address_on_one_side_only_is_named_as_the_reason() {
        let (local, remote) = (
            ProcessId::new(0x7f00_0001, 500),
            ProcessId::new(0x0a00_0001, 7),
        );
        assert!(lost(local, remote).contains("PTL_IFACE"));
        for (process, me) in [(local, local), (remote, remote)] {
            assert!(!lost(process, me).contains("PTL_IFACE"));
        }
    }
}
