//! A peer that this process writes to.

use crate::bell::{knock, nudge, register_for_barriers};
use crate::layout::{CLOSED, FREE, LANES, OPEN, REACH_UNKNOWN, REACH_YES, TAKEN};
use crate::segment::{OpenError, Segment};
use crate::{FORM_SHIFT, Form};
use lintel_claim::{Claim, copy_vectored};
use lintel_ring::{MAX_PAYLOAD, Sender};
use lintel_types::ProcessId;
use lintel_wire::{OPERAND_BYTES, Words};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// Spans that fit into one record.
const MAX_SPANS: usize = MAX_PAYLOAD / 16;
/// Bytes of a stream in one record.
const CHUNK: u64 = 4096;
const CHUNK_WORDS: Words = [(Form::Chunk as u64) << FORM_SHIFT, 0, 0, 0, 0, 0];
/// Tries to write a record before it waits: some microseconds.
const MOMENT: u32 = 500;
/// Tries after which it asks whether the receiver can take anything meanwhile.
const GLANCE: u32 = 20;

pub(crate) struct Peer {
    process: ProcessId,
    // Before the segment that it points into, so that it goes first.
    sender: Sender,
    segment: Segment,
    lane: usize,
    waiting: VecDeque<Waiting>,
    /// Something was lent since the last nudge.
    lent_last: bool,
    inode: u64,
    direct: bool,
    needs_fence: bool,
    /// The owner is known to have ended.
    gone: bool,
}

/// What found no room yet.
struct Waiting {
    words: Words,
    form: Form,
    body: Body,
    /// Bytes of the body that were sent.
    sent: u64,
    /// Its first record was sent.
    begun: bool,
}

enum Body {
    Copied(Vec<u8>),
    /// Stays with its owner until a response comes.
    Lent(Vec<Claim>),
}

impl Peer {
    /// Takes a lane in the segment of `process`; lends it bytes only where `direct`.
    pub(crate) fn connect(
        own: &Segment,
        process: ProcessId,
        direct: bool,
    ) -> Result<Peer, OpenError> {
        let segment = Segment::open(own.job(), process)?;
        let lane = take_lane(&segment)?;
        if let Err(error) = segment.reserve_ring(lane) {
            segment.lane(lane).state.store(FREE, Ordering::Release);
            return Err(error);
        }
        segment.clear_lane(lane);
        let shared = segment.lane(lane);
        shared
            .os_process
            .store(std::process::id() as i32, Ordering::Relaxed);
        shared.nid.store(own.process().nid, Ordering::Relaxed);
        shared.pid.store(own.process().pid, Ordering::Relaxed);
        shared.inode.store(own.inode(), Ordering::Relaxed);
        shared.reach.store(REACH_UNKNOWN, Ordering::Relaxed);
        shared.state.store(OPEN, Ordering::Release);
        segment.header().changes.0.fetch_add(1, Ordering::Release);
        let needs_fence =
            segment.header().needs_fence.load(Ordering::Relaxed) != 0 || !register_for_barriers();
        Ok(Peer {
            process,
            // SAFETY: the lane is this process's alone, its ring and control are
            // aligned and fresh, and the segment stays mapped beside the sender.
            sender: unsafe { Sender::new(segment.ring(lane), &shared.control) },
            inode: segment.inode(),
            direct,
            needs_fence,
            gone: false,
            lane,
            waiting: VecDeque::new(),
            lent_last: false,
            segment,
        })
    }

    pub(crate) fn process(&self) -> ProcessId {
        self.process
    }

    /// Tells the peer from others of its name.
    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    /// Whether the peer can move bytes of this process directly. It says so when
    /// it first looks at the lane; what is sent before streams.
    pub(crate) fn cross_memory(&self) -> bool {
        let reach = &self.segment.lane(self.lane).reach;
        self.direct && reach.load(Ordering::Relaxed) == REACH_YES
    }

    /// Whether the peer is known to have ended: nothing that was sent to it lately
    /// is read by anyone.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Whether something found no room yet.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends a copy of the body, if there is room for it now.
    #[inline(always)]
    pub(crate) fn copy_now(
        &mut self,
        words: &Words,
        operand: Option<&[u8; OPERAND_BYTES]>,
        pieces: &[Claim],
    ) -> bool {
        if !self.waiting.is_empty() {
            return false;
        }
        let pushed = match (operand, pieces) {
            (None, [one]) if one.len() <= MAX_PAYLOAD as u64 => self.sender.push(words, &[*one]),
            (None, []) => self.sender.push(words, &[]),
            _ => return self.push_parts(words, operand, pieces),
        };
        pushed.is_ok() && self.knock()
    }

    /// Rings where the peer sleeps; false where it has ended.
    #[inline(always)]
    fn knock(&mut self) -> bool {
        let heard = knock(&self.segment, self.needs_fence);
        if !heard {
            self.gone = true;
        }
        heard
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
        self.sender.push(words, &parts).is_ok() && self.knock()
    }

    /// Sends a copy of the body, now or when there is room. `is_wanted` tells whether
    /// somebody waits for this process to read: then it doesn't wait itself.
    pub(crate) fn copy(
        &mut self,
        words: &Words,
        operand: Option<&[u8; OPERAND_BYTES]>,
        pieces: &[Claim],
        is_wanted: impl FnMut() -> bool,
    ) {
        if self.copy_now(words, operand, pieces) {
            return;
        }
        if operand.is_none() && length(pieces) > MAX_PAYLOAD as u64 {
            return self.stream(words, pieces, is_wanted);
        }
        let mut copy = operand.map_or_else(Vec::new, |operand| operand.to_vec());
        let ahead = copy.len();
        copy.resize(ahead + length(pieces) as usize, 0);
        copy_vectored(pieces, &[bytes(&copy[ahead..])]);
        let form = match copy.len() {
            0..=MAX_PAYLOAD => Form::Enclosed,
            _ => Form::Announced,
        };
        self.wait_for_room(words, form, Body::Copied(copy));
    }

