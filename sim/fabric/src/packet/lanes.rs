//! Links and their lanes: who waits for which, and how much room is left.

use std::hint::black_box;

use lintel_sim_kernel::{Duration, SimTime};

use super::credits::{Credits, Overflow};
use crate::message::Node;
use crate::parameters::{Arbitration, Kind, Parameters};
use crate::topology::{End, Port, Topology};

pub(super) const NONE: u32 = u32::MAX;

/// Lanes that a link can have: bits of [`Link::wanted`].
pub(super) const MAX_LANES: u32 = u16::BITS;

/// A link, one way. Half a cache line: large networks wait for memory.
#[repr(align(32))]
pub(super) struct Link {
    /// The router, or the node, at its far end.
    pub(super) to: u32,
    /// A bit for each lane for which a packet waits.
    wanted: u16,
    pub(super) kind: Kind,
    /// The lane that is looked at first.
    turn: u8,
    /// Its last packet's tail leaves then.
    pub(super) busy_until: SimTime,
    /// When it is looked at next, if that is known.
    pub(super) wake_at: SimTime,
    /// How long it was occupied in all.
    pub(super) occupied: Duration,
}

/// One lane of a link: the buffer at its far end, and the queue at its near one.
/// One cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Lane {
    /// Packets in the buffer.
    first: u32,
    last: u32,
    /// The next lane in the queue in which this one's first packet waits.
    next_waiting: u32,
    /// Lanes whose first packets wait for this one; at a source, messages.
    first_waiting: u32,
    last_waiting: u32,
    /// Places in the buffer.
    credits: Credits,
}

const _: () = assert!(size_of::<Link>() == 32 && size_of::<Lane>() == 64);

/// All links, all lanes. Links of routers come first, by port; then one per
/// node, into its router.
pub(super) struct Lanes {
    links: Vec<Link>,
    lanes: Vec<Lane>,
    overflow: Overflow,
    /// Nodes that take nothing in but packets of control lanes.
    held: Vec<bool>,
    /// A bit for each control lane of a link.
    control: u16,
    arbitration: Arbitration,
    /// Lanes of a link are padded to a power of two.
    shift: u32,
}

impl Lanes {
    pub(super) fn new<T: Topology>(topology: &T, parameters: &Parameters) -> Self {
        let lanes = topology.lanes() * u32::from(parameters.classes);
        let shift = lanes.next_power_of_two().trailing_zeros();
        let links = all_links(topology);
        let count = links.len() << shift;
        Lanes {
            links,
            lanes: vec![Lane::new(parameters.buffer); count],
            overflow: Overflow::default(),
            held: vec![false; topology.nodes() as usize],
            control: 0,
            arbitration: parameters.arbitration,
            shift,
        }
    }

    #[inline]
    pub(super) fn link(&mut self, link: u32) -> &mut Link {
        &mut self.links[link as usize]
    }

    /// Lanes from this one on are control lanes.
    pub(super) fn set_control(&mut self, first: u32) {
        self.control = u16::MAX.checked_shl(first).unwrap_or(0);
    }

    /// Whether a lane takes packets to a node that is held.
    #[inline]
    pub(super) fn is_control(&self, lane: u32) -> bool {
        self.control & self.bit_of(lane) != 0
    }

    /// Whether a node takes nothing in but packets of control lanes.
    #[inline]
    pub(super) fn held(&mut self, node: Node) -> &mut bool {
        &mut self.held[node.0 as usize]
    }

    #[inline]
    pub(super) fn link_of(&self, lane: u32) -> u32 {
        lane >> self.shift
    }

    #[inline]
    pub(super) fn lane_of(&self, link: u32, number: u32) -> u32 {
        link << self.shift | number
    }

    #[inline]
    pub(super) fn lane(&mut self, lane: u32) -> &mut Lane {
        &mut self.lanes[lane as usize]
    }

    /// Brings into the cache what a packet needs that arrives in lane `at` and
    /// wants lane `out` next.
    #[inline]
    pub(super) fn touch(&self, at: u32, out: u32) {
        let here = &self.lanes[at as usize];
        black_box(self.lanes[out as usize].first_waiting);
        black_box(self.links[self.link_of(out) as usize].to);
        // A link that waits for the packet's place is looked at when it is free.
        let other = if here.is_wanted() { at } else { out };
        black_box(self.links[self.link_of(other) as usize].to);
    }

