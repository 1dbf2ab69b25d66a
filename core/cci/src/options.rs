//! The options of endpoints and connections.

use crate::connection::{ConnectionId, State};
use crate::endpoint::{Endpoint, Host};
use crate::status::Status;
use crate::timers::Time;

/// How long a reliable message is tried, unless an option says otherwise: 64 seconds, as in
/// the public library's sock transport. The header names no value.
pub const DEFAULT_SEND_TIMEOUT: Time = Time(64_000_000);
/// Messages that an endpoint holds for the application, unless an option says otherwise.
pub const DEFAULT_RECV_BUFFERS: u32 = 32768;
/// Operations that may be pending on an endpoint, unless an option says otherwise.
pub const DEFAULT_SEND_BUFFERS: u32 = 16384;

pub(crate) struct Options {
    pub(crate) send_timeout: Time,
    pub(crate) keepalive: Time,
    pub(crate) recv_buffers: u32,
    pub(crate) send_buffers: u32,
}

impl Options {
    pub(crate) fn new() -> Self {
        Options {
            send_timeout: DEFAULT_SEND_TIMEOUT,
            keepalive: Time(0),
            recv_buffers: DEFAULT_RECV_BUFFERS,
            send_buffers: DEFAULT_SEND_BUFFERS,
        }
    }
}

impl<H: Host> Endpoint<H> {
    /// `CCI_OPT_ENDPT_SEND_TIMEOUT`: of connections that are made from now on.
    pub fn set_send_timeout(&mut self, timeout: Time) {
        self.options.send_timeout = timeout;
    }

    /// The same, as it is set.
    pub fn send_timeout(&self) -> Time {
        self.options.send_timeout
    }

    /// `CCI_OPT_ENDPT_RECV_BUF_COUNT`
    ///
    /// # Errors
    /// [`Status::Invalid`] for 0.
    pub fn set_recv_buffers(&mut self, count: u32) -> Result<(), Status> {
        self.options.recv_buffers = at_least_one(count)?;
        Ok(())
    }

    /// The same, as it is set.
    pub fn recv_buffers(&self) -> u32 {
        self.options.recv_buffers
    }

    /// `CCI_OPT_ENDPT_SEND_BUF_COUNT`
    ///
    /// # Errors
    /// [`Status::Invalid`] for 0.
    pub fn set_send_buffers(&mut self, count: u32) -> Result<(), Status> {
        self.options.send_buffers = at_least_one(count)?;
        Ok(())
    }

    /// The same, as it is set.
    pub fn send_buffers(&self) -> u32 {
        self.options.send_buffers
    }

    /// `CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT`: of all connections, now and later; 0 is off.
    pub fn set_keepalive(&mut self, now: Time, timeout: Time) {
        self.options.keepalive = timeout;
        // What a closing connection has there bounds how long it lingers.
        for id in self
            .table
            .names(|connection| connection.state != State::Closing)
        {
            // Each name was just found.
            let _ = self.set_connection_keepalive(now, id, timeout);
        }
    }

    /// The same, as it is set.
    pub fn keepalive(&self) -> Time {
        self.options.keepalive
    }

    /// `CCI_OPT_CONN_SEND_TIMEOUT`: of operations that begin from now on.
    ///
    /// # Errors
    /// [`Status::Invalid`] if there is no such connection.
    pub fn set_connection_send_timeout(
        &mut self,
        id: ConnectionId,
        timeout: Time,
    ) -> Result<(), Status> {
        let connection = self.table.get_mut(id).ok_or(Status::Invalid)?;
        connection.send_timeout = timeout;
        Ok(())
    }

    /// The same, as it is set.
    ///
    /// # Errors
    /// [`Status::Invalid`] if there is no such connection.
    pub fn connection_send_timeout(&self, id: ConnectionId) -> Result<Time, Status> {
        let connection = self.table.get(id).ok_or(Status::Invalid)?;
        Ok(connection.send_timeout)
    }

    /// `CCI_OPT_CONN_KEEPALIVE_TIMEOUT`; without effect on an unreliable connection.
    ///
    /// # Errors
    /// [`Status::Invalid`] if there is no such connection.
    pub fn set_connection_keepalive(
        &mut self,
        now: Time,
        id: ConnectionId,
        timeout: Time,
    ) -> Result<(), Status> {
        let connection = self.table.get_mut(id).ok_or(Status::Invalid)?;
        connection.keepalive = timeout;
        connection.heard_at = now;
        connection.is_probed = false;
        self.arm(id);
        Ok(())
    }

    /// The same, as it is set.
    ///
    /// # Errors
    /// [`Status::Invalid`] if there is no such connection.
    pub fn connection_keepalive(&self, id: ConnectionId) -> Result<Time, Status> {
        let connection = self.table.get(id).ok_or(Status::Invalid)?;
        Ok(connection.keepalive)
    }
}

fn at_least_one(count: u32) -> Result<u32, Status> {
    match count {
        0 => Err(Status::Invalid),
        count => Ok(count),
    }
}
