//! What the kernel charges: a system call, waking the other core, UDP on loopback.

use std::io::ErrorKind::WouldBlock;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

use rustix::io::Errno;
use rustix::thread::futex;

use crate::error::{During, Result};
use crate::perf::harness::Pattern;
use crate::raw::{self, Region};
use crate::team::{Team, WORDS, spin_until};

/// Each side sleeps on a futex until the other wakes it.
pub struct FutexWake {
    shared: Region,
    turn: u32,
}

impl FutexWake {
    /// A word at zero.
    pub fn new(team: &Team) -> Result<Self> {
        Ok(Self {
            shared: team.share(4096)?,
            turn: 0,
        })
    }

    fn word(&self) -> &AtomicU32 {
        &self.shared.halves()[0]
    }

    fn signal(&mut self) -> Result<()> {
        self.turn = self.turn.wrapping_add(1);
        self.word().store(self.turn, Release);
        futex::wake(self.word(), futex::Flags::empty(), 1).during("futex_wake")?;
        Ok(())
    }

    fn sleep(&mut self) -> Result<()> {
        let awaited = self.turn.wrapping_add(1);
        while self.word().load(Acquire) != awaited {
            match futex::wait(self.word(), futex::Flags::empty(), self.turn, None) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error).during("futex_wait"),
            }
        }
        self.turn = awaited;
        Ok(())
    }
}

impl Pattern for FutexWake {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.signal()?;
            self.sleep()?;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.sleep()?;
            self.signal()?;
        }
        Ok(())
    }
}

/// Rank 0 wakes a futex that nobody waits for.
#[derive(Default)]
pub struct FutexNobody(AtomicU32);

impl Pattern for FutexNobody {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            futex::wake(&self.0, futex::Flags::empty(), 1).during("futex_wake")?;
        }
        Ok(())
    }

    fn follow(&mut self, _: u64) -> Result<()> {
        Ok(())
    }
}

/// Rank 0 enters the kernel and comes back.
pub struct SystemCall;

impl Pattern for SystemCall {
    fn lead(&mut self, n: u64) -> Result<()> {
        (0..n).for_each(|_| raw::smallest_system_call());
        Ok(())
    }

    fn follow(&mut self, _: u64) -> Result<()> {
        Ok(())
    }
}

/// Datagrams of 8 B over loopback, both sides spinning.
pub struct UdpPingPong(UdpSocket);

impl UdpPingPong {
    /// A socket on each side, connected to the other.
    pub fn new(team: &Team) -> Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).during("binding a UDP socket")?;
        let port = socket.local_addr().during("naming a UDP socket")?.port();
        let mut words = [0; WORDS];
        words[0] = port.into();
        let peer = team.swap(words)?[0] as u16;
        socket
            .connect((Ipv4Addr::LOCALHOST, peer))
            .during("connecting a UDP socket")?;
        socket
            .set_nonblocking(true)
            .during("making a UDP socket spin")?;
        team.meet()?;
        Ok(Self(socket))
    }

    fn send(&self) -> Result<()> {
        self.0.send(&[0; 8]).during("sending a datagram")?;
        Ok(())
    }

    fn receive(&self) -> Result<()> {
        let mut failure = None;
        spin_until(|| match self.0.recv(&mut [0; 8]) {
            Err(error) if error.kind() == WouldBlock => false,
            Err(error) => {
                failure = Some(error);
                true
            }
            Ok(_) => true,
        })?;
        failure.map_or(Ok(()), Err).during("receiving a datagram")
    }
}

impl Pattern for UdpPingPong {
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
