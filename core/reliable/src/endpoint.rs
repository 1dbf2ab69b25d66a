//! [`Endpoint`]: all pairs and contexts of a process, and what becomes of them.

use crate::context::{CONTEXT_IDLE, Contexts, Paths};
use crate::packet::{Header, Kind};
use crate::pair::{Message, NONE, Outbound, Pair, Receiving, Sending};
use crate::time::{Nanos, Time};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use hashbrown::HashMap;
use lintel_types::ProcessId;
use rustc_hash::FxBuildHasher;

/// Bytes that a peer is taken to have room for before it has said so.
const INITIAL_RECV_WINDOW: u64 = 128 << 10;
/// For so long after somebody asked, the peers are looked after.
const CHECK_DURATION: Nanos = Nanos::from_millis(500);
/// A pair that nothing came from for so long, or twice that, keeps only its numbers.
const QUEUE_IDLE: Nanos = Nanos::from_millis(1000);
/// A wait for an answer is doubled at most so many times.
const MAX_BACKOFF: u32 = 7;

/// Which processes share a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// Each remote process has its own ("reliable connection").
    Rc,
    /// The processes of a remote node share one ("extended reliable connection").
    Xrc,
    /// As `Xrc`, and the processes here share what they know of the path.
    Node,
}

/// What an endpoint must know.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The name of this process.
    pub me: ProcessId,
    /// Its user.
    pub uid: u32,
    /// Not 0, and never that of an earlier process of that name: who has recorded what
    /// that one was sent could repeat it to this one. It should be larger than those of
    /// all earlier ones, too: a peer that knew a larger one says so, and this one goes
    /// on behind it, but what a larger one has sent to a peer that never heard of it is
    /// taken for newer, should somebody have held it back. The low 20 bits should be
    /// random.
    pub incarnation: u64,
    /// Which processes share a context.
    pub model: Model,
    /// Bytes of the longest datagram, header included.
    pub max_datagram: u32,
    /// Bytes that this process can buffer.
    pub recv_window: u32,
    /// A peer on which something depends is given up after so much silence.
    pub peer_timeout: Duration,
}

/// Names a pair; it stays the same as long as the endpoint lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PairId(pub(crate) u32);

impl PairId {
    /// A small number.
    pub fn index(self) -> u32 {
        self.0
    }
}

/// Nothing more will come from a peer, and nothing that was sent will be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostPeer {
    /// The pair, which another process of that name may use from now on.
    pub pair: PairId,
    /// The peer.
    pub process: ProcessId,
    /// Something was sent to it.
    pub was_addressed: bool,
}

/// What happened so far. A packet that came is counted once under what is wrong with it,
/// or not at all.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Packets for another process.
    pub misdirected: u64,
    /// Packets of, or for, a process that has ended.
    pub stale: u64,
    /// Packets that contradict others of their sender.
    pub contradictory: u64,
    /// Packets that had come before.
    pub duplicates: u64,
    /// Packets sent again.
    pub retransmitted: u64,
    /// Packets too far ahead of a missing one.
    pub beyond: u64,
    /// Peers given up.
    pub lost_peers: u64,
}

/// What an endpoint holds.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Resources {
    /// Contexts.
    pub contexts: usize,
    /// Pairs.
    pub pairs: usize,
    /// Bytes of both, about.
    pub bytes: usize,
}

/// Reliable messages between this process and others. `B` is where a body is.
pub struct Endpoint<B> {
    pub(crate) config: Config,
    pub(crate) pairs: Vec<Pair<B>>,
    names: HashMap<ProcessId, u32, FxBuildHasher>,
    last: Option<(ProcessId, u32)>,
    pub(crate) contexts: Contexts,
    /// Pairs with something to send, each once.
    pub(crate) ready: VecDeque<u32>,
    /// Packets without payload, other than acknowledgements.
    pub(crate) control: VecDeque<Header>,
    /// Pairs that owe an acknowledgement now, each once.
    pub(crate) acks: VecDeque<u32>,
    /// Pairs with something to look after at some time, each once.
    armed: Vec<u32>,
    /// Not later than the first of those times.
    next_timer: Time,
    /// When a context that holds back for its pace has its turn.
    pub(crate) paced_until: Time,
    /// When to look for pairs at rest.
    release_at: Time,
    losses: VecDeque<LostPeer>,
    /// A pair whose last packet is never acknowledged.
    pub(crate) unreliable_sent: Option<u32>,
    pub(crate) finished: Vec<Message<B>>,
    /// Messages that haven't been acknowledged, and those that aren't sent whole.
    outstanding: usize,
    pub(crate) unsent: usize,
    /// Those among them that wait for nothing but a peer's first answer.
    pub(crate) awaiting_handshake: usize,
    pub(crate) counts: Counts,
}

