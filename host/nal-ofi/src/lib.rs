//! The libfabric NAL: messages between nodes over whatever libfabric drives.
//!
//! ```text
//!   send ─▶ frame ────────── message ─────────▶ posted buffer ─▶ next: Inline
//!   lent ─▶ registered ◀──── remote read ────── receive_into ◀── next: Streamed
//!           released   ◀──── counts ─────────── every frame, or one of their own
//! ```
//!
//! One reliable-datagram endpoint a process, of any provider that can read remote
//! memory. A message and up to [`Capabilities::eager`] bytes are one frame; several short ones share
//! a frame if many are in flight. What is longer
//! stays in place, or in a copy, registered; the frame names it and the receiver reads
//! it straight to its place (rendezvous), while both go on with other work.
//!
//! A sender has credit for so many messages in flight or unread; each frame has counts
//! of those that arrived and were consumed. So the messages of a few busy peers fit into
//! the posted buffers; those of more peers at once wait in the provider
//! (`FI_RM_ENABLED`). Order within a pair is the
//! provider's (`FI_ORDER_SAS`), and checked by numbers; if it has none, the numbers
//! restore it.
//!
//! Each frame carries a tag under the job's key, and the incarnation of its sender. No
//! message is sent to a process before a frame from it has arrived, so that none is
//! taken by a process that dies of it and missed by its successor. A peer that is silent
//! while something is awaited from it is probed, and lost after some time.
//!
//! Order of use: [`OfiNal::open`], then as every [`Nal`]. A thread that sleeps on
//! [`descriptor`](Nal::descriptor) asks for [`due`](Nal::due) immediately before: it
//! informs libfabric that a thread will sleep.
//!
//! Left to others: the meaning of the words; messages within a node (nal-shm); the job's
//! key.
#![deny(unsafe_code)]

mod directory;
mod error;
mod fabric;
mod frame;
mod frame_buffers;
mod liveness;
mod peer;
mod peers;
mod progress;
mod recall;
mod receiving;
mod registrations;
mod resolver;
mod sending;
mod streams;
mod sys;

pub use error::OpenError;

use directory::Directory;
use fabric::{Completion, Fabric, Library, Provider, Socket};
use frame::Seal;
use frame_buffers::FrameBuffers;
use lintel_claim::{Claim, Lease, Lent, Loan};
use lintel_nal::{
    Arrival, Capabilities, MoveError, Nal, Origin, Outgoing, RemoteLoan, Resources, Unreachable,
    Wake,
};
use lintel_session::Incarnation;
use lintel_snapshot::{Count, Path, Traffic};
use lintel_types::ProcessId;
use lintel_wire::Words;
use peer::{Item, Peer};
use peers::Peers;
use registrations::Registrations;
use resolver::Resolver;
use rustix::event::epoll;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Buffers posted to receive frames, and buffers to send from.
const RECEIVES: u32 = 256;
const SENDS: u32 = 64;
/// Reads in flight, of all peers together.
const READS: u32 = 64;
/// Polls of the fabric for one read of the clock.
const POLLS_PER_CLOCK_READ: u32 = 16;
/// How often the resolver's socket is read while the fabric is polled.
const ADDRESS_POLL_INTERVAL: Duration = Duration::from_micros(100);
/// Polls of the fabric in a row, while its completions bring nothing to be read.
const MAX_POLLS: usize = 8;
/// Messages read in a row without a poll of the fabric: other peers' may have come meanwhile, and
/// buffers are offered again.
const MESSAGES_PER_POLL: u32 = 16;
/// How long a closing process waits until its last frames have left.
const LINGER: Duration = Duration::from_millis(100);
/// How often the fabric is polled if the provider has nothing to sleep on: while
/// something is in flight, and otherwise.
const POLL_INTERVALS: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(2)];
/// How often the provider must make progress while frames are in flight: it may have to
/// retransmit them.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(5);

/// For how long after its descriptor was readable the provider must make progress:
/// libfabric checks its connections every 10 ms, and signals them once.
const CONNECTION_EVENT_WINDOW: Duration = Duration::from_millis(30);

