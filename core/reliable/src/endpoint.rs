//! [`Endpoint`]: all pairs and contexts of a process, and what becomes of them.

use crate::config::{Config, Counts, LostPeer, PairId, Resources};
use crate::context::{ContextIndex, Contexts, Paths};
use crate::outbound::{Message, Outbound};
use crate::packet::{Class, GAP_BYTES, Header, Kind, WHOLE_BYTES};
use crate::pair::{Pair, Pairs};
use crate::receiving::Receiving;
use crate::time::{Nanos, Time};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use hashbrown::HashMap;
use lintel_session::Incarnation;
use lintel_types::ProcessId;
use rustc_hash::FxBuildHasher;

/// Blocked pairs of a context that try again each time that there may be room.
pub(crate) const UNBLOCKED_AT_ONCE: usize = 4;

/// Reliable messages between this process and others. `B` is where a body is.
pub struct Endpoint<B> {
    pub(crate) config: Config,
    /// The longest timeout: a peer isn't given up for a few packets that are lost.
    pub(crate) max_timeout: Nanos,
    pub(crate) pairs: Pairs<B>,
    by_name: HashMap<ProcessId, PairId, FxBuildHasher>,
    /// The pair that was looked up last.
    last: Option<(ProcessId, PairId)>,
    pub(crate) contexts: Contexts,
    /// Pairs with something to send, each once.
    pub(crate) ready: VecDeque<PairId>,
    /// Packets without payload, other than acknowledgements.
    pub(crate) control: VecDeque<Header>,
    /// Pairs that acknowledge now, each once.
    pub(crate) acks: VecDeque<PairId>,
    /// Pairs with a timer, each once.
    pub(crate) armed: Vec<PairId>,
    /// Not later than the first of these timers.
    pub(crate) next_timer: Time,
    /// When a context that waits for its pace may send.
    pub(crate) paced_until: Time,
    /// When empty queues are freed next.
    pub(crate) release_at: Time,
    lost_peers: VecDeque<LostPeer>,
    /// A pair whose last packet is never acknowledged.
    pub(crate) unreliable_sent: Option<PairId>,
    finished: Vec<Message<B>>,
    /// Messages that haven't been acknowledged.
    outstanding: usize,
    /// Messages that aren't sent whole.
    pub(crate) unsent: usize,
    /// Those among them that wait for nothing but a peer's first answer.
    pub(crate) awaiting_handshake: usize,
    pub(crate) counts: Counts,
}

impl<B> Endpoint<B> {
    /// An endpoint without peers.
    pub fn new(config: Config) -> Self {
        Endpoint {
            config,
            max_timeout: Nanos(Nanos::from(config.peer_timeout).0 / 16),
            pairs: Pairs::new(),
            by_name: HashMap::default(),
            last: None,
            contexts: Contexts::new(config.model, config.max_datagram.into()),
            ready: VecDeque::new(),
            control: VecDeque::new(),
            acks: VecDeque::new(),
            armed: Vec::new(),
            next_timer: Time::NEVER,
            paced_until: Time::NEVER,
            release_at: Time::NEVER,
            lost_peers: VecDeque::new(),
            unreliable_sent: None,
            finished: Vec::new(),
            outstanding: 0,
            unsent: 0,
            awaiting_handshake: 0,
            counts: Counts::default(),
        }
    }

    /// Shares what is known of paths with other processes, for
    /// [`Model::Node`](crate::Model::Node).
    pub fn share(&mut self, paths: Box<dyn Paths>) {
        self.contexts.share(paths);
    }

    /// Takes a message to be sent. If it may answer a message that is still arriving
    /// (`waits`), whose sender still reads from memory that the answer would release, it is
    /// held until that has arrived.
    ///
    /// # Errors
    /// The message, if it doesn't fit one datagram and isn't
    /// [`Class::Ordered`](crate::Class::Ordered).
    #[inline]
    pub fn send(
        &mut self,
        now: Time,
        to: ProcessId,
        message: Message<B>,
        waits: bool,
    ) -> Result<PairId, Message<B>> {
        if message.class != Class::Ordered && message.length > self.max_whole() {
            return Err(message);
        }
        let id = self.pair_of(to);
        self.schedule_release(now);
        let pair = &mut self.pairs[id];
        pair.begin_awaiting(now);
        let waits = waits && pair.receiving().is_some_and(Receiving::is_incomplete);
        let is_established = pair.is_established();
        let sending = pair.begin_sending();
        sending.push(Outbound::new(message, waits));
        if !is_established && sending.awaits_handshake() {
            self.awaiting_handshake += 1;
        }
        if sending.mark_ready() {
            self.ready.push_back(id);
        }
        self.outstanding += 1;
        self.unsent += 1;
        Ok(id)
    }

