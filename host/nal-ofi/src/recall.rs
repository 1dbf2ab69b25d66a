//! Recall of memory under a lease.
//!
//! ```text
//!   lent, not announced    the message goes unsent
//!   lent, announced        Recall ──▶ the peer hasn't read it:
//!                          Recalled ◀── it never will, and the message will be broken
//!   lent, being read       Recall ──▶ the peer posts no more reads, waits for those that it
//!                          fetched ◀── has posted, and the stream is broken
//!   a place being filled   no more reads are posted; those that were still arrive
//! ```
//!
//! A peer that takes no part for a second is given up: its connection is closed, and
//! with it what the provider still had to send or to receive. If a provider doesn't do
//! that ([`Traits::cancels_reads`](crate::fabric::Traits::cancels_reads)), it gets copies only.

use crate::OfiNal;
use crate::fabric::Posted;
use crate::frame::Kind;
use crate::peer::{Body, Item, Peer, Queued, Sending};
use crate::receiving::drop_body;
use crate::sending::Draft;
use lintel_claim::{Lease, Loan};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Peers are waited for at most this long.
const RECALL_TIMEOUT: Duration = Duration::from_secs(1);
/// Bodies that may be recalled before they are read: more aren't in flight.
const MAX_RECALLED: usize = 2 * crate::peer::WINDOW as usize;

impl OfiNal {
    /// Whether nothing under a lease is used any more; does what leads there.
    pub(crate) fn recall_lease(&mut self, lease: &Lease) -> bool {
        self.clock.now = Instant::now();
        let known = self
            .recalls
            .iter()
            .position(|(recalled, _)| *recalled == lease.id());
        let at = known.unwrap_or_else(|| {
            self.recalls.push((lease.id(), self.clock.now));
            self.begin_recall(lease);
            self.recalls.len() - 1
        });
        let began = self.recalls[at].1;
        if known.is_some() {
            self.progress();
        }
        if self.clock.now - began >= RECALL_TIMEOUT {
            self.close_users(lease);
        }
        self.link.registrations.forget_idle();
        let is_over = !self.peers.iter().any(|peer| peer.uses(lease));
        if is_over {
            self.recalls.swap_remove(at);
        }
        is_over
    }

    fn begin_recall(&mut self, lease: &Lease) {
        for lane in self.peers.lanes(|_| true) {
            let Some(peer) = self.peers.get_mut(lane) else {
                continue;
            };
            for body in peer.sending.recall(lease) {
                drop_body(&mut self.link.registrations, body);
            }
            // What was lent to a peer that has closed may still be in flight.
            if let Some(address) = peer.address.take_if(|_| peer.closed_at.is_some()) {
                self.link.fabric.remove(address);
            }
            if let Some(body) = peer.receiving.current_body() {
                body.announced.recall(lease);
            }
            if let Some(stream) = &mut peer.receiving.stream {
                if stream.loan.as_ref().is_some_and(|loan| loan.is_of(lease)) {
                    stream.missing = 0;
                    stream.is_void = true;
                    // What is staged doesn't get there.
                    stream.loan.take_if(|_| stream.staged.is_some());
                }
            }
            self.end_stream_if_over(lane);
            self.send_recalls(lane);
            self.peers.list(lane);
        }
    }

    /// Sends the peer what is recalled, and acknowledges what it has recalled.
    pub(crate) fn send_recalls(&mut self, lane: u32) {
        while let Some(peer) = self.peers.get(lane).filter(|peer| peer.closed_at.is_none()) {
            let kinds = [Kind::Recall, Kind::RecallAck];
            let waits = |kind: &Kind| peer.next_recalled(*kind).is_some();
            let Some(kind) = kinds.into_iter().find(waits) else {
                return;
            };
            match self.post(lane, Draft::bare(kind)) {
                Posted::Yes => {}
                Posted::Later => return,
                Posted::No(code) => return self.on_error(lane, code),
            }
            if let Some(peer) = self.peers.get_mut(lane) {
                peer.recalls(kind).pop_front();
            }
        }
    }

