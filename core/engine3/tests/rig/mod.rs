//! The rig: interfaces as nodes, a host that writes everything down, and a wire
//! that carries requests and responses between them, step by step or to the end.
//!
//! Memory has addresses and lengths only; what would be copied is reported by the
//! pieces of a [`Sent`] or a [`Moved`].
//!
//! ```text
//!   let mut wire = Wire::of(2);                    two processes, 1/100 and 2/100
//!   wire.node(1).attach(entry(), md(100));         at portal table index 4
//!   wire.start(0, &put(md, process(1)));           a put of all of the descriptor
//!   wire.deliver();                                all the way, response included
//!   wire.node(1).events()                          what the target's queue holds
//! ```
#![allow(dead_code)] // each test binary uses its part

use lintel_engine3::{
    Backlog, Body, Config, Delivered, DescriptorSpec, Dialect, EntrySpec, Host, Interface, Landed,
    Landing, PendingReply, Posting, Transfer, Undeliverable, register,
};
use lintel_memory::{Buffer, Ghost, Pieces};
use lintel_types::portals3::{
    EQ_NONE, Error, Event, EventKind, Limits, MdOptions, MemoryDescriptor, NID_ANY, PID_ANY,
    Position, THRESHOLD_INFINITE, Unlink,
};
use lintel_types::{Handle, InterfaceNumber, NiFail, PortalIndex, ProcessId, QueueIndex};
use lintel_wire::portals3::{Request, Response, Verb};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub const EAGER: u64 = 256;
pub const UID: u32 = 1000;
pub const JID: u32 = 77;
/// The portal table index of the rig's entries and transfers.
pub const PORTAL: u32 = 4;
/// Where the memory of descriptors begins; any address does.
pub const BASE: u64 = 0x10_0000;
pub const ANYONE: ProcessId = ProcessId {
    nid: NID_ANY,
    pid: PID_ANY,
};

/// A request that the engine has sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Sent {
    pub to: ProcessId,
    pub request: Request,
    pub pieces: Vec<Ghost>,
}

/// A host that remembers.
#[derive(Default)]
pub struct Recorder {
    pub events: BTreeMap<QueueIndex, Vec<Event>>,
    pub sent: VecDeque<Sent>,
    pub unreachable: BTreeSet<ProcessId>,
    /// Of processes that aren't low.
    pub backlogs: BTreeMap<ProcessId, Backlog>,
    /// Bytes from which on bodies are lent, if any are.
    pub lends_from: Option<u64>,
}

impl Host<Ghost> for Recorder {
    fn post(&mut self, queue: QueueIndex, event: Posting<'_>) {
        self.events.entry(queue).or_default().push(event.into());
    }

    fn is_empty(&mut self, queue: QueueIndex) -> bool {
        self.events.get(&queue).is_none_or(Vec::is_empty)
    }

    fn backlog(&mut self, to: ProcessId) -> Backlog {
        self.backlogs.get(&to).copied().unwrap_or(Backlog::Low)
    }

    fn lends(&mut self, _: ProcessId, length: u64) -> bool {
        self.lends_from.is_some_and(|least| length >= least)
    }

    fn send(
        &mut self,
        to: ProcessId,
        request: &Request,
        body: Body<Ghost>,
    ) -> Result<(), Undeliverable> {
        if self.unreachable.contains(&to) {
            return Err(Undeliverable);
        }
        self.sent.push_back(Sent {
            to,
            request: *request,
            pieces: body.pieces.as_slice().to_vec(),
        });
        Ok(())
    }
}

/// One process's interface, its host, and an event queue.
pub struct Node {
    pub interface: Interface<Ghost>,
    pub host: Recorder,
    pub queue: Handle,
    pub id: ProcessId,
}

pub fn config(id: ProcessId, dialect: Dialect, limits: Limits) -> Config {
    Config {
        number: InterfaceNumber::from_bits(2),
        dialect,
        limits,
        process: id,
        uid: UID,
        jid: JID,
        eager: EAGER,
        generation: 5,
    }
}

impl Node {
    pub fn new(id: ProcessId, dialect: Dialect, limits: Limits) -> Self {
        Node::of(config(id, dialect, limits))
    }