/// How to open a NAL.
#[derive(Clone, Debug)]
pub struct Config<'a> {
    /// This node: an IPv4 address as a number.
    pub nid: u32,
    /// The process identifier, which is a port if the provider knows ports; any that is
    /// free if it is `None`.
    pub port: Option<u16>,
    /// The provider by libfabric's name; the best one if it is `None`.
    pub provider: Option<String>,
    /// The secret of the job; a process with another one is refused.
    pub key: [u8; 32],
    /// The effective user of this process, which is sent to peers.
    pub uid: u32,
    /// Extended reliable connections (XRC) are preferred, if a provider has them.
    pub model_is_xrc: bool,
    /// A peer from which something is awaited is given up after so much silence.
    pub peer_timeout: Duration,
    /// The job's name, the same for all of its processes.
    pub job: &'a str,
    /// Takes lines on peers that are lost or can't be found.
    pub log: fn(&str),
}

/// What an operation of the fabric is for, by which its completion is handled.
#[derive(Clone, Copy, Debug)]
enum Operation {
    /// A frame is received into that buffer.
    Receive(u32),
    /// A frame is sent from that buffer to the peer on that lane.
    Send(u32, u32),
    /// Bytes of that lane's stream are read.
    Read(u32),
}

/// The NAL of one process.
pub struct OfiNal {
    local: Local,
    /// A peer from which something is awaited is given up after so much silence.
    timeout: Duration,
    log: fn(&str),
    addresses: Addresses,
    peers: Peers,
    arrivals: Arrivals,
    clock: Clock,
    /// The message sent last waits for others, with which it goes in one frame.
    is_coalescing: bool,
    /// Leases that are recalled, by number, and since when.
    recalls: Vec<(u64, Instant)>,
    counts: Resources,
    link: Link,
}

/// Who this process is.
struct Local {
    me: ProcessId,
    uid: u32,
    incarnation: Incarnation,
    seal: Seal,
}

/// How processes find each other.
struct Addresses {
    directory: Directory,
    /// If addresses of other nodes' processes are no sockets.
    resolver: Option<Resolver>,
    /// The process that had no address at the last try: it is logged once.
    last_unreachable: Option<ProcessId>,
}

/// What has arrived and isn't reported yet, beside the messages that peers keep.
struct Arrivals {
    /// The lane whose message `next` has reported, until `done`.
    current: Option<u32>,
    notices: VecDeque<Arrival>,
    /// Frames of a process whose predecessor's messages are still unread.
    deferred: Vec<(ProcessId, u32, usize)>,
    /// Messages taken since the fabric was polled.
    since_poll: u32,
    /// Receive buffers to be posted again.
    unposted: Vec<u32>,
}

/// When something was done last, and is to be done next.
struct Clock {
    /// The time, not long ago.
    now: Instant,
    /// Polls of the fabric, modulo 2^32.
    polls: u32,
    /// When addresses that peers ask for, or have been asked for, are looked for next.
    next_address_poll: Instant,
    may_have_slept: Cell<bool>,
    /// When the descriptor was last found readable.
    last_readable: Option<Instant>,
    next_health_check: Instant,
    /// When a caller last asked for peers to be checked.
    last_peer_check: Option<Instant>,
    /// The fabric has been polled since the last flush.
    has_polled: bool,
}

/// The fabric, and the memory that it knows.
struct Link {
    /// Readable when the fabric's descriptor or the resolver's is.
    epoll_fd: Option<OwnedFd>,
    /// Empty between polls; kept for its memory.
    completions: Vec<Completion<Operation>>,
    // In the order in which they must be dropped.
    registrations: Registrations,
    frames: FrameBuffers,
    fabric: Fabric<Operation>,
}

impl OfiNal {
    /// Opens an endpoint, and becomes a process of the node.
    ///
    /// # Errors
    /// [`OpenError`], which says what to do about it.
    pub fn open(config: Config<'_>) -> Result<OfiNal, OpenError> {
        OfiNal::open_with(config, |_| {})
    }

