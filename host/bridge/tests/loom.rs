//! The queue of events, the queue of posts and the doorbell, every interleaving, under loom:
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test --release -p lintel-bridge --test loom --target-dir target/loom
//! ```
//!
//! This is the crate's own code, included file by file, on loom's atomics; queues are
//! smaller and events shorter there (`cfg!(loom)`). Two things stand for others. Loom has no
//! `SeqCst` accesses, so each is an access between two fences, which gives the one order
//! that the doorbell needs. It knows no futex: that is a lock and a condition, with sleepers
//! by the address of their word. A wake-up that gets lost shows as a deadlock.
#![cfg(loom)]
#![allow(dead_code)] // the files are included whole

#[path = "../src/doorbell.rs"]
mod doorbell;
#[path = "../src/post_queue.rs"]
mod post_queue;
#[path = "../src/queue.rs"]
mod queue;

use doorbell::{Disconnected, Doorbell};
use lintel_types::{Event, EventKind};
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;
use post_queue::PostQueue;
use queue::{QueueEnds, Slot, Slots, Taken};
use sync::{AtomicU32, AtomicU64, Ordering};

/// In the place of `src/sync.rs`.
mod sync {
    pub(crate) use loom::sync::atomic::Ordering;
    use loom::sync::atomic::fence;

    /// Loom's orderings of an access, and whether fences stand around it.
    fn parts(ordering: Ordering, weaker: Ordering) -> (Ordering, bool) {
        match ordering {
            Ordering::SeqCst => (weaker, true),
            ordering => (ordering, false),
        }
    }

    fn fenced<T>(is_fenced: bool, access: impl FnOnce() -> T) -> T {
        if is_fenced {
            fence(Ordering::SeqCst);
        }
        let value = access();
        if is_fenced {
            fence(Ordering::SeqCst);
        }
        value
    }

    macro_rules! atomic {
        ($name:ident, $value:ty) => {
            #[derive(Debug)]
            pub(crate) struct $name(loom::sync::atomic::$name);

            impl $name {
                pub(crate) fn new(value: $value) -> Self {
                    $name(loom::sync::atomic::$name::new(value))
                }

                pub(crate) fn load(&self, ordering: Ordering) -> $value {
                    let (ordering, is_fenced) = parts(ordering, Ordering::Acquire);
                    fenced(is_fenced, || self.0.load(ordering))
                }

                pub(crate) fn store(&self, value: $value, ordering: Ordering) {
                    let (ordering, is_fenced) = parts(ordering, Ordering::Release);
                    fenced(is_fenced, || self.0.store(value, ordering));
                }

                pub(crate) fn swap(&self, value: $value, ordering: Ordering) -> $value {
                    let (ordering, is_fenced) = parts(ordering, Ordering::AcqRel);
                    fenced(is_fenced, || self.0.swap(value, ordering))
                }

                pub(crate) fn fetch_add(&self, value: $value, ordering: Ordering) -> $value {
                    let (ordering, is_fenced) = parts(ordering, Ordering::AcqRel);
                    fenced(is_fenced, || self.0.fetch_add(value, ordering))
                }

                pub(crate) fn fetch_sub(&self, value: $value, ordering: Ordering) -> $value {
                    let (ordering, is_fenced) = parts(ordering, Ordering::AcqRel);
                    fenced(is_fenced, || self.0.fetch_sub(value, ordering))
                }

                pub(crate) fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.0.compare_exchange(current, new, success, failure)
                }
            }
        };
    }

    atomic!(AtomicU32, u32);
    atomic!(AtomicU64, u64);
}

/// In the place of `src/futex.rs`.
mod futex {
    use crate::sync::{AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};
    use std::time::Duration;

    /// Sleeping threads, each as the address of its word and a number of its own.
    struct Sleepers {
        waiting: Vec<(usize, u32)>,
        next: u32,
    }

    loom::lazy_static! {
        static ref SLEEPERS: Mutex<Sleepers> = Mutex::new(Sleepers { waiting: Vec::new(), next: 0 });
        static ref WOKEN: Condvar = Condvar::new();
    }

    fn address(word: &AtomicU32) -> usize {
        std::ptr::from_ref(word) as usize
    }

    pub(crate) fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
        assert_eq!(timeout, None, "loom has no time");
        let mut sleepers = SLEEPERS.lock().expect("no panic");
        if word.load(Ordering::SeqCst) != expected {
            return;
        }
        let own = (address(word), sleepers.next);
        sleepers.next += 1;
        sleepers.waiting.push(own);
        while sleepers.waiting.contains(&own) {
            sleepers = WOKEN.wait(sleepers).expect("no panic");
        }
    }

    pub(crate) fn wake_all(word: &AtomicU32) {
        let woken = address(word);
        let mut sleepers = SLEEPERS.lock().expect("no panic");
        sleepers.waiting.retain(|(address, _)| *address != woken);
        WOKEN.notify_all();
    }
}

fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

const SLOTS: usize = 8;

struct Queue {
    ends: QueueEnds,
    slots: [Slot; SLOTS],
}

impl Slots for [Slot; SLOTS] {
    fn count(&self) -> u64 {
        SLOTS as u64
    }

    fn slot(&self, position: u64) -> &[AtomicU64] {
        &self[position as usize % SLOTS]
    }
}

