//! Who is rung for what was sent, and when.

use lintel_nal::{Arrival, Nal, Outgoing, Wake};
use lintel_nal_shm::{Costs, EAGER, ShmNal};
use lintel_presence::{Bell, Segment, Sleeper};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const NID: u32 = 0x7f00_0001;

/// A sender, and a receiver with its bell.
struct Pair {
    from: ShmNal,
    to: ShmNal,
    bell: Bell,
}

impl Pair {
    /// One message has passed, so that they are connected.
    fn new() -> Pair {
        static PAIRS: AtomicU32 = AtomicU32::new(0);
        let count = PAIRS.fetch_add(1, Ordering::Relaxed);
        let job = format!("rings-{}-{count}", std::process::id());
        let open = || {
            let segment = Segment::create(&job, NID, ProcessId::PID_ANY);
            let segment = Arc::new(segment.expect("shared memory can be had"));
            let nal = ShmNal::new(segment.clone(), Costs::Set(EAGER), |line| {
                eprintln!("{line}")
            });
            (nal, Bell::new(segment))
        };
        let ((from, _), (to, bell)) = (open(), open());
        let mut pair = Pair { from, to, bell };
        pair.send();
        pair.receive();
        pair
    }

    fn send(&mut self) {
        let body = Outgoing::Copied {
            operand: None,
            pieces: &[],
        };
        let sent = self.from.send(self.to.process(), &Words::default(), body);
        sent.expect("the receiver is alive");
    }

    fn receive(&mut self) {
        match self.to.next() {
            Some(Arrival::Message(origin, ..)) => self.to.done(origin),
            other => panic!("{other:?}"),
        }
        // A poll that finds nothing reports how far it has read.
        assert!(self.to.next().is_none());
    }

    /// Sends while rings of the receiver are held.
    fn send_unrung(&mut self) {
        let to = self.to.process();
        self.from.hold_rings(to, true);
        self.send();
        self.from.hold_rings(to, false);
    }

    fn rings(&self) -> [u32; 2] {
        [Sleeper::Helper, Sleeper::Caller].map(|sleeper| self.bell.rings(sleeper))
    }
}

#[test]
fn a_ring_that_is_held_comes_later_if_nobody_has_read_the_message() {
    let mut pair = Pair::new();
    pair.bell.arm(Sleeper::Helper);
    let [helper, caller] = pair.rings();
    pair.send_unrung();
    assert_eq!(pair.rings(), [helper, caller]);
    assert!(pair.from.holds_ring() && pair.bell.is_armed());
    pair.from.ring_held();
    assert_eq!(pair.rings(), [helper + 1, caller]);
    assert!(!pair.from.holds_ring() && !pair.bell.is_armed());
    pair.from.ring_held();
    assert_eq!(pair.rings(), [helper + 1, caller], "once is enough");
}

#[test]
fn nobody_is_rung_for_a_message_that_was_read_meanwhile() {
    let mut pair = Pair::new();
    pair.bell.arm(Sleeper::Helper);
    let before = pair.rings();
    pair.send_unrung();
    pair.receive();
    assert!(!pair.from.holds_ring());
    pair.from.ring_held();
    assert_eq!(pair.rings(), before);
    assert!(pair.bell.is_armed());
}

#[test]
fn a_caller_that_sleeps_is_rung_at_once() {
    let mut pair = Pair::new();
    pair.bell.arm(Sleeper::Caller);
    let [helper, caller] = pair.rings();
    pair.send_unrung();
    assert_eq!(pair.rings(), [helper, caller + 1]);
    assert!(!pair.from.holds_ring());
}

#[test]
fn what_is_sent_after_a_held_ring_rings_for_both() {
    let mut pair = Pair::new();
    pair.bell.arm(Sleeper::Helper);
    let [helper, caller] = pair.rings();
    pair.send_unrung();
    pair.send();
    assert_eq!(pair.rings(), [helper + 1, caller]);
    assert!(!pair.from.holds_ring());
}
