//! Unexpected headers: messages that landed in the overflow list before an entry of the
//! priority list wanted them (Portals 4.3, section `Matching list entries and matching
//! lists`).

use crate::entries::{Arriving, EntrySpec};
use crate::target::Extent;
use crate::{Host, Interface};
use lintel_memory::Span;
use lintel_types::{
    CounterIndex, EntryIndex, Event, EventKind, HeaderIndex, List, MeOptions, NiFail, ProcessId,
};
use lintel_wire::{Request, Verb};

/// The header of a message that landed in the overflow list, until an entry of the
/// priority list or a search takes it.
pub(crate) struct Unexpected {
    pub(crate) entry: EntryIndex,
    pub(crate) request: Request,
    pub(crate) from: ProcessId,
    pub(crate) uid: u32,
    pub(crate) start: u64,
    pub(crate) mlength: u64,
    pub(crate) fail: NiFail,
    pub(crate) landed: bool,
    /// Takes it once it has landed.
    pub(crate) receiver: Option<OverflowReceiver>,
}

/// The entry or search that receives an unexpected message, as its events need it.
#[derive(Clone, Copy)]
pub(crate) struct OverflowReceiver {
    pub(crate) user_ptr: u64,
    pub(crate) options: MeOptions,
    pub(crate) counter: Option<CounterIndex>,
}

impl Unexpected {
    /// The header of a message that begins to land in `entry`.
    pub(crate) fn new(
        entry: EntryIndex,
        from: ProcessId,
        uid: u32,
        request: &Request,
        extent: Extent,
    ) -> Self {
        Unexpected {
            entry,
            request: *request,
            from,
            uid,
            start: extent.start,
            mlength: extent.mlength,
            fail: NiFail::Ok,
            landed: false,
            receiver: None,
        }
    }
}

impl<S: Span> Interface<S> {
    /// Keeps the header of a message that lands in the overflow list.
    #[inline(never)]
    pub(crate) fn remember(&mut self, header: Unexpected) -> Option<HeaderIndex> {
        let (entry, portal) = (header.entry, header.request.portal);
        let match_bits = header.request.match_bits;
        let (slot, _) = self.unexpected.insert(header).ok()?;
        if let Some(entry) = self.entries.at_mut(entry) {
            entry.unexpected += 1;
        }
        let key = if self.matching() { match_bits } else { 0 };
        if let Ok(portal) = self.portal_mut(portal) {
            portal.unexpected.push(slot.0, key);
        }
        Some(slot)
    }

    /// Hands matching unexpected messages to a new entry; true once that has used it up. The
    /// headers advance a locally managed offset only with PTL_ME_LOCAL_INC_UH_RLENGTH
    /// (Portals 4.3, section `Matching list entries and matching lists`).
    pub(crate) fn take_unexpected<H: Host<S>>(
        &mut self,
        index: EntryIndex,
        spec: &EntrySpec<S>,
        host: &mut H,
    ) -> bool {
        let once = spec.options.contains(MeOptions::USE_ONCE);
        let advances = spec.options.contains(MeOptions::LOCAL_INC_UH_RLENGTH);
        while let Some(slot) = self.find_unexpected(spec, index) {
            let Some(entry) = self.entries.at_mut(index) else {
                return true;
            };
            if advances && entry.locally_managed() {
                let rlength = self
                    .unexpected
                    .at(slot)
                    .map_or(0, |header| header.request.length);
                entry.local_offset = entry.local_offset.saturating_add(rlength);
            }
            let (receiver, exhausted) = (entry.receiver(), advances && entry.exhausted());
            self.assign_unexpected(slot, receiver, host);
            if once || exhausted {
                return true;
            }
        }
        false
    }

    fn find_unexpected(&mut self, spec: &EntrySpec<S>, index: EntryIndex) -> Option<HeaderIndex> {
        let (logical, (bits, ignore)) = (self.logical(), self.pattern(spec));
        let portal = self.portals.get_mut(spec.portal.position())?.as_mut()?;
        if portal.unexpected.is_empty() {
            return None;
        }
        let entry = self.entries.at(index)?;
        let (found, walked) = portal.unexpected.find(bits, ignore, |slot| {
            self.unexpected.at(slot.into()).is_some_and(|header| {
                entry.accepts(logical, Arriving::new(header.from, &header.request))
            })
        });
        self.work.walked += u64::from(walked);
        found.map(HeaderIndex)
    }

