//! Links and their lanes: who waits for which, and how much room is left.

use lintel_sim_kernel::{Duration, SimTime};

use crate::message::Node;
use crate::parameters::{Arbitration, Kind, Parameters};
use crate::topology::{End, Port, Topology};

pub(super) const NONE: u32 = u32::MAX;

/// A link, one way.
pub(super) struct Link {
    /// The router, or the node, at its far end.
    pub(super) to: u32,
    pub(super) kind: Kind,
    /// The node takes nothing in.
    pub(super) held: bool,
    /// The lane that is looked at first.
    pub(super) turn: u8,
    /// Lanes (of a source: messages) that wait for it.
    pub(super) waiting: u32,
    /// Its last packet's tail leaves then.
    pub(super) busy_until: SimTime,
    /// When it is looked at next, if that is known.
    pub(super) wake_at: SimTime,
    /// How long it was occupied in all.
    pub(super) occupied: Duration,
}

/// One lane of a link: the buffer at its far end, and the queue at its near one.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    /// Packets in the buffer.
    first: u32,
    last: u32,
    /// The next lane in the queue in which this one's first packet waits.
    next_waiting: u32,
    /// Lanes whose first packets wait for this one; at a source, messages.
    first_waiting: u32,
    last_waiting: u32,
    /// When its first packet left its node.
    since: SimTime,
    /// Places of `free_at` that the next packet takes and gives back.
    taken: u16,
    given: u16,
}

/// All links, all lanes. Links of routers come first, by port; then one per
/// node, into its router.
pub(super) struct Lanes {
    links: Vec<Link>,
    lanes: Vec<Lane>,
    /// When each place of each lane's buffer is free again, `NEVER` while nobody
    /// knows. Packets leave a lane in the order in which they came, so that
    /// places are taken and given back in turn.
    free_at: Vec<SimTime>,
    depth: usize,
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
        let depth = parameters.buffer as usize;
        Lanes {
            links,
            lanes: vec![Lane::EMPTY; count],
            free_at: vec![SimTime::START; count * depth],
            depth,
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

    /// Puts a lane (at a source: a message) into the queue of another one, of
    /// which this is then the last. `follow` ties the last before to it.
    #[inline]
    pub(super) fn queue(&mut self, lane: u32, number: u32) -> Option<u32> {
        let link = self.link_of(lane);
        self.link(link).waiting += 1;
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
        let link = self.link_of(lane);
        self.link(link).waiting -= 1;
        self.lane(lane).first_waiting = next;
    }

    /// The lane that a free link serves next, of those that are wanted and have
    /// room. Else when one will have room, `NEVER` where that isn't known.
    #[inline]
    pub(super) fn choose(&mut self, link: u32, now: SimTime) -> Result<u32, SimTime> {
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
            let room = self.room_at(lane, kind);
            if room > now {
                earliest = earliest.min(room);
            } else if by_age {
                let since = self.bring_oldest_forward(lane);
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
    fn bring_oldest_forward(&mut self, lane: u32) -> SimTime {
        let head = self.lane(lane).first_waiting;
        let (mut oldest, mut before_oldest) = (head, NONE);
        let mut before = head;
        loop {
            let number = self.lane(before).next_waiting;
            if number == NONE {
                break;
            }
            if self.since(number) < self.since(oldest) {
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
        self.since(oldest)
    }

    /// When a lane's first packet left its node.
    fn since(&self, lane: u32) -> SimTime {
        self.lanes[lane as usize].since
    }

    /// When the next place of a lane's buffer is free. A node takes all.
    #[inline]
    fn room_at(&self, lane: u32, kind: Kind) -> SimTime {
        if kind == Kind::Eject {
            return SimTime::START;
        }
        let place = self.lanes[lane as usize].taken;
        self.free_at[lane as usize * self.depth + usize::from(place)]
    }

    /// Takes the next place of a lane's buffer.
    #[inline]
    pub(super) fn take_room(&mut self, lane: u32) {
        let place = self.lanes[lane as usize].taken;
        self.lanes[lane as usize].taken = self.after(place);
        self.free_at[lane as usize * self.depth + usize::from(place)] = SimTime::NEVER;
    }

    /// Gives a place of a lane's buffer back, from `when` on.
    #[inline]
    pub(super) fn give_room(&mut self, lane: u32, when: SimTime) {
        let place = self.lanes[lane as usize].given;
        self.lanes[lane as usize].given = self.after(place);
        self.free_at[lane as usize * self.depth + usize::from(place)] = when;
    }

    #[inline]
    fn after(&self, place: u16) -> u16 {
        if usize::from(place) + 1 == self.depth {
            0
        } else {
            place + 1
        }
    }
}

impl Lane {
    const EMPTY: Lane = Lane {
        first: NONE,
        last: NONE,
        next_waiting: NONE,
        first_waiting: NONE,
        last_waiting: NONE,
        since: SimTime::START,
        taken: 0,
        given: 0,
    };

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

    /// Puts a packet, which left its node at `since`, into the buffer; gives the
    /// one before it.
    #[inline]
    pub(super) fn push(&mut self, packet: u32, since: SimTime) -> Option<u32> {
        let before = self.last;
        self.last = packet;
        if self.first == NONE {
            self.first = packet;
            self.since = since;
            return None;
        }
        Some(before)
    }

    /// Takes the first packet out of the buffer; `next`, which left its node at
    /// `since`, comes after it.
    #[inline]
    pub(super) fn pop(&mut self, next: u32, since: SimTime) {
        self.first = next;
        self.since = since;
    }
}

impl Link {
    fn new(to: u32, kind: Kind) -> Self {
        Link {
            to,
            kind,
            held: false,
            turn: 0,
            waiting: 0,
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
