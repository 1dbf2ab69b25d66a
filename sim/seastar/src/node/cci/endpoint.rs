//! An endpoint: the rules of `lintel-cci`, the buffers and the credits that this machine's
//! library and firmware keep besides.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

use lintel_cci::{
    Attribute, Completion, ConnectionId, Event, Host, Message, NoWay, Notify, Outgoing, OutgoingOf,
    Time,
};
use lintel_sim_kernel::SimTime;
use lintel_types::ProcessId;
use lintel_wire::Words;

use super::areas::Areas;
use crate::message::Class;
use crate::node::process::{Buffer, Notice, Queued};
use crate::profile::Profile;

/// A message in a buffer, as the rules hold it.
#[derive(Clone, Debug)]
pub(crate) struct Buffered {
    pub(crate) class: Class,
    pub(crate) bytes: u64,
    /// It was given to the firmware before.
    was_sent: Cell<bool>,
}

/// A frame that the rules send.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) to: ProcessId,
    pub(crate) words: Words,
    /// A message; none: a frame of the rules' own.
    pub(crate) message: Option<Buffered>,
    /// The area of a message that is done with as soon as it has left.
    left: Option<usize>,
}

/// What the rules ask of their surroundings in one call.
#[derive(Default)]
pub(crate) struct Gathered {
    now: Time,
    /// The message that has just arrived has a place.
    has_room: bool,
    pub(crate) frames: Vec<Frame>,
    events: Vec<Event>,
}

/// What an endpoint has again, and its firmware doesn't know yet.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Returned {
    /// Completions, of which its queue has room for as many.
    pub(super) credits: u64,
    /// Areas that it put into the ready ring.
    pub(super) areas: usize,
    /// Messages with which its process is done.
    pub(super) messages: u64,
}

/// A frame with a message, as the library puts it into the command queue.
#[derive(Clone, Debug)]
pub(crate) struct CciCommand {
    pub(crate) process: usize,
    pub(crate) frame: Frame,
    /// What goes with it.
    pub(crate) returned: Returned,
}

/// A process's endpoint: what its library and the firmware keep for it.
pub(crate) struct Endpoint {
    pub(super) rules: lintel_cci::Endpoint<Gathered>,
    /// Connections that its process asks for before the clock starts.
    pub(super) wanted: Vec<(ProcessId, Class)>,
    connections: BTreeMap<(ProcessId, Class), ConnectionId>,
    tx: Areas,
    rx: Areas,
    /// Completions for which its queue has room, as far as its firmware knows.
    credits: u64,
    returned: Returned,
    /// Sends that the firmware keeps until there are credits for their completions.
    waiting: VecDeque<CciCommand>,
    /// When the rules are to be asked next, if that is known to the machine.
    pub(super) timer: Option<Time>,
}

impl Gathered {
    pub(super) fn at(now: SimTime) -> Self {
        let microseconds = now.since(SimTime::START).as_ps() / PS_PER_US;
        Gathered {
            now: Time(microseconds),
            ..Gathered::default()
        }
    }

    /// For a message that arrives.
    pub(super) fn with_room(mut self, has_room: bool) -> Self {
        self.has_room = has_room;
        self
    }
}

/// Picoseconds of a microsecond.
pub(super) const PS_PER_US: u64 = 1_000_000;

impl Host for Gathered {
    type Fresh<'a> = &'a Buffered;
    type Body = Buffered;

    fn hold(&self, message: &Buffered) -> Buffered {
        message.clone()
    }

