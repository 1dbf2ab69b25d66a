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

/// Whether it is the name of a multicast group.
pub(crate) fn is_group(process: ProcessId) -> bool {
    Ipv4Addr::from(process.nid).is_multicast()
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
        (Some(ip), Some(service)) => Ok(ProcessId::new(ip.into(), port_of(service)?)),
    }
}

/// The port that a service is. A word that doesn't begin with a digit stands for any that is
/// free, as in the public library: Mercury passes the name of its host.
fn port_of(service: &str) -> Result<u32, AddressError> {
    if !service.starts_with(|first: char| first.is_ascii_digit()) {
        return Ok(ProcessId::PID_ANY);
    }
    let port: u16 = service.parse().map_err(|_| AddressError::Malformed)?;
    Ok(port.into())
}

fn process_of(pid: &str, id: &str) -> Result<ProcessId, AddressError> {
    let number = |text: &str| text.parse::<u32>().map_err(|_| AddressError::Malformed);
    let process = ProcessId::new(number(pid)?, number(id)?);
    match process.pid == ProcessId::PID_ANY {
        true => Err(AddressError::Malformed),
        false => Ok(process),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_over_ip_is_a_port_and_a_word_any_that_is_free() {
        assert_eq!(port_of("22222"), Ok(22222));
        assert_eq!(port_of("localhost"), Ok(ProcessId::PID_ANY));
        for service in ["70000", "80x"] {
            assert_eq!(port_of(service), Err(AddressError::Malformed), "{service}");
        }
    }
}
