//! Puts one message and ends.

use crate::Done;
use lintel_fault::memory::Memory;
use lintel_fault::rig;
use lintel_types::{EventKind, NiFail, ProcessId};
use portals4_abi::AckRequest;

/// Puts 8 bytes to process `target`, and reports the acknowledgement.
pub fn run(target: u32) -> Done {
    let interface = rig::open_as(ProcessId::PID_ANY).map_err(|why| why.to_string())?;
    let queue = interface.queue(8).map_err(|why| why.to_string())?;
    let source = rig::bind(&interface, Memory::new(8), &queue).map_err(|why| why.to_string())?;
    source
        .put(&rig::transfer(target, 1, 8), AckRequest::Full)
        .map_err(|why| why.to_string())?;
    match rig::await_end(&queue, EventKind::Ack)? {
        NiFail::Ok => {}
        fail => return Err(format!("{fail:?}")),
    }
    println!("acknowledged");
    // The driver kills every other one here; the rest return.
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    Ok(())
}
