//! A connection, and the table of them.

use crate::sending::Sending;
use crate::status::Attribute;
use crate::timers::Time;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use lintel_types::ProcessId;

/// Names a connection of one endpoint; a name isn't used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId {
    /// Its place in the table.
    pub slot: u32,
    pub(crate) generation: u32,
}

impl ConnectionId {
    pub(crate) fn bits(self) -> u64 {
        u64::from(self.slot) | u64::from(self.generation) << 32
    }

    pub(crate) fn from_bits(bits: u64) -> ConnectionId {
        ConnectionId {
            slot: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

/// What an application sees of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionInfo {
    /// The process at the other end.
    pub peer: ProcessId,
    /// What it promises.
    pub attribute: Attribute,
    /// The longest message that both sides take, bytes.
    pub max_send: u32,
    /// The application's own, from connect or accept.
    pub context: u64,
}

/// Where a connection is between request and end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// The initiator waits for the server's answer.
    Connecting {
        until: Option<Time>,
    },
    /// At the server: the application hasn't answered yet.
    Requested,
    /// At the server: the initiator's confirmation hasn't arrived yet.
    Accepted,
    Open,
    /// The peer has ended, or knows the connection no more.
    Dead,
    /// Disconnected here, with messages that are still to go out.
    Closing,
}

pub(crate) struct Connection<B> {
    pub(crate) peer: ProcessId,
    /// The peer's name for it.
    pub(crate) remote: ConnectionId,
    pub(crate) attribute: Attribute,
    pub(crate) state: State,
    pub(crate) max_send: u32,
    pub(crate) context: u64,
    pub(crate) sending: Sending<B>,
    /// The next number that is received.
    pub(crate) expected: u32,
    /// Numbers of messages that are received and aren't in place yet.
    pub(crate) landing: VecDeque<u32>,
    /// The first number that the last acknowledgement didn't cover.
    pub(crate) acknowledged: u32,
    /// Only by frames of their own.
    pub(crate) acknowledges_apart: bool,
    /// Messages received since the last acknowledgement.
    pub(crate) unacknowledged: u32,
    /// It stands in the endpoint's list of those to acknowledge.
    pub(crate) is_to_acknowledge: bool,
    /// A message was refused for lack of a buffer, and the peer wasn't called yet. While it
    /// is closing: a message was dropped.
    pub(crate) has_refused: bool,
    pub(crate) send_timeout: Time,
    /// Zero: off.
    pub(crate) keepalive: Time,
    pub(crate) heard_at: Time,
    /// A probe is under way.
    pub(crate) is_probed: bool,
    /// When its earliest timer was set for.
    pub(crate) timer: Option<Time>,
}

impl<B> Connection<B> {
    pub(crate) fn new(peer: ProcessId, attribute: Attribute, state: State) -> Self {
        Connection {
            peer,
            remote: ConnectionId::from_bits(u64::MAX),
            attribute,
            state,
            max_send: 0,
            context: 0,
            sending: Sending::new(),
            expected: 0,
            landing: VecDeque::new(),
            acknowledged: 0,
            acknowledges_apart: false,
            unacknowledged: 0,
            is_to_acknowledge: false,
            has_refused: false,
            send_timeout: Time(0),
            keepalive: Time(0),
            heard_at: Time(0),
            is_probed: false,
            timer: None,
        }
    }

    /// What an application sees of it.
    pub(crate) fn info(&self) -> ConnectionInfo {
        ConnectionInfo {
            peer: self.peer,
            attribute: self.attribute,
            max_send: self.max_send,
            context: self.context,
        }
    }

    /// The next `count` numbers are received.
    pub(crate) fn advance(&mut self, count: u32) {
        self.expected = self.expected.wrapping_add(count);
        self.has_refused = false;
    }

    /// The first number that an acknowledgement doesn't cover.
    pub(crate) fn acknowledged_up_to(&self) -> u32 {
        self.landing.front().copied().unwrap_or(self.expected)
    }

    /// What a message of this side acknowledges: all that was received, unless that is
    /// acknowledged apart; then no news.
    #[inline]
    pub(crate) fn acknowledge_by_message(&mut self) -> u32 {
        if !self.acknowledges_apart {
            self.unacknowledged = 0;
            self.acknowledged = self.acknowledged_up_to();
        }
        self.acknowledged
    }

    /// Whether frames of the peer are taken.
    pub(crate) fn receives(&self) -> bool {
        matches!(self.state, State::Open | State::Closing)
    }
}

/// The connections of an endpoint.
pub(crate) struct Table<B> {
    slots: Vec<Slot<B>>,
    free: Vec<u32>,
}

struct Slot<B> {
    generation: u32,
    connection: Option<Connection<B>>,
}

impl<B> Table<B> {
    pub(crate) fn new() -> Self {
        Table {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// `first` is the generation of a slot's first use: a number that differs between runs,
    /// so that the names of an earlier process of the same address mean nothing.
    pub(crate) fn insert(&mut self, connection: Connection<B>, first: u32) -> ConnectionId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: first,
                connection: None,
            });
            self.slots.len() as u32 - 1
        });
        let place = &mut self.slots[slot as usize];
        place.generation = place.generation.wrapping_add(1);
        place.connection = Some(connection);
        ConnectionId {
            slot,
            generation: place.generation,
        }
    }

    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Connection<B>> {
        let slot = self.slots.get(id.slot as usize)?;
        slot.connection
            .as_ref()
            .filter(|_| slot.generation == id.generation)
    }

    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection<B>> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        let is_same = slot.generation == id.generation;
        slot.connection.as_mut().filter(|_| is_same)
    }

    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<Connection<B>> {
        self.get(id)?;
        self.free.push(id.slot);
        self.slots[id.slot as usize].connection.take()
    }

    /// The names of all that `wanted` accepts.
    pub(crate) fn names(&self, wanted: impl Fn(&Connection<B>) -> bool) -> Vec<ConnectionId> {
        let mut names = Vec::new();
        for (slot, place) in self.slots.iter().enumerate() {
            if place.connection.as_ref().is_some_and(&wanted) {
                names.push(ConnectionId {
                    slot: slot as u32,
                    generation: place.generation,
                });
            }
        }
        names
    }
}
