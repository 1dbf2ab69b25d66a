//! Puts that land like earlier ones: from the same process, to the same portal table entry, with
//! the same match bits. What was found for the first one holds for them too, until an entry leaves
//! the lists there other than by its only message, or the portal table entry is disabled: entries are
//! appended behind those that are there.

use crate::Interface;
use crate::direct::PreparedCounts;
use crate::target::reports;
use lintel_memory::{Buffer, Span};
use lintel_types::{Event, EventKind, List, MeOptions, NiFail, PortalIndex, ProcessId, QueueIndex};
use lintel_wire::Request;

/// What was found for a put that landed, and holds for others from the same process to the same
/// portal table entry with the same match bits: see [`Interface::prepare_landing`].
#[derive(Clone, Copy, Debug)]
pub struct PreparedLanding<S> {
    portal: PortalIndex,
    /// What the portal table entry's `changed` was.
    changed: u64,
    /// All memory of the list entry.
    memory: S,
    /// The queue of the event that reports it.
    queue: Option<QueueIndex>,
    /// What counts it.
    counts: PreparedCounts,
    user_ptr: u64,
    /// As events name it.
    initiator: ProcessId,
    uid: u32,
}

impl<S> PreparedLanding<S> {
    /// The queue of the full event that reports it, if one does.
    #[inline(always)]
    pub fn queue(&self) -> Option<QueueIndex> {
        self.queue
    }

    /// What counts it.
    #[inline(always)]
    pub fn counts(&self) -> &PreparedCounts {
        &self.counts
    }
}

impl<S: Span> Interface<S> {
    /// What holds for a put that wants no acknowledgement and is about to land, and for others that
    /// are like it: see [`repeat_landing`](Self::repeat_landing). Nothing if each such put has to
    /// be looked at anew: its entry isn't the first one that is looked at, takes some lengths alone,
    /// is used once or manages its offset, its memory may not be there, or there is flow control.
    pub fn prepare_landing(
        &self,
        from: ProcessId,
        uid: u32,
        put: &Request,
    ) -> Option<PreparedLanding<S>> {
        let portal = self.portal(put.portal).ok()?;
        if portal.flow_controlled() {
            return None;
        }
        let place = self.place(portal, from, uid, put)?;
        let entry = self.entries.at(place.entry)?;
        let options = place.options;
        let varying = MeOptions::USE_ONCE.union(MeOptions::NO_TRUNCATE);
        let Buffer::Contiguous(memory) = entry.spec.buffer else {
            return None;
        };
        // One in front may pass over this put, and take another by its length.
        let is_first = place.walked == 1;
        let is_plain = put.token == 0 && place.is_accessible && !options.intersects(varying);
        let counts_bytes = options.contains(MeOptions::EVENT_CT_BYTES);
        let counter = place
            .counter
            .filter(|_| options.contains(MeOptions::EVENT_CT_COMM));
        let count = counter.map(|counter| (counter, counts_bytes));
        (is_plain && is_first).then(|| PreparedLanding {
            portal: put.portal,
            changed: portal.changed,
            memory,
            queue: portal.queue.filter(|_| reports(options, NiFail::Ok)),
            counts: PreparedCounts::new([count, None], 0),
            user_ptr: place.user_ptr,
            initiator: self.initiator(from, put.rank),
            uid,
        })
    }

    /// What was found for puts holds no longer: a queue or a counter has ended.
    pub(crate) fn forget_landings(&mut self) {
        self.portals_changed += 1;
        for portal in self.portals.iter_mut().flatten() {
            portal.changed = self.portals_changed;
        }
    }

    /// Whether what was found for a put still holds.
    #[inline(always)]
    pub fn still_lands(&self, prepared: &PreparedLanding<S>) -> bool {
        let portal = self.portal(prepared.portal);
        portal.is_ok_and(|portal| portal.changed == prepared.changed)
    }

    /// Lands a put that is like the one that `prepared` was found for, as
    /// [`deliver`](Self::deliver) does: the caller has made sure that it is. `copy` moves its bytes.
    /// The caller counts it, and posts the event that this returns, if it
    /// [has a queue](PreparedLanding::queue).
    ///
    /// Nothing, with nothing done, if it has to land otherwise.
    #[inline(always)]
    pub fn repeat_landing(
        &mut self,
        prepared: &PreparedLanding<S>,
        put: &Request,
        copy: impl FnOnce(S),
    ) -> Option<Event> {
        let is_short = put.length <= self.config.limits.max_msg_size;
        if !is_short || !self.still_lands(prepared) {
            return None;
        }
        let memory = prepared.memory.part(put.remote_offset, put.length)?;
        copy(memory);
        self.work.requests += 1;
        self.work.walked += 1;
        self.work.counts += u64::from(prepared.counts.is_any());
        self.work.events += u64::from(prepared.queue.is_some());
        Some(Event {
            start: memory.address(),
            user_ptr: prepared.user_ptr,
            hdr_data: put.hdr_data,
            match_bits: put.match_bits,
            rlength: put.length,
            mlength: put.length,
            remote_offset: put.remote_offset,
            initiator: prepared.initiator,
            uid: prepared.uid,
            pt_index: prepared.portal.into(),
            kind: EventKind::Put,
            list: List::Priority,
            ni_fail: NiFail::Ok,
            operation: put.operation.into(),
            datatype: put.datatype.into(),
        })
    }
}
