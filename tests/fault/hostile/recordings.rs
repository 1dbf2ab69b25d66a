//! Datagrams as a NAL really sends them, recorded before the victim is there.

use crate::{KEY, OTHER_KEY, Processes, open};
use lintel_claim::Region;
use lintel_nal::{Arrival, Nal, Outgoing, Wake};
use lintel_nal_udp::UdpNal;
use lintel_types::ProcessId;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

/// Datagrams of real NALs, for replay and mutation.
pub struct Recordings {
    /// By an earlier incarnation of the peer: genuine but for that.
    pub genuine: Vec<Vec<u8>>,
    /// By the peer, to another process.
    pub misdirected: Vec<Vec<u8>>,
    /// By a process that has another key.
    pub wrong_key: Vec<Vec<u8>>,
}

/// Lengths of the messages: none, short, of one datagram, of several.
const LENGTHS: [u64; 6] = [0, 8, 100, 1400, 16_000, 100_000];
/// Long enough for retransmissions, and for probes.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a first contact may take.
const MEETING: Duration = Duration::from_secs(10);

impl Recordings {
    /// Records each kind between a sender and an earlier incarnation of its receiver.
    pub fn record(processes: &Processes) -> Result<Recordings, String> {
        let Processes {
            victim,
            peer,
            outsider,
        } = *processes;
        let recordings = Recordings {
            genuine: record(victim, peer, KEY)?,
            misdirected: record(outsider, peer, KEY)?,
            wrong_key: record(victim, outsider, OTHER_KEY)?,
        };
        let (genuine, wrong_key) = (recordings.genuine.len(), recordings.wrong_key.len());
        println!(
            "recorded {genuine} datagrams of the peer, {wrong_key} of a process without the key"
        );
        Ok(recordings)
    }
}

fn record(to: ProcessId, from: ProcessId, key: [u8; 32]) -> Result<Vec<Vec<u8>>, String> {
    let failed = |why: std::io::Error| format!("a socket in the place of {to:?}: {why}");
    let mut sender = open(from, key)?;
    meet(&mut sender, to, key)?;
    let socket = UdpSocket::bind(address(to)).map_err(failed)?;
    let quiet = Some(Duration::from_millis(1));
    socket.set_read_timeout(quiet).map_err(failed)?;
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
    // What it sends at once; it hasn't looked yet whether that incarnation still lives.
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

/// Lets a sender contact an earlier incarnation of its receiver: before that it
/// sends nothing but probes for one.
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

/// The address of a process's socket.
pub fn address(process: ProcessId) -> SocketAddrV4 {
    let port = u16::try_from(process.pid).expect("a pid is a port");
    SocketAddrV4::new(Ipv4Addr::from(process.nid), port)
}
