//! Operations on direct entries of peers: the first of a kind, and those that are like it.

use crate::carry_out::{is_word_atomic, wanted};
use crate::core::Core;
use crate::library::Library;
use crate::mover::Mover;
use crate::owner::{LocalProcess, Owner};
use crate::prepared::{Asked, Ends, Prepared, WORD};
use crate::resources::Placement;
use lintel_claim::SHORT;
use lintel_engine4::Transfer;
use lintel_lock::lock_by_bias;
use lintel_nal_shm::{MAX_DIRECT, ShmNal};
use lintel_wire::Verb;

impl Library<LocalProcess> {
    /// Carries out an operation on one word that is like an earlier one. False, with nothing done,
    /// for all that takes more: then it has to be started.
    ///
    /// This calls no function, so that its caller saves few registers and keeps its arguments where
    /// they are, for the function that starts it otherwise.
    #[inline(always)]
    pub(crate) fn repeat_word(&self, asked: &Asked) -> bool {
        asked.length == WORD
            && self.repeat_quickly(
                asked,
                WORD,
                #[inline(always)]
                |operation, near| operation.run_word(near, asked),
            )
    }

    /// As [`repeat_word`](Self::repeat_word), or a put or get of 16 to 64 bytes.
    #[inline(always)]
    pub(crate) fn repeat_short(&self, asked: &Asked) -> bool {
        asked.length <= SHORT
            && self.repeat_quickly(
                asked,
                asked.length,
                #[inline(always)]
                |operation, near| operation.run_short(near, asked),
            )
    }

    /// As [`repeat_word`](Self::repeat_word), a put or get of any length.
    #[inline(always)]
    pub(crate) fn repeat_bytes(&self, asked: &Asked) -> bool {
        self.repeat_quickly(
            asked,
            asked.length,
            #[inline(always)]
            |operation, near| operation.run_bytes(near, asked),
        )
    }

    #[inline(always)]
    fn repeat_quickly(
        &self,
        asked: &Asked,
        length: u64,
        run: impl FnOnce(&Prepared, &mut ShmNal) -> Option<()>,
    ) -> bool {
        let Some(mut core) = lock_by_bias(&self.core) else {
            return false;
        };
        let core = core.as_mut();
        match core.and_then(|core| core.repeat_quickly(asked, length, run)) {
            Some(true) => self.count_activity(),
            Some(false) => {}
            None => return false,
        }
        true
    }
}

impl Core<LocalProcess> {
    /// Whether it was counted; nothing, with nothing done, for what isn't like an earlier one, and
    /// if its count would wake anyone or release anything.
    #[inline(always)]
    fn repeat_quickly(
        &mut self,
        asked: &Asked,
        length: u64,
        run: impl FnOnce(&Prepared, &mut ShmNal) -> Option<()>,
    ) -> Option<bool> {
        let number = asked.md().interface();
        let opened = self.interfaces[number.position()].as_mut()?;
        let operation = opened.prepared.find(asked)?;
        let counts = &operation.counts;
        if !opened.interface.is_prepared(counts) {
            return None;
        }
        let near = self.transports.nal.near_mut()?;
        let Some(cell) = operation.cell else {
            run(operation, near)?;
            return Some(false);
        };
        let successes = opened.interface.first_successes(counts)?;
        if self.wakeup.callers_sleep() {
            return None;
        }
        run(operation, near)?;
        *successes = successes.wrapping_add(counts.first_by(length));
        cell.set_success(*successes);
        Some(true)
    }
}

impl<O: Owner> Core<O> {
    /// Whether [`repeat`](Self::repeat) and [`prepare`](Self::prepare) are worth trying.
    #[inline(always)]
    pub(crate) fn looks_at_direct(&self) -> bool {
        let near = self.transports.nal.near();
        O::PLACEMENT == Placement::Accelerated && near.is_some_and(ShmNal::looks_at_direct)
    }

    /// Whether an operation on so many bytes may be on a direct entry of a peer, of either kind.
    #[inline(always)]
    pub(crate) fn may_carry_out(&self, length: u64) -> bool {
        let near = self.transports.nal.near();
        let may = |near: &ShmNal| near.looks_at_direct() | near.may_be_away(length);
        O::PLACEMENT == Placement::Accelerated && near.is_some_and(may)
    }

    /// Whether the target of a transfer has direct entries that the system copies from and to,
    /// and won't copy the bytes itself.
    pub(crate) fn is_away(&mut self, transfer: &Transfer) -> bool {
        let opened = self.interfaces[transfer.md().interface().position()].as_ref();
        let target = opened.and_then(|opened| opened.interface.route(transfer.target).ok());
        let near = self.transports.nal.near_mut();
        near.zip(target).is_some_and(|(near, target)| {
            near.knows_private() && near.is_away(target, transfer.length)
        })
    }

    /// Carries out an operation that was [prepared](Self::prepare); nothing, with nothing done, for
    /// others. Whether it was counted.
    #[inline(always)]
    pub(crate) fn repeat(&mut self, transfer: &Transfer) -> Option<bool> {
        let number = transfer.md().interface();
        let opened = self.interfaces[number.position()].as_ref()?;
        let asked = Asked::of(transfer);
        let operation = opened.prepared.find(&asked)?;
        if !opened.interface.is_prepared(&operation.counts) {
            return None;
        }
        let near = self.transports.nal.near_mut()?;
        operation.run(near, &asked)?;
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
        let is_limited = limits.max_msg_size < MAX_DIRECT
            || limits.max_atomic_size < WORD
            || limits.max_fetch_atomic_size < WORD;
        let is_moved = matches!(transfer.verb, Verb::Put | Verb::Get);
        if is_limited || !is_moved && !is_word_atomic(transfer) {
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
        let ends = Ends {
            source,
            sink,
            target,
        };
        let owner = &self.owner;
        let cell = |counter| owner.lasting_cell(number, counter);
        opened.prepared.keep(transfer, ends, prepared.counts, cell);
        self.repeat(transfer)
    }
}
