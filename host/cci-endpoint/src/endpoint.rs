//! An endpoint, as the application calls it.

use crate::address::{is_group, resolve, uri};
use crate::body::Fresh;
use crate::device::Device;
use crate::events::{Event, Message};
use crate::helper;
use crate::link::{Link, Opened};
use crate::shared::{Guarded, Shared};
use crate::state::State;
use lintel_cci::{
    Access, Attribute, Completion, ConnectionId, Notify, Resources, RmaRequest, Status, Time,
};
use lintel_claim::{Claim, Lease};
use lintel_presence::Sleeper;
use lintel_types::ProcessId;
use parking_lot::{MappedMutexGuard, Mutex};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long an endpoint that closes tries to send what waits for room.
const LINGER: Duration = Duration::from_secs(1);
/// How long a peer may be in the middle of a copy.
const ACCESS_TIMEOUT: Duration = Duration::from_secs(2);

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

    fn fresh(self, pieces: &[Claim]) -> Fresh<'_> {
        match self.no_copy {
            true => Fresh::Lent(pieces),
            false => Fresh::Copied(pieces),
        }
    }
}

/// A message or a request's data that is given back, if there is one.
#[derive(Debug)]
pub enum GivenBack {
    /// None.
    Nothing,
    /// A message.
    Message(Message),
    /// The data of a connection request.
    Request(Message),
}

/// One endpoint. All calls may come from any thread. `T` are the handles that an interface above
/// keeps of its connections and events; the endpoint's lock protects them too.
pub struct Endpoint<T = ()> {
    shared: Arc<Shared<T>>,
    helper: Option<JoinHandle<()>>,
    device: Device,
    me: ProcessId,
}

impl Endpoint {
    /// Opens an endpoint without handles, as [`open_with`](Endpoint::open_with) does.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(
        device: &Device,
        service: Option<&str>,
        with_handle: bool,
    ) -> Result<Endpoint, OpenError> {
        Endpoint::open_with(device, service, with_handle, ())
    }
}

