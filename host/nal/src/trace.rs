//! Middleware that tells of every message.

use crate::{
    Arrival, Capabilities, MoveError, Nal, Origin, Outgoing, RemoteLoan, Resources, Unreachable,
};
use lintel_claim::{Claim, Lease, Loan};
use lintel_types::ProcessId;
use lintel_wire::{Message, Words};
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Hands a line for each message to `tell`.
pub struct Trace<N, F> {
    inner: N,
    tell: F,
    /// The message that `next` gave last. (To ask for it again could give a loss.)
    shown: Option<Words>,
}

impl<N: Nal, F: FnMut(String)> Trace<N, F> {
    /// Wraps a NAL.
    pub fn new(inner: N, tell: F) -> Self {
        Trace {
            inner,
            tell,
            shown: None,
        }
    }

    fn line(&mut self, direction: &str, process: ProcessId, words: &Words) {
        let what = match Message::parse(words) {
            Ok(message) => format!("{message:?}"),
            Err(malformed) => format!("{malformed}: {words:x?}"),
        };
        (self.tell)(format!(
            "{direction} {:#x}/{} {what}",
            process.nid, process.pid
        ));
    }
}

impl<N: Nal, F: FnMut(String)> Nal for Trace<N, F> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        let sent = self.inner.send(to, words, body);
        self.line(if sent.is_ok() { "to" } else { "unreachable" }, to, words);
        sent
    }

    fn next(&mut self) -> Option<Arrival> {
        let arrival = self.inner.next();
        if let Some(Arrival::Message(_, words, _)) = &arrival {
            self.shown = Some(*words);
        }
        arrival
    }

    fn done(&mut self, origin: Origin) {
        if let Some(words) = self.shown.take() {
            self.line("from", origin.process, &words);
        }
        self.inner.done(origin);
    }

    fn receive_into(&mut self, origin: Origin, place: Loan) {
        self.inner.receive_into(origin, place);
    }

    fn fetch(&mut self, from: Origin, remote: &RemoteLoan, to: &[Claim]) -> Result<u64, MoveError> {
        self.inner.fetch(from, remote, to)
    }

    fn fill(&mut self, to: Origin, from: &[Claim], remote: &RemoteLoan) -> Result<u64, MoveError> {
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
