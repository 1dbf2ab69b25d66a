//! The UDP NAL: messages between processes of any nodes, over one socket a process.
//!
//! ```text
//!   127.0.0.1:7001                                    127.0.0.2:7001
//!   ┌────────────┐      header │ payload              ┌────────────┐
//!   │ Endpoint   │   ┌─────────┴────────────┐         │ Endpoint   │
//!   │ TxBatch ───┼──▶│ from the user's or   │────────▶┼─▶ Inlet    │
//!   │ Inlet   ◀──┼───│ our own memory       │◀────────┼── TxBatch  │
//!   └────────────┘   └──────────────────────┘         └────────────┘
//! ```
//!
//! A node is an IPv4 address (its nid is the address as a number), a process's pid is
//! its port. What is sent when, in which order and how often is `lintel_reliable`'s
//! business; here are sockets, checksums of payloads, and users' buffers: lent memory is
//! sent in place, and a stream is received into its place.
//!
//! Payloads have a checksum from end to end, computed over the sender's memory and compared
//! at the receiver, unless the receiver's address is a loopback one: such datagrams are
//! copied from memory to memory, and the kernel computes no checksum either. (Two checksums
//! take 80 µs for a MiB that takes 130 µs there and back.)
//!
//! Order of use: [`UdpNal::open`], then as every [`Nal`].
//!
//! Left to others: the job's secret, threads and waiting (the runtime), shared memory
//! within a node (nal-shm).
#![forbid(unsafe_code)]

mod body;
mod buffers;
mod checksum;
mod clock;
mod config;
mod connected_sockets;
mod faults;
mod gro;
mod inbound;
mod inlet;
mod paths;
mod progress;
mod recv_buffer;
mod socket;
mod tx_batch;

pub use config::{Config, DatagramCounts, OpenError, Resources};
pub use faults::{Faults, FaultsError};
pub use lintel_reliable::Model;
pub use socket::{interface_address, interface_addresses, interface_mtu};

use body::Body;
use buffers::Buffers;
use clock::Clock;
use inbound::Inbound;
use inlet::Inlet;
use lintel_claim::{Claim, Lease, Lent, Loan};
use lintel_nal::{
    Arrival, Capabilities, MoveError, Nal, Origin, Outgoing, RemoteLoan, Unreachable, Wake,
};
use lintel_reliable::{Class, Endpoint, Incarnation, Message, Time};
use lintel_snapshot::{Count, Path, Traffic};
use lintel_types::ProcessId;
use lintel_wire::Words;
use paths::PathFile;
use socket::Socket;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tx_batch::TxBatch;

/// Bodies up to this many bytes are copied at once: that costs less than to wait for
/// the peer's answer before they may be used again.
pub const EAGER: u64 = 16 << 10;
/// A NAL that closes waits for acknowledgements until none has arrived for this long.
const LINGER: Duration = Duration::from_millis(200);
/// How long it sleeps between two polls.
const LINGER_POLL: Duration = Duration::from_millis(1);
/// Datagrams without a message that one call of [`Nal::next`] takes, at most.
const BATCH: u32 = 64;
/// While nothing waits for window, only every `DRAIN_EVERY`th flush polls the socket.
const DRAIN_EVERY: u32 = 4;

/// The NAL of one process.
pub struct UdpNal {
    endpoint: Endpoint<Body>,
    socket: Socket,
    tx_batch: TxBatch,
    inlet: Inlet,
    inbound: Inbound,
    /// Memory for copies of bodies to be sent.
    buffers: Buffers,
    me: ProcessId,
    clock: Clock,
    /// `next` has found nothing since the last flush.
    found_nothing: bool,
    /// `next` has reported a message from the socket since it found nothing.
    has_delivered: bool,
    /// `next_inline` has found the socket empty: `next` needn't look there.
    is_socket_empty: bool,
    flushes: u32,
    /// Short messages wait for more to share a system call, or for `next`, or for the
    /// second flush: the first may have been for another message's sake.
    is_coalescing: bool,
    is_flushed: bool,
    /// Congestion state is the node's ([`Model::Node`]).
    shares_paths: bool,
    log: fn(&str),
    has_logged_send_error: bool,
    /// The last process whose name was reported as one that UDP can't have.
    misnamed: Option<ProcessId>,
}

