//! Objects free themselves, once, in whatever order they and their interface go.
#![forbid(unsafe_code)]

// Defines the functions that the binding calls.
extern crate portals as _;

use lintel_claim::Region;
use lintel_types::PT_ANY;
use portals4_abi::{
    AckRequest, Counter, Datatype, Descriptor, DescriptorSpec, Entry, EntrySpec, Error, Interface,
    InterfaceSpec, Limits, Operation, Portal, Result, Sink, Transfer, Trigger, options,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Interfaces are the process's: one test at a time has them. The job's name keeps the
/// process apart from others of the machine.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open() -> Interface {
    Interface::open(&InterfaceSpec::default()).expect("an interface")
}

/// An entry over `words` words, what counts its messages, and how to reach it.
struct Loopback {
    memory: Region,
    entry: Entry<Region>,
    arrived: Counter,
    to: Transfer,
}

impl Loopback {
    fn new(interface: &Interface, bytes: u64) -> Result<Self> {
        let portal = interface.portal(PT_ANY, None)?;
        let (memory, arrived) = (Region::new(bytes), interface.counter()?);
        let entry = portal.append(memory.clone(), &EntrySpec::counted(5, &arrived))?;
        let to = Transfer {
            target: interface.physical_id()?,
            portal: portal.index(),
            match_bits: 5,
            length: bytes,
            ..Transfer::default()
        };
        Ok(Loopback {
            memory,
            entry,
            arrived,
            to,
        })
    }
}

fn word(memory: &Region, at: u64) -> u64 {
    let mut bytes = [0; 8];
    memory.read(at, &mut bytes);
    u64::from_ne_bytes(bytes)
}

fn filled(value: u64) -> Region {
    let memory = Region::new(64);
    memory.write(0, &value.to_ne_bytes());
    memory
}

#[test]
fn all_movements_reach_their_memory() -> Result<()> {
    let _alone = alone();
    let interface = open();
    let loopback = Loopback::new(&interface, 64)?;
    let (target, to) = (&loopback.memory, loopback.to);
    let replies = interface.counter()?;
    let spec = DescriptorSpec {
        counter: Some(&replies),
        options: options::MD_EVENT_CT_REPLY,
        ..DescriptorSpec::default()
    };
    let got = Region::new(64);
    let sink = interface.bind(got.clone(), &spec)?;
    let source = interface.bind(filled(40), &DescriptorSpec::default())?;

    source.put(&to, AckRequest::None)?;
    loopback.arrived.wait(1)?;
    assert_eq!(word(target, 0), 40);

    let word_to = Transfer { length: 8, ..to };
    let sum = (Operation::Sum, Datatype::Uint64);
    source.atomic(&word_to, sum, AckRequest::None)?;
    loopback.arrived.wait(2)?;
    assert_eq!(word(target, 0), 80);

    let into = |offset| Sink {
        descriptor: &sink,
        offset,
    };
    source.fetch_atomic(&word_to, sum, into(8))?;
    replies.wait(1)?;
    assert_eq!((word(&got, 8), word(target, 0)), (80, 120));

    source.swap(&word_to, Operation::CswapEq, Some(7), into(16))?;
    replies.wait(2)?;
    assert_eq!(
        (word(&got, 16), word(target, 0)),
        (120, 120),
        "7 isn't there"
    );
    source.swap(&word_to, Operation::Swap, None, into(16))?;
    replies.wait(3)?;
    assert_eq!((word(&got, 16), word(target, 0)), (120, 40));

    sink.get(&word_to)?;
    replies.wait(4)?;
    assert_eq!(word(&got, 0), 40);
    drop(loopback.entry);
    Ok(())
}

#[test]
fn triggered_operations_start_when_their_counter_says_so() -> Result<()> {
    let _alone = alone();
    let interface = open();
    let loopback = Loopback::new(&interface, 8)?;
    let source = interface.bind(filled(3), &DescriptorSpec::default())?;
    let (first, second) = (interface.counter()?, interface.counter()?);
    let at = |counter, threshold| Trigger { counter, threshold };
    source.triggered_put(&loopback.to, AckRequest::None, at(&second, 1))?;
    let sum = (Operation::Sum, Datatype::Uint64);
    source.triggered_atomic(&loopback.to, sum, AckRequest::None, at(&second, 2))?;
    second.triggered_increment(at(&first, 1))?;
    assert_eq!(loopback.arrived.poll(1, 0)?, None, "nothing has begun");
    first.increment()?;
    loopback.arrived.wait(1)?;
    assert_eq!(word(&loopback.memory, 0), 3);
    second.increment()?;
    loopback.arrived.wait(2)?;
    assert_eq!(word(&loopback.memory, 0), 6);
    source.triggered_get(&loopback.to, at(&first, 100))?;
    first.cancel_triggered()
}

/// Room for exactly one of each object.
fn tight() -> InterfaceSpec {
    let limits = Limits {
        max_eqs: 1,
        max_cts: 1,
        max_mds: 1,
        max_entries: 1,
        max_pt_index: 0,
        ..Limits::DEFAULT
    };
    InterfaceSpec {
        limits: Some(limits),
        ..InterfaceSpec::default()
    }
}

