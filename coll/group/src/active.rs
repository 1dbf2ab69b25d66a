//! A segment, or a recycling barrier, in progress in a lane.

use crate::error::{Error, Result};
use crate::lane::Lane;
use crate::portals::{Combine, Message, Portals};
use lintel_claim::{Region, combine, copy};
use lintel_collectives::{Act, Memory, Movement, Schedule, Span, Step, Transfer, When};
use lintel_types::ProcessId;
use std::sync::Arc;

/// What is done in a lane.
pub(crate) struct Active {
    /// Index among the group's lanes.
    pub(crate) lane: usize,
    pub(crate) schedule: Arc<Schedule>,
    combine: Option<Combine>,
    /// The next step, if the caller performs them.
    next: usize,
}

/// What all steps of a group need.
pub(crate) struct StepContext<'a, P: Portals> {
    pub(crate) portals: &'a P,
    pub(crate) processes: &'a [ProcessId],
    pub(crate) rank: u32,
    pub(crate) region: &'a Region,
}

impl<P: Portals> StepContext<'_, P> {
    /// What a rank sends to itself needs no message: no other rank uses these places
    /// meanwhile, as the schedule says.
    fn move_own(&self, from: u64, to: u64, bytes: u64, how: Option<Combine>) {
        let all = self.region.claim();
        let (from, to) = (all.slice(from, bytes), all.slice(to, bytes));
        match how {
            None => copy(from, to),
            Some(how) => combine(how.operation, how.datatype, from, to),
        };
    }
}

impl Active {
    /// Nothing is sent yet; the input is in the lane.
    pub(crate) fn new(lane: usize, schedule: Arc<Schedule>, combine: Option<Combine>) -> Self {
        Active {
            lane,
            schedule,
            combine,
            next: 0,
        }
    }

    /// Posts all steps: the library performs them from here on.
    pub(crate) fn post<P: Portals>(
        &mut self,
        context: &StepContext<P>,
        lane: &Lane<P>,
    ) -> Result<()> {
        for step in &self.schedule.steps {
            self.start(step, step.when, context, lane)?;
        }
        self.next = self.schedule.steps.len();
        Ok(())
    }

    /// Performs the steps whose counters are reached by now.
    pub(crate) fn progress<P: Portals>(
        &mut self,
        context: &StepContext<P>,
        lane: &Lane<P>,
    ) -> Result<()> {
        while let Some(step) = self.schedule.steps.get(self.next) {
            if let Some(when) = step.when {
                if !reached(when, context.portals, lane)? {
                    return Ok(());
                }
            }
            self.start(step, None, context, lane)?;
            self.next += 1;
        }
        Ok(())
    }

    /// Whether nothing will arrive any more, and nothing is left to do.
    pub(crate) fn is_done<P: Portals>(&self, portals: &P, lane: &Lane<P>) -> Result<bool> {
        if self.next < self.schedule.steps.len() {
            return Ok(false);
        }
        for &when in &self.schedule.done {
            if !reached(when, portals, lane)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A counter that it waits for now, and the value that it is to reach.
    pub(crate) fn awaits<'l, P: Portals>(
        &self,
        portals: &P,
        lane: &'l Lane<P>,
    ) -> Result<Option<(&'l P::Counter, u64)>> {
        let step = self.schedule.steps.get(self.next);
        let done = match step {
            Some(_) => &[],
            None => &self.schedule.done[..],
        };
        for &When { counter, count } in step
            .and_then(|step| step.when.as_ref())
            .into_iter()
            .chain(done)
        {
            if !reached(When { counter, count }, portals, lane)? {
                return Ok(Some((
                    lane.counter(counter.0),
                    lane.threshold(counter.0, count),
                )));
            }
        }
        Ok(None)
    }

    /// Sends or counts when a counter says so, or now.
    fn start<P: Portals>(
        &self,
        step: &Step,
        when: Option<When>,
        context: &StepContext<P>,
        lane: &Lane<P>,
    ) -> Result<()> {
        let portals = context.portals;
        // With 0, only the operation before is waited for, and that has ended.
        let trigger = when.filter(|when| when.count > 0).map(|when| {
            let threshold = lane.threshold(when.counter.0, when.count);
            (lane.counter(when.counter.0), threshold)
        });
        match (step.act, trigger) {
            (Act::Count(counter), None) => portals.count(lane.counter(counter.0))?,
            (Act::Count(counter), Some(trigger)) => {
                portals.count_at(trigger, lane.counter(counter.0))?;
            }
            (Act::Send(transfer), None) if transfer.to.rank == context.rank => {
                let (from, to) = (self.place(transfer.from, lane), lane.at + transfer.to.at);
                let how = self.how(transfer.movement);
                context.move_own(from, to, transfer.from.bytes, how);
                portals.count(lane.counter(transfer.to.counter.0))?;
            }
            (Act::Send(transfer), None) => portals.send(&self.message(transfer, context, lane))?,
            (Act::Send(transfer), Some(trigger)) => {
                portals.send_at(trigger, &self.message(transfer, context, lane))?;
            }
        }
        Ok(())
    }

    fn message<P: Portals>(
        &self,
        transfer: Transfer,
        context: &StepContext<P>,
        lane: &Lane<P>,
    ) -> Message {
        let Transfer { movement, from, to } = transfer;
        Message {
            from: self.place(from, lane),
            bytes: from.bytes,
            target: context.processes[to.rank as usize],
            match_bits: lane.match_bits(to.counter.0),
            at: to.at,
            // Without elements there is nothing to combine, only to count.
            combine: self.how(movement).filter(|_| from.bytes > 0),
        }
    }

    fn how(&self, movement: Movement) -> Option<Combine> {
        self.combine.filter(|_| movement == Movement::Combine)
    }

    /// Where a span begins in the region.
    pub(crate) fn place<P: Portals>(&self, span: Span, lane: &Lane<P>) -> u64 {
        match span.memory {
            Memory::Slots => lane.at + span.at,
            Memory::Input => lane.input(&self.schedule) + span.at,
        }
    }
}

fn reached<P: Portals>(when: When, portals: &P, lane: &Lane<P>) -> Result<bool> {
    let value = portals.value(lane.counter(when.counter.0))?;
    if value.failure > 0 {
        return Err(Error::MessageFailed);
    }
    Ok(value.success >= lane.threshold(when.counter.0, when.count))
}
