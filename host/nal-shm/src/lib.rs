//! The shared-memory NAL: messages between the processes of one node.
//!
//! ```text
//!   /dev/shm/lintel-<job>-<nid>-<pid>     a process's registration: a locked file
//!        │ names
//!        ▼ System V shared memory         one segment a process, made by its receiver
//!   ┌────────┬──────┬─────────────────┬────────┬────────┬ ─ ─
//!   │ header │ bell │ lane │ lane │ … │  ring  │  ring  │       one lane a sending process
//!   └────────┴──────┴─────────────────┴────────┴────────┴ ─ ─
//! ```
//!
//! A sender opens its target's segment on first use, takes a free lane and writes
//! records into its ring: no lock, no system call. Up to [`Capabilities::eager`] bytes go
//! through the ring; longer bodies are lent and moved once, from buffer to buffer,
//! by cross-memory attach; where the system forbids that they stream through the
//! ring in pieces.
//!
//! A receiver that sleeps says so on its [`Bell`]; only then does a sender make a
//! system call. The owner holds a record lock on its registration as long as it lives,
//! so that anyone can tell a dead process from a slow one.
//!
//! Left to others: threads and waiting (the runtime), what the words mean.

mod bell;
mod card;
mod inbound;
#[doc(hidden)]
pub mod layout;
mod outbound;
mod registration;
mod segment;
mod shared_memory;
mod soon;

pub use bell::{Bell, SETTLE, Sleeper};
pub use card::{Card, CardWriter, Words as CardWords, cards};
pub use outbound::Unread;
pub use segment::{OpenError, Segment};
pub use soon::{bound_to, run_soon};

use inbound::Inbound;
use lintel_claim::{Claim, CrossMemoryError, Key, Lease, Loan, RemoteMemory, RemoteSpan};
use lintel_nal::{
    Arrival, Capabilities, MoveError, Nal, Origin, Outgoing, Payload, RemoteLoan, Resources,
    Unreachable, Wake,
};
use lintel_types::ProcessId;
use lintel_wire::Words;
use outbound::{Access, Peer};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bodies up to this many bytes are copied through the ring.
pub const EAGER: u64 = 65536;
/// A lane may give so many messages before the next one has its turn.
const TURN: u32 = 32;
/// The form of a record's payload, in bits of word 0 that messages leave free.
const FORM_SHIFT: u32 = 36;
const FORM_MASK: u64 = 7 << FORM_SHIFT;

/// What a record's payload is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// The message's bytes.
    Inline = 0,
    /// Addresses and lengths in the sender.
    Lent = 1,
    /// The length of a stream that follows.
    Announced = 2,
    /// A part of it.
    Chunk = 3,
    /// The stream ends here, incomplete.
    Aborted = 4,
}

impl Form {
    fn of(words: &Words) -> Option<Form> {
        Some(match (words[0] & FORM_MASK) >> FORM_SHIFT {
            0 => Form::Inline,
            1 => Form::Lent,
            2 => Form::Announced,
            3 => Form::Chunk,
            4 => Form::Aborted,
            _ => return None,
        })
    }

    fn on(self, words: &Words) -> Words {
        let mut words = *words;
        words[0] |= (self as u64) << FORM_SHIFT;
        words
    }
}

/// Counters of what went wrong, for `lintel info` and logs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Troubles {
    /// Lanes given up because their sender wrote nonsense.
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
    outcasts: Vec<Inbound>,
    cursor: usize,
    turn: u32,
    changes: u32,
    /// What to tell before anything else arrives: processes lost, streams broken.
    notices: VecDeque<Arrival>,
    /// Nobody answered there at the last try: that is told once.
    unanswered: Option<ProcessId>,
    told_of_reach: bool,
    waiting: usize,
    troubles: Troubles,
    log: fn(&str),
    /// Bytes may be moved directly, where the system allows it.
    direct: bool,
}

