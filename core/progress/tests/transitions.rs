//! Every transition of the state machine, as a snapshot that a reviewer reads.
//!
//! A change that moves a transition shows in `golden/transitions.txt`; rewrite it with
//! `PROGRESS_GOLDEN=write cargo test -p lintel-progress --test transitions` and read what has
//! changed. Times, counts and the network's deadline are left out: the bell is disarmed after
//! the first poll, intervals have one length, and at most one caller sleeps.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use lintel_progress::{
    BellOrder, HelperNext, Limits, Orders, Progress, Sleeper, WatcherLook, WatcherNext,
};

/// The machine, and the bell as its orders and rings leave it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    machine: Progress<()>,
    armed: Option<Sleeper>,
    asleep: bool,
    stopped: bool,
}

impl State {
    fn carry_out(&mut self, orders: Orders) -> String {
        let mut words = String::new();
        match orders.bell {
            Some(BellOrder::Arm(sleeper)) => {
                self.armed = Some(sleeper);
                words += match sleeper {
                    Sleeper::Helper => " arm for helper,",
                    Sleeper::Caller => " arm for caller,",
                };
            }
            Some(BellOrder::Disarm) => {
                self.armed = None;
                words += " disarm,";
            }
            None => {}
        }
        if orders.wake_helper {
            words += " wake helper,";
        }
        if orders.unpark_watcher {
            words += " unpark watcher,";
        }
        words
    }

    /// Each event that can happen now: its name, its orders and the next step, and the state
    /// after it.
    fn transitions(&self) -> Vec<(&'static str, String, State)> {
        let mut all = Vec::new();
        let mut add = |event, change: fn(&mut State) -> String| {
            let mut next = self.clone();
            let mut words = change(&mut next);
            words.truncate(words.trim_end_matches(',').len());
            all.push((event, words, next));
        };
        if self.armed.is_some() {
            add("a sender rings", |state| {
                state.armed = None;
                String::new()
            });
        }
        if !self.stopped {
            add("caller polls", poll);
            add("caller polls, network idle", |state| {
                let orders = state.machine.on_network_idle();
                state.carry_out(orders) + &poll(state)
            });
        }
        if self.asleep {
            add("caller wakes", |state| {
                state.asleep = false;
                let orders = state.machine.end_sleep();
                state.carry_out(orders)
            });
        } else if self.stopped {
            add("caller resumes", |state| {
                state.stopped = false;
                state.machine.resume_polling();
                String::new()
            });
        } else {
            add("caller falls asleep", |state| {
                state.asleep = true;
                let orders = state.machine.begin_sleep();
                state.carry_out(orders)
            });
            add("caller stops", |state| {
                state.stopped = true;
                let orders = state.machine.stop_polling();
                state.carry_out(orders)
            });
        }
        add("helper looks", |state| {
            let (orders, next) = state.machine.on_helper_looked(false);
            let next = match next {
                HelperNext::Retry => " retry",
                HelperNext::PollAgain(_) => " poll again",
                HelperNext::Sleep => " sleep",
            };
            state.carry_out(orders) + next
        });
        add("something is due", |state| {
            let orders = state.machine.wake_helper();
            state.carry_out(orders)
        });
        add("watcher looks", |state| {
            let look = WatcherLook::Polled {
                idle: false,
                queued: false,
            };
            let (orders, next) = state.machine.on_watcher_looked(look);
            let next = match next {
                WatcherNext::Park => " park",
                WatcherNext::Watch => " watch",
                WatcherNext::Yield => " yield",
                WatcherNext::Continue => " continue",
            };
            state.carry_out(orders) + next
        });
        all
    }

    fn name(&self) -> String {
        let callers = match (self.asleep, self.stopped) {
            (true, _) => "asleep",
            (_, true) => "stopped",
            _ if self.machine.have_polled() => "polling",
            _ => "away",
        };
        let helper = match self.machine.helper_polls() {
            true => "polls",
            false => "sleeps",
        };
        let bell = match self.armed {
            Some(Sleeper::Helper) => "helper",
            Some(Sleeper::Caller) => "caller",
            None => "-",
        };
        let watcher = match self.machine.is_watching() {
            true => "watches",
            false => "parked",
        };
        format!("caller {callers}, helper {helper}, bell {bell}, watcher {watcher}")
    }
}

fn poll(state: &mut State) -> String {
    match state.machine.on_poll(state.armed.is_some(), || 0) {
        true => {
            let orders = state.machine.disarm();
            state.carry_out(orders)
        }
        false => String::new(),
    }
}

/// All transitions by the state they leave, in words; those that change and order nothing are
/// left out.
fn table() -> String {
    let mut machine = Progress::new(Limits {
        disarm_after: 1,
        longest_interval: Limits::default().interval,
        ..Limits::default()
    });
    machine.add_watcher();
    let first = State {
        machine,
        armed: None,
        asleep: false,
        stopped: false,
    };
    let mut seen = std::collections::HashSet::from([first.clone()]);
    let mut open = VecDeque::from([first]);
    let mut lines = BTreeMap::<String, Vec<String>>::new();
    while let Some(state) = open.pop_front() {
        for (event, orders, next) in state.transitions() {
            let colon = if orders.is_empty() { "" } else { ":" };
            let line = format!("--{event}{colon}{orders}--> {}", next.name());
            let lines = lines.entry(state.name()).or_default();
            if (next != state || !orders.is_empty()) && !lines.contains(&line) {
                lines.push(line);
            }
            if seen.insert(next.clone()) {
                open.push_back(next);
            }
        }
    }
    let mut table = String::new();
    for (from, mut lines) in lines {
        lines.sort();
        writeln!(table, "{from}\n    {}\n", lines.join("\n    ")).expect("it is a string");
    }
    table
}

#[test]
fn transitions_are_those_of_the_snapshot() {
    let now = table();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/transitions.txt");
    if std::env::var("PROGRESS_GOLDEN").as_deref() == Ok("write") {
        fs::write(&golden, &now).expect("the snapshot can be written");
    }
    let before = fs::read_to_string(&golden).expect("there is a snapshot");
    assert_eq!(
        now, before,
        "a transition has moved; see the head of this file"
    );
}
