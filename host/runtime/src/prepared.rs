//! Operations on direct entries of peers that are like earlier ones: between the same descriptor
//! and the same entry, of the same kind, at whatever offset. All else was looked up and checked for
//! the first one. That holds as long as no descriptor has changed, the peer is the same, and so is
//! the table of its direct entries.

use crate::carry_out::is_word_atomic;
use lintel_claim::{Claim, copy, word_atomic};
use lintel_engine4::{PreparedCounts, Transfer};
use lintel_nal_shm::{DirectPlace, MAX_DIRECT, ShmNal};
use lintel_types::{AckRequest, Handle, ProcessId};
use lintel_wire::Verb;

/// Operations that are kept, a power of two.
const PLACES: usize = 16;

/// Operations of an interface that were carried out lately, each at the place that its target
/// gives.
#[derive(Default)]
pub(crate) struct PreparedOperations([Option<Operation>; PLACES]);

/// What was found out for an operation.
pub(crate) struct Operation {
    kind: Kind,
    source: Claim,
    sink: Claim,
    target: DirectPlace,
    pub(crate) counts: PreparedCounts,
}

/// What operations have in common that need be looked up once.
struct Kind {
    verb: Verb,
    ack: AckRequest,
    source: Handle,
    sink: Handle,
    target: ProcessId,
    portal: u32,
    match_bits: u64,
}

impl Kind {
    fn of(transfer: &Transfer) -> Kind {
        Kind {
            verb: transfer.verb,
            ack: transfer.ack,
            source: transfer.source,
            sink: transfer.sink,
            target: transfer.target,
            portal: transfer.portal,
            match_bits: transfer.match_bits,
        }
    }
}

impl Kind {
    /// Whether a transfer is of this kind. One field after the other, where a derived comparison
    /// would have the other kind in memory.
    #[inline(always)]
    fn is_of(&self, transfer: &Transfer) -> bool {
        self.verb == transfer.verb
            && self.source == transfer.source
            && self.sink == transfer.sink
            && self.target == transfer.target
            && self.portal == transfer.portal
            && self.match_bits == transfer.match_bits
            && self.ack == transfer.ack
    }
}

impl PreparedOperations {
    /// The operation that a transfer is like, if it is kept.
    #[inline(always)]
    pub(crate) fn find(&self, transfer: &Transfer) -> Option<&Operation> {
        let operation = self.0[PreparedOperations::place(transfer)].as_ref()?;
        operation.kind.is_of(transfer).then_some(operation)
    }

    /// Keeps what was found out for an operation, with the memory of its descriptors.
    pub(crate) fn keep(
        &mut self,
        transfer: &Transfer,
        (source, sink): (Claim, Claim),
        target: DirectPlace,
        counts: PreparedCounts,
    ) {
        self.0[PreparedOperations::place(transfer)] = Some(Operation {
            kind: Kind::of(transfer),
            source,
            sink,
            target,
            counts,
        });
    }

    #[inline(always)]
    fn place(transfer: &Transfer) -> usize {
        let ProcessId { nid, pid } = transfer.target;
        // Nothing of the transfer has been checked yet.
        let of_kind = (transfer.verb as u32 * 3)
            .wrapping_add(transfer.portal)
            .wrapping_add(transfer.match_bits as u32);
        (nid ^ pid).wrapping_add(of_kind) as usize % PLACES
    }
}

impl Operation {
    /// Carries out one that is like this one; nothing if it has to be looked at otherwise.
    #[inline(always)]
    pub(crate) fn run(&self, near: &mut ShmNal, transfer: &Transfer) -> Option<()> {
        let (offset, length) = (transfer.remote_offset, transfer.length);
        let range = (offset, length);
        if length > MAX_DIRECT {
            return None;
        }
        match transfer.verb {
            Verb::Put => {
                let source = self.source.part(transfer.source_offset, length)?;
                near.access_at(&self.target, range, |target| Some(copy(source, target)))?;
            }
            Verb::Get => {
                let sink = self.sink.part(transfer.sink_offset, length)?;
                near.access_at(&self.target, range, |target| Some(copy(target, sink)))?;
            }
            Verb::Atomic | Verb::FetchAtomic if is_word_atomic(transfer) => {
                self.target.prefetch_to_write(offset);
                let source = self.source.part(transfer.source_offset, length)?;
                let sink = match transfer.verb {
                    Verb::FetchAtomic => Some(self.sink.part(transfer.sink_offset, length)?),
                    _ => None,
                };
                let operand = source.load_u64(0)?;
                let operation = transfer.operation;
                let old = near.access_at(
                    &self.target,
                    range,
                    #[inline(always)]
                    |target| word_atomic(operation, target, operand),
                )?;
                if let Some(sink) = sink {
                    sink.store_u64(0, old);
                }
            }
            _ => return None,
        }
        Some(())
    }
}
