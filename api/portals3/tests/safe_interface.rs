//! What the safe interface adds: lifetimes, and refusals that say what is wrong.
//! The rules of Portals are tested where they live.

use portals33::*;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

struct Rig {
    interface: Interface,
    queue: EventQueue,
}

fn rig() -> Rig {
    let portals = Portals::init().expect("the library starts");
    let interface = Interface::open(&portals, Options::default()).expect("the interface opens");
    let queue = EventQueue::alloc(&interface, 256).expect("there is room for a queue");
    Rig { interface, queue }
}

impl Rig {
    /// An entry at a free index, with the index.
    fn entry(&self) -> (u32, Entry) {
        Entry::attach_any(&self.interface, EntrySpec::default()).expect("an index is free")
    }

    /// Memory that takes puts and gets, and reports their ends.
    fn open_to_all(&self, memory: Memory) -> DescriptorSpec {
        DescriptorSpec {
            memory,
            options: MdOptions::OP_PUT | MdOptions::OP_GET | MdOptions::EVENT_START_DISABLE,
            queue: Some(self.queue.clone()),
            ..DescriptorSpec::default()
        }
    }

    fn source(&self, bytes: &[u8]) -> MemoryDescriptor {
        let region = Region::new(bytes.len() as u64);
        region.write(0, bytes);
        let spec = DescriptorSpec {
            memory: Memory::from(&region),
            ..DescriptorSpec::default()
        };
        MemoryDescriptor::bind(&self.interface, spec).expect("there is room for a descriptor")
    }

    fn target(&self, portal: u32) -> Target {
        Target::new(self.interface.id().expect("it is open"), portal)
    }

    fn put(&self, source: &MemoryDescriptor, portal: u32) {
        let put = Put {
            target: self.target(portal),
            ..Put::default()
        };
        source.put(put).expect("the put starts");
    }

    fn event(&self) -> Taken {
        let taken = self.queue.poll(SOON).expect("the queue is there");
        taken.expect("an event comes soon")
    }
}

#[test]
fn a_put_crosses_the_pieces_of_both_sides() {
    let rig = rig();
    let (portal, entry) = rig.entry();
    let (head, body) = (Region::new(3), Region::new(8));
    let pieces = Memory::vector([Memory::from(&head), Memory::part(&body, 2, 5)]);
    let _target = MemoryDescriptor::attach(&entry, rig.open_to_all(pieces)).expect("it fits");
    rig.put(&rig.source(b"portals 3"), portal);
    rig.put(&rig.source(b"portals"), portal);
    // Without TRUNCATE the longer one was dropped.
    assert_eq!(rig.event().mlength, 7);
    let mut seen = [0; 8];
    head.read(0, &mut seen[..3]);
    body.read(2, &mut seen[3..]);
    assert_eq!(&seen, b"portals\0");
}

#[test]
fn a_descriptor_that_the_library_has_unlinked_says_so_and_drops_quietly() {
    let rig = rig();
    let (portal, entry) = rig.entry();
    let spec = DescriptorSpec {
        threshold: 1,
        unlink: Unlink::Unlink,
        ..rig.open_to_all(Memory::from(&Region::new(8)))
    };
    let once = MemoryDescriptor::attach(&entry, spec).expect("it fits");
    rig.put(&rig.source(b"8 bytes!"), portal);
    assert_eq!(rig.event().kind, EventKind::PutEnd);
    assert_eq!(rig.event().kind, EventKind::Unlink);
    let (_gone, why) = once.try_unlink().expect_err("the library has unlinked it");
    assert_eq!(why, Error::MdInvalid);
}

#[test]
fn an_entry_has_one_descriptor_and_an_update_only_happens_to_an_empty_queue() {
    let rig = rig();
    let (portal, entry) = rig.entry();
    let spec = rig.open_to_all(Memory::from(&Region::new(8)));
    let mut first = MemoryDescriptor::attach(&entry, spec.clone()).expect("it fits");
    let second = MemoryDescriptor::attach(&entry, spec.clone());
    assert_eq!(second.map(drop), Err(Error::MeInUse));
    rig.put(&rig.source(b"8 bytes!"), portal);
    let peeked = loop {
        if let Some(event) = rig.queue.peek().expect("the queue is there") {
            break event;
        }
    };
    let refused = first.update(spec.clone(), Some(&rig.queue));
    assert_eq!(refused, Err(Error::MdNoUpdate));
    assert_eq!(rig.event(), peeked);
    assert_eq!(first.update(spec, Some(&rig.queue)), Ok(()));
}

#[test]
fn memory_that_was_exchanged_comes_into_the_sink() {
    let rig = rig();
    let (portal, entry) = rig.entry();
    let theirs = Region::new(8);
    theirs.write(0, b"theirs!!");
    let _target = MemoryDescriptor::attach(&entry, rig.open_to_all(Memory::from(&theirs)));
    let ours = Region::new(8);
    let silent = DescriptorSpec {
        options: MdOptions::EVENT_START_DISABLE,
        ..rig.open_to_all(Memory::from(&ours))
    };
    let sink = MemoryDescriptor::bind(&rig.interface, silent).expect("it fits");
    let exchange = GetPut {
        target: rig.target(portal),
        hdr_data: 5,
    };
    let source = rig.source(b"ours!!!!");
    source.get_put(&sink, exchange).expect("it starts");
    let kinds = [rig.event().kind, rig.event().kind];
    assert!(kinds.contains(&EventKind::GetPutEnd) && kinds.contains(&EventKind::ReplyEnd));
    let mut seen = [[0; 8]; 2];
    ours.read(0, &mut seen[0]);
    theirs.read(0, &mut seen[1]);
    assert_eq!(&seen, &[*b"theirs!!", *b"ours!!!!"]);
}

#[test]
fn what_was_made_keeps_the_interface_open() {
    let Rig { interface, queue } = rig();
    drop(interface);
    assert_eq!(queue.get(), Ok(None));
    assert!(queue.interface().id().is_ok());
}

#[test]
fn the_access_table_keeps_processes_out() {
    let rig = rig();
    let (portal, entry) = rig.entry();
    let _target = MemoryDescriptor::attach(&entry, rig.open_to_all(Memory::from(&Region::new(8))));
    let nobody = AccessEntry {
        process: ProcessId::new(1, 1),
        ..AccessEntry::OPEN
    };
    rig.interface
        .set_access(3, nobody)
        .expect("there is such an entry");
    let put = Put {
        target: Target {
            access: 3,
            ..rig.target(portal)
        },
        ..Put::default()
    };
    let source = rig.source(b"8 bytes!");
    source.put(put).expect("the put starts");
    rig.put(&source, portal);
    // Messages between two processes arrive in order: the first one was dropped.
    assert_eq!(rig.event().match_bits, 0);
    let dropped = rig.interface.status(register::DROP_COUNT);
    assert!(dropped.expect("there is such a register") >= 1);
    assert_eq!(rig.queue.get(), Ok(None));
    assert_eq!(
        rig.interface.set_access(99, nobody),
        Err(Error::AcIndexInvalid)
    );
}
