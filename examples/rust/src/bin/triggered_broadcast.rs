//! A broadcast along a binomial tree that progresses by itself: each rank sets up in advance
//! that what arrives is passed on, then computes: `yod -n 8 triggered_broadcast`.
#![forbid(unsafe_code)]

use portals_examples::{Job, Result, descriptor, number, set_number};
use portals4::*;

const VALUE: u64 = 25;

fn main() -> Result {
    let mut job = Job::open(false)?;
    let portal = PortalTableEntry::alloc(
        &job.interface,
        PortalSpec {
            index: Some(0),
            ..PortalSpec::default()
        },
    )?;
    let (value, arrived) = (Region::new(8), Counter::alloc(&job.interface)?);
    let _entry = Entry::append(
        &portal,
        EntrySpec {
            memory: Memory::from(&value),
            options: options::ME_OP_PUT | options::ME_EVENT_CT_COMM,
            counter: Some(arrived.clone()),
            ..EntrySpec::default()
        },
    )?;
    let from = descriptor(&job.interface, &value)?;
    job.ready()?;

    // The children of a rank are the ranks that differ from it in one bit above its highest.
    let (rank, size) = (job.rank(), job.size());
    let bits = (0..usize::BITS).map(|bit| 1 << bit);
    for child in bits.filter(|bit| *bit > rank).map(|bit| rank + bit) {
        let Some(process) = job.ranks.get(child) else {
            break;
        };
        arrived.at(1).put(
            &from,
            Put {
                length: 8,
                target: Target::new(*process, portal.index()),
                ..Put::default()
            },
        )?;
    }
    if rank == 0 {
        set_number(&value, 0, VALUE);
        arrived.increment(1)?; // the value is there: start
    }
    arrived.wait(1)?;
    assert_eq!(number(&value, 0), VALUE);
    job.barrier()?;
    if rank == 0 {
        println!("{size} ranks have the value");
    }
    job.close()
}
