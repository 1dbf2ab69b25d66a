//! Operations in memory that all ranks of a group have mapped: loads and stores, without a
//! message.
//!
//! ```text
//!   a rank's memory   │ entered │ slot 0: mark, result mark, few bytes │ slot 1 │ … │ areas 0, 1, …
//!
//!   step n, slot n % 32:   give: own bytes ──▶ own area, then the mark n + 1
//!                          (split: combine the own part of all areas, then the result mark)
//!                          take: await the others' marks, read their areas
//! ```
//!
//! An operation is cut into steps, which all ranks number alike. A rank writes to its own memory
//! only, and reads the others'. Steps are taken in windows: a rank gives all of a window, then takes all,
//! so that ranks that share a processor yield it once for many steps. A slot is used again after
//! 32 steps; `entered` shows how far each rank is, and is looked at once in 16 steps.

use crate::buffers::Buffers;
use crate::call::Call;
use crate::error::Result;
use crate::portals::Combine;
use lintel_claim::{Claim, Region, combine, copy};
use std::any::Any;
use std::fmt;
use std::ops::Range;

/// Memory of each rank, by rank, that this process has mapped.
pub struct SharedMemory {
    memories: Vec<Claim>,
    _mappings: Box<dyn Any + Send>,
}

/// The operations of a group in [`SharedMemory`].
pub(crate) struct SharedOperations {
    memory: SharedMemory,
    rank: usize,
    /// The number of the next operation's first step.
    next: u64,
    /// Steps below may use their slots.
    free: u64,
    /// Where a sum grows.
    sum: Region,
}

/// An operation of so many bytes of each rank.
#[derive(Clone, Copy)]
struct Operation {
    call: Call,
    ranks: u64,
    bytes: u64,
    /// Bytes of each rank in a step.
    piece: u64,
    /// The number of its first step.
    first: u64,
    /// Each rank combines a part of each step.
    is_split: bool,
}

/// Bytes of a rank in a step.
#[derive(Clone, Copy)]
struct Step {
    number: u64,
    at: u64,
    bytes: u64,
}

/// Called for each look at another rank's memory that was in vain; true for a wait's first one.
type Wait<'a> = dyn FnMut(bool) -> Result<()> + 'a;

/// Whom a rank waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// Its bytes are in its area.
    Given,
    /// Its part of the combined bytes is in its area.
    Combined,
}

/// Ranks that read each other's memory: more of them go by messages, in fewer rounds.
pub const MAX_SHARING_RANKS: usize = 64;

/// Slots, and areas, of a rank.
const SLOTS: u64 = 32;
/// Steps that are given before the first of them is taken.
const WINDOW: u64 = SLOTS / 2;
const LINE: u64 = 64;
/// A slot has a line for each mark.
const SLOT: u64 = 2 * LINE;
/// So few bytes lie in the line of the mark.
const IN_LINE: u64 = 48;
/// Where they lie there: aligned to any element.
const IN_LINE_AT: u64 = LINE - IN_LINE;
/// Bytes of an area.
const AREA: u64 = 16 << 10;
/// From one area to the next: their first lines don't share a set of the cache.
const APART: u64 = AREA + 5 * LINE;
/// Behind the line of `entered`, which other lines' neighbours aren't fetched with.
const SLOTS_AT: u64 = SLOT;
const AREAS_AT: u64 = SLOTS_AT + SLOTS * SLOT;
/// Up to so many bytes of all ranks together, each rank combines all of them: a split saves less
/// than its second wait costs.
const MAX_WHOLE: u64 = 16 << 10;

impl SharedMemory {
    /// Bytes of each rank's memory, which are zero at first.
    pub const BYTES: u64 = AREAS_AT + SLOTS * APART;

    /// `memories` by rank, each of [`Self::BYTES`]; they are mapped as long as `mappings` lives.
    pub fn new(memories: Vec<Claim>, mappings: Box<dyn Any + Send>) -> Self {
        SharedMemory {
            memories,
            _mappings: mappings,
        }
    }

    /// Whether it is the memory of so many ranks.
    pub(crate) fn is_of(&self, ranks: usize) -> bool {
        self.memories.len() == ranks && self.memories.iter().all(|it| it.len() >= Self::BYTES)
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.memories).finish()
    }
}

impl SharedOperations {
    pub(crate) fn new(memory: SharedMemory, rank: u32) -> Self {
        SharedOperations {
            memory,
            rank: rank as usize,
            next: 0,
            free: SLOTS,
            sum: Region::new(AREA),
        }
    }

