//! Nodes with adapters, joined by a switch.
//!
//! An engine does one thing after the other; two of them, and the two ways of the bus,
//! work at the same time. A message goes packet by packet, so that the bus of the
//! receiver has the first one while that of the sender has the second.

use std::collections::{BTreeMap, VecDeque};

use lintel_sim_fabric::{
    Arbitration, ConfigError, Fabric, FabricEvent, FatTree, FreeFabric, LinkParameters, Message,
    Node, Outcome, Parameters,
};
use lintel_sim_kernel::{Bytes, Duration, Event, EventQueue, SimTime, World};
use lintel_sim_node::{Bus, BusParameters, Copy};

use crate::Transport;
use crate::cache::{Cache, Context};
use crate::constants::{
    BUS_ALL, BUS_EACH, BUS_LATENCY, CABLE, CACHE, ENGINE, HEADER, HOST, INLINE, LINK, MISS, MTU,
    RECEIVE_QUEUE, SWITCH, TURN,
};
use crate::trace::{Observer, Span, Track};

/// A process: its node, and its place there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Process {
    /// The node's number, 0 or 1.
    pub node: u32,
    /// The process's number in its node, from 0.
    pub rank: u32,
}

/// A message to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Post {
    /// The process that sends it.
    pub from: Process,
    /// The receiver, on the other node.
    pub to: Process,
    /// Length of the payload.
    pub bytes: Bytes,
}

/// A message that its process has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    /// The message that arrived.
    pub post: Post,
    /// When the receiver has found its completion.
    pub when: SimTime,
}

/// An event of the machine; numbers are those of messages and nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MachineEvent {
    /// An event within the network.
    Fabric(FabricEvent),
    /// An adapter finds a message to send.
    Posted(u32),
    /// An engine has the context and has done its work for a packet.
    Worked(Side),
    /// A copy on a node's bus may have ended.
    Copied(u32, u64),
    /// A process finds a message.
    Found(u32),
}

/// An engine: of which node, sending or receiving.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Side {
    node: u32,
    sends: bool,
}

/// Called for each message that a process has found; returns what it posts in answer.
pub type Answer = Box<dyn FnMut(Arrived) -> Option<Post>>;

/// Nodes with host channel adapters, and the network between them.
pub struct Machine {
    transport: Transport,
    fabric: FreeFabric<FatTree>,
    adapters: Vec<Adapter>,
    messages: Vec<Transit>,
    /// When each process has time for another message.
    processes: BTreeMap<Process, SimTime>,
    answer: Answer,
    observer: Option<Observer>,
}

struct Adapter {
    cache: Cache,
    bus: Bus,
    copies: BTreeMap<Copy, Side>,
    /// Queue pairs with something to send, in turn.
    active: VecDeque<Context>,
    queues: BTreeMap<Context, VecDeque<u32>>,
    /// Packets that the first one may still send in its turn; none while it has no turn.
    turn: u32,
    sending: Option<Packet>,
    receiving: Option<Packet>,
    arrived: VecDeque<Packet>,
}

/// A part of a message.
#[derive(Clone, Copy, Debug)]
struct Packet {
    message: u32,
    bytes: u64,
    /// When its engine began with it.
    begun: SimTime,
}

#[derive(Clone, Copy)]
struct Transit {
    post: Post,
    unsent: u64,
    unreceived: u64,
    /// Bytes that have left and aren't there.
    on_wire: u64,
    is_begun: bool,
    /// When its first packet left.
    left: SimTime,
}

impl Machine {
    /// So many nodes at one switch.
    ///
    /// # Errors
    ///
    /// More nodes than a switch can have.
    pub fn new(nodes: u32, transport: Transport, answer: Answer) -> Result<Self, ConfigError> {
        let link = |latency| LinkParameters {
            bandwidth: LINK,
            latency,
        };
        let parameters = Parameters {
            packet: Bytes(MTU.0 + HEADER.0),
            buffer: 8,
            credit: CABLE,
            arbitration: Arbitration::RoundRobin,
            classes: 1,
            inject: link(SWITCH),
            near: link(CABLE),
            far: link(CABLE),
            eject: link(CABLE),
        };
        let switch = FatTree::new(&[nodes], &[1])?;
        Ok(Machine {
            transport,
            fabric: FreeFabric::new(switch, &parameters)?,
            adapters: (0..nodes).map(|_| Adapter::new()).collect(),
            messages: Vec::new(),
            processes: BTreeMap::new(),
            answer,
            observer: None,
        })
    }

