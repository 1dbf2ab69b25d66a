//! Middleware that makes peers unreachable, for tests.

use crate::{
    Arrival, Capabilities, MoveError, Nal, Origin, Outgoing, RemoteLoan, Resources, Unreachable,
};
use lintel_claim::{Claim, Lease, Loan};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Cuts peers off when told to: nothing more is sent to them, nothing lent by
/// them can be moved, and they are reported lost.
pub struct Fault<N> {
    inner: N,
    cut: Vec<ProcessId>,
    lost: VecDeque<ProcessId>,
}

impl<N: Nal> Fault<N> {
    /// Wraps a NAL; nobody is cut off yet.
    pub fn new(inner: N) -> Self {
        Fault {
            inner,
            cut: Vec::new(),
            lost: VecDeque::new(),
        }
    }

    /// Cuts a process off.
    pub fn cut_off(&mut self, process: ProcessId) {
        self.cut.push(process);
        self.lost.push_back(process);
    }

    fn is_cut(&self, process: ProcessId) -> bool {
        self.cut.contains(&process)
    }
}

impl<N: Nal> Nal for Fault<N> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        if self.is_cut(to) {
            Err(Unreachable)
        } else {
            self.inner.send(to, words, body)
        }
    }

    fn next(&mut self) -> Option<Arrival> {
        if let Some(process) = self.lost.pop_front() {
            return Some(Arrival::Lost(process));
        }
        loop {
            match self.inner.next()? {
                Arrival::Message(origin, ..) if self.is_cut(origin.process) => {
                    self.inner.done(origin);
                }
                arrival => return Some(arrival),
            }
        }
    }

    fn done(&mut self, origin: Origin) {
        self.inner.done(origin);
    }

    fn receive_into(&mut self, origin: Origin, place: Loan) {
        self.inner.receive_into(origin, place);
    }

    fn fetch(&mut self, from: Origin, remote: &RemoteLoan, to: &[Claim]) -> Result<u64, MoveError> {
        if self.is_cut(from.process) {
            return Err(MoveError::Gone);
        }
        self.inner.fetch(from, remote, to)
    }

    fn fill(&mut self, to: Origin, from: &[Claim], remote: &RemoteLoan) -> Result<u64, MoveError> {
        if self.is_cut(to.process) {
            return Err(MoveError::Gone);
        }
        self.inner.fill(to, from, remote)
    }

    fn flush(&mut self) -> bool {
        self.inner.flush()
    }

    fn recall(&mut self, lease: &Lease) -> bool {
        self.inner.recall(lease)
    }

    fn backlog(&self, process: ProcessId) -> u64 {
        self.inner.backlog(process)
    }

    fn has_queued(&self, process: ProcessId) -> bool {
        self.inner.has_queued(process)
    }

    fn check_peers(&mut self) {
        self.inner.check_peers();
    }

    fn wake_peers(&mut self) {
        self.inner.wake_peers();
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }

    fn due(&self) -> Option<Instant> {
        self.inner.due()
    }

    fn is_idle(&self) -> bool {
        self.inner.is_idle()
    }

    fn on_readable(&mut self) {
        self.inner.on_readable();
    }

    fn all_delivered(&self) -> bool {
        self.inner.all_delivered()
    }

    fn resources(&self) -> Resources {
        self.inner.resources()
    }
}
