//! Whether the other ranks are alive: all at creation, and each of them while
//! one waits.

use crate::error::{Error, Result};
use crate::portals::Portals;
use lintel_types::{NiFail, ProcessId};
use std::time::{Duration, Instant};

/// Match bits of probes, above those of all lanes.
const PROBE: u64 = 1 << 32;
/// With the number of the round added.
const HELLO: u64 = 2 << 32;

/// How long a wait for a counter lasts before anything else is checked.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long an operation may take before peers are probed, and between two rounds of probes.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);
/// Ranks that are probed at a time.
const MAX_PROBES: usize = 16;
/// Between two hellos to a rank that has not created the group yet.
const HELLO_RETRY: Duration = Duration::from_millis(1);

/// Probes the other ranks.
pub(crate) struct Peers<P: Portals> {
    rank: usize,
    /// Pending, and not answered yet.
    pending: Vec<bool>,
    next: usize,
    last: Option<Instant>,
    _entry: P::Entry,
}

impl<P: Portals> Peers<P> {
    pub(crate) fn new(portals: &P, rank: u32, ranks: u32) -> Result<Self> {
        Ok(Peers {
            rank: rank as usize,
            pending: vec![false; ranks as usize],
            next: 0,
            last: None,
            _entry: portals.entry(PROBE, (0, 0), None)?,
        })
    }

    /// Returns when all ranks have created the group: a barrier by dissemination, whose
    /// messages are sent until the other rank takes them.
    pub(crate) fn handshake(&mut self, portals: &P, processes: &[ProcessId]) -> Result<()> {
        let begun = Instant::now();
        let mut rounds = Vec::new();
        for round in 0..u64::from(processes.len().next_power_of_two().trailing_zeros()) {
            let heard = portals.counter()?;
            let entry = portals.entry(HELLO + round, (0, 0), Some(&heard))?;
            rounds.push((heard, entry));
        }
        for (round, (heard, _entry)) in rounds.iter().enumerate() {
            let next = (self.rank + (1 << round)) % processes.len();
            self.hello(portals, processes[next], (round as u64, next))?;
            while portals.value(heard)?.success == 0 {
                portals.wait(&[(heard, 1)], POLL_INTERVAL)?;
                self.probe_some(portals, processes, begun)?;
            }
        }
        Ok(())
    }

    /// Sends hello until the peer accepts it.
    fn hello(&mut self, portals: &P, target: ProcessId, to: (u64, usize)) -> Result<()> {
        let (round, rank) = to;
        loop {
            portals.probe(target, HELLO + round, HELLO + rank as u64)?;
            let answer = loop {
                if let Some(how) = self.poll_probes(portals, POLL_INTERVAL)? {
                    break how;
                }
            };
            match answer {
                NiFail::Ok => return Ok(()),
                NiFail::Undeliverable => return Err(Error::ProcFailed { rank: rank as u32 }),
                _ => std::thread::sleep(HELLO_RETRY),
            }
        }
    }

    /// Takes all results of probes that are there; returns that of a hello.
    fn poll_probes(&mut self, portals: &P, mut time: Duration) -> Result<Option<NiFail>> {
        while let Some((id, how)) = portals.poll_probe(time)? {
            if id >= HELLO {
                return Ok(Some(how));
            }
            self.pending[id as usize] = false;
            if how == NiFail::Undeliverable {
                let rank = id as u32;
                return Err(Error::ProcFailed { rank });
            }
            time = Duration::ZERO;
        }
        Ok(None)
    }

    /// Probes some ranks, unless that was not long ago, and
    /// reads answers. `since` is when the waiting began.
    ///
    /// # Errors
    /// `ProcFailed` if a rank doesn't exist any more.
    pub(crate) fn probe_some(
        &mut self,
        portals: &P,
        processes: &[ProcessId],
        since: Instant,
    ) -> Result<()> {
        let now = Instant::now();
        if now.duration_since(since) < PROBE_INTERVAL {
            return Ok(());
        }
        self.poll_probes(portals, Duration::ZERO)?;
        if self
            .last
            .is_some_and(|last| now.duration_since(last) < PROBE_INTERVAL)
        {
            return Ok(());
        }
        self.last = Some(now);
        for _ in 0..MAX_PROBES.min(processes.len()) {
            let rank = self.next;
            self.next = (rank + 1) % processes.len();
            if rank != self.rank && !self.pending[rank] {
                portals.probe(processes[rank], PROBE, rank as u64)?;
                self.pending[rank] = true;
            }
        }
        Ok(())
    }
}
