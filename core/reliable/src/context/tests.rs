//! Contexts alone, and what they exchange with the other processes of their node.

use super::*;
use crate::congestion::OVERHEAD;

const DATAGRAM: u64 = 1000;
const NOW: Time = Time(1_000_000);
const KB: u64 = 1000;

/// What other processes know, and what is stored.
#[derive(Default)]
struct Shared {
    known: Option<Path>,
    stored: Vec<Path>,
}

impl Paths for Shared {
    fn load(&mut self, _node: u32, _now: Time) -> Option<Path> {
        self.known
    }

    fn store(&mut self, _node: u32, path: &Path) {
        self.stored.push(*path);
    }
}

fn others(window: u64, ssthresh: u64) -> Shared {
    let known = Path {
        window,
        ssthresh,
        users: 2,
        ..Path::default()
    };
    Shared {
        known: Some(known),
        stored: Vec::new(),
    }
}

fn peer(number: u32) -> ProcessId {
    ProcessId::new(number, 7)
}

fn contexts() -> Contexts {
    Contexts::new(Model::Xrc, DATAGRAM)
}

/// A context that has exchanged what it knows: a window of 100 kB, a threshold of 200 kB.
fn synced(contexts: &mut Contexts) -> &mut Context {
    let index = contexts.open(peer(1), NOW);
    let context = contexts.get(index);
    context.sync(NOW, &mut others(100 * KB, 200 * KB));
    context
}

fn window(context: &Context) -> (u64, u64) {
    (context.window.size(), context.window.ssthresh())
}

#[test]
fn each_user_of_a_path_has_its_share_of_the_window() {
    let mut contexts = contexts();
    let index = contexts.open(peer(1), NOW);
    let context = contexts.get(index);
    assert_eq!(context.share(), context.window.size(), "alone");
    context.sync(NOW, &mut others(100 * KB, 200 * KB));
    assert_eq!(context.share(), 50 * KB);
    assert!(context.admits(90 * KB), "one packet always goes");
    context.in_flight = 20 * KB;
    assert!(context.admits(30 * KB));
    assert!(!context.admits(30 * KB + 1));
}

#[test]
fn a_path_that_is_kept_nowhere_changes_nothing() {
    let mut contexts = contexts();
    let index = contexts.open(peer(1), NOW);
    let context = contexts.get(index);
    let before = context.path();
    context.sync(NOW, &mut Shared::default());
    assert_eq!((context.path(), context.synced_at), (before, NOW));
}

#[test]
fn the_first_process_of_a_node_stores_what_it_knows() {
    let mut contexts = contexts();
    let index = contexts.open(peer(1), NOW);
    let context = contexts.get(index);
    context.window.adopt(300 * KB, 400 * KB);
    context.round_trip.srtt = Nanos(5);
    let mut shared = others(0, 0);
    context.sync(NOW, &mut shared);
    let [stored] = shared.stored[..] else {
        panic!("stored {} times", shared.stored.len());
    };
    assert_eq!((stored.window, stored.ssthresh), (300 * KB, 400 * KB));
    assert_eq!((stored.srtt, stored.users), (Nanos(5), 2));
    assert_eq!(context.share(), 150 * KB);
}

#[test]
fn a_process_begins_with_the_window_of_the_others() {
    let mut contexts = contexts();
    let context = synced(&mut contexts);
    assert_eq!(window(context), (100 * KB, 200 * KB));
}

#[test]
fn changes_of_the_window_add_up() {
    let mut contexts = contexts();
    let context = synced(&mut contexts);
    context.window.adopt(120 * KB, 190 * KB);
    let mut shared = others(150 * KB, 260 * KB);
    context.sync(NOW, &mut shared);
    assert_eq!(window(context), (170 * KB, 250 * KB));
    assert_eq!(shared.stored.len(), 1);
    assert_eq!(shared.stored[0].window, 170 * KB);
    // From now on that is known.
    let mut unchanged = others(180 * KB, 250 * KB);
    context.sync(NOW, &mut unchanged);
    assert_eq!(window(context), (180 * KB, 250 * KB));
    assert!(unchanged.stored.is_empty(), "it has nothing to report");
}

