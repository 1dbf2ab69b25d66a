//! The target's side: what a request matches, and the events it causes (sections 2.2, 2.3
//! and 4.2).

use crate::descriptors::Descriptor;
use crate::events::{Begun, Details, Pair};
use crate::{Host, Interface};
use lintel_memory::{MOST_MEMORY, Pieces, Span};
use lintel_tables::OrderedMatchList;
use lintel_types::portals3::MdOptions;
use lintel_types::{DescriptorIndex, EntryIndex, NiFail, ProcessId};
use lintel_wire::portals3::{Request, Response, Verb};

/// What becomes of a request.
#[derive(Debug)]
pub enum Landing<S> {
    /// It is dropped, with the response that ends the operation at the initiator.
    Refused(Option<Response>),
    /// Its bytes go to, or come from, these pieces.
    Accepted(Pieces<S>, Landed),
}

/// A request that has matched an entry.
#[must_use = "an accepted request begins to land at once"]
#[derive(Debug)]
pub struct Accepted(DescriptorIndex);

/// A request between its decision and its completion.
#[must_use = "a delivery finishes through Interface::on_landed"]
#[derive(Debug)]
pub struct Landed {
    request: Request,
    begun: Begun,
    /// The initiator gets no acknowledgement.
    silent: bool,
    accessible: bool,
}

impl Landed {
    /// The request as it arrived.
    #[inline]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Manipulated length: bytes that are moved; of an exchange in each direction.
    #[inline]
    pub fn mlength(&self) -> u64 {
        self.begun.details.mlength
    }

    /// Whether all of the descriptor's memory may be taken to be there; otherwise the
    /// message may name an unmapped address.
    #[inline]
    pub fn is_accessible(&self) -> bool {
        self.accessible
    }

    /// The response to the initiator, if one is awaited.
    #[inline]
    pub fn response(&self, fail: NiFail) -> Option<Response> {
        let mut response = answer(&self.request, fail)?;
        if fail == NiFail::Ok {
            response.mlength = self.mlength();
        }
        response.offset = self.begun.details.offset;
        response.silent = self.silent;
        Some(response)
    }
}

#[inline]
pub(crate) fn answer(request: &Request, fail: NiFail) -> Option<Response> {
    (request.token != 0).then(|| Response {
        reply: request.verb != Verb::Put,
        interface: request.interface,
        placed: false,
        silent: false,
        token: request.token,
        mlength: 0,
        offset: request.remote_offset,
        fail,
    })
}

const fn pair(verb: Verb) -> Pair {
    match verb {
        Verb::Put => Pair::Put,
        Verb::Get => Pair::Get,
        Verb::GetPut => Pair::GetPut,
    }
}

impl<S: Span> Descriptor<S> {
    /// Whether the descriptor takes a request (section 4.2): it is active, allows the
    /// operation, and has the space or cuts the request.
    #[inline(always)]
    fn accepts(&self, request: &Request) -> bool {
        let options = self.md.options;
        let needed = match request.verb {
            Verb::Put => MdOptions::OP_PUT,
            Verb::Get => MdOptions::OP_GET,
            Verb::GetPut => MdOptions::OP_PUT | MdOptions::OP_GET,
        };
        let (offset, length) = (self.offset(request), self.buffer.length());
        let whole = offset
            .checked_add(request.length)
            .is_some_and(|end| end <= length);
        let fits = whole || (options.contains(MdOptions::TRUNCATE) && offset <= length);
        fits && options.contains(needed) && self.is_active()
    }

    /// Bytes from the start of the descriptor's memory (section 3.10, PTL_MD_MANAGE_REMOTE).
    #[inline(always)]
    fn offset(&self, request: &Request) -> u64 {
        if self.md.options.contains(MdOptions::MANAGE_REMOTE) {
            request.remote_offset
        } else {
            self.local_offset
        }
    }

    /// The offset and the length of what an accepted request moves.
    #[inline(always)]
    pub(crate) fn extent(&self, request: &Request) -> (u64, u64) {
        let offset = self.offset(request);
        let left = self.buffer.length().saturating_sub(offset);
        (offset, request.length.min(left))
    }
}

impl<S: Span> Interface<S> {
    /// A request has arrived: [`accept`](Self::accept) and
    /// [`begin_landing`](Self::begin_landing) in one.
    pub fn on_request<H: Host<S>>(
        &mut self,
        from: ProcessId,
        uid: u32,
        request: &Request,
        host: &mut H,
    ) -> Landing<S> {
        match self.accept(from, uid, request) {
            Ok(accepted) => {
                let (pieces, landed) = self.begin_landing(accepted, from, uid, request, host);
                Landing::Accepted(pieces, landed)
            }
            Err(response) => Landing::Refused(response),
        }
    }

