//! A protocol beside Portals 4: what it gets of the runtime, and what the runtime asks of it.
//!
//! ```text
//!   Library ──lock──▶ Core { Portals 4, Transports, protocol }
//!                                 │  messages that aren't Portals 4's,
//!                                 │  streams, lost processes
//!                                 ▼
//!                          Protocol::on_message, on_streamed, on_lost
//! ```
//!
//! The owner of a library chooses it by a type ([`Owner::Protocol`](crate::owner::Owner)), so
//! that a library without one, `()`, has none of its code. Locking, waiting, progress, the
//! transports and the return of lent memory are the library's for both.

use crate::memory::Memory;
use crate::staged_sends::StagedSends;
use crate::transports::Transports;
use lintel_claim::{Claim, Lease};
use lintel_nal::{Origin, Payload};
use lintel_snapshot::InterfaceState;
use lintel_types::{NiFail, ProcessId};
use lintel_wire::Words;

/// What is to run once the lock is released: a callback of the application.
pub type Deferred = Box<dyn FnOnce() + Send>;

/// A protocol's state, which the library's lock guards. No method blocks.
pub trait Protocol<M: Memory>: Send {
    /// Its state for an owner's library.
    fn new(owner: &M) -> Self;

    /// The copies that it has lent in place of the owner's memory.
    fn staged(&mut self) -> Option<&mut StagedSends<M::Span>>;

    /// A message that isn't Portals 4's; false if it isn't this protocol's either. The
    /// payload is valid until the return.
    fn on_message(
        &mut self,
        transports: &mut Transports,
        origin: Origin,
        words: &Words,
        payload: Payload,
    ) -> bool;

    /// A message whose bytes came with it; false, and nothing is done, if it takes
    /// [`on_message`](Self::on_message).
    #[inline(always)]
    fn deliver(&mut self, _: &mut Transports, _: Origin, _: &Words, _: Claim) -> bool {
        false
    }

    /// A stream that this protocol named the place of is whole, or broken.
    fn on_streamed(&mut self, transports: &mut Transports, origin: Origin, fail: NiFail);

    /// What was lent under that number isn't read any more.
    fn on_returned(&mut self, transports: &mut Transports, number: u64);

    /// A process can't be reached any more.
    fn on_lost(&mut self, transports: &mut Transports, process: ProcessId);

    /// Whether an interface is open.
    fn is_open(&self) -> bool;

    /// What tools see of the interface, if one is open.
    fn state(&self) -> Option<InterfaceState>;

    /// Whether something depends on another process: an answer, or a stream.
    fn depends_on_peers(&self) -> bool;

    /// What of its memory is lent: operations that peers must answer, and bodies that are
    /// still being sent.
    fn loans(&self) -> usize;

    /// Ends what is open; what was lent is taken back, and streams are broken off. The lease
    /// knows when peers have noticed.
    fn end(&mut self, transports: &mut Transports) -> Option<Lease>;

    /// Whether [`next_deferred`](Self::next_deferred) has something.
    fn has_deferred(&self) -> bool;

    /// The next thing to run without the lock. Until it has
    /// [ended](Self::end_deferred) there is none, so that they run in order.
    fn next_deferred(&mut self) -> Option<Deferred>;

    /// What [`next_deferred`](Self::next_deferred) gave has run.
    fn end_deferred(&mut self);
}

/// Portals 4 alone.
impl<M: Memory> Protocol<M> for () {
    fn new(_: &M) {}

    fn staged(&mut self) -> Option<&mut StagedSends<M::Span>> {
        None
    }

    #[inline(always)]
    fn on_message(&mut self, _: &mut Transports, _: Origin, _: &Words, _: Payload) -> bool {
        false
    }

    fn on_streamed(&mut self, _: &mut Transports, _: Origin, _: NiFail) {}

    fn on_returned(&mut self, _: &mut Transports, _: u64) {}

    fn on_lost(&mut self, _: &mut Transports, _: ProcessId) {}

    #[inline(always)]
    fn is_open(&self) -> bool {
        false
    }

    fn state(&self) -> Option<InterfaceState> {
        None
    }

    #[inline(always)]
    fn depends_on_peers(&self) -> bool {
        false
    }

    fn loans(&self) -> usize {
        0
    }

    fn end(&mut self, _: &mut Transports) -> Option<Lease> {
        None
    }

    #[inline(always)]
    fn has_deferred(&self) -> bool {
        false
    }

    fn next_deferred(&mut self) -> Option<Deferred> {
        None
    }

    fn end_deferred(&mut self) {}
}
