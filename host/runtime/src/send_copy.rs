//! Sends of memory that can't be touched: a staging buffer stands for it. If the buffer is
//! lent, it stays until the answer.

use crate::memory::Memory;
use crate::staged_sends::StagedSends;
use crate::transports::Transports;
use lintel_claim::{Claim, Lent, Region};
use lintel_memory::length;
use lintel_nal::Outgoing;
use lintel_types::{InterfaceNumber, ProcessId};
use lintel_wire::{OPERAND_BYTES, Words};

/// A request, and how its body goes with it.
pub(crate) struct CopiedMessage<'a> {
    pub(crate) to: ProcessId,
    pub(crate) words: Words,
    pub(crate) interface: InterfaceNumber,
    /// Of the operation, unless it is 0.
    pub(crate) token: u32,
    /// The body is filled, not sent.
    pub(crate) is_get: bool,
    /// The body stays in its place until the response.
    pub(crate) referenced: bool,
    pub(crate) operand: Option<&'a [u8; OPERAND_BYTES]>,
}

/// Why a message wasn't sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SendError {
    /// There is no such process.
    Unreachable,
    /// The owner named memory that it doesn't have, or too much.
    NoMemory,
}

/// Sends a message with a copy of the owner's memory.
///
/// # Errors
/// [`SendError`]
pub(crate) fn send_copy<M: Memory>(
    memory: &M,
    transports: &mut Transports,
    staged: &mut StagedSends<M::Span>,
    message: &CopiedMessage<'_>,
    pieces: &[M::Span],
) -> Result<(), SendError> {
    let CopiedMessage {
        to, words, operand, ..
    } = message;
    let length = length(pieces);
    if length == 0 || (message.is_get && !message.referenced) {
        let nothing = Outgoing::Copied {
            operand: *operand,
            pieces: &[],
        };
        let sent = transports.send(*to, words, nothing);
        return sent.map_err(|_| SendError::Unreachable);
    }
    let (copy, claim) = stage(memory, staged, message.is_get, pieces, length)?;
    let claims = [claim];
    let outgoing = match message.referenced {
        true => lent(message.is_get, staged.lease.lend(&claims)),
        false => Outgoing::Copied {
            operand: *operand,
            pieces: &claims,
        },
    };
    transports
        .send(*to, words, outgoing)
        .map_err(|_| SendError::Unreachable)?;
    match message.referenced {
        true => staged.insert(message.interface, message.token, *to, copy, pieces),
        false => staged.pool.put_back(copy),
    }
    Ok(())
}

/// A staging buffer with the bytes of the owner's memory; empty for a get.
fn stage<M: Memory>(
    memory: &M,
    staged: &mut StagedSends<M::Span>,
    is_get: bool,
    pieces: &[M::Span],
    length: u64,
) -> Result<(Region, Claim), SendError> {
    let (copy, claim) = staged
        .pool
        .take_part(memory, length)
        .map_err(|_| SendError::NoMemory)?;
    if is_get {
        return Ok((copy, claim));
    }
    match memory.copy_out(pieces, &[claim]) {
        Ok(copied) if copied == length => Ok((copy, claim)),
        _ => Err(SendError::NoMemory),
    }
}

/// Memory that stays in its place: a get fills it, all other operations read it.
pub(crate) fn lent(is_get: bool, memory: Lent<'_>) -> Outgoing<'_> {
    match is_get {
        true => Outgoing::LentToFill(memory),
        false => Outgoing::LentToRead(memory),
    }
}
