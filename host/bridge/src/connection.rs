//! Where clients meet their agent: a unix socket in `/dev/shm`, open to its user
//! alone. The system vouches for who comes in; the pages go out through it.

use crate::region::SharedRegion;
use lintel_claim::Key;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, lstat, unlink};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags,
    SocketType, accept_with, bind, connect, listen, recv, recvmsg, send, sendmsg, shutdown,
    socket_with,
};
use rustix::process::geteuid;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// "bridge" and the version of what is spoken across.
const HELLO: u64 = 0x6272_6964_6765_0003;
/// Bytes of what a client says first: that, the generation, and its key.
const HELLO_BYTES: usize = 32;
/// What the agent answers: the pages come with it.
const ACCEPTED: u8 = 1;
/// How long a client waits for the agent's answer.
const ANSWER: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};
const WAITING_CLIENTS: i32 = 64;

/// Where the agent of a job's node listens.
pub fn path(job: &str, nid: u32) -> PathBuf {
    Path::new("/dev/shm").join(format!("lintel-{job}-{nid:x}.agent"))
}

/// Why there is no way to an agent.
#[derive(Debug)]
pub enum ConnectError {
    /// Nobody listens.
    NoAgent,
    /// The agent is another user's.
    ForeignAgent(u32),
    /// What is in the socket's place is none.
    NotASocket(PathBuf),
    /// The agent is of another version, or refuses.
    Refused,
    /// The agent's pages came, and this process has no descriptor left for them.
    NoDescriptor,
    /// The system refused.
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

/// Who has come in, by the system's word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The process's number to the system.
    pub process: i32,
    /// Its user.
    pub uid: u32,
}

/// What a client says first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hello {
    /// What its handles begin with.
    pub generation: u16,
    /// To be named in each copy of its memory.
    pub key: Key,
}

impl Hello {
    fn to_bytes(self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        let generation = self.generation.into();
        let words = [HELLO, generation, self.key.address, self.key.nonce];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&u64::to_ne_bytes(word));
        }
        bytes
    }

    fn parse(bytes: &[u8; HELLO_BYTES]) -> Option<Hello> {
        let mut words = [0; HELLO_BYTES / 8];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("a chunk has eight bytes"));
        }
        let [HELLO, generation, address, nonce] = words else {
            return None;
        };
        Some(Hello {
            generation: u16::try_from(generation).ok()?,
            key: Key { address, nonce },
        })
    }
}

/// The agent's end.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    path: PathBuf,
}

impl Listener {
    /// Opens the door of a node. Whoever does must know that no other agent lives:
    /// what a dead one left there is removed.
    ///
    /// # Errors
    /// What the system said.
    pub fn open(job: &str, nid: u32) -> io::Result<Listener> {
        let path = path(job, nid);
        let in_the_way = |error| occupied(&path, error);
        match unlink(&path) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(in_the_way(error)),
        }
        let socket = seqpacket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        bind(&socket, &SocketAddrUnix::new(&path)?).map_err(in_the_way)?;
        let listener = Listener { socket, path };
        rustix::fs::chmod(&listener.path, Mode::RUSR | Mode::WUSR)?;
        listen(&listener.socket, WAITING_CLIENTS)?;
        Ok(listener)
    }

    /// The next client at the door, if there is one.
    ///
    /// # Errors
    /// What the system said; that client is lost, no other.
    pub fn accept(&self) -> io::Result<Option<PendingClient>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match accept_with(&self.socket, flags) {
            Ok(socket) => {
                let who = socket_peercred(&socket)?;
                let peer = Peer {
                    process: who.pid.as_raw_nonzero().get(),
                    uid: who.uid.as_raw(),
                };
                Ok(Some(PendingClient { socket, peer }))
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

/// A client at the agent's end.
#[derive(Debug)]
pub struct PendingClient {
    socket: OwnedFd,
    peer: Peer,
}

impl PendingClient {
    /// Who it is.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// What it says first, once it has.
    ///
    /// # Errors
    /// `WouldBlock` while it hasn't; `InvalidData` if it speaks otherwise.
    pub fn hello(&self) -> io::Result<Hello> {
        let mut bytes = [0; HELLO_BYTES];
        // A longer one is cut, and told by its length.
        let (_, length) = recv(&self.socket, &mut bytes, RecvFlags::TRUNC)?;
        let hello = Hello::parse(&bytes).filter(|_| length == HELLO_BYTES);
        hello.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Hands it its pages.
    ///
    /// # Errors
    /// What the system said.
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

    /// Whether it has closed its end, or sent something, which it never should.
    pub fn is_closed(&self) -> bool {
        let mut byte = [0];
        let peeked = recv(&self.socket, &mut byte, RecvFlags::PEEK);
        !matches!(peeked, Err(Errno::AGAIN | Errno::INTR))
    }
}

impl AsFd for PendingClient {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The client's end. The agent ends what it keeps for the client when it closes.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
}

impl Channel {
    /// Calls the agent of a node.
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

    /// Sleeps until the agent goes, or somebody here [hangs up](Self::close). The
    /// agent says nothing more by this way.
    pub fn await_close(&self) {
        let mut ends = [PollFd::new(&self.socket, PollFlags::IN | PollFlags::RDHUP)];
        while matches!(poll(&mut ends, None), Err(Errno::INTR)) {}
    }

    /// Ends what the agent keeps, and whoever awaits the end.
    pub fn close(&self) {
        // Where it isn't connected any more there is nothing to end.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

/// Whether there is a socket of this user's. In a folder with the sticky bit nobody else
/// can put something in its place afterwards.
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

/// Why the name of the socket can't be taken.
fn occupied(path: &Path, error: Errno) -> io::Error {
    let whose = match lstat(path) {
        Ok(found) if found.st_uid != geteuid().as_raw() => {
            format!(": it belongs to user {}, have it removed", found.st_uid)
        }
        _ => String::new(),
    };
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("{}: {error}{whose}", path.display()))
}

fn seqpacket(flags: SocketFlags) -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

fn receive_region(socket: &OwnedFd) -> Result<SharedRegion, ConnectError> {
    let mut ends = [PollFd::new(socket, PollFlags::IN)];
    if poll(&mut ends, Some(&ANSWER))? == 0 {
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
    // The system has dropped the file and says so.
    if files.is_none() && got.flags.contains(ReturnFlags::CTRUNC) {
        return Err(ConnectError::NoDescriptor);
    }
    match files {
        Some(file) if got.bytes == 1 && byte == [ACCEPTED] => Ok(SharedRegion::open(file)?),
        _ => Err(ConnectError::Refused),
    }
}
