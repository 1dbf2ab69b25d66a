//! What an element of a long sum of doubles costs, by the processor's atomics and in a
//! plain loop, in ns: medians of 101 runs in turn over 256 KiB.

use lintel_claim::{Datatype, Operation, Region, atomic, combine};
use std::time::Instant;

const ELEMENTS: u64 = 32 << 10;
const RUNS: usize = 101;

fn main() {
    let (from, to) = (Region::new(8 * ELEMENTS), Region::new(8 * ELEMENTS));
    let operands = vec![0; 8 * ELEMENTS as usize];
    let (sum, double) = (Operation::Sum, Datatype::Double);
    let by_atomics = || atomic(sum, double, &[to.claim()], &operands);
    let in_a_loop = || assert_eq!(combine(sum, double, from.claim(), to.claim()), to.len());
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        times[0].push(each(&by_atomics));
        times[1].push(each(&in_a_loop));
    }
    let [atomics, plain] = times.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[RUNS / 2]
    });
    println!("by atomics {atomics:.2}, in a loop {plain:.2}");
}

fn each(work: &impl Fn()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e9 / ELEMENTS as f64
}
