//! The shared-memory NAL: messages between the processes of one node.
//!
//! ```text
//!   a segment (presence)     ┌────────┬──────┬──────┬─ ─┬────────┬────────┬ ─ ─
//!   made by its receiver     │ header │ lane │ lane │ … │  ring  │  ring  │
//!                            └────────┴──────┴──────┴─ ─┴────────┴────────┴ ─ ─
//!                                       one lane and one ring for each sender
//! ```
//!
//! A sender opens its target's segment on first use, takes a free lane and writes
//! records into its ring: no lock, no system call. Bodies up to a threshold that is measured
//! ([`Costs`]) go through the ring; longer ones are lent and moved once, from buffer to buffer,
//! by cross-memory attach; if the system forbids that, they stream through the
//! ring in pieces.
//!
//! Left to others: registration, liveness and the bell (presence), threads and waiting
//! (the runtime), what the words mean.

mod choice;
mod costs;
mod direct;
mod inbound;
mod intervals;
#[cfg(not(feature = "test-doors"))]
mod layout;
#[cfg(feature = "test-doors")]
pub mod layout;
mod outbound;
mod parts;
mod private_entries;
mod quick_arrivals;
mod quick_sends;
mod record;
mod senders;
mod tally;

pub use costs::{Costs, SystemCopy};
pub use direct::{DirectPlace, MAX_DIRECT, QuickPlace, Wanted};
pub use lintel_direct::{
    CopyKey, Counts, Entry as DirectEntry, Memory as DirectMemory, MemoryName,
};
pub use lintel_ring::{INLINE, Lookout};
pub use outbound::Unread;
pub use quick_arrivals::QuickArrival;
pub use quick_sends::{LONGEST_QUICK, SendPlace};

use direct::Accesses;
use inbound::Inbound;
use lintel_claim::{Claim, CrossMemoryError, Lease, Loan, RemoteMemory};
use lintel_nal::{
    Arrival, Capabilities, Finder, Granted, MoveError, Moved, Nal, Origin, Outgoing, Parts,
    RemoteLoan, Resources, Unreachable, Wake,
};
use lintel_presence::{OpenError, Segment, register_for_barriers};
use lintel_snapshot::Traffic;
use lintel_types::ProcessId;
use lintel_wire::Words;
use outbound::{Access, Peer, number_of_processor};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

/// The longest body that is copied through the ring; shorter ones are too if that pays.
pub const EAGER: u64 = 65536;
/// Messages that a lane may deliver before the next lane has its turn.
const QUANTUM: u32 = 32;
/// Lanes that a poll looks at about as quickly as a caller does without the lock.
const FEW_LANES: usize = 24;
/// Bytes queued for a peer, more than which it can't read at a time.
const MUCH: u64 = lintel_ring::ring_bytes(lintel_ring::NEAR_LINES) as u64;

/// Counters of what went wrong, for `lintel info` and logs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Diagnostics {
    /// Lanes quarantined because their sender broke the protocol.
    pub corrupt_lanes: u64,
    /// Peers that ended while connected.
    pub lost_peers: u64,
}

/// The NAL of one process.
pub struct ShmNal {
    segment: Arc<Segment>,
    me: ProcessId,
    peers: Vec<Peer>,
    by_process: FxHashMap<ProcessId, usize>,
    last: Option<(ProcessId, usize)>,
    inbound: Vec<Inbound>,
    /// Lanes whose senders have written nonsense, or closed them: no more is read
    /// from them, nor sent to those processes, until they end.
    quarantined: Vec<Inbound>,
    cursor: usize,
    served: u32,
    /// Messages that have arrived, modulo 2^32.
    arrivals: u32,
    /// How many those were when the lanes were last watched; nothing if there are other lanes now.
    watched: Option<u32>,
    changes: u32,
    /// Reported before anything else arrives: processes lost, streams broken.
    notices: VecDeque<Arrival>,
    /// No process answered by that name at the last try: that is logged once.
    unanswered: Option<ProcessId>,
    reach_logged: bool,
    /// Peers for whom something is queued.
    waiting: usize,
    /// For one of them it is more than [`MUCH`].
    has_much_queued: bool,
    /// Something was added to that since this was last asked.
    has_queued_more: bool,
    diagnostics: Diagnostics,
    log: fn(&str),
    /// Bytes may be moved directly, if the system allows it.
    direct: bool,
    /// What bodies cost by either way.
    costs: Costs,
    /// Accesses of peers to memory of direct entries that were withdrawn meanwhile.
    accesses: Accesses,
    /// Slots of the direct entries of this process that are in memory that can be mapped.
    shared_slots: Vec<usize>,
    /// Whether they, or those of a peer, are to be looked for.
    looks_at_direct: bool,
    /// Bytes from which on it is worth asking whether a peer is [away](Self::is_away): all while
    /// one may sleep, none if no peer has direct entries that the system copies from and to.
    away_from: u64,
}

