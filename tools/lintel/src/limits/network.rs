//! What bare sockets do, on loopback or between two machines: ping-pong of datagrams and of a TCP
//! connection, and streams of datagrams one by one, segmented, and as large as they
//! get.

use std::io::ErrorKind::WouldBlock;
use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use rustix::net::sockopt;

use crate::error::{During, Result};
use crate::harness::Workload;
use crate::raw::{Region, UdpOption, set_udp_option};
use crate::team::{BARRIER_TIMEOUT, Team, WORDS, spin_until};

/// How a receiver waits for a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Asks again and again.
    Spinning,
    /// Sleeps in the kernel.
    Blocking,
}

/// Datagrams go there and back.
pub struct UdpPingPong {
    socket: UdpSocket,
    waiting: Waiting,
    data: Vec<u8>,
}

impl UdpPingPong {
    /// A socket on each side, connected to the other, for datagrams of `bytes`.
    pub fn new(team: &Team, bytes: usize, waiting: Waiting) -> Result<Self> {
        let socket = connected_pair(team)?;
        match waiting {
            Waiting::Spinning => socket.set_nonblocking(true),
            Waiting::Blocking => socket.set_read_timeout(Some(BARRIER_TIMEOUT)),
        }
        .during("choosing how a UDP socket waits")?;
        team.barrier()?;
        Ok(Self {
            socket,
            waiting,
            data: vec![0; bytes],
        })
    }

    fn send(&self) -> Result<()> {
        self.socket.send(&self.data).during("sending a datagram")?;
        Ok(())
    }

    fn receive(&mut self) -> Result<()> {
        let data = &mut self.data;
        match self.waiting {
            Waiting::Spinning => spin(|| self.socket.recv(data)),
            Waiting::Blocking => self.socket.recv(data),
        }
        .during("receiving a datagram")?;
        Ok(())
    }
}

impl Workload for UdpPingPong {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.send()?;
            self.receive()?;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.receive()?;
            self.send()?;
        }
        Ok(())
    }
}

/// 8 B go there and back over a TCP connection, both sides spinning.
pub struct TcpPingPong(TcpStream);

impl TcpPingPong {
    /// Rank 0 listens, the other one connects.
    pub fn new(team: &Team) -> Result<Self> {
        let stream = connected_streams(team)?;
        stream
            .set_nonblocking(true)
            .during("making a TCP socket spin")?;
        team.barrier()?;
        Ok(Self(stream))
    }

    fn send(&mut self) -> Result<()> {
        self.0.write_all(&[0; 8]).during("sending by TCP")
    }

    fn receive(&mut self) -> Result<()> {
        let mut data = [0; 8];
        let mut got = 0;
        while got < data.len() {
            match spin(|| self.0.read(&mut data[got..])).during("receiving by TCP")? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)).during("TCP"),
                more => got += more,
            }
        }
        Ok(())
    }
}

impl Workload for TcpPingPong {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.send()?;
            self.receive()?;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.receive()?;
            self.send()?;
        }
        Ok(())
    }
}

/// A stream of bytes from rank 0 over a TCP connection; the other one reports the end of each
/// batch by a byte.
pub struct TcpFlow {
    stream: TcpStream,
    data: Vec<u8>,
    message: u64,
}

impl TcpFlow {
    /// A repetition moves `message` bytes.
    pub fn new(team: &Team, message: u64) -> Result<Self> {
        let stream = connected_streams(team)?;
        stream
            .set_read_timeout(Some(BARRIER_TIMEOUT))
            .during("choosing how a TCP socket waits")?;
        Ok(Self {
            stream,
            data: vec![0; LARGEST_DATAGRAM],
            message: message.max(1),
        })
    }
}

impl Workload for TcpFlow {
    fn lead(&mut self, n: u64) -> Result<()> {
        let mut left = n * self.message;
        while left > 0 {
            let next = left.min(self.data.len() as u64);
            let sent = self.stream.write_all(&self.data[..next as usize]);
            sent.during("sending by TCP")?;
            left -= next;
        }
        let end = self.stream.read_exact(&mut [0]);
        end.during("receiving by TCP")
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        let mut left = n * self.message;
        while left > 0 {
            let next = left.min(self.data.len() as u64);
            let got = self.stream.read(&mut self.data[..next as usize]);
            match got.during("receiving by TCP")? as u64 {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)).during("TCP"),
                more => left -= more,
            }
        }
        self.stream.write_all(&[0]).during("sending by TCP")
    }

    fn fewest(&self) -> u64 {
        (1_u64 << 20).div_ceil(self.message)
    }
}

/// A TCP connection to the other rank. Rank 0 listens, the other one connects.
fn connected_streams(team: &Team) -> Result<TcpStream> {
    let (own, other) = team.addresses();
    let listener = match team.leads() {
        true => Some(TcpListener::bind((own, 0)).during("listening")?),
        false => None,
    };
    let mut words = [0; WORDS];
    if let Some(listener) = &listener {
        let address = listener.local_addr().during("naming a TCP socket")?;
        words[0] = address.port().into();
    }
    let port = team.broadcast(words)?[0] as u16;
    let stream = match listener {
        Some(listener) => listener.accept().map(|(stream, _)| stream),
        None => TcpStream::connect((other, port)),
    }
    .during("connecting by TCP")?;
    stream.set_nodelay(true).during("asking for TCP_NODELAY")?;
    Ok(stream)
}

