//! Threads of the library in the application's process.

use lintel_presence::with_signals_blocked;
use std::io;
use std::thread::JoinHandle;

/// Bytes of a thread's stack.
const STACK: usize = 256 << 10;

/// Starts a thread of the library's. It gets no signals: they are for the application's own
/// threads.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let builder = std::thread::Builder::new()
        .name(name.into())
        .stack_size(STACK);
    with_signals_blocked(|| builder.spawn(body))
}
