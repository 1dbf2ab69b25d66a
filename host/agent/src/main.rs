//! `lintel-agent`

#![forbid(unsafe_code)]

use clap::Parser;
use lintel_agent::{House, Options};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let house = match House::open(&Options::parse()) {
        Ok(house) => house,
        Err(error) => {
            eprintln!("lintel-agent: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut out = std::io::stdout();
    // Whoever closed it doesn't want to know.
    let _ = writeln!(out, "ready").and_then(|()| out.flush());
    match house.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lintel-agent: {error}");
            ExitCode::FAILURE
        }
    }
}