    fn now(&self) -> Time {
        self.now
    }

    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: OutgoingOf<'_, Self>,
    ) -> Result<(), NoWay> {
        let message = match body {
            Outgoing::Fresh(message) | Outgoing::Held(message) => Some(message.clone()),
            // The prototype has no remote memory access (S4, IV-C), and no program asks for any.
            Outgoing::Nothing | Outgoing::LentToRead(_) | Outgoing::LentToFill(_) => None,
        };
        if let Outgoing::Fresh(message) | Outgoing::Held(message) = body {
            message.was_sent.set(true);
        }
        self.frames.push(Frame {
            to,
            words: *words,
            message,
            left: None,
        });
        Ok(())
    }

    fn multicast(&mut self, _: ProcessId, _: &Buffered) -> Result<(), NoWay> {
        Err(NoWay)
    }

    /// Sends are bounded by their areas.
    fn is_congested(&self, _: ProcessId) -> bool {
        false
    }

    /// To the rules an unreliable message has ended when it is sent. Here its buffer is read
    /// by the TX engine, so that it ends when it has left.
    fn post(&mut self, event: Event) {
        match (event, self.frames.last_mut()) {
            (Event::Sent { context, .. }, Some(frame)) if frame.is_unreliable() => {
                frame.left = usize::try_from(context).ok();
            }
            _ => self.events.push(event),
        }
    }

    fn has_room(&self) -> bool {
        self.has_room
    }
}

impl Frame {
    fn is_unreliable(&self) -> bool {
        let class = self.message.as_ref().map(|message| message.class);
        class == Some(Class::Unreliable)
    }

    /// Whether it is a message that was sent before.
    pub(super) fn is_repeated(&self) -> bool {
        let message = self.message.as_ref();
        message.is_some_and(|message| message.was_sent.get())
    }

    /// What is reported once it has left (S4, IV-B1): a message that nobody acknowledges to
    /// the program, another one to the library, which queues it until the receiver has it.
    pub(super) fn completion(&self) -> Vec<Queued> {
        match self.left {
            Some(area) => vec![sent(self.to, area)],
            None if self.is_repeated() => Vec::new(),
            None => vec![Queued::ForLibrary],
        }
    }

    /// Completions of it: that it has left, and that it is acknowledged.
    fn completions(&self) -> u64 {
        match self.is_unreliable() {
            true => 1,
            false if self.is_repeated() => 0,
            false => 2,
        }
    }
}

/// A message's buffer is free.
fn sent(to: ProcessId, area: usize) -> Queued {
    Queued::OfBuffer(Notice::Sent(to), Buffer::Tx(area))
}

impl Endpoint {
    pub(crate) fn new(profile: &Profile) -> Self {
        let longest = u32::try_from(profile.cci_mss.value).unwrap_or(u32::MAX);
        let mut rules = lintel_cci::Endpoint::new(longest, 0);
        rules.land_later();
        // S4 names no timeout; buffers are limited by their areas.
        rules.set_send_timeout(Time(u64::MAX));
        let all = rules.set_send_buffers(u32::MAX);
        all.and_then(|()| rules.set_recv_buffers(u32::MAX))
            .expect("more than none");
        Endpoint {
            rules,
            wanted: Vec::new(),
            connections: BTreeMap::new(),
            tx: Areas::new(profile.cci_tx_areas.value, profile),
            rx: Areas::new(profile.cci_rx_areas.value, profile),
            credits: profile.cci_completions.value,
            returned: Returned::default(),
            waiting: VecDeque::new(),
            timer: None,
        }
    }

    /// A connection to a process before the clock starts.
    pub(in crate::node) fn want(&mut self, to: ProcessId, class: Class) {
        self.wanted.push((to, class));
    }

    /// Buffers a message and sends it, as soon as the rules let it go. False if there is no
    /// buffer.
    ///
    /// # Errors
    /// No such message can be sent.
    pub(super) fn send(
        &mut self,
        to: ProcessId,
        class: Class,
        bytes: u64,
        profile: &Profile,
        gathered: &mut Gathered,
    ) -> Result<bool, String> {
        let most = profile.cci_mss.value;
        let length = u32::try_from(bytes).ok().filter(|_| bytes <= most);
        let length = length.ok_or(format!(
            "a CCI message has {most} bytes at most, not {bytes}: send parts"
        ))?;
        let connection = self.connections.get(&(to, class)).copied();
        let connection = connection.ok_or(format!(
            "there is no {class:?} connection to {to:?}: connect before the clock starts"
        ))?;
        let Some(area) = self.tx.take(bytes + profile.cci_header.value) else {
            return Ok(false);
        };
        let body = buffered(class, bytes);
        let completion = Completion {
            context: area as u64,
            notify: Notify::Event,
        };
        let sent = self.rules.send(
            connection,
            Message {
                length,
                body: &body,
            },
            completion,
            gathered,
        );
        sent.map(|()| true).map_err(|status| status.to_string())
    }

