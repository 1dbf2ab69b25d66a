//! An endpoint: what the application calls, and the passing of time.

use crate::connection::{Connection, ConnectionId, ConnectionInfo, State, Table};
use crate::frame::Frame;
use crate::options::Options;
use crate::rma::{Access, Region, Registrations, RmaRequest};
use crate::sending::{Completion, LOOK_EVERY, Notify};
use crate::status::{Attribute, Status};
use crate::timers::{Time, Timers};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use lintel_types::ProcessId;
use lintel_wire::Words;

/// There is no way to a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoWay;

/// A message of the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<B> {
    /// Bytes.
    pub length: u32,
    /// What they are, to the host.
    pub body: B,
}

/// What goes with a frame; `F` is a message of the caller, `B` one that was held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outgoing<'a, F, B> {
    /// Nothing.
    Nothing,
    /// A message where the caller has it, copied before the call returns.
    Fresh(F),
    /// A message that was held, copied before the call returns.
    Held(&'a B),
    /// Registered memory, left in place for the peer to read.
    LentToRead(Region),
    /// Registered memory, left in place for the peer to fill.
    LentToFill(Region),
}

/// What a host sends with a frame.
pub type OutgoingOf<'a, H> = Outgoing<'a, <H as Host>::Fresh<'a>, <H as Host>::Body>;

/// What an endpoint needs of its surroundings. No call may block or call back.
pub trait Host {
    /// The bytes of a message where the caller of [`Endpoint::send`] has them.
    type Fresh<'a>: Copy;

    /// The bytes of a message, held until it has arrived.
    type Body: 'static;

    /// Holds a message beyond the call that brought it.
    fn hold(&self, message: Self::Fresh<'_>) -> Self::Body;

    /// The time. It is asked for only where it counts, since a clock may cost as much as a
    /// message.
    fn now(&self) -> Time;

    /// The time, or one that comes at most [`TICK`] later: for timeouts, which may end later but
    /// not earlier than they should. It costs less.
    fn roughly_now(&self) -> Time {
        self.now()
    }

    /// Sends a frame to a process, in order with all others to it.
    ///
    /// # Errors
    /// [`NoWay`] if no process has that name; nothing was sent.
    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: OutgoingOf<'_, Self>,
    ) -> Result<(), NoWay>;

    /// Sends a message to a multicast group, once and without waiting.
    ///
    /// # Errors
    /// [`NoWay`] if nothing can be sent to groups.
    fn multicast(&mut self, group: ProcessId, message: Self::Fresh<'_>) -> Result<(), NoWay>;

    /// Whether so much waits on the way to a process that an unreliable message is better
    /// dropped: nothing else bounds the memory that they take.
    fn is_congested(&self, to: ProcessId) -> bool;

    /// Posts an event, in order.
    fn post(&mut self, event: Event);

    /// Whether there is room for the message that has just arrived, besides the receive
    /// buffers that the endpoint counts itself.
    fn has_room(&self) -> bool {
        true
    }
}

/// What the application is reported. Messages and connection requests are reported by the code that
/// carries out the [`Action`](crate::Action).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A send or an access has ended.
    Sent {
        /// Its connection.
        connection: ConnectionId,
        /// The operation's own.
        context: u64,
        /// How.
        status: Status,
    },
    /// The same, for a caller that waits.
    Returned {
        /// As in the operation's [`Completion`].
        caller: u64,
        /// How.
        status: Status,
    },
    /// The answer to a connection request of this endpoint.
    Connected {
        /// The request's own.
        context: u64,
        /// The connection, or why there is none.
        result: Result<(ConnectionId, ConnectionInfo), Status>,
    },
    /// How accepting has ended.
    Accepted {
        /// As given to accept.
        context: u64,
        /// The connection, or why there is none.
        result: Result<(ConnectionId, ConnectionInfo), Status>,
    },
    /// The peer was silent for too long; keepalive of the connection is off now.
    KeepaliveTimedOut {
        /// Which.
        connection: ConnectionId,
    },
}

/// What an endpoint holds.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Resources {
    /// Connections, with those that are being made or wound up.
    pub connections: usize,
    /// Operations that haven't ended.
    pub pending: u32,
    /// Messages that the application holds or hasn't taken.
    pub held: u32,
    /// Registrations of memory.
    pub registrations: usize,
}

