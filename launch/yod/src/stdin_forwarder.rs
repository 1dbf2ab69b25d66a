//! Standard input on its way to rank 0, if rank 0 can't simply inherit it: the kernel
//! stops a process outside the foreground group that reads a terminal, and another
//! machine has another standard input.

use std::io::{self, IsTerminal};
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use crate::message::Request;

/// Reads no more than rank 0 has taken.
pub(crate) struct StdinForwarder {
    /// Rank 0 accepts more.
    pub(crate) wanted: bool,
    terminal: bool,
    ended: bool,
}

impl StdinForwarder {
    /// A forwarder, if one is needed: `remote` is whether rank 0 is on another machine.
    pub(crate) fn needed(remote: bool) -> Option<StdinForwarder> {
        let terminal = io::stdin().is_terminal();
        (remote || terminal).then_some(StdinForwarder {
            wanted: true,
            terminal,
            ended: false,
        })
    }

    /// What to poll for reading, if anything.
    pub(crate) fn interest(&self) -> Option<BorrowedFd<'static>> {
        let stdin = rustix::stdio::stdin();
        // A background job that reads the terminal would be stopped.
        let foreground = || tcgetpgrp(stdin).is_ok_and(|group| group == getpgrp());
        let readable = self.wanted && !self.ended && (!self.terminal || foreground());
        readable.then_some(stdin)
    }

    /// Reads once, and returns the request that follows.
    pub(crate) fn on_readable(&mut self) -> Option<Request> {
        let mut bytes = [0; 4096];
        match rustix::io::read(rustix::stdio::stdin(), &mut bytes[..]) {
            Ok(count @ 1..) => {
                self.wanted = false;
                Some(Request::Input(bytes[..count].to_vec()))
            }
            Err(Errno::INTR | Errno::AGAIN) => None,
            Ok(0) | Err(_) => {
                self.ended = true;
                Some(Request::InputEnd)
            }
        }
    }
}
