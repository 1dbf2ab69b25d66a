//! A lane that this process reads.

use crate::layout::{CLOSED, FREE, OPEN};
use crate::segment::Segment;
use crate::{FORM_MASK, Form, message, spans};
use lintel_claim::{Claim, copy_vectored};
use lintel_nal::{Arrival, Origin, Payload};
use lintel_ring::{Corrupt, RING_BYTES, Receiver, Record};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct Inbound {
    segment: Arc<Segment>,
    lane: usize,
    receiver: Receiver,
    origin: Origin,
    os_process: i32,
    stream: Option<Stream>,
    /// Bytes of a stream that `next` has announced, and where they go.
    announced: Option<u64>,
    place: Option<Vec<Claim>>,
    dead: bool,
    /// Its loss was told already.
    told: bool,
    corrupt: bool,
}

/// Bytes that come in parts.
struct Stream {
    rest: Vec<Claim>,
    /// Bytes still to come.
    missing: u64,
}

impl Inbound {
    /// The lane with that number, if a sender has opened it.
    pub(crate) fn accept(segment: &Arc<Segment>, lane: usize) -> Option<Inbound> {
        let shared = segment.lane(lane);
        if !matches!(shared.state.load(Ordering::Acquire), OPEN | CLOSED) {
            return None;
        }
        let process = ProcessId::new(
            shared.nid.load(Ordering::Relaxed),
            shared.pid.load(Ordering::Relaxed),
        );
        // SAFETY: the lane's ring and control are aligned and mapped as long as the
        // segment, which this value keeps.
        let receiver = unsafe { Receiver::new(segment.ring(lane), &shared.control) };
        Some(Inbound {
            segment: segment.clone(),
            lane,
            receiver,
            // Only processes of one user can open each other's segments.
            origin: Origin {
                process,
                uid: own_uid(),
                lane: lane as u32,
            },
            os_process: shared.os_process.load(Ordering::Relaxed),
            stream: None,
            announced: None,
            place: None,
            dead: false,
            told: false,
            corrupt: false,
        })
    }

    pub(crate) fn lane(&self) -> usize {
        self.lane
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    pub(crate) fn os_process(&self) -> i32 {
        self.os_process
    }

    /// The next arrival; a message stays the next until [`done`](Self::done).
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<Arrival>, Corrupt> {
        loop {
            let Some(record) = self.receiver.peek()? else {
                self.receiver.tell();
                return Ok(None);
            };
            match Form::of(&record.words).ok_or(Corrupt)? {
                Form::Enclosed => {
                    let payload = Payload::Enclosed(record.payload);
                    return Ok(Some(message(self.origin, record.words, payload)));
                }
                Form::Chunk => {
                    if self.fill(&record)? {
                        return Ok(Some(Arrival::Streamed(self.origin)));
                    }
                }
                form => return self.unusual(form, &record).map(Some),
            }
        }
    }

    /// The next message, where its bytes are enclosed.
    #[inline(always)]
    pub(crate) fn next_enclosed(&mut self) -> Option<(Origin, Words, Claim)> {
        let record = self.receiver.peek_plain()?;
        match record.words[0] & FORM_MASK {
            0 => Some((self.origin, record.words, record.payload)),
            _ => None,
        }
    }

    #[cold]
    fn unusual(&mut self, form: Form, record: &Record) -> Result<Arrival, Corrupt> {
        let payload = match form {
            Form::Lent => Payload::Lent(spans(record.payload)),
            _ => {
                let length = record.payload.load_u64(0).ok_or(Corrupt)?;
                self.announced = Some(length);
                Payload::Streamed(length)
            }
        };
        Ok(message(self.origin, record.words, payload))
    }

    /// Puts a part of a stream in place; true once the stream is whole.
    fn fill(&mut self, record: &Record) -> Result<bool, Corrupt> {
        let stream = self.stream.as_mut().ok_or(Corrupt)?;
        let moved = copy_vectored(&[record.payload], &stream.rest);
        skip(&mut stream.rest, moved);
        stream.missing = stream
            .missing
            .checked_sub(record.payload.len())
            .ok_or(Corrupt)?;
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
            let rest = self.place.take().unwrap_or_default();
            self.stream = Some(Stream { rest, missing });
        }
        self.receiver.advance();
    }

    pub(crate) fn receive_into(&mut self, pieces: Vec<Claim>) {
        self.place = Some(pieces);
    }

    /// The sender has died, and that was told.
    pub(crate) fn sender_died(&mut self) {
        self.dead = true;
        self.told = true;
    }

    /// Whether someone waits for the rest of a stream, and doesn't know yet that it
    /// won't come.
    pub(crate) fn leaves_a_stream(&self) -> bool {
        self.stream.is_some() && !self.told
    }

    /// Looks whether the sender still lives.
    pub(crate) fn check_sender(&mut self) {
        // SAFETY: signal 0 only asks whether the process exists.
        let gone = unsafe { libc::kill(self.os_process, 0) } != 0
            && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
        self.dead |= gone;
    }

    /// Whether nothing will come any more, and everything has been read.
    pub(crate) fn is_over(&mut self) -> bool {
        let closed = self.segment.lane(self.lane).state.load(Ordering::Acquire) == CLOSED;
        (self.dead || closed) && (self.corrupt || matches!(self.receiver.peek(), Ok(None) | Err(_)))
    }

    /// Makes the lane new for the next sender.
    pub(crate) fn free(&mut self) {
        let shared = self.segment.lane(self.lane);
        // SAFETY: the lane's ring, which no sender writes to any more.
        unsafe { self.segment.ring(self.lane).write_bytes(0, RING_BYTES) };
        shared.control.reset();
        shared.state.store(FREE, Ordering::Release);
    }

    /// Its sender has written nonsense; true the first time.
    pub(crate) fn give_up(&mut self) -> bool {
        !std::mem::replace(&mut self.corrupt, true)
    }
}

fn skip(pieces: &mut Vec<Claim>, mut bytes: u64) {
    while let Some(first) = pieces.first_mut() {
        if bytes < first.len() {
            *first = first.slice(bytes, u64::MAX);
            return;
        }
        bytes -= first.len();
        pieces.remove(0);
    }
}

fn own_uid() -> u32 {
    // SAFETY: geteuid has no preconditions.
    unsafe { libc::geteuid() }
}
