//! The way in: header, CAM, decision, deposit.
//!
//! A message of several packets stops the RX pipeline after its first one, until
//! the firmware has given its source commands: the RX FIFO takes what follows, and behind
//! it the network. The firmware sees headers as they enter the FIFO.

use lintel_cci::is_acknowledgement;
use lintel_engine3::Interface;
use lintel_memory::Ghost;
use lintel_sim_kernel::SimTime;
use lintel_types::ProcessId;

use super::cci::Place;
use super::kernel::NicEvent;
use super::portals::{self, Gathered, Held, Matching};
use super::process::{Mode, Process};
use super::{Job, Node, Task};
use crate::context::Context;
use crate::machine::Protection;
use crate::message::{Content, Control, Message};
use crate::nic::Admission;
use crate::profile::Profile;
use crate::trace::Track;

/// A message that comes in.
pub(crate) struct Incoming {
    pub(crate) message: Message,
    /// When its first packet was in.
    began: SimTime,
    /// The RX engine has come to it.
    is_reached: bool,
    /// Its last packet is in.
    has_arrived: bool,
    /// The RX pipeline stands still for it.
    holds: bool,
    /// The firmware has structures for it and its source.
    pub(super) is_tracked: bool,
    /// Its source's entry of the CAM counts it.
    is_admitted: bool,
    /// The firmware has been given its commands.
    is_programmed: bool,
    /// Commands of it in its source's queue, and those for which that had no room yet.
    queued: u64,
    unfed: u64,
    /// The RX engine writes its payload.
    is_landing: bool,
    is_discarded: bool,
    /// What the engine waits for.
    pub(crate) held: Option<Held>,
    /// The place of a CCI message.
    pub(super) place: Option<Place>,
}

impl Node {
    /// A message's first packet is in, or in the FIFO; for some that is all of it.
    pub(super) fn begin(
        &mut self,
        name: u64,
        message: Message,
        whole: bool,
        ctx: &mut Context<'_>,
    ) {
        let p = ctx.profile;
        if message.is_control() {
            let cost = match message.content {
                // The sender's library is notified.
                Content::Control(Control::Cci(words)) if is_acknowledgement(&words) => {
                    p.time(p.cci_fw_ack) + p.time(p.cci_fw_event)
                }
                Content::Control(Control::Cci(_)) => p.time(p.cci_fw_ack),
                _ => p.time(p.fw_control),
            };
            return self.work("control", cost, Job::ControlReceived(message), ctx);
        }
        self.incoming.insert(
            name,
            Incoming {
                message,
                began: ctx.now,
                is_reached: false,
                has_arrived: whole,
                holds: false,
                is_tracked: false,
                is_admitted: false,
                is_programmed: false,
                queued: 0,
                unfed: 0,
                is_landing: false,
                is_discarded: false,
                held: None,
                place: None,
            },
        );
        let cost = match message.content {
            Content::Cci(_) => p.cci_fw_header,
            _ => p.fw_header,
        };
        self.work("header", p.time(cost), Job::Header(name), ctx);
    }

    /// The last packet is in.
    pub(super) fn complete(&mut self, name: u64, ctx: &mut Context<'_>) {
        let incoming = self.incoming.get_mut(&name).expect("it has begun");
        incoming.has_arrived = true;
        self.advance(name, ctx);
    }

    pub(super) fn on_header(&mut self, name: u64, ctx: &mut Context<'_>) {
        let message = self.incoming[&name].message;
        let Some(mode) = self.mode_for(&message) else {
            self.counted.lost += 1;
            return self.discard(name, ctx);
        };
        let is_firmwares = ctx.protection == Protection::EndToEnd;
        if is_firmwares && !self.is_next(&message, ctx) {
            return self.discard(name, ctx);
        }
        if mode == Mode::Cci {
            return self.on_cci_header(name, ctx);
        }
        if !self.admit(name, mode, ctx) {
            return;
        }
        if is_firmwares {
            self.accept(&message, ctx);
        }
        match mode {
            Mode::Generic => {
                let crossed = ctx.now + ctx.profile.time(ctx.profile.ht_write);
                ctx.at(crossed, Task::Ring(NicEvent::Header(name)));
            }
            _ => self.match_on_nic(name, ctx),
        }
    }

