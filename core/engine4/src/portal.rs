//! The portal table (Portals 4.3, section `Portal table entries`).

use crate::{Host, Interface};
use lintel_memory::Span;
use lintel_tables::{MatchList, Posted};
use lintel_types::{
    Error, Event, EventKind, Handle, HeaderIndex, List, PT_ANY, PortalIndex, PtOptions, QueueIndex,
    Result,
};

pub(crate) struct Portal {
    pub(crate) options: PtOptions,
    pub(crate) queue: Option<QueueIndex>,
    pub(crate) enabled: bool,
    /// A disabling that waits for messages in flight before it is announced.
    pub(crate) announce: bool,
    /// Messages that are landing.
    pub(crate) landing: u32,
    /// Events that those may cause; their slots in the queue are reserved.
    pub(crate) promised: u32,
    /// The interface's `portals_changed` when this was allocated or disabled, or an entry last left
    /// its lists otherwise than by its only message. Until it changes, the first entry that takes
    /// a message stays the first one: others are appended behind it.
    pub(crate) changed: u64,
    pub(crate) priority: MatchList,
    pub(crate) overflow: MatchList,
    pub(crate) unexpected: Posted,
}

impl Portal {
    pub(crate) fn flow_controlled(&self) -> bool {
        self.options.contains(PtOptions::FLOWCTRL)
    }

    #[inline(always)]
    pub(crate) fn list(&self, list: List) -> &MatchList {
        match list {
            List::Priority => &self.priority,
            List::Overflow => &self.overflow,
        }
    }

    #[inline(always)]
    pub(crate) fn list_mut(&mut self, list: List) -> &mut MatchList {
        match list {
            List::Priority => &mut self.priority,
            List::Overflow => &mut self.overflow,
        }
    }
}

impl<S: Span> Interface<S> {
    /// PtlPTAlloc.
    ///
    /// # Errors
    /// `ArgInvalid` for unknown options, a queue that isn't live or an index
    /// beyond the table; `PtEqNeeded` for flow control without a queue; `PtInUse`
    /// for a taken index; `PtFull` if none is free.
    pub fn portal_alloc(
        &mut self,
        options: PtOptions,
        queue: Handle,
        wanted: u32,
    ) -> Result<PortalIndex> {
        if !PtOptions::all().contains(options) {
            return Err(Error::ArgInvalid);
        }
        let queue = self.optional_queue(queue)?;
        if options.contains(PtOptions::FLOWCTRL) && queue.is_none() {
            return Err(Error::PtEqNeeded);
        }
        let index = match wanted {
            PT_ANY => self
                .portals
                .iter()
                .position(Option::is_none)
                .ok_or(Error::PtFull)?,
            index if index as usize >= self.portals.len() => return Err(Error::ArgInvalid),
            index if self.portals[index as usize].is_some() => return Err(Error::PtInUse),
            index => index as usize,
        };
        self.flow_controlled += usize::from(options.contains(PtOptions::FLOWCTRL));
        self.portals_changed += 1;
        self.portals[index] = Some(Portal {
            changed: self.portals_changed,
            options,
            queue,
            enabled: !options.contains(PtOptions::ALLOC_DISABLED),
            announce: false,
            landing: 0,
            promised: 0,
            priority: MatchList::new(),
            overflow: MatchList::new(),
            unexpected: Posted::new(),
        });
        // The table has at most 4096 entries.
        Ok(PortalIndex(index as u16))
    }

    /// PtlPTFree. Entries that triggered operations were to link there won't be.
    ///
    /// # Errors
    /// `ArgInvalid` for an index that isn't allocated, `PtInUse` while entries
    /// are linked or messages land.
    pub fn portal_free(&mut self, index: PortalIndex) -> Result<()> {
        let portal = self.portal_mut(index)?;
        if !portal.priority.is_empty() || !portal.overflow.is_empty() || portal.landing > 0 {
            return Err(Error::PtInUse);
        }
        while let (Some(slot), _) = self
            .portal_mut(index)?
            .unexpected
            .find(0, u64::MAX, |_| true)
        {
            self.forget_unexpected(HeaderIndex(slot));
        }
        // Those are left that triggered operations would link, perhaps to another one in its place.
        self.discard_entries_of(index);
        let freed = self.portals[index.position()].take();
        self.flow_controlled -= usize::from(freed.is_some_and(|portal| portal.flow_controlled()));
        Ok(())
    }

