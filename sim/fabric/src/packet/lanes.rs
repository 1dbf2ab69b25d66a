//! Links and their lanes: who waits for which, and how much room is left.

use std::hint::black_box;

use lintel_sim_kernel::{Duration, SimTime};

use crate::message::Node;
use crate::parameters::{Arbitration, Kind, Parameters};
use crate::topology::{End, Port, Topology};

pub(super) const NONE: u32 = u32::MAX;

/// A link, one way. Half a cache line: large networks wait for memory.
#[repr(align(32))]
pub(super) struct Link {
    /// The router, or the node, at its far end.
    pub(super) to: u32,
    pub(super) kind: Kind,
    /// The node takes nothing in.
    pub(super) held: bool,
    /// The lane that is looked at first.
    pub(super) turn: u8,
    /// Its last packet's tail leaves then.
    pub(super) busy_until: SimTime,
    /// When it is looked at next, if that is known.
    pub(super) wake_at: SimTime,
    /// How long it was occupied in all.
    pub(super) occupied: Duration,
}

/// One lane of a link: the buffer at its far end, and the queue at its near one.
/// Half a cache line too.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct Lane {
    /// Packets in the buffer.
    first: u32,
    last: u32,
    /// The next lane in the queue in which this one's first packet waits.
    next_waiting: u32,
    /// Lanes whose first packets wait for this one; at a source, messages.
    first_waiting: u32,
    last_waiting: u32,
    /// Places that are free, as far as has been looked.
    free: u16,
    /// The place in `free_at` that is looked at next, and the one that is written
    /// next; so many are written and not looked at.
    look: u16,
    write: u16,
    written: u16,
}

/// A cache line of times.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Row([SimTime; ROW]);

const ROW: usize = 8;