/// One endpoint.
pub struct Endpoint<H: Host> {
    pub(crate) table: Table<H::Body>,
    pub(crate) timers: Timers,
    pub(crate) options: Options,
    pub(crate) registrations: Registrations,
    /// Largest message that this side takes, bytes.
    pub(crate) max_send: u32,
    /// Operations in all queues.
    pub(crate) pending: u32,
    /// Receive buffers in use.
    pub(crate) held: u32,
    /// Connections with messages to acknowledge.
    pub(crate) to_acknowledge: Vec<ConnectionId>,
    /// Connections whose message was refused, in order.
    pub(crate) refused: VecDeque<ConnectionId>,
    pub(crate) first_generation: u32,
    /// Messages are in place only when the host says so.
    pub(crate) lands_later: bool,
}

impl<H: Host> Endpoint<H> {
    /// An endpoint that takes messages up to `max_send` bytes. `seed` is a number that
    /// differs from run to run.
    pub fn new(max_send: u32, seed: u32) -> Self {
        Endpoint {
            table: Table::new(),
            timers: Timers::new(),
            options: Options::new(),
            registrations: Registrations::new(),
            max_send,
            pending: 0,
            held: 0,
            to_acknowledge: Vec::new(),
            refused: VecDeque::new(),
            first_generation: seed,
            lands_later: false,
        }
    }

    /// What it holds now.
    pub fn resources(&self) -> Resources {
        Resources {
            connections: self.table.len(),
            pending: self.pending,
            held: self.held,
            registrations: self.registrations.len(),
        }
    }

    /// What an application sees of a connection.
    pub fn info(&self, id: ConnectionId) -> Option<ConnectionInfo> {
        self.table.get(id).map(Connection::info)
    }

    /// Sends a message.
    ///
    /// # Errors
    /// `Invalid`: no such connection, or one that only receives; `MessageSize`; `Disconnected`; `NoBuffers`: too many
    /// operations are pending. Nobody is reported.
    #[inline]
    pub fn send(
        &mut self,
        id: ConnectionId,
        message: Message<H::Fresh<'_>>,
        completion: Completion,
        host: &mut H,
    ) -> Result<(), Status> {
        let is_full = self.pending >= self.options.send_buffers;
        let connection = self.table.get_mut(id).ok_or(Status::Invalid)?;
        check_open(connection)?;
        if message.length > connection.max_send {
            return Err(Status::MessageSize);
        }
        if !connection.attribute.is_reliable() {
            return send_unreliable(connection, id, message.body, completion, host);
        }
        if is_full {
            return Err(Status::NoBuffers);
        }
        let deadline = host.roughly_now().after(connection.send_timeout);
        connection.send_message(message.body, completion, deadline, host);
        self.pending += 1;
        if connection.timer.is_none_or(|timer| timer > deadline) {
            self.arm(id);
        }
        Ok(())
    }

    /// Whether so many operations of a connection await acknowledgements, once one more was started,
    /// that the host had better look for some, though nobody asks for events.
    #[inline]
    pub fn is_look_due(&self, id: ConnectionId) -> bool {
        let connection = self.table.get(id);
        let under_way = connection.map_or(0, |it| it.sending.under_way());
        under_way > 0 && under_way % LOOK_EVERY == 0
    }

    /// Reads or writes a peer's memory, and sends it a message after that, if there is one.
    ///
    /// # Errors
    /// `Invalid`: no such connection, an unreliable one, no byte, or local memory that isn't
    /// registered here (an access beyond the end of a registration fails as `RmaHandle` in its
    /// turn); otherwise as [`send`](Self::send).
    pub fn rma(
        &mut self,
        id: ConnectionId,
        request: RmaRequest,
        message: Option<Message<H::Fresh<'_>>>,
        completion: Completion,
        host: &mut H,
    ) -> Result<(), Status> {
        let is_full = self.pending >= self.options.send_buffers;
        let connection = self.table.get_mut(id).ok_or(Status::Invalid)?;
        let is_local = self.registrations.has(request.local.key);
        let is_within = self.registrations.holds(request.local);
        if !connection.attribute.is_reliable() || request.local.length == 0 || !is_local {
            return Err(Status::Invalid);
        }
        check_open(connection)?;
        let length = message.as_ref().map_or(0, |message| message.length);
        if length > connection.max_send {
            return Err(Status::MessageSize);
        }
        if is_full {
            return Err(Status::NoBuffers);
        }
        let deadline = host.roughly_now().after(connection.send_timeout);
        let before = connection.sending.len();
        let body = message.map(|message| host.hold(message.body));
        let sending = &mut connection.sending;
        match is_within {
            true => sending.push_rma(request, body, completion, deadline),
            false => sending.push_failed(Status::RmaHandle, completion, deadline),
        }
        self.pending += connection.sending.len() - before;
        self.go_on(id, deadline, host);
        Ok(())
    }

