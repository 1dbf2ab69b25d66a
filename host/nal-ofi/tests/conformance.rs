//! The suite that every NAL passes, over providers that any machine has.

mod common;

use common::{NID, config, open, reason_to_skip, stay_open};
use lintel_nal::{Loopback, Nal, Trace};
use lintel_nal_conformance::{Member, suite};
use lintel_types::ProcessId;
use std::sync::atomic::{AtomicU32, Ordering};

/// A network of its own for every call; without the provider one of a single process
/// that needs none, so that nothing is tested, which is said aloud.
fn network(provider: &str, members: usize) -> Vec<Member<Box<dyn Nal>>> {
    static NETWORKS: AtomicU32 = AtomicU32::new(0);
    if reason_to_skip(provider).is_some() {
        let name = ProcessId::new(NID, 1);
        let nal = Box::new(Loopback::new(name, 0));
        return vec![Member { name, nal }];
    }
    let count = NETWORKS.fetch_add(1, Ordering::Relaxed);
    let job = format!("conformance-{}-{count}", std::process::id());
    let open = |_| {
        let nal = open(config(provider, &job));
        let name = nal.process();
        let segment = (provider == "shm").then(|| stay_open(&nal));
        // The closure keeps the segment as long as the NAL.
        let nal = Trace::new(nal, move |_| {
            let _ = &segment;
        });
        Member {
            name,
            nal: Box::new(nal) as Box<dyn Nal>,
        }
    };
    (0..members).map(open).collect()
}

mod tcp {
    use super::*;
    suite!(|members| network("tcp;ofi_rxm", members));
}

mod udp {
    use super::*;
    suite!(|members| network("udp;ofi_rxd", members));
}

mod shm {
    use super::*;
    suite!(|members| network("shm", members));
}
