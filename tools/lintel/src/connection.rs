//! Words between two processes without shared memory, over a TCP connection.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};

use crate::error::{During, Error, Result};
use crate::team::{WORDS, spin_until};

/// One end. The other one is at the other rank.
pub struct Connection {
    stream: RefCell<TcpStream>,
    addresses: (Ipv4Addr, Ipv4Addr),
    leads: bool,
}

impl Connection {
    /// Over a connected stream; one end `leads`.
    ///
    /// # Errors
    /// What the system refused, and any address but IPv4's.
    pub fn new(stream: TcpStream, leads: bool) -> Result<Self> {
        let during = "setting up the connection to the other machine";
        stream.set_nodelay(true).during(during)?;
        stream.set_nonblocking(true).during(during)?;
        let own = ipv4(stream.local_addr().during(during)?)?;
        let other = ipv4(stream.peer_addr().during(during)?)?;
        Ok(Self {
            stream: RefCell::new(stream),
            addresses: (own, other),
            leads,
        })
    }

    /// The addresses of this end and of the other one.
    pub fn addresses(&self) -> (Ipv4Addr, Ipv4Addr) {
        self.addresses
    }

    /// Sends words, and returns those of the other end. The one that leads returns last: what it
    /// sends then by another way arrives when the other one has returned.
    ///
    /// # Errors
    /// The other end has gone, or doesn't come.
    pub fn swap(&self, words: [u64; WORDS]) -> Result<[u64; WORDS]> {
        match self.leads {
            true => {
                let others = self.receive()?;
                self.send(words)?;
                Ok(others)
            }
            false => {
                self.send(words)?;
                self.receive()
            }
        }
    }

    fn send(&self, words: [u64; WORDS]) -> Result<()> {
        let mut bytes = [0; BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let mut stream = self.stream.borrow_mut();
        let mut sent = 0;
        self.until(|| {
            sent += stream.write(&bytes[sent..])?;
            Ok(sent == BYTES)
        })
    }

    fn receive(&self) -> Result<[u64; WORDS]> {
        let mut bytes = [0; BYTES];
        let mut stream = self.stream.borrow_mut();
        let mut received = 0;
        self.until(|| {
            match stream.read(&mut bytes[received..])? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                more => received += more,
            }
            Ok(received == BYTES)
        })?;
        let word = |at: usize| bytes[8 * at..].first_chunk().copied();
        let words = |at| word(at).map_or(0, u64::from_le_bytes);
        Ok(std::array::from_fn(words))
    }

    /// Repeats a step that doesn't block until it is done.
    fn until(&self, mut step: impl FnMut() -> io::Result<bool>) -> Result<()> {
        let mut failure = None;
        spin_until(|| match step() {
            Ok(is_done) => is_done,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => {
                failure = Some(error);
                true
            }
        })?;
        match failure {
            None => Ok(()),
            Some(error) => Err(error).during(format!("meeting {}", self.addresses.1)),
        }
    }
}

const BYTES: usize = WORDS * 8;

fn ipv4(address: SocketAddr) -> Result<Ipv4Addr> {
    match address.ip().to_canonical() {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(address) => Err(Error::Usage(format!(
            "{address} is no IPv4 address: a Portals node has one"
        ))),
    }
}
