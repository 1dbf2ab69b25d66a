//! The rig: interfaces as nodes, a host that writes everything down, and a wire
//! that carries requests and responses between them, step by step or to the end.
//!
//! Memory has addresses and lengths only; what would be copied is reported by the
//! pieces of a [`Sent`], an [`Arrival`] or a [`Moved`].
//!
//! ```text
//!   let mut wire = Wire::of(2, options);            two processes, 1/100 and 2/100
//!   let portal = wire.node(1).portal(0);            a portal table entry with a queue
//!   wire.put(0, 1, …); wire.deliver();              all the way, response included
//!   wire.node(1).events()                           what the target's queue holds
//! ```
#![allow(dead_code)] // each test binary uses its part

use lintel_engine4::{
    Backlog, Body, Carried, Config, Delivered, DescriptorSpec, EntrySpec, Exchange, Host,
    Interface, Landed, Landing, PendingReply, PreparedCounts, PreparedLanding, PreparedSend, Step,
    Transfer, Undeliverable,
};
use lintel_memory::{Buffer, Ghost, Pieces};
use lintel_types::{
    AckRequest, CounterIndex, CountingEvent, Datatype, Error, Event, EventKind, Handle,
    InterfaceNumber, Limits, List, MdOptions, MeOptions, NiFail, NiOptions, Operation, PortalIndex,
    ProcessId, PtOptions, QueueIndex, UID_ANY,
};
use lintel_wire::{OPERAND_BYTES, Request, Response, Verb};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub const MATCHING: NiOptions = NiOptions::MATCHING.union(NiOptions::PHYSICAL);
pub const NON_MATCHING: NiOptions = NiOptions::NO_MATCHING.union(NiOptions::PHYSICAL);
pub const LOGICAL: NiOptions = NiOptions::MATCHING.union(NiOptions::LOGICAL);
pub const EAGER: u64 = 256;
pub const UID: u32 = 1000;
/// Where the target's memory begins; any address does.
pub const BASE: u64 = 0x10_0000;

/// A request that the engine has sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Sent {
    pub to: ProcessId,
    pub request: Request,
    pub operand: Option<[u8; OPERAND_BYTES]>,
    pub pieces: Vec<Ghost>,
}

/// A host that remembers.
#[derive(Default)]
pub struct Recorder {
    pub events: BTreeMap<QueueIndex, Vec<Event>>,
    pub counters: BTreeMap<CounterIndex, CountingEvent>,
    pub sent: VecDeque<Sent>,
    /// Events that a queue can hold; a queue that isn't named holds any number.
    pub capacity: BTreeMap<QueueIndex, usize>,
    pub unreachable: BTreeSet<ProcessId>,
    /// Of processes that aren't low.
    pub backlogs: BTreeMap<ProcessId, Backlog>,
    /// Processes whose memory it accesses by itself.
    pub direct: BTreeSet<ProcessId>,
    /// Operations that it has carried out there, with the pieces sent from and filled.
    pub carried: Vec<(Transfer, Vec<Ghost>, Vec<Ghost>)>,
    /// The counter of the entry that they are carried out on, if that is this interface's own.
    pub own_count: Option<(CounterIndex, u64)>,
}

impl Host<Ghost> for Recorder {
    fn post(&mut self, queue: QueueIndex, event: &Event) {
        self.events.entry(queue).or_default().push(*event);
    }

    fn backlog(&mut self, to: ProcessId) -> Backlog {
        self.backlogs.get(&to).copied().unwrap_or(Backlog::Low)
    }

    fn free_slots(&mut self, queue: QueueIndex) -> usize {
        let held = self.events.get(&queue).map_or(0, Vec::len);
        self.capacity
            .get(&queue)
            .map_or(usize::MAX, |capacity| capacity.saturating_sub(held))
    }

    fn queued(&mut self, queue: QueueIndex) -> usize {
        self.events.get(&queue).map_or(0, Vec::len)
    }

    fn publish(&mut self, counter: CounterIndex, value: CountingEvent) {
        self.counters.insert(counter, value);
    }

    fn may_carry_out(&mut self) -> bool {
        !self.direct.is_empty()
    }

    fn carry_out(&mut self, to: ProcessId, exchange: Exchange<'_, Ghost>) -> Carried {
        if !self.direct.contains(&to) {
            return Carried::No;
        }
        let (source, sink) = (exchange.source.to_vec(), exchange.sink.to_vec());
        self.carried.push((exchange.transfer.clone(), source, sink));
        self.own_count
            .map_or(Carried::Yes, |(counter, by)| Carried::Counting(counter, by))
    }

