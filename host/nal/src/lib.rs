//! A network abstraction layer: moves a header and the bytes that go with it.
//!
//! ```text
//!   send ──▶ ┌─────┐ ─ ─ ─ a network ─ ─ ─ ┌─────┐ ──▶ next   header, and its bytes or their place
//!            │ Nal │                       │ Nal │ ◀── fetch  bytes lent by the sender
//!            └─────┘                       └─────┘ ──▶ next   a stream is whole, a peer is lost
//! ```
//!
//! A NAL knows no portal table and no match bits; words pass through unread. It
//! keeps the order between two processes, never loses what it accepted while
//! both live, and reports [`Arrival::Lost`] once when a peer has ended.
//!
//! Order of use: [`Nal::send`] at any time; [`Nal::next`] until it gives nothing,
//! each message followed by [`Nal::done`]. [`Wake::flush`] now and then sends
//! what found no room.
//!
//! Middleware wraps the same traits: [`Trace`] writes a line a message, [`Capture`] a packet for
//! Wireshark, [`Route`] makes one NAL of a near and a far one. What it doesn't change it passes on by [`forward!`].
//! [`Loopback`] joins a process to itself.
#![forbid(unsafe_code)]

mod boxed;
mod capture;
mod forward;
mod loopback;
pub mod pcapng;
mod reassembly;
mod route;
mod trace;

pub use capture::{BODY_BYTES, Capture};
pub use loopback::Loopback;
pub use reassembly::{Announced, Overrun, Reassembly};
pub use route::Route;
pub use trace::Trace;

/// What the expansion of [`forward!`] names.
#[doc(hidden)]
pub mod names {
    pub use lintel_claim::{Claim, Lease, Lent, Loan};
    pub use lintel_snapshot::Traffic;
    pub use lintel_types::ProcessId;
    pub use lintel_wire::Words;
    pub use std::os::fd::BorrowedFd;
    pub use std::time::{Duration, Instant};
}

use lintel_claim::{Claim, Key, Lease, Lent, Loan, RemoteSpan};
use lintel_memory::Pieces;
use lintel_snapshot::Traffic;
use lintel_types::ProcessId;
use lintel_wire::{OPERAND_BYTES, Words};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// What a NAL can do.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Its name, as in `PTL_NAL`.
    pub name: &'static str,
    /// Bytes up to which a body is best copied at once.
    pub eager: u64,
}

/// Where a message came from; the NAL guarantees that it is true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Identifier of the sending process.
    pub process: ProcessId,
    /// Effective user identifier of that process.
    pub uid: u32,
    /// The NAL's own number of the lane or connection that it arrived on.
    pub lane: u32,
}

/// The bytes that go with a header.
#[derive(Clone, Copy, Debug)]
pub enum Outgoing<'a> {
    /// Copied before `send` returns, whatever their length.
    Copied {
        /// Goes first, if there is one.
        operand: Option<&'a [u8; OPERAND_BYTES]>,
        /// Follow the operand, in order.
        pieces: &'a [Claim],
    },
    /// Left in place until a response reports that they aren't needed any more;
    /// the receiver fetches them.
    LentToRead(Lent<'a>),
    /// Left in place; the receiver fills them.
    LentToFill(Lent<'a>),
}

/// What a NAL holds, and its counters: for `lintel info`, measurement
/// and tests.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Resources {
    /// Connections that carry state of transmission (window, timers, buffers); the
    /// connection model determines for what one is kept.
    pub contexts: u64,
    /// Connections kept in the node's table, the same for all its processes.
    pub shared_contexts: u64,
    /// Processes that messages were exchanged with.
    pub pairs: u64,
    /// Open sockets or endpoints.
    pub sockets: u64,
    /// Bytes of memory behind all of these.
    pub bytes: u64,
    /// Rings in shared memory on which others send to it.
    pub lanes: u64,
    /// Packets that were retransmitted.
    pub retransmitted: u64,
    /// Packets that arrived more than once.
    pub duplicates: u64,
    /// Packets dropped because their authenticator was wrong.
    pub forged: u64,
    /// Packets dropped because they aren't packets of this version.
    pub malformed: u64,
    /// Packets dropped because they were for another process.
    pub misdirected: u64,
}

/// A message, or a change of a stream or peer, as [`Nal::next`] reports it.
#[derive(Clone, Debug)]
pub enum Arrival {
    /// A message. Its payload is valid until [`Nal::done`].
    Message(Origin, Words, Payload),
    /// The stream announced on this lane is whole.
    Streamed(Origin),
    /// The stream announced on this lane will never be whole.
    Broken(Origin),
    /// A process can't be reached any more: it has ended, or been cut off.
    Lost(ProcessId),
    /// What was [lent](Nal::send_lent) under this number isn't read any more.
    Returned(u64),
    /// The message whose body was [left](Nal::leave_to) to its sender is the next one again: whether
    /// the body was moved.
    Moved(Origin, bool),
}

/// Who has found a message in a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finder {
    /// The helper, which has the application's processor.
    Helper,
    /// A caller that hasn't waited for it: it may be about to compute.
    Caller,
    /// A caller that has waited.
    WaitingCaller,
}

