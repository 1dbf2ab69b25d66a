//! Long operations in which one of two ranks gives bytes to the other, and both copy: the rank that gets
//! them pulls the first half, and the one that gives them pushes the second, for which it would only
//! wait otherwise. If that rank doesn't run meanwhile, the one that gets them takes the second half, too.
//!
//! ```text
//!   in the getter's slot: where its bytes go, and whose the second half is, then the mark Given
//!   in the giver's slot:  whether its push has failed, then the mark Pushed
//! ```

use super::layout::{Mark, few_bytes_of, place_of, push_failed_of};
use super::operation::Operation;
use super::{SharedOperations, Wait};
use crate::buffers::Buffers;
use crate::call::Call;
use crate::error::Result;
use lintel_claim::RemoteSpan;
use std::ops::Range;

/// Halves meet where a page would begin if the bytes did: no page is copied by both.
const PAGE: u64 = 4096;

/// Where the second half begins.
fn half_of(operation: &Operation) -> u64 {
    (operation.bytes / 2).next_multiple_of(PAGE)
}

/// Where it says whose the second half of an operation's bytes is.
fn taken_of(operation: &Operation) -> u64 {
    few_bytes_of(operation.first) + size_of::<u64>() as u64
}

/// The second half is nobody's yet. No other operation has the same words, so one that a rank has
/// finished can't be mistaken for a later one in the same slot.
fn untaken(operation: &Operation) -> u64 {
    2 * (operation.first + 1)
}

impl SharedOperations {
    /// Says where this rank gets the bytes of an operation in which both ranks copy, so that the other one
    /// can push some.
    pub(super) fn offer_place(
        &mut self,
        operation: &Operation,
        buffers: &mut dyn Buffers,
        wait: &mut Wait,
    ) -> Result<()> {
        if !operation.is_joint() || operation.gives(self.rank) {
            return Ok(());
        }
        self.await_slot(operation.first, wait)?;
        let begin = self.place_of_pulled(operation, 1 - self.rank);
        let place = buffers.output(begin..begin + operation.bytes as usize);
        let address = place.as_mut_ptr().expose_provenance() as u64;
        let own = self.memory.memories[self.rank];
        own.store_u64(few_bytes_of(operation.first), address);
        own.store_u64(taken_of(operation), untaken(operation));
        own.store_u64(place_of(operation.first, Mark::Given), operation.first + 1);
        Ok(())
    }

    /// Gets all bytes by `pull`, which copies a part of them, but for those that the giver pushes.
    pub(super) fn pull_jointly<W: FnMut(bool) -> Result<()> + ?Sized>(
        &self,
        operation: &Operation,
        giver: usize,
        mut pull: impl FnMut(Range<u64>) -> Result<()>,
        wait: &mut W,
    ) -> Result<()> {
        let half = half_of(operation);
        let pulled = pull(0..half);
        let mut is_pushed = false;
        if !self.takes_second_half(operation, self.rank) {
            // Also if this rank has failed: its caller may free the place, to which the giver copies now.
            self.await_mark(giver, operation.step(0), Mark::Pushed, wait)?;
            let failed = self.memory.memories[giver].load_u64(push_failed_of(operation.first));
            is_pushed = failed == Some(0);
        }
        match is_pushed {
            true => pulled,
            false => pulled.and_then(|()| pull(half..operation.bytes)),
        }
    }

    /// Once the other rank has said where its bytes go, pushes the second half unless that has pulled it.
    pub(super) fn push_part(
        &self,
        operation: &Operation,
        buffers: &dyn Buffers,
        wait: &mut Wait,
    ) -> Result<()> {
        let getter = 1 - self.rank;
        self.await_mark(getter, operation.step(0), Mark::Given, wait)?;
        let address = self.memory.memories[getter].load_u64(few_bytes_of(operation.first));
        let (Some(address), true) = (address, self.takes_second_half(operation, getter)) else {
            return Ok(());
        };
        let (half, bytes) = (half_of(operation), operation.bytes);
        let begin = match operation.call {
            Call::Scatter { .. } => getter as u64 * bytes,
            _ => 0,
        };
        let input = buffers.input((begin + half) as usize..(begin + bytes) as usize);
        let place = RemoteSpan {
            address: address.wrapping_add(half),
            length: bytes - half,
        };
        let pushed = self.memory.remote.as_ref().is_some_and(|remote| {
            let pushed = remote.processes[getter].push_from(input, place);
            pushed == Ok(place.length)
        });
        let own = self.memory.memories[self.rank];
        own.store_u64(push_failed_of(operation.first), u64::from(!pushed));
        own.store_u64(place_of(operation.first, Mark::Pushed), operation.first + 1);
        Ok(())
    }

    /// Whether the second half, of which it says so in the getter's slot, is this rank's from now on.
    fn takes_second_half(&self, operation: &Operation, getter: usize) -> bool {
        let untaken = untaken(operation);
        self.memory.memories[getter].replace_u64(taken_of(operation), untaken, untaken + 1)
    }
}