    fn send(
        &mut self,
        to: ProcessId,
        request: &Request,
        body: Body<'_, Ghost>,
    ) -> Result<(), Undeliverable> {
        if self.unreachable.contains(&to) {
            return Err(Undeliverable);
        }
        let pieces = body.pieces.as_slice().to_vec();
        self.sent.push_back(Sent {
            to,
            request: *request,
            operand: body.operand.copied(),
            pieces,
        });
        Ok(())
    }
}

/// Bytes up to which operations are repeated.
const LONGEST_REPEATED: u64 = 20;
/// What operations are repeated by, by verb and acknowledgement, descriptor and target.
pub type KeptSends = BTreeMap<((u8, u8), u32, ProcessId), PreparedSend<Ghost>>;

/// What puts land by like earlier ones, by sender and user, rank, portal table index, match bits
/// and token.
pub type KeptLandings =
    BTreeMap<((ProcessId, u32), u32, PortalIndex, u64, u32), PreparedLanding<Ghost>>;

/// Whether a host may count by itself what was prepared.
fn may_count(interface: &mut Interface<Ghost>, counts: &PreparedCounts) -> bool {
    !counts.is_any() || interface.first_successes(counts).is_some()
}

/// Counts by itself what was prepared, an operation of so many bytes.
fn count(
    interface: &mut Interface<Ghost>,
    host: &mut Recorder,
    counts: &PreparedCounts,
    length: u64,
) {
    if let [Some(counter), _] = counts.counters() {
        let successes = interface.first_successes(counts).expect("nothing waits");
        *successes = successes.wrapping_add(counts.first_by(length));
        let shown = host.counters.get_mut(&counter).expect("it was opened");
        shown.success = *successes;
    }
}

/// One process's interface, its host, and the queue that its portals report to.
pub struct Node {
    pub interface: Interface<Ghost>,
    pub host: Recorder,
    pub queue: Handle,
    pub id: ProcessId,
}

impl Node {
    pub fn new(id: ProcessId, options: NiOptions, limits: Limits) -> Self {
        let config = Config {
            options,
            limits,
            process: id,
            uid: UID,
            eager: EAGER,
            generation: 5,
        };
        let mut interface = Interface::new(config);
        let queue = interface.queue_alloc(64).unwrap();
        Node {
            interface,
            host: Recorder::default(),
            queue,
            id,
        }
    }

    /// A portal table entry that reports to the node's queue.
    pub fn portal(&mut self, options: PtOptions) -> PortalIndex {
        self.interface
            .portal_alloc(options, self.queue, lintel_types::PT_ANY)
            .unwrap()
    }

    pub fn append(&mut self, spec: EntrySpec<Ghost>, list: List) -> Handle {
        self.interface.append(&spec, list, &mut self.host).unwrap()
    }

    pub fn counter(&mut self) -> Handle {
        self.interface.counter_alloc(&mut self.host).unwrap()
    }

    pub fn bind(&mut self, spec: DescriptorSpec<Ghost>) -> Handle {
        self.interface.descriptor_bind(spec).unwrap()
    }

    /// 4096 bytes at 0x1000, events into the node's queue.
    pub fn descriptor(&mut self) -> Handle {
        let queue = self.queue;
        self.bind(DescriptorSpec {
            queue,
            ..descriptor()
        })
    }

    pub fn start(&mut self, transfer: &Transfer) -> Result<(), Error> {
        self.interface.start(transfer, &mut self.host)
    }

    /// Starts a short operation like an earlier one, if it can; what it was prepared by is in
    /// `kept`, or added.
    pub fn repeat(&mut self, kept: &mut KeptSends, transfer: &Transfer) -> bool {
        let Some(send) = self.prepared(kept, transfer) else {
            return false;
        };
        let (interface, host) = (&mut self.interface, &mut self.host);
        let counts = send.counts();
        let may = host.backlog(send.target()) == Backlog::Low && may_count(interface, counts);
        if !may || host.unreachable.contains(&send.target()) {
            return false;
        }
        let (sent, events) = (&mut host.sent, &mut host.events);
        let repeated = interface.repeat_send(
            &send,
            transfer,
            |request, body| {
                sent.push_back(Sent {
                    to: send.target(),
                    request: *request,
                    operand: None,
                    pieces: vec![body],
                });
                Some(())
            },
            |queue, event| events.entry(queue).or_default().push(*event),
        );
        if repeated.is_some() {
            count(interface, host, counts, transfer.length);
        }
        repeated.is_some()
    }

