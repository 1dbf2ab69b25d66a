//! The UDP NAL: messages between processes of any nodes, over one socket a process.
//!
//! ```text
//!   127.0.0.1:7001                                    127.0.0.2:7001
//!   ┌────────────┐      header │ payload              ┌────────────┐
//!   │ Endpoint   │   ┌─────────┴────────────┐         │ Endpoint   │
//!   │ TxBatch  ───┼──▶│ from the user's or   │────────▶┼─▶  Inlet   │
//!   │ Inlet   ◀──┼───│ an own buffer        │◀────────┼── TxBatch   │
//!   └────────────┘   └──────────────────────┘         └────────────┘
//! ```
//!
//! A node is an IPv4 address (its nid is the address as a number), a process's pid is
//! its port. What is sent when, in which order and how often is `lintel_reliable`'s
//! business; here are sockets, checksums of payloads, and users' buffers: what is lent
//! is sent from where it lies, and a stream is received to where it belongs.
//!
//! Payloads have a checksum, computed where the sender's user has them and compared where
//! the receiver's user gets them, unless the receiver's address is a loopback one: such
//! datagrams are copied from memory to memory, and the kernel sums nothing either. (Two
//! sums take 80 µs for a MiB that takes 130 µs there and back.)
//!
//! Order of use: [`UdpNal::open`], then as every [`Nal`].
//!
//! Left to others: the job's secret, threads and waiting (the runtime), shared memory
//! within a node.
#![forbid(unsafe_code)]

mod body;
mod buffers;
mod config;
mod connected_sockets;
mod faults;
mod gro;
mod inbound;
mod paths;
mod recv_buffer;
mod socket;
mod tx_batch;

pub use config::{Config, DatagramCounts, OpenError, Resources};
pub use faults::{Faults, FaultsError};
pub use lintel_reliable::Model;

use body::Body;
use buffers::Buffers;
use inbound::{Inbound, sound_in_place};
use lintel_claim::{Claim, Lease, Loan};
use lintel_nal::{
    Arrival, Capabilities, MoveError, Nal, Origin, Outgoing, RemoteLoan, Unreachable, Wake,
};
use lintel_reliable::{Class, Endpoint, FURTHER_BYTES, Header, Message, Nanos, Time};
use lintel_types::ProcessId;
use lintel_wire::Words;
use nix::time::ClockId;
use paths::PathFile;
use recv_buffer::RecvBuffer;
use socket::Socket;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tx_batch::{SendOutcome, TxBatch};

/// Bodies up to this many bytes are copied at once: that costs less than to wait for
/// the peer's answer before they may be used again.
pub const EAGER: u64 = 16 << 10;
/// Who leaves waits so long for acknowledgements while none comes.
const LINGER: Duration = Duration::from_millis(200);
/// How long it sleeps in between.
const LINGER_POLL: Duration = Duration::from_millis(1);
/// Datagrams that [`Nal::next`] looks at for want of a message.
const BATCH: u32 = 64;
/// While nothing waits for room, every how-manieth flush looks into the socket.
const DRAIN_EVERY: u32 = 4;

/// The NAL of one process.
pub struct UdpNal {
    endpoint: Endpoint<Body>,
    tx_batch: TxBatch,
    inbound: Inbound,
    recv_buffer: RecvBuffer,
    buffers: Buffers,
    me: ProcessId,
    opened_at: Instant,
    /// The same moment as processes of this machine tell it to each other, nanoseconds.
    opened_at_ns: u64,
    /// `next` has found nothing since the last flush.
    found_nothing: bool,
    /// `next` has given a message from the socket since it found nothing.
    has_delivered: bool,
    flushes: u32,
    /// Short messages wait for more to share a system call, or for `next`, or for the
    /// second flush: the first may have been for another's sake.
    is_coalescing: bool,
    is_flushed: bool,
    /// What is known of paths is the node's, as [`Model::Node`] says.
    shares_paths: bool,
    log: fn(&str),
    has_logged_send_error: bool,
}