    /// Carries out an operation of so many bytes of each rank. `wait` is called as long as
    /// something of another rank isn't there; its errors end the operation.
    pub(crate) fn run(
        &mut self,
        (call, bytes): (Call, u64),
        buffers: &mut dyn Buffers,
        wait: &mut Wait,
    ) -> Result<()> {
        let operation = Operation::new(call, bytes, self.ranks() as u64, self.next);
        let steps = operation.steps();
        self.next += steps;
        let mut from = 0;
        while from < steps {
            let window = from..steps.min(from + WINDOW);
            for number in window.clone() {
                self.give(&operation, number, buffers, wait)?;
            }
            if operation.is_split {
                for number in window.clone() {
                    self.combine_part(&operation, number, wait)?;
                }
            }
            for number in window.clone() {
                self.take(&operation, number, buffers, wait)?;
            }
            from = window.end;
        }
        Ok(())
    }

    fn ranks(&self) -> usize {
        self.memory.memories.len()
    }

    /// Writes what this rank gives to a step.
    fn give(
        &mut self,
        operation: &Operation,
        number: u64,
        buffers: &dyn Buffers,
        wait: &mut Wait,
    ) -> Result<()> {
        let step = operation.step(number);
        self.await_slot(step.number, wait)?;
        let own = self.memory.memories[self.rank];
        if operation.gives(self.rank) {
            let area = operation.area(own, step);
            let mut at = 0;
            for piece in operation.given(step) {
                at += area.slice(at, u64::MAX).write(buffers.input(piece)) as u64;
            }
            own.store_u64(place_of(step.number, Mark::Given), step.number + 1);
        }
        own.store_u64(0, step.number + 1);
        Ok(())
    }

    /// Combines this rank's part of what all ranks have given, in its own area: no other rank
    /// reads that part of what this one has given.
    fn combine_part(&self, operation: &Operation, number: u64, wait: &mut Wait) -> Result<()> {
        let step = operation.step(number);
        let part = operation.part(step, self.rank);
        let part = |area: Claim| area.slice(part.start, part.end - part.start);
        self.combine_all(operation, step, &part, wait)?;
        let own = self.memory.memories[self.rank];
        copy(part(self.sum.claim()), part(operation.area(own, step)));
        own.store_u64(place_of(step.number, Mark::Combined), step.number + 1);
        Ok(())
    }

    /// Combines some of what all ranks have given, in the order of ranks, in the same place of
    /// `sum`.
    fn combine_all(
        &self,
        operation: &Operation,
        step: Step,
        some: &dyn Fn(Claim) -> Claim,
        wait: &mut Wait,
    ) -> Result<()> {
        let Combine {
            operation: how,
            datatype,
        } = operation.call.combine().expect("only reductions combine");
        let sum = some(self.sum.claim().slice(0, step.bytes));
        for (rank, memory) in self.memory.memories.iter().enumerate() {
            self.await_mark(rank, step, Mark::Given, wait)?;
            let given = some(operation.area(*memory, step));
            match rank {
                0 => copy(given, sum),
                _ => combine(how, datatype, given, sum),
            };
        }
        Ok(())
    }

    /// Waits for what this rank gets of a step, and reads it.
    fn take(
        &self,
        operation: &Operation,
        number: u64,
        buffers: &mut dyn Buffers,
        wait: &mut Wait,
    ) -> Result<()> {
        let step = operation.step(number);
        let Step { at, bytes, .. } = step;
        let place = |begin: u64, bytes: u64| begin as usize..(begin + bytes) as usize;
        match operation.call {
            Call::Barrier => {
                for rank in 0..self.ranks() {
                    self.await_mark(rank, step, Mark::Given, wait)?;
                }
            }
            Call::Broadcast { root, .. } if root as usize == self.rank => {}
            Call::Broadcast { root, .. } => {
                let area = self.area_of(root as usize, operation, step, wait)?;
                area.read(buffers.output(place(at, bytes)));
            }
            Call::Reduce { root, .. } if root as usize != self.rank => {}
            Call::Allreduce(_) | Call::Reduce { .. } if operation.is_split => {
                for (rank, memory) in self.memory.memories.iter().enumerate() {
                    self.await_mark(rank, step, Mark::Combined, wait)?;
                    let Range { start, end } = operation.part(step, rank);
                    let part = operation.area(*memory, step).slice(start, end - start);
                    part.read(buffers.output(place(at + start, end - start)));
                }
            }
            Call::Allreduce(_) | Call::Reduce { .. } => {
                self.combine_all(operation, step, &|area| area, wait)?;
                self.sum.read(0, buffers.output(place(at, bytes)));
            }
            Call::Gather { root, .. } if root as usize != self.rank => {}
            Call::Gather { .. } => {
                for rank in 0..self.ranks() {
                    let area = self.area_of(rank, operation, step, wait)?;
                    let begin = rank as u64 * operation.bytes + at;
                    area.read(buffers.output(place(begin, bytes)));
                }
            }
            Call::Scatter { root, .. } => {
                let area = self.area_of(root as usize, operation, step, wait)?;
                let own = area.slice(self.rank as u64 * bytes, bytes);
                own.read(buffers.output(place(at, bytes)));
            }
        }
        Ok(())
    }

