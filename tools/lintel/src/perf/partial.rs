//! The rows of a run so far, which an interrupt doesn't lose.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::error::{During, Result};
use crate::report::Row;

/// Rows that the measuring thread adds and a thread that waits for signals may take.
#[derive(Clone, Default)]
pub struct Rows {
    rows: Arc<Mutex<Vec<Row>>>,
    is_taken: Arc<AtomicBool>,
}

impl Rows {
    /// Adds one.
    pub fn push(&self, row: Row) {
        self.lock().push(row);
    }

    /// All of them, for the one that asks first.
    pub fn take(&self) -> Option<Vec<Row>> {
        let is_first = !self.is_taken.swap(true, Ordering::SeqCst);
        is_first.then(|| std::mem::take(&mut *self.lock()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// From now on an interrupt, a request to end or the loss of the terminal gives the rows so
/// far to `deliver` and ends this process with exit code 130; unless they were taken before.
///
/// # Errors
/// The system refused a handler, or a thread.
pub fn on_interrupt(rows: Rows, deliver: impl FnOnce(Vec<Row>) + Send + 'static) -> Result<()> {
    let during = "waiting for interrupts";
    let (mut asked, handlers) = UnixStream::pair().during(during)?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let handler = handlers.try_clone().during(during)?;
        pipe::register(signal, handler).during(during)?;
    }
    let wait = move || {
        let asked = asked.read_exact(&mut [0]);
        if let (Ok(()), Some(rows)) = (asked, rows.take()) {
            deliver(rows);
            std::process::exit(INTERRUPTED);
        }
    };
    let thread = std::thread::Builder::new().name("interrupts".into());
    thread.spawn(wait).during(during).map(drop)
}

/// 128 and the number of SIGINT.
const INTERRUPTED: i32 = 130;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_given_out_once() {
        let rows = Rows::default();
        rows.push(Row::new("put", "", 8));
        let other = rows.clone();
        assert_eq!(other.take().map(|rows| rows.len()), Some(1));
        assert_eq!(rows.take(), None);
    }
}