    /// The packets that wait longest for a link's lanes; none for a source's.
    #[inline]
    pub(super) fn waiting(&self, link: u32) -> impl Iterator<Item = u32> {
        let Link { wanted, kind, .. } = self.links[link as usize];
        let is_wanted = move |lane: &u32| kind != Kind::Inject && wanted >> lane & 1 == 1;
        let wanted = (0..1 << self.shift).filter(is_wanted);
        wanted.map(move |lane| {
            let lane = self.lane_of(link, lane) as usize;
            self.lanes[self.lanes[lane].first_waiting as usize].first
        })
    }

    /// Makes a lane (at a source: a message) the last in the queue of another one.
    /// Gives the one before it, which the caller ties to it.
    #[inline]
    pub(super) fn queue(&mut self, lane: u32, number: u32) -> Option<u32> {
        let Lane {
            first_waiting,
            last_waiting,
            ..
        } = self.lane(lane);
        let before = std::mem::replace(last_waiting, number);
        if *first_waiting != NONE {
            return Some(before);
        }
        *first_waiting = number;
        let bit = self.bit_of(lane);
        self.link(self.link_of(lane)).wanted |= bit;
        None
    }

    /// Lets `number`'s first packet wait for a lane.
    #[inline]
    pub(super) fn wait(&mut self, lane: u32, number: u32) {
        self.lane(number).next_waiting = NONE;
        if let Some(before) = self.queue(lane, number) {
            self.lane(before).next_waiting = number;
        }
    }

    /// Takes the first lane out of a lane's queue.
    #[inline]
    pub(super) fn serve_waiting(&mut self, lane: u32) -> u32 {
        let number = self.lane(lane).first_waiting;
        let next = self.lane(number).next_waiting;
        self.unqueue(lane, next);
        number
    }

    /// Takes the first out of a lane's queue; `next` comes after it.
    #[inline]
    pub(super) fn unqueue(&mut self, lane: u32, next: u32) {
        self.lane(lane).first_waiting = next;
        if next == NONE {
            let bit = self.bit_of(lane);
            self.link(self.link_of(lane)).wanted &= !bit;
        }
    }

    /// The lane that a free link serves next, of those that are wanted and have
    /// room. Else when one will have room, `NEVER` if that isn't known. `since`
    /// returns when a packet left its node.
    #[inline]
    pub(super) fn choose(
        &mut self,
        link: u32,
        now: SimTime,
        since: impl Fn(u32) -> SimTime,
    ) -> Result<u32, SimTime> {
        let Link {
            to,
            turn,
            kind,
            mut wanted,
            ..
        } = *self.link(link);
        if kind == Kind::Eject && self.held[to as usize] {
            wanted &= self.control;
        }
        // A node's own messages have no age yet.
        let by_age = self.arbitration == Arbitration::Oldest && kind != Kind::Inject;
        let mask = (1 << self.shift) - 1;
        let mut earliest = SimTime::NEVER;
        let mut oldest = None;
        for i in 0..=mask {
            let number = (u32::from(turn) + i) & mask;
            if wanted >> number & 1 == 0 {
                continue;
            }
            let lane = self.lane_of(link, number);
            let room = self.credit_at(lane, kind, now);
            if room > now {
                earliest = earliest.min(room);
            } else if by_age {
                let since = self.bring_oldest_forward(lane, &since);
                if oldest.is_none_or(|(other, _)| since < other) {
                    oldest = Some((since, lane));
                }
            } else {
                return Ok(self.take_turn(link, lane));
            }
        }
        match oldest {
            Some((_, lane)) => Ok(self.take_turn(link, lane)),
            None => Err(earliest),
        }
    }

    /// The lane after this one is looked at first the next time.
    #[inline]
    fn take_turn(&mut self, link: u32, lane: u32) -> u32 {
        let mask = (1 << self.shift) - 1;
        // The mask is below 2^8: a link has `MAX_LANES` at most.
        self.link(link).turn = ((lane + 1) & mask) as u8;
        lane
    }