    /// Takes an unexpected header off its list and reports it to the receiver, now or
    /// once its bytes have landed.
    pub(crate) fn assign_unexpected<H: Host<S>>(
        &mut self,
        slot: HeaderIndex,
        receiver: OverflowReceiver,
        host: &mut H,
    ) {
        let Some(header) = self.unexpected.at_mut(slot) else {
            return;
        };
        let portal = header.request.portal;
        header.receiver = Some(receiver);
        let landed = header.landed;
        if let Ok(portal) = self.portal_mut(portal) {
            portal.unexpected.remove(slot.0);
        }
        if landed {
            self.deliver_unexpected(slot, host);
        }
    }

    /// The overflow event and count of a header that has a receiver and has landed.
    pub(crate) fn deliver_unexpected<H: Host<S>>(&mut self, slot: HeaderIndex, host: &mut H) {
        let Some(header) = self.unexpected.remove(slot) else {
            return;
        };
        if let Some(receiver) = header.receiver {
            let queue = self.queue_of(header.request.portal);
            if !receiver.options.contains(MeOptions::EVENT_OVER_DISABLE) {
                if let Some(queue) = queue {
                    let kind = overflow_kind(header.request.verb);
                    let event = self.unexpected_event(&header, kind, receiver.user_ptr);
                    self.post(host, queue, &event);
                }
            }
            self.count_overflow(&header, receiver, host);
        }
        self.release_overflow(header.entry, host);
    }

    fn count_overflow<H: Host<S>>(
        &mut self,
        header: &Unexpected,
        to: OverflowReceiver,
        host: &mut H,
    ) {
        if to.options.contains(MeOptions::EVENT_CT_OVERFLOW) {
            if let Some(counter) = to.counter {
                let bytes =
                    (to.options.contains(MeOptions::EVENT_CT_BYTES)).then_some(header.mlength);
                self.count(counter, header.fail, bytes, host);
            }
        }
    }

    pub(crate) fn unexpected_event(
        &self,
        header: &Unexpected,
        kind: EventKind,
        user_ptr: u64,
    ) -> Event {
        let request = &header.request;
        Event {
            start: header.start,
            user_ptr,
            hdr_data: request.hdr_data,
            match_bits: request.match_bits,
            rlength: request.length,
            mlength: header.mlength,
            remote_offset: request.remote_offset,
            initiator: self.initiator(header.from, request.rank),
            uid: header.uid,
            pt_index: request.portal.into(),
            kind,
            list: List::Overflow,
            ni_fail: header.fail,
            operation: request.operation.into(),
            datatype: request.datatype.into(),
        }
    }

    /// How an initiator is named in events: by rank on a logical interface.
    #[inline]
    pub(crate) fn initiator(&self, from: ProcessId, rank: u32) -> ProcessId {
        if self.logical() {
            ProcessId::from_rank(rank)
        } else {
            from
        }
    }

    /// One unexpected header fewer points into an entry; frees it if it was the
    /// last and the entry is off its list.
    pub(crate) fn release_overflow<H: Host<S>>(&mut self, index: EntryIndex, host: &mut H) {
        if let Some(entry) = self.entries.at_mut(index) {
            entry.unexpected -= 1;
        }
        self.free_if_spent(index, host);
    }

    /// Drops an unexpected header that can't be matched any more.
    pub(crate) fn forget_unexpected(&mut self, slot: HeaderIndex) {
        let Some(header) = self.unexpected.remove(slot) else {
            return;
        };
        if let Ok(portal) = self.portal_mut(header.request.portal) {
            portal.unexpected.remove(slot.0);
        }
        if let Some(entry) = self.entries.at_mut(header.entry) {
            entry.unexpected -= 1;
            if !entry.linked && entry.unexpected == 0 {
                self.entries.discard(header.entry);
            }
        }
    }
}

fn overflow_kind(verb: Verb) -> EventKind {
    match verb {
        Verb::Put => EventKind::PutOverflow,
        Verb::Get => EventKind::GetOverflow,
        Verb::Atomic => EventKind::AtomicOverflow,
        Verb::FetchAtomic | Verb::Swap => EventKind::FetchAtomicOverflow,
    }
}
