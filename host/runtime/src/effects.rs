//! Where an engine's effects go.

use crate::owner::Owner;
use crate::staging_pool::StagingPool;
use crate::transport::Transport;
use lintel_bridge::Tables;
use lintel_claim::{Claim, Lease, Lent, Region};
use lintel_engine4::{Backlog, Body, Host, Undeliverable};
use lintel_memory::{Pieces, Span, length};
use lintel_nal::{Loopback, Nal, Outgoing, Wake};
use lintel_types::{CounterIndex, CountingEvent, Event, InterfaceNumber, ProcessId, QueueIndex};
use lintel_wire::{OPERAND_BYTES, Request, Response, Verb, Words};
use std::collections::HashMap;

/// Bytes that wait for a process from which on bodies stay in their place.
const HIGH_BACKLOG: u64 = 1 << 20;
/// Bytes that wait for a process from which on callers wait, too.
const FULL_BACKLOG: u64 = 8 << 20;

/// The ways out of a process: to others, and to itself.
pub(crate) struct Transports {
    pub(crate) me: ProcessId,
    pub(crate) nal: Transport,
    pub(crate) loopback: Loopback,
    /// Something was posted or counted since this was last cleared.
    pub(crate) activity: bool,
    /// Whom something was sent to last.
    pub(crate) to: ProcessId,
    /// Somebody may be far behind with what was sent to it.
    pub(crate) congested: bool,
    /// Whose backlog was full when an operation was refused.
    pub(crate) blocked: Option<ProcessId>,
}

impl Transports {
    #[inline]
    pub(crate) fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Undeliverable> {
        let sent = if to == self.me {
            self.loopback.send(to, words, body)
        } else {
            self.to = to;
            self.nal.send(to, words, body)
        };
        sent.map_err(|_| Undeliverable)
    }

    /// Whether the process that was sent to last is behind with what it was sent.
    /// Others that are behind hold nobody up.
    pub(crate) fn is_behind(&mut self) -> bool {
        self.nal.flush() && self.nal.has_queued(self.to)
    }

    /// How much waits on the way to a process.
    #[cold]
    fn backlog(&mut self, process: ProcessId) -> Backlog {
        let bytes = self.nal.backlog(process);
        let (low, full) = (bytes < HIGH_BACKLOG, bytes >= FULL_BACKLOG);
        self.blocked = full.then_some(process);
        match (low, full) {
            (true, _) => Backlog::Low,
            (_, false) => Backlog::High,
            (_, true) => Backlog::Full,
        }
    }

    /// Whether the process that was last refused an operation still is too far behind.
    pub(crate) fn is_blocked(&mut self) -> bool {
        let blocked = self.blocked;
        blocked.is_some_and(|process| self.nal.backlog(process) >= FULL_BACKLOG)
    }

    /// Whether something waits for room in the network.
    pub(crate) fn nal_has_queued(&mut self) -> bool {
        self.nal.flush()
    }

    /// Sends a response without bytes; one that can't be delivered is awaited by nobody.
    #[inline]
    pub(crate) fn respond(&mut self, to: ProcessId, response: &Response) {
        let nothing = Outgoing::Copied {
            operand: None,
            pieces: &[],
        };
        let _ = self.send(to, &response.to_words(), nothing);
    }
}

/// An engine's [`Host`] for the length of a call.
pub struct Effects<'a, O: Owner> {
    pub(crate) transports: &'a mut Transports,
    pub(crate) tables: &'a O::Tables,
    pub(crate) owner: &'a O,
    pub(crate) staged: &'a mut StagedSends<O::Span>,
    /// Under which memory of the interface is lent.
    pub(crate) lease: &'a Lease,
}

impl<O: Owner> Host<O::Span> for Effects<'_, O> {
    #[inline]
    fn post(&mut self, queue: QueueIndex, event: &Event) {
        self.tables.post(queue, event);
        self.transports.activity = true;
    }

    #[inline]
    fn free_slots(&mut self, queue: QueueIndex) -> usize {
        self.tables.free_slots(queue)
    }

    #[inline]
    fn publish(&mut self, counter: CounterIndex, value: CountingEvent) {
        self.tables.publish(counter, value);
        self.transports.activity = true;
    }

    #[inline(always)]
    fn backlog(&mut self, to: ProcessId) -> Backlog {
        match self.transports.congested {
            true => self.transports.backlog(to),
            false => Backlog::Low,
        }
    }

    #[inline(always)]
    fn send(
        &mut self,
        to: ProcessId,
        request: &Request,
        body: Body<'_, O::Span>,
    ) -> Result<(), Undeliverable> {
        let pieces = match &body.pieces {
            Pieces::One(one) if one.length() == 0 => &[],
            pieces => pieces.as_slice(),
        };
        let Some(pieces) = O::claims(pieces) else {
            return self.send_copy(to, request, body.operand, pieces);
        };
        let (is_get, words) = (request.verb == Verb::Get, request.to_words());
        if request.referenced {
            return self.lend(to, &words, is_get, pieces);
        }
        let outgoing = Outgoing::Copied {
            operand: body.operand,
            pieces: if is_get { &[] } else { pieces },
        };
        self.transports.send(to, &words, outgoing)
    }
}

