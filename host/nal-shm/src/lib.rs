//! The shared-memory NAL: messages between the processes of one node.
//!
//! ```text
//!   /dev/shm/lintel-<job>-<nid>-<pid>     one segment a process, made by its receiver
//!   ┌────────┬──────┬─────────────────┬────────┬────────┬ ─ ─
//!   │ header │ bell │ lane │ lane │ … │  ring  │  ring  │       one lane a sending process
//!   └────────┴──────┴─────────────────┴────────┴────────┴ ─ ─
//! ```
//!
//! A sender opens its target's segment on first use, takes a free lane and writes
//! records into its ring: no lock, no system call. Up to [`Caps::eager`] bytes go
//! through the ring; longer bodies are lent and moved once, from buffer to buffer,
//! by cross-memory attach; where the system forbids that they stream through the
//! ring in pieces.
//!
//! A receiver that sleeps says so on its [`Bell`]; only then does a sender make a
//! system call. The owner holds a record lock on its segment as long as it lives,
//! so that anyone can tell a dead process from a slow one.
//!
//! Left to others: threads and waiting (the runtime), what the words mean.

mod bell;
mod inbound;
mod layout;
mod outbound;
mod segment;
mod soon;

pub use bell::{Bell, Sleeper};
pub use segment::{OpenError, Segment};
pub use soon::run_soon;

use inbound::Inbound;
use lintel_claim::{Claim, CrossMemoryError, RemoteSpan, pull, push};
use lintel_nal::{Arrival, Caps, MoveError, Nal, Origin, Outgoing, Payload, Unreachable};
use lintel_types::ProcessId;
use lintel_wire::Words;
use outbound::Peer;
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
    Enclosed = 0,
    /// Addresses and lengths in the sender.
    Lent = 1,
    /// The length of a stream that follows.
    Announced = 2,
    /// A part of it.
    Chunk = 3,
}

impl Form {
    fn of(words: &Words) -> Option<Form> {
        Some(match (words[0] & FORM_MASK) >> FORM_SHIFT {
            0 => Form::Enclosed,
            1 => Form::Lent,
            2 => Form::Announced,
            3 => Form::Chunk,
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
    cursor: usize,
    turn: u32,
    changes: u32,
    lost: VecDeque<ProcessId>,
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
            cursor: 0,
            turn: 0,
            changes: 0,
            lost: VecDeque::new(),
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

    #[inline]
    fn peer(&mut self, process: ProcessId) -> Result<usize, Unreachable> {
        if let Some((last, index)) = self.last {
            if last == process {
                return Ok(index);
            }
        }
        let index = match self.by_process.get(&process) {
            Some(index) => *index,
            None => self.connect(process)?,
        };
        self.last = Some((process, index));
        Ok(index)
    }

    #[cold]
    fn connect(&mut self, process: ProcessId) -> Result<usize, Unreachable> {
        let peer = Peer::connect(&self.segment, process, self.direct).map_err(|error| {
            (self.log)(&format!(
                "no way to process {:#x}/{}: {error}",
                process.nid, process.pid
            ));
            Unreachable
        })?;
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
        let peer = &mut self.peers[index];
        let waited = peer.waits();
        match body {
            Outgoing::Copied { operand, pieces } => peer.copy(words, operand, pieces),
            Outgoing::LentToRead(pieces) => peer.lend(words, pieces, true),
            Outgoing::LentToFill(pieces) => peer.lend(words, pieces, false),
        }
        self.waiting += usize::from(peer.waits() && !waited);
        Ok(())
    }

    /// Takes note of lanes that were opened or closed since the last look.
    #[cold]
    fn look_at_lanes(&mut self, changes: u32) {
        self.changes = changes;
        for lane in 0..layout::LANES {
            if self.inbound.iter().any(|known| known.lane() == lane) {
                continue;
            }
            if let Some(inbound) = Inbound::accept(&self.segment, lane) {
                self.inbound.push(inbound);
            }
        }
    }

    /// Gives up lanes whose sender has closed them or died, once they are read.
    fn free_lanes(&mut self) {
        let lost = &mut self.lost;
        self.inbound.retain_mut(|inbound| {
            let keep = !inbound.is_over();
            if !keep {
                if inbound.leaves_a_stream() {
                    lost.push_back(inbound.origin().process);
                }
                inbound.free();
            }
            keep
        });
        self.cursor = 0;
    }

    fn drop_peer(&mut self, index: usize) {
        let peer = self.peers.swap_remove(index);
        self.last = None;
        self.by_process.remove(&peer.process());
        if let Some(moved) = self.peers.get(index) {
            self.by_process.insert(moved.process(), index);
        }
        for inbound in &mut self.inbound {
            if inbound.origin().process == peer.process() {
                inbound.sender_died();
            }
        }
        self.troubles.lost_peers += 1;
        self.lost.push_back(peer.process());
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
                    Err(_) => self.give_up(),
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
    fn give_up(&mut self) {
        let inbound = &mut self.inbound[self.cursor];
        if inbound.give_up() {
            let process = inbound.origin().process;
            self.troubles.corrupt_lanes += 1;
            (self.log)(&format!(
                "process {:#x}/{} wrote nonsense into its lane; its messages are dropped",
                process.nid, process.pid
            ));
        }
    }
}

impl Nal for ShmNal {
    fn caps(&self) -> Caps {
        Caps {
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
        if !self.lost.is_empty() {
            return self.lost.pop_front().map(Arrival::Lost);
        }
        self.next_on_lanes()
    }

    #[inline(always)]
    fn next_enclosed(&mut self) -> Option<(Origin, Words, Claim)> {
        if self.turn >= TURN {
            return None;
        }
        self.inbound.get_mut(self.cursor)?.next_enclosed()
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

    fn receive_into(&mut self, origin: Origin, pieces: Vec<Claim>) {
        if let Some(inbound) = self.lane(origin) {
            inbound.receive_into(pieces);
        }
    }

    fn fetch(
        &mut self,
        from: Origin,
        remote: &[RemoteSpan],
        to: &[Claim],
    ) -> Result<u64, MoveError> {
        let process = self.lane(from).ok_or(MoveError::Gone)?.os_process();
        pull(process, remote, to).map_err(move_error)
    }

    fn place(
        &mut self,
        to: Origin,
        from: &[Claim],
        remote: &[RemoteSpan],
    ) -> Result<u64, MoveError> {
        let process = self.lane(to).ok_or(MoveError::Gone)?.os_process();
        push(process, from, remote).map_err(move_error)
    }

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

    fn check_peers(&mut self) {
        let mut index = 0;
        while index < self.peers.len() {
            if self.peers[index].lives() {
                index += 1;
            } else {
                self.drop_peer(index);
            }
        }
        for inbound in &mut self.inbound {
            inbound.check_sender();
        }
        self.free_lanes();
    }

    fn nudge(&mut self) {
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

/// Payload of a record as the trait shows it.
fn spans(payload: Claim) -> Vec<RemoteSpan> {
    (0..payload.len() / 16)
        .filter_map(|index| {
            Some(RemoteSpan {
                address: payload.load_u64(index * 16)?,
                length: payload.load_u64(index * 16 + 8)?,
            })
        })
        .collect()
}

fn message(origin: Origin, mut words: Words, payload: Payload) -> Arrival {
    words[0] &= !FORM_MASK;
    Arrival::Message(origin, words, payload)
}
