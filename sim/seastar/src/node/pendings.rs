//! The firmware's structures for messages under way, and for the nodes that they come from.
//!
//! S4, III-B: a new message's source is looked up among the active ones, or gets a structure;
//! then the message gets one. Both kinds lie in the NIC's memory, so that there are only so
//! many. A message that comes in without one is treated as one without an entry of the CAM;
//! one that is to go out waits until a structure is free. Half of the structures are for
//! either way, as in the public driver (IP), so that two nodes that send can also receive.
//! CCI's sends are limited by their areas instead.

use std::collections::{BTreeMap, VecDeque};

use lintel_sim_kernel::Duration;

use super::Node;
use super::transmit::Outgoing;
use crate::context::Context;
use crate::profile::Profile;

/// The structures of a node.
pub(crate) struct Pendings {
    /// For either way.
    most: u64,
    most_sources: u64,
    /// Messages that come in and have one, by the node that they come from.
    incoming: BTreeMap<u32, u64>,
    /// Messages that wait for one, and what the firmware needs to feed them.
    waiting: VecDeque<(Outgoing, Duration)>,
}

impl Pendings {
    pub(crate) fn new(profile: &Profile) -> Self {
        Pendings {
            most: (profile.pendings.value / 2).max(1),
            most_sources: profile.sources.value,
            incoming: BTreeMap::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Gives a message that comes in its structures, if there are any.
    fn take(&mut self, source: u32) -> bool {
        let has_source = self.incoming.contains_key(&source);
        let has_room = has_source || (self.incoming.len() as u64) < self.most_sources;
        if !has_room || self.incoming.values().sum::<u64>() >= self.most {
            return false;
        }
        *self.incoming.entry(source).or_default() += 1;
        true
    }

    /// Whether another message may go out besides so many.
    fn may_send(&self, outgoing: usize) -> bool {
        (outgoing as u64) < self.most
    }

    fn give_back(&mut self, source: u32) {
        let messages = self.incoming.get_mut(&source).expect("it has one");
        *messages -= 1;
        if *messages == 0 {
            self.incoming.remove(&source);
        }
    }
}

impl Node {
    /// Gives a message that comes in its structures; whether there were any.
    pub(super) fn track(&mut self, name: u64) -> bool {
        let incoming = self.incoming.get_mut(&name).expect("it has begun");
        let source = incoming.message.from.nid;
        incoming.is_tracked = self.pendings.take(source);
        self.counted.exhausted += u64::from(!incoming.is_tracked);
        incoming.is_tracked
    }

    /// A message that came in is done with.
    pub(super) fn release(&mut self, source: u32) {
        self.pendings.give_back(source);
    }

    /// Keeps a message that is to go out while there is no structure for it.
    pub(super) fn must_wait(&mut self, outgoing: Outgoing, cost: Duration) -> Option<Outgoing> {
        let pendings = &mut self.pendings;
        if pendings.waiting.is_empty() && pendings.may_send(self.outgoing.len()) {
            return Some(outgoing);
        }
        pendings.waiting.push_back((outgoing, cost));
        None
    }

    /// A structure is free: the message that waits longest goes.
    pub(super) fn transmit_waiting(&mut self, ctx: &mut Context<'_>) {
        if self.pendings.may_send(self.outgoing.len()) {
            if let Some((outgoing, cost)) = self.pendings.waiting.pop_front() {
                self.start_transmit(outgoing, cost, ctx);
            }
        }
    }
}