    /// Reports each span from now on.
    pub fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// A process posts a message as soon as it has time.
    ///
    /// # Panics
    ///
    /// If the message is longer than a packet and the transport is UD, or if a
    /// process sends to its own node, which no adapter has to do with.
    pub fn post(&mut self, post: Post, events: &mut EventQueue<MachineEvent>) {
        let fits = self.transport != Transport::Ud || post.bytes.0 <= MTU.0;
        assert!(fits, "UD carries messages of a packet, {} bytes", MTU.0);
        assert_ne!(post.from.node, post.to.node, "a node's own use its memory");
        let posted = self.take_time(post.from, "post", post.bytes, events.now());
        let number = u32::try_from(self.messages.len()).expect("less than 2^32 messages");
        self.messages.push(Transit {
            post,
            unsent: post.bytes.0,
            unreceived: post.bytes.0,
            on_wire: 0,
            is_begun: false,
            left: SimTime::START,
        });
        events.at(posted + BUS_LATENCY, MachineEvent::Posted(number));
    }

    /// Contexts that the adapters had to fetch.
    pub fn misses(&self) -> u64 {
        self.adapters.iter().map(|a| a.cache.misses()).sum()
    }

    /// A process does one thing after the other.
    fn take_time(
        &mut self,
        process: Process,
        name: &'static str,
        bytes: Bytes,
        from: SimTime,
    ) -> SimTime {
        let free = self.processes.entry(process).or_default();
        let start = from.max(*free);
        let end = start + HOST;
        *free = end;
        self.report(Span {
            at: process.node,
            track: Track::Process(process.rank),
            name,
            bytes: Some(bytes),
            start,
            end,
        });
        end
    }

    /// An engine has done with a packet.
    fn report_packet(&mut self, node: u32, track: Track, packet: Packet, end: SimTime) {
        self.report(Span {
            at: node,
            track,
            name: "packet",
            bytes: Some(Bytes(packet.bytes)),
            start: packet.begun,
            end,
        });
    }

    fn report(&mut self, span: Span) {
        if let Some(observer) = &mut self.observer {
            observer(span);
        }
    }

    /// The queue pair of a message, on the sender's adapter or the receiver's.
    fn context(&self, post: &Post, sends: bool) -> Context {
        let (own, other) = match sends {
            true => (post.from, post.to),
            false => (post.to, post.from),
        };
        let name = |own: u32, node: u32, rank: u32| {
            u64::from(own) << 48 | u64::from(node) << 16 | u64::from(rank)
        };
        match (self.transport, sends) {
            // One queue pair of two processes, for both ways.
            (Transport::Rc, _) => name(own.rank, other.node, other.rank),
            (Transport::Xrc, true) => name(own.rank, other.node, 0),
            // The sender's: it belongs to no process here.
            (Transport::Xrc, false) => name(0xffff, other.node, other.rank),
            (Transport::Ud, _) => name(own.rank, 0, 0),
        }
    }

    fn on_posted(&mut self, message: u32, events: &mut EventQueue<MachineEvent>) {
        let post = self.messages[message as usize].post;
        let context = self.context(&post, true);
        let adapter = &mut self.adapters[post.from.node as usize];
        let queue = adapter.queues.entry(context).or_default();
        if queue.is_empty() {
            adapter.active.push_back(context);
        }
        queue.push_back(message);
        self.send_next(post.from.node, events);
    }

    /// The send engine begins a packet of the queue pair whose turn it is.
    fn send_next(&mut self, node: u32, events: &mut EventQueue<MachineEvent>) {
        let adapter = &mut self.adapters[node as usize];
        if adapter.sending.is_some() {
            return;
        }
        let Some(&context) = adapter.active.front() else {
            return;
        };
        let message = adapter.queues[&context][0];
        let transit = &mut self.messages[message as usize];
        let packet = Packet {
            message,
            bytes: transit.unsent.min(MTU.0),
            begun: events.now(),
        };
        let mut work = match std::mem::replace(&mut transit.is_begun, true) {
            true => Duration::ZERO,
            false => ENGINE,
        };
        if adapter.turn == 0 {
            adapter.turn = TURN;
            work += adapter.fetch(context);
        }
        adapter.sending = Some(packet);
        events.after(work, MachineEvent::Worked(Side { node, sends: true }));
    }

