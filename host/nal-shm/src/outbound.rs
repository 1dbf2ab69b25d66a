//! A peer that this process writes to.

use crate::choice::Choice;
use crate::costs::Costs;
use crate::direct::{Quick, View};
use crate::layout::{
    CLOSED, FREE, LANES, Lanes, OPEN, REACH_UNKNOWN, REACH_YES, TAKEN, ring_lines,
};
use crate::parts::Joining;
use crate::private_entries::{Away, Silent};
use crate::record::{FORM_SHIFT, Form};
use crate::tally::Tally;
use lintel_claim::{Claim, Key, Lease, Lent, Loan, gather};
use lintel_memory::{length, part};
use lintel_presence::{
    OpenError, Segment, caller_waits, helper_defers_acknowledgements, helper_sleeps, is_armed,
    is_registered_for_barriers, ring, ring_armed, this_processor, wake_helper,
};
use lintel_ring::{Full, INLINE, MAX_PAYLOAD, Sender};
use lintel_snapshot::{Count, Path, Traffic};
use lintel_types::{ALWAYS_COPIED, ProcessId};
use lintel_wire::{Kind, Message, OPERAND_BYTES, Words};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// Spans that fit into one record, behind the key.
const MAX_SPANS: usize = MAX_PAYLOAD / 16 - 1;
/// Bytes that a message costs beside its body while it waits.
const WAITING_COST: u64 = 128;
/// Bytes of a stream in one record.
pub(crate) const CHUNK: u64 = 4096;
const CHUNK_WORDS: Words = [(Form::Chunk as u64) << FORM_SHIFT, 0, 0, 0, 0, 0];
/// How long a peer whose helper isn't rung has to read what was sent.
const RING: Duration = Duration::from_micros(20);
/// The same if a caller of it will read that: one that polls, or whose call has woken the sender's
/// helper and goes on once that sleeps, on the same processor. A timer that is due before the
/// scheduler's next tick takes longer to set, in a virtual machine, than a caller to read an answer.
const RING_IF_AWAITED: Duration = Duration::from_millis(5);
/// Tries to write a record before it waits: some microseconds.
const PUSH_TRIES: u32 = 500;
/// Tries after which it asks whether the receiver can take anything meanwhile.
const CHECK_AFTER: u32 = 20;

pub(crate) struct Peer {
    process: ProcessId,
    // Before the segment that it points into, so that it goes first.
    pub(crate) sender: Sender,
    pub(crate) segment: Segment,
    pub(crate) lane: usize,
    waiting: VecDeque<Waiting>,
    /// Bytes of what waits.
    backlog: u64,
    /// The peer was shown that something waits.
    shows_waiting: bool,
    inode: u64,
    direct: bool,
    /// What the peer can do with memory of this process, as far as it was looked up.
    reach: Reach,
    /// From which length on bodies are lent.
    pub(crate) choice: Choice,
    /// This process fences between what it writes to the peer and what it reads there.
    pub(crate) needs_fence: bool,
    /// Its direct entries.
    pub(crate) view: View,
    /// Whether to ask if it is away.
    pub(crate) away: Away,
    /// Records sent last that the peer needn't read soon.
    pub(crate) silent: Silent,
    /// Whether they can be accessed at once. Ends with all that is sent.
    pub(crate) quick: Quick,
    /// Its helper isn't rung now.
    holds_rings: bool,
    /// Its helper would have been rung.
    is_ring_held: bool,
    /// The owner is known to have ended.
    pub(crate) closed: bool,
    tally: Tally,
    /// Bytes that were lent to be filled.
    lent_to_fill: u64,
    /// The record of lent memory that was sent last: by the ring's position ahead of it and behind
    /// it, in slots.
    pub(crate) lent: Silent,
    /// Bodies that the peer has granted this process to move.
    pub(crate) granted: u32,
    /// Whether it takes parts of bodies that this process grants.
    pub(crate) joining: Joining,
}

/// What a peer hasn't read yet of a sender that has left: what it was lent must stay.
pub struct Unread {
    // Before the segment that it points into, so that it goes first.
    sender: Sender,
    segment: Segment,
    lane: usize,
}

