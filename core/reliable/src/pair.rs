//! [`Pair`]: the ordering state of a connection, between this process and one other.

use crate::config::{Config, PairId};
use crate::context::{ContextIndex, Contexts};
use crate::packet::{Header, Kind};
use crate::receiving::Receiving;
use crate::sending::Sending;
use crate::time::{Nanos, Time};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};
use lintel_session::{History, Incarnation, Liveness};
use lintel_types::ProcessId;

/// The number of a pair's first packet: so close to the largest one that
/// sequence numbers wrap to 0 after 1000 packets, in every test.
const FIRST_SEQUENCE: u32 = u32::MAX - 999;
/// Receive window of a peer, in bytes, until it has advertised one.
const INITIAL_RECV_WINDOW: u64 = 128 << 10;

/// This process and one other.
pub(crate) struct Pair<B> {
    name: ProcessId,
    /// This side's incarnation towards the peer: a newer one after each loss.
    local: Incarnation,
    /// The peer's incarnations; the current one has shown that it knows `local`.
    history: History,
    liveness: Liveness<Time>,
    /// Until then the caller waits for the peer to do something.
    needed_until: Time,
    /// Number of the next packet to be sent for the first time.
    next_sequence: u32,
    /// Number of the first packet that the peer hasn't acknowledged.
    acknowledged: u32,
    /// Number of the packet that is expected next.
    expected: u32,
    context: Option<ContextIndex>,
    sending: Option<Box<Sending<B>>>,
    receiving: Option<Box<Receiving>>,
    /// It is in the endpoint's list of timers.
    is_armed: bool,
    /// The system has reported its address unreachable, though it has answered before.
    is_suspect: bool,
    /// Something has been sent to it.
    is_addressed: bool,
}

impl<B> Pair<B> {
    pub(crate) fn new(name: ProcessId, local: Incarnation) -> Self {
        Pair {
            name,
            local,
            history: History::default(),
            liveness: Liveness::new(Time(0)),
            needed_until: Time(0),
            next_sequence: FIRST_SEQUENCE,
            acknowledged: FIRST_SEQUENCE,
            expected: FIRST_SEQUENCE,
            context: None,
            sending: None,
            receiving: None,
            is_armed: false,
            is_suspect: false,
            is_addressed: false,
        }
    }

    pub(crate) fn name(&self) -> ProcessId {
        self.name
    }

    #[inline]
    pub(crate) fn local(&self) -> Incarnation {
        self.local
    }

    #[inline]
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// Whether the peer's incarnation is known: messages may be sent to it.
    #[inline]
    pub(crate) fn is_established(&self) -> bool {
        self.history.current().is_some()
    }

    /// Moves to an incarnation larger than `predecessor`, which the peer recorded for this
    /// process; false if there is none.
    pub(crate) fn follow(&mut self, predecessor: u64, own: Incarnation) -> bool {
        let next = self.local.follow(predecessor, own);
        self.local = next.unwrap_or(self.local);
        next.is_some()
    }

    /// The peer has named its incarnation.
    pub(crate) fn establish(&mut self, now: Time, incarnation: Incarnation) {
        self.history.establish(incarnation);
        self.on_heard(now);
    }

    /// Begins anew as `local`, as if with another process of that name: the peer's
    /// incarnation is over. Returns what was before.
    pub(crate) fn restart(&mut self, local: Incarnation) -> Self {
        let fresh = Pair::new(self.name, local);
        let old = core::mem::replace(self, fresh);
        self.is_armed = old.is_armed;
        self.history = old.history;
        self.history.retire();
        old
    }

    #[inline]
    pub(crate) fn on_heard(&mut self, now: Time) {
        self.liveness.on_heard(now);
        self.is_suspect = false;
    }

    pub(crate) fn on_probe(&mut self, now: Time) {
        self.liveness.on_probe(now);
    }

    #[inline]
    pub(crate) fn liveness(&self) -> &Liveness<Time> {
        &self.liveness
    }

    /// The system has reported the address unreachable; true if it has before, since the
    /// peer was heard.
    pub(crate) fn suspect(&mut self) -> bool {
        core::mem::replace(&mut self.is_suspect, true)
    }

    /// Whether something is awaited from the peer: an acknowledgement, or an answer.
    pub(crate) fn is_awaited(&self, now: Time) -> bool {
        self.sending().is_some_and(|sending| !sending.is_empty())
            || self.receiving().is_some_and(Receiving::is_incomplete)
            || now < self.needed_until
    }

    /// Something is awaited from the peer from now on, if nothing was before.
    #[inline]
    pub(crate) fn begin_awaiting(&mut self, now: Time) {
        if !self.is_awaited(now) {
            self.liveness.on_awaited(now);
        }
    }

    /// The caller needs an answer of the peer within this time.
    pub(crate) fn check(&mut self, now: Time, duration: Nanos) {
        self.begin_awaiting(now);
        self.needed_until = now.after(duration);
    }

    #[inline]
    pub(crate) fn is_addressed(&self) -> bool {
        self.is_addressed
    }

    /// Marks it as having a timer; true if it had none.
    #[inline]
    pub(crate) fn arm(&mut self) -> bool {
        !core::mem::replace(&mut self.is_armed, true)
    }

    pub(crate) fn disarm(&mut self) {
        self.is_armed = false;
    }

    #[inline]
    pub(crate) fn context(&self) -> Option<ContextIndex> {
        self.context
    }

