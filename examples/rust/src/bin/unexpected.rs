//! Messages arrive before anybody waits for them; a receive that is posted later finds them:
//! `yod -n 2 unexpected`.
//!
//! The overflow list takes what matches no entry of the priority list. Appending an entry then
//! reports where the bytes are.
#![forbid(unsafe_code)]

use portals_examples::{Job, Result, descriptor};
use portals4::*;

const MESSAGES: u64 = 8;
const LENGTH: u64 = 64;
const ROOM: u64 = 4096;

fn text_of(tag: u64, rank: usize) -> Vec<u8> {
    let mut text = format!("message {tag} from rank {rank}").into_bytes();
    text.resize(LENGTH as usize, 0);
    text
}

/// What is received for a tag: from the entry, or from where it has waited.
fn receive(
    events: &EventQueue,
    portal: &PortalTableEntry,
    room: &Region,
    tag: u64,
) -> Result<Vec<u8>> {
    let into = Region::new(LENGTH);
    let _entry = Entry::append(
        portal,
        EntrySpec {
            memory: Memory::from(&into),
            options: options::ME_OP_PUT
                | options::ME_USE_ONCE
                | options::ME_EVENT_LINK_DISABLE
                | options::ME_EVENT_UNLINK_DISABLE,
            match_bits: tag,
            ..EntrySpec::default()
        },
    )?;
    let mut bytes = vec![0; LENGTH as usize];
    loop {
        let event = events.wait()?;
        assert_eq!(event.ni_fail, NiFail::Ok);
        match event.kind {
            EventKind::Put => into.read(0, &mut bytes),
            EventKind::PutOverflow => {
                let offset = room.offset_of(event.start).ok_or("not in the room")?;
                room.read(offset, &mut bytes)
            }
            _ => continue,
        };
        return Ok(bytes);
    }
}

fn main() -> Result {
    let mut job = Job::open(true)?;
    let (events, portal) = job.portal(0, 0)?;
    let (room, out) = (Region::new(ROOM), Region::new(LENGTH));
    let _overflow = Entry::append(
        &portal,
        EntrySpec {
            memory: Memory::from(&room),
            list: List::Overflow,
            options: options::ME_OP_PUT
                | options::ME_MANAGE_LOCAL
                | options::ME_EVENT_LINK_DISABLE
                | options::ME_EVENT_COMM_DISABLE,
            ignore_bits: u64::MAX,
            min_free: LENGTH,
            ..EntrySpec::default()
        },
    )?;
    let from = descriptor(&job.interface, &out)?;
    job.ready()?;

    for match_bits in 0..MESSAGES {
        out.write(0, &text_of(match_bits, job.rank()));
        from.put(Put {
            length: LENGTH,
            target: Target {
                match_bits,
                ..Target::new(job.ranks[job.next()], portal.index())
            },
            ..Put::default()
        })?;
    }
    job.barrier()?;
    // In another order than they were sent.
    for tag in (0..MESSAGES).rev() {
        let bytes = receive(&events, &portal, &room, tag)?;
        assert_eq!(bytes, text_of(tag, job.previous()));
    }
    if job.rank() == 0 {
        println!("{MESSAGES} messages found, the last one first");
    }
    job.close()
}
