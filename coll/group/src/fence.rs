//! Fences: that all members are done with lanes that are to be used again.

use crate::active::{Active, Ground};
use crate::lane::{FENCE_LANES, LANES, Lane};
use crate::portals::Portals;
use crate::trouble::Result;
use lintel_collectives::{Algorithm, Collective, Reuse, Schedule};
use std::sync::Arc;

/// Segments between two fences. There are two such blocks of lanes: while a fence goes
/// round for one, the other is in use.
const BLOCK: u64 = LANES / 2;

/// The fences of a group. Fence 1 tells that all members are done with block 0, and is
/// needed before block 2.
pub(crate) struct Fences {
    schedule: Arc<Schedule>,
    ended: u64,
    running: Option<Active>,
}

impl Fences {
    pub(crate) fn new(rank: u32, ranks: u32) -> Self {
        let barrier = Collective::barrier(ranks, Algorithm::Dissemination)
            .expect("a barrier of some ranks is sound")
            .with_reuse(Reuse::Fenced);
        Fences {
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
    /// same number on all members.
    pub(crate) fn are_over(&self, asked: u64) -> bool {
        self.ended == asked.saturating_sub(1) / BLOCK
    }

    /// Begins a fence if it is due, and ends one: `ended` is the number of segments
    /// before the first that hasn't ended here.
    pub(crate) fn advance<P: Portals>(
        &mut self,
        ground: &Ground<P>,
        lanes: &mut [Lane<P>],
        (asked, ended): (u64, u64),
        host: bool,
    ) -> Result<()> {
        if self.running.is_none() && !self.are_over(asked) && ended >= (self.ended + 1) * BLOCK {
            let lane = (LANES + self.ended % FENCE_LANES) as usize;
            let mut fence = Active::new(lane, self.schedule.clone(), None);
            if !host {
                fence.post(ground, &lanes[lane])?;
            }
            self.running = Some(fence);
        }
        let Some(fence) = &mut self.running else {
            return Ok(());
        };
        fence.walk(ground, &lanes[fence.lane])?;
        if fence.is_done(ground.portals, &lanes[fence.lane])? {
            lanes[fence.lane].end(&fence.schedule);
            self.running = None;
            self.ended += 1;
        }
        Ok(())
    }

    /// The fence under way.
    pub(crate) fn running(&self) -> Option<&Active> {
        self.running.as_ref()
    }
}