impl UdpNal {
    /// Opens a socket at the node's address.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(config: Config<'_>) -> Result<UdpNal, OpenError> {
        let socket = Socket::open(config.nid, config.port, &config.key)?;
        let me = socket.process();
        let mut endpoint = Endpoint::new(lintel_reliable::Config {
            me,
            uid: config.uid,
            incarnation: new_incarnation(),
            model: config.model,
            max_datagram: socket.max_datagram(),
            recv_window: socket.recv_window(),
            peer_timeout: config.peer_timeout,
        });
        let shares_paths = config.model == Model::Node && share_paths(&config, me, &mut endpoint);
        Ok(UdpNal {
            endpoint,
            tx_batch: TxBatch::new(config.nid.into(), config.faults),
            socket,
            inlet: Inlet::new(),
            inbound: Inbound::new(me),
            buffers: Buffers::new(),
            me,
            clock: Clock::new(),
            found_nothing: false,
            has_delivered: false,
            is_socket_empty: false,
            flushes: 0,
            is_coalescing: false,
            is_flushed: false,
            shares_paths,
            log: config.log,
            has_logged_send_error: false,
            misnamed: None,
        })
    }

    /// The name that others reach this process by.
    pub fn process(&self) -> ProcessId {
        self.me
    }

    /// What it holds at the moment.
    pub fn resources(&self) -> Resources {
        let held = self.endpoint.resources();
        let buffers = self.inlet.bytes() + self.inbound.bytes() + self.buffers.bytes();
        Resources {
            contexts: held.contexts as u64,
            pairs: held.pairs as u64,
            sockets: 1 + self.tx_batch.sockets(),
            bytes: held.bytes as u64 + buffers,
        }
    }

    /// Datagrams so far, by what became of them.
    pub fn counts(&self) -> DatagramCounts {
        let counts = self.endpoint.counts();
        let arrivals = self.inlet.arrivals();
        let mut counts = DatagramCounts {
            accepted: 0,
            forged: arrivals.forged,
            malformed: arrivals.malformed + counts.contradictory,
            damaged: arrivals.damaged,
            misdirected: counts.misdirected,
            stale: counts.stale,
            retransmitted: counts.retransmitted,
            duplicates: counts.duplicates,
            beyond: counts.beyond,
            unsent: self.tx_batch.failures,
            lost_peers: counts.lost_peers,
        };
        counts.accepted = arrivals.total.saturating_sub(counts.refused());
        counts
    }
}

impl UdpNal {
    /// Whether a process of that name may be reached.
    #[inline]
    fn check_name(&mut self, to: ProcessId) -> Result<(), Unreachable> {
        if to == self.me || to.nid == 0 || to.pid == 0 || to.pid > u16::MAX.into() {
            self.report_name(to);
            return Err(Unreachable);
        }
        Ok(())
    }

    #[cold]
    fn report_name(&mut self, to: ProcessId) {
        if to != self.me && self.misnamed.replace(to) != Some(to) {
            let why = "its nid must be an IPv4 address, and its pid a UDP port, 1 to 65535";
            (self.log)(&format!("no way to process {to}: {why}"));
        }
    }

    /// Whether the socket had better not be polled: a message was just reported, which isn't
    /// to be delayed by a system call that finds nothing by all experience.
    #[inline]
    fn expects_nothing(&mut self) -> bool {
        let is_behind = std::mem::take(&mut self.has_delivered) && self.inlet.is_empty();
        is_behind && self.inlet.expects_nothing()
    }

