//! Every constant of the model: value, unit, source.
//!
//! S3 is "MVAPICH with XRC: Early Experiences", D. K. Panda, 2007: two nodes of two
//! Clovertown sockets, 8 cores each, ConnectX with firmware 2.2.258, a 24-port switch.
//! Five values are fitted to its figures, each to one. What is assumed has its reason.

use lintel_sim_kernel::{Bandwidth, Bytes, Duration};

/// A process posting a message, or finding one: fitted to S3, latency of RC, 1.49 µs.
pub const HOST: Duration = Duration::from_ns(310);
/// A word on the way between processor and adapter: assumed, half of what reading a
/// register over PCI Express of the first generation took.
pub const BUS_LATENCY: Duration = Duration::from_ns(150);
/// An engine's work for a message: assumed; ConnectX was sold for some millions of
/// messages a second. What it does for further packets, it does while the bus carries
/// the one before.
pub const ENGINE: Duration = Duration::from_ns(150);
/// Finding the receive queue that a message names: fitted to S3, latency of XRC, 1.54 µs.
pub const RECEIVE_QUEUE: Duration = Duration::from_ns(50);
/// Messages up to this length come with their work request: assumed, as MVAPICH sets it.
pub const INLINE: Bytes = Bytes(128);
/// What one way of the bus carries: fitted to S3, uni-directional bandwidth, 1402 MB/s.
pub const BUS_EACH: Bandwidth = megabytes(1_402);
/// What both ways carry together: fitted to S3, bi-directional bandwidth, 2722 MB/s.
pub const BUS_ALL: Bandwidth = megabytes(2_722);
/// 4 lanes of 5 Gb/s, of which 8 bits in 10 are data (InfiniBand, double data rate).
pub const LINK: Bandwidth = megabytes(2_000);
/// A message's packets: MVAPICH's path MTU on ConnectX, the InfiniBand specification's
/// 2048.
pub const MTU: Bytes = Bytes(2_048);
/// Headers and checksums of a packet: LRH 8, BTH 12, ICRC 4, VCRC 2 (InfiniBand
/// specification, 5.2).
pub const HEADER: Bytes = Bytes(26);
/// From an adapter through the switch: assumed, 200 ns of a switch chip of the time and
/// a cable's 25.
pub const SWITCH: Duration = Duration::from_ns(225);
/// From the switch to an adapter: assumed, a cable.
pub const CABLE: Duration = Duration::from_ns(25);
/// Contexts that an adapter holds. That there is such a bound is our explanation, S3 names
/// none; its value is fitted to S3, many-to-many with large messages,
/// where XRC is 50 MB/s ahead: fewer than RC uses there (64), more than XRC does (16).
pub const CACHE: usize = 48;
/// Fetching a context from the host's memory: assumed, a read over the bus and back.
pub const MISS: Duration = Duration::from_ns(400);
/// Packets that a queue pair may send in its turn: assumed.
pub const TURN: u32 = 8;
/// A queue pair's context in the host's memory: assumed, as Linux' driver allots it.
pub const CONTEXT: Bytes = Bytes(256);
/// The send queue behind it: assumed, 64 work requests of 128 bytes.
pub const SEND_QUEUE: Bytes = Bytes(64 * 128);
/// A shared receive queue's requests and buffers: assumed, 512 of 8 KiB.
pub const RECEIVE_BUFFERS: Bytes = Bytes(512 * (8 * 1024 + 64));

const fn megabytes(per_second: u64) -> Bandwidth {
    match Bandwidth::from_bytes_per_second(per_second * 1_000_000) {
        Some(bandwidth) => bandwidth,
        None => panic!("a bus carries something"),
    }
}
