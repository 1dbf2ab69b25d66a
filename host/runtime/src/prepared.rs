//! Operations on direct entries of peers that are like earlier ones: between the same descriptor
//! and the same entry, of the same kind, at whatever offset. All else was looked up and checked for
//! the first one. That holds as long as no descriptor has changed, the peer is the same, and so is
//! the table of its direct entries.

use lintel_bridge::CounterCell;
use lintel_claim::{Claim, WordClaim, copy, copy_long, copy_short, word_atomic};
use lintel_engine4::{PreparedCounts, Transfer};
use lintel_nal_shm::{DirectPlace, MAX_DIRECT, QuickPlace, ShmNal};
use lintel_types::{CounterIndex, Handle, Operation, ProcessId};
use lintel_wire::Verb;

/// Bytes of the words that are accessed in the fewest instructions.
pub(crate) const WORD: u64 = size_of::<u64>() as u64;
/// Operations of a verb that are kept, a power of two.
const PLACES: usize = 16;

/// What a call asks for, as the program has given it: nothing has been checked.
#[derive(Clone, Copy)]
pub struct Asked {
    /// Put, get, atomic or fetching atomic.
    pub verb: Verb,
    /// The descriptor that bytes are sent from; not looked at for a get.
    pub source: Handle,
    /// Bytes from its start.
    pub source_offset: u64,
    /// The descriptor that an answer's bytes go to; looked at for what is answered.
    pub sink: Handle,
    /// Bytes from its start.
    pub sink_offset: u64,
    /// Bytes.
    pub length: u64,
    /// `ptl_ack_req_t`, of puts and atomics.
    pub ack: u8,
    /// The target, as the interface addresses it.
    pub target: ProcessId,
    /// The portal table index there.
    pub portal: u32,
    /// The match bits.
    pub match_bits: u64,
    /// Bytes from the start of the entry.
    pub remote_offset: u64,
    /// `ptl_op_t` and `ptl_datatype_t`, of atomics.
    pub kinds: (u8, u8),
}

impl Asked {
    /// The same, of a call whose arguments may have been parsed.
    pub(crate) fn of(transfer: &Transfer) -> Asked {
        Asked {
            verb: transfer.verb,
            source: transfer.source,
            source_offset: transfer.source_offset,
            sink: transfer.sink,
            sink_offset: transfer.sink_offset,
            length: transfer.length,
            ack: transfer.ack as u8,
            target: transfer.target,
            portal: transfer.portal,
            match_bits: transfer.match_bits,
            remote_offset: transfer.remote_offset,
            kinds: (transfer.operation as u8, transfer.datatype as u8),
        }
    }

    /// A descriptor of the operation.
    #[inline(always)]
    pub(crate) fn md(&self) -> Handle {
        match self.verb {
            Verb::Get => self.sink,
            _ => self.source,
        }
    }
}

/// Operations of an interface that were carried out lately: for each verb some, each at the place
/// that its target gives.
pub(crate) struct PreparedOperations([[Prepared; PLACES]; 4]);

/// What was found out for an operation.
#[repr(C, align(128))]
pub(crate) struct Prepared {
    kind: Kind,
    quick: QuickEnds,
    pub(crate) counts: PreparedCounts,
    /// Where the one counter is published that counts them, if any does.
    pub(crate) cell: Option<&'static CounterCell>,
    ends: Ends,
}

/// Where bytes come from and go to.
pub(crate) struct Ends {
    pub(crate) source: Claim,
    pub(crate) sink: Claim,
    pub(crate) target: DirectPlace,
}

/// As [`Ends`], where few instructions are enough; else no bytes.
#[derive(Clone, Copy)]
struct QuickEnds {
    source: WordClaim,
    sink: WordClaim,
    target: QuickPlace,
}

impl QuickEnds {
    const NONE: QuickEnds = QuickEnds {
        source: WordClaim::new(Claim::empty()),
        sink: WordClaim::new(Claim::empty()),
        target: QuickPlace::NONE,
    };

    fn of(ends: &Ends) -> Option<QuickEnds> {
        Some(QuickEnds {
            source: WordClaim::new(ends.source),
            sink: WordClaim::new(ends.sink),
            target: ends.target.quick()?,
        })
    }
}

/// What operations of a verb have in common that need be looked up once.
struct Kind {
    source: Handle,
    sink: Handle,
    /// Both words of its identifier.
    target: u64,
    portal: u32,
    match_bits: u64,
    ack: u8,
    kinds: (u8, u8),
    /// Of an atomic, as in `kinds`.
    operation: Operation,
}

