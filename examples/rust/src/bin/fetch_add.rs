//! A counter at rank 0 that all ranks increment; each gets a number that nobody else has:
//! `yod -n 4 fetch_add`.
//!
//! Fetch-atomic on an interface without matching; rank 0 needn't do anything.
#![forbid(unsafe_code)]

use portals_examples::{Job, Result, descriptor, number, set_number};
use portals4::*;

const DRAWS: u64 = 1000;

fn main() -> Result {
    let mut job = Job::open(false)?;
    let portal = PortalTableEntry::alloc(
        &job.interface,
        PortalSpec {
            index: Some(0),
            ..PortalSpec::default()
        },
    )?;
    let (shared, one, drawn) = (Region::new(8), Region::new(8), Region::new(8));
    set_number(&one, 0, 1);
    let _entry = Entry::append(
        &portal,
        EntrySpec {
            memory: Memory::from(&shared),
            options: options::ME_OP_PUT | options::ME_OP_GET,
            ..EntrySpec::default()
        },
    )?;
    let operand = descriptor(&job.interface, &one)?;
    let replies = Counter::alloc(&job.interface)?;
    let result = MemoryDescriptor::bind(
        &job.interface,
        DescriptorSpec {
            memory: Memory::from(&drawn),
            options: options::MD_EVENT_CT_REPLY,
            counter: Some(replies.clone()),
            ..DescriptorSpec::default()
        },
    )?;
    job.ready()?;

    let draw = FetchAtomic {
        operation: Operation::Sum,
        datatype: Datatype::Uint64,
        fetch_offset: 0,
        put: Put {
            length: 8,
            target: Target::new(job.ranks[0], portal.index()),
            ..Put::default()
        },
    };
    let mut last = None;
    for count in 1..=DRAWS {
        result.fetch_atomic(&operand, draw)?;
        replies.wait(count)?;
        let found = Some(number(&drawn, 0));
        assert!(found > last, "numbers grow");
        last = found;
    }
    job.barrier()?;
    if job.rank() == 0 {
        println!("{} numbers drawn", number(&shared, 0));
        assert_eq!(number(&shared, 0), job.size() as u64 * DRAWS);
    }
    job.close()
}
