//! CCI's firmware and library: buffered sends, areas to receive into, credits for
//! completions, acknowledgements by PIO (S4, part IV).

use std::collections::{BTreeMap, VecDeque};

use lintel_types::ProcessId;

use super::process::{Notice, Process, Queued};
use super::protection::control_message;
use super::transmit::Outgoing;
use super::{Job, MailboxCommand, Node, Task};
use crate::context::Context;
use crate::message::{CciHeader, Class, Content, Control, Message};
use crate::profile::Profile;

/// A send, as the library puts it into the command queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CciCommand {
    pub(crate) process: usize,
    pub(crate) to: ProcessId,
    pub(crate) class: Class,
    pub(crate) bytes: u64,
    pub(crate) sequence: u64,
    /// It was sent before.
    pub(crate) retransmit: bool,
    /// What goes with it.
    pub(crate) returned: Returned,
}

/// What an endpoint has again, and its firmware doesn't know yet.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Returned {
    /// Completions, of which its queue has room for as many.
    credits: u64,
    /// Areas that it put into the ready ring.
    areas: usize,
}

/// A process's endpoint: what its library and the firmware keep for it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    tx: Areas,
    rx: Areas,
    /// Completions for which its queue has room, as far as its firmware knows.
    credits: u64,
    returned: Returned,
    /// Sends that the firmware keeps until there are credits for their completions.
    waiting: VecDeque<CciCommand>,
    connections: BTreeMap<ProcessId, Connection>,
    /// Areas of the messages that its process hasn't taken, in order.
    untaken: VecDeque<usize>,
}

/// What an endpoint knows of another process.
#[derive(Debug)]
struct Connection {
    class: Class,
    next: u64,
    expected: u64,
    /// Areas of messages that its process doesn't know to be sent, in order.
    buffered: VecDeque<usize>,
    /// Reliable ones without an acknowledgement: number and bytes.
    open: VecDeque<(u64, u64)>,
    /// The other side had no room, and a retry is due.
    refused: bool,
}

/// Buffers that are filled one after the other and free once all in them is done.
#[derive(Debug)]
struct Areas {
    size: u64,
    slot: u64,
    /// Bytes used, and messages that aren't done.
    areas: Vec<(u64, u64)>,
    current: usize,
    free: VecDeque<usize>,
    /// How many of the free ones have not been returned to the firmware.
    unreported: usize,
}

impl Areas {
    fn new(count: u64, profile: &Profile) -> Self {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Areas {
            size: profile.cci_area.value,
            slot: profile.cci_slot.value,
            areas: vec![(0, 0); count],
            current: 0,
            free: (1..count).collect(),
            unreported: 0,
        }
    }

    /// Room for a message, which doesn't span areas.
    fn take(&mut self, bytes: u64) -> Option<usize> {
        let slot = bytes.next_multiple_of(self.slot);
        if self.areas[self.current].0 + slot > self.size {
            if self.free.len() <= self.unreported {
                return None;
            }
            let next = self.free.pop_front()?;
            let closed = std::mem::replace(&mut self.current, next);
            self.free_if_done(closed);
        }
        let (used, live) = &mut self.areas[self.current];
        *used += slot;
        *live += 1;
        Some(self.current)
    }

    fn give_back(&mut self, area: usize) {
        self.areas[area].1 -= 1;
        if area != self.current {
            self.free_if_done(area);
        } else if self.areas[area].1 == 0 {
            self.areas[area].0 = 0;
        }
    }

    fn free_if_done(&mut self, area: usize) {
        if self.areas[area].1 == 0 {
            self.areas[area].0 = 0;
            self.free.push_back(area);
        }
    }
}

impl Connection {
    fn new(class: Class) -> Self {
        Connection {
            class,
            next: 0,
            expected: 0,
            buffered: VecDeque::new(),
            open: VecDeque::new(),
            refused: false,
        }
    }
}

