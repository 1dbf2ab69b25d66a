//! Operations of this process on direct entries of peers.

use crate::exchange::SHORT_EXCHANGE;
use lintel_claim::{Claim, atomic, copy_vectored, fetch_atomic, swap};
use lintel_nal_shm::{MAX_DIRECT, ShmNal, Wanted};
use lintel_types::ProcessId;
use lintel_wire::{OPERAND_BYTES, Request, Verb};

/// Bytes of the longest atomic that is carried out without the target.
pub(crate) const MAX_ATOMIC: usize = SHORT_EXCHANGE / 2;

/// Carries a request out in memory of its target; false, with nothing done, if it has to be
/// sent.
pub(crate) fn carry_out(
    near: &mut ShmNal,
    to: ProcessId,
    request: &Request,
    operand: &[u8; OPERAND_BYTES],
    source: &[Claim],
    sink: &[Claim],
) -> bool {
    if request.length > MAX_DIRECT {
        return false;
    }
    let (puts, gets) = match request.verb {
        Verb::Put | Verb::Atomic => (true, false),
        Verb::Get => (false, true),
        Verb::FetchAtomic | Verb::Swap => (true, true),
    };
    let wanted = Wanted {
        interface: request.interface,
        portal: request.portal,
        match_bits: request.match_bits,
        puts,
        gets,
        offset: request.remote_offset,
        length: request.length,
    };
    let done = match request.verb {
        Verb::Put => near.access(to, &wanted, |target| Some(copy_vectored(source, &[target]))),
        Verb::Get => near.access(to, &wanted, |target| Some(copy_vectored(&[target], sink))),
        _ => return exchange(near, to, &wanted, request, operand, source, sink),
    };
    done.is_some()
}

/// Carries an atomic out by the processor's own ones, if it has some for that.
fn exchange(
    near: &mut ShmNal,
    to: ProcessId,
    wanted: &Wanted,
    request: &Request,
    operand: &[u8; OPERAND_BYTES],
    source: &[Claim],
    sink: &[Claim],
) -> bool {
    let (size, length) = (request.datatype.size(), request.length as usize);
    let (&[source], sink) = (source, sink.first().copied().unwrap_or_default()) else {
        return false;
    };
    let fits = length <= MAX_ATOMIC && (!wanted.gets || sink.len() as usize == length);
    if size > size_of::<u64>() || !fits {
        return false;
    }
    let (mut sent, mut old) = ([0; MAX_ATOMIC], [0; MAX_ATOMIC]);
    let (sent, old) = (&mut sent[..length], &mut old[..length]);
    source.read(sent);
    let (operation, datatype) = (request.operation, request.datatype);
    let done = near.access(to, wanted, |target| {
        let is_aligned = target.address() % size as u64 == 0;
        if is_aligned {
            let target = &[target];
            match request.verb {
                Verb::Atomic => atomic(operation, datatype, target, sent),
                Verb::FetchAtomic => fetch_atomic(operation, datatype, target, sent, old),
                _ => swap(operation, datatype, target, sent, &operand[..size], old),
            }
        }
        is_aligned.then_some(())
    });
    let is_done = done.is_some();
    if is_done && wanted.gets {
        sink.write(old);
    }
    is_done
}
