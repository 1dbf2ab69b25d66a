//! What the system grants this process and its ranks: cores, and descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::job::Bind;

/// The cores that ranks are bound to, in turn; empty if they are not bound.
pub(crate) fn cores_for(bind: Bind) -> Vec<usize> {
    let allowed = match bind {
        Bind::None => return Vec::new(),
        Bind::Core => sched_getaffinity(None),
    };
    let Ok(allowed) = allowed else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU)
        .filter(|&core| allowed.is_set(core))
        .collect()
}

/// Raises the limit to `count` descriptors, and some more for yod.
pub(crate) fn raise_descriptor_limit(count: usize) {
    let needed = count as u64 + 64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let current = Some(limit.maximum.map_or(needed, |maximum| needed.min(maximum)));
        let maximum = limit.maximum;
        // If refused, starting the process that finds no descriptor fails with the reason.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    }
}
