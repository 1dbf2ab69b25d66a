//! Direct entries between two NALs of one process.

use lintel_claim::Claim;
use lintel_nal::{Arrival, Nal, Outgoing, Wake};
use lintel_nal_shm::{
    Costs, Counts, DirectEntry, DirectMemory, DirectPlace, EAGER, MemoryName, ShmNal, Wanted,
};
use lintel_presence::{Bell, Segment, shareable};
use lintel_types::{InterfaceNumber, PortalIndex, ProcessId};
use lintel_wire::{Acknowledgements, Words};
use std::sync::Arc;

const LENGTH: u64 = 4096;

struct Pair {
    target: ShmNal,
    bell: Bell,
    initiator: ShmNal,
    entry: DirectEntry,
    memory: u64,
}

impl Pair {
    /// Two connected NALs, and an entry over shareable memory that isn't published yet.
    fn new(name: &str) -> Pair {
        let job = format!("direct-{name}-{}", std::process::id());
        let open = |pid| ShmNal::open(&job, 0x7f00_0001, pid, |_| ()).expect("it is free");
        let segment = Segment::create(&job, 0x7f00_0001, 1).expect("shared memory can be had");
        let segment = Arc::new(segment);
        let target = ShmNal::new(segment.clone(), Costs::Set(EAGER), |_| ());
        let initiator = open(2);
        let start = shareable().allocate(LENGTH).expect("there is memory");
        let memory = start.expose_provenance() as u64;
        let place = shareable().find(memory, LENGTH).expect("it was allocated");
        let mut pair = Pair {
            bell: Bell::new(segment),
            target,
            initiator,
            memory,
            entry: DirectEntry {
                interface: InterfaceNumber::new(false, false),
                portal: PortalIndex::from(3u16),
                takes_puts: true,
                takes_gets: false,
                match_bits: 0,
                ignore_bits: u64::MAX,
                memory: DirectMemory::Shared(MemoryName {
                    id: place.id,
                    is_made: place.is_made,
                    nonce: place.nonce,
                    bytes: place.bytes,
                }),
                offset: place.offset,
                length: LENGTH,
                counts: Counts::Nothing,
                is_announced: false,
            },
        };
        pair.send();
        pair.receive();
        pair
    }

    fn to(&self) -> ProcessId {
        self.target.process()
    }

    fn send(&mut self) {
        self.send_words(&[0; 6]);
    }

    fn send_words(&mut self, words: &Words) {
        let nothing = Outgoing::Copied {
            operand: None,
            pieces: &[],
        };
        let to = self.to();
        self.initiator.send(to, words, nothing).expect("it lives");
    }

    /// Takes all that was sent.
    fn receive(&mut self) {
        while let Some(arrival) = self.target.next() {
            if let Arrival::Message(origin, ..) = arrival {
                self.target.done(origin);
            }
        }
    }

    fn put(&mut self, wanted: Wanted, value: u64) -> Option<()> {
        let to = self.to();
        self.initiator.access(to, &wanted, |target: Claim| {
            target.store_u64(0, value).then_some(())
        })
    }

    fn word(&self, index: u64) -> u64 {
        let start = std::ptr::with_exposed_provenance_mut(self.memory as usize);
        // SAFETY: the memory was allocated, so long, and isn't freed before.
        let claim = unsafe { Claim::new(start, LENGTH) };
        claim.load_u64(index * 8).expect("it is long enough")
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        shareable().free(self.memory);
    }
}

fn wanted(offset: u64, length: u64) -> Wanted {
    Wanted {
        interface: InterfaceNumber::new(false, false),
        portal: PortalIndex::from(3u16),
        match_bits: 0,
        puts: true,
        gets: false,
        offset,
        length,
    }
}

#[test]
fn published_memory_is_accessed_and_withdrawn_memory_is_not() {
    let mut pair = Pair::new("published");
    let slot = pair.target.publish(&pair.entry).expect("there is room");
    assert_eq!(pair.put(wanted(16, 8), 7), Some(()));
    assert_eq!(pair.word(2), 7);
    pair.target.withdraw(slot);
    assert!(pair.target.is_quiet());
    assert_eq!(pair.put(wanted(16, 8), 8), None);
    assert_eq!(pair.word(2), 7);
}