    #[inline]
    fn send_body(&mut self, to: ProcessId, words: &Words, body: Body, length: u64) {
        let message = Message {
            class: Class::Ordered,
            words: *words,
            length,
            memory: body.memory(),
            is_awaited: matches!(body, Body::Lent(_, Some(_))),
            body,
        };
        let now = self.now();
        let waits = self.inbound.may_be_answered(to);
        let Ok(pair) = self.endpoint.send(now, to, message, waits) else {
            unreachable!("ordered messages may have any length");
        };
        self.is_coalescing = self.endpoint.may_coalesce(pair);
        self.is_flushed = false;
        if !self.is_coalescing {
            self.transmit(now);
        }
    }
}

impl Nal for UdpNal {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "udp",
            eager: EAGER,
        }
    }

    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        self.check_name(to)?;
        let (body, length) = Body::new(body, &mut self.buffers);
        self.send_body(to, words, body, length);
        Ok(())
    }

    fn send_lent(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Lent<'_>,
        number: u64,
    ) -> Result<bool, Unreachable> {
        self.check_name(to)?;
        let is_long = body.len() > EAGER;
        if is_long {
            let lent = Body::Lent(body.keep(), Some(number));
            self.send_body(to, words, lent, body.len());
        }
        Ok(is_long)
    }

    fn next(&mut self) -> Option<Arrival> {
        for _ in 0..BATCH {
            if let Some(arrival) = self.inbound.next() {
                return Some(arrival);
            }
            if self.endpoint.has_work() {
                let now = self.now();
                self.transmit(now);
            }
            if std::mem::take(&mut self.is_socket_empty) || self.expects_nothing() {
                self.found_nothing = true;
                return None;
            }
            let Some(now) = self.receive() else {
                if !self.inbound.is_empty() {
                    continue; // A lost peer, which the system has just reported.
                }
                self.found_nothing = true;
                return None;
            };
            if let Some(arrival) = self.take_datagram(now, false) {
                self.has_delivered = true;
                return Some(arrival);
            }
        }
        None // The caller may have other things to do; there may be more.
    }

    fn next_inline(&mut self) -> Option<(Origin, Words, Claim)> {
        if !self.inbound.expects_message() {
            return None;
        }
        let now = match self.expects_nothing() {
            true => None,
            false => self.receive(),
        };
        let Some(now) = now else {
            self.is_socket_empty = self.inbound.is_empty();
            return None;
        };
        let found = self.take_message(now);
        self.has_delivered = found.is_some();
        found
    }

    fn done(&mut self, origin: Origin) {
        self.inbound.done(origin);
    }

    fn receive_into(&mut self, origin: Origin, place: Loan) {
        self.inbound.receive_into(origin, place);
    }

    fn fetch(&mut self, _: Origin, _: &RemoteLoan, _: &[Claim]) -> Result<u64, MoveError> {
        Err(MoveError::Unavailable) // Nothing is lent across a network.
    }

    fn fill(&mut self, _: Origin, _: &[Claim], _: &RemoteLoan) -> Result<u64, MoveError> {
        Err(MoveError::Unavailable)
    }

    /// Takes effect at once: the kernel copies what it is given before it returns.
    fn recall(&mut self, lease: &Lease) -> bool {
        self.endpoint.recall(|body| body.is_of(lease), Body::empty);
        self.inbound.recall(lease);
        self.inlet.forget_place();
        let now = self.now();
        self.transmit(now);
        true
    }

    fn backlog(&self, process: ProcessId) -> u64 {
        self.endpoint.backlog(process)
    }

    fn resources(&self) -> lintel_nal::Resources {
        let (held, counts) = (self.resources(), self.counts());
        let (contexts, shared_contexts) = match self.shares_paths {
            true => (0, held.contexts),
            false => (held.contexts, 0),
        };
        lintel_nal::Resources {
            contexts,
            shared_contexts,
            pairs: held.pairs,
            sockets: held.sockets,
            bytes: held.bytes,
            retransmitted: counts.retransmitted,
            duplicates: counts.duplicates,
            forged: counts.forged,
            malformed: counts.malformed + counts.damaged,
            misdirected: counts.misdirected + counts.stale,
            ..lintel_nal::Resources::default()
        }
    }

    fn traffic(&self) -> Vec<Traffic> {
        let count = |packets: u32| Count {
            messages: packets.into(),
            ..Count::default()
        };
        let peers = self.endpoint.packets();
        let each = peers.map(|(process, sent, received)| Traffic {
            process,
            path: Path::Udp,
            sent: count(sent),
            received: count(received),
            backlog: self.backlog(process),
        });
        each.collect()
    }

    fn arrivals(&self) -> u64 {
        let received = self.endpoint.packets().map(|(_, _, received)| received);
        received.fold(0, |sum, received| sum + u64::from(received))
    }
}

