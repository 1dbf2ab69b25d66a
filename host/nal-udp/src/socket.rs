//! The socket of a process, and what its network allows.

use crate::config::OpenError;
use crate::gro::GroPolicy;
use lintel_claim::{Claim, receive_datagram, receive_gso_batch, send_datagram, take_report};
use lintel_reliable::{FURTHER_BYTES, GAP_BYTES, Key};
use lintel_types::ProcessId;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, SockaddrIn, getsockopt, recv, sendto, setsockopt, sockopt};
use rustix::net::SendFlags;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// Bytes asked for as the socket's receive buffer and as its send buffer. What the kernel
/// grants for receiving is the window advertised to peers.
pub(crate) const SOCKET_BUFFER: usize = 4 << 20;
/// IP and UDP headers of a datagram.
const IP_UDP_HEADER_BYTES: u32 = 28;
/// UDP payload of the longest datagram worth sending: a further part and its header. Of 64 KiB, and
/// of a few times that, such parts leave little for the first one, which the receiver copies once more.
const MAX_UDP_PAYLOAD: u32 = (255 << 8) + (FURTHER_BYTES + GAP_BYTES) as u32;
/// The MTU if the interface doesn't say one: Ethernet's.
const DEFAULT_MTU: u32 = 1500;

/// A socket that never blocks, and the job's key. Both halves use it: [`TxBatch`] seals and
/// sends, [`Inlet`] receives and authenticates.
///
/// [`TxBatch`]: crate::tx_batch::TxBatch
/// [`Inlet`]: crate::inlet::Inlet
pub(crate) struct Socket {
    socket: UdpSocket,
    key: Key,
    process: ProcessId,
    max_datagram: u32,
    recv_window: u32,
}

/// What one system call has received.
pub(crate) struct Received {
    /// Bytes of all datagrams in it.
    pub(crate) bytes: u64,
    /// Bytes of each datagram but the last, which may be shorter; `None` if only the
    /// datagrams themselves say it.
    pub(crate) each: Option<u64>,
}

impl Socket {
    pub(crate) fn open(
        nid: u32,
        port: Option<u16>,
        secret: &[u8; 32],
    ) -> Result<Socket, OpenError> {
        let address = Ipv4Addr::from(nid);
        let wanted = SocketAddrV4::new(address, port.unwrap_or(0));
        let socket = UdpSocket::bind(wanted).map_err(|error| explain(error, wanted))?;
        let pid = socket.local_addr().map_err(OpenError::System)?.port();
        let system = |error: nix::errno::Errno| OpenError::System(error.into());
        // A smaller buffer than asked for is granted without an error.
        setsockopt(&socket, sockopt::RcvBuf, &SOCKET_BUFFER).map_err(system)?;
        setsockopt(&socket, sockopt::SndBuf, &SOCKET_BUFFER).map_err(system)?;
        setsockopt(&socket, sockopt::Ipv4RecvErr, &true).map_err(system)?;
        let granted = getsockopt(&socket, sockopt::RcvBuf).map_err(system)?;
        let max_datagram = MAX_UDP_PAYLOAD.min(interface_mtu(address) - IP_UDP_HEADER_BYTES);
        Ok(Socket {
            socket,
            key: Key::new(secret),
            process: ProcessId::new(nid, pid.into()),
            max_datagram,
            // Several peers send, and the kernel books more than the bytes.
            recv_window: u32::try_from(granted / 2).unwrap_or(u32::MAX),
        })
    }

    #[inline]
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    pub(crate) fn process(&self) -> ProcessId {
        self.process
    }

    /// Bytes of the longest datagram that this node sends: UDP payload, header included.
    pub(crate) fn max_datagram(&self) -> u32 {
        self.max_datagram
    }

