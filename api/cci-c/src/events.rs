//! Events: from the endpoint to the application, and back.

use crate::cells::{EndpointCell, EventCell, Held, Tables, endpoint_of};
use crate::convert::{code, give};
use cci_sys::{
    Connection, Endpoint, Event, EventConnect, EventKeepalive, EventRecv, EventRequest, EventSend,
    event_type,
};
use lintel_cci_endpoint::{ConnectionId, ConnectionInfo, GivenBack, Status};
use std::ffi::{c_int, c_void};
use std::ptr;

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_get_event(endpoint: *mut Endpoint, event: *mut *mut Event) -> c_int {
    // SAFETY: the caller's, as the header says.
    let cleared = unsafe { give(event, ptr::null_mut()) };
    // SAFETY: as above.
    let cell = cleared.and_then(|()| unsafe { endpoint_of(endpoint) });
    let taken = cell.and_then(|cell| {
        let convert = |tables: &mut Tables, event| to_c(cell, tables, event);
        cell.inner.take_event_as(convert)
    });
    // SAFETY: as above; it was written before.
    code(taken.and_then(|taken| unsafe { give(event, taken) }))
}

/// The event as C sees it; what it held if it is of a connection that was dropped.
#[inline]
fn to_c(
    cell: &EndpointCell,
    tables: &mut Tables,
    event: lintel_cci_endpoint::Event,
) -> Result<*mut Event, GivenBack> {
    use lintel_cci_endpoint::Event as E;
    let dropped = GivenBack::Nothing;
    let (public, held) = match event {
        E::Sent {
            connection,
            context,
            status,
        } => (
            sent(
                tables.connection(connection).ok_or(dropped)?,
                context,
                status,
            ),
            Held::Nothing,
        ),
        E::Received {
            connection,
            message,
        } => {
            let Some(connection) = tables.connection(connection) else {
                return Err(GivenBack::Message(message));
            };
            let recv = EventRecv {
                r#type: event_type::RECV,
                len: message.len(),
                ptr: message.address() as *const c_void,
                connection,
            };
            (Event { recv }, Held::Message(message))
        }
        E::Connected { context, result } => {
            let connect = connected(event_type::CONNECT, context, result, tables, cell);
            (Event { connect }, Held::Nothing)
        }
        E::Accepted { context, result } => {
            let accept = connected(event_type::ACCEPT, context, result, tables, cell);
            (Event { accept }, Held::Nothing)
        }
        E::Request {
            connection,
            attribute,
            data,
        } => {
            let request = EventRequest {
                r#type: event_type::CONNECT_REQUEST,
                data_len: data.len(),
                data_ptr: match data.is_empty() {
                    true => ptr::null(),
                    false => data.address() as *const c_void,
                },
                attribute: attribute as u32,
            };
            let held = Held::Request {
                id: connection,
                data,
                is_answered: false,
            };
            (Event { request }, held)
        }
        E::KeepaliveTimedOut { connection } => {
            let keepalive = EventKeepalive {
                r#type: event_type::KEEPALIVE_TIMEDOUT,
                connection: tables.connection(connection).ok_or(dropped)?,
            };
            (Event { keepalive }, Held::Nothing)
        }
    };
    Ok(tables.hand_out(public, held, cell))
}

fn sent(connection: *mut Connection, context: u64, status: Status) -> Event {
    Event {
        send: EventSend {
            r#type: event_type::SEND,
            status: status as u32,
            connection,
            context: context as *mut c_void,
        },
    }
}

fn connected(
    r#type: u32,
    context: u64,
    result: Result<(ConnectionId, ConnectionInfo), Status>,
    tables: &mut Tables,
    cell: &EndpointCell,
) -> EventConnect {
    let (status, connection) = match result {
        Ok((id, info)) => (Status::Success, tables.open(id, info, cell)),
        Err(status) => (status, ptr::null_mut()),
    };
    EventConnect {
        r#type,
        status: status as u32,
        context: context as *mut c_void,
        connection,
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cci_return_event(event: *mut Event) -> c_int {
    let cell: *mut EventCell = event.cast();
    // SAFETY: the caller's: null, or an event that wasn't returned.
    code(unsafe { take_back(cell) })
}

/// # Safety
/// `cell` is null or an event that wasn't returned.
unsafe fn take_back(cell: *mut EventCell) -> Result<(), Status> {
    if cell.is_null() {
        return Err(Status::Invalid);
    }
    // SAFETY: it isn't null, so it was handed out.
    let endpoint = unsafe { (*cell).endpoint };
    // SAFETY: the endpoint is open, or the pointer is null.
    let Ok(endpoint) = (unsafe { endpoint_of(endpoint.cast_mut().cast()) }) else {
        // SAFETY: its endpoint is gone and has left the cell to its return.
        drop(unsafe { Box::from_raw(cell) });
        return Ok(());
    };
    endpoint.inner.give_back(|tables| {
        // SAFETY: cells live as long as the endpoint; the lock orders access.
        let (is_out, held) = unsafe { ((*cell).is_out, &(*cell).held) };
        let is_unanswered = matches!(
            held,
            Held::Request {
                is_answered: false,
                ..
            }
        );
        if !is_out || is_unanswered {
            return Err(Status::Invalid);
        }
        // SAFETY: it was handed out by these tables.
        Ok(match unsafe { tables.take_back(cell) } {
            Held::Nothing => GivenBack::Nothing,
            Held::Message(message) => GivenBack::Message(message),
            Held::Request { data, .. } => GivenBack::Request(data),
        })
    })
}
