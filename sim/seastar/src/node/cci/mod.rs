//! CCI's firmware and library: the rules of `lintel-cci`, and around them what this machine
//! has of its own (S4, part IV): buffered sends, areas to receive into, credits for
//! completions, commands, and frames without a message by PIO.

mod areas;
mod endpoint;
mod handshake;

use lintel_cci::{Action, ConnectionId, Time};
use lintel_sim_kernel::{Duration, SimTime};
use lintel_types::ProcessId;
use lintel_wire::Words;

use super::process::{Buffer, Notice, Process, Queued, reliable};
use super::protection::control_message;
use super::setup::not_cci;
use super::transmit::Outgoing;
use super::{Job, MailboxCommand, Node, Task};
use crate::context::Context;
use crate::message::{CciHeader, Class, Content, Control, Message};
use endpoint::{Frame, Gathered, PS_PER_US};

pub(crate) use areas::{CciArea, cci_room};
pub(crate) use endpoint::{CciCommand, Endpoint, Returned};
pub(crate) use handshake::Handshake;

/// The place of a message that comes in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    connection: ConnectionId,
    area: usize,
}

impl Node {
    fn endpoint(&mut self, process: usize) -> &mut Endpoint {
        let endpoint = self.processes[process].endpoint_mut();
        endpoint.expect("a CCI message is for a CCI process")
    }

    /// A process sends a message.
    pub(super) fn send(
        &mut self,
        number: usize,
        to: ProcessId,
        class: Class,
        bytes: u64,
        ctx: &mut Context<'_>,
    ) {
        let p = ctx.profile;
        let process = &mut self.processes[number];
        let Some(endpoint) = process.endpoint_mut() else {
            return process.fail(&not_cci());
        };
        let mut gathered = Gathered::at(ctx.now);
        match endpoint.send(to, class, bytes, p, &mut gathered) {
            Ok(true) => {
                let cost = p.time(p.cci_send) + reliable(class, p) + p.copy(bytes);
                self.post_commands(number, gathered, cost, ctx);
                self.busy(number, "send", cost, ctx);
            }
            Ok(false) => self.report_full(number, ctx),
            Err(why) => process.fail(&why),
        }
    }

    /// The library puts what the rules let go into the command queue.
    fn post_commands(
        &mut self,
        process: usize,
        gathered: Gathered,
        cost: Duration,
        ctx: &mut Context<'_>,
    ) {
        let arrives = ctx.now + cost + ctx.profile.time(ctx.profile.ht_write);
        for frame in gathered.frames {
            let command = CciCommand {
                process,
                frame,
                returned: self.endpoint(process).take_returned(),
            };
            ctx.at(arrives, Task::MailboxCommand(MailboxCommand::Cci(command)));
        }
    }

    /// A process has taken a completion.
    pub(super) fn on_cci_taken(&mut self, process: usize, taken: &Queued, ctx: &mut Context<'_>) {
        let Some(endpoint) = self.processes[process].endpoint_mut() else {
            return;
        };
        endpoint.on_taken(taken);
        if endpoint.returns_several(ctx.profile) {
            let returned = endpoint.take_returned();
            let arrives = ctx.now + ctx.profile.time(ctx.profile.ht_write);
            let command = MailboxCommand::CciReturn(process, returned);
            ctx.at(arrives, Task::MailboxCommand(command));
        }
    }

    pub(super) fn on_cci_return(
        &mut self,
        process: usize,
        returned: Returned,
        ctx: &mut Context<'_>,
    ) {
        let mut gathered = Gathered::at(ctx.now);
        self.endpoint(process).on_returned(returned, &mut gathered);
        self.carry_out(process, gathered, ctx);
        while let Some(command) = self.endpoint(process).next_waiting() {
            self.send_cci(command, ctx);
        }
    }

    pub(super) fn on_cci_command(&mut self, command: CciCommand, ctx: &mut Context<'_>) {
        let process = command.process;
        self.on_cci_return(process, command.returned, ctx);
        if let Some(command) = self.endpoint(process).reserve(command) {
            self.send_cci(command, ctx);
        }
    }

    fn send_cci(&mut self, command: CciCommand, ctx: &mut Context<'_>) {
        let CciCommand { process, frame, .. } = command;
        let queued = frame.completion();
        let Some(sent) = frame.message else {
            return;
        };
        let words = frame.words;
        let message = Message {
            from: self.processes[process].id,
            to: frame.to,
            body: sent.bytes,
            content: Content::Cci(CciHeader {
                class: sent.class,
                words,
            }),
            sequence: None,
        };
        let ticket = ctx.name();
        let outgoing = Outgoing {
            queued,
            ..Outgoing::new(message, process)
        };
        self.outgoing.insert(ticket, outgoing);
        self.on_transmit(ticket, ctx);
    }

