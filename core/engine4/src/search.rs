//! Searching the unexpected headers (Portals 4.3, sections `List entries and lists`,
//! PtlLESearch, and `Matching list entries and matching lists`, PtlMESearch).

use crate::entries::{EntrySpec, from_source};
use crate::unexpected::OverflowReceiver;
use crate::{Host, Interface};
use lintel_memory::Span;
use lintel_types::{Event, EventKind, HeaderIndex, MeOptions, NiFail, Result};
use lintel_wire::Request;

/// What a search does with the header that it finds: `ptl_search_op_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SearchOp {
    /// `PTL_SEARCH_ONLY`: unexpected headers stay.
    Only,
    /// `PTL_SEARCH_DELETE`: unexpected headers are taken off their list.
    Delete,
}

impl<S: Span> Interface<S> {
    /// PtlLESearch, PtlMESearch.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn search<H: Host<S>>(
        &mut self,
        mut spec: EntrySpec<S>,
        op: SearchOp,
        host: &mut H,
    ) -> Result<()> {
        self.check_entry(&spec)?;
        spec.source = self.source_of(&spec);
        let receiver = OverflowReceiver {
            user_ptr: spec.user_ptr,
            options: spec.options,
            counter: self.entry_counter(&spec)?,
        };
        let found = match op {
            SearchOp::Only => self.search_only(&spec, receiver, host),
            SearchOp::Delete => self.search_delete(&spec, receiver, host),
        };
        let once = spec.options.contains(MeOptions::USE_ONCE);
        if !found {
            self.post_no_match(&spec, host);
        }
        if (!found || !once) && spec.options.contains(MeOptions::EVENT_CT_OVERFLOW) {
            if let Some(counter) = receiver.counter {
                self.count(counter, NiFail::NoMatch, None, host);
            }
        }
        self.settle(host);
        Ok(())
    }

    fn search_only<H: Host<S>>(
        &mut self,
        spec: &EntrySpec<S>,
        receiver: OverflowReceiver,
        host: &mut H,
    ) -> bool {
        let queue = self.queue_of(spec.portal);
        let once = spec.options.contains(MeOptions::USE_ONCE);
        let mut seen = alloc::vec::Vec::new();
        self.search_from(spec, |slot| {
            seen.push(slot);
            once
        });
        let found = !seen.is_empty();
        for slot in seen {
            let Some(header) = self.unexpected.at(slot) else {
                break;
            };
            let mut event = self.unexpected_event(header, EventKind::Search, spec.user_ptr);
            event.ni_fail = NiFail::Ok;
            let bytes =
                (spec.options.contains(MeOptions::EVENT_CT_BYTES)).then_some(header.mlength);
            let quiet = spec.options.contains(MeOptions::EVENT_COMM_DISABLE);
            if let (Some(queue), false) = (queue, quiet) {
                self.post(host, queue, &event);
            }
            if spec.options.contains(MeOptions::EVENT_CT_OVERFLOW) {
                if let Some(counter) = receiver.counter {
                    self.count(counter, NiFail::Ok, bytes, host);
                }
            }
        }
        found
    }

    fn search_delete<H: Host<S>>(
        &mut self,
        spec: &EntrySpec<S>,
        receiver: OverflowReceiver,
        host: &mut H,
    ) -> bool {
        let mut found = false;
        while let Some(slot) = self.search_from(spec, |_| true) {
            found = true;
            self.assign_unexpected(slot, receiver, host);
            if spec.options.contains(MeOptions::USE_ONCE) {
                break;
            }
        }
        found
    }

    /// The first header that fits and that `ends` the search, which is shown each
    /// header that fits.
    fn search_from(
        &mut self,
        spec: &EntrySpec<S>,
        mut ends: impl FnMut(HeaderIndex) -> bool,
    ) -> Option<HeaderIndex> {
        let logical = self.logical();
        let (bits, ignore) = self.pattern(spec);
        let portal = self.portals.get_mut(spec.portal.position())?.as_mut()?;
        let fits = |request: &Request| {
            let offset = if spec.options.contains(MeOptions::MANAGE_LOCAL) {
                0
            } else {
                request.remote_offset
            };
            !spec.options.contains(MeOptions::NO_TRUNCATE)
                || offset.saturating_add(request.length) <= spec.buffer.length()
        };
        let (found, walked) = portal.unexpected.find(bits, ignore, |slot| {
            let fitting = self.unexpected.at(slot.into()).is_some_and(|header| {
                let rank = header.request.rank;
                from_source(spec.source, logical, header.from, rank) && fits(&header.request)
            });
            fitting && ends(slot.into())
        });
        self.work.walked += u64::from(walked);
        found.map(HeaderIndex)
    }

    /// PTL_EVENT_SEARCH with PTL_NI_NO_MATCH (Portals 4.3, section `Events and event queues`).
    fn post_no_match<H: Host<S>>(&mut self, spec: &EntrySpec<S>, host: &mut H) {
        if spec.options.contains(MeOptions::EVENT_COMM_DISABLE) {
            return;
        }
        if let Some(queue) = self.queue_of(spec.portal) {
            let mut event = Event::new(EventKind::Search);
            event.user_ptr = spec.user_ptr;
            event.pt_index = spec.portal.into();
            event.ni_fail = NiFail::NoMatch;
            self.post(host, queue, &event);
        }
    }
}
