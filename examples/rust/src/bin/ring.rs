//! A token goes round the ranks, each of which adds its rank to it: `yod -n 4 ring`.
//!
//! Matching put, event queue at the target.
#![forbid(unsafe_code)]

use portals_examples::{Job, Result, descriptor, expect_event, number, set_number};
use portals4::*;

const TAG: u64 = 7;

fn main() -> Result {
    let mut job = Job::open(true)?;
    let (arrivals, portal) = job.portal(0, 0)?;
    let (received, token) = (Region::new(8), Region::new(8));
    let _entry = Entry::append(
        &portal,
        EntrySpec {
            memory: Memory::from(&received),
            options: options::ME_OP_PUT
                | options::ME_USE_ONCE
                | options::ME_EVENT_LINK_DISABLE
                | options::ME_EVENT_UNLINK_DISABLE,
            match_bits: TAG,
            ..EntrySpec::default()
        },
    )?;
    let from = descriptor(&job.interface, &token)?;
    job.ready()?;
    let (rank, size) = (job.rank() as u64, job.size() as u64);
    let to_next = Put {
        length: 8,
        target: Target {
            match_bits: TAG,
            ..Target::new(job.ranks[job.next()], portal.index())
        },
        ..Put::default()
    };

    // Rank 0 begins; the others wait for the token first.
    if rank == 0 {
        from.put(to_next)?;
    }
    expect_event(&arrivals, EventKind::Put)?;
    if rank == 0 {
        println!("the ranks' sum is {}", number(&received, 0));
        assert_eq!(number(&received, 0), size * (size - 1) / 2);
    } else {
        set_number(&token, 0, number(&received, 0) + rank);
        from.put(to_next)?;
    }
    job.close()
}