    /// The peer has recalled a body.
    pub(crate) fn on_recall(&mut self, lane: u32, number: u32) {
        let Some(peer) = self.peers.get_mut(lane) else {
            return;
        };
        let receiving = &mut peer.receiving;
        match number.wrapping_sub(receiving.fetched) {
            0 if receiving.stream.is_some() => {
                if let Some(stream) = &mut receiving.stream {
                    stream.missing = 0;
                    stream.is_void = true;
                }
                self.end_stream_if_over(lane);
            }
            ahead if ahead as usize <= MAX_RECALLED => {
                if receiving.recalled.insert(number) {
                    receiving.recall_acks.push_back(number);
                }
                self.send_recalls(lane);
                self.peers.list(lane);
            }
            _ => {} // It has been read already.
        }
    }

    /// The peer will never read a body that was recalled.
    pub(crate) fn on_recalled(&mut self, lane: u32, number: u32) {
        let Some(peer) = self.peers.get_mut(lane) else {
            return;
        };
        let index = number.wrapping_sub(peer.sending.fetched) as usize;
        if let Some(body @ Body::Lent(..)) = peer.sending.bodies.get_mut(index) {
            let body = std::mem::replace(body, Body::Void);
            drop_body(&mut self.link.registrations, body);
        }
    }

    /// Gives up the peers that still use memory of that lease.
    fn close_users(&mut self, lease: &Lease) {
        let users = self.peers.iter().filter(|peer| peer.uses(lease));
        for lane in users.map(|peer| peer.lane).collect::<Vec<_>>() {
            self.lose_peer(lane, "doesn't let go of memory that was lent to it");
            let Some(peer) = self.peers.get_mut(lane) else {
                continue;
            };
            if let Some(address) = peer.address.take() {
                self.link.fabric.remove(address);
            }
            self.progress();
            self.abandon_stream(lane);
        }
    }
}

impl Peer {
    /// The next body that a recall or an answer to one is to name.
    pub(crate) fn next_recalled(&self, kind: Kind) -> Option<u32> {
        let bodies = match kind {
            Kind::Recall => &self.sending.recalls,
            Kind::RecallAck => &self.receiving.recall_acks,
            _ => return None,
        };
        bodies.front().copied()
    }

    pub(crate) fn has_recalls(&self) -> bool {
        !self.sending.recalls.is_empty() || !self.receiving.recall_acks.is_empty()
    }

    fn recalls(&mut self, kind: Kind) -> &mut VecDeque<u32> {
        match kind {
            Kind::RecallAck => &mut self.receiving.recall_acks,
            _ => &mut self.sending.recalls,
        }
    }

    /// Whether memory of that lease may be read or written on its behalf.
    fn uses(&self, lease: &Lease) -> bool {
        let is_of = |loan: &Option<Loan>| loan.as_ref().is_some_and(|loan| loan.is_of(lease));
        let reads = |body: &Body| matches!(body, Body::Lent(_, loan, _) if loan.is_of(lease));
        self.sending.bodies.iter().any(reads)
            || self.receiving.inbox.front().is_some_and(|item| {
                matches!(item, Item::Message(held) if held.body.as_ref().is_some_and(|body| body.announced.is_into(lease)))
            })
            || self
                .receiving
                .stream
                .as_ref()
                .is_some_and(|s| is_of(&s.loan))
    }
}

impl Sending {
    /// Recalls bodies of that lease: returns those that aren't announced yet, whose
    /// messages go unsent, and notes the others.
    fn recall(&mut self, lease: &Lease) -> Vec<Body> {
        let is_of = |body: &Body| matches!(body, Body::Lent(_, loan, _) if loan.is_of(lease));
        let is_announced = |message: &&Queued| message.kind == Kind::Rendezvous;
        let unsent = self.queue.iter().filter(is_announced).count();
        let sent = self.bodies.len() - unsent;
        let announced = (0..).zip(self.bodies.iter().take(sent));
        let recalled = announced.filter(|(_, body)| is_of(body));
        let first = self.fetched;
        self.recalls
            .extend(recalled.map(|(index, _)| first.wrapping_add(index)));
        let mut taken = Vec::new();
        let mut bodies: VecDeque<Body> = self.bodies.split_off(sent);
        for message in std::mem::take(&mut self.queue) {
            let body = match message.kind {
                Kind::Rendezvous => bodies.pop_front(),
                _ => None,
            };
            match body {
                Some(body) if is_of(&body) => {
                    self.forget_memory(&message, &body);
                    taken.push(body);
                }
                body => {
                    self.bodies.extend(body);
                    self.queue.push_back(message);
                }
            }
        }
        taken
    }
}
