//! URIs and services, and the processes that they name.
//!
//! ```text
//!   sm://PATH/PID/ID     nid PID, pid ID, in the group that PATH names
//!   sock://HOST:PORT     nid the address of HOST, pid PORT; likewise tcp and verbs
//! ```

use crate::device::{Device, Transport};
use lintel_cci::Status;
use lintel_types::ProcessId;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

/// Why text names no endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressError {
    /// It is no URI of the device's transport, or no service.
    Malformed,
    /// The host has no address, or the path is another group's.
    Unknown,
}

impl From<AddressError> for Status {
    fn from(error: AddressError) -> Status {
        match error {
            AddressError::Malformed => Status::Invalid,
            AddressError::Unknown => Status::AddressNotAvailable,
        }
    }
}

/// The URI of an endpoint of the device.
pub(crate) fn uri(device: &Device, process: ProcessId) -> String {
    let name = device.transport.name();
    match device.transport {
        Transport::Sm => format!("{name}://{}/{}/{}", device.path, process.nid, process.pid),
        _ => format!("{name}://{}:{}", Ipv4Addr::from(process.nid), process.pid),
    }
}

/// The process that a URI names, as an endpoint of the device reaches it.
///
/// # Errors
/// [`AddressError`]
pub(crate) fn resolve(device: &Device, uri: &str) -> Result<ProcessId, AddressError> {
    let (scheme, rest) = uri.split_once("://").ok_or(AddressError::Malformed)?;
    if scheme != device.transport.name() {
        return Err(AddressError::Malformed);
    }
    match device.transport {
        Transport::Sm => {
            let (front, id) = rest.rsplit_once('/').ok_or(AddressError::Malformed)?;
            let (path, pid) = front.rsplit_once('/').ok_or(AddressError::Malformed)?;
            let process = process_of(pid, id)?;
            match path == device.path {
                true => Ok(process),
                false => Err(AddressError::Unknown),
            }
        }
        _ => resolve_host(rest),
    }
}

fn resolve_host(text: &str) -> Result<ProcessId, AddressError> {
    let (_, port) = text.rsplit_once(':').ok_or(AddressError::Malformed)?;
    let port: u16 = port.parse().map_err(|_| AddressError::Malformed)?;
    let addresses = text.to_socket_addrs().map_err(|_| AddressError::Unknown)?;
    for address in addresses {
        if let SocketAddr::V4(address) = address {
            return Ok(ProcessId::new((*address.ip()).into(), port.into()));
        }
    }
    Err(AddressError::Unknown)
}

/// The process that "pid/id", or the port of a service on that device is; the address of
/// shared memory without a service is any that is free.
///
/// # Errors
/// [`AddressError::Malformed`]
pub(crate) fn of_service(
    device: &Device,
    service: Option<&str>,
) -> Result<ProcessId, AddressError> {
    let own = rustix::process::getpid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs();
    match (device.ip, service) {
        (None, None) => Ok(ProcessId::new(own, ProcessId::PID_ANY)),
        (None, Some(service)) => {
            let (pid, id) = service.split_once('/').ok_or(AddressError::Malformed)?;
            process_of(pid, id)
        }
        (Some(ip), None) => Ok(ProcessId::new(ip.into(), ProcessId::PID_ANY)),
        (Some(ip), Some(service)) => {
            let port: u16 = service.parse().map_err(|_| AddressError::Malformed)?;
            Ok(ProcessId::new(ip.into(), port.into()))
        }
    }
}

fn process_of(pid: &str, id: &str) -> Result<ProcessId, AddressError> {
    let number = |text: &str| text.parse::<u32>().map_err(|_| AddressError::Malformed);
    let process = ProcessId::new(number(pid)?, number(id)?);
    match process.pid == ProcessId::PID_ANY {
        true => Err(AddressError::Malformed),
        false => Ok(process),
    }
}
