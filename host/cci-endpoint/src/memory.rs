//! Registered memory: where it is, and the lease under which peers use it.

use lintel_cci::Region;
use lintel_claim::{Claim, Lease};
use rustc_hash::FxHashMap;

/// One registration.
pub(crate) struct Registered {
    claim: Claim,
    pub(crate) lease: Lease,
}

/// The registrations of an endpoint, by key.
#[derive(Default)]
pub(crate) struct Memory {
    by_key: FxHashMap<u64, Registered>,
}

impl Memory {
    pub(crate) fn insert(&mut self, key: u64, claim: Claim) {
        let lease = Lease::new();
        self.by_key.insert(key, Registered { claim, lease });
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<Lease> {
        self.by_key.remove(&key).map(|registered| registered.lease)
    }

    /// Ends all registrations.
    pub(crate) fn take_leases(&mut self) -> Vec<Lease> {
        let all = self.by_key.drain();
        all.map(|(_, registered)| registered.lease).collect()
    }

    /// A part of a registration, which the rules have checked, and its lease.
    pub(crate) fn part(&self, region: Region) -> Option<(Claim, &Lease)> {
        let registered = self.by_key.get(&region.key)?;
        let part = registered.claim.slice(region.offset, region.length);
        Some((part, &registered.lease))
    }
}