impl Unread {
    /// Whether the peer has read all, or has ended.
    pub fn is_finished(&mut self) -> bool {
        let state = &self.segment.lane(self.lane).state;
        // A lane that was freed has been read.
        state.load(Ordering::Acquire) != CLOSED
            || self.sender.is_drained()
            || !self.segment.is_owner_alive()
    }
}

/// What the peer may do with lent memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Fill,
}

/// A message without room in the ring, or before the peer has reported what it can reach.
struct Waiting {
    words: Words,
    form: Form,
    body: Body,
    /// Bytes of the body that were sent.
    sent: u64,
    /// Its first record was sent.
    begun: bool,
    /// Bytes of memory that it took when it was queued.
    cost: u64,
}

enum Body {
    Copied(Vec<u8>),
    /// Stays with its owner until a response arrives.
    Lent(Loan, Access),
}

/// Why no message can be sent to a process.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// Its segment can't be attached.
    Segment(OpenError),
    /// It has no lane left.
    NoLane,
}

impl From<OpenError> for ConnectError {
    fn from(error: OpenError) -> Self {
        ConnectError::Segment(error)
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Segment(error) => error.fmt(f),
            ConnectError::NoLane => write!(f, "{LANES} processes send to it already"),
        }
    }
}

/// Records that a peer may have answered, but not yet reported that it has read them.
const MOST_RECENT: u32 = 4;

impl Peer {
    /// Takes a lane in the segment of `process`; lends it bytes only if `direct`.
    pub(crate) fn connect(
        own: &Segment,
        process: ProcessId,
        direct: bool,
        costs: Costs,
    ) -> Result<Peer, ConnectError> {
        let segment = Segment::open(own.job(), process)?;
        let lane = take_lane(&segment)?;
        segment.clear_lane(lane);
        let shared = segment.lane(lane);
        shared
            .os_process
            .store(std::process::id() as i32, Ordering::Relaxed);
        shared.nid.store(own.process().nid, Ordering::Relaxed);
        shared.pid.store(own.process().pid, Ordering::Relaxed);
        shared.inode.store(own.inode(), Ordering::Relaxed);
        shared.reach.store(REACH_UNKNOWN, Ordering::Relaxed);
        shared.copying.store(0, Ordering::Relaxed);
        shared.waits.store(0, Ordering::Relaxed);
        shared.rung_on.store(0, Ordering::Relaxed);
        shared.received.store(0, Ordering::Relaxed);
        shared.moved.store(0, Ordering::Relaxed);
        shared.parts.clear();
        shared.accessing.reset();
        shared.state.store(OPEN, Ordering::Release);
        segment.note_change();
        let needs_fence = must_fence(&segment);
        Ok(Peer {
            process,
            // SAFETY: the lane is this process's alone, its ring and control are
            // aligned and fresh, and the segment stays mapped beside the sender.
            sender: unsafe {
                Sender::new(segment.ring_of(lane), &shared.control, ring_lines(lane))
            },
            inode: segment.inode(),
            direct,
            reach: Reach::Unknown,
            choice: Choice::new(costs),
            needs_fence,
            view: View::default(),
            away: Away::default(),
            silent: Silent::default(),
            quick: Quick::default(),
            holds_rings: false,
            is_ring_held: false,
            closed: false,
            lane,
            waiting: VecDeque::new(),
            backlog: 0,
            shows_waiting: false,
            segment,
            tally: Tally::default(),
            lent_to_fill: 0,
            lent: Silent::default(),
            granted: 0,
            joining: Joining::default(),
        })
    }

    pub(crate) fn process(&self) -> ProcessId {
        self.process
    }

    /// What was sent to the peer, and what it was lent to be filled.
    pub(crate) fn traffic(&self) -> Traffic {
        let received = Count {
            copied: self.lent_to_fill,
            ..Count::default()
        };
        Traffic {
            process: self.process,
            path: Path::Shm,
            sent: self.tally.at(self.sender.position()),
            received,
            backlog: self.backlog,
        }
    }

