//! What becomes of messages for which a node has no CAM entry, if an
//! end-to-end protocol protects them.
//!
//! The documents name a Basic End-to-end Reliability and a CAM Overflow Protocol and
//! don't describe them. This is the least that recovers: messages of a pair of
//! nodes are numbered; a receiver takes them in order, says up to which number it
//! has room, and from which number on a sender has to come again; the sender does
//! so after a while, in order.
//!
//! ```text
//!   sender                      receiver, expects 5
//!     5, 6 ─────────────────────▶  5 finds no room
//!       ◀────────────── again 5 ──  6 comes out of order: again 5, once more
//!     after a while 5, 6 ───────▶  both find room
//!       ◀───── accepted 5, 6 ────
//! ```
//!
//! Where hosts do it ([`Protection::Host`]), each step of it is an interrupt and a message's
//! work of theirs, and messages that no host sees, those of accelerated processes, have no
//! number: so it was on the machine (S0). Where firmwares do it ([`Protection::EndToEnd`]),
//! both modes are protected, as Sandia planned (S0).

use super::kernel::NicEvent;
use super::process::Mode;
use super::transmit::Outgoing;
use super::{Job, MailboxCommand, Node, Task};
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
        let is_numbered = match (ctx.protection, self.processes[outgoing.process].mode) {
            (Protection::EndToEnd, mode) => mode != Mode::Cci,
            (Protection::Host, mode) => mode == Mode::Generic,
            (Protection::None | Protection::Swap, _) => false,
        };
        if !is_numbered {
            return true;
        }
        let peer = self.peers.entry(outgoing.message.to.nid).or_default();
        outgoing.message.sequence = Some(peer.next);
        outgoing.is_accepted = false;
        // One that waits goes with those that go again.
        outgoing.has_left = peer.refuses;
        peer.next += 1;
        !peer.refuses
    }

    /// Whether a message is the one that is to come now.
    pub(super) fn is_next(&mut self, message: &Message, ctx: &mut Context<'_>) -> bool {
        let Some(sequence) = message.sequence else {
            return true;
        };
        let expected = self.peers.entry(message.from.nid).or_default().expected;
        if sequence == expected {
            return true;
        }
        let control = match sequence < expected {
            true => Control::Accepted(expected - 1),
            false => Control::Nack(expected),
        };
        self.send_control(message.from.nid, control, ctx);
        false
    }

    /// There is room for a message.
    pub(super) fn accept(&mut self, message: &Message, ctx: &mut Context<'_>) {
        let Some(sequence) = message.sequence else {
            return;
        };
        self.peers.entry(message.from.nid).or_default().expected += 1;
        self.send_control(message.from.nid, Control::Accepted(sequence), ctx);
    }

    /// Hosts: whether a message whose header the handler has read is the one that is to come
    /// now; then it is accepted.
    pub(super) fn is_accepted_by_host(&mut self, name: u64, ctx: &mut Context<'_>) -> bool {
        let message = self.incoming[&name].message;
        if ctx.protection != Protection::Host {
            return true;
        }
        let is_next = self.is_next(&message, ctx);
        if is_next {
            self.accept(&message, ctx);
        }
        is_next
    }

    /// The receiver has no place for a message.
    pub(super) fn refuse(&mut self, message: &Message, ctx: &mut Context<'_>) {
        let expected = self.peers.entry(message.from.nid).or_default().expected;
        self.send_control(message.from.nid, Control::Nack(expected), ctx);
    }

    fn send_control(&mut self, node: u32, control: Control, ctx: &mut Context<'_>) {
        let cost = ctx.profile.time(ctx.profile.fw_control);
        let message = control_message(ctx.node, ProcessId::new(node, 0), 0, control);
        if ctx.protection == Protection::Host {
            return self.post_command(MailboxCommand::Control(message), ctx);
        }
        self.work("control", cost, Job::Control(message), ctx);
    }

    pub(super) fn on_control(&mut self, message: &Message, ctx: &mut Context<'_>) {
        let Content::Control(control) = message.content else {
            return;
        };
        match control {
            Control::Accepted(_) | Control::Nack(_) if ctx.protection == Protection::Host => {
                let crossed = ctx.now + ctx.profile.time(ctx.profile.ht_write);
                ctx.at(crossed, Task::Ring(NicEvent::Control(*message)));
            }
            Control::Accepted(_) | Control::Nack(_) => self.on_verdict(message, ctx),
            Control::Cci(words) => self.on_cci_control(message, &words, ctx),
        }
    }

    /// A receiver has accepted messages, or asks for them again.
    pub(super) fn on_verdict(&mut self, message: &Message, ctx: &mut Context<'_>) {
        match message.content {
            Content::Control(Control::Accepted(number)) => {
                self.on_accepted(message.from.nid, number, ctx);
            }
            Content::Control(Control::Nack(number)) => {
                self.on_refused(message.from.nid, number, ctx);
            }
            _ => {}
        }
    }

    fn on_accepted(&mut self, node: u32, number: u64, ctx: &mut Context<'_>) {
        let accepted = |out: &Outgoing| {
            out.message
                .sequence
                .is_some_and(|sequence| sequence <= number)
        };
        for ticket in self.unaccepted(node, accepted) {
            let outgoing = self.outgoing.get_mut(&ticket).expect("it was just found");
            outgoing.is_accepted = true;
            outgoing.retransmit = false;
            self.notice_sent(ticket, ctx);
        }
    }

    fn on_refused(&mut self, node: u32, number: u64, ctx: &mut Context<'_>) {
        let refused = |out: &Outgoing| out.message.sequence == Some(number);
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
        if ctx.protection == Protection::Host {
            let cost = ctx.profile.time(ctx.profile.host_message);
            self.kernel.run("resend", cost, ctx);
            return self.post_command(MailboxCommand::Resend(ticket), ctx);
        }
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
        sequence: None,
    }
}
