//! What one lock guards: the interfaces and the ways out.

use crate::effects::{Effects, StagedSends, Transports};
use crate::landing::StreamTask;
use crate::log::{Level, log};
use crate::orphans::Orphan;
use crate::owner::Owner;
use crate::resources::ProcessInfo;
use crate::transport::Endpoint;
use crate::watcher::Watcher;
use lintel_claim::{Lease, Region};
use lintel_engine4::Interface;
use lintel_nal::{Arrival, Loopback, Nal, Origin, Payload, Wake};
use lintel_presence::{Bell, StatsWriter};
use lintel_types::{InterfaceNumber, NiFail, ProcessId};
use lintel_wire::{Message, Request, Response, Verb, Words};
use std::time::{Duration, Instant};

/// Messages handled before the lock is let go.
pub(crate) const BATCH: usize = 256;
/// Polls in vain after which peers that haven't looked are nudged: soon, once more
/// for those that may have been copying, and then seldom.
const WAKE_PEERS_AFTER: [u32; 2] = [40, 400];
const WAKE_PEERS_EVERY: u32 = 20_000;
/// Polls after which senders needn't ring any more.
const DISARM_AFTER: u32 = 64;
/// Further looks in a poll that has found nothing: a message on its way is
/// nearer than the caller's next call.
const INLINE_POLLS: u32 = 6;
/// Polls until a caller gives up waiting for room.
const MAX_DRAIN_POLLS: u32 = 2000;
/// How often peers are looked after while something depends on them.
pub(crate) const PEER_CHECK: Duration = Duration::from_millis(50);

pub(crate) struct Core<O: Owner> {
    pub(crate) interfaces: [Option<OpenInterface<O>>; 4],
    pub(crate) transports: Transports,
    pub(crate) owner: O,
    /// Copies of the owner's memory that were lent.
    pub(crate) staged: StagedSends<O::Span>,
    pub(crate) bell: Bell,
    pub(crate) stats: StatsWriter,
    pub(crate) info: ProcessInfo,
    /// Sleeps on the descriptor; nothing where there is none.
    pub(crate) watcher: Option<Watcher>,
    /// When a sleeping helper wakes by itself.
    pub(crate) helper_deadline: Option<Instant>,
    pub(crate) streams: Vec<(Origin, StreamTask<O::Span>)>,
    pub(crate) scratch: Vec<u8>,
    pub(crate) bounce: Region,
    /// Polls by callers, ever; the helper watches whether it moves.
    pub(crate) polls: u64,
    /// Polls since the bell was armed.
    pub(crate) polls_armed: u32,
    polls_in_vain: u32,
    pub(crate) helper_polls: bool,
    pub(crate) closing: bool,
    pub(crate) callers_asleep: u32,
    /// Whoever polled has said that he doesn't any more.
    pub(crate) polling_stopped: bool,
    checked: Instant,
}

