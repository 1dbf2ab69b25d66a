//! Words to the user on standard error, as `PTL_LOG` allows.

use std::sync::atomic::{AtomicU8, Ordering};

/// How much is logged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    /// No line is written.
    Off = 0,
    /// What went wrong (the default).
    Warn = 1,
    /// What was set up.
    Info = 2,
    /// Every message that is sent or arrives.
    Trace = 3,
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Warn as u8);

pub(crate) fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// The level that holds.
pub fn log_level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        0 => Level::Off,
        1 => Level::Warn,
        2 => Level::Info,
        _ => Level::Trace,
    }
}

/// Logs a line at that level.
pub fn log(level: Level, words: &str) {
    if level <= log_level() && level != Level::Off {
        eprintln!("lintel[{}]: {words}", std::process::id());
    }
}
