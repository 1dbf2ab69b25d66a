//! What a copy, an atomic and a pull cost here, in nanoseconds each.
//!
//! `cargo run --release -p lintel-claim --example copy_cost`
//!
//! Each figure is the fastest of nine rounds, everything warm in cache. The pull reads
//! this process itself: the system call's cost without a second process' cache misses.

use std::hint::black_box;
use std::time::Instant;

use lintel_claim::{
    Datatype, Lease, Operation, Region, RemoteMemory, RemoteSpan, atomic, copy, copy_checked,
};

fn main() {
    let (source, sink) = (Region::new(1 << 20), Region::new(1 << 20));
    source.write(0, &[1; 1 << 16]);
    let (from, to) = (source.claim(), sink.claim());

    for length in [8, 16, 13, 64, 512, 4096, 65536] {
        let time = fastest(100_000, || copy(from.slice(0, black_box(length)), to));
        println!("copy          {length:>6} B {time:>9.1} ns");
    }
    // To an address a little ahead in its page, where string instructions may be slow.
    let ahead = to.slice(16, u64::MAX);
    for length in [512, 4096, 65536] {
        let time = fastest(10_000, || copy(from.slice(0, black_box(length)), ahead));
        println!("copy, ahead   {length:>6} B {time:>9.1} ns");
    }
    let words = [to.slice(0, 8)];
    let operand = black_box(1u64).to_ne_bytes();
    for (name, operation, datatype, bytes) in [
        ("sum u64", Operation::Sum, Datatype::Uint64, &operand[..]),
        ("max u64", Operation::Max, Datatype::Uint64, &operand[..]),
        ("sum double", Operation::Sum, Datatype::Double, &operand[..]),
    ] {
        let time = fastest(100_000, || {
            atomic(operation, datatype, &words, black_box(bytes))
        });
        println!("{name:<13} {:>6} B {time:>9.1} ns", bytes.len());
    }
    let (long, number) = ([to.slice(0, 16)], [0; 16]);
    let time = fastest(100_000, || {
        atomic(
            Operation::Sum,
            Datatype::LongDouble,
            &long,
            black_box(&number),
        );
    });
    println!("sum ldouble   {:>6} B {time:>9.1} ns", number.len());

    let lease = Lease::new();
    let own = RemoteMemory {
        process: std::process::id() as i32,
        key: lease.key().expect("the system has a page"),
    };
    for length in [8, 4096, 65536, 1 << 20] {
        let span = [RemoteSpan {
            address: from.address(),
            length,
        }];
        let time = fastest(1000, || own.pull(&span, &[to]));
        println!("pull (self)   {length:>7} B {time:>8.1} ns");
    }
    // The same without a lease's page.
    for length in [8, 4096, 65536, 1 << 20] {
        let time = fastest(1000, || copy_checked(&[from.slice(0, length)], &[to]));
        println!("copy_checked  {length:>7} B {time:>8.1} ns");
    }
    for length in [4096, 8192, 65536, 1 << 20] {
        let time = fastest(1000, || copy_checked(&[from.slice(0, length)], &[ahead]));
        println!("the same, ahead {length:>5} B {time:>8.1} ns");
    }
}

/// Nanoseconds a call in the fastest of nine rounds.
fn fastest<T>(calls: u32, mut work: impl FnMut() -> T) -> f64 {
    let round = |_| {
        let start = Instant::now();
        for _ in 0..calls {
            black_box(work());
        }
        start.elapsed().as_nanos() as f64 / f64::from(calls)
    };
    (0..9).map(round).fold(f64::INFINITY, f64::min)
}