    /// What is reported of messages that have arrived at the other end.
    pub(super) fn completed(&self, gathered: &mut Gathered) -> Vec<Queued> {
        let mut queued = Vec::new();
        for event in gathered.events.drain(..) {
            let Event::Sent {
                connection,
                context,
                ..
            } = event
            else {
                continue;
            };
            let info = self.rules.info(connection);
            let area = usize::try_from(context).expect("it was an area's number");
            queued.extend(info.map(|info| sent(info.peer, area)));
        }
        queued
    }

    /// Its process has taken a completion, and is done with what it names.
    pub(super) fn on_taken(&mut self, taken: &Queued) {
        match *taken {
            Queued::ForLibrary => {}
            Queued::OfBuffer(_, Buffer::Tx(area)) => {
                self.tx.give_back(area);
            }
            Queued::OfBuffer(_, Buffer::Rx(area)) => {
                let areas = self.rx.give_back(area);
                self.rx.unreported += areas;
                self.returned.areas += areas;
                self.returned.messages += 1;
            }
            // The library's own, which took no credit.
            Queued::ForProgram(_) => return,
        }
        self.returned.credits += 1;
    }

    /// What goes with the next command: all that is returned.
    pub(super) fn take_returned(&mut self) -> Returned {
        std::mem::take(&mut self.returned)
    }

    /// Whether so much is returned that a command of its own is due: several, or so many that
    /// the firmware may have few left.
    pub(super) fn returns_several(&self, profile: &Profile) -> bool {
        let credits = (profile.cci_completions.value / 4).clamp(1, profile.cci_returns.value);
        let areas = (profile.cci_rx_areas.value / 4).clamp(1, profile.cci_returns.value);
        self.returned.credits >= credits || self.returned.areas as u64 >= areas
    }

    /// The firmware knows of what is returned: it may call for messages that it refused.
    pub(super) fn on_returned(&mut self, returned: Returned, gathered: &mut Gathered) {
        self.credits += returned.credits;
        self.rx.unreported -= returned.areas;
        for _ in 0..returned.messages {
            self.rules.on_returned(gathered);
        }
    }

    /// Reserves the completions of a send; without them it waits for its turn.
    pub(super) fn reserve(&mut self, command: CciCommand) -> Option<CciCommand> {
        let completions = command.frame.completions();
        if !self.waiting.is_empty() || self.credits < completions {
            self.waiting.push_back(command);
            return None;
        }
        self.credits -= completions;
        Some(command)
    }

    /// A send that waited and has its completions now.
    pub(super) fn next_waiting(&mut self) -> Option<CciCommand> {
        let needed = self.waiting.front()?.frame.completions();
        self.credits = self.credits.checked_sub(needed)?;
        self.waiting.pop_front()
    }

    /// A place for a message and its completion.
    pub(super) fn take_place(&mut self, bytes: u64) -> Option<usize> {
        let credits = self.credits.checked_sub(1)?;
        let area = self.rx.take(bytes)?;
        self.credits = credits;
        Some(area)
    }

    /// A message doesn't come into its place after all.
    pub(super) fn give_place_back(&mut self, area: usize) {
        self.rx.give_back(area);
        self.credits += 1;
    }

    /// Learns the names of connections that have been made.
    ///
    /// # Errors
    /// One was refused.
    pub(super) fn on_connections(&mut self, gathered: &mut Gathered) -> Result<(), String> {
        for event in gathered.events.drain(..) {
            let (Event::Connected { result, .. } | Event::Accepted { result, .. }) = event else {
                continue;
            };
            let made = result.map_err(|status| format!("no connection: {status}"));
            let (connection, info) = made?;
            let class = class_of(info.attribute);
            self.connections.insert((info.peer, class), connection);
        }
        Ok(())
    }
}

/// A message of so many bytes.
pub(super) fn buffered(class: Class, bytes: u64) -> Buffered {
    let was_sent = Cell::new(false);
    Buffered {
        class,
        bytes,
        was_sent,
    }
}

pub(super) fn attribute(class: Class) -> Attribute {
    match class {
        Class::Unreliable => Attribute::Uu,
        Class::Reliable => Attribute::Ro,
    }
}