impl<T: Send + 'static> Endpoint<T> {
    /// Opens an endpoint on a device; `service` is its port or "pid/id". With a handle it
    /// has a descriptor that is readable while events wait.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open_with(
        device: &Device,
        service: Option<&str>,
        with_handle: bool,
        handles: T,
    ) -> Result<Endpoint<T>, OpenError> {
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
        let state = State::new(link, device, seed, handle);
        let shared = Arc::new(Shared {
            guarded: Mutex::new(Guarded { state, handles }),
            bell,
            statistics,
            socket,
            wake: new_handle().map_err(descriptor)?,
            stops: AtomicBool::new(false),
            polls: AtomicU32::new(0),
            idle_polls: AtomicU32::new(0),
            counts_all_polls: !with_handle,
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
}

impl<T> Endpoint<T> {
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

    pub(crate) fn lock(&self) -> MappedMutexGuard<'_, State> {
        self.shared.lock()
    }

    /// The handles, under the lock.
    pub fn with_handles<R>(&self, use_them: impl FnOnce(&mut T) -> R) -> R {
        use_them(&mut self.shared.guarded.lock().handles)
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
        self.take_event_as(|_, event| Ok(event))
    }

    /// As [`take_event`](Self::take_event); `convert` makes of it what the application sees,
    /// with the handles. An event that it refuses is dropped, its message given back.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn take_event_as<R>(
        &self,
        mut convert: impl FnMut(&mut T, Event) -> Result<R, GivenBack>,
    ) -> Result<R, Status> {
        let mut guarded = self.shared.guarded.lock();
        let Guarded { state, handles } = &mut *guarded;
        loop {
            if state.is_look_due() {
                state.progress();
            }
            let Some(event) = state.around.events.pop_front() else {
                break;
            };
            match convert(handles, event) {
                Ok(converted) => {
                    state.update_handle();
                    drop(guarded);
                    self.shared.note_event();
                    return Ok(converted);
                }
                Err(refused) => state.take_back(refused),
            }
        }
        state.update_handle();
        let is_exhausted = state.rules.is_exhausted();
        drop(guarded);
        self.shared.note_empty_poll();
        match is_exhausted {
            true => Err(Status::NoBuffers),
            false => Err(Status::Again),
        }
    }

    /// Gives back what `take` takes out of the handles.
    ///
    /// # Errors
    /// Those of `take`.
    #[inline]
    pub fn give_back(
        &self,
        take: impl FnOnce(&mut T) -> Result<GivenBack, Status>,
    ) -> Result<(), Status> {
        let mut guarded = self.shared.guarded.lock();
        let given = take(&mut guarded.handles)?;
        guarded.state.take_back(given);
        Ok(())
    }

    /// Gives a message back.
    pub fn return_message(&self, message: Message) {
        self.lock().take_back(GivenBack::Message(message));
    }

    /// Gives a connection request's data back.
    pub fn return_request(&self, data: Message) {
        self.lock().take_back(GivenBack::Request(data));
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
        self.with(|state| {
            let (host, data) = (&mut state.around, Fresh::Copied(&[data]));
            state.rules.connect(request, data, host).map(|_| ())
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
    #[inline]
    pub fn send(
        &self,
        connection: ConnectionId,
        pieces: &[Claim],
        context: u64,
        flags: MessageFlags,
    ) -> Result<(), Status> {
        let length = lintel_memory::length(pieces);
        let message = self.message(length, flags.fresh(pieces))?;
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
        let message = self.message(bytes.len() as u64, Fresh::Bytes(bytes))?;
        self.start_send(connection, message, context, flags)
    }

    /// A message that the device can carry.
    #[inline]
    fn message<'a>(
        &self,
        length: u64,
        body: Fresh<'a>,
    ) -> Result<lintel_cci::Message<Fresh<'a>>, Status> {
        let length = u32::try_from(length).map_err(|_| Status::MessageSize)?;
        if length > self.device.max_send {
            return Err(Status::MessageSize);
        }
        Ok(lintel_cci::Message { length, body })
    }

    #[inline]
    fn start_send(
        &self,
        connection: ConnectionId,
        message: lintel_cci::Message<Fresh<'_>>,
        context: u64,
        flags: MessageFlags,
    ) -> Result<(), Status> {
        self.complete(context, flags, |state, completion| {
            let host = &mut state.around;
            state.rules.send(connection, message, completion, host)?;
            state.after_start(connection);
            Ok(())
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
        let pieces = [message.unwrap_or_default()];
        let message = message
            .map(|bytes| self.message(bytes.len(), flags.fresh(&pieces)))
            .transpose()?;
        self.complete(context, flags, |state, completion| {
            let host = &mut state.around;
            let rules = &mut state.rules;
            rules.rma(connection, request, message, completion, host)?;
            state.after_start(connection);
            Ok(())
        })
    }

    /// Starts an operation, and waits for its end if it is to block.
    #[inline]
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
            self.shared.note_empty_poll();
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
    /// `Invalid` if there is none of that key; `Error` if a peer was stopped in the middle of a copy.
    pub fn deregister(&self, key: u64) -> Result<(), Status> {
        let lease = {
            let mut state = self.lock();
            if !state.rules.deregister(key) {
                return Err(Status::Invalid);
            }
            state.around.memory.remove(key).ok_or(Status::Invalid)?
        };
        match self.recall(&[lease]) {
            true => Ok(()),
            false => Err(Status::Error),
        }
    }

    /// Ends the use of memory that was lent; false if a peer seems to have been stopped meanwhile.
    fn recall(&self, leases: &[Lease]) -> bool {
        leases.iter().for_each(Lease::revoke);
        let is_recalled = |lease| self.lock().around.link.recall(lease);
        // A peer may be in a copy that the kernel is carrying out.
        self.progress_until(ACCESS_TIMEOUT, || leases.iter().all(is_recalled))
    }

    /// Makes progress until something holds; false if it doesn't within that time.
    fn progress_until(&self, time: Duration, mut holds: impl FnMut() -> bool) -> bool {
        let until = Instant::now() + time;
        while !holds() {
            if Instant::now() >= until {
                return false;
            }
            self.with(|state| {
                state.progress();
                state.check_time();
            });
            std::thread::yield_now();
        }
        true
    }
}

impl<T> Drop for Endpoint<T> {
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
        {
            let state = &mut *self.lock();
            state.rules.finish(&mut state.around);
        }
        // What waits for the window is sent as acknowledgements come.
        self.progress_until(LINGER, || {
            let mut state = self.lock();
            !state.around.link.flush() && state.rules.resources().pending == 0
        });
        let leases = self.lock().around.memory.take_leases();
        self.recall(&leases);
    }
}
