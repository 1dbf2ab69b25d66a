//! Packets that the endpoint has accepted, until `next` has reported them: messages, parts
//! of streams, packets that arrived before their turn.

use crate::buffers::{Buffer, Buffers};
use lintel_claim::{Claim, Lease, Loan};
use lintel_memory::parts;
use lintel_nal::{Announced, Arrival, Origin, Overrun, Payload, Reassembly};
use lintel_reliable::{FURTHER_BYTES, Fragment, Header, Key, Kind, LostPeer, PairId};
use lintel_types::ProcessId;
use lintel_wire::Words;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Bytes of packets that are kept before their turn, or before they are asked for.
const MAX_BUFFERED: u64 = 4 << 20;
/// Bytes up to which the socket is drained before messages are asked for.
const MAX_DRAINED: u64 = 1 << 20;
/// If something else arrives than the next part of a stream, more of that is likely: so
/// many datagrams are received as if there were no stream.
const PAUSE: u32 = 16;
/// Pieces of a place that are lent to the kernel for one datagram, at most.
const MAX_PLACE_PIECES: usize = 64;

/// A data packet on its way to be delivered.
pub(crate) struct Packet {
    pair: PairId,
    origin: Origin,
    fragment: Fragment,
    payload: Claim,
    /// Where the payload is, if it isn't in the receive buffer any more.
    buffer: Option<Buffer>,
}

impl Packet {
    /// A packet of that pair whose payload lies in the receive buffer.
    #[inline]
    pub(crate) fn new(pair: PairId, header: &Header, fragment: Fragment, payload: Claim) -> Packet {
        Packet {
            pair,
            origin: origin(pair, header),
            fragment,
            payload,
            buffer: None,
        }
    }

    pub(crate) fn fragment(&self) -> &Fragment {
        &self.fragment
    }

    /// Whether a message begins with it that is to be reported.
    fn begins(&self) -> bool {
        self.fragment.words.is_some() && !self.fragment.is_void
    }
}

#[inline]
fn origin(pair: PairId, header: &Header) -> Origin {
    Origin {
        process: header.source,
        uid: header.uid,
        lane: pair.index(),
    }
}

/// What waits for `next`, in order.
enum Queued {
    Packet(Packet),
    LostPeer(LostPeer),
}

/// The message that `next` has reported, until `done`.
struct Current {
    pair: PairId,
    origin: Origin,
    words: Words,
    payload: Claim,
    /// If it is a stream, of which the payload is the first part.
    announced: Option<Announced>,
    buffer: Option<Buffer>,
}

/// A message that arrives in parts.
struct Stream {
    origin: Origin,
    parts: Reassembly,
}

/// The part of a stream that is to arrive next.
#[derive(Clone, Copy)]
pub(crate) struct ExpectedPart {
    source: ProcessId,
    sequence: u32,
}

impl ExpectedPart {
    /// The header of a datagram with that beginning and length, if it is this part.
    #[inline(never)]
    pub(crate) fn parse(&self, beginning: &[u8], length: usize, key: &Key) -> Option<Header> {
        let (header, _) = Header::parse(beginning, length, key).ok()?;
        let Kind::Data(fragment) = header.kind else {
            return None;
        };
        let is_it = header.bytes() == FURTHER_BYTES
            && header.source == self.source
            && fragment.words.is_none()
            && header.sequence == self.sequence;
        is_it.then_some(header)
    }
}

