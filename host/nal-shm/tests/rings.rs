//! Who is rung for what was sent, and when.

use lintel_nal::{Arrival, Nal, Outgoing, Wake};
use lintel_nal_shm::{Costs, EAGER, ShmNal};
use lintel_presence::{Bell, Segment, Sleeper};
use lintel_types::{InterfaceNumber, ProcessId};
use lintel_wire::{Acknowledgements, Words};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const NID: u32 = 0x7f00_0001;

/// A sender, and a receiver with its bell; the receiver can ring the sender.
struct Pair {
    from: ShmNal,
    to: ShmNal,
    bell: Bell,
    senders_bell: Bell,
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
        let ((from, senders_bell), (to, bell)) = (open(), open());
        let mut pair = Pair {
            from,
            to,
            bell,
            senders_bell,
        };
        pair.send();
        pair.receive();
        pair
    }

    fn send(&mut self) {
        send(&mut self.from, &self.to);
    }

    fn receive(&mut self) {
        receive(&mut self.to);
        // The end of a poll reports how far it has read.
        self.to.flush();
    }

    /// Sends an acknowledgement.
    fn acknowledge(&mut self) {
        let words = Acknowledgements::new(InterfaceNumber::default()).to_words();
        send_words(&mut self.from, &self.to, &words);
    }

    /// Sends while rings of the receiver are held.
    fn send_unrung(&mut self) {
        let to = self.to.process();
        self.from.hold_rings(to, true);
        self.send();
        self.from.hold_rings(to, false);
    }

    /// How long what was sent just now may wait to be read.
    fn ring_due(&mut self) -> Duration {
        self.from.ring_due().expect("a ring is held")
    }

    fn rings(&self) -> [u32; 2] {
        [Sleeper::Helper, Sleeper::Caller].map(|sleeper| self.bell.rings(sleeper))
    }
}

fn send(from: &mut ShmNal, to: &ShmNal) {
    send_words(from, to, &Words::default());
}

fn send_words(from: &mut ShmNal, to: &ShmNal, words: &Words) {
    let body = Outgoing::Copied {
        operand: None,
        pieces: &[],
    };
    let sent = from.send(to.process(), words, body);
    sent.expect("the receiver is alive");
}

fn receive(to: &mut ShmNal) {
    match to.next() {
        Some(Arrival::Message(origin, ..)) => to.done(origin),
        other => panic!("{other:?}"),
    }
}

/// This thread stays on the processor that it runs on.
fn stay_here() {
    let mut here = CpuSet::new();
    here.set(sched_getcpu());
    sched_setaffinity(None, &here).expect("a processor that may be used");
}

#[test]
fn a_ring_that_is_held_comes_later_if_nobody_has_read_the_message() {
    let mut pair = Pair::new();
    pair.bell.arm(Sleeper::Helper);
    let [helper, caller] = pair.rings();
    pair.send_unrung();
    assert_eq!(pair.rings(), [helper, caller]);
    assert!(pair.from.ring_due().is_some() && pair.bell.is_armed());
    pair.from.ring_held();
    assert_eq!(pair.rings(), [helper + 1, caller]);
    assert!(pair.from.ring_due().is_none() && !pair.bell.is_armed());
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
    assert!(pair.from.ring_due().is_none());
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
    assert!(pair.from.ring_due().is_none());
}

#[test]
fn what_is_sent_after_a_held_ring_rings_for_both() {
    let mut pair = Pair::new();
    pair.bell.arm(Sleeper::Helper);
    let [helper, caller] = pair.rings();
    pair.send_unrung();
    pair.send();
    assert_eq!(pair.rings(), [helper + 1, caller]);
    assert!(pair.from.ring_due().is_none());
}

#[test]
fn acknowledgements_wait_for_the_next_call_or_message_if_the_receiver_lets_them() {
    let mut pair = Pair::new();
    pair.bell.arm_but_for_acknowledgements();
    let [helper, caller] = pair.rings();
    (0..3).for_each(|_| pair.acknowledge());
    assert_eq!(pair.rings(), [helper, caller]);
    pair.from.wake_peers();
    assert_eq!(pair.rings(), [helper, caller], "nor is anybody woken");
    pair.send();
    assert_eq!(pair.rings(), [helper + 1, caller]);
    (0..4).for_each(|_| pair.receive());
}

#[test]
fn many_acknowledgements_that_nobody_reads_ring() {
    let mut pair = Pair::new();
    pair.bell.arm_but_for_acknowledgements();
    let [helper, caller] = pair.rings();
    let sent = (1..=1000).find(|_| {
        pair.acknowledge();
        pair.rings() != [helper, caller]
    });
    let sent = sent.expect("at last one rings");
    assert!(sent > 10, "{sent}");
    (0..sent).for_each(|_| pair.receive());
    pair.bell.arm_but_for_acknowledgements();
    for _ in 0..10 * sent {
        pair.acknowledge();
        pair.receive();
    }
    assert_eq!(pair.rings(), [helper + 1, caller], "all were read");
}

#[test]
fn an_acknowledgement_rings_a_caller_that_sleeps_and_a_receiver_that_wants_it() {
    let mut pair = Pair::new();
    pair.bell.arm_but_for_acknowledgements();
    let [helper, caller] = pair.rings();
    pair.acknowledge();
    pair.bell.arm(Sleeper::Caller);
    pair.acknowledge();
    assert_eq!(pair.rings(), [helper, caller + 1]);
    pair.bell.arm(Sleeper::Helper);
    pair.acknowledge();
    assert_eq!(pair.rings(), [helper + 1, caller + 1]);
}

#[test]
fn a_caller_that_polls_has_more_time_to_read_its_answer() {
    let mut pair = Pair::new();
    pair.bell.arm(Sleeper::Helper);
    pair.send_unrung();
    let usual = pair.ring_due();
    pair.bell.show_wait(true);
    assert!(pair.ring_due() > 10 * usual);
    pair.bell.show_wait(false);
    assert_eq!(pair.ring_due(), usual);
}

#[test]
fn so_has_one_that_goes_on_once_the_thread_sleeps_that_it_has_woken() {
    stay_here();
    let mut pair = Pair::new();
    pair.bell.arm(Sleeper::Helper);
    pair.send_unrung();
    let usual = pair.ring_due();
    // Connects; the next one rings.
    for _ in 0..2 {
        pair.senders_bell.arm(Sleeper::Helper);
        send(&mut pair.to, &pair.from);
        receive(&mut pair.from);
    }
    assert!(pair.ring_due() > 10 * usual);
    assert_eq!(pair.ring_due(), usual, "this once");
}