impl Endpoint {
    pub(crate) fn new(profile: &Profile) -> Self {
        Endpoint {
            tx: Areas::new(profile.cci_tx_areas.value, profile),
            rx: Areas::new(profile.cci_rx_areas.value, profile),
            credits: profile.cci_completions.value,
            returned: Returned::default(),
            waiting: VecDeque::new(),
            connections: BTreeMap::new(),
            untaken: VecDeque::new(),
        }
    }

    /// Buffers a message: its number; none if there is no buffer.
    ///
    /// # Errors
    /// No such message can be sent.
    pub(super) fn begin_send(
        &mut self,
        to: ProcessId,
        class: Class,
        bytes: u64,
        profile: &Profile,
    ) -> Result<Option<u64>, String> {
        let most = profile.cci_mss.value;
        if bytes > most {
            return Err(format!(
                "a CCI message has {most} bytes at most, not {bytes}: send parts"
            ));
        }
        let connection = self.connections.entry(to).or_insert(Connection::new(class));
        if connection.class != class {
            return Err(format!("the connection to {to:?} is of the other class"));
        }
        let Some(area) = self.tx.take(bytes + profile.cci_header.value) else {
            return Ok(None);
        };
        connection.buffered.push_back(area);
        let sequence = connection.next;
        connection.next += 1;
        if class == Class::Reliable {
            connection.open.push_back((sequence, bytes));
        }
        Ok(Some(sequence))
    }

    /// Its process has taken a completion, and is done with what it names.
    pub(super) fn on_taken(&mut self, taken: &Queued) {
        match taken {
            Queued::ForLibrary => {}
            Queued::ForProgram(Notice::Sent(to)) => {
                let connection = self.connections.get_mut(to).expect("it was sent to");
                let area = connection.buffered.pop_front();
                self.tx.give_back(area.expect("it was buffered"));
            }
            Queued::ForProgram(Notice::Received { .. }) => {
                let area = self.untaken.pop_front();
                let before = self.rx.free.len();
                self.rx.give_back(area.expect("it was received"));
                let areas = self.rx.free.len() - before;
                self.rx.unreported += areas;
                self.returned.areas += areas;
            }
            // The library's own, which took no credit.
            Queued::ForProgram(Notice::Full | Notice::Portals(_)) => return,
        }
        self.returned.credits += 1;
    }

    /// What goes with the next command: all that is returned.
    pub(super) fn take_returned(&mut self) -> Returned {
        std::mem::take(&mut self.returned)
    }

    /// Whether so much is returned that a command of its own is due: several, or so many that
    /// the firmware might wait for them (S4, IV-B2).
    fn returns_several(&self, profile: &Profile) -> bool {
        let credits = (profile.cci_completions.value / 4).clamp(1, profile.cci_returns.value);
        let areas = (profile.cci_rx_areas.value / 4).clamp(1, profile.cci_returns.value);
        self.returned.credits >= credits || self.returned.areas as u64 >= areas
    }

    /// The firmware knows of what is returned.
    fn on_returned(&mut self, returned: Returned) {
        self.credits += returned.credits;
        self.rx.unreported -= returned.areas;
    }

    /// Reserves the completions of a send; without them it waits for its turn.
    fn reserve(&mut self, command: CciCommand) -> bool {
        let completions = match command.retransmit {
            true => 0,
            false => completions(command.class),
        };
        if !self.waiting.is_empty() || self.credits < completions {
            self.waiting.push_back(command);
            return false;
        }
        self.credits -= completions;
        true
    }

    /// A send that waited and has its completions now.
    fn next_waiting(&mut self) -> Option<CciCommand> {
        let &command = self.waiting.front()?;
        let needed = completions(command.class);
        self.credits = self.credits.checked_sub(needed)?;
        self.waiting.pop_front()
    }

