//! Two shared-memory NALs as the near and the far transport of one: the suite passes
//! whichever of them carries the messages.

use lintel_nal::Route;
use lintel_nal_conformance::Member;
use lintel_nal_shm::ShmNal;
use lintel_types::ProcessId;
use std::sync::atomic::{AtomicU32, Ordering};

type Routed = Route<ShmNal, ShmNal>;

const NODE: u32 = 0x7f00_0001;

/// Members on the nodes that `node` gives them, near within `keeps` of those.
fn join(members: usize, node: fn(usize) -> u32, keeps: bool) -> Vec<Member<Routed>> {
    static NETWORKS: AtomicU32 = AtomicU32::new(0);
    let network = NETWORKS.fetch_add(1, Ordering::Relaxed);
    let open = |way: &str, nid, pid| {
        let job = format!("route{}{way}{network}", std::process::id());
        ShmNal::open(&job, nid, pid, |_| {}).expect("shared memory can be had")
    };
    let member = |index: usize| {
        let (nid, pid) = (node(index), 2000 + index as u32);
        let (near, far) = (open("near", nid, pid), open("far", nid, pid));
        Member {
            name: ProcessId::new(nid, pid),
            nal: Route::new(near, far, keeps.then_some(nid)),
        }
    };
    (0..members).map(member).collect()
}

mod to_another_node {
    lintel_nal_conformance::suite!(|members| super::join(
        members,
        |index| super::NODE + index as u32,
        true
    ));
}

mod within_a_node {
    lintel_nal_conformance::suite!(|members| super::join(members, |_| super::NODE, true));
}

mod within_a_node_the_far_way {
    lintel_nal_conformance::suite!(|members| super::join(members, |_| super::NODE, false));
}

mod from_both_sides {
    // The first and the second are of one node, the third is alone.
    lintel_nal_conformance::suite!(|members| super::join(
        members,
        |index| super::NODE + (index / 2) as u32,
        true
    ));
}
