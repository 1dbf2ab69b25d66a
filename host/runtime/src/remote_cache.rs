//! What a client remembers of the answers that its agent gave, so that it can tell by
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
