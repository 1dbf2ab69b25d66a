//! What is known of another process.

use crate::fabric::Address;
use crate::frame::{ENTRY, Kind, Piece};
use crate::registrations::{BounceBuffer, RegistrationId};
use lintel_claim::{Claim, Loan};
use lintel_nal::{Announced, Origin};
use lintel_session::{Coalescing, History, Liveness, Waiting};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

/// A sender's credit: messages that may be in flight to a process, or unread there.
pub(crate) const WINDOW: u32 = 64;
/// How soon a message is acknowledged when nothing is sent back.
pub(crate) const ACK_DELAY: Duration = Duration::from_millis(1);
/// Bytes that a message takes beside its bytes, about.
const OVERHEAD: u64 = 128;
/// How soon an unanswered query for an address is repeated.
pub(crate) const QUERY_INTERVAL: Duration = Duration::from_millis(50);
/// The shortest and the longest pause between two tries to reach a process that has
/// never answered.
pub(crate) const HANDSHAKE_BACKOFF: [Duration; 2] =
    [Duration::from_micros(20), Duration::from_millis(20)];

pub(crate) struct Peer {
    pub(crate) process: ProcessId,
    pub(crate) lane: u32,
    pub(crate) address: Option<Address>,
    /// If its address is being queried: when the query is repeated.
    pub(crate) next_query: Option<Instant>,
    /// Its incarnations; none is current until it was heard.
    pub(crate) history: History,
    pub(crate) uid: u32,
    /// Messages were sent to it: its loss is reported.
    pub(crate) was_addressed: bool,
    /// Since when nothing is sent to it; what it has sent is still read.
    pub(crate) closed_at: Option<Instant>,
    /// It stands in the list of those to be served.
    pub(crate) is_listed: bool,
    /// It stands in the list of those that may be needed.
    pub(crate) is_unsettled: bool,
    /// It stands in the list of those with something to read.
    pub(crate) is_queued: bool,
    pub(crate) sending: Sending,
    pub(crate) receiving: Receiving,
    pub(crate) health: Health,
}

/// What is sent to the peer. The counts are the peer's, as last reported.
#[derive(Default)]
pub(crate) struct Sending {
    /// Messages sent so far, modulo 2^32.
    pub(crate) sequence: u32,
    pub(crate) arrived: u32,
    pub(crate) consumed: u32,
    pub(crate) fetched: u32,
    /// Messages without credit; changed by functions that count their memory.
    pub(crate) queue: VecDeque<Queued>,
    /// Bodies that the peer reads, in the order of their announcement.
    pub(crate) bodies: VecDeque<Body>,
    /// When a peer that hasn't answered yet is tried again, and the last pause.
    pub(crate) retry: Option<(Instant, Duration)>,
    /// Bytes of memory that messages waiting and copies of bodies take, about.
    memory: u64,
    /// Bytes that the messages waiting would take in a batch.
    batched: u64,
    /// Recalled bodies, by number, that the peer doesn't know of yet.
    pub(crate) recalls: VecDeque<u32>,
}

pub(crate) struct Queued {
    pub(crate) kind: Kind,
    pub(crate) words: Words,
    pub(crate) payload: Vec<u8>,
}

/// Bytes that a peer reads.
pub(crate) enum Body {
    Bounce(BounceBuffer),
    /// If it has a number, its [return](lintel_nal::Arrival::Returned) is reported.
    Lent(Vec<RegistrationId>, Loan, Option<u64>),
    /// Recalled; the peer still counts it.
    Void,
}

/// What arrives from the peer.
#[derive(Default)]
pub(crate) struct Receiving {
    /// Messages that have arrived; the number of the next one.
    pub(crate) arrived: u32,
    pub(crate) consumed: u32,
    pub(crate) fetched: u32,
    /// The three counts as the peer knows them.
    pub(crate) acked: [u32; 3],
    /// Messages ahead of their turn, if the provider doesn't keep the order.
    pub(crate) early: BTreeMap<u32, BufferedMessage>,
    pub(crate) inbox: VecDeque<Item>,
    pub(crate) stream: Option<Stream>,
    /// Bodies that were recalled before they were read, by number.
    pub(crate) recalled: BTreeSet<u32>,
    /// Those among them whose recall isn't acknowledged yet.
    pub(crate) recall_acks: VecDeque<u32>,
    /// The peer has requested a frame.
    pub(crate) ack_requested: bool,
    /// When a frame is sent to it at the latest.
    pub(crate) due: Option<Instant>,
}

