//! A peer that this process writes to.

use crate::bell::{knock, nudge, register_for_barriers};
use crate::layout::{CLOSED, FREE, LANES, OPEN, TAKEN};
use crate::segment::{OpenError, Segment};
use crate::{EAGER, Form};
use lintel_claim::{Claim, Region, RemoteSpan, copy_vectored, pull};
use lintel_ring::{MAX_PAYLOAD, Sender};
use lintel_types::ProcessId;
use lintel_wire::{OPERAND_BYTES, Words};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// Spans that fit into one record.
const MAX_SPANS: usize = MAX_PAYLOAD / 16;
/// Bytes of a stream in one record.
const CHUNK: u64 = EAGER;

pub(crate) struct Peer {
    process: ProcessId,
    // Before the segment that it points into, so that it goes first.
    sender: Sender,
    segment: Segment,
    lane: usize,
    waiting: VecDeque<Waiting>,
    cross_memory: bool,
    needs_fence: bool,
}

/// What found no room yet.
struct Waiting {
    words: Words,
    form: Form,
    body: Vec<Claim>,
    /// Keeps a copied body.
    _copy: Option<Region>,
    /// Bytes of the stream still to send, once it is announced.
    stream: Option<u64>,
}

impl Peer {
    /// Takes a lane in the segment of `process`.
    pub(crate) fn connect(own: &Segment, process: ProcessId) -> Result<Peer, OpenError> {
        let segment = Segment::open(own.job(), process)?;
        let lane = take_lane(&segment)?;
        if let Err(error) = segment.reserve_ring(lane) {
            segment.lane(lane).state.store(FREE, Ordering::Release);
            return Err(error);
        }
        let shared = segment.lane(lane);
        shared
            .os_process
            .store(std::process::id() as i32, Ordering::Relaxed);
        shared.nid.store(own.process().nid, Ordering::Relaxed);
        shared.pid.store(own.process().pid, Ordering::Relaxed);
        shared.state.store(OPEN, Ordering::Release);
        segment.header().changes.0.fetch_add(1, Ordering::Release);
        let needs_fence =
            segment.header().needs_fence.load(Ordering::Relaxed) != 0 || !register_for_barriers();
        Ok(Peer {
            process,
            // SAFETY: the lane is this process's alone, its ring and control are
            // aligned and fresh, and the segment stays mapped beside the sender.
            sender: unsafe { Sender::new(segment.ring(lane), &shared.control) },
            cross_memory: can_read(&segment),
            needs_fence,
            lane,
            waiting: VecDeque::new(),
            segment,
        })
    }

    pub(crate) fn process(&self) -> ProcessId {
        self.process
    }

    pub(crate) fn cross_memory(&self) -> bool {
        self.cross_memory
    }

    /// Whether something found no room yet.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends a copy of the body.
    #[inline(always)]
    pub(crate) fn copy(&mut self, words: &Words, pieces: &[Claim]) {
        let fits = match pieces {
            [one] => one.len() <= MAX_PAYLOAD as u64,
            many => length(many) <= MAX_PAYLOAD as u64,
        };
        if fits && self.waiting.is_empty() && self.sender.push(words, pieces).is_ok() {
            knock(&self.segment, self.needs_fence);
            return;
        }
        self.wait_with_copy(words, None, pieces);
    }

    /// As [`copy`](Self::copy), with an operand ahead of the body.
    pub(crate) fn copy_with_operand(
        &mut self,
        words: &Words,
        operand: &[u8; OPERAND_BYTES],
        pieces: &[Claim],
    ) {
        self.wait_with_copy(words, Some(operand), pieces);
        self.flush();
    }

    #[cold]
    fn wait_with_copy(
        &mut self,
        words: &Words,
        operand: Option<&[u8; OPERAND_BYTES]>,
        pieces: &[Claim],
    ) {
        let ahead = operand.map_or(0, |operand| operand.len() as u64);
        let bytes = length(pieces);
        let region = Region::new(ahead + bytes);
        if let Some(operand) = operand {
            region.write(0, operand);
        }
        copy_vectored(pieces, &[region.claim().slice(ahead, bytes)]);
        let body = vec![region.claim()];
        let form = if ahead + bytes > MAX_PAYLOAD as u64 {
            Form::Announced
        } else {
            Form::Enclosed
        };
        self.waiting.push_back(Waiting {
            words: *words,
            form,
            body,
            _copy: Some(region),
            stream: None,
        });
        self.flush();
    }

