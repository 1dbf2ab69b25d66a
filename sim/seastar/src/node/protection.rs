//! What becomes of messages for which a node has no CAM entry, if an
//! end-to-end protocol protects them.
//!
//! The documents name a Basic End-to-end Reliability and a CAM Overflow Protocol and
//! don't describe them. This is the least that recovers: messages of a pair of
//! nodes are numbered; a receiver takes them in order, says up to which number it
//! has room, and from which number on a sender has to come again; the sender does
//! so after a while, in order. Where the firmware does it, both modes are protected.
//!
//! ```text
//!   sender                      receiver, expects 5
//!     5, 6 ─────────────────────▶  5 finds no room
//!       ◀────────────── again 5 ──  6 comes out of order: again 5, once more
//!     after a while 5, 6 ───────▶  both find room
//!       ◀───── accepted 5, 6 ────
//! ```

use super::transmit::Outgoing;
use super::{Job, Node, Task};
use crate::context::Context;
use crate::machine::Protection;
use crate::message::{Content, Control, Message};
use lintel_types::ProcessId;

/// What a node knows of another one.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Peer {
    /// The number of the next message to it.
    next: u64,
    /// The number of the next message from it.
    expected: u64,
    /// It had no room; messages to it wait.
    refuses: bool,
}

impl Node {
    /// Gives a message its number; whether it may go now.
    pub(super) fn number(&mut self, outgoing: &mut Outgoing, ctx: &Context<'_>) -> bool {
        let is_cci = matches!(outgoing.message.content, Content::Cci(_));
        if ctx.protection != Protection::EndToEnd || is_cci {
            return true;
        }
        let peer = self.peers.entry(outgoing.message.to.nid).or_default();
        outgoing.message.sequence = peer.next;
        outgoing.is_accepted = false;
        // One that waits goes with those that go again.
        outgoing.has_left = peer.refuses;
        peer.next += 1;
        !peer.refuses
    }

    /// Whether a message is the one that is to come now.
    pub(super) fn is_next(&mut self, message: &Message, ctx: &mut Context<'_>) -> bool {
        let is_cci = matches!(message.content, Content::Cci(_));
        if ctx.protection != Protection::EndToEnd || is_cci {
            return true;
        }
        let expected = self.peers.entry(message.from.nid).or_default().expected;
        if message.sequence == expected {
            return true;
        }
        let control = match message.sequence < expected {
            true => Control::Accepted(expected - 1),
            false => Control::Nack(expected),
        };
        self.send_control(message.from.nid, control, ctx);
        false
    }

    /// There is room for a message.
    pub(super) fn accept(&mut self, message: &Message, ctx: &mut Context<'_>) {
        if ctx.protection != Protection::EndToEnd {
            return;
        }
        self.peers.entry(message.from.nid).or_default().expected += 1;
        self.send_control(message.from.nid, Control::Accepted(message.sequence), ctx);
    }

    /// The receiver has no buffer for a message.
    pub(super) fn refuse(&mut self, name: u64, ctx: &mut Context<'_>) {
        let message = self.incoming[&name].message;
        self.send_control(message.from.nid, Control::Nack(message.sequence), ctx);
    }

    fn send_control(&mut self, node: u32, control: Control, ctx: &mut Context<'_>) {
        let cost = ctx.profile.time(ctx.profile.fw_control);
        let message = control_message(ctx.node, ProcessId::new(node, 0), 0, control);
        self.work("control", cost, Job::Control(message), ctx);
    }

    pub(super) fn on_control(&mut self, message: &Message, ctx: &mut Context<'_>) {
        let Content::Control(control) = message.content else {
            return;
        };
        match control {
            Control::Accepted(number) => self.on_accepted(message.from.nid, number, ctx),
            Control::Nack(number) => self.on_refused(message.from.nid, number, ctx),
            Control::Cci(words) => self.on_cci_control(message, &words, ctx),
        }
    }

    fn on_accepted(&mut self, node: u32, number: u64, ctx: &mut Context<'_>) {
        let accepted = |out: &Outgoing| out.message.sequence <= number;
        for ticket in self.unaccepted(node, accepted) {
            let outgoing = self.outgoing.get_mut(&ticket).expect("it was just found");
            outgoing.is_accepted = true;
            outgoing.retransmit = false;
            self.notice_sent(ticket, ctx);
        }
    }

    fn on_refused(&mut self, node: u32, number: u64, ctx: &mut Context<'_>) {
        let refused = |out: &Outgoing| out.message.sequence == number;
        let is_stale = self.unaccepted(node, refused).is_empty();
        let peer = self.peers.entry(node).or_default();
        if is_stale || std::mem::replace(&mut peer.refuses, true) {
            return;
        }
        let later = ctx.now + ctx.profile.time(ctx.profile.backoff);
        ctx.at(later, Task::Retry(node));
    }

    /// All that the other node hasn't accepted goes again, in order.
    pub(super) fn retry(&mut self, node: u32, ctx: &mut Context<'_>) {
        self.peers.entry(node).or_default().refuses = false;
        for ticket in self.unaccepted(node, |_| true) {
            let outgoing = self.outgoing.get_mut(&ticket).expect("it was just found");
            match outgoing.has_left {
                true => self.retransmit(ticket, ctx),
                // It is on its way to the TX engine, behind those before it.
                false => outgoing.retransmit = true,
            }
        }
    }

    pub(super) fn retransmit(&mut self, ticket: u64, ctx: &mut Context<'_>) {
        self.outgoing
            .get_mut(&ticket)
            .expect("it isn't accepted")
            .has_left = false;
        self.counted.retransmitted += 1;
        let cost = ctx.profile.time(ctx.profile.fw_transmit);
        self.work("resend", cost, Job::Transmit(ticket), ctx);
    }

    /// Messages to a node for which it hasn't said to have room, in order.
    fn unaccepted(&self, node: u32, which: impl Fn(&Outgoing) -> bool) -> Vec<u64> {
        let open = self
            .outgoing
            .iter()
            .filter(|(_, out)| out.message.to.nid == node && !out.is_accepted && which(out));
        open.map(|(&ticket, _)| ticket).collect()
    }
}

/// A packet from one firmware to another.
pub(super) fn control_message(node: u32, to: ProcessId, pid: u32, control: Control) -> Message {
    Message {
        from: ProcessId::new(node, pid),
        to,
        body: 0,
        content: Content::Control(control),
        sequence: 0,
    }
}
