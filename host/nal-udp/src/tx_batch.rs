//! The sending half: seals datagrams and hands them to the socket, several at a time if they
//! are of one length and to one receiver (`UDP_SEGMENT`, generic segmentation offload).

use crate::body::{Body, SMALL};
use crate::checksum::{checksum, checksum_of};
use crate::connected_sockets::ConnectedSockets;
use crate::faults::{FaultRng, Faults};
use crate::socket::{Socket, send_bytes};
use lintel_claim::{Claim, MAX_PIECES, Region, copy_vectored, send_datagram};
use lintel_reliable::{Header, Kind, MAX_HEADER_BYTES, PayloadRange, Transmit};
use lintel_types::ProcessId;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

/// Datagrams that the kernel takes in one call (`UDP_MAX_SEGMENTS` of its first versions),
/// and bytes of them.
const MAX_GSO_SEGMENTS: usize = 64;
const MAX_GSO_BYTES: u64 = 65_000;
/// Bytes of the longest header with a small body behind it.
const HEADER_SLOT: usize = MAX_HEADER_BYTES + SMALL;

/// What became of a batch of datagrams.
pub(crate) enum SendOutcome {
    /// They left, or were lost on purpose.
    Sent,
    /// The kernel can't send them as a batch: they are to be sent one by one.
    Retry,
    /// The socket is full.
    WouldBlock,
    /// The kernel has reported an error of an earlier datagram instead of sending.
    PendingErrors,
    /// The same, and the earlier datagram to this process was refused.
    Refused(ProcessId),
    /// There is no route to their receiver.
    Unreachable(ProcessId, io::Error),
}

/// The datagrams to be sent by the next system call.
pub(crate) struct TxBatch {
    connected: ConnectedSockets,
    /// Sealed headers of the batch, with small bodies behind them, a slot each.
    headers: Region,
    /// The batch: its headers, where its bytes are, and how many.
    gso_batch: Vec<Header>,
    pieces: Vec<Claim>,
    bytes: u64,
    /// A datagram that is sent by itself.
    alone: [u8; HEADER_SLOT],
    /// Headers of the last batch that didn't leave.
    failed: Vec<Header>,
    /// A copy of the payload that is retransmitted.
    payload_copy: Region,
    fault_rng: Option<FaultRng>,
    /// The kernel and the device take batches.
    has_gso: bool,
    /// Datagrams that the system had no room for, or no route.
    pub(crate) failures: u64,
}

impl TxBatch {
    pub(crate) fn new(node: Ipv4Addr, faults: Option<Faults>) -> TxBatch {
        TxBatch {
            connected: ConnectedSockets::new(node),
            headers: Region::new((MAX_GSO_SEGMENTS * HEADER_SLOT) as u64),
            gso_batch: Vec::new(),
            pieces: Vec::new(),
            bytes: 0,
            alone: [0; HEADER_SLOT],
            failed: Vec::new(),
            payload_copy: Region::new(0),
            fault_rng: faults.map(FaultRng::new),
            has_gso: true,
            failures: 0,
        }
    }

    /// Adds a datagram to the batch, after which [`transmit`](Self::transmit) is due. If it
    /// doesn't fit, the batch is sent before; returns what became of that. A short one that
    /// nothing goes along with is sent at once.
    #[inline]
    pub(crate) fn push(
        &mut self,
        socket: &Socket,
        mut transmit: Transmit<'_, Body>,
    ) -> Option<SendOutcome> {
        if transmit.is_last && self.gso_batch.is_empty() && self.fault_rng.is_none() {
            let header = &mut transmit.header;
            match &transmit.payload {
                None => return Some(self.send_alone(socket, header, None)),
                Some(PayloadRange {
                    body: Body::Small(bytes),
                    offset: 0,
                    length,
                    ..
                }) => {
                    let body = Some((bytes, *length as usize));
                    return Some(self.send_alone(socket, header, body));
                }
                Some(_) => {}
            }
        }
        let outcome = match self.fits(&transmit) {
            true => None,
            false => self.transmit(socket),
        };
        self.add(socket, transmit);
        outcome
    }