#[test]
fn what_is_dropped_is_free_for_the_next() -> Result<()> {
    let _alone = alone();
    for options in [options::NI_MATCHING, options::NI_NO_MATCHING] {
        let spec = InterfaceSpec {
            options: options | options::NI_PHYSICAL,
            ..tight()
        };
        let interface = Interface::open(&spec)?;
        let granted = *interface.limits().expect("it was opened here");
        for _ in 0..3 * (granted.max_eqs + granted.max_mds) {
            let (queue, counter) = (interface.queue(4)?, interface.counter()?);
            let portal = interface.portal(PT_ANY, Some(&queue))?;
            let entry = portal.append(Region::new(8), &EntrySpec::counted(0, &counter))?;
            let report = DescriptorSpec {
                queue: Some(&queue),
                ..DescriptorSpec::default()
            };
            let descriptor = interface.bind(Region::new(8), &report)?;
            // The entry keeps its portal table entry.
            drop(portal);
            drop((descriptor, entry, queue, counter));
        }
    }
    Ok(())
}

#[test]
fn an_interface_lives_as_long_as_its_last_object() -> Result<()> {
    let _alone = alone();
    let interface = open();
    let loopback = Loopback::new(&interface, 8)?;
    let source = interface.bind(Arc::new(filled(9)), &DescriptorSpec::default())?;
    drop(interface);
    source.put(&loopback.to, AckRequest::None)?;
    loopback.arrived.wait(1)?;
    assert_eq!(word(&loopback.memory, 0), 9);
    Ok(())
}

#[test]
fn objects_of_a_closed_interface_free_nothing_of_the_next() -> Result<()> {
    let _alone = alone();
    let old = open();
    let (queue, counter) = (old.queue(4)?, old.counter()?);
    let descriptor = old.bind(Region::new(8), &DescriptorSpec::default())?;
    old.close()?;
    let new = open();
    let (next_queue, next_counter) = (new.queue(4)?, new.counter()?);
    drop((queue, counter, descriptor, old));
    assert!(next_queue.get()?.is_none());
    next_counter.increment()?;
    assert_eq!(next_counter.get()?.success, 1);
    Ok(())
}

#[test]
fn an_abandoned_interface_keeps_its_objects_until_it_is_closed() -> Result<()> {
    let _alone = alone();
    let interface = open();
    interface.abandon();
    let loopback = Loopback::new(&interface, 8)?;
    let (to, arrived, memory) = (loopback.to, loopback.arrived, loopback.memory);
    drop(loopback.entry);
    let source = interface.bind(filled(5), &DescriptorSpec::default())?;
    source.put(&to, AckRequest::None)?;
    arrived.wait(1)?;
    assert_eq!(word(&memory, 0), 5, "the entry is still there");
    interface.close()
}

#[test]
fn a_borrowed_interface_is_its_owners_to_close() -> Result<()> {
    let _alone = alone();
    let interface = open();
    let borrowed = Interface::borrow(interface.handle());
    assert_eq!(borrowed.id()?, interface.id()?);
    assert!(!borrowed.is_logical() && borrowed.limits().is_none());
    drop(borrowed.counter()?);
    borrowed.close()?;
    drop(borrowed);
    interface.uid().map(drop)
}

#[test]
fn a_refusal_names_its_call_and_its_code() {
    let _alone = alone();
    let refused = |index, interface: &Interface| -> (String, Error) {
        let refusal = interface.portal(index, None).expect_err("refused");
        (refusal.to_string(), refusal.into())
    };
    let interface = open();
    let _taken: Portal = interface.portal(3, None).expect("a free index");
    let (text, error) = refused(3, &interface);
    assert_eq!(text, "PtlPTAlloc returned PTL_PT_IN_USE");
    assert_eq!(error, Error::PtInUse);
    interface.close().expect("it is open");
    let (text, _) = refused(3, &interface);
    assert_eq!(text, "PtlPTAlloc returned PTL_NO_INIT");
}

#[test]
fn what_an_owner_couldnt_keep_is_refused() -> Result<()> {
    let _alone = alone();
    let interface = open();
    let portal = interface.portal(PT_ANY, None)?;
    let refused = |spec: EntrySpec<'_>| {
        let refusal = portal.append(Region::new(8), &spec).map(drop);
        assert!(refusal.is_err_and(|why| why.is(Error::ArgInvalid)));
    };
    for bit in [
        options::ME_USE_ONCE,
        options::ME_MANAGE_LOCAL,
        options::IOVEC,
    ] {
        let options = EntrySpec::default().options | bit;
        refused(EntrySpec {
            options,
            ..EntrySpec::default()
        });
    }
    refused(EntrySpec {
        range: Some(4..9),
        ..EntrySpec::default()
    });
    let spec = DescriptorSpec {
        options: options::IOVEC,
        ..DescriptorSpec::default()
    };
    let bound: Result<Descriptor<Region>> = interface.bind(Region::new(16), &spec);
    assert!(bound.is_err_and(|why| why.is(Error::ArgInvalid)));
    Ok(())
}