    /// As [`open`](Self::open); `adapt` may demand of the fabric what another provider
    /// would.
    fn open_with(
        config: Config<'_>,
        adapt: impl FnOnce(&mut Fabric<Operation>),
    ) -> Result<OfiNal, OpenError> {
        let name = config.provider.as_deref();
        if config.model_is_xrc && name.is_none_or(|name| name.contains("verbs")) {
            fabric::prefer_extended_connections();
        }
        let library = Library::get()?;
        let socket = Socket {
            node: Ipv4Addr::from(config.nid),
            port: config.port,
        };
        let provider = Provider::choose(library, name, socket)?;
        let traits = provider.traits();
        let receives = RECEIVES
            .min(u32::try_from(traits.receives).unwrap_or(RECEIVES))
            .max(1);
        let sends = SENDS
            .min(u32::try_from(traits.sends).unwrap_or(SENDS))
            .max(1);
        let operations = (receives + sends + READS) as usize;
        let mut fabric = Fabric::open(library, &provider, operations)
            .map_err(|error| in_use(error, config.port))?;
        adapt(&mut fabric);
        let refused = |call| {
            move |code: i32| OpenError::Refused {
                call,
                code: code.abs(),
                why: library.explain(code),
            }
        };
        let address = fabric
            .address()
            .map_err(refused("the endpoint's address"))?;
        let name = if traits.by_socket {
            let port = directory::port_of(&address).ok_or(OpenError::NoneFree)?;
            Name::of_socket(port)
        } else {
            Name::take(&config, &address)?
        };
        let frames = FrameBuffers::new(&mut fabric, receives, sends).map_err(refused("buffers"))?;
        Ok(OfiNal::new(&config, name, frames, fabric))
    }

    fn new(
        config: &Config<'_>,
        name: Name,
        frames: FrameBuffers,
        fabric: Fabric<Operation>,
    ) -> OfiNal {
        let now = Instant::now();
        let Name {
            pid,
            directory,
            resolver,
        } = name;
        let epoll_fd = resolver
            .as_ref()
            .and_then(|resolver| join(&fabric, resolver));
        let mut nal = OfiNal {
            local: Local {
                me: ProcessId::new(config.nid, pid),
                uid: config.uid,
                incarnation: Incarnation::new(nanoseconds()).expect("it is at least 1"),
                seal: Seal::new(&config.key),
            },
            timeout: config.peer_timeout,
            log: config.log,
            addresses: Addresses {
                directory,
                resolver,
                last_unreachable: None,
            },
            peers: Peers::default(),
            arrivals: Arrivals {
                current: None,
                notices: VecDeque::new(),
                deferred: Vec::new(),
                since_poll: 0,
                unposted: frames.receives().collect(),
            },
            clock: Clock::new(now),
            is_coalescing: false,
            recalls: Vec::new(),
            counts: Resources::default(),
            link: Link {
                registrations: Registrations::new(&fabric),
                frames,
                fabric,
                completions: Vec::new(),
                epoll_fd,
            },
        };
        nal.offer_buffers();
        nal
    }

    /// The name that others reach this process by.
    pub fn process(&self) -> ProcessId {
        self.local.me
    }

    /// The provider that libfabric drives.
    pub fn provider_name(&self) -> &str {
        self.link.fabric.name()
    }

    /// Leaves the endpoint open when this is dropped: two endpoints of
    /// provider shm in one process share memory that goes with the first of them,
    /// though the other still looks at it. (Each process has its own mapping.) Gives
    /// the endpoint's address.
    #[cfg(feature = "test-doors")]
    pub fn stay_open(&self) -> Vec<u8> {
        self.link.fabric.leak();
        self.link.fabric.address().unwrap_or_default()
    }
}

