//! Memory of this very process is touched, unless the system has to check it first.

use crate::memory::Memory;
use crate::mover::{Answer, Extent, MoveParts, Mover, Source, copied_all, moved_all};
use crate::staged_sends::StagedSends;
use crate::staging_pool::StagingPool;
use lintel_claim::{Claim, CrossMemoryError, Region, copy, copy_vectored};
use lintel_memory::{Pieces, length};
use lintel_nal::{Origin, RemoteLoan};
use lintel_types::NiFail;
use std::io;

/// The mover of a process that has its own engine.
pub struct Direct;

impl<M: Memory<Span = Claim>> Mover<M> for Direct {
    #[inline(always)]
    fn as_claims(pieces: &[Claim]) -> Option<&[Claim]> {
        Some(pieces)
    }

    #[inline(always)]
    fn deposit(memory: &M, from: Claim, to: &Pieces<Claim>, extent: Extent) -> NiFail {
        if let Pieces::One(to) = to {
            if extent.is_accessible {
                return copied_all(Ok(copy(from, *to)), extent.length);
            }
        }
        let to = to.as_slice();
        if extent.is_accessible || extent.length == 0 {
            return copied_all(Ok(copy_vectored(&[from], to)), extent.length);
        }
        let copied = match memory.copy_in(&[from], to) {
            // Then the memory is touched after all, and a wrong address is the program's.
            Err(CrossMemoryError::Denied) => Ok(copy_vectored(&[from], to)),
            copied => copied,
        };
        copied_all(copied, extent.length)
    }

    #[inline(always)]
    fn deposit_reply(_: &M, from: Claim, to: &Pieces<Claim>) -> NiFail {
        copy_vectored(&[from], to.as_slice());
        NiFail::Ok
    }

    fn fetch(parts: MoveParts<'_, M>, origin: Origin, loan: &RemoteLoan, to: &[Claim]) -> NiFail {
        let wanted = length(to);
        let loan = loan.part(0, wanted);
        moved_all(parts.transports.fetch(origin, &loan, to), wanted)
    }

    fn fill(parts: MoveParts<'_, M>, origin: Origin, from: &[Claim], loan: &RemoteLoan) -> NiFail {
        let wanted = length(from);
        let loan = loan.part(0, wanted);
        moved_all(parts.transports.fill(origin, from, &loan), wanted)
    }

    fn source<'a>(
        memory: &M,
        pool: &mut StagingPool,
        pieces: &'a Pieces<Claim>,
        extent: Extent,
    ) -> Result<Source<'a>, NiFail> {
        let claims = pieces.as_slice();
        if extent.is_accessible {
            return Ok(Source::Direct(claims));
        }
        if extent.length == 0 {
            return Ok(Source::Direct(&[]));
        }
        let (copy, claim) = pool.take_part(memory, extent.length)?;
        match memory.copy_out(claims, &[claim]) {
            Err(CrossMemoryError::Denied) => Ok(Source::Direct(claims)),
            copied => match copied_all(copied, claim.len()) {
                NiFail::Ok => Ok(Source::Staged(copy, claim)),
                fail => Err(fail),
            },
        }
    }

    fn stream_buffer(
        memory: &M,
        pool: &mut StagingPool,
        length: u64,
        is_accessible: bool,
    ) -> io::Result<Option<Region>> {
        match is_accessible {
            true => Ok(None),
            false => pool.take(memory, length).map(Some),
        }
    }

    fn operands<'a>(pieces: &'a Pieces<Claim>, _: &'a Source<'a>) -> &'a [Claim] {
        pieces.as_slice()
    }

    fn write_back(_: &M, _: &[Claim], _: &Pieces<Claim>, _: u64) -> NiFail {
        NiFail::Ok
    }

    #[inline(always)]
    fn settle(_: &mut StagedSends<Claim>, _: &M, _: &Answer) -> Option<NiFail> {
        None
    }
}
