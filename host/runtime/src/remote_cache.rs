//! What a client remembers of the answers that its agent gave, so that it can decide by
//! itself that a data movement won't be refused. What it doesn't know it asks.

use crate::commands::{Command, answer};
use lintel_claim::Claim;
use lintel_engine4::{DescriptorSpec, Transfer};
use lintel_types::{Error, Handle, Limits, MdOptions, NiOptions, ProcessId};
use lintel_wire::Verb;
use std::collections::HashMap;

/// What is known of the four interfaces.
#[derive(Default)]
pub(crate) struct RemoteCache([Option<Interface>; 4]);

struct Interface {
    limits: Limits,
    logical: bool,
    /// Processes in its map.
    ranks: usize,
    descriptors: HashMap<Handle, Descriptor>,
}

struct Descriptor {
    length: u64,
    options: MdOptions,
    queue: bool,
    counter: bool,
}

impl RemoteCache {
    /// Takes note of a command and its answer.
    pub(crate) fn learn(&mut self, command: &Command<Claim>, bytes: &[u8]) {
        match command {
            Command::Open(_, options, ..) => {
                if let Ok((handle, limits)) = answer::<(Handle, Limits)>(bytes) {
                    self.open(handle, (*options).into(), limits);
                }
            }
            // It may be that others still use it: then they ask.
            Command::Close(handle) => self.0[at(*handle)] = None,
            Command::SetMap(handle, map) => {
                if let (Some(interface), Ok(())) = (&mut self.0[at(*handle)], answer(bytes)) {
                    interface.ranks = map.len();
                }
            }
            Command::DescriptorBind(_, spec) => {
                if let Ok(handle) = answer(bytes) {
                    self.bind(handle, spec);
                }
            }
            Command::DescriptorRelease(handle) => {
                if let (Some(interface), Ok(())) = (&mut self.0[at(*handle)], answer(bytes)) {
                    interface.descriptors.remove(handle);
                }
            }
            _ => {}
        }
    }

    /// Whether the agent couldn't open an interface for want of something.
    pub(crate) fn was_refused_space(command: &Command<Claim>, bytes: &[u8]) -> bool {
        let is_open = matches!(command, Command::Open(..));
        is_open && matches!(answer::<(Handle, Limits)>(bytes), Err(Error::NoSpace))
    }

    fn open(&mut self, handle: Handle, options: NiOptions, limits: Limits) {
        self.0[at(handle)].get_or_insert_with(|| Interface {
            limits,
            logical: options.contains(NiOptions::LOGICAL),
            ranks: 0,
            descriptors: HashMap::new(),
        });
    }

    fn bind(&mut self, handle: Handle, spec: &DescriptorSpec<Claim>) {
        if let Some(interface) = &mut self.0[at(handle)] {
            let descriptor = Descriptor {
                length: spec.buffer.length(),
                options: spec.options,
                queue: spec.queue != Handle::EQ_NONE,
                counter: spec.counter != Handle::CT_NONE,
            };
            interface.descriptors.insert(handle, descriptor);
        }
    }

    /// Whether the agent will carry it out, by all that is known.
    pub(crate) fn allows(&self, transfer: &Transfer) -> bool {
        let Some(interface) = &self.0[at(transfer.md())] else {
            return false;
        };
        transfer.check_alone(&interface.limits).is_ok()
            && interface.reaches(transfer.target)
            && interface.has_source(transfer)
            && interface.has_sink(transfer)
    }
}

impl Interface {
    fn reaches(&self, target: ProcessId) -> bool {
        match self.logical {
            true => (target.rank() as usize) < self.ranks,
            false => target.nid != ProcessId::NID_ANY && target.pid != ProcessId::PID_ANY,
        }
    }

    /// A volatile source is read before the call returns: that has to be asked for.
    fn has_source(&self, transfer: &Transfer) -> bool {
        if transfer.verb == Verb::Get {
            return true;
        }
        let acknowledged = matches!(transfer.verb, Verb::Put | Verb::Atomic);
        self.descriptors
            .get(&transfer.source)
            .is_some_and(|source| {
                let Descriptor {
                    options,
                    queue,
                    counter,
                    ..
                } = *source;
                source.has(transfer.source_offset, transfer.length)
                    && !options.contains(MdOptions::VOLATILE)
                    && (!acknowledged || transfer.ack_deliverable(options, queue, counter))
            })
    }

    fn has_sink(&self, transfer: &Transfer) -> bool {
        if matches!(transfer.verb, Verb::Put | Verb::Atomic) {
            return true;
        }
        let sink = self.descriptors.get(&transfer.sink);
        sink.is_some_and(|sink| sink.has(transfer.sink_offset, transfer.length))
    }
}

impl Descriptor {
    fn has(&self, offset: u64, length: u64) -> bool {
        offset
            .checked_add(length)
            .is_some_and(|end| end <= self.length)
    }
}

