//! Threads of the library in the application's process.

use lintel_presence::with_signals_blocked;
use rustix::thread::gettid;
use std::io;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::thread::JoinHandle;

/// Bytes of a thread's stack.
const STACK: usize = 256 << 10;

/// Threads of the library that run, at most: each is counted once it exists, and no more
/// before it ends.
static OWN: AtomicIsize = AtomicIsize::new(0);

/// Whether the caller is the only thread of this process that isn't the library's, as far as the
/// system says so.
pub(crate) fn is_alone() -> bool {
    let own = usize::try_from(OWN.load(Ordering::SeqCst)).unwrap_or(0);
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() <= own + 1)
}

/// The system's number of the thread that calls.
pub(crate) fn own_thread() -> i32 {
    gettid().as_raw_nonzero().get()
}

/// Starts a thread of the library's. It gets no signals: they are for the application's own
/// threads.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let body = || {
        body();
        OWN.fetch_sub(1, Ordering::SeqCst);
    };
    let builder = std::thread::Builder::new()
        .name(name.into())
        .stack_size(STACK);
    let thread = with_signals_blocked(|| builder.spawn(body))?;
    OWN.fetch_add(1, Ordering::SeqCst);
    Ok(thread)
}
