//! What has come and isn't delivered yet: messages to be looked at, streams that are
//! being received, packets that came early.

use crate::body::Body;
use crate::buffers::{Buffer, Buffers};
use crate::tx_batch::checksum;
use lintel_claim::{Claim, Lease, Loan, copy_vectored};
use lintel_memory::{length, parts};
use lintel_nal::{Arrival, Origin, Payload};
use lintel_reliable::{
    Endpoint, Fragment, Header, Key, Kind, LostPeer, MAX_HEADER_BYTES, PairId, Refusal, Verdict,
};
use lintel_types::ProcessId;
use lintel_wire::Words;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Bytes of packets that came early, or before they were asked for, at most.
const MAX_BUFFERED: u64 = 4 << 20;
/// Bytes taken from the socket before they are asked for, at most.
const MAX_DRAINED: u64 = 1 << 20;
/// Where something else came than the next part of a stream, more of that is likely: so
/// many datagrams are received as if there were no stream.
const PAUSE: u32 = 16;
/// Pieces of a place that are handed to the kernel at once, at most.
const MAX_PLACE_PIECES: usize = 64;

/// A packet's payload on its way to be delivered.
struct Piece {
    pair: PairId,
    origin: Origin,
    fragment: Fragment,
    payload: Claim,
    /// Where the payload is, if it isn't in the area.
    buffer: Option<Buffer>,
}

impl Piece {
    /// Whether a message begins with it, of which there is something to look at.
    fn begins(&self) -> bool {
        self.fragment.words.is_some() && !self.fragment.is_void
    }
}

/// What `next` has to look at.
enum Queued {
    Piece(Piece),
    LostPeer(LostPeer),
}

/// The message that `next` has given.
struct Current {
    pair: PairId,
    origin: Origin,
    words: Words,
    payload: Claim,
    /// It comes in parts, of which the payload is the first.
    announced: Option<u64>,
    place: Option<Loan>,
    buffer: Option<Buffer>,
}

/// A message that comes in parts.
struct Stream {
    origin: Origin,
    /// Where the rest goes.
    rest: Option<Loan>,
}

/// The way in.
pub(crate) struct Inbound {
    me: ProcessId,
    current: Option<Current>,
    queue: VecDeque<Queued>,
    notices: VecDeque<Arrival>,
    reordered: FxHashMap<(PairId, u32), Piece>,
    streams: FxHashMap<PairId, Stream>,
    /// The stream of which a part came last.
    active_stream: Option<PairId>,
    /// Where the next part of it goes.
    place: Vec<Claim>,
    /// Datagrams until a place is lent to the kernel again.
    pause: u32,
    /// Bytes in `waiting` and `early`.
    buffered: u64,
    /// Only acknowledgements are of interest.
    is_closed: bool,
    /// Datagrams that came, and those among them that were refused.
    pub(crate) arrived: u64,
    pub(crate) forged: u64,
    pub(crate) malformed: u64,
    pub(crate) damaged: u64,
}

impl Inbound {
    pub(crate) fn new(me: ProcessId) -> Inbound {
        Inbound {
            me,
            current: None,
            queue: VecDeque::new(),
            notices: VecDeque::new(),
            reordered: FxHashMap::default(),
            streams: FxHashMap::default(),
            active_stream: None,
            place: Vec::new(),
            pause: 0,
            buffered: 0,
            is_closed: false,
            arrived: 0,
            forged: 0,
            malformed: 0,
            damaged: 0,
        }
    }

