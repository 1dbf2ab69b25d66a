//! What an endpoint's lock protects, and the progress of it.

use crate::body::{Body, Fresh, land};
use crate::buffers::Buffers;
use crate::device::Device;
use crate::endpoint::GivenBack;
use crate::events::{Event, Message};
use crate::link::Link;
use crate::memory::Memory;
use crate::multicast::Groups;
use lintel_cci::{
    Action, Attribute, ConnectionId, Endpoint as Rules, Host, NoWay, Outgoing as Bytes, OutgoingOf,
    Region as Part, Request, Status, TICK, Time, Transfer,
};
use lintel_claim::{Claim, Lease, Region};
use lintel_nal::{Arrival, Origin, Outgoing, Payload};
use lintel_types::ProcessId;
use lintel_wire::Words;
use nix::time::{ClockId, clock_gettime};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Arrivals that one call takes at most.
const BATCH: u32 = 64;
/// Bytes on the way to a process beyond which unreliable messages are dropped: reliable ones
/// come behind them.
const MAX_BACKLOG: u64 = 4 << 20;
/// Polls that find something, one after the other, after which acknowledgements wait no longer:
/// where many send there is no other poll.
const FINISH_AFTER: u32 = 16;
/// Polls between two looks at the clock; an application that polls less often than that in a
/// millisecond has the helper look.
const CLOCK_EVERY: u32 = 16;

/// The time since the system was started.
pub(crate) fn now() -> Time {
    time(ClockId::CLOCK_MONOTONIC)
}

fn time(clock: ClockId) -> Time {
    let time = clock_gettime(clock).expect("Linux has it");
    Time(time.tv_sec() as u64 * 1_000_000 + time.tv_nsec() as u64 / 1000)
}

/// The endpoint's surroundings, as its rules need them.
pub(crate) struct Surroundings {
    pub(crate) link: Link,
    pub(crate) groups: Groups,
    pub(crate) memory: Memory,
    pub(crate) buffers: Buffers,
    pub(crate) events: VecDeque<Event>,
    /// How operations have ended that a caller waits for.
    pub(crate) returned: FxHashMap<u64, Status>,
    scratch: Region,
}

impl Surroundings {
    /// Bytes of receive buffers, and of what waits in the network.
    pub(crate) fn bytes(&self) -> u64 {
        self.buffers.bytes() + self.link.resources().bytes
    }
}

impl Host for Surroundings {
    type Fresh<'a> = Fresh<'a>;
    type Body = Body;

    #[inline]
    fn hold(&self, message: Fresh<'_>) -> Body {
        message.hold()
    }

    fn now(&self) -> Time {
        now()
    }

    /// By the clock that goes with the system's tick, which is behind.
    #[inline]
    fn roughly_now(&self) -> Time {
        time(ClockId::CLOCK_MONOTONIC_COARSE).after(TICK)
    }

    #[inline]
    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: OutgoingOf<'_, Self>,
    ) -> Result<(), NoWay> {
        let link = &mut self.link;
        let mut send_part = |part: Part, fills| match self.memory.part(part) {
            Some((claim, lease)) if link.lends(to, part.length) => {
                link.send(to, words, lent(lease, &[claim], fills))
            }
            Some((claim, _)) if !fills => link.send(to, words, copied(&[claim])),
            // The answer has the bytes; or it was deregistered while it waited.
            _ => link.send(to, words, copied(&[])),
        };
        let sent = match body {
            Bytes::Nothing => link.send(to, words, copied(&[])),
            Bytes::Fresh(message) => {
                message.with(&self.scratch, |pieces| link.send(to, words, copied(pieces)))
            }
            Bytes::Held(body) => {
                body.with(&self.scratch, |pieces| link.send(to, words, copied(pieces)))
            }
            Bytes::LentToRead(part) => send_part(part, false),
            Bytes::LentToFill(part) => send_part(part, true),
        };
        sent.map_err(|_| NoWay)
    }

    fn multicast(&mut self, group: ProcessId, message: Fresh<'_>) -> Result<(), NoWay> {
        self.groups.send(group, &message.to_vec())
    }

    #[inline]
    fn is_congested(&self, to: ProcessId) -> bool {
        self.link.backlog(to) > MAX_BACKLOG
    }

    #[inline]
    fn post(&mut self, event: lintel_cci::Event) {
        match event {
            lintel_cci::Event::Returned { caller, status } => {
                self.returned.insert(caller, status);
            }
            lintel_cci::Event::Sent {
                connection,
                context,
                status,
            } => self.events.push_back(Event::Sent {
                connection,
                context,
                status,
            }),
            lintel_cci::Event::Connected { context, result } => {
                self.events.push_back(Event::Connected { context, result });
            }
            lintel_cci::Event::Accepted { context, result } => {
                self.events.push_back(Event::Accepted { context, result });
            }
            lintel_cci::Event::KeepaliveTimedOut { connection } => {
                let event = Event::KeepaliveTimedOut { connection };
                self.events.push_back(event);
            }
        }
    }
}

