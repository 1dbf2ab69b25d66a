//! Each packet over each link, with finite buffers.
//!
//! ```text
//!   queue of lanes          link             lane's buffer, in the next router
//!   ▭ ▭ ▭ ───────────▶ ═══════════════▶ ▭ ▭ ▭ ▭ ─── first packet ──▶ queue of
//!                       busy, turn                                   its next link
//!         ◀─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ room, a while after the tail has gone on
//! ```
//!
//! - A packet's head reaches the next router after the link's latency and may go
//!   on at once (virtual cut-through); its tail follows after the packet's bytes.
//!   Where the next link is faster, the head waits until the packet won't run dry.
//! - A packet leaves only when the next buffer of its lane has room for all of it.
//! - Packets of a lane keep their order. When the first has started, the second
//!   may start elsewhere at the same time: a buffer is read by several links.
//! - A node that is held takes packets in until its receive FIFO is full, if it has one
//!   ([`PacketFabric::with_fifo`]), and reports messages that begin there.
//! - Messages of a control class ([`PacketFabric::with_control`]) reach a node that is held.
//! - A link serves the lanes that are wanted and have room, by
//!   [`crate::Arbitration`].
//!
//! A packet that doesn't wait costs one event a link, its arrival. A credit is
//! no event: its time is noted when the packet in that place goes on, and
//! read by the link that needs it. Only a link that is waited for is woken.

mod credits;
mod fifo;
mod lanes;

use std::hint::black_box;

use lintel_sim_kernel::{Duration, Event, EventQueue, SimTime};

use crate::Fabric;
use crate::event::{Arrival, EventKind, FabricEvent};
use crate::message::{Carried, Message, Node, Outcome};
use crate::parameters::{ConfigError, Kind, Parameters, Timing};
use crate::pool::Pool;
use crate::topology::{Port, Topology};
use fifo::Fifos;
use lanes::{Lanes, MAX_LANES, NONE};

/// Moves each packet over each link.
pub struct PacketFabric<T: Topology> {
    topology: T,
    timing: Timing,
    credit: Duration,
    classes: u8,
    lanes: Lanes,
    packets: Pool<Packet<T::Route>>,
    messages: Pool<Transit<T::Route>>,
    fifos: Fifos,
    carried: Carried,
}

/// One cache line if routes are short: large networks wait for memory.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Packet<R> {
    route: R,
    message: u32,
    /// When it left its node.
    since: SimTime,
    /// Behind it in its buffer.
    next: u32,
    /// The lane that it takes next.
    out: u32,
    bytes: u32,
    /// The first lane of its class.
    class_lane: u32,
}

/// A message that hasn't arrived.
#[derive(Clone, Copy)]
struct Transit<R> {
    message: Message,
    route: R,
    unsent: u64,
    awaited: u64,
    /// Its first packet is on its way to the node itself, or reported to be in its FIFO.
    is_noticed: bool,
    /// Its first packet is at the node.
    is_there: bool,
    /// Behind it at its source.
    next: u32,
}

impl<T: Topology> PacketFabric<T> {
    /// A network without messages.
    pub fn new(topology: T, parameters: &Parameters) -> Result<Self, ConfigError> {
        parameters.check()?;
        if topology.lanes() * u32::from(parameters.classes) > MAX_LANES {
            let most = MAX_LANES / topology.lanes();
            return Err(ConfigError(format!(
                "classes is above {most}, a link has {MAX_LANES} lanes"
            )));
        }
        Ok(PacketFabric {
            timing: Timing::new(parameters),
            credit: parameters.credit,
            classes: parameters.classes,
            lanes: Lanes::new(&topology, parameters),
            packets: Pool::new(),
            messages: Pool::new(),
            fifos: Fifos::new(0, 0),
            carried: Carried::default(),
            topology,
        })
    }

    /// The same, whose nodes have room for so many packets in front of their receive
    /// engines: what comes while a node is held. Packets enter it at the rate of links
    /// between routers and leave it at that of the link to the node.
    #[must_use]
    pub fn with_fifo(mut self, packets: u32) -> Self {
        self.fifos = Fifos::new(self.topology.nodes(), packets);
        self
    }

    /// The same, where messages of this class and later ones go past a node's receive
    /// engine: whether the node is held is nothing to them, nor what waits in its FIFO.
    #[must_use]
    pub fn with_control(mut self, class: u8) -> Self {
        self.lanes
            .set_control(u32::from(class) * self.topology.lanes());
        self
    }

    /// The topology that it was built with.
    pub fn topology(&self) -> &T {
        &self.topology
    }