    /// Who serves a process that lives.
    fn mode_of(&self, process: ProcessId) -> Option<Mode> {
        if self.counted.aborted.is_some() {
            return None;
        }
        let process = self.processes.get(process.pid as usize)?;
        Some(process.mode)
    }

    /// Who serves a process that understands a message.
    fn mode_for(&self, message: &Message) -> Option<Mode> {
        let mode = self.mode_of(message.to)?;
        let is_cci = matches!(message.content, Content::Cci(_));
        (is_cci == (mode == Mode::Cci)).then_some(mode)
    }

    /// The engine that a message is for, and a place for what comes of it.
    pub(super) fn client_of(&mut self, message: &Message) -> (Gathered, &mut Interface<Ghost>) {
        let number = message.to.pid as usize;
        let process = &mut self.processes[number];
        let gathered = process.gather(number);
        let engine = process.engine_mut();
        (
            gathered,
            engine.expect("a Portals message is for a Portals process"),
        )
    }

    /// Gives a message its structures, and its source an entry of the CAM if payload
    /// follows. Where there is none, does what the protection says.
    fn admit(&mut self, name: u64, mode: Mode, ctx: &mut Context<'_>) -> bool {
        let message = self.incoming[&name].message;
        let needs_cam = !message.is_inline(ctx.profile);
        if self.track(name) && (!needs_cam || self.enter_cam(name, message.from.nid, ctx)) {
            return true;
        }
        match (ctx.protection, mode) {
            (Protection::EndToEnd, _) => self.refuse(&message, ctx),
            (Protection::Host, Mode::Generic) => {
                let crossed = ctx.now + ctx.profile.time(ctx.profile.ht_write);
                ctx.at(crossed, Task::Ring(NicEvent::Refused(message)));
            }
            (_, Mode::Accelerated) => self.abort(ctx),
            _ => self.counted.lost += 1,
        }
        self.discard(name, ctx);
        false
    }

    /// The same for a CCI message, whose class says what happens otherwise.
    pub(super) fn admit_cci(
        &mut self,
        name: u64,
        message: &Message,
        ctx: &mut Context<'_>,
    ) -> bool {
        self.track(name) && self.enter_cam(name, message.from.nid, ctx)
    }

    fn enter_cam(&mut self, name: u64, source: u32, ctx: &mut Context<'_>) -> bool {
        let mut admission = self.cam.admit(source);
        if admission == Admission::Full {
            self.counted.overflows += 1;
            if ctx.protection == Protection::Swap {
                self.swap(source, ctx);
                admission = self.cam.admit(source);
            }
        }
        let incoming = self.incoming.get_mut(&name).expect("it has begun");
        incoming.is_admitted = admission == Admission::Admitted;
        incoming.is_admitted
    }

    /// An entry of the CAM goes, another one comes.
    fn swap(&mut self, source: u32, ctx: &mut Context<'_>) {
        self.counted.swaps += 1;
        self.cam.swap_in(source);
        let cost = ctx.profile.time(ctx.profile.cam_swap);
        self.work("swap", cost, Job::Housekeeping, ctx);
    }

    /// The node is given up: the accelerated firmware of 2006 can do no other.
    fn abort(&mut self, ctx: &mut Context<'_>) {
        self.counted.lost += 1;
        self.counted.aborted = Some(ctx.now);
        self.processes.iter_mut().for_each(Process::end);
    }

    /// The firmware asks the engine.
    fn match_on_nic(&mut self, name: u64, ctx: &mut Context<'_>) {
        let message = self.incoming[&name].message;
        let is_inline = message.is_inline(ctx.profile);
        let (mut gathered, engine) = self.client_of(&message);
        let held = portals::on_header(engine, name, &message, is_inline, &mut gathered);
        let p = ctx.profile;
        let mut cost = portals::price(engine, &gathered, Matching::Nic, p);
        if is_inline {
            self.incoming.remove(&name);
            self.release(message.from.nid);
        } else {
            cost += p.time(p.fw_program) + p.time(p.fw_deposit);
            self.incoming.get_mut(&name).expect("it has begun").held = held;
        }
        self.work("match", cost, Job::Matched(gathered), ctx);
    }

