//! A connection between the supervisor and the launcher on another machine.
//!
//! ```text
//!   handshake line   length (4 bytes, little-endian)   message   length   message …
//! ```
//!
//! Messages are in postcard's format. The handshake carries the version, which must
//! be the same at both ends. What a login shell prints before the handshake is skipped.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Our end: receives messages of type `I`. Never blocks.
pub(crate) struct Link<I> {
    from: OwnedFd,
    to: Option<OwnedFd>,
    outgoing_queue: Vec<u8>,
    received: Vec<u8>,
    connected: bool,
    last_received: Instant,
    last_sent: Instant,
    of: PhantomData<I>,
}

/// Why nothing more arrives.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The other end closed the connection.
    Closed,
    /// Reading from the connection failed.
    Io(io::Error),
    /// The first bytes that arrived are no handshake.
    NoHandshake,
    /// The bytes that arrived are no message.
    Garbage,
}

impl<I: DeserializeOwned> Link<I> {
    /// Makes the two descriptors non-blocking, and sends the handshake.
    pub(crate) fn new(from: OwnedFd, to: OwnedFd) -> io::Result<Link<I>> {
        rustix::io::ioctl_fionbio(&from, true)?;
        rustix::io::ioctl_fionbio(&to, true)?;
        let now = Instant::now();
        Ok(Link {
            from,
            to: Some(to),
            outgoing_queue: HANDSHAKE.as_bytes().to_vec(),
            received: Vec::new(),
            connected: false,
            last_received: now,
            last_sent: now,
            of: PhantomData,
        })
    }

    /// Sends `message` as soon as the other end takes it.
    pub(crate) fn send(&mut self, message: &impl Serialize) {
        let bytes = postcard::to_stdvec(message).expect("messages are plain data");
        let length = u32::try_from(bytes.len()).expect("messages are short");
        self.outgoing_queue.extend_from_slice(&length.to_le_bytes());
        self.outgoing_queue.extend_from_slice(&bytes);
        self.last_sent = Instant::now();
    }

    /// Poll this for reading.
    pub(crate) fn incoming(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }

    /// Poll this for writing, while there is something to be written.
    pub(crate) fn outgoing(&self) -> Option<BorrowedFd<'_>> {
        let to = self.to.as_ref().filter(|_| !self.outgoing_queue.is_empty());
        to.map(AsFd::as_fd)
    }

    /// Whether more is waiting to be sent than should be.
    pub(crate) fn is_full(&self) -> bool {
        self.outgoing_queue.len() > MAX_QUEUED
    }

    /// Writes what the other end takes. What can't be written is dropped: reading
    /// reports why.
    pub(crate) fn on_writable(&mut self) {
        let Some(to) = &self.to else { return };
        let piece = &self.outgoing_queue[..self.outgoing_queue.len().min(MAX_TRANSFER)];
        match rustix::io::write(to, piece) {
            Ok(count) => drop(self.outgoing_queue.drain(..count)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => {
                self.outgoing_queue.clear();
                self.to = None;
            }
        }
    }

    /// Reads what has arrived; call it when the connection is readable.
    ///
    /// # Errors
    /// Why nothing more will arrive; what arrived before was returned.
    pub(crate) fn on_readable(&mut self) -> Result<Vec<I>, Broken> {
        let mut bytes = [0; MAX_TRANSFER];
        match rustix::io::read(&self.from, &mut bytes[..]) {
            Ok(0) => return Err(Broken::Closed),
            Ok(count) => self.received.extend_from_slice(&bytes[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(Broken::Io(error.into())),
        }
        self.last_received = Instant::now();
        if !self.connected && !self.take_handshake()? {
            return Ok(Vec::new());
        }
        self.take_messages()
    }

    /// Whether the handshake of the other end has arrived.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected
    }

    /// How long ago something arrived, and something was sent.
    pub(crate) fn silence(&self, now: Instant) -> (Duration, Duration) {
        (
            now.saturating_duration_since(self.last_received),
            now.saturating_duration_since(self.last_sent),
        )
    }

    fn take_handshake(&mut self) -> Result<bool, Broken> {
        let handshake = HANDSHAKE.as_bytes();
        let mut windows = self.received.windows(handshake.len());
        if let Some(at) = windows.position(|window| window == handshake) {
            self.received.drain(..at + handshake.len());
            self.connected = true;
        } else if self.received.len() > MAX_BEFORE_HANDSHAKE {
            return Err(Broken::NoHandshake);
        }
        Ok(self.connected)
    }

    fn take_messages(&mut self) -> Result<Vec<I>, Broken> {
        let mut messages = Vec::new();
        let mut rest = &self.received[..];
        while let Some((length, after)) = rest.split_first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            if length > MAX_MESSAGE {
                return Err(Broken::Garbage);
            }
            let Some((message, after)) = after.split_at_checked(length) else {
                break;
            };
            messages.push(postcard::from_bytes(message).map_err(|_| Broken::Garbage)?);
            rest = after;
        }
        let taken = self.received.len() - rest.len();
        self.received.drain(..taken);
        Ok(messages)
    }
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Broken::Closed => write!(f, "the connection was closed"),
            Broken::Io(error) => write!(f, "the connection failed: {error}"),
            Broken::NoHandshake => write!(
                f,
                "what answers is no yod of this version ({})",
                env!("CARGO_PKG_VERSION")
            ),
            Broken::Garbage => write!(f, "the connection carried no valid message"),
        }
    }
}

