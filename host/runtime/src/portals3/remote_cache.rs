//! What a client remembers of its descriptors, so that it can decide by itself that its agent
//! won't refuse a data movement. What it doesn't know it asks.

use crate::portals3::commands::Command3;
use lintel_claim::Claim;
use lintel_engine3::{DescriptorSpec, Transfer};
use lintel_types::portals3::{
    EQ_NONE, Error, MdOptions, MemoryDescriptor, NID_ANY, PID_ANY, Result, THRESHOLD_INFINITE,
};
use lintel_types::{Handle, PortalIndex};
use lintel_wire::MAX_LENGTH;
use lintel_wire::portals3::Verb;
use serde::Deserialize;
use std::collections::HashMap;

/// The free-floating descriptors that nothing but the client's own calls makes inactive, or
/// ends.
#[derive(Default)]
pub(crate) struct RemoteCache(HashMap<Handle, Bound>);

struct Bound {
    /// Bytes.
    length: u64,
    /// An event shows when its memory may be reused. Without, a put is to have read it when
    /// the call returns.
    reports: bool,
}

impl RemoteCache {
    /// Takes note of a command and its answer.
    pub(crate) fn learn(&mut self, command: &Command3<Claim>, bytes: &[u8]) {
        match command {
            Command3::DescriptorBind(_, spec) => {
                if let Ok(handle) = answer(bytes) {
                    self.note(handle, spec);
                }
            }
            Command3::DescriptorUpdate(handle, Some(spec), _)
                if self.0.contains_key(handle) && answer::<MemoryDescriptor>(bytes).is_ok() =>
            {
                self.note(*handle, spec);
            }
            Command3::DescriptorUnlink(handle) if answer(bytes) == Ok(()) => {
                self.0.remove(handle);
            }
            // It may be that others still use it: then they ask.
            Command3::Close(_) => self.0.clear(),
            _ => {}
        }
    }

    fn note(&mut self, handle: Handle, spec: &DescriptorSpec<Claim>) {
        let MemoryDescriptor {
            threshold,
            options,
            queue,
            ..
        } = spec.md;
        if threshold != THRESHOLD_INFINITE || options.contains(MdOptions::MAX_SIZE) {
            self.0.remove(&handle);
            return;
        }
        let reports = queue != EQ_NONE && !options.contains(MdOptions::EVENT_END_DISABLE);
        let length = spec.buffer.length();
        self.0.insert(handle, Bound { length, reports });
    }

    /// Whether the agent will carry it out, by all that is known.
    pub(crate) fn allows(&self, transfer: &Transfer) -> bool {
        let Transfer { target, .. } = *transfer;
        let has_part = match transfer.verb {
            Verb::Put => {
                let source = self.0.get(&transfer.source);
                let has = |source: &Bound| source.has(transfer.source_offset, transfer.length);
                source.is_some_and(|source| source.reports && has(source))
            }
            Verb::Get => {
                let sink = self.0.get(&transfer.sink);
                sink.is_some_and(|sink| sink.has(transfer.sink_offset, transfer.length))
            }
            // Its length is limited by the interface.
            Verb::GetPut => false,
        };
        has_part
            && target.nid != NID_ANY
            && target.pid != PID_ANY
            && PortalIndex::try_from(transfer.portal).is_ok()
            && u16::try_from(transfer.access).is_ok()
    }
}

impl Bound {
    /// Whether so many bytes from there on, or all from there on, fit into a message.
    fn has(&self, offset: u64, length: Option<u64>) -> bool {
        let left = self.length.checked_sub(offset);
        left.is_some_and(|left| {
            let length = length.unwrap_or(left);
            length <= left && length <= MAX_LENGTH
        })
    }
}