    fn on_worked(&mut self, side: Side, events: &mut EventQueue<MachineEvent>) {
        let adapter = &mut self.adapters[side.node as usize];
        let packet = match side.sends {
            true => adapter.sending,
            false => adapter.receiving,
        };
        let packet = packet.expect("an engine works for a packet");
        let length = self.messages[packet.message as usize].post.bytes;
        let is_inline = side.sends && length <= INLINE;
        if packet.bytes == 0 || is_inline {
            return self.on_copied(side, events);
        }
        let copy = adapter.bus.begin(events.now(), Bytes(packet.bytes));
        adapter.copies.insert(copy, side);
        self.schedule_bus(side.node, events);
    }

    fn schedule_bus(&mut self, node: u32, events: &mut EventQueue<MachineEvent>) {
        if let Some(due) = self.adapters[node as usize].bus.due() {
            events.at(due.when, MachineEvent::Copied(node, due.version));
        }
    }

    fn on_bus(&mut self, node: u32, version: u64, events: &mut EventQueue<MachineEvent>) {
        let adapter = &mut self.adapters[node as usize];
        let Some(copy) = adapter.bus.on_due(events.now(), version) else {
            return;
        };
        let side = adapter.copies.remove(&copy);
        self.on_copied(side.expect("a copy has its engine"), events);
        self.schedule_bus(node, events);
    }

    fn on_copied(&mut self, side: Side, events: &mut EventQueue<MachineEvent>) {
        match side.sends {
            true => self.on_read(side.node, events),
            false => self.on_written(side.node, events),
        }
    }

    /// A packet is in the adapter, and leaves it.
    fn on_read(&mut self, node: u32, events: &mut EventQueue<MachineEvent>) {
        let adapter = &mut self.adapters[node as usize];
        let packet = adapter.sending.take().expect("a packet was read");
        let transit = &mut self.messages[packet.message as usize];
        if transit.unsent == transit.post.bytes.0 {
            transit.left = events.now();
        }
        transit.unsent -= packet.bytes;
        transit.on_wire += packet.bytes;
        adapter.end_packet(transit.unsent == 0);
        let post = transit.post;
        self.report_packet(node, Track::Send, packet, events.now());
        let message = Message {
            tag: u64::from(packet.message) << 32 | packet.bytes,
            ..Message::new(
                Node(post.from.node),
                Node(post.to.node),
                Bytes(packet.bytes + HEADER.0),
            )
        };
        self.fabric.send(message, events);
        self.send_next(node, events);
    }

    fn on_arrived(&mut self, message: Message, events: &mut EventQueue<MachineEvent>) {
        let packet = Packet {
            message: (message.tag >> 32) as u32,
            bytes: message.tag & 0xffff_ffff,
            begun: events.now(),
        };
        let node = message.to.0;
        self.tell_arrived(packet);
        self.adapters[node as usize].arrived.push_back(packet);
        self.receive_next(node, events);
    }

    /// A packet is off the wire; a message is, with its last one.
    fn tell_arrived(&mut self, packet: Packet) {
        let transit = &mut self.messages[packet.message as usize];
        transit.on_wire -= packet.bytes;
        if transit.unsent == 0 && transit.on_wire == 0 {
            let span = Span {
                at: transit.post.to.node,
                track: Track::Link,
                name: "message",
                bytes: Some(transit.post.bytes),
                start: transit.left,
                end: packet.begun,
            };
            self.report(span);
        }
    }

