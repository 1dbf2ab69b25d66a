//! Operations in memory that all ranks of a group have mapped: loads and stores, without a
//! message.
//!
//! ```text
//!   a rank's memory   │ entered │ times │ slot 0: mark, result mark, few bytes │ slot 1 │ … │ areas 0, 1, …
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
//!
//! If the system lets ranks copy from each other, a rank may give the address of its bytes instead in
//! the first step of a long operation, and wait until those who get them have copied them. Each
//! rank chooses for what it gives, by what was measured ([`Choice`]). Of two ranks both copy then, each
//! half of the bytes.

mod joint_copy;
mod layout;
mod operation;
mod protocol;
mod single_copy;
mod take;

pub(crate) use layout::MAX_SHORT_CALL;

use crate::buffers::{Buffers, Separate};
use crate::call::Call;
use crate::error::Result;
use layout::{
    APART, AREAS_AT, FETCHED_AHEAD, Mark, SLOTS, WINDOW, few_bytes_of, place_of, unused_of,
};
use lintel_claim::{Claim, Lease, Region, RemoteMemory, combine};
use operation::{Keep, Operation, Step};
use protocol::{Choice, Measured, Protocol};
use single_copy::{Got, PULLED_PIECE};
use std::any::Any;
use std::fmt;
use std::ops::Range;

/// Memory of each rank, by rank, that this process has mapped.
pub struct SharedMemory {
    memories: Vec<Claim>,
    _mappings: Box<dyn Any + Send>,
    remote: Option<Remote>,
}

/// What ranks copy from and to each other's own memory by.
struct Remote {
    /// Of this rank: revoked once an operation has failed.
    lease: Lease,
    /// By rank.
    processes: Vec<RemoteMemory>,
    /// Bytes up to which ranks don't, unless that is measured.
    eager: Option<u64>,
}

/// The operations of a group in [`SharedMemory`].
pub(crate) struct SharedOperations {
    memory: SharedMemory,
    rank: usize,
    /// The number of the next operation's first step.
    next: u64,
    /// Steps below may use their slots.
    free: u64,
    /// Bytes that are combined lie here meanwhile.
    aside: Region,
    choice: Choice,
    measured: Measured,
    got: Got,
}

/// Called for each look at another rank's memory that was in vain; true for a wait's first one.
type Wait<'a> = dyn FnMut(bool) -> Result<()> + 'a;

/// Whether an operation may have a choice of protocols: a short one hasn't, which the compiler has to
/// know to leave it out.
const WITH_CHOICE: bool = true;
const WITHOUT_CHOICE: bool = false;

/// Ranks that read each other's memory. More of them send messages, in fewer rounds: the bytes that a
/// root scatters to all go through one area.
pub const MAX_SHARING_RANKS: usize = 256;

impl SharedMemory {
    /// Bytes of each rank's memory, which are zero at first.
    pub const BYTES: u64 = AREAS_AT + SLOTS * APART;

    /// `memories` by rank, each of [`Self::BYTES`]; they are mapped as long as `mappings` lives.
    pub fn new(memories: Vec<Claim>, mappings: Box<dyn Any + Send>) -> Self {
        SharedMemory {
            memories,
            _mappings: mappings,
            remote: None,
        }
    }

    /// The ranks can also copy from and to each other's own memory: that of those processes, by rank, as long
    /// as their leases aren't revoked. `lease` is this rank's.
    #[must_use]
    pub fn with_remote(mut self, lease: Lease, processes: Vec<RemoteMemory>) -> Self {
        self.remote = Some(Remote {
            lease,
            processes,
            eager: None,
        });
        self
    }

    /// Up to so many bytes of a rank they don't, and beyond they do, where else what is quicker is
    /// measured.
    #[must_use]
    pub fn with_eager(mut self, bytes: u64) -> Self {
        if let Some(remote) = &mut self.remote {
            remote.eager = Some(bytes);
        }
        self
    }

    /// Whether it is the memory of so many ranks.
    pub(crate) fn is_of(&self, ranks: usize) -> bool {
        let remote = self.remote.as_ref();
        self.memories.len() == ranks
            && self.memories.iter().all(|it| it.len() >= Self::BYTES)
            && remote.is_none_or(|remote| remote.processes.len() == ranks)
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.memories).finish()
    }
}