fn copied(pieces: &[Claim]) -> Outgoing<'_> {
    Outgoing::Copied {
        operand: None,
        pieces,
    }
}

fn lent<'a>(lease: &'a Lease, pieces: &'a [Claim], fills: bool) -> Outgoing<'a> {
    match fills {
        true => Outgoing::LentToFill(lease.lend(pieces)),
        false => Outgoing::LentToRead(lease.lend(pieces)),
    }
}

/// What is done when the stream on a lane is whole.
enum Streaming {
    Receive(ConnectionId, Message),
    Request(ConnectionId, lintel_cci::Attribute, Message),
    Write(Transfer),
    Fetched(Transfer),
}

pub(crate) struct State {
    pub(crate) rules: Rules<Surroundings>,
    pub(crate) around: Surroundings,
    streams: FxHashMap<u32, Streaming>,
    /// The lease of receive buffers that streams go to.
    lease: Lease,
    /// Readable while events wait; `None` if the endpoint is only polled.
    pub(crate) handle: Option<OwnedFd>,
    is_signalled: bool,
    /// The application polls, or the helper looks again soon: then acknowledgements wait for a
    /// message that takes them along, or for a poll that finds nothing, a few polls at most.
    pub(crate) is_polled: bool,
    /// Polls since acknowledgements were sent last.
    unfinished: u32,
    pub(crate) next_caller: u64,
    pub(crate) next_key: u64,
    polls: u32,
    /// Events that the application has taken since the last look for arrivals.
    taken: u32,
}

impl State {
    /// `seed` differs from run to run.
    pub(crate) fn new(link: Link, device: &Device, seed: u64, handle: Option<OwnedFd>) -> State {
        let max_send = device.max_send;
        State {
            rules: Rules::new(max_send, seed as u32),
            around: Surroundings {
                link,
                groups: Groups::new(device.ip),
                memory: Memory::default(),
                buffers: Buffers::new(max_send.max(lintel_cci::MAX_REQUEST)),
                events: VecDeque::new(),
                returned: FxHashMap::default(),
                scratch: Region::new(u64::from(max_send.max(lintel_cci::MAX_REQUEST))),
            },
            streams: FxHashMap::default(),
            lease: Lease::new(),
            handle,
            is_signalled: false,
            is_polled: false,
            unfinished: 0,
            next_caller: 0,
            next_key: seed,
            polls: 0,
            taken: 0,
        }
    }

    /// Whether to look for arrivals before the next event is taken. An application that starts
    /// a send for each completion never finds the queue empty, and is to hear its peers and to
    /// send what waits nevertheless.
    #[inline]
    pub(crate) fn is_look_due(&mut self) -> bool {
        self.taken += 1;
        self.taken > BATCH || self.around.events.is_empty()
    }

    /// Takes arrivals; once in a while it also does what is due, since to read the clock
    /// costs as much as to look for an arrival. True if anything has arrived.
    pub(crate) fn progress(&mut self) -> bool {
        self.taken = 0;
        let mut arrivals = self.take_inline();
        if arrivals == 0 {
            arrivals = self.take_any();
        }
        self.unfinished += 1;
        if arrivals == 0 || !self.is_polled || self.unfinished >= FINISH_AFTER {
            self.unfinished = 0;
            self.rules.finish(&mut self.around);
        }
        while arrivals < BATCH && self.take_multicast() {
            arrivals += 1;
        }
        self.polls = self.polls.wrapping_add(1);
        if self.polls % CLOCK_EVERY == 0 {
            self.check_time();
        }
        self.around.link.flush();
        arrivals > 0
    }

    /// An operation was started. A program that starts many before it asks for events has the
    /// acknowledgements of those before read here: more than the way back holds would wait at a peer
    /// that may have no further call to send them.
    #[inline]
    pub(crate) fn after_start(&mut self, connection: ConnectionId) {
        if self.rules.is_look_due(connection) {
            self.progress();
        }
    }

    /// Takes messages that have their bytes with them; returns how many.
    #[inline]
    fn take_inline(&mut self) -> u32 {
        let mut taken = 0;
        while taken < BATCH {
            let Some((origin, words, bytes)) = self.around.link.next_inline() else {
                break;
            };
            taken += 1;
            self.on_inline(origin, &words, bytes);
        }
        taken
    }