impl Nal for OfiNal {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "ofi",
            eager: self.link.frames.eager(),
        }
    }

    #[inline]
    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        self.send_message(to, words, body)
    }

    fn send_lent(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Lent<'_>,
        number: u64,
    ) -> Result<bool, Unreachable> {
        self.send_message_lent(to, words, body, number)
    }

    fn next(&mut self) -> Option<Arrival> {
        if let Some(lane) = self.arrivals.current {
            return self.message_of(lane);
        }
        let has_any = self.peers.next_readable().is_some() || !self.arrivals.notices.is_empty();
        if !has_any || self.arrivals.since_poll >= MESSAGES_PER_POLL {
            self.progress();
        }
        if let Some(notice) = self.arrivals.notices.pop_front() {
            return Some(notice);
        }
        let lane = self.peers.next_readable()?;
        match self.peers.get(lane)?.receiving.inbox.front()? {
            Item::Message(_) => {
                self.arrivals.current = Some(lane);
                self.message_of(lane)
            }
            Item::Lost => Some(self.take_loss(lane)),
        }
    }

    fn done(&mut self, origin: Origin) {
        self.arrivals.current = None;
        self.arrivals.since_poll += 1;
        self.finish_message(origin.lane);
    }

    fn receive_into(&mut self, origin: Origin, place: Loan) {
        let peer = self.peers.get_mut(origin.lane);
        if let Some(body) = peer.and_then(|peer| peer.receiving.current_body()) {
            body.announced.receive_into(place);
        }
    }

    /// No payload arrives as lent memory.
    fn fetch(&mut self, _: Origin, _: &RemoteLoan, _: &[Claim]) -> Result<u64, MoveError> {
        Err(MoveError::Unavailable)
    }

    /// No payload arrives as lent memory.
    fn fill(&mut self, _: Origin, _: &[Claim], _: &RemoteLoan) -> Result<u64, MoveError> {
        Err(MoveError::Unavailable)
    }

    /// Peers are asked to read no further; those that don't for a second are given up.
    fn recall(&mut self, lease: &Lease) -> bool {
        self.recall_lease(lease)
    }

    fn backlog(&self, process: ProcessId) -> u64 {
        let peer = self.peers.named(process);
        peer.map_or(0, |peer| peer.sending.memory())
    }

    fn resources(&self) -> Resources {
        Resources {
            contexts: self.peers.len() as u64,
            pairs: self.peers.len() as u64,
            sockets: 1,
            bytes: self.link.frames.bytes() + (self.peers.len() * size_of::<Peer>()) as u64,
            ..self.counts
        }
    }

    fn traffic(&self) -> Vec<Traffic> {
        let count = |messages: u32| Count {
            messages: messages.into(),
            ..Count::default()
        };
        let traffic = |peer: &Peer| Traffic {
            process: peer.process,
            path: Path::Ofi,
            sent: count(peer.sending.sequence),
            received: count(peer.receiving.arrived),
            backlog: self.backlog(peer.process),
        };
        self.peers.all().map(traffic).collect()
    }

    fn arrivals(&self) -> u64 {
        let arrived = self.peers.all().map(|peer| peer.receiving.arrived);
        arrived.fold(0, |sum, arrived| sum + u64::from(arrived))
    }
}

impl Wake for OfiNal {
    /// True while more waits than a peer has room for. What waits for a connection
    /// alone is sent when [`due`](Nal::due) says.
    /// With the last message waiting for others, the first call leaves it.
    fn flush(&mut self) -> bool {
        if std::mem::take(&mut self.is_coalescing) {
            return true;
        }
        if !std::mem::take(&mut self.clock.has_polled) {
            self.progress();
            self.clock.has_polled = false;
        }
        self.peers.listed().any(|peer| peer.sending.has_queued())
    }

    fn has_queued(&self, process: ProcessId) -> bool {
        self.peers
            .named(process)
            .is_some_and(|peer| peer.sending.has_queued())
    }

    fn check_peers(&mut self) {
        self.check_all_peers();
    }

    fn wake_peers(&mut self) {}

    fn on_readable(&mut self) {
        let now = Instant::now();
        self.clock.last_readable = Some(now);
        self.clock.next_address_poll = now;
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let joined = self.link.epoll_fd.as_ref().map(AsFd::as_fd);
        joined.or_else(|| self.link.fabric.descriptor())
    }

    fn due(&self) -> Option<Instant> {
        self.clock.may_have_slept.set(true);
        if self.peers.next_readable().is_some() || !self.arrivals.notices.is_empty() {
            return Some(self.clock.now);
        }
        let last_readable = |at: Instant| at.elapsed() < CONNECTION_EVENT_WINDOW;
        let busy = self.is_busy() || self.clock.last_readable.is_some_and(last_readable);
        let fabric = match self.link.fabric.descriptor() {
            Some(_) if !self.link.fabric.may_sleep() => Some(self.clock.now),
            Some(_) => busy.then(|| Instant::now() + PROGRESS_INTERVAL),
            None => Some(Instant::now() + POLL_INTERVALS[usize::from(!busy)]),
        };
        let check =
            (busy || self.clock.last_peer_check.is_some()).then_some(self.clock.next_health_check);
        let listed = self.peers.listed();
        let peers = listed.filter_map(|peer| self.due_of(peer)).min();
        [fabric, check, peers].into_iter().flatten().min()
    }

    fn needs_progress(&self) -> bool {
        let polled = self.link.fabric.traits().moves_when_polled;
        let needs = |peer: &Peer| !peer.sending.queue.is_empty() || (polled && peer.is_moving());
        (polled && self.link.frames.in_flight() > 0) || self.peers.needed().any(needs)
    }

    fn all_delivered(&self) -> bool {
        self.peers
            .needed()
            .all(|peer| peer.closed_at.is_some() || peer.sending.all_delivered())
    }
}

