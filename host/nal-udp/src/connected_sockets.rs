//! Sockets connected to the peers that are sent to most. The kernel keeps the route of a
//! connected socket, and looks it up for each datagram otherwise (0.4 of 3.1 µs for a
//! datagram there and back, `examples/datagram_cost.rs`). These sockets only send: receivers
//! identify a sender by the header, not by the port that a datagram came from.

use crate::socket::SOCKET_BUFFER;
use lintel_types::ProcessId;
use nix::sys::socket::{setsockopt, sockopt};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

/// Connected sockets of a process at most, however many peers it has.
const MAX_SOCKETS: usize = 4;
/// Datagrams in a row to one peer, after which a socket is connected to it.
const CONNECT_AFTER: u32 = 16;

struct ConnectedSocket {
    to: ProcessId,
    socket: UdpSocket,
}

/// The connected sockets of a process.
pub(crate) struct ConnectedSockets {
    node: Ipv4Addr,
    /// Most recently used first.
    sockets: Vec<ConnectedSocket>,
    /// The peer without a connected socket that was sent to last, and how often in a row.
    candidate: ProcessId,
    row: u32,
}

impl ConnectedSockets {
    pub(crate) fn new(node: Ipv4Addr) -> ConnectedSockets {
        ConnectedSockets {
            node,
            sockets: Vec::with_capacity(MAX_SOCKETS),
            candidate: ProcessId::default(),
            row: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.sockets.len()
    }

    /// The socket that is connected to that process, if there is one.
    #[inline]
    pub(crate) fn to(&mut self, process: ProcessId) -> Option<&UdpSocket> {
        match self.sockets.first() {
            Some(connected) if connected.to == process => {}
            _ => self.find(process)?,
        }
        self.sockets.first().map(|connected| &connected.socket)
    }

    /// Closes the socket connected to a process.
    pub(crate) fn close(&mut self, process: ProcessId) {
        self.sockets.retain(|connected| connected.to != process);
    }

    /// Puts a process's socket first; connects one if the process is sent to often enough.
    fn find(&mut self, process: ProcessId) -> Option<()> {
        if let Some(index) = self
            .sockets
            .iter()
            .position(|connected| connected.to == process)
        {
            self.sockets[..=index].rotate_right(1);
            return Some(());
        }
        if self.candidate != process {
            self.candidate = process;
            self.row = 0;
        }
        self.row += 1;
        if self.row < CONNECT_AFTER {
            return None;
        }
        self.row = 0;
        let socket = self.connect(process).ok()?;
        self.sockets.truncate(MAX_SOCKETS - 1);
        let connected = ConnectedSocket {
            to: process,
            socket,
        };
        self.sockets.insert(0, connected);
        Some(())
    }

    fn connect(&self, to: ProcessId) -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind(SocketAddrV4::new(self.node, 0))?;
        let _ = setsockopt(&socket, sockopt::SndBuf, &SOCKET_BUFFER);
        socket.connect(SocketAddrV4::new(to.nid.into(), to.pid as u16))?;
        Ok(socket)
    }
}