    /// Streams a copy of the body: the receiver reads one part while this side
    /// writes the next. What a slow receiver leaves no room for waits as a copy.
    fn stream(&mut self, words: &Words, pieces: &[Claim], mut is_wanted: impl FnMut() -> bool) {
        let total = length(pieces);
        let announced = Form::Announced.on(words);
        let is_first = self.waiting.is_empty();
        let mut push =
            |words: &Words, pieces: &[Claim]| self.push_patiently(words, pieces, &mut is_wanted);
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
        if sent < total || !whole {
            let rest = vec![0; (total - sent) as usize];
            copy_vectored(&part(pieces, sent, total), &[bytes(&rest[..])]);
            self.waiting.push_back(Waiting {
                words: *words,
                form: Form::Announced,
                body: Body::Copied(rest),
                sent: 0,
                begun: whole,
            });
            self.flush();
        }
    }

    /// Writes a record, and where the ring is full gives the receiver a moment, but for
    /// one that may wait in the same way for this process to read.
    fn push_patiently(
        &mut self,
        words: &Words,
        pieces: &[Claim],
        mut is_wanted: impl FnMut() -> bool,
    ) -> bool {
        for tries in 0..MOMENT {
            if self.sender.push(words, pieces).is_ok() {
                knock(&self.segment, self.needs_fence);
                return true;
            }
            if tries == GLANCE && is_wanted() {
                return false;
            }
            std::hint::spin_loop();
        }
        false
    }

    fn wait_for_room(&mut self, words: &Words, form: Form, body: Body) {
        self.waiting.push_back(Waiting {
            words: *words,
            form,
            body,
            sent: 0,
            begun: false,
        });
        self.flush();
    }

    /// Tells where a body lies, for the peer to read or fill it. Where the peer
    /// can't, what it would read streams to it, and what it would fill it will
    /// stream back.
    pub(crate) fn lend(&mut self, words: &Words, pieces: &[Claim], to_read: bool) {
        self.lent_last = true;
        if self.cross_memory() && pieces.len() <= MAX_SPANS {
            let mut small = [0u64; 16];
            let table = match small.get_mut(..pieces.len() * 2) {
                Some(table) => table,
                None => return self.wait_for_room(words, Form::Lent, Body::Copied(table(pieces))),
            };
            for (entry, piece) in table.chunks_exact_mut(2).zip(pieces) {
                entry.copy_from_slice(&[piece.address(), piece.len()]);
            }
            let words = Form::Lent.on(words);
            if !self.copy_now(&words, None, &[numbers(table)]) {
                self.wait_for_room(&words, Form::Lent, Body::Copied(self::table(pieces)));
            }
        } else if to_read && length(pieces) > 0 {
            self.wait_for_room(words, Form::Announced, Body::Lent(pieces.to_vec()));
        } else {
            self.wait_for_room(words, Form::Enclosed, Body::Copied(Vec::new()));
        }
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
            self.knock();
        }
        self.waits()
    }

    pub(crate) fn lives(&self) -> bool {
        !self.gone && self.segment.owner_lives()
    }

    /// Removes what the peer, which has ended, left in shared memory.
    pub(crate) fn clear_away(&self) {
        self.segment.clear_away();
    }

    /// Wakes a peer that hasn't looked at what was sent to it.
    pub(crate) fn nudge(&mut self) {
        // One who has been lent a body may be fetching it: he has the next turn.
        let fetches = std::mem::take(&mut self.lent_last);
        if !fetches && !self.sender.is_drained() {
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
        let words = self.form.on(&self.words);
        let total = self.body.length();
        let pushed = match (self.form, self.begun) {
            (Form::Announced, false) => sender.push(&words, &[numbers(&[total])]),
            (Form::Announced, true) => {
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
}

impl Body {
    fn length(&self) -> u64 {
        match self {
            Body::Copied(copy) => copy.len() as u64,
            Body::Lent(pieces) => length(pieces),
        }
    }

    /// Where at most `most` bytes from `offset` lie.
    fn part(&self, offset: u64, most: u64) -> Vec<Claim> {
        match self {
            Body::Copied(copy) => vec![bytes(copy).slice(offset, most)],
            Body::Lent(pieces) => part(pieces, offset, most),
        }
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

/// Bytes of ours as the source of a copy.
fn bytes(bytes: &[u8]) -> Claim {
    // SAFETY: callers use the claim while the borrow lasts, and as a source; `copy`
    // has made the one place that it writes to and shares it with nobody.
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

fn table(pieces: &[Claim]) -> Vec<u8> {
    pieces
        .iter()
        .flat_map(|piece| [piece.address(), piece.len()])
        .flat_map(u64::to_ne_bytes)
        .collect()
}

fn length(pieces: &[Claim]) -> u64 {
    pieces.iter().map(|piece| piece.len()).sum()
}

fn part(pieces: &[Claim], mut offset: u64, mut most: u64) -> Vec<Claim> {
    let mut found = Vec::new();
    for piece in pieces {
        if most == 0 {
            break;
        }
        if offset >= piece.len() {
            offset -= piece.len();
            continue;
        }
        let part = piece.slice(offset, most);
        offset = 0;
        most -= part.len();
        found.push(part);
    }
    found
}