    /// A message needs an area, a completion, a structure and an entry of the CAM. Without
    /// one of them the rules refuse it, or drop it if nobody would send it again.
    pub(super) fn on_cci_header(&mut self, name: u64, ctx: &mut Context<'_>) {
        let message = self.incoming[&name].message;
        let Content::Cci(header) = message.content else {
            return;
        };
        let number = message.to.pid as usize;
        let bytes = message.body + ctx.profile.cci_header.value;
        let area = self.endpoint(number).take_place(bytes);
        let has_room = area.is_some() && self.admit_cci(name, &message, ctx);
        let mut gathered = Gathered::at(ctx.now).with_room(has_room);
        let rules = &mut self.endpoint(number).rules;
        let action = rules.on_message(message.from, &header.words, message.body, &mut gathered);
        self.carry_out(number, gathered, ctx);
        if let (Action::Deliver(connection), Some(area)) = (action, area) {
            let place = Place { connection, area };
            let incoming = self.incoming.get_mut(&name).expect("it has begun");
            incoming.place = Some(place);
            return self.deposit(name, ctx);
        }
        if let Some(area) = area {
            self.endpoint(number).give_place_back(area);
        }
        self.counted.lost += u64::from(header.class == Class::Unreliable);
        self.discard(name, ctx);
    }

    pub(super) fn on_cci_landed(
        &mut self,
        message: &Message,
        place: Option<Place>,
        ctx: &mut Context<'_>,
    ) {
        let Content::Cci(header) = message.content else {
            return;
        };
        let Place { connection, area } = place.expect("only what has a place lands");
        let (from, class, bytes) = (message.from, header.class, message.body);
        let received = Notice::Received { from, class, bytes };
        let number = message.to.pid as usize;
        self.show_completions(
            number,
            vec![Queued::OfBuffer(received, Buffer::Rx(area))],
            ctx,
        );
        let mut gathered = Gathered::at(ctx.now);
        let rules = &mut self.endpoint(number).rules;
        rules.on_landed(connection, &mut gathered);
        rules.finish(&mut gathered);
        self.carry_out(number, gathered, ctx);
    }

    /// A frame without a message has come.
    pub(super) fn on_cci_control(
        &mut self,
        message: &Message,
        words: &Words,
        ctx: &mut Context<'_>,
    ) {
        let process = message.to.pid as usize;
        if self.processes.get(process).is_none_or(Process::has_ended) {
            return;
        }
        let mut gathered = Gathered::at(ctx.now);
        let rules = &mut self.endpoint(process).rules;
        rules.on_message(message.from, words, 0, &mut gathered);
        self.carry_out(process, gathered, ctx);
    }

    /// Time has passed for which the rules wait.
    pub(super) fn on_cci_time(&mut self, process: usize, ctx: &mut Context<'_>) {
        let has_ended = self.processes[process].has_ended();
        let endpoint = self.endpoint(process);
        endpoint.timer = None;
        if has_ended {
            return;
        }
        let mut gathered = Gathered::at(ctx.now);
        endpoint.rules.on_time(&mut gathered);
        self.carry_out(process, gathered, ctx);
    }

    /// Does what the rules ask for where the firmware has asked them.
    fn carry_out(&mut self, process: usize, mut gathered: Gathered, ctx: &mut Context<'_>) {
        let endpoint = self.endpoint(process);
        let completed = endpoint.completed(&mut gathered);
        if !completed.is_empty() {
            self.show_completions(process, completed, ctx);
        }
        for frame in gathered.frames {
            self.transmit_frame(process, frame, ctx);
        }
        self.set_cci_timer(process, ctx);
    }

    fn show_completions(&mut self, process: usize, queued: Vec<Queued>, ctx: &mut Context<'_>) {
        let crossed = ctx.now + ctx.profile.time(ctx.profile.ht_write);
        ctx.at(crossed, Task::Visible(process, queued));
    }

    fn transmit_frame(&mut self, process: usize, frame: Frame, ctx: &mut Context<'_>) {
        let p = ctx.profile;
        if frame.message.is_some() {
            self.counted.retransmitted += u64::from(frame.is_repeated());
            let command = CciCommand {
                process,
                frame,
                returned: Returned::default(),
            };
            let cost = p.time(p.cci_fw_transmit);
            return self.work("resend", cost, Job::CciSend(command), ctx);
        }
        let from = self.processes[process].id.pid;
        let control = control_message(ctx.node, frame.to, from, Control::Cci(frame.words));
        let cost = p.time(p.cci_fw_ack);
        self.work("acknowledge", cost, Job::Control(control), ctx);
    }

    fn set_cci_timer(&mut self, process: usize, ctx: &mut Context<'_>) {
        let endpoint = self.endpoint(process);
        let Some(due) = endpoint.rules.due() else {
            return;
        };
        if endpoint.timer.is_some_and(|timer| timer <= due) {
            return;
        }
        // What is due after the end of simulated time never is.
        let Time(microseconds) = due;
        if let Some(ps) = microseconds.checked_mul(PS_PER_US) {
            endpoint.timer = Some(due);
            let when = SimTime::START + Duration::from_ps(ps);
            ctx.at(when.max(ctx.now), Task::CciTime(process));
        }
    }
}
