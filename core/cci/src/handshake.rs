//! How connections are made: request, answer, confirmation.
//!
//! ```text
//!   initiator ── Connect ──▶ server   the application accepts or rejects
//!             ◀── Accept ──           or Reject
//!             ─ Established ▶         the server's application is reported, before any message
//! ```

use crate::connection::{Connection, ConnectionId, State};
use crate::endpoint::{Endpoint, Event, Host, Outgoing};
use crate::frame::Frame;
use crate::receiving::Action;
use crate::status::{Attribute, Status};
use crate::timers::Time;
use lintel_types::ProcessId;

/// Frames of an endpoint that asks for more connections than this are answered by a
/// rejection: the table of connections is bounded.
const MAX_CONNECTIONS: usize = 1 << 20;

/// A connection that an application asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The server's process.
    pub to: ProcessId,
    /// What the connection is to promise.
    pub attribute: Attribute,
    /// The application's own, returned with the answer.
    pub context: u64,
    /// How long an answer is waited for; `None`: for ever.
    pub timeout: Option<Time>,
}

/// What a peer's request says of the connection.
pub(crate) struct Proposal {
    /// The peer's name for it.
    pub(crate) remote: ConnectionId,
    pub(crate) attribute: Attribute,
    pub(crate) max_send: u32,
}

impl<H: Host> Endpoint<H> {
    /// Asks a process for a connection; `data` goes with the request. The answer comes as
    /// [`Event::Connected`]: if nobody is there as `Refused`, if nobody answers within the
    /// timeout as `TimedOut`.
    ///
    /// # Errors
    /// [`Status::NoMemory`] if there are too many connections.
    pub fn connect(
        &mut self,
        request: Request,
        data: H::Fresh<'_>,
        host: &mut H,
    ) -> Result<ConnectionId, Status> {
        let Request {
            to,
            attribute,
            context,
            timeout,
        } = request;
        let now = host.now();
        let until = timeout.map(|timeout| now.after(timeout));
        let mut connection = self.new_connection(to, attribute, State::Connecting { until });
        connection.context = context;
        connection.heard_at = now;
        let id = self.insert(connection).ok_or(Status::NoMemory)?;
        let frame = Frame::Connect {
            from: id,
            attribute,
            max_send: self.max_send,
        };
        match host.send(to, &frame.to_words(), Outgoing::Fresh(data)) {
            Ok(()) => self.arm(id),
            Err(_) => self.lose(id, host),
        }
        Ok(id)
    }

    /// Connects to a multicast group, which messages of up to `max_send` bytes are sent to or
    /// received from. Nobody decides about it: [`Event::Connected`] follows at once.
    ///
    /// # Errors
    /// [`Status::NoMemory`] if there are too many connections.
    pub fn join(
        &mut self,
        request: Request,
        max_send: u32,
        host: &mut H,
    ) -> Result<ConnectionId, Status> {
        let mut connection = self.new_connection(request.to, request.attribute, State::Open);
        connection.context = request.context;
        connection.max_send = max_send.min(self.max_send);
        let info = connection.info();
        let id = self.insert(connection).ok_or(Status::NoMemory)?;
        let (context, result) = (request.context, Ok((id, info)));
        host.post(Event::Connected { context, result });
        Ok(id)
    }

    /// Accepts a request; [`Event::Accepted`] follows.
    ///
    /// # Errors
    /// [`Status::Invalid`] if it was answered before.
    pub fn accept(&mut self, id: ConnectionId, context: u64, host: &mut H) -> Result<(), Status> {
        let max_send = self.max_send;
        let connection = self.table.get_mut(id).ok_or(Status::Invalid)?;
        match connection.state {
            State::Requested => {}
            State::Dead => {
                self.remove(id);
                let result = Err(Status::Disconnected);
                host.post(Event::Accepted { context, result });
                return Ok(());
            }
            _ => return Err(Status::Invalid),
        }
        connection.state = State::Accepted;
        connection.context = context;
        connection.heard_at = host.now();
        let (peer, to) = (connection.peer, connection.remote);
        let frame = Frame::Accept {
            to,
            from: id,
            max_send,
        };
        if host
            .send(peer, &frame.to_words(), Outgoing::Nothing)
            .is_err()
        {
            self.lose(id, host);
        }
        Ok(())
    }

