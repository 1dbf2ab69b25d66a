//! The event queue against a list kept sorted.

use lintel_sim_kernel::{SimTime, TimingWheel};
use proptest::prelude::*;

/// The plain thing: a list in order of time, a new event behind its equals.
#[derive(Default)]
struct SortedList(Vec<(SimTime, u32)>);

impl SortedList {
    fn push(&mut self, when: SimTime, event: u32) {
        let place = self.0.partition_point(|&(other, _)| other <= when);
        self.0.insert(place, (when, event));
    }

    fn pop_due(&mut self, limit: SimTime) -> Option<(SimTime, u32)> {
        let &(when, _) = self.0.first()?;
        (when <= limit).then(|| self.0.remove(0))
    }
}

#[derive(Clone, Debug)]
enum Action {
    Push(u64),
    Pop,
    PopWithin(u64),
}

/// Waits of every order of magnitude, many of them equal.
fn wait() -> impl Strategy<Value = u64> {
    let quantum = prop_oneof![
        Just(0),
        Just(25_600),
        Just(60_000),
        Just(64),
        Just(256),
        Just(65_536),
        Just(1 << 18),
    ];
    let any = (0u32..44, any::<u64>()).prop_map(|(bits, n)| n & ((1 << bits) - 1));
    prop_oneof![3 => quantum, 2 => any]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => wait().prop_map(Action::Push),
        3 => Just(Action::Pop),
        1 => wait().prop_map(Action::PopWithin),
    ]
}

proptest! {
    #[test]
    fn events_leave_as_from_a_sorted_list(actions in prop::collection::vec(action(), 0..600)) {
        let mut queue = TimingWheel::new();
        let mut oracle = SortedList::default();
        let mut now = 0;
        for (event, action) in (0u32..).zip(actions) {
            match action {
                Action::Push(wait) => {
                    queue.push(SimTime::from_ps(now + wait), event);
                    oracle.push(SimTime::from_ps(now + wait), event);
                }
                Action::Pop => {
                    let popped = oracle.pop_due(SimTime::NEVER);
                    prop_assert_eq!(queue.pop_due(SimTime::NEVER), popped);
                    now = popped.map_or(now, |(when, _)| when.as_ps());
                }
                Action::PopWithin(wait) => {
                    now += wait;
                    let limit = SimTime::from_ps(now);
                    loop {
                        let popped = oracle.pop_due(limit);
                        prop_assert_eq!(queue.pop_due(limit), popped);
                        if popped.is_none() {
                            break;
                        }
                    }
                }
            }
            prop_assert_eq!(queue.len(), oracle.0.len());
        }
    }
}

#[test]
fn equal_times_keep_the_order_in_which_they_came() {
    let mut queue = TimingWheel::new();
    let when = SimTime::from_ps(1_000_003);
    for event in 0..50 {
        queue.push(when, event);
        queue.push(SimTime::from_ps(2_000_000 + event), 1_000 + event);
    }
    assert_eq!(queue.pop_due(when), Some((when, 0)));
    queue.push(when, 50);
    for event in 1..=50 {
        assert_eq!(queue.pop_due(when), Some((when, event)));
    }
    assert_eq!(queue.pop_due(when), None);
    assert_eq!(queue.len(), 50);
}

#[test]
fn the_last_picosecond_is_kept() {
    let mut queue = TimingWheel::new();
    queue.push(SimTime::NEVER, "last");
    queue.push(SimTime::START, "first");
    assert_eq!(
        queue.pop_due(SimTime::START),
        Some((SimTime::START, "first"))
    );
    assert_eq!(queue.pop_due(SimTime::from_ps(u64::MAX - 1)), None);
    assert_eq!(
        queue.pop_due(SimTime::NEVER),
        Some((SimTime::NEVER, "last"))
    );
    assert!(queue.is_empty());
}
