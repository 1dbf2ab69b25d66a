//! How bytes get to and from an owner's memory.
//!
//! There are two ways. [`Direct`](crate::direct::Direct) touches memory of this very
//! process. [`Staged`](crate::staged::Staged) moves bytes through a staging buffer, since
//! the memory is another process's. Which one holds for an owner is a type, so that nothing
//! of the second is left in the code of the first.

use crate::memory::Memory;
use crate::staged_sends::StagedSends;
use crate::staging_pool::StagingPool;
use crate::transports::Transports;
use lintel_claim::{Claim, CrossMemoryError, Region};
use lintel_memory::Pieces;
use lintel_nal::{MoveError, Origin, RemoteLoan};
use lintel_types::{InterfaceNumber, NiFail};
use std::io;
use std::slice;

/// One way to move bytes. Each step reports how it ended for the peer.
pub trait Mover<M: Memory> {
    /// The memory as claims, if it can be touched.
    fn as_claims(pieces: &[M::Span]) -> Option<&[Claim]>;

    /// Copies the bytes of a request to where they land.
    fn deposit(memory: &M, from: Claim, to: &Pieces<M::Span>, extent: Extent) -> NiFail;

    /// Copies the bytes of a reply to where the initiator wants them.
    fn deposit_reply(memory: &M, from: Claim, to: &Pieces<M::Span>) -> NiFail;

    /// Fetches what an initiator has lent to be read.
    fn fetch(parts: MoveParts<'_, M>, origin: Origin, loan: &RemoteLoan, to: &[M::Span]) -> NiFail;

    /// Fills what an initiator has lent to be filled.
    fn fill(parts: MoveParts<'_, M>, origin: Origin, from: &[M::Span], loan: &RemoteLoan)
    -> NiFail;

    /// Where the bytes of an entry can be read: in their place, or in a staging buffer to
    /// which the system copied them.
    ///
    /// # Errors
    /// The system couldn't copy them.
    fn source<'a>(
        memory: &M,
        pool: &mut StagingPool,
        pieces: &'a Pieces<M::Span>,
        extent: Extent,
    ) -> Result<Source<'a>, NiFail>;

    /// The staging buffer of a stream, or `None` if its bytes go straight to their place.
    /// Memory that may not be there is not accessible.
    ///
    /// # Errors
    /// As [`Memory::staging`].
    fn stream_buffer(
        memory: &M,
        pool: &mut StagingPool,
        length: u64,
        is_accessible: bool,
    ) -> io::Result<Option<Region>>;

    /// What an atomic operates on, given the source of the same entry.
    fn operands<'a>(pieces: &'a Pieces<M::Span>, source: &'a Source<'a>) -> &'a [Claim];

    /// Copies what an atomic has operated on back to the owner's memory.
    fn write_back(memory: &M, from: &[Claim], to: &Pieces<M::Span>, wanted: u64) -> NiFail;

    /// Ends the loan of the copy that stood for the owner's memory in an operation, if there
    /// was one; a reply that was placed into the copy goes to the memory. Returns how that
    /// ended, if it changes the response.
    fn settle(staged: &mut StagedSends<M::Span>, memory: &M, answer: &Answer) -> Option<NiFail>;
}

/// What a request moves at its target.
#[derive(Clone, Copy)]
pub struct Extent {
    /// Manipulated length, bytes.
    pub(crate) length: u64,
    /// Whether all of the memory may be taken to be there.
    pub(crate) is_accessible: bool,
}

impl From<&lintel_engine4::Landed> for Extent {
    #[inline(always)]
    fn from(landed: &lintel_engine4::Landed) -> Extent {
        Extent {
            length: landed.mlength(),
            is_accessible: landed.is_accessible(),
        }
    }
}

impl From<&lintel_engine3::Landed> for Extent {
    #[inline(always)]
    fn from(landed: &lintel_engine3::Landed) -> Extent {
        Extent {
            length: landed.mlength(),
            is_accessible: landed.is_accessible(),
        }
    }
}

/// What a response says of the memory of the operation that it ends.
pub struct Answer {
    pub(crate) interface: InterfaceNumber,
    pub(crate) token: u32,
    /// The target has written into the memory.
    pub(crate) placed: bool,
    /// How much of it, bytes.
    pub(crate) mlength: u64,
    pub(crate) fail: NiFail,
}

impl From<&lintel_wire::Response> for Answer {
    #[inline(always)]
    fn from(response: &lintel_wire::Response) -> Answer {
        Answer {
            interface: response.interface,
            token: response.token,
            placed: response.placed,
            mlength: response.mlength,
            fail: response.fail,
        }
    }
}

impl From<&lintel_wire::portals3::Response> for Answer {
    #[inline(always)]
    fn from(response: &lintel_wire::portals3::Response) -> Answer {
        Answer {
            interface: response.interface,
            token: response.token,
            placed: response.placed,
            mlength: response.mlength,
            fail: response.fail,
        }
    }
}

/// What moving long messages takes, borrowed from the core.
pub struct MoveParts<'a, M> {
    pub(crate) memory: &'a M,
    pub(crate) transports: &'a mut Transports,
    pub(crate) pool: &'a mut StagingPool,
}

/// Where bytes can be read.
pub enum Source<'a> {
    /// In the memory of the application.
    Direct(&'a [Claim]),
    /// In that part of a staging buffer.
    Staged(Region, Claim),
}

impl Source<'_> {
    pub(crate) fn claims(&self) -> &[Claim] {
        match self {
            Source::Direct(claims) => claims,
            Source::Staged(_, claim) => slice::from_ref(claim),
        }
    }
}

/// How a copy by the system ends for the peer. An owner whose process has ended before its
/// session did is unreachable; its memory wasn't at fault.
#[inline(always)]
pub(crate) fn copied_all(copied: Result<u64, CrossMemoryError>, wanted: u64) -> NiFail {
    match copied {
        Ok(bytes) if bytes >= wanted => NiFail::Ok,
        Err(CrossMemoryError::NoProcess) => NiFail::Undeliverable,
        _ => NiFail::Segv,
    }
}

/// How a move by the NAL ends for the peer.
pub(crate) fn moved_all(moved: Result<u64, MoveError>, wanted: u64) -> NiFail {
    match moved {
        Ok(bytes) if bytes >= wanted => NiFail::Ok,
        Ok(_) | Err(MoveError::Fault) => NiFail::Segv,
        Err(MoveError::Unavailable) => NiFail::Undeliverable,
    }
}
