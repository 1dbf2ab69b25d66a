//! What handles of C point to: the public structure first, then what the library needs.
//!
//! Cells of connections and events are used again and freed with their endpoint, so a handle
//! that was given up is noticed as long as the endpoint lives.

use cci_sys::{Connection, Event, RmaHandle};
use lintel_cci_endpoint::{ConnectionId, ConnectionInfo, Message};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;

/// Cells of dropped connections that aren't used again yet.
const RESTING: usize = 64;

#[repr(C)]
pub(crate) struct EndpointCell {
    pub(crate) public: cci_sys::Endpoint,
    pub(crate) inner: lintel_cci_endpoint::Endpoint<Tables>,
    pub(crate) has_handle: bool,
}

#[repr(C)]
pub(crate) struct ConnectionCell {
    pub(crate) public: Connection,
    pub(crate) id: ConnectionId,
    pub(crate) is_open: bool,
}

#[repr(C)]
pub(crate) struct EventCell {
    pub(crate) public: Event,
    /// Null once the endpoint was destroyed.
    pub(crate) endpoint: *const EndpointCell,
    pub(crate) held: Held,
    pub(crate) is_out: bool,
}

/// What comes back with an event.
pub(crate) enum Held {
    Nothing,
    Message(Message),
    Request {
        id: ConnectionId,
        data: Message,
        is_answered: bool,
    },
}

/// The handles of an endpoint.
pub(crate) struct Tables {
    /// Open connections by their slot; null where there is none.
    connections: Vec<*mut ConnectionCell>,
    resting: VecDeque<*mut ConnectionCell>,
    /// All cells of events, and those of them that the application hasn't got.
    events: Vec<*mut EventCell>,
    spare: Vec<*mut EventCell>,
    handles: FxHashMap<u64, Box<RmaHandle>>,
}

// SAFETY: all pointers name boxes that the tables own; the endpoint's lock around them orders access.
unsafe impl Send for Tables {}

impl Tables {
    pub(crate) fn new() -> Tables {
        Tables {
            connections: Vec::new(),
            resting: VecDeque::new(),
            events: Vec::new(),
            spare: Vec::new(),
            handles: FxHashMap::default(),
        }
    }

    /// The handle of a new connection.
    pub(crate) fn open(
        &mut self,
        id: ConnectionId,
        info: ConnectionInfo,
        endpoint: *const EndpointCell,
    ) -> *mut Connection {
        let cell = ConnectionCell {
            public: Connection {
                max_send_size: info.max_send,
                endpoint: endpoint.cast_mut().cast(),
                attribute: info.attribute as u32,
                context: info.context as *mut c_void,
            },
            id,
            is_open: true,
        };
        let place = match self.resting.len() > RESTING {
            true => self.resting.pop_front(),
            false => None,
        };
        let place = match place {
            Some(place) => {
                // SAFETY: resting cells are boxes that only the tables use.
                unsafe { place.write(cell) };
                place
            }
            None => Box::into_raw(Box::new(cell)),
        };
        let slot = id.slot as usize;
        if slot >= self.connections.len() {
            self.connections.resize(slot + 1, ptr::null_mut());
        }
        self.connections[slot] = place;
        place.cast()
    }

    /// The handle of an open connection.
    pub(crate) fn connection(&self, id: ConnectionId) -> Option<*mut Connection> {
        self.cell(id).map(|cell| cell.cast())
    }

    fn cell(&self, id: ConnectionId) -> Option<*mut ConnectionCell> {
        let cell = *self.connections.get(id.slot as usize)?;
        // SAFETY: it is null or a box that the tables own.
        let has_name = unsafe { cell.as_ref() }.is_some_and(|cell| cell.id == id);
        has_name.then_some(cell)
    }

    pub(crate) fn close(&mut self, id: ConnectionId) {
        if let Some(cell) = self.cell(id) {
            // SAFETY: it is a box that the tables own.
            unsafe { (*cell).is_open = false };
            self.connections[id.slot as usize] = ptr::null_mut();
            self.resting.push_back(cell);
        }
    }

    /// The handle of an event.
    #[inline]
    pub(crate) fn hand_out(
        &mut self,
        public: Event,
        held: Held,
        endpoint: *const EndpointCell,
    ) -> *mut Event {
        let cell = EventCell {
            public,
            endpoint,
            held,
            is_out: true,
        };
        let place = match self.spare.pop() {
            Some(place) => {
                // SAFETY: spare cells are boxes that only the tables use.
                unsafe { place.write(cell) };
                place
            }
            None => {
                let place = Box::into_raw(Box::new(cell));
                self.events.push(place);
                place
            }
        };
        place.cast()
    }

    /// Takes an event back, with what it held.
    ///
    /// # Safety
    /// `cell` was handed out by these tables.
    pub(crate) unsafe fn take_back(&mut self, cell: *mut EventCell) -> Held {
        self.spare.push(cell);
        // SAFETY: cells live as long as the tables.
        let cell = unsafe { &mut *cell };
        cell.is_out = false;
        std::mem::replace(&mut cell.held, Held::Nothing)
    }

    /// The handle of a registration.
    pub(crate) fn register(&mut self, key: u64, handle: RmaHandle) -> *mut RmaHandle {
        let mut handle = Box::new(handle);
        let pointer = &raw mut *handle;
        self.handles.insert(key, handle);
        pointer
    }

    pub(crate) fn deregister(&mut self, key: u64) {
        self.handles.remove(&key);
    }
}

impl Drop for Tables {
    /// Frees all cells, but those of events that the application still has: these are freed
    /// when they are returned.
    fn drop(&mut self) {
        let open = self.connections.iter().filter(|cell| !cell.is_null());
        for cell in open.chain(&self.resting) {
            // SAFETY: it came from `Box::into_raw`, and nobody else frees it.
            drop(unsafe { Box::from_raw(*cell) });
        }
        for cell in &self.events {
            // SAFETY: cells live as long as the tables.
            if unsafe { (**cell).is_out } {
                // SAFETY: as above.
                unsafe { (**cell).endpoint = ptr::null() };
            } else {
                // SAFETY: it came from `Box::into_raw`, and the application hasn't got it.
                drop(unsafe { Box::from_raw(*cell) });
            }
        }
    }
}

/// The cell behind an endpoint's handle.
///
/// # Safety
/// `endpoint` is null or an open endpoint.
pub(crate) unsafe fn endpoint_of<'a>(
    endpoint: *mut cci_sys::Endpoint,
) -> Result<&'a EndpointCell, lintel_cci_endpoint::Status> {
    // SAFETY: the public structure is the first member of the cell, which lives while the
    // endpoint is open.
    let cell = unsafe { endpoint.cast::<EndpointCell>().as_ref() };
    cell.ok_or(lintel_cci_endpoint::Status::Invalid)
}

/// The cells behind a connection's handle.
///
/// # Safety
/// `connection` is null or a connection of an open endpoint.
pub(crate) unsafe fn connection_of<'a>(
    connection: *mut Connection,
) -> Result<(&'a EndpointCell, &'a ConnectionCell), lintel_cci_endpoint::Status> {
    // SAFETY: the public structure is the first member of the cell, which lives as long as
    // the endpoint.
    let cell = unsafe { connection.cast::<ConnectionCell>().as_ref() };
    let cell = cell.filter(|cell| cell.is_open);
    let cell = cell.ok_or(lintel_cci_endpoint::Status::Invalid)?;
    // SAFETY: the caller guarantees that the endpoint is open.
    let endpoint = unsafe { endpoint_of(cell.public.endpoint) }?;
    Ok((endpoint, cell))
}
