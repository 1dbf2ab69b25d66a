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
//!
//! If the system lets ranks copy from each other, a rank may give the address of its bytes instead in
//! the first step of a long operation, and wait until those who get them have copied them. Each
//! rank chooses for what it gives, by what was measured ([`Choice`]).

use crate::buffers::{Buffers, Separate};
use crate::call::Call;
use crate::error::{Error, Result};
use crate::portals::Combine;
use crate::protocol::{Choice, Class, MIN_CHOICE, Measured, Protocol};
use lintel_claim::{
    Claim, CrossMemoryError, Lease, Region, RemoteMemory, RemoteSpan, combine, combine_bytes,
    combine_into,
};

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::time::Instant;

/// Memory of each rank, by rank, that this process has mapped.
pub struct SharedMemory {
    memories: Vec<Claim>,
    _mappings: Box<dyn Any + Send>,
    remote: Option<Remote>,
}

/// What ranks copy from each other's own memory by.
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

/// What a rank gets in a long operation.
#[derive(Default)]
struct Got {
    /// When the first bytes were there.
    begun: Option<Instant>,
    /// The ranks that have given their addresses, a bit for each.
    addresses: u64,
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
    /// Of one that has a choice of protocols.
    class: Option<Class>,
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
    /// It has copied what it gets.
    Pulled,
}

/// Ranks that read each other's memory: more of them go by messages, in fewer rounds.
pub const MAX_SHARING_RANKS: usize = 64;