impl SharedOperations {
    pub(crate) fn new(memory: SharedMemory, rank: u32) -> Self {
        let eager = memory.remote.as_ref().and_then(|remote| remote.eager);
        SharedOperations {
            memory,
            rank: rank as usize,
            next: 0,
            free: SLOTS,
            aside: Region::new(PULLED_PIECE),
            choice: Choice::new(eager),
            measured: Measured::default(),
            got: Got::default(),
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
        let has_choice = self.memory.remote.is_some();
        let operation = Operation::new((call, bytes), self.ranks() as u64, self.next, has_choice);
        self.next += operation.steps();
        self.keep_own(&operation, Keep::First, buffers);
        match operation.class {
            Some(class) => self.run_by_choice((&operation, class), buffers, wait)?,
            None => {
                let how = (&operation, Protocol::CopyInCopyOut);
                self.run_steps(how, 0..operation.steps(), buffers, wait)?;
                self.keep_own(&operation, Keep::WhileOthersCopy, buffers);
            }
        }
        self.keep_own(&operation, Keep::Last, buffers);
        Ok(())
    }

    /// Copies what a root gives to itself, if that is to be done then.
    fn keep_own(&self, operation: &Operation, then: Keep, buffers: &mut dyn Buffers) {
        let Some((from, to)) = operation.own_piece(self.rank) else {
            return;
        };
        let is_in_place = buffers.separate(0..0).is_none();
        if operation.keeps_own(is_in_place) == then {
            buffers.keep(from, to);
        }
    }

    /// As [`SharedOperations::run`], of at most [`MAX_SHORT_CALL`] bytes of each rank: one step,
    /// compiled for each call, since the instructions are most of its time.
    #[inline(always)]
    pub(crate) fn run_short<W: FnMut(bool) -> Result<()>>(
        &mut self,
        (call, bytes): (Call, u64),
        buffers: &mut Separate,
        wait: &mut W,
    ) -> Result<()> {
        let operation = Operation::of_one_step((call, bytes), self.ranks() as u64, self.next);
        if operation.steps() == 0 {
            return Ok(());
        }
        self.next += 1;
        let protocol = Protocol::CopyInCopyOut;
        self.give::<WITHOUT_CHOICE, _, _>(&operation, (0, protocol), buffers, wait)?;
        self.take::<WITHOUT_CHOICE, _, _>(&operation, 0, buffers, wait)?;
        // Last, as nothing overlaps.
        if let Some((from, to)) = operation.own_piece(self.rank) {
            buffers.keep(from, to);
        }
        Ok(())
    }

    fn run_steps(
        &mut self,
        (operation, protocol): (&Operation, Protocol),
        steps: Range<u64>,
        buffers: &mut dyn Buffers,
        wait: &mut Wait,
    ) -> Result<()> {
        let mut from = steps.start;
        while from < steps.end {
            let window = from..steps.end.min(from + WINDOW);
            for number in window.clone() {
                self.give::<WITH_CHOICE, _, _>(operation, (number, protocol), buffers, wait)?;
            }
            if operation.is_split {
                for number in window.clone() {
                    self.combine_part(operation, number, wait)?;
                }
            }
            for number in window.clone() {
                self.take_any(operation, number, buffers, wait)?;
            }
            from = window.end;
        }
        Ok(())
    }

    fn ranks(&self) -> usize {
        self.memory.memories.len()
    }

    /// Writes what this rank gives to a step.
    #[inline(always)]
    fn give<const CHOICE: bool, B: Buffers + ?Sized, W: FnMut(bool) -> Result<()> + ?Sized>(
        &mut self,
        operation: &Operation,
        (number, protocol): (u64, Protocol),
        buffers: &B,
        wait: &mut W,
    ) -> Result<()> {
        let step = operation.step(number);
        self.await_slot(step.number, wait)?;
        let own = self.memory.memories[self.rank];
        if operation.gives(self.rank) && protocol == Protocol::SingleCopy {
            if number == 0 {
                let bytes = operation.blocks() * operation.bytes;
                let address = buffers
                    .input(0..bytes as usize)
                    .as_ptr()
                    .expose_provenance() as u64;
                own.store_u64(few_bytes_of(step.number), address);
                own.store_u64(place_of(step.number, Mark::Given), step.number + 1);
            }
        } else if operation.gives(self.rank) {
            if CHOICE && operation.class.is_some() && number == 0 {
                own.store_u64(few_bytes_of(step.number), 0);
            }
            let area = operation.area(own, step);
            match operation.blocks() {
                0 => {}
                1 => _ = area.write(buffers.input(step.range())),
                _ => {
                    for (at, piece) in operation.given(step, self.rank) {
                        area.slice(at, u64::MAX).write(buffers.input(piece));
                    }
                }
            }
            own.store_u64(place_of(step.number, Mark::Given), step.number + 1);
        }
        own.store_u64(0, step.number + 1);
        own.store_u64(unused_of(step.number + FETCHED_AHEAD), 0);
        Ok(())
    }

    /// Combines the others' with this rank's part of what all have given, in its own area: no other
    /// rank reads that part of what this one has given.
    fn combine_part(&self, operation: &Operation, number: u64, wait: &mut Wait) -> Result<()> {
        let step = operation.step(number);
        let Range { start, end } = operation.part(step, self.rank);
        let part = |rank: usize| self.area(rank, operation, step).slice(start, end - start);
        let (own, how) = (part(self.rank), operation.combine());
        for rank in self.others() {
            self.await_mark(rank, step, Mark::Given, wait)?;
            combine(how.operation, how.datatype, part(rank), own);
        }
        let own = self.memory.memories[self.rank];
        own.store_u64(place_of(step.number, Mark::Combined), step.number + 1);
        Ok(())
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.rank;
        (0..self.ranks()).filter(move |rank| *rank != own)
    }

    #[inline]
    fn area(&self, rank: usize, operation: &Operation, step: Step) -> Claim {
        operation.area(self.memory.memories[rank], step)
    }

    /// What a rank has given to a step, once it has.
    #[inline]
    fn await_area<W: FnMut(bool) -> Result<()> + ?Sized>(
        &self,
        rank: usize,
        operation: &Operation,
        step: Step,
        wait: &mut W,
    ) -> Result<Claim> {
        self.await_mark(rank, step, Mark::Given, wait)?;
        Ok(self.area(rank, operation, step))
    }

    /// Returns when a rank has marked a step. Its bytes can be read then: the mark is stored with
    /// release order after them, and loaded with acquire order.
    #[inline]
    fn await_mark<W: FnMut(bool) -> Result<()> + ?Sized>(
        &self,
        rank: usize,
        step: Step,
        mark: Mark,
        wait: &mut W,
    ) -> Result<()> {
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
    #[inline]
    fn await_slot<W: FnMut(bool) -> Result<()> + ?Sized>(
        &mut self,
        number: u64,
        wait: &mut W,
    ) -> Result<()> {
        match number < self.free {
            true => Ok(()),
            false => self.await_free(number, wait),
        }
    }

    #[cold]
    fn await_free<W: FnMut(bool) -> Result<()> + ?Sized>(
        &mut self,
        number: u64,
        wait: &mut W,
    ) -> Result<()> {
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
