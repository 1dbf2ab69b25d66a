//! A NAL whose kind is chosen while the program runs.

use crate::{
    Arrival, Capabilities, MoveError, Nal, Origin, Outgoing, RemoteLoan, Resources, Unreachable,
};
use lintel_claim::{Claim, Lease, Loan};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::os::fd::BorrowedFd;
use std::time::Instant;

impl<N: Nal + ?Sized> Nal for Box<N> {
    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }
    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        (**self).send(to, words, body)
    }
    fn next(&mut self) -> Option<Arrival> {
        (**self).next()
    }
    fn next_inline(&mut self) -> Option<(Origin, Words, Claim)> {
        (**self).next_inline()
    }
    fn done(&mut self, origin: Origin) {
        (**self).done(origin);
    }
    fn receive_into(&mut self, origin: Origin, place: Loan) {
        (**self).receive_into(origin, place);
    }
    fn fetch(&mut self, from: Origin, remote: &RemoteLoan, to: &[Claim]) -> Result<u64, MoveError> {
        (**self).fetch(from, remote, to)
    }
    fn fill(&mut self, to: Origin, from: &[Claim], remote: &RemoteLoan) -> Result<u64, MoveError> {
        (**self).fill(to, from, remote)
    }
    fn flush(&mut self) -> bool {
        (**self).flush()
    }
    fn recall(&mut self, lease: &Lease) -> bool {
        (**self).recall(lease)
    }

    fn backlog(&self, process: ProcessId) -> u64 {
        (**self).backlog(process)
    }

    fn has_queued(&self, process: ProcessId) -> bool {
        (**self).has_queued(process)
    }
    fn check_peers(&mut self) {
        (**self).check_peers();
    }
    fn wake_peers(&mut self) {
        (**self).wake_peers();
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (**self).descriptor()
    }
    fn due(&self) -> Option<Instant> {
        (**self).due()
    }
    fn is_idle(&self) -> bool {
        (**self).is_idle()
    }
    fn on_readable(&mut self) {
        (**self).on_readable();
    }
    fn all_delivered(&self) -> bool {
        (**self).all_delivered()
    }
    fn resources(&self) -> Resources {
        (**self).resources()
    }
}
