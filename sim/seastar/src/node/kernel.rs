//! The kernel of generic mode: its ring of the NIC's events, its interrupt handler.
//!
//! It runs on core 0. Traps and the handler take turns; a process on that core goes
//! on when both are done.

use std::collections::VecDeque;

use lintel_sim_kernel::{Duration, SimTime};
use lintel_sim_node::{Core, InterruptLine, InterruptParameters, Noise};

use super::portals::{self, Gathered, Matching, Next};
use super::transmit::Outgoing;
use super::{MailboxCommand, Node, Task};
use crate::context::Context;
use crate::message::Message;
use crate::profile::Profile;
use crate::trace::Track;

/// An event that the firmware posts to the kernel.
pub(crate) enum NicEvent {
    /// A new message, by its name among those that come in.
    Header(u64),
    /// A message is deposited in the memory that the kernel named.
    Landed(u64),
    /// A message has left.
    Sent(Box<Outgoing>),
    /// A message found no place.
    Refused(Message),
    /// Another host's answer to a message's header.
    Control(Message),
}

/// The kernel of a node, and its core.
pub(crate) struct Kernel {
    core: Core,
    line: InterruptLine,
    ring: VecDeque<NicEvent>,
    /// Events that the handler serves before it returns, while it runs.
    in_handler: Option<u64>,
}

impl Kernel {
    pub(crate) fn new(profile: &Profile) -> Self {
        let parameters = InterruptParameters {
            cost: profile.time(profile.interrupt_entry),
            wait: Duration::ZERO,
            enough: 1,
        };
        Kernel {
            core: Core::new(Noise::NONE),
            line: InterruptLine::new(parameters),
            ring: VecDeque::new(),
            in_handler: None,
        }
    }

    /// Work of the kernel, one piece after the other.
    pub(crate) fn run(
        &mut self,
        name: &'static str,
        cost: Duration,
        ctx: &mut Context<'_>,
    ) -> SimTime {
        let start = ctx.now.max(self.core.free_at());
        let done = self.core.run(ctx.now, cost);
        ctx.span(Track::Kernel, name, start, done);
        done
    }

    /// Until when it has work.
    pub(crate) fn free_at(&self) -> SimTime {
        self.core.free_at()
    }

    /// Whether no process runs on its core.
    pub(crate) fn is_busy(&self, now: SimTime) -> bool {
        self.in_handler.is_some() || self.core.free_at() > now
    }

    pub(crate) fn worked(&self) -> Duration {
        self.core.worked()
    }

    pub(crate) fn interrupts(&self) -> u64 {
        self.line.taken()
    }
}

impl Node {
    /// The NIC has written an event. Where the handler runs, it will find it.
    pub(super) fn on_ring(&mut self, event: NicEvent, ctx: &mut Context<'_>) {
        self.kernel.ring.push_back(event);
        self.raise(ctx);
    }

    fn raise(&mut self, ctx: &mut Context<'_>) {
        if self.kernel.in_handler.is_some() || self.kernel.ring.is_empty() {
            return;
        }
        if let Some(when) = self.kernel.line.raise(ctx.now) {
            ctx.at(when, Task::Interrupt);
        }
    }

    pub(super) fn on_interrupt(&mut self, ctx: &mut Context<'_>) {
        if self.kernel.line.enter(ctx.now) == 0 {
            return;
        }
        self.kernel.in_handler = Some(ctx.profile.interrupt_events.value.max(1));
        let entered = self.kernel.run("interrupt", self.kernel.line.cost(), ctx);
        ctx.at(entered, Task::Handler);
    }

    /// The handler serves one event after the other, until there is none or it has
    /// served enough.
    pub(super) fn serve_ring(&mut self, ctx: &mut Context<'_>) {
        let left = self.kernel.in_handler.unwrap_or(0);
        let event = match left {
            0 => None,
            _ => self.kernel.ring.pop_front(),
        };
        let Some(event) = event else {
            return self.leave_handler(ctx);
        };
        self.kernel.in_handler = Some(left - 1);
        let (gathered, cost) = match event {
            NicEvent::Header(name) => match self.is_accepted_by_host(name, ctx) {
                true => self.handle_header(name, ctx.profile),
                false => self.handle_stray(name, ctx.profile),
            },
            NicEvent::Landed(name) => self.handle_landed(name, ctx.profile),
            NicEvent::Sent(outgoing) => self.handle_sent(*outgoing, ctx.profile),
            NicEvent::Refused(message) => {
                self.refuse(&message, ctx);
                (
                    Gathered::default(),
                    ctx.profile.time(ctx.profile.host_message),
                )
            }
            NicEvent::Control(message) => {
                self.on_verdict(&message, ctx);
                (
                    Gathered::default(),
                    ctx.profile.time(ctx.profile.host_message),
                )
            }
        };
        let handled = self.kernel.run("handle", cost, ctx);
        ctx.at(handled, Task::Handled(gathered));
    }

