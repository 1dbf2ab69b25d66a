//! Several threads of a process communicate at once, each with its own portal table entry, event
//! queue and descriptor: `yod -n 2 threads`.
//!
//! Every call may be made by any thread; threads that share no queue don't wait for one
//! another's events.
#![forbid(unsafe_code)]

use portals_examples::{Job, Result, descriptor, expect_event, number, set_number};
use portals4::*;

const THREADS: u32 = 4;
const ROUNDS: u64 = 200;

struct Worker {
    portal: PortalTableEntry,
    events: EventQueue,
    out: Region,
    into: Region,
    from: MemoryDescriptor,
    _entry: Entry,
}

impl Worker {
    fn new(job: &Job, index: u32) -> Result<Worker> {
        let (events, portal) = job.portal(index, 0)?;
        let (out, into) = (Region::new(8), Region::new(8));
        let spec = EntrySpec {
            memory: Memory::from(&into),
            options: options::ME_OP_PUT | options::ME_EVENT_LINK_DISABLE,
            ..EntrySpec::default()
        };
        Ok(Worker {
            from: descriptor(&job.interface, &out)?,
            _entry: Entry::append(&portal, spec)?,
            portal,
            events,
            out,
            into,
        })
    }

    /// Exchanges numbers with the thread of the same number at the next rank.
    fn exchange(&self, next: ProcessId) -> std::result::Result<(), String> {
        let target = Target::new(next, self.portal.index());
        for round in 0..ROUNDS {
            let value = round * u64::from(THREADS) + u64::from(self.portal.index());
            set_number(&self.out, 0, value);
            let put = Put {
                length: 8,
                target,
                hdr_data: value,
                ..Put::default()
            };
            self.from.put(put).map_err(|why| why.to_string())?;
            let event =
                expect_event(&self.events, EventKind::Put).map_err(|why| why.to_string())?;
            assert_eq!(event.hdr_data, value);
        }
        assert!(number(&self.into, 0) > 0);
        Ok(())
    }
}

fn main() -> Result {
    let mut job = Job::open(false)?;
    let workers: Result<Vec<Worker>> = (0..THREADS).map(|index| Worker::new(&job, index)).collect();
    let workers = workers?;
    job.ready()?;
    let next = job.ranks[job.next()];
    std::thread::scope(|scope| {
        let threads: Vec<_> = workers
            .iter()
            .map(|worker| scope.spawn(move || worker.exchange(next)))
            .collect();
        let mut ends = threads.into_iter().map(|thread| thread.join());
        ends.try_for_each(|end| end.unwrap_or_else(|_| Err("a thread panicked".into())))
    })?;
    if job.rank() == 0 {
        println!("{THREADS} threads, {ROUNDS} messages each");
    }
    job.close()
}