/// The answer to a command; an agent that answers otherwise is of another version.
pub(crate) fn answer<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).unwrap_or(Err(Error::Fail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::to_bytes;
    use lintel_claim::Region;
    use lintel_memory::Buffer;
    use lintel_types::portals3::Unlink;
    use lintel_types::{InterfaceNumber, Kind, ProcessId};

    const BYTES: u64 = 64;

    fn handle(kind: Kind) -> Handle {
        let [number, ..] = InterfaceNumber::ALL;
        Handle::new(kind, number, 1, 5)
    }

    fn spec(memory: &Region, change: impl FnOnce(&mut MemoryDescriptor)) -> DescriptorSpec<Claim> {
        let mut md = MemoryDescriptor {
            start: memory.claim().address(),
            length: BYTES,
            threshold: THRESHOLD_INFINITE,
            queue: handle(Kind::EventQueue),
            ..MemoryDescriptor::default()
        };
        change(&mut md);
        DescriptorSpec {
            md,
            buffer: Buffer::Contiguous(memory.claim()),
            unlink: Unlink::Retain,
        }
    }

    /// A cache that has seen such a descriptor bound.
    fn cache(change: impl FnOnce(&mut MemoryDescriptor)) -> RemoteCache {
        let (memory, mut cache) = (Region::new(BYTES), RemoteCache::default());
        let bind = Command3::DescriptorBind(handle(Kind::Interface), spec(&memory, change));
        let bound = Ok::<_, Error>(handle(Kind::MemoryDescriptor));
        cache.learn(&bind, &to_bytes(&bound));
        cache
    }

    fn transfer(verb: Verb) -> Transfer {
        Transfer {
            verb,
            source: handle(Kind::MemoryDescriptor),
            source_offset: 0,
            sink: handle(Kind::MemoryDescriptor),
            sink_offset: 0,
            length: None,
            ack: true,
            target: ProcessId::new(1, 2),
            portal: 3,
            access: 0,
            match_bits: 0,
            remote_offset: 0,
            hdr_data: 0,
        }
    }

    #[test]
    fn a_put_or_get_that_the_agent_cant_refuse_is_allowed() {
        let cache = cache(|_| {});
        let (put, get) = (transfer(Verb::Put), transfer(Verb::Get));
        assert!(cache.allows(&put) && cache.allows(&get));
        let part = |length| Transfer {
            source_offset: 60,
            length: Some(length),
            ..put
        };
        assert!(cache.allows(&part(4)) && !cache.allows(&part(5)));
        for refused in [
            transfer(Verb::GetPut),
            Transfer {
                source: Handle(7),
                ..put
            },
            Transfer {
                target: ProcessId::new(1, PID_ANY),
                ..put
            },
            Transfer {
                portal: u32::MAX,
                ..get
            },
            Transfer {
                access: 1 << 16,
                ..get
            },
        ] {
            assert!(!cache.allows(&refused), "{refused:?}");
        }
    }

    #[test]
    fn descriptors_that_may_become_inactive_are_asked_for() {
        let finite = cache(|md| md.threshold = 2);
        let filled = cache(|md| md.options |= MdOptions::MAX_SIZE);
        for cache in [finite, filled] {
            assert!(!cache.allows(&transfer(Verb::Put)));
        }
    }

    #[test]
    fn a_put_whose_end_nothing_shows_is_asked_for() {
        let silent = cache(|md| md.queue = EQ_NONE);
        let disabled = cache(|md| md.options |= MdOptions::EVENT_END_DISABLE);
        for cache in [silent, disabled] {
            assert!(!cache.allows(&transfer(Verb::Put)));
            assert!(cache.allows(&transfer(Verb::Get)));
        }
    }

    #[test]
    fn what_calls_change_is_known() {
        let memory = Region::new(BYTES);
        let md = handle(Kind::MemoryDescriptor);
        let updated = |change: fn(&mut MemoryDescriptor)| {
            Command3::DescriptorUpdate(md, Some(spec(&memory, change)), EQ_NONE)
        };
        let state = Ok::<_, Error>(MemoryDescriptor::default());
        let refused = Err::<MemoryDescriptor, _>(Error::MdNoUpdate);
        let (put, mut cache) = (transfer(Verb::Put), cache(|_| {}));
        cache.learn(&updated(|md| md.threshold = 0), &to_bytes(&refused));
        assert!(cache.allows(&put), "it wasn't updated");
        cache.learn(&updated(|_| {}), &to_bytes(&state));
        assert!(cache.allows(&put));
        let unlink = Command3::DescriptorUnlink(md);
        cache.learn(&unlink, &to_bytes(&Err::<(), _>(Error::MdInUse)));
        assert!(cache.allows(&put), "it is still there");
        cache.learn(&unlink, &to_bytes(&Ok::<_, Error>(())));
        assert!(!cache.allows(&put));
        cache.learn(&updated(|_| {}), &to_bytes(&state));
        assert!(!cache.allows(&put), "it may be attached to an entry");
    }
}
