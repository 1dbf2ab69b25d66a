//! An endpoint, as the application calls it.

use crate::address::{is_group, resolve, uri};
use crate::body::Body;
use crate::device::Device;
use crate::events::{Event, Message};
use crate::helper;
use crate::link::{Link, Opened};
use crate::state::{State, now};
use lintel_cci::{
    Access, Attribute, Completion, ConnectionId, Notify, Resources, RmaRequest, Status, Time,
};
use lintel_claim::Claim;
use lintel_presence::{Bell, Sleeper, StatsWriter};
use lintel_types::ProcessId;
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Polls in vain after which senders needn't ring.
const BUSY_POLLS: u32 = 8;
/// Polls in vain, one after the other, between two yields of the processor.
const YIELD_AFTER: u32 = 64;
/// How long an endpoint that closes tries to send what waits for room.
const LINGER: Duration = Duration::from_secs(1);

/// Why there is no endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// The service isn't of the transport's form.
    Service,
    /// Another endpoint has the name.
    InUse,
    /// The system refused; the log has the reason.
    System,
}

impl From<OpenError> for Status {
    fn from(error: OpenError) -> Status {
        match error {
            OpenError::Service => Status::Invalid,
            OpenError::InUse => Status::Busy,
            OpenError::System => Status::Error,
        }
    }
}

/// How a message is sent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MessageFlags {
    /// Returns when it has ended, without an event.
    pub blocking: bool,
    /// The buffer stays lent until the event.
    pub no_copy: bool,
    /// Without an event.
    pub silent: bool,
}

impl MessageFlags {
    fn notify(self) -> Notify {
        match (self.blocking, self.silent) {
            (true, _) => Notify::Caller,
            (false, true) => Notify::Silent,
            (false, false) => Notify::Event,
        }
    }

    fn body(self, pieces: &[Claim]) -> Body {
        match self.no_copy {
            true => Body::Lent(pieces.to_vec()),
            false => Body::copied(pieces),
        }
    }
}

/// What the application's threads and the helper share.
pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    pub(crate) bell: Option<Bell>,
    pub(crate) statistics: Option<StatsWriter>,
    /// The network's socket, if it has one.
    pub(crate) socket: Option<OwnedFd>,
    /// Readable when the helper is to stop.
    pub(crate) wake: OwnedFd,
    pub(crate) stops: AtomicBool,
    pub(crate) empty_polls: AtomicU32,
    /// Of them, those since the last event.
    idle_polls: AtomicU32,
}

/// One endpoint. All calls may come from any thread.
pub struct Endpoint {
    shared: Arc<Shared>,
    helper: Option<JoinHandle<()>>,
    device: Device,
    me: ProcessId,
}

