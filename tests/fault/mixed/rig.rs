//! What the model of the engine hands over.

use lintel_memory::Ghost;
use lintel_types::ProcessId;
use lintel_wire::{OPERAND_BYTES, Request};

/// A request that the model has sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Sent {
    pub to: ProcessId,
    pub request: Request,
    pub operand: Option<[u8; OPERAND_BYTES]>,
    pub pieces: Vec<Ghost>,
}