    /// Registers memory of `length` bytes. False if the key is taken.
    pub fn register(&mut self, key: u64, length: u64, access: Access) -> bool {
        self.registrations.insert(key, length, access)
    }

    /// Ends a registration. False if there is none of that key.
    pub fn deregister(&mut self, key: u64) -> bool {
        self.registrations.remove(key)
    }

    /// Drops a connection. The peer isn't reported; what was sent before still goes out, and
    /// nobody is reported its end but callers that wait.
    ///
    /// # Errors
    /// [`Status::Invalid`] if there is no such connection.
    pub fn disconnect(&mut self, id: ConnectionId, host: &mut H) -> Result<(), Status> {
        self.acknowledge(id, host);
        let connection = self.table.get_mut(id).ok_or(Status::Invalid)?;
        if matches!(connection.state, State::Closing | State::Requested) {
            return Err(Status::Invalid);
        }
        connection.sending.forget_completions(|caller| {
            host.post(Event::Returned {
                caller,
                status: Status::Disconnected,
            });
        });
        if connection.state == State::Open && !connection.sending.is_empty() {
            let lingers_for = connection.send_timeout;
            connection.state = State::Closing;
            connection.has_refused = false;
            connection.heard_at = host.now();
            connection.keepalive = lingers_for; // Bounds how long it stays.
            self.arm(id);
        } else {
            self.remove(id);
        }
        Ok(())
    }

    /// A message was given back by the application.
    pub fn on_returned(&mut self, host: &mut H) {
        self.held = self.held.saturating_sub(1);
        while let Some(id) = self.refused.pop_front() {
            let is_refused = |it: &&mut Connection<_>| it.has_refused;
            let Some(connection) = self.table.get_mut(id).filter(is_refused) else {
                continue;
            };
            connection.has_refused = false;
            let (peer, to) = (connection.peer, connection.remote);
            self.tell(peer, Frame::Ready { to }, host);
            return;
        }
    }

    /// Whether the application holds all receive buffers.
    pub fn is_exhausted(&self) -> bool {
        self.held >= self.options.recv_buffers
    }

    /// Acknowledges what has arrived and wasn't acknowledged by a message of this side: to be
    /// called after a batch of frames, or soon after it.
    #[inline]
    pub fn finish(&mut self, host: &mut H) {
        while let Some(id) = self.to_acknowledge.pop() {
            if let Some(connection) = self.table.get_mut(id) {
                connection.is_to_acknowledge = false;
                self.acknowledge(id, host);
            }
        }
    }

    /// When [`on_time`](Self::on_time) is to be called.
    pub fn due(&self) -> Option<Time> {
        self.timers.first()
    }

    /// Time has passed.
    pub fn on_time(&mut self, host: &mut H) {
        let now = host.now();
        while let Some(id) = self.timers.pop(now) {
            if let Some(connection) = self.table.get_mut(id) {
                connection.timer = None;
                self.on_timer(id, now, host);
            }
        }
    }

    fn on_timer(&mut self, id: ConnectionId, now: Time, host: &mut H) {
        if self.has_connect_timed_out(id, now, host) {
            return;
        }
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        connection.expire(id, now, host);
        connection.retry(|at| at <= now);
        self.check_silence(id, now, host);
        self.settle(id, host);
        self.arm(id);
    }

    /// Probes a peer that was silent, and reports one that didn't answer.
    fn check_silence(&mut self, id: ConnectionId, now: Time, host: &mut H) {
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        let is_silent = now >= connection.heard_at.after(connection.keepalive);
        if connection.keepalive == Time(0) || !is_silent {
            return;
        }
        if connection.state == State::Closing {
            self.close(id, host);
            return;
        }
        if !matches!(connection.state, State::Open | State::Dead) {
            return;
        }
        if connection.is_probed || connection.state == State::Dead {
            connection.keepalive = Time(0);
            connection.is_probed = false;
            host.post(Event::KeepaliveTimedOut { connection: id });
            return;
        }
        connection.is_probed = true;
        connection.heard_at = now;
        let (peer, to) = (connection.peer, connection.remote);
        self.tell(peer, Frame::Probe { to }, host);
    }

    /// Sends what can go out after a new operation.
    fn go_on(&mut self, id: ConnectionId, deadline: Time, host: &mut H) {
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        let is_armed = connection.timer.is_some_and(|timer| timer <= deadline);
        connection.transmit(host);
        if !is_armed {
            self.arm(id);
        }
    }

