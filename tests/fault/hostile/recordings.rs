//! Datagrams as a NAL really sends them, recorded before the victim is there.

use crate::{Cast, KEY, OTHER_KEY, open};
use lintel_claim::Region;
use lintel_nal::{Arrival, Nal, Outgoing, Wake};
use lintel_nal_udp::UdpNal;
use lintel_types::ProcessId;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

pub struct Recordings {
    /// By an earlier life of the friend: right in everything but that.
    pub friends: Vec<Vec<u8>>,
    /// By the friend to somebody else.
    pub astray: Vec<Vec<u8>>,
    /// By somebody who has another key.
    pub strangers: Vec<Vec<u8>>,
}

/// Lengths of the messages: none, short, of one datagram, of several.
const LENGTHS: [u64; 6] = [0, 8, 100, 1400, 16_000, 100_000];
/// Long enough for what is sent again, and for probes.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long two may take to meet.
const MEETING: Duration = Duration::from_secs(10);

impl Recordings {
    pub fn take(cast: &Cast) -> Result<Recordings, String> {
        let Cast {
            victim,
            friend,
            stranger,
        } = *cast;
        let recordings = Recordings {
            friends: record(victim, friend, KEY)?,
            astray: record(stranger, friend, KEY)?,
            strangers: record(victim, stranger, OTHER_KEY)?,
        };
        let (friends, strangers) = (recordings.friends.len(), recordings.strangers.len());
        println!("recorded {friends} datagrams of the friend, {strangers} of a stranger");
        Ok(recordings)
    }
}

fn record(to: ProcessId, from: ProcessId, key: [u8; 32]) -> Result<Vec<Vec<u8>>, String> {
    let told = |why: std::io::Error| format!("a socket in the place of {to:?}: {why}");
    let mut sender = open(from, key)?;
    meet(&mut sender, to, key)?;
    let socket = UdpSocket::bind(address(to)).map_err(told)?;
    let quiet = Some(Duration::from_millis(1));
    socket.set_read_timeout(quiet).map_err(told)?;
    let region = Region::new(LENGTHS[LENGTHS.len() - 1]);
    for (number, length) in (0..).zip(LENGTHS) {
        let pieces = [region.claim().slice(0, length)];
        let body = Outgoing::Copied {
            operand: None,
            pieces: &pieces,
        };
        let sent = sender.send(to, &[number; 6], body);
        sent.map_err(|why| format!("a message to be recorded: {why:?}"))?;
    }
    let mut taken = Vec::new();
    // What it sends at once; it hasn't looked yet whether that life still is there.
    take_all(&socket, &mut taken);
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        sender.flush();
        sender.check_peers();
        take_all(&socket, &mut taken);
    }
    drop(sender);
    take_all(&socket, &mut taken);
    match taken.len() {
        0..4 => Err(format!("only {} datagrams to record", taken.len())),
        _ => Ok(taken),
    }
}

/// Has a sender meet an earlier life of its receiver: to somebody whom it hasn't met it
/// sends nothing but questions.
fn meet(sender: &mut UdpNal, to: ProcessId, key: [u8; 32]) -> Result<(), String> {
    let mut earlier = open(to, key)?;
    let nothing = Outgoing::Copied {
        operand: None,
        pieces: &[],
    };
    let sent = sender.send(to, &[0; 6], nothing);
    sent.map_err(|why| format!("a message to be met by: {why:?}"))?;
    let until = Instant::now() + MEETING;
    while Instant::now() < until {
        sender.flush();
        if let Some(Arrival::Message(origin, ..)) = earlier.next() {
            earlier.done(origin);
            return Ok(());
        }
        earlier.flush();
    }
    Err(format!("{to:?} was not met"))
}

fn take_all(socket: &UdpSocket, taken: &mut Vec<Vec<u8>>) {
    let mut datagram = vec![0; 65_536];
    while let Ok(length) = socket.recv(&mut datagram) {
        taken.push(datagram[..length].to_vec());
    }
}

/// Where a process's socket is.
pub fn address(process: ProcessId) -> SocketAddrV4 {
    let port = u16::try_from(process.pid).expect("a pid is a port");
    SocketAddrV4::new(Ipv4Addr::from(process.nid), port)
}
