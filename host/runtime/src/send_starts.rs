//! Short messages to processes of this node that are like earlier ones: they are written where the
//! process reads them, by a call that looks up and checks nothing else.

use crate::core::Core;
use crate::library::Library;
use crate::owner::{LocalProcess, Owner};
use crate::resources::Placement;
use lintel_bridge::Tables;
use lintel_claim::Claim;
use lintel_engine4::Transfer;
use lintel_lock::lock_by_bias;
use lintel_nal_shm::{INLINE, LONGEST_QUICK};
use lintel_wire::Verb;

/// Bytes of the longest one that is started without a call of another function.
const LONGEST_INLINE: u64 = INLINE as u64;
/// Sends that were started otherwise, and puts that landed otherwise, of which one is prepared. A prime,
/// so that each of several that take turns is.
pub(crate) const PREPARED_EVERY: u32 = 17;

impl Library<LocalProcess> {
    /// Starts a put that is like an earlier one, reported by a counter at most. False, with nothing
    /// done, for all that takes more; this calls no function.
    #[inline(always)]
    pub(crate) fn repeat_silent_put(&self, transfer: &Transfer) -> bool {
        if transfer.length > LONGEST_INLINE {
            return false;
        }
        let core = lock_by_bias(&self.core);
        core.is_some_and(
            #[inline(always)]
            |mut core| {
                let core = core.as_mut();
                self.count_repeated(core.and_then(|core| core.repeat_silent_put(transfer)))
            },
        )
    }

    /// Starts an operation that is like an earlier one. False, with nothing done, for all that takes
    /// more.
    #[inline(always)]
    pub(crate) fn repeat_send(&self, transfer: &Transfer) -> bool {
        if transfer.length > LONGEST_QUICK {
            return false;
        }
        self.core.try_lock().is_some_and(
            #[inline(always)]
            |mut core| {
                let core = core.as_mut();
                self.count_repeated(core.and_then(|core| core.repeat_send(transfer)))
            },
        )
    }

    /// Whether an operation was repeated; counts what it has posted or counted.
    #[inline(always)]
    fn count_repeated(&self, repeated: Option<bool>) -> bool {
        if repeated == Some(true) {
            self.count_activity();
        }
        repeated.is_some()
    }
}

/// Both say whether they have posted or counted something; nothing, with nothing done, for what
/// isn't like an earlier one, and where more than a message might follow.
impl Core<LocalProcess> {
    #[inline(always)]
    fn repeat_silent_put(&mut self, transfer: &Transfer) -> Option<bool> {
        let near = self.transports.nal.near_mut()?;
        let opened = self.interfaces[transfer.md().interface().position()].as_mut()?;
        let kept = opened.sends.find_silent(transfer)?;
        let counts = kept.send.counts();
        if !opened.interface.is_prepared(counts) || self.wakeup.callers_sleep() {
            return None;
        }
        let body = kept.send.body(transfer)?;
        let words = opened.interface.request(transfer).to_words();
        let count = match kept.cell {
            Some(cell) => Some((cell, opened.interface.first_successes(counts)?)),
            None => None,
        };
        near.send_quickly(&kept.place, &words, body, transfer.length)?;
        self.transports.sent = true;
        near.publish_head();
        let is_counted = count.is_some();
        if let Some((cell, successes)) = count {
            *successes = successes.wrapping_add(counts.first_by(transfer.length));
            cell.set_success(*successes);
        }
        Some(is_counted)
    }

    #[inline(always)]
    fn repeat_send(&mut self, transfer: &Transfer) -> Option<bool> {
        let near = self.transports.nal.near_mut()?;
        let number = transfer.md().interface();
        let opened = self.interfaces[number.position()].as_mut()?;
        let kept = opened.sends.find(transfer)?;
        let (send, counts) = (&kept.send, kept.send.counts());
        if !opened.interface.is_prepared(counts) || self.wakeup.callers_sleep() {
            return None;
        }
        if kept.cell.is_some() {
            opened.interface.first_successes(counts)?;
        }
        let tables = &self.owner.tables()[number.position()];
        let has_posted = opened.interface.repeat_send(
            send,
            transfer,
            #[inline(always)]
            |request, body| {
                let body = match request.verb {
                    // It is to be filled.
                    Verb::Get => Claim::empty(),
                    _ => body,
                };
                near.send_quickly(&kept.place, &request.to_words(), body, request.length)
            },
            #[inline(always)]
            |queue, event| tables.post(queue, event),
        )?;
        self.transports.sent = true;
        near.publish_head();
        if let Some(cell) = kept.cell {
            let successes = opened.interface.first_successes(counts)?;
            *successes = successes.wrapping_add(counts.first_by(transfer.length));
            cell.set_success(*successes);
        }
        Some(has_posted || kept.cell.is_some())
    }
}

impl<O: Owner> Core<O> {
    /// Whether a send that was started otherwise is to be [prepared](Self::prepare_send): now and
    /// then one is.
    #[inline(always)]
    pub(crate) fn prepares_send(&mut self, verb: Verb, length: u64) -> bool {
        // Atomics would take fewer instructions that way, and no less time.
        if length > LONGEST_QUICK || !matches!(verb, Verb::Put | Verb::Get) {
            return false;
        }
        self.unprepared_sends += 1;
        self.unprepared_sends == PREPARED_EVERY
    }

    /// Finds out what holds for all that are like an operation on a process that something was sent
    /// to before; nothing for what can't be repeated.
    #[cold]
    #[inline(never)]
    pub(crate) fn prepare_send(&mut self, transfer: &Transfer) -> Option<()> {
        self.unprepared_sends = 0;
        if O::PLACEMENT != Placement::Accelerated {
            return None;
        }
        let number = transfer.md().interface();
        let opened = self.interfaces[number.position()].as_mut()?;
        let send = opened.interface.prepare_send(transfer, LONGEST_QUICK)?;
        let place = self.transports.nal.near_mut()?.send_place(send.target())?;
        let cell = match send.counts().counters() {
            [Some(counter), _] => Some(self.owner.lasting_cell(number, counter)?),
            _ => None,
        };
        opened.sends.keep(transfer, send, place, cell);
        Some(())
    }
}
