//! Seals datagrams and hands them to the socket, several at a time where they are alike.

use crate::body::{Body, SMALL};
use crate::faults::{Dice, Faults};
use crate::lines::Lines;
use crate::socket::Socket;
use crc_fast::{CrcAlgorithm, Digest};
use lintel_claim::{Claim, MOST_PIECES, Region, copy_vectored, send_datagram};
use lintel_reliable::{Header, Key, Kind, MAX_HEADER_BYTES, PayloadRange, Transmit};
use lintel_types::ProcessId;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

/// Datagrams that the kernel takes at once (`UDP_MAX_SEGMENTS` of its early versions), and
/// bytes of them.
const MOST_CARS: usize = 64;
const MOST_BYTES: u64 = 65_000;
/// Bytes of a header with a small body behind it.
const FRONT: usize = MAX_HEADER_BYTES + SMALL;

/// What became of datagrams.
pub(crate) enum SendOutcome {
    /// They are on their way (or lost on purpose).
    Gone,
    /// They are to be sent again, in another way.
    Again,
    /// The socket is full.
    NoRoom,
    /// The system had to report on earlier ones first.
    Reports,
    /// The system had to say first that an earlier one found nobody there.
    Refused(ProcessId),
    /// There is no way to their receiver.
    NoWay(ProcessId, io::Error),
}

/// The way out.
///
/// Datagrams to one receiver that have the same length form a train: one system call
/// sends them all (`UDP_SEGMENT`), and one may receive them (`UDP_GRO`).
pub(crate) struct Outlet {
    pub(crate) socket: Socket,
    lines: Lines,
    pub(crate) key: Key,
    /// Headers and small bodies of the train at hand, in slots.
    fronts: Region,
    /// The train: its headers, where its bytes are, and how many.
    train: Vec<Header>,
    pieces: Vec<Claim>,
    bytes: u64,
    /// Headers of the train that didn't leave.
    failed: Vec<Header>,
    /// A copy of what is sent again.
    frozen: Region,
    dice: Option<Dice>,
    /// The system takes trains.
    has_trains: bool,
    pub(crate) failures: u64,
}

impl Outlet {
    pub(crate) fn new(socket: Socket, key: &[u8; 32], faults: Option<Faults>) -> Outlet {
        Outlet {
            lines: Lines::new(socket.process().nid.into()),
            socket,
            key: Key::new(key),
            fronts: Region::new((MOST_CARS * FRONT) as u64),
            train: Vec::new(),
            pieces: Vec::new(),
            bytes: 0,
            failed: Vec::new(),
            frozen: Region::new(0),
            dice: faults.map(Dice::new),
            has_trains: true,
            failures: 0,
        }
    }

    /// Adds a datagram to the train, after which [`depart`](Self::depart) is due. Where it
    /// doesn't belong there, the train departs before; tells what became of that.
    #[inline]
    pub(crate) fn load(&mut self, transmit: Transmit<'_, Body>) -> Option<SendOutcome> {
        let departed = match self.takes(&transmit) {
            true => None,
            false => self.depart(),
        };
        self.add(transmit);
        departed
    }

    fn takes(&self, transmit: &Transmit<'_, Body>) -> bool {
        let Some(first) = self.train.first() else {
            return true;
        };
        let length = transmit.header.datagram_bytes();
        let again = transmit
            .payload
            .as_ref()
            .is_some_and(|place| place.retransmitted);
        let pieces = match &transmit.payload {
            Some(place) => place.body.most_pieces(),
            None => 0,
        };
        self.has_trains
            && self.dice.is_none()
            && !again
            && first.destination == transmit.header.destination
            && first.datagram_bytes() == length
            && self.train.len() < MOST_CARS
            && self.bytes + length as u64 <= MOST_BYTES
            && self.pieces.len() + pieces < MOST_PIECES
    }

    #[inline]
    fn add(&mut self, mut transmit: Transmit<'_, Body>) {
        let slot = (self.train.len() * FRONT) as u64;
        let at = self.pieces.len();
        self.pieces.push(Claim::empty());
        let mut front = [0; FRONT];
        let mut small = &[][..];
        if let (Some(place), Kind::Data(fragment)) = (&transmit.payload, &mut transmit.header.kind)
        {
            small = self.gather(place);
            if self.dice.is_some() || !is_within(transmit.header.destination) {
                fragment.checksum = Some(match small {
                    [] => checksum(&self.pieces[at + 1..]),
                    small => checksum_of(small),
                });
            }
        }
        let (header, _) = front.split_first_chunk_mut().expect("it has that length");
        let ahead = transmit.header.seal(&self.key, header);
        front[ahead..ahead + small.len()].copy_from_slice(small);
        self.fronts.write(slot, &front[..ahead + small.len()]);
        let length = (ahead + small.len()) as u64;
        self.pieces[at] = self.fronts.claim().slice(slot, length);
        self.bytes += transmit.header.datagram_bytes() as u64;
        self.train.push(transmit.header);
    }