    /// The receive engine begins the packet that came first.
    fn receive_next(&mut self, node: u32, events: &mut EventQueue<MachineEvent>) {
        let adapter = &self.adapters[node as usize];
        let Some(&packet) = adapter.arrived.front() else {
            return;
        };
        if adapter.receiving.is_some() {
            return;
        }
        let Transit {
            post, unreceived, ..
        } = self.messages[packet.message as usize];
        let context = self.context(&post, false);
        let is_first = unreceived == post.bytes.0;
        let adapter = &mut self.adapters[node as usize];
        adapter.arrived.pop_front();
        adapter.receiving = Some(Packet {
            begun: events.now(),
            ..packet
        });
        let mut work = adapter.fetch(context);
        work += if is_first { ENGINE } else { Duration::ZERO };
        if is_first && self.transport == Transport::Xrc {
            work += RECEIVE_QUEUE;
        }
        events.after(work, MachineEvent::Worked(Side { node, sends: false }));
    }

    /// A packet is in the host's memory.
    fn on_written(&mut self, node: u32, events: &mut EventQueue<MachineEvent>) {
        let adapter = &mut self.adapters[node as usize];
        let packet = adapter.receiving.take().expect("a packet was written");
        let transit = &mut self.messages[packet.message as usize];
        transit.unreceived -= packet.bytes;
        if transit.unreceived == 0 {
            events.after(BUS_LATENCY, MachineEvent::Found(packet.message));
        }
        self.report_packet(node, Track::Receive, packet, events.now());
        self.receive_next(node, events);
    }

    fn on_found(&mut self, message: u32, events: &mut EventQueue<MachineEvent>) {
        let post = self.messages[message as usize].post;
        let when = self.take_time(post.to, "take", post.bytes, events.now());
        if let Some(answer) = (self.answer)(Arrived { post, when }) {
            self.post(answer, events);
        }
    }
}

impl Adapter {
    fn new() -> Self {
        let bus = BusParameters {
            all: BUS_ALL,
            each: BUS_EACH,
        };
        Adapter {
            cache: Cache::new(CACHE),
            bus: Bus::new(bus),
            copies: BTreeMap::new(),
            active: VecDeque::new(),
            queues: BTreeMap::new(),
            turn: 0,
            sending: None,
            receiving: None,
            arrived: VecDeque::new(),
        }
    }

    /// How long it waits for a context.
    fn fetch(&mut self, context: Context) -> Duration {
        match self.cache.hit(context) {
            true => Duration::ZERO,
            false => MISS,
        }
    }

    /// The queue pair that has the turn has sent a packet; the next one's turn comes when
    /// it may send no more, or has nothing to send.
    fn end_packet(&mut self, is_last_of_message: bool) {
        let context = self.active[0];
        let queue = self.queues.get_mut(&context).expect("it is active");
        if is_last_of_message {
            queue.pop_front();
        }
        let is_empty = queue.is_empty();
        self.turn -= 1;
        if is_empty || self.turn == 0 {
            self.turn = 0;
            self.active.pop_front();
            if !is_empty {
                self.active.push_back(context);
            }
        }
    }
}

impl World for Machine {
    type Event = MachineEvent;

    fn on_event(&mut self, event: MachineEvent, events: &mut EventQueue<MachineEvent>) {
        match event {
            MachineEvent::Fabric(event) => {
                if let Some(Outcome::Arrived(message)) = self.fabric.on_event(event, events) {
                    self.on_arrived(message, events);
                }
            }
            MachineEvent::Posted(message) => self.on_posted(message, events),
            MachineEvent::Worked(side) => self.on_worked(side, events),
            MachineEvent::Copied(node, version) => self.on_bus(node, version, events),
            MachineEvent::Found(message) => self.on_found(message, events),
        }
    }
}

impl From<FabricEvent> for MachineEvent {
    fn from(event: FabricEvent) -> Self {
        MachineEvent::Fabric(event)
    }
}

impl Event for MachineEvent {
    fn word(&self) -> u64 {
        match *self {
            MachineEvent::Fabric(event) => event.word(),
            MachineEvent::Posted(message) => 1 << 40 | u64::from(message),
            MachineEvent::Worked(Side { node, sends }) => {
                2 << 40 | u64::from(node) << 1 | u64::from(sends)
            }
            MachineEvent::Copied(node, version) => (3 << 40 | u64::from(node)) ^ version << 44,
            MachineEvent::Found(message) => 4 << 40 | u64::from(message),
        }
    }
}
