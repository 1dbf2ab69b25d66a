//! A lane that this process reads.

use crate::layout::{CLOSED, FREE, Lanes, OPEN, REACH_NO, REACH_YES};
use crate::record::{FORM_MASK, Form, message, remote_loan};
use lintel_claim::{Claim, CrossMemoryError, Key, Lease, Loan, RemoteMemory, copy_vectored};
use lintel_nal::{Arrival, Origin, Payload};
use lintel_presence::{Segment, Watch};
use lintel_ring::{Corrupt, Receiver, Record};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

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
    stream: Option<Stream>,
    /// Length of the stream that `next` has announced, bytes.
    announced: Option<u64>,
    place: Option<Loan>,
}

/// Bytes that come in parts.
struct Stream {
    rest: Option<Loan>,
    /// Bytes still to come.
    missing: u64,
}

impl Stream {
    /// Takes note of `bytes` that have arrived, `placed` of them in their place.
    fn advance(&mut self, bytes: u64, placed: u64) -> Result<(), Corrupt> {
        if let Some(rest) = &mut self.rest {
            rest.skip(placed);
        }
        self.missing = self.missing.checked_sub(bytes).ok_or(Corrupt)?;
        Ok(())
    }
}

impl Inbound {
    /// The lane with that number, if a sender has opened it. It reports to the sender that
    /// its bytes can be reached only if `direct`.
    pub(crate) fn accept(segment: &Arc<Segment>, lane: usize, direct: bool) -> Option<Inbound> {
        let shared = segment.lane(lane);
        if !matches!(shared.state.load(Ordering::Acquire), OPEN | CLOSED) {
            return None;
        }
        let process = ProcessId::new(
            shared.nid.load(Ordering::Relaxed),
            shared.pid.load(Ordering::Relaxed),
        );
        let inode = shared.inode.load(Ordering::Relaxed);
        // A lane in this process's own name has no sender. (To open and close the
        // own segment would release its lock.)
        let sender = (process != segment.process())
            .then(|| Watch::open(segment.job(), process, inode))
            .flatten();
        let reach = direct && sender.as_ref().is_some_and(Watch::can_reach);
        let answer = if reach { REACH_YES } else { REACH_NO };
        shared.reach.store(answer, Ordering::Relaxed);
        // SAFETY: the lane's ring and control are aligned and mapped as long as the
        // segment, which this value keeps.
        let receiver = unsafe { Receiver::new(segment.ring_of(lane), &shared.control) };
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
            place: None,
        })
    }

    pub(crate) fn lane(&self) -> usize {
        self.lane
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// Tells the sender from others of its name.
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
            && shared.nid.load(Ordering::Relaxed) == self.origin.process.nid
            && shared.pid.load(Ordering::Relaxed) == self.origin.process.pid
            && shared.inode.load(Ordering::Relaxed) == self.inode
    }

    /// The next arrival; a message stays the next until [`done`](Self::done).
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<Arrival>, Corrupt> {
        loop {
            let Some(record) = self.receiver.peek()? else {
                self.receiver.publish_head();
                return Ok(None);
            };
            match Form::of(&record.words).ok_or(Corrupt)? {
                Form::Inline => {
                    let payload = Payload::Inline(record.payload);
                    return Ok(Some(message(self.origin, record.words, payload)));
                }
                Form::Chunk => {
                    if self.fill(&record)? {
                        return Ok(Some(Arrival::Streamed(self.origin)));
                    }
                }
                Form::Aborted => {
                    self.stream.take().ok_or(Corrupt)?;
                    self.receiver.advance();
                    return Ok(Some(Arrival::Broken(self.origin)));
                }
                form => return self.on_lent_or_announced(form, &record).map(Some),
            }
        }
    }

    /// Whether its sender streams to this process, and may wait for room.
    pub(crate) fn has_stream_queued(&mut self) -> bool {
        let next = self.receiver.peek().ok().flatten();
        let form = next.and_then(|record| Form::of(&record.words));
        matches!(form, Some(Form::Announced | Form::Chunk))
    }

    /// The next message, if its bytes are inline.
    #[inline(always)]
    pub(crate) fn next_inline(&mut self) -> Option<(Origin, Words, Claim)> {
        let record = self.receiver.peek_plain()?;
        match record.words[0] & FORM_MASK {
            0 => Some((self.origin, record.words, record.payload)),
            _ => None,
        }
    }

    #[cold]
    fn on_lent_or_announced(&mut self, form: Form, record: &Record) -> Result<Arrival, Corrupt> {
        let payload = match form {
            Form::Lent => Payload::Lent(remote_loan(record.payload).ok_or(Corrupt)?),
            // One stream ends before another begins, and none is empty.
            _ if self.stream.is_some() => return Err(Corrupt),
            _ => {
                let length = record.payload.load_u64(0).filter(|length| *length > 0);
                self.announced = length;
                Payload::Streamed(length.ok_or(Corrupt)?)
            }
        };
        Ok(message(self.origin, record.words, payload))
    }

    /// Puts a part of a stream in place; true once the stream is whole.
    fn fill(&mut self, record: &Record) -> Result<bool, Corrupt> {
        let stream = self.stream.as_mut().ok_or(Corrupt)?;
        let place = stream.rest.as_ref().map_or(&[][..], Loan::pieces);
        let placed = copy_vectored(&[record.payload], place);
        stream.advance(record.payload.len(), placed)?;
        let whole = stream.missing == 0;
        if whole {
            self.stream = None;
        }
        self.receiver.advance();
        Ok(whole)
    }

    /// The record that `next` gave has been dealt with.
    #[inline(always)]
    pub(crate) fn done(&mut self) {
        if let Some(missing) = self.announced.take() {
            let rest = self.place.take();
            self.stream = Some(Stream { rest, missing });
        }
        self.receiver.advance();
    }

    pub(crate) fn receive_into(&mut self, place: Loan) {
        self.place = Some(place);
    }

    /// What still comes of a stream into memory of that lease is dropped.
    pub(crate) fn recall(&mut self, lease: &Lease) {
        let is_of = |loan: &mut Loan| loan.is_of(lease);
        self.place.take_if(is_of);
        if let Some(stream) = &mut self.stream {
            stream.rest.take_if(is_of);
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

    /// Leaves the lane to the next sender.
    pub(crate) fn free(&mut self) {
        let state = &self.segment.lane(self.lane).state;
        state.store(FREE, Ordering::Release);
    }

    /// Whether a stream was under way, which ends here.
    pub(crate) fn break_stream(&mut self) -> bool {
        self.stream.take().is_some()
    }
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}
