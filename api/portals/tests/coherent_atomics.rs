//! Atomics of a program that wants its processor's atomics to meet them, and of one that
//! doesn't. Both use the process's one interface, in turn.

use portals4::*;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
/// More than any short way takes, and no whole number of lines.
const ELEMENTS: i64 = 101;

/// The features given, and the sums after two atomics.
fn sums(features: u32) -> (u32, Vec<i64>) {
    let portals = Portals::init().expect("the library starts");
    let limits = Limits {
        features,
        ..Limits::DEFAULT
    };
    let options = Options {
        limits: Some(limits),
        ..Options::default()
    };
    let interface = Interface::open(&portals, options).expect("the interface opens");
    let counter = Counter::alloc(&interface).expect("there is room for a counter");
    let portal = PortalTableEntry::alloc(&interface, PortalSpec::default()).expect("it is free");
    let bytes = 8 * ELEMENTS as u64;
    let (words, sums) = (Region::new(bytes), Region::new(bytes));
    for element in 0..ELEMENTS {
        words.write(8 * element as u64, &(element - 7).to_ne_bytes());
        sums.write(8 * element as u64, &(element * 1000).to_ne_bytes());
    }
    let entry = EntrySpec {
        memory: Memory::from(&sums),
        counter: Some(counter.clone()),
        options: options::ME_OP_PUT | options::ME_EVENT_CT_COMM,
        ..EntrySpec::default()
    };
    let _entry = Entry::append(&portal, entry).expect("it fits");
    let source = DescriptorSpec {
        memory: Memory::from(&words),
        ..DescriptorSpec::default()
    };
    let source = MemoryDescriptor::bind(&interface, source).expect("it fits");
    let me = interface.id().expect("the interface is open");
    for _ in 0..2 {
        let atomic = Atomic {
            operation: Operation::Sum,
            datatype: Datatype::Int64,
            put: Put {
                length: bytes,
                target: Target::new(me, portal.index()),
                ..Put::default()
            },
        };
        source.atomic(atomic).expect("the atomic starts");
    }
    let done = counter.poll(2, SOON).expect("nobody aborts");
    assert_eq!(done.map(|count| count.success), Some(2));
    let sum = |element: i64| {
        let mut word = [0; 8];
        sums.read(8 * element as u64, &mut word);
        i64::from_ne_bytes(word)
    };
    let given = interface.limits().features;
    (given, (0..ELEMENTS).map(sum).collect())
}

#[test]
fn long_atomics_give_the_same_with_coherence_and_without() {
    let expected: Vec<i64> = (0..ELEMENTS).map(|n| n * 1000 + 2 * (n - 7)).collect();
    for asked in [0, options::FEATURE_COHERENT_ATOMICS] {
        let (given, sums) = sums(asked);
        // A node's agent has no coherence to give.
        assert_eq!(given & !asked, 0);
        assert_eq!(sums, expected);
    }
}
