//! Staging buffers that stand for an owner's memory in operations under way.

use crate::staging_pool::StagingPool;
use lintel_claim::{Lease, Region};
use lintel_memory::Span;
use lintel_types::{InterfaceNumber, ProcessId};
use std::collections::HashMap;

/// Copies of an owner's memory that were lent in its place. Each stays until its operation
/// is answered.
pub struct StagedSends<S> {
    /// The lease of all copies. It outlives the interface: a peer may still use a copy.
    pub(crate) lease: Lease,
    lent: HashMap<(InterfaceNumber, u32), StagedSend<S>>,
    /// Bytes of all copies.
    bytes: u64,
    /// Where their buffers come from.
    pub(crate) pool: StagingPool,
}

/// A copy, the peer that may use it, and the memory that it stands for.
pub(crate) struct StagedSend<S> {
    pub(crate) to: ProcessId,
    pub(crate) copy: Region,
    pub(crate) pieces: Vec<S>,
}

impl<S> Default for StagedSends<S> {
    fn default() -> Self {
        StagedSends {
            lease: Lease::new(),
            lent: HashMap::new(),
            bytes: 0,
            pool: StagingPool::default(),
        }
    }
}

impl<S: Span> StagedSends<S> {
    /// Keeps the copy that an operation has lent to a peer.
    pub(crate) fn insert(
        &mut self,
        interface: InterfaceNumber,
        token: u32,
        to: ProcessId,
        copy: Region,
        pieces: &[S],
    ) {
        self.bytes += copy.len();
        let pieces = pieces.to_vec();
        self.lent
            .insert((interface, token), StagedSend { to, copy, pieces });
    }

    /// Takes the copy of the operation that is answered.
    pub(crate) fn take(&mut self, interface: InterfaceNumber, token: u32) -> Option<StagedSend<S>> {
        let lent = self.lent.remove(&(interface, token))?;
        self.bytes -= lent.copy.len();
        Some(lent)
    }

    /// Drops the copies that a lost process could have used.
    pub(crate) fn forget(&mut self, process: ProcessId) {
        let bytes = &mut self.bytes;
        self.lent.retain(|_, lent| {
            let keep = lent.to != process;
            *bytes -= if keep { 0 } else { lent.copy.len() };
            keep
        });
    }

    /// Bytes of all copies under way.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// An interface closes: replies into its copies go no further. The copies stay until
    /// their peers answer or end.
    pub(crate) fn close(&mut self, interface: InterfaceNumber) {
        for (_, lent) in self.lent.iter_mut().filter(|(key, _)| key.0 == interface) {
            lent.pieces = Vec::new();
        }
    }

    /// Takes all copies, by peer.
    pub(crate) fn take_all(&mut self) -> HashMap<ProcessId, Vec<Region>> {
        self.bytes = 0;
        let mut all: HashMap<ProcessId, Vec<Region>> = HashMap::new();
        for (_, lent) in self.lent.drain() {
            all.entry(lent.to).or_default().push(lent.copy);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_claim::Claim;

    const PEER: ProcessId = ProcessId::new(1, 1);
    const OTHER: ProcessId = ProcessId::new(1, 2);

    /// The copies of operations 1 to 3 of an interface, the last one at another peer.
    fn sends(number: InterfaceNumber) -> StagedSends<Claim> {
        let mut sends = StagedSends::default();
        for (token, to) in [(1, PEER), (2, PEER), (3, OTHER)] {
            let copy = Region::new(4096);
            let pieces = [copy.claim()];
            sends.insert(number, token, to, copy, &pieces);
        }
        sends
    }

    #[test]
    fn a_copy_stays_until_its_operation_is_answered() {
        let [first, second, ..] = InterfaceNumber::ALL;
        let mut sends = sends(first);
        assert_eq!(sends.bytes(), 3 * 4096);
        assert!(sends.take(second, 1).is_none());
        assert!(sends.take(first, 1).is_some());
        assert!(sends.take(first, 1).is_none(), "it was answered");
        assert_eq!(sends.bytes(), 2 * 4096);
    }

    #[test]
    fn copies_that_only_a_lost_process_could_use_go() {
        let [first, ..] = InterfaceNumber::ALL;
        let mut sends = sends(first);
        sends.forget(PEER);
        assert_eq!(sends.bytes(), 4096);
        assert!(sends.take(first, 3).is_some());
    }

    #[test]
    fn a_reply_to_a_closed_interface_has_nowhere_to_go_but_its_copy_stays() {
        let [first, ..] = InterfaceNumber::ALL;
        let mut sends = sends(first);
        sends.close(first);
        let sent = sends.take(first, 2).expect("a peer may use it");
        assert!(sent.pieces.is_empty());
        let left = sends.take_all();
        assert_eq!((left[&PEER].len(), left[&OTHER].len()), (1, 1));
        assert_eq!(sends.bytes(), 0);
    }
}
