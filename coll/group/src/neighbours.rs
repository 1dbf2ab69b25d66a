//! Whether the other members are there: all at the beginning, and each still, while
//! one waits.

use crate::portals::Portals;
use crate::trouble::{Result, Trouble};
use lintel_types::{NiFail, ProcessId};
use std::time::{Duration, Instant};

/// Above all lanes'.
const ARE_YOU_THERE: u64 = 1 << 32;
/// With the number of the round added.
const HELLO: u64 = 2 << 32;

/// How long one waits for a counter before looking at anything else.
pub(crate) const GLANCE: Duration = Duration::from_millis(20);
/// How long an operation may take before one asks who is still there, and again.
const PATIENCE: Duration = Duration::from_millis(100);
/// So many members are asked at a time.
const AT_ONCE: usize = 16;
/// Between two attempts to greet a member that has not made the group yet.
const AGAIN: Duration = Duration::from_millis(1);

/// Asks after the other members.
pub(crate) struct Neighbours<P: Portals> {
    rank: usize,
    /// Asked, and not answered yet.
    asked: Vec<bool>,
    next: usize,
    last: Option<Instant>,
    _entry: P::Entry,
}

impl<P: Portals> Neighbours<P> {
    pub(crate) fn new(portals: &P, rank: u32, ranks: u32) -> Result<Self> {
        Ok(Neighbours {
            rank: rank as usize,
            asked: vec![false; ranks as usize],
            next: 0,
            last: None,
            _entry: portals.entry(ARE_YOU_THERE, (0, 0), None)?,
        })
    }

    /// Returns when all members have made the group: a barrier by dissemination, whose
    /// messages are sent until the other member takes them.
    pub(crate) fn greet(&mut self, portals: &P, members: &[ProcessId]) -> Result<()> {
        let begun = Instant::now();
        let mut rounds = Vec::new();
        for round in 0..u64::from(members.len().next_power_of_two().trailing_zeros()) {
            let heard = portals.counter()?;
            let entry = portals.entry(HELLO + round, (0, 0), Some(&heard))?;
            rounds.push((heard, entry));
        }
        for (round, (heard, _entry)) in rounds.iter().enumerate() {
            let next = (self.rank + (1 << round)) % members.len();
            self.hail(portals, members[next], (round as u64, next))?;
            while portals.value(heard)?.success == 0 {
                portals.wait(&[(heard, 1)], GLANCE)?;
                self.look(portals, members, begun)?;
            }
        }
        Ok(())
    }

    /// Says hello until it is taken.
    fn hail(&mut self, portals: &P, target: ProcessId, to: (u64, usize)) -> Result<()> {
        let (round, rank) = to;
        loop {
            portals.ask(target, HELLO + round, HELLO + rank as u64)?;
            let answer = loop {
                if let Some(how) = self.hear(portals, GLANCE)? {
                    break how;
                }
            };
            match answer {
                NiFail::Ok => return Ok(()),
                NiFail::Undeliverable => return Err(Trouble::Dead { rank: rank as u32 }),
                _ => std::thread::sleep(AGAIN),
            }
        }
    }

    /// Reads all answers that are there; returns one that a hello got.
    fn hear(&mut self, portals: &P, mut time: Duration) -> Result<Option<NiFail>> {
        while let Some((question, how)) = portals.answer(time)? {
            if question >= HELLO {
                return Ok(Some(how));
            }
            self.asked[question as usize] = false;
            if how == NiFail::Undeliverable {
                let rank = question as u32;
                return Err(Trouble::Dead { rank });
            }
            time = Duration::ZERO;
        }
        Ok(None)
    }

    /// Asks some members whether they are there, unless that was not long ago, and
    /// reads answers. `since` is when the waiting began.
    ///
    /// # Errors
    /// `Dead`, where a member isn't.
    pub(crate) fn look(
        &mut self,
        portals: &P,
        members: &[ProcessId],
        since: Instant,
    ) -> Result<()> {
        let now = Instant::now();
        if now.duration_since(since) < PATIENCE {
            return Ok(());
        }
        self.hear(portals, Duration::ZERO)?;
        if self
            .last
            .is_some_and(|last| now.duration_since(last) < PATIENCE)
        {
            return Ok(());
        }
        self.last = Some(now);
        for _ in 0..AT_ONCE.min(members.len()) {
            let rank = self.next;
            self.next = (rank + 1) % members.len();
            if rank != self.rank && !self.asked[rank] {
                portals.ask(members[rank], ARE_YOU_THERE, rank as u64)?;
                self.asked[rank] = true;
            }
        }
        Ok(())
    }
}
