//! `fault-soak`: random operations among processes that are killed and restarted,
//! for as long as asked.
//!
//! ```text
//!   driver ──starts, kills, restarts──▶ rank 0 ◀──puts, gets, atomics, swaps──▶ rank 1 …
//!     ├── sends commands, reads reports, and judges failures           (verdict)
//!     └── samples the resident memory of each rank                     (resident)
//!
//!   rank ── operations it starts (initiator, operation), memory it exposes (offer),
//!           connections to the other ranks                            (session)
//! ```
//!
//! An operation with a live process succeeds, and its bytes have the right
//! checksum, at the target and in replies; one with a process that was killed
//! succeeds or fails, in bounded time. `fault-soak --help` lists the options.

#![forbid(unsafe_code)]

mod bits;
mod driver;
mod initiator;
mod offer;
mod operation;
mod options;
mod rank;
mod session;
mod verdict;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["rank", rest @ ..] => rank::run(rest),
        ["--help" | "-h"] => {
            print!("{}", options::HELP);
            Ok(())
        }
        words => options::Options::read(words).and_then(|options| driver::run(&options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("fault-soak: {why}");
            ExitCode::FAILURE
        }
    }
}

/// A step of the driver or of a rank; the error is one sentence.
type Done = Result<(), String>;
