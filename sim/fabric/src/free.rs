//! A network without contention: arrival times by formula.
//!
//! Only the two ends are shared. A node sends its messages one after the other,
//! and takes them in one after the other, in the order in which their heads get
//! there. Between the ends any number of messages cross.
//!
//! The formulas are those of packets that follow each other through links of
//! constant speed: packet *k* starts on a link when its head is there and packet
//! *k* − 1 is out of the way. So a message of which nothing else is in the way
//! arrives as in [`crate::PacketFabric`], to the picosecond, as long as the
//! buffers there cover the way of a packet and the way back of its room.
//! `tests/agreement.rs` holds both against each other.
//!
//! Two events a message: its head is at its node, all of it is in. A message that
//! reports its first packet, and goes on after that, takes two more.

use std::collections::VecDeque;

use lintel_sim_kernel::{Duration, Event, EventQueue, SimTime};

use crate::Fabric;
use crate::event::{EventKind, FabricEvent};
use crate::message::{Carried, Message, Node, Outcome};
use crate::parameters::{ConfigError, Kind, Parameters, Timing};
use crate::pool::Pool;
use crate::topology::Topology;

/// Computes when messages arrive in a network without contention.
pub struct FreeFabric<T> {
    topology: T,
    timing: Timing,
    classes: u8,
    ends: Vec<Ends>,
    messages: Pool<Transit>,
    carried: Carried,
}

/// What a node's messages share.
#[derive(Clone, Default)]
struct Ends {
    /// The last message has left then.
    sends_until: SimTime,
    /// Its head is there, and it comes in or has to wait in the middle.
    entering: Option<Entering>,
    /// Their heads are there, and they wait.
    waiting: VecDeque<u32>,
    held: bool,
}

#[derive(Clone, Copy)]
struct Entering {
    message: u32,
    /// Its first packet is in, and no more may come.
    is_stopped: bool,
}

/// A message that hasn't arrived.
#[derive(Clone, Copy)]
struct Transit {
    message: Message,
    /// When its packets' heads reach the node.
    heads: Heads,
    links: u32,
}

/// When the heads of a message's packets are somewhere.
#[derive(Clone, Copy)]
struct Heads {
    first: SimTime,
    /// The last of the whole packets before the last packet; `first` if there
    /// is none.
    last_whole: SimTime,
    last: SimTime,
}

/// A message as packets: whole ones, and a last one that is whole or shorter.
#[derive(Clone, Copy)]
struct Packets {
    whole: u64,
    last: u64,
}

impl Packets {
    fn new(bytes: u64, packet: u64) -> Self {
        let whole = bytes.div_ceil(packet) - 1;
        Packets {
            whole,
            last: bytes - whole * packet,
        }
    }

    /// The bytes of its first packet.
    fn first(self, packet: u64) -> u64 {
        if self.whole > 0 { packet } else { self.last }
    }
}

impl<T: Topology> FreeFabric<T> {
    /// A network without messages.
    pub fn new(topology: T, parameters: &Parameters) -> Result<Self, ConfigError> {
        parameters.check()?;
        let nodes = topology.nodes() as usize;
        Ok(FreeFabric {
            topology,
            timing: Timing::new(parameters),
            classes: parameters.classes,
            ends: vec![Ends::default(); nodes],
            messages: Pool::new(),
            carried: Carried::default(),
        })
    }

    /// The topology that it was built with.
    pub fn topology(&self) -> &T {
        &self.topology
    }

    fn end(&mut self, node: Node) -> &mut Ends {
        &mut self.ends[node.0 as usize]
    }

    fn packets_of(&self, message: &Message) -> Packets {
        Packets::new(message.bytes.0, self.timing.packet)
    }

    /// When the heads reach the node of a message that starts at `start`, and how
    /// many links they take.
    fn travel(&self, message: &Message, start: SimTime) -> (Heads, u32) {
        let packets = self.packets_of(message);
        let mut way = Traversal::new(&self.timing, packets, start);
        let mut links = 2;
        for leg in self.topology.legs(message.from, message.to) {
            if leg.links > 0 {
                way.enter(Kind::from(leg.reach));
                way.pass(leg.links - 1);
                links += leg.links;
            }
        }
        way.enter(Kind::Eject);
        way.pass(1);
        (way.heads, links)
    }