impl Kind {
    fn of(transfer: &Transfer, asked: &Asked) -> Kind {
        Kind {
            operation: transfer.operation,
            source: asked.source,
            sink: asked.sink,
            target: asked.target.word(),
            portal: asked.portal,
            match_bits: asked.match_bits,
            ack: asked.ack,
            kinds: asked.kinds,
        }
    }

    /// Whether a call asks for one of this kind. One field after the other, where a derived
    /// comparison would have the other kind in memory.
    #[inline(always)]
    fn is_of(&self, asked: &Asked) -> bool {
        let is_sent = || self.source == asked.source;
        let is_answered = || self.sink == asked.sink;
        let is_acknowledged = || self.ack == asked.ack;
        let combines = || self.kinds.0 == asked.kinds.0 && self.kinds.1 == asked.kinds.1;
        let is_of_verb = match asked.verb {
            Verb::Put => is_sent() && is_acknowledged(),
            Verb::Get => is_answered(),
            Verb::Atomic => is_sent() && is_acknowledged() && combines(),
            Verb::FetchAtomic => is_sent() && is_answered() && combines(),
            Verb::Swap => false,
        };
        is_of_verb
            && self.target == asked.target.word()
            && self.match_bits == asked.match_bits
            && self.portal == asked.portal
    }
}

impl Default for PreparedOperations {
    fn default() -> Self {
        PreparedOperations([const { [const { Prepared::NONE }; PLACES] }; 4])
    }
}

impl PreparedOperations {
    /// The operation that a call asks for one like, if it is kept.
    #[inline(always)]
    pub(crate) fn find(&self, asked: &Asked) -> Option<&Prepared> {
        let found = &self.0[row(asked.verb)][place(asked)];
        found.kind.is_of(asked).then_some(found)
    }

    /// Keeps what was found out for an operation. `cell` is where a counter is published, if that
    /// lasts.
    pub(crate) fn keep(
        &mut self,
        transfer: &Transfer,
        ends: Ends,
        counts: PreparedCounts,
        cell: impl FnOnce(CounterIndex) -> Option<&'static CounterCell>,
    ) {
        let cell = match counts.counters() {
            [Some(counter), None] => cell(counter),
            _ => None,
        };
        let is_quick = cell.is_some() || !counts.is_any();
        let quick = QuickEnds::of(&ends).filter(|_| is_quick);
        let asked = Asked::of(transfer);
        self.0[row(asked.verb)][place(&asked)] = Prepared {
            kind: Kind::of(transfer, &asked),
            quick: quick.unwrap_or(QuickEnds::NONE),
            counts,
            cell,
            ends,
        };
    }
}

/// Where those of a verb are kept.
#[inline(always)]
fn row(verb: Verb) -> usize {
    match verb {
        // None of these is.
        Verb::Swap | Verb::Put => 0,
        Verb::Get => 1,
        Verb::Atomic => 2,
        Verb::FetchAtomic => 3,
    }
}

/// Where one is kept among those of its verb.
#[inline(always)]
fn place(asked: &Asked) -> usize {
    let ProcessId { nid, pid } = asked.target;
    let of_kind = asked.portal.wrapping_add(asked.match_bits as u32);
    nid.wrapping_add(pid).wrapping_add(of_kind) as usize % PLACES
}

// So that its place is found by a shift, and what is looked at in the fewest instructions lies in
// two lines of the cache.
const _: () = assert!(size_of::<Prepared>() == 256);
const _: () = assert!(std::mem::offset_of!(Prepared, ends) <= 128);

impl Prepared {
    const NONE: Prepared = Prepared {
        kind: Kind {
            source: Handle::INVALID,
            sink: Handle::INVALID,
            target: 0,
            portal: 0,
            match_bits: 0,
            ack: 0,
            kinds: (0, 0),
            operation: Operation::Min,
        },
        quick: QuickEnds::NONE,
        counts: PreparedCounts::NONE,
        cell: None,
        ends: Ends {
            source: Claim::empty(),
            sink: Claim::empty(),
            target: DirectPlace::NONE,
        },
    };