    /// Distinguishes the peer from earlier and later ones of its name.
    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    /// Whether the peer is known to be able to move bytes of this process directly.
    pub(crate) fn cross_memory(&self) -> bool {
        self.reach == Reach::Yes || self.read_reach() == Reach::Yes
    }

    /// Whether a body of that length, which may be copied, is lent.
    pub(crate) fn lends(&mut self, length: u64, arrivals: u32) -> bool {
        if self.reach() != Reach::Yes {
            return false;
        }
        if self.choice.looks_for_unread() {
            let recent = self.sender.position().0.wrapping_sub(MOST_RECENT);
            let has_unread = !self.sender.is_drained_up_to(recent);
            self.choice.note_unread(has_unread);
        }
        self.choice.lends(length, arrivals)
    }

    /// What the peer can do with memory of this process. Its answer stands: once known it
    /// is kept here, since the peer writes to that line of the lane in each copy.
    #[inline]
    fn reach(&mut self) -> Reach {
        if self.reach == Reach::Unknown {
            self.reach = self.read_reach();
        }
        self.reach
    }

    fn read_reach(&self) -> Reach {
        match self.segment.lane(self.lane).reach.load(Ordering::Relaxed) {
            _ if !self.direct => Reach::No,
            REACH_YES => Reach::Yes,
            REACH_UNKNOWN => Reach::Unknown,
            _ => Reach::No,
        }
    }

    /// Whether the peer is known to have ended: what was sent to it lately
    /// isn't read.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether something found no room yet.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends a copy of the body, if there is room for it now.
    #[inline(always)]
    pub(crate) fn try_copy(
        &mut self,
        words: &Words,
        operand: Option<&[u8; OPERAND_BYTES]>,
        pieces: &[Claim],
    ) -> bool {
        if !self.waiting.is_empty() {
            return false;
        }
        self.quick.end();
        let pushed = match (operand, pieces) {
            (None, []) => self.sender.push_short(words, &[]),
            (None, [one]) if one.len() <= INLINE as u64 => self.sender.push_short(words, &[*one]),
            // Copies, as in `ShmNal::send`.
            (None, [one]) if one.len() <= ALWAYS_COPIED => self.push_apart(&{ *words }, &[*one]),
            (None, [one]) if one.len() <= MAX_PAYLOAD as u64 => {
                self.push_timed(&{ *words }, &[*one])
            }
            _ => return self.push_parts(&{ *words }, operand, pieces),
        };
        pushed.is_ok() && (!self.is_asleep() || self.ring_for(words[0]))
    }

    /// Rings if the peer sleeps; false if it has ended.
    #[inline(always)]
    fn ring_bell(&mut self) -> bool {
        !self.is_asleep() || self.ring_sleeper()
    }

    /// Takes the next part of the body that the peer has granted last.
    pub(crate) fn take_part(&self, length: u64) -> Option<(u64, u64)> {
        let grant = self.granted.wrapping_add(1);
        let lane = self.segment.lane(self.lane);
        lane.parts.take(grant, length)
    }

    /// Whether the peer has to be rung for what was written to its ring.
    #[inline(always)]
    pub(crate) fn is_asleep(&self) -> bool {
        is_armed(&self.segment, self.needs_fence)
    }

    /// Rings if a caller of the peer sleeps, who may wait for a count.
    #[inline]
    pub(crate) fn ring_waiting_caller(&mut self) {
        if self.is_asleep() && !helper_sleeps(&self.segment) {
            self.ring_sleeper();
        }
    }

    /// Rings the peer, which sleeps, for a record that begins with this word, unless it is an
    /// acknowledgement that may wait for the peer's next call; false if the peer has ended.
    #[cold]
    pub(crate) fn ring_for(&mut self, first: u64) -> bool {
        let is_acknowledgement = matches!(
            Message::kind(first),
            Kind::Acknowledgement | Kind::Acknowledgements
        );
        let may_wait = is_acknowledgement && helper_defers_acknowledgements(&self.segment);
        may_wait && self.leave_unread() || self.ring_sleeper()
    }

