//! Long operations in which each rank chooses how it gives its bytes: copied through its areas, or
//! once by those who get them, from where they are.

use super::layout::{MEASURED_AT, Mark, few_bytes_of, place_of};
use super::operation::{Keep, Operation};
use super::protocol::{Class, Protocol};
use super::{MAX_SHARING_RANKS, SharedOperations, WITH_CHOICE, Wait};
use crate::buffers::Buffers;
use crate::call::Call;
use crate::error::{Error, Result};
use crate::portals::Combine;
use lintel_claim::{CrossMemoryError, RemoteMemory, RemoteSpan, combine_bytes, combine_into};
use std::ops::Range;
use std::time::Instant;

/// What a rank gets in a long operation.
#[derive(Default)]
pub(super) struct Got {
    /// When the first bytes were there.
    begun: Option<Instant>,
    /// The ranks that have given their addresses.
    addresses: Ranks,
    /// The step in which their bytes are copied: the last if what this rank gives step by step is in
    /// the same place.
    pulled_step: u64,
}

/// Some ranks, a bit for each.
#[derive(Clone, Copy, Default)]
struct Ranks([u64; MAX_SHARING_RANKS.div_ceil(64)]);

/// Bytes that are copied before they are combined: each copy costs a system call, and what it has
/// copied is still in the cache.
pub(super) const PULLED_PIECE: u64 = 256 << 10;

impl Ranks {
    fn insert(&mut self, rank: usize) {
        self.0[rank / 64] |= 1 << (rank % 64);
    }

    fn contains(&self, rank: usize) -> bool {
        self.0[rank / 64] & 1 << (rank % 64) != 0
    }

    fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// The result of copying from a rank.
fn of_rank(rank: usize, copied: std::result::Result<u64, CrossMemoryError>) -> Result<()> {
    match copied {
        Ok(_) => Ok(()),
        Err(CrossMemoryError::NoProcess) => Err(Error::ProcFailed { rank: rank as u32 }),
        Err(_) => Err(Error::MessageFailed),
    }
}

impl SharedOperations {
    /// An operation that has a choice of protocols.
    pub(super) fn run_by_choice(
        &mut self,
        (operation, class): (&Operation, Class),
        buffers: &mut dyn Buffers,
        wait: &mut Wait,
    ) -> Result<()> {
        // What is given in place is overwritten by what this rank gets.
        let is_kept = !operation.gets_and_gives() || buffers.separate(0..0).is_some();
        let protocol = match is_kept {
            true => self.choose(operation, class),
            false => Protocol::CopyInCopyOut,
        };
        let is_in_steps = operation.gives(self.rank) && protocol == Protocol::CopyInCopyOut;
        self.got.pulled_step = match is_in_steps && operation.gets_and_gives() {
            true => operation.steps() - 1,
            false => 0,
        };
        let done = self
            .offer_place(operation, buffers, wait)
            .and_then(|()| {
                self.run_until_through((operation, protocol), is_in_steps, buffers, wait)
            })
            .and_then(|()| self.await_getters((operation, protocol), buffers, wait));
        match (&done, &self.memory.remote) {
            (Ok(()), _) => self.measure(operation, class),
            // The caller may free its buffer now, which others may be about to copy from.
            (Err(_), Some(remote)) => remote.lease.revoke(),
            (Err(_), None) => {}
        }
        done
    }

    /// Runs all steps, or the first if nothing is left then that this rank gives or gets.
    fn run_until_through(
        &mut self,
        (operation, protocol): (&Operation, Protocol),
        is_in_steps: bool,
        buffers: &mut dyn Buffers,
        wait: &mut Wait,
    ) -> Result<()> {
        let steps = operation.steps();
        if is_in_steps {
            return self.run_steps((operation, protocol), 0..steps, buffers, wait);
        }
        self.run_steps((operation, protocol), 0..1, buffers, wait)?;
        if self.got.addresses.count() == self.givers(operation) {
            self.memory.memories[self.rank].store_u64(0, self.next);
            return Ok(());
        }
        self.run_steps((operation, protocol), 1..steps, buffers, wait)
    }

    /// How many ranks give this one something.
    fn givers(&self, operation: &Operation) -> u32 {
        let is_giver = |other: &usize| operation.gets(self.rank, *other);
        self.others().filter(is_giver).count() as u32
    }

    /// How this rank gives its bytes.
    fn choose(&mut self, operation: &Operation, class: Class) -> Protocol {
        let at = MEASURED_AT + class.word() * size_of::<u64>() as u64;
        let (rank, memories) = (self.rank, &self.memory.memories);
        let getters = self.others().filter(|other| operation.gets(*other, rank));
        let mut published = getters
            .map(|getter| memories[getter].load_u64(at).unwrap_or(0))
            .peekable();
        match (published.peek(), self.choice.set(operation.bytes)) {
            (None, _) => Protocol::CopyInCopyOut,
            (_, Some(protocol)) => protocol,
            // Not measured.
            _ if operation.is_for_many() => Protocol::SingleCopy,
            _ => self.choice.protocol(class, published),
        }
    }

    /// As [`take`](Self::take), of any operation: marks what was copied from addresses that others
    /// have given, also if that has failed.
    pub(super) fn take_any(
        &mut self,
        operation: &Operation,
        number: u64,
        buffers: &mut dyn Buffers,
        wait: &mut Wait,
    ) -> Result<()> {
        let taken = self.take::<WITH_CHOICE, _, _>(operation, number, buffers, wait);
        if number == self.got.pulled_step && self.got.addresses.count() > 0 {
            self.mark_pulled(operation);
        }
        taken
    }