    /// A message has arrived: what the firmware does with it.
    fn admit(&mut self, message: &Message, header: CciHeader, profile: &Profile) -> Arrival {
        let connection = self.connections.entry(message.from);
        let connection = connection.or_insert(Connection::new(header.class));
        let is_reliable = header.class == Class::Reliable;
        if is_reliable && header.sequence != connection.expected {
            return match header.sequence < connection.expected {
                true => Arrival::Answer(Control::CciAck(connection.expected - 1)),
                false => Arrival::Answer(Control::CciNack(connection.expected)),
            };
        }
        let room = match self.credits {
            0 => None,
            _ => self.rx.take(message.body + profile.cci_header.value),
        };
        match (room, is_reliable) {
            (Some(area), _) => {
                self.credits -= 1;
                self.untaken.push_back(area);
                connection.expected += 1;
                Arrival::Accepted
            }
            (None, true) => Arrival::Answer(Control::CciNack(header.sequence)),
            (None, false) => Arrival::Lost,
        }
    }

    /// Takes back what was promised to a message that can't come in after all.
    fn withdraw(&mut self, message: &Message) {
        let area = self.untaken.pop_back().expect("it was just promised");
        self.rx.give_back(area);
        self.credits += 1;
        let connection = self.connections.get_mut(&message.from);
        connection.expect("it was just admitted").expected -= 1;
    }
}

/// Completions of a send: that it has left, and that it is acknowledged.
fn completions(class: Class) -> u64 {
    match class {
        Class::Unreliable => 1,
        Class::Reliable => 2,
    }
}

/// What the firmware does with a CCI message.
enum Arrival {
    Accepted,
    Answer(Control),
    Lost,
}

impl Node {
    fn endpoint(&mut self, process: usize) -> &mut Endpoint {
        let endpoint = self.processes[process].endpoint_mut();
        endpoint.expect("a CCI message is for a CCI process")
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
        self.endpoint(process).on_returned(returned);
        while let Some(command) = self.endpoint(process).next_waiting() {
            self.send_cci(command, ctx);
        }
    }

    pub(super) fn on_cci_command(&mut self, command: CciCommand, ctx: &mut Context<'_>) {
        self.on_cci_return(command.process, command.returned, ctx);
        if self.endpoint(command.process).reserve(command) {
            self.send_cci(command, ctx);
        }
    }

    fn send_cci(&mut self, command: CciCommand, ctx: &mut Context<'_>) {
        let CciCommand {
            process,
            to,
            class,
            bytes,
            sequence,
            retransmit,
            ..
        } = command;
        let message = Message {
            from: self.processes[process].id,
            to,
            body: bytes,
            content: Content::Cci(CciHeader { class, sequence }),
            sequence: 0,
        };
        let ticket = ctx.name();
        // That it has left is reported in either class (S4, IV-B1): to the program if nobody
        // acknowledges, else to the library, which queues it until the receiver has.
        let queued = match class {
            Class::Unreliable => vec![Queued::ForProgram(Notice::Sent(to))],
            Class::Reliable if retransmit => Vec::new(),
            Class::Reliable => vec![Queued::ForLibrary],
        };
        let outgoing = Outgoing {
            queued,
            ..Outgoing::new(message, process)
        };
        self.outgoing.insert(ticket, outgoing);
        self.on_transmit(ticket, ctx);
    }

    pub(super) fn on_cci_header(&mut self, name: u64, ctx: &mut Context<'_>) {
        let message = self.incoming[&name].message;
        let Content::Cci(header) = message.content else {
            return;
        };
        let number = message.to.pid as usize;
        match self.endpoint(number).admit(&message, header, ctx.profile) {
            Arrival::Accepted => self.let_in(name, &message, header, ctx),
            Arrival::Answer(control) => {
                self.answer(&message, control, ctx);
                self.discard(name, ctx);
            }
            Arrival::Lost => {
                self.counted.lost += 1;
                self.discard(name, ctx);
            }
        }
    }

    /// A message that its endpoint takes needs an entry of the CAM, too.
    fn let_in(&mut self, name: u64, message: &Message, header: CciHeader, ctx: &mut Context<'_>) {
        if self.admit_cci(name, message, ctx) {
            return self.deposit(name, ctx);
        }
        self.endpoint(message.to.pid as usize).withdraw(message);
        match header.class {
            Class::Reliable => self.answer(message, Control::CciNack(header.sequence), ctx),
            Class::Unreliable => self.counted.lost += 1,
        }
        self.discard(name, ctx);
    }

