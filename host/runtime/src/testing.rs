//! For tests: libraries of one process, joined by a network that stands in memory.

use crate::library::Library;
use crate::memory::Memory;
use crate::owner::{LocalProcess, Owner};
use crate::transport::{Endpoint, Transport};
use lintel_claim::{
    Claim, CrossMemoryError, Key, Lease, Lent, Loan, Region, RemoteSpan, copy_vectored,
};
use lintel_engine4::{DescriptorSpec, EntrySpec, Transfer};
use lintel_memory::Buffer;
use lintel_nal::{
    Arrival, Capabilities, Finder, Granted, MoveError, Moved, Nal, Origin, Outgoing, Parts,
    Payload, RemoteLoan, Unreachable, Wake,
};
use lintel_presence::{Bell, Segment, StatsWriter, ring};
use lintel_types::{
    AckRequest, Event, Handle, Limits, List, MdOptions, MeOptions, PT_ANY, PortalIndex, ProcessId,
    PtOptions, UID_ANY, options,
};
use lintel_wire::{OPERAND_BYTES, Verb, Words};
use parking_lot::Mutex;
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Within which something that a test waits for has happened.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// Match bits of the entries that tests append.
const BITS: u64 = 7;

/// Waits until something holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "in vain: {what}");
        std::thread::yield_now();
    }
}

/// A value for the rest of the process, reachable from a static: LeakSanitizer reports what
/// no pointer leads to.
pub(crate) fn keep<T: Send + Sync + 'static>(value: T) -> &'static T {
    static KEPT: Mutex<Vec<&(dyn Any + Send + Sync)>> = Mutex::new(Vec::new());
    let kept: &'static T = Box::leak(Box::new(value));
    KEPT.lock().push(kept);
    kept
}

/// A segment of a job of its own, for its bell.
pub(crate) fn segment() -> Arc<Segment> {
    static JOBS: AtomicU32 = AtomicU32::new(0);
    let number = JOBS.fetch_add(1, Ordering::Relaxed);
    let job = format!("runtime-test-{}-{number}", std::process::id());
    let segment = Segment::create(&job, 1, ProcessId::PID_ANY);
    Arc::new(segment.expect("there is shared memory"))
}

/// A network in memory. Messages that are sent while it is held wait at their sender.
#[derive(Clone, Default)]
pub(crate) struct Network {
    inboxes: Arc<Mutex<HashMap<ProcessId, Inbox>>>,
    pub(crate) is_held: Arc<AtomicBool>,
    /// As between nodes: nobody fills memory of others, and replies are lent.
    pub(crate) is_far: Arc<AtomicBool>,
    /// Returns of what was lent aren't reported meanwhile.
    pub(crate) holds_returns: Arc<AtomicBool>,
    /// Nothing arrives meanwhile.
    pub(crate) holds_arrivals: Arc<AtomicBool>,
    /// Nothing arrives at that process meanwhile.
    pub(crate) deaf: Arc<Mutex<Option<ProcessId>>>,
    /// Initiators that wait move bodies themselves.
    pub(crate) initiators_move: Arc<AtomicBool>,
    /// Targets that wait move bodies together with initiators.
    pub(crate) both_move: Arc<AtomicBool>,
    /// How many parts a granted body has, if more than one.
    pub(crate) parts_of_each: Arc<AtomicU64>,
    /// For a target, bytes of a part of the body that it has granted, and how many are taken.
    parts: Arc<Mutex<HashMap<ProcessId, (u64, u64)>>>,
    /// Parts of the body that was granted last that its target had taken before.
    pub(crate) taken_before: Arc<AtomicU64>,
    /// For a process, by which other one a body was moved last, or not.
    moved: Arc<Mutex<HashMap<ProcessId, (ProcessId, bool)>>>,
    /// Processes that have moved lent memory, or tried to, in turn.
    pub(crate) movers: Arc<Mutex<Vec<ProcessId>>>,
    /// Calls that have moved lent memory, or tried to.
    pub(crate) moves: Arc<AtomicU32>,
    /// Lent memory at that address can't be touched.
    pub(crate) bad_address: Arc<AtomicU64>,
    /// How often a process has checked whether its peers live.
    pub(crate) checks: Arc<AtomicU32>,
}

/// Bytes that a queued message stands for.
const MESSAGE_COST: u64 = 4 << 20;

struct Inbox {
    messages: VecDeque<Message>,
    segment: Arc<Segment>,
}

struct Message {
    from: Origin,
    words: Words,
    body: Body,
}