    /// Lands a put like an earlier one, if it can; what it was prepared by is in `kept`, or added.
    /// Returns where its bytes go.
    pub fn repeat_landing(
        &mut self,
        kept: &mut KeptLandings,
        (from, uid): (ProcessId, u32),
        put: &Request,
    ) -> Option<Ghost> {
        let kind = ((from, uid), put.rank, put.portal, put.match_bits, put.token);
        if let Some(place) = kept.get(&kind).and_then(|known| self.land_like(known, put)) {
            return Some(place);
        }
        let landing = self.interface.prepare_landing(from, uid, put)?;
        kept.insert(kind, landing);
        self.land_like(&landing, put)
    }

    fn land_like(&mut self, known: &PreparedLanding<Ghost>, put: &Request) -> Option<Ghost> {
        let (interface, host) = (&mut self.interface, &mut self.host);
        if !may_count(interface, known.counts()) {
            return None;
        }
        let mut place = None;
        let event = interface.repeat_landing(known, put, |span| place = Some(span))?;
        if let Some(queue) = known.queue() {
            host.post(queue, &event);
        }
        count(interface, host, known.counts(), put.length);
        place
    }

    fn prepared(&self, kept: &mut KeptSends, transfer: &Transfer) -> Option<PreparedSend<Ghost>> {
        if transfer.length > LONGEST_REPEATED {
            return None;
        }
        let verb_and_ack = (transfer.verb as u8, transfer.ack as u8);
        let descriptor = match transfer.verb {
            Verb::Get => transfer.sink,
            _ => transfer.source,
        };
        let kind = (verb_and_ack, descriptor.0, transfer.target);
        let known = kept.get(&kind);
        if let Some(send) = known.filter(|send| self.interface.is_prepared(send.counts())) {
            return Some(*send);
        }
        let send = self.interface.prepare_send(transfer, LONGEST_REPEATED)?;
        kept.insert(kind, send);
        Some(send)
    }

    /// Takes the events of the node's queue.
    pub fn events(&mut self) -> Vec<Event> {
        self.host
            .events
            .remove(&QueueIndex(self.queue.index()))
            .unwrap_or_default()
    }

    /// Takes the events of the node's queue; returns their kinds.
    pub fn kinds(&mut self) -> Vec<EventKind> {
        self.events().iter().map(|event| event.kind).collect()
    }

    /// A counter as the engine has it, which must be what it has shown.
    pub fn count(&self, counter: Handle) -> (u64, u64) {
        let value = self.interface.counter_value(counter).unwrap();
        assert_eq!(self.host.counters[&CounterIndex(counter.index())], value);
        (value.success, value.failure)
    }

    /// A request arrives that no interface of the rig has sent.
    pub fn on_request(&mut self, from: ProcessId, request: &Request) -> Landing<Ghost> {
        self.interface
            .on_request(from, UID, request, &mut self.host)
    }

    /// A request arrives with all its bytes; nothing if it doesn't land in one step.
    pub fn deliver(
        &mut self,
        from: ProcessId,
        request: &Request,
        fail: NiFail,
    ) -> Option<(Delivered, Ghost)> {
        let mut step = None;
        let act = |_: &mut Recorder, taken: Step<Ghost>| {
            step = Some(taken);
            fail
        };
        let host = &mut self.host;
        let delivered = self.interface.deliver(from, UID, request, act, host)?;
        let step = step.expect("what is delivered was acted upon");
        if let (Some(response), NiFail::Ok) = (delivered.response, fail) {
            assert_eq!(step.response, response);
        }
        Some((delivered, step.span))
    }

    pub fn on_landed(&mut self, landed: Landed, fail: NiFail) {
        self.interface.on_landed(landed, fail, &mut self.host);
    }

    /// A request arrives and lands at once.
    pub fn take(&mut self, from: ProcessId, request: &Request) -> Outcome {
        match self.on_request(from, request) {
            Landing::Refused(response) => Outcome {
                fail: response.map(|r| r.fail),
                response,
                pieces: Vec::new(),
            },
            Landing::Accepted(pieces, landed) => {
                let response = landed.response(NiFail::Ok);
                self.on_landed(landed, NiFail::Ok);
                Outcome {
                    fail: None,
                    response,
                    pieces: pieces.as_slice().to_vec(),
                }
            }
        }
    }