    /// Its context, which is opened if it has none.
    #[inline]
    pub(crate) fn open_context(&mut self, contexts: &mut Contexts, now: Time) -> ContextIndex {
        *self
            .context
            .get_or_insert_with(|| contexts.open(self.name, now))
    }

    /// Its context is closed, if it is that one.
    pub(crate) fn forget_context(&mut self, closed: ContextIndex) {
        self.context.take_if(|context| *context == closed);
    }

    #[inline]
    pub(crate) fn sending(&self) -> Option<&Sending<B>> {
        self.sending.as_deref()
    }

    #[inline]
    pub(crate) fn sending_mut(&mut self) -> Option<&mut Sending<B>> {
        self.sending.as_deref_mut()
    }

    /// The queues of what is to be sent, created on first use.
    #[inline]
    pub(crate) fn begin_sending(&mut self) -> &mut Sending<B> {
        self.is_addressed = true;
        self.sending
            .get_or_insert_with(|| Box::new(Sending::new(INITIAL_RECV_WINDOW)))
    }

    /// What was to be sent, of a pair that has ended.
    pub(crate) fn take_sending(&mut self) -> Option<Box<Sending<B>>> {
        self.sending.take()
    }

    #[inline]
    pub(crate) fn receiving(&self) -> Option<&Receiving> {
        self.receiving.as_deref()
    }

    #[inline]
    pub(crate) fn receiving_mut(&mut self) -> Option<&mut Receiving> {
        self.receiving.as_deref_mut()
    }

    /// The state of what arrives, created on first use.
    #[inline]
    pub(crate) fn begin_receiving(&mut self) -> &mut Receiving {
        self.receiving
            .get_or_insert_with(|| Box::new(Receiving::new()))
    }

    /// Number of the packet that is expected next.
    #[inline]
    pub(crate) fn expected(&self) -> u32 {
        self.expected
    }

    /// The expected packet was delivered.
    #[inline]
    pub(crate) fn advance(&mut self) {
        let expected = self.expected;
        self.expected = self.begin_receiving().advance(expected);
    }

    /// Number of the first packet that the peer hasn't acknowledged.
    #[inline]
    pub(crate) fn acknowledged(&self) -> u32 {
        self.acknowledged
    }

    #[inline]
    pub(crate) fn on_acknowledged(&mut self, next: u32) {
        self.acknowledged = next;
    }

    #[inline]
    pub(crate) fn on_first_transmission(&mut self) {
        self.next_sequence = self.next_sequence.wrapping_add(1);
    }

    /// The header of a packet that is sent now; it carries an acknowledgement.
    #[inline]
    pub(crate) fn header(&mut self, config: &Config, kind: Kind) -> Header {
        let mut selective = 0;
        if let Some(receiving) = &mut self.receiving {
            receiving.on_acknowledged();
            selective = receiving.early();
        }
        Header {
            kind,
            ack_requested: false,
            uid: config.uid,
            source: config.me,
            destination: self.name,
            recv_window: config.recv_window,
            incarnation: self.local.get(),
            peer_incarnation: self.history.current_number(),
            sequence: self.next_sequence,
            acknowledged: self.expected,
            selective,
        }
    }

    /// Packets sent for the first time, and packets received in order, in the current
    /// incarnations.
    pub(crate) fn packets(&self) -> (u32, u32) {
        let since_first = |sequence: u32| sequence.wrapping_sub(FIRST_SEQUENCE);
        (since_first(self.next_sequence), since_first(self.expected))
    }

    /// Whether it has queues, which take memory.
    pub(crate) fn has_queues(&self) -> bool {
        self.sending.is_some() || self.receiving.is_some()
    }

    /// Frees the queues that are empty.
    pub(crate) fn release_queues(&mut self) {
        self.sending.take_if(|sending| sending.is_idle());
        self.receiving.take_if(|receiving| receiving.is_idle());
    }

    /// Bytes of memory of its queues.
    pub(crate) fn queue_bytes(&self) -> usize {
        let receiving = self
            .receiving
            .as_ref()
            .map_or(0, |_| size_of::<Receiving>());
        self.sending().map_or(0, Sending::bytes) + receiving
    }
}

/// All pairs of an endpoint, by their numbers. None is ever removed.
pub(crate) struct Pairs<B>(Vec<Pair<B>>);

impl<B> Pairs<B> {
    pub(crate) fn new() -> Pairs<B> {
        Pairs(Vec::new())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The number that the next pair will have.
    #[inline]
    pub(crate) fn next_id(&self) -> PairId {
        PairId(self.0.len() as u32)
    }

    pub(crate) fn push(&mut self, pair: Pair<B>) {
        self.0.push(pair);
    }

    /// The numbers of all pairs.
    pub(crate) fn ids(&self) -> impl Iterator<Item = PairId> + use<B> {
        (0..self.0.len() as u32).map(PairId)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pair<B>> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Pair<B>> {
        self.0.iter_mut()
    }

    /// Bytes of memory, those of queues included.
    pub(crate) fn bytes(&self) -> usize {
        let queues: usize = self.0.iter().map(Pair::queue_bytes).sum();
        queues + self.0.capacity() * size_of::<Pair<B>>()
    }
}

impl<B> Index<PairId> for Pairs<B> {
    type Output = Pair<B>;

    #[inline]
    fn index(&self, id: PairId) -> &Pair<B> {
        &self.0[id.0 as usize]
    }
}

impl<B> IndexMut<PairId> for Pairs<B> {
    #[inline]
    fn index_mut(&mut self, id: PairId) -> &mut Pair<B> {
        &mut self.0[id.0 as usize]
    }
}
