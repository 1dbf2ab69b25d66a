//! Memory that peers may still use: counted while an interface is open, waited for and taken
//! back when it closes.

use crate::core::Core;
use crate::library::Library;
use crate::orphans::Orphan;
use crate::owner::Owner;
use crate::protocol::Protocol;
use lintel_claim::Lease;
use lintel_nal::Nal;
use lintel_types::InterfaceNumber;
use std::time::{Duration, Instant};

/// How often a closing interface polls.
const POLL_INTERVAL: Duration = Duration::from_micros(50);
/// How long a peer's system call may still copy after what it copies was taken back. A copy
/// of a GiB takes a tenth of that; a peer that takes longer has been stopped behind it.
const COPY_TIMEOUT: Duration = Duration::from_secs(2);

impl<O: Owner> Core<O> {
    /// What of an interface's memory is lent: operations that peers must answer, and bodies
    /// that this process still sends. Nothing if the interface isn't open.
    pub(crate) fn loans(&self, number: InterfaceNumber) -> Option<usize> {
        let opened = self.interfaces[number.position()].as_ref()?;
        Some(opened.interface.loans() + opened.lease.outstanding())
    }

    /// Ends an interface; what was lent of its memory is taken back, and every stream
    /// into it broken off. The lease knows when peers have noticed.
    pub(crate) fn end_interface(&mut self, number: InterfaceNumber) -> Option<Lease> {
        let index = number.position();
        let lease = &self.interfaces[index].as_ref()?.lease;
        lease.revoke();
        self.transports.nal.recall(lease);
        self.transports
            .withdraw(|entry| entry.interface() == number);
        self.abort_streams(number);
        self.grants.close(number);
        self.lent_replies
            .drop_if(|landed| landed.request().interface == number);
        self.staged.close(number);
        self.interfaces[index].take().map(|opened| opened.lease)
    }

    /// Copies that peers may still use when this process leaves the network.
    pub(crate) fn take_orphans(&mut self) -> Vec<Orphan> {
        let nal = &mut self.transports.nal;
        let all = [Some(&mut self.staged), self.protocol.staged()];
        let mut orphans = Vec::new();
        for staged in all.into_iter().flatten() {
            for (peer, copies) in staged.take_all() {
                if let Some(unread) = nal.take_unread(peer) {
                    let loan = staged.lease.lend(&[]).keep();
                    orphans.push(Orphan::new(unread, copies, loan));
                }
            }
        }
        orphans
    }
}

impl<O: Owner> Library<O> {
    /// Waits until peers have answered what was lent to them. Once they have become no
    /// fewer for so long, the rest is given up: what arrives meanwhile holds nobody.
    pub(crate) fn await_loans(&self, number: InterfaceNumber, timeout: Duration) {
        self.await_return(|core| core.loans(number).unwrap_or(0), timeout);
    }

    /// As [`await_loans`](Self::await_loans), for what `lent` counts.
    fn await_return(&self, lent: impl Fn(&Core<O>) -> usize, timeout: Duration) {
        let mut least = usize::MAX;
        let mut until = Instant::now() + timeout;
        while Instant::now() < until {
            let left = self.with_core(|core| {
                core.progress();
                core.check_peers();
                lent(core)
            });
            let left = left.unwrap_or(0);
            if left == 0 {
                return;
            }
            if left < least {
                least = left;
                until = Instant::now() + timeout;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Ends what the protocol beside Portals 4 has open, as an interface is ended.
    pub(crate) fn close_protocol(&self, timeout: Duration) {
        if self.with_core(|core| core.protocol.is_open()) != Some(true) {
            return;
        }
        self.await_return(|core| core.protocol.loans(), timeout);
        let lease = self.with_core(|core| core.protocol.end(&mut core.transports));
        if let Some(lease) = lease.flatten() {
            self.await_recall(&lease);
        }
    }

    /// Waits until no peer is in a copy that it began while the interface was open.
    pub(crate) fn await_recall(&self, lease: &Lease) {
        let until = Instant::now() + COPY_TIMEOUT;
        let recall = |core: &mut Core<O>| core.transports.nal.recall(lease);
        while self.with_core(recall) == Some(false) && Instant::now() < until {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}