/// A message in its buffer.
pub(crate) struct BufferedMessage {
    pub(crate) buffer: u32,
    pub(crate) words: Words,
    /// Where its bytes lie in the frame.
    pub(crate) offset: u32,
    pub(crate) length: u32,
    /// Its body, if it stays with the sender until it is read.
    pub(crate) body: Option<RemoteBody>,
}

/// A body that is read from its sender.
pub(crate) struct RemoteBody {
    pub(crate) pieces: Vec<Piece>,
    /// Its length, and where it goes.
    pub(crate) announced: Announced,
}

impl RemoteBody {
    /// Of that many bytes in those pieces.
    pub(crate) fn new((pieces, length): (Vec<Piece>, u64)) -> RemoteBody {
        RemoteBody {
            pieces,
            announced: Announced::new(length),
        }
    }
}

/// Something to be reported by `next`.
pub(crate) enum Item {
    Message(BufferedMessage),
    /// The peer is lost: nothing more comes.
    Lost,
}

/// A body that is being read to its place.
pub(crate) struct Stream {
    /// The peer's memory that is still to be read.
    pub(crate) pieces: VecDeque<Piece>,
    /// Where that is read to, and how it is registered.
    pub(crate) place: VecDeque<(Claim, Option<RegistrationId>)>,
    /// Held until the stream ends.
    pub(crate) loan: Option<Loan>,
    pub(crate) holds: Vec<RegistrationId>,
    /// Bytes that no read was posted for yet.
    pub(crate) missing: u64,
    /// Reads in flight, of this stream.
    pub(crate) under_way: u32,
    /// Why it will never be whole.
    pub(crate) failure: Option<i32>,
    /// One side has recalled its memory, and both go on.
    pub(crate) is_void: bool,
    /// Where it is read to first, if the provider doesn't [cancel reads](crate::fabric::Traits::cancels_reads).
    pub(crate) staged: Option<BounceBuffer>,
}

/// Whether the peer answers, while something is awaited from it.
pub(crate) struct Health {
    pub(crate) liveness: Liveness<Instant>,
    /// Something is awaited from it.
    is_awaited: bool,
    /// When a message last arrived there, or the first was sent after all had.
    pub(crate) last_progress: Instant,
}

impl Health {
    fn new(now: Instant) -> Health {
        Health {
            liveness: Liveness::new(now),
            is_awaited: false,
            last_progress: now,
        }
    }

    /// A frame has arrived from it.
    #[inline]
    pub(crate) fn on_heard(&mut self, now: Instant) {
        self.liveness.on_heard(now);
    }

    pub(crate) fn on_probe(&mut self, now: Instant) {
        self.liveness.on_probe(now);
    }

    /// Something is awaited from it, from now on if nothing was before.
    pub(crate) fn begin_awaiting(&mut self, now: Instant) {
        if !std::mem::replace(&mut self.is_awaited, true) {
            self.liveness.on_awaited(now);
        }
    }

    /// Nothing is awaited from it any more: it may be silent.
    pub(crate) fn end_awaiting(&mut self) {
        self.is_awaited = false;
    }
}

impl Peer {
    pub(crate) fn new(process: ProcessId, lane: u32, history: History, now: Instant) -> Peer {
        Peer {
            process,
            lane,
            address: None,
            next_query: None,
            history,
            uid: 0,
            was_addressed: false,
            closed_at: None,
            is_listed: false,
            is_unsettled: false,
            is_queued: false,
            sending: Sending::default(),
            receiving: Receiving::default(),
            health: Health::new(now),
        }
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin {
            process: self.process,
            uid: self.uid,
            lane: self.lane,
        }
    }

    /// Whether there is something to read now: nothing overtakes a stream.
    pub(crate) fn is_readable(&self) -> bool {
        self.receiving.stream.is_none() && !self.receiving.inbox.is_empty()
    }

