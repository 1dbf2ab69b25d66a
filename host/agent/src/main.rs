//! `lintel-agent`

#![forbid(unsafe_code)]

use clap::Parser;
use lintel_agent::{House, Options};
use std::process::ExitCode;

fn main() -> ExitCode {
    let house = match House::open(&Options::parse()) {
        Ok(house) => house,
        Err(error) => {
            eprintln!("lintel-agent: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Whoever closed it doesn't want to know.
    let _ = house.announce(&mut std::io::stdout());
    match house.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lintel-agent: {error}");
            ExitCode::FAILURE
        }
    }
}
