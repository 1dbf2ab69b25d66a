//! Puts that land in one step: most messages are short puts, and need nothing kept between
//! their decision and their completion.

use crate::events::Details;
use crate::target::answer;
use crate::{Host, Interface};
use lintel_memory::{Buffer, MOST_MEMORY, Span};
use lintel_types::portals3::{EventKind, MdOptions};
use lintel_types::{NiFail, ProcessId};
use lintel_wire::portals3::{Request, Response};

/// A put that has landed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivered {
    /// What goes to the initiator, if it awaits a response.
    pub response: Option<Response>,
}

impl<S: Span> Interface<S> {
    /// Lands a put whose bytes came with it, as [`accept`](Self::accept),
    /// [`begin_landing`](Self::begin_landing) and [`on_landed`](Self::on_landed) do together,
    /// but with one look at each table. `copy` moves the bytes to a span; its second argument
    /// is whether all of the descriptor's memory may be taken to be there.
    ///
    /// Returns nothing, and has done nothing, if the put takes those three steps: it is refused,
    /// or the descriptor's memory is an I/O vector.
    #[inline(always)]
    pub fn deliver<H: Host<S>>(
        &mut self,
        from: ProcessId,
        uid: u32,
        put: &Request,
        copy: impl FnOnce(S, bool) -> NiFail,
        host: &mut H,
    ) -> Option<Delivered> {
        let (found, walked) = self.find_descriptor(from, uid, put);
        let index = found?;
        let descriptor = self.descriptors.at_mut(index)?;
        let Buffer::Contiguous(all) = descriptor.buffer else {
            return None;
        };
        self.work.requests += 1;
        self.work.walked += u64::from(walked);
        let (offset, mlength) = descriptor.extent(put);
        let options = descriptor.md.options;
        if !options.contains(MdOptions::MANAGE_REMOTE) {
            descriptor.local_offset += mlength;
        }
        descriptor.count();
        self.status.received.add(mlength);
        self.status.messages.pass();
        let mut details = Details {
            initiator: from,
            uid,
            jid: put.jid,
            pt_index: put.portal.into(),
            match_bits: put.match_bits,
            hdr_data: put.hdr_data,
            rlength: put.length,
            mlength,
            offset,
        };
        let place = descriptor.queue;
        let mut queue = place.and_then(|place| Some((place, self.queues.at_mut(place)?)));
        let mut cause = None;
        if let Some((place, queue)) = &mut queue {
            if !options.contains(MdOptions::EVENT_START_DISABLE) {
                let numbers = queue.number(None);
                cause = Some(numbers.sequence);
                self.work.events += 1;
                let event = descriptor.event(EventKind::PutStart, &details, numbers, NiFail::Ok);
                host.post(*place, event);
            }
        }
        let fail = copy(all.narrow(offset, mlength), all.length() < MOST_MEMORY);
        if fail != NiFail::Ok {
            details.mlength = 0;
        }
        if let Some((place, queue)) = queue {
            if !options.contains(MdOptions::EVENT_END_DISABLE) {
                let numbers = queue.number(cause);
                cause = Some(numbers.sequence);
                self.work.events += 1;
                let event = descriptor.event(EventKind::PutEnd, &details, numbers, fail);
                host.post(place, event);
            }
        }
        if descriptor.is_spent() {
            self.unlink_spent(index, details, cause, host);
        }
        let refuses = options.contains(MdOptions::ACK_DISABLE);
        let response = answer(put, fail).map(|answer| Response {
            mlength: details.mlength,
            offset,
            silent: refuses || !put.ack,
            ..answer
        });
        Some(Delivered { response })
    }
}
