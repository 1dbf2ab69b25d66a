//! Queries a process of another node for its address, if the provider's addresses are
//! no sockets: by datagrams between sockets that bear the processes' names.
//!
//! ```text
//!  0  tag       keyed hash of the rest
//!  8  magic     "lintofi?" asks, "lintofi!" answers
//! 16  nid | pid of the sender
//! 24  nid | pid of the receiver
//! 32  nonce     of the question
//! 40  address   of the sender's endpoint; nothing in a question
//! ```
//!
//! A question is answered only under the job's key, and an answer counts only for a
//! question that is open. A lost query is repeated by the peer that waits for it.

use crate::frame::Seal;
use lintel_types::ProcessId;
use rustc_hash::FxHashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

const QUESTION: &[u8; 8] = b"lintofi?";
const ANSWER: &[u8; 8] = b"lintofi!";
/// Bytes ahead of the address.
const HEADER: usize = 40;
/// Datagrams that are read at a time, so that a flood of forged ones holds up nobody.
const MOST_READ: u32 = 64;
/// The longest address that any provider has is far shorter.
const MAX_BYTES: usize = HEADER + 512;

/// A process's socket for questions.
pub(crate) struct Resolver {
    socket: UdpSocket,
    seal: Seal,
    /// This endpoint's own address.
    address: Vec<u8>,
    /// Processes that were queried, and the nonce of the question.
    open: FxHashMap<ProcessId, u64>,
    nonce: u64,
}

impl Resolver {
    /// Binds the socket of a process of that node; its port is the process identifier.
    pub(crate) fn bind(
        node: Ipv4Addr,
        port: Option<u16>,
        seal: Seal,
        nonce: u64,
        address: &[u8],
    ) -> io::Result<(Resolver, u16)> {
        let socket = UdpSocket::bind(SocketAddrV4::new(node, port.unwrap_or(0)))?;
        socket.set_nonblocking(true)?;
        let port = socket.local_addr()?.port();
        let resolver = Resolver {
            socket,
            seal,
            address: address.to_vec(),
            open: FxHashMap::default(),
            nonce,
        };
        Ok((resolver, port))
    }

    /// Asks a process for its address.
    pub(crate) fn query(&mut self, me: ProcessId, process: ProcessId) {
        self.nonce = self.nonce.wrapping_add(1);
        self.open.insert(process, self.nonce);
        let question = self.write(QUESTION, me, process, self.nonce, &[]);
        self.send(process, &question);
    }

    /// That answer isn't waited for any more.
    pub(crate) fn forget(&mut self, process: ProcessId) {
        self.open.remove(&process);
    }

    /// Answers queries, and returns an address that was queried.
    pub(crate) fn poll(&mut self, me: ProcessId) -> Option<(ProcessId, Vec<u8>)> {
        let mut bytes = [0; MAX_BYTES];
        for _ in 0..MOST_READ {
            // A datagram that the system has refused to deliver is an error once.
            let Ok((length, _)) = self.socket.recv_from(&mut bytes) else {
                break;
            };
            let Some((magic, from, nonce, address)) = self.read(&bytes[..length], me) else {
                continue;
            };
            if magic == QUESTION {
                let answer = self.write(ANSWER, me, from, nonce, &self.address);
                self.send(from, &answer);
            } else if magic == ANSWER && self.open.get(&from) == Some(&nonce) {
                self.open.remove(&from);
                return Some((from, address.to_vec()));
            }
        }
        None
    }

    fn write(
        &self,
        magic: &[u8; 8],
        from: ProcessId,
        to: ProcessId,
        nonce: u64,
        address: &[u8],
    ) -> Vec<u8> {
        let names = [from.nid, from.pid, to.nid, to.pid];
        let mut sealed = magic.to_vec();
        sealed.extend(names.into_iter().flat_map(u32::to_le_bytes));
        sealed.extend(nonce.to_le_bytes());
        sealed.extend(address);
        let mut bytes = self.seal.tag(to, &[&sealed]).to_le_bytes().to_vec();
        bytes.extend(sealed);
        bytes
    }

    /// Magic, sender, nonce and address of a datagram to this process.
    fn read<'a>(
        &self,
        bytes: &'a [u8],
        me: ProcessId,
    ) -> Option<(&'a [u8], ProcessId, u64, &'a [u8])> {
        let (header, address) = bytes.split_at_checked(HEADER)?;
        let (tag, sealed) = bytes.split_first_chunk()?;
        let number = |at: usize| {
            let bytes = header[at..][..4].try_into().expect("four bytes");
            u32::from_le_bytes(bytes)
        };
        let from = ProcessId::new(number(16), number(20));
        let to = ProcessId::new(number(24), number(28));
        let nonce = u64::from(number(32)) | u64::from(number(36)) << 32;
        let right = u64::from_le_bytes(*tag) == self.seal.tag(me, &[sealed]);
        (right && to == me).then_some((&header[8..16], from, nonce, address))
    }

    /// A lost message is retransmitted by the process that waits for the answer.
    fn send(&self, to: ProcessId, bytes: &[u8]) {
        if let Ok(port) = u16::try_from(to.pid) {
            let to = SocketAddrV4::new(Ipv4Addr::from(to.nid), port);
            let _ = self.socket.send_to(bytes, to);
        }
    }
}

impl AsFd for Resolver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const NODE: Ipv4Addr = Ipv4Addr::LOCALHOST;

    fn bind(key: u8, address: &[u8]) -> (Resolver, ProcessId) {
        let seal = Seal::new(&[key; 32]);
        let (resolver, port) =
            Resolver::bind(NODE, None, seal, 7, address).expect("a port is free");
        (resolver, ProcessId::new(u32::from(NODE), u32::from(port)))
    }

    /// Lets both work until the first has an answer, for so long.
    fn answer(
        (first, me): (&mut Resolver, ProcessId),
        (second, other): (&mut Resolver, ProcessId),
        limit: Duration,
    ) -> Option<(ProcessId, Vec<u8>)> {
        let until = Instant::now() + limit;
        while Instant::now() < until {
            second.poll(other);
            if let Some(answer) = first.poll(me) {
                return Some(answer);
            }
            std::thread::yield_now();
        }
        None
    }

    #[test]
    fn an_address_is_given_to_a_process_with_the_key() {
        let (mut first, me) = bind(1, b"mine");
        let (mut second, other) = bind(1, b"theirs");
        first.query(me, other);
        let answered = answer(
            (&mut first, me),
            (&mut second, other),
            Duration::from_secs(10),
        );
        assert_eq!(answered, Some((other, b"theirs".to_vec())));
        assert!(first.open.is_empty());
    }

    #[test]
    fn nothing_is_reported_to_others_and_nothing_believed_unasked() {
        let (first, me) = bind(1, b"mine");
        let (second, other) = bind(2, b"theirs");
        let question = first.write(QUESTION, me, other, 7, &[]);
        assert!(second.read(&question, other).is_none(), "another key");
        let (mut third, _) = bind(1, b"third");
        let unasked = first.write(ANSWER, me, me, 7, b"address");
        third.socket = first.socket.try_clone().expect("a descriptor is free");
        third.send(me, &unasked);
        assert_eq!(third.poll(me), None, "nobody asked");
        for length in 0..unasked.len() {
            assert!(
                first.read(&unasked[..length], me).is_none(),
                "{length} bytes"
            );
        }
        assert!(first.read(&unasked, me).is_some());
    }
}