impl ShmNal {
    /// Joins the node's shared memory as a process of node `nid`; `pid` may be
    /// [`ProcessId::PID_ANY`]. `log` is told of peers that misbehave.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(job: &str, nid: u32, pid: u32, log: fn(&str)) -> Result<ShmNal, OpenError> {
        let segment = Segment::create(job, nid, pid)?;
        Ok(ShmNal {
            me: segment.process(),
            segment: Arc::new(segment),
            peers: Vec::new(),
            by_process: FxHashMap::default(),
            last: None,
            inbound: Vec::new(),
            outcasts: Vec::new(),
            cursor: 0,
            turn: 0,
            changes: 0,
            notices: VecDeque::new(),
            unanswered: None,
            told_of_reach: false,
            waiting: 0,
            troubles: Troubles::default(),
            log,
            direct: true,
        })
    }

    /// As [`open`](Self::open), but where bytes could be moved directly they stream
    /// nevertheless, as on systems that forbid it.
    ///
    /// # Errors
    /// [`OpenError`]
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

    /// What wakes this process.
    pub fn bell(&self) -> Bell {
        Bell::new(self.segment.clone())
    }

    /// What shows numbers of this process to others.
    pub fn card(&self) -> CardWriter {
        CardWriter::new(self.segment.clone())
    }

    /// What went wrong so far.
    pub fn troubles(&self) -> Troubles {
        self.troubles
    }

    /// Peers written to, and lanes read from.
    pub fn connections(&self) -> (usize, usize) {
        (self.peers.len(), self.inbound.len())
    }

    /// Whether bytes of `process` can be moved directly; nothing where it isn't connected.
    pub fn cross_memory(&self, process: ProcessId) -> Option<bool> {
        self.by_process
            .get(&process)
            .map(|index| self.peers[*index].cross_memory())
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
        if self.peers[index].is_gone() {
            self.drop_peer(index);
            return Err(Unreachable);
        }
        self.last = Some((process, index));
        Ok(index)
    }

    #[cold]
    fn connect(&mut self, process: ProcessId) -> Result<usize, Unreachable> {
        // Whose messages wait here, perhaps of one who had that name before.
        self.look_at_lanes(self.segment.changes());
        let is_lost = self.notices.iter().any(|notice| match notice {
            // Whoever has the name now is reached once that has been told.
            Arrival::Lost(lost) => *lost == process,
            _ => false,
        });
        // Answers to one who has ended are not for who has the name now.
        let ended = self.inbound.iter().filter(|lane| !lane.sender_lives());
        let mut shunned = self.outcasts.iter().chain(ended).map(Inbound::origin);
        if process == self.me || is_lost || shunned.any(|o| o.process == process) {
            return Err(Unreachable);
        }
        let peer = Peer::connect(&self.segment, process, self.direct).map_err(|error| {
            if self.unanswered.replace(process) != Some(process) {
                (self.log)(&format!(
                    "no way to process {:#x}/{}: {error}",
                    process.nid, process.pid
                ));
            }
            Unreachable
        })?;
        self.unanswered = None;
        self.peers.push(peer);
        self.by_process.insert(process, self.peers.len() - 1);
        Ok(self.peers.len() - 1)
    }

    /// Sends to whom nothing was sent last, what must wait, and what is lent.
    #[inline(never)]
    fn send_with_care(
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
                let is_wanted = || inbound.iter_mut().any(Inbound::brings_stream);
                peer.copy(words, operand, pieces, is_wanted);
            }
            Outgoing::LentToRead(lent) => peer.lend(words, lent, Access::Read),
            Outgoing::LentToFill(lent) => peer.lend(words, lent, Access::Fill),
        }
        if peer.is_gone() {
            self.drop_peer(index);
            return Err(Unreachable);
        }
        self.waiting += usize::from(peer.waits() && !waited);
        Ok(())
    }

    /// Takes note of lanes that were opened or closed since the last look.
    #[cold]
    fn look_at_lanes(&mut self, changes: u32) {
        self.changes = changes;
        self.check_senders();
        self.disown_changed_lanes();
        let mut begun = Vec::new();
        for lane in 0..layout::LANES {
            if self.inbound.iter().any(|known| known.lane() == lane) {
                continue;
            }
            let outcast = self.outcasts.iter().find(|known| known.lane() == lane);
            if outcast.is_some_and(Inbound::is_same) {
                continue;
            }
            let Some(inbound) = Inbound::accept(&self.segment, lane, self.direct) else {
                continue;
            };
            // Whoever has got an outcast's lane must be somebody else for certain.
            let other = |o: &Inbound| inbound.sender_lives() && inbound.inode() != o.inode();
            if outcast.is_none_or(other) {
                begun.push(inbound);
            }
        }
        // Those of the dead first: their names may be others' by now.
        begun.sort_by_key(Inbound::sender_lives);
        for inbound in begun {
            self.admit(inbound);
        }
    }

    fn admit(&mut self, mut inbound: Inbound) {
        if self.direct && !self.told_of_reach && inbound.is_beyond_reach() {
            self.told_of_reach = true;
            (self.log)(
                "the system denies cross-memory copies: long messages go through \
                 shared memory, copied twice",
            );
        }
        let (process, inode) = (inbound.origin().process, inbound.inode());
        let lives = inbound.sender_lives();
        if self.has_predecessor(process, inode) && lives {
            // Once that one's messages are read. Until then, look again.
            self.changes = self.changes.wrapping_sub(1);
            return;
        }
        let known = self.by_process.get(&process).copied();
        match known.filter(|known| self.peers[*known].inode() != inode) {
            // The one who had the name has ended. To know it before the first
            // message of the new one is read matters: the answers go to it.
            Some(predecessor) if lives => self.drop_peer(predecessor),
            // Of one who has ended, and whose name another has: nobody to answer.
            Some(_) => return inbound.free(),
            None => {}
        }
        self.inbound.push(inbound);
    }

    /// Whether messages of an earlier process of that name are still to be read.
    fn has_predecessor(&self, process: ProcessId, inode: u64) -> bool {
        let other = |lane: &Inbound| lane.origin().process == process && lane.inode() != inode;
        self.inbound.iter().any(other)
    }

    /// Gives up lanes whose sender has closed them or died, once they are read.
    fn check_senders(&mut self) {
        let mut over = Vec::new();
        for index in (0..self.inbound.len()).rev() {
            self.inbound[index].check_sender();
            if self.inbound[index].is_over() {
                over.push(self.inbound.swap_remove(index));
            }
        }
        for mut inbound in over {
            self.cut_off(&mut inbound);
            if inbound.sender_lives() {
                // It wants to hear no more, so it won't answer either.
                self.outcasts.push(inbound);
            } else {
                inbound.free();
            }
        }
        let inbound = &self.inbound;
        self.outcasts.retain_mut(|outcast| {
            outcast.check_sender();
            let keep = outcast.sender_lives();
            if !keep && !inbound.iter().any(|other| other.lane() == outcast.lane()) {
                outcast.free();
            }
            keep
        });
        self.cursor = 0;
    }

    /// Nothing will come on this lane any more, no answer either.
    fn cut_off(&mut self, inbound: &mut Inbound) {
        if inbound.break_stream() {
            self.turn = TURN;
            self.notices.push_back(Arrival::Broken(inbound.origin()));
        }
        let known = self.by_process.get(&inbound.origin().process).copied();
        if let Some(index) = known.filter(|known| self.peers[*known].inode() == inbound.inode()) {
            self.drop_peer(index);
        }
    }

    /// A lane that says something else of itself than before was written to by
    /// who shouldn't; it may already be another sender's.
    fn disown_changed_lanes(&mut self) {
        while let Some(index) = self.inbound.iter().position(|lane| !lane.is_same()) {
            let outcast = self.inbound.swap_remove(index);
            self.cast_out(outcast);
        }
    }

    fn drop_peer(&mut self, index: usize) {
        let mut peer = self.peers.swap_remove(index);
        self.last = None;
        self.by_process.remove(&peer.process());
        if let Some(moved) = self.peers.get(index) {
            self.by_process.insert(moved.process(), index);
        }
        peer.close();
        peer.clear_away();
        self.troubles.lost_peers += 1;
        // Nothing is read before this was told.
        self.turn = TURN;
        self.notices.push_back(Arrival::Lost(peer.process()));
        // Somebody is to hear of it, even if the application looks no more.
        self.bell().wake(Sleeper::Helper);
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
        // Once more than there are lanes: the first may only have ended its turn.
        for _ in 0..=self.inbound.len() {
            if self.turn < TURN {
                let inbound = &mut self.inbound[self.cursor];
                match inbound.next() {
                    Ok(Some(arrival)) => return Some(arrival),
                    Ok(None) => {}
                    Err(_) => return self.give_up(),
                }
            }
            self.turn = 0;
            self.cursor += 1;
            if self.cursor >= self.inbound.len() {
                self.cursor = 0;
            }
        }
        None
    }

    /// A sender has written nonsense: its messages are lost, nobody else's.
    #[cold]
    fn give_up(&mut self) -> Option<Arrival> {
        let outcast = self.inbound.swap_remove(self.cursor);
        self.cast_out(outcast);
        self.next()
    }

    /// What is under way to the sender of such a lane will never be answered.
    fn cast_out(&mut self, mut outcast: Inbound) {
        let process = outcast.origin().process;
        self.troubles.corrupt_lanes += 1;
        (self.log)(&format!(
            "process {:#x}/{} wrote nonsense into its lane; its messages are dropped",
            process.nid, process.pid
        ));
        self.cut_off(&mut outcast);
        self.cursor = 0;
        self.outcasts.push(outcast);
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
            if last == to && self.peers[index].copy_now(words, operand, pieces) {
                return Ok(());
            }
        }
        self.send_with_care(to, words, body)
    }

    #[inline(always)]
    fn next(&mut self) -> Option<Arrival> {
        let changes = self.segment.changes();
        if changes != self.changes {
            self.look_at_lanes(changes);
        }
        if !self.notices.is_empty() {
            return self.notices.pop_front();
        }
        self.next_on_lanes()
    }

    #[inline(always)]
    fn next_inline(&mut self) -> Option<(Origin, Words, Claim)> {
        if self.turn >= TURN {
            return None;
        }
        self.inbound.get_mut(self.cursor)?.next_inline()
    }

    #[inline(always)]
    fn done(&mut self, origin: Origin) {
        self.turn += 1;
        match self.inbound.get_mut(self.cursor) {
            Some(inbound) if inbound.lane() == origin.lane as usize => inbound.done(),
            _ => {
                if let Some(inbound) = self.lane(origin) {
                    inbound.done();
                }
            }
        }
    }

    fn receive_into(&mut self, origin: Origin, place: Loan) {
        if let Some(inbound) = self.lane(origin) {
            inbound.receive_into(place);
        }
    }

    fn fetch(&mut self, from: Origin, remote: &RemoteLoan, to: &[Claim]) -> Result<u64, MoveError> {
        let lane = self.lane(from).ok_or(MoveError::Gone)?;
        let pull = |memory: RemoteMemory| memory.pull(&remote.spans, to);
        lane.copy(remote.key, pull).map_err(move_error)
    }

    fn fill(&mut self, to: Origin, from: &[Claim], remote: &RemoteLoan) -> Result<u64, MoveError> {
        let lane = self.lane(to).ok_or(MoveError::Gone)?;
        let push = |memory: RemoteMemory| memory.push(from, &remote.spans);
        lane.copy(remote.key, push).map_err(move_error)
    }

    fn recall(&mut self, lease: &Lease) -> bool {
        for inbound in self.inbound.iter_mut().chain(&mut self.outcasts) {
            inbound.recall(lease);
        }
        for peer in &mut self.peers {
            peer.recall(lease);
        }
        self.peers.iter().all(|peer| !peer.is_copying())
    }

    fn backlog(&self, process: ProcessId) -> u64 {
        let index = self.by_process.get(&process);
        index.map_or(0, |index| self.peers[*index].backlog())
    }

    fn resources(&self) -> Resources {
        Resources {
            lanes: self.inbound.len() as u64,
            ..Resources::default()
        }
    }
}

