//! Messages whose bodies are lent, while they land.

use lintel_claim::Claim;
use lintel_engine4::Landed;
use lintel_memory::Pieces;
use lintel_nal::RemoteLoan;

/// A message that lands, and the memory that its initiator has lent.
pub(crate) struct LentLanding<S> {
    pub(crate) landed: Landed,
    pub(crate) pieces: Pieces<S>,
    pub(crate) loan: RemoteLoan,
}

/// Messages of one sender that land by one call of the system. Kept from one call to the next,
/// so that lists needn't be allocated.
pub(crate) struct LentLandings<S> {
    pub(crate) begun: Vec<LentLanding<S>>,
    /// Bytes of all.
    pub(crate) bytes: u64,
    /// The memory of all on both sides, one after the other.
    pub(crate) loan: RemoteLoan,
    pub(crate) here: Vec<Claim>,
}

impl<S> Default for LentLandings<S> {
    fn default() -> Self {
        LentLandings {
            begun: Vec::new(),
            bytes: 0,
            loan: RemoteLoan::default(),
            here: Vec::new(),
        }
    }
}

impl<S> LentLandings<S> {
    pub(crate) fn push(&mut self, one: LentLanding<S>) {
        self.bytes += one.landed.mlength();
        self.begun.push(one);
    }
}
