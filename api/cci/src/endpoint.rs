//! Endpoints.

use crate::Result;
use crate::event::Event;
use lintel_cci_endpoint::{Attribute, Device, EndpointOption, Resources, Status, Time};
use lintel_claim::Region;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Polls in vain before [`Endpoint::wait`] sleeps.
const POLLS: u32 = 1000;
/// The longest sleep of [`Endpoint::wait`]; afterwards it looks and sleeps again.
const LONGEST: Duration = Duration::from_secs(3600);

/// An endpoint (cci_create_endpoint). Clones are the same one; it is destroyed with the last of
/// them and of what was made on it. Peers then get `Disconnected`.
///
/// Its descriptor ([`AsFd`]) is readable while events wait; it is only to be polled.
///
/// ```
/// use cci2::*;
/// use std::time::Duration;
/// let device = devices().into_iter().next().ok_or(Status::NoDevice)?;
/// let endpoint = Endpoint::open(&device)?;
/// assert!(endpoint.uri().contains("://"));
/// assert!(endpoint.get_event()?.is_none());
/// assert!(endpoint.wait(Duration::from_millis(1))?.is_none());
/// # Ok::<(), Status>(())
/// ```
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) open: Arc<Open>,
}

pub(crate) struct Open {
    pub(crate) inner: lintel_cci_endpoint::Endpoint,
    /// A duplicate of the one that the endpoint writes to.
    descriptor: OwnedFd,
}

/// A connection request, besides the server's URI.
///
/// The default has no data, is reliable and ordered, and waits for the answer for ever.
#[derive(Clone, Copy, Debug)]
pub struct Connect<'a> {
    /// Data for the server, up to [`MAX_REQUEST`](crate::MAX_REQUEST) bytes.
    pub data: &'a [u8],
    /// What the connection promises.
    pub attribute: Attribute,
    /// Returned in [`Event::Connected`].
    pub context: u64,
    /// How long the server may take to answer.
    pub timeout: Option<Duration>,
}

impl Default for Connect<'_> {
    fn default() -> Self {
        Connect {
            data: &[],
            attribute: Attribute::Ro,
            context: 0,
            timeout: None,
        }
    }
}

impl Endpoint {
    /// Opens an endpoint on a device.
    ///
    /// # Errors
    /// `Busy` if the service that the configuration names is taken; `Error` if the system refuses
    /// (standard error says why).
    pub fn open(device: &Device) -> Result<Endpoint> {
        Endpoint::open_service(device, None)
    }

    /// Opens an endpoint at a service: "pid/id" over shared memory, otherwise a port
    /// (cci_create_endpoint_at).
    ///
    /// # Errors
    /// As [`open`](Self::open); `Invalid` if the service isn't of that form.
    pub fn open_at(device: &Device, service: &str) -> Result<Endpoint> {
        Endpoint::open_service(device, Some(service))
    }

    fn open_service(device: &Device, service: Option<&str>) -> Result<Endpoint> {
        let inner = lintel_cci_endpoint::Endpoint::open(device, service, true)?;
        let descriptor = inner.with_handle(|handle| {
            let handle = handle.expect("it was asked for");
            handle.try_clone_to_owned().map_err(|_| Status::Error)
        })?;
        Ok(Endpoint {
            open: Arc::new(Open { inner, descriptor }),
        })
    }

    /// By which others reach it.
    pub fn uri(&self) -> String {
        self.open.inner.uri()
    }

    /// Where it was opened.
    pub fn device(&self) -> &Device {
        self.open.inner.device()
    }

    /// How many connections, operations and messages it holds.
    pub fn resources(&self) -> Resources {
        self.open.inner.resources()
    }

    /// Asks a server for a connection (cci_connect); [`Event::Connected`] has the answer. With a
    /// multicast attribute the URI names a group, such as `sock://239.255.0.1:20000`; no server
    /// decides then.
    ///
    /// # Errors
    /// `Invalid` if the URI is of another transport, the data are too long, or the URI names a
    /// group and the attribute doesn't, or the other way round; `AddressNotAvailable` if the host
    /// isn't known or the group can't be joined; `NotImplemented` for multicast over shared
    /// memory; `NoMemory`.
    pub fn connect(&self, server: &str, request: Connect<'_>) -> Result<()> {
        let data = copy_of(request.data);
        let timeout = request.timeout.map(time);
        let (attribute, context) = (request.attribute, request.context);
        let inner = &self.open.inner;
        inner.connect(server, data.claim(), attribute, context, timeout)
    }

    /// The next event, if one is there (cci_get_event). Never waits.
    ///
    /// # Errors
    /// `NoBuffers` if there is none and the application holds all receive buffers.
    pub fn get_event(&self) -> Result<Option<Event>> {
        match self.open.inner.take_event() {
            Ok(event) => Ok(Some(Event::new(event, self))),
            Err(Status::Again) => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// Waits for the next event, at most so long. It polls for a moment, then sleeps.
    ///
    /// # Errors
    /// As [`get_event`](Self::get_event), at the end of the time.
    pub fn wait(&self, timeout: Duration) -> Result<Option<Event>> {
        let until = Instant::now().checked_add(timeout);
        let mut polls = 0;
        loop {
            match self.get_event() {
                Ok(None) | Err(Status::NoBuffers) if polls < POLLS => {}
                Ok(None) | Err(Status::NoBuffers) if self.sleep(until) => {}
                found => return found,
            }
            polls += 1;
        }
    }

    /// Sleeps until events wait, or the time is over: then it returns false at once.
    fn sleep(&self, until: Option<Instant>) -> bool {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        let left = until.map_or(LONGEST, left).min(LONGEST);
        let mut watched = [PollFd::new(&self.open.descriptor, PollFlags::IN)];
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        // However it ends, the caller looks again.
        !left.is_zero() && poll(&mut watched, Some(&timeout)).map_or(true, |_| true)
    }

    /// The value of an option (cci_get_opt): microseconds, or a count.
    ///
    /// # Errors
    /// `Invalid` if it is of a connection that isn't open.
    pub fn option(&self, option: EndpointOption) -> Result<u32> {
        self.open.inner.option(option)
    }

    /// Sets an option (cci_set_opt): microseconds, or a count.
    ///
    /// ```
    /// use cci2::*;
    /// # let device = devices().into_iter().next().ok_or(Status::NoDevice)?;
    /// # let endpoint = Endpoint::open(&device)?;
    /// endpoint.set_option(EndpointOption::SendTimeout, 500_000)?;
    /// assert_eq!(endpoint.option(EndpointOption::SendTimeout)?, 500_000);
    /// # Ok::<(), Status>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if it is of a connection that isn't open, or can't have that value.
    pub fn set_option(&self, option: EndpointOption, value: u32) -> Result<()> {
        self.open.inner.set_option(option, value)
    }
}

impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.open.descriptor.as_fd()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.uri())
    }
}

/// The bytes, where they can be claimed.
pub(crate) fn copy_of(bytes: &[u8]) -> Region {
    let region = Region::new(bytes.len() as u64);
    region.write(0, bytes);
    region
}

/// In the interface's unit, not shorter than asked for.
fn time(length: Duration) -> Time {
    let whole = length.as_nanos().div_ceil(1000);
    Time(u64::try_from(whole).unwrap_or(u64::MAX))
}