impl Drop for OfiNal {
    fn drop(&mut self) {
        // Peers that have sent meanwhile get a close of this process, too.
        self.progress();
        self.send_close();
        self.addresses.directory.leave();
        let until = Instant::now() + LINGER;
        while self.link.frames.in_flight() > 0 && Instant::now() < until {
            let mut completions = Vec::new();
            self.link.fabric.poll(&mut completions);
            for completion in completions {
                if let Some(Operation::Send(buffer, _)) = completion.operation {
                    self.link.frames.give_back(buffer);
                }
            }
            std::thread::yield_now();
        }
    }
}

impl Clock {
    fn new(now: Instant) -> Clock {
        Clock {
            now,
            polls: 0,
            next_address_poll: now,
            may_have_slept: Cell::new(false),
            last_readable: None,
            next_health_check: now,
            last_peer_check: None,
            has_polled: false,
        }
    }
}

/// A process's name, and how it finds others.
struct Name {
    pid: u32,
    directory: Directory,
    resolver: Option<Resolver>,
}

impl Name {
    fn of_socket(port: u16) -> Name {
        Name {
            pid: u32::from(port),
            directory: Directory::Sockets,
            resolver: None,
        }
    }

    /// For an endpoint whose address is no socket.
    fn take(config: &Config<'_>, address: &[u8]) -> Result<Name, OpenError> {
        let (node, seal) = (Ipv4Addr::from(config.nid), Seal::new(&config.key));
        let bound = Resolver::bind(node, config.port, seal, nanoseconds(), address);
        let (resolver, port) = match (bound, config.port) {
            (Ok((resolver, port)), _) => (Some(resolver), Some(port)),
            (Err(error), Some(port)) if error.kind() == io::ErrorKind::AddrInUse => {
                return Err(OpenError::InUse(u32::from(port)));
            }
            // A node by a number alone; its processes find each other all the same.
            (Err(_), port) => (None, port),
        };
        let port = port.map(u32::from);
        let (directory, pid) = Directory::enter(config.job, config.nid, port, address)?;
        Ok(Name {
            pid,
            directory,
            resolver,
        })
    }
}

/// One descriptor for both; `None` if the fabric has none.
fn join(fabric: &Fabric<Operation>, resolver: &Resolver) -> Option<OwnedFd> {
    let both = epoll::create(epoll::CreateFlags::CLOEXEC).ok()?;
    let nothing = epoll::EventData::new_u64(0);
    epoll::add(&both, fabric.descriptor()?, nothing, epoll::EventFlags::IN).ok()?;
    epoll::add(&both, resolver, nothing, epoll::EventFlags::IN).ok()?;
    Some(both)
}

/// Nanoseconds since 1970: a number that later processes of the same name exceed.
fn nanoseconds() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).max(1)
}

