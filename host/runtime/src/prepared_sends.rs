//! Short puts and gets that are like earlier ones: of the same descriptor and the same process of
//! this node. All else was looked up and checked for the first one. That holds as long as no
//! descriptor has changed.

use lintel_bridge::CounterCell;
use lintel_engine4::{PreparedSend, Transfer};
use lintel_memory::Span;
use lintel_nal_shm::SendPlace;
use lintel_types::{AckRequest, Handle};
use lintel_wire::Verb;

/// Sends of a verb that are kept, a power of two: as many as the processes of a large node.
const PLACES: usize = 64;

/// Operations of an interface that were sent lately.
pub(crate) struct PreparedSends<S> {
    /// The bits of a target by which the interface addresses it: a rank is half of them, and
    /// callers leave the other half as it is.
    addressed: u64,
    /// Puts, and gets, each at the place that its target gives.
    kept: [[Option<Kept<S>>; PLACES]; 2],
}

/// What was found out for a send.
#[repr(align(64))]
pub(crate) struct Kept<S> {
    md: Handle,
    ack: AckRequest,
    /// As the interface addresses it.
    target: u64,
    /// The descriptor if they are [silent](PreparedSend::is_silent), else none.
    silent_md: Handle,
    /// Where its target is kept.
    pub(crate) place: SendPlace,
    /// Where the counter is published that counts them, if one does.
    pub(crate) cell: Option<&'static CounterCell>,
    pub(crate) send: PreparedSend<S>,
}

impl<S: Span> PreparedSends<S> {
    /// None yet, of a logical interface or a physical one.
    pub(crate) fn new(is_logical: bool) -> PreparedSends<S> {
        PreparedSends {
            addressed: match is_logical {
                true => u32::MAX.into(),
                false => u64::MAX,
            },
            kept: [const { [const { None }; PLACES] }; 2],
        }
    }

    /// Its target, as the interface addresses it.
    #[inline(always)]
    fn target(&self, transfer: &Transfer) -> u64 {
        transfer.target.word() & self.addressed
    }

    /// Keeps what was found out for a send.
    pub(crate) fn keep(
        &mut self,
        transfer: &Transfer,
        send: PreparedSend<S>,
        place: SendPlace,
        cell: Option<&'static CounterCell>,
    ) {
        let (md, target) = (transfer.md(), self.target(transfer));
        self.kept[row(transfer.verb)][self::place(transfer, target)] = Some(Kept {
            md,
            ack: transfer.ack,
            target,
            silent_md: match send.is_silent() {
                true => md,
                false => Handle::INVALID,
            },
            place,
            cell,
            send,
        });
    }

    /// What was found out for sends like this one, if it is kept.
    #[inline(always)]
    pub(crate) fn find(&self, transfer: &Transfer) -> Option<&Kept<S>> {
        let target = self.target(transfer);
        let kept = self.kept[row(transfer.verb)][place(transfer, target)].as_ref()?;
        let is_like = kept.md == transfer.md() && kept.target == target && kept.ack == transfer.ack;
        is_like.then_some(kept)
    }

    /// As [`find`](Self::find), for puts that ask for no acknowledgement; nothing if a full event
    /// reports them.
    #[inline(always)]
    pub(crate) fn find_silent(&self, transfer: &Transfer) -> Option<&Kept<S>> {
        let target = self.target(transfer);
        let kept = self.kept[row(transfer.verb)][place(transfer, target)].as_ref()?;
        let is_like = kept.silent_md == transfer.md() && kept.target == target;
        is_like.then_some(kept)
    }
}

/// Where those of a verb are kept.
#[inline(always)]
fn row(verb: Verb) -> usize {
    usize::from(verb == Verb::Get)
}

/// Where one is kept among those of its verb.
#[inline(always)]
fn place(transfer: &Transfer, target: u64) -> usize {
    let of_target = (target as u32).wrapping_add((target >> 32) as u32);
    let of_md = u32::from(transfer.md().index()).wrapping_add(transfer.ack as u32);
    of_target.wrapping_add(of_md) as usize % PLACES
}