    pub(super) fn on_cci_landed(&mut self, message: &Message, ctx: &mut Context<'_>) {
        let Content::Cci(header) = message.content else {
            return;
        };
        let crossed = ctx.now + ctx.profile.time(ctx.profile.ht_write);
        let (from, class, bytes) = (message.from, header.class, message.body);
        let received = Queued::ForProgram(Notice::Received { from, class, bytes });
        ctx.at(
            crossed,
            Task::Visible(message.to.pid as usize, vec![received]),
        );
        if header.class == Class::Reliable {
            self.answer(message, Control::CciAck(header.sequence), ctx);
        }
    }

    fn answer(&mut self, message: &Message, control: Control, ctx: &mut Context<'_>) {
        let cost = ctx.profile.time(ctx.profile.cci_fw_ack);
        let answer = control_message(ctx.node, message.from, message.to.pid, control);
        self.work("acknowledge", cost, Job::Control(answer), ctx);
    }

    pub(super) fn on_cci_control(
        &mut self,
        message: &Message,
        control: Control,
        ctx: &mut Context<'_>,
    ) {
        let (process, peer) = (message.to.pid as usize, message.from);
        if self.processes.get(process).is_none_or(Process::has_ended) {
            return;
        }
        let Some(connection) = self.endpoint(process).connections.get_mut(&peer) else {
            return;
        };
        match control {
            Control::CciAck(number) => {
                let open = connection.open.len();
                connection.open.retain(|&(sequence, _)| sequence > number);
                let done = open - connection.open.len();
                if done > 0 {
                    let crossed = ctx.now + ctx.profile.time(ctx.profile.ht_write);
                    let sent = Queued::ForProgram(Notice::Sent(peer));
                    ctx.at(crossed, Task::Visible(process, vec![sent; done]));
                }
            }
            Control::CciNack(_) if connection.refused => {}
            Control::CciNack(_) => {
                connection.refused = true;
                let later = ctx.now + ctx.profile.time(ctx.profile.backoff);
                ctx.at(later, Task::CciRetry(process, peer));
            }
            Control::Accepted(_) | Control::Nack(_) => {}
        }
    }

