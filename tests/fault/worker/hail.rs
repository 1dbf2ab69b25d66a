//! One message, and away.

use crate::Done;
use lintel_fault::memory::Memory;
use lintel_fault::ptl::{self, ACK, Interface, PATIENCE, Target};
use lintel_types::{EventKind, NiFail};

pub fn run(target: u32) -> Done {
    let interface = Interface::open_any().map_err(|why| format!("open: {why:?}"))?;
    let queue = interface.queue(8).map_err(|why| format!("{why:?}"))?;
    let source = interface.bind(Memory::new(8), queue);
    let to = Target {
        process: ptl::process(target),
        bits: 1,
        offset: 0,
    };
    ptl::put(source.map_err(|why| format!("{why:?}"))?, 8, ACK, to, 1)
        .map_err(|why| format!("put: {why:?}"))?;
    loop {
        let event = ptl::event_within(queue, PATIENCE).map_err(|why| format!("{why:?}"))?;
        match (event.kind, event.ni_fail) {
            (EventKind::Ack, NiFail::Ok) => break,
            (EventKind::Ack, fail) => return Err(format!("{fail:?}")),
            _ => {}
        }
    }
    println!("heard");
    // Half of them are killed here, the others end on their own.
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    Ok(())
}
