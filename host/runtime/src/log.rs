//! Words to the user on standard error, as `PTL_LOG` allows.

use std::fmt;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

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

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Off => "off",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Trace => "trace",
        })
    }
}

/// When this process first set or used the log; times are counted from it.
static START: OnceLock<Instant> = OnceLock::new();
static LEVEL: AtomicU8 = AtomicU8::new(Level::Warn as u8);

pub(crate) fn set_level(level: Level) {
    START.get_or_init(Instant::now);
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

/// Logs a line at that level: the process's number in the system, milliseconds since it began
/// to use the library, level and words. Nobody may be reading, which is no error.
pub fn log(level: Level, words: &str) {
    if level > log_level() || level == Level::Off {
        return;
    }
    let elapsed = START.get_or_init(Instant::now).elapsed();
    let (process, ms) = (std::process::id(), elapsed.as_secs_f64() * 1e3);
    // One write, so that lines of several processes don't mix.
    let line = format!("lintel[{process}] {ms:.3} ms {level}: {words}\n");
    let _ = io::stderr().write_all(line.as_bytes());
}
