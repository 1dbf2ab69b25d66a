//! Direct entries in private memory, between two NALs of one process: the system copies.

use lintel_claim::{Claim, Lease, Region};
use lintel_nal::{Arrival, Nal, Outgoing, Payload};
use lintel_nal_shm::{CopyKey, Costs, Counts, DirectEntry, DirectMemory, ShmNal, Wanted};
use lintel_presence::{Bell, Segment};
use lintel_progress::Sleeper;
use lintel_types::{ALWAYS_COPIED, InterfaceNumber, PortalIndex, ProcessId};
use std::sync::Arc;

const LENGTH: u64 = 64 << 10;
/// From which length on an initiator copies to who is awake and doesn't poll.
const LONG: u64 = 4096;

struct Pair {
    target: ShmNal,
    bell: Bell,
    initiator: ShmNal,
    memory: Region,
    own: Region,
    entry: DirectEntry,
    _lease: Lease,
}

impl Pair {
    /// Two connected NALs, and a published entry of the target's, which sleeps.
    fn new(name: &str) -> Pair {
        let job = format!("private-{name}-{}", std::process::id());
        let segment = |pid| Segment::create(&job, 0x7f00_0001, pid).expect("it is free");
        let open = |segment| ShmNal::new(segment, Costs::Set(LONG), |_| ());
        let (one, two) = (Arc::new(segment(1)), Arc::new(segment(2)));
        let (lease, memory) = (Lease::new(), Region::new(LENGTH));
        let key = lease.key().expect("the system has a page");
        let pair = Pair {
            bell: Bell::new(one.clone()),
            target: open(one),
            initiator: open(two),
            own: Region::new(LENGTH),
            entry: DirectEntry {
                interface: InterfaceNumber::new(false, false),
                portal: PortalIndex::from(3u16),
                takes_puts: true,
                takes_gets: true,
                match_bits: 0,
                ignore_bits: u64::MAX,
                memory: DirectMemory::Private(CopyKey {
                    address: key.address,
                    nonce: key.nonce,
                }),
                offset: memory.claim().address(),
                length: LENGTH,
                counts: Counts::Operations,
                is_announced: false,
            },
            memory,
            _lease: lease,
        };
        pair.bell.arm(Sleeper::Helper);
        pair
    }

    /// As [`new`](Self::new), but that peers announce what they do with the entry.
    fn announcing(name: &str) -> Pair {
        let mut pair = Pair::new(name);
        pair.entry.counts = Counts::Nothing;
        pair.entry.is_announced = true;
        pair
    }

    fn publish(&mut self) -> usize {
        let slot = self.target.publish(&self.entry).expect("there is room");
        self.send();
        self.receive();
        slot
    }

    fn to(&self) -> ProcessId {
        self.target.process()
    }

    /// A message, by which the initiator notices what was published; the target stays asleep.
    fn send(&mut self) {
        let nothing = Outgoing::Copied {
            operand: None,
            pieces: &[],
        };
        let to = self.to();
        self.initiator.send(to, &[0; 6], nothing).expect("it lives");
        self.bell.arm(Sleeper::Helper);
        // Looks at the table of a peer once it has noticed that there is a new one.
        self.initiator.find(to, &wanted(true, 0, 8));
    }

    /// Takes all that was sent; how many messages there were.
    fn receive(&mut self) -> usize {
        let mut received = 0;
        while let Some(arrival) = self.target.next() {
            if let Arrival::Message(origin, ..) = arrival {
                self.target.done(origin);
                received += 1;
            }
        }
        received
    }

    /// Takes all that was announced, by the number that it was announced with.
    fn announced(&mut self) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Some(Arrival::Message(origin, words, payload)) = self.target.next() {
            assert!(matches!(payload, Payload::Placed), "{payload:?}");
            // Of the first word the ring keeps the high half.
            let kept = [
                words[0] >> 32 << 32,
                words[1],
                words[2],
                words[3],
                words[4],
                words[5],
            ];
            assert_eq!(kept, self::words(words[1]));
            numbers.push(words[1]);
            self.target.done(origin);
        }
        numbers
    }

    fn put(&mut self, value: u64, offset: u64, length: u64) -> Option<()> {
        let own = self.own.claim().slice(0, length);
        assert!(own.store_u64(0, value));
        let to = self.to();
        let wanted = wanted(true, offset, length);
        self.initiator
            .copy_private(to, &wanted, &[own], &words(value))
    }

    fn get(&mut self, offset: u64) -> Option<u64> {
        let (to, own) = (self.to(), self.own.claim().slice(0, 8));
        let got =
            self.initiator
                .copy_private(to, &wanted(false, offset, 8), &[own], &words(offset));
        got.and(own.load_u64(0))
    }

    fn word(&self, index: u64) -> u64 {
        let memory: Claim = self.memory.claim();
        memory.load_u64(index * 8).expect("it is long enough")
    }
}