enum Body {
    Copied(Region, u64),
    Lent(Loan),
}

/// A process's NAL on a [`Network`].
struct Port {
    network: Network,
    me: ProcessId,
    queued: VecDeque<(ProcessId, Message)>,
    /// Numbers of loans to be returned.
    lent: VecDeque<u64>,
    /// The next message's body is left to its sender.
    is_left: bool,
}

impl Network {
    /// A library whose interfaces are on this network.
    pub(crate) fn peer(&self, pid: u32) -> Peer {
        let (me, segment) = (ProcessId::new(1, pid), segment());
        self.register(me, segment.clone());
        let endpoint = Endpoint {
            transport: self.transport(me),
            me,
            bell: Bell::new(segment.clone()),
            stats: StatsWriter::new(segment),
        };
        let library = keep(Library::new(LocalProcess::with_own_tables(), 0));
        let settings = library.init().expect("the environment is valid");
        library.pin();
        library
            .start(endpoint, &settings)
            .expect("there are threads");
        Peer::new(library, me)
    }

    /// Lets a process be reached.
    pub(crate) fn register(&self, me: ProcessId, segment: Arc<Segment>) {
        let inbox = Inbox {
            messages: VecDeque::new(),
            segment,
        };
        self.inboxes.lock().insert(me, inbox);
    }

    /// The transport of a process of this network.
    pub(crate) fn transport(&self, me: ProcessId) -> Transport {
        let port: Box<dyn Nal + Send> = Box::new(Port {
            network: self.clone(),
            me,
            queued: VecDeque::new(),
            lent: VecDeque::new(),
            is_left: false,
        });
        Transport::Boxed(Box::new(port))
    }

    /// Messages that wait at a process.
    pub(crate) fn waiting(&self, at: ProcessId) -> usize {
        self.inboxes.lock()[&at].messages.len()
    }

    /// A message that waits for a process, behind so many others.
    pub(crate) fn words(&self, at: ProcessId, behind: usize) -> Option<Words> {
        let inboxes = self.inboxes.lock();
        inboxes[&at]
            .messages
            .get(behind)
            .map(|message| message.words)
    }

    fn deliver(&self, to: ProcessId, message: Message) {
        if let Some(inbox) = self.inboxes.lock().get_mut(&to) {
            inbox.messages.push_back(message);
            ring(&inbox.segment, true);
        }
    }
}

