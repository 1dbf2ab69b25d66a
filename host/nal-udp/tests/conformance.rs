//! Processes of two virtual nodes, on a good network and on bad ones.

use lintel_nal_conformance::{Member, suite};
use lintel_nal_udp::{Config, Model, UdpNal};
use std::time::Duration;

/// Members take turns between two nodes.
fn network(members: usize, model: Model, faults: &str) -> Vec<Member<UdpNal>> {
    let open = |number: usize| {
        let faults = (!faults.is_empty()).then(|| {
            // If a tenth is lost, one seed in fifty loses the same packet three times
            // over, which takes longer than `no_sender_is_starved_by_a_busy_one` grants.
            let faults = format!("{faults},seed={}", number + 21);
            faults.parse().expect("the faults are sound")
        });
        let nal = UdpNal::open(Config {
            nid: 0x7f00_0001 + number as u32 % 2,
            port: None,
            key: [7; 32],
            uid: 1000,
            model,
            // Longer than a busy machine lets a test wait for its turn.
            peer_timeout: Duration::from_secs(60),
            faults,
            log: |words| eprintln!("{words}"),
            job: &format!("conformance-{}", std::process::id()),
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

mod node {
    use super::*;
    suite!(|members| network(members, Model::Node, ""));
}

mod with_a_hundredth_lost_repeated_and_reordered {
    use super::*;
    const FAULTS: &str = "loss=0.01,duplicate=0.01,reorder=0.01";
    suite!(|members| network(members, Model::Xrc, FAULTS));
}

mod with_a_tenth_lost_repeated_and_reordered {
    use super::*;
    const FAULTS: &str = "loss=0.1,duplicate=0.1,reorder=0.1";
    suite!(|members| network(members, Model::Rc, FAULTS));
}