    /// Rejects a request.
    ///
    /// # Errors
    /// [`Status::Invalid`] if it was answered before.
    pub fn reject(&mut self, id: ConnectionId, host: &mut H) -> Result<(), Status> {
        let connection = self.table.get(id).ok_or(Status::Invalid)?;
        if !matches!(connection.state, State::Requested | State::Dead) {
            return Err(Status::Invalid);
        }
        let (peer, to) = (connection.peer, connection.remote);
        self.remove(id);
        self.tell(peer, Frame::Reject { to }, host);
        Ok(())
    }

    /// A process has ended: its connections too.
    pub fn on_lost(&mut self, process: ProcessId, host: &mut H) {
        for id in self.table.names(|connection| connection.peer == process) {
            self.lose(id, host);
        }
    }

    fn new_connection(
        &self,
        peer: ProcessId,
        attribute: Attribute,
        state: State,
    ) -> Connection<H::Body> {
        let mut connection = Connection::new(peer, attribute, state);
        connection.send_timeout = self.options.send_timeout;
        connection.keepalive = self.options.keepalive;
        connection.acknowledges_apart = self.lands_later;
        connection
    }

    fn insert(&mut self, connection: Connection<H::Body>) -> Option<ConnectionId> {
        let has_room = self.table.len() < MAX_CONNECTIONS;
        has_room.then(|| self.table.insert(connection, self.first_generation))
    }

    /// A process asks for a connection.
    pub(crate) fn on_connect(
        &mut self,
        peer: ProcessId,
        proposal: Proposal,
        host: &mut H,
    ) -> Action {
        let Proposal {
            remote,
            attribute,
            max_send,
        } = proposal;
        let mut connection = self.new_connection(peer, attribute, State::Requested);
        connection.remote = remote;
        connection.max_send = max_send.min(self.max_send);
        connection.heard_at = host.now();
        match self.insert(connection) {
            Some(connection) => Action::Request {
                connection,
                attribute,
            },
            None => {
                self.tell(peer, Frame::Reject { to: remote }, host);
                Action::Nothing
            }
        }
    }

    /// A server has accepted. One that isn't waited for any more is reported so.
    pub(crate) fn on_accept(
        &mut self,
        id: ConnectionId,
        remote: ConnectionId,
        max_send: u32,
        host: &mut H,
    ) {
        let own = self.max_send;
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        if !matches!(connection.state, State::Connecting { .. }) {
            return;
        }
        connection.remote = remote;
        connection.max_send = max_send.min(own);
        connection.state = State::Open;
        let (peer, context) = (connection.peer, connection.context);
        let result = Ok((id, connection.info()));
        self.tell(peer, Frame::Established { to: remote }, host);
        host.post(Event::Connected { context, result });
        self.arm(id);
    }

    pub(crate) fn on_reject(&mut self, id: ConnectionId, host: &mut H) {
        let is_connecting = |it: &&Connection<_>| matches!(it.state, State::Connecting { .. });
        if self.table.get(id).filter(is_connecting).is_some() {
            self.lose(id, host);
        }
    }

    pub(crate) fn on_established(&mut self, id: ConnectionId, host: &mut H) {
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        if connection.state == State::Accepted {
            connection.state = State::Open;
            let (context, result) = (connection.context, Ok((id, connection.info())));
            host.post(Event::Accepted { context, result });
            self.arm(id);
        }
    }

    /// Gives up a request that nobody has answered in time.
    pub(crate) fn has_connect_timed_out(
        &mut self,
        id: ConnectionId,
        now: Time,
        host: &mut H,
    ) -> bool {
        let Some(connection) = self.table.get(id) else {
            return false;
        };
        let State::Connecting { until: Some(until) } = connection.state else {
            return false;
        };
        if until > now {
            return false;
        }
        let context = connection.context;
        self.remove(id);
        let result = Err(Status::TimedOut);
        host.post(Event::Connected { context, result });
        true
    }
}