impl<O: Owner> Effects<'_, O> {
    /// Sends where bytes are, to be read, or filled by a get.
    #[inline(never)]
    fn lend(
        &mut self,
        to: ProcessId,
        words: &Words,
        is_get: bool,
        pieces: &[Claim],
    ) -> Result<(), Undeliverable> {
        let outgoing = lent(is_get, self.lease.lend(pieces));
        self.transports.send(to, words, outgoing)
    }

    /// Sends memory that can't be touched: a copy goes in its place, and stays until
    /// the answer where it is lent.
    fn send_copy(
        &mut self,
        to: ProcessId,
        request: &Request,
        operand: Option<&[u8; OPERAND_BYTES]>,
        pieces: &[O::Span],
    ) -> Result<(), Undeliverable> {
        let length = length(pieces);
        let is_empty = length == 0 || (request.verb == Verb::Get && !request.referenced);
        if is_empty {
            let nothing = Outgoing::Copied {
                operand,
                pieces: &[],
            };
            return self.transports.send(to, &request.to_words(), nothing);
        }
        let copy = self.staged.pool.take(self.owner, length);
        let copy = copy.map_err(|_| Undeliverable)?;
        let claims = [copy.claim().slice(0, length)];
        if request.verb != Verb::Get {
            match self.owner.copy_out(pieces, &claims) {
                Ok(copied) if copied == length => {}
                // The owner named memory that isn't there.
                _ => return Err(Undeliverable),
            }
        }
        let outgoing = match request.referenced {
            true => lent(request.verb == Verb::Get, self.staged.lease.lend(&claims)),
            false => Outgoing::Copied {
                operand,
                pieces: &claims,
            },
        };
        self.transports.send(to, &request.to_words(), outgoing)?;
        match request.referenced {
            true => self.staged.insert(request, to, copy, pieces),
            false => self.staged.pool.put_back(copy),
        }
        Ok(())
    }
}

/// Memory that stays in its place: a get fills it, everything else reads it.
fn lent(is_get: bool, memory: Lent<'_>) -> Outgoing<'_> {
    match is_get {
        true => Outgoing::LentToFill(memory),
        false => Outgoing::LentToRead(memory),
    }
}

/// Copies of memory that were lent in its place, until the answer comes.
pub(crate) struct StagedSends<S> {
    /// Under which they are lent. It stands as long as a peer may use one of them, longer
    /// than the interface.
    pub(crate) lease: Lease,
    lent: HashMap<(InterfaceNumber, u32), StagedSend<S>>,
    bytes: u64,
    /// For copies.
    pub(crate) pool: StagingPool,
}

/// A copy, and what it stands for.
pub(crate) struct StagedSend<S> {
    pub(crate) to: ProcessId,
    pub(crate) copy: Region,
    pub(crate) pieces: Vec<S>,
}

impl<S> Default for StagedSends<S> {
    fn default() -> Self {
        StagedSends {
            lease: Lease::new(),
            lent: HashMap::new(),
            bytes: 0,
            pool: StagingPool::default(),
        }
    }
}

impl<S: Span> StagedSends<S> {
    fn insert(&mut self, request: &Request, to: ProcessId, copy: Region, pieces: &[S]) {
        self.bytes += copy.len();
        let pieces = pieces.to_vec();
        self.lent.insert(
            (request.interface, request.token),
            StagedSend { to, copy, pieces },
        );
    }

    /// What was lent for the operation that is answered.
    pub(crate) fn take(&mut self, response: &Response) -> Option<StagedSend<S>> {
        let lent = self.lent.remove(&(response.interface, response.token))?;
        self.bytes -= lent.copy.len();
        Some(lent)
    }

    /// Nobody will answer.
    pub(crate) fn forget(&mut self, process: ProcessId) {
        let bytes = &mut self.bytes;
        self.lent.retain(|_, lent| {
            let keep = lent.to != process;
            *bytes -= if keep { 0 } else { lent.copy.len() };
            keep
        });
    }

    /// Bytes in all.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// An interface has closed: what comes into its copies goes no further. They stay
    /// until their peers answer or end.
    pub(crate) fn close(&mut self, interface: InterfaceNumber) {
        for (_, lent) in self.lent.iter_mut().filter(|(key, _)| key.0 == interface) {
            lent.pieces = Vec::new();
        }
    }

    /// Gives up what is lent, by peer.
    pub(crate) fn take_all(&mut self) -> HashMap<ProcessId, Vec<Region>> {
        self.bytes = 0;
        let mut all: HashMap<ProcessId, Vec<Region>> = HashMap::new();
        for (_, lent) in self.lent.drain() {
            all.entry(lent.to).or_default().push(lent.copy);
        }
        all
    }
}
