//! The way out: mailbox, TX queue, network, and the word that it has left.

use lintel_engine3::{Landed, Transfer};
use lintel_sim_kernel::{Duration, SimTime};
use lintel_wire::portals3::Verb;

use super::kernel::NicEvent;
use super::portals::{self, Gathered, Matching, Next};
use super::process::{Mode, Queued};
use super::{Job, Node, Task};
use crate::context::Context;
use crate::message::{Content, Message};
use crate::nic::Transmission;
use crate::profile::Profile;
use crate::trace::Track;

/// A message that a node sends.
pub(crate) struct Outgoing {
    pub(crate) message: Message,
    /// The process whose message it is.
    pub(crate) process: usize,
    /// Comes into its process's queue once it has left.
    pub(crate) queued: Vec<Queued>,
    /// A get that it answers.
    pub(crate) landed: Option<Landed>,
    /// When the TX engine had its first bytes.
    pub(crate) injected: SimTime,
    pub(crate) has_left: bool,
    /// The other node has room for it, or needn't say so.
    pub(crate) is_accepted: bool,
    /// It is to be sent once more when it has left.
    pub(crate) retransmit: bool,
}

impl Outgoing {
    pub(crate) fn new(message: Message, process: usize) -> Self {
        Outgoing {
            message,
            process,
            queued: Vec::new(),
            landed: None,
            injected: SimTime::START,
            has_left: false,
            is_accepted: true,
            retransmit: false,
        }
    }

    /// Whether it asks for an answer. That it has left isn't reported: Portals 3.3 has no
    /// event of that (S1, Figure 2), and its structure is the answer's, too.
    fn is_get(&self) -> bool {
        matches!(&self.message.content, Content::Request(request) if request.verb == Verb::Get)
    }

    /// TX commands: the destination, the header, and the payload in as many as
    /// there are pieces; the last one ends the message. CCI: destination, the
    /// header from the kernel's table, the rest.
    fn commands(&self, profile: &Profile) -> u64 {
        match self.message.content {
            Content::Cci(_) => 3,
            _ if self.message.is_inline(profile) => 2,
            _ => 2 + profile.pages(self.message.body).max(1),
        }
    }
}

impl Node {
    /// Takes a message over; the firmware needs so long to feed it to the engine.
    pub(super) fn transmit(&mut self, out: Outgoing, cost: Duration, ctx: &mut Context<'_>) {
        if let Some(out) = self.must_wait(out, cost) {
            self.start_transmit(out, cost, ctx);
        }
    }

    pub(super) fn start_transmit(
        &mut self,
        mut out: Outgoing,
        cost: Duration,
        ctx: &mut Context<'_>,
    ) {
        let ticket = ctx.name();
        let goes = self.number(&mut out, ctx);
        self.outgoing.insert(ticket, out);
        if goes {
            self.work("transmit", cost, Job::Transmit(ticket), ctx);
        }
    }

    pub(super) fn on_transmit(&mut self, ticket: u64, ctx: &mut Context<'_>) {
        let outgoing = &self.outgoing[&ticket];
        let commands = outgoing.commands(ctx.profile);
        let to = outgoing.message.to.nid;
        self.tx.push(Transmission {
            ticket,
            to,
            commands,
        });
        self.feed_tx(ctx);
    }

    /// The engine reads its commands ahead: the first bytes of a message are on
    /// their way from memory while the message before goes out.
    fn feed_tx(&mut self, ctx: &mut Context<'_>) {
        while let Some(next) = self.tx.feed_next() {
            let bytes = self.outgoing[&next.ticket].message.wire_bytes(ctx.profile);
            let ready = ctx.now + ctx.profile.time(ctx.profile.ht_read);
            let retries = self.draw_retries(bytes, ctx.profile);
            self.injects_until = ready.max(self.injects_until) + retries;
            ctx.at(self.injects_until, Task::Inject(next.ticket));
        }
    }

    /// What links' retries cost a message: its packets whose check fails.
    fn draw_retries(&mut self, bytes: u64, profile: &Profile) -> Duration {
        let errors = profile.link_errors.value;
        if errors == 0 {
            return Duration::ZERO;
        }
        let packets = bytes.div_ceil(profile.packet.value);
        let fails = |_: &u64| self.link.below(1_000_000_000) < errors;
        let retries = (0..packets).filter(fails).count() as u64;
        self.counted.retries += retries;
        profile.time(profile.link_retry) * retries
    }

