//! The receiving half: datagrams from the socket, authenticated, their payloads checked.
//!
//! ```text
//!   Socket ──▶ RecvBuffer ──▶ one datagram ──▶ key right? payload sound? ──▶ header, payload
//!      └─────▶ a stream's place, if its next part is the next datagram ──────────┘
//! ```
//!
//! What a header means is the endpoint's business; what becomes of a payload is
//! [`Inbound`](crate::inbound::Inbound)'s.

use crate::checksum::checksum;
use crate::gro::GroPolicy;
use crate::inbound::ExpectedPart;
use crate::recv_buffer::RecvBuffer;
use crate::socket::Socket;
use lintel_claim::Claim;
use lintel_memory::{length, parts};
use lintel_reliable::{FURTHER_BYTES, Header, Key, Kind, MAX_HEADER_BYTES, Refusal};
use std::io;

/// Datagrams that were dropped before the endpoint saw them, and all that arrived.
#[derive(Clone, Copy, Default)]
pub(crate) struct Arrivals {
    pub(crate) total: u64,
    pub(crate) forged: u64,
    pub(crate) malformed: u64,
    pub(crate) damaged: u64,
}

/// The receiving half of the socket: reads datagrams and authenticates them.
pub(crate) struct Inlet {
    recv_buffer: RecvBuffer,
    gro: GroPolicy,
    arrivals: Arrivals,
    /// This process closes: only acknowledgements matter.
    is_closed: bool,
}

impl Inlet {
    pub(crate) fn new() -> Inlet {
        Inlet {
            recv_buffer: RecvBuffer::new(),
            gro: GroPolicy::default(),
            arrivals: Arrivals::default(),
            is_closed: false,
        }
    }

    /// Data that arrives from now on counts as an acknowledgement only.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(crate) fn arrivals(&self) -> Arrivals {
        self.arrivals
    }

    /// Bytes of memory of its buffers.
    pub(crate) fn bytes(&self) -> u64 {
        self.recv_buffer.bytes()
    }

    /// Whether every datagram that was received has been taken.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.recv_buffer.is_empty()
    }

    /// Whether a poll right behind a datagram had better be saved.
    #[inline]
    pub(crate) fn expects_nothing(&mut self) -> bool {
        self.gro.expect_nothing()
    }

    /// Receives what is next in the socket.
    #[inline]
    pub(crate) fn receive(&mut self, socket: &Socket) -> io::Result<()> {
        self.recv_buffer.receive(socket, &mut self.gro)
    }

    /// As [`receive`](Self::receive), with the payload straight into `place`.
    pub(crate) fn receive_around(&mut self, socket: &Socket, place: &[Claim]) -> io::Result<()> {
        self.recv_buffer
            .receive_around(socket, &mut self.gro, place)
    }

    /// Bytes of payload of the datagram that is next in the socket, if it is the expected
    /// part; 0 if it is another one.
    pub(crate) fn peek_part(
        &mut self,
        socket: &Socket,
        expected: Option<ExpectedPart>,
    ) -> io::Result<u64> {
        let mut beginning = [0; FURTHER_BYTES];
        let length = socket.peek(&mut self.gro, &mut beginning)?;
        let known = &beginning[..length.min(FURTHER_BYTES)];
        let part = expected.and_then(|part| part.parse(known, length, socket.key()));
        Ok(part.map_or(0, |header| header.datagram_bytes() - header.bytes()) as u64)
    }

    /// Whether the next datagram was received around a place.
    #[inline]
    pub(crate) fn has_hole(&self) -> bool {
        self.recv_buffer.has_hole()
    }

    /// The datagram that was received around a place, if it is the expected part and its
    /// payload is sound, and the payload bytes that lie in the place. Otherwise the whole
    /// datagram is in the buffer afterwards.
    pub(crate) fn pop_in_place(
        &mut self,
        key: &Key,
        expected: Option<ExpectedPart>,
    ) -> Option<(Header, u64)> {
        let found = expected.and_then(|part| self.sound_in_place(key, &part));
        if found.is_none() {
            self.recv_buffer.fill_hole();
            return None;
        }
        self.arrivals.total += 1;
        self.recv_buffer.pop_all();
        found
    }

    fn sound_in_place(&self, key: &Key, expected: &ExpectedPart) -> Option<(Header, u64)> {
        let (header, place, behind) = self.recv_buffer.around_hole()?;
        let mut beginning = [0; FURTHER_BYTES];
        header.read(&mut beginning);
        let header = expected.parse(&beginning, self.recv_buffer.length() as usize, key)?;
        let Kind::Data(fragment) = header.kind else {
            return None;
        };
        let mut payload = Vec::with_capacity(place.len() + 1);
        payload.extend(parts(place, 0, fragment.length.into()));
        let placed = length(&payload);
        payload.push(behind);
        let sum = fragment.checksum;
        let is_sound = sum.is_none_or(|sum| sum == checksum(&payload));
        is_sound.then_some((header, placed))
    }

    /// Forgets a place that was lent to the kernel, whose lease is recalled.
    pub(crate) fn forget_place(&mut self) {
        self.recv_buffer.forget_place();
    }

    /// As [`pop`](Self::pop), where it isn't worth a copy of its code.
    #[inline(never)]
    pub(crate) fn pop_apart(&mut self, key: &Key) -> Option<(Header, Claim)> {
        self.pop(key)
    }

    /// The next datagram, if it is a packet under the job's key with a sound payload.
    #[inline(always)]
    pub(crate) fn pop(&mut self, key: &Key) -> Option<(Header, Claim)> {
        self.arrivals.total += 1;
        let datagram = self.recv_buffer.pop();
        let opened = self.open(&datagram, key);
        if opened.is_none() {
            self.gro.on_refused();
        }
        opened
    }

    #[inline(always)]
    fn open(&mut self, datagram: &Claim, key: &Key) -> Option<(Header, Claim)> {
        let mut beginning = [0; MAX_HEADER_BYTES];
        let count = datagram.read(&mut beginning);
        let parsed = Header::parse(&beginning[..count], datagram.len() as usize, key);
        let (mut header, ahead) = match parsed {
            Ok(parsed) => parsed,
            Err(Refusal::Forged) => {
                self.arrivals.forged += 1;
                return None;
            }
            Err(Refusal::Malformed) => {
                self.arrivals.malformed += 1;
                return None;
            }
        };
        let payload = datagram.slice(ahead as u64, u64::MAX);
        if self.is_closed && matches!(header.kind, Kind::Data(_)) {
            header.kind = Kind::Ack;
        }
        if let Kind::Data(fragment) = &header.kind {
            let sum = fragment.checksum;
            if sum.is_some_and(|sum| sum != checksum(&[payload])) {
                self.arrivals.damaged += 1;
                return None;
            }
        }
        Some((header, payload))
    }
}