#[test]
fn entries_of_a_peer_are_noticed_when_something_is_sent_to_it() {
    let mut pair = Pair::new("noticed");
    assert!(!pair.initiator.looks_at_direct());
    let slot = pair.target.publish(&pair.entry).expect("there is room");
    assert!(pair.target.looks_at_direct(), "it may send to itself");
    pair.send();
    pair.receive();
    assert!(pair.initiator.looks_at_direct());
    assert_eq!(pair.put(wanted(0, 8), 7), Some(()));
    assert!(pair.initiator.looks_at_direct());
    pair.target.withdraw(slot);
    assert!(!pair.target.looks_at_direct());
    assert_eq!(pair.put(wanted(0, 8), 8), None);
    assert!(!pair.initiator.looks_at_direct());
}

#[test]
fn only_what_the_entry_takes_whole_is_accessed() {
    let mut pair = Pair::new("whole");
    pair.target.publish(&pair.entry).expect("there is room");
    assert_eq!(pair.put(wanted(LENGTH - 8, 8), 7), Some(()));
    let refused = [
        wanted(LENGTH - 7, 8),
        wanted(u64::MAX, 8),
        Wanted {
            gets: true,
            ..wanted(0, 8)
        },
        Wanted {
            portal: PortalIndex::from(4u16),
            ..wanted(0, 8)
        },
        Wanted {
            interface: InterfaceNumber::new(true, false),
            ..wanted(0, 8)
        },
    ];
    for wanted in refused {
        assert_eq!(pair.put(wanted, 9), None, "{wanted:?}");
    }
}

#[test]
fn an_access_overtakes_no_message() {
    let mut pair = Pair::new("order");
    pair.target.publish(&pair.entry).expect("there is room");
    pair.send();
    assert_eq!(pair.put(wanted(0, 8), 7), None, "the message isn't read");
    pair.receive();
    assert_eq!(pair.put(wanted(0, 8), 7), Some(()));
    // More than there is room for: some wait here.
    (0..1000).for_each(|_| pair.send());
    assert_eq!(pair.put(wanted(0, 8), 8), None);
    while pair.initiator.flush() {
        pair.receive();
    }
    pair.receive();
    assert_eq!(pair.put(wanted(0, 8), 8), Some(()));
}

#[test]
fn a_quick_access_needs_a_look_at_the_peer_after_each_message() {
    let mut pair = Pair::new("quick");
    let slot = pair.target.publish(&pair.entry).expect("there is room");
    let to = pair.to();
    let place = pair.initiator.find(to, &wanted(0, 8));
    let place = place.expect("it is published");
    let quick = place.quick().expect("it doesn't count");
    let put = |pair: &mut Pair, value| {
        let target = quick.word(8)?;
        let store = || target.store_u64(0, value).then_some(());
        pair.initiator.access_quickly(&quick, store)
    };
    let look = |pair: &mut Pair| pair.initiator.access_at(&place, (0, 8), |_| Some(()));
    assert_eq!(put(&mut pair, 1), None, "nobody has looked");
    assert_eq!(look(&mut pair), Some(()));
    assert_eq!(put(&mut pair, 2), Some(()));
    pair.send();
    assert_eq!(put(&mut pair, 3), None, "the message isn't read");
    assert_eq!(look(&mut pair), None);
    pair.receive();
    assert_eq!(put(&mut pair, 4), None, "nobody has looked");
    assert_eq!(look(&mut pair), Some(()));
    assert_eq!(put(&mut pair, 5), Some(()));
    assert_eq!(pair.word(1), 5);
    let refused = (0..10_000).find(|_| put(&mut pair, 6).is_none());
    assert!(
        refused.is_some(),
        "now and then it is seen whether it lives"
    );
    assert_eq!(look(&mut pair), Some(()));
    assert_eq!(put(&mut pair, 7), Some(()));
    assert!(quick.word(LENGTH - 7).is_none() && quick.part(0, LENGTH + 1).is_none());
    pair.target.withdraw(slot);
    assert_eq!(put(&mut pair, 8), None, "it is withdrawn");
    pair.target.publish(&pair.entry).expect("there is room");
    let again = pair.initiator.find(to, &wanted(0, 8));
    let again = again.expect("it is published");
    let looked = pair.initiator.access_at(&again, (0, 8), |_| Some(()));
    assert_eq!(looked, Some(()));
    assert_eq!(put(&mut pair, 9), None, "it is another one");
    pair.initiator.take_unread(to);
    assert_eq!(put(&mut pair, 9), None, "the peer is gone");
    assert_eq!(pair.word(1), 7);
}

