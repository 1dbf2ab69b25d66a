//! A process joined to itself.

use lintel_nal::Loopback;
use lintel_nal_conformance::{Member, suite};
use lintel_types::ProcessId;

fn join(_members: usize) -> Vec<Member<Loopback>> {
    let name = ProcessId::new(1, 1);
    let nal = Loopback::new(name, 0);
    vec![Member { name, nal }]
}

suite!(join);