/// How a body is moved that its initiator is granted to move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parts {
    /// Bytes of each but the last one.
    pub bytes: u64,
    /// The target takes parts from the beginning on, not only once it waits.
    pub is_joint: bool,
}

/// A granted body, at either side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Granted {
    /// At the initiator.
    By(ProcessId),
    /// At the target.
    To(Origin),
}

/// What the initiator has done with a body that it was granted to move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moved {
    /// It has moved all, and the operation is over.
    Whole,
    /// It has moved some parts. The target moves the others, and answers.
    Parts,
    /// It can't: the target has to move all.
    Nothing,
}

/// The bytes of a message that has arrived.
#[derive(Clone, Debug)]
pub enum Payload {
    /// In the NAL's memory, until [`Nal::done`].
    Inline(Claim),
    /// Still in the sender's memory: use [`Nal::fetch`] or [`Nal::fill`].
    Lent(RemoteLoan),
    /// That many bytes will follow as a stream: name a place with [`Nal::receive_into`] before [`Nal::done`].
    Streamed(u64),
    /// Already where they belong: the sender has copied them by itself, and wants no answer.
    Placed,
}

/// Memory that a peer has lent: what names it to the system, and where it is.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct RemoteLoan {
    /// The lender's, to be named in each copy.
    pub key: Key,
    /// Where the bytes are in the lender.
    pub spans: Pieces<RemoteSpan>,
}

impl RemoteLoan {
    /// At most `length` bytes from `offset` on.
    pub fn part(&self, offset: u64, length: u64) -> RemoteLoan {
        RemoteLoan {
            key: self.key,
            spans: self.spans.part(offset, length),
        }
    }
}

/// There is no way to that process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreachable;

/// Lent bytes couldn't be moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoveError {
    /// Memory on one side can't be touched.
    Fault,
    /// The peer has ended, has recalled what it lent, or the system forbids it.
    Unavailable,
}

/// A path from the library to a network: what moves messages. When to look for them, and
/// whom to wake, is the other half, [`Wake`].
pub trait Nal: Wake {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Sends a header and its bytes. Never blocks: what finds no room waits here,
    /// in order.
    ///
    /// # Errors
    /// [`Unreachable`] if no process is known by that name; nothing was sent. A network
    /// that can't know at once reports [`Arrival::Lost`] later.
    fn send(&mut self, to: ProcessId, words: &Words, body: Outgoing<'_>)
    -> Result<(), Unreachable>;

    /// As [`send`](Self::send), with bytes that stay in place though no response will report
    /// that they aren't needed any more: [`Arrival::Returned`] reports the number once they have
    /// arrived, or their receiver is lost; it doesn't after a [recall](Self::recall). False
    /// if they are better copied: nothing was sent.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn send_lent(
        &mut self,
        _to: ProcessId,
        _words: &Words,
        _body: Lent<'_>,
        _number: u64,
    ) -> Result<bool, Unreachable> {
        Ok(false)
    }

    /// The sender of the message that [`next`](Self::next) has returned was granted to move its body.
    /// Instead of [`done`](Self::done): the message stays the next one of its sender, and nothing
    /// behind it is returned, until [`Arrival::Moved`]. Only where a process
    /// [would move](Wake::would_move) any of it.
    fn leave_to(&mut self, _origin: Origin) {}

    /// The body of that length, of the message that [`next`](Self::next) has returned, is about to be
    /// granted, and moved in parts, each by the side that takes it. If both sides move some, this process
    /// takes the first one: where it begins, and its length, in bytes.
    fn begin_parts(&mut self, _origin: Origin, _parts: Parts, _length: u64) -> Option<(u64, u64)> {
        None
    }

    /// Takes the next part of a granted body of that length: where it begins, and its length, in bytes.
    /// Nothing once all are taken.
    fn take_part(&mut self, _granted: Granted, _length: u64) -> Option<(u64, u64)> {
        None
    }

    /// Ends a grant of whose parts this process has taken so many, if they are all: false if the
    /// initiator has taken one. The message is the next one of its sender again.
    fn revoke_grant(&mut self, _origin: Origin, _own: u32) -> bool {
        false
    }

    /// What this process has done with the body of the message to that process that was granted last.
    /// If it has moved all of it, no thread is woken for that but a caller that sleeps.
    fn note_moved(&mut self, _to: ProcessId, _moved: Moved) {}

    /// The next arrival. A message stays the next one until [`done`](Self::done).
    fn next(&mut self) -> Option<Arrival>;

    /// As [`next`](Self::next), but only a message whose bytes are inline; returns nothing
    /// if anything else is next. A NAL that has no quicker way to find out needn't
    /// implement it.
    #[inline(always)]
    fn next_inline(&mut self) -> Option<(Origin, Words, Claim)> {
        None
    }

    /// The message that `next` returned has been processed.
    fn done(&mut self, origin: Origin);