impl Wake for ShmNal {
    #[inline]
    fn flush(&mut self) -> bool {
        if self.waiting == 0 {
            return false;
        }
        self.waiting = 0;
        for peer in &mut self.peers {
            self.waiting += usize::from(peer.flush());
        }
        self.waiting > 0
    }

    fn has_queued(&self, process: ProcessId) -> bool {
        let index = self.by_process.get(&process);
        index.is_some_and(|index| self.peers[*index].waits())
    }

    fn check_peers(&mut self) {
        let mut index = 0;
        while index < self.peers.len() {
            if self.peers[index].lives() {
                index += 1;
            } else {
                self.drop_peer(index);
            }
        }
        self.check_senders();
    }

    fn wake_peers(&mut self) {
        for peer in &mut self.peers {
            peer.nudge();
        }
    }
}

fn move_error(error: CrossMemoryError) -> MoveError {
    match error {
        CrossMemoryError::Fault { .. } => MoveError::Fault,
        _ => MoveError::Gone,
    }
}

impl Drop for ShmNal {
    /// Lets receivers know that nothing more will come.
    fn drop(&mut self) {
        for peer in &mut self.peers {
            peer.close();
        }
    }
}

/// What a record of lent memory says: the key, and then the spans, two words each.
fn remote_loan(payload: Claim) -> Option<RemoteLoan> {
    let pair = |index| {
        let at = index * 16;
        Some((payload.load_u64(at)?, payload.load_u64(at + 8)?))
    };
    let (address, nonce) = pair(0)?;
    let spans = (1..payload.len() / 16).filter_map(pair);
    let spans = spans.map(|(address, length)| RemoteSpan { address, length });
    Some(RemoteLoan {
        key: Key { address, nonce },
        spans: spans.collect(),
    })
}

fn message(origin: Origin, mut words: Words, payload: Payload) -> Arrival {
    words[0] &= !FORM_MASK;
    Arrival::Message(origin, words, payload)
}