    #[cold]
    pub(crate) fn ring_sleeper(&mut self) -> bool {
        self.look_whether_to_fence();
        self.note_asleep();
        if self.holds_rings && helper_sleeps(&self.segment) {
            self.is_ring_held = true;
            return true;
        }
        self.is_ring_held = false;
        let rung_on = &self.segment.lane(self.lane).rung_on;
        rung_on.store(number_of_processor(), Ordering::Relaxed);
        let alive = ring_armed(&self.segment);
        if !alive {
            self.on_ended();
        }
        alive
    }

    /// This process may have been registered for barriers since it connected.
    pub(crate) fn look_whether_to_fence(&mut self) {
        self.needs_fence = self.needs_fence && must_fence(&self.segment);
    }

    /// The owner has ended.
    pub(crate) fn on_ended(&mut self) {
        self.closed = true;
        self.quick.end();
    }

    /// From now on, whether the peer's helper isn't rung, but [later](Self::ring_held).
    pub(crate) fn hold_rings(&mut self, hold: bool) {
        self.holds_rings = hold;
    }

    /// How long it may be left unrung for something that it hasn't read, if it was. `yields_to`
    /// says whether a caller of it goes on once this thread sleeps.
    pub(crate) fn ring_due(&mut self, yields_to: impl Fn(ProcessId) -> bool) -> Option<Duration> {
        let is_unread = self.is_ring_held && !self.has_read_all();
        let will_read = |peer: &Peer| caller_waits(&peer.segment) || yields_to(peer.process);
        is_unread.then(|| match will_read(self) {
            true => RING_IF_AWAITED,
            false => RING,
        })
    }

    /// Rings if it wasn't, and hasn't read what was sent meanwhile.
    pub(crate) fn ring_held(&mut self) {
        if std::mem::take(&mut self.is_ring_held) && !self.has_read_all() {
            ring(&self.segment, true);
        }
    }

    /// Writes a record with a body that its slot doesn't hold.
    #[inline(never)]
    pub(crate) fn push_apart(&mut self, words: &Words, pieces: &[Claim; 1]) -> Result<(), Full> {
        self.sender.push(words, pieces)
    }

    /// Writes a record with a long body, and notes now and then what that costs.
    #[inline(never)]
    fn push_timed(&mut self, words: &Words, pieces: &[Claim]) -> Result<(), Full> {
        let bytes = length(pieces);
        let begun = self.choice.begin_push(bytes);
        self.sender.push(words, pieces)?;
        if let Some(begun) = begun {
            // Until the last line has been written, not only queued for that.
            fence(Ordering::SeqCst);
            let received = self
                .segment
                .lane(self.lane)
                .received
                .load(Ordering::Relaxed);
            self.choice.pushed(bytes, begun.elapsed(), received);
        }
        Ok(())
    }

    #[inline(never)]
    fn push_parts(
        &mut self,
        words: &Words,
        operand: Option<&[u8; OPERAND_BYTES]>,
        pieces: &[Claim],
    ) -> bool {
        let ahead = operand.map(|operand| bytes(operand));
        if ahead.map_or(0, Claim::len) + length(pieces) > MAX_PAYLOAD as u64 {
            return false;
        }
        let parts: Vec<Claim> = ahead.into_iter().chain(pieces.iter().copied()).collect();
        self.sender.push(words, &parts).is_ok() && self.ring_bell()
    }

    /// Sends a copy of the body, now or when there is room. `is_wanted` reports whether
    /// a peer waits for this process to read: then it doesn't wait itself.
    pub(crate) fn copy(
        &mut self,
        words: &Words,
        operand: Option<&[u8; OPERAND_BYTES]>,
        pieces: &[Claim],
        is_wanted: impl FnMut() -> bool,
    ) {
        if self.try_copy(words, operand, pieces) {
            return;
        }
        if operand.is_none() && length(pieces) > MAX_PAYLOAD as u64 {
            return self.stream(words, pieces, is_wanted);
        }
        let mut copy = operand.map_or_else(Vec::new, |operand| operand.to_vec());
        let ahead = copy.len();
        copy.resize(ahead + length(pieces) as usize, 0);
        gather(pieces, &mut copy[ahead..]);
        let form = match copy.len() {
            0..=MAX_PAYLOAD => Form::Inline,
            _ => Form::Announced,
        };
        self.wait_for_room(words, form, Body::Copied(copy));
    }