    /// A message that hasn't been reported yet: the one so many places behind the one that
    /// `next` has returned, if it comes from the same sender, and if the bodies of all of them
    /// are lent and better moved by one call: of a further one beside so many `bytes`. A NAL
    /// that has to see whole arrivals, or whose moves cost no call, returns nothing.
    fn lent_behind(
        &mut self,
        _origin: Origin,
        _places: u32,
        _bytes: u64,
    ) -> Option<(Words, RemoteLoan)> {
        None
    }

    /// As [`done`](Self::done), for that many messages: the one that `next` has returned, and
    /// those that [`lent_behind`](Self::lent_behind) has.
    fn done_lent(&mut self, origin: Origin, messages: u32) {
        (0..messages).for_each(|_| self.done(origin));
    }

    /// Names the place for the bytes of the announced stream; what doesn't fit is dropped.
    /// Held until the stream is [whole](Arrival::Streamed) or [broken](Arrival::Broken), or
    /// its lease is [recalled](Self::recall).
    fn receive_into(&mut self, origin: Origin, place: Loan);

    /// Fetches lent bytes, as many as both sides hold; blocks while they move.
    ///
    /// # Errors
    /// [`MoveError`]; some bytes may have moved.
    fn fetch(&mut self, from: Origin, remote: &RemoteLoan, to: &[Claim]) -> Result<u64, MoveError>;

    /// Fills lent bytes; blocks while they move.
    ///
    /// # Errors
    /// [`MoveError`]; some bytes may have moved.
    fn fill(&mut self, to: Origin, from: &[Claim], remote: &RemoteLoan) -> Result<u64, MoveError>;

    /// Ends the use of everything that was lent under a lease, which has been
    /// [revoked](Lease::revoke): messages that aren't completely sent arrive as broken or
    /// not at all, streams into it are dropped, peers' copies fail. Never blocks.
    /// True once nothing under the lease is read or written any more; false while a peer
    /// may still be in a copy that began before: to be called again.
    fn recall(&mut self, lease: &Lease) -> bool;

    /// Bytes that wait here, or for acknowledgement, on the way to that process, with
    /// about 128 for each message.
    fn backlog(&self, _process: ProcessId) -> u64 {
        0
    }

    /// Whether a body of that length for that process, which may be copied, is better lent.
    fn lends(&mut self, _to: ProcessId, _length: u64) -> bool {
        false
    }

    /// What it holds now, and its counters so far.
    fn resources(&self) -> Resources {
        Resources::default()
    }

    /// Messages exchanged with each peer so far.
    fn traffic(&self) -> Vec<Traffic> {
        Vec::new()
    }

    /// A number that changes whenever a message arrives.
    fn arrivals(&self) -> u64 {
        0
    }
}

/// Progress and sleep: when a [`Nal`] has to be called though nothing was sent, and who has
/// to be woken. None of these blocks.
pub trait Wake {
    /// Sends what waits; true while something still does.
    fn flush(&mut self) -> bool;

    /// Whether something waits here for room on the way to that process: a caller that
    /// wants to send it more should let it make progress first.
    fn has_queued(&self, process: ProcessId) -> bool;

    /// Checks whether peers are alive; those that aren't are reported as lost. Cheap
    /// enough for a few times a second, not for more.
    fn check_peers(&mut self);

    /// Wakes peers that haven't looked at what was sent to them.
    fn wake_peers(&mut self);

    /// In which parts the body of the next message of that lane is moved, which has that length, if its
    /// initiator had better move it, or parts of it; nothing if this process moves all. `found` says
    /// who has found the message in this process.
    fn would_move(&mut self, _origin: Origin, _length: u64, _found: Finder) -> Option<Parts> {
        None
    }

    /// From now on, whether a peer whose helper sleeps isn't rung for what is sent to it, but
    /// when [`ring_held`](Self::ring_held) is called. Its callers, if they sleep, are rung.
    fn hold_rings(&mut self, _to: ProcessId, _hold: bool) {}

    /// How long rings may be held at most for what their receivers haven't read yet; nothing if
    /// none is held.
    fn ring_due(&mut self) -> Option<Duration> {
        None
    }

    /// Rings peers that were not rung, and haven't read what was sent to them.
    fn ring_held(&mut self) {}

    /// What becomes readable when something may have arrived, if a doorbell in memory
    /// doesn't report it. A thread that sleeps does so on it too.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// When [`flush`](Self::flush) must be called next, though nothing arrives: to
    /// retransmit, to acknowledge, to probe a peer.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Whether a transfer is under way that moves on only while this process makes progress.
    fn needs_progress(&self) -> bool {
        false
    }

    /// Whether [`next`](Nal::next) no longer polls the [descriptor](Self::descriptor): a
    /// thread has to sleep on it, and to call [`on_readable`](Self::on_readable).
    fn is_idle(&self) -> bool {
        false
    }

    /// The descriptor was readable: polls again.
    fn on_readable(&mut self) {}

    /// Whether all that was sent is known to have reached its receivers. A process that
    /// ends before may take messages with it.
    fn all_delivered(&self) -> bool {
        true
    }
}