    /// Decides what becomes of a request that has arrived.
    ///
    /// # Errors
    /// It is dropped, with the response that ends the operation at the initiator, if one is
    /// awaited. The initiator posts no event for it.
    #[inline]
    pub fn accept(
        &mut self,
        from: ProcessId,
        uid: u32,
        request: &Request,
    ) -> Result<Accepted, Option<Response>> {
        self.work.requests += 1;
        let (found, walked) = self.find_descriptor(from, uid, request);
        self.work.walked += u64::from(walked);
        match found {
            Some(descriptor) => Ok(Accepted(descriptor)),
            None => {
                self.status.dropped.add(request.length);
                Err(answer(request, NiFail::Dropped))
            }
        }
    }

    /// The translation of section 4.2, in its order: portal table index, access control,
    /// then the match list from its head. The descriptor, and the entries looked at.
    #[inline(always)]
    pub(crate) fn find_descriptor(
        &self,
        from: ProcessId,
        uid: u32,
        request: &Request,
    ) -> (Option<DescriptorIndex>, u32) {
        let Some(list) = self.portals.get(request.portal.position()) else {
            return (None, 0);
        };
        if !self.admits(from, uid, request) || !self.may_exchange(request) {
            return (None, 0);
        }
        let first = list.first(request.match_bits);
        let fitting = first.and_then(|slot| self.descriptor_for(slot.into(), from, request));
        match fitting {
            Some(descriptor) => (Some(descriptor), 1),
            // Copies, so that neither is in memory for the first entry.
            None => self.search(list, from, *request),
        }
    }

    #[inline(never)]
    fn search(
        &self,
        list: &OrderedMatchList,
        from: ProcessId,
        request: Request,
    ) -> (Option<DescriptorIndex>, u32) {
        let accepts = |slot: u16| self.descriptor_for(slot.into(), from, &request).is_some();
        let (found, walked) = list.find(request.match_bits, accepts);
        let entry = found.and_then(|slot| self.entries.at(EntryIndex(slot)));
        (entry.and_then(|entry| entry.descriptor), walked)
    }

    /// An exchange is no longer than the limit, whatever limit its initiator has.
    fn may_exchange(&self, request: &Request) -> bool {
        let limit = self.config.limits.max_getput_md as u64;
        request.verb != Verb::GetPut || request.length <= limit
    }

    /// The descriptor of an entry, if both take the request; the match bits apart.
    #[inline(always)]
    fn descriptor_for(
        &self,
        entry: EntryIndex,
        from: ProcessId,
        request: &Request,
    ) -> Option<DescriptorIndex> {
        let index = self.entries.at(entry)?.descriptor_for(from)?;
        let descriptor = self.descriptors.at(index)?;
        descriptor.accepts(request).then_some(index)
    }

    /// Takes the place of an accepted request's bytes, counts it, and posts its START event.
    ///
    /// # Panics
    /// If anything was done to the interface since [`accept`](Self::accept).
    #[inline]
    pub fn begin_landing<H: Host<S>>(
        &mut self,
        Accepted(index): Accepted,
        from: ProcessId,
        uid: u32,
        request: &Request,
        host: &mut H,
    ) -> (Pieces<S>, Landed) {
        let descriptor = self
            .descriptors
            .at_mut(index)
            .expect("accept has just found the descriptor");
        let (offset, mlength) = descriptor.extent(request);
        let options = descriptor.md.options;
        if !options.contains(MdOptions::MANAGE_REMOTE) {
            descriptor.local_offset += mlength;
        }
        let pieces = descriptor.buffer.pieces(offset, mlength);
        let accessible = descriptor.buffer.length() < MOST_MEMORY;
        let details = Details {
            initiator: from,
            uid,
            jid: request.jid,
            pt_index: request.portal.into(),
            match_bits: request.match_bits,
            hdr_data: match request.verb {
                Verb::Get => 0,
                Verb::Put | Verb::GetPut => request.hdr_data,
            },
            rlength: request.length,
            mlength,
            offset,
        };
        self.status.received.add(mlength);
        self.status.messages.add();
        let begun = self.begin(index, pair(request.verb), details, host);
        let refuses = options.contains(MdOptions::ACK_DISABLE);
        let landed = Landed {
            request: *request,
            begun,
            silent: request.verb == Verb::Put && (refuses || !request.ack),
            accessible,
        };
        (pieces, landed)
    }

    /// A request's bytes have been moved, or couldn't be: its END event.
    #[inline]
    pub fn on_landed<H: Host<S>>(&mut self, landed: Landed, fail: NiFail, host: &mut H) {
        self.status.messages.remove();
        self.end(landed.begun, fail, host);
    }
}