/// An interface in use.
pub(crate) struct OpenInterface<O: Owner> {
    pub(crate) interface: Box<Interface<O::Span>>,
    pub(crate) references: u32,
    pub(crate) generation: u16,
    /// Under which its memory is lent.
    pub(crate) lease: Lease,
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
            transports: Transports {
                me,
                nal: transport,
                loopback: Loopback::new(me, owner.uid()),
                to: me,
                activity: false,
                congested: false,
                blocked: None,
            },
            owner,
            staged: StagedSends::default(),
            bell,
            stats,
            info,
            watcher: None,
            helper_deadline: None,
            streams: Vec::new(),
            scratch: Vec::new(),
            bounce: Region::new(4096),
            polls: 0,
            polls_armed: 0,
            polls_in_vain: 0,
            helper_polls: false,
            closing: false,
            callers_asleep: 0,
            polling_stopped: false,
            checked: Instant::now(),
        }
    }

    /// An interface with its host.
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
                lease: &opened.lease,
            },
        ))
    }

    /// What of an interface's memory is lent: operations that peers must answer, and bodies
    /// that this process still sends. Nothing if the interface isn't open.
    pub(crate) fn loans(&self, number: InterfaceNumber) -> Option<usize> {
        let opened = self.interfaces[number.position()].as_ref()?;
        Some(opened.interface.loans() + opened.lease.outstanding())
    }

    /// Ends an interface; what was lent of its memory is taken back, and every stream
    /// into it broken off. The lease tells when peers have noticed.
    pub(crate) fn end_interface(&mut self, number: InterfaceNumber) -> Option<Lease> {
        let index = number.position();
        let lease = &self.interfaces[index].as_ref()?.lease;
        lease.revoke();
        self.transports.nal.recall(lease);
        self.abort_streams(number);
        self.staged.close(number);
        self.interfaces[index].take().map(|opened| opened.lease)
    }

    /// Copies that peers may still use when this process leaves the network.
    pub(crate) fn take_orphans(&mut self) -> Vec<Orphan> {
        let by_peer = self.staged.take_all();
        let orphan = |(peer, copies)| {
            let unread = self.transports.nal.take_unread(peer)?;
            let loan = self.staged.lease.lend(&[]).keep();
            Some(Orphan::new(unread, copies, loan))
        };
        by_peer.into_iter().filter_map(orphan).collect()
    }

    /// Handles what has arrived and sends what waits; tells how many arrivals
    /// there were.
    #[inline]
    pub(crate) fn progress(&mut self) -> usize {
        let mut handled = 0;
        while handled < BATCH {
            if let Some((origin, words, claim)) = self.transports.nal.next_inline() {
                self.on_message(origin, &words, Payload::Inline(claim));
            } else {
                match self.transports.nal.next() {
                    Some(arrival) => self.on_arrival(arrival),
                    None => break,
                }
            }
            handled += 1;
        }
        if !self.transports.loopback.is_empty() {
            handled += self.drain_loopback();
        }
        self.transports.congested &= self.transports.nal.flush();
        handled
    }

    /// Progress made by a caller that waits for something.
    #[inline(always)]
    pub(crate) fn poll(&mut self) -> bool {
        self.polls += 1;
        let mut handled = self.progress();
        for _ in 0..INLINE_POLLS {
            if handled > 0 {
                break;
            }
            handled = self.poll_inline();
        }
        if handled > 0 {
            self.polls_in_vain = 0;
        } else {
            self.polls_in_vain += 1;
            if WAKE_PEERS_AFTER.contains(&self.polls_in_vain)
                || self.polls_in_vain >= WAKE_PEERS_EVERY
            {
                self.wake_peers();
            }
            if self.transports.nal.is_idle() {
                self.watch();
            }
        }
        if self.bell.is_armed() {
            self.polls_armed += 1;
            return self.polls_armed >= DISARM_AFTER && self.callers_asleep == 0;
        }
        false
    }

    /// One more look at what may have just arrived.
    #[inline(always)]
    fn poll_inline(&mut self) -> usize {
        match self.transports.nal.next_inline() {
            Some((origin, words, claim)) => {
                self.on_message(origin, &words, Payload::Inline(claim));
                1
            }
            None => 0,
        }
    }

    /// Somebody polls all the time: senders needn't ring. The helper has to look
    /// after the end of that, so it must be woken now.
    #[cold]
    pub(crate) fn disarm_bell(&mut self) {
        self.polls_armed = 0;
        self.bell.disarm();
        self.wake_helper();
    }

    /// Nobody looks at the network's descriptor from now on: the watcher has to.
    #[inline]
    pub(crate) fn watch(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            watcher.watch();
        }
    }

    /// Whether the helper sleeps beyond what is due.
    #[inline]
    pub(crate) fn helper_oversleeps(&self) -> bool {
        let Some(due) = self.transports.nal.due() else {
            return false;
        };
        !self.helper_polls && self.helper_deadline.is_none_or(|wakes| wakes > due)
    }

    /// Whoever polled ceases to: what comes from now on rings the helper. Tells what
    /// came meanwhile; there may be more, for which nobody rings.
    pub(crate) fn stop_polling(&mut self) -> usize {
        self.polling_stopped = true;
        self.bell.arm(lintel_presence::Sleeper::Helper);
        self.watch();
        self.progress()
    }

    #[cold]
    fn wake_peers(&mut self) {
        self.polls_in_vain %= WAKE_PEERS_EVERY;
        self.transports.nal.wake_peers();
    }

    /// A peer is behind: rather than let ever more wait here, gives it some time.
    /// Bounded, for the peer may have stopped.
    #[cold]
    pub(crate) fn drain_backlog(&mut self) {
        for _ in 0..MAX_DRAIN_POLLS {
            if self.progress() == 0 && !self.transports.is_behind() {
                return;
            }
        }
        self.transports.congested = true;
        self.wake_helper();
    }

    /// Sees to it that the helper looks after what is left.
    pub(crate) fn wake_helper(&mut self) {
        if !self.helper_polls {
            self.helper_polls = true;
            self.bell.wake(lintel_presence::Sleeper::Helper);
        }
    }

    /// Messages to oneself; they may cause further ones.
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
        }
    }

    #[inline(always)]
    fn on_message(&mut self, origin: Origin, words: &Words, payload: Payload) {
        match Message::parse(words) {
            Ok(Message::Request(request)) => self.on_request(origin, &request, payload),
            Ok(Message::Response(response)) => self.on_response(origin, &response, payload),
            Err(malformed) => {
                log(
                    Level::Warn,
                    &format!("{malformed} (process {})", origin.process.pid),
                );
            }
        }
        self.done(origin);
    }

    #[inline(always)]
    fn done(&mut self, origin: Origin) {
        if origin.process == self.transports.me {
            self.transports.loopback.done(origin);
        } else {
            self.transports.nal.done(origin);
        }
    }

    /// A request for an interface that isn't open is dropped as if its portal
    /// table entry weren't allocated.
    pub(crate) fn refuse(&mut self, origin: Origin, request: &Request) {
        if request.token != 0 {
            let response = Response {
                reply: !matches!(request.verb, Verb::Put | Verb::Atomic),
                interface: request.interface,
                placed: false,
                silent: false,
                token: request.token,
                mlength: 0,
                offset: 0,
                list: lintel_types::List::Priority,
                fail: NiFail::Dropped,
            };
            self.transports.respond(origin.process, &response);
        }
    }

    #[cold]
    fn on_lost(&mut self, process: ProcessId) {
        log(
            Level::Info,
            &format!("process {:#x}/{} is gone", process.nid, process.pid),
        );
        self.staged.forget(process);
        for number in InterfaceNumber::ALL {
            if let Some((interface, mut effects)) = self.interface(number) {
                interface.on_target_lost(process, &mut effects);
            }
        }
    }

    /// Whether something depends on another process: an answer, or room.
    pub(crate) fn depends_on_peers(&mut self) -> bool {
        let awaits = self
            .interfaces
            .iter()
            .flatten()
            .any(|o| o.interface.operations_under_way() > 0);
        awaits || !self.streams.is_empty() || self.transports.nal.flush()
    }

    /// When a sleeper has to be awake: when something is due, or peers are to be looked
    /// after.
    pub(crate) fn next_due(&self, depends: bool) -> Option<Instant> {
        let check = depends.then(|| Instant::now() + PEER_CHECK);
        self.transports.nal.due().into_iter().chain(check).min()
    }

    /// Looks after peers, if it is time to.
    pub(crate) fn check_peers(&mut self) {
        if self.checked.elapsed() >= PEER_CHECK {
            self.checked = Instant::now();
            self.transports.nal.check_peers();
        }
    }
}