fn at(handle: Handle) -> usize {
    handle.interface().position()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::to_bytes;
    use crate::testing::put_of;
    use lintel_claim::Region;
    use lintel_memory::Buffer;
    use lintel_types::{AckRequest, InterfaceNumber, Kind};

    const TARGET: ProcessId = ProcessId::new(1, 2);
    const BOUND: u64 = 100;

    fn handle(kind: Kind) -> Handle {
        let [number, ..] = InterfaceNumber::ALL;
        Handle::new(kind, number, 3, 0)
    }

    fn answered<T: serde::Serialize>(value: T) -> Vec<u8> {
        to_bytes(&Ok::<T, Error>(value))
    }

    /// A cache that has seen an interface opened, and a descriptor bound with these options.
    fn cache(kind: NiOptions, options: MdOptions) -> RemoteCache {
        let mut cache = RemoteCache::default();
        let opened = answered((handle(Kind::Interface), Limits::DEFAULT));
        cache.learn(
            &Command::Open(0, kind.bits(), ProcessId::PID_ANY, None),
            &opened,
        );
        let memory = Region::new(BOUND);
        let spec = DescriptorSpec {
            buffer: Buffer::Contiguous(memory.claim()),
            options,
            queue: handle(Kind::EventQueue),
            counter: Handle::CT_NONE,
        };
        let bind = Command::DescriptorBind(handle(Kind::Interface), spec);
        cache.learn(&bind, &answered(handle(Kind::MemoryDescriptor)));
        cache
    }

    fn put(length: u64) -> Transfer {
        put_of(handle(Kind::MemoryDescriptor), TARGET, length)
    }

    #[test]
    fn a_put_that_the_agent_cant_refuse_is_allowed() {
        let cache = cache(NiOptions::PHYSICAL, MdOptions::empty());
        assert!(cache.allows(&put(BOUND)));
        assert!(
            !cache.allows(&put(BOUND + 1)),
            "it is longer than its descriptor"
        );
        let mut far = put(10);
        far.source_offset = u64::MAX;
        assert!(!cache.allows(&far));
        assert!(!RemoteCache::default().allows(&put(1)), "nothing is known");
    }

    #[test]
    fn what_may_be_refused_or_is_volatile_is_asked_for() {
        let volatile = cache(NiOptions::PHYSICAL, MdOptions::VOLATILE);
        assert!(!volatile.allows(&put(1)));
        let cache = cache(NiOptions::PHYSICAL, MdOptions::empty());
        let mut counted = put(1);
        counted.ack = AckRequest::Counting;
        assert!(!cache.allows(&counted), "the descriptor has no counter");
        let mut anywhere = put(1);
        anywhere.target.pid = ProcessId::PID_ANY;
        assert!(!cache.allows(&anywhere));
        let mut get = put(1);
        get.verb = Verb::Get;
        assert!(!cache.allows(&get), "its sink isn't bound");
    }

    #[test]
    fn ranks_are_known_from_the_map() {
        let mut cache = cache(NiOptions::LOGICAL, MdOptions::empty());
        let mut ranked = put(1);
        ranked.target = ProcessId::from_rank(1);
        assert!(!cache.allows(&ranked), "there is no map");
        let map = Command::SetMap(handle(Kind::Interface), vec![TARGET; 2]);
        cache.learn(&map, &to_bytes(&Err::<(), Error>(Error::Ignored)));
        assert!(!cache.allows(&ranked), "the agent has refused it");
        cache.learn(&map, &answered(()));
        assert!(cache.allows(&ranked));
        ranked.target = ProcessId::from_rank(2);
        assert!(!cache.allows(&ranked));
    }

    #[test]
    fn what_was_released_or_closed_is_forgotten() {
        let mut cache = cache(NiOptions::PHYSICAL, MdOptions::empty());
        let release = Command::DescriptorRelease(handle(Kind::MemoryDescriptor));
        cache.learn(&release, &to_bytes(&Err::<(), Error>(Error::InUse)));
        assert!(cache.allows(&put(1)), "it is still bound");
        cache.learn(&release, &answered(()));
        assert!(!cache.allows(&put(1)));
        let mut cache = self::cache(NiOptions::PHYSICAL, MdOptions::empty());
        cache.learn(&Command::Close(handle(Kind::Interface)), &answered(()));
        assert!(!cache.allows(&put(1)));
    }

    #[test]
    fn an_agent_without_space_is_distinguished_from_one_that_refuses() {
        let open = Command::Open(0, 0, 0, None);
        let refused = |error| to_bytes(&Err::<(Handle, Limits), Error>(error));
        assert!(RemoteCache::was_refused_space(
            &open,
            &refused(Error::NoSpace)
        ));
        assert!(!RemoteCache::was_refused_space(
            &open,
            &refused(Error::PidInUse)
        ));
        let close = Command::Close(handle(Kind::Interface));
        assert!(!RemoteCache::was_refused_space(
            &close,
            &refused(Error::NoSpace)
        ));
    }
}
