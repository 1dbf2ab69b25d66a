//! A lane that this process reads.

use crate::costs::{Costs, Received};
use crate::layout::{CLOSED, FREE, Lane, Lanes, OPEN, REACH_NO, REACH_YES, TAKEN, ring_lines};
use crate::record::{FORM_MASK, Form, message, remote_loan};
use crate::tally::Tally;
use lintel_claim::{Claim, CrossMemoryError, Key, Lease, Loan, RemoteMemory};
use lintel_nal::{Announced, Arrival, Origin, Overrun, Parts, Payload, Reassembly, RemoteLoan};
use lintel_presence::{Segment, Watch};
use lintel_ring::{Corrupt, Receiver, Record};
use lintel_snapshot::{Count, Path, Traffic};
use lintel_types::ProcessId;
use lintel_wire::{Response, Words};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Instant;

/// Bodies that are moved by one call.
const MOST_TOGETHER: u32 = 8;

pub(crate) struct Inbound {
    segment: Arc<Segment>,
    lane: usize,
    receiver: Receiver,
    origin: Origin,
    inode: u64,
    /// The sender's segment; nothing once the sender has ended.
    sender: Option<Watch>,
    os_process: i32,
    reach: bool,
    stream: Option<Reassembly>,
    /// The stream that `next` has reported, until `done`.
    announced: Option<Announced>,
    /// What long bodies cost here.
    received: Received,
    /// Bytes of bodies that are moved by one call, before one more joins them.
    together: u64,
    tally: Tally,
    /// Bytes of lent memory that this process has filled.
    filled: u64,
    /// The memory that was named last is lent by an answer: the process that asked counts its bytes.
    is_of_answer: bool,
    /// Bodies that the sender was granted to move, and whether it hasn't moved the last one yet.
    granted: u32,
    is_granted: bool,
}

impl Inbound {
    /// The lane with that number, if a sender has opened it. It reports to the sender that
    /// its bytes can be reached only if `direct`.
    pub(crate) fn accept(
        segment: &Arc<Segment>,
        lane: usize,
        direct: bool,
        costs: Costs,
    ) -> Option<Inbound> {
        let shared = segment.lane(lane);
        if !matches!(shared.state.load(Ordering::Acquire), OPEN | CLOSED) {
            return None;
        }
        let (process, inode) = named_sender(shared);
        let sender = watch(segment, shared);
        let reach = direct && sender.as_ref().is_some_and(Watch::can_reach);
        let answer = if reach { REACH_YES } else { REACH_NO };
        shared.reach.store(answer, Ordering::Relaxed);
        // SAFETY: the lane's ring and control are aligned and mapped as long as the
        // segment, which this value keeps.
        let receiver =
            unsafe { Receiver::new(segment.ring_of(lane), &shared.control, ring_lines(lane)) };
        Some(Inbound {
            segment: segment.clone(),
            lane,
            receiver,
            // The kernel lets no other user attach this segment (presence checks its mode),
            // and root attaches none but its own.
            origin: Origin {
                process,
                uid: own_uid(),
                lane: lane as u32,
            },
            inode,
            os_process: sender.as_ref().and_then(Watch::owner).unwrap_or(0),
            sender,
            reach,
            stream: None,
            announced: None,
            received: Received::new(costs),
            together: costs.together(),
            tally: Tally::default(),
            filled: 0,
            is_of_answer: false,
            granted: 0,
            is_granted: false,
        })
    }

    #[inline(always)]
    pub(crate) fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    #[inline(always)]
    pub(crate) fn receiver_mut(&mut self) -> &mut Receiver {
        &mut self.receiver
    }