    /// Sends a datagram with that many bytes of a small body.
    #[inline]
    fn send_alone(
        &mut self,
        socket: &Socket,
        header: &mut Header,
        body: Option<(&[u8; SMALL], usize)>,
    ) -> SendOutcome {
        let to = header.destination;
        if let (Some((bytes, length)), Kind::Data(fragment)) = (body, &mut header.kind) {
            let sum = || checksum_of(&bytes[..length]);
            fragment.checksum = (!is_within(to)).then(sum);
        }
        let (beginning, _) = self
            .alone
            .split_first_chunk_mut()
            .expect("it has that length");
        let ahead = header.seal(socket.key(), beginning);
        let length = body.map_or(0, |(bytes, length)| {
            // All of it: to copy a length that is known takes no call.
            self.alone[ahead..ahead + SMALL].copy_from_slice(bytes);
            length
        });
        let datagram = &self.alone[..ahead + length];
        let sent = match self.connected.to(to) {
            Some(connected) => send_bytes(connected, datagram),
            None => socket.send_bytes(to, datagram),
        };
        match sent {
            Ok(()) => SendOutcome::Sent,
            Err(error) => {
                self.failed.clear();
                self.failed.push(*header);
                self.on_error(to, error, false)
            }
        }
    }

    fn fits(&self, transmit: &Transmit<'_, Body>) -> bool {
        let Some(first) = self.gso_batch.first() else {
            return true;
        };
        let length = transmit.header.datagram_bytes();
        let is_retransmit = transmit
            .payload
            .as_ref()
            .is_some_and(|place| place.retransmitted);
        let pieces = match &transmit.payload {
            Some(place) => place.body.max_pieces(),
            None => 0,
        };
        self.has_gso
            && self.fault_rng.is_none()
            && !is_retransmit
            && first.destination == transmit.header.destination
            && first.datagram_bytes() == length
            && self.gso_batch.len() < MAX_GSO_SEGMENTS
            && self.bytes + length as u64 <= MAX_GSO_BYTES
            && self.pieces.len() + pieces < MAX_PIECES
    }

    #[inline]
    fn add(&mut self, socket: &Socket, mut transmit: Transmit<'_, Body>) {
        let slot = (self.gso_batch.len() * HEADER_SLOT) as u64;
        let at = self.pieces.len();
        self.pieces.push(Claim::empty());
        let mut slot_bytes = [0; HEADER_SLOT];
        let mut small = &[][..];
        if let (Some(place), Kind::Data(fragment)) = (&transmit.payload, &mut transmit.header.kind)
        {
            small = self.gather(place);
            if self.fault_rng.is_some() || !is_within(transmit.header.destination) {
                fragment.checksum = Some(match small {
                    [] => checksum(&self.pieces[at + 1..]),
                    small => checksum_of(small),
                });
            }
        }
        let (header, _) = slot_bytes
            .split_first_chunk_mut()
            .expect("it has that length");
        let ahead = transmit.header.seal(socket.key(), header);
        slot_bytes[ahead..ahead + small.len()].copy_from_slice(small);
        self.headers.write(slot, &slot_bytes[..ahead + small.len()]);
        let length = (ahead + small.len()) as u64;
        self.pieces[at] = self.headers.claim().slice(slot, length);
        self.bytes += transmit.header.datagram_bytes() as u64;
        self.gso_batch.push(transmit.header);
    }