    /// Bytes that the kernel queues here before it drops datagrams, about.
    pub(crate) fn recv_window(&self) -> u32 {
        self.recv_window
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    #[inline]
    pub(crate) fn send(
        &self,
        to: ProcessId,
        pieces: &[Claim],
        segment: Option<u16>,
    ) -> io::Result<()> {
        let address = SocketAddrV4::new(Ipv4Addr::from(to.nid), to.pid as u16);
        send_datagram(self.socket.as_fd(), Some(address), pieces, segment)
    }

    /// Sends a datagram of those bytes.
    pub(crate) fn send_bytes(&self, to: ProcessId, bytes: &[u8]) -> io::Result<()> {
        let address = SocketAddrV4::new(Ipv4Addr::from(to.nid), to.pid as u16);
        let address = SockaddrIn::from(address);
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        sendto(self.socket.as_raw_fd(), bytes, &address, flags)?;
        Ok(())
    }

    /// Receives what is next into the pieces.
    #[inline]
    pub(crate) fn receive(&self, gro: &mut GroPolicy, pieces: &[Claim]) -> io::Result<Received> {
        let taken = match gro.is_enabled {
            true => receive_gso_batch(self.socket.as_fd(), pieces),
            false => receive_datagram(self.socket.as_fd(), pieces).map(|bytes| (bytes, None)),
        };
        let (bytes, segment) = taken.inspect_err(|error| self.on_error(gro, error))?;
        let each = (!gro.may_be_coalesced).then_some(segment.unwrap_or(bytes) as u64);
        if gro.on_arrival() {
            self.set_gro(gro, true);
        }
        Ok(Received {
            bytes: bytes as u64,
            each,
        })
    }

    /// Copies the beginning of the next datagram, which stays the next; returns the
    /// datagram's length.
    pub(crate) fn peek(&self, gro: &mut GroPolicy, beginning: &mut [u8]) -> io::Result<usize> {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
        let peeked = recv(self.socket.as_raw_fd(), beginning, flags).map_err(io::Error::from);
        peeked.inspect_err(|error| self.on_error(gro, error))
    }

    #[inline]
    fn on_error(&self, gro: &mut GroPolicy, error: &io::Error) {
        if would_block(error) && gro.on_empty() {
            self.set_gro(gro, false);
        }
    }

    #[cold]
    fn set_gro(&self, gro: &mut GroPolicy, is_enabled: bool) {
        // A kernel before 5.0 has no UDP_GRO and gives datagrams one by one.
        if setsockopt(&self.socket, sockopt::UdpGroSegment, &is_enabled).is_err() {
            gro.disable();
        }
    }

    /// A process at whose address no socket is open: an earlier datagram to it was answered by
    /// ICMP "port unreachable".
    pub(crate) fn take_refused(&self) -> Option<ProcessId> {
        loop {
            let (to, error) = take_report(self.socket.as_fd()).ok()?;
            if error.kind() == io::ErrorKind::ConnectionRefused {
                return Some(ProcessId::new((*to.ip()).into(), to.port().into()));
            }
        }
    }

    /// Sleeps until a datagram arrives, at most for `most`.
    pub(crate) fn wait(&self, most: Duration) {
        let mut sockets = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(most).unwrap_or(PollTimeout::ZERO);
        let _ = poll(&mut sockets, timeout);
    }
}

/// Whether an error only says that the socket is empty, or full.
#[inline]
pub(crate) fn would_block(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::EWOULDBLOCK as i32)
}

/// Sends a datagram of those bytes on a connected socket. Not by the C library, whose call says
/// with two atomic instructions that a thread may be cancelled, for which this one never waits.
#[inline]
pub(crate) fn send_bytes(socket: &UdpSocket, bytes: &[u8]) -> io::Result<()> {
    rustix::net::send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
    Ok(())
}

fn explain(error: io::Error, wanted: SocketAddrV4) -> OpenError {
    match error.kind() {
        io::ErrorKind::AddrInUse => OpenError::PortInUse(*wanted.ip(), wanted.port()),
        io::ErrorKind::PermissionDenied => OpenError::PortNotAllowed(wanted.port()),
        io::ErrorKind::AddrNotAvailable => OpenError::NoSuchAddress(*wanted.ip()),
        _ => OpenError::System(error),
    }
}

/// Bytes of the longest IP packet that the interface with that address carries.
pub fn interface_mtu(address: Ipv4Addr) -> u32 {
    let name = interface_of(address);
    let path = name.map(|name| format!("/sys/class/net/{name}/mtu"));
    let text = path.and_then(|path| std::fs::read_to_string(path).ok());
    let mtu = text.and_then(|text| text.trim().parse().ok());
    // 576 is what every host takes (RFC 791).
    mtu.unwrap_or(DEFAULT_MTU).max(576)
}

/// The first IPv4 address of an interface of this machine.
pub fn interface_address(name: &str) -> Option<Ipv4Addr> {
    let interfaces = nix::ifaddrs::getifaddrs().ok()?;
    interfaces
        .filter(|interface| interface.interface_name == name)
        .find_map(|interface| Some(interface.address?.as_sockaddr_in()?.ip()))
}

/// The IPv4 addresses of this machine that are up, with their interfaces' names.
pub fn interface_addresses() -> Vec<(String, Ipv4Addr)> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else {
        return Vec::new();
    };
    let is_up = nix::net::if_::InterfaceFlags::IFF_UP;
    let up = interfaces.filter(|interface| interface.flags.contains(is_up));
    up.filter_map(|interface| {
        let address = interface.address?.as_sockaddr_in()?.ip();
        Some((interface.interface_name, address))
    })
    .collect()
}

/// The interface that has the address, or the network that it is in.
fn interface_of(address: Ipv4Addr) -> Option<String> {
    let interfaces: Vec<_> = nix::ifaddrs::getifaddrs().ok()?.collect();
    let ip = |storage: Option<nix::sys::socket::SockaddrStorage>| {
        storage.and_then(|storage| storage.as_sockaddr_in().map(|ip| ip.ip()))
    };
    let has = |mask: fn(u32) -> u32| {
        let found = interfaces.iter().find(|interface| {
            let net = ip(interface.netmask).map_or(u32::MAX, u32::from) | mask(0);
            ip(interface.address)
                .is_some_and(|own| u32::from(own) & net == u32::from(address) & net)
        });
        found.map(|interface| interface.interface_name.clone())
    };
    has(|_| u32::MAX).or_else(|| has(|_| 0))
}