    /// PtlPTDisable; true once no message is landing any more.
    ///
    /// # Errors
    /// `ArgInvalid` for an index that isn't allocated.
    pub fn portal_disable(&mut self, index: PortalIndex) -> Result<bool> {
        let portal = self.change_portal(index)?;
        portal.enabled = false;
        portal.announce = false;
        Ok(portal.landing == 0)
    }

    /// PtlPTEnable.
    ///
    /// # Errors
    /// `ArgInvalid` for an index that isn't allocated.
    pub fn portal_enable(&mut self, index: PortalIndex) -> Result<()> {
        let portal = self.portal_mut(index)?;
        portal.enabled = true;
        portal.announce = false;
        Ok(())
    }

    /// Portal table entries with flow control that report to a queue: each has
    /// an event reserved there.
    pub fn flow_controlled_portals(&self, queue: QueueIndex) -> usize {
        self.portals_reporting_to(queue).count()
    }

    /// The portal table entries with flow control that report to a queue.
    pub(crate) fn portals_reporting_to(&self, queue: QueueIndex) -> impl Iterator<Item = &Portal> {
        self.portals
            .iter()
            .flatten()
            .filter(move |portal| portal.flow_controlled() && portal.queue == Some(queue))
    }

    #[inline]
    pub(crate) fn portal(&self, index: PortalIndex) -> Result<&Portal> {
        self.portals
            .get(index.position())
            .and_then(Option::as_ref)
            .ok_or(Error::ArgInvalid)
    }

    /// The event queue that a portal table entry reports to, if any.
    #[inline]
    pub(crate) fn queue_of(&self, index: PortalIndex) -> Option<QueueIndex> {
        self.portal(index).ok().and_then(|portal| portal.queue)
    }

    #[inline]
    pub(crate) fn portal_mut(&mut self, index: PortalIndex) -> Result<&mut Portal> {
        self.portals
            .get_mut(index.position())
            .and_then(Option::as_mut)
            .ok_or(Error::ArgInvalid)
    }

    /// A portal table entry at which messages are about to land otherwise than before.
    #[inline]
    pub(crate) fn change_portal(&mut self, index: PortalIndex) -> Result<&mut Portal> {
        self.portals_changed += 1;
        let changed = self.portals_changed;
        let portal = self.portal_mut(index)?;
        portal.changed = changed;
        Ok(portal)
    }

    /// Flow control has set in: nothing more is accepted until the owner enables the entry
    /// again (Portals 4.3, section `Portal table entries`, PTL_PT_FLOWCTRL).
    pub(crate) fn exhaust<H: Host<S>>(&mut self, index: PortalIndex, announce: bool, host: &mut H) {
        let Ok(portal) = self.portal_mut(index) else {
            return;
        };
        portal.enabled = false;
        portal.announce |= announce;
        self.announce_disabled(index, host);
    }

    /// Posts PTL_EVENT_PT_DISABLED once no message lands any more (Portals 4.3, section
    /// `Events and event queues`).
    pub(crate) fn announce_disabled<H: Host<S>>(&mut self, index: PortalIndex, host: &mut H) {
        let Ok(portal) = self.portal_mut(index) else {
            return;
        };
        if !portal.announce || portal.landing > 0 {
            return;
        }
        portal.announce = false;
        if let Some(queue) = portal.queue {
            let mut event = Event::new(EventKind::PtDisabled);
            event.pt_index = index.into();
            event.ni_fail = lintel_types::NiFail::PtDisabled;
            self.post(host, queue, &event);
        }
    }
}
