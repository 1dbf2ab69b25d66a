//! A long message without a copy: the sender publishes its buffer and sends a short notice; the
//! receiver gets the bytes when it has room for them: `yod -n 2 rendezvous`.
//!
//! The put that carries the notice has the length in its header data.
#![forbid(unsafe_code)]

use portals_examples::{Job, Result};
use portals4::*;

const NOTICE: u64 = 1;
const BODY: u64 = 2;
const LENGTH: u64 = 4 << 20;

fn entry(region: &Region, operation: u32, match_bits: u64) -> EntrySpec {
    EntrySpec {
        memory: Memory::from(region),
        options: operation
            | options::ME_USE_ONCE
            | options::ME_EVENT_LINK_DISABLE
            | options::ME_EVENT_UNLINK_DISABLE,
        match_bits,
        ..EntrySpec::default()
    }
}

fn main() -> Result {
    let mut job = Job::open(true)?;
    let (events, portal) = job.portal(0, 0)?;
    let (out, into, nothing) = (Region::new(LENGTH), Region::new(LENGTH), Region::new(0));
    out.write(0, &vec![job.rank() as u8 + 1; LENGTH as usize]);
    let _notice = Entry::append(&portal, entry(&nothing, options::ME_OP_PUT, NOTICE))?;
    let _body = Entry::append(&portal, entry(&out, options::ME_OP_GET, BODY))?;
    let descriptor = MemoryDescriptor::bind(
        &job.interface,
        DescriptorSpec {
            memory: Memory::from(&into),
            options: options::MD_EVENT_SEND_DISABLE,
            queue: Some(events.clone()),
            ..DescriptorSpec::default()
        },
    )?;
    job.ready()?;
    let target = |process, match_bits| Target {
        match_bits,
        ..Target::new(process, portal.index())
    };
    descriptor.put(Put {
        target: target(job.ranks[job.next()], NOTICE),
        hdr_data: LENGTH,
        ..Put::default()
    })?;

    let (mut fetched, mut given) = (false, false);
    while !(fetched && given) {
        let event = events.wait()?;
        assert_eq!(event.ni_fail, NiFail::Ok);
        match event.kind {
            EventKind::Put => descriptor.get(Get {
                length: event.hdr_data,
                target: target(event.initiator, BODY),
                ..Get::default()
            })?,
            EventKind::Reply => fetched = event.mlength == LENGTH,
            EventKind::Get => given = true,
            other => return Err(format!("{other:?}, which nobody asked for").into()),
        }
    }
    let mut bytes = vec![0; LENGTH as usize];
    into.read(0, &mut bytes);
    let sender = job.previous() as u8 + 1;
    assert!(bytes.iter().all(|byte| *byte == sender));
    if job.rank() == 0 {
        println!("{LENGTH} bytes, fetched by their receiver");
    }
    job.close()
}