    pub(crate) fn lane(&self) -> usize {
        self.lane
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// Distinguishes the sender from earlier and later ones of its name.
    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    /// Copies to or from memory that the sender has lent. While the lane says so, the
    /// sender doesn't take back what it has lent.
    pub(crate) fn copy<R>(
        &self,
        key: Key,
        copy: impl FnOnce(RemoteMemory) -> Result<R, CrossMemoryError>,
    ) -> Result<R, CrossMemoryError> {
        let copying = &self.segment.lane(self.lane).copying;
        copying.store(1, Ordering::Relaxed);
        // Before the kernel looks for the key's page: either it finds none, or the sender,
        // which removes the page and then looks here, sees the 1 (Peer::is_copying).
        fence(Ordering::SeqCst);
        let copied = copy(RemoteMemory {
            process: self.os_process,
            key,
        });
        copying.store(0, Ordering::Release);
        copied
    }

    /// So many bytes of the body that was given last have been copied.
    pub(crate) fn note_fetched(&mut self, bytes: u64) {
        if self.is_of_answer {
            return;
        }
        self.tally.copied += bytes;
        self.received.note_fetched(bytes);
    }

    /// So many bytes were filled that the sender has lent.
    pub(crate) fn note_filled(&mut self, bytes: u64) {
        self.filled += if self.is_of_answer { 0 } else { bytes };
    }

    /// What has come from the sender, and what was copied to it.
    pub(crate) fn traffic(&self) -> Traffic {
        let sent = Count {
            copied: self.filled,
            ..Count::default()
        };
        Traffic {
            process: self.origin.process,
            path: Path::Shm,
            sent,
            received: self.tally.at(self.receiver.position()),
            backlog: 0,
        }
    }

    /// Whether the sender lived when it was last looked at.
    pub(crate) fn is_sender_alive(&self) -> bool {
        self.sender.is_some()
    }

    /// Whether the sender lives and its memory can't be reached all the same.
    /// (One that has ended since can't be reached either; that proves nothing.)
    pub(crate) fn is_beyond_reach(&self) -> bool {
        !self.reach && self.sender.as_ref().is_some_and(Watch::is_alive)
    }

    /// Whether the lane still is the one that was accepted. Only this process may free
    /// it; a sender that changes it otherwise loses it.
    pub(crate) fn is_same(&self) -> bool {
        let shared = self.segment.lane(self.lane);
        matches!(shared.state.load(Ordering::Acquire), OPEN | CLOSED)
            && named_sender(shared) == (self.origin.process, self.inode)
    }

    /// The next arrival; a message stays the next until [`done`](Self::done).
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<Arrival>, Corrupt> {
        if self.is_granted {
            return self.next_moved();
        }
        loop {
            let Some(record) = self.receiver.peek()? else {
                self.receiver.publish_head();
                return Ok(None);
            };
            match Form::of(&record.words).ok_or(Corrupt)? {
                Form::Inline => {
                    self.received.begin_copy(record.payload.len());
                    self.receiver.fetch_payload();
                    let payload = Payload::Inline(record.payload);
                    return Ok(Some(message(self.origin, record.words, payload)));
                }
                Form::Chunk => {
                    if self.fill(&record)? {
                        return Ok(Some(Arrival::Streamed(self.origin)));
                    }
                }
                Form::Probe => {
                    self.tally.chunks += 1;
                    self.receiver.advance();
                }
                // Nobody can have copied to a process that has never had a direct entry.
                Form::Placed if self.segment.direct().version() != 0 => {
                    return Ok(Some(message(self.origin, record.words, Payload::Placed)));
                }
                Form::Placed => return Err(Corrupt),
                Form::Aborted => {
                    self.stream.take().ok_or(Corrupt)?;
                    self.receiver.advance();
                    return Ok(Some(Arrival::Broken(self.origin)));
                }
                form => return self.on_lent_or_announced(form, &record).map(Some),
            }
        }
    }

    /// The body of the record that `next` gave, of that length, is granted in parts; returns the first
    /// one if this process moves some.
    pub(crate) fn begin_parts(&mut self, parts: Parts, length: u64) -> Option<(u64, u64)> {
        self.granted = self.granted.wrapping_add(1);
        let lane = self.segment.lane(self.lane);
        lane.parts.begin(self.granted, parts, length)
    }

    /// Takes the next part of the body that was granted last.
    pub(crate) fn take_part(&self, length: u64) -> Option<(u64, u64)> {
        let lane = self.segment.lane(self.lane);
        lane.parts.take(self.granted, length)
    }

    /// Ends the last grant, unless the sender has taken one of its parts.
    pub(crate) fn revoke_grant(&mut self, own: u32) -> bool {
        let lane = self.segment.lane(self.lane);
        let is_revoked = lane.parts.revoke(self.granted, own);
        if is_revoked {
            self.is_granted = false;
            self.received.forget();
        }
        is_revoked
    }

    /// The sender moves the body of the record that `next` gave: nothing arrives until then.
    pub(crate) fn leave_to_sender(&mut self) {
        self.is_granted = true;
        self.received.forget();
    }

    /// Whether the sender has moved the body that it was granted, or won't any more. It has written
    /// nonsense if it names a grant that is still to come.
    #[cold]
    fn next_moved(&mut self) -> Result<Option<Arrival>, Corrupt> {
        self.receiver.publish_head();
        let is_closed = self.is_closed();
        let moved = self.segment.lane(self.lane).moved.load(Ordering::Acquire);
        // It may be behind: grants that were revoked are dealt with when it reads them.
        let behind = (self.granted << 1).wrapping_sub(moved & !1);
        if behind > u32::MAX / 2 {
            return Err(Corrupt);
        }
        if behind > 0 && !is_closed {
            return Ok(None);
        }
        self.is_granted = false;
        let is_moved = behind == 0 && moved & 1 != 0;
        Ok(Some(Arrival::Moved(self.origin, is_moved)))
    }

    /// Whether the sender has rung from that processor since this was last asked.
    pub(crate) fn take_ring_from(&self, processor: u32) -> bool {
        let rung_on = &self.segment.lane(self.lane).rung_on;
        processor != 0 && rung_on.swap(0, Ordering::Relaxed) == processor
    }

    /// Reports to the sender how far this process has read.
    #[inline(always)]
    pub(crate) fn publish_head(&mut self) {
        self.receiver.publish_head();
    }

    /// Whether its sender streams to this process, and may wait for room.
    pub(crate) fn has_stream_queued(&mut self) -> bool {
        let next = self.receiver.peek().ok().flatten();
        let form = next.and_then(|record| Form::of(&record.words));
        matches!(form, Some(Form::Announced | Form::Chunk))
    }

    /// Whether messages wait at the sender for room that there is by now.
    pub(crate) fn has_room_for_waiting(&mut self) -> bool {
        let waits = &self.segment.lane(self.lane).waits;
        waits.load(Ordering::Relaxed) != 0 && matches!(self.receiver.peek(), Ok(None))
    }

    /// The next message, if its bytes are inline.
    #[inline(always)]
    pub(crate) fn next_inline(&mut self) -> Option<(Origin, Words, Claim)> {
        let record = self.receiver.peek_plain()?;
        match record.words[0] & FORM_MASK {
            0 => {
                self.received.begin_copy(record.payload.len());
                self.receiver.fetch_payload();
                Some((self.origin, record.words, record.payload))
            }
            _ => None,
        }
    }

    #[cold]
    fn on_lent_or_announced(&mut self, form: Form, record: &Record) -> Result<Arrival, Corrupt> {
        let payload = match form {
            Form::Lent => {
                self.is_of_answer = Response::is_response(record.words[0] & !FORM_MASK);
                if !self.is_of_answer {
                    self.received.begin_fetch();
                }
                self.receiver.fetch_payload();
                Payload::Lent(remote_loan(record.payload).ok_or(Corrupt)?)
            }
            // One stream ends before another begins, and none is empty.
            _ if self.stream.is_some() => return Err(Corrupt),
            _ => {
                let length = record.payload.load_u64(0).filter(|length| *length > 0);
                let length = length.ok_or(Corrupt)?;
                // Reported once more if `done` doesn't come between; its place stays.
                let announced = self.announced.get_or_insert_with(|| Announced::new(length));
                Payload::Streamed(announced.length())
            }
        };
        Ok(message(self.origin, record.words, payload))
    }

    /// The message so many places behind the one that `next` gave, if its body is lent and better
    /// moved along with those before it, which have so many bytes.
    pub(crate) fn lent_behind(&self, places: u32, bytes: u64) -> Option<(Words, RemoteLoan)> {
        if places >= MOST_TOGETHER || bytes >= self.together {
            return None;
        }
        let record = self.receiver.peek_behind(places)?;
        if Form::of(&record.words)? != Form::Lent {
            return None;
        }
        let mut words = record.words;
        words[0] &= !FORM_MASK;
        Some((words, remote_loan(record.payload)?))
    }

    /// Puts a part of a stream in place; true once the stream is whole.
    fn fill(&mut self, record: &Record) -> Result<bool, Corrupt> {
        let stream = self.stream.as_mut().ok_or(Corrupt)?;
        let begun = Instant::now();
        self.tally.chunks += 1;
        self.receiver.fetch_payload();
        let whole = stream.fill(record.payload).map_err(|_: Overrun| Corrupt)?;
        if whole {
            self.stream = None;
        }
        self.receiver.advance();
        let published = self
            .received
            .streamed(record.payload.len(), begun.elapsed());
        if let Some(published) = published {
            let shared = &self.segment.lane(self.lane).received;
            shared.store(published, Ordering::Relaxed);
        }
        Ok(whole)
    }

    /// The record that `next` gave has been dealt with.
    #[inline(always)]
    pub(crate) fn done(&mut self) {
        if self.announced.is_some() {
            self.begin_stream();
        }
        self.receiver.advance();
        if self.received.is_timed() {
            self.publish_received();
        }
    }

    /// The record that `next` gave and those that `lent_behind` did, so many in all, have been
    /// dealt with.
    pub(crate) fn done_lent(&mut self, messages: u32) {
        self.receiver.advance_by(messages);
        self.received.note_together(messages);
        if self.received.is_timed() {
            self.publish_received();
        }
    }

    /// Reports to the sender what long bodies cost here.
    #[cold]
    fn publish_received(&mut self) {
        let follows = matches!(self.receiver.peek(), Ok(Some(_)));
        if let Some(published) = self.received.end(follows) {
            let shared = &self.segment.lane(self.lane).received;
            shared.store(published, Ordering::Relaxed);
        }
    }

    #[cold]
    fn begin_stream(&mut self) {
        self.stream = self.announced.take().map(Reassembly::from);
    }

    /// Names where the stream goes that `next` has reported.
    pub(crate) fn receive_into(&mut self, place: Loan) {
        if let Some(announced) = &mut self.announced {
            announced.receive_into(place);
        }
    }

    /// The missing rest of a stream into memory of that lease is dropped.
    pub(crate) fn recall(&mut self, lease: &Lease) {
        if let Some(announced) = &mut self.announced {
            announced.recall(lease);
        }
        if let Some(stream) = &mut self.stream {
            stream.recall(lease);
        }
    }

    /// Checks whether the sender is still alive.
    pub(crate) fn check_sender(&mut self) {
        if self
            .sender
            .as_ref()
            .is_some_and(|sender| !sender.is_alive())
        {
            self.sender = None;
        }
    }

    /// Whether nothing will be sent any more.
    pub(crate) fn is_closed(&self) -> bool {
        let closed = self.segment.lane(self.lane).state.load(Ordering::Acquire) == CLOSED;
        closed || self.sender.is_none()
    }

    /// Whether the lane is closed and everything in it has been read.
    pub(crate) fn is_finished(&mut self) -> bool {
        self.is_closed() && matches!(self.receiver.peek(), Ok(None))
    }

    /// Leaves the lane to the next sender, once its own has ended.
    pub(crate) fn free(&mut self) {
        if !self.is_left_to_another() {
            let state = &self.segment.lane(self.lane).state;
            state.store(FREE, Ordering::Release);
        }
    }

    /// Whether its sender, though only this process may, has freed the lane itself, so that
    /// another one may have it by now.
    fn is_left_to_another(&self) -> bool {
        let shared = self.segment.lane(self.lane);
        match shared.state.load(Ordering::Acquire) {
            FREE | TAKEN => true,
            OPEN | CLOSED => !self.is_same() && watch(&self.segment, shared).is_some(),
            _ => false,
        }
    }

    /// Whether a stream was under way, which ends here.
    pub(crate) fn break_stream(&mut self) -> bool {
        self.stream.take().is_some()
    }
}

/// The process that a lane names as its sender, and the inode of its segment.
fn named_sender(lane: &Lane) -> (ProcessId, u64) {
    let process = ProcessId::new(
        lane.nid.load(Ordering::Relaxed),
        lane.pid.load(Ordering::Relaxed),
    );
    (process, lane.inode.load(Ordering::Relaxed))
}

/// The sender that a lane of this process names, if it lives.
fn watch(segment: &Segment, lane: &Lane) -> Option<Watch> {
    let (process, inode) = named_sender(lane);
    // A lane in this process's own name has no sender. (To open and close the own segment
    // would release its lock.)
    (process != segment.process())
        .then(|| Watch::open(segment.job(), process, inode))
        .flatten()
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}
