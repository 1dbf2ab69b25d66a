//! Operations on direct entries of peers: the first of a kind, and those that are like it.

use crate::carry_out::wanted;
use crate::core::Core;
use crate::mover::Mover;
use crate::owner::Owner;
use crate::resources::Placement;
use lintel_engine4::Transfer;
use lintel_nal_shm::{MAX_DIRECT, ShmNal};
use lintel_types::{Handle, ProcessId};

impl<O: Owner> Core<O> {
    /// Whether [`repeat`](Self::repeat) and [`prepare`](Self::prepare) are worth trying.
    #[inline(always)]
    pub(crate) fn may_carry_out(&self) -> bool {
        let near = self.transports.nal.near();
        O::PLACEMENT == Placement::Accelerated && near.is_some_and(ShmNal::looks_at_direct)
    }

    /// Whether the target of a transfer has direct entries that the system copies from and to,
    /// and makes no call.
    #[inline(always)]
    pub(crate) fn is_away(&mut self, transfer: impl Fn() -> Transfer) -> bool {
        let near = self.transports.nal.near();
        let knows =
            O::PLACEMENT == Placement::Accelerated && near.is_some_and(ShmNal::knows_private);
        knows && self.is_target_away(transfer().md(), transfer().target, transfer().length)
    }

    #[inline(never)]
    fn is_target_away(&mut self, md: Handle, target: ProcessId, length: u64) -> bool {
        let opened = self.interfaces[md.interface().position()].as_ref();
        let target = opened.and_then(|opened| opened.interface.route(target).ok());
        let near = self.transports.nal.near_mut();
        near.zip(target)
            .is_some_and(|(near, target)| near.is_away(target, length))
    }

    /// Carries out an operation that was [prepared](Self::prepare); nothing, with nothing done, for
    /// others. Whether it was counted.
    #[inline(always)]
    pub(crate) fn repeat(&mut self, transfer: &Transfer) -> Option<bool> {
        let number = transfer.md().interface();
        let opened = self.interfaces[number.position()].as_ref()?;
        let operation = opened.prepared.find(transfer)?;
        if !opened.interface.is_prepared(&operation.counts) {
            return None;
        }
        operation.run(self.transports.nal.near_mut()?, transfer)?;
        let counts = operation.counts;
        // Whatever else there may be: it is done.
        if let (true, Some((interface, mut effects))) = (counts.is_any(), self.interface(number)) {
            interface.count_prepared(&counts, transfer.length, &mut effects);
        }
        Some(counts.is_any())
    }

    /// Carries out the first of operations that are then [repeated](Self::repeat); nothing, with
    /// nothing done, if it must be looked at otherwise. Whether it was counted.
    #[cold]
    #[inline(never)]
    pub(crate) fn prepare(&mut self, transfer: &Transfer) -> Option<bool> {
        let number = transfer.md().interface();
        let opened = self.interfaces[number.position()].as_mut()?;
        let limits = opened.interface.limits();
        let word = size_of::<u64>() as u64;
        if limits.max_msg_size < MAX_DIRECT
            || limits.max_atomic_size < word
            || limits.max_fetch_atomic_size < word
        {
            return None;
        }
        let prepared = opened.interface.prepare(transfer)?;
        if prepared.target == self.transports.me {
            return None;
        }
        let near = self.transports.nal.near_mut()?;
        let target = near.find(prepared.target, &wanted(number, transfer))?;
        let spans = [prepared.source, prepared.sink];
        let &[source, sink] = O::Mover::as_claims(&spans)? else {
            return None;
        };
        let kept = &mut opened.prepared;
        kept.keep(transfer, (source, sink), target, prepared.counts);
        self.repeat(transfer)
    }
}