    /// Streams a copy of the body: the receiver reads one part while this side
    /// writes the next. What a slow receiver leaves no room for waits as a copy.
    fn stream(&mut self, words: &Words, pieces: &[Claim], mut is_wanted: impl FnMut() -> bool) {
        self.quick.end();
        let total = length(pieces);
        let announced = Form::Announced.on(words);
        let is_first = self.waiting.is_empty();
        let mut push =
            |words: &Words, pieces: &[Claim]| self.push_with_retry(words, pieces, &mut is_wanted);
        let mut sent = 0;
        let mut begun = is_first && push(&announced, &[numbers(&[total])]);
        let whole = begun;
        while begun && sent < total {
            begun = match pieces {
                [one] => push(&CHUNK_WORDS, &[one.slice(sent, CHUNK)]),
                many => push(&CHUNK_WORDS, &part(many, sent, CHUNK)),
            };
            sent += if begun { CHUNK.min(total - sent) } else { 0 };
        }
        self.tally.chunks += sent.div_ceil(CHUNK);
        if sent < total || !whole {
            let mut rest = vec![0; (total - sent) as usize];
            gather(&part(pieces, sent, total), &mut rest);
            self.wait_with(Waiting {
                begun: whole,
                ..Waiting::new(words, Form::Announced, Body::Copied(rest))
            });
        }
    }

    /// Writes a record. If the ring is full it retries for some microseconds, unless the
    /// receiver may wait in the same way for this process to read.
    fn push_with_retry(
        &mut self,
        words: &Words,
        pieces: &[Claim],
        mut is_wanted: impl FnMut() -> bool,
    ) -> bool {
        for tries in 0..PUSH_TRIES {
            if self.push_timed(words, pieces).is_ok() {
                ring(&self.segment, self.needs_fence);
                return true;
            }
            if tries == CHECK_AFTER && is_wanted() {
                return false;
            }
            std::hint::spin_loop();
        }
        false
    }

    fn wait_for_room(&mut self, words: &Words, form: Form, body: Body) {
        self.wait_with(Waiting::new(words, form, body));
    }

    fn wait_with(&mut self, waiting: Waiting) {
        self.quick.end();
        self.backlog += waiting.cost;
        self.waiting.push_back(waiting);
        self.flush();
    }

    /// A probe is no message.
    pub(crate) fn note_probe(&mut self) {
        self.tally.chunks += 1;
    }

    /// Bytes of memory that what waits here takes.
    pub(crate) fn backlog(&self) -> u64 {
        self.backlog
    }

    /// Sends where a body is, for the peer to read or fill it. If the peer can't, what it
    /// would read streams to it, and what it would fill it streams back. Which of the two
    /// is known once the peer has looked at the lane: until then the message waits.
    pub(crate) fn lend(&mut self, words: &Words, lent: Lent<'_>, access: Access) {
        match access {
            Access::Read => self.tally.copied += length(lent.pieces()),
            Access::Fill => self.lent_to_fill += length(lent.pieces()),
        }
        if self.waiting.is_empty() && self.reach() == Reach::Yes && self.try_lend(words, lent) {
            return;
        }
        self.wait_for_room(words, Form::Lent, Body::Lent(lent.keep(), access));
        if self.waits() {
            // A sleeping peer looks at the lane only if it is woken.
            self.ring_bell();
        }
    }

    /// Sends where a short list of pieces is, if there is room.
    fn try_lend(&mut self, words: &Words, lent: Lent<'_>) -> bool {
        let mut small = [0u64; 18];
        let (Some(key), Some(table)) = (
            lent.lease().key(),
            small.get_mut(..2 + lent.pieces().len() * 2),
        ) else {
            return false;
        };
        fill_table(table, key, lent.pieces());
        let begin = self.sender.position().0;
        let is_sent = self.try_copy(&Form::Lent.on(words), None, &[numbers(table)]);
        let end = self.sender.position().0;
        self.lent = Silent { begin, end };
        is_sent
    }

