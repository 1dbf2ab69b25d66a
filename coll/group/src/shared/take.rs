//! What a rank gets in a step: it waits for the ranks that give it, and reads their areas.

use super::SharedOperations;
use super::layout::Mark;
use super::operation::{Operation, Step};
use crate::buffers::Buffers;
use crate::call::Call;
use crate::error::Result;
use lintel_claim::combine_into;
use std::ops::Range;

/// Where so many bytes from there on are in the result.
fn place(begin: u64, bytes: u64) -> Range<usize> {
    begin as usize..(begin + bytes) as usize
}

impl SharedOperations {
    /// Waits for what this rank gets of a step, and reads it.
    #[inline(always)]
    pub(super) fn take<
        const CHOICE: bool,
        B: Buffers + ?Sized,
        W: FnMut(bool) -> Result<()> + ?Sized,
    >(
        &mut self,
        operation: &Operation,
        number: u64,
        buffers: &mut B,
        wait: &mut W,
    ) -> Result<()> {
        let has_choice = CHOICE && operation.class.is_some();
        let step = operation.step(number);
        match operation.call {
            Call::Barrier => self.await_others(step, wait),
            Call::Allreduce(_) if operation.is_split => {
                self.take_parts(operation, step, buffers, wait)
            }
            Call::Allreduce(_) if has_choice => {
                self.take_of_two((operation, number), buffers, wait)
            }
            Call::Allreduce(_) => self.combine_all(operation, step, buffers, wait),
            Call::Reduce { root, .. } | Call::Gather { root, .. } if root as usize != self.rank => {
                Ok(())
            }
            Call::Reduce { .. } if operation.is_split => {
                self.take_parts(operation, step, buffers, wait)
            }
            Call::Reduce { .. } => {
                self.combine_others::<CHOICE, _, _>((operation, number), buffers, wait)
            }
            Call::Gather { .. } => {
                self.take_of_each::<CHOICE, _, _>((operation, number), buffers, wait)
            }
            Call::Broadcast { root, .. } | Call::Scatter { root, .. }
                if root as usize != self.rank =>
            {
                let root = root as usize;
                self.take_of_root::<CHOICE, _, _>((operation, number), root, buffers, wait)
            }
            Call::Broadcast { .. } | Call::Scatter { .. } => Ok(()),
        }
    }

    #[inline(always)]
    fn await_others<W: FnMut(bool) -> Result<()> + ?Sized>(
        &self,
        step: Step,
        wait: &mut W,
    ) -> Result<()> {
        for rank in self.others() {
            self.await_mark(rank, step, Mark::Given, wait)?;
        }
        Ok(())
    }

    /// Combines what all have given: in the same order at all ranks, so that all get the same bits.
    #[inline(always)]
    fn combine_all<B: Buffers + ?Sized, W: FnMut(bool) -> Result<()> + ?Sized>(
        &self,
        operation: &Operation,
        step: Step,
        buffers: &mut B,
        wait: &mut W,
    ) -> Result<()> {
        let output = buffers.output(step.range());
        let how = operation.combine();
        let first = self.await_area(0, operation, step, wait)?;
        first.read(output);
        for rank in 1..self.ranks() {
            let area = self.await_area(rank, operation, step, wait)?;
            combine_into(how.operation, how.datatype, area, output);
        }
        Ok(())
    }

    /// Combines what the others have given with what the root has.
    #[inline(always)]
    fn combine_others<
        const CHOICE: bool,
        B: Buffers + ?Sized,
        W: FnMut(bool) -> Result<()> + ?Sized,
    >(
        &mut self,
        (operation, number): (&Operation, u64),
        buffers: &mut B,
        wait: &mut W,
    ) -> Result<()> {
        let (how, step) = (operation.combine(), operation.step(number));
        let mut others = self.others();
        let Some(first) = others.next() else {
            buffers.keep(step.range(), step.range());
            return Ok(());
        };
        let has_choice = CHOICE && operation.class.is_some();
        if has_choice && self.pulls((operation, number), first, buffers, wait)? {
            return Ok(());
        }
        let area = self.await_area(first, operation, step, wait)?;
        buffers.combine(how, area, step.range());
        let output = buffers.output(step.range());
        for rank in others {
            let area = self.await_area(rank, operation, step, wait)?;
            combine_into(how.operation, how.datatype, area, output);
        }
        Ok(())
    }

    /// Reads the parts that each rank has combined.
    fn take_parts<B: Buffers + ?Sized, W: FnMut(bool) -> Result<()> + ?Sized>(
        &self,
        operation: &Operation,
        step: Step,
        buffers: &mut B,
        wait: &mut W,
    ) -> Result<()> {
        for rank in 0..self.ranks() {
            self.await_mark(rank, step, Mark::Combined, wait)?;
            let Range { start, end } = operation.part(step, rank);
            let part = self.area(rank, operation, step).slice(start, end - start);
            part.read(buffers.output(place(step.at + start, end - start)));
        }
        Ok(())
    }

    /// Reads what each of the others has given to the root of a gather.
    #[inline(always)]
    fn take_of_each<
        const CHOICE: bool,
        B: Buffers + ?Sized,
        W: FnMut(bool) -> Result<()> + ?Sized,
    >(
        &mut self,
        (operation, number): (&Operation, u64),
        buffers: &mut B,
        wait: &mut W,
    ) -> Result<()> {
        let step = operation.step(number);
        let has_choice = CHOICE && operation.class.is_some();
        for rank in self.others() {
            if has_choice && self.pulls((operation, number), rank, buffers, wait)? {
                continue;
            }
            let area = self.await_area(rank, operation, step, wait)?;
            let begin = rank as u64 * operation.bytes + step.at;
            area.read(buffers.output(place(begin, step.bytes)));
        }
        Ok(())
    }

    /// Reads what the root of a broadcast or scatter has given to this rank.
    #[inline(always)]
    fn take_of_root<
        const CHOICE: bool,
        B: Buffers + ?Sized,
        W: FnMut(bool) -> Result<()> + ?Sized,
    >(
        &mut self,
        (operation, number): (&Operation, u64),
        root: usize,
        buffers: &mut B,
        wait: &mut W,
    ) -> Result<()> {
        let has_choice = CHOICE && operation.class.is_some();
        if has_choice && self.pulls((operation, number), root, buffers, wait)? {
            return Ok(());
        }
        let step = operation.step(number);
        let area = self.await_area(root, operation, step, wait)?;
        let own = match operation.call {
            Call::Scatter { .. } => area.slice(self.rank as u64 * step.bytes, step.bytes),
            _ => area,
        };
        own.read(buffers.output(step.range()));
        Ok(())
    }
}
