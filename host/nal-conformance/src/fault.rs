//! Middleware that makes peers unreachable.

use lintel_claim::{Claim, Lent};
use lintel_nal::forward;
use lintel_nal::{Arrival, MoveError, Nal, Origin, Outgoing, RemoteLoan, Unreachable, Wake};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::collections::VecDeque;

/// Cuts peers off on request: nothing more is sent to them, nothing lent by
/// them can be moved, and they are reported lost.
pub struct Fault<N> {
    inner: N,
    cut: Vec<ProcessId>,
    lost: VecDeque<ProcessId>,
}

impl<N: Nal> Fault<N> {
    /// Wraps a NAL; no peer is cut off yet.
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
    // Not `next_inline`: each message goes through `next`.
    forward!(self { Fault { inner, .. } => inner }: capabilities, leave_to, begin_parts,
        take_part, revoke_grant, note_moved, done, receive_into, recall,
        backlog, lends, resources, traffic, arrivals);

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

    fn send_lent(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Lent<'_>,
        number: u64,
    ) -> Result<bool, Unreachable> {
        if self.is_cut(to) {
            Err(Unreachable)
        } else {
            self.inner.send_lent(to, words, body, number)
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

    fn fetch(&mut self, from: Origin, remote: &RemoteLoan, to: &[Claim]) -> Result<u64, MoveError> {
        if self.is_cut(from.process) {
            return Err(MoveError::Unavailable);
        }
        self.inner.fetch(from, remote, to)
    }

    fn fill(&mut self, to: Origin, from: &[Claim], remote: &RemoteLoan) -> Result<u64, MoveError> {
        if self.is_cut(to.process) {
            return Err(MoveError::Unavailable);
        }
        self.inner.fill(to, from, remote)
    }
}

impl<N: Nal> Wake for Fault<N> {
    forward!(self { Fault { inner, .. } => inner }: ..Wake);
}