    /// Whether nothing is left of one that has ended.
    pub(crate) fn is_drained(&self) -> bool {
        let receiving = &self.receiving;
        self.closed_at.is_some() && receiving.stream.is_none() && receiving.inbox.is_empty()
    }

    /// Whether a body is on its way between the two.
    pub(crate) fn is_moving(&self) -> bool {
        !self.sending.bodies.is_empty() || self.receiving.stream.is_some()
    }

    /// Whether a message of so many bytes may wait for more: what is in flight will be acknowledged,
    /// which has it sent in any case. An answer waits for those to the messages that have arrived behind.
    #[inline]
    pub(crate) fn may_coalesce(&self, limits: Coalescing, kind: Kind, bytes: u64) -> bool {
        let sending = &self.sending;
        let waiting = Waiting {
            messages: sending.queue.len() as u32 + 1,
            bytes: sending.batched + batched(bytes),
            newest: batched(bytes),
        };
        let in_flight = match self.receiving.inbox.len() {
            0 | 1 => sending.sequence.wrapping_sub(sending.arrived),
            _ => limits.in_flight,
        };
        kind == Kind::Inline && limits.may_wait(in_flight, waiting)
    }

    /// Whether the NAL itself needs the peer. Each begin of it is [noted](crate::peers::Peers::note_needed).
    pub(crate) fn is_needed(&self) -> bool {
        !self.sending.all_delivered()
            || self.receiving.stream.is_some()
            || !self.receiving.early.is_empty()
    }
}

/// Bytes that a message of so many takes in a batch.
#[inline]
fn batched(bytes: u64) -> u64 {
    ENTRY as u64 + bytes
}

impl Queued {
    /// Bytes in a batch.
    fn batched(&self) -> u64 {
        batched(self.payload.len() as u64)
    }

    fn memory(&self) -> u64 {
        OVERHEAD + self.payload.len() as u64
    }
}

impl Body {
    /// Under which its return is reported, if it is.
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Body::Lent(_, _, number) => *number,
            Body::Bounce(_) | Body::Void => None,
        }
    }

    fn memory(&self) -> u64 {
        match self {
            Body::Bounce(copied) => OVERHEAD + copied.claim().len(),
            Body::Lent(..) | Body::Void => OVERHEAD,
        }
    }
}

impl Sending {
    /// Bytes of memory of what waits for the peer.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    pub(crate) fn push_queued(&mut self, message: Queued) {
        self.memory += message.memory();
        self.batched += message.batched();
        self.queue.push_back(message);
    }

    /// The message taken last couldn't be sent.
    pub(crate) fn put_back(&mut self, message: Queued) {
        self.memory += message.memory();
        self.batched += message.batched();
        self.queue.push_front(message);
    }

    pub(crate) fn pop_queued(&mut self) -> Option<Queued> {
        let message = self.queue.pop_front()?;
        self.memory -= message.memory();
        self.batched -= message.batched();
        Some(message)
    }

    /// The messages to be sent in the next frame: the first that waits, and if it is short, those short
    /// ones behind it for which there is credit, too.
    pub(crate) fn pop_frame(&mut self, limits: Coalescing) -> Vec<Queued> {
        let credit = WINDOW - self.sequence.wrapping_sub(self.consumed).min(WINDOW);
        let most = limits.messages.min(credit) as usize;
        let mut bytes = 0;
        let fits = |message: &&Queued| {
            bytes += message.batched();
            let is_short = message.batched() <= limits.message_bytes;
            message.kind == Kind::Inline && is_short && bytes <= limits.bytes
        };
        let count = self.queue.iter().take(most).take_while(fits).count();
        (0..count.max(1)).map_while(|_| self.pop_queued()).collect()
    }

    /// Whether a frame with so many messages requests an acknowledgement: messages wait behind it from now
    /// on, or others may wait behind it, and it isn't so long that it is acknowledged in any case.
    #[inline]
    pub(crate) fn requests_ack(&self, limits: Coalescing, messages: u8) -> bool {
        let before = self.sequence.wrapping_sub(self.arrived);
        let messages = u32::from(messages);
        limits.begins(before, before + messages) || (2..limits.messages).contains(&messages)
    }

    pub(crate) fn push_body(&mut self, body: Body) {
        self.memory += body.memory();
        self.bodies.push_back(body);
    }

    pub(crate) fn pop_body(&mut self) -> Option<Body> {
        let body = self.bodies.pop_front()?;
        self.memory -= body.memory();
        Some(body)
    }

    /// A message goes unsent, and its body isn't kept.
    pub(crate) fn forget_memory(&mut self, message: &Queued, body: &Body) {
        self.memory -= message.memory() + body.memory();
        self.batched -= message.batched();
    }

    /// Drops what waits, and returns the bodies.
    pub(crate) fn end(&mut self) -> VecDeque<Body> {
        (self.memory, self.batched) = (0, 0);
        self.queue.clear();
        std::mem::take(&mut self.bodies)
    }

    /// Whether there is credit for another message.
    #[inline]
    pub(crate) fn has_credit(&self) -> bool {
        self.sequence.wrapping_sub(self.consumed) < WINDOW
    }

    /// Whether more waits than there is credit for.
    pub(crate) fn has_queued(&self) -> bool {
        let under_way = self.sequence.wrapping_sub(self.consumed);
        self.queue.len() as u64 + u64::from(under_way) > u64::from(WINDOW)
    }

    /// Whether everything has arrived, and all bodies have been read.
    pub(crate) fn all_delivered(&self) -> bool {
        self.queue.is_empty() && self.bodies.is_empty() && self.arrived == self.sequence
    }
}