/// Slots, and areas, of a rank.
const SLOTS: u64 = 32;
/// Steps that are given before the first of them is taken.
const WINDOW: u64 = SLOTS / 2;
/// A rank fetches the line of its mark so many steps before it writes it: those that have read the
/// line in the slot's step before still have copies.
const FETCHED_AHEAD: u64 = 2;
const LINE: u64 = 64;
/// A slot has a line for each mark.
const SLOT: u64 = 2 * LINE;
/// So few bytes lie in the line of the mark.
const IN_LINE: u64 = 48;
/// An operation of so few bytes of each rank is one step: also of a scatter, whose bytes for all
/// ranks are in an area then.
pub(crate) const MAX_SHORT_CALL: u64 = IN_LINE;
const _: () = assert!(MAX_SHORT_CALL * MAX_SHARING_RANKS as u64 <= AREA);
/// Where they lie there: aligned to any element.
const IN_LINE_AT: u64 = LINE - IN_LINE;
/// Bytes of an area.
const AREA: u64 = 16 << 10;
/// From one area to the next: their first lines don't share a set of the cache.
const APART: u64 = AREA + 5 * LINE;
/// Behind the line of `entered`, which other lines' neighbours aren't fetched with.
const SLOTS_AT: u64 = SLOT;
const AREAS_AT: u64 = SLOTS_AT + SLOTS * SLOT;
/// Where a rank publishes what it has measured.
const MEASURED_AT: u64 = LINE;
/// Up to so many bytes of all ranks together, each rank combines all of them: a split saves less
/// than its second wait costs.
const MAX_WHOLE: u64 = 4 << 10;
/// Reductions to a root are split if there are more ranks, and all together give more.
const MAX_RANKS_OF_WHOLE_REDUCE: u64 = 4;
const MAX_WHOLE_REDUCE: u64 = 256 << 10;
/// Bytes of a rank from which on there is a choice of protocols, if the giver would wait for several
/// ranks.
const MIN_CHOICE_OF_MANY: u64 = 64 << 10;
/// Bytes that are copied before they are combined: each copy costs a system call, and what it has
/// copied is still in the cache.
const PULLED_PIECE: u64 = 256 << 10;
/// Up to so many bytes of a rank go in smaller pieces: others read the first while the next is written.
const MAX_SHORT: u64 = 64 << 10;
/// The smaller pieces.
const SHORT_PIECE: u64 = 4 << 10;

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

    /// The ranks can also copy from each other's own memory: from those processes, by rank, as long
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
        let own = operation.own_piece(self.rank);
        if let (Some((from, to)), false) = (&own, operation.keeps_last()) {
            buffers.keep(from.clone(), to.clone());
        }
        match operation.class {
            Some(class) => self.run_by_choice((&operation, class), buffers, wait)?,
            None => self.run_steps(&operation, Protocol::CopyInCopyOut, buffers, wait)?,
        }
        if let (Some((from, to)), true) = (own, operation.keeps_last()) {
            buffers.keep(from, to);
        }
        Ok(())
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
        self.give(&operation, (0, Protocol::CopyInCopyOut), buffers, wait)?;
        self.take(&operation, 0, buffers, wait)?;
        // Last, as nothing overlaps.
        if let Some((from, to)) = operation.own_piece(self.rank) {
            buffers.keep(from, to);
        }
        Ok(())
    }

    fn run_steps(
        &mut self,
        operation: &Operation,
        protocol: Protocol,
        buffers: &mut dyn Buffers,
        wait: &mut Wait,
    ) -> Result<()> {
        let steps = operation.steps();
        if steps == 1 {
            self.give(operation, (0, protocol), buffers, wait)?;
            if operation.is_split {
                self.combine_part(operation, 0, wait)?;
            }
            return self.take_any(operation, 0, buffers, wait);
        }
        let mut from = 0;
        while from < steps {
            let window = from..steps.min(from + WINDOW);
            for number in window.clone() {
                self.give(operation, (number, protocol), buffers, wait)?;
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

    /// An operation that has a choice of protocols.
    fn run_by_choice(
        &mut self,
        (operation, class): (&Operation, Class),
        buffers: &mut dyn Buffers,
        wait: &mut Wait,
    ) -> Result<()> {
        self.got = Got::default();
        // What is given in place is overwritten by what this rank gets.
        let is_kept = !operation.gets_and_gives() || buffers.separate(0..0).is_some();
        let protocol = match is_kept {
            true => self.choose(operation, class),
            false => Protocol::CopyInCopyOut,
        };
        let done = self
            .run_steps(operation, protocol, buffers, wait)
            .and_then(|()| self.await_getters(operation, protocol, wait));
        match (&done, &self.memory.remote) {
            (Ok(()), _) => self.measure(operation, class),
            // The caller may free its buffer now, which others may be about to copy from.
            (Err(_), Some(remote)) => remote.lease.revoke(),
            (Err(_), None) => {}
        }
        done
    }

    /// How this rank gives its bytes.
    fn choose(&mut self, operation: &Operation, class: Class) -> Protocol {
        let at = MEASURED_AT + class.word() * size_of::<u64>() as u64;
        let (rank, memories) = (self.rank, &self.memory.memories);
        let getters = self.others().filter(|other| operation.gets(*other, rank));
        let mut published = getters
            .map(|getter| memories[getter].load_u64(at).unwrap_or(0))
            .peekable();
        match published.peek() {
            Some(_) => self.choice.protocol((class, operation.bytes), published),
            None => Protocol::CopyInCopyOut,
        }
    }

    /// As [`take`](Self::take), of any operation: marks what was copied from addresses that others
    /// have given, also if that has failed.
    fn take_any(
        &mut self,
        operation: &Operation,
        number: u64,
        buffers: &mut dyn Buffers,
        wait: &mut Wait,
    ) -> Result<()> {
        let taken = self.take(operation, number, buffers, wait);
        if number == operation.pulled_step() && self.got.addresses != 0 {
            let at = place_of(operation.first, Mark::Pulled);
            self.memory.memories[self.rank].store_u64(at, operation.first + 1);
        }
        taken
    }

    /// Waits until those who get this rank's bytes have copied them from where they are.
    fn await_getters(
        &self,
        operation: &Operation,
        protocol: Protocol,
        wait: &mut Wait,
    ) -> Result<()> {
        if protocol == Protocol::SingleCopy {
            let is_getter = |other: &usize| operation.gets(*other, self.rank);
            for getter in self.others().filter(is_getter) {
                self.await_mark(getter, operation.step(0), Mark::Pulled, wait)?;
            }
        }
        Ok(())
    }

    /// Publishes what an operation has shown, if all have given this rank their bytes alike.
    fn measure(&mut self, operation: &Operation, class: Class) {
        let Got { begun, addresses } = std::mem::take(&mut self.got);
        let Some(begun) = begun else {
            return;
        };
        let took = begun.elapsed();
        let is_giver = |other: &usize| operation.gets(self.rank, *other);
        let givers = self.others().filter(is_giver).count() as u64;
        let bytes = givers * operation.bytes;
        let (protocol, took) = match u64::from(addresses.count_ones()) {
            // The first piece was written before.
            0 => {
                let whole = operation.bytes + operation.piece.min(operation.bytes);
                let took = took.mul_f64(whole as f64 / operation.bytes as f64);
                (Protocol::CopyInCopyOut, took)
            }
            addresses if addresses == givers => (Protocol::SingleCopy, took),
            _ => return,
        };
        if let Some(word) = self.measured.add(class, protocol, (bytes, took)) {
            let at = MEASURED_AT + class.word() * size_of::<u64>() as u64;
            self.memory.memories[self.rank].store_u64(at, word);
        }
    }

    /// Whether a rank has given the address of its bytes. They are copied in one step.
    #[inline]
    fn pulls<B: Buffers + ?Sized, W: FnMut(bool) -> Result<()> + ?Sized>(
        &mut self,
        (operation, number): (&Operation, u64),
        rank: usize,
        buffers: &mut B,
        wait: &mut W,
    ) -> Result<bool> {
        if operation.class.is_none() {
            return Ok(false);
        }
        if number == 0 {
            self.await_mark(rank, operation.step(0), Mark::Given, wait)?;
            self.got.begun.get_or_insert_with(Instant::now);
            let is_address = self.given_address(operation, rank) != 0;
            self.got.addresses |= u64::from(is_address) << rank;
        }
        let is_address = self.got.addresses & 1 << rank != 0;
        if is_address && number == operation.pulled_step() {
            self.pull(operation, rank, buffers)?;
        }
        Ok(is_address)
    }

    /// Where a rank's bytes are, if it has given their address; else 0.
    fn given_address(&self, operation: &Operation, rank: usize) -> u64 {
        let address = self.memory.memories[rank].load_u64(few_bytes_of(operation.first));
        address.unwrap_or(0)
    }

    /// Copies what this rank gets of a rank that has given its address.
    fn pull<B: Buffers + ?Sized>(
        &self,
        operation: &Operation,
        rank: usize,
        buffers: &mut B,
    ) -> Result<()> {
        let address = self.given_address(operation, rank);
        let remote = self.memory.remote.as_ref().ok_or(Error::MessageFailed)?;
        let process = &remote.processes[rank];
        let bytes = operation.bytes;
        let whole = |block: u64| RemoteSpan {
            address: address.wrapping_add(block * bytes),
            length: bytes,
        };
        let place = |block: usize| block * bytes as usize..(block + 1) * bytes as usize;
        let pulled = match operation.call {
            Call::Scatter { .. } => {
                process.pull_into(whole(self.rank as u64), buffers.output(place(0)))
            }
            Call::Gather { .. } => process.pull_into(whole(0), buffers.output(place(rank))),
            Call::Allreduce(_) | Call::Reduce { .. } => {
                let is_first = rank < self.rank;
                self.pull_combining(operation, (process, is_first), whole(0), buffers)
            }
            _ => process.pull_into(whole(0), buffers.output(place(0))),
        };
        match pulled {
            Ok(_) => Ok(()),
            Err(CrossMemoryError::NoProcess) => Err(Error::ProcFailed { rank: rank as u32 }),
            Err(_) => Err(Error::MessageFailed),
        }
    }

    /// Combines the bytes of a process with this rank's; whether they come first counts for the bits
    /// of some results.
    fn pull_combining<B: Buffers + ?Sized>(
        &self,
        operation: &Operation,
        (process, is_first): (&RemoteMemory, bool),
        from: RemoteSpan,
        buffers: &mut B,
    ) -> std::result::Result<u64, CrossMemoryError> {
        let how = operation.combine();
        let mut at = 0;
        while at < from.length {
            let length = PULLED_PIECE.min(from.length - at);
            let piece = RemoteSpan {
                address: from.address.wrapping_add(at),
                length,
            };
            let place = at as usize..(at + length) as usize;
            match is_first {
                true => self.combine_behind(how, place, buffers, |result| {
                    process.pull_into(piece, result)
                })?,
                false => {
                    let aside = self.aside.claim().slice(0, length);
                    let pulled = process.pull(&[piece], &[aside])?;
                    buffers.combine(how, aside, place);
                    pulled
                }
            };
            at += length;
        }
        Ok(at)
    }

    /// Combines what `read` writes, which comes first, with this rank's bytes at that place, at most
    /// as many as lie aside.
    fn combine_behind<B: Buffers + ?Sized, R>(
        &self,
        how: Combine,
        place: Range<usize>,
        buffers: &mut B,
        read: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        if let Some((own, result)) = buffers.separate(place.clone()) {
            let done = read(result);
            combine_bytes(how.operation, how.datatype, own, result);
            return done;
        }
        let own = self.aside.claim().slice(0, place.len() as u64);
        own.write(buffers.input(place.clone()));
        let result = buffers.output(place);
        let done = read(result);
        combine_into(how.operation, how.datatype, own, result);
        done
    }

    fn ranks(&self) -> usize {
        self.memory.memories.len()
    }

    /// Writes what this rank gives to a step.
    #[inline(always)]
    fn give<B: Buffers + ?Sized, W: FnMut(bool) -> Result<()> + ?Sized>(
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
            if operation.class.is_some() && number == 0 {
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
        own.prefetch_to_write(place_of(step.number + FETCHED_AHEAD, Mark::Given));
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

    /// Waits for what this rank gets of a step, and reads it.
    #[inline(always)]
    fn take<B: Buffers + ?Sized, W: FnMut(bool) -> Result<()> + ?Sized>(
        &mut self,
        operation: &Operation,
        number: u64,
        buffers: &mut B,
        wait: &mut W,
    ) -> Result<()> {
        let step = operation.step(number);
        let Step { at, bytes, .. } = step;
        let place = |begin: u64, bytes: u64| begin as usize..(begin + bytes) as usize;
        match operation.call {
            Call::Barrier => {
                for rank in self.others() {
                    self.await_mark(rank, step, Mark::Given, wait)?;
                }
            }
            Call::Allreduce(_) if !operation.is_split => {
                if operation.class.is_some() {
                    return self.take_of_two((operation, number), buffers, wait);
                }
                // In the same order at all ranks, so that all get the same bits.
                let output = buffers.output(place(at, bytes));
                let how = operation.combine();
                let first = self.await_area(0, operation, step, wait)?;
                first.read(output);
                for rank in 1..self.ranks() {
                    let area = self.await_area(rank, operation, step, wait)?;
                    combine_into(how.operation, how.datatype, area, output);
                }
            }
            Call::Reduce { root, .. } if root as usize == self.rank && !operation.is_split => {
                let how = operation.combine();
                let mut others = self.others();
                let Some(first) = others.next() else {
                    buffers.keep(step.range(), step.range());
                    return Ok(());
                };
                if self.pulls((operation, number), first, buffers, wait)? {
                    return Ok(());
                }
                let area = self.await_area(first, operation, step, wait)?;
                buffers.combine(how, area, step.range());
                let output = buffers.output(step.range());
                for rank in others {
                    let area = self.await_area(rank, operation, step, wait)?;
                    combine_into(how.operation, how.datatype, area, output);
                }
            }
            Call::Reduce { root, .. } if root as usize != self.rank => {}
            Call::Allreduce(_) | Call::Reduce { .. } => {
                for rank in 0..self.ranks() {
                    self.await_mark(rank, step, Mark::Combined, wait)?;
                    let Range { start, end } = operation.part(step, rank);
                    let part = self.area(rank, operation, step).slice(start, end - start);
                    part.read(buffers.output(place(at + start, end - start)));
                }
            }
            Call::Gather { root, .. } if root as usize == self.rank => {
                for rank in self.others() {
                    if self.pulls((operation, number), rank, buffers, wait)? {
                        continue;
                    }
                    let area = self.await_area(rank, operation, step, wait)?;
                    let begin = rank as u64 * operation.bytes + at;
                    area.read(buffers.output(place(begin, bytes)));
                }
            }
            Call::Broadcast { root, .. } | Call::Scatter { root, .. }
                if root as usize != self.rank =>
            {
                let root = root as usize;
                if self.pulls((operation, number), root, buffers, wait)? {
                    return Ok(());
                }
                let area = self.await_area(root, operation, step, wait)?;
                let own = match operation.call {
                    Call::Scatter { .. } => area.slice(self.rank as u64 * bytes, bytes),
                    _ => area,
                };
                own.read(buffers.output(place(at, bytes)));
            }
            Call::Gather { .. } | Call::Broadcast { .. } | Call::Scatter { .. } => {}
        }
        Ok(())
    }

    /// Combines what the other one of two ranks has given with this rank's, which needn't be in its area.
    fn take_of_two<B: Buffers + ?Sized, W: FnMut(bool) -> Result<()> + ?Sized>(
        &mut self,
        (operation, number): (&Operation, u64),
        buffers: &mut B,
        wait: &mut W,
    ) -> Result<()> {
        let other = 1 - self.rank;
        if self.pulls((operation, number), other, buffers, wait)? {
            return Ok(());
        }
        let step = operation.step(number);
        let area = self.await_area(other, operation, step, wait)?;
        let how = operation.combine();
        match other < self.rank {
            true => _ = self.combine_behind(how, step.range(), buffers, |to| area.read(to)),
            false => buffers.combine(how, area, step.range()),
        }
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

impl Step {
    /// Where its bytes are among those of a rank.
    #[inline]
    fn range(&self) -> Range<usize> {
        self.at as usize..(self.at + self.bytes) as usize
    }
}

impl Operation {
    #[inline]
    fn new((call, bytes): (Call, u64), ranks: u64, first: u64, has_choice: bool) -> Self {
        match bytes <= MAX_SHORT_CALL {
            true => Operation::of_one_step((call, bytes), ranks, first),
            false => Operation::of_several_lines((call, bytes), ranks, first, has_choice),
        }
    }

    /// Of so few bytes that nothing need be weighed.
    #[inline(always)]
    fn of_one_step((call, bytes): (Call, u64), ranks: u64, first: u64) -> Self {
        Operation {
            call,
            ranks,
            bytes,
            piece: MAX_SHORT_CALL,
            first,
            is_split: false,
            class: None,
        }
    }

    fn of_several_lines(
        (call, bytes): (Call, u64),
        ranks: u64,
        first: u64,
        has_choice: bool,
    ) -> Self {
        let least = match call {
            Call::Gather { .. } => MIN_CHOICE,
            Call::Scatter { .. } if ranks == 2 => MIN_CHOICE,
            Call::Scatter { .. } => MIN_CHOICE_OF_MANY,
            // The root of more ranks would wait for all, which read from its areas at leisure.
            Call::Broadcast { .. } if ranks == 2 => MIN_CHOICE,
            // Of more ranks, who gives what how would decide about the order of combining.
            Call::Allreduce(_) | Call::Reduce { .. } if ranks == 2 => MIN_CHOICE,
            _ => u64::MAX,
        };
        let class = match has_choice && bytes >= least {
            true => Class::of(bytes, call.combine().is_some()),
            false => None,
        };
        let most = match call {
            // All ranks' bytes are in the root's area.
            Call::Scatter { .. } => (AREA / ranks) & !(LINE - 1),
            _ => AREA,
        };
        let piece = match bytes {
            ..=MAX_SHORT => most.min(SHORT_PIECE),
            _ => most,
        };
        let others_bytes = bytes * (ranks - 1);
        Operation {
            call,
            ranks,
            bytes,
            piece,
            first,
            is_split: match call {
                Call::Allreduce(_) => class.is_none() && others_bytes > MAX_WHOLE,
                Call::Reduce { .. } => {
                    ranks > MAX_RANKS_OF_WHOLE_REDUCE && others_bytes > MAX_WHOLE_REDUCE
                }
                _ => false,
            },
            class,
        }
    }

    #[inline]
    fn steps(&self) -> u64 {
        match self.call {
            Call::Barrier => 1,
            _ if self.bytes <= self.piece => self.bytes.min(1),
            _ => self.bytes.div_ceil(self.piece),
        }
    }

    /// The step in which bytes are copied whose address was given: of an operation that may be in
    /// place, after all of a rank's own was given.
    #[inline]
    fn pulled_step(&self) -> u64 {
        match self.gets_and_gives() {
            true => self.steps() - 1,
            false => 0,
        }
    }

    /// Whether ranks get something in the place of what they give.
    #[inline]
    fn gets_and_gives(&self) -> bool {
        matches!(self.call, Call::Allreduce(_))
    }

    /// A step by its place among the operation's.
    #[inline]
    fn step(&self, number: u64) -> Step {
        let at = number * self.piece;
        Step {
            number: self.first + number,
            at,
            bytes: self.piece.min(self.bytes - at),
        }
    }

    /// Whether a rank gives bytes, or its presence.
    #[inline]
    fn gives(&self, rank: usize) -> bool {
        match self.call {
            Call::Broadcast { root, .. } | Call::Scatter { root, .. } => root as usize == rank,
            Call::Gather { root, .. } => root as usize != rank,
            Call::Reduce { root, .. } => self.is_split || root as usize != rank,
            Call::Barrier | Call::Allreduce(_) => true,
        }
    }

    /// Whether a rank gets bytes of another one.
    #[inline]
    fn gets(&self, rank: usize, of: usize) -> bool {
        match self.call {
            Call::Gather { root, .. } | Call::Reduce { root, .. } => root as usize == rank,
            Call::Broadcast { root, .. } | Call::Scatter { root, .. } => root as usize == of,
            Call::Barrier | Call::Allreduce(_) => true,
        }
    }

    /// What a rank gives has so many times the bytes that each gets or gives.
    #[inline]
    fn blocks(&self) -> u64 {
        match self.call {
            Call::Barrier => 0,
            Call::Scatter { .. } => self.ranks,
            _ => 1,
        }
    }

    /// Where the bytes of a step go in the area of a rank that gives them, and where they are in
    /// its input.
    fn given(&self, step: Step, rank: usize) -> impl Iterator<Item = (u64, Range<usize>)> + use<> {
        let blocks = self.blocks();
        let (all, Step { at, bytes, .. }) = (self.bytes, step);
        let is_others = move |block: &u64| blocks < 2 || *block != rank as u64;
        (0..blocks).filter(is_others).map(move |block| {
            let begin = (block * all + at) as usize;
            (block * bytes, begin..begin + bytes as usize)
        })
    }

    /// What the root gives to itself: where it is in its input, and where it goes in its result.
    #[inline]
    fn own_piece(&self, rank: usize) -> Option<(Range<usize>, Range<usize>)> {
        let block = |block: usize| {
            let begin = block * self.bytes as usize;
            begin..begin + self.bytes as usize
        };
        match self.call {
            Call::Gather { root, .. } if root as usize == rank => Some((block(0), block(rank))),
            Call::Scatter { root, .. } if root as usize == rank => Some((block(rank), block(0))),
            _ => None,
        }
    }

    /// Whether it is copied after all else: in place, it may overwrite what others get. Else before
    /// all else: in place, it may be overwritten by what others give.
    #[inline]
    fn keeps_last(&self) -> bool {
        matches!(self.call, Call::Scatter { .. })
    }

    /// How a reduction combines.
    #[inline]
    fn combine(&self) -> Combine {
        self.call.combine().expect("only reductions combine")
    }

    /// Where a rank's bytes of a step are in its memory.
    #[inline]
    fn area(&self, memory: Claim, step: Step) -> Claim {
        let blocks = self.blocks();
        let slot = step.number % SLOTS;
        let at = match step.bytes * blocks {
            ..=IN_LINE => few_bytes_of(step.number),
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

/// Where few bytes of a step are in a rank's memory.
#[inline]
fn few_bytes_of(number: u64) -> u64 {
    place_of(number, Mark::Given) + IN_LINE_AT
}

/// Where the mark of a step is in a rank's memory.
#[inline]
fn place_of(number: u64, mark: Mark) -> u64 {
    let line = SLOTS_AT + number % SLOTS * SLOT;
    match mark {
        Mark::Given => line,
        Mark::Combined | Mark::Pulled => line + LINE,
    }
}
