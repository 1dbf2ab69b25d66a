//! Frames that have arrived.

use crate::connection::{ConnectionId, State};
use crate::endpoint::{Endpoint, Host, Outgoing, OutgoingOf};
use crate::frame::Frame;
use crate::handshake::Proposal;
use crate::rma::Region;
use crate::sending::Direction;
use crate::status::{Attribute, Status};
use crate::timers::Time;
use lintel_types::ProcessId;
use lintel_wire::Words;

/// Messages received after which they are acknowledged at once.
const ACKNOWLEDGE_AFTER: u32 = 32;

/// What is to be done with the bytes of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Nothing; there are none, or they are dropped.
    Nothing,
    /// They are a message: copy them to a receive buffer and tell the application. The
    /// buffer counts until [`Endpoint::on_returned`].
    Deliver(ConnectionId),
    /// They are the data of a connection request, at most [`MAX_REQUEST`](crate::MAX_REQUEST)
    /// bytes: copy them and tell the application.
    Request {
        /// To be accepted or rejected.
        connection: ConnectionId,
        /// What the initiator asks for.
        attribute: Attribute,
    },
    /// A peer writes: put them into registered memory, then [`Endpoint::on_written`].
    Write(Transfer),
    /// A peer reads: fill what it has lent from registered memory, or have the bytes sent,
    /// by [`Endpoint::on_read`].
    Read(Transfer),
    /// They are what a read of this endpoint returns: put them into registered memory, then
    /// [`Endpoint::on_fetched`].
    Fetched(Transfer),
}

/// Bytes that move between registered memory and a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// On which connection.
    pub connection: ConnectionId,
    pub(crate) sequence: u32,
    /// Where in this endpoint's memory.
    pub region: Region,
}

impl<H: Host> Endpoint<H> {
    /// From now on a message that is delivered is acknowledged after
    /// [`on_landed`](Self::on_landed), as where an engine moves its bytes in the background,
    /// and never by a message of this side.
    /// A refusal of a later message still completes it at the sender.
    pub fn land_later(&mut self) {
        self.lands_later = true;
    }

    /// The oldest message that was delivered on a connection, and that wasn't said to be in
    /// place yet, is. Only after [`land_later`](Self::land_later).
    pub fn on_landed(&mut self, id: ConnectionId, host: &mut H) {
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        if connection.landing.pop_front().is_some() {
            self.count_unacknowledged(id, host);
        }
    }

    /// A frame with `length` bytes has arrived from a process. What isn't a frame, or isn't
    /// for a connection of that process, changes nothing.
    pub fn on_message(
        &mut self,
        from: ProcessId,
        words: &Words,
        length: u64,
        host: &mut H,
    ) -> Action {
        let Ok(frame) = Frame::parse(words) else {
            return Action::Nothing;
        };
        match frame {
            Frame::Connect {
                from: remote,
                attribute,
                max_send,
            } if length <= crate::MAX_REQUEST.into() => {
                let proposal = Proposal {
                    remote,
                    attribute,
                    max_send,
                };
                return self.on_connect(from, proposal, host);
            }
            Frame::Connect { .. } => return Action::Nothing,
            Frame::Reset { unknown } => {
                self.on_reset(from, unknown, host);
                return Action::Nothing;
            }
            _ => {}
        }
        let id = ConnectionId::from_bits(words[1]);
        if !self.is_heard(id, from, host) {
            // Nothing is answered to a reset, or to the answer to one.
            self.tell(from, Frame::Reset { unknown: id }, host);
            return Action::Nothing;
        }
        self.on_frame(id, frame, length, host)
    }

    /// Whether the connection is that process's, which then has given a sign of life.
    fn is_heard(&mut self, id: ConnectionId, from: ProcessId, host: &H) -> bool {
        let Some(connection) = self.table.get_mut(id).filter(|it| it.peer == from) else {
            return false;
        };
        if connection.keepalive > Time(0) && connection.state != State::Closing {
            connection.heard_at = host.now();
            connection.is_probed = false;
        }
        connection.state != State::Dead
    }