impl Queue {
    fn new(count: u64) -> Arc<Queue> {
        let word = |_| AtomicU64::new(0);
        let queue = Queue {
            ends: QueueEnds::default(),
            slots: std::array::from_fn(|_| std::array::from_fn(word)),
        };
        queue.ends.begin(1, count);
        Arc::new(queue)
    }

    /// Posts events 1 to `last`, each with two words that belong together.
    fn push_all(&self, last: u64) {
        for number in 1..=last {
            let event = Event {
                start: number,
                user_ptr: !number,
                ..Event::new(EventKind::Put)
            };
            self.ends.push(&self.slots, event.to_words());
        }
    }

    /// Takes an event: its number, and whether earlier ones were lost.
    fn pop(&self) -> Option<(u64, bool)> {
        let taken: Taken = self.ends.pop(&self.slots)?;
        let words = taken.words();
        assert_eq!(words[1], !words[0], "the words are of one event");
        Some((words[0], taken.dropped))
    }
}

/// A writer posts three events while readers poll twice each; then the rest is taken.
/// Returns all that was taken.
fn race(queue: &Arc<Queue>, readers: usize) -> Vec<(u64, bool)> {
    let reading: Vec<_> = (0..readers)
        .map(|_| {
            let queue = queue.clone();
            thread::spawn(move || [queue.pop(), queue.pop()])
        })
        .collect();
    queue.push_all(3);
    let mut taken = Vec::new();
    for reader in reading {
        let own: Vec<_> = reader
            .join()
            .expect("no panic")
            .into_iter()
            .flatten()
            .collect();
        assert!(own.is_sorted_by_key(|(number, _)| *number), "{own:?}");
        taken.extend(own);
    }
    taken.extend(std::iter::from_fn(|| queue.pop()));
    taken.sort_unstable();
    taken
}

#[test]
fn every_event_is_taken_whole_and_once() {
    for readers in [1, 2] {
        explore(2, move || {
            let taken = race(&Queue::new(4), readers);
            assert_eq!(taken, [(1, false), (2, false), (3, false)]);
        });
    }
}

#[test]
fn a_full_queue_drops_the_oldest_events_and_says_so() {
    explore(2, || {
        let taken = race(&Queue::new(1), 1);
        let numbers: Vec<u64> = taken.iter().map(|(number, _)| *number).collect();
        assert!(
            numbers.windows(2).all(|pair| pair[0] < pair[1]),
            "{taken:?}"
        );
        assert_eq!(numbers.last(), Some(&3), "the newest stays");
        let lost = numbers.len() < 3;
        assert_eq!(taken.iter().any(|(_, dropped)| *dropped), lost, "{taken:?}");
    });
}

/// A queue of posts with the doorbells of both sides.
struct Mailbox {
    posts: PostQueue,
    requests: Doorbell,
    replies: Doorbell,
    is_closed: AtomicU32,
}

impl Mailbox {
    fn new() -> Arc<Mailbox> {
        Arc::new(Mailbox {
            posts: PostQueue::new(),
            requests: Doorbell::new(),
            replies: Doorbell::new(),
            is_closed: AtomicU32::new(0),
        })
    }

    fn is_alive(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed) == 0
    }

    fn post(&self, command: u8) -> Result<(), Disconnected> {
        let is_alive = || self.is_alive();
        self.posts
            .post(&[command], &self.requests, &self.replies, is_alive)
    }

    /// As `SharedRegion::next_command` and `await_command` in turn.
    fn take(&self, taken: &mut u64) -> Vec<u8> {
        loop {
            if let Some(command) = self.posts.take(taken, &self.replies) {
                return command;
            }
            let has_posts = || self.posts.has_posts(*taken);
            self.requests.sleep_unless(has_posts, None);
        }
    }
}

#[test]
fn posts_beyond_the_free_slots_all_arrive_in_order() {
    explore(3, || {
        let mailbox = Mailbox::new();
        let agent = mailbox.clone();
        let agent = thread::spawn(move || {
            let mut taken = 0;
            for expected in 1..=3 {
                assert_eq!(agent.take(&mut taken), [expected]);
            }
        });
        for command in 1..=3 {
            mailbox.post(command).expect("the agent is alive");
        }
        agent.join().expect("no panic");
    });
}

#[test]
fn a_request_wakes_the_agent_and_its_answer_the_client() {
    explore(3, || {
        let mailbox = Mailbox::new();
        let agent = mailbox.clone();
        let agent = thread::spawn(move || {
            while agent.requests.messages() == 0 {
                let is_requested = || agent.requests.messages() > 0;
                agent.requests.sleep_unless(is_requested, None);
            }
            assert_eq!(agent.requests.length(), 7);
            agent.replies.announce(9);
        });
        mailbox.requests.announce(7);
        let answered = || mailbox.replies.messages() > 0;
        assert_eq!(mailbox.replies.wait_for(answered, || true), Ok(()));
        assert_eq!(mailbox.replies.length(), 9);
        agent.join().expect("no panic");
    });
}

#[test]
fn a_client_that_waits_for_an_agent_that_closes_is_woken() {
    explore(3, || {
        let mailbox = Mailbox::new();
        let watcher = mailbox.clone();
        let watcher = thread::spawn(move || {
            watcher.is_closed.store(1, Ordering::Relaxed);
            watcher.replies.ring();
        });
        let waited = mailbox.replies.wait_for(|| false, || mailbox.is_alive());
        assert_eq!(waited, Err(Disconnected));
        watcher.join().expect("no panic");
    });
}
