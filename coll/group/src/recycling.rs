//! Barriers in the background, after which all ranks are done with lanes that are to be
//! reused.

use crate::active::{Active, StepContext};
use crate::error::Result;
use crate::lane::{BARRIER_LANES, LANES, Lane};
use crate::portals::Portals;
use lintel_collectives::{Algorithm, Collective, Reuse, Schedule};
use std::sync::Arc;

/// Segments between two barriers. There are two such blocks of lanes: while a barrier is in progress
/// for one, the other is in use.
const BLOCK: u64 = LANES / 2;

/// The barriers of a group. Barrier 1 shows that all ranks are done with block 0, and is
/// needed before block 2.
pub(crate) struct RecyclingBarriers {
    schedule: Arc<Schedule>,
    ended: u64,
    running: Option<Active>,
}

impl RecyclingBarriers {
    pub(crate) fn new(rank: u32, ranks: u32) -> Self {
        let barrier = Collective::barrier(ranks, Algorithm::Dissemination)
            .expect("a barrier of some ranks is sound")
            .with_reuse(Reuse::ByCaller);
        RecyclingBarriers {
            schedule: Arc::new(barrier.schedule(rank)),
            ended: 0,
            running: None,
        }
    }

    /// Whether a segment may be begun.
    pub(crate) fn allow(&self, number: u64) -> bool {
        number / BLOCK <= self.ended + 1
    }

    /// Whether all have ended that must begin when so many segments are asked for: the
    /// same number on all ranks.
    pub(crate) fn are_over(&self, requested: u64) -> bool {
        self.ended == requested.saturating_sub(1) / BLOCK
    }

    /// Begins a barrier if it is due, and ends one: `ended` is the number of segments
    /// before the first that hasn't ended here.
    pub(crate) fn advance<P: Portals>(
        &mut self,
        context: &StepContext<P>,
        lanes: &mut [Lane<P>],
        (requested, ended): (u64, u64),
        host: bool,
    ) -> Result<()> {
        if self.running.is_none() && !self.are_over(requested) && ended >= (self.ended + 1) * BLOCK
        {
            let lane = (LANES + self.ended % BARRIER_LANES) as usize;
            let mut barrier = Active::new(lane, self.schedule.clone(), None);
            if !host {
                barrier.post(context, &lanes[lane])?;
            }
            self.running = Some(barrier);
        }
        let Some(barrier) = &mut self.running else {
            return Ok(());
        };
        barrier.progress(context, &lanes[barrier.lane])?;
        if barrier.is_done(context.portals, &lanes[barrier.lane])? {
            lanes[barrier.lane].end(&barrier.schedule);
            self.running = None;
            self.ended += 1;
        }
        Ok(())
    }

    /// The barrier in progress.
    pub(crate) fn running(&self) -> Option<&Active> {
        self.running.as_ref()
    }
}
