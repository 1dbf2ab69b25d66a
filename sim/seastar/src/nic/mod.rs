//! The SeaStar's parts: queues that are full at a number, and say so.

mod cam;
mod queues;
mod sram;

pub(crate) use cam::{Admission, Cam};
pub(crate) use queues::{PioQueue, Transmission, TxQueue};
pub use sram::{OutOfMemory, Sram};