    /// Begins a landing that must be accepted.
    pub fn begin(&mut self, from: ProcessId, request: &Request) -> Landed {
        match self.on_request(from, request) {
            Landing::Accepted(_, landed) => landed,
            Landing::Refused(response) => panic!("refused: {response:?}"),
        }
    }

    /// Who is to answer an operation by such a response; any process, if there is none.
    pub fn answerer(&self, response: &Response) -> ProcessId {
        let mut all = (0..8).map(process);
        let answers = |from: &ProcessId| self.interface.awaits(*from, response);
        all.find(answers).unwrap_or(process(0))
    }

    pub fn on_response(&mut self, response: &Response) -> Option<(Pieces<Ghost>, PendingReply)> {
        let from = self.answerer(response);
        let (interface, host) = (&mut self.interface, &mut self.host);
        // What can be done in one step is the same in more.
        match interface.deliver_acknowledgement(from, response, host) {
            true => None,
            false => interface.on_response(response, host),
        }
    }
}

/// What became of a request that arrived and landed at once.
#[derive(Debug)]
pub struct Outcome {
    /// Why it was refused, where an answer says so.
    pub fail: Option<NiFail>,
    pub response: Option<Response>,
    pub pieces: Vec<Ghost>,
}

/// Bytes that went over the wire.
#[derive(Clone, PartialEq, Debug)]
pub struct Moved {
    pub request: Request,
    pub source: Vec<Ghost>,
    pub target: Vec<Ghost>,
}

/// Nodes 1/100, 2/100, … of the same kind, and the way between them.
pub struct Wire {
    pub nodes: Vec<Node>,
    pub moved: Vec<Moved>,
    /// How the copying at the target ends.
    pub landing: NiFail,
    /// How the copying of a reply ends.
    pub reply_outcome: NiFail,
    /// Requests that were carried.
    requests: u32,
}

pub fn process(index: usize) -> ProcessId {
    ProcessId::new(index as u32 + 1, 100)
}

impl Wire {
    pub fn of(count: usize, options: NiOptions) -> Self {
        Self::with_limits(count, options, Limits::DEFAULT)
    }

    pub fn with_limits(count: usize, options: NiOptions, limits: Limits) -> Self {
        let mut nodes: Vec<Node> = (0..count)
            .map(|index| Node::new(process(index), options, limits))
            .collect();
        if options.contains(NiOptions::LOGICAL) {
            let map: Vec<ProcessId> = (0..count).map(process).collect();
            for node in &mut nodes {
                node.interface.set_map(&map).unwrap();
            }
        }
        Wire {
            nodes,
            moved: Vec::new(),
            landing: NiFail::Ok,
            reply_outcome: NiFail::Ok,
            requests: 0,
        }
    }

    pub fn node(&mut self, index: usize) -> &mut Node {
        &mut self.nodes[index]
    }

    /// Carries everything that is on its way to its end.
    pub fn deliver(&mut self) {
        while let Some(from) = self
            .nodes
            .iter()
            .position(|node| !node.host.sent.is_empty())
        {
            let Some(sent) = self.nodes[from].host.sent.pop_front() else {
                return;
            };
            self.carry(from, sent);
        }
    }

    fn carry(&mut self, from: usize, sent: Sent) {
        let to = self.nodes.iter().position(|node| node.id == sent.to);
        let to = to.expect("the test sends to a node of its wire");
        let initiator = self.nodes[from].id;
        let response = match self.deliver_in_one_step(initiator, to, &sent) {
            Some(delivered) => delivered.response,
            None => self.land(initiator, to, sent),
        };
        let Some(response) = response else { return };
        let fail = self.reply_outcome;
        let node = &mut self.nodes[from];
        if let Some((_, pending)) = node.on_response(&response) {
            node.interface.on_filled(pending, fail, &mut node.host);
        }
    }

    /// Every second request is tried in one step, so that both ways are held against what is
    /// expected of either.
    fn deliver_in_one_step(
        &mut self,
        initiator: ProcessId,
        to: usize,
        sent: &Sent,
    ) -> Option<Delivered> {
        self.requests += 1;
        if self.requests % 2 == 0 {
            return None;
        }
        let fail = self.landing;
        let (delivered, place) = self.nodes[to].deliver(initiator, &sent.request, fail)?;
        self.moved.push(Moved {
            request: sent.request,
            source: sent.pieces.clone(),
            target: vec![place],
        });
        Some(delivered)
    }