    fn on_head<E>(&mut self, number: u32, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>,
    {
        let node = self.messages[number].message.to;
        self.end(node).waiting.push_back(number);
        self.take_in_next(node, events);
    }

    /// Takes the next message in, if the node is idle and not held.
    fn take_in_next<E>(&mut self, node: Node, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>,
    {
        let end = self.end(node);
        if end.held || end.entering.is_some() {
            return;
        }
        let Some(number) = end.waiting.pop_front() else {
            return;
        };
        end.entering = Some(Entering {
            message: number,
            is_stopped: false,
        });
        let Transit { message, .. } = self.messages[number];
        let packets = self.packets_of(&message);
        if message.notify_began && packets.whole > 0 {
            let first = self
                .timing
                .occupies(Kind::Eject, packets.first(self.timing.packet));
            events.after(first, FabricEvent(EventKind::First(number)).into());
            return;
        }
        self.take_in_rest(number, packets, events);
    }

    /// All of it from now on, of which `left` is left.
    fn take_in_rest<E>(&mut self, number: u32, left: Packets, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>,
    {
        let Heads {
            last_whole, last, ..
        } = self.messages[number].heads;
        let whole = self.timing.occupies(Kind::Eject, self.timing.packet);
        let mut is_in = events.now();
        if left.whole > 0 {
            is_in = (is_in + whole * left.whole).max(last_whole + whole);
        }
        is_in = is_in.max(last) + self.timing.occupies(Kind::Eject, left.last);
        events.at(is_in, FabricEvent(EventKind::Tail(number)).into());
    }

    fn on_first<E>(&mut self, number: u32, events: &mut EventQueue<E>) -> Outcome
    where
        E: Event + From<FabricEvent>,
    {
        // Behind whatever the node does upon this outcome.
        let rest = FabricEvent(EventKind::Rest(number));
        events.after(Duration::ZERO, rest.into());
        Outcome::Began(self.messages[number].message)
    }

    fn on_rest<E>(&mut self, number: u32, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>,
    {
        let message = self.messages[number].message;
        let end = self.end(message.to);
        if end.held {
            end.entering = Some(Entering {
                message: number,
                is_stopped: true,
            });
            return;
        }
        let Packets { whole, last } = self.packets_of(&message);
        let left = Packets {
            whole: whole - 1,
            last,
        };
        self.take_in_rest(number, left, events);
    }

    fn on_tail<E>(&mut self, number: u32, events: &mut EventQueue<E>) -> Outcome
    where
        E: Event + From<FabricEvent>,
    {
        let Transit { message, links, .. } = self.messages.remove(number);
        let packets = self.packets_of(&message).whole + 1;
        self.carried.messages += 1;
        self.carried.packets += packets;
        self.carried.links += packets * u64::from(links);
        self.carried.bytes += message.bytes.0;
        self.end(message.to).entering = None;
        self.take_in_next(message.to, events);
        Outcome::Arrived(message)
    }
}

/// A message's packets on their way, link by link.
struct Traversal<'a> {
    timing: &'a Timing,
    packets: Packets,
    /// When packets start on the link.
    heads: Heads,
    kind: Kind,
    /// From one whole packet to the next: the slowest link so far.
    pace: Duration,
}

impl<'a> Traversal<'a> {
    /// On the link out of its node.
    fn new(timing: &'a Timing, packets: Packets, start: SimTime) -> Self {
        let pace = timing.occupies(Kind::Inject, timing.packet);
        let last = start + pace * packets.whole;
        Traversal {
            timing,
            packets,
            heads: Heads {
                first: start,
                last_whole: start + pace * packets.whole.saturating_sub(1),
                last,
            },
            kind: Kind::Inject,
            pace,
        }
    }

    /// Over the link, and onto one of another kind.
    fn enter(&mut self, next: Kind) {
        let Packets { whole, last } = self.packets;
        let packet = self.timing.packet;
        let delay = |bytes| self.timing.head_delay(self.kind, next, bytes);
        let ready = self.heads.last + delay(last);
        if whole == 0 {
            self.heads = Heads {
                first: ready,
                last_whole: ready,
                last: ready,
            };
        } else {
            let first = self.heads.first + delay(packet);
            let length = self.timing.occupies(next, packet);
            self.pace = self.pace.max(length);
            let last_whole = first + self.pace * (whole - 1);
            let last = ready.max(last_whole + length);
            self.heads = Heads {
                first,
                last_whole,
                last,
            };
        }
        self.kind = next;
    }

    /// Over so many more links of this kind. A packet that had to wait for one of them
    /// doesn't wait for the next.
    fn pass(&mut self, links: u32) {
        let latency = self.timing.stage(self.kind).latency * u64::from(links);
        self.heads.first += latency;
        self.heads.last_whole += latency;
        self.heads.last += latency;
    }
}

impl<T: Topology> Fabric for FreeFabric<T> {
    fn nodes(&self) -> u32 {
        self.topology.nodes()
    }

    fn send<E>(&mut self, message: Message, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>,
    {
        message.check(self.nodes(), self.classes);
        let start = self.end(message.from).sends_until.max(events.now());
        let Packets { whole, last } = self.packets_of(&message);
        let packet = self.timing.occupies(Kind::Inject, self.timing.packet);
        let left = start + packet * whole + self.timing.occupies(Kind::Inject, last);
        self.end(message.from).sends_until = left;
        let (heads, links) = self.travel(&message, start);
        let number = self.messages.insert(Transit {
            message,
            heads,
            links,
        });
        if message.notify_left {
            events.at(left, FabricEvent(EventKind::Left(number)).into());
        }
        events.at(heads.first, FabricEvent(EventKind::Head(number)).into());
    }

    fn on_event<E>(&mut self, event: FabricEvent, events: &mut EventQueue<E>) -> Option<Outcome>
    where
        E: Event + From<FabricEvent>,
    {
        match event.0 {
            EventKind::Head(number) => self.on_head(number, events),
            EventKind::Rest(number) => self.on_rest(number, events),
            EventKind::First(number) => return Some(self.on_first(number, events)),
            EventKind::Tail(number) => return Some(self.on_tail(number, events)),
            EventKind::Left(number) => return Some(Outcome::Left(self.messages[number].message)),
            other => unreachable!("{other:?} is none of this model's events"),
        }
        None
    }

    fn hold(&mut self, node: Node) {
        self.end(node).held = true;
    }

    fn resume<E>(&mut self, node: Node, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>,
    {
        let end = self.end(node);
        end.held = false;
        match end.entering {
            Some(Entering {
                message,
                is_stopped: true,
            }) => {
                end.entering = Some(Entering {
                    message,
                    is_stopped: false,
                });
                self.on_rest(message, events);
            }
            _ => self.take_in_next(node, events),
        }
    }

    fn carried(&self) -> Carried {
        self.carried
    }

    fn unfinished(&self) -> usize {
        self.messages.len()
    }
}