impl Receiving {
    /// The body of the message that `next` has reported.
    pub(crate) fn current_body(&mut self) -> Option<&mut RemoteBody> {
        match self.inbox.front_mut()? {
            Item::Message(held) => held.body.as_mut(),
            Item::Lost => None,
        }
    }

    /// Takes the next message, and those ahead of their turn that follow it.
    pub(crate) fn take_in_order(&mut self, message: BufferedMessage) {
        let mut next = Some(message);
        while let Some(message) = next {
            self.arrived = self.arrived.wrapping_add(1);
            self.inbox.push_back(Item::Message(message));
            // Nearly always none is early.
            next = match self.early.is_empty() {
                true => None,
                false => self.early.remove(&self.arrived),
            };
        }
    }

    pub(crate) fn counts(&self) -> [u32; 3] {
        [self.arrived, self.consumed, self.fetched]
    }

    /// Whether the peer should hear now: it asks, it may lack room, or it keeps a
    /// body.
    pub(crate) fn is_ack_pending(&self) -> bool {
        let [_, consumed, fetched] = self.acked;
        self.ack_requested
            || self.fetched != fetched
            || self.consumed.wrapping_sub(consumed) >= WINDOW / 4
    }

    pub(crate) fn is_ack_due(&self, now: Instant) -> bool {
        self.is_ack_pending() || self.due.is_some_and(|due| due <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: Kind, bytes: usize) -> Queued {
        Queued {
            kind,
            words: [0; 6],
            payload: vec![0; bytes],
        }
    }

    const LIMITS: Coalescing = Coalescing {
        in_flight: 4,
        message_bytes: ENTRY as u64 + 100,
        messages: 8,
        bytes: 3 * (ENTRY as u64 + 100),
    };
    const SHORT: (Kind, usize) = (Kind::Inline, 1);

    /// How many messages go in each frame.
    fn frames(messages: impl IntoIterator<Item = (Kind, usize)>, in_flight: u32) -> Vec<usize> {
        let mut sending = Sending::default();
        for (kind, bytes) in messages {
            sending.push_queued(message(kind, bytes));
        }
        sending.sequence = in_flight;
        let mut frames = Vec::new();
        while !sending.queue.is_empty() && sending.has_credit() {
            let count = sending.pop_frame(LIMITS).len();
            sending.sequence += count as u32;
            frames.push(count);
        }
        frames
    }

    #[test]
    fn messages_that_wait_share_a_frame_if_they_are_short_and_there_is_credit() {
        let (most, long) = ((Kind::Inline, 100), (Kind::Inline, 101));
        assert_eq!(frames([SHORT; 3], 0), [3]);
        assert_eq!(frames([SHORT; 10], 0), [8, 2]);
        assert_eq!(frames([SHORT; 10], WINDOW - 5), [5]);
        assert_eq!(frames([SHORT; 10], WINDOW), []);
        assert_eq!(frames([SHORT, SHORT, long, SHORT], 0), [2, 1, 1]);
        let mixed = [SHORT, (Kind::Rendezvous, 24), SHORT, SHORT];
        assert_eq!(frames(mixed, 0), [1, 1, 2]);
        assert_eq!(frames([most; 7], 0), [3, 3, 1]);
    }

    fn arrived(number: u32) -> BufferedMessage {
        BufferedMessage {
            buffer: number,
            words: [0; 6],
            offset: 0,
            length: 0,
            body: None,
        }
    }

    /// How many messages wait until all are sent.
    fn waiting(peer: &mut Peer, kind: Kind, bytes: u64) -> usize {
        while peer.may_coalesce(LIMITS, kind, bytes) {
            peer.sending.push_queued(message(kind, bytes as usize));
        }
        peer.sending.queue.len()
    }

    fn peer() -> Peer {
        let process = ProcessId::new(1, 1);
        Peer::new(process, 0, History::default(), Instant::now())
    }

    #[test]
    fn a_message_waits_for_more_until_they_fill_a_frame() {
        for (kind, bytes, expected) in [
            (Kind::Inline, 1, 7),
            (Kind::Inline, 100, 2),
            (Kind::Inline, 101, 0),
            (Kind::Rendezvous, 24, 0),
        ] {
            let mut peer = peer();
            peer.sending.sequence = LIMITS.in_flight;
            let waiting = waiting(&mut peer, kind, bytes);
            assert_eq!(waiting, expected, "{kind:?} of {bytes}; one more is sent");
        }
    }

    #[test]
    fn an_answer_waits_for_those_to_the_messages_that_have_arrived_behind() {
        let mut peer = peer();
        assert_eq!(
            waiting(&mut peer, Kind::Inline, 1),
            0,
            "nothing is in flight"
        );
        peer.receiving.inbox.push_back(Item::Message(arrived(0)));
        assert_eq!(
            waiting(&mut peer, Kind::Inline, 1),
            0,
            "it answers the last"
        );
        peer.receiving.inbox.push_back(Item::Message(arrived(1)));
        assert_eq!(waiting(&mut peer, Kind::Inline, 1), 7);
    }

    #[test]
    fn what_leaves_the_queue_is_not_counted() {
        let mut sending = Sending::default();
        for _ in 0..10 {
            sending.push_queued(message(Kind::Inline, 1));
        }
        let taken = sending.pop_frame(LIMITS);
        let counted = (sending.memory, sending.batched);
        assert_eq!(taken.len(), 8);
        taken
            .into_iter()
            .rev()
            .for_each(|one| sending.put_back(one));
        assert_eq!(sending.batched, 10 * batched(1));
        sending.pop_frame(LIMITS);
        assert_eq!((sending.memory, sending.batched), counted);
        sending.pop_frame(LIMITS);
        assert_eq!((sending.memory, sending.batched), (0, 0));
    }

    #[test]
    fn what_messages_may_wait_behind_requests_an_acknowledgement() {
        let mut sending = Sending::default();
        for before in 0..2 * LIMITS.in_flight {
            sending.sequence = before;
            assert!(!sending.requests_ack(LIMITS, 0), "it holds no message");
            let begins = before + 1 == LIMITS.in_flight;
            assert_eq!(sending.requests_ack(LIMITS, 1), begins, "behind {before}");
            assert!(sending.requests_ack(LIMITS, 2));
        }
        // It is consumed to the last one, and acknowledged for that.
        assert!(!sending.requests_ack(LIMITS, LIMITS.messages as u8));
    }

    #[test]
    fn messages_ahead_of_their_turn_follow_the_one_that_was_missing() {
        let mut receiving = Receiving {
            arrived: u32::MAX,
            ..Receiving::default()
        };
        for number in [0, 1, 3] {
            receiving.early.insert(number, arrived(number));
        }
        receiving.take_in_order(arrived(u32::MAX));
        let order = receiving.inbox.iter().map(|item| match item {
            Item::Message(message) => message.buffer,
            Item::Lost => panic!("nobody is lost"),
        });
        assert_eq!(order.collect::<Vec<_>>(), [u32::MAX, 0, 1]);
        assert_eq!((receiving.arrived, receiving.early.len()), (2, 1));
    }
}