impl ShmNal {
    /// The NAL of the process that `segment` registers, on a machine with those costs. `log`
    /// receives a line for each peer that misbehaves.
    pub fn new(segment: Arc<Segment>, costs: Costs, log: fn(&str)) -> ShmNal {
        ShmNal {
            me: segment.process(),
            segment,
            peers: Vec::new(),
            by_process: FxHashMap::default(),
            last: None,
            inbound: Vec::new(),
            quarantined: Vec::new(),
            cursor: 0,
            served: 0,
            arrivals: 0,
            watched: None,
            changes: 0,
            notices: VecDeque::new(),
            unanswered: None,
            reach_logged: false,
            waiting: 0,
            has_much_queued: false,
            has_queued_more: false,
            diagnostics: Diagnostics::default(),
            log,
            direct: true,
            costs,
            accesses: Accesses::default(),
            shared_slots: Vec::new(),
            looks_at_direct: false,
            away_from: u64::MAX,
        }
    }

    /// Registers this process on node `nid` and opens its NAL, which copies all that it can;
    /// `pid` may be [`ProcessId::PID_ANY`].
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(job: &str, nid: u32, pid: u32, log: fn(&str)) -> Result<ShmNal, OpenError> {
        let segment = Segment::create(job, nid, pid)?;
        register_for_barriers();
        let costs = Costs::Set(EAGER);
        Ok(ShmNal::new(Arc::new(segment), costs, log))
    }

    /// As [`open`](Self::open), but bytes that could be moved directly stream
    /// nevertheless, as on systems that forbid it.
    ///
    /// # Errors
    /// [`OpenError`]
    #[cfg(feature = "test-doors")]
    pub fn open_without_cross_memory(
        job: &str,
        nid: u32,
        pid: u32,
        log: fn(&str),
    ) -> Result<ShmNal, OpenError> {
        let mut nal = ShmNal::open(job, nid, pid, log)?;
        nal.direct = false;
        Ok(nal)
    }

    /// The name that others reach this process by.
    pub fn process(&self) -> ProcessId {
        self.me
    }

    /// Has threads look for messages without this NAL, so many times until it is polled
    /// again; not at all while something else is due than a look at the rings.
    #[inline(always)]
    pub fn watch(&mut self, lookout: &Lookout, looks: u32) {
        if self.waiting > 0 || !self.notices.is_empty() {
            return lookout.close();
        }
        match self.inbound.as_slice() {
            // SAFETY: the ring lies in this process's own segment, whose addresses stay readable
            // as long as the process lives (`Segment::create`).
            [only] => unsafe { lookout.watch(iter::once(only.receiver()), 0, looks) },
            _ => self.watch_several(lookout, looks),
        }
    }

    /// As [`watch`](Self::watch), if there isn't just one lane.
    #[inline(never)]
    fn watch_several(&mut self, lookout: &Lookout, looks: u32) {
        if self.reads_many() && self.watch_last(lookout, looks) {
            return;
        }
        let receivers = self.inbound.iter().map(Inbound::receiver);
        // SAFETY: as in `watch`.
        unsafe { lookout.watch(receivers, self.cursor, looks) };
    }

    /// Has threads look on for messages on the lanes that were watched before, if nothing was read
    /// since but, as a rule, from the lane whose turn it is; false if all are to be watched anew.
    fn watch_last(&mut self, lookout: &Lookout, looks: u32) -> bool {
        let watched = self.watched.replace(self.arrivals);
        let has_read = watched.is_some_and(|arrivals| arrivals != self.arrivals);
        let last = self.inbound.get(self.cursor).filter(|_| has_read);
        if let Some(last) = last {
            // SAFETY: as in `watch`.
            unsafe { lookout.watch_on(self.cursor, last.receiver(), looks) };
        }
        last.is_some()
    }

