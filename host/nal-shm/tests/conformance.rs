//! Processes of one machine: with cross-memory copies, without, and under
//! middleware.

use lintel_claim::{Lease, Region};
use lintel_nal::{Arrival, Nal, Outgoing, Payload, Trace, Wake};
use lintel_nal_conformance::{Fault, Member, suite};
use lintel_nal_shm::ShmNal;
use lintel_presence::OpenError;
use lintel_types::ProcessId;
use lintel_wire::Words;
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

#[test]
fn the_first_long_message_is_lent_once_the_peer_has_reported_what_it_can_reach() {
    let mut members = network(2, ShmNal::open, |nal| nal);
    let (mut to, mut from) = (members.remove(0), members.remove(0));
    let (lease, memory) = (Lease::new(), Region::new(1 << 20));
    let pieces = [memory.claim()];
    let body = Outgoing::LentToRead(lease.lend(&pieces));
    let words = Words::default();
    from.nal.send(to.name, &words, body).expect("it is there");
    assert_eq!(from.nal.cross_memory(to.name), Some(false), "not known yet");
    // The receiver looks at the lane, and then the sender knows.
    assert!(to.nal.next().is_none());
    let reaches = from.nal.cross_memory(to.name) == Some(true);
    from.nal.flush();
    match to.nal.next() {
        Some(Arrival::Message(_, _, Payload::Lent(loan))) if reaches => {
            assert_eq!(loan.spans.as_slice().len(), 1);
            assert_eq!(loan.spans.length(), 1 << 20);
        }
        // Where the system forbids cross-memory copies.
        Some(Arrival::Message(_, _, Payload::Streamed(1_048_576))) if !reaches => {}
        other => panic!("expected a message, not {other:?}"),
    }
}
