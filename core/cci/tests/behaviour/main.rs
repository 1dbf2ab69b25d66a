//! What endpoints do to each other, over queues.

mod connections;
mod memory;
mod messages;
mod rig;