    /// The source's queue gets the commands of a message.
    pub(super) fn deposit(&mut self, name: u64, ctx: &mut Context<'_>) {
        let incoming = self.incoming.get_mut(&name).expect("it isn't in yet");
        let commands = commands(&incoming.message, ctx.profile);
        let source = incoming.message.from.nid;
        if self.cam.is_swapped_out(source) {
            self.swap(source, ctx);
        }
        let waiting = self.unfed.entry(source).or_default();
        let late = match waiting.is_empty() {
            true => self.cam.feed(source, commands),
            false => commands,
        };
        waiting.extend((0..late).map(|_| name));
        let incoming = self.incoming.get_mut(&name).expect("it isn't in yet");
        incoming.is_programmed = true;
        incoming.queued = commands - late;
        incoming.unfed = late;
        if incoming.queued > 0 {
            self.go_in(name, ctx);
        }
    }

    /// The RX engine has used a command up, and goes on with the next one. Where there is
    /// none yet, it stops.
    fn retire(&mut self, name: u64, ctx: &mut Context<'_>) {
        let incoming = self.incoming.get_mut(&name).expect("it isn't in yet");
        if incoming.queued == 0 {
            return;
        }
        incoming.queued -= 1;
        let is_starved = incoming.queued == 0 && incoming.unfed > 0;
        incoming.holds |= is_starved;
        let source = incoming.message.from.nid;
        self.cam.retire(source);
        self.refill(source, ctx);
        if is_starved {
            self.hold(ctx);
        }
    }

    /// The firmware puts a command into the place that has become free in a source's queue.
    fn refill(&mut self, source: u32, ctx: &mut Context<'_>) {
        let waiting = self.unfed.get_mut(&source);
        if let Some(name) = waiting.and_then(|waiting| waiting.pop_front()) {
            self.cam.feed(source, 1);
            let cost = ctx.profile.time(ctx.profile.fw_feed);
            self.work("feed", cost, Job::Feed(name), ctx);
        }
    }

    /// A command is in its source's queue.
    pub(super) fn on_fed(&mut self, name: u64, ctx: &mut Context<'_>) {
        let incoming = self.incoming.get_mut(&name).expect("it isn't in yet");
        incoming.queued += 1;
        incoming.unfed -= 1;
        self.go_in(name, ctx);
    }

    /// All that a command covers has passed the RX engine.
    pub(crate) fn on_passed(&mut self, name: u64, ctx: &mut Context<'_>) {
        if self.incoming.contains_key(&name) {
            self.retire(name, ctx);
        }
    }

    /// What a message brings is thrown away.
    pub(super) fn discard(&mut self, name: u64, ctx: &mut Context<'_>) {
        let incoming = self.incoming.get_mut(&name).expect("it isn't in yet");
        incoming.is_discarded = true;
        self.go_in(name, ctx);
    }

    /// The RX pipeline needn't stand still for a message any more.
    fn go_in(&mut self, name: u64, ctx: &mut Context<'_>) {
        let incoming = self.incoming.get_mut(&name).expect("it isn't in yet");
        if std::mem::take(&mut incoming.holds) {
            self.held -= 1;
            if self.held == 0 {
                ctx.span(Track::Stall, "no command", self.held_since, ctx.now);
                ctx.resume();
            }
        }
        self.begin_deposit(name, ctx);
        self.advance(name, ctx);
    }

    /// The RX engine writes a message's payload once it has come to it and has commands.
    fn begin_deposit(&mut self, name: u64, ctx: &mut Context<'_>) {
        let incoming = self.incoming.get_mut(&name).expect("it isn't in yet");
        let can_land = incoming.is_reached && incoming.queued > 0 && !incoming.has_arrived;
        if can_land && !std::mem::replace(&mut incoming.is_landing, true) {
            let engine = ctx.profile.bandwidth(ctx.profile.rx_bandwidth);
            let bytes = incoming.message.body;
            self.memory.begin(name, bytes, engine, ctx.now);
            // The first command throws the header away.
            self.retire(name, ctx);
        }
    }

