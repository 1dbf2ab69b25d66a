//! The event queue against a binary heap.
//!
//! Each queue holds a number of events; the first is taken and put back a while
//! later, as packets do that go from router to router. Prints millions of such
//! turns a second, the median of five runs each, in turn.
//!
//! `cargo run --release -p lintel-sim-kernel --example queues`
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use lintel_sim_kernel::{SimTime, Stream, Streams, TimingWheel};

const TURNS: u64 = 4_000_000;
const RUNS: usize = 5;

/// An event of the size that simulations have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event(u64, u32);

trait Queue {
    fn push(&mut self, when: u64, event: Event);
    fn pop(&mut self) -> (u64, Event);
}

impl Queue for TimingWheel<Event> {
    fn push(&mut self, when: u64, event: Event) {
        TimingWheel::push(self, SimTime::from_ps(when), event);
    }

    fn pop(&mut self) -> (u64, Event) {
        let (when, event) = self.pop_due(SimTime::NEVER).expect("it is never empty");
        (when.as_ps(), event)
    }
}

/// Numbers its events, so that equal times keep their order.
#[derive(Default)]
struct Heap {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    pushed: u64,
}

impl Queue for Heap {
    fn push(&mut self, when: u64, event: Event) {
        self.heap.push(Reverse((when, self.pushed, event)));
        self.pushed += 1;
    }

    fn pop(&mut self) -> (u64, Event) {
        let Reverse((when, _, event)) = self.heap.pop().expect("it is never empty");
        (when, event)
    }
}

/// How long an event waits.
type Wait = fn(&mut Stream) -> u64;

const WAITS: [(&str, Wait); 3] = [
    // A link's 25.6 ns and a hop's 60 ns (the triggered model's router).
    ("few lengths", |stream| {
        [25_600, 60_000][stream.below(2) as usize]
    }),
    ("0 to 120 ns", |stream| stream.below(120_000)),
    // One in eight is far off, as time-outs and noise are.
    ("0 to 120 ns, or 100 us", |stream| match stream.below(8) {
        0 => 100_000_000 + stream.below(1_000_000),
        _ => stream.below(120_000),
    }),
];

fn turns_per_microsecond<Q: Queue>(mut queue: Q, held: u32, wait: Wait) -> f64 {
    let mut stream = Streams::new(1).stream("queues");
    for i in 0..held {
        queue.push(wait(&mut stream), Event(0, i));
    }
    let begin = Instant::now();
    for _ in 0..TURNS {
        let (when, event) = queue.pop();
        queue.push(when + wait(&mut stream), event);
    }
    TURNS as f64 / begin.elapsed().as_secs_f64() / 1e6
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    println!("| events held | waits | wheels, M/s | heap, M/s | ratio |");
    println!("| --- | --- | --- | --- | --- |");
    for held in [100, 10_000, 200_000] {
        for (name, wait) in WAITS {
            let (mut wheels, mut heap) = (Vec::new(), Vec::new());
            for _ in 0..RUNS {
                wheels.push(turns_per_microsecond(TimingWheel::new(), held, wait));
                heap.push(turns_per_microsecond(Heap::default(), held, wait));
            }
            let (wheels, heap) = (median(wheels), median(heap));
            let ratio = wheels / heap;
            println!("| {held} | {name} | {wheels:.1} | {heap:.1} | {ratio:.1} |");
        }
    }
}
