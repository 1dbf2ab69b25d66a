//! PtlAbort while threads begin to wait, again and again.

use crate::Done;
use lintel_fault::random::Random;
use lintel_fault::rig;
use portals4_abi::{CallError, Error, abort, finalize};
use std::time::Duration;

const ROUNDS: u32 = 50;
/// Threads that wait for a counter, and as many that wait for an event.
const WAITERS: usize = 2;
/// A wait begins and falls asleep within so many microseconds.
const BEGINS: u64 = 300;

/// Waits in some threads as process `pid`, and aborts at a random moment, [`ROUNDS`] times.
pub fn run(pid: u32, seed: u32) -> Done {
    let mut random = Random::new(seed.into());
    for round in 0..ROUNDS {
        let in_words = |why: CallError| format!("round {round}: {why}");
        let interface = rig::open(pid).map_err(in_words)?;
        let counter = interface.counter().map_err(in_words)?;
        let queue = interface.queue(1).map_err(in_words)?;
        std::thread::scope(|scope| {
            let mut waits = Vec::new();
            for _ in 0..WAITERS {
                waits.push(scope.spawn(|| counter.wait(1).err()));
                waits.push(scope.spawn(|| queue.wait().err()));
            }
            // A random moment is the point: this sleep awaits nothing.
            std::thread::sleep(Duration::from_micros(random.below(BEGINS)));
            abort();
            waits
                .into_iter()
                .try_for_each(|wait| match wait.join().expect("no panic") {
                    Some(why) if why.is(Error::Aborted) => Ok(()),
                    other => Err(format!("round {round}: a wait ended with {other:?}")),
                })
        })?;
        finalize();
    }
    println!("done");
    Ok(())
}
