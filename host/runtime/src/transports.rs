//! The transports of a process: the NAL to others, and the loopback.

use crate::acknowledgements::GatheredAcknowledgements;
use crate::direct_entries::{DirectEntries, DirectEntry};
use crate::transport::Transport;
use lintel_claim::{Claim, Lent};
use lintel_engine4::{Backlog, Undeliverable};
use lintel_nal::{Loopback, MoveError, Nal, Origin, Outgoing, RemoteLoan, Wake};
use lintel_nal_shm::{Lookout, ShmNal};
use lintel_types::{Handle, InterfaceNumber, ProcessId};
use lintel_wire::{Response, Words};

/// Bytes queued for a process from which on bodies stay in their place.
const HIGH_BACKLOG: u64 = 1 << 20;
/// Bytes queued for a process from which on callers wait, too.
const FULL_BACKLOG: u64 = 8 << 20;

/// The transports of one process, and how far its sends are behind.
pub struct Transports {
    /// This process, which the loopback reaches.
    pub(crate) me: ProcessId,
    pub(crate) nal: Transport,
    pub(crate) loopback: Loopback,
    /// Entries of this process that peers access by themselves.
    pub(crate) direct: DirectEntries,
    /// Something was posted or counted since the flag was last cleared.
    pub(crate) activity: bool,
    /// The helper polls: who awaits an answer and polls isn't rung for it at once.
    pub(crate) holds_answers: bool,
    /// The process that the library serves has ended: peers can't reach it any more.
    pub(crate) has_lost_owner: bool,
    /// Something was sent since the flag was last cleared.
    pub(crate) sent: bool,
    /// The process that something was sent to last.
    to: ProcessId,
    /// Acknowledgements that wait for others.
    gathered: GatheredAcknowledgements,
    /// A process may be far behind with what was sent to it.
    pub(crate) congested: bool,
    /// The last poll has left something queued: what the NAL says takes longer to ask for.
    pub(crate) queued: bool,
    /// The process whose backlog was full when an operation was refused.
    blocked: Option<ProcessId>,
    /// The process whose backlog a caller waits for.
    awaited: Option<ProcessId>,
    /// Numbers of loans so far.
    lent: u64,
    /// Bodies that were moved for peers so far, modulo 2^32.
    moved: u32,
    /// Bytes of lent bodies that callers have moved since the helper last looked.
    pub(crate) moved_by_callers: u64,
}

/// Bodies that are moved for peers, of which for one it is looked whether they could have moved it
/// themselves.
const MOVED_PER_OFFER: u32 = 16;