    /// A message was seen on the lane with this number of those that are [watched](Self::watch): its
    /// sender goes on with the turn, unless the one that has it has sent something, too.
    #[inline(always)]
    pub fn turn_to(&mut self, lane: usize) {
        let has_message = |current: &Inbound| !current.receiver().is_empty();
        let is_other = lane != self.cursor && lane < self.inbound.len();
        if is_other && !self.inbound.get(self.cursor).is_some_and(has_message) {
            // Not a new turn: a third sender waits no longer than for one.
            self.cursor = lane;
        }
    }

    /// Whether a poll that finds nothing takes long, so that callers should look by themselves also
    /// right after a message.
    #[inline(always)]
    pub fn reads_many(&self) -> bool {
        self.inbound.len() > FEW_LANES
    }

    /// Counts of what went wrong so far.
    pub fn diagnostics(&self) -> Diagnostics {
        self.diagnostics
    }

    /// Peers written to, and lanes read from.
    pub fn connections(&self) -> (usize, usize) {
        (self.peers.len(), self.inbound.len())
    }

    /// Whether bytes of `process` can be moved directly; `None` if it isn't connected.
    pub fn cross_memory(&self, process: ProcessId) -> Option<bool> {
        self.by_process
            .get(&process)
            .map(|index| self.peers[*index].cross_memory())
    }

    /// Whether something is queued for a process that may be waited for until it reads: it doesn't
    /// write to this one meanwhile what has to be read first.
    pub fn may_await_reader(&mut self, process: ProcessId) -> bool {
        let index = self.by_process.get(&process).copied();
        let peer = index.map(|index| &self.peers[index]);
        let is_queued = peer.is_some_and(|peer| peer.waits() && !peer.is_closed());
        let mut lanes = self.inbound.iter_mut();
        is_queued && !lanes.any(|lane| lane.origin().process == process && lane.has_stream_queued())
    }

    /// Whether more is queued for some process than it can read at a time.
    #[inline(always)]
    pub fn has_much_queued(&self) -> bool {
        self.has_much_queued
    }

    /// Whether something was added to that since this was last asked.
    #[inline(always)]
    pub fn take_queued_more(&mut self) -> bool {
        std::mem::take(&mut self.has_queued_more)
    }

    /// Ends the connection to a process, but for what it hasn't read yet.
    pub fn take_unread(&mut self, process: ProcessId) -> Option<Unread> {
        let index = self.by_process.remove(&process)?;
        self.last = None;
        let peer = self.peers.swap_remove(index);
        if let Some(moved) = self.peers.get(index) {
            self.by_process.insert(moved.process(), index);
        }
        peer.into_unread()
    }

    #[inline]
    fn peer(&mut self, process: ProcessId) -> Result<usize, Unreachable> {
        let index = match self.by_process.get(&process) {
            Some(index) => *index,
            None => self.connect(process)?,
        };
        if self.peers[index].is_closed() {
            return Err(self.on_closed(index));
        }
        self.last = Some((process, index));
        Ok(index)
    }

    /// A peer takes nothing more. Its loss is reported once what it has sent is read.
    #[cold]
    fn on_closed(&mut self, index: usize) -> Unreachable {
        if !self.has_unread(index) {
            self.drop_peer(index);
        }
        Unreachable
    }

    #[cold]
    fn connect(&mut self, process: ProcessId) -> Result<usize, Unreachable> {
        // Which processes' messages wait here, perhaps of one that had that name before.
        self.scan_lanes(self.segment.changes());
        let is_lost = self.notices.iter().any(|notice| match notice {
            // The process that has the name now is reached once the loss was reported.
            Arrival::Lost(lost) => *lost == process,
            _ => false,
        });
        // Answers to a process that has ended are not for its successor.
        let ended = self.inbound.iter().filter(|lane| !lane.is_sender_alive());
        let mut refused = self.quarantined.iter().chain(ended).map(Inbound::origin);
        if process == self.me || is_lost || refused.any(|o| o.process == process) {
            return Err(Unreachable);
        }
        let peer =
            Peer::connect(&self.segment, process, self.direct, self.costs).map_err(|error| {
                if self.unanswered.replace(process) != Some(process) {
                    (self.log)(&format!("no way to process {process}: {error}"));
                }
                Unreachable
            })?;
        self.unanswered = None;
        self.peers.push(peer);
        self.by_process.insert(process, self.peers.len() - 1);
        Ok(self.peers.len() - 1)
    }

