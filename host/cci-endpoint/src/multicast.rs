//! Multicast over UDP: groups that an endpoint sends to and receives from.
//!
//! ```text
//!   0   authenticator: keyed BLAKE3 of the group and the message, 16 bytes
//!   16  the message
//! ```
//!
//! A datagram is a message. Datagrams of processes without the user's key are dropped; a recorded
//! one may be replayed, as unreliable messages may arrive more than once. They go no further
//! than the local network (TTL 1), and processes of the sender's node receive them too.

use crate::address::is_group;
use crate::log::warn;
use constant_time_eq::constant_time_eq_n;
use lintel_cci::{ConnectionId, NoWay, Status};
use lintel_nal_udp::interface_mtu;
use lintel_types::ProcessId;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;

const TAG: usize = 16;
/// IP and UDP headers, bytes.
const HEADERS: u32 = 28;
/// Datagrams without the key that are dropped at once; others wait for the next look, so that a
/// flood of them holds up nobody.
const FORGED: u32 = 64;
/// Its key differs from that of unicast.
const JOB: &str = "cci-multicast";

/// The groups of an endpoint.
pub(crate) struct Groups {
    /// Address of the device's interface; `None` where there is no multicast.
    interface: Option<Ipv4Addr>,
    key: Option<[u8; 32]>,
    sender: Option<UdpSocket>,
    members: Vec<Member>,
    buffer: Vec<u8>,
}

/// A group that messages are received from.
struct Member {
    connection: ConnectionId,
    group: ProcessId,
    socket: Arc<UdpSocket>,
}

impl Groups {
    pub(crate) fn new(interface: Option<Ipv4Addr>) -> Groups {
        Groups {
            interface,
            key: None,
            sender: None,
            members: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Prepares to use a group; returns the longest message, bytes.
    ///
    /// # Errors
    /// `NotImplemented` where there is no multicast; `Invalid` for an address that is no group;
    /// `Error` if the key can't be had.
    pub(crate) fn prepare(&mut self, group: ProcessId) -> Result<u32, Status> {
        let interface = self.interface.ok_or(Status::NotImplemented)?;
        if !is_group(group) {
            return Err(Status::Invalid);
        }
        if self.key.is_none() {
            let key = lintel_runtime::key_of(JOB);
            self.key = Some(key.map_err(|why| failed(&why))?);
        }
        let longest = interface_mtu(interface) - HEADERS - TAG as u32;
        self.buffer.resize(longest as usize + TAG, 0);
        Ok(longest)
    }

    /// Opens the socket that all groups are sent to by.
    ///
    /// # Errors
    /// `AddressNotAvailable`; the log has the system's reason.
    pub(crate) fn open_sender(&mut self) -> Result<(), Status> {
        if self.sender.is_none() {
            let interface = self.interface.ok_or(Status::NotImplemented)?;
            self.sender = Some(sender(interface).map_err(unavailable)?);
        }
        Ok(())
    }

    /// Receives what is sent to a group.
    ///
    /// # Errors
    /// As [`open_sender`](Self::open_sender).
    pub(crate) fn join(&mut self, id: ConnectionId, group: ProcessId) -> Result<(), Status> {
        let interface = self.interface.ok_or(Status::NotImplemented)?;
        let socket = receiver(interface, group).map_err(unavailable)?;
        self.members.push(Member {
            connection: id,
            group,
            socket: Arc::new(socket),
        });
        Ok(())
    }

    /// Ends the membership that a connection is, if it is one.
    pub(crate) fn leave(&mut self, id: ConnectionId) {
        self.members.retain(|member| member.connection != id);
    }

    /// Sends a message to a group. A network that takes nothing now drops it.
    pub(crate) fn send(&self, group: ProcessId, message: &[u8]) -> Result<(), NoWay> {
        let (Some(socket), Some(key)) = (&self.sender, &self.key) else {
            return Err(NoWay);
        };
        let mut datagram = tag(key, group, message).to_vec();
        datagram.extend_from_slice(message);
        let _ = socket.send_to(&datagram, address(group));
        Ok(())
    }

    /// The next message that has arrived, and the connection that it is for.
    pub(crate) fn next(&mut self) -> Option<(ConnectionId, &[u8])> {
        let key = self.key.as_ref()?;
        for member in &self.members {
            for _ in 0..FORGED {
                let Ok(length) = member.socket.recv(&mut self.buffer) else {
                    break;
                };
                if is_authentic(key, member.group, &self.buffer[..length]) {
                    return Some((member.connection, &self.buffer[TAG..length]));
                }
            }
        }
        None
    }

    /// What becomes readable when a message arrives.
    pub(crate) fn sockets(&self) -> Vec<Arc<UdpSocket>> {
        let sockets = self.members.iter().map(|member| member.socket.clone());
        sockets.collect()
    }
}

fn failed(why: &str) -> Status {
    warn(&format!("no multicast: {why}"));
    Status::Error
}

fn unavailable(error: io::Error) -> Status {
    warn(&format!("no multicast: {error}"));
    Status::AddressNotAvailable
}

fn address(group: ProcessId) -> SocketAddrV4 {
    SocketAddrV4::new(group.nid.into(), group.pid as u16)
}

fn tag(key: &[u8; 32], group: ProcessId, message: &[u8]) -> [u8; TAG] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&group.nid.to_le_bytes());
    hasher.update(&group.pid.to_le_bytes());
    hasher.update(message);
    let hash = hasher.finalize();
    *hash.as_bytes().first_chunk().expect("it has 32 bytes")
}

/// Whether a datagram bears its authenticator. How long that takes says nothing of how many of
/// its bytes were right.
fn is_authentic(key: &[u8; 32], group: ProcessId, datagram: &[u8]) -> bool {
    datagram
        .split_first_chunk::<TAG>()
        .is_some_and(|(found, message)| constant_time_eq_n(found, &tag(key, group, message)))
}

fn sender(interface: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((interface, 0))?;
    sockopt::set_ip_multicast_if(&socket, &interface)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Several processes of a node may receive from a group: the port is shared.
fn receiver(interface: Ipv4Addr, group: ProcessId) -> io::Result<UdpSocket> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address(group))?;
    let socket = UdpSocket::from(socket);
    socket.join_multicast_v4(address(group).ip(), &interface)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_datagram_with_all_of_its_authenticator_is_taken() {
        let (key, group) = ([7; 32], ProcessId::new(0xefff_0001, 20000));
        let mut datagram = tag(&key, group, b"message").to_vec();
        datagram.extend_from_slice(b"message");
        assert!(is_authentic(&key, group, &datagram));
        for at in 0..datagram.len() {
            datagram[at] ^= 1;
            assert!(!is_authentic(&key, group, &datagram), "byte {at}");
            datagram[at] ^= 1;
        }
        assert!(!is_authentic(&key, group, &datagram[..TAG - 1]));
        assert!(!is_authentic(&[8; 32], group, &datagram));
    }
}