    /// Bytes of the longest message that fits one datagram.
    pub fn max_whole(&self) -> u64 {
        u64::from(self.config.max_datagram) - (WHOLE_BYTES + GAP_BYTES) as u64
    }

    /// The process at the other end of a pair.
    pub fn process(&self, pair: PairId) -> ProcessId {
        self.pairs[pair].name()
    }

    /// Whether [`take_finished`](Self::take_finished) returns something.
    #[inline]
    pub fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Messages that were acknowledged or given up since the last call: their bodies aren't
    /// read any more.
    #[inline]
    pub fn take_finished(&mut self) -> impl Iterator<Item = Message<B>> + '_ {
        self.finished.drain(..)
    }

    /// A peer that was given up or has ended, each time once.
    #[inline]
    pub fn poll_lost_peer(&mut self) -> Option<LostPeer> {
        self.lost_peers.pop_front()
    }

    /// Whether everything sent has been acknowledged.
    #[inline]
    pub fn all_delivered(&self) -> bool {
        self.outstanding == 0
    }

    /// Messages that haven't been acknowledged.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Recalls bodies, which aren't read any more from now on; in their place are empty
    /// ones. A message that hasn't begun to be sent goes unsent. One that has is void: its
    /// receiver gets what it needs to go on, and learns that the message never gets whole,
    /// unless all of it had left before and arrives.
    pub fn recall(&mut self, mut is_meant: impl FnMut(&B) -> bool, empty: impl Fn() -> B) {
        for id in self.pairs.ids() {
            let Some(sending) = self.pairs[id].sending_mut() else {
                continue;
            };
            let (unsent, awaiting_handshake) = sending.recall(&mut is_meant, &empty);
            self.outstanding -= unsent;
            self.unsent -= unsent;
            self.awaiting_handshake -= awaiting_handshake;
            self.make_ready(id);
        }
    }

    /// Bytes of memory of messages to that process that haven't been acknowledged.
    pub fn backlog(&self, process: ProcessId) -> u64 {
        let id = self.find(process);
        let sending = id.and_then(|id| self.pairs[id].sending());
        sending.map_or(0, |sending| sending.memory())
    }

    /// Whether something waits for window.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.unsent > self.awaiting_handshake
    }

    /// Whether something for that process waits for window.
    pub fn has_queued(&self, process: ProcessId) -> bool {
        let id = self.find(process);
        let sending = id.and_then(|id| self.pairs[id].sending());
        sending.is_some_and(|sending| sending.unsent() > sending.awaiting_handshake())
    }

    /// Whether the message just taken had better wait until there are more like it, or until
    /// its sender polls for something else: it shares a system call with them then.
    #[inline]
    pub fn may_coalesce(&self, pair: PairId) -> bool {
        let sending = self.pairs[pair].sending();
        sending.is_some_and(|sending| sending.may_coalesce())
    }

    /// Whether something may be sent before anything else happens.
    #[inline]
    pub fn has_work(&self) -> bool {
        !self.ready.is_empty() || !self.acks.is_empty() || !self.control.is_empty()
    }

    /// Not later than when [`Endpoint::on_timeout`] has something to do.
    #[inline]
    pub fn due(&self) -> Time {
        self.next_timer.min(self.paced_until).min(self.release_at)
    }

    /// Packets and peers so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Each peer, with the packets sent to it for the first time and those received in order
    /// since the last loss of one of both, modulo 2^32.
    pub fn packets(&self) -> impl Iterator<Item = (ProcessId, u32, u32)> {
        self.pairs.iter().map(|pair| {
            let (sent, received) = pair.packets();
            (pair.name(), sent, received)
        })
    }

    /// What it holds at the moment.
    pub fn resources(&self) -> Resources {
        let names = self.by_name.capacity() * (size_of::<(ProcessId, PairId)>() + 1);
        Resources {
            contexts: self.contexts.len(),
            pairs: self.pairs.len(),
            bytes: self.pairs.bytes() + names + self.contexts.bytes(),
        }
    }

    /// Sends a close to all peers that know this process.
    pub fn close(&mut self) {
        for id in self.pairs.ids() {
            if self.pairs[id].is_established() {
                let header = self.header(id, Kind::Close);
                self.control.push_back(header);
            }
        }
    }

    /// Ends whatever was going on with the peer. This side goes on in a newer incarnation,
    /// so that the peer, if it is alive, learns of it.
    pub(crate) fn abort(&mut self, id: PairId) {
        let local = self.pairs[id].local();
        self.abort_as(id, local.next());
    }

    /// As [`abort`](Self::abort); this side goes on as `local`.
    pub(crate) fn abort_as(&mut self, id: PairId, local: Incarnation) {
        let mut old = self.pairs[id].restart(local);
        if let Some(sending) = old.take_sending() {
            self.outstanding -= sending.len();
            self.unsent -= sending.unsent();
            self.awaiting_handshake -= sending.awaiting_handshake();
            if let Some(context) = old.context() {
                self.contexts.get(context).in_flight -= sending.counted_in_flight();
            }
            self.finished.extend(sending.into_messages());
        }
        if let Some(context) = old.context() {
            let blocked = &mut self.contexts.get(context).blocked;
            blocked.retain(|blocked| *blocked != id);
            self.unblock(context);
        }
        self.ready.retain(|ready| *ready != id);
        self.acks.retain(|acknowledging| *acknowledging != id);
        self.counts.lost_peers += 1;
        self.lost_peers.push_back(LostPeer {
            pair: id,
            process: old.name(),
            was_addressed: old.is_addressed(),
        });
    }

    /// The pair with that process, which is made if there is none.
    #[inline]
    pub(crate) fn pair_of(&mut self, name: ProcessId) -> PairId {
        if let Some((last, id)) = self.last {
            if last == name {
                return id;
            }
        }
        let next = self.pairs.next_id();
        let id = *self.by_name.entry(name).or_insert(next);
        if id == next {
            self.pairs.push(Pair::new(name, self.config.incarnation));
        }
        self.last = Some((name, id));
        id
    }

    pub(crate) fn find(&self, name: ProcessId) -> Option<PairId> {
        match self.last {
            Some((last, id)) if last == name => Some(id),
            _ => self.by_name.get(&name).copied(),
        }
    }

    /// A packet without payload as things stand; it counts as an acknowledgement.
    #[inline]
    pub(crate) fn header(&mut self, id: PairId, kind: Kind) -> Header {
        self.pairs[id].header(&self.config, kind)
    }

    #[inline]
    pub(crate) fn make_ready(&mut self, id: PairId) {
        if let Some(sending) = self.pairs[id].sending_mut() {
            if sending.mark_ready() {
                self.ready.push_back(id);
            }
        }
    }

    /// Acknowledges to that peer as soon as possible.
    #[inline]
    pub(crate) fn queue_ack(&mut self, id: PairId) {
        if self.pairs[id].begin_receiving().queue_ack() {
            self.acks.push_back(id);
        }
    }

    /// There may be room in a context: some of the pairs that it has blocked try again.
    #[inline]
    pub(crate) fn unblock(&mut self, context: ContextIndex) {
        let context = self.contexts.get(context);
        let count = match context.in_flight {
            0 => context.blocked.len(),
            _ => context.blocked.len().min(UNBLOCKED_AT_ONCE),
        };
        for id in context.blocked.drain(..count) {
            self.ready.push_back(id);
        }
    }

    /// Takes finished messages of a pair off its queue.
    #[inline]
    pub(crate) fn collect_finished(&mut self, id: PairId) {
        if let Some(sending) = self.pairs[id].sending_mut() {
            while let Some(message) = sending.pop_finished() {
                self.outstanding -= 1;
                self.finished.push(message);
            }
        }
    }
}
