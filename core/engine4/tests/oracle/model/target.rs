//! The model's target: what a request finds and where it lands.

use super::{Arrival, Header, Model, is_reply, most_events, place, run, size_of};
use lintel_memory::Ghost;
use lintel_types::{
    AckRequest, EventKind, Handle, List, MeOptions, NiFail, Operation as AtomicOp, PortalIndex,
    ProcessId, UID_ANY,
};
use lintel_wire::{Request, Response, Verb};

impl Model {
    /// Where a request's bytes go, or why it is refused.
    pub fn on_request(
        &mut self,
        from: ProcessId,
        uid: u32,
        request: &Request,
    ) -> std::result::Result<(Vec<Ghost>, Arrival), Option<Response>> {
        match self.decide(from, uid, request) {
            Ok(entry) => Ok(self.accept(entry, from, uid, request)),
            Err(fail) => {
                match fail {
                    NiFail::PermViolation => self.registers.permission_violations += 1,
                    NiFail::OpViolation => self.registers.operation_violations += 1,
                    _ => self.registers.drops += 1,
                }
                let offset = request.remote_offset;
                Err(self.answer(request, fail, 0, offset, List::Priority, false))
            }
        }
    }

    fn decide(
        &mut self,
        from: ProcessId,
        uid: u32,
        request: &Request,
    ) -> std::result::Result<Handle, NiFail> {
        let portal = self
            .portal(request.portal)
            .map_err(|_| NiFail::Dropped)?
            .clone();
        if !portal.enabled {
            return Err(NiFail::PtDisabled);
        }
        let first = |list| {
            self.entries
                .iter()
                .filter(|entry| entry.list == list && entry.linked.is_some())
                .filter(|entry| entry.spec.portal == request.portal)
                .filter(|entry| self.suits(&entry.spec, entry.local_offset, from, request))
                .min_by_key(|entry| entry.linked)
        };
        let Some(entry) = first(List::Priority).or_else(|| first(List::Overflow)) else {
            return Err(self.run_out(request.portal));
        };
        let (name, list, spec) = (entry.name, entry.list, entry.spec.clone());
        if spec.uid != UID_ANY && spec.uid != uid {
            return Err(NiFail::PermViolation);
        }
        let reads = is_reply(request.verb);
        let writes = request.verb != Verb::Get;
        if (reads && !spec.options.contains(MeOptions::OP_GET))
            || (writes && !spec.options.contains(MeOptions::OP_PUT))
        {
            return Err(NiFail::OpViolation);
        }
        let remembers =
            list == List::Overflow && !spec.options.contains(MeOptions::UNEXPECTED_HDR_DISABLE);
        if remembers && self.headers.len() as i32 >= self.limits.max_unexpected_headers {
            return Err(self.run_out(request.portal));
        }
        if let (true, Some(queue)) = (portal.flow, portal.queue) {
            if self.room(queue) < self.promised(queue) + most_events(&spec, list) {
                return Err(self.run_out(request.portal));
            }
        }
        Ok(name)
    }

    /// Events that flow-controlled portals may still post to a queue.
    fn promised(&self, queue: Handle) -> usize {
        let mut promised = 0;
        for (index, portal) in self.portals.iter().enumerate() {
            if portal
                .as_ref()
                .is_some_and(|portal| portal.flow && portal.queue == Some(queue))
            {
                let landing = self
                    .arrivals
                    .iter()
                    .filter(|a| a.request.portal.position() == index);
                promised += 1;
                promised += landing
                    .map(|a| self.entry(a.entry))
                    .map(|entry| most_events(&entry.spec, entry.list))
                    .sum::<usize>();
            }
        }
        promised
    }

    fn run_out(&mut self, index: PortalIndex) -> NiFail {
        let Ok(portal) = self.portal_mut(index) else {
            return NiFail::Dropped;
        };
        if !portal.flow {
            return NiFail::Dropped;
        }
        (portal.enabled, portal.announce) = (false, true);
        self.announce(index);
        NiFail::PtDisabled
    }

