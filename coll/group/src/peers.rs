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
/// How long an operation of few ranks may take before peers are probed, and between two rounds of
/// probes. See [`probe_interval`].
const PROBE_INTERVAL: Duration = Duration::from_millis(100);
/// Ranks that are probed at a time.
const MAX_PROBES: usize = 16;
/// How long a rank is still awaited after another one has been found to have left: that one may
/// have created the group, used it and freed it before this one has heard of all.
const AWAITED_AFTER_LEAVE: Duration = Duration::from_secs(2);
/// Between two hellos to a rank that has not created the group yet.
const HELLO_RETRY: Duration = Duration::from_millis(1);

/// Probes the other ranks.
pub(crate) struct Peers<P: Portals> {
    rank: usize,
    probes: Vec<Probe>,
    /// A rank that has had the group's entries and has them no more, and when that was noticed.
    left: Option<(u32, Instant)>,
    next: usize,
    last: Option<Instant>,
    _entry: P::Entry,
}

/// The probes of one rank.
#[derive(Clone, Copy, Default)]
struct Probe {
    is_pending: bool,
    /// Its entry has accepted a probe: the rank has begun to create the group.
    was_accepted: bool,
}

/// The other ranks while this one waits for them to create the group.
struct Creation<'a> {
    processes: &'a [ProcessId],
    begun: Instant,
    timeout: Duration,
}

impl<P: Portals> Peers<P> {
    pub(crate) fn new(portals: &P, rank: u32, ranks: u32) -> Result<Self> {
        Ok(Peers {
            rank: rank as usize,
            probes: vec![Probe::default(); ranks as usize],
            left: None,
            next: 0,
            last: None,
            _entry: portals.entry(PROBE, (0, 0), None)?,
        })
    }

    /// Returns when all ranks have created the group: a barrier by dissemination, whose
    /// messages are retransmitted until the other rank accepts them.
    ///
    /// A rank that gives up is noticed although its process lives: either the failed rank that it
    /// has noticed is noticed here as well, or it drops probes after having accepted
    /// some and no hello comes soon, or it doesn't accept a hello within `timeout`.
    ///
    /// # Errors
    /// `ProcFailed`; `NotCreated` for a rank that has given up.
    pub(crate) fn handshake(
        &mut self,
        portals: &P,
        processes: &[ProcessId],
        timeout: Duration,
    ) -> Result<()> {
        let creation = Creation {
            processes,
            begun: Instant::now(),
            timeout,
        };
        let mut rounds = Vec::new();
        for round in 0..u64::from(processes.len().next_power_of_two().trailing_zeros()) {
            let heard = portals.counter()?;
            let entry = portals.entry(HELLO + round, (0, 0), Some(&heard))?;
            rounds.push((heard, entry));
        }
        for (round, (heard, _entry)) in rounds.iter().enumerate() {
            let distance = 1 << round;
            let next = (self.rank + distance) % processes.len();
            let previous = (self.rank + processes.len() - distance) % processes.len();
            self.hello(portals, &creation, (round as u64, next))?;
            // If it takes long, that rank is the first to be asked.
            self.next = previous;
            while portals.value(heard)?.success == 0 {
                portals.wait(&[(heard, 1)], POLL_INTERVAL)?;
                self.probe_some(portals, processes, creation.begun)?;
                self.check_awaited(&creation, previous)?;
            }
        }
        Ok(())
    }

    /// # Errors
    /// `NotCreated` if a rank has given up, or if this one's time is over.
    fn check_awaited(&self, creation: &Creation, awaited: usize) -> Result<()> {
        let is_late = creation.begun.elapsed() >= creation.timeout;
        match self.left {
            Some((rank, noticed)) if noticed.elapsed() >= AWAITED_AFTER_LEAVE => {
                Err(Error::NotCreated { rank })
            }
            _ if is_late => Err(Error::NotCreated {
                rank: awaited as u32,
            }),
            _ => Ok(()),
        }
    }

    /// Sends hello until the peer accepts it.
    fn hello(&mut self, portals: &P, creation: &Creation, to: (u64, usize)) -> Result<()> {
        let (round, rank) = to;
        loop {
            portals.probe(creation.processes[rank], HELLO + round, HELLO + rank as u64)?;
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
            self.probe_some(portals, creation.processes, creation.begun)?;
            self.check_awaited(creation, rank)?;
        }
    }

    /// Takes all results of probes that are there; returns that of a hello.
    fn poll_probes(&mut self, portals: &P, mut time: Duration) -> Result<Option<NiFail>> {
        while let Some((id, how)) = portals.poll_probe(time)? {
            if id >= HELLO {
                return Ok(Some(how));
            }
            let rank = id as u32;
            let probe = &mut self.probes[id as usize];
            probe.is_pending = false;
            match how {
                NiFail::Undeliverable => return Err(Error::ProcFailed { rank }),
                NiFail::Dropped if probe.was_accepted => {
                    self.left.get_or_insert((rank, Instant::now()));
                }
                how => probe.was_accepted |= how == NiFail::Ok,
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
        let interval = probe_interval(processes.len());
        let is_soon = |before: Instant| now.duration_since(before) < interval;
        if is_soon(since) {
            return Ok(());
        }
        self.poll_probes(portals, Duration::ZERO)?;
        if self.last.is_some_and(is_soon) {
            return Ok(());
        }
        self.last = Some(now);
        for _ in 0..MAX_PROBES.min(processes.len()) {
            let rank = self.next;
            self.next = (rank + 1) % processes.len();
            if rank != self.rank && !self.probes[rank].is_pending {
                portals.probe(processes[rank], PROBE, rank as u64)?;
                self.probes[rank].is_pending = true;
            }
        }
        Ok(())
    }
}

/// How often a rank of so many probes others. All ranks probe all others if they wait for long, and
/// open a connection for it: were the interval the same for many ranks that share few processors,
/// probes would be most of what they do, and the cause that they wait.
fn probe_interval(ranks: usize) -> Duration {
    PROBE_INTERVAL * (ranks - 1).div_ceil(MAX_PROBES).max(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ranks_probe_each_other_less_often() {
        let intervals = [1, 2, 17, 18, 257].map(probe_interval);
        let times = [1, 1, 1, 2, 16].map(|times| PROBE_INTERVAL * times);
        assert_eq!(intervals, times);
    }
}
