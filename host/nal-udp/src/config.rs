//! What a user configures, and what is reported back.

use crate::{Faults, Model};
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

/// How to open a NAL.
pub struct Config<'a> {
    /// The node: an address of this machine, as a number.
    pub nid: u32,
    /// The pid: a port, or any that is free.
    pub port: Option<u16>,
    /// The job's secret key: datagrams sealed with another are dropped.
    pub key: [u8; 32],
    /// The effective user of this process; each packet carries it.
    pub uid: u32,
    /// Which processes share a context.
    pub model: Model,
    /// A peer that something is waiting for is reported lost after that much silence.
    pub peer_timeout: Duration,
    /// Faults injected on purpose, for tests.
    pub faults: Option<Faults>,
    /// Takes lines that a user should read.
    pub log: fn(&str),
    /// The job's name, a part of names in `/dev/shm`.
    pub job: &'a str,
}

/// What a NAL holds at the moment.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Resources {
    /// Contexts: congestion state of a path.
    pub contexts: u64,
    /// Pairs: processes that packets were exchanged with.
    pub pairs: u64,
    /// Open sockets, connected ones included.
    pub sockets: u64,
    /// Bytes of memory of all these, approximately.
    pub bytes: u64,
}

/// Datagrams so far. Each one that arrived is counted once: as accepted, or by the reason
/// for which it was dropped.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct DatagramCounts {
    /// Datagrams with nothing wrong about them.
    pub accepted: u64,
    /// Datagrams whose authenticator was wrong.
    pub forged: u64,
    /// Datagrams that are no packets of this version, or contradict others of their sender.
    pub malformed: u64,
    /// Datagrams whose payload doesn't match its checksum.
    pub damaged: u64,
    /// Packets for another process.
    pub misdirected: u64,
    /// Packets from or to an incarnation that has ended.
    pub stale: u64,
    /// Packets that this process has retransmitted.
    pub retransmitted: u64,
    /// Packets that had arrived before.
    pub duplicates: u64,
    /// Packets too far ahead of a missing one to be kept.
    pub beyond: u64,
    /// Datagrams that the system had no room for, or no route.
    pub unsent: u64,
    /// Peers that closed, or whose timeout expired.
    pub lost_peers: u64,
}

impl DatagramCounts {
    /// Datagrams that arrived and were dropped.
    pub fn refused(&self) -> u64 {
        self.hostile() + self.duplicates + self.beyond
    }

    /// Those among them that no present incarnation of a peer sends.
    pub fn hostile(&self) -> u64 {
        self.forged + self.malformed + self.damaged + self.misdirected + self.stale
    }
}

/// Why no socket could be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Another program has the port.
    PortInUse(Ipv4Addr, u16),
    /// Ports below 1024 are for the system.
    PortNotAllowed(u16),
    /// No interface of this machine has the address.
    NoSuchAddress(Ipv4Addr),
    /// Any other error of the system.
    System(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::PortInUse(address, port) => write!(
                f,
                "another program has UDP port {port} of {address}: choose another pid, or let \
                 the library choose"
            ),
            OpenError::PortNotAllowed(port) => write!(
                f,
                "pid {port} is a UDP port that this user may not have: choose one from 1024 on"
            ),
            OpenError::NoSuchAddress(address) => write!(
                f,
                "no network interface of this machine has the address {address}: name one that \
                 `ip -4 address` lists in PTL_IFACE, or a virtual node from 127.0.0.1 on"
            ),
            OpenError::System(error) => write!(f, "the system gives no UDP socket: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}