/// All links, all lanes. Links of routers come first, by port; then one per
/// node, into its router.
pub(super) struct Lanes {
    links: Vec<Link>,
    lanes: Vec<Lane>,
    /// When places of each lane's buffer become free again, in the order in which
    /// packets leave them.
    free_at: Vec<Row>,
    depth: u16,
    /// Rows a lane.
    rows: usize,
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
        let rows = (parameters.buffer as usize).div_ceil(ROW);
        Lanes {
            links,
            lanes: vec![Lane::new(parameters.buffer); count],
            free_at: vec![Row([SimTime::START; ROW]); count * rows],
            // Parameters allow 4096 at most.
            depth: parameters.buffer as u16,
            rows,
            arbitration: parameters.arbitration,
            shift,
        }
    }

    #[inline]
    pub(super) fn link(&mut self, link: u32) -> &mut Link {
        &mut self.links[link as usize]
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

    /// Brings a lane and its places into the cache.
    #[inline]
    pub(super) fn touch_lane(&self, lane: u32) {
        black_box(self.lanes[lane as usize].first);
        black_box(self.free_at[lane as usize * self.rows].0[0]);
    }

    /// Brings a link into the cache.
    #[inline]
    pub(super) fn touch_link(&self, link: u32) {
        black_box(self.links[link as usize].to);
    }

    /// The packets that wait longest for a link's lanes; none for a source's.
    #[inline]
    pub(super) fn waiting(&self, link: u32) -> impl Iterator<Item = u32> {
        let lanes = self.lane_of(link, 0) as usize..self.lane_of(link + 1, 0) as usize;
        let is_source = self.links[link as usize].kind == Kind::Inject;
        let wanted = move |lane: &&Lane| !is_source && lane.is_wanted();
        let wanted = self.lanes[lanes].iter().filter(wanted);
        wanted.map(|lane| self.lanes[lane.first_waiting as usize].first)
    }

    /// Makes a lane (at a source: a message) the last in the queue of another one.
    /// Gives the one before it, which the caller ties to it.
    #[inline]
    pub(super) fn queue(&mut self, lane: u32, number: u32) -> Option<u32> {
        let lane = self.lane(lane);
        let before = lane.last_waiting;
        lane.last_waiting = number;
        if lane.first_waiting == NONE {
            lane.first_waiting = number;
            return None;
        }
        Some(before)
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
    }

    /// Whether somebody waits for a link.
    #[inline]
    pub(super) fn is_wanted(&self, link: u32) -> bool {
        let lanes = self.lane_of(link, 0) as usize..self.lane_of(link + 1, 0) as usize;
        self.lanes[lanes].iter().any(Lane::is_wanted)
    }

    /// The lane that a free link serves next, of those that are wanted and have
    /// room. Else when one will have room, `NEVER` where that isn't known. `since`
    /// tells when a packet left its node.
    #[inline]
    pub(super) fn choose(
        &mut self,
        link: u32,
        now: SimTime,
        since: impl Fn(u32) -> SimTime,
    ) -> Result<u32, SimTime> {
        let Link {
            turn, kind, held, ..
        } = *self.link(link);
        if held {
            return Err(SimTime::NEVER);
        }
        // A node's own messages have no age yet.
        let by_age = self.arbitration == Arbitration::Oldest && kind != Kind::Inject;
        let mask = (1 << self.shift) - 1;
        let mut earliest = SimTime::NEVER;
        let mut oldest = None;
        for i in 0..=mask {
            let lane = self.lane_of(link, (u32::from(turn) + i) & mask);
            if !self.lane(lane).is_wanted() {
                continue;
            }
            let room = self.room_at(lane, kind, now);
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
        // The mask is below 2^8: a link has 256 lanes at most.
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

    /// When the next place of a lane's buffer is free, `NEVER` where that isn't
    /// known. A node takes all.
    #[inline]
    fn room_at(&mut self, lane: u32, kind: Kind, now: SimTime) -> SimTime {
        if kind == Kind::Eject || self.lane(lane).free > 0 {
            return SimTime::START;
        }
        self.look_for_room(lane, now)
    }

    /// Looks at what was written since the last time.
    fn look_for_room(&mut self, lane: u32, now: SimTime) -> SimTime {
        let mut next = SimTime::NEVER;
        while self.lane(lane).written > 0 {
            let look = self.lane(lane).look;
            next = *self.place(lane, look);
            if next > now {
                break;
            }
            let look = self.after(look);
            let lane = self.lane(lane);
            lane.look = look;
            lane.written -= 1;
            lane.free += 1;
        }
        match self.lane(lane).free {
            0 => next,
            _ => now,
        }
    }

    /// Takes a place of a lane's buffer, one of which is free.
    #[inline]
    pub(super) fn take_room(&mut self, lane: u32) {
        self.lane(lane).free -= 1;
    }

    /// Gives a place of a lane's buffer back, from `when` on.
    #[inline]
    pub(super) fn give_room(&mut self, lane: u32, when: SimTime) {
        let place = self.lane(lane).write;
        *self.place(lane, place) = when;
        let next = self.after(place);
        let lane = self.lane(lane);
        lane.write = next;
        lane.written += 1;
    }

    #[inline]
    fn place(&mut self, lane: u32, place: u16) -> &mut SimTime {
        let place = usize::from(place);
        let row = lane as usize * self.rows + place / ROW;
        &mut self.free_at[row].0[place % ROW]
    }

    #[inline]
    fn after(&self, place: u16) -> u16 {
        if place + 1 == self.depth {
            0
        } else {
            place + 1
        }
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
            // Parameters allow 4096 at most.
            free: buffer as u16,
            look: 0,
            write: 0,
            written: 0,
        }
    }

    /// Whether somebody waits for it.
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
    fn new(to: u32, kind: Kind) -> Self {
        Link {
            to,
            kind,
            held: false,
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
        // Nobody takes it, and its number keeps the others in place.
        End::Nowhere => Link::new(NONE, Kind::Near),
    };
    let home = |node| Link::new(topology.home(Node(node)).router, Kind::Inject);
    out.map(leads)
        .chain((0..topology.nodes()).map(home))
        .collect()
}
