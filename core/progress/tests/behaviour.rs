//! Who polls, sleeps and is rung, event by event.

use core::time::Duration;
use lintel_progress::{
    BellOrder, HelperNext, Interval, Limits, Orders, Progress, SleepStep, Sleeper, WatcherLook,
    WatcherNext,
};

type Machine = Progress<u32>;

const NOTHING: Orders = Orders {
    bell: None,
    wake_helper: false,
    unpark_watcher: false,
};
/// A poll of the watcher that has found all there was.
const ALL: WatcherLook = WatcherLook::Polled {
    idle: false,
    queued: false,
};
const UNPARKED: WatcherLook = WatcherLook::Unparked { queued: false };

fn machine() -> Machine {
    Progress::new(Limits::default())
}

fn with_watcher() -> Machine {
    let mut machine = machine();
    machine.add_watcher();
    machine
}

/// On time, after so many naps.
fn poll_again(naps: u32, least: Duration) -> HelperNext {
    let slack = Duration::ZERO;
    HelperNext::PollAgain(Interval { naps, least, slack })
}

fn arms(orders: Orders) -> Option<Sleeper> {
    match orders.bell {
        Some(BellOrder::Arm(sleeper)) => Some(sleeper),
        _ => None,
    }
}

#[test]
fn a_caller_that_polls_for_long_disarms_the_bell_and_wakes_the_helper() {
    let mut machine = machine();
    let disarm_after = Limits::default().disarm_after;
    let polls = (1..=disarm_after).filter(|_| machine.on_poll(true, || 0));
    assert_eq!(polls.collect::<Vec<u32>>(), [disarm_after]);
    let orders = machine.disarm();
    assert_eq!(orders.bell, Some(BellOrder::Disarm));
    assert!(orders.wake_helper, "it notices when the caller stops");
    assert!(!machine.on_poll(false, || 0), "nothing is left to disarm");
}

#[test]
fn the_bell_stays_armed_while_another_caller_sleeps() {
    let mut machine = machine();
    assert_eq!(arms(machine.begin_sleep()), Some(Sleeper::Caller));
    assert!(!(0..1000).any(|_| machine.on_poll(true, || 0)));
    let orders = machine.end_sleep();
    assert_eq!(
        orders,
        Orders {
            wake_helper: true,
            ..NOTHING
        }
    );
    assert!(machine.on_poll(true, || 0));
}

#[test]
fn a_poll_in_which_callers_have_moved_long_bodies_disarms_the_bell_at_once() {
    let mut machine = machine();
    let long = Limits::default().disarm_after_bytes;
    assert!(!machine.on_poll(true, || long - 1));
    assert!(
        !machine.on_poll(false, || long),
        "nothing is left to disarm"
    );
    assert!(machine.on_poll(true, || long));
    let _ = (machine.disarm(), machine.begin_sleep());
    assert!(!machine.on_poll(true, || long), "a caller sleeps on it");
}

#[test]
fn the_helper_polls_while_callers_do_then_arms_the_bell_and_sleeps() {
    let mut machine = machine();
    let interval = Limits::default().interval;
    for factor in [1, 2, 4] {
        machine.on_poll(false, || 0);
        let (orders, next) = machine.on_helper_looked(false);
        assert_eq!(next, poll_again(1, interval * factor));
        assert_eq!(orders, NOTHING);
    }
    for _ in 0..2 {
        machine.on_poll(false, || 0);
        let (_, next) = machine.on_helper_looked(false);
        let Limits { naps, slack, .. } = Limits::default();
        let least = Limits::default().longest_interval;
        assert_eq!(next, HelperNext::PollAgain(Interval { naps, least, slack }));
    }
    let (orders, next) = machine.on_helper_looked(false);
    assert_eq!(next, HelperNext::Sleep, "nobody has polled");
    assert_eq!(arms(orders), Some(Sleeper::Helper));
    machine.on_poll(false, || 0);
    let (_, next) = machine.on_helper_looked(false);
    assert_eq!(next, poll_again(1, interval), "intervals start anew");
}