    fn on_frame(&mut self, id: ConnectionId, frame: Frame, length: u64, host: &mut H) -> Action {
        match frame {
            Frame::Message {
                sequence, received, ..
            } => {
                self.on_ack(id, received, host);
                return self.on_sent(id, sequence, length, host);
            }
            Frame::Unreliable { .. } if !host.has_room() => {}
            Frame::Unreliable { .. } => return self.take_unreliable(id, Attribute::Uu, length),
            Frame::Rma { .. } => return self.on_rma(id, frame, length, host),
            Frame::RmaDone {
                sequence, status, ..
            } => return self.on_rma_done(id, sequence, status, length, host),
            Frame::Accept { from, max_send, .. } => self.on_accept(id, from, max_send, host),
            Frame::Reject { .. } => self.on_reject(id, host),
            Frame::Established { .. } => self.on_established(id, host),
            Frame::Ack { sequence, .. } => self.on_ack(id, sequence, host),
            Frame::NotReady { sequence, .. } => self.on_not_ready(id, sequence, host),
            Frame::Ready { .. } => self.on_ready(id, host),
            Frame::Skip {
                sequence, count, ..
            } => self.on_skip(id, sequence, count, host),
            Frame::Probe { .. } => self.on_probe(id, host),
            Frame::Alive { .. } | Frame::Connect { .. } | Frame::Reset { .. } => {}
        }
        Action::Nothing
    }

    /// The peer has no connection of that name.
    fn on_reset(&mut self, from: ProcessId, unknown: ConnectionId, host: &mut H) {
        let is_meant = |it: &crate::connection::Connection<_>| {
            it.peer == from && it.remote == unknown && it.state != State::Requested
        };
        for id in self.table.names(is_meant) {
            self.lose(id, host);
        }
    }

    /// Whether `sequence` is the next of the connection. What comes behind a refused one is
    /// retransmitted.
    fn is_next(&self, id: ConnectionId, sequence: u32) -> bool {
        let connection = self.table.get(id);
        connection.is_some_and(|it| it.receives() && it.expected == sequence)
    }

    fn on_sent(&mut self, id: ConnectionId, sequence: u32, length: u64, host: &mut H) -> Action {
        let has_room = !self.is_exhausted() && host.has_room();
        if !self.is_next(id, sequence) || length > self.max_send.into() {
            return Action::Nothing;
        }
        let Some(connection) = self.table.get_mut(id) else {
            return Action::Nothing;
        };
        if connection.state == State::Closing {
            connection.has_refused = true;
            return Action::Nothing;
        }
        if !has_room {
            let (peer, to) = (connection.peer, connection.remote);
            if !core::mem::replace(&mut connection.has_refused, true) {
                self.refused.push_back(id);
            }
            self.tell(peer, Frame::NotReady { to, sequence }, host);
            return Action::Nothing;
        }
        self.held += 1;
        match self.lands_later {
            true => {
                connection.landing.push_back(sequence);
                connection.advance(1);
            }
            false => self.take_numbers(id, 1, host),
        }
        Action::Deliver(id)
    }

    /// A message of a multicast group has arrived, for a connection that receives from it.
    pub fn on_multicast(&mut self, id: ConnectionId, length: u64) -> Action {
        self.take_unreliable(id, Attribute::UuMcRx, length)
    }

    fn take_unreliable(&mut self, id: ConnectionId, attribute: Attribute, length: u64) -> Action {
        let is_exhausted = self.is_exhausted();
        let connection = self.table.get(id);
        let takes =
            connection.is_some_and(|it| it.state == State::Open && it.attribute == attribute);
        if !takes || is_exhausted || length > self.max_send.into() {
            return Action::Nothing;
        }
        self.held += 1;
        Action::Deliver(id)
    }

    /// The next `count` numbers have arrived.
    fn take_numbers(&mut self, id: ConnectionId, count: u32, host: &mut H) {
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        connection.advance(count);
        self.count_unacknowledged(id, host);
    }

    /// There is something more to acknowledge.
    pub(crate) fn count_unacknowledged(&mut self, id: ConnectionId, host: &mut H) {
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        connection.unacknowledged += 1;
        if !core::mem::replace(&mut connection.is_to_acknowledge, true) {
            self.to_acknowledge.push(id);
        } else if connection.unacknowledged >= ACKNOWLEDGE_AFTER {
            self.acknowledge(id, host);
        }
    }

    pub(crate) fn acknowledge(&mut self, id: ConnectionId, host: &mut H) {
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        // It may be listed though it was acknowledged since, perhaps by a message.
        if connection.unacknowledged == 0 {
            return;
        }
        connection.unacknowledged = 0;
        let (to, sequence) = (connection.remote, connection.acknowledged_up_to());
        connection.acknowledged = sequence;
        let peer = connection.peer;
        self.tell(peer, Frame::Ack { to, sequence }, host);
    }

    fn on_skip(&mut self, id: ConnectionId, sequence: u32, count: u32, host: &mut H) {
        if self.is_next(id, sequence) {
            self.take_numbers(id, count, host);
        }
    }