impl Nal for Port {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "test",
            eager: 4096,
        }
    }

    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        if !self.network.inboxes.lock().contains_key(&to) {
            return Err(Unreachable);
        }
        if let (Outgoing::LentToFill(_), Some((_, taken))) =
            (&body, self.network.parts.lock().get(&self.me))
        {
            self.network.taken_before.store(*taken, Ordering::SeqCst);
        }
        let body = match body {
            Outgoing::Copied { operand, pieces } => copied(operand, pieces),
            Outgoing::LentToFill(_) if self.is_far() => copied(None, &[]),
            Outgoing::LentToRead(lent) | Outgoing::LentToFill(lent) => Body::Lent(lent.keep()),
        };
        let from = Origin {
            process: self.me,
            uid: LocalProcess::default().uid(),
            lane: self.me.pid,
        };
        let words = *words;
        self.queued.push_back((to, Message { from, words, body }));
        self.flush();
        Ok(())
    }

    fn send_lent(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Lent<'_>,
        number: u64,
    ) -> Result<bool, Unreachable> {
        if !self.is_far() {
            return Ok(false);
        }
        let pieces = body.pieces();
        let operand = None;
        self.send(to, words, Outgoing::Copied { operand, pieces })?;
        self.lent.push_back(number);
        Ok(true)
    }

    fn leave_to(&mut self, _: Origin) {
        self.is_left = true;
    }

    fn begin_parts(&mut self, origin: Origin, parts: Parts, length: u64) -> Option<(u64, u64)> {
        self.network.parts.lock().insert(self.me, (parts.bytes, 0));
        (parts.is_joint).then(|| self.take_part(Granted::To(origin), length))?
    }

    fn take_part(&mut self, granted: Granted, length: u64) -> Option<(u64, u64)> {
        let target = match granted {
            Granted::By(process) => process,
            Granted::To(_) => self.me,
        };
        let mut parts = self.network.parts.lock();
        let (bytes, taken) = parts.get_mut(&target)?;
        let begin = *bytes * *taken;
        let left = length.checked_sub(begin).filter(|left| *left > 0)?;
        *taken += 1;
        Some((begin, (*bytes).min(left)))
    }

    fn revoke_grant(&mut self, _: Origin, own: u32) -> bool {
        let mut parts = self.network.parts.lock();
        let is_own = parts
            .get(&self.me)
            .is_some_and(|(_, taken)| *taken == own.into());
        if is_own {
            parts.remove(&self.me);
            self.is_left = false;
        }
        is_own
    }

    fn note_moved(&mut self, to: ProcessId, moved: Moved) {
        let is_moved = moved != Moved::Nothing;
        self.network.moved.lock().insert(to, (self.me, is_moved));
        if moved != Moved::Whole {
            ring(&self.network.inboxes.lock()[&to].segment, true);
        }
    }

    fn next(&mut self) -> Option<Arrival> {
        if self.is_left {
            let (from, is_moved) = self.network.moved.lock().remove(&self.me)?;
            self.is_left = false;
            let inboxes = self.network.inboxes.lock();
            let first = inboxes.get(&self.me)?.messages.front()?.from;
            assert_eq!(first.process, from);
            return Some(Arrival::Moved(first, is_moved));
        }
        if !self.network.holds_returns.load(Ordering::SeqCst) {
            if let Some(number) = self.lent.pop_front() {
                return Some(Arrival::Returned(number));
            }
        }
        if self.hears_nothing() {
            return None;
        }
        let inboxes = self.network.inboxes.lock();
        let message = inboxes.get(&self.me)?.messages.front()?;
        let payload = match &message.body {
            Body::Copied(region, length) => Payload::Inline(region.claim().slice(0, *length)),
            Body::Lent(loan) => Payload::Lent(remote_loan(loan)),
        };
        Some(Arrival::Message(message.from, message.words, payload))
    }

    fn next_inline(&mut self) -> Option<(Origin, Words, Claim)> {
        if self.hears_nothing() {
            return None;
        }
        let inboxes = self.network.inboxes.lock();
        let message = inboxes.get(&self.me)?.messages.front()?;
        match &message.body {
            Body::Copied(region, length) => {
                let body = region.claim().slice(0, *length);
                Some((message.from, message.words, body))
            }
            Body::Lent(_) => None,
        }
    }

    fn done(&mut self, _: Origin) {
        if let Some(inbox) = self.network.inboxes.lock().get_mut(&self.me) {
            inbox.messages.pop_front();
        }
    }

    fn lent_behind(&mut self, _: Origin, places: u32, _: u64) -> Option<(Words, RemoteLoan)> {
        let inboxes = self.network.inboxes.lock();
        let message = inboxes.get(&self.me)?.messages.get(places as usize)?;
        match &message.body {
            Body::Lent(loan) => Some((message.words, remote_loan(loan))),
            Body::Copied(..) => None,
        }
    }

    fn receive_into(&mut self, _: Origin, _: Loan) {}

    fn fetch(&mut self, _: Origin, remote: &RemoteLoan, to: &[Claim]) -> Result<u64, MoveError> {
        self.on_lent(remote, |lent| copy_vectored(lent, to))
    }

    fn fill(&mut self, _: Origin, from: &[Claim], remote: &RemoteLoan) -> Result<u64, MoveError> {
        self.on_lent(remote, |lent| copy_vectored(from, lent))
    }

    fn recall(&mut self, _: &Lease) -> bool {
        true
    }

    /// As if each message were long, so that few of them fill a backlog.
    fn backlog(&self, process: ProcessId) -> u64 {
        let to_it = self.queued.iter().filter(|(to, _)| *to == process);
        to_it.count() as u64 * MESSAGE_COST
    }
}

impl Wake for Port {
    fn flush(&mut self) -> bool {
        while !self.network.is_held.load(Ordering::SeqCst) {
            let Some((to, message)) = self.queued.pop_front() else {
                return false;
            };
            self.network.deliver(to, message);
        }
        !self.queued.is_empty()
    }

    fn has_queued(&self, process: ProcessId) -> bool {
        self.queued.iter().any(|(to, _)| *to == process)
    }

    fn check_peers(&mut self) {
        self.network.checks.fetch_add(1, Ordering::SeqCst);
    }

    fn wake_peers(&mut self) {}

    fn would_move(&mut self, _: Origin, length: u64, found: Finder) -> Option<Parts> {
        let (is_joint, granted) = match found {
            Finder::Helper => (false, &self.network.initiators_move),
            _ => (true, &self.network.both_move),
        };
        let bytes = length / self.network.parts_of_each.load(Ordering::SeqCst).max(1);
        let parts = Parts { bytes, is_joint };
        granted.load(Ordering::SeqCst).then_some(parts)
    }
}

