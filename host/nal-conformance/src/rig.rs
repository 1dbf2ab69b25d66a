//! A network of a few members, and numbered messages on it.

use lintel_claim::{Claim, Lease, Region};
use lintel_nal::{Arrival, Nal, Origin, Outgoing, Payload, Unreachable};
use lintel_types::{AckRequest, Datatype, InterfaceNumber, Operation, PortalIndex, ProcessId};
use lintel_wire::{Message, Request, Verb, Words};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// A process on the network.
pub struct Member<N> {
    /// Identifier by which others reach it.
    pub name: ProcessId,
    /// What the suite drives on its behalf.
    pub nal: N,
}

/// Longer than anything here takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(10);
/// Sizes around every limit that a NAL may have.
pub(crate) const SIZES: [u64; 16] = [
    0,
    1,
    7,
    8,
    15,
    16,
    17,
    64,
    1000,
    4096,
    8191,
    8192,
    8193,
    9217,
    100_000,
    1 << 20,
];

pub(crate) struct Rig<N> {
    pub(crate) members: Vec<Member<N>>,
}

/// A message whose bytes are in place.
pub(crate) struct Received {
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) origin: Origin,
}

impl<N: Nal> Rig<N> {
    pub(crate) fn new(members: Vec<Member<N>>) -> Self {
        assert!(!members.is_empty(), "a network has a member");
        Rig { members }
    }

    /// A network of two, or of one that sends to itself: its first member and its last.
    pub(crate) fn pair(join: impl Fn(usize) -> Vec<Member<N>>) -> (Self, usize, usize) {
        let rig = Rig::new(join(2));
        let last = rig.members.len() - 1;
        (rig, 0, last)
    }

    /// A network of that many members, if there can be one.
    pub(crate) fn of(join: impl Fn(usize) -> Vec<Member<N>>, members: usize) -> Option<Self> {
        let rig = Rig::new(join(members));
        (rig.members.len() == members).then_some(rig)
    }

    pub(crate) fn name(&self, member: usize) -> ProcessId {
        self.members[member].name
    }

    pub(crate) fn nal(&mut self, member: usize) -> &mut N {
        &mut self.members[member].nal
    }

    pub(crate) fn send(&mut self, from: usize, to: usize, number: u64, body: Outgoing<'_>) {
        let name = self.name(to);
        self.try_send(from, name, number, body)
            .expect("the peer is there");
    }

    pub(crate) fn try_send(
        &mut self,
        from: usize,
        to: ProcessId,
        number: u64,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        self.nal(from).send(to, &words(number), body)
    }

    pub(crate) fn send_copied(&mut self, from: usize, to: usize, number: u64, bytes: &[u8]) {
        let region = region_of(bytes);
        let pieces = [region.claim()];
        self.send(from, to, number, copied(&pieces));
        // What was copied may be overwritten at once.
        region.write(0, &vec![0xee; bytes.len()]);
    }

    /// Polls as a thread does that sleeps on the descriptor.
    fn poll_once(&mut self, at: usize) -> Option<Arrival> {
        let nal = self.nal(at);
        if nal.is_idle() {
            nal.on_readable();
        }
        nal.next()
    }

