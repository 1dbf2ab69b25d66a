//! Puts whose bytes are copied as they are sent: most messages are short puts, and begin and end
//! at their descriptor at once.

use crate::events::Details;
use crate::initiator::{Part, Place, Sending, Transfer, check_place, failure, lends};
use crate::{Backlog, Body, Host, Interface};
use lintel_memory::Span;
use lintel_types::NiFail;
use lintel_types::portals3::{Error, EventKind, MdOptions, Result};
use lintel_wire::MAX_LENGTH;

impl<S: Span> Interface<S> {
    /// Starts a put.
    #[inline(always)]
    pub(crate) fn start_put<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        host: &mut H,
    ) -> Result<()> {
        let place = check_place(transfer)?;
        let source = self.source(transfer)?;
        let is_short = source.length <= self.config.eager.min(MAX_LENGTH);
        let mut stays = false;
        if is_short && host.backlog(transfer.target) == Backlog::Low {
            stays = lends(transfer.target, source.length, host);
            if !stays {
                return self.put_at_once(transfer, place, source, host);
            }
        }
        // A copy, so that a short put's transfer is never in memory.
        self.start_in_steps(&{ *transfer }, stays, host)
    }

    /// With the events of [`begin`](Self::begin) and [`end`](Self::end), but with one look at
    /// each table.
    #[inline(always)]
    fn put_at_once<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        place: Place,
        source: Part,
        host: &mut H,
    ) -> Result<()> {
        let token = match transfer.ack {
            true => self.record_operation(transfer, source, (Some(source), None), false)?,
            false => 0,
        };
        let sending = Sending::copied(token);
        let request = self.request(transfer, place, source.length, sending);
        let mut details = self.details(transfer, source);
        let descriptor = self.descriptors.at_mut(source.index);
        let descriptor = descriptor.ok_or(Error::MdInvalid)?;
        descriptor.count();
        let options = descriptor.md.options;
        let queue = descriptor.queue;
        let mut queue = queue.and_then(|place| Some((place, self.queues.at_mut(place)?)));
        let mut cause = None;
        if let Some((place, queue)) = &mut queue {
            if !options.contains(MdOptions::EVENT_START_DISABLE) {
                let numbers = queue.number(None);
                cause = Some(numbers.sequence);
                self.work.events += 1;
                let event = descriptor.event(EventKind::SendStart, &details, numbers, NiFail::Ok);
                host.post(*place, event);
            }
        }
        self.status.sent.add(source.length);
        let pieces = descriptor.buffer.pieces(source.offset, source.length);
        let fail = failure(host.send(transfer.target, &request, Body { pieces }));
        if fail != NiFail::Ok {
            details.mlength = 0;
        }
        if let Some((place, queue)) = queue {
            if !options.contains(MdOptions::EVENT_END_DISABLE) {
                let numbers = queue.number(cause);
                cause = Some(numbers.sequence);
                self.work.events += 1;
                let event = descriptor.event(EventKind::SendEnd, &details, numbers, fail);
                host.post(place, event);
            }
        }
        if descriptor.is_spent() {
            // Made anew, so that those of the events are never in memory.
            let last = Details {
                mlength: details.mlength,
                ..self.details(transfer, source)
            };
            self.unlink_spent(source.index, last, cause, host);
        }
        self.end_if_unsent(token, fail, host);
        Ok(())
    }
}
