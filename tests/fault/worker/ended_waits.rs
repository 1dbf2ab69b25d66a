//! Threads begin to wait while what they wait for ends, again and again.

use crate::Done;
use lintel_fault::random::Random;
use lintel_fault::rig;
use portals4_abi::{CallError, Counter, Error, Interface, Queue, abort, finalize};
use std::time::Duration;

const ROUNDS: u32 = 50;
/// Threads that wait for a counter, and as many that wait for an event.
const WAITERS: usize = 2;
/// A wait begins and falls asleep within so many microseconds.
const BEGINS: u64 = 300;

/// What another thread calls.
#[derive(Clone, Copy, Debug)]
enum End {
    Abort,
    CloseInterface,
    Free,
}

/// Waits in some threads as process `pid`, and ends that at a random moment, [`ROUNDS`] times.
pub fn run(pid: u32, seed: u32) -> Done {
    let mut random = Random::new(seed.into());
    for round in 0..ROUNDS {
        let end = [End::Abort, End::CloseInterface, End::Free][random.below(3) as usize];
        let in_words = |why: String| format!("round {round}, {end:?}: {why}");
        let moment = Duration::from_micros(random.below(BEGINS));
        wait_and_end(pid, end, moment).map_err(in_words)?;
        finalize();
    }
    println!("done");
    Ok(())
}

fn wait_and_end(pid: u32, end: End, moment: Duration) -> Done {
    let in_words = |why: CallError| why.to_string();
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
        std::thread::sleep(moment);
        end.call(&interface, &counter, &queue)?;
        waits
            .into_iter()
            .try_for_each(|wait| match wait.join().expect("no panic") {
                Some(why) if end.codes().iter().any(|code| why.is(*code)) => Ok(()),
                other => Err(format!("a wait ended with {other:?}")),
            })
    })
}

impl End {
    fn call(self, interface: &Interface, counter: &Counter, queue: &Queue) -> Done {
        let codes = match self {
            End::Abort => {
                abort();
                return Ok(());
            }
            End::CloseInterface => return interface.close().map_err(|why| why.to_string()),
            End::Free => [
                portals::PtlCTFree(counter.handle()),
                portals::PtlEQFree(queue.handle()),
            ],
        };
        match codes {
            [0, 0] => Ok(()),
            codes => Err(format!("PtlCTFree and PtlEQFree returned {codes:?}")),
        }
    }

    /// What waits may return.
    fn codes(self) -> &'static [Error] {
        match self {
            End::Abort => &[Error::Aborted],
            // `PtlFini` follows `PtlNIFini`.
            End::CloseInterface => &[Error::ArgInvalid, Error::NoInit],
            End::Free => &[Error::ArgInvalid],
        }
    }
}
