//! A server that any number of clients call: requests go into one long buffer, answers straight
//! into the client's memory: `yod -n 4 client_server`, where rank 0 serves.
//!
//! A locally managed entry packs requests one behind the other; the header data carry the
//! number of the call.
#![forbid(unsafe_code)]

use portals_examples::{Job, Result, descriptor, expect_event, number, set_number};
use portals4::*;

const CALLS: u64 = 200;
const REQUESTS: u32 = 0;
const ANSWERS: u32 = 1;

fn entry(region: &Region, more: u32) -> EntrySpec {
    EntrySpec {
        memory: Memory::from(region),
        options: options::ME_OP_PUT
            | options::ME_EVENT_LINK_DISABLE
            | options::ME_EVENT_UNLINK_DISABLE
            | more,
        ..EntrySpec::default()
    }
}

fn message(process: ProcessId, portal: u32, hdr_data: u64) -> Put {
    Put {
        length: 8,
        target: Target::new(process, portal),
        hdr_data,
        ..Put::default()
    }
}

/// Answers each number with its square.
fn serve(job: &Job, requests: &EventQueue, room: &Region) -> Result {
    let answer = Region::new(8);
    let from = descriptor(&job.interface, &answer)?;
    let calls = (job.size() as u64 - 1) * CALLS;
    for _ in 0..calls {
        let request = expect_event(requests, EventKind::Put)?;
        let offset = room.offset_of(request.start).ok_or("not in the room")?;
        set_number(&answer, 0, number(room, offset).pow(2));
        from.put(message(request.initiator, ANSWERS, request.hdr_data))?;
    }
    println!("{calls} calls answered");
    Ok(())
}

fn call(job: &Job, answers: &EventQueue, answer: &Region) -> Result {
    let out = Region::new(8);
    let from = descriptor(&job.interface, &out)?;
    for value in 0..CALLS {
        set_number(&out, 0, value);
        from.put(message(job.ranks[0], REQUESTS, value))?;
        let event = expect_event(answers, EventKind::Put)?;
        assert_eq!((event.hdr_data, number(answer, 0)), (value, value * value));
    }
    Ok(())
}

fn main() -> Result {
    let mut job = Job::open(true)?;
    let (requests, serving) = job.portal(REQUESTS, 0)?;
    let (answers, calling) = job.portal(ANSWERS, 0)?;
    let room = Region::new(job.size() as u64 * CALLS * 8);
    let answer = Region::new(8);
    let _room = Entry::append(&serving, entry(&room, options::ME_MANAGE_LOCAL))?;
    let _answer = Entry::append(&calling, entry(&answer, 0))?;
    job.ready()?;
    match job.rank() {
        0 => serve(&job, &requests, &room)?,
        _ => call(&job, &answers, &answer)?,
    }
    job.close()
}