/// The only argument of yod on another machine.
pub(crate) const REMOTE: &str = "--remote";
/// How long an end may send nothing before it sends a heartbeat.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// How long an end may receive nothing before it takes the other end for lost.
pub(crate) const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a host may take until its handshake: logging in may be slow.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(60);
const HANDSHAKE: &str = concat!("yod-remote ", env!("CARGO_PKG_VERSION"), " 2\n");
const MAX_BEFORE_HANDSHAKE: usize = 1 << 16;
const MAX_QUEUED: usize = 1 << 20;
/// In bytes: environment and arguments of a job fit several times.
const MAX_MESSAGE: usize = 1 << 24;
const MAX_TRANSFER: usize = 1 << 15;

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (Link<Vec<u8>>, Link<Vec<u8>>) {
        let (a, b) = UnixStream::pair().unwrap();
        let link = |socket: UnixStream| {
            let other = socket.try_clone().unwrap();
            Link::new(socket.into(), other.into()).unwrap()
        };
        (link(a), link(b))
    }

    fn push(link: &mut Link<Vec<u8>>) {
        while link.outgoing().is_some() {
            link.on_writable();
        }
    }

    #[test]
    fn messages_arrive_in_order_after_what_a_shell_printed() {
        let (mut here, mut there) = pair();
        here.outgoing_queue
            .splice(0..0, *b"Welcome to yod-remote country\n");
        here.send(&vec![1u8]);
        here.send(&vec![2u8; 1000]);
        push(&mut here);
        let messages = there.on_readable().unwrap();
        assert_eq!(messages, [vec![1], vec![2; 1000]]);
        assert!(there.is_connected());
        drop(here);
        assert!(matches!(there.on_readable(), Err(Broken::Closed)));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let (mut here, mut there) = pair();
        here.outgoing_queue.extend_from_slice(&[255; 8]);
        push(&mut here);
        assert!(matches!(there.on_readable(), Err(Broken::Garbage)));
        let (mut here, mut there) = pair();
        here.outgoing_queue = vec![b'x'; MAX_TRANSFER];
        let refusal = loop {
            if here.outgoing_queue.is_empty() {
                here.outgoing_queue = vec![b'x'; MAX_TRANSFER];
            }
            here.on_writable();
            if let Err(broken) = there.on_readable() {
                break broken;
            }
        };
        assert!(matches!(refusal, Broken::NoHandshake));
    }
}