    pub fn of(config: Config) -> Self {
        let id = config.process;
        let mut interface = Interface::new(config);
        let queue = interface.queue_alloc().expect("a limit lets one queue be");
        Node {
            interface,
            host: Recorder::default(),
            queue,
            id,
        }
    }

    /// A node of the specification's dialect with the default limits.
    pub fn plain() -> Self {
        Node::new(process(1), Dialect::Specification, Limits::DEFAULT)
    }

    /// A match entry at the tail of the list, and its descriptor, which reports to the
    /// node's queue.
    pub fn attach(&mut self, entry: EntrySpec, md: DescriptorSpec<Ghost>) -> (Handle, Handle) {
        let md = self.reporting(md);
        let attached = self
            .interface
            .entry_attach_with(PORTAL, entry, Position::After, md);
        attached.expect("entry and descriptor are well formed")
    }

    /// A free-floating descriptor that reports to the node's queue.
    pub fn bind(&mut self, md: DescriptorSpec<Ghost>) -> Handle {
        let md = self.reporting(md);
        let bound = self.interface.descriptor_bind(md);
        bound.expect("the descriptor is well formed")
    }

    pub fn reporting(&self, mut md: DescriptorSpec<Ghost>) -> DescriptorSpec<Ghost> {
        md.md.queue = self.queue;
        md
    }

    pub fn start(&mut self, transfer: &Transfer) -> Result<(), Error> {
        self.interface.start(transfer, &mut self.host)
    }

    pub fn unlink(&mut self, md: Handle) -> Result<(), Error> {
        self.interface.descriptor_unlink(md, &mut self.host)
    }

    pub fn update(
        &mut self,
        md: Handle,
        new: DescriptorSpec<Ghost>,
        test: Handle,
    ) -> Result<(), Error> {
        let host = &mut self.host;
        self.interface.descriptor_update(md, new, test, host)
    }

    /// What is left of a descriptor's threshold, or why it can't be read.
    pub fn threshold(&self, md: Handle) -> Result<i32, Error> {
        self.interface.descriptor_state(md).map(|md| md.threshold)
    }

    /// Takes the events of the node's queue.
    pub fn events(&mut self) -> Vec<Event> {
        let queue = QueueIndex(self.queue.index());
        self.host.events.remove(&queue).unwrap_or_default()
    }

    /// Takes the events of the node's queue; returns their kinds.
    pub fn kinds(&mut self) -> Vec<EventKind> {
        self.events().iter().map(|event| event.kind).collect()
    }

    pub fn drops(&self) -> u64 {
        let drops = self.interface.status(register::DROP_COUNT);
        drops.expect("it is a register")
    }

    pub fn on_request(&mut self, from: ProcessId, request: &Request) -> Landing<Ghost> {
        let host = &mut self.host;
        self.interface.on_request(from, UID, request, host)
    }

    pub fn on_landed(&mut self, landed: Landed, fail: NiFail) {
        self.interface.on_landed(landed, fail, &mut self.host);
    }

    /// A put arrives and lands in one step, with this outcome, at the place that is returned;
    /// nothing if it takes more.
    pub fn deliver(
        &mut self,
        from: ProcessId,
        put: &Request,
        fail: NiFail,
    ) -> Option<(Delivered, Ghost)> {
        let mut place = None;
        let copy = |span, _| {
            place = Some(span);
            fail
        };
        let host = &mut self.host;
        let delivered = self.interface.deliver(from, UID, put, copy, host)?;
        Some((delivered, place.expect("what is delivered was copied")))
    }

    /// An acknowledgement arrives and ends its put in one step; false if it takes more.
    pub fn deliver_acknowledgement(&mut self, response: &Response) -> bool {
        let from = self.answerer(response);
        let host = &mut self.host;
        self.interface.deliver_acknowledgement(from, response, host)
    }

    /// Who is to answer an operation by such a response; any process, if there is none.
    pub fn answerer(&self, response: &Response) -> ProcessId {
        let mut all = (0..8).map(process);
        let answers = |from: &ProcessId| self.interface.awaits(*from, response);
        all.find(answers).unwrap_or(process(0))
    }