impl Transports {
    /// The transports of a process of that user.
    pub(crate) fn new(me: ProcessId, uid: u32, nal: Transport) -> Transports {
        Transports {
            me,
            nal,
            loopback: Loopback::new(me, uid),
            direct: DirectEntries::default(),
            activity: false,
            holds_answers: false,
            has_lost_owner: false,
            sent: false,
            to: me,
            gathered: GatheredAcknowledgements::new(me, InterfaceNumber::default()),
            congested: false,
            queued: false,
            blocked: None,
            awaited: None,
            lent: 0,
            moved: 0,
            moved_by_callers: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Undeliverable> {
        let sent = if to == self.me {
            // A copy, so that the common path has none in memory.
            self.loopback.send(to, &{ *words }, body)
        } else {
            self.to = to;
            self.sent = true;
            self.nal.send(to, words, body)
        };
        sent.map_err(|_| Undeliverable)
    }

    /// The process that something was sent to last, if that is queued. A process that is behind
    /// delays only its own senders.
    #[inline(always)]
    pub(crate) fn behind(&mut self) -> Option<ProcessId> {
        (self.flush() && self.nal.has_queued(self.to)).then_some(self.to)
    }

    /// How much is queued for a process.
    #[cold]
    pub(crate) fn backlog(&mut self, process: ProcessId) -> Backlog {
        let bytes = self.nal.backlog(process);
        let (low, full) = (bytes < HIGH_BACKLOG, bytes >= FULL_BACKLOG);
        self.blocked = full.then_some(process);
        match (low, full) {
            (true, _) => Backlog::Low,
            (_, false) => Backlog::High,
            (_, true) => Backlog::Full,
        }
    }

    /// The process whose backlog was full when an operation was last refused, unless it was
    /// asked for since.
    pub(crate) fn take_blocked(&mut self) -> Option<ProcessId> {
        self.blocked.take()
    }

    /// Whether a process has taken so much that operations to it aren't refused. If it hasn't,
    /// callers hear of it when it has.
    pub(crate) fn has_room(&mut self, process: ProcessId) -> bool {
        let is_full = self.nal.backlog(process) >= FULL_BACKLOG;
        self.awaited = if is_full { Some(process) } else { self.awaited };
        !is_full
    }

    /// Withdraws direct entries: no access of a peer to them begins any more, and those under
    /// way are over once [`is_quiet`](Self::is_quiet). Whether there may be any.
    pub(crate) fn withdraw(&mut self, which: impl Fn(&DirectEntry) -> bool) -> bool {
        let near = self.nal.near_mut();
        near.is_some_and(|near| self.direct.withdraw(near, which))
    }

    /// What peers have counted at a direct entry since the last call, if they have.
    pub(crate) fn take_direct_count(&mut self) -> Option<(Handle, u64)> {
        self.direct.take_count(self.nal.near()?)
    }

    /// Has threads look for what peers count by themselves.
    #[inline(never)]
    pub(crate) fn watch_counts(&self, lookout: &Lookout) {
        if let Some(near) = self.nal.near() {
            near.watch_counts(lookout, self.direct.taken_counts());
        }
    }

    /// Whether no peer accesses memory of an entry that was withdrawn.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.nal.near_mut().is_none_or(ShmNal::is_quiet)
    }

    /// A body is moved for a peer: whether to look if peers could do so.
    pub(crate) fn is_offer_due(&mut self) -> bool {
        self.moved = self.moved.wrapping_add(1);
        self.moved % MOVED_PER_OFFER == 0
    }

    /// Sends what is queued; whether something still is.
    #[inline(always)]
    pub(crate) fn flush(&mut self) -> bool {
        let queued = self.nal.flush();
        if self.awaited.is_some() {
            self.look_for_room();
        }
        queued
    }

    #[cold]
    fn look_for_room(&mut self) {
        let awaited = self.awaited.take();
        if awaited.is_some_and(|process| self.has_room(process)) {
            self.activity = true;
        }
    }

    /// Sends a response without bytes. If it can't be delivered, its receiver has ended.
    #[inline(never)]
    pub(crate) fn respond(&mut self, to: ProcessId, response: &Response) {
        // In the order of landing.
        self.send_acknowledgements();
        let nothing = Outgoing::Copied {
            operand: None,
            pieces: &[],
        };
        self.answer(to, response, nothing);
    }

    /// Acknowledges a put by its token alone, with others: once those are
    /// [sent](Self::send_acknowledgements).
    #[inline(always)]
    pub(crate) fn gather(&mut self, to: ProcessId, interface: InterfaceNumber, token: u32) {
        if !self.gathered.takes(to, interface) {
            self.gather_anew(to, interface);
        }
        self.gathered.add(token);
    }

    #[cold]
    #[inline(never)]
    fn gather_anew(&mut self, to: ProcessId, interface: InterfaceNumber) {
        self.send_acknowledgements();
        self.gathered = GatheredAcknowledgements::new(to, interface);
    }

    /// Sends the acknowledgements that were gathered.
    #[inline(always)]
    pub(crate) fn send_acknowledgements(&mut self) {
        if !self.gathered.is_empty() {
            self.send_gathered();
        }
    }

    #[inline(never)]
    fn send_gathered(&mut self) {
        let (to, words) = self.gathered.take();
        let nothing = Outgoing::Copied {
            operand: None,
            pieces: &[],
        };
        match self.holds_answers {
            true => self.answer_later(to, &words, nothing),
            // If they can't be delivered, nothing awaits them.
            false => {
                let _ = self.send(to, &words, nothing);
            }
        }
    }

    /// Sends a response. If it can't be delivered, its receiver has ended; then nothing awaits
    /// it.
    #[inline(always)]
    pub(crate) fn answer(&mut self, to: ProcessId, response: &Response, body: Outgoing<'_>) {
        match self.holds_answers {
            true => self.answer_later(to, &response.to_words(), body),
            // The words are written where they go.
            false => {
                let _ = self.send(to, &response.to_words(), body);
            }
        }
    }

    /// As [`answer`](Self::answer); a process that polls for it isn't rung.
    #[cold]
    fn answer_later(&mut self, to: ProcessId, words: &Words, body: Outgoing<'_>) {
        self.nal.hold_rings(to, true);
        let _ = self.send(to, words, body);
        self.nal.hold_rings(to, false);
    }

    /// Sends a response with bytes that stay in place until they are
    /// [returned](lintel_nal::Arrival::Returned): under this number. `None`, and nothing was
    /// sent, if they are better copied.
    #[inline(never)]
    pub(crate) fn answer_lent(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Lent<'_>,
    ) -> Option<u64> {
        if to == self.me {
            return None;
        }
        let number = self.lent;
        let is_sent = self.nal.send_lent(to, words, body, number);
        is_sent.ok().filter(|is_sent| *is_sent)?;
        self.lent += 1;
        self.to = to;
        self.sent = true;
        Some(number)
    }

    /// As [`Nal::lent_behind`].
    pub(crate) fn lent_behind(
        &mut self,
        origin: Origin,
        places: u32,
        bytes: u64,
    ) -> Option<(Words, RemoteLoan)> {
        match origin.process == self.me {
            true => None,
            false => self.nal.lent_behind(origin, places, bytes),
        }
    }

    /// Fetches what the sender of a message has lent to be read.
    pub(crate) fn fetch(
        &mut self,
        origin: Origin,
        loan: &RemoteLoan,
        to: &[Claim],
    ) -> Result<u64, MoveError> {
        let fetched = if origin.process == self.me {
            self.loopback.fetch(origin, loan, to)
        } else {
            self.nal.fetch(origin, loan, to)
        };
        self.count_moved(&fetched);
        fetched
    }

    /// Fills what the sender of a message has lent to be filled.
    pub(crate) fn fill(
        &mut self,
        origin: Origin,
        from: &[Claim],
        loan: &RemoteLoan,
    ) -> Result<u64, MoveError> {
        let filled = if origin.process == self.me {
            self.loopback.fill(origin, from, loan)
        } else {
            self.nal.fill(origin, from, loan)
        };
        self.count_moved(&filled);
        filled
    }

    fn count_moved(&mut self, moved: &Result<u64, MoveError>) {
        if let (false, Ok(bytes)) = (self.holds_answers, moved) {
            self.moved_by_callers += bytes;
        }
    }

    /// As [`done`](Self::done), for the message that arrived and those that were moved with it.
    pub(crate) fn done_lent(&mut self, origin: Origin, messages: u32) {
        match messages {
            // It was left to its sender.
            0 => self.nal.leave_to(origin),
            1 => self.done(origin),
            // Never of the loopback.
            _ => self.nal.done_lent(origin, messages),
        }
    }

    /// The message that arrived has been handled.
    #[inline(always)]
    pub(crate) fn done(&mut self, origin: Origin) {
        if origin.process == self.me {
            self.loopback.done(origin);
        } else {
            self.nal.done(origin);
        }
    }
}
