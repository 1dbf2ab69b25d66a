//! The ring between two threads, and against a sender that writes nonsense.

use lintel_claim::{Claim, Region};
use lintel_ring::{
    Control, Corrupt, Full, MAX_PAYLOAD, RING_BYTES, Receiver, SLOTS, Sender, WORDS,
};
use std::sync::atomic::{AtomicU64, Ordering};

struct Rig {
    memory: Region,
    source: Region,
    // Kept last: the ends point into it.
    control: Box<Control>,
}

impl Rig {
    fn new() -> (Rig, Sender, Receiver) {
        let rig = Rig {
            memory: Region::new(RING_BYTES as u64),
            source: Region::new(MAX_PAYLOAD as u64),
            control: Box::default(),
        };
        let ring = rig.memory.claim().address() as *mut u8;
        // SAFETY: a region is page-aligned and outlives both ends in every test.
        let sender = unsafe { Sender::new(ring, &*rig.control) };
        // SAFETY: as above.
        let receiver = unsafe { Receiver::new(ring, &*rig.control) };
        (rig, sender, receiver)
    }

    fn payload(&self, length: usize, seed: u64) -> Claim {
        let bytes: Vec<u8> = (0..length).map(|at| (at as u64 * 7 + seed) as u8).collect();
        self.source.write(0, &bytes);
        self.source.claim().slice(0, length as u64)
    }
}

fn words(value: u64) -> [u64; WORDS] {
    [1 << 32, value, value + 1, value + 2, value + 3, value + 4]
}

fn bytes(claim: Claim) -> Vec<u8> {
    let mut bytes = vec![0; claim.len() as usize];
    claim.read(&mut bytes);
    bytes
}

#[test]
fn records_of_every_length_arrive_whole_and_in_order_over_many_laps() {
    let (rig, mut sender, mut receiver) = Rig::new();
    for round in 0..3000u64 {
        let length = (round as usize * 37) % (MAX_PAYLOAD + 1);
        let payload = rig.payload(length, round);
        sender
            .push(&words(round), &[payload])
            .expect("the receiver keeps up");
        let record = receiver
            .peek()
            .expect("no nonsense")
            .expect("it has arrived");
        assert_eq!(record.words[1..], words(round)[1..], "round {round}");
        assert_eq!(
            bytes(record.payload),
            bytes(payload),
            "round {round} of {length} bytes"
        );
        receiver.advance();
        receiver.publish_head();
        assert!(receiver.peek().unwrap().is_none(), "round {round}");
    }
    assert!(sender.is_drained());
}

#[test]
fn a_full_ring_refuses_and_forgets_nothing() {
    let (rig, mut sender, mut receiver) = Rig::new();
    let mut sent = 0u64;
    while sender.push(&words(sent), &[rig.payload(100, sent)]) != Err(Full) {
        sent += 1;
    }
    for expected in 0..sent {
        let record = receiver.peek().unwrap().expect("what was accepted arrives");
        assert_eq!(record.words[1], expected);
        receiver.advance();
    }
    receiver.publish_head();
    assert!(receiver.peek().unwrap().is_none());
    assert_eq!(sender.push(&words(sent), &[]), Ok(()));
}

#[test]
fn the_slots_of_an_earlier_lap_are_not_taken_for_records_even_when_laps_are_counted_anew() {
    let (_rig, mut sender, mut receiver) = Rig::new();
    for round in 0..(u64::from(u16::MAX) + 3) * SLOTS as u64 {
        sender.push(&words(round), &[]).expect("there is room");
        let record = receiver.peek().expect("no nonsense").expect("it arrived");
        assert_eq!(record.words[1], round);
        receiver.advance();
        assert!(receiver.peek().unwrap().is_none(), "round {round}");
    }
}

#[test]
fn a_receiver_that_publishes_nonsense_frees_no_slot() {
    let (rig, mut sender, _receiver) = Rig::new();
    while sender.push(&words(0), &[rig.payload(100, 0)]) != Err(Full) {}
    for nonsense in [u64::MAX, 1 << 40, 4000, 4000 << 32 | 1] {
        // SAFETY: the control is an atomic, alive as long as the rig.
        let head = unsafe { AtomicU64::from_ptr((&raw const *rig.control).cast_mut().cast()) };
        head.store(nonsense, Ordering::Relaxed);
        assert_eq!(sender.push(&words(0), &[]), Err(Full), "{nonsense:#x}");
    }
}

#[test]
fn two_threads_exchange_a_million_records() {
    const COUNT: u64 = 1_000_000;
    let (rig, mut sender, mut receiver) = Rig::new();
    let payload = rig.payload(40, 1);
    let expected = bytes(payload);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for round in 0..COUNT {
                let payload = payload.slice(0, round % 41);
                while sender.push(&words(round), &[payload]).is_err() {
                    std::thread::yield_now();
                }
            }
        });
        let mut round = 0;
        while round < COUNT {
            match receiver.peek().expect("no nonsense") {
                None => {
                    receiver.publish_head();
                    std::thread::yield_now();
                }
                Some(record) => {
                    assert_eq!(record.words[1..], words(round)[1..]);
                    assert_eq!(bytes(record.payload), expected[..(round % 41) as usize]);
                    receiver.advance();
                    round += 1;
                }
            }
        }
    });
}

#[test]
fn nonsense_in_the_ring_is_noticed_and_stays_noticed() {
    for garbage in [1u64 << 40 | 2, u64::MAX, 0xffff << 16 | 1, 7] {
        let (rig, _sender, mut receiver) = Rig::new();
        rig.memory.write(0, &garbage.to_ne_bytes());
        assert_eq!(receiver.peek().map(|_| ()), Err(Corrupt), "{garbage:#x}");
        assert_eq!(
            receiver.peek().map(|_| ()),
            Err(Corrupt),
            "{garbage:#x} again"
        );
    }
}