#[test]
fn a_caller_that_leaves_a_transfer_has_the_helper_look_soon_and_often() {
    let mut machine = machine();
    let interval = Limits::default().interval;
    let look = |machine: &mut Machine| {
        machine.on_poll(false, || 0);
        machine.on_helper_looked(false).1
    };
    assert_eq!(
        machine.hurry_helper(),
        NOTHING,
        "a helper that sleeps is rung as ever"
    );
    assert_eq!(look(&mut machine), poll_again(1, interval));
    assert_eq!(machine.hurry_helper(), NOTHING, "it looks soon");
    assert_eq!(look(&mut machine), poll_again(1, interval));
    assert_eq!(look(&mut machine), poll_again(1, interval * 2));
    assert!(machine.helper_looks_seldom());
    assert!(machine.hurry_helper().wake_helper);
    assert!(!machine.hurry_helper().wake_helper, "it was rung");
    for _ in 0..4 {
        machine.restart_intervals();
        assert_eq!(look(&mut machine), poll_again(1, interval));
        assert!(!machine.helper_looks_seldom());
    }
}

#[test]
fn no_look_is_late_where_only_looks_find_what_the_network_brings() {
    let mut machine = with_watcher();
    machine.set_look_cost(Duration::from_secs(1));
    let _ = machine.on_helper_looked(false);
    for _ in 0..8 {
        machine.on_poll(false, || 0);
        let (_, next) = machine.on_helper_looked(false);
        assert_eq!(
            next,
            poll_again(Limits::default().naps, Limits::default().longest_interval)
        );
    }
}

#[test]
fn intervals_stay_short_where_a_watcher_is_parked_meanwhile() {
    let mut machine = with_watcher();
    for _ in 0..4 {
        machine.on_poll(false, || 0);
        let (_, next) = machine.on_helper_looked(false);
        assert_eq!(
            next,
            poll_again(Limits::default().naps, Limits::default().interval)
        );
    }
}

/// The first interval and the last one of a helper whose looks cost so much.
fn intervals(mut machine: Machine, cost: Duration) -> [Duration; 2] {
    machine.set_look_cost(cost);
    let _ = machine.on_helper_looked(false);
    let next = (0..8).map(|_| {
        machine.on_poll(false, || 0);
        match machine.on_helper_looked(false).1 {
            HelperNext::PollAgain(interval) => interval.least,
            other => panic!("callers poll, and it is to {other:?}"),
        }
    });
    let all: Vec<Duration> = next.collect();
    [all[0], all[7]]
}

#[test]
fn the_more_a_look_costs_the_later_it_comes() {
    let limits = Limits::default();
    let [cheap, dear] = [Duration::ZERO, Duration::from_secs(1)];
    let some = Duration::from_micros(20);
    let first = some * limits.first_per_cost;
    assert_eq!(
        intervals(machine(), cheap),
        [limits.interval, limits.longest_interval]
    );
    assert_eq!(intervals(machine(), some), [first, limits.longest_interval]);
    assert_eq!(intervals(machine(), dear), [limits.longest_interval; 2]);
    assert_eq!(intervals(with_watcher(), cheap), [limits.interval; 2]);
    assert_eq!(
        intervals(with_watcher(), some),
        [first, some * limits.last_per_cost]
    );
    assert_eq!(
        intervals(with_watcher(), dear),
        [limits.longest_interval; 2]
    );
}

#[test]
fn the_helper_tries_again_soon_what_found_no_room() {
    let mut machine = machine();
    assert_eq!(machine.on_helper_looked(true), (NOTHING, HelperNext::Retry));
    machine.on_poll(false, || 0);
    assert_eq!(machine.on_helper_looked(true), (NOTHING, HelperNext::Retry));
}

#[test]
fn the_helper_sleeps_once_the_thread_that_polls_says_that_it_stops() {
    let mut machine = machine();
    machine.on_poll(false, || 0);
    assert_eq!(arms(machine.stop_polling()), Some(Sleeper::Helper));
    assert_eq!(machine.on_helper_looked(false).1, HelperNext::Sleep);
    machine.resume_polling();
    machine.on_poll(true, || 0);
    let (_, next) = machine.on_helper_looked(false);
    assert!(matches!(next, HelperNext::PollAgain(_)));
}

#[test]
fn the_helper_leaves_the_bell_to_a_caller_that_sleeps() {
    let mut machine = machine();
    machine.on_poll(false, || 0);
    let _ = machine.begin_sleep();
    let (orders, next) = machine.on_helper_looked(false);
    assert_eq!((orders, next), (NOTHING, HelperNext::Sleep));
}

#[test]
fn the_bell_goes_to_a_caller_that_still_sleeps_and_then_to_the_helper() {
    let mut machine = machine();
    let _ = (machine.begin_sleep(), machine.begin_sleep());
    let orders = machine.end_sleep();
    assert_eq!(arms(orders), Some(Sleeper::Caller));
    assert!(!orders.wake_helper && machine.callers_sleep());
    assert_eq!(machine.on_handed_over(false), NOTHING);
    assert!(machine.on_handed_over(true).wake_helper);
    assert!(machine.end_sleep().wake_helper && !machine.callers_sleep());
}

