//! Collective operations as schedules of hosts.
//!
//! A host performs a collective's steps in their order, and waits if a counter
//! hasn't counted enough. Each message that counts is a receive from any rank, with a
//! tag that names operation and counter: the *n*th of them ends when the *n*th message
//! has come. What a host does to its own memory costs it nothing here.

use lintel_collectives::{Act, Collective, Schedule, When};

use crate::goal::{Goal, Label, Operation, Rank};

impl Goal {
    /// So many operations of a collective, one after the other, gone through by hosts.
    pub fn of_collective(collective: &Collective, operations: u32) -> Goal {
        let ranks = collective.shape().ranks;
        let schedules: Vec<Schedule> = (0..ranks).map(|rank| collective.schedule(rank)).collect();
        // Tags name counters of the receiver, which may have more than the sender.
        let counters = schedules.iter().map(|s| s.counters.len()).max();
        let counters = u32::try_from(counters.unwrap_or(0)).expect("a rank has few counters");
        let mut goal = Goal::new(ranks);
        for (rank, schedule) in (0..).zip(&schedules) {
            let mut host = Host {
                goal: &mut goal,
                rank,
                schedule,
                counters,
                arrivals: Vec::new(),
                last: None,
            };
            for epoch in 0..operations {
                host.operate(epoch);
            }
        }
        goal
    }
}

/// One rank's part while it is written.
struct Host<'a> {
    goal: &'a mut Goal,
    rank: Rank,
    schedule: &'a Schedule,
    counters: u32,
    /// By operation and counter: the receives of what others send.
    arrivals: Vec<Vec<Vec<Label>>>,
    /// What it did last.
    last: Option<Label>,
}

impl Host<'_> {
    fn operate(&mut self, epoch: u32) {
        self.post_receives(epoch);
        let schedule = self.schedule;
        let mut own = vec![0u64; schedule.counters.len()];
        for step in &schedule.steps {
            if let Some(when) = step.when {
                self.wait_for(when, epoch, &own);
            }
            match step.act {
                Act::Count(counter) => own[counter.0 as usize] += 1,
                Act::Send(transfer) if transfer.to.rank == self.rank => {
                    own[transfer.to.counter.0 as usize] += 1;
                }
                Act::Send(transfer) => {
                    let message = Operation::send(transfer.to.rank, transfer.from.bytes);
                    self.append(message.tagged(self.tag(epoch, transfer.to.counter.0)));
                }
            }
        }
        for &when in &schedule.done {
            self.wait_for(when, epoch, &own);
        }
        for release in &schedule.releases {
            let message = Operation::send(release.rank, 0);
            self.append(message.tagged(self.tag(epoch, release.counter.0)));
        }
    }

    /// The receives are there when the operation begins.
    fn post_receives(&mut self, epoch: u32) {
        let mut all = Vec::new();
        for (number, counter) in (0..).zip(&self.schedule.counters) {
            let tag = self.tag(epoch, number);
            let from_others = counter.each - self.counted_by_itself(number);
            let receive = Operation::recv_any(0).tagged(tag);
            let receives = (0..from_others).map(|_| self.goal.then(self.rank, self.last, receive));
            all.push(receives.collect());
        }
        self.arrivals.push(all);
    }

    fn counted_by_itself(&self, counter: u32) -> u64 {
        let itself = |act: &Act| match act {
            Act::Count(own) => own.0 == counter,
            Act::Send(transfer) => {
                transfer.to.rank == self.rank && transfer.to.counter.0 == counter
            }
        };
        let steps = self.schedule.steps.iter();
        steps.filter(|step| itself(&step.act)).count() as u64
    }

    /// Goes on when a counter has counted so much in this operation, and all that it
    /// counts in the one before the last, which used the same memory.
    fn wait_for(&mut self, when: When, epoch: u32, own: &[u64]) {
        let counter = when.counter.0 as usize;
        let needed = when.count.saturating_sub(own[counter]) as usize;
        let this = &self.arrivals[epoch as usize][counter];
        let mut awaited: Vec<Label> = this[..needed].last().copied().into_iter().collect();
        if let Some(before) = epoch.checked_sub(2) {
            awaited.extend(self.arrivals[before as usize][counter].last());
        }
        if !awaited.is_empty() {
            let gone_on = self.append(Operation::calc(0));
            for earlier in awaited {
                let order = crate::Order::AfterEnd;
                self.goal.require(self.rank, gone_on, earlier, order);
            }
        }
    }

    fn append(&mut self, operation: Operation) -> Label {
        let label = self.goal.then(self.rank, self.last, operation);
        self.last = Some(label);
        label
    }

    fn tag(&self, epoch: u32, counter: u32) -> u32 {
        epoch * self.counters + counter
    }
}