    /// How long the link out of a port has been occupied so far.
    pub fn occupied(&mut self, port: Port) -> Duration {
        let link = self.link_at(port.router, port.port);
        self.lanes.link(link).occupied
    }

    #[inline]
    fn link_at(&self, router: u32, port: u32) -> u32 {
        router * self.topology.ports() + port
    }

    fn source_link(&self, node: Node) -> u32 {
        self.topology.routers() * self.topology.ports() + node.0
    }

    fn sink_link(&self, node: Node) -> u32 {
        let home = self.topology.home(node);
        self.link_at(home.router, home.port)
    }

    #[inline]
    fn on_arrive<E>(&mut self, arrival: Arrival, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>,
    {
        let Arrival { packet, at, out } = arrival;
        match self.lanes.lane(at).push(packet) {
            Some(before) => self.packets[before].next = packet,
            None => {
                self.lanes.wait(out, at);
                let link = self.lanes.link_of(out);
                self.serve(link, events);
            }
        }
    }

    fn on_wake<E>(&mut self, link: u32, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>,
    {
        // It was woken earlier, and looked for the time after that.
        if self.lanes.link(link).wake_at != events.now() {
            return;
        }
        self.lanes.link(link).wake_at = SimTime::NEVER;
        self.serve(link, events);
    }

    fn on_deliver(&mut self, packet: u32) -> Option<Outcome> {
        let Packet {
            message: number,
            bytes,
            ..
        } = self.packets.remove(packet);
        let transit = &mut self.messages[number];
        let message = transit.message;
        let is_first = transit.awaited == message.bytes.0;
        transit.awaited -= u64::from(bytes);
        self.carried.packets += 1;
        if transit.awaited == 0 {
            self.messages.remove(number);
            self.carried.messages += 1;
            self.carried.bytes += message.bytes.0;
            return Some(Outcome::Arrived(message));
        }
        if is_first {
            return message.notify_began.then_some(Outcome::Began(message));
        }
        let every = message.notify_every.0;
        if every == 0 {
            return None;
        }
        let behind_first = message.bytes.0 - transit.awaited - self.timing.packet;
        let has_passed = behind_first % every < u64::from(bytes);
        has_passed.then_some(Outcome::Passed(message))
    }

    /// A lane's first packet wants its next link, which it names.
    #[inline]
    fn want(&mut self, lane: u32, packet: u32) -> u32 {
        let out = self.packets[packet].out;
        self.lanes.wait(out, lane);
        self.lanes.link_of(out)
    }

    /// Sends what a link can send now. A packet that leaves its lane lets the next
    /// one want a link, which is served then.
    #[inline]
    fn serve<E>(&mut self, link: u32, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>,
    {
        let mut next = Some(link);
        while let Some(link) = next {
            next = self.serve_once(link, events);
        }
    }

    #[inline]
    fn serve_once<E>(&mut self, link: u32, events: &mut EventQueue<E>) -> Option<u32>
    where
        E: Event + From<FabricEvent>,
    {
        let now = events.now();
        let busy_until = self.lanes.link(link).busy_until;
        if busy_until > now {
            self.wake(link, busy_until, events);
            return None;
        }
        let lane = match self.lanes.choose(link, now, |p| self.packets[p].since) {
            Ok(lane) => lane,
            Err(room) => {
                self.wake(link, room, events);
                return None;
            }
        };
        let wanted = match self.lanes.link(link).kind {
            Kind::Inject => {
                self.start_from_source(lane, events);
                None
            }
            _ => self.start_from_buffer(lane, events),
        };
        if self.lanes.link(link).is_wanted() {
            let busy_until = self.lanes.link(link).busy_until;
            self.wake(link, busy_until, events);
        }
        wanted.filter(|&wanted| wanted != link)
    }

    /// Looks at a link at `when`, unless it is looked at before.
    #[inline]
    fn wake<E>(&mut self, link: u32, when: SimTime, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>,
    {
        let wake_at = &mut self.lanes.link(link).wake_at;
        if when < *wake_at {
            *wake_at = when;
            events.at(when, FabricEvent(EventKind::Wake(link)).into());
        }
    }

    /// Sends the next packet of the message that waits longest at a source.
    fn start_from_source<E>(&mut self, lane: u32, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>,
    {
        let number = self.lanes.lane(lane).first_waiting();
        let transit = &mut self.messages[number];
        let bytes = transit.unsent.min(self.timing.packet);
        transit.unsent -= bytes;
        let Transit {
            route,
            unsent,
            next,
            message,
            ..
        } = *transit;
        if unsent == 0 {
            self.lanes.unqueue(lane, next);
        }
        let packet = self.packets.insert(Packet {
            route,
            message: number,
            since: events.now(),
            next: NONE,
            out: lane,
            // A packet is below 4 GiB.
            bytes: bytes as u32,
            class_lane: u32::from(message.class) * self.topology.lanes(),
        });
        let gone = self.start(packet, events);
        if unsent == 0 && message.notify_left {
            events.at(gone, FabricEvent(EventKind::Left(number)).into());
        }
    }

    /// Sends the packet that waits longest for a lane. Its place in its own buffer
    /// becomes free, and the packet behind it wants a link, which is given.
    #[inline]
    fn start_from_buffer<E>(&mut self, lane: u32, events: &mut EventQueue<E>) -> Option<u32>
    where
        E: Event + From<FabricEvent>,
    {
        let from = self.lanes.serve_waiting(lane);
        let first = self.lanes.lane(from).first();
        let packet = first.expect("a lane that waits has a packet");
        let next = self.packets[packet].next;
        self.lanes.lane(from).pop(next);
        let room = self.start(packet, events) + self.credit;
        self.lanes.return_credit(from, room, events.now());
        if self.lanes.lane(from).is_wanted() {
            let upstream = self.lanes.link_of(from);
            self.wake(upstream, room, events);
        }
        (next != NONE).then(|| self.want(from, next))
    }

    /// Puts a packet on its next link, which is free. When its tail has left.
    #[inline]
    fn start<E>(&mut self, number: u32, events: &mut EventQueue<E>) -> SimTime
    where
        E: Event + From<FabricEvent>,
    {
        let packet = &mut self.packets[number];
        self.carried.links += 1;
        let (lane, bytes) = (packet.out, u64::from(packet.bytes));
        let link_number = self.lanes.link_of(lane);
        let link = self.lanes.link(link_number);
        let length = self.timing.occupies(link.kind, bytes);
        let gone = events.now() + length;
        link.busy_until = gone;
        link.occupied += length;
        let (kind, to) = (link.kind, link.to);
        if kind == Kind::Eject {
            let there = gone + self.timing.stage(kind).latency;
            let is_control = self.lanes.is_control(lane);
            if let Some(fifo) = self.fifos.of(to) {
                if fifo.is_used() && !is_control {
                    return self.enter_fifo(number, link_number, events);
                }
                // What is delivered at once needs no notice.
                let message = self.packets[number].message;
                self.messages[message].is_noticed = true;
            }
            events.at(there, FabricEvent(EventKind::Deliver(number)).into());
            return gone;
        }
        self.lanes.take_credit(lane);
        let step = self.topology.step(to, &mut packet.route);
        let next = to * self.topology.ports() + step.port;
        packet.next = NONE;
        packet.out = self.lanes.lane_of(next, packet.class_lane + step.lane);
        let arrival = Arrival {
            packet: number,
            at: lane,
            out: packet.out,
        };
        let wait = self.timing.head_delay(kind, step.reach.into(), bytes);
        events.after(wait, FabricEvent(EventKind::Arrive(arrival)).into());
        gone
    }
}

impl<T: Topology> PacketFabric<T> {
    /// A packet goes into its node's FIFO, which has room for it. When its tail has left the
    /// router.
    fn enter_fifo<E>(&mut self, number: u32, link: u32, events: &mut EventQueue<E>) -> SimTime
    where
        E: Event + From<FabricEvent>,
    {
        let Packet { message, bytes, .. } = self.packets[number];
        let gone = events.now() + self.timing.occupies(Kind::Near, bytes.into());
        let there = gone + self.timing.stage(Kind::Eject).latency;
        let link = self.lanes.link(link);
        link.busy_until = gone;
        let node = link.to;
        let transit = &mut self.messages[message];
        if transit.message.notify_began && !std::mem::replace(&mut transit.is_noticed, true) {
            events.at(there, FabricEvent(EventKind::Notice(message)).into());
        }
        let fifo = self.fifos.of(node).expect("packets enter FIFOs that exist");
        fifo.push(number, there);
        if self.fifos.is_full(node) {
            *self.lanes.held(Node(node)) = true;
        }
        self.drain(node, events);
        gone
    }

    /// A packet that left the router for the node itself is there. If the node was held
    /// meanwhile, its FIFO takes the packet, in front of those that left later.
    fn on_there<E>(&mut self, number: u32, events: &mut EventQueue<E>) -> Option<Outcome>
    where
        E: Event + From<FabricEvent>,
    {
        let transit = &mut self.messages[self.packets[number].message];
        let is_first = !std::mem::replace(&mut transit.is_there, true);
        let message = transit.message;
        let node = message.to.0;
        if self.lanes.is_control(self.packets[number].out) {
            return self.on_deliver(number);
        }
        let fifo = self.fifos.of(node).filter(|fifo| fifo.is_used());
        let Some(fifo) = fifo else {
            return self.on_deliver(number);
        };
        fifo.insert(number, events.now());
        if self.fifos.is_full(node) {
            *self.lanes.held(message.to) = true;
        }
        self.drain(node, events);
        (is_first && message.notify_began).then_some(Outcome::Noticed(message))
    }

    /// The first packet of a node's FIFO goes to the node, unless that is held.
    fn drain<E>(&mut self, node: u32, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>,
    {
        let fifo = self.fifos.of(node).expect("FIFOs that exist are drained");
        let Some((number, there)) = fifo.first() else {
            return;
        };
        if fifo.is_held || std::mem::replace(&mut fifo.is_draining, true) {
            return;
        }
        let bytes = u64::from(self.packets[number].bytes);
        let taken = there.max(events.now() + self.timing.occupies(Kind::Eject, bytes));
        events.at(taken, FabricEvent(EventKind::Drain(node)).into());
    }

    fn on_drain<E>(&mut self, node: u32, events: &mut EventQueue<E>) -> Option<Outcome>
    where
        E: Event + From<FabricEvent>,
    {
        let fifo = self.fifos.of(node).expect("FIFOs that exist are drained");
        fifo.is_draining = false;
        if fifo.is_held {
            return None;
        }
        let number = fifo.pop().expect("what drains has a packet");
        let outcome = self.on_deliver(number);
        *self.lanes.held(Node(node)) = self.fifos.is_full(node);
        self.drain(node, events);
        let link = self.sink_link(Node(node));
        self.serve(link, events);
        outcome
    }
}

impl<T: Topology> Fabric for PacketFabric<T> {
    fn nodes(&self) -> u32 {
        self.topology.nodes()
    }

    fn send<E>(&mut self, message: Message, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>,
    {
        message.check(self.nodes(), self.classes);
        let number = self.messages.insert(Transit {
            message,
            route: self.topology.route(message.from, message.to),
            unsent: message.bytes.0,
            awaited: message.bytes.0,
            is_noticed: false,
            is_there: false,
            next: NONE,
        });
        let link = self.source_link(message.from);
        let lane = u32::from(message.class) * self.topology.lanes();
        let lane = self.lanes.lane_of(link, lane);
        if let Some(before) = self.lanes.queue(lane, number) {
            self.messages[before].next = number;
        }
        self.serve(link, events);
    }

    #[inline]
    fn on_event<E>(&mut self, event: FabricEvent, events: &mut EventQueue<E>) -> Option<Outcome>
    where
        E: Event + From<FabricEvent>,
    {
        match event.0 {
            EventKind::Arrive(arrival) => self.on_arrive(arrival, events),
            EventKind::Wake(link) => self.on_wake(link, events),
            EventKind::Deliver(packet) => return self.on_there(packet, events),
            EventKind::Drain(node) => return self.on_drain(node, events),
            EventKind::Notice(number) => {
                return Some(Outcome::Noticed(self.messages[number].message));
            }
            EventKind::Left(number) => return Some(Outcome::Left(self.messages[number].message)),
            other => unreachable!("{other:?} is none of this model's events"),
        }
        None
    }

    #[inline]
    fn foresee(&self, event: &FabricEvent) {
        match event.0 {
            EventKind::Arrive(Arrival { packet, at, out }) => {
                black_box(self.packets[packet].message);
                self.lanes.touch(at, out);
            }
            EventKind::Wake(link) => {
                for packet in self.lanes.waiting(link) {
                    black_box(self.packets[packet].message);
                }
            }
            EventKind::Deliver(packet) => {
                let number = self.packets[packet].message;
                black_box(self.messages[number].awaited);
            }
            _ => {}
        }
    }

    fn hold(&mut self, node: Node) {
        match self.fifos.of(node.0) {
            Some(fifo) => fifo.is_held = true,
            None => *self.lanes.held(node) = true,
        }
    }

    fn resume<E>(&mut self, node: Node, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>,
    {
        match self.fifos.of(node.0) {
            Some(fifo) => {
                fifo.is_held = false;
                self.drain(node.0, events);
            }
            None => {
                let link = self.sink_link(node);
                *self.lanes.held(node) = false;
                self.serve(link, events);
            }
        }
    }

    fn carried(&self) -> Carried {
        self.carried
    }

    fn unfinished(&self) -> usize {
        self.messages.len()
    }
}