impl<B> Endpoint<B> {
    /// An endpoint that knows nobody.
    pub fn new(config: Config) -> Self {
        Endpoint {
            config,
            pairs: Vec::new(),
            names: HashMap::default(),
            last: None,
            contexts: Contexts::new(config.model, config.max_datagram.into()),
            ready: VecDeque::new(),
            control: VecDeque::new(),
            acks: VecDeque::new(),
            armed: Vec::new(),
            next_timer: Time::NEVER,
            paced_until: Time::NEVER,
            release_at: Time::NEVER,
            losses: VecDeque::new(),
            unreliable_sent: None,
            finished: Vec::new(),
            outstanding: 0,
            unsent: 0,
            awaiting_handshake: 0,
            counts: Counts::default(),
        }
    }

    /// Shares what is known of paths with other processes, for [`Model::Node`].
    pub fn share(&mut self, paths: Box<dyn Paths>) {
        self.contexts.share(paths);
    }

    /// Takes a message to be sent. One that may be the answer to a message which is still
    /// coming (`waits`), and whose sender still reads from memory that the answer
    /// would release, is held until that has come.
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
        if message.class != crate::Class::Ordered && message.length > self.max_whole() {
            return Err(message);
        }
        let index = self.pair_of(to);
        self.schedule_release(now);
        let pair = &mut self.pairs[index as usize];
        if !pair.depends(now) {
            pair.depends_since = now;
        }
        let waits = waits && pair.receiving.as_ref().is_some_and(|r| r.is_incomplete());
        pair.is_addressed = true;
        let sending = pair
            .sending
            .get_or_insert_with(|| Box::new(Sending::new(INITIAL_RECV_WINDOW)));
        sending.push(Outbound::new(message, waits));
        if pair.remote == 0 && sending.awaits_handshake() {
            self.awaiting_handshake += 1;
        }
        self.outstanding += 1;
        self.unsent += 1;
        self.make_ready(index);
        Ok(PairId(index))
    }

    /// Bytes of the longest message that fits one datagram.
    pub fn max_whole(&self) -> u64 {
        u64::from(self.config.max_datagram) - crate::WHOLE_BYTES as u64
    }

    /// The name of the process at the other end.
    pub fn process(&self, pair: PairId) -> ProcessId {
        self.pairs[pair.0 as usize].name
    }

    /// Messages that have been acknowledged since the last call, or given up: their
    /// bodies aren't read any more.
    #[inline]
    pub fn take_finished(&mut self) -> impl Iterator<Item = Message<B>> + '_ {
        self.finished.drain(..)
    }

    /// A peer that was given up or has ended, each time once.
    #[inline]
    pub fn poll_lost_peer(&mut self) -> Option<LostPeer> {
        self.losses.pop_front()
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

    /// Takes back bodies, which aren't read any more from now on; in their place are empty
    /// ones. A message that hasn't begun to be sent goes unsent. One that has is void: its
    /// receiver gets what it needs to go on, and learns that the message never gets whole,
    /// unless all of it had left before and arrives.
    pub fn recall(&mut self, mut is_meant: impl FnMut(&B) -> bool, empty: impl Fn() -> B) {
        for index in 0..self.pairs.len() {
            let Some(sending) = &mut self.pairs[index].sending else {
                continue;
            };
            let (unsent, awaiting_handshake) = sending.recall(&mut is_meant, &empty);
            self.outstanding -= unsent;
            self.unsent -= unsent;
            self.awaiting_handshake -= awaiting_handshake;
            self.make_ready(index as u32);
        }
    }

    /// Bytes of memory of messages to that process that haven't been acknowledged.
    pub fn backlog(&self, process: ProcessId) -> u64 {
        let index = self.find(process);
        let sending = index.and_then(|index| self.pairs[index as usize].sending.as_ref());
        sending.map_or(0, |sending| sending.memory)
    }

    /// Whether something hasn't been sent for want of room.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.unsent > self.awaiting_handshake
    }

    /// Whether something for that process hasn't been sent for want of room.
    pub fn has_queued(&self, process: ProcessId) -> bool {
        let index = self.find(process);
        let sending = index.and_then(|index| self.pairs[index as usize].sending.as_ref());
        sending.is_some_and(|sending| sending.unsent() > sending.awaiting_handshake)
    }

    /// Whether the message just taken had better wait until there are more like it, or until
    /// whoever sent it looks for something else: it shares a system call with them then.
    #[inline]
    pub fn may_coalesce(&self, pair: PairId) -> bool {
        let sending = self.pairs[pair.0 as usize].sending.as_ref();
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

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What it holds at the moment.
    pub fn resources(&self) -> Resources {
        let heavy: usize = self
            .pairs
            .iter()
            .map(|pair| {
                pair.sending.as_ref().map_or(0, |sending| sending.bytes())
                    + pair
                        .receiving
                        .as_ref()
                        .map_or(0, |_| size_of::<Receiving>())
            })
            .sum();
        let pairs = self.pairs.capacity() * size_of::<Pair<B>>()
            + self.names.capacity() * (size_of::<(ProcessId, u32)>() + 1);
        Resources {
            contexts: self.contexts.len(),
            pairs: self.pairs.len(),
            bytes: heavy + pairs + self.contexts.bytes(),
        }
    }

    /// Somebody waits for something that any peer might do: those that were sent
    /// to are looked after for a while.
    pub fn check_peers(&mut self, now: Time) {
        for index in 0..self.pairs.len() {
            let pair = &mut self.pairs[index];
            if !pair.is_addressed {
                continue;
            }
            if !pair.depends(now) {
                pair.depends_since = now;
            }
            pair.checked_until = now.after(CHECK_DURATION);
            let probe = self.probe_time(index as u32);
            self.arm(index as u32, probe);
        }
    }

    /// The system says that nobody is there. One who never answered is given up; one
    /// who has is asked once more.
    pub fn on_refused(&mut self, now: Time, process: ProcessId) {
        let Some(&index) = self.names.get(&process) else {
            return;
        };
        let pair = &mut self.pairs[index as usize];
        if !pair.is_addressed && pair.remote == 0 {
            return;
        }
        if pair.remote == 0 || pair.is_suspect {
            return self.abort(index);
        }
        pair.is_suspect = true;
        self.probe(now, index);
    }

    /// Does what is due: sends again, acknowledges, asks silent peers, gives up the dead.
    pub fn on_timeout(&mut self, now: Time) {
        if now >= self.paced_until {
            self.paced_until = Time::NEVER;
            for context in self.contexts.indices() {
                self.unblock(context);
            }
        }
        if now >= self.release_at {
            self.release_idle_queues(now);
        }
        if now < self.next_timer {
            return;
        }
        self.next_timer = Time::NEVER;
        let mut at = 0;
        while let Some(&index) = self.armed.get(at) {
            match self.service(now, index) {
                Time::NEVER => {
                    self.armed.swap_remove(at);
                    self.pairs[index as usize].is_armed = false;
                }
                next => {
                    self.next_timer = self.next_timer.min(next);
                    at += 1;
                }
            }
        }
        self.drop_idle(now);
    }

    /// Says farewell to everybody who knows this process.
    pub fn close(&mut self) {
        for index in 0..self.pairs.len() {
            if self.pairs[index].remote != 0 {
                let header = self.header(index as u32, Kind::Close);
                self.control.push_back(header);
            }
        }
    }

    /// Looks after a pair; tells when to do so again.
    fn service(&mut self, now: Time, index: u32) -> Time {
        if self.is_silent(now, index) {
            self.abort(index);
            return Time::NEVER;
        }
        let pair = &mut self.pairs[index as usize];
        let ack_at = pair.receiving.as_ref().map_or(Time::NEVER, |r| r.ack_at);
        if ack_at <= now {
            self.queue_ack(index);
        }
        let depends = self.pairs[index as usize].depends(now);
        if depends && self.probe_time(index) <= now {
            self.probe(now, index);
        }
        self.retransmit_if_due(now, index);
        let pair = &self.pairs[index as usize];
        let ack_at = pair.receiving.as_ref().map_or(Time::NEVER, |r| r.ack_at);
        let deadline = pair.sending.as_ref().map_or(Time::NEVER, |s| s.deadline);
        let probe = if depends {
            self.probe_time(index)
        } else {
            Time::NEVER
        };
        ack_at.min(deadline).min(probe)
    }

    fn is_silent(&self, now: Time, index: u32) -> bool {
        let pair = &self.pairs[index as usize];
        let silence = now.since(pair.last_heard.max(pair.depends_since));
        pair.depends(now) && silence >= Nanos::from(self.config.peer_timeout)
    }

    /// Asks a process for its incarnation, without which nothing is sent to it.
    #[cold]
    pub(crate) fn start_handshake(&mut self, now: Time, index: u32) {
        let most = self.max_timeout();
        let pair = &mut self.pairs[index as usize];
        let Some(sending) = &mut pair.sending else {
            return;
        };
        if sending.is_empty() {
            sending.deadline = Time::NEVER;
            return;
        }
        if pair.context == NONE {
            pair.context = self.contexts.open(pair.name, now);
        }
        let context = self.contexts.get(pair.context);
        context.last_used = now;
        let timeout = context.round_trip.timeout_of_first(most);
        // Nothing else goes there, so that two of the same length don't crowd anybody.
        let backoff = (sending.timeout_count / 2).min(MAX_BACKOFF);
        let deadline = now.after(Nanos(timeout.0 << backoff).min(most));
        sending.timeout_count += 1;
        sending.deadline = deadline;
        self.arm(index, deadline);
        self.probe(now, index);
    }

    /// For so long an answer is waited for at most: a peer isn't given up for a few
    /// packets that got lost.
    #[inline]
    pub(crate) fn max_timeout(&self) -> Nanos {
        Nanos(Nanos::from(self.config.peer_timeout).0 / 16)
    }

    /// When a peer is to be asked whether it lives, if nothing comes.
    pub(crate) fn probe_time(&self, index: u32) -> Time {
        let pair = &self.pairs[index as usize];
        let quarter = Nanos(Nanos::from(self.config.peer_timeout).0 / 4);
        pair.last_heard
            .max(pair.depends_since)
            .max(pair.last_probe)
            .after(quarter)
    }

    pub(crate) fn probe(&mut self, now: Time, index: u32) {
        self.pairs[index as usize].last_probe = now;
        let header = self.header(index, Kind::Probe);
        self.control.push_back(header);
    }

    /// No answer in time: the oldest packet is sent again, and no new ones until
    /// something comes. The path isn't blamed as long as others on it answer.
    fn retransmit_if_due(&mut self, now: Time, index: u32) {
        let most = self.max_timeout();
        let pair = &mut self.pairs[index as usize];
        let Some(sending) = pair.sending.as_mut().filter(|s| s.deadline <= now) else {
            return;
        };
        if pair.remote == 0 {
            return self.start_handshake(now, index);
        }
        let context = self.contexts.get(pair.context);
        if !sending.is_parked {
            sending.is_parked = true;
            context.in_flight -= sending.in_flight;
        }
        sending.timeout_count += 1;
        let timeout = context.round_trip.timeout(most);
        if sending.timeout_count == 2 && now.since(context.last_heard) > timeout {
            context.window.on_timeout(now);
        }
        sending.retransmit_first();
        let backoff = sending.timeout_count.min(MAX_BACKOFF);
        sending.deadline = now.after(Nanos(timeout.0 << backoff).min(most));
        let context = pair.context;
        self.make_ready(index);
        self.unblock(context);
    }

    /// Something happens to a pair, which will need less some time afterwards.
    #[inline]
    pub(crate) fn schedule_release(&mut self, now: Time) {
        if self.release_at == Time::NEVER {
            self.release_at = now.after(QUEUE_IDLE);
        }
    }

    /// Drops what pairs don't need at rest: a context that they share may stay busy.
    fn release_idle_queues(&mut self, now: Time) {
        let mut is_any_busy = false;
        for pair in &mut self.pairs {
            if now.since(pair.last_heard) >= QUEUE_IDLE {
                pair.release_queues();
            }
            is_any_busy |= pair.sending.is_some() || pair.receiving.is_some();
        }
        self.release_at = match is_any_busy {
            true => now.after(QUEUE_IDLE),
            false => Time::NEVER,
        };
    }

    /// Contexts that were idle for long go.
    fn drop_idle(&mut self, now: Time) {
        for context in self.contexts.idle(now) {
            let of_it = |pair: &&mut Pair<B>| pair.context == context;
            for pair in self.pairs.iter_mut().filter(of_it) {
                pair.context = NONE;
            }
            self.contexts.close(context);
        }
        if !self.contexts.is_empty() {
            self.next_timer = self.next_timer.min(now.after(CONTEXT_IDLE));
        }
    }

    /// Whatever was under way between this process and the peer is over. This side goes on
    /// in a newer incarnation, so that the peer, should it live, learns of it.
    pub(crate) fn abort(&mut self, index: u32) {
        let local = self.pairs[index as usize].local;
        self.abort_as(index, local.saturating_add(1));
    }

    /// As [`lose`](Self::lose); this side goes on in that incarnation.
    pub(crate) fn abort_as(&mut self, index: u32, local: u64) {
        let pair = &mut self.pairs[index as usize];
        let was_addressed = pair.is_addressed;
        let sending = pair.sending.take();
        let fresh = Pair::new(pair.name, local);
        let old = core::mem::replace(pair, fresh);
        pair.is_armed = old.is_armed;
        pair.dead = old.dead.max(old.remote);
        if let Some(sending) = sending {
            self.outstanding -= sending.len();
            self.unsent -= sending.unsent();
            self.awaiting_handshake -= sending.awaiting_handshake;
            if old.context != NONE && !sending.is_parked {
                self.contexts.get(old.context).in_flight -= sending.in_flight;
            }
            self.finished.extend(sending.into_messages());
        }
        if old.context != NONE {
            self.contexts
                .get(old.context)
                .blocked
                .retain(|blocked| *blocked != index);
            self.unblock(old.context);
        }
        self.ready.retain(|ready| *ready != index);
        self.acks.retain(|owing| *owing != index);
        self.counts.lost_peers += 1;
        self.losses.push_back(LostPeer {
            pair: PairId(index),
            process: old.name,
            was_addressed,
        });
    }

    #[inline]
    pub(crate) fn pair_of(&mut self, name: ProcessId) -> u32 {
        if let Some((last, index)) = self.last {
            if last == name {
                return index;
            }
        }
        let next = self.pairs.len() as u32;
        let index = *self.names.entry(name).or_insert(next);
        if index == next {
            self.pairs.push(Pair::new(name, self.config.incarnation));
        }
        self.last = Some((name, index));
        index
    }

    pub(crate) fn find(&self, name: ProcessId) -> Option<u32> {
        match self.last {
            Some((last, index)) if last == name => Some(index),
            _ => self.names.get(&name).copied(),
        }
    }

    /// A packet without payload as things stand; counts as an acknowledgement.
    #[inline]
    pub(crate) fn header(&mut self, index: u32, kind: Kind) -> Header {
        let pair = &mut self.pairs[index as usize];
        let mut selective = 0;
        if let Some(receiving) = &mut pair.receiving {
            receiving.ack_pending = 0;
            receiving.ack_at = Time::NEVER;
            selective = receiving.early;
        }
        Header {
            kind,
            ack_requested: false,
            uid: self.config.uid,
            source: self.config.me,
            destination: pair.name,
            recv_window: self.config.recv_window,
            incarnation: pair.local,
            peer_incarnation: pair.remote,
            sequence: pair.next_sequence,
            acknowledged: pair.expected,
            selective,
        }
    }

    /// Has the pair looked after at that time, at the latest.
    #[inline]
    pub(crate) fn arm(&mut self, index: u32, at: Time) {
        let pair = &mut self.pairs[index as usize];
        if !pair.is_armed {
            pair.is_armed = true;
            self.armed.push(index);
        }
        self.next_timer = self.next_timer.min(at);
    }

    #[inline]
    pub(crate) fn make_ready(&mut self, index: u32) {
        if let Some(sending) = &mut self.pairs[index as usize].sending {
            if !sending.is_ready {
                sending.is_ready = true;
                self.ready.push_back(index);
            }
        }
    }

    /// Acknowledges to that peer as soon as possible.
    #[inline]
    pub(crate) fn queue_ack(&mut self, index: u32) {
        let receiving = self.pairs[index as usize]
            .receiving
            .get_or_insert_with(fresh);
        receiving.ack_pending = receiving.ack_pending.max(1);
        receiving.ack_at = Time::NEVER;
        if !receiving.is_ack_queued {
            receiving.is_ack_queued = true;
            self.acks.push_back(index);
        }
    }

    /// There may be room in a context: some of the pairs that wait for it try again.
    #[inline]
    pub(crate) fn unblock(&mut self, context: u32) {
        if context == NONE {
            return;
        }
        let context = self.contexts.get(context);
        let count = match context.in_flight {
            0 => context.blocked.len(),
            _ => context.blocked.len().min(4),
        };
        for index in context.blocked.drain(..count) {
            self.ready.push_back(index);
        }
    }

    /// Takes finished messages of a pair off its queue.
    #[inline]
    pub(crate) fn collect_finished(&mut self, index: u32) {
        if let Some(sending) = &mut self.pairs[index as usize].sending {
            while let Some(message) = sending.pop_finished() {
                self.outstanding -= 1;
                self.finished.push(message);
            }
        }
    }
}

pub(crate) fn fresh() -> Box<Receiving> {
    Box::new(Receiving::new())
}
