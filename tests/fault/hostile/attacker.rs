//! Makes datagrams that aren't the victim's, and sends them to it.

use crate::Processes;
use crate::recordings::{Recordings, address};
use lintel_claim::{Region, send_datagram};
use lintel_fault::random::Random;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;

/// A socket and recordings, but no key.
pub struct Attacker {
    socket: UdpSocket,
    victim: SocketAddrV4,
    recordings: Recordings,
    random: Random,
    datagram: Vec<u8>,
    gso_batch: Region,
}

/// Datagrams of a batch, and bytes of each, at most.
const MAX_GSO_SEGMENTS: u64 = 8;
const SEGMENT_BYTES: usize = 1400;
/// Where a recorded datagram's header ends, at the latest.
const HEADER: usize = 144;

impl Attacker {
    /// Binds the socket of the outsider; `seed` repeats the choices of a run.
    pub fn new(
        processes: &Processes,
        recordings: Recordings,
        seed: u64,
    ) -> Result<Attacker, String> {
        let socket = UdpSocket::bind(address(processes.outsider));
        Ok(Attacker {
            socket: socket.map_err(|why| format!("the attacker's socket: {why}"))?,
            victim: address(processes.victim),
            recordings,
            random: Random::new(seed),
            datagram: Vec::new(),
            gso_batch: Region::new(MAX_GSO_SEGMENTS * SEGMENT_BYTES as u64),
        })
    }

    /// Sends a datagram, or a batch of `most` at most; returns how many datagrams.
    pub fn send(&mut self, most: u64) -> Result<u64, String> {
        self.make();
        let segments = 1 + self.random.below(MAX_GSO_SEGMENTS.min(most));
        if (2..=SEGMENT_BYTES).contains(&self.datagram.len()) && self.below(8) == 0 && segments > 1
        {
            return self.send_batch(segments);
        }
        let sent = self.socket.send_to(&self.datagram, self.victim);
        sent.map_err(|why| format!("a datagram of {} bytes: {why}", self.datagram.len()))?;
        Ok(1)
    }

    /// Sends the datagram and others of its length together, as the system does with
    /// those of one sender; the last one may be shorter.
    fn send_batch(&mut self, segments: u64) -> Result<u64, String> {
        let length = self.datagram.len();
        let mut bytes = 0;
        for segment in 1..=segments {
            if segment == segments {
                let rest = 1 + self.below(length);
                self.datagram.truncate(rest);
            }
            self.gso_batch.write(bytes, &self.datagram);
            bytes += self.datagram.len() as u64;
            self.make();
            self.datagram.resize(length, 0);
        }
        let pieces = [self.gso_batch.claim().slice(0, bytes)];
        let segment = u16::try_from(length).expect("a segment is short");
        let sent = send_datagram(
            self.socket.as_fd(),
            Some(self.victim),
            &pieces,
            Some(segment),
        );
        sent.map_err(|why| format!("{segments} datagrams of {length} bytes: {why}"))?;
        Ok(segments)
    }

    /// Makes a datagram that the victim must refuse.
    fn make(&mut self) {
        self.datagram.clear();
        match self.random.below(100) {
            0..15 => self.fill(),
            15..50 => self.flip(0..HEADER),
            50..60 => self.flip(HEADER..usize::MAX),
            60..70 => self.cut_or_lengthen(),
            70..80 => self.splice(),
            80..90 => self.copy_recording(),
            90..93 => self.copy_misdirected(),
            _ => self.copy_wrong_key(),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    /// Any bytes; half of the time behind a beginning that could be right.
    fn fill(&mut self) {
        let most = [64, 256, 1500, 9000][self.below(4)];
        let length = self.below(most + 1);
        if self.below(2) == 0 {
            self.datagram
                .extend([1, 1 + self.random.below(5) as u8, 0, 3]);
        }
        while self.datagram.len() < length {
            let number = self.random.number().to_le_bytes();
            self.datagram.extend(number);
        }
        self.datagram.truncate(length);
    }

    fn copy_recording(&mut self) {
        let which = self.below(self.recordings.genuine.len());
        self.datagram.extend(&self.recordings.genuine[which]);
    }

    fn copy_misdirected(&mut self) {
        let which = self.below(self.recordings.misdirected.len());
        self.datagram.extend(&self.recordings.misdirected[which]);
    }

    fn copy_wrong_key(&mut self) {
        let which = self.below(self.recordings.wrong_key.len());
        self.datagram.extend(&self.recordings.wrong_key[which]);
    }

    /// A recording with a few bits of a range turned over.
    fn flip(&mut self, range: std::ops::Range<usize>) {
        self.copy_recording();
        let end = range.end.min(self.datagram.len());
        let start = range.start.min(end.saturating_sub(1));
        for _ in 0..1 + self.below(8) {
            let at = start + self.below(end - start);
            self.datagram[at] ^= 1 << self.random.below(8);
        }
    }

    fn cut_or_lengthen(&mut self) {
        self.copy_recording();
        let length = self.datagram.len();
        match self.below(2) {
            0 => self
                .datagram
                .truncate(self.random.below(length as u64) as usize),
            _ => self
                .datagram
                .extend(vec![0; 1 + self.random.below(64) as usize]),
        }
    }

    /// The beginning of one and the end of another.
    fn splice(&mut self) {
        self.copy_recording();
        let at = self.below(self.datagram.len());
        let which = self.below(self.recordings.genuine.len());
        let other = &self.recordings.genuine[which];
        let from = at.min(other.len());
        self.datagram.truncate(at);
        self.datagram.extend(&other[from..]);
    }

    /// Datagrams for which the victim's socket had no room, by the system's count.
    pub fn dropped_by_system(&self) -> Result<u64, String> {
        let table = std::fs::read_to_string("/proc/net/udp").map_err(|why| why.to_string())?;
        // Addresses stand there as the bytes lie in memory.
        let node = u32::from_ne_bytes(self.victim.ip().octets());
        let name = format!("{node:08X}:{:04X}", self.victim.port());
        let line = table.lines().find(|line| line.contains(&name));
        let drops = line.and_then(|line| line.split_whitespace().last()?.parse().ok());
        drops.ok_or(format!("/proc/net/udp doesn't list {name}"))
    }
}
