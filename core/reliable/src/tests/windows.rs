//! Pairs that wait for the window of their path.

use super::*;
use crate::endpoint::UNBLOCKED_AT_ONCE;

/// How many of thirty blocked pairs try again when their path has so many bytes in flight.
fn unblocked(bytes: u64) -> usize {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    send(&mut one, START, 2, 10);
    sent(&mut one, START);
    let met = one.find(name(2)).expect("it was met");
    let context = one.pairs[met].context().expect("something is in flight");
    let blocked: Vec<PairId> = (0..30)
        .map(|number| one.pair_of(ProcessId::new(2, 200 + number)))
        .collect();
    let path = one.contexts.get(context);
    path.in_flight = bytes;
    path.blocked.extend(blocked);
    one.unblock(context);
    let left = one.contexts.get(context).blocked.len();
    assert_eq!(one.ready.len() + left, 30);
    one.ready.len()
}

#[test]
fn all_blocked_pairs_try_again_once_nothing_is_in_flight() {
    assert_eq!(unblocked(0), 30);
    assert_eq!(unblocked(1), UNBLOCKED_AT_ONCE);
}