impl UdpNal {
    /// Opens a socket at the node's address.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(config: Config<'_>) -> Result<UdpNal, OpenError> {
        let socket = Socket::open(config.nid, config.port)?;
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
            recv_buffer: RecvBuffer::new(),
            tx_batch: TxBatch::new(socket, &config.key, config.faults),
            inbound: Inbound::new(me),
            buffers: Buffers::new(),
            me,
            opened_at: Instant::now(),
            opened_at_ns: since_boot(),
            found_nothing: false,
            has_delivered: false,
            flushes: 0,
            is_coalescing: false,
            is_flushed: false,
            shares_paths,
            log: config.log,
            has_logged_send_error: false,
        })
    }

    /// The name that others reach this process by.
    pub fn process(&self) -> ProcessId {
        self.me
    }

    /// What it holds at the moment.
    pub fn resources(&self) -> Resources {
        let held = self.endpoint.resources();
        let bytes = held.bytes as u64 + self.recv_buffer.bytes() + self.buffers.bytes();
        Resources {
            contexts: held.contexts as u64,
            pairs: held.pairs as u64,
            sockets: self.tx_batch.sockets(),
            bytes,
        }
    }

    /// What went wrong so far, and was made good or dropped.
    pub fn counts(&self) -> DatagramCounts {
        let counts = self.endpoint.counts();
        let mut counts = DatagramCounts {
            accepted: 0,
            forged: self.inbound.forged,
            malformed: self.inbound.malformed + counts.contradictory,
            damaged: self.inbound.damaged,
            misdirected: counts.misdirected,
            stale: counts.stale,
            retransmitted: counts.retransmitted,
            duplicates: counts.duplicates,
            beyond: counts.beyond,
            unsent: self.tx_batch.failures,
            lost_peers: counts.lost_peers,
        };
        counts.accepted = self.inbound.arrived.saturating_sub(counts.refused());
        counts
    }

    #[inline]
    fn now(&self) -> Time {
        Time(self.opened_at_ns + self.opened_at.elapsed().as_nanos() as u64)
    }

    /// Sends what may be sent.
    #[inline]
    fn transmit(&mut self, now: Time) {
        self.is_coalescing = false;
        while let Some(transmit) = self.endpoint.poll_transmit(now) {
            if let Some(sent) = self.tx_batch.push(transmit) {
                if !self.on_sent(now, sent) {
                    break;
                }
            }
        }
        if let Some(sent) = self.tx_batch.transmit() {
            self.on_sent(now, sent);
        }
        self.take_lost_peers();
        self.recycle();
    }

    /// Takes note of what became of datagrams; false where no more may be sent now.
    #[inline]
    fn on_sent(&mut self, now: Time, sent: SendOutcome) -> bool {
        match sent {
            SendOutcome::Sent => true,
            other => self.on_unsent(now, other),
        }
    }

    #[cold]
    fn on_unsent(&mut self, now: Time, sent: SendOutcome) -> bool {
        for header in self.tx_batch.unsent() {
            self.endpoint.on_send_failed(header);
        }
        match sent {
            SendOutcome::Sent | SendOutcome::Retry => true,
            SendOutcome::WouldBlock => false,
            SendOutcome::PendingErrors => {
                self.take_send_errors(now);
                true
            }
            SendOutcome::Refused(to) => {
                self.endpoint.on_refused(now, to);
                true
            }
            SendOutcome::Unreachable(to, error) => {
                self.on_unreachable(now, to, &error);
                true
            }
        }
    }

    #[inline]
    fn recycle(&mut self) {
        for message in self.endpoint.take_finished() {
            if let Body::Own(buffer, _) = message.body {
                self.buffers.put(buffer);
            }
        }
    }

    #[cold]
    fn on_unreachable(&mut self, now: Time, to: ProcessId, error: &std::io::Error) {
        if !std::mem::replace(&mut self.has_logged_send_error, true) {
            (self.log)(&format!(
                "the system doesn't send to process {:#x}/{}: {error}",
                to.nid, to.pid
            ));
        }
        self.endpoint.on_refused(now, to);
    }

    /// Takes note of who isn't there, by the system's word.
    #[cold]
    fn take_send_errors(&mut self, now: Time) {
        while let Some(process) = self.tx_batch.socket.take_refused() {
            self.endpoint.on_refused(now, process);
        }
        self.take_lost_peers();
    }

    fn take_lost_peers(&mut self) {
        while let Some(loss) = self.endpoint.poll_lost_peer() {
            self.inbound.on_lost_peer(&loss, &mut self.buffers);
        }
    }

    /// Does what is due by the clock, and sends.
    fn service(&mut self) {
        self.tx_batch.pass_delayed();
        let due = self.due_by_clock();
        if due == Time::NEVER && !self.endpoint.has_work() {
            return;
        }
        let now = self.now();
        // An answer isn't late that has come while nobody looked.
        if now >= due && self.drain_socket() {
            self.endpoint.on_timeout(now);
            self.buffers.on_time(now);
            self.take_lost_peers();
        }
        self.transmit(now);
    }

    #[inline]
    fn due_by_clock(&self) -> Time {
        self.endpoint.due().min(self.buffers.due())
    }

    /// Receives until there is nothing, or no room to keep it; acknowledgements take
    /// effect, messages wait for `next`. Tells whether there was nothing left.
    fn drain_socket(&mut self) -> bool {
        while self.inbound.may_drain_socket() {
            let Some(now) = self.receive() else {
                return true;
            };
            let _ = self.take_segment(now, true);
        }
        false
    }

    /// Sees to it that a datagram is in the area; gives the time.
    #[inline]
    fn receive(&mut self) -> Option<Time> {
        if self.recv_buffer.is_empty() {
            self.fill_recv_buffer()?;
        }
        Some(self.now())
    }

    fn fill_recv_buffer(&mut self) -> Option<()> {
        loop {
            match self.read_socket() {
                Ok(()) => return Some(()),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return None,
                Err(_) => {
                    let now = self.now();
                    self.take_send_errors(now);
                    if !self.inbound.is_empty() {
                        return None;
                    }
                }
            }
        }
    }

    /// Receives into the area, and the payload of a running stream's next part straight
    /// into its place: nothing else is ever written there.
    #[inline]
    fn read_socket(&mut self) -> std::io::Result<()> {
        if self.inbound.awaits_part() {
            let mut beginning = [0; FURTHER_BYTES];
            let length = self.tx_batch.socket.peek(&mut beginning)?;
            let known = &beginning[..length.min(FURTHER_BYTES)];
            let part = self.next_part(known, length);
            let bytes = part.map_or(0, |header| header.datagram_bytes() - header.bytes());
            if let Some(place) = self.inbound.next_place(bytes as u64) {
                return self
                    .recv_buffer
                    .receive_around(&mut self.tx_batch.socket, place);
            }
            self.inbound.on_missed();
        }
        self.recv_buffer.receive(&mut self.tx_batch.socket)
    }

    /// The header of a datagram with that beginning and length, if it is the next part of
    /// the running stream.
    fn next_part(&self, beginning: &[u8], length: usize) -> Option<Header> {
        let (pair, header) = self
            .inbound
            .open_part(beginning, length, &self.tx_batch.key)?;
        (header.sequence == self.endpoint.expected(pair)).then_some(header)
    }

    /// Deals with the next datagram in the area. A message that is to be looked at is
    /// left there and given, or kept for later.
    fn take_segment(&mut self, now: Time, for_later: bool) -> Option<Arrival> {
        self.inbound.arrived += 1;
        if let Some((header, placed)) = self.take_in_place() {
            self.recv_buffer.pop_all();
            let verdict = self.endpoint.on_packet(now, &header, true);
            self.take_lost_peers();
            self.recycle();
            return self.inbound.on_placed(verdict, &header, placed, for_later);
        }
        let segment = self.recv_buffer.pop();
        let Some((header, payload)) = self.inbound.open(&segment, &self.tx_batch.key) else {
            self.tx_batch.socket.on_refused();
            return None;
        };
        let verdict = self
            .endpoint
            .on_packet(now, &header, self.inbound.may_buffer());
        self.take_lost_peers();
        self.recycle();
        self.inbound.on_verdict(
            verdict,
            &header,
            payload,
            for_later,
            &mut self.endpoint,
            &mut self.buffers,
        )
    }

    /// The packet in the area, if a place was lent for its payload and that is sound, and
    /// bytes of it that are in that place. In any other case the area has no hole any more.
    fn take_in_place(&mut self) -> Option<(Header, u64)> {
        let (header, place, behind) = self.recv_buffer.around_hole()?;
        let mut beginning = [0; FURTHER_BYTES];
        header.read(&mut beginning);
        let found = self
            .next_part(&beginning, self.recv_buffer.length() as usize)
            .and_then(|header| Some((header, sound_in_place(&header, place, behind)?)));
        if found.is_none() {
            self.recv_buffer.fill_hole();
        }
        found
    }

    /// Waits for acknowledgements as long as they come, then says farewell.
    fn close(&mut self) {
        self.inbound.close();
        let mut progress = (Instant::now(), usize::MAX);
        while !self.endpoint.all_delivered() && progress.0.elapsed() < LINGER {
            self.drain_socket();
            self.service();
            if self.endpoint.outstanding() < progress.1 {
                progress = (Instant::now(), self.endpoint.outstanding());
            }
            self.tx_batch.socket.wait(LINGER_POLL);
        }
        self.endpoint.close();
        let now = self.now();
        self.transmit(now);
        self.tx_batch.release_delayed();
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
        if to == self.me || to.nid == 0 || to.pid == 0 || to.pid > u16::MAX.into() {
            return Err(Unreachable);
        }
        let (body, length) = Body::new(body, &mut self.buffers);
        let message = Message {
            class: Class::Ordered,
            words: *words,
            length,
            memory: body.memory(),
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
        Ok(())
    }

    fn next(&mut self) -> Option<Arrival> {
        for _ in 0..BATCH {
            if let Some(arrival) = self.inbound.next(&mut self.buffers) {
                return Some(arrival);
            }
            if self.endpoint.has_work() {
                let now = self.now();
                self.transmit(now);
            }
            let is_behind = std::mem::take(&mut self.has_delivered) && self.recv_buffer.is_empty();
            if is_behind && self.tx_batch.socket.expects_nothing() {
                self.found_nothing = true;
                return None; // Whoever waits for the message needn't wait for a look.
            }
            let Some(now) = self.receive() else {
                if !self.inbound.is_empty() {
                    continue; // A loss, which the system has just told of.
                }
                self.found_nothing = true;
                return None;
            };
            if let Some(arrival) = self.take_segment(now, false) {
                self.has_delivered = true;
                return Some(arrival);
            }
        }
        None // Whoever asks may have other things to do; there may be more.
    }

    fn done(&mut self, origin: Origin) {
        self.inbound.done(origin, &mut self.buffers);
    }

    fn receive_into(&mut self, origin: Origin, place: Loan) {
        self.inbound.receive_into(origin, place);
    }

    fn fetch(&mut self, _: Origin, _: &RemoteLoan, _: &[Claim]) -> Result<u64, MoveError> {
        Err(MoveError::Gone) // Nothing is lent across a network.
    }

    fn fill(&mut self, _: Origin, _: &[Claim], _: &RemoteLoan) -> Result<u64, MoveError> {
        Err(MoveError::Gone)
    }

    /// At once: the kernel copies what it is given before it returns.
    fn recall(&mut self, lease: &Lease) -> bool {
        self.endpoint.recall(|body| body.is_of(lease), Body::empty);
        self.inbound.recall(lease);
        self.recv_buffer.forget_place();
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
}

impl Wake for UdpNal {
    fn flush(&mut self) -> bool {
        self.flushes = self.flushes.wrapping_add(1);
        let had_found_nothing = std::mem::take(&mut self.found_nothing);
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
        Some(self.tx_batch.socket.descriptor())
    }

    fn due(&self) -> Option<Instant> {
        if self.endpoint.has_work() || !self.inbound.is_empty() || !self.recv_buffer.is_empty() {
            return Some(self.opened_at);
        }
        match self.due_by_clock() {
            Time::NEVER => None,
            Time(at) => {
                let after = Nanos(at.saturating_sub(self.opened_at_ns));
                Some(self.opened_at + Duration::from(after))
            }
        }
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

/// Shares what is known of paths with other processes of the node; false where that can't
/// be.
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

fn since_boot() -> u64 {
    let time = nix::time::clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
    time.map_or(1, |time| time.as_nanos() as u64)
}

/// Tells this process from earlier and later ones of its name: the time since 1970 in steps
/// of a millisecond, so that later ones have larger numbers, and random bits behind it, so
/// that none has the same though a clock is set back.
fn new_incarnation() -> u64 {
    const RANDOM: u64 = (1 << 20) - 1;
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanoseconds = since.map_or(0, |since| since.as_nanos() as u64);
    // Its keys are the system's random numbers.
    let random = RandomState::new().build_hasher().finish();
    (nanoseconds & !RANDOM | random & RANDOM).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incarnations_grow_with_the_clock_and_differ_within_a_step_of_it() {
        let all: Vec<u64> = (0..10).map(|_| new_incarnation()).collect();
        assert!(all.iter().any(|other| *other != all[0]), "{all:?}");
        let before = all[9];
        let until = Instant::now() + Duration::from_secs(5);
        while new_incarnation() >> 20 == before >> 20 {
            assert!(Instant::now() < until, "the clock stands still");
        }
        assert!(new_incarnation() > before);
    }
}
