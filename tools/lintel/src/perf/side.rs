//! What the benchmarks of both interfaces need of one side, so that each is written once.

use std::rc::Rc;

use super::endpoint::Setup;
use super::options::Api;
use super::session::Session;
use crate::error::Result;
use crate::raw::Region;

/// One side of a benchmark, over Portals 4 ([`Endpoint`](super::endpoint::Endpoint)) or
/// Portals 3.3 ([`Endpoint3`](super::endpoint3::Endpoint3)).
pub trait Side: Sized {
    /// What names bytes of this side and of the other's entry.
    type Transfer: Copy;
    /// The interface that it measures.
    const API: Api;

    /// Sets up both sides; when it returns, each may send to the other.
    ///
    /// # Errors
    /// What Portals or the system refused.
    fn open(session: &mut Session, setup: Setup<'_>) -> Result<Self>;

    /// A transfer of `length` bytes to the other side's entry, `offset` bytes into both buffers.
    fn transfer_at(&self, length: u64, offset: u64) -> Self::Transfer;

    /// Starts a put; the target acknowledges it if that is asked for.
    ///
    /// # Errors
    /// What Portals refused, as of all below.
    fn put(&self, transfer: &Self::Transfer, is_acked: bool) -> Result<()>;

    /// Starts a get.
    fn get(&self, transfer: &Self::Transfer) -> Result<()>;

    /// Waits for the next `n` messages of the other side.
    fn take_arrivals(&self, n: u64) -> Result<()>;

    /// Waits for the next `n` ends of own operations, of the stage that the setup names.
    fn take_completions(&self, n: u64) -> Result<()>;

    /// Memory to send from and to receive in, of the setup's length, for limits without Portals.
    fn buffers(&self) -> (&Rc<Region>, &Rc<Region>);
}

/// A row's variant, which names the interface unless that is Portals 4.
pub fn variant<S: Side>(name: &str) -> String {
    match S::API {
        Api::Portals4 => name.into(),
        Api::Portals3 => format!("Portals 3.3, {name}"),
    }
}

/// Runs a benchmark over the interface that was asked for.
macro_rules! over_api {
    ($session:ident, $run:ident) => {
        match $session.options.api {
            crate::perf::options::Api::Portals4 => {
                $run::<crate::perf::endpoint::Endpoint>($session)
            }
            crate::perf::options::Api::Portals3 => {
                $run::<crate::perf::endpoint3::Endpoint3>($session)
            }
        }
    };
}
pub(crate) use over_api;
