//! Memory of another process is never touched: its bytes go through a staging buffer, and
//! the system copies between the buffer and the memory.

use crate::memory::Memory;
use crate::mover::{MoveParts, Mover, Source, copied_all, moved_all};
use crate::staged_sends::StagedSends;
use crate::staging_pool::StagingPool;
use lintel_claim::{Claim, Region};
use lintel_engine4::Landed;
use lintel_memory::{Pieces, length, part};
use lintel_nal::{Origin, RemoteLoan};
use lintel_types::NiFail;
use lintel_wire::Response;
use std::io;

/// The mover of an agent's clients.
pub struct Staged;

/// Bytes that are moved at a time: the second copy finds them in the cache.
const CHUNK: u64 = 256 << 10;

impl<M: Memory> Mover<M> for Staged {
    #[inline(always)]
    fn as_claims(_: &[M::Span]) -> Option<&[Claim]> {
        None
    }

    fn deposit(memory: &M, from: Claim, to: &Pieces<M::Span>, landed: &Landed) -> NiFail {
        if landed.mlength() == 0 {
            return NiFail::Ok;
        }
        copied_all(memory.copy_in(&[from], to.as_slice()), landed.mlength())
    }

    fn deposit_reply(memory: &M, from: Claim, to: &Pieces<M::Span>) -> NiFail {
        let from = from.slice(0, to.length());
        copied_all(memory.copy_in(&[from], to.as_slice()), from.len())
    }

    fn fetch(parts: MoveParts<'_, M>, origin: Origin, loan: &RemoteLoan, to: &[M::Span]) -> NiFail {
        let wanted = length(to);
        if origin.process == parts.transports.me {
            let lent = part(parts.transports.loopback.lent(), 0, wanted);
            return copied_all(parts.memory.copy_in(&lent, to), wanted);
        }
        in_chunks(parts, wanted, |parts, at, chunk| {
            let loan = loan.part(at, chunk.len());
            match parts.transports.fetch(origin, &loan, &[chunk]) {
                Ok(moved) if moved == chunk.len() => {}
                other => return moved_all(other, chunk.len()),
            }
            let copied = parts.memory.copy_in(&[chunk], &part(to, at, chunk.len()));
            copied_all(copied, chunk.len())
        })
    }

    fn fill(
        parts: MoveParts<'_, M>,
        origin: Origin,
        from: &[M::Span],
        loan: &RemoteLoan,
    ) -> NiFail {
        let wanted = length(from);
        if origin.process == parts.transports.me {
            let lent = part(parts.transports.loopback.lent(), 0, wanted);
            return copied_all(parts.memory.copy_out(from, &lent), wanted);
        }
        in_chunks(parts, wanted, |parts, at, chunk| {
            match parts
                .memory
                .copy_out(&part(from, at, chunk.len()), &[chunk])
            {
                Ok(copied) if copied == chunk.len() => {}
                other => return copied_all(other, chunk.len()),
            }
            let loan = loan.part(at, chunk.len());
            moved_all(parts.transports.fill(origin, &[chunk], &loan), chunk.len())
        })
    }

    fn source<'a>(
        memory: &M,
        pool: &mut StagingPool,
        pieces: &'a Pieces<M::Span>,
        landed: &Landed,
    ) -> Result<Source<'a>, NiFail> {
        if landed.mlength() == 0 {
            return Ok(Source::Direct(&[]));
        }
        let (copy, claim) = pool.take_part(memory, landed.mlength())?;
        match copied_all(memory.copy_out(pieces.as_slice(), &[claim]), claim.len()) {
            NiFail::Ok => Ok(Source::Staged(copy, claim)),
            fail => Err(fail),
        }
    }

    fn stream_buffer(
        memory: &M,
        pool: &mut StagingPool,
        length: u64,
        _is_accessible: bool,
    ) -> io::Result<Option<Region>> {
        pool.take(memory, length).map(Some)
    }

    fn operands<'a>(_: &'a Pieces<M::Span>, source: &'a Source<'a>) -> &'a [Claim] {
        source.claims()
    }

    fn write_back(memory: &M, from: &[Claim], to: &Pieces<M::Span>, wanted: u64) -> NiFail {
        copied_all(memory.copy_in(from, to.as_slice()), wanted)
    }

    fn settle(
        staged: &mut StagedSends<M::Span>,
        memory: &M,
        response: &Response,
    ) -> Option<NiFail> {
        let sent = staged.take(response)?;
        let fail = (response.placed && response.fail == NiFail::Ok).then(|| {
            let placed = response.mlength.min(length(&sent.pieces));
            let claims = [sent.copy.claim().slice(0, placed)];
            copied_all(memory.copy_in(&claims, &sent.pieces), placed)
        });
        staged.pool.put_back(sent.copy);
        fail
    }
}

/// Moves bytes chunk by chunk through a staging buffer, until a step fails. A step gets the
/// offset of the chunk, and its buffer.
fn in_chunks<M: Memory>(
    mut parts: MoveParts<'_, M>,
    total: u64,
    mut step: impl FnMut(&mut MoveParts<'_, M>, u64, Claim) -> NiFail,
) -> NiFail {
    let Ok(buffer) = parts.pool.take(parts.memory, total.min(CHUNK)) else {
        return NiFail::Segv;
    };
    let (mut at, mut fail) = (0, NiFail::Ok);
    while at < total && fail == NiFail::Ok {
        let chunk = buffer.claim().slice(0, (total - at).min(CHUNK));
        fail = step(&mut parts, at, chunk);
        at += chunk.len();
    }
    parts.pool.put_back(buffer);
    fail
}