    /// Adds what lies in claims to the pieces; gives what doesn't.
    #[inline]
    fn gather<'b>(&mut self, place: &PayloadRange<'b, Body>) -> &'b [u8] {
        if let Body::Small(bytes) = place.body {
            return &bytes[place.offset as usize..][..place.length as usize];
        }
        let (at, length) = (self.pieces.len(), place.length.into());
        place.body.part(place.offset, length, &mut self.pieces);
        // The kernel takes only so many pieces.
        if place.retransmitted || self.pieces.len() > MOST_PIECES {
            self.freeze(at, length);
        }
        &[]
    }

    /// Copies the payload, whose pieces begin at `at`. What didn't arrive may have been
    /// changed by its user between the sum and the kernel's copy; its second try can't
    /// fail so.
    #[cold]
    fn freeze(&mut self, at: usize, length: u64) {
        if self.frozen.len() < length {
            self.frozen = Region::new(length);
        }
        let copy = self.frozen.claim().slice(0, length);
        copy_vectored(&self.pieces[at..], &[copy]);
        self.pieces.truncate(at);
        self.pieces.push(copy);
    }

    /// Sends the train, if there is one.
    #[inline]
    pub(crate) fn depart(&mut self) -> Option<SendOutcome> {
        let first = self.train.first()?;
        let to = first.destination;
        let segment = (self.train.len() > 1).then(|| first.datagram_bytes() as u16);
        let sent = match self.dice {
            None => self.send(to, segment),
            Some(_) => self.send_with_faults(to),
        };
        if matches!(sent, SendOutcome::Gone) {
            self.train.clear();
        } else {
            self.failed.clear();
            self.failed.append(&mut self.train);
        }
        self.pieces.clear();
        self.bytes = 0;
        Some(sent)
    }

    /// The datagrams that didn't leave when something else than [`SendOutcome::Gone`] was told.
    pub(crate) fn unsent(&self) -> &[Header] {
        &self.failed
    }

    #[inline]
    fn send(&mut self, to: ProcessId, segment: Option<u16>) -> SendOutcome {
        let sent = match self.lines.to(to) {
            Some(line) => send_datagram(line.as_fd(), None, &self.pieces, segment),
            None => self.socket.send(to, &self.pieces, segment),
        };
        match sent {
            Ok(()) => SendOutcome::Gone,
            Err(error) => self.on_error(to, error, segment.is_some()),
        }
    }

    #[cold]
    fn on_error(&mut self, to: ProcessId, error: io::Error, in_train: bool) -> SendOutcome {
        let had_line = self.lines.to(to).is_some();
        if error.kind() == io::ErrorKind::WouldBlock {
            self.failures += 1;
            return SendOutcome::NoRoom;
        }
        self.lines.cut(to);
        match error.kind() {
            io::ErrorKind::ConnectionRefused if had_line => SendOutcome::Refused(to),
            io::ErrorKind::ConnectionRefused => SendOutcome::Reports,
            _ if in_train => {
                // A device or kernel that doesn't know them.
                self.has_trains = false;
                SendOutcome::Again
            }
            io::ErrorKind::OutOfMemory | io::ErrorKind::Interrupted => {
                self.failures += 1;
                SendOutcome::Gone // As if the network had lost it.
            }
            _ => {
                self.failures += 1;
                SendOutcome::NoWay(to, error)
            }
        }
    }

    #[cold]
    fn send_with_faults(&mut self, to: ProcessId) -> SendOutcome {
        let Some(dice) = &mut self.dice else {
            return SendOutcome::Gone;
        };
        let mut sent = Ok(());
        for _ in 0..dice.throw(to, &self.pieces) {
            sent = sent.and(self.socket.send(to, &self.pieces, None));
        }
        self.pass_delayed();
        match sent {
            Ok(()) => SendOutcome::Gone,
            Err(error) => self.on_error(to, error, false),
        }
    }

    /// Sockets open for sending and receiving.
    pub(crate) fn sockets(&self) -> u64 {
        1 + self.lines.len() as u64
    }

    /// Lets what is sent late on purpose come nearer to its time.
    #[inline]
    pub(crate) fn pass_delayed(&mut self) {
        if let Some(dice) = &mut self.dice {
            dice.pass(|to, pieces| {
                let _ = self.socket.send(to, pieces, None);
            });
        }
    }

    /// Sends what is sent late on purpose now.
    pub(crate) fn release_delayed(&mut self) {
        while self.dice.as_ref().is_some_and(|dice| !dice.is_clear()) {
            self.pass_delayed();
        }
    }
}

/// Whether datagrams to that process never leave this machine: the kernel copies them
/// from memory to memory and sums nothing either.
fn is_within(process: ProcessId) -> bool {
    Ipv4Addr::from(process.nid).is_loopback()
}

/// CRC-32C of what lies in claims.
pub(crate) fn checksum(pieces: &[Claim]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    for piece in pieces {
        piece.each_part(|part| digest.update(part));
    }
    digest.finalize() as u32
}

fn checksum_of(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}