    fn accept(
        &mut self,
        name: Handle,
        from: ProcessId,
        uid: u32,
        request: &Request,
    ) -> (Vec<Ghost>, Arrival) {
        let limits = self.limits;
        let number = self.tick();
        let entry = self.entry_mut(name);
        let managed = entry.spec.options.contains(MeOptions::MANAGE_LOCAL);
        let offset = if managed {
            entry.local_offset
        } else {
            request.remote_offset
        };
        let room = entry.spec.buffer.length().saturating_sub(offset);
        let mut mlength = request.length.min(room);
        if !matches!(request.verb, Verb::Put | Verb::Get) {
            let most = match request.verb {
                Verb::Atomic => limits.max_atomic_size,
                _ => limits.max_fetch_atomic_size,
            };
            let size = size_of(request.datatype);
            mlength = mlength.min(most) / size * size;
            if request.verb == Verb::Swap && request.operation > AtomicOp::Swap {
                mlength = mlength.min(size);
            }
        }
        if managed {
            entry.local_offset += mlength;
        }
        let left = entry
            .spec
            .buffer
            .length()
            .saturating_sub(entry.local_offset);
        let full = managed && entry.spec.min_free > 0 && left < entry.spec.min_free;
        let unlinks = full || entry.spec.options.contains(MeOptions::USE_ONCE);
        if unlinks {
            entry.linked = None;
        }
        let (list, spec) = (entry.list, entry.spec.clone());
        let arrival = Arrival {
            number,
            request: *request,
            from,
            uid,
            entry: name,
            list,
            unlinks,
            silent: spec.options.contains(MeOptions::ACK_DISABLE)
                || (request.verb == Verb::Put && request.ack == AckRequest::None),
            mlength,
            offset,
            start: place(&spec.buffer, offset),
        };
        self.arrivals.push(arrival.clone());
        if list == List::Overflow && !spec.options.contains(MeOptions::UNEXPECTED_HDR_DISABLE) {
            self.headers.push(Header {
                arrival: arrival.clone(),
                landed: None,
                receiver: None,
            });
        }
        (run(&spec.buffer, offset, mlength), arrival)
    }

    fn answer(
        &self,
        request: &Request,
        fail: NiFail,
        mlength: u64,
        offset: u64,
        list: List,
        silent: bool,
    ) -> Option<Response> {
        (request.token != 0).then_some(Response {
            reply: is_reply(request.verb),
            interface: request.interface,
            placed: false,
            silent,
            token: request.token,
            mlength,
            offset,
            list,
            fail,
        })
    }

    pub fn response(&self, a: &Arrival, fail: NiFail) -> Option<Response> {
        let mlength = if fail == NiFail::Ok { a.mlength } else { 0 };
        self.answer(&a.request, fail, mlength, a.offset, a.list, a.silent)
    }

    pub fn on_landed(&mut self, arrival: &Arrival, fail: NiFail) {
        self.arrivals.retain(|other| other.number != arrival.number);
        let (spec, counter) = {
            let entry = self.entry(arrival.entry);
            (entry.spec.clone(), entry.counter)
        };
        let disabled = spec.options.contains(MeOptions::EVENT_COMM_DISABLE);
        let success_disabled = spec.options.contains(MeOptions::EVENT_SUCCESS_DISABLE);
        let quiet = disabled || (success_disabled && fail == NiFail::Ok);
        if !quiet {
            let kind = match arrival.request.verb {
                Verb::Put => EventKind::Put,
                Verb::Get => EventKind::Get,
                Verb::Atomic => EventKind::Atomic,
                Verb::FetchAtomic | Verb::Swap => EventKind::FetchAtomic,
            };
            let mut event = self.arrival_event(arrival, kind, spec.user_ptr, fail);
            if fail != NiFail::Ok {
                event.mlength = 0;
            }
            self.post(self.queue_of(arrival.request.portal), event);
        }
        if spec.options.contains(MeOptions::EVENT_CT_COMM) {
            let bytes = spec.options.contains(MeOptions::EVENT_CT_BYTES);
            self.count(counter, fail, bytes, arrival.mlength);
        }
        let entry = self.entry(arrival.entry);
        let is_last = self.arrivals.iter().all(|a| a.entry != arrival.entry);
        let unlinks = match entry.list {
            List::Priority => entry.linked.is_none() && is_last,
            List::Overflow => arrival.unlinks,
        };
        if unlinks {
            self.post_own(
                arrival.entry,
                EventKind::AutoUnlink,
                MeOptions::EVENT_UNLINK_DISABLE,
            );
        }
        let header = |header: &Header| header.arrival.number == arrival.number;
        match self.headers.iter().position(header) {
            Some(at) => {
                self.headers[at].landed = Some(fail);
                if self.headers[at].receiver.is_some() {
                    self.hand_out(at);
                }
            }
            None => self.free_if_spent(arrival.entry),
        }
        self.announce(arrival.request.portal);
        self.settle();
    }
}