    fn leave_handler(&mut self, ctx: &mut Context<'_>) {
        self.kernel.in_handler = None;
        self.leave_interrupt(ctx);
    }

    /// The device's, or one between processors.
    pub(super) fn leave_interrupt(&mut self, ctx: &mut Context<'_>) {
        let exit = ctx.profile.time(ctx.profile.interrupt_exit);
        self.memory.need(ctx.now);
        let returned = self.kernel.run("return", exit, ctx);
        ctx.at(returned, Task::Returned);
    }

    /// Processes go on, unless the NIC has more to say.
    pub(super) fn on_returned(&mut self, ctx: &mut Context<'_>) {
        let longer = self.wait_for_memory(ctx);
        if longer > Duration::ZERO {
            let returned = self.kernel.run("memory", longer, ctx);
            return ctx.at(returned, Task::Returned);
        }
        self.wake_all(ctx);
        self.raise(ctx);
    }

    fn handle_header(&mut self, name: u64, profile: &Profile) -> (Gathered, Duration) {
        let message = self.incoming[&name].message;
        let is_inline = message.is_inline(profile);
        let (mut gathered, engine) = self.client_of(&message);
        let held = portals::on_header(engine, name, &message, is_inline, &mut gathered);
        let mut cost = portals::price(engine, &gathered, Matching::Host, profile);
        cost += map_sends(&gathered, profile);
        if held.is_some() {
            cost += profile.time(profile.page_map) * mapped(message.body, profile);
        }
        match is_inline {
            true => drop(self.incoming.remove(&name)),
            false => self.incoming.get_mut(&name).expect("it was just read").held = held,
        }
        (gathered, cost)
    }

    /// A message that isn't the next one of its sender is thrown away.
    fn handle_stray(&mut self, name: u64, profile: &Profile) -> (Gathered, Duration) {
        let message = self.incoming[&name].message;
        let is_inline = message.is_inline(profile);
        let next = match is_inline {
            true => Next::Release(message.from.nid),
            false => Next::Discard(name),
        };
        if is_inline {
            self.incoming.remove(&name);
        }
        (Gathered::going_on(next), profile.time(profile.host_message))
    }

    fn handle_landed(&mut self, name: u64, profile: &Profile) -> (Gathered, Duration) {
        let incoming = self.incoming.remove(&name).expect("it lands once");
        let message = incoming.message;
        let (mut gathered, engine) = self.client_of(&message);
        let held = incoming.held.expect("what lands was wanted");
        portals::on_deposited(engine, message.from, held, &mut gathered);
        gathered.next = Next::Release(message.from.nid);
        let cost = portals::price(engine, &gathered, Matching::Host, profile);
        (gathered, cost + profile.time(profile.host_message))
    }

    fn handle_sent(&mut self, mut out: Outgoing, profile: &Profile) -> (Gathered, Duration) {
        let process = &mut self.processes[out.process];
        let mut gathered = process.gather(out.process);
        let engine = process.engine_mut();
        let engine = engine.expect("what the kernel sent has an engine");
        portals::on_sent(engine, &mut out, &mut gathered);
        let cost = portals::price(engine, &gathered, Matching::Host, profile);
        (gathered, cost + profile.time(profile.host_message))
    }

    pub(super) fn on_handled(&mut self, gathered: Gathered, ctx: &mut Context<'_>) {
        let command = match gathered.next {
            Next::Deposit(name) => Some(MailboxCommand::Deposit(name)),
            Next::Discard(name) => Some(MailboxCommand::Discard(name)),
            Next::Release(source) => Some(MailboxCommand::Release(source)),
            Next::Nothing => None,
        };
        // An answer is waited for; that a structure is free is not.
        self.post_sends(gathered.sends, ctx);
        if let Some(command) = command {
            self.post_command(command, ctx);
        }
        self.show(gathered.process, gathered.queued, ctx);
        self.serve_ring(ctx);
    }

    pub(super) fn post_sends(&mut self, sends: Vec<Outgoing>, ctx: &mut Context<'_>) {
        for outgoing in sends {
            self.post_command(MailboxCommand::Send(outgoing), ctx);
        }
    }

    /// The host writes a command, which the firmware finds a little later.
    pub(super) fn post_command(&mut self, command: MailboxCommand, ctx: &mut Context<'_>) {
        let crossed = ctx.now + ctx.profile.time(ctx.profile.ht_write);
        ctx.at(crossed, Task::MailboxCommand(command));
    }
}

/// Finding the pages of what is to be sent.
pub(super) fn map_sends(gathered: &Gathered, profile: &Profile) -> Duration {
    let bodies = gathered.sends.iter().map(|send| send.message.body);
    let pages: u64 = bodies.map(|body| mapped(body, profile)).sum();
    profile.time(profile.page_map) * pages
}

/// Pages that the host finds for a payload; none if it rides in the header.
fn mapped(body: u64, profile: &Profile) -> u64 {
    match body > profile.inline_bytes.value {
        true => profile.pages(body),
        false => 0,
    }
}