    /// Sends to a peer other than the last, queues what has no room, and lends.
    #[inline(never)]
    fn send_slow(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        let index = self.peer(to)?;
        let (peer, inbound) = (&mut self.peers[index], &mut self.inbound);
        let waited = peer.waits();
        match body {
            Outgoing::Copied { operand, pieces } => {
                let is_wanted = || inbound.iter_mut().any(Inbound::has_stream_queued);
                peer.copy(words, operand, pieces, is_wanted);
            }
            Outgoing::LentToRead(lent) => peer.lend(words, lent, Access::Read),
            Outgoing::LentToFill(lent) => peer.lend(words, lent, Access::Fill),
        }
        if peer.is_closed() {
            return Err(self.on_closed(index));
        }
        self.waiting += usize::from(peer.waits() && !waited);
        if peer.backlog() > MUCH {
            // Answers to further messages of the peer would wait, too.
            (self.served, self.has_queued_more) = (QUANTUM, true);
            self.has_much_queued = true;
        }
        self.looks_at_direct |= peer.has_new_direct();
        self.away_from = self.away_from.min(peer.away_from());
        Ok(())
    }

    fn lane(&mut self, origin: Origin) -> Option<&mut Inbound> {
        let cursor = self.cursor;
        if self
            .inbound
            .get(cursor)
            .is_some_and(|inbound| inbound.lane() == origin.lane as usize)
        {
            return self.inbound.get_mut(cursor);
        }
        self.inbound
            .iter_mut()
            .find(|inbound| inbound.lane() == origin.lane as usize)
    }

    /// The next arrival on any lane, turn by turn.
    #[inline(always)]
    fn next_on_lanes(&mut self) -> Option<Arrival> {
        if self.inbound.is_empty() {
            return None;
        }
        let is_alone = self.inbound.len() == 1;
        let last = self.cursor;
        // Once more than there are lanes: the first may only have ended its turn.
        for _ in 0..=self.inbound.len() {
            if self.served < QUANTUM {
                let inbound = &mut self.inbound[self.cursor];
                match inbound.next() {
                    Ok(Some(arrival)) => return Some(arrival),
                    Ok(None) if is_alone => {
                        self.served = 0;
                        return None;
                    }
                    Ok(None) => {}
                    Err(_) => return self.on_corrupt(),
                }
            }
            self.served = 0;
            self.cursor += 1;
            if self.cursor >= self.inbound.len() {
                self.cursor = 0;
            }
        }
        // The next message is probably from the sender of the last one.
        self.cursor = last;
        None
    }

    /// Whether it is another sender's turn.
    #[inline(always)]
    fn has_turn_ended(&self) -> bool {
        self.served >= QUANTUM
    }

    /// A message of the sender whose turn it is has been dealt with.
    #[inline(always)]
    fn count_arrival(&mut self) {
        self.served += 1;
        self.arrivals = self.arrivals.wrapping_add(1);
    }

    /// Sends what waits for room; whether something still does.
    #[cold]
    fn flush_waiting(&mut self) -> bool {
        (self.waiting, self.has_much_queued) = (0, false);
        for peer in &mut self.peers {
            self.waiting += usize::from(peer.flush());
            self.has_much_queued |= peer.backlog() > MUCH;
        }
        self.waiting > 0
    }

    /// A sender has written nonsense: its messages are lost, and no other sender's.
    #[cold]
    fn on_corrupt(&mut self) -> Option<Arrival> {
        let lane = self.inbound.swap_remove(self.cursor);
        self.watched = None;
        self.quarantine(lane);
        self.next()
    }
}