/// What was accepted and isn't reported yet.
pub(crate) struct Inbound {
    me: ProcessId,
    current: Option<Current>,
    queue: VecDeque<Queued>,
    notices: VecDeque<Arrival>,
    /// Packets that arrived before their turn, by sequence number.
    reordered: FxHashMap<(PairId, u32), Packet>,
    streams: FxHashMap<PairId, Stream>,
    /// The stream whose part arrived last: its next part is likely to be the next datagram.
    active_stream: Option<PairId>,
    /// Where the next part of it goes.
    place: Vec<Claim>,
    /// Datagrams until a place is lent to the kernel again.
    pause: u32,
    /// Bytes in `queue` and `reordered`.
    buffered: u64,
    buffers: Buffers,
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
            buffers: Buffers::new(),
        }
    }

    /// Nothing more is reported.
    pub(crate) fn close(&mut self) {
        self.current = None;
        self.active_stream = None;
    }

    /// Bytes of memory of its buffers.
    pub(crate) fn bytes(&self) -> u64 {
        self.buffers.bytes()
    }

    /// Whether `next` has nothing to report but what is still in the socket.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.notices.is_empty() && self.current.is_none()
    }

    /// Whether nothing is to be reported, and no part of a stream is awaited.
    #[inline]
    pub(crate) fn expects_message(&self) -> bool {
        self.is_empty() && self.active_stream.is_none()
    }

    /// Whether a message that arrives as this fragment is reported at once: it is whole, and
    /// nothing is to be reported before it or behind it.
    #[inline]
    pub(crate) fn may_report(&self, fragment: &Fragment) -> bool {
        fragment.last && !fragment.is_void && self.is_empty() && self.reordered.is_empty()
    }

    /// Makes a whole message, whose payload lies in the receive buffer, the current one.
    #[inline]
    pub(crate) fn report(
        &mut self,
        pair: PairId,
        header: &Header,
        words: &Words,
        payload: Claim,
    ) -> (Origin, Words, Claim) {
        let origin = origin(pair, header);
        self.current = Some(Current {
            pair,
            origin,
            words: *words,
            payload,
            announced: None,
            buffer: None,
        });
        (origin, *words, payload)
    }

    /// Leaves an arrival to [`next`](Self::next), which reports a current message anyway.
    pub(crate) fn leave(&mut self, arrival: Option<Arrival>) {
        let others = arrival.filter(|arrival| !matches!(arrival, Arrival::Message(..)));
        self.notices.extend(others);
    }

    /// Whether datagrams may be received before they are asked for: there is room, and no
    /// message in the receive buffer is being read.
    pub(crate) fn may_drain_socket(&self) -> bool {
        let is_in_recv_buffer = |current: &Current| current.buffer.is_none();
        self.buffered < MAX_DRAINED && !self.current.as_ref().is_some_and(is_in_recv_buffer)
    }

    /// Whether a packet may be kept until its turn.
    pub(crate) fn may_buffer(&self) -> bool {
        self.buffered < MAX_BUFFERED
    }

    /// Whether a message to that process may answer one of which only the beginning has
    /// arrived, and whose rest isn't wanted.
    #[inline]
    pub(crate) fn may_be_answered(&self, to: ProcessId) -> bool {
        self.current.as_ref().is_some_and(|current| {
            let is_unwanted = |announced: &Announced| !announced.has_place();
            current.announced.as_ref().is_some_and(is_unwanted) && current.origin.process == to
        })
    }

    /// Keeps a packet until its turn.
    pub(crate) fn keep(&mut self, sequence: u32, packet: Packet) {
        let packet = self.copy_out(packet);
        self.reordered.insert((packet.pair, sequence), packet);
    }

    #[inline]
    pub(crate) fn has_reordered(&self) -> bool {
        !self.reordered.is_empty()
    }

    /// The packet that was kept under that number, whose turn it is.
    pub(crate) fn take_reordered(&mut self, pair: PairId, sequence: u32) -> Option<Packet> {
        self.reordered.remove(&(pair, sequence))
    }

    /// Queues a packet that was kept, behind the one just delivered.
    pub(crate) fn deliver_kept(&mut self, packet: Packet) {
        self.queue.push_back(Queued::Packet(packet));
    }

    /// Drops a packet that was kept and contradicts those before it.
    pub(crate) fn discard(&mut self, packet: Packet) {
        self.buffered -= packet.payload.len();
        if let Some(buffer) = packet.buffer {
            self.buffers.put(buffer);
        }
    }

    /// Delivers a packet: returns what is to be reported at once, unless it is left for
    /// `later`.
    #[inline]
    pub(crate) fn deliver(&mut self, packet: Packet, later: bool) -> Option<Arrival> {
        let is_next = self.is_empty();
        if !packet.begins() && is_next {
            let arrival = self.place_part(&packet);
            if later {
                self.notices.extend(arrival);
                return None;
            }
            return arrival;
        }
        if is_next && !later {
            return Some(self.present(packet));
        }
        let packet = self.copy_out(packet);
        self.queue.push_back(Queued::Packet(packet));
        None
    }

    /// Copies a packet's payload out of the receive buffer.
    fn copy_out(&mut self, packet: Packet) -> Packet {
        let buffer = self.buffers.take(packet.payload.len());
        lintel_claim::copy(packet.payload, buffer.claim());
        self.buffered += packet.payload.len();
        Packet {
            payload: buffer.claim().slice(0, packet.payload.len()),
            buffer: Some(buffer),
            ..packet
        }
    }

    /// What was lent under that number isn't sent any more.
    #[cold]
    pub(crate) fn on_returned(&mut self, number: u64) {
        self.notices.push_back(Arrival::Returned(number));
    }

    /// Nothing more arrives from a peer: reported behind all that it sent.
    #[cold]
    pub(crate) fn on_lost_peer(&mut self, lost: &LostPeer) {
        let (buffers, buffered) = (&mut self.buffers, &mut self.buffered);
        self.reordered.retain(|(pair, _), packet| {
            if let (true, Some(buffer)) = (*pair == lost.pair, packet.buffer.take()) {
                *buffered -= packet.payload.len();
                buffers.put(buffer);
            }
            *pair != lost.pair
        });
        self.queue.push_back(Queued::LostPeer(*lost));
    }

    /// The next arrival among what was accepted.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Arrival> {
        if let Some(current) = &self.current {
            return Some(current.arrival());
        }
        loop {
            if let Some(notice) = self.notices.pop_front() {
                return Some(notice);
            }
            match self.queue.pop_front()? {
                Queued::LostPeer(lost) => self.report_lost(&lost),
                Queued::Packet(packet) => {
                    self.buffered -= packet.payload.len();
                    if packet.begins() {
                        return Some(self.present(packet));
                    }
                    let arrival = self.place_part(&packet);
                    if let Some(buffer) = packet.buffer {
                        self.buffers.put(buffer);
                    }
                    self.notices.extend(arrival);
                }
            }
        }
    }

    fn report_lost(&mut self, lost: &LostPeer) {
        if let Some(stream) = self.streams.remove(&lost.pair) {
            self.notices.push_back(Arrival::Broken(stream.origin));
        }
        if lost.was_addressed {
            self.notices.push_back(Arrival::Lost(lost.process));
        }
    }

    /// Makes a message, or the first part of one, the current one.
    #[inline]
    fn present(&mut self, packet: Packet) -> Arrival {
        let fragment = &packet.fragment;
        let current = Current {
            pair: packet.pair,
            origin: packet.origin,
            words: fragment.words.unwrap_or_default(),
            payload: packet.payload,
            announced: (!fragment.last).then(|| Announced::new(fragment.total)),
            buffer: packet.buffer,
        };
        let arrival = current.arrival();
        self.current = Some(current);
        arrival
    }

    /// Puts a part of a stream into its place; returns the stream's end. What follows a void
    /// part has no stream.
    #[inline]
    fn place_part(&mut self, packet: &Packet) -> Option<Arrival> {
        if packet.fragment.is_void {
            let stream = self.streams.remove(&packet.pair)?;
            self.active_stream.take_if(|active| *active == packet.pair);
            return Some(Arrival::Broken(stream.origin));
        }
        let stream = self.streams.get_mut(&packet.pair)?;
        let progress = stream.parts.fill(packet.payload);
        self.on_part(packet.pair, progress)
    }

    /// A part of a stream is in its place; returns the stream's end, if it is the last one.
    fn on_part(&mut self, pair: PairId, progress: Result<bool, Overrun>) -> Option<Arrival> {
        if progress == Ok(false) {
            self.active_stream = Some(pair);
            return None;
        }
        self.active_stream = None;
        let origin = self.streams.remove(&pair)?.origin;
        Some(match progress {
            Ok(_) => Arrival::Streamed(origin),
            Err(Overrun) => Arrival::Broken(origin),
        })
    }

    /// Whether the next datagram is likely to be the next part of the active stream, and
    /// nothing is to be reported before it.
    #[inline]
    pub(crate) fn awaits_part(&mut self) -> bool {
        if self.active_stream.is_none() {
            return false;
        }
        if self.pause > 0 || !self.is_empty() || !self.reordered.is_empty() {
            self.pause = self.pause.saturating_sub(1);
            return false;
        }
        true
    }

    /// The next part of the active stream; `expected` is the next number of a pair.
    pub(crate) fn expected_part(
        &self,
        expected: impl FnOnce(PairId) -> u32,
    ) -> Option<ExpectedPart> {
        let pair = self.active_stream?;
        let source = self.streams.get(&pair)?.origin.process;
        Some(ExpectedPart {
            source,
            sequence: expected(pair),
        })
    }

    /// Where `length` bytes of payload of the active stream's next part go; `None` if that
    /// is nowhere, or in too many pieces.
    pub(crate) fn next_place(&mut self, length: u64) -> Option<&[Claim]> {
        self.place.clear();
        let stream = self.streams.get(&self.active_stream?)?;
        self.place.extend(parts(stream.parts.place(), 0, length));
        let few = 1..=MAX_PLACE_PIECES;
        few.contains(&self.place.len()).then_some(&self.place)
    }

    /// Something else arrived than the next part of the active stream.
    pub(crate) fn on_missed(&mut self) {
        self.pause = PAUSE;
    }

    /// A part was accepted, `placed` bytes of whose payload are in their place already.
    pub(crate) fn on_placed(
        &mut self,
        pair: PairId,
        fragment: &Fragment,
        placed: u64,
        later: bool,
    ) -> Option<Arrival> {
        let stream = self.streams.get_mut(&pair)?;
        let progress = stream.parts.on_placed(fragment.length.into(), placed);
        let arrival = self.on_part(pair, progress);
        if later {
            self.notices.extend(arrival);
            return None;
        }
        arrival
    }

    pub(crate) fn receive_into(&mut self, origin: Origin, place: Loan) {
        let current = self.current.as_mut().filter(|c| c.origin == origin);
        if let Some(announced) = current.and_then(|current| current.announced.as_mut()) {
            announced.receive_into(place);
        }
    }

    /// What is still to arrive for memory of that lease is dropped.
    pub(crate) fn recall(&mut self, lease: &Lease) {
        let current = self.current.as_mut();
        if let Some(announced) = current.and_then(|current| current.announced.as_mut()) {
            announced.recall(lease);
        }
        for stream in self.streams.values_mut() {
            stream.parts.recall(lease);
        }
        self.place.clear();
    }

    #[inline]
    pub(crate) fn done(&mut self, origin: Origin) {
        debug_assert!(origin.process != self.me, "loopback carries those");
        let Some(current) = self.current.take() else {
            return;
        };
        if let Some(announced) = current.announced {
            let stream = Stream {
                origin: current.origin,
                parts: announced.into(),
            };
            self.begin_stream(current.pair, stream, current.payload);
        }
        if let Some(buffer) = current.buffer {
            self.buffers.put(buffer);
        }
    }

    /// Begins a stream with its first part, which is never the whole.
    fn begin_stream(&mut self, pair: PairId, mut stream: Stream, first: Claim) {
        if stream.parts.fill(first) == Ok(false) {
            self.active_stream = Some(pair);
            self.streams.insert(pair, stream);
        } else {
            self.notices.push_back(Arrival::Broken(stream.origin));
        }
    }
}

