//! Every order of the steps of a sender, callers, the helper and the watcher.
//!
//! The threads here are those of `lintel-runtime`, step by step: what is one atomic access, one
//! section under the lock or one system call there is one step here. A record is visible to
//! the receiver some time after it was committed, at the latest after a barrier, as on
//! processors with store buffers. A caller that computes may do so for ever, and a timeout may
//! pass at any time; a sleep without a timeout ends only by a ring. All states are visited, and
//! in each of them
//!
//! - whatever was sent is seen in the end, though no caller polls of its own accord;
//! - a caller that waits for what has arrived returns in the end;
//! - the bell is armed for the helper only if no caller sleeps.
//!
//! "In the end": a state where it is so can be reached from each state, so it is reached by
//! every fair schedule.

mod threads;

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use threads::{Configuration, State};

/// All states of a configuration, as a graph.
struct Graph {
    states: Vec<Rc<State>>,
    /// For each state, those from which a step leads there that some thread has to make.
    before: Vec<Vec<u32>>,
}

fn explore(configuration: &Configuration) -> Graph {
    let first = Rc::new(State::new(configuration));
    let mut numbers = HashMap::from([(first.clone(), 0)]);
    let mut graph = Graph {
        states: vec![first.clone()],
        before: vec![Vec::new()],
    };
    let mut open = VecDeque::from([(0, first)]);
    while let Some((from, state)) = open.pop_front() {
        state.steps(configuration, |must, next| {
            let to = numbers.get(&next).copied().unwrap_or_else(|| {
                let (to, next) = (graph.states.len() as u32, Rc::new(next));
                numbers.insert(next.clone(), to);
                graph.states.push(next.clone());
                graph.before.push(Vec::new());
                open.push_back((to, next));
                to
            });
            if must {
                graph.before[to as usize].push(from);
            }
        });
    }
    println!("{} states", graph.states.len());
    graph
}

impl Graph {
    /// A state from which no schedule leads to one that is `good`.
    fn stuck(&self, good: impl Fn(&State) -> bool) -> Option<&State> {
        let mut leads: Vec<bool> = self.states.iter().map(|state| good(state)).collect();
        let mut open: Vec<usize> = (0..leads.len()).filter(|at| leads[*at]).collect();
        while let Some(at) = open.pop() {
            for before in &self.before[at] {
                let before = *before as usize;
                if !std::mem::replace(&mut leads[before], true) {
                    open.push(before);
                }
            }
        }
        let stuck = leads.iter().position(|leads| !leads);
        stuck.map(|at| &*self.states[at])
    }
}

fn check(configuration: &Configuration) {
    let graph = explore(configuration);
    for state in &graph.states {
        assert!(state.bell_has_one_owner(), "{state:#?}");
    }
    if let Some(state) = graph.stuck(State::all_is_seen) {
        panic!("never seen: {state:#?}");
    }
    if let Some(state) = graph.stuck(State::nobody_waits_in_vain) {
        panic!("waits for ever: {state:#?}");
    }
}

const SHARED_MEMORY: Configuration = Configuration {
    callers: 1,
    records: 2,
    datagrams: 0,
    disarm_after: 2,
    may_hold_ring: true,
    has_barrier: true,
};

#[test]
fn a_message_is_seen_whatever_a_caller_and_the_helper_do() {
    check(&SHARED_MEMORY);
}

#[test]
fn a_message_is_seen_whatever_two_callers_and_the_helper_do() {
    check(&Configuration {
        callers: 2,
        records: 1,
        disarm_after: 1,
        may_hold_ring: false,
        ..SHARED_MEMORY
    });
}

#[test]
fn a_datagram_is_seen_whatever_a_caller_the_helper_and_the_watcher_do() {
    check(&Configuration {
        records: 0,
        datagrams: 2,
        ..SHARED_MEMORY
    });
}

#[test]
fn a_message_and_a_datagram_are_seen() {
    check(&Configuration {
        records: 1,
        datagrams: 1,
        disarm_after: 1,
        may_hold_ring: false,
        ..SHARED_MEMORY
    });
}

#[test]
#[should_panic(expected = "never seen")]
fn without_the_barrier_a_message_is_missed() {
    check(&Configuration {
        has_barrier: false,
        ..SHARED_MEMORY
    });
}