#[test]
fn a_helper_that_sleeps_beyond_what_is_due_is_woken_once() {
    let mut machine = machine();
    machine.on_helper_sleeps(Some(7));
    assert!(!machine.helper_oversleeps(7));
    assert!(machine.helper_oversleeps(6));
    assert_eq!(machine.helper_deadline(), Some(7));
    machine.on_helper_sleeps(None);
    assert!(machine.helper_oversleeps(7));
    assert!(machine.wake_helper().wake_helper);
    assert_eq!(machine.wake_helper(), NOTHING);
    assert!(!machine.helper_oversleeps(7), "it will look");
}

#[test]
fn who_sleeps_has_the_watcher_watch_and_unparks_it_once() {
    let mut machine = with_watcher();
    assert_eq!(machine.on_watcher_looked(UNPARKED).1, WatcherNext::Park);
    let (orders, _) = machine.on_helper_looked(false);
    assert!(orders.unpark_watcher);
    assert_eq!(machine.on_watcher_looked(UNPARKED).1, WatcherNext::Watch);
    assert!(!machine.begin_sleep().unpark_watcher, "it watches");
    assert_eq!(machine.on_network_idle(), NOTHING);
}

#[test]
fn without_a_network_nobody_is_unparked() {
    let mut machine = machine();
    assert!(!machine.begin_sleep().unpark_watcher);
    assert_eq!(machine.on_network_idle(), NOTHING);
    assert_eq!(machine.on_watcher_looked(ALL), (NOTHING, WatcherNext::Park));
}

#[test]
fn the_watcher_parks_while_callers_poll_unless_they_leave_the_network_to_it() {
    let mut machine = with_watcher();
    assert!(machine.on_network_idle().unpark_watcher);
    machine.on_poll(false, || 0);
    let idle = WatcherLook::Polled {
        idle: true,
        queued: false,
    };
    assert_eq!(machine.on_watcher_looked(idle).1, WatcherNext::Watch);
    machine.on_poll(false, || 0);
    let (orders, next) = machine.on_watcher_looked(ALL);
    assert_eq!(next, WatcherNext::Park);
    assert!(orders.wake_helper, "it notices when callers stop");
    assert!(machine.on_network_idle().unpark_watcher);
    assert_eq!(machine.on_watcher_looked(ALL).1, WatcherNext::Watch);
}

#[test]
fn the_watcher_doesnt_park_for_callers_that_sleep() {
    let mut machine = with_watcher();
    machine.on_poll(false, || 0);
    let _ = machine.begin_sleep();
    assert_eq!(machine.on_watcher_looked(ALL).1, WatcherNext::Watch);
}

#[test]
fn the_watcher_yields_a_while_for_what_is_queued_and_then_sleeps() {
    let mut machine = with_watcher();
    let _ = machine.on_network_idle();
    let queued = WatcherLook::Polled {
        idle: false,
        queued: true,
    };
    let most = Limits::default().watcher_yields;
    for _ in 0..2 {
        let mut nexts = (0..=most).map(|_| machine.on_watcher_looked(queued).1);
        assert!(
            nexts
                .by_ref()
                .take(most as usize)
                .all(|next| next == WatcherNext::Yield)
        );
        assert_eq!(nexts.next(), Some(WatcherNext::Watch));
    }
    let _ = machine.on_watcher_looked(queued);
    let more = machine.on_watcher_looked(WatcherLook::More);
    assert_eq!(more, (NOTHING, WatcherNext::Continue));
    let nexts = (0..most).map(|_| machine.on_watcher_looked(queued).1);
    assert!(
        nexts
            .collect::<Vec<_>>()
            .iter()
            .all(|next| *next == WatcherNext::Yield)
    );
}

#[test]
fn a_process_that_leaves_the_network_says_so() {
    let mut machine = machine();
    assert!(!machine.is_closing());
    machine.close();
    assert!(machine.is_closing());
}

#[test]
fn a_thread_looks_naps_looks_again_and_sleeps_unless_it_is_disturbed() {
    let steps = [
        SleepStep::Look,
        SleepStep::Nap,
        SleepStep::OrderedLook,
        SleepStep::Sleep,
        SleepStep::Awake,
    ];
    for pair in steps.windows(2) {
        assert_eq!(pair[0].next(false), pair[1]);
        assert_eq!(pair[0].next(true), SleepStep::Awake);
    }
    assert_eq!(SleepStep::Awake.next(false), SleepStep::Awake);
}