    /// Reports what has ended, and sends what may go out now.
    pub(crate) fn settle(&mut self, id: ConnectionId, host: &mut H) {
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        self.pending -= connection.complete(id, host);
        if connection.sending.has_unsent() {
            connection.transmit(host);
        }
        if connection.state == State::Closing && connection.sending.is_empty() {
            self.close(id, host);
        }
    }

    /// Ends the winding up of a connection; a peer whose messages were dropped meanwhile is
    /// reported that there is none.
    fn close(&mut self, id: ConnectionId, host: &mut H) {
        let dropped = |it: &&Connection<_>| it.has_refused;
        if let Some(connection) = self.table.get(id).filter(dropped) {
            let (peer, unknown) = (connection.peer, id);
            self.tell(peer, Frame::Reset { unknown }, host);
        }
        self.remove(id);
    }

    /// The peer of a connection is gone, or doesn't know it.
    pub(crate) fn lose(&mut self, id: ConnectionId, host: &mut H) {
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        let (state, context) = (connection.state, connection.context);
        match state {
            State::Requested => connection.state = State::Dead,
            State::Open | State::Dead => {
                self.pending -= connection.fail_all(id, Status::Disconnected, host);
            }
            State::Connecting { .. } => {
                self.remove(id);
                let result = Err(Status::Refused);
                host.post(Event::Connected { context, result });
            }
            State::Accepted => {
                self.remove(id);
                let result = Err(Status::Disconnected);
                host.post(Event::Accepted { context, result });
            }
            State::Closing => self.remove(id),
        }
    }

    pub(crate) fn remove(&mut self, id: ConnectionId) {
        if let Some(connection) = self.table.remove(id) {
            self.pending -= connection.sending.len();
            if let Some(timer) = connection.timer {
                self.timers.remove(timer, id);
            }
        }
    }

    /// Sets the connection's timer to its earliest time. A timer that is early is left.
    pub(crate) fn arm(&mut self, id: ConnectionId) {
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        let mut earliest: Option<Time> = None;
        let mut consider = |time: Option<Time>| {
            earliest = earliest.into_iter().chain(time).min();
        };
        if let State::Connecting { until } = connection.state {
            consider(until);
        } else {
            consider(connection.sending.deadline());
            consider(connection.sending.refused);
        }
        let has_peer = matches!(connection.state, State::Open | State::Dead | State::Closing);
        let is_kept = connection.keepalive > Time(0) && connection.attribute.is_reliable();
        if has_peer && is_kept {
            consider(Some(connection.heard_at.after(connection.keepalive)));
        }
        let Some(at) = earliest else {
            return;
        };
        if let Some(timer) = connection.timer {
            if timer <= at {
                return;
            }
            self.timers.remove(timer, id);
        }
        connection.timer = Some(at);
        self.timers.insert(at, id);
    }

    /// Sends a frame that has no bytes. If there is no way to the peer, its loss is or will
    /// be reported, so nobody needs to know here.
    pub(crate) fn tell(&mut self, peer: ProcessId, frame: Frame, host: &mut H) {
        let _ = host.send(peer, &frame.to_words(), Outgoing::Nothing);
    }
}

fn check_open<B>(connection: &Connection<B>) -> Result<(), Status> {
    match connection.state {
        State::Open => Ok(()),
        State::Dead => Err(Status::Disconnected),
        _ => Err(Status::Invalid),
    }
}

/// An unreliable message has ended once it is on its way, or was dropped since the peer
/// doesn't keep up.
#[inline]
fn send_unreliable<H: Host>(
    connection: &Connection<H::Body>,
    id: ConnectionId,
    message: H::Fresh<'_>,
    completion: Completion,
    host: &mut H,
) -> Result<(), Status> {
    let words = Frame::Unreliable {
        to: connection.remote,
    }
    .to_words();
    let peer = connection.peer;
    let sent = match connection.attribute {
        Attribute::UuMcTx => host.multicast(peer, message),
        Attribute::UuMcRx => return Err(Status::Invalid),
        _ if host.is_congested(peer) => Ok(()),
        _ => host.send(peer, &words, Outgoing::Fresh(message)),
    };
    sent.map_err(|_| Status::Disconnected)?;
    let (context, status) = (completion.context, Status::Success);
    match completion.notify {
        Notify::Event => host.post(Event::Sent {
            connection: id,
            context,
            status,
        }),
        Notify::Caller => host.post(Event::Returned {
            caller: context,
            status,
        }),
        Notify::Silent => {}
    }
    Ok(())
}

impl<H: Host> Endpoint<H> {
    /// The attribute of a connection that was asked for.
    pub fn attribute(&self, id: ConnectionId) -> Option<Attribute> {
        self.table.get(id).map(|connection| connection.attribute)
    }
}