impl Current {
    #[inline]
    fn arrival(&self) -> Arrival {
        let payload = match &self.announced {
            Some(announced) => Payload::Streamed(announced.length()),
            None => Payload::Inline(self.payload),
        };
        Arrival::Message(self.origin, self.words, payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_claim::Region;
    use lintel_reliable::{Class, Endpoint, Incarnation, Message, Model};
    use std::time::Duration;

    const PEER: ProcessId = ProcessId::new(1, 2);

    /// A pair to name, which only an endpoint makes.
    fn pair() -> PairId {
        let mut endpoint = Endpoint::new(lintel_reliable::Config {
            me: ProcessId::new(1, 1),
            uid: 0,
            incarnation: Incarnation::from_clock(1, 1),
            model: Model::Rc,
            max_datagram: 1000,
            recv_window: 1000,
            peer_timeout: Duration::from_secs(1),
        });
        let message = Message {
            class: Class::Ordered,
            words: [0; 6],
            length: 0,
            memory: 0,
            is_awaited: false,
            body: (),
        };
        let sent = endpoint.send(lintel_reliable::Time(0), PEER, message, false);
        sent.unwrap_or_else(|_| panic!("ordered messages have any length"))
    }

    fn header() -> Header {
        Header {
            kind: Kind::Ack,
            ack_requested: false,
            uid: 7,
            source: PEER,
            destination: ProcessId::new(1, 1),
            recv_window: 0,
            incarnation: 1,
            peer_incarnation: 1,
            sequence: 0,
            acknowledged: 0,
            selective: 0,
        }
    }

    /// A part of a message of `total` bytes.
    fn part(bytes: &Region, offset: u64, total: u64) -> Packet {
        let length = bytes.len() as u32;
        let fragment = Fragment {
            class: Class::Ordered,
            words: (offset == 0).then_some([9; 6]),
            last: offset + u64::from(length) == total,
            total,
            offset,
            length,
            checksum: None,
            is_void: false,
        };
        Packet::new(pair(), &header(), fragment, bytes.claim())
    }

    fn inbound() -> Inbound {
        Inbound::new(ProcessId::new(1, 1))
    }

    fn origin() -> Origin {
        Origin {
            process: PEER,
            uid: 7,
            lane: pair().index(),
        }
    }

    #[test]
    fn a_message_is_reported_until_it_is_done() {
        let (mut inbound, bytes) = (inbound(), Region::new(4));
        let arrival = inbound.deliver(part(&bytes, 0, 4), false);
        assert!(
            matches!(arrival, Some(Arrival::Message(from, [9, ..], Payload::Inline(_))) if from == origin())
        );
        assert!(matches!(inbound.next(), Some(Arrival::Message(..))));
        assert!(!inbound.is_empty() && !inbound.may_drain_socket());
        assert!(!inbound.may_be_answered(PEER), "all of it is here");
        inbound.done(origin());
        assert!(inbound.is_empty() && inbound.may_drain_socket());
        assert!(inbound.next().is_none());
    }

    #[test]
    fn parts_fill_the_place_and_the_last_one_ends_the_stream() {
        let (mut inbound, lease, place) = (inbound(), Lease::new(), Region::new(8));
        let halves = [Region::new(4), Region::new(4)];
        halves[0].claim().write(b"abcd");
        halves[1].claim().write(b"efgh");
        let first = inbound.deliver(part(&halves[0], 0, 8), false);
        assert!(matches!(
            first,
            Some(Arrival::Message(_, _, Payload::Streamed(8)))
        ));
        assert!(
            inbound.may_be_answered(PEER),
            "its rest isn't wanted so far"
        );
        inbound.receive_into(origin(), lease.lend(&[place.claim()]).keep());
        assert!(!inbound.may_be_answered(PEER));
        inbound.done(origin());
        assert!(inbound.awaits_part());
        assert!(inbound.expected_part(|_| 5).is_some());
        assert_eq!(inbound.next_place(4).map(<[Claim]>::len), Some(1));
        let end = inbound.deliver(part(&halves[1], 4, 8), false);
        assert!(matches!(end, Some(Arrival::Streamed(from)) if from == origin()));
        assert!(!inbound.awaits_part());
        let mut bytes = [0; 8];
        place.claim().read(&mut bytes);
        assert_eq!(&bytes, b"abcdefgh");
    }

    #[test]
    fn a_recalled_place_gets_nothing_and_a_lost_peer_breaks_its_stream() {
        let (mut inbound, lease, place) = (inbound(), Lease::new(), Region::new(8));
        let half = Region::new(4);
        half.claim().write(b"abcd");
        inbound.deliver(part(&half, 0, 8), false);
        inbound.receive_into(origin(), lease.lend(&[place.claim()]).keep());
        inbound.recall(&lease);
        inbound.done(origin());
        let mut bytes = [1; 8];
        place.claim().read(&mut bytes);
        assert_eq!(bytes, [0; 8]);
        assert!(inbound.next_place(4).is_none(), "it goes nowhere");
        inbound.on_lost_peer(&LostPeer {
            pair: pair(),
            process: PEER,
            was_addressed: true,
        });
        assert!(matches!(inbound.next(), Some(Arrival::Broken(from)) if from == origin()));
        assert!(matches!(inbound.next(), Some(Arrival::Lost(PEER))));
        assert!(inbound.next().is_none());
    }

    #[test]
    fn packets_before_their_turn_are_buffered_and_given_back() {
        let (mut inbound, bytes) = (inbound(), Region::new(100));
        for sequence in 1..4 {
            inbound.keep(sequence, part(&bytes, 0, 100));
        }
        assert_eq!(inbound.buffered, 300);
        let kept = inbound.take_reordered(pair(), 1).expect("it was kept");
        inbound.deliver_kept(kept);
        assert!(matches!(inbound.next(), Some(Arrival::Message(..))));
        assert_eq!(inbound.buffered, 200);
        inbound.done(origin());
        let contradictory = inbound.take_reordered(pair(), 2).expect("it was kept");
        inbound.discard(contradictory);
        assert_eq!(inbound.buffered, 100);
        inbound.on_lost_peer(&LostPeer {
            pair: pair(),
            process: PEER,
            was_addressed: false,
        });
        assert_eq!((inbound.buffered, inbound.has_reordered()), (0, false));
        assert!(inbound.next().is_none(), "nothing was sent to it");
    }
}
