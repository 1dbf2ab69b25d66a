//! All ranks of a collective in one memory, and a network that does what it likes.
//!
//! The caller decides what happens next, among all that may: a rank begins or
//! ends an operation, a step acts, a message takes its bytes from the sender's
//! memory, a message arrives. So every order that ranks and networks may choose can
//! be tried. It is slow, and meant for tests of what runs schedules in earnest.
//!
//! ```
//! use lintel_collectives::interpreter::{Carrier, Reduction, World};
//! use lintel_collectives::{Algorithm, Collective, Shape};
//!
//! let sum = |into: &mut [u8], from: &[u8]| into[0] += from[0];
//! let reduction = Reduction { identity: &[0], combine: &sum };
//! let shape = Shape { ranks: 3, bytes: 1 };
//! let allreduce = Collective::allreduce(shape, Algorithm::RecursiveDoubling).unwrap();
//! let inputs = vec![vec![1], vec![10], vec![100]];
//! let mut world = World::new(&allreduce, Carrier::Triggered, reduction, vec![inputs]);
//! let results = world.run(|choices| choices - 1).unwrap();
//! assert_eq!(results[0], [[111], [111], [111]]);
//! ```

use alloc::vec::Vec;
use alloc::{format, string::String, vec};
use core::fmt;

use crate::collective::Collective;
use crate::schedule::{
    Act, Epoch, Memory, Movement, Schedule, Span, Store, Target, Transfer, When,
};

/// Who goes through the steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// They are posted all at once, and each acts when its counter says so.
    Triggered,
    /// The host, one after the other.
    Host,
}

/// How bytes are combined.
#[derive(Clone, Copy)]
pub struct Reduction<'a> {
    /// An element that changes nothing.
    pub identity: &'a [u8],
    /// Combines bytes with what is there.
    pub combine: &'a dyn Fn(&mut [u8], &[u8]),
}

/// Nothing can happen any more, and some ranks aren't done: a fault of a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stuck(pub String);

/// What ranks give or get: by epoch, then by rank.
pub type Bytes = Vec<Vec<Vec<u8>>>;

/// All ranks, and the messages between them.
pub struct World<'a> {
    ranks: Vec<Rank>,
    carrier: Carrier,
    reduction: Reduction<'a>,
    messages: Vec<Message>,
    inputs: Bytes,
    results: Bytes,
}

struct Rank {
    schedule: Schedule,
    /// Of the operation that it is in, or begins next.
    epoch: Epoch,
    within: bool,
    /// Numbers of steps that haven't acted.
    waiting: Vec<usize>,
    /// Messages that haven't left.
    sending: usize,
    slots: [Vec<u8>; 2],
    counters: [Vec<u64>; 2],
}

struct Message {
    from: usize,
    epoch: Epoch,
    transfer: Transfer,
    bytes: Option<Vec<u8>>,
}

#[derive(Clone, Copy)]
enum Choice {
    Begin(usize),
    Step(usize, usize),
    End(usize),
    Message(usize),
}

impl<'a> World<'a> {
    /// All ranks before the first operation; one operation for each element of
    /// `inputs`.
    pub fn new(
        collective: &Collective,
        carrier: Carrier,
        reduction: Reduction<'a>,
        inputs: Bytes,
    ) -> Self {
        let ranks = collective.shape().ranks;
        let result = |rank| vec![0; collective.result_bytes(rank) as usize];
        let mut world = World {
            ranks: (0..ranks)
                .map(|rank| Rank::new(collective.schedule(rank)))
                .collect(),
            carrier,
            reduction,
            messages: Vec::new(),
            results: vec![(0..ranks).map(result).collect(); inputs.len()],
            inputs,
        };
        for rank in 0..world.ranks.len() {
            world.reset(rank, 0);
            world.reset(rank, 1);
        }
        world
    }

    /// Until all is done: `pick` gets the number of things that may happen, and
    /// says which one does, from 0 on.
    ///
    /// # Errors
    ///
    /// If nothing may happen and not all is done.
    pub fn run(&mut self, mut pick: impl FnMut(usize) -> usize) -> Result<Bytes, Stuck> {
        while self.advance(&mut pick) {}
        self.check().map(|()| self.results.clone())
    }

