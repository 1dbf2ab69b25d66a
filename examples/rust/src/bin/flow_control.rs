//! A receiver that runs out of room, and senders that notice and resume:
//! `yod -n 3 flow_control`.
//!
//! With `PT_FLOWCTRL` a message that finds no entry disables the portal table entry instead of
//! being lost: the acknowledgement reports it, and the sender sends again later.
#![forbid(unsafe_code)]

use portals_examples::{Job, Result, number, set_number};
use portals4::*;

const MESSAGES: u64 = 50;
const POSTED: usize = 4;

/// Posts a receive; `slot` comes back in its event.
fn post(portal: &PortalTableEntry, room: &Region, slot: usize) -> Result<Entry> {
    let spec = EntrySpec {
        memory: Memory::part(room, 8 * slot as u64, 8),
        options: options::ME_OP_PUT
            | options::ME_USE_ONCE
            | options::ME_EVENT_LINK_DISABLE
            | options::ME_EVENT_UNLINK_DISABLE,
        user_ptr: slot as u64,
        ..EntrySpec::default()
    };
    Ok(Entry::append(portal, spec)?)
}

/// Rank 0: takes every message of the others, and makes room only once it has none.
fn receive(job: &mut Job, events: &EventQueue, portal: &PortalTableEntry) -> Result {
    let room = Region::new(8 * POSTED as u64);
    let posted: Result<Vec<_>> = (0..POSTED).map(|slot| post(portal, &room, slot)).collect();
    let mut entries: Vec<Option<Entry>> = posted?.into_iter().map(Some).collect();
    job.ready()?;
    let expected = (job.size() as u64 - 1) * MESSAGES;
    let (mut taken, mut sum, mut disabled, mut used) = (0, 0, 0, Vec::new());
    while taken < expected {
        let event = events.wait()?;
        match event.kind {
            EventKind::Put => {
                let slot = event.user_ptr as usize;
                sum += number(&room, event.user_ptr * 8);
                used.push(slot);
                taken += 1;
            }
            EventKind::PtDisabled => {
                for slot in used.drain(..) {
                    entries[slot] = None; // it has been used: nothing is left to unlink
                    entries[slot] = Some(post(portal, &room, slot)?);
                }
                portal.enable()?;
                disabled += 1;
            }
            _ => {}
        }
    }
    assert_eq!(sum, expected * (MESSAGES - 1) / 2);
    assert!(expected == 0 || disabled > 0);
    println!("{taken} messages through room for {POSTED}, disabled in between");
    Ok(())
}

/// The others: send each message until it has been taken.
fn send(job: &mut Job, events: &EventQueue, portal: &PortalTableEntry) -> Result {
    let value = Region::new(8);
    let from = MemoryDescriptor::bind(
        &job.interface,
        DescriptorSpec {
            memory: Memory::from(&value),
            options: options::MD_EVENT_SEND_DISABLE,
            queue: Some(events.clone()),
            ..DescriptorSpec::default()
        },
    )?;
    job.ready()?;
    let message = Put {
        length: 8,
        ack: AckRequest::Full,
        target: Target::new(job.ranks[0], portal.index()),
        ..Put::default()
    };
    for count in 0..MESSAGES {
        set_number(&value, 0, count);
        loop {
            from.put(message)?;
            match events.wait()?.ni_fail {
                NiFail::Ok => break,
                NiFail::PtDisabled => {}
                other => return Err(format!("{other:?}").into()),
            }
        }
    }
    Ok(())
}

fn main() -> Result {
    let mut job = Job::open(true)?;
    let (events, portal) = job.portal(0, options::PT_FLOWCTRL)?;
    match job.rank() {
        0 => receive(&mut job, &events, &portal)?,
        _ => send(&mut job, &events, &portal)?,
    }
    job.close()
}