/// The words of an announcement with that number.
fn words(number: u64) -> [u64; 6] {
    [7 << 40, number, 2, 3, 4, 5]
}

fn wanted(puts: bool, offset: u64, length: u64) -> Wanted {
    Wanted {
        interface: InterfaceNumber::new(false, false),
        portal: PortalIndex::from(3u16),
        match_bits: 0,
        puts,
        gets: !puts,
        offset,
        length,
    }
}

#[test]
fn private_memory_of_who_sleeps_is_copied_and_counted_until_it_is_withdrawn() {
    let mut pair = Pair::new("sleeps");
    let slot = pair.publish();
    assert!(pair.initiator.knows_private() && !pair.initiator.looks_at_direct());
    assert_eq!(pair.put(7, 16, 8), Some(()));
    assert_eq!((pair.word(2), pair.get(16)), (7, Some(7)));
    assert_eq!(pair.target.direct_count(slot), 2);
    for (offset, length) in [(LENGTH, 8), (LENGTH - 4, 8), (u64::MAX, 8), (0, 0)] {
        assert_eq!(
            pair.put(8, offset, length.max(8)).filter(|()| length > 0),
            None
        );
    }
    pair.target.withdraw(slot);
    assert!(pair.target.is_quiet());
    assert_eq!((pair.put(8, 16, 8), pair.word(2)), (None, 7));
}

#[test]
fn short_bodies_are_sent_to_who_is_awake() {
    let mut pair = Pair::new("awake");
    pair.publish();
    pair.bell.disarm();
    assert_eq!((pair.put(7, 0, 8), pair.get(0)), (None, None));
    pair.bell.arm(Sleeper::Caller);
    assert_eq!(pair.put(7, 0, 8), Some(()));
}

#[test]
fn nobody_asks_for_a_body_that_is_always_copied_whether_who_was_long_awake_is_away() {
    let mut pair = Pair::new("long-awake");
    pair.publish();
    pair.bell.disarm();
    let to = pair.to();
    let place = pair.initiator.send_place(to);
    let place = place.expect("something was sent to it");
    (0..100).for_each(|_| assert!(!pair.initiator.is_away(to, 8)));
    for (length, is_sent) in [(8, true), (ALWAYS_COPIED, true), (LONG, false)] {
        let asked = pair.initiator.may_be_away(length);
        assert_eq!(asked, !is_sent, "{length} bytes");
        let nothing = Claim::empty();
        let sent = pair
            .initiator
            .send_quickly(&place, &words(0), nothing, length);
        assert_eq!(sent.is_some(), is_sent, "{length} bytes");
    }
}

#[test]
fn long_bodies_are_copied_to_who_neither_sleeps_nor_polls() {
    let mut pair = Pair::new("computes");
    pair.publish();
    pair.bell.disarm();
    // The probe isn't read: the next ones need no other.
    for value in 1..=3 {
        assert_eq!(pair.put(value, 8, LONG), Some(()));
        assert_eq!(pair.word(1), value);
    }
    assert_eq!(pair.receive(), 0, "a probe is no message");
    pair.bell.show_wait(true);
    assert_eq!(pair.put(4, 8, LONG), None, "it waits for a message");
    pair.bell.show_wait(false);
    assert_eq!(pair.put(5, 8, LONG), Some(()));
}

#[test]
fn who_reads_a_probe_at_once_is_sent_a_message() {
    let mut pair = Pair::new("probe");
    pair.publish();
    pair.bell.disarm();
    let (to, wanted) = (pair.to(), wanted(true, 0, LONG));
    let own = [pair.own.claim().slice(0, LONG)];
    let (target, initiator) = (&mut pair.target, &mut pair.initiator);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let polls = scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                assert!(target.next().is_none());
            }
        });
        // A processor that is busy otherwise may keep the thread from reading for a while.
        while initiator
            .copy_private(to, &wanted, &own, &words(0))
            .is_some()
        {}
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        polls.join().expect("nothing arrives");
    });
}

#[test]
fn a_copy_overtakes_no_message() {
    let mut pair = Pair::new("order");
    pair.publish();
    pair.send();
    assert_eq!(pair.put(7, 0, 8), None, "the message isn't read");
    assert_eq!(pair.receive(), 1);
    assert_eq!(pair.put(7, 0, 8), Some(()));
    pair.bell.disarm();
    assert_eq!(pair.put(8, 0, LONG), Some(()));
    pair.send();
    assert_eq!(pair.put(9, 0, LONG), None, "it is behind the probe");
    assert_eq!((pair.receive(), pair.word(0)), (1, 8));
}

