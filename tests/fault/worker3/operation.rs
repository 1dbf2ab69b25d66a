//! One operation of the load, with descriptors of its own.

use lintel_claim::{Claim, Region};
use lintel_engine3::{DescriptorSpec, Transfer};
use lintel_fault::rig;
use lintel_memory::Buffer;
use lintel_runtime::process3;
use lintel_types::portals3::{
    Error, EventKind, MdOptions, MemoryDescriptor, Result, THRESHOLD_INFINITE, Unlink,
};
use lintel_types::{Handle, ProcessId};
use lintel_wire::portals3::Verb;
use std::time::Instant;

/// The portal table index that the workers use.
pub const PORTAL: u32 = 3;

/// The match bits of an operation's entry.
pub fn match_bits(verb: Verb) -> u64 {
    verb as u64 + 1
}

/// The name of a process of the job in Portals 3.3, whose pids count from 0.
pub fn process(number: u32) -> ProcessId {
    ProcessId::new(rig::process(number).nid, number)
}

/// The byte at an offset of the memory that all processes put from and get from.
pub fn pattern(at: u64) -> u8 {
    (at * 7 / 3) as u8
}

/// A descriptor over memory that must stay until it is unlinked.
pub fn descriptor(
    memory: Claim,
    options: MdOptions,
    (queue, user): (Handle, u64),
) -> DescriptorSpec<Claim> {
    DescriptorSpec {
        md: MemoryDescriptor {
            start: memory.address(),
            length: memory.len(),
            threshold: THRESHOLD_INFINITE,
            options,
            user_ptr: user,
            queue,
            ..MemoryDescriptor::default()
        },
        buffer: Buffer::Contiguous(memory),
        unlink: Unlink::Retain,
    }
}

/// What an operation is to move.
pub struct Plan {
    /// The call.
    pub verb: Verb,
    /// The number of the target.
    pub peer: u32,
    /// Bytes from the start of either side's memory.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// An operation in flight.
pub struct Operation {
    pub plan: Plan,
    pub since: Instant,
    /// Kinds of events that it still awaits.
    pub awaits: Vec<EventKind>,
    /// An event has said that it failed.
    pub failed: bool,
    descriptors: Vec<Handle>,
    /// What a get or an exchange fills.
    filled: Region,
}

impl Operation {
    /// Starts an operation whose events carry `user`; puts are from `source`.
    ///
    /// # Errors
    /// The code of a call.
    pub fn start(
        interface: Handle,
        queue: Handle,
        user: u64,
        source: Claim,
        plan: Plan,
    ) -> Result<Operation> {
        let filled = Region::new(plan.length.max(8));
        let bind = |memory| {
            let options = MdOptions::EVENT_START_DISABLE;
            let spec = descriptor(memory, options, (queue, user));
            process3().descriptor_bind3(interface, spec)
        };
        let from = bind(source.slice(plan.offset, plan.length))?;
        let into = bind(filled.claim().slice(0, plan.length))?;
        let transfer = Transfer {
            verb: plan.verb,
            source: from,
            source_offset: 0,
            sink: into,
            sink_offset: 0,
            length: None,
            ack: true,
            target: process(plan.peer),
            portal: PORTAL,
            access: 0,
            match_bits: match_bits(plan.verb),
            remote_offset: plan.offset,
            hdr_data: 0,
        };
        process3().start(&transfer)?;
        let awaits = match plan.verb {
            Verb::Put => vec![EventKind::SendEnd, EventKind::Ack],
            Verb::Get => vec![EventKind::ReplyEnd],
            Verb::GetPut => vec![EventKind::SendEnd, EventKind::ReplyEnd],
        };
        Ok(Operation {
            plan,
            since: Instant::now(),
            awaits,
            failed: false,
            descriptors: vec![from, into],
            filled,
        })
    }

    /// Unlinks its descriptors; false if one is still pending.
    ///
    /// # Errors
    /// The code of the call.
    pub fn unlink(&mut self) -> Result<bool> {
        while let Some(descriptor) = self.descriptors.last() {
            match process3().descriptor_unlink3(*descriptor) {
                Ok(()) => self.descriptors.pop(),
                Err(Error::MdInUse) => return Ok(false),
                Err(error) => return Err(error),
            };
        }
        Ok(true)
    }

    /// The first byte of a get that isn't what the target has.
    pub fn first_wrong(&self) -> Option<u64> {
        let Plan {
            verb,
            offset,
            length,
            ..
        } = self.plan;
        let mut bytes = vec![0; length as usize];
        self.filled.read(0, &mut bytes);
        let wrong = |at: &u64| bytes[*at as usize] != pattern(offset + at);
        (0..length).find(|at| verb == Verb::Get && wrong(at))
    }
}