    /// The library sends again, in order, what isn't acknowledged.
    pub(super) fn cci_retry(&mut self, process: usize, to: ProcessId, ctx: &mut Context<'_>) {
        let connections = &mut self.endpoint(process).connections;
        let connection = connections.get_mut(&to).expect("it was refused");
        connection.refused = false;
        let class = connection.class;
        let open: Vec<(u64, u64)> = connection.open.iter().copied().collect();
        for (sequence, bytes) in open {
            self.counted.retransmitted += 1;
            let command = CciCommand {
                process,
                to,
                class,
                bytes,
                sequence,
                retransmit: true,
                returned: Returned::default(),
            };
            let cost = ctx.profile.time(ctx.profile.cci_fw_transmit);
            self.work("resend", cost, Job::CciSend(command), ctx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::XT5_2009;

    fn buffered(bytes: u64) -> usize {
        let mut endpoint = Endpoint::new(&XT5_2009);
        let to = ProcessId::new(1, 0);
        let mut send = || endpoint.begin_send(to, Class::Unreliable, bytes, &XT5_2009);
        std::iter::from_fn(|| send().expect("it isn't too long")).count()
    }

    #[test]
    fn an_endpoint_buffers_96_long_messages_or_8192_short_ones() {
        assert_eq!((buffered(4_096), buffered(40)), (96, 8_192));
    }

    #[test]
    fn an_endpoint_receives_24576_long_messages() {
        // S4 IV-B: three to an area of 16 KB.
        let mut areas = Areas::new(XT5_2009.cci_rx_areas.value, &XT5_2009);
        let long = XT5_2009.cci_mss.value + XT5_2009.cci_header.value;
        let room = std::iter::from_fn(|| areas.take(long)).count();
        assert_eq!(room, 24_576);
    }

    #[test]
    fn a_message_beyond_the_longest_is_refused_with_its_length() {
        let mut endpoint = Endpoint::new(&XT5_2009);
        let to = ProcessId::new(1, 0);
        let reported = endpoint.begin_send(to, Class::Reliable, 4_097, &XT5_2009);
        assert!(reported.expect_err("too long").contains("4096"));
    }

    fn with_few(completions: u64) -> (Endpoint, Profile) {
        let few = XT5_2009.with("cci_completions", completions);
        let few = few.expect("there is one");
        (Endpoint::new(&few), few)
    }

    fn command(class: Class) -> CciCommand {
        CciCommand {
            process: 0,
            to: ProcessId::new(1, 0),
            class,
            bytes: 8,
            sequence: 0,
            retransmit: false,
            returned: Returned::default(),
        }
    }

    /// Sends that the firmware starts with so many completions.
    fn sends(class: Class, completions: u64) -> usize {
        let (mut endpoint, _) = with_few(completions);
        let reserve = || endpoint.reserve(command(class)).then_some(());
        std::iter::from_fn(reserve).count()
    }

    #[test]
    fn a_reliable_send_is_completed_twice_and_takes_two_credits() {
        assert_eq!(sends(Class::Unreliable, 5), 5);
        assert_eq!(sends(Class::Reliable, 5), 2);
    }

    #[test]
    fn a_send_waits_in_the_firmware_until_completions_are_returned() {
        let (mut endpoint, _) = with_few(2);
        let started = [(); 3].map(|()| endpoint.reserve(command(Class::Reliable)));
        assert_eq!(started, [true, false, false]);
        let returns = |credits| Returned { credits, areas: 0 };
        endpoint.on_returned(returns(1));
        assert!(endpoint.next_waiting().is_none());
        endpoint.on_returned(returns(1));
        assert!(endpoint.next_waiting().is_some() && endpoint.next_waiting().is_none());
    }

    #[test]
    fn completions_go_back_with_a_send_or_by_a_command_for_several() {
        let (mut endpoint, p) = with_few(16_384);
        for taken in 1..16 {
            endpoint.on_taken(&Queued::ForLibrary);
            assert!(!endpoint.returns_several(&p), "{taken}");
        }
        endpoint.on_taken(&Queued::ForLibrary);
        assert!(endpoint.returns_several(&p));
        let all = endpoint.take_returned();
        assert_eq!((all.credits, endpoint.take_returned().credits), (16, 0));
    }

    #[test]
    fn the_firmware_fills_no_area_that_is_not_returned_to_it() {
        let p = XT5_2009
            .with("cci_area", 128)
            .and_then(|p| p.with("cci_rx_areas", 2))
            .expect("there are such constants");
        let mut endpoint = Endpoint::new(&p);
        let from = ProcessId::new(1, 0);
        let received = Queued::ForProgram(Notice::Received {
            from,
            class: Class::Unreliable,
            bytes: 40,
        });
        for _ in 0..4 {
            let area = endpoint.rx.take(64).expect("there is room");
            endpoint.untaken.push_back(area);
        }
        endpoint.on_taken(&received);
        endpoint.on_taken(&received);
        assert_eq!(endpoint.rx.take(64), None);
        let returned = endpoint.take_returned();
        assert_eq!((returned.credits, returned.areas), (2, 1));
        endpoint.on_returned(returned);
        assert_eq!(endpoint.rx.take(64), Some(0));
    }

    #[test]
    fn an_area_is_used_again_once_all_its_messages_are_done() {
        let small = XT5_2009.with("cci_area", 128).expect("there is one");
        let mut areas = Areas::new(2, &small);
        let taken = [64, 64, 64, 64].map(|bytes| areas.take(bytes).expect("there is room"));
        assert_eq!((taken, areas.take(64)), ([0, 0, 1, 1], None));
        areas.give_back(0);
        assert_eq!(areas.take(64), None);
        areas.give_back(0);
        assert_eq!(areas.take(64), Some(0));
    }
}