    /// What a rank has given to a step.
    fn area_of(
        &self,
        rank: usize,
        operation: &Operation,
        step: Step,
        wait: &mut Wait,
    ) -> Result<Claim> {
        self.await_mark(rank, step, Mark::Given, wait)?;
        Ok(operation.area(self.memory.memories[rank], step))
    }

    /// Returns when a rank has marked a step. Its bytes can be read then: the mark is stored with
    /// release order after them, and loaded with acquire order.
    #[inline]
    fn await_mark(&self, rank: usize, step: Step, mark: Mark, wait: &mut Wait) -> Result<()> {
        let memory = self.memory.memories[rank];
        let at = place_of(step.number, mark);
        let mut is_first = true;
        while memory.load_u64(at) < Some(step.number + 1) {
            wait(std::mem::replace(&mut is_first, false))?;
        }
        Ok(())
    }

    /// Returns when all ranks have taken the step that used the slot before: a rank that has
    /// entered a step has taken all before that step's window.
    fn await_slot(&mut self, number: u64, wait: &mut Wait) -> Result<()> {
        let mut is_first = true;
        while number >= self.free {
            let entered = self.memory.memories.iter().map(|memory| memory.load_u64(0));
            let least = entered.flatten().min().expect("a group has a rank");
            self.free = least + SLOTS - WINDOW;
            if number >= self.free {
                wait(std::mem::replace(&mut is_first, false))?;
            }
        }
        Ok(())
    }
}

impl Operation {
    fn new(call: Call, bytes: u64, ranks: u64, first: u64) -> Self {
        let piece = match call {
            // All ranks' bytes are in the root's area.
            Call::Scatter { .. } => (AREA / ranks).next_power_of_two().min(AREA / ranks),
            _ => AREA,
        };
        let reduces = call.combine().is_some();
        Operation {
            call,
            ranks,
            bytes,
            piece,
            first,
            is_split: reduces && ranks > 1 && bytes * (ranks - 1) > MAX_WHOLE,
        }
    }

    fn steps(&self) -> u64 {
        match self.call {
            Call::Barrier => 1,
            _ => self.bytes.div_ceil(self.piece),
        }
    }

    /// A step by its place among the operation's.
    fn step(&self, number: u64) -> Step {
        let at = number * self.piece;
        Step {
            number: self.first + number,
            at,
            bytes: self.piece.min(self.bytes - at),
        }
    }

    /// Whether a rank gives bytes, or its presence.
    fn gives(&self, rank: usize) -> bool {
        match self.call {
            Call::Broadcast { root, .. } | Call::Scatter { root, .. } => root as usize == rank,
            _ => true,
        }
    }

    /// Where the bytes of a step are in what a rank gives.
    fn given(&self, step: Step) -> impl Iterator<Item = Range<usize>> + use<> {
        let blocks = match self.call {
            Call::Barrier => 0,
            Call::Scatter { .. } => self.ranks,
            _ => 1,
        };
        let (all, Step { at, bytes, .. }) = (self.bytes, step);
        (0..blocks).map(move |block| {
            let begin = (block * all + at) as usize;
            begin..begin + bytes as usize
        })
    }

    /// Where a rank's bytes of a step are in its memory.
    #[inline]
    fn area(&self, memory: Claim, step: Step) -> Claim {
        let blocks = match self.call {
            Call::Scatter { .. } => self.ranks,
            _ => 1,
        };
        let slot = step.number % SLOTS;
        let at = match step.bytes * blocks {
            ..=IN_LINE => SLOTS_AT + slot * SLOT + IN_LINE_AT,
            _ => AREAS_AT + slot * APART,
        };
        memory.slice(at, step.bytes * blocks)
    }

    /// The part of a step that a rank combines: whole lines, so whole elements.
    fn part(&self, step: Step, rank: usize) -> Range<u64> {
        let ranks = self.ranks;
        let bound = |rank: u64| match rank == ranks {
            true => step.bytes,
            false => step.bytes * rank / ranks / LINE * LINE,
        };
        bound(rank as u64)..bound(rank as u64 + 1)
    }
}

/// Where the mark of a step is in a rank's memory.
#[inline]
fn place_of(number: u64, mark: Mark) -> u64 {
    let line = SLOTS_AT + number % SLOTS * SLOT;
    match mark {
        Mark::Given => line,
        Mark::Combined => line + LINE,
    }
}