    /// A request arrives and lands; returns the response.
    fn land(&mut self, initiator: ProcessId, to: usize, sent: Sent) -> Option<Response> {
        match self.nodes[to].on_request(initiator, &sent.request) {
            Landing::Refused(response) => response,
            Landing::Accepted(pieces, landed) => {
                let target = pieces.as_slice().to_vec();
                self.moved.push(Moved {
                    request: sent.request,
                    source: sent.pieces,
                    target,
                });
                let response = landed.response(self.landing);
                let fail = self.landing;
                self.nodes[to].on_landed(landed, fail);
                response
            }
        }
    }
}

/// A portal table index, or a literal for one.
pub trait Table {
    fn index(self) -> PortalIndex;
}

impl Table for PortalIndex {
    fn index(self) -> PortalIndex {
        self
    }
}

impl Table for i32 {
    fn index(self) -> PortalIndex {
        PortalIndex(u16::try_from(self).expect("a test's literal is an index"))
    }
}

/// A descriptor over 4096 bytes at 0x1000 without queue or counter.
pub fn descriptor() -> DescriptorSpec<Ghost> {
    DescriptorSpec {
        buffer: Buffer::Contiguous(Ghost::new(0x1000, 4096)),
        options: MdOptions::empty(),
        queue: Handle::EQ_NONE,
        counter: Handle::CT_NONE,
    }
}

/// An entry over 1000 bytes at [`BASE`] for anyone's puts and gets with bits 7.
pub fn entry(portal: impl Table) -> EntrySpec<Ghost> {
    EntrySpec {
        portal: portal.index(),
        buffer: bytes(1000),
        counter: Handle::CT_NONE,
        uid: UID_ANY,
        options: MeOptions::OP_PUT | MeOptions::OP_GET,
        source: ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
        match_bits: 7,
        ignore_bits: 0,
        min_free: 0,
        user_ptr: 0xabc,
    }
}

/// An entry of a logical interface: any rank's messages.
pub fn entry_for_rank(portal: impl Table, rank: u32) -> EntrySpec<Ghost> {
    EntrySpec {
        source: ProcessId::from_rank(rank),
        ..entry(portal)
    }
}

/// A run of bytes at [`BASE`].
pub fn bytes(length: u64) -> Buffer<Ghost> {
    Buffer::Contiguous(Ghost::new(BASE, length))
}

/// A put of 8 bytes with bits 7 from the start of `source`.
pub fn put(source: Handle, target: ProcessId, portal: impl Table) -> Transfer {
    Transfer {
        verb: Verb::Put,
        source,
        source_offset: 0,
        sink: Handle::INVALID,
        sink_offset: 0,
        length: 8,
        ack: AckRequest::None,
        target,
        portal: portal.index().into(),
        match_bits: 7,
        remote_offset: 0,
        user_ptr: 0xdef,
        hdr_data: 0x99,
        operation: Operation::Min,
        datatype: Datatype::Int8,
        operand: [0; OPERAND_BYTES],
    }
}

/// A get of 8 bytes with bits 7 to the start of `sink`.
pub fn get(sink: Handle, target: ProcessId, portal: impl Table) -> Transfer {
    Transfer {
        verb: Verb::Get,
        sink,
        source: Handle::INVALID,
        ..put(sink, target, portal)
    }
}

/// `PTL_SUM` of one 64-bit integer with bits 7.
pub fn atomic(source: Handle, target: ProcessId, portal: impl Table) -> Transfer {
    Transfer {
        verb: Verb::Atomic,
        operation: Operation::Sum,
        datatype: Datatype::Int64,
        ..put(source, target, portal)
    }
}

/// A response of 8 bytes to an operation.
pub fn response_to(token: u32, reply: bool) -> Response {
    Response {
        reply,
        interface: InterfaceNumber::new(true, false),
        placed: false,
        silent: false,
        token,
        mlength: 8,
        offset: 0,
        list: List::Priority,
        fail: NiFail::Ok,
    }
}

/// A put of 8 bytes with bits 7 as it arrives; its token is 1.
pub fn request(portal: impl Table) -> Request {
    Request {
        verb: Verb::Put,
        interface: InterfaceNumber::new(true, false),
        ack: AckRequest::Full,
        referenced: false,
        portal: portal.index(),
        token: 1,
        rank: ProcessId::RANK_ANY,
        length: 8,
        operation: Operation::Min,
        datatype: Datatype::Int8,
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