    /// Those who have given this rank their addresses may go on.
    fn mark_pulled(&self, operation: &Operation) {
        let at = place_of(operation.first, Mark::Pulled);
        self.memory.memories[self.rank].store_u64(at, operation.first + 1);
    }

    /// Waits until those who get this rank's bytes have copied them from where they are, and copies meanwhile
    /// what this rank has to.
    fn await_getters(
        &self,
        (operation, protocol): (&Operation, Protocol),
        buffers: &mut dyn Buffers,
        wait: &mut Wait,
    ) -> Result<()> {
        let is_copied_by_getters = protocol == Protocol::SingleCopy;
        if is_copied_by_getters && operation.is_joint() {
            self.push_part(operation, buffers, wait)?;
        }
        self.keep_own(operation, Keep::WhileOthersCopy, buffers);
        let is_getter = |other: &usize| is_copied_by_getters && operation.gets(*other, self.rank);
        for getter in self.others().filter(is_getter) {
            self.await_mark(getter, operation.step(0), Mark::Pulled, wait)?;
        }
        Ok(())
    }

    /// Publishes what an operation has shown, if all have given this rank their bytes alike.
    fn measure(&mut self, operation: &Operation, class: Class) {
        let got = std::mem::take(&mut self.got);
        let Some(begun) = got.begun else {
            return;
        };
        let took = begun.elapsed();
        let givers = self.givers(operation);
        let bytes = u64::from(givers) * operation.bytes;
        let (protocol, took) = match got.addresses.count() {
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

    /// Whether a rank has given the address of its bytes, in an operation that has a choice of
    /// protocols. They are copied in one step.
    pub(super) fn pulls<B: Buffers + ?Sized, W: FnMut(bool) -> Result<()> + ?Sized>(
        &mut self,
        (operation, number): (&Operation, u64),
        rank: usize,
        buffers: &mut B,
        wait: &mut W,
    ) -> Result<bool> {
        if number == 0 {
            self.await_mark(rank, operation.step(0), Mark::Given, wait)?;
            self.got.begun.get_or_insert_with(Instant::now);
            if self.given_address(operation, rank) != 0 {
                self.got.addresses.insert(rank);
            }
        }
        let is_address = self.got.addresses.contains(rank);
        if is_address && number == self.got.pulled_step {
            self.pull(operation, rank, buffers, wait)?;
        }
        Ok(is_address)
    }

    /// Where a rank's bytes are, if it has given their address; else 0.
    fn given_address(&self, operation: &Operation, rank: usize) -> u64 {
        let address = self.memory.memories[rank].load_u64(few_bytes_of(operation.first));
        address.unwrap_or(0)
    }

    /// Copies what this rank gets of a rank that has given its address.
    fn pull<B: Buffers + ?Sized, W: FnMut(bool) -> Result<()> + ?Sized>(
        &self,
        operation: &Operation,
        rank: usize,
        buffers: &mut B,
        wait: &mut W,
    ) -> Result<()> {
        let address = self.given_address(operation, rank);
        let remote = self.memory.remote.as_ref().ok_or(Error::MessageFailed)?;
        let process = &remote.processes[rank];
        let bytes = operation.bytes;
        let own_block = match operation.call {
            Call::Scatter { .. } => self.rank as u64,
            _ => 0,
        };
        let from = |part: Range<u64>| RemoteSpan {
            address: address.wrapping_add(own_block * bytes + part.start),
            length: part.end - part.start,
        };
        if operation.class.is_some_and(Class::combines) {
            let is_first = rank < self.rank;
            let pulled =
                self.pull_combining(operation, (process, is_first), from(0..bytes), buffers);
            return of_rank(rank, pulled);
        }
        let begin = self.place_of_pulled(operation, rank);
        let mut pull = |part: Range<u64>| {
            let place = begin + part.start as usize..begin + part.end as usize;
            of_rank(rank, process.pull_into(from(part), buffers.output(place)))
        };
        match operation.is_joint() {
            true => self.pull_jointly(operation, rank, pull, wait),
            false => pull(0..bytes),
        }
    }

    /// Where in the result the bytes begin that this rank gets of that one.
    pub(super) fn place_of_pulled(&self, operation: &Operation, rank: usize) -> usize {
        match operation.call {
            Call::Gather { .. } => rank * operation.bytes as usize,
            _ => 0,
        }
    }

    /// Combines the bytes of the other one of two ranks with this rank's; whether they come first counts
    /// for the bits of some results. The other one may go on while the last of them are combined.
    fn pull_combining<B: Buffers + ?Sized>(
        &self,
        operation: &Operation,
        (process, is_first): (&RemoteMemory, bool),
        from: RemoteSpan,
        buffers: &mut B,
    ) -> std::result::Result<u64, CrossMemoryError> {
        let how = operation.combine();
        let mark_last = |through: u64| {
            if through == from.length {
                self.mark_pulled(operation);
            }
        };
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
                    let pulled = process.pull_into(piece, result);
                    mark_last(at + length);
                    pulled
                })?,
                false => {
                    let aside = self.aside.claim().slice(0, length);
                    let pulled = process.pull(&[piece], &[aside])?;
                    mark_last(at + length);
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

    /// Combines what the other one of two ranks has given with this rank's, which needn't be in its area.
    pub(super) fn take_of_two<B: Buffers + ?Sized, W: FnMut(bool) -> Result<()> + ?Sized>(
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
}
