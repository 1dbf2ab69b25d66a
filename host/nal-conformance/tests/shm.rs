//! Processes of one machine: with cross-memory copies, without, and under
//! middleware.

use lintel_nal::{Fault, Nal, Trace};
use lintel_nal_conformance::{Member, suite};
use lintel_nal_shm::{OpenError, ShmNal};
use lintel_types::ProcessId;
use std::sync::atomic::{AtomicU32, Ordering};

const NID: u32 = 0x7f00_0001;

type Open = fn(&str, u32, u32, fn(&str)) -> Result<ShmNal, OpenError>;

/// A network of its own for every call.
fn network<N: Nal>(members: usize, open: Open, wrap: impl Fn(ShmNal) -> N) -> Vec<Member<N>> {
    static NETWORKS: AtomicU32 = AtomicU32::new(0);
    let count = NETWORKS.fetch_add(1, Ordering::Relaxed);
    let job = format!("conformance-{}-{count}", std::process::id());
    (0..members)
        .map(|_| {
            let nal = open(&job, NID, ProcessId::PID_ANY, |words| eprintln!("{words}"))
                .expect("shared memory can be had");
            let name = nal.process();
            Member {
                name,
                nal: wrap(nal),
            }
        })
        .collect()
}

mod with_cross_memory {
    use super::*;
    suite!(|members| network(members, ShmNal::open, |nal| nal));
}

mod without_cross_memory {
    use super::*;
    suite!(|members| network(members, ShmNal::open_without_cross_memory, |nal| nal));
}

mod under_middleware {
    use super::*;
    suite!(|members| network(members, ShmNal::open, |nal| Trace::new(
        Fault::new(nal),
        drop
    )));
}