impl Port {
    fn hears_nothing(&self) -> bool {
        let holds_all = self.network.holds_arrivals.load(Ordering::SeqCst);
        self.is_left || holds_all || *self.network.deaf.lock() == Some(self.me)
    }

    fn is_far(&self) -> bool {
        self.network.is_far.load(Ordering::SeqCst)
    }

    /// Does something with the parts of lent memory that the caller names.
    fn on_lent(
        &self,
        remote: &RemoteLoan,
        moves: impl FnOnce(&[Claim]) -> u64,
    ) -> Result<u64, MoveError> {
        self.network.moves.fetch_add(1, Ordering::SeqCst);
        self.network.movers.lock().push(self.me);
        let bad = self.network.bad_address.load(Ordering::SeqCst);
        let spans = remote.spans.as_slice();
        if spans.iter().any(|span| span.address == bad) {
            return Err(MoveError::Fault);
        }
        let inboxes = self.network.inboxes.lock();
        let messages = &inboxes[&self.me].messages;
        let lent = |span: &RemoteSpan| {
            let mut pieces = messages.iter().flat_map(Message::lent);
            pieces.find_map(|piece| piece_of(piece, span))
        };
        let lent: Option<Vec<Claim>> = spans.iter().map(lent).collect();
        lent.map(|lent| moves(&lent)).ok_or(MoveError::Unavailable)
    }
}

impl Message {
    /// What it lends.
    fn lent(&self) -> &[Claim] {
        match &self.body {
            Body::Lent(loan) => loan.pieces(),
            Body::Copied(..) => &[],
        }
    }
}

/// The bytes that a span names, if they are of this piece.
fn piece_of(piece: &Claim, span: &RemoteSpan) -> Option<Claim> {
    let offset = span.address.checked_sub(piece.address())?;
    (offset + span.length <= piece.len()).then(|| piece.slice(offset, span.length))
}

/// What names lent memory to its receiver.
fn remote_loan(loan: &Loan) -> RemoteLoan {
    let span = |piece: &Claim| RemoteSpan {
        address: piece.address(),
        length: piece.len(),
    };
    RemoteLoan {
        key: Key::default(),
        spans: loan.pieces().iter().map(span).collect(),
    }
}

fn copied(operand: Option<&[u8; OPERAND_BYTES]>, pieces: &[Claim]) -> Body {
    let ahead = operand.map_or(0, |operand| operand.len() as u64);
    let length = ahead + lintel_memory::length(pieces);
    let region = Region::new(length);
    if let Some(operand) = operand {
        region.write(0, operand);
    }
    copy_vectored(pieces, &[region.claim().slice(ahead, length - ahead)]);
    Body::Copied(region, length)
}

/// A library with an interface, an event queue, and an entry for puts.
pub(crate) struct Peer {
    pub(crate) library: &'static Library<LocalProcess>,
    pub(crate) me: ProcessId,
    pub(crate) interface: Handle,
    portal: PortalIndex,
    pub(crate) queue: Handle,
    /// The memory of the entry, and of the descriptor.
    pub(crate) memory: Region,
    pub(crate) descriptor: Handle,
    pub(crate) entry: Handle,
}

/// Bytes of a peer's memory.
pub(crate) const MEMORY: u64 = 64 << 10;

impl Peer {
    fn new(library: &'static Library<LocalProcess>, me: ProcessId) -> Peer {
        let kind = options::NI_MATCHING | options::NI_PHYSICAL;
        let opened = library.open_interface(0, kind, ProcessId::PID_ANY, None);
        let (interface, _): (Handle, Limits) = opened.expect("it is free");
        let queue = library.queue_alloc(interface, 16).expect("it is free");
        let portal = library.portal_alloc(interface, PtOptions::empty(), queue, PT_ANY);
        let memory = Region::new(MEMORY);
        let portal = portal.expect("it is free");
        let entry = entry_of(portal, &memory, MeOptions::empty());
        let entry = library
            .append(interface, entry, List::Priority)
            .expect("there is room");
        let spec = DescriptorSpec {
            buffer: Buffer::Contiguous(memory.claim()),
            options: MdOptions::empty(),
            queue,
            counter: Handle::CT_NONE,
        };
        let descriptor = library.descriptor_bind(interface, spec);
        Peer {
            library,
            me,
            interface,
            portal,
            queue,
            memory,
            descriptor: descriptor.expect("there is room"),
            entry,
        }
    }