/// What one call hands to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    /// One datagram of this many bytes.
    Datagram(usize),
    /// As many datagrams of this many bytes as one call takes: segmented on the way
    /// out (UDP_SEGMENT), coalesced on the way in (UDP_GRO).
    Segmented(usize),
}

impl Burst {
    /// Bytes that one system call sends.
    pub fn bytes(self) -> usize {
        self.datagrams() * self.datagram()
    }

    /// Datagrams that one system call sends.
    pub fn datagrams(self) -> usize {
        match self {
            Self::Datagram(_) => 1,
            Self::Segmented(bytes) => (LARGEST_DATAGRAM / bytes).min(MOST_SEGMENTS),
        }
    }

    fn datagram(self) -> usize {
        match self {
            Self::Datagram(bytes) | Self::Segmented(bytes) => bytes,
        }
    }
}

/// A stream of datagrams from rank 0. How much may be in flight is written beside the
/// socket, through shared memory, so that nothing is lost and the path carries
/// payload alone.
pub struct UdpStream {
    socket: UdpSocket,
    taken: Region,
    data: Vec<u8>,
    message: u64,
    window: u64,
    moved: u64,
}

impl UdpStream {
    /// A repetition is one call of `burst`.
    pub fn new(team: &Team, burst: Burst) -> Result<Self> {
        Self::of_messages(team, burst, burst.bytes() as u64)
    }

    /// A repetition moves `message` bytes in calls of `burst`.
    pub fn of_messages(team: &Team, burst: Burst, message: u64) -> Result<Self> {
        let socket = connected_pair(team)?;
        socket
            .set_nonblocking(true)
            .during("making a UDP socket spin")?;
        if let Burst::Segmented(bytes) = burst {
            set_udp_option(&socket, UdpOption::Segment, bytes as i32)
                .and_then(|()| set_udp_option(&socket, UdpOption::Coalesce, 1))
                .during("asking for segmented datagrams")?;
        }
        let window = receive_window(&socket, burst)?;
        let taken = team.share(4096)?;
        Ok(Self {
            socket,
            taken,
            data: vec![0; burst.bytes()],
            message: message.max(1),
            window,
            moved: 0,
        })
    }

    fn taken(&self) -> &AtomicU64 {
        &self.taken.words()[0]
    }

    fn send_message(&mut self) -> Result<()> {
        let end = self.moved + self.message;
        while self.moved < end {
            let next = (end - self.moved).min(self.data.len() as u64);
            let (ahead, window) = (self.moved + next, self.window);
            if ahead - self.taken().load(Acquire) > window {
                let taken = self.taken();
                spin_until(|| ahead - taken.load(Acquire) <= window)?;
            }
            let data = &self.data[..next as usize];
            spin(|| self.socket.send(data)).during("sending datagrams")?;
            self.moved = ahead;
        }
        Ok(())
    }
}

impl Workload for UdpStream {
    fn lead(&mut self, n: u64) -> Result<()> {
        (0..n).try_for_each(|_| self.send_message())?;
        spin_until(|| self.taken().load(Acquire) == self.moved)
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        let end = self.moved + n * self.message;
        while self.moved < end {
            let data = &mut self.data;
            let got = spin(|| self.socket.recv(data)).during("receiving datagrams")?;
            self.moved += got as u64;
            self.taken().store(self.moved, Release);
        }
        Ok(())
    }

    fn fewest(&self) -> u64 {
        (4 * self.window).div_ceil(self.message)
    }
}

/// A UDP socket connected to the other rank's.
fn connected_pair(team: &Team) -> Result<UdpSocket> {
    let (own, other) = team.addresses();
    let socket = UdpSocket::bind((own, 0)).during("binding a UDP socket")?;
    let port = socket.local_addr().during("naming a UDP socket")?.port();
    let mut words = [0; WORDS];
    words[0] = port.into();
    let peer = team.swap(words)?[0] as u16;
    socket
        .connect(SocketAddrV4::new(other, peer))
        .during("connecting a UDP socket")?;
    Ok(socket)
}

/// Payload that a socket surely holds, at least one burst: the kernel counts what it
/// keeps beside the bytes too, so half of the buffer is left to that.
fn receive_window(socket: &UdpSocket, burst: Burst) -> Result<u64> {
    // More than is granted as a rule; the kernel gives what it may.
    let _ = sockopt::set_socket_recv_buffer_size(socket, 4 << 20);
    let granted = sockopt::socket_recv_buffer_size(socket)
        .during("asking for the size of a socket's buffer")?;
    let bursts = granted / 2 / (burst.bytes() + BESIDE_PAYLOAD);
    Ok((bursts.max(1) * burst.bytes()) as u64)
}

/// Repeats `call` until it doesn't have to wait.
fn spin(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    let mut outcome = None;
    let arrived = spin_until(|| match call() {
        Err(error) if error.kind() == WouldBlock => false,
        other => {
            outcome = Some(other);
            true
        }
    });
    match (arrived, outcome) {
        (Ok(()), Some(outcome)) => outcome,
        _ => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Payload of the largest datagram of IPv4, in bytes: 65,535 less the headers of IP
/// and UDP.
const LARGEST_DATAGRAM: usize = 65_507;
/// What the kernel counts for a small buffer beside its bytes, about.
const BESIDE_PAYLOAD: usize = 1024;
/// Segments of one call that every kernel with UDP_SEGMENT takes.
const MOST_SEGMENTS: usize = 64;