impl Nal for ShmNal {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "shm",
            eager: EAGER,
        }
    }

    #[inline(always)]
    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        if let (Some((last, index)), Outgoing::Copied { operand, pieces }) = (self.last, body) {
            let peer = &mut self.peers[index];
            if last == to && peer.try_copy(words, operand, pieces) {
                self.looks_at_direct |= peer.has_new_direct();
                self.away_from = self.away_from.min(peer.away_from());
                return Ok(());
            }
        }
        // A copy: the common path writes its words where they go, and has none in memory.
        self.send_slow(to, &{ *words }, body)
    }

    fn leave_to(&mut self, origin: Origin) {
        if let Some(inbound) = self.lane(origin) {
            inbound.leave_to_sender();
        }
    }

    fn begin_parts(&mut self, origin: Origin, parts: Parts, length: u64) -> Option<(u64, u64)> {
        self.lane(origin)?.begin_parts(parts, length)
    }

    fn take_part(&mut self, granted: Granted, length: u64) -> Option<(u64, u64)> {
        match granted {
            Granted::By(process) => {
                let index = self.index_of(process)?;
                self.peers[index].take_part(length)
            }
            Granted::To(origin) => self.lane(origin)?.take_part(length),
        }
    }

    fn revoke_grant(&mut self, origin: Origin, own: u32) -> bool {
        let inbound = self.lane(origin);
        let is_revoked = inbound.is_some_and(|inbound| inbound.revoke_grant(own));
        if is_revoked {
            if let Some(index) = self.index_of(origin.process) {
                self.peers[index].joining.note_missed();
            }
        }
        is_revoked
    }

    fn note_moved(&mut self, to: ProcessId, moved: Moved) {
        if let Some(index) = self.index_of(to) {
            self.peers[index].note_moved(moved);
        }
    }

    #[inline(always)]
    fn next(&mut self) -> Option<Arrival> {
        let changes = self.segment.changes();
        if changes != self.changes {
            self.scan_lanes(changes);
        }
        if !self.notices.is_empty() {
            return self.notices.pop_front();
        }
        self.next_on_lanes()
    }

    #[inline(always)]
    fn next_inline(&mut self) -> Option<(Origin, Words, Claim)> {
        match self.has_turn_ended() {
            true => None,
            false => self.inbound.get_mut(self.cursor)?.next_inline(),
        }
    }

    #[inline(always)]
    fn done(&mut self, origin: Origin) {
        self.count_arrival();
        match self.inbound.get_mut(self.cursor) {
            Some(inbound) if inbound.lane() == origin.lane as usize => inbound.done(),
            _ => {
                if let Some(inbound) = self.lane(origin) {
                    inbound.done();
                }
            }
        }
    }

    fn lent_behind(
        &mut self,
        origin: Origin,
        places: u32,
        bytes: u64,
    ) -> Option<(Words, RemoteLoan)> {
        self.lane(origin)?.lent_behind(places, bytes)
    }

    fn done_lent(&mut self, origin: Origin, messages: u32) {
        self.served += messages;
        self.arrivals = self.arrivals.wrapping_add(messages);
        if let Some(inbound) = self.lane(origin) {
            inbound.done_lent(messages);
        }
    }

    fn receive_into(&mut self, origin: Origin, place: Loan) {
        if let Some(inbound) = self.lane(origin) {
            inbound.receive_into(place);
        }
    }

    fn fetch(&mut self, from: Origin, remote: &RemoteLoan, to: &[Claim]) -> Result<u64, MoveError> {
        let lane = self.lane(from).ok_or(MoveError::Unavailable)?;
        let pull = |memory: RemoteMemory| memory.pull(remote.spans.as_slice(), to);
        let fetched = lane.copy(remote.key, pull).map_err(move_error)?;
        lane.note_fetched(fetched);
        Ok(fetched)
    }

    fn fill(&mut self, to: Origin, from: &[Claim], remote: &RemoteLoan) -> Result<u64, MoveError> {
        let lane = self.lane(to).ok_or(MoveError::Unavailable)?;
        let push = |memory: RemoteMemory| memory.push(from, remote.spans.as_slice());
        let filled = lane.copy(remote.key, push).map_err(move_error)?;
        lane.note_filled(filled);
        Ok(filled)
    }

    fn recall(&mut self, lease: &Lease) -> bool {
        for inbound in self.inbound.iter_mut().chain(&mut self.quarantined) {
            inbound.recall(lease);
        }
        for peer in &mut self.peers {
            peer.recall(lease);
        }
        self.peers.iter().all(|peer| !peer.is_copying())
    }

    #[inline]
    fn backlog(&self, process: ProcessId) -> u64 {
        if self.waiting == 0 {
            return 0;
        }
        let index = self.by_process.get(&process);
        index.map_or(0, |index| self.peers[*index].backlog())
    }

    #[inline]
    fn lends(&mut self, to: ProcessId, length: u64) -> bool {
        let index = match self.last {
            Some((last, index)) if last == to => index,
            _ => match self.by_process.get(&to) {
                Some(index) => *index,
                None => return false,
            },
        };
        self.peers[index].lends(length, self.arrivals)
    }

    fn resources(&self) -> Resources {
        // Counts are followed before they wrap.
        for peer in &self.peers {
            let _ = peer.traffic();
        }
        for lane in &self.inbound {
            let _ = lane.traffic();
        }
        Resources {
            lanes: self.inbound.len() as u64,
            bytes: self.peers.iter().map(Peer::backlog).sum(),
            ..Resources::default()
        }
    }

    fn traffic(&self) -> Vec<Traffic> {
        let mut all: Vec<Traffic> = self.peers.iter().map(Peer::traffic).collect();
        for lane in self.inbound.iter().map(Inbound::traffic) {
            match all.iter_mut().find(|peer| peer.process == lane.process) {
                Some(peer) => {
                    peer.sent = peer.sent.and(lane.sent);
                    peer.received = peer.received.and(lane.received);
                }
                None => all.push(lane),
            }
        }
        all
    }

    fn arrivals(&self) -> u64 {
        self.arrivals.into()
    }
}