    /// Sends what waits; true while something still does.
    pub(crate) fn flush(&mut self) -> bool {
        let mut sent = false;
        if self.waiting.front().is_some_and(Waiting::is_undecided) {
            self.reach();
        }
        while let Some(first) = self.waiting.front_mut() {
            if first.is_undecided() {
                first.decide(self.reach);
            }
            let is_chunk = first.begun && first.form == Form::Announced;
            if !first.send(&mut self.sender) {
                break;
            }
            self.tally.chunks += u64::from(is_chunk);
            sent = true;
            if first.is_sent() {
                self.backlog -= first.cost;
                self.waiting.pop_front();
            }
        }
        if sent {
            self.ring_bell();
        }
        let waits = self.waits();
        if waits != self.shows_waiting {
            self.shows_waiting = waits;
            let shared = &self.segment.lane(self.lane).waits;
            shared.store(waits.into(), Ordering::Relaxed);
        }
        waits
    }

    /// Sends nothing more of what was lent under that lease: a message that hasn't begun
    /// goes unsent, a stream is aborted.
    pub(crate) fn recall(&mut self, lease: &Lease) {
        self.waiting.retain_mut(|waiting| {
            let keep = waiting.recall(lease);
            self.backlog -= if keep { 0 } else { waiting.cost };
            keep
        });
        self.flush();
    }

    /// Whether the peer may be in a copy to or from memory of this process.
    pub(crate) fn is_copying(&self) -> bool {
        // After a key's page was removed: see Inbound::copy.
        fence(Ordering::SeqCst);
        self.segment.lane(self.lane).copying.load(Ordering::Acquire) != 0 && self.is_alive()
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.closed && self.segment.is_owner_alive()
    }

    /// Removes what the peer, which has ended, left in shared memory.
    pub(crate) fn clear_away(&self) {
        self.segment.clear_away();
    }

    /// Wakes a peer that hasn't looked at what was sent to it.
    pub(crate) fn wake(&mut self) {
        if self.has_read_all() {
            return;
        }
        // A peer that copies a long body reads on when that is done.
        let copying = &self.segment.lane(self.lane).copying;
        if copying.load(Ordering::Relaxed) == 0 {
            wake_helper(&self.segment);
        }
    }

    /// Has the peer send what waits there for room in its lane to this process.
    pub(crate) fn offer_room(&self) {
        wake_helper(&self.segment);
    }

    /// Ends the connection, but for what the peer hasn't read; nothing if it has read all.
    pub(crate) fn into_unread(mut self) -> Option<Unread> {
        self.close();
        let mut unread = Unread {
            sender: self.sender,
            segment: self.segment,
            lane: self.lane,
        };
        (!unread.is_finished()).then_some(unread)
    }

    /// Nothing more will be sent.
    pub(crate) fn close(&mut self) {
        self.segment
            .lane(self.lane)
            .state
            .store(CLOSED, Ordering::Release);
        self.segment.note_change();
    }
}

impl Waiting {
    fn new(words: &Words, form: Form, body: Body) -> Waiting {
        let copied = match &body {
            Body::Copied(copy) => copy.len() as u64,
            Body::Lent(..) => 0,
        };
        Waiting {
            words: *words,
            form,
            body,
            sent: 0,
            begun: false,
            cost: WAITING_COST + copied,
        }
    }

    /// Whether it isn't settled yet how lent memory goes.
    fn is_undecided(&self) -> bool {
        self.form == Form::Lent && matches!(self.body, Body::Lent(..))
    }

    /// Settles how lent memory goes, once that is known.
    fn decide(&mut self, reach: Reach) {
        let Body::Lent(loan, access) = &self.body else {
            return;
        };
        if reach == Reach::Unknown {
            return;
        }
        let key = loan.key().filter(|_| loan.pieces().len() <= MAX_SPANS);
        match (key, reach) {
            (Some(key), Reach::Yes) => self.body = Body::Copied(table(key, loan.pieces())),
            _ if *access == Access::Read && !loan.is_empty() => self.form = Form::Announced,
            _ => {
                self.form = Form::Inline;
                self.body = Body::Copied(Vec::new());
            }
        }
    }