impl Endpoint {
    /// Opens an endpoint on a device; `service` is its port or "pid/id". With a handle it
    /// has a descriptor that is readable while events wait.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(
        device: &Device,
        service: Option<&str>,
        with_handle: bool,
    ) -> Result<Endpoint, OpenError> {
        let service = service.or(device.service.as_deref());
        let Opened {
            mut link,
            bell,
            statistics,
        } = Link::open(device, service)?;
        let descriptor = |_| OpenError::System;
        let new_handle = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let handle = match with_handle {
            true => Some(new_handle().map_err(descriptor)?),
            false => None,
        };
        let socket = match link.wake().descriptor() {
            Some(socket) => Some(socket.try_clone_to_owned().map_err(|_| OpenError::System)?),
            None => None,
        };
        let me = link.me();
        // `RandomState` is seeded by the system.
        let seed = RandomState::new().build_hasher().finish();
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(link, device, seed, handle)),
            bell,
            statistics,
            socket,
            wake: new_handle().map_err(descriptor)?,
            stops: AtomicBool::new(false),
            empty_polls: AtomicU32::new(0),
            idle_polls: AtomicU32::new(0),
        });
        let helper = {
            let shared = shared.clone();
            lintel_runtime::spawn("cci", move || helper::run(&shared))
        };
        Ok(Endpoint {
            shared,
            helper: Some(helper.map_err(|_| OpenError::System)?),
            device: device.clone(),
            me,
        })
    }

    /// By which others reach it.
    pub fn uri(&self) -> String {
        uri(&self.device, self.me)
    }

    /// Where it was opened.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The descriptor that is readable while events wait.
    pub fn with_handle<R>(&self, look: impl FnOnce(Option<BorrowedFd<'_>>) -> R) -> R {
        look(self.lock().handle.as_ref().map(AsFd::as_fd))
    }

    /// What it holds.
    pub fn resources(&self) -> Resources {
        self.lock().rules.resources()
    }

    /// Bytes of memory for receive buffers and for messages that wait on their way, about.
    pub fn bytes(&self) -> u64 {
        self.lock().around.bytes()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock()
    }

    /// A call under the lock, after which events are announced.
    fn with<R>(&self, call: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = call(&mut state);
        state.update_handle();
        result
    }

    /// The next event, if there is one. Makes progress; never blocks.
    ///
    /// # Errors
    /// `Again`; `NoBuffers` if the application holds all receive buffers too.
    pub fn take_event(&self) -> Result<Event, Status> {
        let mut state = self.lock();
        if state.around.events.is_empty() {
            state.progress();
        }
        let event = state.around.events.pop_front();
        state.update_handle();
        if let Some(event) = event {
            self.shared.idle_polls.store(0, Ordering::Relaxed);
            return Ok(event);
        }
        let is_exhausted = state.rules.is_exhausted();
        drop(state);
        self.note_empty_poll();
        match is_exhausted {
            true => Err(Status::NoBuffers),
            false => Err(Status::Again),
        }
    }

    /// An application that polls needn't be woken.
    fn note_empty_poll(&self) {
        let polls = &self.shared.empty_polls;
        let count = polls.load(Ordering::Relaxed).wrapping_add(1);
        polls.store(count, Ordering::Relaxed);
        if let Some(bell) = &self.shared.bell {
            if count % BUSY_POLLS == 0 && bell.is_armed() {
                bell.disarm();
            }
        }
        let idle = self.shared.idle_polls.load(Ordering::Relaxed) + 1;
        self.shared
            .idle_polls
            .store(idle % YIELD_AFTER, Ordering::Relaxed);
        // The process that it waits for may need this processor.
        if idle == YIELD_AFTER {
            std::thread::yield_now();
        }
    }

    /// Gives a message back.
    pub fn return_message(&self, message: Message) {
        self.with(|state| {
            state.around.buffers.give_back(message.buffer);
            state.rules.on_returned(&mut state.around);
        });
    }

    /// Gives a connection request's data back.
    pub fn return_request(&self, data: Message) {
        self.lock().around.buffers.give_back(data.buffer);
    }

    /// Asks the endpoint of a URI for a connection.
    ///
    /// # Errors
    /// `Invalid`: the URI isn't of this transport, it names a group and the attribute doesn't or
    /// the other way round, or the data are too long; `AddressNotAvailable`; `NoMemory`;
    /// `NotImplemented`: multicast over shared memory.
    pub fn connect(
        &self,
        uri: &str,
        data: Claim,
        attribute: Attribute,
        context: u64,
        timeout: Option<Time>,
    ) -> Result<(), Status> {
        if data.len() > lintel_cci::MAX_REQUEST.into() {
            return Err(Status::Invalid);
        }
        if attribute.is_multicast() && self.device.ip.is_none() {
            return Err(Status::NotImplemented);
        }
        let request = lintel_cci::Request {
            to: resolve(&self.device, uri)?,
            attribute,
            context,
            timeout,
        };
        if attribute.is_multicast() {
            return self.with(|state| state.join(request));
        }
        if is_group(request.to) {
            return Err(Status::Invalid);
        }
        let data = Body::copied(&[data]);
        self.with(|state| {
            let host = &mut state.around;
            state.rules.connect(request, &data, host).map(|_| ())
        })
    }

    /// Accepts a request.
    ///
    /// # Errors
    /// `Invalid` if it was answered before.
    pub fn accept(&self, request: ConnectionId, context: u64) -> Result<(), Status> {
        self.with(|state| {
            let host = &mut state.around;
            state.rules.accept(request, context, host)
        })
    }

    /// Rejects a request.
    ///
    /// # Errors
    /// `Invalid` if it was answered before.
    pub fn reject(&self, request: ConnectionId) -> Result<(), Status> {
        self.with(|state| state.rules.reject(request, &mut state.around))
    }

    /// Drops a connection.
    ///
    /// # Errors
    /// `Invalid` if there is none of that name.
    pub fn disconnect(&self, connection: ConnectionId) -> Result<(), Status> {
        self.with(|state| {
            let host = &mut state.around;
            host.groups.leave(connection);
            state.rules.disconnect(connection, host)
        })
    }

    /// Sends a message. With `no_copy` the pieces' memory must stay until it has ended.
    ///
    /// # Errors
    /// As [`lintel_cci::Endpoint::send`]; with `blocking` also how it has ended.
    pub fn send(
        &self,
        connection: ConnectionId,
        pieces: &[Claim],
        context: u64,
        flags: MessageFlags,
    ) -> Result<(), Status> {
        let length = lintel_memory::length(pieces);
        let message = self.message(length, || flags.body(pieces))?;
        self.start_send(connection, message, context, flags)
    }

    /// As [`send`](Self::send), of bytes that are copied; `no_copy` counts for nothing.
    ///
    /// # Errors
    /// As there.
    pub fn send_bytes(
        &self,
        connection: ConnectionId,
        bytes: &[u8],
        context: u64,
        flags: MessageFlags,
    ) -> Result<(), Status> {
        let message = self.message(bytes.len() as u64, || Body::of_bytes(bytes))?;
        self.start_send(connection, message, context, flags)
    }

    /// A message that the device can carry.
    fn message(
        &self,
        length: u64,
        body: impl FnOnce() -> Body,
    ) -> Result<lintel_cci::Message<Body>, Status> {
        let length = u32::try_from(length).map_err(|_| Status::MessageSize)?;
        if length > self.device.max_send {
            return Err(Status::MessageSize);
        }
        Ok(lintel_cci::Message {
            length,
            body: body(),
        })
    }

    fn start_send(
        &self,
        connection: ConnectionId,
        message: lintel_cci::Message<Body>,
        context: u64,
        flags: MessageFlags,
    ) -> Result<(), Status> {
        self.complete(context, flags, |state, completion| {
            let host = &mut state.around;
            state.rules.send(connection, message, completion, host)
        })
    }

    /// Reads or writes a peer's memory.
    ///
    /// # Errors
    /// As [`lintel_cci::Endpoint::rma`]; with `blocking` also how it has ended.
    pub fn rma(
        &self,
        connection: ConnectionId,
        request: RmaRequest,
        message: Option<Claim>,
        context: u64,
        flags: MessageFlags,
    ) -> Result<(), Status> {
        let message = message
            .map(|bytes| self.message(bytes.len(), || flags.body(&[bytes])))
            .transpose()?;
        self.complete(context, flags, |state, completion| {
            let host = &mut state.around;
            state
                .rules
                .rma(connection, request, message, completion, host)
        })
    }

    /// Starts an operation, and waits for its end if it is to block.
    fn complete(
        &self,
        context: u64,
        flags: MessageFlags,
        start: impl FnOnce(&mut State, Completion) -> Result<(), Status>,
    ) -> Result<(), Status> {
        let notify = flags.notify();
        if notify != Notify::Caller {
            return self.with(|state| start(state, Completion { context, notify }));
        }
        let caller = self.with(|state| {
            state.next_caller += 1;
            let context = state.next_caller;
            start(state, Completion { context, notify }).map(|()| context)
        })?;
        match self.wait_for(caller) {
            Status::Success => Ok(()),
            status => Err(status),
        }
    }

    fn wait_for(&self, caller: u64) -> Status {
        loop {
            let mut state = self.lock();
            let returned = state.around.returned.remove(&caller).or_else(|| {
                state.progress();
                state.around.returned.remove(&caller)
            });
            state.update_handle();
            drop(state);
            if let Some(status) = returned {
                return status;
            }
            self.note_empty_poll();
        }
    }

    /// Registers memory; returns its key.
    pub fn register(&self, memory: Claim, access: Access) -> u64 {
        let mut state = self.lock();
        loop {
            // An odd step visits every number; the seed makes the keys differ from run to run.
            state.next_key = state.next_key.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let key = state.next_key;
            if state.rules.register(key, memory.len(), access) {
                state.around.memory.insert(key, memory);
                return key;
            }
        }
    }

    /// Ends a registration; returns when nobody uses the memory any more.
    ///
    /// # Errors
    /// `Invalid` if there is none of that key.
    pub fn deregister(&self, key: u64) -> Result<(), Status> {
        let lease = {
            let mut state = self.lock();
            if !state.rules.deregister(key) {
                return Err(Status::Invalid);
            }
            state.around.memory.remove(key).ok_or(Status::Invalid)?
        };
        lease.revoke();
        // A peer may be in a copy that the kernel is carrying out.
        while !self.lock().around.link.recall(&lease) {
            self.with(State::progress);
            std::thread::yield_now();
        }
        Ok(())
    }

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

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Release);
        // The counter was 0: this can't fail.
        let _ = rustix::io::write(&self.shared.wake, &1u64.to_ne_bytes());
        if let Some(bell) = &self.shared.bell {
            bell.wake(Sleeper::Helper);
        }
        if let Some(helper) = self.helper.take() {
            // A helper that has panicked has reported it.
            let _ = helper.join();
        }
        let until = Instant::now() + LINGER;
        while self.lock().around.link.flush() && Instant::now() < until {
            std::thread::yield_now();
        }
    }
}
