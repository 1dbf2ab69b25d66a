//! Operations of this process on direct entries: those of peers, and its own.

use crate::exchange::SHORT_EXCHANGE;
use crate::transports::Transports;
use lintel_claim::{Claim, atomic, copy, copy_vectored, fetch_atomic, swap, word_atomic};
use lintel_engine4::{Carried, Transfer};
use lintel_nal_shm::{MAX_DIRECT, Wanted};
use lintel_types::{Datatype, InterfaceNumber, Operation, PortalIndex, ProcessId};
use lintel_wire::Verb;

/// Bytes of the longest atomic that is carried out without the target.
pub(crate) const MAX_ATOMIC: usize = SHORT_EXCHANGE / 2;

/// An operation that may be carried out in memory of its target.
pub(crate) struct CarryOut<'a> {
    pub(crate) transports: &'a mut Transports,
    pub(crate) to: ProcessId,
    pub(crate) interface: InterfaceNumber,
    pub(crate) rank: u32,
    pub(crate) transfer: &'a Transfer,
    pub(crate) source: &'a [Claim],
    pub(crate) sink: &'a [Claim],
}

impl CarryOut<'_> {
    /// Carries it out, unless it has to be sent.
    #[inline(always)]
    pub(crate) fn run(mut self) -> Carried {
        let transfer = self.transfer;
        if transfer.length > MAX_DIRECT {
            return Carried::No;
        }
        let (source, sink) = (self.source, self.sink);
        match transfer.verb {
            Verb::Put => match self.access(|target| Some(copy_pieces(source, &[target]))) {
                Carried::No => self.copy_private(source),
                carried => carried,
            },
            Verb::Get => match self.access(|target| Some(copy_pieces(&[target], sink))) {
                Carried::No => self.copy_private(sink),
                carried => carried,
            },
            Verb::Atomic | Verb::FetchAtomic if is_word_atomic(transfer) => self.combine_word(),
            _ => self.exchange(),
        }
    }

    #[inline(always)]
    fn wanted(&self) -> Wanted {
        wanted(self.interface, self.transfer)
    }

    /// Accesses what the operation wants of its target, if `access` gives something.
    #[inline(always)]
    fn access<R>(&mut self, access: impl FnOnce(Claim) -> Option<R>) -> Carried {
        let wanted = self.wanted();
        if self.to == self.transports.me {
            return access_own(self.transports, &wanted, access);
        }
        let near = self.transports.nal.near_mut();
        match near.and_then(|near| near.access(self.to, &wanted, access)) {
            Some(_) => Carried::Yes,
            None => Carried::No,
        }
    }

    /// Has the system copy, where the target can't be mapped or posts events, and computes.
    fn copy_private(&mut self, local: &[Claim]) -> Carried {
        let near = self.transports.nal.near_mut();
        let wanted = wanted(self.interface, self.transfer);
        let Some(near) = near.filter(|near| near.knows_private()) else {
            return Carried::No;
        };
        let request = self.transfer.request(self.interface, self.rank);
        match near.copy_private(self.to, &wanted, local, &request.to_words()) {
            Some(()) => Carried::Yes,
            None => Carried::No,
        }
    }

    /// One 64-bit integer by one instruction of the processor.
    #[inline(always)]
    fn combine_word(&mut self) -> Carried {
        let (source, sink) = (self.source.first(), self.sink.first());
        let Some(operand) = source.and_then(|source| source.load_u64(0)) else {
            // In pieces.
            return Carried::No;
        };
        let (operation, mut old) = (self.transfer.operation, 0);
        let carried = self.access(|target| {
            old = word_atomic(operation, target, operand)?;
            Some(())
        });
        match (carried, sink) {
            (Carried::No, _) => {}
            (_, Some(sink)) if self.transfer.verb == Verb::FetchAtomic => {
                sink.write(&old.to_ne_bytes());
            }
            _ => {}
        }
        carried
    }

    /// Any atomic by the processor's own ones, if it has some for that.
    #[inline(never)]
    fn exchange(&mut self) -> Carried {
        let transfer = self.transfer;
        let (size, length) = (transfer.datatype.size(), transfer.length as usize);
        let fetches = transfer.verb != Verb::Atomic;
        let (&[source], sink) = (self.source, self.sink.first().copied().unwrap_or_default())
        else {
            return Carried::No;
        };
        let fits = length <= MAX_ATOMIC && (!fetches || sink.len() as usize == length);
        if size > size_of::<u64>() || !fits {
            return Carried::No;
        }
        let (mut sent, mut old) = ([0; MAX_ATOMIC], [0; MAX_ATOMIC]);
        let (sent, old) = (&mut sent[..length], &mut old[..length]);
        source.read(sent);
        let (operation, datatype) = (transfer.operation, transfer.datatype);
        let carried = self.access(|target| {
            let is_aligned = target.address() % size as u64 == 0;
            if is_aligned {
                let (target, compare) = (&[target], &transfer.operand[..size]);
                match transfer.verb {
                    Verb::Atomic => atomic(operation, datatype, target, sent),
                    Verb::FetchAtomic => fetch_atomic(operation, datatype, target, sent, old),
                    _ => swap(operation, datatype, target, sent, compare, old),
                }
            }
            is_aligned.then_some(())
        });
        if fetches && carried != Carried::No {
            sink.write(old);
        }
        carried
    }
}

/// What an operation wants of its target.
pub(crate) fn wanted(interface: InterfaceNumber, transfer: &Transfer) -> Wanted {
    let verb = transfer.verb;
    Wanted {
        interface,
        // The engine has refused what would be cut off.
        portal: PortalIndex(transfer.portal as u16),
        match_bits: transfer.match_bits,
        puts: verb != Verb::Get,
        gets: !matches!(verb, Verb::Put | Verb::Atomic),
        offset: transfer.remote_offset,
        length: transfer.length,
    }
}

/// Accesses an own entry, behind all that this process has sent to itself.
#[inline(never)]
fn access_own<R>(
    transports: &Transports,
    wanted: &Wanted,
    access: impl FnOnce(Claim) -> Option<R>,
) -> Carried {
    if !transports.loopback.is_empty() {
        return Carried::No;
    }
    let found = transports.direct.find(wanted);
    let done = found.and_then(|(target, count)| access(target).map(|_| count));
    match done {
        Some(Some((counter, by))) => Carried::Counting(counter, by),
        Some(None) => Carried::Yes,
        None => Carried::No,
    }
}

/// Whether [`word_atomic`] carries it out, if its memory is aligned.
#[inline(always)]
pub(crate) fn is_word_atomic(transfer: &Transfer) -> bool {
    use Operation::{Band, Bor, Bxor, Sum};
    matches!(transfer.datatype, Datatype::Int64 | Datatype::Uint64)
        && transfer.length == size_of::<u64>() as u64
        && matches!(transfer.operation, Sum | Bxor | Bor | Band)
}

#[inline(always)]
fn copy_pieces(from: &[Claim], to: &[Claim]) -> u64 {
    match (from, to) {
        ([from], [to]) => copy(*from, *to),
        _ => copy_vectored(from, to),
    }
}