    /// Writes one record; false if there is no room, or it isn't known how it goes.
    fn send(&mut self, sender: &mut Sender) -> bool {
        let words = self.form.on(&self.words);
        let total = self.body.length();
        let pushed = match (self.form, self.begun, &self.body) {
            (Form::Lent, _, Body::Lent(..)) => return false,
            (Form::Announced, false, _) => sender.push(&words, &[numbers(&[total])]),
            (Form::Announced, true, _) => {
                let pieces = self.body.part(self.sent, CHUNK);
                let pushed = sender.push(&CHUNK_WORDS, &pieces);
                self.sent += if pushed.is_ok() {
                    CHUNK.min(total - self.sent)
                } else {
                    0
                };
                pushed
            }
            _ => {
                self.sent = total;
                sender.push(&words, &self.body.part(0, total))
            }
        };
        self.begun |= pushed.is_ok();
        pushed.is_ok()
    }

    fn is_sent(&self) -> bool {
        self.begun && self.sent == self.body.length()
    }

    /// Gives up memory of that lease; false if nothing is left to be sent.
    fn recall(&mut self, lease: &Lease) -> bool {
        match &self.body {
            Body::Lent(loan, _) if loan.is_of(lease) => {}
            _ => return true,
        }
        self.form = Form::Aborted;
        self.body = Body::Copied(Vec::new());
        self.sent = 0;
        std::mem::take(&mut self.begun)
    }
}

/// What a peer can do with memory of this process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// It hasn't looked at the lane yet.
    Unknown,
    Yes,
    No,
}

impl Body {
    fn length(&self) -> u64 {
        match self {
            Body::Copied(copy) => copy.len() as u64,
            Body::Lent(loan, _) => loan.len(),
        }
    }

    /// Where at most `most` bytes from `offset` are.
    fn part(&self, offset: u64, most: u64) -> Vec<Claim> {
        match self {
            Body::Copied(copy) => vec![bytes(copy).slice(offset, most)],
            Body::Lent(loan, _) => loan.part(offset, most),
        }
    }
}

/// The processor that this thread runs on, plus one; 0 if that isn't known.
pub(crate) fn number_of_processor() -> u32 {
    this_processor().map_or(0, |processor| processor + 1)
}

/// Whether this process orders what it writes to a peer and what it reads there by itself, since no
/// barrier of the peer does.
fn must_fence(segment: &Segment) -> bool {
    segment.needs_fence() || !is_registered_for_barriers()
}

fn take_lane(segment: &Segment) -> Result<usize, ConnectError> {
    (0..LANES)
        .find(|lane| {
            let state = &segment.lane(*lane).state;
            state.load(Ordering::Relaxed) == FREE
                && state
                    .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
        })
        .ok_or(ConnectError::NoLane)
}

/// Bytes of ours as the source of a copy.
fn bytes(bytes: &[u8]) -> Claim {
    // SAFETY: callers use the claim while the borrow lasts, and as a source only.
    unsafe { Claim::new(bytes.as_ptr().cast_mut(), bytes.len() as u64) }
}

/// Numbers of ours as the source of a copy.
fn numbers(numbers: &[u64]) -> Claim {
    // SAFETY: callers use the claim while the borrow lasts, and as a source only.
    unsafe {
        Claim::new(
            numbers.as_ptr().cast_mut().cast(),
            size_of_val(numbers) as u64,
        )
    }
}

/// The payload of a record of lent memory.
fn table(key: Key, pieces: &[Claim]) -> Vec<u8> {
    let mut words = vec![0; 2 + pieces.len() * 2];
    fill_table(&mut words, key, pieces);
    words.into_iter().flat_map(u64::to_ne_bytes).collect()
}

fn fill_table(table: &mut [u64], key: Key, pieces: &[Claim]) {
    let spans = pieces.iter().map(|piece| [piece.address(), piece.len()]);
    let entries = std::iter::once([key.address, key.nonce]).chain(spans);
    for (entry, words) in table.chunks_exact_mut(2).zip(entries) {
        entry.copy_from_slice(&words);
    }
}
