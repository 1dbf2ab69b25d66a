//! Processes of two virtual nodes, on a good network and on bad ones.

use lintel_nal_conformance::{Member, suite};
use lintel_nal_udp::{Config, Model, UdpNal};
use std::time::Duration;

/// Members take turns between two nodes.
fn network(members: usize, model: Model, faults: &str) -> Vec<Member<UdpNal>> {
    let open = |number: usize| {
        let faults = (!faults.is_empty()).then(|| {
            let faults = format!("{faults},seed={}", number + 1);
            faults.parse().expect("the faults are sound")
        });
        let nal = UdpNal::open(Config {
            nid: 0x7f00_0001 + number as u32 % 2,
            port: None,
            key: [7; 32],
            uid: 1000,
            model,
            peer_timeout: Duration::from_secs(3),
            faults,
            log: |words| eprintln!("{words}"),
            job: "conformance",
        })
        .expect("there is a loopback interface");
        let name = nal.process();
        Member { name, nal }
    };
    (0..members).map(open).collect()
}

mod rc {
    use super::*;
    suite!(|members| network(members, Model::Rc, ""));
}

mod xrc {
    use super::*;
    suite!(|members| network(members, Model::Xrc, ""));
}
