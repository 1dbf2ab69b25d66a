//! What an interface holds, as data for tools.

use crate::entries::Entry;
use crate::portal::Portal;
use crate::{Host, Interface};
use alloc::vec::Vec;
use lintel_memory::Span;
use lintel_snapshot::{
    CounterState, EntryState, HeaderState, InterfaceState, MOST_EXAMPLES, MOST_LISTED, PortalState,
    QueueState, first_of,
};
use lintel_types::{Kind, List, PortalIndex, ProcessId, QueueIndex};

impl<S: Span> Interface<S> {
    /// What it holds now. Walks all entries and headers.
    pub fn state<H: Host<S>>(&self, host: &mut H) -> InterfaceState {
        let operations = self.operations.iter().map(|(_, operation)| operation);
        let operations = operations.take(MOST_EXAMPLES).map(|o| o.state()).collect();
        let (portals, more_portals) = first_of(self.portal_states(), MOST_LISTED);
        let (queues, more_queues) = first_of(self.queue_states(host), MOST_LISTED);
        let (counters, more_counters) = first_of(self.counter_states(), MOST_LISTED);
        let registers = self.registers;
        let register = |value: i32| u32::try_from(value).unwrap_or(0);
        InterfaceState {
            portals3: false,
            matching: self.matching(),
            logical: self.logical(),
            rank: (self.rank != ProcessId::RANK_ANY).then_some(self.rank),
            drops: register(registers.drops),
            permission_violations: register(registers.permission_violations),
            operation_violations: register(registers.operation_violations),
            requests: self.work.requests,
            responses: self.work.responses,
            events: self.work.events,
            pending: count(self.operations.len()),
            operations,
            triggered: count(self.triggered),
            portals,
            more_portals,
            queues,
            more_queues,
            counters,
            more_counters,
        }
    }

    fn portal_states(&self) -> Vec<PortalState> {
        let allocated = self.portals.iter().enumerate();
        let allocated = allocated.filter_map(|(index, portal)| Some((index, portal.as_ref()?)));
        let mut states: Vec<PortalState> = allocated
            .map(|(index, portal)| self.portal_state(index, portal))
            .collect();
        for (_, entry) in self.entries.iter() {
            let state = state_of(&mut states, entry.spec.portal);
            if let Some(state) = state.filter(|_| is_listed(entry)) {
                push_example(&mut state.entries, entry.state());
            }
        }
        for (_, header) in self.unexpected.iter().filter(|(_, h)| h.receiver.is_none()) {
            let request = &header.request;
            if let Some(state) = state_of(&mut states, request.portal) {
                let example = HeaderState {
                    match_bits: request.match_bits,
                    from: self.initiator(header.from, request.rank),
                    length: request.length,
                };
                push_example(&mut state.headers, example);
            }
        }
        states
    }

    fn portal_state(&self, index: usize, portal: &Portal) -> PortalState {
        PortalState {
            index: index as u16,
            enabled: portal.enabled,
            flow_control: portal.flow_controlled(),
            queue: portal.queue.and_then(|queue| self.queue_handle(queue)),
            landing: portal.landing,
            priority: count(portal.priority.len()),
            overflow: count(portal.overflow.len()),
            unexpected: count(portal.unexpected.len()),
            entries: Vec::new(),
            headers: Vec::new(),
        }
    }

    fn queue_handle(&self, index: QueueIndex) -> Option<u32> {
        let generation = self.queues.generation(index)?;
        Some(self.handle(Kind::EventQueue, generation, index.0).0)
    }

    fn queue_states<H: Host<S>>(&self, host: &mut H) -> Vec<QueueState> {
        let state = |(index, size): (QueueIndex, &u64)| {
            Some(QueueState {
                handle: self.queue_handle(index)?,
                size: *size,
                fill: host.queued(index) as u64,
            })
        };
        self.queues.iter().filter_map(state).collect()
    }

    fn counter_states(&self) -> Vec<CounterState> {
        let counters = self.counters.iter().filter_map(|(index, counter)| {
            let generation = self.counters.generation(index)?;
            let (triggered, threshold) = counter.waiting.state();
            Some(CounterState {
                handle: self.handle(Kind::Counter, generation, index.0).0,
                success: counter.value.success,
                failure: counter.value.failure,
                triggered: count(triggered),
                threshold,
            })
        });
        let mut states: Vec<CounterState> = counters.collect();
        states.sort_by_key(|state| state.triggered == 0);
        states
    }
}

impl<S> Entry<S> {
    fn state(&self) -> EntryState {
        EntryState {
            match_bits: self.spec.match_bits,
            ignore_bits: self.spec.ignore_bits,
            source: self.spec.source,
        }
    }
}

fn state_of(states: &mut [PortalState], index: PortalIndex) -> Option<&mut PortalState> {
    let found = states.binary_search_by_key(&index.0, |state| state.index);
    found.ok().map(|at| &mut states[at])
}

fn is_listed<S>(entry: &Entry<S>) -> bool {
    entry.linked && entry.list == List::Priority
}

fn push_example<T>(examples: &mut Vec<T>, example: T) {
    if examples.len() < MOST_EXAMPLES {
        examples.push(example);
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