    /// A peer reads or writes memory here.
    fn on_rma(&mut self, id: ConnectionId, frame: Frame, length: u64, host: &mut H) -> Action {
        let Frame::Rma {
            sequence,
            is_read,
            key,
            offset,
            length: wanted,
            ..
        } = frame
        else {
            return Action::Nothing;
        };
        if !self.is_next(id, sequence) {
            return Action::Nothing;
        }
        let direction = match is_read {
            true => Direction::Read,
            false => Direction::Write,
        };
        let region = Region {
            key,
            offset,
            length: wanted,
        };
        let transfer = Transfer {
            connection: id,
            sequence,
            region,
        };
        self.take_numbers(id, 1, host);
        let status = match direction {
            // A write carries all its bytes.
            Direction::Write if length != wanted => Status::Error,
            _ => self.registrations.check(region, direction),
        };
        if status != Status::Success {
            self.on_written(transfer, status, host);
            return Action::Nothing;
        }
        match direction {
            Direction::Read => Action::Read(transfer),
            Direction::Write => Action::Write(transfer),
        }
    }

    /// A peer's write is in place, or has failed.
    pub fn on_written(&mut self, transfer: Transfer, status: Status, host: &mut H) {
        self.answer(transfer, status, Outgoing::Nothing, host);
    }

    /// A peer's read has filled what the peer has lent, or has failed; or its bytes are to be
    /// sent with the answer.
    pub fn on_read(&mut self, transfer: Transfer, status: Status, sends: bool, host: &mut H) {
        let body = match sends {
            true => Outgoing::LentToRead(transfer.region),
            false => Outgoing::Nothing,
        };
        self.answer(transfer, status, body, host);
    }

    fn answer(
        &mut self,
        transfer: Transfer,
        status: Status,
        body: OutgoingOf<'_, H>,
        host: &mut H,
    ) {
        let Some(connection) = self.table.get_mut(transfer.connection) else {
            return;
        };
        let frame = Frame::RmaDone {
            to: connection.remote,
            sequence: transfer.sequence,
            status,
        };
        // The answer acknowledges the access, and all before it.
        if connection.expected == transfer.sequence.wrapping_add(1) {
            connection.unacknowledged = 0;
        }
        let peer = connection.peer;
        // A peer that has ended is reported as lost.
        let _ = host.send(peer, &frame.to_words(), body);
    }

    /// An access of this endpoint has ended at the peer.
    fn on_rma_done(
        &mut self,
        id: ConnectionId,
        sequence: u32,
        status: Status,
        length: u64,
        host: &mut H,
    ) -> Action {
        let Some(connection) = self.table.get(id) else {
            return Action::Nothing;
        };
        let Some(request) = connection.sending.rma_at(sequence) else {
            return Action::Nothing;
        };
        let transfer = Transfer {
            connection: id,
            sequence,
            region: request.local,
        };
        let is_read = request.direction == Direction::Read;
        if length == 0 || status != Status::Success {
            self.on_fetched(transfer, status, host);
            return Action::Nothing;
        }
        // Memory that was deregistered meanwhile isn't written.
        let fits = is_read && length == request.local.length;
        if !fits || !self.registrations.holds(request.local) {
            self.on_fetched(transfer, Status::RmaHandle, host);
            return Action::Nothing;
        }
        Action::Fetched(transfer)
    }

    /// What a read has returned is in place, or couldn't be put there.
    pub fn on_fetched(&mut self, transfer: Transfer, status: Status, host: &mut H) {
        let id = transfer.connection;
        if let Some(connection) = self.table.get_mut(id) {
            connection.on_rma_done(transfer.sequence, status);
            self.settle(id, host);
        }
    }

    fn on_ack(&mut self, id: ConnectionId, sequence: u32, host: &mut H) {
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        if connection.on_ack(sequence) {
            self.settle(id, host);
        }
    }

    fn on_not_ready(&mut self, id: ConnectionId, sequence: u32, host: &mut H) {
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        if connection.on_not_ready(sequence, host.now()) {
            self.settle(id, host);
            self.arm(id);
        }
    }

    fn on_ready(&mut self, id: ConnectionId, host: &mut H) {
        if let Some(connection) = self.table.get_mut(id) {
            connection.retry(|_| true);
            self.settle(id, host);
        }
    }

    fn on_probe(&mut self, id: ConnectionId, host: &mut H) {
        if let Some(connection) = self.table.get(id) {
            let (peer, to) = (connection.peer, connection.remote);
            self.tell(peer, Frame::Alive { to }, host);
        }
    }
}
