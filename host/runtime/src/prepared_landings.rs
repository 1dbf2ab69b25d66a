//! Puts that landed, by which others from the same process are known that land like them.

use lintel_bridge::CounterCell;
use lintel_engine4::PreparedLanding;
use lintel_types::ProcessId;
use lintel_wire::Words;

/// Landings that are kept, a power of two: as many as the processes of a large node.
const PLACES: usize = 64;

/// Puts that landed at an interface lately, each at the place that its sender, its portal
/// table index and its match bits give.
pub(crate) struct PreparedLandings<S>([Option<Kept<S>>; PLACES]);

/// What was found for a put.
pub(crate) struct Kept<S> {
    like: Like,
    /// Where the counter is published that counts it, if one does.
    pub(crate) cell: Option<&'static CounterCell>,
    pub(crate) landing: PreparedLanding<S>,
}

/// What puts have in common that land alike.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Like {
    /// Verb, interface, acknowledgement and portal table index.
    kind: u64,
    /// The sender's rank; and no token, where no acknowledgement is asked for.
    token_and_rank: u64,
    match_bits: u64,
    process: u64,
}

impl Like {
    #[inline(always)]
    fn of(process: ProcessId, words: &Words) -> Like {
        Like {
            kind: words[0] >> 32,
            token_and_rank: words[1],
            match_bits: words[3],
            process: process.word(),
        }
    }

    #[inline(always)]
    fn place(&self) -> usize {
        let process = self.process.wrapping_add(self.process >> 32);
        let portal = self.kind >> 16;
        let place = process.wrapping_add(portal).wrapping_add(self.match_bits);
        place as usize % PLACES
    }
}

impl<S> PreparedLandings<S> {
    pub(crate) fn new() -> PreparedLandings<S> {
        PreparedLandings([const { None }; PLACES])
    }

    /// Keeps what was found for a put.
    pub(crate) fn keep(
        &mut self,
        process: ProcessId,
        words: &Words,
        landing: PreparedLanding<S>,
        cell: Option<&'static CounterCell>,
    ) {
        let like = Like::of(process, words);
        self.0[like.place()] = Some(Kept {
            like,
            cell,
            landing,
        });
    }

    /// What was found for puts like this one, if it is kept.
    #[inline(always)]
    pub(crate) fn find(&self, process: ProcessId, words: &Words) -> Option<&Kept<S>> {
        let like = Like::of(process, words);
        let kept = self.0[like.place()].as_ref()?;
        (kept.like == like).then_some(kept)
    }
}