    /// Nothing more is delivered.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.current = None;
    }

    /// Whether there is nothing for `next` to give but what is in the socket.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.notices.is_empty() && self.current.is_none()
    }

    /// Whether datagrams may be received before they are asked for: there is room, and
    /// none in the area is being looked at.
    pub(crate) fn may_drain_socket(&self) -> bool {
        let is_in_recv_buffer = |current: &Current| current.buffer.is_none();
        self.buffered < MAX_DRAINED && !self.current.as_ref().is_some_and(is_in_recv_buffer)
    }

    pub(crate) fn may_buffer(&self) -> bool {
        self.buffered < MAX_BUFFERED
    }

    /// Whether a message to that process may be the answer to one of which only the
    /// beginning has come, and whose rest isn't wanted.
    #[inline]
    pub(crate) fn may_be_answered(&self, to: ProcessId) -> bool {
        self.current.as_ref().is_some_and(|current| {
            current.announced.is_some() && current.place.is_none() && current.origin.process == to
        })
    }

    /// Looks whether a datagram is a packet with the right key and a sound payload.
    #[inline]
    pub(crate) fn open(&mut self, datagram: &Claim, key: &Key) -> Option<(Header, Claim)> {
        let mut beginning = [0; MAX_HEADER_BYTES];
        let count = datagram.read(&mut beginning);
        let parsed = Header::parse(&beginning[..count], datagram.len() as usize, key);
        let (mut header, ahead) = match parsed {
            Ok(parsed) => parsed,
            Err(Refusal::Forged) => {
                self.forged += 1;
                return None;
            }
            Err(Refusal::Malformed) => {
                self.malformed += 1;
                return None;
            }
        };
        let payload = datagram.slice(ahead as u64, u64::MAX);
        if self.is_closed && matches!(header.kind, Kind::Data(_)) {
            header.kind = Kind::Ack;
        }
        if let Kind::Data(fragment) = &header.kind {
            if fragment
                .checksum
                .is_some_and(|sum| sum != checksum(&[payload]))
            {
                self.damaged += 1;
                return None;
            }
        }
        Some((header, payload))
    }

    /// Does what the endpoint says with a packet; gives what there is to look at, unless
    /// that is to be left for later.
    #[inline]
    pub(crate) fn on_verdict(
        &mut self,
        verdict: Verdict,
        header: &Header,
        payload: Claim,
        for_later: bool,
        endpoint: &mut Endpoint<Body>,
        buffers: &mut Buffers,
    ) -> Option<Arrival> {
        let Kind::Data(fragment) = header.kind else {
            return None;
        };
        let (pair, deliver) = match verdict {
            Verdict::Drop => return None,
            Verdict::Deliver(pair) => (pair, true),
            Verdict::Keep(pair) => (pair, false),
        };
        let piece = Piece {
            pair,
            origin: Origin {
                process: header.source,
                uid: header.uid,
                lane: pair.index(),
            },
            fragment,
            payload,
            buffer: None,
        };
        if !deliver {
            let piece = self.buffer(piece, buffers);
            self.reordered.insert((pair, header.sequence), piece);
            return None;
        }
        let arrival = self.deliver(piece, for_later, buffers);
        if !self.reordered.is_empty() {
            self.deliver_reordered(pair, endpoint);
        }
        arrival
    }

    /// What waited for the packet just delivered comes behind it.
    #[cold]
    fn deliver_reordered(&mut self, pair: PairId, endpoint: &mut Endpoint<Body>) {
        while let Some(piece) = self.reordered.remove(&(pair, endpoint.expected(pair))) {
            match endpoint.on_early(pair, &piece.fragment) {
                Verdict::Deliver(_) => self.queue.push_back(Queued::Piece(piece)),
                Verdict::Drop | Verdict::Keep(_) => return,
            }
        }
    }

    #[inline]
    fn deliver(&mut self, piece: Piece, later: bool, buffers: &mut Buffers) -> Option<Arrival> {
        let is_next = self.is_empty();
        if !piece.begins() && is_next {
            let arrival = self.fill(&piece);
            if later {
                self.notices.extend(arrival);
                return None;
            }
            return arrival;
        }
        if is_next && !later {
            return Some(self.present(piece));
        }
        let piece = self.buffer(piece, buffers);
        self.queue.push_back(Queued::Piece(piece));
        None
    }

    /// Copies a piece out of the area.
    fn buffer(&mut self, piece: Piece, buffers: &mut Buffers) -> Piece {
        let buffer = buffers.take(piece.payload.len());
        lintel_claim::copy(piece.payload, buffer.claim());
        self.buffered += piece.payload.len();
        Piece {
            payload: buffer.claim().slice(0, piece.payload.len()),
            buffer: Some(buffer),
            ..piece
        }
    }

    /// Takes note that nothing more comes from a peer, once what came has been looked at.
    #[cold]
    pub(crate) fn on_lost_peer(&mut self, loss: &LostPeer, buffers: &mut Buffers) {
        let (lost, buffered) = (loss.pair, &mut self.buffered);
        self.reordered.retain(|(pair, _), piece| {
            if let (true, Some(buffer)) = (*pair == lost, piece.buffer.take()) {
                *buffered -= piece.payload.len();
                buffers.put(buffer);
            }
            *pair != lost
        });
        self.queue.push_back(Queued::LostPeer(*loss));
    }

    /// The next arrival among what has been received.
    #[inline]
    pub(crate) fn next(&mut self, buffers: &mut Buffers) -> Option<Arrival> {
        if let Some(current) = &self.current {
            return Some(current.arrival());
        }
        loop {
            if let Some(notice) = self.notices.pop_front() {
                return Some(notice);
            }
            match self.queue.pop_front()? {
                Queued::LostPeer(loss) => self.report_lost(&loss),
                Queued::Piece(piece) => {
                    self.buffered -= piece.payload.len();
                    if piece.begins() {
                        return Some(self.present(piece));
                    }
                    let arrival = self.fill(&piece);
                    if let Some(buffer) = piece.buffer {
                        buffers.put(buffer);
                    }
                    self.notices.extend(arrival);
                }
            }
        }
    }

    fn report_lost(&mut self, loss: &LostPeer) {
        if let Some(stream) = self.streams.remove(&loss.pair) {
            self.notices.push_back(Arrival::Broken(stream.origin));
        }
        if loss.was_addressed {
            self.notices.push_back(Arrival::Lost(loss.process));
        }
    }

    /// A message, or the beginning of one, is the one to be looked at.
    #[inline]
    fn present(&mut self, piece: Piece) -> Arrival {
        let fragment = &piece.fragment;
        let current = Current {
            pair: piece.pair,
            origin: piece.origin,
            words: fragment.words.unwrap_or_default(),
            payload: piece.payload,
            announced: (!fragment.last).then_some(fragment.total),
            place: None,
            buffer: piece.buffer,
        };
        let arrival = current.arrival();
        self.current = Some(current);
        arrival
    }

    /// Puts a part of a stream in place; tells where the stream is whole now, or never
    /// will be. What follows a void part has no stream.
    #[inline]
    fn fill(&mut self, piece: &Piece) -> Option<Arrival> {
        if piece.fragment.is_void {
            let stream = self.streams.remove(&piece.pair)?;
            self.active_stream.take_if(|running| *running == piece.pair);
            return Some(Arrival::Broken(stream.origin));
        }
        let stream = self.streams.get_mut(&piece.pair)?;
        let moved = copy_vectored(
            &[piece.payload],
            stream.rest.as_ref().map_or(&[], Loan::pieces),
        );
        self.advance(piece.pair, moved, &piece.fragment)
    }

    /// A part of a stream is in place, so many bytes of it that belong there.
    fn advance(&mut self, pair: PairId, placed: u64, fragment: &Fragment) -> Option<Arrival> {
        let stream = self.streams.get_mut(&pair)?;
        if let Some(rest) = &mut stream.rest {
            rest.skip(placed);
        }
        self.active_stream = Some(pair);
        if !fragment.last {
            return None;
        }
        let origin = stream.origin;
        self.active_stream = None;
        self.streams.remove(&pair);
        Some(Arrival::Streamed(origin))
    }

    /// Whether the next datagram is likely to be the next part of the stream that is
    /// running, and nothing comes before it.
    #[inline]
    pub(crate) fn awaits_part(&mut self) -> bool {
        if self.active_stream.is_none() {
            return false;
        }
        if self.pause > 0 || !self.is_empty() || !self.reordered.is_empty() || self.is_closed {
            self.pause = self.pause.saturating_sub(1);
            return false;
        }
        true
    }

    /// Where the payload of the running stream's next part goes, so many bytes; nothing
    /// where that is nowhere, or in too many pieces.
    pub(crate) fn next_place(&mut self, length: u64) -> Option<&[Claim]> {
        self.place.clear();
        let stream = self.streams.get(&self.active_stream?)?;
        let rest = stream.rest.as_ref().map_or(&[][..], Loan::pieces);
        self.place.extend(parts(rest, 0, length));
        let few = 1..=MAX_PLACE_PIECES;
        few.contains(&self.place.len()).then_some(&self.place)
    }

    /// Looks whether a datagram with that beginning and length is a part of the running
    /// stream.
    pub(crate) fn open_part(
        &self,
        beginning: &[u8],
        length: usize,
        key: &Key,
    ) -> Option<(PairId, Header)> {
        let pair = self.active_stream?;
        let (header, _) = Header::parse(beginning, length, key).ok()?;
        let Kind::Data(fragment) = header.kind else {
            return None;
        };
        let source = self.streams.get(&pair)?.origin.process;
        (header.source == source && fragment.words.is_none()).then_some((pair, header))
    }

    /// Something else came than the next part of the running stream.
    pub(crate) fn on_missed(&mut self) {
        self.pause = PAUSE;
    }

    /// Does what the endpoint says with a packet whose payload is in place already.
    pub(crate) fn on_placed(
        &mut self,
        verdict: Verdict,
        header: &Header,
        placed: u64,
        for_later: bool,
    ) -> Option<Arrival> {
        let (Verdict::Deliver(pair), Kind::Data(fragment)) = (verdict, header.kind) else {
            return None;
        };
        let arrival = self.advance(pair, placed, &fragment);
        if for_later {
            self.notices.extend(arrival);
            return None;
        }
        arrival
    }

    pub(crate) fn receive_into(&mut self, origin: Origin, place: Loan) {
        if let Some(current) = self.current.as_mut().filter(|c| c.origin == origin) {
            current.place = Some(place);
        }
    }

    /// Streams into memory of that lease go on into nothing.
    pub(crate) fn recall(&mut self, lease: &Lease) {
        let is_of = |loan: &mut Loan| loan.is_of(lease);
        if let Some(current) = &mut self.current {
            current.place.take_if(is_of);
        }
        for stream in self.streams.values_mut() {
            stream.rest.take_if(is_of);
        }
        self.place.clear();
    }

    #[inline]
    pub(crate) fn done(&mut self, origin: Origin, buffers: &mut Buffers) {
        debug_assert!(origin.process != self.me, "those don't come this way");
        let Some(current) = self.current.take() else {
            return;
        };
        if current.announced.is_some() {
            let mut rest = current.place;
            if let Some(rest) = &mut rest {
                let moved = copy_vectored(&[current.payload], rest.pieces());
                rest.skip(moved);
            }
            let origin = current.origin;
            self.active_stream = Some(current.pair);
            self.streams.insert(current.pair, Stream { origin, rest });
        }
        if let Some(buffer) = current.buffer {
            buffers.put(buffer);
        }
    }
}

impl Current {
    #[inline]
    fn arrival(&self) -> Arrival {
        let payload = match self.announced {
            Some(length) => Payload::Streamed(length),
            None => Payload::Inline(self.payload),
        };
        Arrival::Message(self.origin, self.words, payload)
    }
}

/// How many bytes of a part's payload, received around a hole, are in their place;
/// nothing where they changed on their way.
pub(crate) fn sound_in_place(header: &Header, place: &[Claim], behind: Claim) -> Option<u64> {
    let Kind::Data(fragment) = header.kind else {
        return None;
    };
    let mut payload = Vec::with_capacity(place.len() + 1);
    payload.extend(parts(place, 0, fragment.length.into()));
    let placed = length(&payload);
    payload.push(behind);
    let sum = fragment.checksum;
    sum.is_none_or(|sum| sum == checksum(&payload))
        .then_some(placed)
}
