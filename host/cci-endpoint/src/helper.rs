//! The thread that makes progress while no thread of the application polls.

use crate::shared::Shared;
use lintel_presence::{Bell, LastLook, Sleeper};
use lintel_runtime::{EndpointCounts, publish_endpoint};
use lintel_snapshot::{EndpointState, MOST_PEERS, Snapshot, first_of};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often it looks whether the application still polls.
const INTERVAL: Duration = Duration::from_millis(1);
/// The longest sleep: what was sent meanwhile may have a timeout that ends earlier.
const LONGEST: Duration = Duration::from_millis(50);
/// How soon it tries again to send what found no room.
const RETRY: Duration = Duration::from_micros(200);
/// How often it looks whether peers are alive.
const PEERS: Duration = Duration::from_millis(250);
/// Polls within an interval by which an application counts as polling.
const POLLS: u32 = 8;

pub(crate) fn run<T>(shared: &Shared<T>) {
    let (mut seen, mut was_polled, mut checked) = (0, false, Instant::now());
    while !shared.stops.load(Ordering::Acquire) {
        if checked.elapsed() >= PEERS {
            checked = Instant::now();
            shared.lock().around.link.wake().check_peers();
            publish(shared);
        }
        answer_snapshot(shared);
        let polls = shared.polls.load(Ordering::Relaxed);
        let is_polled = polls.wrapping_sub(seen) >= POLLS;
        seen = polls;
        if is_polled != was_polled {
            shared.lock().is_polled = is_polled;
            was_polled = is_polled;
        }
        if is_polled {
            shared.sleep_deaf(INTERVAL);
            continue;
        }
        match &shared.bell {
            Some(bell) => sleep_on_bell(shared, bell),
            None => sleep_on_socket(shared),
        }
    }
}

/// Publishes what the endpoint holds, for `lintel info --resources`.
fn publish<T>(shared: &Shared<T>) {
    let Some(statistics) = &shared.statistics else {
        return;
    };
    let state = shared.lock();
    let (rules, around) = (state.rules.resources(), &state.around);
    let held = lintel_nal::Resources {
        bytes: around.bytes(),
        ..around.link.resources()
    };
    let counts = EndpointCounts {
        connections: rules.connections as u64,
        pending: rules.pending.into(),
        held: rules.held.into(),
    };
    publish_endpoint(statistics, &held, &counts);
}

/// Writes a snapshot, if a tool has asked for one.
fn answer_snapshot<T>(shared: &Shared<T>) {
    let Some(statistics) = &shared.statistics else {
        return;
    };
    let Some(asked) = statistics.snapshot_asked() else {
        return;
    };
    let state = shared.lock();
    let rules = state.rules.resources();
    let (peers, more_peers) = first_of(state.around.link.traffic(), MOST_PEERS);
    let snapshot = Snapshot {
        endpoint: Some(EndpointState {
            connections: rules.connections as u64,
            pending: rules.pending.into(),
            held: rules.held.into(),
        }),
        peers,
        more_peers,
        ..Snapshot::default()
    };
    statistics.answer_snapshot(asked, &snapshot.to_bytes());
}

/// Progress until nothing arrives; how long it may sleep then.
fn service<T>(shared: &Shared<T>) -> Duration {
    let mut state = shared.lock();
    while state.progress() {}
    state.check_time();
    state.update_handle();
    let has_queued = state.around.link.flush();
    state.sleeps_for(if has_queued { RETRY } else { LONGEST })
}

fn sleep_on_bell<T>(shared: &Shared<T>, bell: &Bell) {
    let rings = bell.rings(Sleeper::Helper);
    bell.arm(Sleeper::Helper);
    bell.fall_asleep(Sleeper::Helper, rings, || {
        LastLook::Nothing(Some(service(shared)))
    });
}

fn sleep_on_socket<T>(shared: &Shared<T>) {
    let length = service(shared);
    let Some(socket) = &shared.socket else {
        return shared.sleep_deaf(length);
    };
    let groups = shared.lock().around.groups.sockets();
    let wake = shared.wake.as_fd();
    let mut watched = vec![
        PollFd::new(socket, PollFlags::IN),
        PollFd::from_borrowed_fd(wake, PollFlags::IN),
    ];
    watched.extend(groups.iter().map(|group| PollFd::new(group, PollFlags::IN)));
    let timeout = timespec(length);
    // However it ends, the socket is looked at again.
    let _ = poll(&mut watched, Some(&timeout));
}

impl<T> Shared<T> {
    /// Sleeps; only `stop` wakes it.
    fn sleep_deaf(&self, length: Duration) {
        let mut watched = [PollFd::new(&self.wake, PollFlags::IN)];
        let _ = poll(&mut watched, Some(&timespec(length)));
    }
}

fn timespec(length: Duration) -> Timespec {
    Timespec {
        tv_sec: length.as_secs() as i64,
        tv_nsec: length.subsec_nanos().into(),
    }
}