fn in_use(error: OpenError, port: Option<u16>) -> OpenError {
    match error {
        OpenError::Refused { code, .. } if code == libc::EADDRINUSE => port
            .map_or(OpenError::NoneFree, |port| {
                OpenError::InUse(u32::from(port))
            }),
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_nal::Loopback;
    use lintel_nal_conformance::{Member, suite};

    const NID: u32 = 0x7f00_0001;

    fn config() -> Config<'static> {
        Config {
            nid: NID,
            port: None,
            provider: Some("tcp;ofi_rxm".to_owned()),
            key: [1; 32],
            uid: 1000,
            model_is_xrc: false,
            peer_timeout: Duration::from_secs(1),
            job: "registering",
            log: |words| eprintln!("{words}"),
        }
    }

    const NOTHING: Outgoing<'static> = Outgoing::Copied {
        operand: None,
        pieces: &[],
    };

    /// Two processes over tcp; nothing if there is no libfabric.
    fn pair() -> Option<(OfiNal, OfiNal)> {
        match (OfiNal::open(config()), OfiNal::open(config())) {
            (Ok(one), Ok(other)) => Some((one, other)),
            (one, other) => {
                let reason = one.err().or(other.err());
                eprintln!("SKIPPED, nothing was tested: {reason:?}");
                None
            }
        }
    }

    /// A network over tcp, every process of which registers its own buffers, and keeps
    /// no registration, as providers want it that drive such cards.
    fn network(members: usize) -> Vec<Member<Box<dyn Nal>>> {
        let open = || {
            OfiNal::open_with(config(), |fabric| {
                let registration = &mut fabric.traits_mut().registration;
                registration.local = true;
                registration.pinned = true;
            })
        };
        let mut network: Vec<Member<Box<dyn Nal>>> = Vec::new();
        for _ in 0..members {
            match open() {
                Ok(nal) => network.push(Member {
                    name: nal.process(),
                    nal: Box::new(nal),
                }),
                Err(reason) => {
                    eprintln!("SKIPPED, nothing was tested: {reason}");
                    let name = ProcessId::new(NID, 1);
                    let nal = Box::new(Loopback::new(name, 0));
                    return vec![Member { name, nal }];
                }
            }
        }
        network
    }

    suite!(network);

    /// A caller that then computes leaves it to its helper, which has to look in time.
    #[test]
    fn a_long_body_over_tcp_needs_its_senders_progress_until_it_has_been_read() {
        let Some((mut one, mut other)) = pair() else {
            return;
        };
        let lease = Lease::new();
        let regions = [(); 2].map(|()| lintel_claim::Region::new(1 << 20));
        let [body, place] = regions.each_ref().map(|region| [region.claim()]);
        assert!(!one.needs_progress(), "nothing was sent");
        let lent = Outgoing::LentToRead(lease.lend(&body));
        one.send(other.process(), &[1; 6], lent)
            .expect("there is a way");
        assert!(one.needs_progress());
        let until = Instant::now() + Duration::from_secs(20);
        let mut is_read = false;
        while !is_read || one.needs_progress() {
            one.flush();
            match other.next() {
                Some(Arrival::Message(origin, ..)) => {
                    other.receive_into(origin, lease.lend(&place).keep());
                    other.done(origin);
                    assert!(other.needs_progress() && one.needs_progress());
                }
                Some(Arrival::Streamed(_)) => is_read = true,
                _ => {
                    other.flush();
                }
            }
            assert!(Instant::now() < until, "it isn't read");
        }
        assert!(!other.needs_progress());
    }

    #[test]
    fn short_messages_behind_many_in_flight_wait_for_more_and_leave_with_the_next_poll() {
        let Some((mut one, mut other)) = pair() else {
            return;
        };
        let to = other.process();
        let mut numbers = 0..;
        let mut send = |nal: &mut OfiNal| {
            let number = numbers.next().expect("there is no last one");
            nal.send(to, &[number; 6], NOTHING).expect("there is a way");
        };
        let until = Instant::now() + Duration::from_secs(20);
        let mut taken = 0;
        let mut take = |one: &mut OfiNal, sent: u64| {
            while taken < sent || !one.all_delivered() {
                one.flush();
                match other.next() {
                    Some(Arrival::Message(origin, words, _)) => {
                        assert_eq!(words, [taken; 6]);
                        taken += 1;
                        other.done(origin);
                    }
                    _ => assert!(
                        !other.flush() && Instant::now() < until,
                        "{taken} of {sent}"
                    ),
                }
            }
        };
        send(&mut one);
        take(&mut one, 1);
        let waiting = |nal: &OfiNal| nal.peers.named(to).map(|peer| peer.sending.queue.len());
        for _ in 0..4 {
            send(&mut one);
            assert_eq!(waiting(&one), Some(0), "few are in flight");
        }
        for number in 1..=3 {
            send(&mut one);
            assert!(one.flush() && one.needs_progress());
            assert_eq!(waiting(&one), Some(number));
        }
        assert!(!one.flush());
        assert_eq!(waiting(&one), Some(0));
        take(&mut one, 8);
    }

    /// Otherwise its number would be used a second time if the peer is lost before it
    /// answers, and met again.
    #[test]
    fn no_message_goes_to_a_process_before_it_was_heard() {
        let Some((mut one, mut other)) = pair() else {
            return;
        };
        let body = Outgoing::Copied {
            operand: None,
            pieces: &[],
        };
        let until = Instant::now() + Duration::from_secs(20);
        one.send(other.process(), &[1; 6], body)
            .expect("there is a way");
        while !matches!(other.next(), Some(Arrival::Message(..))) {
            one.flush();
            let peer = one.peers.iter().next().expect("it was called");
            assert!(peer.history.current().is_some() || peer.sending.sequence == 0);
            assert!(Instant::now() < until, "nothing arrives");
        }
    }

    #[test]
    fn a_nal_goes_to_the_thread_that_uses_it() {
        fn is_send<T: Send>() {}
        is_send::<OfiNal>();
    }
}