    /// Takes arrivals of all kinds; returns how many. They have their turn since a lane whose
    /// own is over shows nothing to [`take_inline`](Self::take_inline).
    fn take_any(&mut self) -> u32 {
        let mut taken = 0;
        while taken < BATCH {
            let Some(arrival) = self.around.link.next() else {
                break;
            };
            taken += 1;
            self.on_arrival(arrival);
        }
        taken
    }

    #[inline]
    fn on_inline(&mut self, origin: Origin, words: &Words, bytes: Claim) {
        let (from, length, host) = (origin.process, bytes.len(), &mut self.around);
        match self.rules.on_message(from, words, length, host) {
            Action::Nothing => self.around.link.done(origin),
            Action::Deliver(connection) => {
                let message = self.message(length);
                land(bytes, message.buffer.claim());
                self.around.link.done(origin);
                self.around.events.push_back(Event::Received {
                    connection,
                    message,
                });
            }
            action => self.carry_out(action, origin, Payload::Inline(bytes), length),
        }
    }

    /// Connects to a multicast group.
    ///
    /// # Errors
    /// As [`Endpoint::connect`](crate::Endpoint::connect).
    pub(crate) fn join(&mut self, request: Request) -> Result<(), Status> {
        let groups = &mut self.around.groups;
        let longest = groups.prepare(request.to)?;
        let receives = request.attribute == Attribute::UuMcRx;
        if !receives {
            groups.open_sender()?;
        }
        let id = self.rules.join(request, longest, &mut self.around)?;
        if !receives {
            return Ok(());
        }
        let joined = self.around.groups.join(id, request.to);
        if joined.is_err() {
            self.around.events.pop_back(); // That it is connected.
            self.rules.disconnect(id, &mut self.around)?;
        }
        joined
    }

    /// Takes a message of a group. False if there is none.
    fn take_multicast(&mut self) -> bool {
        let around = &mut self.around;
        let Some((connection, bytes)) = around.groups.next() else {
            return false;
        };
        let length = bytes.len() as u64;
        if let Action::Deliver(connection) = self.rules.on_multicast(connection, length) {
            let buffer = around.buffers.take(length);
            buffer.claim().write(bytes);
            buffer.claim().slice(length, 1).write(&[0]);
            let length = length as u32;
            around.events.push_back(Event::Received {
                connection,
                message: Message { buffer, length },
            });
        }
        true
    }

    /// The application gives something back.
    #[inline]
    pub(crate) fn take_back(&mut self, given: GivenBack) {
        match given {
            GivenBack::Nothing => {}
            GivenBack::Request(data) => self.around.buffers.give_back(data.buffer),
            GivenBack::Message(message) => {
                self.around.buffers.give_back(message.buffer);
                self.rules.on_returned(&mut self.around);
            }
        }
    }

    /// Does what is due.
    pub(crate) fn check_time(&mut self) {
        if self.rules.due().is_some_and(|due| due <= now()) {
            self.rules.on_time(&mut self.around);
        }
    }

