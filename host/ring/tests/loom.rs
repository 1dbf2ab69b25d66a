//! The ring's protocol, every interleaving of a few records, under loom:
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test --release -p lintel-ring --test loom --target-dir target/loom
//! ```
//!
//! Loom's atomics can't lie in shared memory, so this is a model: the steps and
//! orderings of `Sender::push` and of `Receiver::peek`, `advance` and `publish_head`, in a
//! ring of three slots and five lines of data. It keeps what the protocol stands on: a commit
//! word is never taken for that of another lap, and a payload is read only as it was written.
#![cfg(loom)]

use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

const SLOTS: usize = 3;
const DATA_LINES: usize = 5;
/// Lines of data behind which the sender wraps if it sees that all is read.
const NEAR_LINES: usize = 3;
/// In a commit word: the payload wraps.
const WRAPS: u64 = 1 << 31;

struct Ring {
    commit: [AtomicU64; SLOTS],
    word: [AtomicU64; SLOTS],
    data: [AtomicU64; DATA_LINES],
    /// Slots in the low half, lines in the high half.
    head: AtomicU64,
}

impl Ring {
    fn new() -> Ring {
        Ring {
            commit: std::array::from_fn(|_| AtomicU64::new(0)),
            word: std::array::from_fn(|_| AtomicU64::new(0)),
            data: std::array::from_fn(|_| AtomicU64::new(0)),
            head: AtomicU64::new(0),
        }
    }
}

/// As `lintel_ring::Position`.
#[derive(Clone, Copy)]
struct Position {
    slot: usize,
    lap: u64,
    data: usize,
    slots: u64,
    lines: u64,
}

impl Position {
    const START: Position = Position {
        slot: 0,
        lap: 1,
        data: 0,
        slots: 0,
        lines: 0,
    };

    fn begin(&self, wraps: bool) -> usize {
        if wraps { 0 } else { self.data }
    }

    fn unused(&self, wraps: bool) -> usize {
        if wraps { DATA_LINES - self.data } else { 0 }
    }

    fn advance(&mut self, lines: usize, wraps: bool) {
        self.slots += 1;
        self.slot += 1;
        if self.slot == SLOTS {
            self.slot = 0;
            self.lap += 1;
        }
        if lines > 0 {
            let unused = self.unused(wraps);
            self.data = self.begin(wraps) + lines;
            self.lines += (unused + lines) as u64;
        }
    }
}

/// As `lintel_ring::Sender`.
struct Sender {
    ring: Arc<Ring>,
    position: Position,
    head_slots: u64,
    head_lines: u64,
    /// It looks for room before it writes.
    looks: bool,
}

impl Sender {
    fn has_room(&self, lines: usize) -> bool {
        self.position.slots - self.head_slots < SLOTS as u64
            && self.position.lines - self.head_lines + lines as u64 <= DATA_LINES as u64
    }

    fn refresh(&mut self) {
        // "ring room"
        let head = self.ring.head.load(Ordering::Acquire);
        (self.head_slots, self.head_lines) = (head & 0xffff_ffff, head >> 32);
    }

    fn wraps(&mut self, lines: usize) -> bool {
        let end = self.position.data + lines;
        if lines == 0 || end <= NEAR_LINES {
            return false;
        }
        if end <= DATA_LINES && self.looks {
            self.refresh();
        }
        let is_read = self.position.lines == self.head_lines;
        end > DATA_LINES || is_read && lines <= self.position.data
    }

    /// A record with `value` in its slot and in each line of its data.
    fn try_push(&mut self, lines: usize, value: u64) -> bool {
        let wraps = self.wraps(lines);
        let (begin, unused) = (self.position.begin(wraps), self.position.unused(wraps));
        if self.looks && !self.has_room(lines + unused) {
            self.refresh();
            if !self.has_room(lines + unused) {
                return false;
            }
        }
        let slot = self.position.slot;
        self.ring.word[slot].store(value, Ordering::Relaxed);
        for line in begin..begin + lines {
            self.ring.data[line].store(value, Ordering::Relaxed);
        }
        let flag = if wraps { WRAPS } else { 0 };
        let commit = flag | (lines as u64) << 16 | self.position.lap;
        self.position.advance(lines, wraps);
        // "ring commit"
        self.ring.commit[slot].store(commit, Ordering::Release);
        true
    }
}

/// As `lintel_ring::Receiver`.
struct Receiver {
    ring: Arc<Ring>,
    position: Position,
}

impl Receiver {
    /// The next record's payload, if it has arrived.
    fn try_pop(&mut self) -> Option<u64> {
        let slot = self.position.slot;
        // "ring commit"
        let commit = self.ring.commit[slot].load(Ordering::Acquire);
        if commit & 0xffff == self.position.lap - 1 {
            return None;
        }
        assert_eq!(commit & 0xffff, self.position.lap, "another record's word");
        let lines = ((commit & (WRAPS - 1)) >> 16) as usize;
        let wraps = commit & WRAPS != 0;
        let value = self.ring.word[slot].load(Ordering::Relaxed);
        let begin = self.position.begin(wraps);
        for line in begin..begin + lines {
            let other = self.ring.data[line].load(Ordering::Relaxed);
            assert_eq!(other, value, "a torn payload");
        }
        self.position.advance(lines, wraps);
        Some(value)
    }

    fn publish_head(&self) {
        let head = self.position.lines << 32 | self.position.slots;
        // "ring room"
        self.ring.head.store(head, Ordering::Release);
    }
}

fn explore(records: &'static [usize]) {
    explore_with(records, true);
}

fn explore_with(records: &'static [usize], looks: bool) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let ring = Arc::new(Ring::new());
        let mut sender = Sender {
            ring: ring.clone(),
            position: Position::START,
            head_slots: 0,
            head_lines: 0,
            looks,
        };
        let sending = thread::spawn(move || {
            for (number, lines) in records.iter().enumerate() {
                while !sender.try_push(*lines, number as u64 + 100) {
                    thread::yield_now();
                }
            }
        });
        let mut receiver = Receiver {
            ring,
            position: Position::START,
        };
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
fn short_records_arrive_in_order_over_two_laps() {
    explore(&[0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn long_records_arrive_whole_where_the_data_ends() {
    explore(&[3, 2, 3, 1]);
}

#[test]
fn long_records_arrive_whole_whether_or_not_the_sender_sees_that_all_is_read() {
    explore(&[2, 2, 2, 1, 2]);
}

#[test]
fn short_and_long_records_take_turns() {
    explore(&[2, 0, 2, 2, 0, 2]);
}

#[test]
#[should_panic]
fn a_sender_that_does_not_look_for_room_overwrites_what_is_not_read() {
    explore_with(&[0, 0, 0, 0, 0, 0, 0], false);
}