    /// Tells where a body lies, for the peer to read or fill it. Where the peer
    /// can't, what it would read streams to it, and what it would fill it will
    /// stream back.
    pub(crate) fn lend(&mut self, words: &Words, pieces: &[Claim], to_read: bool) {
        let (form, body, copy) = if self.cross_memory && pieces.len() <= MAX_SPANS {
            let table = table(pieces);
            (Form::Lent, vec![table.claim()], Some(table))
        } else if to_read {
            (Form::Announced, pieces.to_vec(), None)
        } else {
            (Form::Enclosed, Vec::new(), None)
        };
        self.waiting.push_back(Waiting {
            words: *words,
            form,
            body,
            _copy: copy,
            stream: None,
        });
        self.flush();
    }

    /// Sends what waits; true while something still does.
    pub(crate) fn flush(&mut self) -> bool {
        let mut sent = false;
        while let Some(first) = self.waiting.front_mut() {
            if !first.send(&mut self.sender) {
                break;
            }
            sent = true;
            if first.is_sent() {
                self.waiting.pop_front();
            }
        }
        if sent {
            knock(&self.segment, self.needs_fence);
        }
        self.waits()
    }

    pub(crate) fn lives(&self) -> bool {
        self.segment.owner_lives()
    }

    /// Wakes a peer that hasn't looked at what was sent to it.
    pub(crate) fn nudge(&mut self) {
        if !self.sender.is_drained() {
            nudge(&self.segment);
        }
    }

    /// Nothing more will be sent.
    pub(crate) fn close(&mut self) {
        self.segment
            .lane(self.lane)
            .state
            .store(CLOSED, Ordering::Release);
        self.segment
            .header()
            .changes
            .0
            .fetch_add(1, Ordering::Release);
    }
}

impl Waiting {
    /// Writes one record; false where there is no room.
    fn send(&mut self, sender: &mut Sender) -> bool {
        match self.stream {
            None if self.form == Form::Announced => self.announce(sender),
            None => {
                let sent = sender.push(&self.form.on(&self.words), &self.body).is_ok();
                if sent {
                    self.stream = Some(0);
                }
                sent
            }
            Some(rest) => {
                let part = rest.min(CHUNK);
                let pieces = first_bytes(&self.body, part);
                if sender.push(&Form::Chunk.on(&[0; 6]), &pieces).is_err() {
                    return false;
                }
                skip(&mut self.body, part);
                self.stream = Some(rest - part);
                true
            }
        }
    }

    fn announce(&mut self, sender: &mut Sender) -> bool {
        let total = length(&self.body);
        let region = Region::new(8);
        region.write(0, &total.to_ne_bytes());
        let sent = sender
            .push(&self.form.on(&self.words), &[region.claim()])
            .is_ok();
        if sent {
            self.stream = Some(total);
        }
        sent
    }

    fn is_sent(&self) -> bool {
        self.stream == Some(0)
    }
}

fn take_lane(segment: &Segment) -> Result<usize, OpenError> {
    (0..LANES)
        .find(|lane| {
            let state = &segment.lane(*lane).state;
            state.load(Ordering::Relaxed) == FREE
                && state
                    .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
        })
        .ok_or(OpenError::NoLane)
}

/// Whether this process may move bytes of the owner directly: it must find the
/// owner's number where the owner says it is. (In another process namespace the
/// number would name somebody else.)
fn can_read(segment: &Segment) -> bool {
    let header = segment.header();
    let seen = Region::new(8);
    let probe = RemoteSpan {
        address: header.probe.load(Ordering::Relaxed),
        length: 8,
    };
    pull(
        header.os_process.load(Ordering::Relaxed),
        &[probe],
        &[seen.claim()],
    ) == Ok(8)
        && seen.claim().load_u64(0) == Some(header.nonce.load(Ordering::Relaxed))
}

fn table(pieces: &[Claim]) -> Region {
    let table = Region::new(pieces.len() as u64 * 16);
    for (index, piece) in pieces.iter().enumerate() {
        table.claim().store_u64(index as u64 * 16, piece.address());
        table.claim().store_u64(index as u64 * 16 + 8, piece.len());
    }
    table
}

fn length(pieces: &[Claim]) -> u64 {
    pieces.iter().map(|piece| piece.len()).sum()
}

fn first_bytes(pieces: &[Claim], mut bytes: u64) -> Vec<Claim> {
    let mut first = Vec::new();
    for piece in pieces {
        if bytes == 0 {
            break;
        }
        let part = piece.slice(0, bytes);
        bytes -= part.len();
        first.push(part);
    }
    first
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