    /// Appends another entry like its own, with these options besides.
    pub(crate) fn append_behind(
        &self,
        options: MeOptions,
        list: List,
    ) -> lintel_types::Result<Handle> {
        let entry = entry_of(self.portal, &self.memory, options);
        self.library.append(self.interface, entry, list)
    }

    /// Has a counter count what lands in its entry, which is appended anew.
    pub(crate) fn count(&mut self) -> lintel_types::Result<Handle> {
        self.library.unlink(self.entry)?;
        let counter = self.library.counter_alloc(self.interface)?;
        let entry = EntrySpec {
            counter,
            ..entry_of(self.portal, &self.memory, MeOptions::EVENT_CT_COMM)
        };
        self.entry = (self.library).append(self.interface, entry, List::Priority)?;
        Ok(counter)
    }

    /// Puts the first bytes of this peer's memory to the other's.
    pub(crate) fn put(&self, to: &Peer, length: u64) {
        self.start(put_of(self.descriptor, to.me, length));
    }

    pub(crate) fn start(&self, transfer: Transfer) {
        let started = self.library.start_by(|| transfer.clone());
        started.expect("the arguments are valid");
    }

    /// Gets the first bytes of the other's memory.
    pub(crate) fn get(&self, from: &Peer, length: u64) {
        let transfer = Transfer {
            verb: Verb::Get,
            source: Handle::INVALID,
            sink: self.descriptor,
            ack: AckRequest::None,
            ..put_of(self.descriptor, from.me, length)
        };
        self.start(transfer);
    }

    /// The next event, within [`PATIENCE`].
    pub(crate) fn event(&self) -> Event {
        let timeout = PATIENCE.as_millis() as u32;
        let polled = self
            .library
            .queue_poll(&[self.queue], timeout, |taken, _| taken.event());
        polled.expect("something happens")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.library.fini();
    }
}

/// An entry of a [`Peer`], with these options besides.
fn entry_of(portal: PortalIndex, memory: &Region, options: MeOptions) -> EntrySpec<Claim> {
    let all = MeOptions::OP_PUT | MeOptions::OP_GET | MeOptions::EVENT_LINK_DISABLE;
    EntrySpec {
        portal,
        buffer: Buffer::Contiguous(memory.claim()),
        counter: Handle::CT_NONE,
        uid: UID_ANY,
        options: all.union(options),
        source: ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
        match_bits: BITS,
        ignore_bits: 0,
        min_free: 0,
        user_ptr: 0,
    }
}

/// A put with a full acknowledgement to the entry of a [`Peer`].
pub(crate) fn put_of(descriptor: Handle, target: ProcessId, length: u64) -> Transfer {
    Transfer {
        verb: Verb::Put,
        source: descriptor,
        source_offset: 0,
        sink: Handle::INVALID,
        sink_offset: 0,
        length,
        ack: AckRequest::Full,
        target,
        portal: 0,
        match_bits: BITS,
        remote_offset: 0,
        user_ptr: 0,
        hdr_data: 0,
        operation: Default::default(),
        datatype: Default::default(),
        operand: [0; OPERAND_BYTES],
    }
}

/// Memory that can be copied only through the system, as a client's; here it is this
/// process's own.
#[derive(Default)]
pub(crate) struct CopiedMemory {
    /// Bytes of each copy so far.
    pub(crate) copies: Mutex<Vec<u64>>,
    /// Copies from this one on fail.
    pub(crate) fails_after: Option<usize>,
    /// Buffers that were made.
    pub(crate) buffers: AtomicU32,
    /// Bytes of the longest buffer; 0 for any.
    pub(crate) max_buffer: u64,
}

impl CopiedMemory {
    fn copy(&self, from: &[Claim], to: &[Claim]) -> Result<u64, CrossMemoryError> {
        let mut copies = self.copies.lock();
        if self.fails_after.is_some_and(|most| copies.len() >= most) {
            return Err(CrossMemoryError::Fault { copied: 0 });
        }
        let copied = copy_vectored(from, to);
        copies.push(copied);
        Ok(copied)
    }
}

impl Memory for CopiedMemory {
    type Span = Claim;

    fn copy_in(&self, from: &[Claim], to: &[Claim]) -> Result<u64, CrossMemoryError> {
        self.copy(from, to)
    }

    fn copy_out(&self, from: &[Claim], to: &[Claim]) -> Result<u64, CrossMemoryError> {
        self.copy(from, to)
    }

    fn staging(&self, length: u64) -> io::Result<Region> {
        if self.max_buffer != 0 && length > self.max_buffer {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.buffers.fetch_add(1, Ordering::Relaxed);
        Region::try_new(length)
    }
}
