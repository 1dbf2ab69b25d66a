//! The protocol's state under the library's lock.

use crate::lent_replies::LentReplies;
use crate::portals3::effects::Effects;
use crate::portals3::landing::Stream;
use crate::portals3::lifecycle::NUMBER;
use crate::portals3::names::from_network;
use crate::portals3::owner::Owner3;
use crate::portals3::queues::EventQueues;
use crate::protocol::{Deferred, Protocol};
use crate::staged_sends::StagedSends;
use crate::transports::Transports;
use lintel_claim::{Claim, Lease};
use lintel_engine3::{Interface, Landed};
use lintel_nal::{Nal, Origin, Payload};
use lintel_snapshot::InterfaceState;
use lintel_types::{NiFail, ProcessId};
use lintel_wire::Words;
use lintel_wire::portals3::{Message, Request};
use std::collections::HashSet;

/// The interface of a process, if it is open, with its queues.
pub struct Portals3<O: Owner3> {
    pub(crate) owner: O,
    pub(crate) open: Option<OpenInterface<O>>,
    pub(crate) queues: O::Queues,
    /// Buffers that stand for the owner's memory.
    pub(crate) staged: StagedSends<O::Span>,
    /// Streams that are arriving, with their senders.
    pub(crate) streams: Vec<(Origin, Stream<O::Span>)>,
    /// Gets whose replies are read in place.
    pub(crate) lent_replies: LentReplies<Landed>,
    /// The processes that something has come from, those that have ended since included.
    known: HashSet<ProcessId>,
    /// The one that something has come from last, unless it has ended.
    last: Option<Sender>,
}

/// A process that messages come from.
#[derive(Clone, Copy)]
pub(crate) struct Sender {
    /// Its name on the network.
    process: ProcessId,
    /// Its name in Portals 3.3.
    pub(crate) name: ProcessId,
}

/// An interface in use.
pub(crate) struct OpenInterface<O: Owner3> {
    pub(crate) interface: Box<Interface<O::Span>>,
    /// The number that it was opened by.
    pub(crate) iface: u32,
    /// PtlNIInit's less PtlNIFini's.
    pub(crate) references: u32,
    /// Part of its handles, so that those of a closed one are stale.
    pub(crate) generation: u16,
    /// The lease under which its memory is lent.
    pub(crate) lease: Lease,
}

impl<O: Owner3> Portals3<O> {
    /// The open interface, and what its commands cause.
    #[inline(always)]
    pub(crate) fn interface<'a>(
        &'a mut self,
        transports: &'a mut Transports,
    ) -> Option<(&'a mut Interface<O::Span>, Effects<'a, O>)> {
        let opened = self.open.as_mut()?;
        Some((
            &mut opened.interface,
            Effects {
                transports,
                owner: &self.owner,
                queues: &mut self.queues,
                staged: &mut self.staged,
                lease: &opened.lease,
                known: &self.known,
            },
        ))
    }
}

impl<O: Owner3> Protocol<O> for Portals3<O> {
    fn new(owner: &O) -> Self {
        Portals3 {
            owner: owner.clone(),
            open: None,
            queues: owner.queues(),
            staged: StagedSends::default(),
            streams: Vec::new(),
            lent_replies: LentReplies::default(),
            known: HashSet::new(),
            last: None,
        }
    }

    fn staged(&mut self) -> Option<&mut StagedSends<O::Span>> {
        Some(&mut self.staged)
    }

    fn on_message(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        words: &Words,
        payload: Payload,
    ) -> bool {
        let process = origin.process;
        if self.last.is_none_or(|last| last.process != process) {
            self.known.insert(process);
            let name = from_network(process);
            self.last = Some(Sender { process, name });
        }
        match Message::parse(words) {
            Ok(Message::Request(request)) => {
                self.on_request(transports, origin, &request, payload);
            }
            Ok(Message::Response(response)) => {
                self.on_response(transports, origin, &response, payload);
            }
            Err(_) => return false,
        }
        true
    }

    #[inline(always)]
    fn deliver(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        words: &Words,
        body: Claim,
    ) -> bool {
        let Some(sender) = self.last.filter(|last| last.process == origin.process) else {
            return false;
        };
        match Request::parse_put(words) {
            Some(put) => self.deliver_put(transports, (origin, sender), &put, body),
            None => self.deliver_acknowledgement(transports, sender, words),
        }
    }

    fn on_streamed(&mut self, transports: &mut Transports, origin: Origin, fail: NiFail) {
        self.end_stream(transports, origin, fail);
    }

    fn on_returned(&mut self, transports: &mut Transports, number: u64) {
        if let Some(landed) = self.lent_replies.remove(number) {
            self.post_landed(transports, landed, NiFail::Ok);
        }
    }

    fn on_lost(&mut self, transports: &mut Transports, process: ProcessId) {
        let known = self.known.contains(&process);
        self.last = None;
        self.staged.forget(process);
        let Some((interface, mut effects)) = self.interface(transports) else {
            return;
        };
        // A network may find out later than at the send that there never was such a process.
        match known {
            true => interface.on_target_lost(from_network(process), &mut effects),
            false => interface.on_target_absent(from_network(process), &mut effects),
        }
    }

    fn is_open(&self) -> bool {
        self.open.is_some()
    }

    fn state(&self) -> Option<InterfaceState> {
        let opened = self.open.as_ref()?;
        Some(opened.interface.state(&self.queues.lengths()))
    }

    fn depends_on_peers(&self) -> bool {
        let awaits = |opened: &OpenInterface<O>| opened.interface.operations_under_way() > 0;
        self.open.as_ref().is_some_and(awaits)
            || !self.streams.is_empty()
            || !self.lent_replies.is_empty()
    }

    fn loans(&self) -> usize {
        let lent =
            |opened: &OpenInterface<O>| opened.interface.loans() + opened.lease.outstanding();
        self.open.as_ref().map_or(0, lent)
    }

    fn end(&mut self, transports: &mut Transports) -> Option<Lease> {
        let lease = &self.open.as_ref()?.lease;
        lease.revoke();
        transports.nal.recall(lease);
        self.abort_streams(transports);
        self.lent_replies.drop_if(|_| true);
        self.staged.close(NUMBER);
        self.queues.end_all();
        // For those who wait for a queue.
        transports.activity = true;
        let opened = self.open.take()?;
        self.owner.shared().next.lock().1 = opened.interface.next_tokens();
        Some(opened.lease)
    }

    #[inline]
    fn has_deferred(&self) -> bool {
        self.queues.has_calls()
    }

    fn next_deferred(&mut self) -> Option<Deferred> {
        self.queues.handlers()?.begin()
    }

    fn end_deferred(&mut self) {
        if let Some(handlers) = self.queues.handlers() {
            handlers.end();
        }
    }
}
