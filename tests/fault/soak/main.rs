//! `fault-soak`: random operations among processes that are killed and come back,
//! for as long as one likes.
//!
//! ```text
//!   driver ──starts, kills, starts again──▶ rank 0 ◀──puts, gets, atomics, swaps──▶ rank 1 …
//!     ├── says what to do, is told of failures, and judges them        (verdict)
//!     └── watches how much memory each rank holds                      (resident)
//!
//!   rank ── what it starts (initiator, operation), what it offers and checks (offer),
//!           what it knows of each other rank                          (session)
//! ```
//!
//! An operation with a living process succeeds, and its bytes have the right
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
mod resident;
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

/// What went wrong, in a sentence.
type Done = Result<(), String>;