impl Wake for ShmNal {
    #[inline(always)]
    fn flush(&mut self) -> bool {
        self.publish_head();
        self.waiting > 0 && self.flush_waiting()
    }

    fn has_queued(&self, process: ProcessId) -> bool {
        let index = self.by_process.get(&process);
        index.is_some_and(|index| self.peers[*index].waits())
    }

    fn check_peers(&mut self) {
        let changes = self.segment.changes();
        if changes != self.changes {
            self.scan_lanes(changes);
        }
        let mut index = 0;
        while index < self.peers.len() {
            if self.peers[index].is_alive() || self.has_unread(index) {
                index += 1;
            } else {
                self.drop_peer(index);
            }
        }
        self.check_senders();
    }

    fn wake_peers(&mut self) {
        for peer in &mut self.peers {
            peer.wake();
        }
        for lane in &mut self.inbound {
            if lane.has_room_for_waiting() {
                if let Some(index) = self.by_process.get(&lane.origin().process) {
                    self.peers[*index].offer_room();
                }
            }
        }
    }

    fn would_move(&mut self, origin: Origin, length: u64, found: Finder) -> Option<Parts> {
        let index = self.index_of(origin.process)?;
        let inbound = &self.inbound;
        let follows = || {
            let lane = inbound
                .iter()
                .find(|lane| lane.lane() == origin.lane as usize);
            lane.is_some_and(|lane| lane.lent_behind(1, length).is_some())
        };
        self.peers[index].would_move(length, follows, found)
    }

    fn hold_rings(&mut self, to: ProcessId, hold: bool) {
        if let Some(index) = self.by_process.get(&to) {
            self.peers[*index].hold_rings(hold);
        }
    }

    fn ring_due(&mut self) -> Option<Duration> {
        let (here, inbound) = (number_of_processor(), &self.inbound);
        let yields_to = |peer| {
            let mut lanes = inbound.iter().filter(|lane| lane.origin().process == peer);
            lanes.any(|lane| lane.take_ring_from(here))
        };
        let due = |peer: &mut Peer| peer.ring_due(yields_to);
        self.peers.iter_mut().filter_map(due).min()
    }

    fn ring_held(&mut self) {
        self.peers.iter_mut().for_each(Peer::ring_held);
    }
}

fn move_error(error: CrossMemoryError) -> MoveError {
    match error {
        CrossMemoryError::Fault { .. } => MoveError::Fault,
        _ => MoveError::Unavailable,
    }
}

impl Drop for ShmNal {
    /// Marks its lanes as closed, so that receivers expect nothing more.
    fn drop(&mut self) {
        for peer in &mut self.peers {
            peer.close();
        }
    }
}
