//! The options of an endpoint and of its connections.

use crate::endpoint::Endpoint;
use crate::state::now;
use lintel_cci::{ConnectionId, Status, Time};

impl<T> Endpoint<T> {
    /// An option's value: microseconds, or a count.
    ///
    /// # Errors
    /// `Invalid` if there is no such connection.
    pub fn option(&self, option: EndpointOption) -> Result<u32, Status> {
        let state = self.lock();
        let rules = &state.rules;
        let time = |time: Time| u32::try_from(time.0).unwrap_or(u32::MAX);
        Ok(match option {
            EndpointOption::SendTimeout => time(rules.send_timeout()),
            EndpointOption::RecvBuffers => rules.recv_buffers(),
            EndpointOption::SendBuffers => rules.send_buffers(),
            EndpointOption::Keepalive => time(rules.keepalive()),
            EndpointOption::ConnectionSendTimeout(id) => time(rules.connection_send_timeout(id)?),
            EndpointOption::ConnectionKeepalive(id) => time(rules.connection_keepalive(id)?),
        })
    }

    /// Sets an option: microseconds, or a count.
    ///
    /// # Errors
    /// `Invalid` if there is no such connection, or the value can't be.
    pub fn set_option(&self, option: EndpointOption, value: u32) -> Result<(), Status> {
        let (mut state, time) = (self.lock(), Time(value.into()));
        let rules = &mut state.rules;
        match option {
            EndpointOption::SendTimeout => rules.set_send_timeout(time),
            EndpointOption::RecvBuffers => rules.set_recv_buffers(value)?,
            EndpointOption::SendBuffers => rules.set_send_buffers(value)?,
            EndpointOption::Keepalive => rules.set_keepalive(now(), time),
            EndpointOption::ConnectionSendTimeout(id) => {
                rules.set_connection_send_timeout(id, time)?;
            }
            EndpointOption::ConnectionKeepalive(id) => {
                rules.set_connection_keepalive(now(), id, time)?;
            }
        }
        Ok(())
    }
}

/// The options that have a number for a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointOption {
    /// `CCI_OPT_ENDPT_SEND_TIMEOUT`
    SendTimeout,
    /// `CCI_OPT_ENDPT_RECV_BUF_COUNT`
    RecvBuffers,
    /// `CCI_OPT_ENDPT_SEND_BUF_COUNT`
    SendBuffers,
    /// `CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT`
    Keepalive,
    /// `CCI_OPT_CONN_SEND_TIMEOUT`
    ConnectionSendTimeout(ConnectionId),
    /// `CCI_OPT_CONN_KEEPALIVE_TIMEOUT`
    ConnectionKeepalive(ConnectionId),
}
