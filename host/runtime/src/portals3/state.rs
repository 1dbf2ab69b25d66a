//! The protocol's state under the library's lock.

use crate::portals3::effects::Effects;
use crate::portals3::landing::Stream;
use crate::portals3::names::from_network;
use crate::portals3::queues::Queues;
use crate::portals3::shared::Shared;
use crate::protocol::{Deferred, Protocol};
use crate::transports::Transports;
use lintel_claim::{Claim, Lease};
use lintel_engine3::Interface;
use lintel_nal::{Nal, Origin, Payload};
use lintel_types::{NiFail, ProcessId};
use lintel_wire::Words;
use lintel_wire::portals3::Message;
use std::collections::HashSet;
use std::sync::Arc;

/// The interface of a process, if it is open, with its queues.
#[derive(Default)]
pub struct Portals3 {
    pub(crate) open: Option<OpenInterface>,
    pub(crate) queues: Queues,
    /// Streams that are arriving, with their senders.
    pub(crate) streams: Vec<(Origin, Stream)>,
    /// The processes that something has come from, and the last of them.
    known: (HashSet<ProcessId>, Option<ProcessId>),
}

/// An interface in use.
pub(crate) struct OpenInterface {
    pub(crate) interface: Box<Interface<Claim>>,
    /// The number that it was opened by.
    pub(crate) iface: u32,
    /// PtlNIInit's less PtlNIFini's.
    pub(crate) references: u32,
    /// Part of its handles, so that those of a closed one are stale.
    pub(crate) generation: u16,
    /// The lease under which its memory is lent.
    pub(crate) lease: Lease,
    /// Where the tokens of its last operations are noted.
    pub(crate) shared: Arc<Shared>,
}

impl Portals3 {
    /// The open interface, and what its commands cause.
    #[inline(always)]
    pub(crate) fn interface<'a>(
        &'a mut self,
        transports: &'a mut Transports,
    ) -> Option<(&'a mut Interface<Claim>, Effects<'a>)> {
        let opened = self.open.as_mut()?;
        Some((
            &mut opened.interface,
            Effects {
                transports,
                queues: &mut self.queues,
                lease: &opened.lease,
            },
        ))
    }
}

impl Protocol for Portals3 {
    fn on_message(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        words: &Words,
        payload: Payload,
    ) -> bool {
        if self.known.1 != Some(origin.process) {
            self.known.0.insert(origin.process);
            self.known.1 = Some(origin.process);
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

    fn on_streamed(&mut self, transports: &mut Transports, origin: Origin, fail: NiFail) {
        self.end_stream(transports, origin, fail);
    }

    fn on_lost(&mut self, transports: &mut Transports, process: ProcessId) {
        let known = self.known.0.remove(&process);
        self.known.1 = None;
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

    fn depends_on_peers(&self) -> bool {
        let awaits = |opened: &OpenInterface| opened.interface.operations_under_way() > 0;
        self.open.as_ref().is_some_and(awaits) || !self.streams.is_empty()
    }

    fn loans(&self) -> usize {
        let lent = |opened: &OpenInterface| opened.interface.loans() + opened.lease.outstanding();
        self.open.as_ref().map_or(0, lent)
    }

    fn end(&mut self, transports: &mut Transports) -> Option<Lease> {
        let lease = &self.open.as_ref()?.lease;
        lease.revoke();
        transports.nal.recall(lease);
        self.abort_streams(transports);
        self.queues = Queues::default();
        // For those who wait for a queue.
        transports.activity = true;
        let opened = self.open.take()?;
        opened.shared.next.lock().1 = opened.interface.next_tokens();
        Some(opened.lease)
    }

    #[inline]
    fn has_deferred(&self) -> bool {
        self.queues.handlers.is_due()
    }

    fn next_deferred(&mut self) -> Option<Deferred> {
        self.queues.handlers.begin()
    }

    fn end_deferred(&mut self) {
        self.queues.handlers.end();
    }
}