    /// A request arrives and lands at once: where its bytes went, unless it was dropped.
    pub fn take(&mut self, from: ProcessId, request: &Request) -> Option<Vec<Ghost>> {
        match self.on_request(from, request) {
            Landing::Refused(_) => None,
            Landing::Accepted(pieces, landed) => {
                self.on_landed(landed, NiFail::Ok);
                Some(pieces.as_slice().to_vec())
            }
        }
    }

    /// Begins a landing that must be accepted.
    pub fn begin(&mut self, request: &Request) -> Landed {
        match self.on_request(process(0), request) {
            Landing::Accepted(_, landed) => landed,
            Landing::Refused(response) => panic!("refused: {response:?}"),
        }
    }

    pub fn on_response(&mut self, response: &Response) -> Option<(Pieces<Ghost>, PendingReply)> {
        self.interface.on_response(response, &mut self.host)
    }

    pub fn on_filled(&mut self, pending: PendingReply, fail: NiFail) {
        self.interface.on_filled(pending, fail, &mut self.host);
    }
}

/// Bytes that went over the wire.
#[derive(Clone, PartialEq, Debug)]
pub struct Moved {
    pub request: Request,
    pub source: Vec<Ghost>,
    pub target: Vec<Ghost>,
    /// Where a reply's bytes went.
    pub sink: Vec<Ghost>,
}

/// Nodes 1/100, 2/100, …, and the way between them.
pub struct Wire {
    pub nodes: Vec<Node>,
    pub moved: Vec<Moved>,
    /// How the copying at the target ends.
    pub landing: NiFail,
    /// How the copying of a reply ends.
    pub reply_outcome: NiFail,
}

pub fn process(index: usize) -> ProcessId {
    ProcessId::new(index as u32 + 1, 100)
}

impl Wire {
    pub fn of(count: usize) -> Self {
        Self::with(count, Dialect::Specification, Limits::DEFAULT)
    }

    pub fn cray(count: usize) -> Self {
        Self::with(count, Dialect::Cray, Limits::DEFAULT)
    }

    pub fn with(count: usize, dialect: Dialect, limits: Limits) -> Self {
        let nodes = (0..count).map(|index| Node::new(process(index), dialect, limits));
        Wire {
            nodes: nodes.collect(),
            moved: Vec::new(),
            landing: NiFail::Ok,
            reply_outcome: NiFail::Ok,
        }
    }

    pub fn node(&mut self, index: usize) -> &mut Node {
        &mut self.nodes[index]
    }

    /// Starts a transfer, which must be well formed, and carries it to its end.
    pub fn run(&mut self, node: usize, transfer: &Transfer) {
        let started = self.nodes[node].start(transfer);
        started.expect("the transfer is well formed");
        self.deliver();
    }

    /// Carries everything that is on its way to its end.
    pub fn deliver(&mut self) {
        while let Some(from) = self.sender() {
            self.step(from);
        }
    }

    /// A node that has sent something.
    pub fn sender(&self) -> Option<usize> {
        self.nodes
            .iter()
            .position(|node| !node.host.sent.is_empty())
    }

    /// Carries the first message of a node, if there is one, and its response.
    pub fn step(&mut self, from: usize) {
        let Some(sent) = self.nodes[from].host.sent.pop_front() else {
            return;
        };
        let to = self.nodes.iter().position(|node| node.id == sent.to);
        let to = to.expect("the test sends to a node of its wire");
        let initiator = self.nodes[from].id;
        let (target, response) = match self.nodes[to].on_request(initiator, &sent.request) {
            Landing::Refused(response) => (None, response),
            Landing::Accepted(pieces, landed) => {
                let response = landed.response(self.landing);
                self.nodes[to].on_landed(landed, self.landing);
                (Some(pieces.as_slice().to_vec()), response)
            }
        };
        let sink = response.map_or(Vec::new(), |response| self.answer(from, &response));
        if let Some(target) = target {
            self.moved.push(Moved {
                request: sent.request,
                source: sent.pieces,
                target,
                sink,
            });
        }
    }

    fn answer(&mut self, node: usize, response: &Response) -> Vec<Ghost> {
        let node = &mut self.nodes[node];
        match node.on_response(response) {
            None => Vec::new(),
            Some((pieces, pending)) => {
                node.on_filled(pending, self.reply_outcome);
                pieces.as_slice().to_vec()
            }
        }
    }
}