    /// The next arrival at a member; all others send what is queued meanwhile.
    pub(crate) fn arrival(&mut self, at: usize) -> Arrival {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(arrival) = self.poll_once(at) {
                return arrival;
            }
            for member in &mut self.members {
                member.nal.flush();
                member.nal.wake_peers();
            }
            assert!(Instant::now() < until, "nothing arrives at member {at}");
            std::thread::yield_now();
        }
    }

    pub(crate) fn message(&mut self, at: usize) -> (Origin, u64, Payload) {
        match self.arrival(at) {
            Arrival::Message(origin, words, payload) => (origin, number_of(&words), payload),
            other => panic!("expected a message, not {other:?}"),
        }
    }

    /// The next message with all its bytes, however they are moved.
    pub(crate) fn receive(&mut self, at: usize, length: u64) -> Received {
        let place = Region::new(length);
        let (origin, number, payload) = self.message(at);
        let moved = self.move_into(at, origin, payload, &[place.claim()]);
        let mut bytes = vec![0; moved as usize];
        place.read(0, &mut bytes);
        Received {
            number,
            bytes,
            origin,
        }
    }

    /// Moves a message's bytes to their place, and finishes it; returns the number of
    /// bytes moved.
    pub(crate) fn move_into(
        &mut self,
        at: usize,
        origin: Origin,
        payload: Payload,
        place: &[Claim],
    ) -> u64 {
        let room = lintel_memory::length(place);
        match payload {
            Payload::Inline(claim) => {
                let moved = lintel_claim::copy_vectored(&[claim], place);
                self.nal(at).done(origin);
                moved
            }
            Payload::Lent(loan) => {
                let moved = self.nal(at).fetch(origin, &loan, place);
                self.nal(at).done(origin);
                moved.expect("lent bytes can be fetched")
            }
            Payload::Streamed(length) => {
                self.nal(at)
                    .receive_into(origin, lease().lend(place).keep());
                self.nal(at).done(origin);
                match self.arrival(at) {
                    Arrival::Streamed(whole) => assert_eq!(whole, origin),
                    other => panic!("expected the end of the stream, not {other:?}"),
                }
                length.min(room)
            }
            Payload::Placed => panic!("there is no direct entry"),
        }
    }

    /// No member has an arrival.
    pub(crate) fn assert_silence(&mut self) {
        for member in 0..self.members.len() {
            self.nal(member).flush();
            let arrival = self.poll_once(member);
            assert!(arrival.is_none(), "expected nothing, not {arrival:?}");
        }
    }

    /// Sends to a name that no process has: an error now, or a loss reported soon.
    pub(crate) fn assert_unreachable(&mut self, from: usize, absent: ProcessId) {
        if self.try_send(from, absent, 1, copied(&[])) == Err(Unreachable) {
            return;
        }
        match self.arrival_after_loss(from) {
            Arrival::Lost(process) => assert_eq!(process, absent),
            other => panic!("expected a loss, not {other:?}"),
        }
    }

    /// Until all that a member has sent is known to have reached its receivers.
    pub(crate) fn settle(&mut self, member: usize) {
        let until = Instant::now() + LIMIT;
        while self.nal(member).flush() || !self.nal(member).all_delivered() {
            self.members.iter_mut().for_each(|other| {
                other.nal.flush();
            });
            assert!(Instant::now() < until, "member {member} doesn't settle");
            std::thread::yield_now();
        }
    }

    /// Checks peers until something arrives.
    pub(crate) fn arrival_after_loss(&mut self, at: usize) -> Arrival {
        let until = Instant::now() + LIMIT;
        loop {
            self.nal(at).flush();
            self.nal(at).check_peers();
            if let Some(arrival) = self.poll_once(at) {
                return arrival;
            }
            assert!(Instant::now() < until, "no loss is reported to member {at}");
            std::thread::yield_now();
        }
    }
}

/// The lease of everything that is never recalled.
pub(crate) fn lease() -> &'static Lease {
    static LEASE: LazyLock<Lease> = LazyLock::new(Lease::new);
    &LEASE
}

pub(crate) fn copied(pieces: &[Claim]) -> Outgoing<'_> {
    Outgoing::Copied {
        operand: None,
        pieces,
    }
}

pub(crate) fn region_of(bytes: &[u8]) -> Region {
    let region = Region::new(bytes.len() as u64);
    region.write(0, bytes);
    region
}

/// Bytes that depend on the message's number and on their offset.
pub(crate) fn pattern(number: u64, length: u64) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

/// A well-formed message with a number; a NAL doesn't look inside.
pub(crate) fn words(number: u64) -> Words {
    let request = Request {
        verb: Verb::Put,
        interface: InterfaceNumber::new(true, true),
        ack: AckRequest::Full,
        referenced: false,
        portal: PortalIndex(0xfffe),
        token: u32::MAX,
        rank: u32::MAX,
        length: 1,
        operation: Operation::Mswap,
        datatype: Datatype::LongDoubleComplex,
        match_bits: u64::MAX,
        remote_offset: u64::MAX,
        hdr_data: number,
    };
    request.to_words()
}

/// The number of a message all of whose other words have arrived unchanged.
pub(crate) fn number_of(arrived: &Words) -> u64 {
    match Message::parse(arrived) {
        Ok(Message::Request(request)) => {
            assert_eq!(arrived[1..], words(request.hdr_data)[1..]);
            request.hdr_data
        }
        other => panic!("the words have changed: {other:?}"),
    }
}