impl Wake for UdpNal {
    fn flush(&mut self) -> bool {
        self.flushes = self.flushes.wrapping_add(1);
        let is_socket_empty = std::mem::take(&mut self.is_socket_empty);
        let had_found_nothing = std::mem::take(&mut self.found_nothing) || is_socket_empty;
        if self.is_coalescing && !std::mem::replace(&mut self.is_flushed, true) {
            return true;
        }
        let waits = self.endpoint.has_unsent();
        if !had_found_nothing && (waits || self.flushes % DRAIN_EVERY == 0) {
            self.drain_socket();
        }
        self.service();
        self.endpoint.has_unsent()
    }

    fn has_queued(&self, process: ProcessId) -> bool {
        !self.is_coalescing && self.endpoint.has_queued(process)
    }

    fn check_peers(&mut self) {
        let now = self.now();
        self.endpoint.check_peers(now);
    }

    fn wake_peers(&mut self) {}

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.descriptor())
    }

    fn due(&self) -> Option<Instant> {
        if self.endpoint.has_work() || !self.inbound.is_empty() || !self.inlet.is_empty() {
            return Some(self.clock.opened_at());
        }
        match self.due_by_clock() {
            Time::NEVER => None,
            at => Some(self.clock.instant(at)),
        }
    }

    /// What waits for more is sent by the acknowledgement of what is in flight, which must be read.
    fn needs_progress(&self) -> bool {
        self.endpoint.has_unsent()
    }

    fn all_delivered(&self) -> bool {
        self.endpoint.all_delivered()
    }
}

impl Drop for UdpNal {
    fn drop(&mut self) {
        self.close();
    }
}

/// Shares congestion state with other processes of the node; false if that is impossible.
fn share_paths(config: &Config<'_>, me: ProcessId, endpoint: &mut Endpoint<Body>) -> bool {
    match PathFile::open(config.job, me.nid, me.pid) {
        Ok(paths) => {
            endpoint.share(Box::new(paths));
            true
        }
        Err(error) => {
            (config.log)(&format!(
                "what is known of paths isn't shared with other processes of this node, for \
                 the file for it can't be used: {error}"
            ));
            false
        }
    }
}

/// The incarnation of a process that starts now.
fn new_incarnation() -> Incarnation {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanoseconds = since.map_or(0, |since| since.as_nanos() as u64);
    // `RandomState` is seeded by the system.
    let random = RandomState::new().build_hasher().finish();
    Incarnation::from_clock(nanoseconds, random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incarnations_grow_with_the_clock_and_differ_within_a_step_of_it() {
        let all: Vec<Incarnation> = (0..10).map(|_| new_incarnation()).collect();
        assert!(all.iter().any(|other| *other != all[0]), "{all:?}");
        let before = all[9];
        let until = Instant::now() + Duration::from_secs(5);
        while new_incarnation().get() >> 20 == before.get() >> 20 {
            assert!(Instant::now() < until, "the clock stands still");
        }
        assert!(new_incarnation() > before);
    }
}
