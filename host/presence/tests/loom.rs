//! Falling asleep and ringing, every interleaving, under loom:
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test --release -p lintel-presence --test loom --target-dir target/loom
//! ```
//!
//! A model of `Bell::arm`, `Bell::sleep` and `ring`: loom knows no futex and no
//! `membarrier`. The futex is a lock and a condition; the barrier that the sleeper
//! makes on every processor stands as a fence on each side, which is what it
//! amounts to. A ring that gets lost shows as a deadlock.
#![cfg(loom)]

use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

const HELPER: u32 = 1;
const SLEEPER_BITS: u32 = 7;

struct Shared {
    /// Records committed, in place of a ring.
    records: AtomicU32,
    /// Records that the receiver has seen and reported.
    read: AtomicU32,
    asleep: AtomicU32,
    rings: AtomicU32,
    futex: Mutex<()>,
    woken: Condvar,
    with_barrier: bool,
}

impl Shared {
    fn new(with_barrier: bool) -> Arc<Shared> {
        Arc::new(Shared {
            records: AtomicU32::new(0),
            read: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
            rings: AtomicU32::new(0),
            futex: Mutex::new(()),
            woken: Condvar::new(),
            with_barrier,
        })
    }

    fn barrier(&self) {
        if self.with_barrier {
            fence(Ordering::SeqCst);
        }
    }

    /// Commits a record; rings if the receiver sleeps.
    fn send(&self) {
        self.records.fetch_add(1, Ordering::Release);
        self.barrier();
        self.ring();
    }

    /// Commits a record, and rings later if it hasn't been read by then.
    fn send_with_held_ring(&self) {
        let sent = self.records.fetch_add(1, Ordering::Release) + 1;
        thread::yield_now();
        if self.read.load(Ordering::Acquire) < sent {
            fence(Ordering::SeqCst);
            self.ring();
        }
    }

    fn ring(&self) {
        if let Some(armed) = self.armed() {
            self.wake();
            self.clear(armed);
        }
    }

    /// The bell's word, if it is armed.
    fn armed(&self) -> Option<u32> {
        let word = self.asleep.load(Ordering::Acquire);
        (word & SLEEPER_BITS != 0).then_some(word)
    }

    fn wake(&self) {
        self.rings.fetch_add(1, Ordering::Release);
        drop(self.futex.lock());
        self.woken.notify_all();
    }

    fn clear(&self, armed: u32) {
        let awake = armed & !SLEEPER_BITS;
        let _ = self
            .asleep
            .compare_exchange(armed, awake, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Commits no record, finds the bell armed by what others have sent, or by nothing, and is
    /// killed after so many steps of a ring.
    fn ring_and_die(&self, steps: u32) {
        self.barrier();
        if let (Some(armed), 1..) = (self.armed(), steps) {
            self.wake();
            if steps > 1 {
                self.clear(armed);
            }
        }
    }

    /// Waits for so many records, asleep where there are fewer.
    fn receive(&self, wanted: u32) {
        let mut arming = 0;
        loop {
            let rings = self.rings.load(Ordering::Acquire);
            arming += SLEEPER_BITS + 1;
            // A store would do: but loom doesn't know that a later one comes after a `clear` that has
            // replaced the word before it.
            self.asleep.swap(arming | HELPER, Ordering::Relaxed);
            self.barrier();
            let records = self.records.load(Ordering::Acquire);
            self.read.store(records, Ordering::Release);
            if records >= wanted {
                return;
            }
            let mut guard = self.futex.lock().expect("no panic");
            while self.rings.load(Ordering::Acquire) == rings {
                guard = self.woken.wait(guard).expect("no panic");
            }
        }
    }
}

fn explore(senders: u32, with_barrier: bool) {
    explore_with(senders, with_barrier, Shared::send);
}

fn explore_with(senders: u32, with_barrier: bool, send: fn(&Shared)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let shared = Shared::new(with_barrier);
        let sending: Vec<_> = (0..senders)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || send(&shared))
            })
            .collect();
        shared.receive(senders);
        for sender in sending {
            sender.join().expect("no panic");
        }
    });
}

#[test]
fn who_falls_asleep_is_rung_for_what_was_not_seen() {
    explore(1, true);
}

#[test]
fn two_senders_ring_at_least_once_for_each_sleep() {
    explore(2, true);
}

#[test]
fn a_ring_that_is_held_comes_if_the_record_was_not_read() {
    explore_with(1, true, Shared::send_with_held_ring);
}

#[test]
fn a_sender_that_dies_at_any_step_of_a_ring_leaves_a_bell_that_the_next_one_rings() {
    for steps in 0..3 {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let shared = Shared::new(true);
            let dying = shared.clone();
            let dying = thread::spawn(move || dying.ring_and_die(steps));
            let sending = shared.clone();
            let sending = thread::spawn(move || sending.send());
            shared.receive(1);
            for thread in [dying, sending] {
                thread.join().expect("no panic");
            }
        });
    }
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_barrier_a_ring_is_lost() {
    explore(1, false);
}