    /// Carries out one on a word that is like this one; nothing, with nothing done, if it has to be
    /// looked at otherwise.
    #[inline(always)]
    pub(crate) fn run_word(&self, near: &mut ShmNal, asked: &Asked) -> Option<()> {
        let QuickEnds {
            source,
            sink,
            target: place,
        } = &self.quick;
        let target = place.word(asked.remote_offset)?;
        match asked.verb {
            Verb::Put => {
                let source = source.word(asked.source_offset)?;
                near.access_quickly(
                    place,
                    #[inline(always)]
                    || Some(copy(source, target)),
                )?;
            }
            Verb::Get => {
                let sink = sink.word(asked.sink_offset)?;
                near.access_quickly(
                    place,
                    #[inline(always)]
                    || Some(copy(target, sink)),
                )?;
            }
            Verb::Atomic => {
                let source = source.word(asked.source_offset)?;
                self.combine_word(near, source, target)?;
            }
            Verb::FetchAtomic => {
                let source = source.word(asked.source_offset)?;
                let sink = sink.word(asked.sink_offset)?;
                let old = self.combine_word(near, source, target)?;
                sink.write(&old.to_ne_bytes());
            }
            Verb::Swap => return None,
        }
        Some(())
    }

    /// Combines a word with one of the target, and returns what was there.
    #[inline(always)]
    fn combine_word(&self, near: &mut ShmNal, source: Claim, target: Claim) -> Option<u64> {
        // Comes while the rest is looked at.
        target.prefetch_to_write(0);
        let operand = word_of(source);
        near.access_quickly(
            &self.quick.target,
            #[inline(always)]
            || word_atomic(self.kind.operation, target, operand),
        )
    }

    /// As [`run_word`](Self::run_word), or a put or get of 16 to 64 bytes, without a call of a
    /// function.
    #[inline(always)]
    pub(crate) fn run_short(&self, near: &mut ShmNal, asked: &Asked) -> Option<()> {
        match asked.length {
            WORD => self.run_word(near, asked),
            _ => self.run_by(near, asked, copy_short),
        }
    }

    /// As [`run_word`](Self::run_word), a put or get of any length.
    #[inline(always)]
    pub(crate) fn run_bytes(&self, near: &mut ShmNal, asked: &Asked) -> Option<()> {
        self.run_by(
            near,
            asked,
            #[inline(always)]
            |from, to| Some(copy_long(from, to)),
        )
    }

    /// A put or get whose bytes a function copies.
    #[inline(always)]
    fn run_by(
        &self,
        near: &mut ShmNal,
        asked: &Asked,
        copy: impl FnOnce(Claim, Claim) -> Option<u64>,
    ) -> Option<()> {
        let (place, length) = (&self.quick.target, asked.length);
        if length > MAX_DIRECT {
            return None;
        }
        let target = place.part(asked.remote_offset, length)?;
        let (from, to) = match asked.verb {
            Verb::Put => (self.quick.source.part(asked.source_offset, length)?, target),
            Verb::Get => (target, self.quick.sink.part(asked.sink_offset, length)?),
            _ => return None,
        };
        near.access_quickly(
            place,
            #[inline(always)]
            || copy(from, to),
        )?;
        Some(())
    }

    /// As [`run_word`](Self::run_word), any that was prepared, with a look at the peer.
    pub(crate) fn run(&self, near: &mut ShmNal, asked: &Asked) -> Option<()> {
        let (offset, length) = (asked.remote_offset, asked.length);
        let range = (offset, length);
        if length > MAX_DIRECT {
            return None;
        }
        let Ends {
            source,
            sink,
            target: place,
        } = &self.ends;
        match asked.verb {
            Verb::Put => {
                let source = source.part(asked.source_offset, length)?;
                near.access_at(place, range, |target| Some(copy(source, target)))?;
            }
            Verb::Get => {
                let sink = sink.part(asked.sink_offset, length)?;
                near.access_at(place, range, |target| Some(copy(target, sink)))?;
            }
            Verb::Atomic | Verb::FetchAtomic if length == WORD => {
                place.prefetch_to_write(offset);
                let operand = word_of(source.part(asked.source_offset, length)?);
                let sink = match asked.verb {
                    Verb::FetchAtomic => Some(sink.part(asked.sink_offset, length)?),
                    _ => None,
                };
                let operation = self.kind.operation;
                let combine = |target| word_atomic(operation, target, operand);
                let old = near.access_at(place, range, combine)?;
                if let Some(sink) = sink {
                    sink.write(&old.to_ne_bytes());
                }
            }
            _ => return None,
        }
        Some(())
    }
}

/// The number that a claim of eight bytes holds.
#[inline(always)]
fn word_of(claim: Claim) -> u64 {
    let mut bytes = [0; WORD as usize];
    claim.read(&mut bytes);
    u64::from_ne_bytes(bytes)
}