    /// Puts the lane whose packet left its node first at the head of a lane's
    /// queue; says when it left.
    fn bring_oldest_forward(&mut self, lane: u32, since: &impl Fn(u32) -> SimTime) -> SimTime {
        let age = |lanes: &Self, lane: u32| since(lanes.lanes[lane as usize].first);
        let head = self.lane(lane).first_waiting;
        let (mut oldest, mut before_oldest) = (head, NONE);
        let mut before = head;
        loop {
            let number = self.lane(before).next_waiting;
            if number == NONE {
                break;
            }
            if age(self, number) < age(self, oldest) {
                (oldest, before_oldest) = (number, before);
            }
            before = number;
        }
        if oldest != head {
            let next = std::mem::replace(&mut self.lane(oldest).next_waiting, head);
            self.lane(before_oldest).next_waiting = next;
            self.lane(lane).first_waiting = oldest;
            if next == NONE {
                self.lane(lane).last_waiting = before_oldest;
            }
        }
        age(self, oldest)
    }

    /// When the next place of a lane's buffer is free, `NEVER` if that isn't
    /// known. A node takes all.
    #[inline]
    fn credit_at(&mut self, lane: u32, kind: Kind, now: SimTime) -> SimTime {
        if kind == Kind::Eject {
            return SimTime::START;
        }
        self.lanes[lane as usize]
            .credits
            .next(now, &mut self.overflow)
    }

    /// Takes a place of a lane's buffer, one of which is free.
    #[inline]
    pub(super) fn take_credit(&mut self, lane: u32) {
        self.lane(lane).credits.take();
    }

    /// Gives a place of a lane's buffer back, from `when` on.
    #[inline]
    pub(super) fn return_credit(&mut self, lane: u32, when: SimTime, now: SimTime) {
        let credits = &mut self.lanes[lane as usize].credits;
        credits.give(when, now, &mut self.overflow);
    }

    /// A lane's place in [`Link::wanted`].
    #[inline]
    fn bit_of(&self, lane: u32) -> u16 {
        let mask = (1 << self.shift) - 1;
        1 << (lane & mask)
    }
}

impl Lane {
    /// With room for so many packets.
    fn new(buffer: u32) -> Self {
        Lane {
            first: NONE,
            last: NONE,
            next_waiting: NONE,
            first_waiting: NONE,
            last_waiting: NONE,
            credits: Credits::new(buffer),
        }
    }

    /// Whether a packet waits for it.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.first_waiting != NONE
    }

    /// The first that waits for it.
    #[inline]
    pub(super) fn first_waiting(&self) -> u32 {
        self.first_waiting
    }

    /// The first packet in its buffer.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Puts a packet into the buffer; gives the one before it.
    #[inline]
    pub(super) fn push(&mut self, packet: u32) -> Option<u32> {
        let before = self.last;
        self.last = packet;
        if self.first == NONE {
            self.first = packet;
            return None;
        }
        Some(before)
    }

    /// Takes the first packet out of the buffer; `next` comes after it.
    #[inline]
    pub(super) fn pop(&mut self, next: u32) {
        self.first = next;
    }
}

impl Link {
    /// Whether a packet waits for it.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted != 0
    }

    fn new(to: u32, kind: Kind) -> Self {
        Link {
            to,
            wanted: 0,
            kind,
            turn: 0,
            busy_until: SimTime::START,
            wake_at: SimTime::NEVER,
            occupied: Duration::ZERO,
        }
    }
}

fn all_links<T: Topology>(topology: &T) -> Vec<Link> {
    let ports = |router| (0..topology.ports()).map(move |port| Port { router, port });
    let out = (0..topology.routers()).flat_map(ports);
    let leads = |port| match topology.end(port) {
        End::Router(router, reach) => Link::new(router, reach.into()),
        End::Node(node) => Link::new(node.0, Kind::Eject),
        // No packet takes it, and its number keeps the others in place.
        End::Nowhere => Link::new(NONE, Kind::Near),
    };
    let home = |node| Link::new(topology.home(Node(node)).router, Kind::Inject);
    out.map(leads)
        .chain((0..topology.nodes()).map(home))
        .collect()
}