    /// Lets one thing happen, if any may.
    pub fn advance(&mut self, mut pick: impl FnMut(usize) -> usize) -> bool {
        let choices = self.choices();
        if choices.is_empty() {
            return false;
        }
        match choices[pick(choices.len())] {
            Choice::Begin(rank) => self.ranks[rank].begin(),
            Choice::Step(rank, place) => self.act(rank, place),
            Choice::End(rank) => self.end(rank),
            Choice::Message(place) => self.carry(place),
        }
        true
    }

    /// How many operations each rank has begun, and how many of them ended.
    pub fn progress(&self) -> impl Iterator<Item = (u64, u64)> {
        let of = |rank: &Rank| (rank.epoch.0 + u64::from(rank.within), rank.epoch.0);
        self.ranks.iter().map(of)
    }

    fn choices(&self) -> Vec<Choice> {
        let mut choices: Vec<Choice> = (0..self.messages.len()).map(Choice::Message).collect();
        for (number, rank) in self.ranks.iter().enumerate() {
            if !rank.within {
                if rank.epoch.0 < self.inputs.len() as u64 {
                    choices.push(Choice::Begin(number));
                }
                continue;
            }
            let foremost = match self.carrier {
                Carrier::Triggered => rank.waiting.len(),
                Carrier::Host => rank.waiting.len().min(1),
            };
            let able = (0..foremost).filter(|&place| rank.may_act(place));
            choices.extend(able.map(|place| Choice::Step(number, place)));
            if rank.is_done() {
                choices.push(Choice::End(number));
            }
        }
        choices
    }

    fn act(&mut self, number: usize, place: usize) {
        let rank = &mut self.ranks[number];
        let step = rank.waiting.remove(place);
        match rank.schedule.steps[step].act {
            Act::Count(counter) => rank.counters[rank.epoch.side()][counter.0 as usize] += 1,
            Act::Send(transfer) => {
                rank.sending += 1;
                let epoch = rank.epoch;
                self.messages.push(Message {
                    from: number,
                    epoch,
                    transfer,
                    bytes: None,
                });
            }
        }
    }

    /// A message takes its bytes along, or arrives.
    fn carry(&mut self, place: usize) {
        let Message {
            from,
            epoch,
            transfer,
            ref bytes,
        } = self.messages[place];
        if bytes.is_none() {
            let bytes = self.read(from, epoch, transfer.from).to_vec();
            self.messages[place].bytes = Some(bytes);
            self.ranks[from].sending -= 1;
            return;
        }
        let bytes = self.messages.swap_remove(place).bytes.unwrap_or_default();
        let Target { rank, counter, at } = transfer.to;
        let rank = &mut self.ranks[rank as usize];
        let there = &mut rank.slots[epoch.side()][at as usize..][..bytes.len()];
        match transfer.movement {
            Movement::Put => there.copy_from_slice(&bytes),
            Movement::Combine => (self.reduction.combine)(there, &bytes),
        }
        rank.counters[epoch.side()][counter.0 as usize] += 1;
    }

    fn end(&mut self, number: usize) {
        let epoch = self.ranks[number].epoch;
        for Store { from, to } in self.ranks[number].schedule.stores.clone() {
            let bytes = self.read(number, epoch, from).to_vec();
            self.results[epoch.0 as usize][number][to as usize..][..bytes.len()]
                .copy_from_slice(&bytes);
        }
        self.reset(number, epoch.side());
        for to in self.ranks[number].schedule.releases.clone() {
            self.messages.push(Message {
                from: number,
                epoch,
                transfer: Transfer {
                    movement: Movement::Put,
                    from: Memory::Input.span(0, 0),
                    to,
                },
                bytes: Some(Vec::new()),
            });
        }
        let rank = &mut self.ranks[number];
        rank.within = false;
        rank.epoch = epoch.next();
    }

    fn reset(&mut self, number: usize, side: usize) {
        let rank = &mut self.ranks[number];
        for range in &rank.schedule.resets {
            let slot = &mut rank.slots[side][range.start as usize..range.end as usize];
            let identity = self.reduction.identity.iter().cycle();
            slot.iter_mut()
                .zip(identity)
                .for_each(|(byte, &identity)| *byte = identity);
        }
    }

