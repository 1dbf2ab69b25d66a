//! The ring's protocol, every interleaving of a few records, under loom:
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test --release -p lintel-ring --test loom --target-dir target/loom
//! ```
//!
//! Loom's atomics can't lie in shared memory, so this is a model: the steps and
//! orderings of `Sender::push` and of `Receiver::peek`, `advance` and `publish`, in a
//! ring of seven lines. A line is a commit word and one word of payload. It keeps
//! what the protocol stands on: a commit word is never taken for another's, and a
//! payload is read only as it was written.
#![cfg(loom)]

use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

const LINES: usize = 7;
const SKIP: u64 = 0xff << 32;

struct Ring {
    commit: [AtomicU64; LINES],
    payload: [AtomicU64; LINES],
    head: AtomicU64,
}

impl Ring {
    fn new() -> Ring {
        Ring {
            commit: std::array::from_fn(|_| AtomicU64::new(0)),
            payload: std::array::from_fn(|_| AtomicU64::new(0)),
            head: AtomicU64::new(0),
        }
    }
}

/// As `lintel_ring::Sender`.
struct Sender {
    ring: Arc<Ring>,
    at: usize,
    tail: u64,
    head: u64,
    sequence: u64,
    clears: bool,
}

impl Sender {
    fn new(ring: Arc<Ring>, clears: bool) -> Sender {
        Sender {
            ring,
            at: 0,
            tail: 0,
            head: 0,
            sequence: 1,
            clears,
        }
    }

    /// A record of so many lines, each with `value` as its payload.
    fn try_push(&mut self, lines: usize, value: u64) -> bool {
        let skipped = if self.at + lines > LINES {
            LINES - self.at
        } else {
            0
        };
        let wanted = (lines + skipped + 2) as u64;
        if LINES as u64 - (self.tail - self.head) < wanted {
            // "ring room"
            self.head = self.ring.head.load(Ordering::Acquire);
            if LINES as u64 - (self.tail - self.head) < wanted {
                return false;
            }
        }
        if skipped > 0 {
            self.clear(0);
            self.commit(SKIP, skipped, 0);
        }
        let behind = (self.at + lines) % LINES;
        self.clear(behind);
        for line in self.at..self.at + lines {
            // A payload may look like any commit word.
            if line > self.at {
                self.ring.commit[line].store(self.sequence + 1, Ordering::Relaxed);
            }
            self.ring.payload[line].store(value, Ordering::Relaxed);
        }
        self.commit((lines as u64) << 16, lines, behind);
        self.clear((self.at + 1) % LINES);
        true
    }

    fn clear(&self, line: usize) {
        if self.clears {
            self.ring.commit[line].store(0, Ordering::Relaxed);
        }
    }

    fn commit(&mut self, first: u64, lines: usize, behind: usize) {
        let record = self.at;
        self.at = behind;
        self.tail += lines as u64;
        let commit = first | self.sequence;
        self.sequence += 1;
        // "ring commit"
        self.ring.commit[record].store(commit, Ordering::Release);
    }
}

/// As `lintel_ring::Receiver`.
struct Receiver {
    ring: Arc<Ring>,
    at: usize,
    head: u64,
    sequence: u64,
}

impl Receiver {
    fn new(ring: Arc<Ring>) -> Receiver {
        Receiver {
            ring,
            at: 0,
            head: 0,
            sequence: 1,
        }
    }

    /// The next record's payload, if it has arrived.
    fn try_pop(&mut self) -> Option<u64> {
        loop {
            // "ring commit"
            let commit = self.ring.commit[self.at].load(Ordering::Acquire);
            if commit == 0 {
                return None;
            }
            assert_eq!(commit & 0xffff, self.sequence, "another record's word");
            if commit & SKIP == SKIP {
                self.advance(LINES - self.at);
                continue;
            }
            let lines = (commit >> 16) as usize;
            let value = self.ring.payload[self.at].load(Ordering::Relaxed);
            for line in self.at..self.at + lines {
                let other = self.ring.payload[line].load(Ordering::Relaxed);
                assert_eq!(other, value, "a torn payload");
            }
            self.advance(lines);
            return Some(value);
        }
    }

    fn advance(&mut self, lines: usize) {
        self.at = (self.at + lines) % LINES;
        self.head += lines as u64;
        self.sequence += 1;
    }

    fn publish_head(&self) {
        // "ring room"
        self.ring.head.store(self.head, Ordering::Release);
    }
}

fn explore(records: &'static [usize]) {
    explore_with(records, true);
}

fn explore_with(records: &'static [usize], clears: bool) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let ring = Arc::new(Ring::new());
        let mut sender = Sender::new(ring.clone(), clears);
        let sending = thread::spawn(move || {
            for (number, lines) in records.iter().enumerate() {
                while !sender.try_push(*lines, number as u64 + 100) {
                    thread::yield_now();
                }
            }
        });
        let mut receiver = Receiver::new(ring);
        for number in 0..records.len() {
            let value = loop {
                match receiver.try_pop() {
                    Some(value) => break value,
                    None => {
                        receiver.publish_head();
                        thread::yield_now();
                    }
                }
            };
            assert_eq!(value, number as u64 + 100);
        }
        sending.join().expect("no panic");
    });
}

#[test]
fn short_records_arrive_in_order_over_a_lap() {
    explore(&[1, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn long_records_arrive_whole_where_the_lap_ends() {
    explore(&[3, 2, 3, 1]);
}

#[test]
fn a_record_behind_a_skipped_rest_is_not_overlooked() {
    explore(&[2, 2, 2, 2, 1]);
}

#[test]
#[should_panic(expected = "another record's word")]
fn without_cleared_words_an_old_lap_is_taken_for_a_record() {
    explore_with(&[2, 2, 2, 1, 1, 1], false);
}
