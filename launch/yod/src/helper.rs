//! The processes that a launcher starts as copies of itself: a rank or an
//! agent before it becomes its program, the job's watchdog, and the launcher of ranks on
//! another machine.

use crate::{link, remote_launcher, tied, watchdog};

/// Call it first in `main` of any binary that calls [`crate::run`]; it returns
/// at once, but never in the helper processes that `run` starts.
pub fn become_helper_if_asked() {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(word) if word == tied::EXEC_TIED => tied::become_tied(args.collect()),
        Some(word) if word == watchdog::GUARD => watchdog::watch(),
        Some(word) if word == link::REMOTE => remote_launcher::run(),
        _ => {}
    }
}
