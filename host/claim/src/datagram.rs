//! Datagrams whose bytes lie in claims: the kernel gathers and scatters, nothing is
//! copied on the way.

use std::io;
use std::mem::offset_of;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::claim::{Claim, SIZE, START};

// A list of claims is what the kernel takes as a list of places.
const _: () = assert!(size_of::<Claim>() == size_of::<libc::iovec>());
const _: () = assert!(START == offset_of!(libc::iovec, iov_base));
const _: () = assert!(SIZE == offset_of!(libc::iovec, iov_len));

/// Pieces that one call may send, as a datagram or a GSO batch (`IOV_MAX` of Linux).
pub const MAX_PIECES: usize = 1024;

const FLAGS: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// Sends the bytes of `pieces` as one datagram, or as a batch of datagrams of `segment`
/// bytes each, the last one perhaps shorter (GSO, `UDP_SEGMENT`). A connected socket needs
/// no address. Doesn't wait.
///
/// # Errors
/// The system's: [`io::ErrorKind::WouldBlock`] if the socket has no room now; also errors
/// of earlier datagrams. Nothing was sent then.
#[inline]
pub fn send_datagram(
    socket: BorrowedFd<'_>,
    to: Option<SocketAddrV4>,
    pieces: &[Claim],
    segment: Option<u16>,
) -> io::Result<()> {
    let address = to.map(address_of);
    let (name, name_length) = match &address {
        Some(address) => (&raw const *address, size_of::<libc::sockaddr_in>()),
        None => (std::ptr::null(), 0),
    };
    let name_length = name_length as libc::socklen_t;
    let sent = match (pieces, segment) {
        ([one], None) => {
            let (start, length) = (one.start().cast(), one.len() as usize);
            let name = name.cast();
            // SAFETY: the address lives through the call; what the piece names is
            // readable (Claim::new), and the kernel checks each page itself.
            unsafe { libc::sendto(socket.as_raw_fd(), start, length, FLAGS, name, name_length) }
        }
        _ => {
            let mut control = Control::default();
            let mut message = message(pieces);
            message.msg_name = name.cast_mut().cast();
            message.msg_namelen = name_length;
            if let Some(segment) = segment {
                control.set_segment(segment);
                message.msg_control = (&raw mut control).cast();
                message.msg_controllen = control.length;
            }
            // SAFETY: address and control live through the call; what the pieces name
            // is readable (Claim::new), and the kernel checks each page itself.
            unsafe { libc::sendmsg(socket.as_raw_fd(), &message, FLAGS) }
        }
    };
    match sent {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn address_of(to: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: to.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(*to.ip()).to_be(),
        },
        sin_zero: [0; 8],
    }
}

/// Receives a datagram, or a batch of them that the system has coalesced (`UDP_GRO`),
/// into `pieces`, one behind the other; returns the number of bytes. What doesn't
/// fit is lost. Doesn't wait.
///
/// # Errors
/// The system's: [`io::ErrorKind::WouldBlock`] if no datagram is there; also errors of
/// datagrams sent before.
#[inline]
pub fn receive_datagram(socket: BorrowedFd<'_>, pieces: &[Claim]) -> io::Result<usize> {
    let received = match pieces {
        [one] => {
            // Not `recv` of the C library: at each call it says with two atomic instructions
            // that a thread may be cancelled, for which this one never waits.
            let (start, length) = (one.start(), one.len() as usize);
            let from = std::ptr::null_mut::<libc::sockaddr>();
            let from_length = std::ptr::null_mut::<libc::socklen_t>();
            // SAFETY: what the piece names is writable (Claim::new), and the kernel
            // checks each page itself.
            let received = unsafe {
                libc::syscall(
                    libc::SYS_recvfrom,
                    socket.as_raw_fd(),
                    start,
                    length,
                    libc::MSG_DONTWAIT,
                    from,
                    from_length,
                )
            };
            received as isize
        }
        many => {
            let mut message = message(many);
            // SAFETY: as above, for each piece.
            unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_DONTWAIT) }
        }
    };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// As [`receive_datagram`], and returns the bytes of each datagram of a batch, of which the
/// last one may have fewer; nothing if it is a single datagram. That costs 130 ns more.
///
/// # Errors
/// As for [`receive_datagram`].
#[inline]
pub fn receive_gso_batch(
    socket: BorrowedFd<'_>,
    pieces: &[Claim],
) -> io::Result<(usize, Option<usize>)> {
    let mut control = Control::default();
    let mut message = message(pieces);
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>();
    // As in `receive_datagram`, not that of the C library.
    // SAFETY: the control lives through the call; what the pieces name is writable
    // (Claim::new), and the kernel checks each page itself.
    let received = unsafe {
        libc::syscall(
            libc::SYS_recvmsg,
            socket.as_raw_fd(),
            &raw mut message,
            libc::MSG_DONTWAIT,
        )
    };
    let bytes = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    Ok((bytes, control.segment()))
}

/// Takes a report that a datagram sent before didn't arrive (`IP_RECVERR`): its receiver,
/// and why not. Doesn't wait.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if there is none.
pub fn take_report(socket: BorrowedFd<'_>) -> io::Result<(SocketAddrV4, io::Error)> {
    let mut address = libc::sockaddr_in {
        sin_family: 0,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: 0 },
        sin_zero: [0; 8],
    };
    let mut control = Control::default();
    let mut message = message(&[]);
    message.msg_name = (&raw mut address).cast();
    message.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>();
    let flags = libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE;
    // SAFETY: address and control live through the call, and there are no pieces.
    if unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, flags) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // A `sock_extended_err` begins with the error's number.
    let [a, b, c, d, ..] = control.data;
    let to = SocketAddrV4::new(
        u32::from_be(address.sin_addr.s_addr).into(),
        u16::from_be(address.sin_port),
    );
    Ok((
        to,
        io::Error::from_raw_os_error(i32::from_ne_bytes([a, b, c, d])),
    ))
}

/// One control message, with room for what the kernel reports here.
#[repr(C, align(8))]
struct Control {
    length: usize,
    level: i32,
    kind: i32,
    data: [u8; 48],
}

impl Default for Control {
    fn default() -> Control {
        Control {
            length: 0,
            level: 0,
            kind: 0,
            data: [0; 48],
        }
    }
}

impl Control {
    fn set_segment(&mut self, segment: u16) {
        self.level = libc::SOL_UDP;
        self.kind = libc::UDP_SEGMENT;
        self.length = offset_of!(Control, data) + size_of::<u16>();
        self.data[..2].copy_from_slice(&segment.to_ne_bytes());
    }

    /// Bytes of each datagram, if the kernel has coalesced several.
    fn segment(&self) -> Option<usize> {
        let [a, b, c, d, ..] = self.data;
        let is_batch = (self.level, self.kind) == (libc::SOL_UDP, libc::UDP_GRO);
        let segment = is_batch.then(|| i32::from_ne_bytes([a, b, c, d]))?;
        usize::try_from(segment).ok().filter(|bytes| *bytes > 0)
    }
}

const _: () = assert!(offset_of!(Control, data) == size_of::<libc::cmsghdr>());
const _: () = assert!(offset_of!(Control, level) == offset_of!(libc::cmsghdr, cmsg_level));

fn message(pieces: &[Claim]) -> libc::msghdr {
    // SAFETY: a msghdr of zeros is one that names nothing.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = pieces.as_ptr().cast_mut().cast();
    message.msg_iovlen = pieces.len();
    message
}