/// An entry for anyone's messages with bits 7, which stays.
pub fn entry() -> EntrySpec {
    EntrySpec {
        source: ANYONE,
        match_bits: 7,
        ignore_bits: 0,
        unlink: Unlink::Retain,
    }
}

/// A descriptor over that many bytes at [`BASE`] for puts and gets, without end and queue.
pub fn md(length: u64) -> DescriptorSpec<Ghost> {
    DescriptorSpec {
        md: MemoryDescriptor {
            start: BASE,
            length,
            threshold: THRESHOLD_INFINITE,
            max_size: 0xdead,
            options: MdOptions::OP_PUT | MdOptions::OP_GET,
            user_ptr: 0xabc,
            queue: EQ_NONE,
        },
        buffer: bytes(length),
        unlink: Unlink::Retain,
    }
}

/// Changes to a descriptor, each in a word.
pub trait With: Sized {
    fn threshold(self, threshold: i32) -> Self;
    /// Further options.
    fn with(self, options: MdOptions) -> Self;
    /// No option but these.
    fn only(self, options: MdOptions) -> Self;
    fn max_size(self, max_size: u64) -> Self;
    fn unlinking(self) -> Self;
}

impl With for DescriptorSpec<Ghost> {
    fn threshold(mut self, threshold: i32) -> Self {
        self.md.threshold = threshold;
        self
    }

    fn with(mut self, options: MdOptions) -> Self {
        self.md.options |= options;
        self
    }

    fn only(mut self, options: MdOptions) -> Self {
        self.md.options = options;
        self
    }

    fn max_size(mut self, max_size: u64) -> Self {
        self.md.options |= MdOptions::MAX_SIZE;
        self.md.max_size = max_size;
        self
    }

    fn unlinking(mut self) -> Self {
        self.unlink = Unlink::Unlink;
        self
    }
}

/// A descriptor over the pieces of an I/O vector, each at a MiB of its own.
pub fn vector(lengths: &[u64]) -> DescriptorSpec<Ghost> {
    let pieces = lengths.iter().enumerate();
    let pieces = pieces.map(|(piece, length)| Ghost::new(BASE + ((piece as u64) << 20), *length));
    let mut spec = md(0).with(MdOptions::IOVEC);
    spec.md.length = lengths.len() as u64;
    spec.buffer = Buffer::vector(pieces.collect());
    spec
}

/// A run of bytes at [`BASE`].
pub fn bytes(length: u64) -> Buffer<Ghost> {
    Buffer::Contiguous(Ghost::new(BASE, length))
}

/// A put of all of `source` with bits 7, without acknowledgement.
pub fn put(source: Handle, target: ProcessId) -> Transfer {
    Transfer {
        verb: Verb::Put,
        source,
        source_offset: 0,
        sink: Handle::INVALID,
        sink_offset: 0,
        length: None,
        ack: false,
        target,
        portal: PORTAL,
        access: 0,
        match_bits: 7,
        remote_offset: 0,
        hdr_data: 0x99,
    }
}

/// As [`put`], acknowledged.
pub fn acked_put(source: Handle, target: ProcessId) -> Transfer {
    Transfer {
        ack: true,
        ..put(source, target)
    }
}

/// A get of as much as `sink` holds with bits 7.
pub fn get(sink: Handle, target: ProcessId) -> Transfer {
    Transfer {
        verb: Verb::Get,
        sink,
        source: Handle::INVALID,
        ..put(sink, target)
    }
}

/// An exchange of all of `source`; the earlier bytes come to `sink`.
pub fn getput(sink: Handle, source: Handle, target: ProcessId) -> Transfer {
    Transfer {
        verb: Verb::GetPut,
        sink,
        ..put(source, target)
    }
}

/// A put of 8 bytes with bits 7 as it arrives; its token is 1.
pub fn request() -> Request {
    Request {
        verb: Verb::Put,
        interface: InterfaceNumber::from_bits(2),
        ack: true,
        referenced: false,
        portal: PortalIndex(PORTAL as u16),
        access: 0,
        token: 1,
        jid: JID,
        length: 8,
        match_bits: 7,
        remote_offset: 0,
        hdr_data: 0x99,
    }
}

/// Numbers from a seed, the same everywhere (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`, which isn't 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
