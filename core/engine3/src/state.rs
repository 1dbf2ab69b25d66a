//! What an interface holds, as data for tools.

use crate::Interface;
use crate::initiator::InFlight;
use alloc::vec::Vec;
use lintel_memory::Span;
use lintel_snapshot::{
    EntryState, InterfaceState, MOST_EXAMPLES, MOST_LISTED, OperationState, PortalState,
    QueueState, first_of,
};
use lintel_tables::OrderedMatchList;
use lintel_types::portals3::{NID_ANY, PID_ANY};
use lintel_types::{Kind, ProcessId};

impl<S: Span> Interface<S> {
    /// What it holds now. `lengths` has the index of each queue, the events in it, and those that
    /// it has room for.
    pub fn state(&self, lengths: &[(usize, usize, usize)]) -> InterfaceState {
        let operations = self.operations.iter().map(|(_, operation)| operation);
        let operations = operations.take(MOST_EXAMPLES).map(InFlight::state);
        let lists = self.portals.iter().enumerate();
        let lists = lists.filter(|(_, list)| !list.is_empty());
        let portals = lists.map(|(index, list)| self.portal_state(index, list));
        let (portals, more_portals) = first_of(portals.collect(), MOST_LISTED);
        let queues = lengths.iter().filter_map(|queue| self.queue_state(*queue));
        let (queues, more_queues) = first_of(queues.collect(), MOST_LISTED);
        InterfaceState {
            portals3: true,
            matching: true,
            drops: u32::try_from(self.status.dropped.count()).unwrap_or(u32::MAX),
            requests: self.work.requests,
            responses: self.work.responses,
            events: self.work.events,
            pending: count(self.operations.len()),
            operations: operations.collect(),
            portals,
            more_portals,
            queues,
            more_queues,
            ..InterfaceState::default()
        }
    }

    fn portal_state(&self, index: usize, list: &OrderedMatchList) -> PortalState {
        let entries = list.iter().take(MOST_EXAMPLES);
        let entries = entries.filter_map(|(slot, match_bits, ignore_bits)| {
            Some(EntryState {
                match_bits,
                ignore_bits,
                source: named(self.entries.at(slot.into())?.source()),
            })
        });
        PortalState {
            index: index as u16,
            enabled: true,
            priority: count(list.len()),
            entries: entries.collect::<Vec<_>>(),
            ..PortalState::default()
        }
    }

    fn queue_state(&self, (index, fill, size): (usize, usize, usize)) -> Option<QueueState> {
        let index = u16::try_from(index).ok()?;
        let generation = self.queues.generation(index.into())?;
        Some(QueueState {
            handle: self.handle(Kind::EventQueue, generation, index).0,
            size: size as u64,
            fill: fill as u64,
        })
    }
}

impl InFlight {
    fn state(&self) -> OperationState {
        OperationState {
            target: self.target(),
            length: self.length(),
            fetches: self.fetches(),
        }
    }
}

/// With the wildcards that tools know, which are Portals 4's.
fn named(process: ProcessId) -> ProcessId {
    let nid = match process.nid {
        NID_ANY => ProcessId::NID_ANY,
        nid => nid,
    };
    let pid = match process.pid {
        PID_ANY => ProcessId::PID_ANY,
        pid => pid,
    };
    ProcessId::new(nid, pid)
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_is_one_that_tools_know() {
        let any = ProcessId::new(NID_ANY, PID_ANY);
        let expected = ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY);
        assert_eq!(named(any), expected);
        let one = ProcessId::new(7, 8);
        assert_eq!(named(one), one);
    }
}