    fn read(&self, number: usize, epoch: Epoch, span: Span) -> &[u8] {
        let memory = match span.memory {
            Memory::Input => &self.inputs[epoch.0 as usize][number],
            Memory::Slots => &self.ranks[number].slots[epoch.side()],
        };
        &memory[span.at as usize..][..span.bytes as usize]
    }

    /// All operations are done, and every counter has what it was to have.
    fn check(&self) -> Result<(), Stuck> {
        let last = self.inputs.len() as u64;
        for (number, rank) in self.ranks.iter().enumerate() {
            let Rank {
                epoch, counters, ..
            } = rank;
            if *epoch != Epoch(last) {
                let left: Vec<_> = rank
                    .waiting
                    .iter()
                    .map(|&step| rank.schedule.steps[step])
                    .collect();
                let text = format!("rank {number} in {epoch:?}: {left:?}, counters {counters:?}");
                return Err(Stuck(text));
            }
            for (counter, spec) in rank.schedule.counters.iter().enumerate() {
                let counted = [counters[0][counter], counters[1][counter]];
                let expected = [last.div_ceil(2), last / 2].map(|times| times * spec.each);
                if counted != expected {
                    let text =
                        format!("rank {number}'s counter {counter}: {counted:?}, not {expected:?}");
                    return Err(Stuck(text));
                }
            }
        }
        Ok(())
    }
}

impl Rank {
    fn new(schedule: Schedule) -> Self {
        let counters = vec![0; schedule.counters.len()];
        let slots = vec![0; schedule.slot_bytes as usize];
        Rank {
            schedule,
            epoch: Epoch(0),
            within: false,
            waiting: Vec::new(),
            sending: 0,
            slots: [slots.clone(), slots],
            counters: [counters.clone(), counters],
        }
    }

    fn begin(&mut self) {
        self.within = true;
        self.waiting = (0..self.schedule.steps.len()).collect();
    }

    fn may_act(&self, place: usize) -> bool {
        let step = self.schedule.steps[self.waiting[place]];
        step.when.is_none_or(|when| self.reached(when))
    }

    fn reached(&self, when: When) -> bool {
        let threshold = self.schedule.threshold(when, self.epoch);
        self.counters[threshold.side][threshold.counter.0 as usize] >= threshold.value
    }

    fn is_done(&self) -> bool {
        let all_left = self.waiting.is_empty() && self.sending == 0;
        all_left && self.schedule.done.iter().all(|&when| self.reached(when))
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the schedule is wrong: {}", self.0)
    }
}

impl core::error::Error for Stuck {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, CounterId, Shape};
    use alloc::string::ToString;

    fn world() -> World<'static> {
        let reduction = Reduction {
            identity: &[0],
            combine: &|into, from| into[0] += from[0],
        };
        let shape = Shape { ranks: 2, bytes: 1 };
        let allreduce = Collective::allreduce(shape, Algorithm::RecursiveDoubling);
        let inputs = vec![vec![vec![1], vec![2]]];
        World::new(
            &allreduce.expect("two ranks and a byte"),
            Carrier::Triggered,
            reduction,
            inputs,
        )
    }

    #[test]
    fn a_rank_that_waits_in_vain_is_reported_as_stuck() {
        let mut world = world();
        world.ranks[1].schedule.done.push(When {
            counter: CounterId(0),
            count: 99,
        });
        let stuck = world.run(|_| 0).unwrap_err().to_string();
        assert!(stuck.contains("the schedule is wrong: rank 1"), "{stuck}");
    }

    #[test]
    fn a_counter_that_counts_something_else_is_reported() {
        let mut world = world();
        world.ranks[0].schedule.counters[1].each += 1;
        let stuck = world.run(|_| 0).unwrap_err().to_string();
        assert!(stuck.contains("rank 0's counter 1"), "{stuck}");
    }

    #[test]
    fn progress_counts_operations_that_have_begun_and_ended() {
        let mut world = world();
        assert!(world.progress().eq([(0, 0), (0, 0)]));
        assert!(world.advance(|_| 0));
        assert!(world.progress().eq([(1, 0), (0, 0)]));
        assert_eq!(world.run(|_| 0).unwrap()[0], [[3], [3]]);
        assert!(world.progress().eq([(1, 1), (1, 1)]));
        assert!(!world.advance(|_| 0));
    }
}
