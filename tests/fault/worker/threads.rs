//! Several threads on one interface, one queue, one counter.

use crate::Done;
use lintel_fault::memory::Memory;
use lintel_fault::ptl::{self, ABORTED, ACK, Interface, Target};
use lintel_types::{EventKind, Handle, NiFail, options};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PUTTERS: usize = 4;
const PUTS: usize = 2000;
const WAITERS: usize = 2;
const TOTAL: u64 = (PUTTERS * PUTS) as u64;
const AREA: usize = 64 << 10;
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Seen {
    by_user: Mutex<BTreeMap<u64, u32>>,
    taken: AtomicU64,
    /// Threads that wait for what never comes.
    for_ever: AtomicU64,
}

pub fn run(pid: u32, other: u32) -> Done {
    let interface = Interface::open(pid).map_err(|why| format!("open: {why:?}"))?;
    let (queue, counter, source) = set_up(&interface).map_err(|why| format!("{why:?}"))?;
    let seen = Seen::default();
    let outcome: Done = std::thread::scope(|scope| {
        let mut waits = Vec::new();
        for _ in 0..WAITERS {
            waits.push(scope.spawn(|| take_events(queue, &seen)));
            waits.push(scope.spawn(|| wait_for_counts(counter, &seen)));
        }
        let putters: Vec<_> = (0..PUTTERS)
            .map(|thread| scope.spawn(move || put_all(source, thread, [pid, other])))
            .collect();
        let put: Done = putters
            .into_iter()
            .try_for_each(|p| p.join().expect("no panic"));
        let until = Instant::now() + LONGEST;
        let all = || {
            seen.taken.load(Ordering::Relaxed) == TOTAL
                && seen.for_ever.load(Ordering::Relaxed) == WAITERS as u64
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
        ptl::abort();
        let waited: Done = waits
            .into_iter()
            .try_for_each(|w| w.join().expect("no panic"));
        put.and(waited)
    });
    outcome?;
    let by_user = seen.by_user.lock().map_err(|why| why.to_string())?;
    if by_user.len() as u64 != TOTAL || by_user.values().any(|times| *times != 1) {
        return Err(format!("{} of {TOTAL} operations told once", by_user.len()));
    }
    ptl::fini();
    begin_again(pid)?;
    println!("done");
    Ok(())
}

fn set_up(interface: &Interface) -> Result<(Handle, Handle, Handle), ptl::Code> {
    let (queue, counter) = (interface.queue(2 * TOTAL)?, interface.counter()?);
    interface.portal(Handle::EQ_NONE)?;
    let quiet = options::ME_EVENT_COMM_DISABLE;
    interface.expose(Memory::new(AREA), 1, quiet)?;
    let counting = options::MD_EVENT_CT_ACK | options::MD_EVENT_SEND_DISABLE;
    let source = interface.bind_counted(Memory::patterned(AREA), queue, counter, counting)?;
    Ok((queue, counter, source))
}

fn put_all(source: Handle, thread: usize, targets: [u32; 2]) -> Done {
    for index in 0..PUTS {
        let to = Target {
            process: ptl::process(targets[(index + thread) % 2]),
            bits: 1,
            offset: 0,
        };
        let length = match index % 16 {
            0 => AREA as u64,
            1 => 4000,
            _ => 8,
        };
        let user = thread * PUTS + index + 1;
        ptl::put(source, length, ACK, to, user).map_err(|why| format!("put: {why:?}"))?;
    }
    Ok(())
}

/// Until the interface is aborted.
fn take_events(queue: Handle, seen: &Seen) -> Done {
    loop {
        let event = match ptl::wait_event(queue) {
            Ok(event) => event,
            Err(ABORTED) => return Ok(()),
            Err(why) => return Err(format!("PtlEQWait: {why:?}")),
        };
        if event.kind != EventKind::Ack || event.ni_fail != NiFail::Ok {
            return Err(format!("{event:?}"));
        }
        let mut by_user = seen.by_user.lock().map_err(|why| why.to_string())?;
        *by_user.entry(event.user_ptr).or_default() += 1;
        seen.taken.fetch_add(1, Ordering::Relaxed);
    }
}

/// First for what comes, then for what never does.
fn wait_for_counts(counter: Handle, seen: &Seen) -> Done {
    match ptl::wait_count(counter, TOTAL) {
        Ok(value) if value.success >= TOTAL => {}
        other => return Err(format!("PtlCTWait: {other:?}")),
    }
    seen.for_ever.fetch_add(1, Ordering::Relaxed);
    match ptl::wait_count(counter, TOTAL + 1) {
        Err(ABORTED) => Ok(()),
        other => Err(format!("PtlCTWait after PtlAbort: {other:?}")),
    }
}

/// After an abort and the end, a new beginning.
fn begin_again(pid: u32) -> Done {
    let interface = Interface::open(pid).map_err(|why| format!("open again: {why:?}"))?;
    let (queue, _, source) = set_up(&interface).map_err(|why| format!("{why:?}"))?;
    let to = Target {
        process: ptl::process(pid),
        bits: 1,
        offset: 0,
    };
    ptl::put(source, 8, ACK, to, 1).map_err(|why| format!("put again: {why:?}"))?;
    let event = ptl::event_within(queue, ptl::PATIENCE).map_err(|why| format!("{why:?}"))?;
    interface.close().map_err(|why| format!("close: {why:?}"))?;
    match event.ni_fail {
        NiFail::Ok => Ok(()),
        fail => Err(format!("put again: {fail:?}")),
    }
}