    fn on_arrival(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Message(origin, words, payload) => {
                self.on_message(origin, &words, payload);
            }
            Arrival::Streamed(origin) => self.on_streamed(origin.lane, Status::Success),
            Arrival::Broken(origin) => self.on_streamed(origin.lane, Status::Error),
            Arrival::Lost(process) => self.rules.on_lost(process, &mut self.around),
            // All that is lent has an answer, and none is granted.
            Arrival::Returned(_) | Arrival::Moved(..) => {}
        }
    }

    fn on_message(&mut self, origin: Origin, words: &Words, payload: Payload) {
        let length = match &payload {
            Payload::Inline(claim) => claim.len(),
            Payload::Streamed(length) => *length,
            Payload::Lent(loan) if loan.spans.as_slice().is_empty() => self.around.link.own_lent(),
            Payload::Lent(loan) => loan.spans.length(),
            Payload::Placed => 0,
        };
        let (from, host) = (origin.process, &mut self.around);
        let action = self.rules.on_message(from, words, length, host);
        self.carry_out(action, origin, payload, length);
    }

    fn carry_out(&mut self, action: Action, origin: Origin, payload: Payload, length: u64) {
        match action {
            Action::Nothing => self.around.link.done(origin),
            Action::Deliver(id) => {
                let message = self.message(length);
                self.land(origin, payload, Streaming::Receive(id, message));
            }
            Action::Request {
                connection,
                attribute,
            } => {
                let message = self.message(length);
                let what = Streaming::Request(connection, attribute, message);
                self.land(origin, payload, what);
            }
            Action::Write(transfer) => self.land(origin, payload, Streaming::Write(transfer)),
            Action::Fetched(transfer) => self.land(origin, payload, Streaming::Fetched(transfer)),
            Action::Read(transfer) => self.read(origin, payload, transfer),
        }
    }

    fn message(&mut self, length: u64) -> Message {
        Message {
            buffer: self.around.buffers.take(length),
            length: length as u32,
        }
    }

    /// Moves a frame's bytes to their place, or has them streamed there.
    fn land(&mut self, origin: Origin, payload: Payload, what: Streaming) {
        let place = match &what {
            Streaming::Receive(_, message) | Streaming::Request(_, _, message) => {
                Some((message.buffer.claim(), &self.lease))
            }
            Streaming::Write(transfer) | Streaming::Fetched(transfer) => {
                self.around.memory.part(transfer.region)
            }
        };
        let Some((place, lease)) = place else {
            self.around.link.done(origin);
            return self.landed(what, Status::RmaHandle);
        };
        let link = &mut self.around.link;
        let status = match payload {
            Payload::Inline(claim) => {
                match what {
                    Streaming::Receive(..) | Streaming::Request(..) => land(claim, place),
                    _ => {
                        lintel_claim::copy(claim, place);
                    }
                }
                Status::Success
            }
            Payload::Lent(loan) => match link.of(origin).fetch(origin, &loan, &[place]) {
                Ok(_) => Status::Success,
                Err(_) => Status::Error,
            },
            Payload::Streamed(_) => {
                let loan = lease.lend(&[place]).keep();
                link.of(origin).receive_into(origin, loan);
                link.done(origin);
                self.streams.insert(origin.lane, what);
                return;
            }
            // Endpoints have no entries that a peer could have copied to.
            Payload::Placed => Status::Error,
        };
        link.done(origin);
        self.landed(what, status);
    }

    fn on_streamed(&mut self, lane: u32, status: Status) {
        let Some(what) = self.streams.remove(&lane) else {
            return;
        };
        if let Streaming::Receive(_, message) | Streaming::Request(_, _, message) = &what {
            let end = message.buffer.claim().slice(message.length.into(), 1);
            end.write(&[0]);
        }
        self.landed(what, status);
    }

    /// The bytes are in place, or couldn't be put there.
    fn landed(&mut self, what: Streaming, status: Status) {
        let host = &mut self.around;
        match what {
            Streaming::Write(transfer) => self.rules.on_written(transfer, status, host),
            Streaming::Fetched(transfer) => self.rules.on_fetched(transfer, status, host),
            Streaming::Receive(_, message) if status != Status::Success => {
                host.buffers.give_back(message.buffer);
                self.rules.on_returned(host);
            }
            Streaming::Receive(connection, message) => {
                let event = Event::Received {
                    connection,
                    message,
                };
                self.around.events.push_back(event);
            }
            Streaming::Request(connection, attribute, data) => {
                let event = Event::Request {
                    connection,
                    attribute,
                    data,
                };
                self.around.events.push_back(event);
            }
        }
    }

    /// A peer reads: its memory is filled if it can be, otherwise the answer has the bytes.
    fn read(&mut self, origin: Origin, payload: Payload, transfer: Transfer) {
        let part = |region: Part| self.around.memory.part(region).map(|(claim, _)| claim);
        let from = part(transfer.region);
        let link = &mut self.around.link;
        let (status, sends) = match (payload, from) {
            (_, None) => (Status::RmaHandle, false),
            (Payload::Lent(loan), Some(from)) => {
                match link.of(origin).fill(origin, &[from], &loan) {
                    Ok(_) => (Status::Success, false),
                    Err(_) => (Status::Error, false),
                }
            }
            (_, Some(_)) => (Status::Success, true),
        };
        link.done(origin);
        self.rules
            .on_read(transfer, status, sends, &mut self.around);
    }

    /// Makes the handle readable if events wait, and not readable otherwise.
    pub(crate) fn update_handle(&mut self) {
        let Some(handle) = &self.handle else {
            return;
        };
        let waits = !self.around.events.is_empty();
        if waits == self.is_signalled {
            return;
        }
        self.is_signalled = waits;
        // The counter goes from 0 to 1 and back, which neither blocks nor fails.
        let _ = match waits {
            true => rustix::io::write(handle, &1u64.to_ne_bytes()),
            false => rustix::io::read(handle, &mut [0u8; 8]),
        };
    }

    /// How long a thread may sleep that isn't woken by arrivals.
    pub(crate) fn sleeps_for(&mut self, most: Duration) -> Duration {
        let mut length = most;
        if let Some(due) = self.rules.due() {
            let micros = due.0.saturating_sub(now().0);
            length = length.min(Duration::from_micros(micros));
        }
        if let Some(due) = self.around.link.wake().due() {
            length = length.min(due.saturating_duration_since(Instant::now()));
        }
        length
    }
}
