//! Memory of another process is never touched: its bytes go through a staging buffer, and
//! the system copies between the buffer and the memory.

use crate::memory::Memory;
use crate::mover::{Answer, Extent, MoveParts, Mover, Source, copied_all, moved_all};
use crate::staged_sends::StagedSends;
use crate::staging_pool::StagingPool;
use lintel_claim::{Claim, Region};
use lintel_memory::{Pieces, length, part};
use lintel_nal::{Origin, RemoteLoan};
use lintel_types::NiFail;
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

    fn deposit(memory: &M, from: Claim, to: &Pieces<M::Span>, extent: Extent) -> NiFail {
        if extent.length == 0 {
            return NiFail::Ok;
        }
        copied_all(memory.copy_in(&[from], to.as_slice()), extent.length)
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
        extent: Extent,
    ) -> Result<Source<'a>, NiFail> {
        if extent.length == 0 {
            return Ok(Source::Direct(&[]));
        }
        let (copy, claim) = pool.take_part(memory, extent.length)?;
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

    fn settle(staged: &mut StagedSends<M::Span>, memory: &M, answer: &Answer) -> Option<NiFail> {
        let sent = staged.take(answer.interface, answer.token)?;
        let fail = (answer.placed && answer.fail == NiFail::Ok).then(|| {
            let placed = answer.mlength.min(length(&sent.pieces));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CopiedMemory, Network, segment};
    use crate::transports::Transports;
    use lintel_claim::Lease;
    use lintel_nal::{Arrival, Nal, Outgoing, Payload};
    use lintel_types::{InterfaceNumber, ProcessId};
    use lintel_wire::Words;

    const ME: ProcessId = ProcessId::new(1, 1);
    const PEER: ProcessId = ProcessId::new(1, 2);
    /// Two chunks and a part of one.
    const LENGTH: u64 = 2 * CHUNK + 1000;

    /// The transports of a process, and the loan that has just arrived there.
    fn lent(from: ProcessId, memory: &Region) -> (Transports, Origin, RemoteLoan) {
        let network = Network::default();
        network.register(ME, segment());
        let mut transports = Transports::new(ME, 0, network.transport(ME));
        let lease = Lease::new();
        let claims = [memory.claim()];
        let outgoing = Outgoing::LentToRead(lease.lend(&claims));
        let words = Words::default();
        match from {
            ME => transports.send(ME, &words, outgoing).expect("it is here"),
            from => {
                let sender = &mut network.transport(from);
                sender.send(ME, &words, outgoing).expect("it is known");
            }
        }
        let arrival = match from {
            ME => transports.loopback.next(),
            _ => transports.nal.next(),
        };
        match arrival {
            Some(Arrival::Message(origin, _, Payload::Lent(loan))) => (transports, origin, loan),
            other => panic!("memory was lent: {other:?}"),
        }
    }

    fn pattern(length: u64) -> Vec<u8> {
        (0..length).map(|at| (at * 7 / 3) as u8).collect()
    }

    fn bytes(region: &Region) -> Vec<u8> {
        let mut bytes = vec![0; region.len() as usize];
        region.read(0, &mut bytes);
        bytes
    }

    fn fetch(from: ProcessId, memory: &CopiedMemory) -> (NiFail, bool) {
        let (source, target) = (Region::new(LENGTH), Region::new(LENGTH));
        source.write(0, &pattern(LENGTH));
        let (mut transports, origin, loan) = lent(from, &source);
        let mut pool = StagingPool::default();
        let parts = MoveParts {
            memory,
            transports: &mut transports,
            pool: &mut pool,
        };
        let fail = Staged::fetch(parts, origin, &loan, &[target.claim()]);
        (fail, bytes(&target) == pattern(LENGTH))
    }

    #[test]
    fn a_long_loan_is_fetched_chunk_by_chunk_through_one_buffer() {
        let memory = CopiedMemory::default();
        assert_eq!(fetch(PEER, &memory), (NiFail::Ok, true));
        assert_eq!(*memory.copies.lock(), [CHUNK, CHUNK, 1000]);
        assert_eq!(memory.buffers.into_inner(), 1);
    }

    #[test]
    fn a_fetch_ends_at_the_first_copy_that_fails() {
        let memory = CopiedMemory {
            fails_after: Some(1),
            ..CopiedMemory::default()
        };
        assert_eq!(fetch(PEER, &memory), (NiFail::Segv, false));
        assert_eq!(*memory.copies.lock(), [CHUNK]);
    }

    #[test]
    fn a_process_fetches_from_itself_by_one_copy_without_a_buffer() {
        let memory = CopiedMemory::default();
        assert_eq!(fetch(ME, &memory), (NiFail::Ok, true));
        assert_eq!(*memory.copies.lock(), [LENGTH]);
        assert_eq!(memory.buffers.into_inner(), 0);
    }

    #[test]
    fn a_long_answer_fills_what_was_lent_chunk_by_chunk() {
        let memory = CopiedMemory::default();
        let (source, target) = (Region::new(LENGTH), Region::new(LENGTH));
        source.write(0, &pattern(LENGTH));
        let (mut transports, origin, loan) = lent(PEER, &target);
        let mut pool = StagingPool::default();
        let parts = MoveParts {
            memory: &memory,
            transports: &mut transports,
            pool: &mut pool,
        };
        let fail = Staged::fill(parts, origin, &[source.claim()], &loan);
        assert_eq!(fail, NiFail::Ok);
        assert!(bytes(&target) == pattern(LENGTH));
    }

    #[test]
    fn a_reply_placed_into_a_copy_goes_to_the_memory_that_it_stood_for() {
        let [number, ..] = InterfaceNumber::ALL;
        let answer = |placed| Answer {
            interface: number,
            token: 5,
            placed,
            mlength: 3,
            fail: NiFail::Ok,
        };
        for (placed, fail, expected) in [
            (true, Some(NiFail::Ok), b"abc\0"),
            (false, None, b"\0\0\0\0"),
        ] {
            let (memory, target) = (CopiedMemory::default(), Region::new(4));
            let copy = Region::new(4096);
            copy.write(0, b"abcd");
            let mut staged = StagedSends::default();
            staged.insert(number, 5, PEER, copy, &[target.claim()]);
            let settled = Staged::settle(&mut staged, &memory, &answer(placed));
            assert_eq!((settled, bytes(&target)), (fail, expected.to_vec()));
            assert_eq!(staged.bytes(), 0);
            let settled = Staged::settle(&mut staged, &memory, &answer(placed));
            assert_eq!(settled, None, "it was answered");
        }
    }

    #[test]
    fn a_reply_shorter_than_its_place_is_whole() {
        let (memory, target) = (CopiedMemory::default(), Region::new(8));
        let reply = Region::new(3);
        reply.write(0, b"abc");
        let to = Pieces::One(target.claim());
        assert_eq!(
            Staged::deposit_reply(&memory, reply.claim(), &to),
            NiFail::Ok
        );
        assert_eq!(bytes(&target), b"abc\0\0\0\0\0");
    }
}