#[test]
fn memory_that_is_not_there_or_of_another_process_is_not_copied() {
    let mut pair = Pair::new("wrong");
    pair.entry.offset = 4096;
    let slot = pair.publish();
    assert_eq!((pair.put(7, 0, 8), pair.get(0)), (None, None));
    assert_eq!(pair.target.direct_count(slot), 0);
    pair.target.withdraw(slot);
    pair.entry.offset = pair.memory.claim().address();
    let DirectMemory::Private(key) = &mut pair.entry.memory else {
        panic!("it is private");
    };
    key.address = 4096;
    pair.publish();
    assert_eq!((pair.put(7, 0, 8), pair.get(0)), (None, None));
}

#[test]
fn copies_are_announced_to_who_sleeps_without_waking_it() {
    let mut pair = Pair::announcing("announced");
    pair.publish();
    pair.bell.arm(Sleeper::Helper);
    let rings = pair.bell.rings(Sleeper::Helper);
    assert_eq!((pair.put(7, 16, 8), pair.get(16)), (Some(()), Some(7)));
    assert_eq!(pair.put(8, 24, LONG), Some(()));
    assert_eq!(pair.bell.rings(Sleeper::Helper), rings);
    assert_eq!((pair.word(2), pair.word(3)), (7, 8));
    assert_eq!(pair.announced(), [7, 16, 8]);
    // Whatever lies beyond the entry is for the target to say.
    assert_eq!(pair.put(9, LENGTH - 4, 8), None);
    assert_eq!(pair.announced(), []);
}

#[test]
fn a_caller_that_sleeps_is_woken_by_an_announcement() {
    let mut pair = Pair::announcing("rings");
    pair.publish();
    pair.bell.arm(Sleeper::Caller);
    let rings = pair.bell.rings(Sleeper::Caller);
    assert_eq!(pair.put(7, 16, 8), Some(()));
    assert_ne!(pair.bell.rings(Sleeper::Caller), rings);
    assert_eq!(pair.announced(), [7]);
}

#[test]
fn who_leaves_announcements_unread_is_sent_a_message_in_the_end() {
    let mut pair = Pair::announcing("many");
    pair.publish();
    let all: Vec<u64> = (0..1000)
        .take_while(|i| pair.put(*i, 8, 8).is_some())
        .collect();
    assert!((8..1000).contains(&all.len()), "{}", all.len());
    assert_eq!(pair.word(1), all.len() as u64 - 1, "nothing is copied then");
    assert_eq!(pair.announced(), all);
    assert_eq!(pair.put(7, 8, 8), Some(()), "it has read them");
    pair.send();
    assert_eq!(pair.put(8, 8, 8), None, "a message is ahead");
    assert_eq!((pair.receive(), pair.put(9, 8, 8)), (2, Some(())));
    assert_eq!(pair.announced(), [9]);
}

#[test]
fn what_was_announced_has_come_once_nobody_accesses_an_entry_that_was_withdrawn() {
    let mut pair = Pair::announcing("withdrawn");
    let slot = pair.publish();
    let (to, wanted) = (pair.to(), wanted(true, 0, LONG));
    let own = [pair.own.claim().slice(0, LONG)];
    let (target, initiator) = (&mut pair.target, &mut pair.initiator);
    let mut announced = 0;
    std::thread::scope(|scope| {
        let puts = scope.spawn(|| {
            let mut done = 0u64;
            while initiator
                .copy_private(to, &wanted, &own, &words(done))
                .is_some()
            {
                done += 1;
            }
            done
        });
        let mut take = |target: &mut ShmNal| {
            let mut taken = 0;
            while let Some(arrival) = target.next() {
                if let Arrival::Message(origin, words, _) = arrival {
                    assert_eq!(words[1], announced + taken);
                    target.done(origin);
                    taken += 1;
                }
            }
            announced += taken;
        };
        take(target);
        target.withdraw(slot);
        while !target.is_quiet() {}
        take(target);
        let done = puts.join().expect("it ends");
        assert_eq!(announced, done);
    });
}

#[test]
fn who_never_had_a_direct_entry_is_announced_nothing() {
    let mut pair = Pair::announcing("forged");
    let mut words = words(7);
    words[0] |= 6 << 36;
    let nothing = Outgoing::Copied {
        operand: None,
        pieces: &[],
    };
    let to = pair.to();
    pair.initiator.send(to, &words, nothing).expect("it lives");
    assert_eq!(pair.receive(), 0);
    assert_eq!(pair.target.diagnostics().corrupt_lanes, 1);
}
