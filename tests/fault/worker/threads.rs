//! Several threads on one interface, one queue, one counter.

use crate::Done;
use lintel_fault::memory::Memory;
use lintel_fault::rig::{self, Descriptor};
use lintel_types::{Event, EventKind, NiFail};
use portals4_abi::{
    AckRequest, Counter, Error, Interface, Queue, Result as PtlResult, Transfer, abort, finalize,
    options,
};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PUTTERS: usize = 4;
const PUTS: usize = 2000;
const WAITERS: usize = 2;
const TOTAL: u64 = (PUTTERS * PUTS) as u64;
const AREA: usize = 64 << 10;
const LONGEST: Duration = Duration::from_secs(60);

struct Seen {
    /// Events by the user pointer of the put, from 1 on.
    by_user: Vec<AtomicU32>,
    taken: AtomicU64,
    /// Threads that wait for a count that is never reached.
    never_reached: AtomicU64,
}

/// Puts, waits and aborts as process `pid`, with `other` as the second target.
pub fn run(pid: u32, other: u32) -> Done {
    let interface = rig::open(pid).map_err(|why| why.to_string())?;
    let (queue, counter, source) = set_up(&interface).map_err(|why| why.to_string())?;
    let seen = Seen {
        by_user: (0..=TOTAL).map(|_| AtomicU32::new(0)).collect(),
        taken: AtomicU64::new(0),
        never_reached: AtomicU64::new(0),
    };
    let outcome: Done = std::thread::scope(|scope| {
        let mut waits = Vec::new();
        for _ in 0..WAITERS {
            waits.push(scope.spawn(|| take_events(&queue, &seen)));
            waits.push(scope.spawn(|| wait_for_counts(&counter, &seen)));
        }
        let putters: Vec<_> = (0..PUTTERS)
            .map(|thread| {
                let source = &source;
                scope.spawn(move || put_all(source, thread, [pid, other]))
            })
            .collect();
        let put: Done = putters
            .into_iter()
            .try_for_each(|p| p.join().expect("no panic"));
        let until = Instant::now() + LONGEST;
        let all = || {
            seen.taken.load(Ordering::Relaxed) == TOTAL
                && seen.never_reached.load(Ordering::Relaxed) == WAITERS as u64
        };
        while !all() && put.is_ok() {
            if Instant::now() > until {
                eprintln!(
                    "only {} events of {TOTAL}",
                    seen.taken.load(Ordering::Relaxed)
                );
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        abort();
        let waited: Done = waits
            .into_iter()
            .try_for_each(|w| w.join().expect("no panic"));
        put.and(waited)
    });
    outcome?;
    let posted_one = |times: &&AtomicU32| times.load(Ordering::Relaxed) == 1;
    let posted = seen.by_user[1..].iter().filter(posted_one).count();
    if posted as u64 != TOTAL {
        return Err(format!("{posted} of {TOTAL} operations posted one event"));
    }
    finalize();
    reopen(pid)?;
    println!("done");
    Ok(())
}

fn set_up(interface: &Interface) -> PtlResult<(Queue, Counter, Descriptor)> {
    let (queue, counter) = (interface.queue(2 * TOTAL)?, interface.counter()?);
    let portal = rig::portal(interface, None)?;
    let quiet = options::ME_EVENT_COMM_DISABLE;
    portal.append(Memory::new(AREA), &rig::entry(1, quiet))?;
    let report = (Some(&queue), &counter);
    let quiet = options::MD_EVENT_SEND_DISABLE;
    let source = rig::bind_counted(interface, Memory::patterned(AREA), report, quiet)?;
    Ok((queue, counter, source))
}

fn put_all(source: &Descriptor, thread: usize, targets: [u32; 2]) -> Done {
    for index in 0..PUTS {
        let length = match index % 16 {
            0 => AREA as u64,
            1 => 4000,
            _ => 8,
        };
        let transfer = Transfer {
            user_ptr: thread * PUTS + index + 1,
            ..rig::transfer(targets[(index + thread) % 2], 1, length)
        };
        let put = source.put(&transfer, AckRequest::Full);
        put.map_err(|why| why.to_string())?;
    }
    Ok(())
}

/// Takes events until the interface is aborted.
fn take_events(queue: &Queue, seen: &Seen) -> Done {
    loop {
        let event = match queue.wait() {
            Ok(event) => Event::from(event),
            Err(why) if why.is(Error::Aborted) => return Ok(()),
            Err(why) => return Err(why.to_string()),
        };
        if event.kind != EventKind::Ack || event.ni_fail != NiFail::Ok {
            return Err(format!("{event:?}"));
        }
        let times = seen.by_user.get(event.user_ptr as usize);
        let times = times.ok_or_else(|| format!("{event:?} of no put"))?;
        times.fetch_add(1, Ordering::Relaxed);
        seen.taken.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits for a count that is reached, then for one that never is.
fn wait_for_counts(counter: &Counter, seen: &Seen) -> Done {
    match counter.wait(TOTAL) {
        Ok(value) if value.success >= TOTAL => {}
        other => return Err(format!("PtlCTWait: {other:?}")),
    }
    seen.never_reached.fetch_add(1, Ordering::Relaxed);
    match counter.wait(TOTAL + 1) {
        Err(why) if why.is(Error::Aborted) => Ok(()),
        other => Err(format!("PtlCTWait after PtlAbort: {other:?}")),
    }
}

/// Opens an interface once more after an abort and PtlFini.
fn reopen(pid: u32) -> Done {
    let interface = rig::open(pid).map_err(|why| format!("again, {why}"))?;
    let (queue, _, source) = set_up(&interface).map_err(|why| format!("again, {why}"))?;
    let put = source.put(&rig::transfer(pid, 1, 8), AckRequest::Full);
    put.map_err(|why| format!("again, {why}"))?;
    let end = rig::await_end(&queue, EventKind::Ack)?;
    interface.close().map_err(|why| why.to_string())?;
    match end {
        NiFail::Ok => Ok(()),
        fail => Err(format!("put again: {fail:?}")),
    }
}