    /// The RX engine has come to a message that may have no commands yet.
    pub(super) fn stall(&mut self, name: u64, ctx: &mut Context<'_>) {
        let Some(incoming) = self.incoming.get_mut(&name) else {
            return;
        };
        incoming.began = ctx.now;
        incoming.is_reached = true;
        if incoming.queued == 0 && !incoming.is_discarded {
            incoming.holds = true;
            return self.hold(ctx);
        }
        self.begin_deposit(name, ctx);
    }

    fn hold(&mut self, ctx: &mut Context<'_>) {
        if self.held == 0 {
            self.held_since = ctx.now;
            ctx.hold();
        }
        self.held += 1;
    }

    /// A message that is in, and of which it is known what to do with it, is done.
    fn advance(&mut self, name: u64, ctx: &mut Context<'_>) {
        let incoming = &self.incoming[&name];
        if !incoming.has_arrived {
            return;
        }
        if incoming.is_discarded {
            let incoming = self.incoming.remove(&name).expect("it was just there");
            self.leave_cam(&incoming, ctx);
            if incoming.is_tracked {
                self.release(incoming.message.from.nid);
            }
        } else if incoming.is_programmed && incoming.unfed == 0 {
            self.memory.end(name, incoming.message.body);
            let crossed = ctx.now + ctx.profile.time(ctx.profile.ht_write);
            ctx.at(crossed, Task::Deposited(name));
        }
    }

    fn leave_cam(&mut self, incoming: &Incoming, ctx: &mut Context<'_>) {
        if !incoming.is_admitted {
            return;
        }
        let source = incoming.message.from.nid;
        self.cam.finish(source, incoming.queued);
        for _ in 0..incoming.queued {
            self.refill(source, ctx);
        }
    }

    /// The RX engine says that its last command is used up.
    pub(super) fn on_deposited(&mut self, name: u64, ctx: &mut Context<'_>) {
        let Incoming { message, began, .. } = self.incoming[&name];
        ctx.message_span(Track::Rx, &message, began);
        if self.cam.is_swapped_out(message.from.nid) {
            self.swap(message.from.nid, ctx);
        }
        let p = ctx.profile;
        let cost = match message.content {
            Content::Cci(_) => p.time(p.cci_fw_landed) + p.time(p.cci_fw_event),
            _ => p.time(p.fw_landed),
        };
        self.work("landed", cost, Job::Landed(name), ctx);
    }

    pub(super) fn on_landed(&mut self, name: u64, ctx: &mut Context<'_>) {
        let mut incoming = self.incoming.remove(&name).expect("it lands once");
        self.leave_cam(&incoming, ctx);
        incoming.is_admitted = false;
        match self.mode_of(incoming.message.to) {
            Some(Mode::Generic) => {
                self.incoming.insert(name, incoming);
                let crossed = ctx.now + ctx.profile.time(ctx.profile.ht_write);
                ctx.at(crossed, Task::Ring(NicEvent::Landed(name)));
            }
            Some(Mode::Accelerated) => {
                self.release(incoming.message.from.nid);
                self.finish_on_nic(incoming, ctx);
            }
            Some(Mode::Cci) => {
                self.release(incoming.message.from.nid);
                self.on_cci_landed(&incoming.message, incoming.place, ctx);
            }
            None => {
                self.release(incoming.message.from.nid);
                self.counted.lost += 1;
            }
        }
    }

    fn finish_on_nic(&mut self, incoming: Incoming, ctx: &mut Context<'_>) {
        let message = incoming.message;
        let (mut gathered, engine) = self.client_of(&message);
        let held = incoming.held.expect("what lands was wanted");
        portals::on_deposited(engine, message.from, held, &mut gathered);
        let cost = portals::price(engine, &gathered, Matching::Nic, ctx.profile);
        self.work("event", cost, Job::Matched(gathered), ctx);
    }
}

/// RX commands of a message: its header thrown away, its payload put in place. CCI:
/// the header's first word thrown away, the rest put in place.
fn commands(message: &Message, profile: &Profile) -> u64 {
    match message.content {
        Content::Cci(_) => 2,
        _ => {
            let pieces = message.body.div_ceil(profile.rx_command_bytes.value);
            1 + pieces.max(profile.pages(message.body)).max(1)
        }
    }
}