pub(super) fn class_of(attribute: Attribute) -> Class {
    match attribute.is_reliable() {
        true => Class::Reliable,
        false => Class::Unreliable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::XT5_2009;

    const TO: ProcessId = ProcessId::new(1, 0);

    fn with_few(completions: u64) -> (Endpoint, Profile) {
        let few = XT5_2009.with("cci_completions", completions);
        let few = few.expect("there is one");
        (Endpoint::new(&few), few)
    }

    fn command(class: Class) -> CciCommand {
        let frame = Frame {
            to: TO,
            words: Words::default(),
            message: Some(buffered(class, 8)),
            left: None,
        };
        CciCommand {
            process: 0,
            frame,
            returned: Returned::default(),
        }
    }

    /// Sends that the firmware starts with so many completions.
    fn sends(class: Class, completions: u64) -> usize {
        let (mut endpoint, _) = with_few(completions);
        std::iter::from_fn(|| endpoint.reserve(command(class))).count()
    }

    fn returns(credits: u64) -> Returned {
        Returned {
            credits,
            ..Returned::default()
        }
    }

    #[test]
    fn a_message_beyond_the_longest_is_refused_with_its_length() {
        let (mut endpoint, p) = with_few(5);
        let mut gathered = Gathered::default();
        let reported = endpoint.send(TO, Class::Reliable, 4_097, &p, &mut gathered);
        assert!(reported.expect_err("too long").contains("4096"));
    }

    #[test]
    fn a_message_without_a_connection_is_refused() {
        let (mut endpoint, p) = with_few(5);
        let mut gathered = Gathered::default();
        let reported = endpoint.send(TO, Class::Reliable, 8, &p, &mut gathered);
        let reported = reported.expect_err("nobody has connected");
        assert!(reported.contains("connect before"), "{reported}");
    }

    #[test]
    fn a_reliable_send_is_completed_twice_and_takes_two_credits() {
        assert_eq!(sends(Class::Unreliable, 5), 5);
        assert_eq!(sends(Class::Reliable, 5), 2);
    }

    #[test]
    fn a_retransmitted_message_takes_no_credit() {
        let (mut endpoint, _) = with_few(2);
        let again = command(Class::Reliable);
        let message = again.frame.message.as_ref().expect("it has one");
        message.was_sent.set(true);
        assert_eq!(again.frame.completion(), []);
        assert!(endpoint.reserve(again).is_some());
        assert!(endpoint.reserve(command(Class::Reliable)).is_some());
    }

    #[test]
    fn a_send_waits_in_the_firmware_until_completions_are_returned() {
        let (mut endpoint, _) = with_few(2);
        let started = [(); 3].map(|()| endpoint.reserve(command(Class::Reliable)).is_some());
        assert_eq!(started, [true, false, false]);
        let mut gathered = Gathered::default();
        endpoint.on_returned(returns(1), &mut gathered);
        assert!(endpoint.next_waiting().is_none());
        endpoint.on_returned(returns(1), &mut gathered);
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
        let received = Notice::Received {
            from: TO,
            class: Class::Unreliable,
            bytes: 40,
        };
        let taken: Vec<usize> = std::iter::from_fn(|| endpoint.take_place(64)).collect();
        assert_eq!(taken, [0, 0, 1, 1]);
        for area in [0, 0] {
            endpoint.on_taken(&Queued::OfBuffer(received, Buffer::Rx(area)));
        }
        assert_eq!(endpoint.take_place(64), None);
        let returned = endpoint.take_returned();
        let Returned {
            credits,
            areas,
            messages,
        } = returned;
        assert_eq!((credits, areas, messages), (2, 1, 2));
        endpoint.on_returned(returned, &mut Gathered::default());
        assert_eq!(endpoint.take_place(64), Some(0));
    }

    #[test]
    fn what_has_no_place_after_all_gives_place_and_credit_back() {
        let (mut endpoint, _) = with_few(1);
        let area = endpoint.take_place(64).expect("there is room");
        assert_eq!(endpoint.take_place(64), None);
        endpoint.give_place_back(area);
        assert_eq!(endpoint.take_place(64), Some(area));
    }
}
