//! Seals datagrams and hands them to the socket.

use crate::body::{Body, SMALL};
use crate::faults::{Dice, Faults};
use crate::lines::Lines;
use crate::socket::Socket;
use crc_fast::{CrcAlgorithm, Digest};
use lintel_claim::{Claim, Region, copy_vectored, send_connected};
use lintel_reliable::{Key, Kind, MAX_HEADER_BYTES, Place, Transmit};
use lintel_types::ProcessId;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

/// What became of a datagram.
pub(crate) enum Sent {
    /// It is on its way (or lost on purpose).
    Gone,
    /// The socket is full.
    NoRoom,
    /// The system had to report on earlier ones first.
    Reports,
    /// The system had to say first that an earlier one found nobody at its receiver.
    Refused,
    /// There is no way to its receiver.
    NoWay(io::Error),
}

/// The way out.
pub(crate) struct Outlet {
    pub(crate) socket: Socket,
    lines: Lines,
    pub(crate) key: Key,
    /// Header and small body of the datagram at hand.
    front: Region,
    pieces: Vec<Claim>,
    /// A copy of what is sent again.
    frozen: Region,
    dice: Option<Dice>,
    pub(crate) unsent: u64,
}

impl Outlet {
    pub(crate) fn new(socket: Socket, key: &[u8; 32], faults: Option<Faults>) -> Outlet {
        Outlet {
            lines: Lines::new(socket.process().nid.into()),
            socket,
            key: Key::new(key),
            front: Region::new((MAX_HEADER_BYTES + SMALL) as u64),
            pieces: Vec::new(),
            frozen: Region::new(0),
            dice: faults.map(Dice::new),
            unsent: 0,
        }
    }

    #[inline]
    pub(crate) fn send(&mut self, mut transmit: Transmit<'_, Body>) -> Sent {
        let to = transmit.header.destination;
        self.pieces.clear();
        self.pieces.push(Claim::empty());
        let mut front = [0; MAX_HEADER_BYTES + SMALL];
        let mut small = &[][..];
        if let (Some(place), Kind::Data(fragment)) = (&transmit.payload, &mut transmit.header.kind)
        {
            small = self.gather(place);
            if self.dice.is_some() || !is_within(to) {
                fragment.checksum = Some(match small {
                    [] => checksum(&self.pieces),
                    small => checksum_of(small),
                });
            }
        }
        let (header, _) = front.split_first_chunk_mut().expect("it has that length");
        let ahead = transmit.header.seal(&self.key, header);
        front[ahead..ahead + small.len()].copy_from_slice(small);
        self.front.write(0, &front[..ahead + small.len()]);
        self.pieces[0] = self.front.claim().slice(0, (ahead + small.len()) as u64);
        self.send_pieces(to)
    }

    /// Adds what lies in claims to the pieces; gives what doesn't.
    #[inline]
    fn gather<'b>(&mut self, place: &Place<'b, Body>) -> &'b [u8] {
        if let Body::Small(bytes) = place.body {
            return &bytes[place.offset as usize..][..place.length as usize];
        }
        let length = place.length.into();
        place.body.part(place.offset, length, &mut self.pieces);
        if place.again {
            self.freeze(length);
        }
        &[]
    }

    /// Copies the payload. What didn't arrive may have been changed by its user between
    /// the sum and the kernel's copy; its second try can't fail so.
    #[cold]
    fn freeze(&mut self, length: u64) {
        if self.frozen.len() < length {
            self.frozen = Region::new(length);
        }
        let copy = self.frozen.claim().slice(0, length);
        copy_vectored(&self.pieces[1..], &[copy]);
        self.pieces.truncate(1);
        self.pieces.push(copy);
    }

    #[inline]
    fn send_pieces(&mut self, to: ProcessId) -> Sent {
        if self.dice.is_some() {
            return self.send_with_faults(to);
        }
        let Some(line) = self.lines.to(to) else {
            let sent = self.socket.send(to, &self.pieces);
            return sent.map_or_else(|error| self.on_error(error), |()| Sent::Gone);
        };
        match send_connected(line.as_fd(), &self.pieces) {
            Ok(()) => Sent::Gone,
            Err(error) => self.on_line_error(to, error),
        }
    }

    #[cold]
    fn on_line_error(&mut self, to: ProcessId, error: io::Error) -> Sent {
        if error.kind() != io::ErrorKind::WouldBlock {
            self.lines.cut(to);
        }
        match self.on_error(error) {
            Sent::Reports => Sent::Refused,
            sent => sent,
        }
    }

    /// Sockets open for sending and receiving.
    pub(crate) fn sockets(&self) -> u64 {
        1 + self.lines.len() as u64
    }

    #[cold]
    fn on_error(&mut self, error: io::Error) -> Sent {
        match error.kind() {
            io::ErrorKind::WouldBlock => {
                self.unsent += 1;
                Sent::NoRoom
            }
            io::ErrorKind::ConnectionRefused => Sent::Reports,
            io::ErrorKind::OutOfMemory | io::ErrorKind::Interrupted => {
                self.unsent += 1;
                Sent::Gone // As if the network had lost it.
            }
            _ => {
                self.unsent += 1;
                Sent::NoWay(error)
            }
        }
    }

    #[cold]
    fn send_with_faults(&mut self, to: ProcessId) -> Sent {
        let Some(dice) = &mut self.dice else {
            return Sent::Gone;
        };
        let mut sent = Ok(());
        for _ in 0..dice.throw(to, &self.pieces) {
            sent = sent.and(self.socket.send(to, &self.pieces));
        }
        self.pass_delayed();
        match sent {
            Ok(()) => Sent::Gone,
            Err(error) => self.on_error(error),
        }
    }

    /// Lets what is sent late on purpose come nearer to its time.
    #[inline]
    pub(crate) fn pass_delayed(&mut self) {
        if let Some(dice) = &mut self.dice {
            dice.pass(|to, pieces| {
                let _ = self.socket.send(to, pieces);
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