#[test]
fn what_others_report_is_kept_within_limits() {
    let least = 2 * (DATAGRAM + OVERHEAD);
    let mut contexts = contexts();
    let context = synced(&mut contexts);
    context.sync(NOW, &mut others(1, 1));
    assert_eq!(window(context), (least, least));
    context.sync(NOW, &mut others(u64::MAX, u64::MAX));
    assert_eq!(window(context), (1 << 20, 1 << 20));
    let mut slow = others(100 * KB, 100 * KB);
    let known = slow.known.as_mut().expect("it was set");
    (known.srtt, known.rttvar) = (Nanos(u64::MAX), Nanos(MAX_ROUND_TRIP + 1));
    known.last_heard = Time(NOW.0 + 1);
    context.sync(NOW, &mut slow);
    assert_eq!(context.round_trip.srtt, Nanos(MAX_ROUND_TRIP));
    assert_eq!(context.round_trip.rttvar, Nanos(MAX_ROUND_TRIP));
    assert_eq!(context.last_heard, NOW, "not in the future");
}

#[test]
fn round_trips_are_averaged_if_both_sides_know_one() {
    for (theirs, own, expected) in [(200, 100, 150), (0, 100, 100), (200, 0, 200), (0, 0, 0)] {
        let mut contexts = contexts();
        let context = synced(&mut contexts);
        context.round_trip.srtt = Nanos(own);
        context.round_trip.rttvar = Nanos(own);
        let mut shared = others(100 * KB, 200 * KB);
        let known = shared.known.as_mut().expect("it was set");
        (known.srtt, known.rttvar) = (Nanos(theirs), Nanos(theirs));
        context.sync(NOW, &mut shared);
        let averaged = (context.round_trip.srtt, context.round_trip.rttvar);
        assert_eq!(averaged, (Nanos(expected), Nanos(expected)));
    }
}

#[test]
fn the_latest_sign_of_life_counts_whichever_process_heard_it() {
    let mut contexts = contexts();
    let context = synced(&mut contexts);
    context.last_heard = Time(50);
    for (theirs, latest) in [(40, 50), (60, 60)] {
        let mut shared = others(100 * KB, 200 * KB);
        shared.known.as_mut().expect("it was set").last_heard = Time(theirs);
        context.sync(NOW, &mut shared);
        assert_eq!(context.last_heard, Time(latest));
    }
}

#[test]
fn paths_are_exchanged_at_first_use_and_then_at_intervals() {
    let mut contexts = contexts();
    contexts.share(Box::new(others(100 * KB, 200 * KB)));
    let index = contexts.open(peer(1), NOW);
    assert_eq!(contexts.get_synced(index, NOW).synced_at, NOW);
    let early = Time(NOW.0 + SYNC.0 - 1);
    assert_eq!(contexts.get_synced(index, early).synced_at, NOW);
    let due = Time(NOW.0 + SYNC.0);
    assert_eq!(contexts.get_synced(index, due).synced_at, due);
}

#[test]
fn a_closed_contexts_slot_is_used_again() {
    let mut contexts = contexts();
    assert!(contexts.is_empty());
    let [one, two] = [1, 2].map(|number| contexts.open(peer(number), NOW));
    assert_eq!(contexts.open(peer(2), NOW), two);
    assert_eq!((contexts.len(), contexts.is_empty()), (2, false));
    contexts.close(one);
    assert_eq!(contexts.indices(), [two]);
    let three = contexts.open(peer(3), NOW);
    assert_eq!(three, one);
    assert_eq!(contexts.get(three).key.nid, 3);
    assert_eq!(contexts.get(two).key.nid, 2);
    assert_eq!(contexts.slots.len(), 2);
}

#[test]
fn a_context_is_idle_once_nothing_was_sent_for_long() {
    let mut contexts = contexts();
    let index = contexts.open(peer(1), NOW);
    let long = NOW.after(CONTEXT_IDLE);
    assert!(contexts.idle(Time(long.0 - 1)).is_empty());
    assert_eq!(contexts.idle(long), [index]);
    contexts.get(index).in_flight = 1;
    assert!(contexts.idle(long).is_empty());
}

#[test]
fn memory_grows_with_contexts_and_their_queues() {
    let mut contexts = contexts();
    assert_eq!(contexts.bytes(), 0);
    contexts.open(peer(0), NOW);
    let slots = contexts.slots.capacity() * size_of::<Option<Context>>();
    let names = contexts.bytes() - slots;
    assert_eq!(names, 3 * 13, "a table for three names");
    let indices: Vec<_> = (0..100)
        .map(|number| contexts.open(peer(number), NOW))
        .collect();
    let each = size_of::<Option<Context>>() + size_of::<(ProcessId, u32)>() + 1;
    let held = contexts.bytes();
    assert!((100 * each..=300 * each).contains(&held), "{held} bytes");
    contexts.get(indices[0]).blocked.reserve_exact(64);
    let queue = contexts.bytes() - held;
    assert_eq!(queue, 64 * size_of::<PairId>());
}
