//! What tools see of a process: written by the helper when one asks. Nothing is counted for it
//! while messages move; when the last one arrived is noted where a thread stops polling.

use crate::core::Core;
use crate::launcher_waits::thread_awaiting_launcher;
use crate::observed::milliseconds_since;
use crate::owner::Owner;
use crate::protocol::Protocol;
use crate::resources::Placement;
use crate::thread::own_thread;
use lintel_nal::Nal;
use lintel_snapshot::{
    Awaited, CounterTest, InterfaceState, MOST_EXAMPLES, MOST_PEERS, Snapshot, Wait, first_of,
};
use lintel_types::{Handle, InterfaceNumber};
use std::time::Instant;

impl<O: Owner> Core<O> {
    /// Notes whether messages have arrived. To be called often while some do.
    pub(crate) fn note_arrivals(&mut self) {
        let arrivals = self.transports.nal.arrivals();
        if arrivals != self.observed.arrivals {
            self.observed.arrivals = arrivals;
            self.observed.arrived = Some(Instant::now());
        }
    }

    /// The calling thread is going to sleep in a call.
    pub(crate) fn begin_wait(&mut self, awaits: Awaited) {
        self.note_arrivals();
        let wait = Wait {
            thread: own_thread(),
            since_ms: 0,
            awaits,
        };
        self.observed.waits.push((wait, Instant::now()));
    }

    /// The calling thread returns from the call.
    pub(crate) fn end_wait(&mut self) {
        let thread = own_thread();
        let waits = &mut self.observed.waits;
        let Some(at) = waits.iter().position(|(wait, _)| wait.thread == thread) else {
            return;
        };
        let (wait, since) = waits.swap_remove(at);
        if let Some(recorder) = self.transports.nal.recorder() {
            recorder.on_waited(since.elapsed().as_nanos() as u64, wait.awaits);
        }
    }

    /// Writes a snapshot, if a tool has asked for one.
    #[inline]
    pub(crate) fn answer_snapshot(&mut self) {
        if let Some(asked) = self.stats.snapshot_asked() {
            let snapshot = self.snapshot().to_bytes();
            self.stats.answer_snapshot(asked, &snapshot);
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        self.note_arrivals();
        let (peers, more_peers) = first_of(self.transports.nal.traffic(), MOST_PEERS);
        let generic = O::PLACEMENT == Placement::Generic;
        Snapshot {
            idle_ms: self.observed.arrived.map(milliseconds_since),
            generic,
            waits: self.waits(),
            // An agent's own launcher is none of its client's.
            awaits_launcher: (!generic).then(thread_awaiting_launcher).flatten(),
            interfaces: self.interface_states(),
            endpoint: None,
            peers,
            more_peers,
            streams: u32::try_from(self.streams.len()).unwrap_or(u32::MAX),
            granted: u32::try_from(self.grants.len()).unwrap_or(u32::MAX),
        }
    }

    fn interface_states(&mut self) -> Vec<InterfaceState> {
        let state = |number: InterfaceNumber| {
            let (interface, mut effects) = self.interface(number)?;
            Some(interface.state(&mut effects))
        };
        let mut states: Vec<InterfaceState> =
            InterfaceNumber::ALL.into_iter().filter_map(state).collect();
        states.extend(self.protocol.state());
        states
    }

    fn waits(&mut self) -> Vec<Wait> {
        let waits = self.observed.waits.iter().take(MOST_PEERS);
        let mut waits: Vec<Wait> = waits
            .map(|(wait, since)| Wait {
                since_ms: milliseconds_since(*since),
                ..wait.clone()
            })
            .collect();
        for wait in &mut waits {
            if let Awaited::Counters(tests) = &mut wait.awaits {
                tests.iter_mut().for_each(|test| self.read_counter(test));
            }
        }
        waits
    }

    fn read_counter(&mut self, test: &mut CounterTest) {
        let handle = Handle(test.handle);
        let interface = self.interface(handle.interface());
        let value = interface.and_then(|(interface, _)| interface.counter_value(handle).ok());
        if let Some(value) = value {
            (test.success, test.failure) = (value.success, value.failure);
        }
    }
}

/// Waiting for an event in any of the queues.
pub(crate) fn events_in(queues: &[Handle]) -> Awaited {
    let queues = queues.iter().take(MOST_EXAMPLES);
    Awaited::Events(queues.map(|queue| queue.0).collect())
}

/// Waiting for any of the counters to reach its test.
pub(crate) fn counters_at(counters: &[Handle], tests: &[u64]) -> Awaited {
    let each = counters.iter().zip(tests).take(MOST_EXAMPLES);
    let test = each.map(|(counter, test)| CounterTest {
        handle: counter.0,
        test: *test,
        success: 0,
        failure: 0,
    });
    Awaited::Counters(test.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Network, Peer, wait_until};
    use lintel_types::CountingEvent;

    fn snapshot(peer: &Peer) -> Snapshot {
        let snapshot = peer.library.with_core(Core::snapshot);
        snapshot.expect("an interface is open")
    }

    #[test]
    fn a_snapshot_shows_what_a_sleeping_thread_waits_for_and_nothing_once_it_returns() {
        let network = Network::default();
        let one = network.peer(1);
        let library = one.library;
        let counter = library.counter_alloc(one.interface).expect("one is free");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| library.counter_poll(&[counter], &[5], 20_000));
            wait_until("it sleeps", || !snapshot(&one).waits.is_empty());
            let by = CountingEvent {
                success: 4,
                failure: 0,
            };
            library.counter_inc(counter, by).expect("it is live");
            let test = CounterTest {
                handle: counter.0,
                test: 5,
                success: 4,
                failure: 0,
            };
            let awaits = Awaited::Counters(vec![test]);
            assert_eq!(snapshot(&one).waits[0].awaits, awaits);
            library.counter_inc(counter, by).expect("it is live");
            assert!(waits.join().expect("nothing has failed").is_ok());
        });
        assert_eq!(snapshot(&one).waits, []);
    }

    #[test]
    fn a_snapshot_shows_entries_events_and_operations() {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        network
            .is_held
            .store(true, std::sync::atomic::Ordering::SeqCst);
        one.put(&two, 8);
        let seen = &snapshot(&one).interfaces[0];
        let [operation] = seen.operations[..] else {
            panic!("one put is pending: {seen:?}");
        };
        assert_eq!((operation.length, operation.fetches), (8, false));
        network
            .is_held
            .store(false, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(two.event().mlength, 8);
        let seen = &snapshot(&two).interfaces[0];
        assert_eq!(seen.portals[0].priority, 1, "{seen:?}");
        assert_eq!(seen.queues[0].fill, 0, "{seen:?}");
    }
}
