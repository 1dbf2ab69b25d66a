//! What the processes of a group do together, and how long it takes, group by group
//! in turns.

use std::time::Instant;

use super::MultiPair;
use crate::error::Result;
use crate::harness::{Outcome, Plan, is_past};
use crate::perf::stream::window_for;
use crate::portals::Transfer;
use crate::team::WORDS;

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Each process of node 0 plays ping-pong with its opposite.
    PingPong,
    /// Each process of node 0 streams to its opposite.
    OneWay,
    /// Each process of node 0 gets from its opposite, one after the other.
    Gets,
    /// The same, many at a time.
    StreamOfGets,
    /// Each process streams to its opposite, both ways at once.
    BothWays,
    /// Each process of node 0 streams to each of node 1 in turn.
    ManyToMany,
}

/// A form with its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Who sends to whom.
    pub form: Form,
    /// Processes of a node that take part.
    pub pairs: usize,
    /// Bytes of a message.
    pub bytes: u64,
}

impl Pattern {
    /// Messages that all processes together move in one repetition.
    pub fn messages(self) -> u64 {
        let ways = match self.form {
            Form::PingPong | Form::BothWays => 2,
            Form::OneWay | Form::Gets | Form::StreamOfGets | Form::ManyToMany => 1,
        };
        ways * self.pairs as u64
    }

    /// The fewest repetitions that mean something, and what others are multiples of.
    fn unit(self) -> u64 {
        match self.form {
            Form::PingPong | Form::Gets => 1,
            Form::ManyToMany => self.pairs as u64,
            Form::OneWay | Form::StreamOfGets | Form::BothWays => 4,
        }
    }
}

impl MultiPair {
    /// Measures `pattern` in every group, in turns: one outcome a group, in every rank.
    ///
    /// # Errors
    /// What Portals refused, or a process that doesn't come.
    pub fn in_turns(&self, plan: Plan, pattern: Pattern) -> Result<Vec<Outcome>> {
        let end = plan.deadline(self.layout.groups);
        let repeats = self.calibrate(plan, pattern)?;
        let mut rounds = vec![Vec::new(); self.layout.groups];
        for _ in 0..plan.rounds {
            for (group, samples) in rounds.iter_mut().enumerate() {
                let took = self.turn(group, pattern, repeats)?;
                samples.push(took as f64 / repeats as f64);
            }
            if self.team.barrier_with(is_past(end))? != 0 {
                break;
            }
        }
        let outcome = |samples: Vec<f64>| {
            let all = samples.len() as u64 * repeats;
            Outcome::of_rounds(samples, all, plan.rounds)
        };
        Ok(rounds.into_iter().map(outcome).collect())
    }

    /// Repetitions that fill a turn of the first group, the same for all groups.
    fn calibrate(&self, plan: Plan, pattern: Pattern) -> Result<u64> {
        let turn = plan.time.as_nanos() as u64 / u64::from(plan.rounds);
        let unit = pattern.unit();
        let end = Instant::now() + plan.budget / 4;
        let mut repeats = unit;
        loop {
            // The quickest counts: one that waits for a core says nothing.
            let mut took = u64::MAX;
            for _ in 0..PROBES {
                took = took.min(self.turn(0, pattern, repeats)?.max(1));
            }
            let is_late = self.team.barrier_with(is_past(end))? != 0;
            if took >= turn / 4 || repeats >= MOST_REPEATS || is_late {
                let fitting = (repeats as u128 * u128::from(turn) / u128::from(took)) as u64;
                return Ok(fitting.max(1).next_multiple_of(unit));
            }
            repeats *= 4;
        }
    }

    /// One group plays while the others sleep; nanoseconds, by its leader's watch.
    fn turn(&self, group: usize, pattern: Pattern, repeats: u64) -> Result<u64> {
        self.team.barrier()?;
        let mut words = [0; WORDS];
        if self.me.group == group && self.me.index < pattern.pairs {
            words[0] = self.play(pattern, repeats)?;
        }
        let all = self.team.exchange(words)?;
        Ok(all[self.leader_of(group)][0])
    }

    fn play(&self, pattern: Pattern, n: u64) -> Result<u64> {
        let opposite = Transfer {
            length: pattern.bytes,
            ..self.across(self.me.index)
        };
        self.barrier(2 * pattern.pairs)?;
        let sends = self.me.node == 0;
        match pattern.form {
            // A process that gets has pushed nothing.
            Form::Gets | Form::StreamOfGets => self.gets(&opposite, WARMING)?,
            _ => self.ping_pong(&opposite, WARMING)?,
        }
        let start = Instant::now();
        let window = window_for(pattern.bytes);
        match pattern.form {
            Form::PingPong => {
                self.ping_pong(&opposite, n)?;
                // Each pair by its own watch: nobody waits for another's end.
                return Ok(start.elapsed().as_nanos() as u64);
            }
            Form::Gets => self.gets(&opposite, n)?,
            Form::StreamOfGets if sends => {
                self.endpoint.stream_of_gets(&opposite, n, window)?;
            }
            Form::OneWay if sends => self.endpoint.stream(&[opposite], 0, n, window)?,
            Form::ManyToMany if sends => {
                let targets = self.targets(pattern);
                self.endpoint.stream(&targets, self.me.index, n, window)?;
            }
            Form::BothWays => {
                self.endpoint.stream(&[opposite], 0, n, window)?;
                self.endpoint.await_arrivals(n)?;
            }
            Form::OneWay | Form::StreamOfGets | Form::ManyToMany => {
                self.endpoint.await_arrivals(n)?;
            }
        }
        self.barrier(2 * pattern.pairs)?;
        Ok(start.elapsed().as_nanos() as u64)
    }

    fn ping_pong(&self, opposite: &Transfer, n: u64) -> Result<()> {
        for _ in 0..n {
            if self.me.node == 0 {
                self.endpoint.put(opposite)?;
                self.endpoint.await_arrivals(1)?;
            } else {
                self.endpoint.await_arrivals(1)?;
                self.endpoint.put(opposite)?;
            }
        }
        Ok(())
    }

    fn gets(&self, opposite: &Transfer, n: u64) -> Result<()> {
        if self.me.node != 0 {
            return self.endpoint.await_arrivals(n);
        }
        for _ in 0..n {
            self.endpoint.get(opposite)?;
            self.endpoint.await_replies(1)?;
        }
        Ok(())
    }

    fn targets(&self, pattern: Pattern) -> Vec<Transfer> {
        let length = pattern.bytes;
        let target = |index| Transfer {
            length,
            ..self.across(index)
        };
        (0..pattern.pairs).map(target).collect()
    }
}

/// Exchanges off the watch, after which both sides are awake.
const WARMING: u64 = 4;
/// Trial turns at each number of repetitions.
const PROBES: u32 = 3;
/// Enough for a clock of any grain.
const MOST_REPEATS: u64 = 1 << 24;
