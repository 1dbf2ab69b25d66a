//! What the safe interface adds: lifetimes, and refusals that say what is wrong.
//! The rules of Portals are tested where they live.

use portals4::*;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

struct Rig {
    interface: Interface,
    queue: EventQueue,
    portal: PortalTableEntry,
}

fn rig() -> Rig {
    let portals = Portals::init().expect("the library starts");
    let interface = Interface::open(&portals, Options::default()).expect("the interface opens");
    let queue = EventQueue::alloc(&interface, 256).expect("there is room for a queue");
    let spec = PortalSpec {
        queue: Some(queue.clone()),
        ..PortalSpec::default()
    };
    let portal = PortalTableEntry::alloc(&interface, spec).expect("an index is free");
    Rig {
        interface,
        queue,
        portal,
    }
}

impl Rig {
    fn target(&self) -> Target {
        let me = self.interface.id().expect("the interface is open");
        Target::new(me, self.portal.index())
    }

    fn inbox(&self, more: u32) -> EntrySpec {
        EntrySpec {
            memory: Memory::from(&Region::new(64)),
            options: options::ME_OP_PUT | options::ME_EVENT_LINK_DISABLE | more,
            ..EntrySpec::default()
        }
    }

    fn source(&self) -> MemoryDescriptor {
        let spec = DescriptorSpec {
            memory: Memory::from(&Region::new(64)),
            ..DescriptorSpec::default()
        };
        MemoryDescriptor::bind(&self.interface, spec).expect("there is room for a descriptor")
    }

    fn put(&self, source: &MemoryDescriptor) {
        let put = Put {
            length: 8,
            target: self.target(),
            ..Put::default()
        };
        source.put(put).expect("the put starts");
    }

    fn event(&self) -> Taken {
        let taken = self.queue.poll(SOON).expect("nobody aborts");
        taken.expect("an event comes soon")
    }
}

#[test]
fn an_entry_that_use_has_unlinked_says_so_and_drops_quietly() {
    let rig = rig();
    let once = Entry::append(&rig.portal, rig.inbox(options::ME_USE_ONCE)).expect("it fits");
    rig.put(&rig.source());
    assert_eq!(rig.event().kind, EventKind::Put);
    assert_eq!(rig.event().kind, EventKind::AutoUnlink);
    let (_entry, why) = once.try_unlink().expect_err("use has unlinked it");
    assert_eq!(why, Error::ArgInvalid);
}

#[test]
fn an_entry_that_is_in_use_is_handed_back() {
    let rig = rig();
    let spec = EntrySpec {
        list: List::Overflow,
        ..rig.inbox(0)
    };
    let overflow = Entry::append(&rig.portal, spec).expect("it fits");
    rig.put(&rig.source());
    assert_eq!(rig.event().kind, EventKind::Put);
    let (overflow, why) = overflow.try_unlink().expect_err("a header refers to it");
    assert_eq!(why, Error::InUse);
    rig.portal
        .search(rig.inbox(0), SearchOp::Delete)
        .expect("the search is well-formed");
    assert_eq!(rig.event().kind, EventKind::PutOverflow);
    overflow.try_unlink().expect("no header refers to it");
}

#[test]
fn pieces_of_several_regions_are_one_memory() {
    let rig = rig();
    let (head, body) = (Region::new(3), Region::new(8));
    let spec = EntrySpec {
        memory: Memory::vector([Memory::from(&head), Memory::part(&body, 1, 5)]),
        ..rig.inbox(0)
    };
    let _entry = Entry::append(&rig.portal, spec).expect("it fits");
    let words = Region::new(8);
    words.write(0, b"12345678");
    let spec = DescriptorSpec {
        memory: Memory::from(&words),
        ..DescriptorSpec::default()
    };
    let source = MemoryDescriptor::bind(&rig.interface, spec).expect("it fits");
    rig.put(&source);
    assert_eq!(rig.event().mlength, 8);
    let mut bytes = [0; 8];
    head.read(0, &mut bytes[..3]);
    body.read(1, &mut bytes[3..]);
    assert_eq!(&bytes, b"12345678");
}

#[test]
fn threads_share_an_interface_and_no_put_is_lost() {
    const EACH: u64 = 500;
    let rig = rig();
    let counter = Counter::alloc(&rig.interface).expect("there is room for a counter");
    let spec = EntrySpec {
        counter: Some(counter.clone()),
        ..rig.inbox(options::ME_EVENT_CT_COMM | options::ME_EVENT_COMM_DISABLE)
    };
    let _entry = Entry::append(&rig.portal, spec).expect("it fits");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let source = rig.source();
                (0..EACH).for_each(|_| rig.put(&source));
            });
        }
    });
    let value = counter.poll(4 * EACH, SOON).expect("nobody aborts");
    assert_eq!(value.map(|value| value.success), Some(4 * EACH));
}

#[test]
fn what_is_of_another_interface_is_refused() {
    let rig = rig();
    let portals = Portals::init().expect("the library starts");
    let logical = Options {
        logical: true,
        ..Options::default()
    };
    let other = Interface::open(&portals, logical).expect("the interface opens");
    let foreign = EventQueue::alloc(&other, 8).expect("there is room for a queue");
    let spec = DescriptorSpec {
        queue: Some(foreign),
        ..DescriptorSpec::default()
    };
    let refused = MemoryDescriptor::bind(&rig.interface, spec).expect_err("it is foreign");
    assert!(refused.to_string().contains("another interface"));
    let threshold_elsewhere = Counter::alloc(&other).expect("there is room for a counter");
    let refused = threshold_elsewhere.at(1).put(&rig.source(), Put::default());
    assert_eq!(refused, Err(Error::ArgInvalid));
}

#[test]
fn operations_that_a_datatype_doesnt_have_are_refused() {
    let rig = rig();
    let source = rig.source();
    let put = Put {
        length: 8,
        target: rig.target(),
        ..Put::default()
    };
    let bits_of_a_double = Atomic {
        operation: Operation::Bor,
        datatype: Datatype::Double,
        put,
    };
    assert_eq!(source.atomic(bits_of_a_double), Err(Error::ArgInvalid));
    let without_operand = Swap {
        operation: Operation::Mswap,
        datatype: Datatype::Int64,
        operand: &[],
        fetch_offset: 8,
        put,
    };
    assert_eq!(
        source.swap(&source, without_operand),
        Err(Error::ArgInvalid)
    );
}
