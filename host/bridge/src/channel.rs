//! The client's end of its connection to the agent.

use crate::hello::{ACCEPTED, Hello, path, seqpacket};
use crate::region::SharedRegion;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, lstat};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, Shutdown,
    SocketAddrUnix, SocketFlags, connect, recvmsg, send, shutdown,
};
use rustix::process::geteuid;
use std::fmt;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// How long a client waits for the agent to accept it.
const ACCEPT_TIMEOUT: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};

/// The connection to the agent. When it closes, the agent releases all that it keeps for
/// the client.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
}

impl Channel {
    /// Connects to the agent of a node, and maps the region that the agent sends.
    ///
    /// # Errors
    /// [`ConnectError`]
    pub fn connect(
        job: &str,
        nid: u32,
        hello: Hello,
    ) -> Result<(Channel, SharedRegion), ConnectError> {
        let path = path(job, nid);
        check(&path)?;
        let socket = seqpacket(SocketFlags::CLOEXEC)?;
        connect(&socket, &SocketAddrUnix::new(&path)?)?;
        let agent = socket_peercred(&socket)?.uid;
        if agent != geteuid() {
            return Err(ConnectError::ForeignAgent(agent.as_raw()));
        }
        send(&socket, &hello.to_bytes(), SendFlags::NOSIGNAL)?;
        let region = receive_region(&socket)?;
        Ok((Channel { socket }, region))
    }

    /// Sleeps until the agent ends, or another thread [closes](Self::close) the channel.
    /// The agent sends nothing more by the socket.
    pub fn await_close(&self) {
        let mut ends = [PollFd::new(&self.socket, PollFlags::IN | PollFlags::RDHUP)];
        while matches!(poll(&mut ends, None), Err(Errno::INTR)) {}
    }

    /// Closes the channel, for the agent and for the thread that awaits it.
    pub fn close(&self) {
        // Fails if it isn't connected any more: then it is closed.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

/// Why a process has no connection to an agent. The text says what to do.
#[derive(Debug)]
pub enum ConnectError {
    /// No agent listens on this node.
    NoAgent,
    /// The socket or its agent belongs to another user, whose number is given.
    ForeignAgent(u32),
    /// The path exists and is no socket.
    NotASocket(PathBuf),
    /// The agent closed the connection or didn't answer in time: its version differs, or it
    /// has no resources for another client.
    Refused,
    /// This process has no descriptor left for the region's file.
    NoDescriptor,
    /// A system call failed.
    System(io::Error),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::NoAgent => f.write_str(
                "PTL_MODE=generic needs an agent on this node: start lintel-agent, or use \
                 yod --mode generic",
            ),
            ConnectError::ForeignAgent(uid) => write!(
                f,
                "the agent of this node belongs to user {uid}: start one of your own under \
                 another LINTEL_JOB"
            ),
            ConnectError::NotASocket(path) => write!(
                f,
                "{} is in the place of the agent's socket and is none: have it removed",
                path.display()
            ),
            ConnectError::NoDescriptor => f.write_str(
                "this process has too many files open for the agent's pages, which take one: \
                 raise its limit (ulimit -n)",
            ),
            ConnectError::Refused => f.write_str(
                "the agent of this node is of another version of Lintel, or can take no more \
                 clients: its standard error says which",
            ),
            ConnectError::System(error) => write!(f, "no way to the agent of this node: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {}

impl From<Errno> for ConnectError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::CONNREFUSED => ConnectError::NoAgent,
            error => ConnectError::System(error.into()),
        }
    }
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        ConnectError::System(error)
    }
}

/// Checks that the path is a socket of this user's. In a directory with the sticky bit no
/// other user can replace it afterwards.
fn check(path: &Path) -> Result<(), ConnectError> {
    let found = lstat(path)?;
    if found.st_uid != geteuid().as_raw() {
        return Err(ConnectError::ForeignAgent(found.st_uid));
    }
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Socket => Ok(()),
        _ => Err(ConnectError::NotASocket(path.to_owned())),
    }
}

fn receive_region(socket: &OwnedFd) -> Result<SharedRegion, ConnectError> {
    let mut ends = [PollFd::new(socket, PollFlags::IN)];
    if poll(&mut ends, Some(&ACCEPT_TIMEOUT))? == 0 {
        return Err(ConnectError::Refused);
    }
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        flags,
    )?;
    let files = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    // CTRUNC: the system dropped the file for want of a descriptor.
    if files.is_none() && got.flags.contains(ReturnFlags::CTRUNC) {
        return Err(ConnectError::NoDescriptor);
    }
    match files {
        Some(file) if got.bytes == 1 && byte == [ACCEPTED] => Ok(SharedRegion::open(file)?),
        _ => Err(ConnectError::Refused),
    }
}
