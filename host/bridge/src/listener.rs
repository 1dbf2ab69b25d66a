//! The agent's end of its connections: a unix socket in `/dev/shm`, open to its user
//! alone. The system reports each client's process and user.

use crate::hello::{ACCEPTED, HELLO_BYTES, Hello, path, seqpacket};
use crate::region::SharedRegion;
use rustix::fs::{Mode, lstat, unlink};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    accept_with, bind, listen, recv, sendmsg,
};
use rustix::process::geteuid;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Clients that can wait to be accepted.
const BACKLOG: i32 = 64;

/// The socket on which an agent accepts clients.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    path: PathBuf,
}

impl Listener {
    /// Listens for the clients of a node. The caller holds the agent's lock: a socket that
    /// is there was left by an agent that has ended, and is removed.
    ///
    /// # Errors
    /// A system call failed; the error names the path and, if it is another's, its owner.
    pub fn open(job: &str, nid: u32) -> io::Result<Listener> {
        let path = path(job, nid);
        let in_use = |error| path_error(&path, error);
        match unlink(&path) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(in_use(error)),
        }
        let socket = seqpacket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        bind(&socket, &SocketAddrUnix::new(&path)?).map_err(in_use)?;
        let listener = Listener { socket, path };
        rustix::fs::chmod(&listener.path, Mode::RUSR | Mode::WUSR)?;
        listen(&listener.socket, BACKLOG)?;
        Ok(listener)
    }

    /// The next client that connects, if there is one. Never blocks.
    ///
    /// # Errors
    /// A system call failed; at most that client is lost.
    pub fn accept(&self) -> io::Result<Option<ClientSocket>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match accept_with(&self.socket, flags) {
            Ok(socket) => {
                let credentials = socket_peercred(&socket)?;
                let peer = Peer {
                    process: credentials.pid.as_raw_nonzero().get(),
                    uid: credentials.uid.as_raw(),
                };
                Ok(Some(ClientSocket { socket, peer }))
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = unlink(&self.path);
    }
}

/// A client that has connected. It has no region yet.
#[derive(Debug)]
pub struct ClientSocket {
    socket: OwnedFd,
    peer: Peer,
}

impl ClientSocket {
    /// The client's process and user, as the system reports them.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// The client's first message.
    ///
    /// # Errors
    /// `WouldBlock` until it arrives; `InvalidData` if it is no hello of this version.
    pub fn hello(&self) -> io::Result<Hello> {
        let mut bytes = [0; HELLO_BYTES];
        // With TRUNC the length is that of the whole message.
        let (_, length) = recv(&self.socket, &mut bytes, RecvFlags::TRUNC)?;
        let hello = Hello::parse(&bytes).filter(|_| length == HELLO_BYTES);
        hello.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Accepts the client: sends it its region.
    ///
    /// # Errors
    /// The socket is closed, or can't take the message.
    pub fn send_region(&self, region: &SharedRegion) -> io::Result<()> {
        let files = [region.file()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        let flags = SendFlags::NOSIGNAL;
        sendmsg(
            &self.socket,
            &[IoSlice::new(&[ACCEPTED])],
            &mut control,
            flags,
        )?;
        Ok(())
    }

    /// Whether the client has closed its end, or broken the protocol by sending more.
    pub fn is_closed(&self) -> bool {
        let mut byte = [0];
        let peeked = recv(&self.socket, &mut byte, RecvFlags::PEEK);
        !matches!(peeked, Err(Errno::AGAIN | Errno::INTR))
    }
}

impl AsFd for ClientSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A client's process, as the system reports it for the socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The system's process identifier.
    pub process: i32,
    /// The process's effective user when it connected.
    pub uid: u32,
}

/// Why the path of the socket can't be used.
fn path_error(path: &Path, error: Errno) -> io::Error {
    let whose = match lstat(path) {
        Ok(found) if found.st_uid != geteuid().as_raw() => {
            format!(": it belongs to user {}, have it removed", found.st_uid)
        }
        _ => String::new(),
    };
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("{}: {error}{whose}", path.display()))
}