#[test]
fn an_entry_is_accessed_while_acknowledgements_wait_for_its_owners_next_call() {
    let mut pair = Pair::new("acknowledged");
    pair.target.publish(&pair.entry).expect("there is room");
    let acknowledgements = Acknowledgements::new(InterfaceNumber::default()).to_words();
    pair.bell.arm_but_for_acknowledgements();
    for value in 1..10 {
        pair.send_words(&acknowledgements);
        assert_eq!(pair.put(wanted(8, 8), value), Some(()));
        assert_eq!(pair.word(1), value);
    }
    pair.bell.disarm();
    pair.send_words(&acknowledgements);
    assert_eq!(pair.put(wanted(8, 8), 10), None, "they may be read soon");
}

#[test]
fn a_withdrawal_waits_for_accesses_under_way() {
    let mut pair = Pair::new("wait");
    let slot = pair.target.publish(&pair.entry).expect("there is room");
    pair.put(wanted(0, 8), 1).expect("it is published");
    let (to, target) = (pair.to(), &mut pair.target);
    let accessed = pair.initiator.access(to, &wanted(0, 8), |memory| {
        target.withdraw(slot);
        assert!(!target.is_quiet());
        memory.store_u64(0, 2);
        assert!(!target.is_quiet());
        Some(())
    });
    assert_eq!(accessed, Some(()));
    assert!(pair.target.is_quiet());
    assert_eq!(pair.word(0), 2);
}

#[test]
fn an_entry_that_was_found_is_accessed_as_long_as_it_is_the_same() {
    let mut pair = Pair::new("found");
    let slot = pair.target.publish(&pair.entry).expect("there is room");
    let to = pair.to();
    let found = |pair: &mut Pair| pair.initiator.find(to, &wanted(0, 8));
    let store = |pair: &mut Pair, place: &DirectPlace, range, value| {
        let store = |memory: Claim| memory.store_u64(0, value).then_some(());
        pair.initiator.access_at(place, range, store)
    };
    let place = found(&mut pair).expect("it is published");
    assert_eq!(store(&mut pair, &place, (8, 8), 7), Some(()));
    assert_eq!(pair.word(1), 7);
    for range in [(LENGTH, 8), (LENGTH - 4, 8), (u64::MAX, 8)] {
        assert_eq!(store(&mut pair, &place, range, 8), None);
    }
    pair.target.withdraw(slot);
    assert_eq!(store(&mut pair, &place, (8, 8), 8), None);
    pair.target.publish(&pair.entry).expect("there is room");
    assert_eq!(store(&mut pair, &place, (8, 8), 8), None, "another one");
    let place = found(&mut pair).expect("it is published");
    assert_eq!(store(&mut pair, &place, (8, 8), 9), Some(()));
    pair.initiator.take_unread(to);
    assert_eq!(
        store(&mut pair, &place, (8, 8), 10),
        None,
        "the peer is gone"
    );
    assert_eq!(pair.word(1), 9);
}

#[test]
fn entries_are_accessed_again_after_others_have_come_and_gone() {
    let mut pair = Pair::new("again");
    for round in 1..200 {
        let slot = pair.target.publish(&pair.entry).expect("there is room");
        assert_eq!(pair.put(wanted(8, 8), round), Some(()));
        assert_eq!(pair.word(1), round);
        pair.target.withdraw(slot);
        assert!(pair.target.is_quiet());
    }
}

#[test]
fn counted_operations_are_counted_by_number_or_bytes() {
    for (counts, each) in [(Counts::Operations, 1), (Counts::Bytes, 8)] {
        let mut pair = Pair::new("counted");
        let entry = DirectEntry {
            counts,
            ..pair.entry
        };
        let slot = pair.target.publish(&entry).expect("there is room");
        let before = pair.target.direct_count(slot);
        for done in 1..=3 {
            assert_eq!(pair.put(wanted(0, 8), 7), Some(()));
            assert_eq!(pair.target.direct_count(slot), before + done * each);
        }
        assert_eq!(pair.put(wanted(LENGTH, 8), 7), None);
        assert_eq!(pair.target.direct_count(slot), before + 3 * each);
    }
}
