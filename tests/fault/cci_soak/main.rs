//! `fault-cci-soak`: messages and remote memory accesses of CCI among processes, one of which is
//! killed and restarted, for as long as asked.
//!
//! ```text
//!   driver ──starts, kills, restarts──▶ member 0 ◀──RO, RU, UU, RMA──▶ member 1 …
//!     └── samples the resident memory of those that live
//!
//!   member ── connections that it asked for (outgoing), that it accepted (incoming),
//!             and what is in a message (message)
//! ```
//!
//! Every message has the right bytes; on RO they come in order, on RU once each. A write's
//! message comes after its data, a read returns what was written. Operations end once, on RO in
//! order, and fail only after their peer was killed. `fault-cci-soak --help` lists the options.

#![forbid(unsafe_code)]

mod driver;
mod incoming;
mod member;
mod message;
mod options;
mod outgoing;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["member", rest @ ..] => member::run(rest),
        ["--help" | "-h"] => {
            print!("{}", options::HELP);
            Ok(())
        }
        words => options::Options::read(words).and_then(|options| driver::run(&options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("fault-cci-soak: {why}");
            ExitCode::FAILURE
        }
    }
}

/// A step of the driver or of a member; the error is one sentence.
type Done = Result<(), String>;