    /// Adds the payload to the pieces; returns it instead if it is a small body.
    #[inline]
    fn gather<'b>(&mut self, place: &PayloadRange<'b, Body>) -> &'b [u8] {
        if let Body::Small(bytes) = place.body {
            return &bytes[place.offset as usize..][..place.length as usize];
        }
        let (at, length) = (self.pieces.len(), place.length.into());
        place.body.part(place.offset, length, &mut self.pieces);
        // `sendmsg` takes only a limited number of pieces (IOV_MAX).
        if place.retransmitted || self.pieces.len() > MAX_PIECES {
            self.copy_payload(at, length);
        }
        &[]
    }

    /// Copies the payload, whose pieces begin at `at`. A user may change memory between the
    /// checksum and the kernel's copy, and the receiver drops the datagram; the retransmitted
    /// copy can't fail so.
    #[cold]
    fn copy_payload(&mut self, at: usize, length: u64) {
        if self.payload_copy.len() < length {
            self.payload_copy = Region::new(length);
        }
        let copy = self.payload_copy.claim().slice(0, length);
        copy_vectored(&self.pieces[at..], &[copy]);
        self.pieces.truncate(at);
        self.pieces.push(copy);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.gso_batch.is_empty()
    }

    /// Sends the batch, if it isn't empty.
    #[inline]
    pub(crate) fn transmit(&mut self, socket: &Socket) -> Option<SendOutcome> {
        let first = self.gso_batch.first()?;
        let to = first.destination;
        let segment = (self.gso_batch.len() > 1).then(|| first.datagram_bytes() as u16);
        let sent = match self.fault_rng {
            None => self.send(socket, to, segment),
            Some(_) => self.send_with_faults(socket, to),
        };
        if matches!(sent, SendOutcome::Sent) {
            self.gso_batch.clear();
        } else {
            self.failed.clear();
            self.failed.append(&mut self.gso_batch);
        }
        self.pieces.clear();
        self.bytes = 0;
        Some(sent)
    }

    /// The datagrams that didn't leave, after any outcome but [`SendOutcome::Sent`].
    pub(crate) fn unsent(&self) -> &[Header] {
        &self.failed
    }

    #[inline]
    fn send(&mut self, socket: &Socket, to: ProcessId, segment: Option<u16>) -> SendOutcome {
        let sent = match self.connected.to(to) {
            Some(connected) => send_datagram(connected.as_fd(), None, &self.pieces, segment),
            None => socket.send(to, &self.pieces, segment),
        };
        match sent {
            Ok(()) => SendOutcome::Sent,
            Err(error) => self.on_error(to, error, segment.is_some()),
        }
    }

    #[cold]
    fn on_error(&mut self, to: ProcessId, error: io::Error, is_batch: bool) -> SendOutcome {
        let was_connected = self.connected.to(to).is_some();
        if error.kind() == io::ErrorKind::WouldBlock {
            self.failures += 1;
            return SendOutcome::WouldBlock;
        }
        self.connected.close(to);
        match error.kind() {
            io::ErrorKind::ConnectionRefused if was_connected => SendOutcome::Refused(to),
            io::ErrorKind::ConnectionRefused => SendOutcome::PendingErrors,
            _ if is_batch => {
                // A device or kernel without segmentation offload.
                self.has_gso = false;
                SendOutcome::Retry
            }
            io::ErrorKind::OutOfMemory | io::ErrorKind::Interrupted => {
                self.failures += 1;
                SendOutcome::Sent // As if the network had lost it.
            }
            _ => {
                self.failures += 1;
                SendOutcome::Unreachable(to, error)
            }
        }
    }

    #[cold]
    fn send_with_faults(&mut self, socket: &Socket, to: ProcessId) -> SendOutcome {
        let Some(fault_rng) = &mut self.fault_rng else {
            return SendOutcome::Sent;
        };
        let mut sent = Ok(());
        for _ in 0..fault_rng.copies_to_send(to, &self.pieces) {
            sent = sent.and(socket.send(to, &self.pieces, None));
        }
        self.pass_delayed(socket);
        match sent {
            Ok(()) => SendOutcome::Sent,
            Err(error) => self.on_error(to, error, false),
        }
    }

    /// Sockets open for sending alone.
    pub(crate) fn sockets(&self) -> u64 {
        self.connected.len() as u64
    }

    /// Brings what is delayed on purpose one step nearer to its time.
    #[inline]
    pub(crate) fn pass_delayed(&mut self, socket: &Socket) {
        if let Some(fault_rng) = &mut self.fault_rng {
            fault_rng.pass(|to, pieces| {
                let _ = socket.send(to, pieces, None);
            });
        }
    }

    /// Sends what is delayed on purpose now.
    pub(crate) fn release_delayed(&mut self, socket: &Socket) {
        while self
            .fault_rng
            .as_ref()
            .is_some_and(|fault_rng| !fault_rng.is_clear())
        {
            self.pass_delayed(socket);
        }
    }
}

/// Whether datagrams to that process never leave this machine: the kernel copies them
/// from memory to memory, without a checksum.
fn is_within(process: ProcessId) -> bool {
    Ipv4Addr::from(process.nid).is_loopback()
}