    pub(super) fn inject(&mut self, ticket: u64, ctx: &mut Context<'_>) {
        let outgoing = self.outgoing.get_mut(&ticket).expect("it hasn't left");
        outgoing.injected = ctx.now;
        if !outgoing.message.is_inline(ctx.profile) {
            let engine = ctx.profile.bandwidth(ctx.profile.tx_bandwidth);
            self.memory
                .begin(ticket, outgoing.message.body, engine, ctx.now);
        }
        ctx.send(outgoing.message, Some(ticket));
    }

    pub(super) fn on_transmitted(&mut self, ticket: u64, ctx: &mut Context<'_>) {
        let late = self.tx.retire(ticket);
        if late > 0 {
            let cost = ctx.profile.time(ctx.profile.fw_feed) * late;
            self.work("feed", cost, Job::Housekeeping, ctx);
        }
        let outgoing = self.outgoing.get_mut(&ticket).expect("it has just left");
        ctx.message_span(Track::Tx, &outgoing.message, outgoing.injected);
        if !outgoing.message.is_inline(ctx.profile) {
            self.memory.end(ticket, outgoing.message.body);
        }
        if std::mem::take(&mut outgoing.retransmit) {
            self.retransmit(ticket, ctx);
        } else {
            outgoing.has_left = true;
            self.notice_sent(ticket, ctx);
        }
        self.feed_tx(ctx);
    }

    /// Once it has left and is accepted, the firmware notices.
    pub(super) fn notice_sent(&mut self, ticket: u64, ctx: &mut Context<'_>) {
        let outgoing = &self.outgoing[&ticket];
        if !(outgoing.has_left && outgoing.is_accepted) {
            return;
        }
        let p = ctx.profile;
        let cost = match outgoing.message.content {
            Content::Cci(_) => {
                let queued = outgoing.queued.len() as u64;
                p.time(p.cci_fw_sent) + p.time(p.cci_fw_event) * queued
            }
            _ => p.time(p.fw_sent),
        };
        self.work("sent", cost, Job::Sent(ticket), ctx);
    }

    pub(super) fn on_sent(&mut self, ticket: u64, ctx: &mut Context<'_>) {
        let outgoing = self.outgoing.remove(&ticket).expect("it is reported once");
        self.transmit_waiting(ctx);
        let crossed = ctx.now + ctx.profile.time(ctx.profile.ht_write);
        match self.processes[outgoing.process].mode {
            Mode::Generic if outgoing.is_get() => {}
            Mode::Generic => ctx.at(crossed, Task::Ring(NicEvent::Sent(Box::new(outgoing)))),
            Mode::Accelerated => self.on_sent_by_nic(outgoing, ctx),
            Mode::Cci => ctx.at(crossed, Task::Visible(outgoing.process, outgoing.queued)),
        }
    }

    fn on_sent_by_nic(&mut self, mut outgoing: Outgoing, ctx: &mut Context<'_>) {
        let number = outgoing.process;
        let mut gathered = self.processes[number].gather(number);
        let Some(engine) = self.processes[number].engine_mut() else {
            return;
        };
        portals::on_sent(engine, &mut outgoing, &mut gathered);
        let cost = portals::price(engine, &gathered, Matching::Nic, ctx.profile);
        if gathered.queued.is_empty() && gathered.sends.is_empty() {
            return;
        }
        self.work("event", cost, Job::Matched(gathered), ctx);
    }

    /// A process has written a command into its own mailbox.
    pub(super) fn on_transfer(
        &mut self,
        number: usize,
        transfer: &Transfer,
        ctx: &mut Context<'_>,
    ) {
        let nodes = self.nodes;
        let process = &mut self.processes[number];
        let mut gathered = process.gather(number);
        let Some(engine) = process.engine_mut() else {
            return;
        };
        if let Err(error) = portals::start(engine, transfer, nodes, &mut gathered) {
            process.fail(&error);
            return;
        }
        let p = ctx.profile;
        let cost = portals::price(engine, &gathered, Matching::Nic, p);
        self.work("program", cost, Job::Matched(gathered), ctx);
    }

    /// What matching on the NIC has brought takes its ways.
    pub(super) fn on_matched(&mut self, gathered: Gathered, ctx: &mut Context<'_>) {
        let p = ctx.profile;
        match gathered.next {
            Next::Deposit(name) => self.deposit(name, ctx),
            Next::Discard(name) => self.discard(name, ctx),
            Next::Release(_) | Next::Nothing => {}
        }
        for outgoing in gathered.sends {
            self.transmit(outgoing, p.time(p.fw_transmit), ctx);
        }
        if !gathered.queued.is_empty() {
            let crossed = ctx.now + p.time(p.ht_write);
            ctx.at(crossed, Task::Visible(gathered.process, gathered.queued));
        }
    }
}
