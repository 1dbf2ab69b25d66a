//! A NAL whose kind is chosen while the program runs.

use crate::{Arrival, Caps, MoveError, Nal, Origin, Outgoing, RemoteLoan, Resources, Unreachable};
use lintel_claim::{Claim, Lease, Loan};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::os::fd::BorrowedFd;
use std::time::Instant;

impl<N: Nal + ?Sized> Nal for Box<N> {
    fn caps(&self) -> Caps {
        (**self).caps()
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
    fn next_enclosed(&mut self) -> Option<(Origin, Words, Claim)> {
        (**self).next_enclosed()
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
    fn place(&mut self, to: Origin, from: &[Claim], remote: &RemoteLoan) -> Result<u64, MoveError> {
        (**self).place(to, from, remote)
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

    fn is_behind(&self, process: ProcessId) -> bool {
        (**self).is_behind(process)
    }
    fn check_peers(&mut self) {
        (**self).check_peers();
    }
    fn nudge(&mut self) {
        (**self).nudge();
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (**self).descriptor()
    }
    fn due(&self) -> Option<Instant> {
        (**self).due()
    }
    fn rests(&self) -> bool {
        (**self).rests()
    }
    fn stir(&mut self) {
        (**self).stir();
    }
    fn is_settled(&self) -> bool {
        (**self).is_settled()
    }
    fn resources(&self) -> Resources {
        (**self).resources()
    }
}
